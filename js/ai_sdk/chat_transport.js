// js/ai_sdk/chat_transport.js — a ChatTransport for the AI SDK's useChat: sends its messages to an engine in the page and
// returns the response as a UI message stream, without a server.

import { WickError } from '../index.js';

/** @import { LanguageModelV4Message as Message, LanguageModelV4StreamPart as Part } from '@ai-sdk/provider' */
/** A part of a UI message. @typedef {{type: string, [field: string]: any}} UIPart */
/** @typedef {{id: string, role: string, parts: UIPart[]}} UIMessage */
/** @typedef {{type: string, [field: string]: unknown}} UIChunk */

export class WickChatTransport {
  #model;
  #system;
  #settings;

  /** @param {import('../ai-sdk.js').WickChatTransportOptions} options */
  constructor(options) {
    if (typeof options?.model?.doStream !== 'function') {
      throw new WickError('ARG', 'WickChatTransport needs a model: createWick(engine)()');
    }
    const { model, system, ...settings } = options;
    this.#model = model;
    this.#system = system;
    this.#settings = settings;
  }

  /**
   * @param {{messages: any[], abortSignal: AbortSignal | undefined}} options
   * @returns {Promise<ReadableStream<any>>}
   */
  async sendMessages({ messages, abortSignal }) {
    /** @type {Message[]} */
    const system = this.#system === undefined ? [] : [{ role: 'system', content: this.#system }];
    const prompt = [...system, ...messages.flatMap(promptOf)];
    const call = { ...this.#settings, prompt, ...(abortSignal ? { abortSignal } : {}) };
    const { stream } = await this.#model.doStream(call);
    return stream.pipeThrough(new TransformStream(chunkMaker()));
  }

  async reconnectToStream() {
    return null;
  }
}

/** @param {UIMessage} message @returns {Message[]} */
function promptOf({ role, parts }) {
  if (role === 'system') {
    const texts = parts.filter(({ type }) => type === 'text');
    return [{ role: 'system', content: texts.map(({ text }) => text).join('') }];
  }
  if (role === 'assistant') return stepsOf(parts).flatMap(assistantPrompt);
  return [{ role: 'user', content: parts.flatMap(userPart) }];
}

/**
 * @param {UIPart} part
 * @returns {any[]} the parts of a prompt; undefined for data that is only for the page
 */
function userPart(part) {
  if (part.type === 'text') return [{ type: 'text', text: part.text }];
  if (part.type !== 'file') return [];
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(part.url) ?? [];
  const data =
    base64 === undefined ? { type: 'url', url: part.url } : { type: 'data', data: base64 };
  return [{ type: 'file', mediaType: part.mediaType, data }];
}

/**
 * @param {UIPart[]} parts
 * @returns {UIPart[][]} the parts of each step: a response and the results of its tool calls
 */
function stepsOf(parts) {
  /** @type {UIPart[][]} */
  const steps = [[]];
  for (const part of parts) {
    if (part.type === 'step-start') steps.push([]);
    else steps[steps.length - 1].push(part);
  }
  return steps.filter((step) => step.length > 0);
}

/** @param {UIPart} part @returns {string | undefined} the tool's name, if it is a call */
function toolNameOf(part) {
  if (part.type === 'dynamic-tool') return part.toolName;
  return part.type.startsWith('tool-') ? part.type.slice('tool-'.length) : undefined;
}

/** @param {UIPart} part @returns {any} the tool's result; undefined if there is none yet */
function outputOf({ state, output, errorText, approval }) {
  if (state === 'output-error') return { type: 'error-text', value: errorText };
  if (state === 'output-denied') return { type: 'execution-denied', reason: approval?.reason };
  if (state !== 'output-available') return undefined;
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: output ?? null };
}

/** @param {UIPart[]} parts of one step @returns {Message[]} */
function assistantPrompt(parts) {
  /** @type {any[]} */
  const said = [];
  /** @type {any[]} */
  const results = [];
  for (const part of parts) {
    if (part.type === 'text') said.push({ type: 'text', text: part.text });
    if (part.type === 'reasoning') said.push({ type: 'reasoning', text: part.text });
    const toolName = toolNameOf(part);
    const output = toolName === undefined ? undefined : outputOf(part);
    if (toolName === undefined || output === undefined) continue; // a call without a result is left out
    const { toolCallId, input = {} } = part;
    said.push({ type: 'tool-call', toolCallId, toolName, input });
    results.push({ type: 'tool-result', toolCallId, toolName, output });
  }
  if (said.length === 0) return [];
  /** @type {Message[]} */
  const messages = [{ role: 'assistant', content: said }];
  return results.length === 0 ? messages : [...messages, { role: 'tool', content: results }];
}

/** @param {string} json @returns {unknown} */
function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/**
 * @type {Record<string, (part: any) => UIChunk[]>} maps each kind of part to its chunks; other
 * kinds have no chunks
 */
const chunksOf = {
  'stream-start': () => [{ type: 'start' }, { type: 'start-step' }],
  'tool-input-start': ({ id, toolName }) => [
    { type: 'tool-input-start', toolCallId: id, toolName },
  ],
  'tool-input-delta': ({ id, delta }) => [
    { type: 'tool-input-delta', toolCallId: id, inputTextDelta: delta },
  ],
  'tool-call': ({ toolCallId, toolName, input }) => {
    const value = parsed(input);
    if (value !== undefined) {
      return [{ type: 'tool-input-available', toolCallId, toolName, input: value }];
    }
    const errorText = `The arguments of ${toolName} are not JSON`;
    return [{ type: 'tool-input-error', toolCallId, toolName, input, errorText }];
  },
  error: ({ error }) => [{ type: 'error', errorText: error?.message ?? String(error) }],
  finish: ({ finishReason }) => [
    { type: 'finish-step' },
    { type: 'finish', finishReason: finishReason.unified },
  ],
};
for (const kind of ['text', 'reasoning']) {
  for (const at of ['start', 'delta', 'end']) chunksOf[`${kind}-${at}`] = (part) => [part];
}

/** @returns {Transformer<Part, UIChunk>} */
function chunkMaker() {
  return {
    transform(part, out) {
      for (const chunk of chunksOf[part.type]?.(part) ?? []) out.enqueue(chunk);
    },
  };
}
