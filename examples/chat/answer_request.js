// examples/chat/answer_request.js — a question to the model and its answer: the request, the text
// while it is generated, and information about the generation.

import { contentOf } from './attachments.js';
import { withBook } from './book.js';
import { note } from './developer.js';
import { takeEarly } from './draft_answers.js';
import { introduce } from './introductions.js';
import { inKnownWords } from './known_words.js';
import { chat } from './open_chat.js';
import { settings, toolsOfPrompt } from './settings.js';
import { keepSpeed } from './speeds.js';
import { messagesOfRounds, withCalls } from './tool_calls.js';
import { isForgotten, saidUntil } from './tree.js';

/** @import { ChatCompletionChunk, ChatMessage, ChatUsage, Engine, Timings } from 'wick-llm' */
/** @import { Message } from './tree.js' */
/** @import { State } from './records.js' */
/** How an answer ended. @typedef {{state: State, facts: string}} Ending */
/** @typedef {{add: (piece: string) => void, think: (piece: string) => void, call: (round: import('./tool_calls.js').Round) => void, finish: () => void}} Writer */

/** The minimum temperature for another answer if the user has not set one. */
const VARIANT_TEMPERATURE = 0.8;

/** Describes how an invented word was avoided. */
const HELD = {
  again: 'an invented word was corrected',
  refused: 'instead of an invented word',
};

/** The separator between the facts about an answer. */
const SEPARATOR = ' · ';

/** The minimum decoding time of an answer for measuring speed. */
const MEASURED_MS_MIN = 20;

/**
 * @param {Timings | undefined} timings
 * @param {State} state
 * @param {Pick<import('./tool_calls.js').Chunk, 'isEarly' | 'held'>} [how] `isEarly`: whether it
 * began before it was requested; `held`: what happened to an invented word
 */
function describe(timings, state, { isEarly, held } = {}) {
  const facts = [];
  if (timings) {
    const tokens = 1 + Math.round((timings.decodeTokensPerSecond * timings.decodeMs) / 1000);
    facts.push(`${tokens} tokens`);
    if (tokens > 1) facts.push(`${timings.decodeTokensPerSecond.toFixed(1)} tokens/s`);
    facts.push(`first token after ${Math.round(timings.ttftMs)} ms`);
  }
  if (isEarly) facts.push('started before Enter');
  if (held) facts.push(HELD[held]);
  if (state === 'length') facts.push('the answer reached the length limit');
  return facts.join(SEPARATOR);
}

/**
 * Splits the facts about an answer into figures, shown on request, and notes, always shown.
 * @param {string} facts possibly stored by an earlier version of the page
 * @returns {{figures: string, notes: string}}
 */
export function splitFacts(facts) {
  const parts = facts.split(SEPARATOR);
  const isFigure = (/** @type {string} */ part) =>
    /^(\d|first (token )?after|(begun|started) before)/.test(part);
  return {
    figures: parts.filter(isFigure).join(SEPARATOR),
    notes: parts.filter((part) => !isFigure(part)).join(SEPARATOR),
  };
}

/** The instructions to the model for a summary. */
const FOLDED = 'What was said before, in short:';

/** @param {Message[]} path @returns {Message[]} the messages for the model, without removed and forgotten ones */
export function readPart(path) {
  const start = path.findLastIndex(({ isStart }) => isStart);
  return path.slice(Math.max(0, start)).filter((one) => !isForgotten(one));
}

/**
 * @param {Message[]} path
 * @param {Message} [continued] the last message, if it is an answer to continue
 * @returns {ChatMessage[]}
 */
export function messagesOf(path, continued) {
  const isAsked = (/** @type {Message} */ one) => one.role === 'user' && !isForgotten(one);
  const system = path.findLast(isAsked)?.system ?? settings.system;
  const said = readPart(path).flatMap((one) => {
    const isBegun = one !== continued || one.content !== '';
    const own = { role: one.role, content: contentOf(one.content, one.media) };
    const rounds = messagesOfRounds(one.rounds);
    if (rounds.length > 0 && !isBegun) return rounds;
    return [...rounds, { ...own, ...(one === continued && { prefix: true }) }];
  });
  const fold = path.findLast(({ isStart }) => isStart)?.fold;
  const instructions = [system, fold && `${FOLDED} ${fold}`]
    .filter((one) => one?.trim())
    .join('\n\n');
  const all = instructions === '' ? said : [{ role: 'system', content: instructions }, ...said];
  return withBook(/** @type {ChatMessage[]} */ (all));
}

/** The strings that end an answer, if the model does not know its template's tags. @type {string[]} */
let stops = [];

/** @param {string[]} some the stop strings of the template chosen for the model */
export function useStops(some) {
  stops = some;
}

/** @param {Message} question @param {number} count */
function temperatureFor(question, count) {
  if (settings.temperature !== undefined) return settings.temperature;
  const isFirst = question.children.length <= 1 && count === 1;
  return isFirst ? chat.temperature : Math.max(chat.temperature, VARIANT_TEMPERATURE);
}

/**
 * Returns the settings of an answer, except for the seed that the user may have set.
 * @param {{question: Message, count: number, continued?: Message}} wanted
 */
export function bodyFor({ question, count, continued }) {
  const others = question.children.length - count;
  return {
    messages: messagesOf(saidUntil(continued ?? question), continued),
    temperature: temperatureFor(question, count),
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    max_tokens: settings.maxTokens,
    ...(stops.length > 0 && { stop: stops }),
    // a continued answer does not use them
    ...(count === 1 && !continued?.content && toolsOfPrompt()),
    ...(settings.seed !== undefined && { seed: settings.seed + Math.max(0, others) }),
  };
}

/**
 * @param {Engine} engine
 * @param {{question: Message, count: number, continued?: Message, session?: import('wick-llm').Session,
 *   forks?: import('wick-llm').Session[], signal: AbortSignal, live: import('./progress_line.js').Live}} wanted `forks`: one for each answer
 * @returns {Promise<AsyncIterable<import('./tool_calls.js').Chunk>>}
 */
export async function request(engine, wanted) {
  const { count, session, forks, signal, live } = wanted;
  const body = bodyFor(wanted);
  const create = (/** @type {typeof body} */ asked, /** @type {any} */ more = {}) =>
    engine.chat.completions.create({
      seed: Math.floor(Math.random() * 2 ** 32),
      ...asked,
      ...more,
      ...(session ? { session } : !more.session && { n: count }),
      stream: true,
      stream_options: { include_usage: true },
      onPrefill: (progress) => live.read(progress),
      signal,
    });
  const begin = () =>
    takeEarly(engine, body, { signal, live }) ??
    (forks
      ? import('./book_shelf.js').then((one) => one.sideBySide(create, body, forks))
      : create(body));
  if (!body.tools) {
    const chunks = /** @type {AsyncIterable<import('./tool_calls.js').Chunk>} */ (await begin());
    return inKnownWords(engine, { ...body, n: count }, chunks, signal);
  }
  const ask = async (/** @type {ChatMessage[]} */ messages, /** @type {boolean} */ isLast) =>
    messages.length === body.messages.length
      ? begin()
      : create({ ...body, messages }, isLast ? { tool_choice: 'none' } : {});
  return withCalls(body.messages, ask, signal);
}

/** @param {ChatUsage} usage */
function noteUsage({ prompt_tokens, prompt_tokens_details }) {
  const kept = prompt_tokens_details.cached_tokens;
  note('Last prompt', `${prompt_tokens} tokens, ${kept} of them cached`);
}

/**
 * @param {AsyncIterable<import('./tool_calls.js').Chunk>} chunks
 * @param {Writer[]} writers one for each choice
 * @param {(Ending | undefined)[]} endings receives an entry for each choice that has ended
 * @param {import('./progress_line.js').Live} live
 * @param {() => Promise<number>} [bytesOf] returns the bytes of weights that are read per token;
 * called when the answer ends
 */
export async function write(chunks, writers, endings, live, bytesOf = async () => 0) {
  for await (const { choices, usage, timings, isEarly, held, round } of chunks) {
    if (round) writers[0].call(round);
    for (const { index, delta, finish_reason } of choices) {
      if (delta.reasoning_content) writers[index].think(delta.reasoning_content);
      if (delta.content) writers[index].add(delta.content);
      if (writers.length === 1 && (delta.content || delta.reasoning_content))
        live.write(!delta.content);
      if (!finish_reason) continue;
      const state = finish_reason === 'length' ? 'length' : 'whole';
      endings[index] = { state, facts: describe(timings, state, { isEarly, held }) };
      writers[index].finish();
      if (isEarly) introduce('ahead');
      if (writers.length === 1 && timings && timings.decodeMs > MEASURED_MS_MIN)
        bytesOf().then((bytes) => keepSpeed(bytes, timings.decodeTokensPerSecond));
    }
    if (usage) noteUsage(usage);
  }
}
