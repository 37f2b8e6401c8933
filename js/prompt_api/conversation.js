// js/prompt_api/conversation.js — the history of a Prompt API session: prompts that are never
// dropped, turns (the oldest ones are dropped when the context is full), and the engine's session
// with the text processed so far.

import { domError, quotaError } from './dom_errors.js';
import { MessageCounter } from './message_counter.js';
import { withWords } from './prompts.js';
import { LanguageModelToolCall } from './tool_parts.js';

/** @import { ChatMessage, Engine, Session } from '../index.js' */
/** @typedef {NonNullable<ChatMessage['tool_calls']>[0]} Call */
/** @typedef {ReturnType<typeof import('./options.js').readOptions>} Options */
/**
 * The settings of a prompt: fields of its request, instructions for the model, and its limits.
 * @typedef {{fields: object, words: string, effort: string, signal: AbortSignal}} How
 */
/** A piece of an answer. @typedef {string | LanguageModelToolCall} Piece */

/** The number of tokens reserved for an answer; in a small context, an eighth of it. */
const ANSWER_TOKENS = 512;
/** The number of consecutive rounds of tool calls after which a prompt fails. */
const ROUNDS_MAX = 16;

/** The message of an empty prompt. @type {ChatMessage} */
const nothing = { role: 'user', content: '' };

export class Conversation {
  #session;
  /** Prompts that are never dropped. @type {ChatMessage[]} */
  #lasting = [];
  /** The messages of each prompt with their answer. @type {ChatMessage[][]} */
  #turns = [];
  #tools;
  #counter;
  /** The number of tokens of all messages. */
  usage = 0;

  /**
   * @param {Engine} engine
   * @param {Session} session
   * @param {Options} options
   * @param {number} window the context size in tokens
   */
  constructor(engine, session, options, window) {
    this.engine = engine;
    this.#session = session;
    this.options = options;
    const tools = options.tools.map(({ tool }) => tool);
    this.#tools = tools.length === 0 ? {} : { tools };
    this.#counter = new MessageCounter(engine, tools);
    this.window = window;
  }

  get isEmpty() {
    return this.#lasting.length === 0 && this.#turns.length === 0;
  }

  /** @param {ChatMessage[][]} [turns] */
  #messages(turns = this.#turns) {
    return [...this.#lasting, ...turns.flat()];
  }

  /** @param {ChatMessage[]} messages initialPrompts @param {AbortSignal} signal */
  async begin(messages, signal) {
    const tokens = await this.#counter.count(messages, signal);
    if (tokens >= this.window) throw quotaError(tokens, this.window);
    this.#lasting = messages;
    this.usage = tokens;
    await this.#read(messages, signal);
  }

  /**
   * Returns the number of tokens that a prompt would add.
   * @param {ChatMessage[]} said
   * @param {string} words
   * @param {AbortSignal} [signal]
   */
  async measure(said, words, signal) {
    const added = withWords(said, words);
    if (said[0]?.role === 'system') return this.#counter.count(added, signal); // a system message can only come first
    const all = await this.#counter.count([...this.#messages(), ...added], signal);
    return Math.max(0, all - this.usage);
  }

  /**
   * Drops the oldest turns until a prompt fits in the context.
   * @param {ChatMessage[]} said
   * @param {string} words
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} whether turns were dropped
   */
  async makeRoom(said, words, signal) {
    const added = withWords(said, words);
    const forAnswer = Math.min(ANSWER_TOKENS, Math.floor(this.window / 8));
    const tokens = () => this.#counter.count([...this.#messages(turns), ...added], signal);
    let turns = this.#turns;
    let needed = await tokens();
    while (needed + forAnswer > this.window && turns.length > 0) {
      turns = turns.slice(1);
      needed = await tokens();
    }
    if (needed >= this.window) {
      throw quotaError(await this.measure(said, words, signal), this.window - this.usage);
    }
    if (turns === this.#turns) return false;
    this.#turns = turns;
    this.usage = await this.#counter.count(this.#messages());
    return true;
  }

  /** @param {ChatMessage[]} turn that has been processed */
  async #keep(turn) {
    const isSystem = turn[0]?.role === 'system';
    if (isSystem) this.#lasting.push(turn[0]);
    this.#turns.push(isSystem ? turn.slice(1) : turn);
    this.usage = await this.#counter.count(this.#messages());
  }

  /** @param {ChatMessage[]} said @param {AbortSignal} signal */
  async append(said, signal) {
    await this.#read([...this.#messages(), ...said], signal);
    await this.#keep(said);
  }

  /**
   * Processes messages before their prompt arrives, by requesting an answer of one token.
   * @param {ChatMessage[]} messages
   * @param {AbortSignal} signal
   */
  async #read(messages, signal) {
    if (messages.length === 0) return;
    try {
      const read = this.#counter.asTaken(messages);
      const body = { ...this.#tools, messages: read, session: this.#session, max_tokens: 1 };
      await this.engine.chat.completions.create(body, { signal });
    } catch (error) {
      if (/** @type {any} */ (error)?.code !== 'TEMPLATE') throw error;
    }
  }

  /**
   * @param {ChatMessage[]} said
   * @param {How} how
   * @returns {AsyncGenerator<Piece, void, void>} pieces of the answer; the turn is kept only if it
   * ends
   */
  async *answer(said, how) {
    const turn = said.length === 0 ? [nothing] : [...said];
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const { message, finish } = yield* this.#reply(turn, how);
      const begun = turn.at(-1)?.prefix ? turn.pop() : undefined;
      turn.push(begun ? { ...message, content: `${begun.content}${message.content}` } : message);
      const calls = finish === 'tool_calls' ? (message.tool_calls ?? []) : [];
      if (Object.keys(how.fields).length > 0 && finish === 'length') {
        throw domError('SyntaxError', 'The context ended before the answer was complete');
      }
      const isOpen = calls.some((call) => this.#toolOf(call).execute === undefined);
      if (isOpen) yield* calls.map(callOf);
      if (isOpen || calls.length === 0) return this.#keep(turn);
      turn.push(...(await Promise.all(calls.map((call) => this.#run(call)))));
      how.signal.throwIfAborted();
    }
    throw domError('OperationError', `The model called tools ${ROUNDS_MAX} times in a row`);
  }

  /** @param {ChatMessage[]} turn @param {How} how @returns {AsyncGenerator<string, {message: ChatMessage, finish: string}, void>} */
  async *#reply(turn, { fields, words, effort, signal }) {
    const { topK, temperature } = this.options.sampling;
    const isLimited = Object.keys(fields).length > 0;
    const body = {
      ...{ top_k: topK, temperature, session: this.#session },
      ...(isLimited ? {} : this.#tools), // a call would not match the constraint
      ...fields,
      messages: this.#counter.asTaken([...this.#messages(), ...withWords(turn, words)]),
      reasoning_effort: effort,
    };
    const wanted = { ...body, stream: /** @type {const} */ (true) };
    const chunks = this.#chunks(wanted, signal, isLimited);
    /** @type {Call[]} */
    const calls = [];
    let [content, finish] = ['', 'stop'];
    for await (const { choices } of chunks) {
      const [{ delta, finish_reason: reason }] = choices;
      finish = reason ?? finish;
      content += delta.content ?? '';
      if (delta.content) yield delta.content;
      for (const { index, id = '', function: part } of delta.tool_calls ?? []) {
        calls[index] ??= { id, type: 'function', function: { name: '', arguments: '' } };
        calls[index].function.name += part.name ?? '';
        calls[index].function.arguments += part.arguments;
      }
    }
    /** @type {ChatMessage} */
    const message = { role: 'assistant', content };
    if (finish === 'tool_calls') message.tool_calls = calls;
    return { message, finish };
  }

  /** @param {any} wanted @param {AbortSignal} signal @param {boolean} isLimited */
  async *#chunks(wanted, signal, isLimited) {
    try {
      yield* /** @type {AsyncIterable<any>} */ (
        await this.engine.chat.completions.create(wanted, { signal })
      );
    } catch (error) {
      const { code, message } = /** @type {any} */ (error);
      if (!isLimited || code !== 'ARG') throw error;
      // no answer that starts with the prefix matches the responseConstraint
      const isBegun = /^prefix does not match/.test(message);
      throw domError(isBegun ? 'SyntaxError' : 'NotSupportedError', message, error);
    }
  }

  /** @param {Call} call may refer to a tool that does not exist */
  #toolOf({ function: { name } }) {
    const missing = { execute: () => Promise.reject(new Error(`Unknown tool ${name}`)) };
    return this.options.tools.find(({ tool }) => tool.function.name === name) ?? missing;
  }

  /**
   * Runs a tool of the page. Errors are passed to the model as the result.
   * @param {Call} call
   * @returns {Promise<ChatMessage>}
   */
  async #run(call) {
    const { name } = call.function;
    /** @type {string} */
    let content;
    try {
      content = String(await this.#toolOf(call).execute(callOf(call).arguments));
    } catch (error) {
      content = `Error: ${/** @type {any} */ (error)?.message ?? error}`;
    }
    return { role: 'tool', tool_call_id: call.id, name, content };
  }

  async fork() {
    const made = new Conversation(
      ...[this.engine, await this.#session.fork(), this.options, this.window],
    );
    made.#lasting = [...this.#lasting];
    made.#turns = [...this.#turns];
    made.#counter.isJoined = this.#counter.isJoined;
    made.usage = this.usage;
    return made;
  }

  close() {
    return this.#session.close();
  }
}

/** @param {Call} call */
function callOf({ id, function: { name, arguments: json } }) {
  return new LanguageModelToolCall({ callID: id, name, arguments: JSON.parse(json || '{}') });
}
