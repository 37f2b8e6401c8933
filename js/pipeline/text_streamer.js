// js/pipeline/text_streamer.js — streams a pipeline's output, and stops it.

import { WickError } from '../index.js';

const print = (/** @type {string} */ text) => {
  const { stdout } = /** @type {any} */ (globalThis).process ?? {};
  if (stdout?.write) stdout.write(text);
  else console.log(text);
};

export class TextStreamer {
  /**
   * @param {unknown} _tokenizer the pipeline's tokenizer, which is not used: text arrives decoded
   * @param {import('../pipeline.js').TextStreamerOptions} [options]
   */
  constructor(_tokenizer, options = {}) {
    const { skip_prompt = false, callback_function = print, token_callback_function } = options;
    if (token_callback_function) {
      throw new WickError(
        'UNSUPPORTED',
        'token_callback_function: a TextStreamer receives text only',
      );
    }
    this.skip_prompt = skip_prompt;
    this.callback_function = callback_function;
  }

  /** @param {string} text the next piece */
  on_text(text) {
    this.callback_function(text);
  }

  end() {}
}

export class InterruptableStoppingCriteria {
  interrupted = false;

  interrupt() {
    this.interrupted = true;
  }

  reset() {
    this.interrupted = false;
  }
}
