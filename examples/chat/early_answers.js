// examples/chat/early_answers.js — answers that are started before they are requested, each in a separate
// session that shares the pages of the conversation. They run with low priority. Answers that are not
// requested free their pages.

import { textIn } from './attachments.js';
import { replaceSession } from './context.js';
import { note } from './developer.js';

/** @import { ChatCompletionChunk, Engine, Session } from 'wick-llm' */
/** @typedef {import('wick-llm').ChatCompletionRequest} Body */

/** The priority: below requests that a user waits for (0), and below work for the next visit. */
const PRIORITIES = { draft: -20, suggest: -30, followUp: -40 };
/** The number of pieces that are read in advance; the engine then pauses after some more. */
const PIECES_MAX = { draft: 128, followUp: 16 };
const SUGGEST = 'Write two short questions that I could ask you next about this.';
const QUESTIONS = {
  ...{ type: 'array', minItems: 2, maxItems: 2 },
  items: { type: 'string', minLength: 8, maxLength: 80 },
};
const SUGGEST_TOKENS_MAX = 160;
const LETTERS_SHOWN = 30;

/** An answer that has begun: a stream, of which a limited number of pieces is read in advance. */
class Attempt {
  /** The number of pieces so far. */
  count = 0;
  /** The time when the first word arrived. */
  firstAt = 0;
  /** @type {unknown} */
  error;
  #controller = new AbortController();
  /** The progress line of the answer, once it is shown. @type {import('./progress_line.js').Live | undefined} */
  #live;
  #chunks;
  /** @type {ReadableStream<ChatCompletionChunk>} */
  #stream;

  /**
   * @param {Engine} engine
   * @param {Body} body
   * @param {Session} session that processes this conversation
   * @param {'draft' | 'followUp'} kind
   * @param {Session} [base] the conversation's own session, from which it was forked
   */
  constructor(engine, body, session, kind, base) {
    this.engine = engine;
    this.key = JSON.stringify(body); // contains only the ids of images
    this.messages = /** @type {import('wick-llm').ChatMessage[]} */ (body.messages);
    this.session = session;
    this.kind = kind;
    this.base = base;
    this.#chunks = this.#read(body);
    this.#stream = new ReadableStream(
      { pull: (controller) => this.#pull(controller) },
      { highWaterMark: PIECES_MAX[kind] },
    );
  }

  get text() {
    return textIn(this.messages.at(-1)?.content);
  }

  /** @param {Body} body @returns {AsyncGenerator<ChatCompletionChunk>} */
  async *#read(body) {
    const stream = await this.engine.chat.completions.create({
      seed: Math.floor(Math.random() * 2 ** 32),
      ...body,
      ...{ stream: true, stream_options: { include_usage: true }, session: this.session },
      ...{ priority: PRIORITIES[this.kind], signal: this.#controller.signal },
      onPrefill: (progress) => this.#live?.read(progress),
    });
    for await (const chunk of stream) {
      const { delta } = chunk.choices[0] ?? {};
      if (delta?.content || delta?.reasoning_content) this.firstAt ||= performance.now();
      this.count++;
      const end = this.text.slice(-LETTERS_SHOWN);
      if (this.kind === 'draft' && !this.#live)
        note('Before Enter', `${this.count} pieces of the answer to “${end}”`);
      yield chunk;
    }
  }

  /** Reads the next piece; the pieces before an error remain. @param {ReadableStreamDefaultController<ChatCompletionChunk>} controller */
  async #pull(controller) {
    try {
      const { done, value } = await this.#chunks.next();
      if (!done) return controller.enqueue(value);
    } catch (error) {
      this.error = error;
    }
    controller.close();
  }

  /**
   * Passes the attempt on as the stream of the answer. Its session becomes the conversation's, if the conversation has a
   * separate one.
   * @param {{signal: AbortSignal, live: import('./progress_line.js').Live}} how
   */
  async *take({ signal, live }) {
    const takenAt = performance.now();
    this.#live = live;
    const abort = () => this.#controller.abort(signal.reason);
    signal.addEventListener('abort', abort);
    const reader = this.#stream.getReader();
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        signal.throwIfAborted();
        const { timings, ...chunk } = next.value;
        const ttftMs = Math.max(0, this.firstAt - takenAt);
        yield { ...chunk, ...(timings && { timings: { ...timings, ttftMs }, isEarly: true }) };
      }
      if (this.error) throw this.error;
    } finally {
      signal.removeEventListener('abort', abort);
      const session = await this.stop();
      if (!this.base || !replaceSession(this.base, session)) await this.drop();
    }
  }

  /** @returns {Promise<Session>} its session, to be reused */
  async stop() {
    this.#controller.abort();
    await this.#chunks.return(undefined).catch(() => {}); // waits until the request has ended
    return this.session;
  }

  async drop() {
    const session = await this.stop();
    await session.close().catch(() => {}); // already closed with the engine
  }
}

/** At most one answer to a draft, which is the first, and those to follow-up questions. @type {Attempt[]} */
let begun = [];
/** Settles after the last requested change, so that there is only one at a time. */
let changing = Promise.resolve();
/** Counts cancellations, so that drafts that were requested before one are not started. */
let era = 0;

/** @param {Attempt} attempt */
const isDraft = ({ kind }) => kind === 'draft';

/** @param {() => Promise<void>} change */
function inTurn(change) {
  changing = changing.then(change).catch(() => {}); // if the engine is closed or has no free pages, this is reported when the user presses Enter
  return changing;
}

/** @param {Engine} engine @param {Session} [base] */
const fork = (engine, base) => (base ? base.fork() : engine.createSession());

/**
 * Starts to answer the typed text instead of an earlier text; their common prefix is not recomputed.
 * @param {Engine} engine @param {object} body @param {Session} [base] a session that has read the conversation
 */
export function beginDraft(engine, body, base) {
  const own = era;
  return inTurn(async () => {
    const before = begun.find(isDraft);
    if (own !== era || before?.key === JSON.stringify(body)) return;
    begun = begun.filter((one) => one !== before);
    const isSame = before?.engine === engine && before.base === base;
    if (before && !isSame) await before.drop();
    const session = isSame ? await before.stop() : await fork(engine, base);
    if (own !== era) return session.close();
    begun.unshift(new Attempt(engine, /** @type {Body} */ (body), session, 'draft', base));
  });
}

/** @param {Engine} engine @param {object[]} bodies @param {Session} [base] a session that has read the conversation */
export function beginFollowUps(engine, bodies, base) {
  const own = era;
  return inTurn(async () => {
    for (const body of bodies) {
      if (own !== era) return;
      const session = await fork(engine, base);
      if (own !== era) return session.close();
      begun.push(new Attempt(engine, /** @type {Body} */ (body), session, 'followUp', base));
    }
    const { length } = begun.filter((one) => !isDraft(one));
    note('Follow-ups', length === 1 ? '1 answer started' : `${length} answers started`);
  });
}

/**
 * @param {Engine} engine
 * @param {any} body the conversation's request, with a question that is left out
 * @param {Session} [base] a session that has read the conversation
 * @returns {Promise<string[]>}
 */
export async function suggest(engine, body, base) {
  const session = await base?.fork();
  const messages = [...body.messages.slice(0, -1), { role: 'user', content: SUGGEST }];
  const asking = engine.chat.completions.create({
    ...{ messages, max_tokens: SUGGEST_TOKENS_MAX, priority: PRIORITIES.suggest, session },
    chat_template_kwargs: { enable_thinking: false },
    thinking_budget_tokens: 0,
    response_format: { type: 'json_schema', json_schema: { name: 'questions', schema: QUESTIONS } },
  });
  const { choices } = await asking.finally(() => session?.close());
  const found = JSON.parse(choices[0].message.content);
  return [...new Set(/** @type {string[]} */ (found).map((one) => one.trim()))].filter(Boolean);
}

/**
 * Returns the question that is being answered.
 * @returns {{messages: import('wick-llm').ChatMessage[], text: string}[]}
 */
export const begunQuestions = () => begun.map(({ messages, text }) => ({ messages, text }));

/** @param {(attempt: Attempt) => boolean} isOver */
function giveUp(isOver) {
  era++;
  const over = begun.filter(isOver);
  begun = begun.filter((one) => !over.includes(one));
  if (over.length === 0) return;
  inTurn(async () => {
    await Promise.all(over.map((one) => one.drop()));
    note('Before Enter', 'released');
    note('Follow-ups', '');
  });
}

/** Cancels the answer to a draft, because the message field is empty. */
export const dropDraft = () => giveUp(isDraft);

export const dropAll = () => giveUp(() => true);

/**
 * @returns {Promise<void>} a promise that settles when all abandoned answers have closed their
 * sessions
 */
export const untilGivenBack = () => changing;

/**
 * @param {Engine} engine
 * @param {object} body
 * @param {{signal: AbortSignal, live: import('./progress_line.js').Live}} how
 * @returns {AsyncGenerator<ChatCompletionChunk & {isEarly?: boolean}> | undefined} undefined if it
 * was not started, or has failed
 */
export function take(engine, body, how) {
  const key = JSON.stringify(body);
  const found = begun.find((one) => one.key === key && one.engine === engine && !one.error);
  begun = begun.filter((one) => one !== found);
  dropAll();
  if (!found) return undefined;
  note('Before Enter', `used: ${found.count} pieces were ready`);
  return found.take(how);
}
