// js/prompt_api/polyfill_backend.js — a backend for Google's Prompt API polyfill (GoogleChromeLabs/web-ai-demos,
// prompt-api-polyfill/backends/base.js). The polyfill stores the conversation and passes all of it
// for each answer; the engine's prefix cache contains the part that was processed before.

import { domError } from './dom_errors.js';
import { MessageCounter } from './message_counter.js';
import { ModelLoading, ProgressEvent, STEPS } from './model_loading.js';
import { readOptions } from './options.js';
import { isMedia, mediaPart } from './prompt_media.js';

/** @import { ChatMessage } from '../index.js' */
/** @import { ModelSource as Source, PolyfillContent as Content } from '../prompt-api.js' */

const roles = /** @type {const} */ ({ model: 'assistant', system: 'system', user: 'user' });
/**
 * Options of createEngine that the polyfill's configuration may contain; the rest of it belongs to
 * the polyfill.
 */
const engineNames = [
  'url',
  'model',
  'mmproj',
  'hub',
  'cache',
  'threads',
  'contextSize',
  'kvType',
  'batchSize',
];

/** One engine for all sessions of one configuration. @type {WeakMap<object, ModelLoading>} */
const loadings = new WeakMap();

/** @param {any} config @param {Source} [source] @returns {ModelLoading} */
function loadingOf(config, source) {
  const owner = source ?? config;
  let loading = loadings.get(owner);
  if (!loading) {
    const own = Object.entries(config).filter(([name]) => engineNames.includes(name));
    loading = new ModelLoading(source ?? /** @type {any} */ (Object.fromEntries(own)));
    loadings.set(owner, loading);
  }
  return loading;
}

/** @param {Content} content @returns {ChatMessage} */
function messageOf({ role, parts }) {
  const list = parts.map(partOf);
  const isText = list.every(({ type }) => type === 'text');
  const content = isText ? list.map(({ text }) => text).join('') : list;
  return { role: roles[role], content: /** @type {any} */ (content) };
}

/** @param {Content['parts'][0]} part @returns {any} a part of a chat completion */
function partOf({ text, inlineData }) {
  if (typeof text === 'string') return { type: 'text', text };
  const { mimeType = '', data } = inlineData ?? {};
  const type = mimeType.split('/')[0];
  if (!isMedia(type) || typeof data !== 'string') {
    throw domError('NotSupportedError', 'A part must be text, an image or a recording');
  }
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  return mediaPart(type, new Blob([bytes], { type: mimeType }));
}

/**
 * Depending on its version, the polyfill passes a JSON schema, or a schema in the format of
 * Google's services.
 * @param {any} schema
 * @returns {any} a JSON schema
 */
function schemaOf(schema) {
  const plain = JSON.parse(JSON.stringify(schema), (_, value) => {
    const { nullable, type, ...rest } = value ?? {};
    if (typeof type !== 'string' || typeof value !== 'object') return value;
    const name = type.toLowerCase();
    return { type: nullable ? [name, 'null'] : name, ...rest };
  });
  return plain;
}

/** @param {any} target the polyfill's event target, which remembers the last value */
function progressOf(target) {
  return (/** @type {number} */ share) => {
    const loaded = Math.floor(share * STEPS) / STEPS;
    if (!target || loaded <= (target.__lastProgressLoaded ?? -1)) return;
    target.__lastProgressLoaded = loaded;
    const how = { loaded, total: 1, lengthComputable: true };
    target.dispatchEvent(new ProgressEvent('downloadprogress', how));
  };
}

/**
 * @param {Source} [source] if it is missing, the polyfill's configuration specifies the model by
 * `url` or `model`
 * @returns {any} a class for the polyfill's list of backends
 */
export function definePolyfillBackend(source) {
  return class WickBackend {
    #loading;
    #system = '';
    /** @type {object | undefined} */
    #schema;

    /** @param {any} [options] */
    static availability(options) {
      const { isSupported, media } = readOptions(options);
      // other sources are known once their engine is created
      const mayRead = source && (!('url' in source || 'model' in source) || 'mmproj' in source);
      return isSupported && (media.length === 0 || mayRead) ? 'available' : 'unavailable';
    }

    /** @param {any} [config] */
    constructor(config = {}) {
      this.modelName = config.modelName ?? config.model ?? config.url ?? 'wick';
      this.#loading = loadingOf(config, source);
    }

    /** @param {any} schema */
    static convertSchema(schema) {
      return schema;
    }

    /** @param {any} schema */
    convertSchema(schema) {
      return schema;
    }

    /**
     * The following fields are set synchronously, because the polyfill does not wait.
     * @param {any} _
     * @param {any} session
     * @param {any} [monitor]
     */
    async createSession(_, { systemInstruction = '', generationConfig }, monitor) {
      this.#system = systemInstruction;
      const schema = generationConfig?.responseSchema;
      this.#schema = schema === undefined ? undefined : schemaOf(schema);
      return this.#loading.engine(progressOf(monitor));
    }

    /** @param {Content[]} contents @returns {ChatMessage[]} */
    #messagesOf(contents) {
      const messages = contents.map(messageOf);
      const isTold = messages.some(({ role }) => role === 'system');
      if (this.#system && !isTold) messages.unshift({ role: 'system', content: this.#system });
      return messages;
    }

    /** @param {Content[]} contents @returns {AsyncGenerator<{text: string, tokens: number}, void, void>} */
    async *#answer(contents) {
      const engine = await this.#loading.engine(() => {});
      const counter = new MessageCounter(engine);
      const messages = this.#messagesOf(contents);
      await counter.count(messages);
      const format = { type: 'json_schema', json_schema: { name: 'answer', schema: this.#schema } };
      const chunks = await engine.chat.completions.create({
        ...(this.#schema && { response_format: /** @type {any} */ (format) }),
        messages: counter.asTaken(messages),
        chat_template_kwargs: { enable_thinking: false },
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const { choices, usage } of chunks) {
        const text = choices[0]?.delta.content ?? '';
        if (text || usage) yield { text, tokens: usage?.total_tokens ?? 0 };
      }
    }

    /** @param {Content[]} contents */
    async generateContent(contents) {
      let [answer, usage] = ['', 0];
      for await (const { text, tokens } of this.#answer(contents)) {
        answer += text;
        usage = tokens;
      }
      return { text: answer, usage };
    }

    /** @param {Content[]} contents */
    async generateContentStream(contents) {
      const pieces = this.#answer(contents);
      return (async function* () {
        for await (const { text, tokens } of pieces) {
          yield { text: () => text, usageMetadata: { totalTokenCount: tokens } };
        }
      })();
    }

    /** @param {Content[]} contents */
    async countTokens(contents) {
      const engine = await this.#loading.engine(() => {});
      return new MessageCounter(engine).count(this.#messagesOf(contents));
    }
  };
}
