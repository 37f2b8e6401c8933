// js/chat/chat_reply.js — the answer of one turn, which is read as text or as chunks and assembled into a
// message.

import { WickError } from '../index.js';

/** @import { ChatCompletionChunk as Chunk, ChatMessage, ChatReplyResult as Result, ChatStream } from '../index.js' */

export class ChatReply {
  #begin;
  #end;
  #isTaken = false;
  #isOver = false;
  /** The chunks of the turn, once it has started. @type {Promise<AsyncIterator<Chunk>> | undefined} */
  #chunks;
  #parts = new MessageParts();
  /** @type {Result | undefined} */
  #result;

  /**
   * @param {() => Promise<ChatStream>} begin starts the turn
   * @param {(message: ChatMessage | undefined) => void} end called once, with undefined if there is
   * no answer
   */
  constructor(begin, end) {
    this.#begin = begin;
    this.#end = end;
  }

  /** @returns {Result | undefined} */
  get result() {
    return this.#result;
  }

  /** @returns {AsyncGenerator<string, void, void>} */
  [Symbol.asyncIterator]() {
    return this.#read((chunk) => chunk.choices[0]?.delta.content || undefined);
  }

  /** @returns {AsyncGenerator<Chunk, void, void>} */
  chunks() {
    return this.#read((chunk) => chunk);
  }

  async text() {
    let text = '';
    for await (const piece of this) text += piece;
    return text;
  }

  /** @returns {Promise<ChatMessage>} */
  async message() {
    for await (const _ of this.chunks());
    return /** @type {Result} */ (this.#result).message;
  }

  /** Ends a turn that is running. */
  async leave() {
    this.#settle('abort');
    const chunks = await this.#chunks?.catch(() => undefined);
    await chunks?.return?.();
  }

  /**
   * @template T
   * @param {(chunk: Chunk) => T | undefined} shape returns undefined if a chunk has nothing for
   * this reader
   * @returns {AsyncGenerator<T, void, void>} a generator whose `return` does not wait for a pending
   * piece
   */
  #read(shape) {
    if (this.#isTaken) throw new WickError('ARG', 'reply: can be read only once');
    this.#isTaken = true;
    /** @type {IteratorReturnResult<void>} */
    const end = { done: true, value: undefined };
    const leave = async () => {
      await this.leave();
      return end;
    };
    return {
      next: async () => {
        for (let chunk = await this.#next(); chunk; chunk = await this.#next()) {
          const value = shape(chunk);
          if (value !== undefined) return { done: false, value };
        }
        return end;
      },
      return: leave,
      throw: async (error) => {
        await this.leave();
        throw error;
      },
      [Symbol.asyncIterator]() {
        return this;
      },
      [Symbol.asyncDispose]: async () => void (await leave()),
    };
  }

  /** @returns {Promise<Chunk | undefined>} */
  async #next() {
    if (this.#isOver) return undefined;
    try {
      this.#chunks ??= this.#begin().then((stream) => stream[Symbol.asyncIterator]());
      const chunks = await this.#chunks;
      if (this.#isOver) return undefined; // the reader left in the meantime
      const { done, value } = await chunks.next();
      if (this.#isOver) return undefined;
      if (!done) {
        this.#parts.add(value);
        return value;
      }
      this.#settle();
      return undefined;
    } catch (error) {
      if (this.#isOver) return undefined;
      const { name } = /** @type {any} */ (error ?? {});
      this.#settle(name === 'WickError' ? 'error' : 'abort'); // the reason of a signal may have any type
      throw error;
    }
  }

  /** @param {'abort' | 'error'} [early] the reason if it ends prematurely */
  #settle(early) {
    if (this.#isOver) return;
    this.#isOver = true;
    const made = early === 'error' ? undefined : this.#parts.result(early);
    const isAnswer = made && (!early || made.message.content !== '');
    this.#result = made;
    this.#end(isAnswer ? made.message : undefined);
  }
}

/** Assembles the deltas of a stream into a message. */
class MessageParts {
  #content = '';
  #reasoning = '';
  /** @type {{id: string, type: 'function', function: {name: string, arguments: string}}[]} */
  #calls = [];
  /** @type {Chunk['choices'][0]['finish_reason']} */
  #finish = null;
  /** @type {Chunk['usage']} */
  #usage;
  /** @type {Chunk['timings']} */
  #timings;
  #pieces = 0;

  /** @param {Chunk} chunk */
  add({ choices, usage, timings }) {
    this.#usage = usage ?? this.#usage;
    this.#timings = timings ?? this.#timings;
    const [choice] = choices;
    if (!choice) return;
    this.#finish = choice.finish_reason ?? this.#finish;
    const { content, reasoning_content: thought, tool_calls: calls } = choice.delta;
    if (content || thought || calls) this.#pieces++;
    this.#content += content ?? '';
    this.#reasoning += thought ?? '';
    for (const { index, id = '', function: part } of calls ?? []) {
      this.#calls[index] ??= { id, type: 'function', function: { name: '', arguments: '' } };
      const call = this.#calls[index].function;
      call.name += part.name ?? '';
      call.arguments += part.arguments;
    }
  }

  /** @param {'abort'} [early] @returns {Result} */
  result(early) {
    /** @type {ChatMessage} */
    const message = { role: 'assistant', content: this.#content };
    if (this.#reasoning !== '') message.reasoning_content = this.#reasoning;
    // calls of a truncated or malformed reply are left out
    if (this.#finish === 'tool_calls') message.tool_calls = this.#calls;
    const { prompt_tokens = 0, completion_tokens = this.#pieces } = this.#usage ?? {};
    const cachedTokens = this.#usage?.prompt_tokens_details.cached_tokens ?? 0;
    return {
      message,
      finishReason: early ?? this.#finish ?? 'stop',
      usage: { promptTokens: prompt_tokens, completionTokens: completion_tokens, cachedTokens },
      timings: this.#timings,
    };
  }
}
