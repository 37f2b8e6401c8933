// js/page/run_tools.js — engine.runTools: lets the model call functions of the page and passes their results to it, until
// it answers.

import { unlessAborted } from '../base/abort_signals.js';
import { argumentError, throwIfAborted, WickError } from '../base/errors.js';
import { checkCount, shown } from './option_checks.js';

/** @import { ChatMessage, ChatToolCall, RunToolsOptions, ToolSet } from '../index.js' */

const MAX_ROUNDS = 8;

/**
 * @param {ToolSet} tools
 * @returns {import('../index.js').ChatTool[]}
 */
function chatToolsOf(tools) {
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools)) {
    throw argumentError(
      `tools must be an object of {description, schema, run}, not ${shown(tools)}`,
    );
  }
  return Object.entries(tools).map(([name, tool]) => {
    if (typeof tool?.run !== 'function')
      throw argumentError(`tools.${name}.run must be a function`);
    const { description, schema: parameters } = tool;
    return { type: 'function', function: { name, description, parameters } };
  });
}

/** @param {unknown} value the result of a tool @returns {string} */
const textOf = (value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/**
 * Runs one call.
 * @param {ToolSet} tools
 * @param {ChatToolCall} call
 * @param {AbortSignal | null | undefined} signal
 */
async function resultOf(tools, { id, function: { name, arguments: json } }, signal) {
  if (!Object.hasOwn(tools, name)) throw new WickError('ARG', `Unknown tool ${name}`);
  return textOf(await tools[name].run(JSON.parse(json), { id, name, signal }));
}

/**
 * Returns the results of all calls of a message, as messages. The calls run concurrently.
 * @param {ToolSet} tools
 * @param {ChatToolCall[]} calls
 * @param {RunToolsOptions} options
 * @returns {Promise<ChatMessage[]>}
 */
async function runAll(tools, calls, { signal, throwErrors }) {
  const results = calls.map(async (call) => {
    const result = resultOf(tools, call, signal);
    const content = throwErrors
      ? await result
      : await result.catch((error) => `Error: ${error?.message ?? error}`);
    return { role: 'tool', tool_call_id: call.id, name: call.function.name, content };
  });
  const all = Promise.all(results);
  all.catch(() => {}); // the caller may have stopped waiting
  throwIfAborted(signal); // the signal may have been aborted by a tool
  return unlessAborted(all, signal, () => {});
}

/**
 * @param {{create(body: any): Promise<any>}} completions
 * @param {RunToolsOptions} options
 * @returns {Promise<import('../index.js').RunToolsResult>}
 */
export async function runTools(completions, options) {
  const { tools, maxRounds = MAX_ROUNDS, throwErrors = false, ...body } = options ?? {};
  for (const [name, value] of Object.entries(body)) {
    const isRefused = (name === 'stream' || name === 'n') && value !== undefined;
    if (isRefused) throw argumentError(`${name} is not an option of runTools`);
  }
  checkCount('maxRounds', maxRounds);
  const chatTools = chatToolsOf(tools);
  if (!Array.isArray(body.messages)) throw argumentError('messages must be an array');
  const messages = [...body.messages];
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  for (let rounds = 1; rounds <= maxRounds; rounds++) {
    throwIfAborted(body.signal);
    // a required call is made only once; afterwards the model may answer
    const choice =
      rounds === 1 ? {} : { tool_choice: body.tool_choice === 'none' ? 'none' : 'auto' };
    const answer = await completions.create({ ...body, ...choice, messages, tools: chatTools });
    const { message, finish_reason } = answer.choices[0];
    usage.prompt_tokens += answer.usage.prompt_tokens;
    usage.completion_tokens += answer.usage.completion_tokens;
    usage.total_tokens += answer.usage.total_tokens;
    messages.push(message);
    if (finish_reason !== 'tool_calls') return { message, messages, finish_reason, rounds, usage };
    messages.push(...(await runAll(tools, message.tool_calls, { ...options, throwErrors })));
  }
  throw new WickError(
    'TOOL_ROUNDS',
    `maxRounds: the model still called tools after ${maxRounds} rounds`,
    { messages },
  );
}
