// examples/playground/answer.js — one run: yields the model's text token by token as it is generated.

import { WickError } from 'wick-llm';
import { chatFields, generateOptions, questionOf } from './rules.js';

/** @typedef {import('wick-llm').Engine} Engine */
/** @typedef {import('./samples.js').Task} Task */
/** @typedef {{text: string, tokens: {text: string, probability: number}[]}} Piece */
/** @typedef {{finish: string, tokens: number, promptTokens: number}} Ending */

const TOKENS_MAX = 1024;

/**
 * @param {Engine} engine @param {Task} task @param {boolean} hasTokens @param {AbortSignal} signal
 * @param {(piece: Piece) => void} onPiece
 * @returns {Promise<Ending>}
 */
export async function answer(engine, task, hasTokens, signal, onPiece) {
  try {
    return await chat(engine, task, hasTokens, signal, onPiece);
  } catch (error) {
    if (!(error instanceof WickError && error.code === 'NO_TEMPLATE')) throw error;
    return plain(engine, task, hasTokens, signal, onPiece);
  }
}

/** @type {typeof answer} */
async function chat(engine, task, hasTokens, signal, onPiece) {
  const stream = await engine.chat.completions.create(
    {
      ...chatFields[task.kind](task.rule),
      messages: [{ role: 'user', content: questionOf(task) }],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      max_tokens: TOKENS_MAX,
      thinking_budget_tokens: 0,
      ...(hasTokens && { logprobs: true }),
    },
    { signal },
  );
  const ending = { finish: '', tokens: 0, promptTokens: 0 };
  // a token may contain only a part of a character
  const decoder = new TextDecoder();
  for await (const { choices, usage } of /** @type {AsyncIterable<any>} */ (stream)) {
    const [choice] = choices;
    if (choice?.finish_reason) ending.finish = choice.finish_reason;
    if (usage) {
      ending.tokens = usage.completion_tokens;
      ending.promptTokens = usage.prompt_tokens;
    }
    const tokens = (choice?.logprobs?.content ?? []).map((/** @type {any} */ one) => ({
      text: decoder.decode(Uint8Array.from(one.bytes), { stream: true }),
      probability: Math.exp(one.logprob),
    }));
    const text = choice?.delta?.content ?? '';
    if (text || tokens.length > 0) onPiece({ text, tokens });
  }
  return ending;
}

/** Runs a model without a chat template, which continues text. @type {typeof answer} */
async function plain(engine, task, _, signal, onPiece) {
  const suffix = task.kind === 'schema' ? '\n\nJSON: ' : '\n\n';
  const generation = engine.generate(questionOf(task) + suffix, {
    ...generateOptions[task.kind](task.rule),
    temperature: 0,
    maxTokens: TOKENS_MAX,
    signal,
  });
  for await (const text of generation) onPiece({ text, tokens: [] });
  const { finishReason = '', usage } = generation.result ?? {};
  const tokens = usage?.completionTokens ?? 0;
  return { finish: finishReason, tokens, promptTokens: usage?.promptTokens ?? 0 };
}
