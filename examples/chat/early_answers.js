// examples/chat/early_answers.js — answers that are started before they are requested, each in a separate
// session that shares the pages of the conversation. They run with low priority. Answers that are not
// requested free their pages.

import { textIn } from './attachments.js';
import { replaceSession } from './context.js';
import { note } from './developer.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').Session} Session */
/** @typedef {import('wick-llm').ChatCompletionChunk} ChatCompletionChunk */
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

/** An answer that has begun. */
class Attempt {
  /** @type {ChatCompletionChunk[]} */
  chunks = [];
  /** The time when the first word arrived. */
  firstAt = 0;
  isTaken = false;
  isOver = false;
  /** @type {unknown} */
  error;
  #controller = new AbortController();
  #wake = () => {};
  /** @type {import('./progress_line.js').Live | undefined} */
  #live;
  /** @type {Promise<void>} */
  #ended;

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
    this.#ended = this.#run(body)
      .catch((error) => {
        this.error = error;
      })
      .finally(() => {
        this.isOver = true;
        this.#wake();
      });
  }

  /** @param {Body} body */
  async #run(body) {
    const { signal } = this.#controller;
    const stream = await this.engine.chat.completions.create({
      seed: Math.floor(Math.random() * 2 ** 32),
      ...body,
      ...{ stream: true, stream_options: { include_usage: true } },
      ...{ session: this.session, priority: PRIORITIES[this.kind], signal },
      onPrefill: (progress) => this.#live?.read(progress),
    });
    for await (const chunk of stream) {
      const { delta } = chunk.choices[0] ?? {};
      if (delta?.content || delta?.reasoning_content) this.firstAt ||= performance.now();
      this.chunks.push(chunk);
      this.#wake();
      if (this.kind === 'draft' && !this.isTaken)
        note(
          'Before Enter',
          `${this.chunks.length} pieces of the answer to “${this.#about(body)}”`,
        );
      while (!this.isTaken && this.chunks.length >= PIECES_MAX[this.kind] && !signal.aborted)
        await this.#untilNews();
    }
  }

  /** Returns the end of the question. @param {Body} body */
  #about({ messages }) {
    return textIn(messages.at(-1)?.content).slice(-LETTERS_SHOWN);
  }

  /**
   * @returns {Promise<void>} a promise that settles when the next piece arrives, when the answer is
   * taken, or when it ends
   */
  #untilNews() {
    return new Promise((settle) => {
      const before = this.#wake;
      this.#wake = () => {
        before();
        settle();
      };
    });
  }

  /**
   * Passes the attempt on as the stream of the answer.
   * @param {{signal: AbortSignal, live: import('./progress_line.js').Live}} how
   */
  async *take({ signal, live }) {
    const takenAt = performance.now();
    this.isTaken = true;
    this.#live = live;
    this.#wake();
    const abort = () => this.#abort(signal.reason);
    signal.addEventListener('abort', abort);
    try {
      for (let next = 0; ; next++) {
        while (next >= this.chunks.length && !this.isOver) await this.#untilNews();
        signal.throwIfAborted();
        if (next >= this.chunks.length) break;
        const { timings, ...chunk } = this.chunks[next];
        const ttftMs = Math.max(0, this.firstAt - takenAt);
        yield { ...chunk, ...(timings && { timings: { ...timings, ttftMs }, isEarly: true }) };
      }
      if (this.error) throw this.error;
    } finally {
      signal.removeEventListener('abort', abort);
      await this.#end();
    }
  }

  /** Makes its session the conversation's, if the conversation has a separate one. */
  async #end() {
    this.#abort();
    await this.#ended;
    if (this.base && replaceSession(this.base, this.session)) return;
    await this.session.close().catch(() => {}); // already closed with the engine
  }

  #abort(reason = new DOMException('The answer is no longer needed', 'AbortError')) {
    this.#controller.abort(reason);
    this.#wake();
  }

  /** @returns {Promise<Session>} its session, to be reused */
  async stop() {
    this.#abort();
    await this.#ended;
    return this.session;
  }

  async drop() {
    const session = await this.stop();
    await session.close().catch(() => {}); // already closed with the engine
  }
}

/** @type {Attempt | undefined} */
let draft;
/** @type {Attempt[]} */
let followUps = [];
/** Settles after the last requested change, so that there is only one at a time. */
let changing = Promise.resolve();
/** Counts cancellations, so that drafts that were requested before one are not started. */
let era = 0;

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
    if (own !== era || draft?.key === JSON.stringify(body)) return;
    const before = draft;
    draft = undefined;
    const isSame = before?.engine === engine && before.base === base;
    if (before && !isSame) await before.drop();
    const session = isSame ? await before.stop() : await fork(engine, base);
    if (own !== era) return session.close();
    draft = new Attempt(engine, /** @type {Body} */ (body), session, 'draft', base);
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
      followUps.push(new Attempt(engine, /** @type {Body} */ (body), session, 'followUp', base));
    }
    const { length } = followUps;
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
  return ask(engine, body, session).finally(() => session?.close());
}

/** @param {Engine} engine @param {any} body @param {Session | undefined} session @returns {Promise<string[]>} */
async function ask(engine, body, session) {
  const messages = [...body.messages.slice(0, -1), { role: 'user', content: SUGGEST }];
  const { choices } = await engine.chat.completions.create({
    ...{ messages, max_tokens: SUGGEST_TOKENS_MAX, priority: PRIORITIES.suggest, session },
    chat_template_kwargs: { enable_thinking: false },
    thinking_budget_tokens: 0,
    response_format: { type: 'json_schema', json_schema: { name: 'questions', schema: QUESTIONS } },
  });
  const found = JSON.parse(choices[0].message.content);
  return [...new Set(/** @type {string[]} */ (found).map((one) => one.trim()))].filter(Boolean);
}

const begun = () => [...(draft ? [draft] : []), ...followUps];

/**
 * Returns the question that is being answered.
 * @returns {{messages: import('wick-llm').ChatMessage[], text: string}[]}
 */
export const begunQuestions = () =>
  begun().map(({ messages }) => ({ messages, text: textIn(messages.at(-1)?.content) }));

/** @param {Attempt[]} attempts */
function giveUp(attempts) {
  if (attempts.length === 0) return;
  inTurn(async () => {
    await Promise.all(attempts.map((one) => one.drop()));
    note('Before Enter', 'released');
    note('Follow-ups', '');
  });
}

/** Cancels the answer to a draft, because the message field is empty. */
export function dropDraft() {
  era++;
  const before = draft;
  draft = undefined;
  giveUp(before ? [before] : []);
}

/**
 * @returns {Promise<void>} a promise that settles when all abandoned answers have closed their
 * sessions
 */
export const untilGivenBack = () => changing;

export function dropAll() {
  era++;
  const all = begun();
  draft = undefined;
  followUps = [];
  giveUp(all);
}

/**
 * @param {Engine} engine
 * @param {object} body
 * @param {{signal: AbortSignal, live: import('./progress_line.js').Live}} how
 * @returns {AsyncGenerator<ChatCompletionChunk & {isEarly?: boolean}> | undefined} undefined if it
 * was not started, or has failed
 */
export function take(engine, body, how) {
  const key = JSON.stringify(body);
  const found = begun().find(
    (one) => one.key === key && one.engine === engine && !(one.isOver && one.error),
  );
  if (found === draft) draft = undefined;
  followUps = followUps.filter((one) => one !== found);
  dropAll();
  if (!found) return undefined;
  note('Before Enter', `used: ${found.chunks.length} pieces were ready`);
  return found.take(how);
}
