// js/page/engine.js — the Engine class of the public API. It checks arguments and sends calls to the worker.

import { argumentError } from '../base/errors.js';
import { checkNames } from '../base/option_names.js';
import { TOKENIZE_ADD_SPECIAL, TOKENIZE_PARSE_SPECIAL } from '../wasm/layout.js';
import { Adapters } from './adapters.js';
import { ChatCompletions, messagesOf } from './chat_completions.js';
import { infoOf, kvStatsOf, statsOf } from './engine_reports.js';
import { Generation } from './generation.js';
import { loadChats, loadTasks } from './later.js';
import { decodedPart, mediaPromptOf, mediumOf } from './media_parts.js';
import { checkCompletions, shown } from './option_checks.js';
import { readerOf, readersOf } from './piece_reader.js';
import { promptOf, settingsOf, tokensOf } from './request_options.js';
import { loadState, Session, saveState } from './session.js';

/** @import { EngineConnection } from '../connection/engine_connection.js' */
/** @import { Input } from '../connection/messages.js' */
/** @import { GenerateOptions } from '../index.js' */
/** @typedef {import('../index.js').Engine} PublicEngine whose method types apply here */

/** @param {import('../index.js').Prompt} prompt @param {GenerateOptions} options */
function messageOf(prompt, options) {
  const media = mediaPromptOf(prompt);
  const { text = promptOf(/** @type {string | ArrayLike<number>} */ (prompt)), marker } =
    media ?? {};
  return {
    input: { prompt: text, ...(media && { marker }) },
    settings: settingsOf(options),
    wantsTokens: options.onToken !== undefined,
    ...(media?.parts.length && { parts: media.parts }),
  };
}

export class Engine {
  #connection;

  /** @param {EngineConnection} connection @param {ReturnType<typeof infoOf>} info */
  constructor(connection, info) {
    this.#connection = connection;
    const model = info.name ?? info.architecture ?? 'model';
    this.chat = { completions: new ChatCompletions(connection, model) };
    this.embeddings = {
      /** @param {import('../index.js').EmbeddingRequest} body @param {{signal?: AbortSignal | null}} [call] */
      create: async (body, call) =>
        (await loadTasks()).createEmbeddings(connection, model, body, call),
    };
    this.adapters = new Adapters(connection);
  }

  /**
   * Starts the request of a task.
   * @param {Input} input
   * @param {GenerateOptions} options
   * @param {boolean} [isWhole] whether the grammar covers the whole reply, with its reasoning
   * @returns {import('./piece_reader.js').PieceReader}
   */
  #ask = (input, { signal, ...options }, isWhole) => {
    const wantsTokens = options.logprobs !== undefined;
    const settings = settingsOf(options);
    if (isWhole && settings.grammar) settings.grammar.isWhole = true;
    const message = { input, settings, wantsTokens };
    return readerOf(this.#connection, message, { signal });
  };

  /** @type {PublicEngine['generate']} */
  generate(prompt, options = {}) {
    return new Generation(readerOf(this.#connection, messageOf(prompt, options), options));
  }

  /**
   * Returns several completions of one prompt, which is processed once. They run together. All of them start when
   * the first one is read. `seed` is the seed of the first completion; the others use consecutive seeds.
   * @type {PublicEngine['generateMany']}
   */
  generateMany(prompt, { n = 2, ...options } = {}) {
    const message = messageOf(prompt, options);
    const readers = readersOf(this.#connection, message, options, checkCompletions('n', n));
    return readers.map((reader) => new Generation(reader));
  }

  /** @type {PublicEngine['beamSearch']} */
  async beamSearch(prompt, options = {}) {
    return (await loadTasks()).beamSearch(this, promptOf(prompt), options);
  }

  /** @type {PublicEngine['bestOf']} */
  async bestOf(prompt, { n = 4, ...options } = {}) {
    const given = { ...options, logprobs: options.logprobs ?? 0 };
    const message = { ...messageOf(prompt, given), wantsTokens: true };
    const readers = readersOf(this.#connection, message, options, checkCompletions('n', n));
    return (await loadTasks()).readAll(readers);
  }

  /** @type {PublicEngine['embed']} */
  async embed(texts, options = {}) {
    return (await loadTasks()).embed(this.#connection, texts, options);
  }

  /** @type {PublicEngine['rerank']} */
  async rerank(query, documents, options = {}) {
    return (await loadTasks()).rerank(this.#connection, query, documents, options);
  }

  /** @type {PublicEngine['classify']} */
  async classify(text, labels, options = {}) {
    return (await loadTasks()).classify(this.#connection, this.#ask, text, labels, options);
  }

  /** @type {PublicEngine['extract']} */
  async extract(text, schema, options = {}) {
    return (await loadTasks()).extract(this.#ask, text, schema, options);
  }

  /** @type {PublicEngine['runTools']} */
  async runTools(options) {
    return (await loadTasks()).runTools(this.chat.completions, options);
  }

  /**
   * Returns the tokens of a text, or of the prompt of a conversation.
   * @param {string | import('../index.js').ChatMessage[]} text
   * @param {any} [options] TokenizeOptions, or CountOptions of a conversation
   * @returns {Promise<number[]>}
   */
  async tokenize(text, options = {}) {
    if (Array.isArray(text)) return this.chat.completions.tokenize(text, options);
    checkNames(options, ['addSpecial', 'parseSpecial', 'signal']);
    const { addSpecial = true, parseSpecial = true, signal } = options;
    if (typeof text !== 'string') throw argumentError('tokenize needs a string');
    const flags =
      (addSpecial ? TOKENIZE_ADD_SPECIAL : 0) | (parseSpecial ? TOKENIZE_PARSE_SPECIAL : 0);
    return this.#connection.call('tokenize', [text, flags], signal);
  }

  /** @type {PublicEngine['detokenize']} */
  async detokenize(tokens, options = {}) {
    const { special = false, signal } = checkNames(options, ['special', 'signal']);
    return this.#connection.call('detokenize', [tokensOf(tokens), special], signal);
  }

  /** @type {PublicEngine['tokenBytes']} */
  async tokenBytes(tokens, options = {}) {
    const { signal } = checkNames(options, ['signal']);
    return this.#connection.call('tokenBytes', [tokensOf(tokens)], signal);
  }

  /**
   * Counts the tokens of a text, or of the prompt of a conversation.
   * @param {string | import('../index.js').ChatMessage[]} text
   * @param {any} [options] TokenizeOptions, or CountOptions of a conversation
   * @returns {Promise<number>}
   */
  async countTokens(text, options) {
    if (typeof text === 'string') return (await this.tokenize(text, options)).length;
    return this.chat.completions.countTokens(text, options);
  }

  /**
   * Decodes a part of a message once, for several requests.
   * @param {any} part
   * @returns {Promise<any>} a part with pixels or samples
   */
  async decodeMedia(part) {
    return decodedPart(part, this.#connection.decoders ?? {});
  }

  /** @type {PublicEngine['mediaCost']} */
  async mediaCost(part) {
    const medium = await mediumOf(part, this.#connection.decoders ?? {});
    return this.#connection.call('mediaCost', [medium]);
  }

  /** @type {PublicEngine['createChat']} */
  async createChat(options) {
    return (await loadChats()).createChat(/** @type {any} */ (this), options);
  }

  /** @type {PublicEngine['loadChat']} */
  async loadChat(bytes, options) {
    return (await loadChats()).loadChat(/** @type {any} */ (this), bytes, options);
  }

  /** @param {unknown} messages @param {Parameters<PublicEngine['applyTemplate']>[1]} [options] @returns {Promise<string>} */
  async applyTemplate(messages, options = {}) {
    checkNames(options, ['addGenerationPrompt', 'variables', 'signal']);
    const { addGenerationPrompt = true, variables, signal } = options;
    const given = { ...variables, add_generation_prompt: addGenerationPrompt };
    return this.#connection.call('applyTemplate', [messagesOf(messages), given], signal);
  }

  /** @type {PublicEngine['info']} */
  async info() {
    return infoOf(await this.#connection.call('info', []));
  }

  /** @type {PublicEngine['inspect']} */
  async inspect() {
    return this.#connection.call('inspect', []);
  }

  /**
   * Returns times and counts of the ops of the forward passes.
   * @param {{format?: 'json' | 'prometheus', reset?: boolean, signal?: AbortSignal | null}} [options]
   * @returns {Promise<any>}
   */
  async metrics(options = {}) {
    checkNames(options, ['format', 'reset', 'signal']);
    const { format = 'json', reset = false, signal } = options;
    return this.#connection.call('metrics', [format, reset], signal);
  }

  /** @param {Parameters<PublicEngine['createSession']>[0]} [options] */
  async createSession(options = {}) {
    return Session.create(this.#connection, checkNames(options, ['signal', 'salt']));
  }

  /** @type {PublicEngine['saveState']} */
  async saveState(to) {
    return saveState(this.#connection, 0, to);
  }

  /** @type {PublicEngine['loadState']} */
  async loadState(from) {
    return loadState(this.#connection, from);
  }

  /** @type {PublicEngine['kvStats']} */
  async kvStats(options = {}) {
    const { map = false } = checkNames(options, ['map']);
    return kvStatsOf(await this.#connection.call('kvStats', [map === true]));
  }

  /** @type {PublicEngine['findPages']} */
  async findPages(messages, options) {
    const tokens = await this.chat.completions.tokenize(messages, options);
    const pages = await this.#connection.call('findPages', [tokens], options?.signal);
    return { tokens: tokens.length, pages: pages.reverse() };
  }

  /**
   * Returns counts of requests (running, waiting, ended), tokens and passes.
   * @param {{format?: 'json' | 'prometheus'}} [options]
   * @returns {Promise<any>}
   */
  async stats(options = {}) {
    const { format = 'json' } = checkNames(options, ['format']);
    if (format !== 'json' && format !== 'prometheus') {
      throw argumentError(`format must be json or prometheus, not ${shown(format)}`);
    }
    const stats = statsOf(await this.#connection.call('stats', []));
    return format === 'json' ? stats : (await loadTasks()).prometheusOf(stats);
  }

  async close() {
    await this.#connection.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}
