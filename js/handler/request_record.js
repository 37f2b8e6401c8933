// js/handler/request_record.js — the log record of a request: its route, status, duration, tokens and error. Field
// names follow OpenTelemetry where it defines them.

import { routeOperations } from '../base/option_table.js';

/** @typedef {import('./event_stream.js').Chunks} Chunks */
/** @typedef {import('../openai.js').RequestRecord} Fields */

const seconds = (/** @type {number} */ ms) => Math.round(ms * 1000) / 1e6;

/** @param {any} chunk @returns {boolean} whether it is the chunk that `include_usage` adds */
const isUsage = (chunk) => Array.isArray(chunk.choices) && chunk.choices.length === 0;

/** Returns the usage of one or several responses in the format of llama.cpp's server. @param {any} value */
function usageOfNative(value) {
  const ended = [value].flat().filter((one) => one.tokens_predicted !== undefined);
  if (ended.length === 0) return undefined;
  const sum = (/** @type {string} */ name) => ended.reduce((all, one) => all + one[name], 0);
  return {
    ...{ prompt_tokens: sum('tokens_evaluated'), completion_tokens: sum('tokens_predicted') },
    prompt_tokens_details: { cached_tokens: sum('tokens_cached') },
  };
}

export class RequestRecord {
  #begin = performance.now();
  #first = 0;
  /** @type {any} */
  #usage;
  /** @type {string[]} */
  #finishes = [];
  /** @type {string | undefined} */
  #id;
  /** @type {string | undefined} */
  #error;
  /** Whether the response is a stream, which ends after the handler has returned. */
  isStreamed = false;
  /** Whether the whole response was read. */
  isWhole = false;

  /** @param {any} value a response, or a chunk or event of one */
  see(value) {
    const { id, usage, choices, timings } = value.response ?? value.message ?? value;
    this.#id ??= id;
    this.#usage = usage ?? usageOfNative(value) ?? this.#usage;
    if (!this.#first && timings?.ttftMs) this.#first = this.#begin + timings.ttftMs;
    for (const { index, finish_reason: finish } of choices ?? []) {
      if (finish) this.#finishes[index] = finish;
    }
  }

  /** @param {{code?: string, name?: string}} error */
  fail(error) {
    this.#error ??= error.code ?? error.name;
  }

  /**
   * Records chunks and passes them on unchanged.
   * @param {Chunks} chunks
   * @param {boolean} hidesUsage whether the client did not request the usage
   * @returns {Chunks}
   */
  follow(chunks, hidesUsage) {
    this.isStreamed = true;
    let leading = chunks.leading;
    const next = async () => {
      for (;;) {
        const one = await chunks.next();
        this.isWhole = Boolean(one.done);
        if (one.done) return one;
        if (--leading < 0) this.#first ||= performance.now();
        const value = /** @type {any} */ (one.value);
        this.see(value);
        if (!hidesUsage) return one;
        if (isUsage(value)) continue;
        delete value.usage;
        return one;
      }
    };
    return { ...chunks, next, leave: () => chunks.leave() };
  }

  /**
   * @param {Request} request
   * @param {string} route
   * @param {Response} response
   * @param {{model: string | undefined, instance: string | undefined}} of
   * @returns {Fields}
   */
  fields(request, route, response, { model, instance }) {
    const operation = routeOperations[route];
    const { status } = response;
    const isGone = this.isStreamed && !this.isWhole && !this.#error;
    const error = isGone ? 'client_gone' : this.#error;
    return {
      time: new Date().toISOString(),
      level: error && (status >= 500 || (this.isStreamed && !isGone)) ? 'error' : 'info',
      'event.name': 'http.request',
      ...(instance && { 'service.instance.id': instance }),
      request_id: String(response.headers.get('X-Request-Id')),
      'http.request.method': request.method,
      'http.route': route,
      'http.response.status_code': status,
      'http.server.request.duration': seconds(performance.now() - this.#begin),
      ...(operation && { 'gen_ai.operation.name': operation, ...this.#generation(model) }),
      ...(error && { 'error.type': error }),
    };
  }

  /** @param {string | undefined} model @returns {Partial<Fields>} */
  #generation(model) {
    const usage = this.#usage;
    const details = usage?.prompt_tokens_details ?? usage?.input_tokens_details;
    const apart = usage?.cache_read_input_tokens ?? 0; // Anthropic's input tokens do not include these
    return {
      ...(model !== undefined && { 'gen_ai.response.model': model }),
      ...(this.#id !== undefined && { 'gen_ai.response.id': this.#id }),
      ...(usage && {
        'gen_ai.usage.input_tokens': usage.prompt_tokens ?? usage.input_tokens + apart,
        'gen_ai.usage.output_tokens': usage.completion_tokens ?? usage.output_tokens ?? 0,
        'gen_ai.usage.cache_read.input_tokens': details?.cached_tokens ?? apart,
      }),
      ...(this.#finishes.length > 0 && { 'gen_ai.response.finish_reasons': this.#finishes }),
      ...(this.#first > 0 && {
        'gen_ai.server.time_to_first_token': seconds(this.#first - this.#begin),
      }),
    };
  }
}
