// js/ai_sdk/stream_parts.js — converts chat completion chunks to the AI SDK's stream parts. Text, reasoning and tool
// input are blocks with a start and an end.

/** @import { ChatCompletionChunk as Chunk, ChatUsage } from '../index.js' */
/** @import { LanguageModelV4FinishReason as FinishReason } from '@ai-sdk/provider' */
/** @import { LanguageModelV4StreamPart as Part, LanguageModelV4Usage as Usage } from '@ai-sdk/provider' */

/** @type {Record<string, FinishReason['unified']>} */
const reasons = { stop: 'stop', length: 'length', tool_calls: 'tool-calls', error: 'error' };

/** @param {string | undefined} raw @returns {FinishReason} */
export const finishOf = (raw) => ({ unified: reasons[raw ?? ''] ?? 'other', raw });

/** @param {ChatUsage | undefined} usage @returns {Usage} */
export function usageOf(usage) {
  const total = usage?.prompt_tokens;
  const cacheRead = usage?.prompt_tokens_details.cached_tokens;
  const noCache = total === undefined ? undefined : total - (cacheRead ?? 0);
  /** @type {Usage} */
  const made = {
    inputTokens: { total, noCache, cacheRead, cacheWrite: undefined },
    outputTokens: { total: usage?.completion_tokens, text: undefined, reasoning: undefined },
  };
  return usage ? { ...made, raw: /** @type {any} */ (usage) } : made;
}

/** @typedef {{id: string, name: string, input: string}} Call */

export class PartMaker {
  #wantsRaw;
  #hasBegun = false;
  /** The open block of text or reasoning. @type {{kind: 'text' | 'reasoning', id: string} | undefined} */
  #open;
  #blocks = 0;
  /** @type {Call[]} */
  #calls = [];
  /** @type {ChatUsage | undefined} */
  #usage;
  /** @type {string | undefined} */
  #reason;
  /** @type {import('../index.js').Timings | undefined} */
  #timings;

  /** @param {boolean} wantsRaw */
  constructor(wantsRaw) {
    this.#wantsRaw = wantsRaw;
  }

  /** @param {Chunk} chunk @returns {Part[]} */
  partsOf(chunk) {
    /** @type {Part[]} */
    const parts = this.#wantsRaw ? [{ type: 'raw', rawValue: chunk }] : [];
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      const timestamp = new Date(chunk.created * 1000);
      parts.push({ type: 'response-metadata', id: chunk.id, timestamp, modelId: chunk.model });
    }
    this.#usage = chunk.usage ?? this.#usage;
    this.#timings = chunk.timings ?? this.#timings;
    const [choice] = chunk.choices;
    if (!choice) return parts;
    this.#reason = choice.finish_reason ?? this.#reason;
    const { reasoning_content: thought, content, tool_calls: calls = [] } = choice.delta;
    if (thought) parts.push(...this.#write('reasoning', thought));
    if (content) parts.push(...this.#write('text', content));
    for (const call of calls) parts.push(...this.#call(call));
    return parts;
  }

  /** @param {'text' | 'reasoning'} kind @param {string} delta @returns {Part[]} */
  #write(kind, delta) {
    if (this.#open?.kind === kind) return [{ type: `${kind}-delta`, id: this.#open.id, delta }];
    const closing = this.#close();
    const id = String(this.#blocks++);
    this.#open = { kind, id };
    return [...closing, { type: `${kind}-start`, id }, { type: `${kind}-delta`, id, delta }];
  }

  /** @returns {Part[]} */
  #close() {
    const open = this.#open;
    this.#open = undefined;
    return open ? [{ type: `${open.kind}-end`, id: open.id }] : [];
  }

  /** @param {NonNullable<Chunk['choices'][0]['delta']['tool_calls']>[0]} delta @returns {Part[]} */
  #call({ index, id = '', function: part }) {
    const parts = this.#close();
    let call = this.#calls[index];
    if (!call) {
      call = { id, name: part.name ?? '', input: '' };
      this.#calls[index] = call;
      parts.push({ type: 'tool-input-start', id: call.id, toolName: call.name });
    }
    call.input += part.arguments;
    if (part.arguments)
      parts.push({ type: 'tool-input-delta', id: call.id, delta: part.arguments });
    return parts;
  }

  /** @returns {Part[]} the last parts; calls are included only if the reply ended with them */
  end() {
    const parts = this.#close();
    for (const { id, name, input } of this.#calls) {
      parts.push({ type: 'tool-input-end', id });
      if (this.#reason !== 'tool_calls') continue;
      parts.push({ type: 'tool-call', toolCallId: id, toolName: name, input });
    }
    const timings = this.#timings && { wick: { timings: { ...this.#timings } } };
    parts.push({
      type: 'finish',
      usage: usageOf(this.#usage),
      finishReason: finishOf(this.#reason),
      ...(timings ? { providerMetadata: timings } : {}),
    });
    return parts;
  }

  /** @param {unknown} error @returns {Part[]} */
  fail(error) {
    this.#reason = 'error';
    const last = this.end();
    return [...last.slice(0, -1), { type: 'error', error }, ...last.slice(-1)];
  }
}
