// examples/chat/answering.js — what the model is asked, and what comes back: the request, the text as it is
// written, and how it was made.

import { note } from './developer.js';
import { settings } from './settings.js';
import { saidUntil } from './tree.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('wick-llm').ChatUsage} ChatUsage */
/** @typedef {import('wick-llm').ChatMessage} ChatMessage */
/** @typedef {import('wick-llm').ChatCompletionChunk} ChatCompletionChunk */
/** @typedef {import('wick-llm').Timings} Timings */
/** @typedef {import('./tree.js').Message} Message */
/** @typedef {import('./records.js').State} State */
/** How an answer ended. @typedef {{state: State, facts: string}} Ending */
/** @typedef {{add: (piece: string) => void, finish: () => string}} Writer */

/** The least temperature when the user asks for another answer and has set none. */
const VARIANT_TEMPERATURE = 0.8;

/** @param {Timings | undefined} timings @param {State} state */
function describe(timings, state) {
  const facts = [];
  if (timings) {
    const tokens = 1 + Math.round((timings.decodeTokensPerSecond * timings.decodeMs) / 1000);
    facts.push(`${tokens} tokens`);
    if (tokens > 1) facts.push(`${timings.decodeTokensPerSecond.toFixed(1)} tokens/s`);
    facts.push(`first after ${Math.round(timings.ttftMs)} ms`);
  }
  if (state === 'length') facts.push('it is not finished: as long as was allowed');
  return facts.join(' · ');
}

/** @param {Message[]} path @returns {Message[]} what the model is given of it: the oldest turns may be left out */
export function readPart(path) {
  const start = path.findLastIndex(({ isStart }) => isStart);
  return start < 0 ? path : path.slice(start);
}

/**
 * @param {Message[]} path
 * @param {Message} [continued] the last one, an answer that goes on
 * @returns {ChatMessage[]}
 */
export function messagesOf(path, continued) {
  const system = path.findLast(({ role }) => role === 'user')?.system ?? settings.system;
  const said = readPart(path).map((one) => ({
    role: one.role,
    content: one.content,
    ...(one === continued && { prefix: true }),
  }));
  const all = system.trim() === '' ? said : [{ role: 'system', content: system }, ...said];
  return /** @type {ChatMessage[]} */ (all);
}

/** @param {Message} question @param {number} count @param {number} suits the temperature that suits the model */
function temperatureFor(question, count, suits) {
  if (settings.temperature !== undefined) return settings.temperature;
  const isFirst = question.children.length <= 1 && count === 1;
  return isFirst ? suits : Math.max(suits, VARIANT_TEMPERATURE);
}

/**
 * @param {Engine} engine
 * @param {{question: Message, count: number, continued?: Message, suits: number, session?: import('wick-llm').Session,
 *   signal: AbortSignal}} wanted
 */
export function request(engine, { question, count, continued, suits, session, signal }) {
  const random = Math.floor(Math.random() * 2 ** 32);
  const others = question.children.length - count;
  return engine.chat.completions.create({
    messages: messagesOf(saidUntil(continued ?? question), continued),
    ...(session ? { session } : { n: count }),
    stream: true,
    stream_options: { include_usage: true },
    temperature: temperatureFor(question, count, suits),
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    max_tokens: settings.maxTokens,
    seed: settings.seed === undefined ? random : settings.seed + others,
    signal,
  });
}

/** @param {ChatUsage} usage */
function noteUsage({ prompt_tokens, prompt_tokens_details }) {
  const kept = prompt_tokens_details.cached_tokens;
  note('Last prompt', `${prompt_tokens} tokens, ${kept} of them read before`);
}

/**
 * @param {AsyncIterable<ChatCompletionChunk>} chunks
 * @param {Writer[]} writers one for each choice
 * @param {(Ending | undefined)[]} endings of each choice that has ended: filled in
 */
export async function write(chunks, writers, endings) {
  for await (const { choices, usage, timings } of chunks) {
    for (const { index, delta, finish_reason } of choices) {
      if (delta.content) writers[index].add(delta.content);
      if (!finish_reason) continue;
      const state = finish_reason === 'length' ? 'length' : 'whole';
      endings[index] = { state, facts: describe(timings, state) };
      writers[index].finish();
    }
    if (usage) noteUsage(usage);
  }
}
