// js/pipeline/generation_options.js — maps transformers.js's generation options to the engine's.

import { WickError } from '../index.js';

const MAX_NEW_TOKENS = 256;
/** The sampling defaults of transformers. */
const sampled = { temperature: 1, top_k: 50, top_p: 1 };

/** Options that are read here or by the text-generation pipeline. */
const known = [
  ...['max_new_tokens', 'max_length', 'do_sample', 'temperature', 'top_k', 'top_p', 'min_p'],
  ...['typical_p', 'repetition_penalty', 'num_return_sequences', 'stop_strings', 'streamer'],
  ...['stopping_criteria', 'return_full_text', 'add_special_tokens', 'tools', 'chat_template'],
  ...['tokenizer_encode_kwargs', 'return_dict_in_generate', 'use_cache', 'seed', 'signal'],
];
/** Neutral values of options that are not supported. @type {Record<string, unknown>} */
const idle = {
  num_beams: 1,
  no_repeat_ngram_size: 0,
  min_length: 0,
  min_new_tokens: 0,
  num_beam_groups: 1,
  penalty_alpha: 0,
  encoder_repetition_penalty: 1,
  length_penalty: 1,
  guidance_scale: 1,
};

/** @param {Record<string, any>} options */
function checkOptions(options) {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || known.includes(name)) continue;
    if (value !== idle[name]) throw new WickError('UNSUPPORTED', `${name} is not supported`);
  }
}

/**
 * @param {object} options
 * @returns {Record<string, any>} the options without those that are undefined or null
 */
const givenOf = (options) =>
  Object.fromEntries(
    Object.entries(options).filter(([, value]) => (value ?? undefined) !== undefined),
  );

/**
 * @param {import('../pipeline.js').GenerationOptions} options
 * @param {() => Promise<number>} countPrompt returns the number of tokens in the prompt, for
 * max_length
 * @returns {Promise<Record<string, any>>} fields of a chat completion
 */
export async function settingsOf(options, countPrompt) {
  checkOptions(options);
  const { max_length: length, do_sample: isSampled = false } = options;
  const left = length === undefined ? MAX_NEW_TOKENS : Math.max(1, length - (await countPrompt()));
  const { temperature, top_k, top_p } = { ...sampled, ...givenOf(options) };
  const drawn = isSampled ? { temperature, top_k, top_p } : { temperature: 0 };
  return {
    ...drawn,
    min_p: options.min_p ?? 0,
    typical_p: options.typical_p ?? null,
    max_tokens: options.max_new_tokens ?? left,
    repeat_penalty: options.repetition_penalty ?? null,
    repeat_last_n: -1, // transformers penalizes the whole text
    stop: options.stop_strings ?? null,
    n: options.num_return_sequences ?? 1,
    seed: options.seed ?? null,
  };
}
