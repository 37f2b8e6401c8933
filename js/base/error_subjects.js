// js/base/error_subjects.js — what an error of the engine is about (include/wick.h, wick_subject), and the option that a
// caller of this package would change.

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
];

/**
 * The engine's message with the name of the option, unless that is its name in C, which messages say. Where it
 * is another, both are said: a request of chat.completions has the setting as in C.
 * @param {string} message
 * @param {number} number of the error's subject
 * @returns {string}
 */
export function nameOption(message, number) {
  const [subject = 'none', option] = subjects[number] ?? [];
  if (option === undefined || option === subject) return message;
  if (message.startsWith(`${subject} is `))
    return message.replace(subject, `${subject} (${option})`);
  return `${message} (${option.includes(',') ? 'options' : 'option'} ${option})`;
}

/** @param {number} number of a subject @returns {string | undefined} the option, or several */
export function optionOf(number) {
  return subjects[number]?.[1];
}
