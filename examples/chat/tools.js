// examples/chat/tools.js — the tools in conversations that allow them: a clock and a calculator. They do not read user data
// and change nothing.

/** @typedef {{description: string, schema: object, run: (argument: any) => unknown}} Tool */

const TEXT_MAX = 200;

/** @param {unknown} value @param {string} name */
function shortText(value, name) {
  if (typeof value !== 'string') throw new Error(`${name} must be a string`);
  if (value.length > TEXT_MAX) throw new Error(`${name} must have at most ${TEXT_MAX} characters`);
  return value;
}

/** @param {number} value @returns {string} the value as text, with a note if it has lost digits */
const inWords = (value) =>
  Math.abs(value) <= Number.MAX_SAFE_INTEGER
    ? String(value)
    : `about ${Number(value.toPrecision(15))}`;

/** @type {Record<string, Tool>} */
export const tools = {
  clock: {
    description: 'The date and the time now, here or in a time zone.',
    schema: {
      type: 'object',
      properties: { timeZone: { type: 'string', description: 'For example Europe/Oslo' } },
    },
    run: ({ timeZone }) => {
      const zone = timeZone ? { timeZone: shortText(timeZone, 'timeZone') } : {};
      const format = { dateStyle: 'full', timeStyle: 'long', ...zone };
      return new Date().toLocaleString('en-GB', /** @type {Intl.DateTimeFormatOptions} */ (format));
    },
  },
  calculator: {
    description: 'The value of an expression of numbers, + - * / % ^ and parentheses.',
    schema: {
      type: 'object',
      properties: { expression: { type: 'string', description: 'For example (2 + 3) * 4^2' } },
      required: ['expression'],
    },
    run: async ({ expression }) => {
      const { calculate } = await import('./calculator.js');
      return inWords(calculate(shortText(expression, 'expression')));
    },
  },
};

/** The tool descriptions for the model. */
export const toolsTold = Object.entries(tools).map(([name, { description, schema }]) => ({
  type: /** @type {const} */ ('function'),
  function: { name, description, parameters: schema },
}));

/** @param {import('wick-llm').Engine} engine @returns {Promise<boolean>} whether its prompts contain the tools */
export async function knowsTools(engine) {
  const messages = [{ role: /** @type {const} */ ('user'), content: '?' }];
  const [bare, withTools] = await Promise.all([
    engine.countTokens(messages),
    engine.countTokens(messages, { tools: toolsTold }),
  ]);
  return withTools > bare;
}

/** @param {string} name @param {string} json arguments @returns {Promise<string>} the message to the model: the result, or the error */
export async function runTool(name, json) {
  try {
    if (!Object.hasOwn(tools, name)) throw new Error(`unknown tool ${name.slice(0, TEXT_MAX)}`);
    const argument = JSON.parse(json);
    if (typeof argument !== 'object' || argument === null)
      throw new Error('arguments must be an object');
    return String(await tools[name].run(argument));
  } catch (error) {
    return `Error: ${/** @type {Error} */ (error).message}`;
  }
}
