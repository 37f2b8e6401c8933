// js/chat.js — conversations in the shape of OpenAI's chat completions, as openai-node gives them:
// whoever knows that interface needs no other.

import { checkSignal, WickError } from './errors.js';
import { PieceReader, timingsOf } from './generation.js';
import { argumentError, settingsOf } from './options.js';

/** @typedef {import('./index.js').ChatCompletionRequest} ChatCompletionRequest */
/** @typedef {import('./index.js').ChatCompletion} ChatCompletion */
/** @typedef {import('./index.js').ChatCompletionChunk} ChatCompletionChunk */
/** @typedef {import('./link.js').Link} Link */
/** @typedef {import('./protocol.js').Done} Done */
/** @typedef {import('./generation.js').Piece} Piece */
/** @typedef {import('./template.js').PlainMessage} PlainMessage */

/** Fields that change the answer and are not there yet: refused, not ignored. */
const unsupported = ['tools', 'functions', 'tool_choice', 'function_call', 'audio', 'modalities'];

/** @param {Record<string, any>} body */
function refuseUnsupported(body) {
  if (typeof body !== 'object' || body === null) {
    throw argumentError('A chat completion wants an object of settings');
  }
  const found = unsupported.find((name) => body[name] !== undefined && body[name] !== null);
  if (found) throw new WickError('UNSUPPORTED', `Chat completions know no ${found} yet`);
  if ((body.n ?? 1) !== 1) {
    throw new WickError('UNSUPPORTED', `Chat completions make one choice, not n = ${body.n}`);
  }
  const format = body.response_format?.type ?? 'text';
  if (format !== 'text') {
    throw new WickError('UNSUPPORTED', `Chat completions know no response_format ${format} yet`);
  }
}

/**
 * @param {unknown} messages
 * @returns {PlainMessage[]} content as one string each, whatever else they hold left as it is
 */
export function messagesOf(messages) {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw argumentError('messages must be an array of at least one message');
  }
  return messages.map((message, index) => {
    if (typeof message?.role !== 'string') throw argumentError(`messages[${index}] has no role`);
    return { ...message, content: contentOf(message.content, index) };
  });
}

/** @param {unknown} content @param {number} index @returns {string} */
function contentOf(content, index) {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return '';
  if (!Array.isArray(content)) {
    throw argumentError(`messages[${index}].content must be a string or an array of parts`);
  }
  return content.map((part) => textOfPart(part, index)).join('');
}

/** @param {any} part @param {number} index @returns {string} */
function textOfPart(part, index) {
  if (part?.type === 'text' && typeof part.text === 'string') return part.text;
  throw new WickError(
    'UNSUPPORTED',
    `messages[${index}] has a part of type ${part?.type}: only text is understood`,
  );
}

/** @param {ChatCompletionRequest} body */
function settingsOfBody(body) {
  const topLogprobs = body.top_logprobs ?? 0;
  if (topLogprobs > 0 && !body.logprobs) throw argumentError('top_logprobs needs logprobs: true');
  return settingsOf({
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
    temperature: body.temperature ?? undefined,
    topK: body.top_k ?? undefined,
    topP: body.top_p ?? undefined,
    minP: body.min_p ?? undefined,
    repeatPenalty: body.repeat_penalty ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined,
    seed: body.seed ?? undefined,
    stop: body.stop ?? undefined,
    logitBias: body.logit_bias ?? undefined,
    logprobs: body.logprobs ? topLogprobs : undefined,
  });
}

export class ChatCompletions {
  #link;
  #model;

  /** @param {Link} link @param {string} model its name */
  constructor(link, model) {
    this.#link = link;
    this.#model = model;
  }

  /**
   * @param {ChatCompletionRequest} body
   * @param {{signal?: AbortSignal | null}} [options]
   * @returns {Promise<any>} a ChatCompletion, or a ChatStream with `stream: true`
   */
  async create(body, options = {}) {
    refuseUnsupported(body);
    this.#link.check();
    const messages = messagesOf(body.messages);
    const settings = settingsOfBody(body);
    const message = {
      input: { messages, variables: body.chat_template_kwargs ?? {} },
      settings,
      wantsTokens: body.logprobs === true,
    };
    const controller = new AbortController();
    const given = options.signal ?? body.signal;
    checkSignal(given);
    const signal = given ? anySignal([given, controller.signal]) : controller.signal;
    const reader = new PieceReader(this.#link, message, { signal, onPrefill: body.onPrefill });
    const head = {
      id: `chatcmpl-${crypto.randomUUID()}`,
      created: Math.floor(Date.now() / 1000),
      model: this.#model,
    };
    reader.start();
    if (!body.stream) return collect(reader, head, body);
    return new ChatStream(reader, head, body, controller);
  }
}

/** @param {AbortSignal[]} signals */
function anySignal(signals) {
  if (typeof AbortSignal.any === 'function') return AbortSignal.any(signals);
  const controller = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
  }
  return controller.signal;
}

/** @typedef {{id: string, created: number, model: string}} Head */

/** @param {PieceReader} reader @param {Head} head @param {ChatCompletionRequest} body */
async function collect(reader, head, body) {
  let content = '';
  const details = [];
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    content += piece.text;
    details.push(...logprobsOf(piece, body));
  }
  const done = /** @type {Done} */ (reader.done);
  return {
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null },
        logprobs: body.logprobs ? { content: details, refusal: null } : null,
        finish_reason: finishOf(done),
      },
    ],
    usage: usageOf(done),
    timings: timingsOf(done),
  };
}

/** A streamed answer: an async iterable of chunks, read once. */
export class ChatStream {
  #reader;
  #head;
  #body;
  #isTaken = false;

  /**
   * @param {PieceReader} reader
   * @param {Head} head
   * @param {ChatCompletionRequest} body
   * @param {AbortController} controller
   */
  constructor(reader, head, body, controller) {
    this.#reader = reader;
    this.#head = head;
    this.#body = body;
    /** abort() ends the stream with an AbortError */
    this.controller = controller;
  }

  [Symbol.asyncIterator]() {
    if (this.#isTaken) throw new TypeError('A stream can be read only once');
    this.#isTaken = true;
    return this.#chunks();
  }

  async *#chunks() {
    const reader = this.#reader;
    const withLogprobs = this.#body.logprobs === true;
    try {
      yield this.#chunk({ role: 'assistant', content: '' }, null, null);
      for (let piece = await reader.next(); piece; piece = await reader.next()) {
        const logprobs = withLogprobs
          ? { content: logprobsOf(piece, this.#body), refusal: null }
          : null;
        yield this.#chunk({ content: piece.text }, logprobs, null);
      }
      const done = /** @type {Done} */ (reader.done);
      yield { ...this.#chunk({}, null, finishOf(done)), timings: timingsOf(done) };
      if (this.#body.stream_options?.include_usage) {
        yield { ...this.#chunk({}, null, null), choices: [], usage: usageOf(done) };
      }
    } finally {
      reader.cancel();
    }
  }

  /** @param {object} delta @param {object | null} logprobs @param {string | null} finish_reason */
  #chunk(delta, logprobs, finish_reason) {
    return {
      ...this.#head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs, finish_reason }],
    };
  }
}

/** @param {Done} done */
const finishOf = (done) => (done.finish === 'length' ? 'length' : 'stop');

/** @param {Done} done */
function usageOf({ promptTokens, completionTokens, cachedTokens }) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

/**
 * @param {Piece} piece
 * @param {ChatCompletionRequest} body
 * @returns {object[]} OpenAI's shape; none for text that is no token's
 */
function logprobsOf({ token }, body) {
  if (!token || token.token < 0) return [];
  /** @param {import('./protocol.js').TokenLogprob} one */
  const shaped = ({ text, bytes, logprob }) => ({ token: text, logprob, bytes });
  return [
    { ...shaped(token), top_logprobs: token.top.slice(0, body.top_logprobs ?? 0).map(shaped) },
  ];
}
