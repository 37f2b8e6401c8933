// examples/playground/rules.js — converts constraints to engine options, and finds the engine's errors in them.

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('./samples.js').Kind} Kind */
/** @typedef {import('./samples.js').Task} Task */
/** @typedef {{message: string, at?: number}} Fault `at`: index of a character of the rule */

/** @param {string} rule @returns {string[]} the choices, one per line */
const linesOf = (rule) => rule.split('\n').filter((line) => line.trim() !== '');

/** Options for engine.generate. @type {Record<Kind, (rule: string) => import('wick-llm').GrammarOptions>} */
export const generateOptions = {
  schema: (rule) => ({ jsonSchema: rule }),
  grammar: (rule) => ({ grammar: rule }),
  regex: (rule) => ({ regex: rule }),
  choices: (rule) => ({ choices: linesOf(rule) }),
};

/** Fields for engine.chat.completions.create. @type {Record<Kind, (rule: string) => any>} */
export const chatFields = {
  schema: (rule) => {
    const schema = JSON.parse(rule);
    const isObject = typeof schema === 'object' && schema !== null;
    const json_schema = { name: 'record', schema: isObject ? schema : { allOf: [schema] } };
    return { response_format: { type: 'json_schema', json_schema } };
  },
  grammar: (rule) => ({ grammar: rule }),
  regex: (rule) => ({ regex: rule }),
  choices: (rule) => ({ choices: linesOf(rule) }),
};

/** @param {Task} task @returns {string} the question for the model, as in engine.extract */
export const questionOf = ({ kind, rule, text }) =>
  kind === 'schema'
    ? `Read the text and write down what it says, as JSON of this schema:\n${rule}\n\n${text}`
    : text;

/** @param {string} text @param {number} bytes an offset in its UTF-8 form @returns {number} the index in the text */
function indexOfByte(text, bytes) {
  const before = new TextEncoder().encode(text).subarray(0, bytes);
  return Math.min(new TextDecoder().decode(before).length, text.length);
}

/**
 * Compiles the rule by generating one token.
 * @param {Engine} engine
 * @param {Pick<Task, 'kind' | 'rule'>} task
 * @param {AbortSignal} signal
 * @returns {Promise<Fault | undefined>} undefined if the rule is valid
 */
export async function findFault(engine, { kind, rule }, signal) {
  try {
    const options = generateOptions[kind](rule);
    await engine.generate('a', { ...options, maxTokens: 1, temperature: 0, signal }).text();
    return undefined;
  } catch (error) {
    if (/** @type {any} */ (error)?.name === 'AbortError') throw error;
    const { message, cause } = /** @type {any} */ (error);
    const offset = kind === 'choices' ? undefined : cause?.offset;
    const isPlace = typeof offset === 'number' && offset >= 0;
    const words = message.replace(/ \(options [\w, ]+\)$/, '');
    return { message: words, ...(isPlace && { at: indexOfByte(rule, offset) }) };
  }
}

/** @param {string} text @param {number} at */
export function placeOf(text, at) {
  const lines = text.slice(0, at).split('\n');
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 };
}

/** @param {Task} task @returns {string} JavaScript that does the same */
export function codeOf({ kind, rule, text }) {
  const head =
    "import { createEngine } from 'wick-llm';\n\nconst engine = await createEngine({ url: 'model.gguf' });\n";
  const said = JSON.stringify(text);
  if (kind === 'schema') {
    return `${head}const schema = ${rule.trim()};\nconst record = await engine.extract(${said}, schema);\n`;
  }
  const [[name, value]] = Object.entries(chatFields[kind](rule));
  const fields = `  messages: [{ role: 'user', content: ${said} }],\n  ${name}: ${JSON.stringify(value)},\n`;
  return `${head}const reply = await engine.chat.completions.create({\n${fields}});\nconsole.log(reply.choices[0].message.content);\n`;
}
