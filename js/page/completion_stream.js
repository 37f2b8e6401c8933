// js/page/completion_stream.js — the result of chat.completions.stream: the chunks, events, and the whole completion at the
// end, like openai-node's helper. It reads automatically, so it is enough to add a listener or to
// await the end.

import { onAbort } from '../base/abort_signals.js';

/** @import { ChatCompletion as Completion, ChatCompletionChunk as Chunk } from '../index.js' */

export class CompletionStream {
  controller = new AbortController();
  /** @type {Chunk[]} */
  #chunks = [];
  #isOver = false;
  #listeners = /** @type {Map<string, ((...args: any[]) => void)[]>} */ (new Map());
  /** @type {(nothing?: undefined) => void} */
  #wake = () => {};
  #whole;

  /**
   * @param {(signal: AbortSignal) => Promise<AsyncIterable<Chunk>>} open
   * @param {AbortSignal | null | undefined} signal
   */
  constructor(open, signal) {
    if (signal?.aborted) this.controller.abort(signal.reason);
    const stop = onAbort(signal, () => this.controller.abort(signal?.reason));
    this.#whole = this.#run(open).finally(() => {
      stop();
      this.#isOver = true;
      this.#wake();
      this.#tell('end');
    });
    this.#whole.catch(() => {}); // calls that wait for the end throw this error
  }

  /** @param {(signal: AbortSignal) => Promise<AsyncIterable<Chunk>>} open */
  async #run(open) {
    try {
      /** @type {any} */
      const whole = { object: 'chat.completion', choices: [] };
      for await (const chunk of await open(this.controller.signal)) {
        addChunk(whole, chunk);
        this.#chunks.push(chunk);
        this.#wake();
        this.#tell('chunk', chunk, whole);
        const [choice] = chunk.choices;
        const { content } = choice?.delta ?? {};
        if (content) this.#tell('content', content, whole.choices[choice.index].message.content);
      }
      this.#tell('finalChatCompletion', whole);
      return /** @type {Completion} */ (whole);
    } catch (error) {
      this.#tell(this.controller.signal.aborted ? 'abort' : 'error', error);
      throw error;
    }
  }

  /** @param {string} event @param {...unknown} args */
  #tell(event, ...args) {
    for (const listener of this.#listeners.get(event) ?? []) listener(...args);
  }

  /** @param {string} event @param {(...args: any[]) => void} listener */
  on(event, listener) {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (let at = 0; ; ) {
        if (at < this.#chunks.length) yield this.#chunks[at++];
        else if (this.#isOver) break;
        else
          await new Promise((settle) => {
            this.#wake = settle;
          });
      }
      await this.#whole; // throws the error
    } finally {
      if (!this.#isOver) this.abort();
    }
  }

  abort() {
    this.controller.abort();
  }

  async done() {
    await this.#whole;
  }

  finalChatCompletion() {
    return this.#whole;
  }

  async finalMessage() {
    return (await this.#whole).choices[0].message;
  }

  async finalContent() {
    return (await this.finalMessage()).content;
  }

  async totalUsage() {
    return (await this.#whole).usage;
  }
}

/** @param {any} whole @param {Chunk} chunk */
function addChunk(whole, { id, created, model, choices, usage, timings }) {
  Object.assign(whole, { id, created, model }, usage && { usage }, timings && { timings });
  for (const { index, delta, logprobs, finish_reason: reason, stop_reason: stop } of choices) {
    whole.choices[index] ??= {
      ...{ index, message: { role: 'assistant', content: '', refusal: null } },
      ...{ logprobs: null, finish_reason: null },
    };
    const choice = whole.choices[index];
    const { message } = choice;
    message.content += delta.content ?? '';
    if (delta.reasoning_content) {
      message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content;
    }
    for (const { index: at, ...call } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      message.tool_calls[at] ??= { ...call, function: { ...call.function, arguments: '' } };
      message.tool_calls[at].function.arguments += call.function.arguments;
    }
    if (logprobs) {
      choice.logprobs ??= { content: [], refusal: null };
      choice.logprobs.content.push(...logprobs.content);
    }
    choice.finish_reason = reason ?? choice.finish_reason;
    if (stop !== undefined) choice.stop_reason = stop;
    // malformed calls also arrive as content
    if (reason === 'stop') delete message.tool_calls;
  }
}
