// js/base/error_subjects.js — the subject of an engine's error (include/wick.h, wick_subject) and the option of this
// package that it is about.

/** The subjects in the order of their numbers, each with its option. @type {[string, string?][]} */
export const subjects = [
  ['none'],
  ['memory', 'memoryLimit'],
  ['plan', 'memoryLimit, contextSize'],
  ['context', 'contextSize'],
  ['batch', 'batchSize'],
  ['threads', 'threads'],
  ['kv_type', 'kvType'],
  ['kv_tokens', 'kvTokens'],
  ['directory_only', 'directoryOnly'],
  ['requests'],
  ['queue_tokens'],
  ['prompt'],
  ['priority', 'priority'],
  ['completions'],
  ['session'],
  ['stops', 'stop'],
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['min_p', 'minP'],
  ['repeat_penalty', 'repeatPenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['penalty_last', 'penaltyLast'],
  ['logprobs', 'logprobs'],
  ['bias', 'logitBias'],
  ['kernels'],
  ['host', 'contextSize'],
  ['pre_tokenizer', 'preTokenizer'],
  ['grammar', 'grammar, jsonSchema, regex, choices'],
  ['typical_p', 'typicalP'],
  ['top_n_sigma', 'topNSigma'],
  ['xtc_probability', 'xtcProbability'],
  ['xtc_threshold', 'xtcThreshold'],
  ['dynatemp_range', 'dynatempRange'],
  ['dynatemp_exponent', 'dynatempExponent'],
  ['dry_multiplier', 'dryMultiplier'],
  ['dry_base', 'dryBase'],
  ['dry_penalty_last', 'dryPenaltyLast'],
  ['dry_sequence_breakers', 'drySequenceBreakers'],
  ['mirostat', 'mirostat'],
  ['mirostat_tau', 'mirostatTau'],
  ['mirostat_eta', 'mirostatEta'],
  ['adaptive_target', 'adaptiveTarget'],
  ['adaptive_decay', 'adaptiveDecay'],
  ['samplers', 'samplers'],
  ['adapters', 'adapters'],
  ['tables', 'tables'],
];

/**
 * Adds the option's name to the engine's message, which has the name in C. The message keeps both names, because
 * chat.completions uses those of C. Example: "top_p is 2" becomes "top_p is 2 (option topP)".
 * @param {string} message
 * @param {number} number of the error's subject
 * @returns {string}
 */
export function nameOption(message, number) {
  const [subject = 'none', option] = subjects[number] ?? [];
  if (option === undefined || option === subject) return message;
  return `${message} (${option.includes(',') ? 'options' : 'option'} ${option})`;
}

/** @param {number} number of a subject @returns {string | undefined} the option, or several */
export function optionOf(number) {
  return subjects[number]?.[1];
}
