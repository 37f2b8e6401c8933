// js/told.js — the engine's messages speak of its own settings and limits (src/wick.h): here they get the
// name of the option that a caller of this package would change.

/** What the engine says, and the options behind it. @type {[RegExp, string][]} */
const behind = [
  [/^a context of \d+ tokens: |, the context holds \d+$/, 'contextSize'],
  [/ with a context of \d+ tokens, the budget is \d+$/, 'memoryLimit, contextSize'],
  [/ with a context of \d+ tokens, the host's limit is \d+$/, 'contextSize'],
  [/^out of memory: .*, budget [1-9]\d*\)$/, 'memoryLimit'],
  [/ KV pages are needed, \d+ are available$/, 'kvTokens'],
  [/^only the model's directory/, 'directoryOnly'],
  [/logit bias/, 'logitBias'],
  [/^\d+ stop strings|^stop string \d/, 'stop'],
];

/** @param {string} name as in C @returns {string} as in JavaScript */
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/**
 * @param {string} message of the engine
 * @returns {string}
 */
export function nameOptions(message) {
  // a request of chat.completions has it in the first form
  const named = message.replace(/^[a-z]+(_[a-z]+)+(?= is )/, (name) => `${name} (${camel(name)})`);
  const [, option] = behind.find(([said]) => said.test(message)) ?? [];
  if (option === undefined) return named;
  return `${named} (${option.includes(',') ? 'options' : 'option'} ${option})`;
}
