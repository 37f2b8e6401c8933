// js/ai_sdk/language_model.js — an engine as a LanguageModelV4 of the AI SDK.

import { requestOf } from './prompt.js';
import { finishOf, PartMaker, usageOf } from './stream_parts.js';

/** @import { Engine } from '../index.js' */
/** @import { LanguageModelV4 as LanguageModel, LanguageModelV4CallOptions as CallOptions } from '@ai-sdk/provider' */
/** @import { LanguageModelV4Content as Content, LanguageModelV4StreamPart as Part } from '@ai-sdk/provider' */

/** @implements {LanguageModel} */
export class WickLanguageModel {
  specificationVersion = /** @type {const} */ ('v4');
  provider = 'wick.chat';
  /** The AI SDK fetches files from any URL and passes their bytes. */
  supportedUrls = {};
  #engine;

  /** @param {() => Promise<Engine>} engine @param {string} modelId */
  constructor(engine, modelId) {
    this.#engine = engine;
    this.modelId = modelId;
  }

  /** @param {CallOptions} options @returns {Promise<import('@ai-sdk/provider').LanguageModelV4GenerateResult>} */
  async doGenerate(options) {
    const { body, warnings } = requestOf(options);
    const { chat } = await this.#engine();
    const call = { signal: options.abortSignal ?? null };
    const reply = await chat.completions.create({ ...body, stream: false }, call);
    const [{ message, finish_reason: reason }] = reply.choices;
    return {
      content: contentOf(message, reason),
      finishReason: finishOf(reason),
      usage: usageOf(reply.usage),
      warnings,
      providerMetadata: { wick: { timings: { ...reply.timings } } },
      request: { body },
      response: {
        id: reply.id,
        timestamp: new Date(reply.created * 1000),
        modelId: reply.model,
        body: reply,
      },
    };
  }

  /** @param {CallOptions} options @returns {Promise<import('@ai-sdk/provider').LanguageModelV4StreamResult>} */
  async doStream(options) {
    const { body, warnings } = requestOf(options);
    const { chat } = await this.#engine();
    const wanted = /** @type {const} */ ({ stream: true, stream_options: { include_usage: true } });
    const call = { signal: options.abortSignal ?? null };
    const reply = await chat.completions.create({ ...body, ...wanted }, call);
    const chunks = reply[Symbol.asyncIterator]();
    const maker = new PartMaker(options.includeRawChunks === true);
    return {
      stream: new ReadableStream(
        {
          start: (out) => out.enqueue({ type: 'stream-start', warnings }),
          pull: (out) => pull(chunks, maker, out),
          cancel: async () => void (await chunks.return?.()),
        },
        { highWaterMark: 0 }, // a slow reader pauses its request
      ),
      request: { body },
    };
  }
}

/**
 * @param {AsyncIterator<import('../index.js').ChatCompletionChunk>} chunks
 * @param {PartMaker} maker
 * @param {ReadableStreamDefaultController<Part>} out
 */
async function pull(chunks, maker, out) {
  try {
    for (;;) {
      const { done, value } = await chunks.next();
      const parts = done ? maker.end() : maker.partsOf(value);
      for (const part of parts) out.enqueue(part);
      if (done) out.close();
      if (done || parts.length > 0) return;
    }
  } catch (error) {
    if (/** @type {any} */ (error)?.name !== 'WickError') return out.error(error); // aborted
    for (const part of maker.fail(error)) out.enqueue(part);
    out.close();
  }
}

/**
 * @param {import('../index.js').ChatCompletion['choices'][0]['message']} message
 * @param {string} reason
 * @returns {Content[]}
 */
function contentOf({ content, reasoning_content: reasoning, tool_calls: calls = [] }, reason) {
  /** @type {Content[]} */
  const parts = [];
  if (reasoning) parts.push({ type: 'reasoning', text: reasoning });
  if (content) parts.push({ type: 'text', text: content });
  if (reason !== 'tool_calls') return parts; // a truncated call is not reported
  for (const { id, function: called } of calls) {
    const { name, arguments: input } = called;
    parts.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
  }
  return parts;
}
