// js/page/chat_completions.js — OpenAI's chat completions, with the API of openai-node.

import { abortError, argumentError, WickError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { requestNumbers } from '../base/option_table.js';
import { randomName } from '../base/random.js';
import { effortNames } from '../base/reasoning_effort.js';
import { samplerOptions } from '../base/sampler_fields.js';
import { CompletionStream } from './completion_stream.js';
import { timingsOf } from './generation.js';
import { optionsOfFormat } from './grammar_options.js';
import { loadChats } from './later.js';
import { decodeMedia, mediaPartOf, splitMedia } from './media_parts.js';
import {
  checkCompletions,
  checkFlag,
  checkNumber,
  checkObject,
  checkText,
  shown,
} from './option_checks.js';
import { leavable, readersOf } from './piece_reader.js';
import { settingsOf } from './request_options.js';
import { Session } from './session.js';

/** @import { EngineConnection } from '../connection/engine_connection.js' */
/** @import { Delta, Done, PlainMessage } from '../connection/messages.js' */
/** @import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../index.js' */
/** @import { Piece, PieceReader } from './piece_reader.js' */

/** Unsupported fields that would change the answer. They are rejected. */
const unsupported = [
  ...['functions', 'function_call', 'audio', 'modalities', 'web_search_options'],
];

/** Fields of ChatCompletionRequest that are used. */
const bodyNames = /** @type {const} */ ([
  ...['messages', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens'],
  ...['n', 'priority', 'speculation'],
  ...['salt', 'response_format', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['seed', 'stop', 'logit_bias', 'logprobs'],
  ...['top_logprobs', 'chat_template_kwargs', 'parseSpecial', 'signal', 'onPrefill'],
  ...['reasoning_effort', 'logitsHook', 'session', 'grammar', 'regex', 'choices', 'adapters'],
  'json_schema',
  ...samplerOptions.map(([field]) => /** @type {keyof ChatCompletionRequest} */ (field)),
]);

/** Fields that are options of generate() under the same name. */
const sameNames = /** @type {const} */ ([
  ...['seed', 'stop', 'priority', 'speculation', 'salt', 'adapters', 'grammar', 'regex'],
  ...['choices', 'logitsHook'],
]);

/** Options of countTokens and tokenize. */
const countNames = /** @type {const} */ ([
  ...['tools', 'tool_choice', 'reasoning_effort', 'variables', 'parseSpecial', 'signal'],
]);

/**
 * Fields that concern OpenAI's service, or features that models here do not have. They are ignored.
 */
const withoutEffect = [
  ...['model', 'user', 'store', 'metadata', 'service_tier', 'prediction'],
  ...['verbosity', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'],
];

/** Additional call options of openai-node that concern the network. They are ignored. */
const callWithoutEffect = ['headers', 'query', 'maxRetries', 'idempotencyKey'];

/** @param {Record<string, any>} body */
function checkBody(body) {
  if (typeof body !== 'object' || body === null) {
    throw argumentError('body must be an object');
  }
  const found = unsupported.find((name) => body[name] !== undefined && body[name] !== null);
  if (found) throw new WickError('UNSUPPORTED', `${found}: is not supported by chat completions`);
  checkFlag('stream', body.stream);
  checkObject('stream_options', body.stream_options);
  checkFlag('stream_options.include_usage', body.stream_options?.include_usage);
  checkObject('chat_template_kwargs', body.chat_template_kwargs);
  checkEffort(body.reasoning_effort);
  checkNames(body, [...bodyNames], [...unsupported, ...withoutEffect]);
}

/** @param {string | null | undefined} effort */
function checkEffort(effort) {
  if ((effort ?? undefined) === undefined || effortNames.includes(String(effort))) return;
  throw argumentError(
    `reasoning_effort must be one of ${effortNames.join(', ')}, not ${shown(effort)}`,
  );
}

/**
 * @param {unknown} messages
 * @returns {PlainMessage[]} the same messages, checked
 */
export function messagesOf(messages) {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw argumentError('messages must be an array of at least one message');
  }
  return Array.from(messages, (message, index) => {
    if (typeof message?.role !== 'string') throw argumentError(`messages[${index}] has no role`);
    checkContent(message.content, index);
    return { ...message };
  });
}

/**
 * @param {ChatCompletionRequest} body
 * @returns {{tools: import('../index.js').ChatTool[] | undefined, toolChoice?:
 * import('../connection/messages.js').ToolChoice}} the tools that the model may call, and those
 * that it must call
 */
function toolsOf(body) {
  const { tool_choice: choice, parallel_tool_calls: isParallel } = body;
  const tools = /** @type {import('../index.js').ChatTool[] | null | undefined} */ (body.tools);
  if (!Array.isArray(tools ?? []))
    throw argumentError(`tools must be an array, not ${shown(tools)}`);
  for (const [index, tool] of (tools ?? []).entries()) {
    if (tool?.type !== 'function' || typeof tool.function?.name !== 'string') {
      throw argumentError(`tools[${index}] must be {type: 'function', function: {name, ...}}`);
    }
    const { name, description, parameters } = tool.function;
    checkObject(`tools[${index}].function.parameters`, parameters);
    checkText(`tools[${index}].function.description`, description ?? '');
    const before = tools?.findIndex((one) => one.function.name === name);
    if (before !== index) {
      throw argumentError(`tools[${index}] has the same name as tools[${before}]: ${shown(name)}`);
    }
  }
  const wanted = choice ?? 'auto';
  const { type, function: called } = /** @type {any} */ (wanted);
  const named = type === 'function' && called?.name;
  if (!named && !['auto', 'none', 'required'].includes(/** @type {any} */ (wanted))) {
    throw argumentError(
      `tool_choice must be auto, none, required or {type: 'function', function: {name}}, not ${shown(choice)}`,
    );
  }
  const isKnown = !named || tools?.some((tool) => tool.function.name === named);
  if (!isKnown) throw argumentError(`tool_choice: no tool has the name ${shown(named)}`);
  const parallel_tool_calls = checkFlag('parallel_tool_calls', isParallel, true);
  if (!tools?.length && wanted === 'required') throw argumentError('tool_choice needs tools');
  if (!tools?.length || wanted === 'none') return { tools: undefined };
  return { tools, toolChoice: { tool_choice: wanted, parallel_tool_calls } };
}

/**
 * Separates a last message from the assistant with `prefix: true`, which the reply continues.
 * @param {PlainMessage[]} messages
 * @returns {{messages: PlainMessage[], prefix: string | undefined}}
 */
function splitPrefix(messages) {
  const index = messages.findIndex(({ prefix }) => (prefix ?? false) !== false);
  if (index < 0) return { messages, prefix: undefined };
  const { role, prefix, content } = messages[index];
  if (prefix !== true || role !== 'assistant' || index === 0 || index < messages.length - 1) {
    throw argumentError(
      `messages[${index}].prefix must be true, and only in a last message from the assistant that follows another message`,
    );
  }
  return { messages: messages.slice(0, -1), prefix: textOf(content) };
}

/**
 * Checks messages, and separates their images and recordings and the prefix of the reply.
 * @param {unknown} given
 */
function splitMessages(given) {
  const messages = messagesOf(given);
  const hasMedia = messages.some(
    ({ content }) => Array.isArray(content) && content.some(({ type }) => type !== 'text'),
  );
  /** @type {ReturnType<typeof splitMedia>} */
  const split = hasMedia ? splitMedia(messages) : { messages };
  return { ...split, ...splitPrefix(split.messages) };
}

/** Parts are joined by the engine. @param {unknown} content @param {number} index */
function checkContent(content, index) {
  if (typeof content === 'string' || (content ?? undefined) === undefined) return;
  if (!Array.isArray(content)) {
    throw argumentError(`messages[${index}].content must be a string or an array of parts`);
  }
  for (const [at, part] of content.entries())
    mediaPartOf(part, `messages[${index}].content[${at}]`);
}

/** @param {PlainMessage['content']} content @returns {string} */
const textOf = (content) =>
  Array.isArray(content) ? content.map(({ text }) => text).join('\n') : (content ?? '');

/**
 * Returns the effort as a template variable. The engine chooses the value that the template
 * supports.
 * @param {string | null | undefined} effort
 */
const effortOf = (effort) =>
  (effort ?? undefined) === undefined ? {} : { reasoning_effort: effort };

/** @param {Record<string, any>} body @returns {import('../index.js').SamplingOptions} */
function samplersOfBody(body) {
  const given = samplerOptions.filter(([field]) => (body[field] ?? undefined) !== undefined);
  return Object.fromEntries(given.map(([field, option]) => [option, body[field]]));
}

/** @param {ChatCompletionRequest} body */
function settingsOfBody(body) {
  const isTold = checkFlag('logprobs', body.logprobs);
  const format = optionsOfFormat(body.response_format);
  const own = /** @type {const} */ (['grammar', 'json_schema', 'regex', 'choices']);
  const other = own.find((name) => (body[name] ?? undefined) !== undefined);
  if (format.jsonSchema && other) {
    throw argumentError(`${other}: cannot be used together with response_format`);
  }
  const topLogprobs = checkNumber('top_logprobs', body.top_logprobs ?? 0, requestNumbers.logprobs);
  if (topLogprobs > 0 && !isTold) throw argumentError('top_logprobs needs logprobs: true');
  return settingsOf({
    ...Object.fromEntries(sameNames.map((name) => [name, body[name]])),
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
    logitBias: body.logit_bias ?? undefined,
    logprobs: isTold ? topLogprobs : undefined,
    jsonSchema: body.json_schema ?? undefined,
    ...samplersOfBody(/** @type {any} */ (body)),
    ...format,
  });
}

export class ChatCompletions {
  #connection;
  #model;

  /** @param {EngineConnection} connection @param {string} model its name */
  constructor(connection, model) {
    this.#connection = connection;
    this.#model = model;
  }

  /**
   * @param {ChatCompletionRequest} body
   * @param {import('../index.js').ChatCallOptions} [options]
   * @returns {Promise<any>} a ChatCompletion, or a ChatStream with `stream: true`
   */
  async create(body, options = {}) {
    checkBody(body);
    checkNames(options, ['signal', 'timeout'], callWithoutEffect);
    this.#connection.check();
    const { parts, ...split } = splitMessages(body.messages);
    const settings = settingsOfBody(body);
    const { session, n } = body;
    const hasSession = (session ?? undefined) !== undefined;
    if (hasSession) settings.session = Session.numberOf(session, this.#connection);
    if (hasSession && ((n ?? 1) !== 1 || body.salt)) {
      throw argumentError(
        'session: cannot be combined with n or salt, because a session has only one answer and its own salt',
      );
    }
    const parseSpecial = checkFlag('parseSpecial', body.parseSpecial);
    const message = {
      input: {
        ...split,
        variables: { ...effortOf(body.reasoning_effort), ...body.chat_template_kwargs },
        parseSpecial,
        ...toolsOf(body),
      },
      settings,
      wantsTokens: body.logprobs === true,
      ...(parts && { parts }),
    };
    const choices = checkCompletions('n', n ?? 1);
    const signal = options.signal ?? body.signal;
    const readers = readersOf(
      this.#connection,
      message,
      {
        ...{ signal, onPrefill: body.onPrefill, timeout: options.timeout },
        logitsHook: body.logitsHook,
      },
      choices,
    );
    const head = {
      id: `chatcmpl-${randomName()}`,
      created: Math.floor(Date.now() / 1000),
      model: this.#model,
    };
    readers[0].start();
    if (!body.stream) return collect(readers, head, body);
    return new ChatStream(readers, head, body);
  }

  /**
   * @param {any} body
   * @param {import('../index.js').ChatCallOptions | null} [given]
   */
  stream(body, given = {}) {
    const { signal, ...options } = given ?? {};
    const stream_options = { include_usage: true, ...body?.stream_options };
    const open = (/** @type {AbortSignal} */ own) =>
      this.create({ ...body, stream: true, stream_options }, { ...options, signal: own });
    return new CompletionStream(open, signal ?? body?.signal);
  }

  /**
   * @param {any} body
   * @param {import('../index.js').ChatCallOptions} [options]
   * @returns {Promise<any>}
   */
  async parse(body, options) {
    const { parseCompletion } = await loadChats();
    return parseCompletion(/** @type {any} */ (this), body, options);
  }

  /**
   * @param {unknown} messages
   * @param {import('../index.js').CountOptions} [options]
   * @returns {Promise<number>} the number of tokens in the prompt that `create` would build from
   * them
   */
  async countTokens(messages, options = {}) {
    return this.#asPrompt('countChat', messages, options);
  }

  /**
   * @param {unknown} messages
   * @param {import('../index.js').CountOptions} [options]
   * @returns {Promise<number[]>} the prompt that `create` would build from them
   */
  async tokenize(messages, options = {}) {
    return this.#asPrompt('tokenizeChat', messages, options);
  }

  /**
   * @param {'countChat' | 'tokenizeChat'} call
   * @param {unknown} messages
   * @param {import('../index.js').CountOptions} options
   */
  async #asPrompt(call, messages, options) {
    checkNames(options, [...countNames]);
    const { tools, tool_choice, reasoning_effort, parseSpecial = false, signal } = options;
    checkObject('variables', options.variables);
    checkEffort(reasoning_effort);
    const chatTools = toolsOf(/** @type {any} */ ({ tools, tool_choice })).tools;
    const variables = { ...effortOf(reasoning_effort), ...options.variables };
    const given = { tools: chatTools, variables, parseSpecial };
    const { parts, ...split } = splitMessages(messages);
    /** @type {import('../connection/messages.js').Input} */
    const input = { ...split, ...given };
    if (parts) input.media = await decodeMedia(parts, this.#connection.decoders ?? {});
    return this.#connection.call(call, [input], signal);
  }
}

/** @typedef {{id: string, created: number, model: string}} Head */

/** @param {PieceReader[]} readers @param {Head} head @param {ChatCompletionRequest} body */
async function collect(readers, head, body) {
  const choices = await Promise.all(
    readers.map((reader, index) => choiceOf(reader, index, body)),
  ).catch((error) => {
    for (const reader of readers) reader.cancel();
    throw error;
  });
  const dones = donesOf(readers);
  const { id, created, model } = head;
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices,
    usage: usageOf(dones),
    timings: timingsOf(dones[0]),
  };
}

/** @param {PieceReader} reader @param {number} index @param {ChatCompletionRequest} body */
async function choiceOf(reader, index, body) {
  const reply = new Reply();
  const details = [];
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    for (const delta of deltasOf(piece)) reply.add(delta);
    details.push(...logprobsOf(piece, body));
  }
  return {
    index,
    message: reply.message,
    logprobs: body.logprobs ? { content: details, refusal: null } : null,
    ...endOf(/** @type {Done} */ (reader.done), reply.hasCalled),
  };
}

/** @param {Piece} piece @returns {Delta[]} */
const deltasOf = ({ text, deltas }) => deltas ?? [{ content: text }];

/** Joins the parts of a reply. */
class Reply {
  content = '';
  reasoning = '';
  /** @type {{id: string, type: 'function', function: {name: string, arguments: string}}[]} */
  calls = [];
  #isBroken = false;

  /** @param {Delta} delta */
  add(delta) {
    if (delta.callsWhole !== undefined) {
      this.calls.length = delta.callsWhole;
      this.#isBroken = true;
    }
    this.content += delta.content ?? '';
    this.reasoning += delta.reasoning_content ?? '';
    for (const { index, id, function: part } of delta.tool_calls ?? []) {
      if (part.name === undefined) {
        this.calls[index].function.arguments += part.arguments;
      } else {
        const made = { name: part.name, arguments: part.arguments };
        this.calls.push({ id: id || callId(), type: 'function', function: made });
      }
    }
  }

  get hasCalled() {
    return this.calls.length > 0 && !this.#isBroken;
  }

  get message() {
    /** @type {ChatCompletion['choices'][0]['message']} */
    const message = { role: 'assistant', content: this.content, refusal: null };
    if (this.reasoning !== '') message.reasoning_content = this.reasoning;
    if (this.calls.length > 0) message.tool_calls = this.calls;
    return message;
  }
}

/** Some templates require call ids with nine letters and digits. */
const callId = () => `${randomName()}${randomName()}`.slice(0, 9);

/** @param {PieceReader[]} readers that have ended @returns {Done[]} */
const donesOf = (readers) => readers.map((reader) => /** @type {Done} */ (reader.done));

/** A streamed answer: an async iterable of chunks that can be read once. */
export class ChatStream {
  #readers;
  #head;
  #body;
  #isTaken = false;
  /** The choices that called a tool. @type {Set<number>} */
  #callers = new Set();
  /** @type {AbortController | undefined} */
  #controller;

  /**
   * @param {PieceReader[]} readers one for each choice
   * @param {Head} head
   * @param {ChatCompletionRequest} body
   */
  constructor(readers, head, body) {
    this.#readers = readers;
    this.#head = head;
    this.#body = body;
    for (const reader of readers) reader.heldBy(this);
  }

  /** The controller whose abort() ends the stream with an AbortError. */
  get controller() {
    if (!this.#controller) {
      this.#controller = new AbortController();
      const { signal } = this.#controller;
      signal.addEventListener('abort', () => {
        for (const reader of this.#readers) reader.abort(abortError(signal.reason));
      });
    }
    return this.#controller;
  }

  [Symbol.asyncIterator]() {
    if (this.#isTaken) throw argumentError('stream: can be read only once');
    this.#isTaken = true;
    const chunks = leavable(this.#chunks(), () => this.#cancel());
    for (const reader of this.#readers) reader.heldBy(chunks);
    return chunks;
  }

  #cancel() {
    for (const reader of this.#readers) reader.cancel();
  }

  async *#chunks() {
    const readers = this.#readers;
    try {
      for (const index of readers.keys()) {
        yield this.#chunk(index, { delta: { role: 'assistant', content: '' } });
      }
      for await (const { index, piece } of merged(readers)) {
        if (piece) yield* this.#pieces(index, piece);
        else yield this.#end(index);
      }
      const dones = donesOf(readers);
      if (this.#body.stream_options?.include_usage) {
        yield Object.assign(this.#chunk(0, {}), { choices: [], usage: usageOf(dones) });
      }
    } finally {
      this.#cancel();
    }
  }

  /** @param {number} index a choice that has ended */
  #end(index) {
    const done = /** @type {Done} */ (this.#readers[index].done);
    const last = this.#chunk(index, endOf(done, this.#callers.has(index)));
    return Object.assign(last, { timings: timingsOf(done) });
  }

  /**
   * Yields the content of a piece, which is usually one delta.
   * @param {number} index
   * @param {Piece} piece
   */
  *#pieces(index, piece) {
    const details = this.#body.logprobs === true ? logprobsOf(piece, this.#body) : undefined;
    let logprobs = details ? { content: details, refusal: null } : null;
    const deltas = deltasOf(piece);
    if (deltas.length === 0 && details?.length) yield this.#chunk(index, { logprobs });
    for (const { callsWhole, ...delta } of deltas) {
      if (callsWhole !== undefined) this.#callers.delete(index);
      for (const call of delta.tool_calls ?? []) {
        this.#callers.add(index);
        if (call.id === '') call.id = callId();
      }
      yield this.#chunk(index, { delta, logprobs });
      logprobs = null;
    }
  }

  /** @param {number} index @param {object} choice */
  #chunk(index, choice) {
    const { id, created, model } = this.#head;
    return {
      id,
      object: 'chat.completion.chunk',
      created,
      model,
      choices: [{ index, delta: {}, logprobs: null, finish_reason: null, ...choice }],
      // only the usage of the last chunk has numbers
      ...(this.#body.stream_options?.include_usage && { usage: null }),
    };
  }
}

/**
 * Yields the pieces of several readers as they arrive, and the end of each.
 * @param {PieceReader[]} readers
 * @returns {AsyncGenerator<{index: number, piece: Piece | undefined}, void, void>}
 */
async function* merged(readers) {
  /** @param {number} index */
  const nextOf = (index) => {
    const next = readers[index].next().then((piece) => ({ index, piece }));
    next.catch(() => {}); // no reader waits for it once the stream is abandoned
    return next;
  };
  const waiting = new Map(readers.map((_, index) => [index, nextOf(index)]));
  while (waiting.size > 0) {
    const next = await Promise.race(waiting.values());
    if (next.piece) waiting.set(next.index, nextOf(next.index));
    else waiting.delete(next.index);
    yield next;
  }
}

/** @param {Done} done @param {boolean} hasCalls */
const endOf = ({ finish, stop }, hasCalls) => ({
  finish_reason: /** @type {'stop' | 'length' | 'tool_calls'} */ (
    finish === 'length' ? 'length' : hasCalls ? 'tool_calls' : 'stop'
  ),
  ...(stop !== undefined && { stop_reason: stop }),
});

/** @param {Done[]} dones of the choices of one prompt */
function usageOf(dones) {
  const { promptTokens, cachedTokens } = dones[0];
  const completionTokens = dones.reduce((sum, done) => sum + done.completionTokens, 0);
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
 * @returns {object[]} in OpenAI's format; empty for text that does not belong to a token
 */
function logprobsOf({ token }, body) {
  if (!token || token.token < 0) return [];
  /** @param {Omit<import('../connection/messages.js').TokenDetail, 'top'>} one */
  const shaped = ({ text, bytes, logprob = 0 }) => ({ token: text, logprob, bytes });
  const top = token.top.slice(0, body.top_logprobs ?? 0).map(shaped);
  return [Object.assign(shaped(token), { top_logprobs: top })];
}
