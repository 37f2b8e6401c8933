// examples/chat/tool_calls.js — answers in which the model calls tools: the calls in a reply are
// shown, then run, and the model continues with their results.

import { make } from './dom.js';
import { runTool } from './tools.js';

/** @import { ChatCompletionChunk, ChatMessage } from 'wick-llm' */
/**
 * A call has no result until it has been run.
 * @typedef {{id: string, name: string, arguments: string, result?: string}} Call
 */
/** The text of a reply before its calls, and the calls. @typedef {{content: string, calls: Call[]}} Round */
/** @typedef {import('../models/words.js').Chunk & {isEarly?: boolean, round?: Round}} Chunk */

/** The maximum number of rounds, after which the model answers without tools. */
const ROUNDS_MAX = 8;
const CALLS_MAX = 16;
/**
 * The maximum length of arguments and results. Longer ones are cut, and are not passed to a tool.
 */
const TEXT_MAX = 100_000;
/** The number of characters of arguments and results that are shown, and the maximum length of a name. */
const SHOWN_MAX = 2000;
const NAME_MAX = 200;

/** @param {Round[] | undefined} rounds of an answer @returns {ChatMessage[]} */
export function messagesOfRounds(rounds = []) {
  return rounds.flatMap(({ content, calls }) => [
    {
      role: 'assistant',
      content,
      tool_calls: calls.map(({ id, name, arguments: json }) => ({
        ...{ id, type: /** @type {const} */ ('function') },
        function: { name, arguments: json },
      })),
    },
    ...calls.map(({ id, name, result = 'Error: it was not run' }) => ({
      ...{ role: 'tool', tool_call_id: id, name, content: result },
    })),
  ]);
}

/** @param {Round} round @param {ChatCompletionChunk} chunk whose pieces are added to the reply */
function collect({ calls }, { choices: [choice] }) {
  for (const { index, id, function: piece } of choice?.delta.tool_calls ?? []) {
    if (index >= CALLS_MAX) continue;
    calls[index] ??= { id: id ?? `call-${index}`, name: piece.name ?? '', arguments: '' };
    const { arguments: before } = calls[index];
    calls[index].arguments = (before + piece.arguments).slice(0, TEXT_MAX);
  }
}

/** @template T @param {Promise<T>} result of a tool, whose code may still have to be loaded @param {AbortSignal} signal @returns {Promise<T>} */
const unlessAborted = (result, signal) =>
  new Promise((settle, fail) => {
    const abort = () => fail(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    result.then(settle, fail);
  });

/**
 * Yields the chunks of an answer, over all its rounds. A chunk with `round` arrives before the round's calls are run, and again
 * with their results.
 * @param {ChatMessage[]} messages before the answer
 * @param {(messages: ChatMessage[], isLast: boolean) => Promise<AsyncIterable<ChatCompletionChunk>>} ask
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Chunk>}
 */
export async function* withCalls(messages, ask, signal) {
  /** @type {Round[]} */
  const rounds = [];
  for (let isOver = false; !isOver; ) {
    /** @type {Round} */
    const round = { content: '', calls: [] };
    const isLast = rounds.length === ROUNDS_MAX;
    isOver = true;
    for await (const chunk of await ask([...messages, ...messagesOfRounds(rounds)], isLast)) {
      round.content += chunk.choices[0]?.delta.content ?? '';
      collect(round, chunk);
      const isCalling = chunk.choices[0]?.finish_reason === 'tool_calls';
      if (!isCalling || round.calls.length === 0) yield chunk;
      else isOver = false;
    }
    if (isOver) return;
    yield { ...noChunk, round };
    for (const call of round.calls)
      call.result = await unlessAborted(runTool(call.name, call.arguments), signal);
    yield { ...noChunk, round };
    rounds.push(round);
  }
}

const noChunk = /** @type {Chunk} */ (/** @type {unknown} */ ({ choices: [] }));

/** @param {string} text @param {number} [most] letters */
const cut = (text, most = SHOWN_MAX) =>
  text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text;

/**
 * Formats arguments for display. A single argument of visible characters is shown without its name.
 * @param {string} json
 */
function readable(json) {
  try {
    const [value, ...more] = Object.values(JSON.parse(json));
    const isPlain = typeof value === 'string' && /^[\p{L}\p{N}\p{P}\p{S} ]+$/u.test(value);
    return isPlain && more.length === 0 ? value : json;
  } catch {
    return json;
  }
}

/** @param {Call} call @param {boolean} isRunning whether the answer is being written */
function cardOf({ name, arguments: json, result }, isRunning) {
  const tabIndex = 0; // so that it can be scrolled with the keyboard
  const given = make('code', { className: 'call-arguments', tabIndex }, cut(readable(json)));
  const got = make(
    'p',
    { className: 'call-result', tabIndex },
    cut(result ?? (isRunning ? 'Running …' : 'Not run')),
  );
  const parts = [make('strong', {}, cut(name, NAME_MAX)), ' ', given, got];
  return make('li', { className: 'call' }, ...parts);
}

/**
 * @param {HTMLElement} body of the answer, before which they are shown
 * @param {Round[]} [rounds]
 * @param {boolean} [isRunning] whether the answer is being written
 */
export function showCalls(body, rounds = [], isRunning = false) {
  const holder = /** @type {HTMLElement} */ (body.parentElement);
  holder.querySelector(':scope > .calls')?.remove();
  if (rounds.length === 0) return;
  const list = make('ul', { className: 'calls', ariaLabel: 'Tools that the model used' });
  for (const { content, calls } of rounds) {
    if (content.trim() !== '') list.append(make('li', { className: 'said' }, content.trim()));
    list.append(...calls.map((call) => cardOf(call, isRunning)));
  }
  body.before(list);
}

/** The maximum number of rounds in a stored answer, which may have been continued several times. */
const KEPT_MAX = 100;

/** @param {unknown} list of unknown origin @returns {Round[] | undefined} */
export function roundsFrom(list) {
  if (!Array.isArray(list) || list.length === 0 || list.length > KEPT_MAX) return undefined;
  const isText = (/** @type {unknown} */ one) => typeof one === 'string' && one.length <= TEXT_MAX;
  const rounds = [];
  for (const round of list) {
    if (!isText(round?.content) || !Array.isArray(round.calls)) return undefined;
    if (round.calls.length === 0 || round.calls.length > CALLS_MAX) return undefined;
    const calls = round.calls.map((/** @type {any} */ one) => ({
      ...{ id: one?.id, name: one?.name, arguments: one?.arguments },
      ...(isText(one?.result) && { result: one.result }),
    }));
    if (!calls.every((/** @type {any} */ one) => [one.id, one.name, one.arguments].every(isText)))
      return undefined;
    rounds.push({ content: round.content, calls });
  }
  return rounds;
}
