// Code of Prompt API users: code for the browser's LanguageModel, with the types of
// @types/dom-chromium-ai, accepts Wick's without a change. Compiled, never run.

/// <reference types="dom-chromium-ai" />

import type { Engine } from 'wick-llm';
import { defineLanguageModel, installLanguageModel } from 'wick-llm/prompt-api';

/** Page code that uses only the browser's types. */
async function page(Model: typeof LanguageModel, session: LanguageModel) {
  const availability: Availability = await Model.availability({
    expectedInputs: [{ type: 'text' }],
  });
  const made = await Model.create({
    monitor: (m) => m.addEventListener('downloadprogress', () => {}),
  });
  const text: string = await made.prompt([{ role: 'user', content: 'x' }], {
    responseConstraint: {},
  });
  for await (const piece of session.promptStreaming(text)) piece.slice(1);
  await session.append('x');
  const usage: number = (await session.measureContextUsage('x')) + session.contextUsage;
  session.oncontextoverflow = () => {};
  (await session.clone()).destroy();
  return [availability, usage, session.contextWindow];
}

export async function ours(engine: Engine) {
  const Model = defineLanguageModel(engine);
  const session = await Model.create({
    samplingMode: 'balanced',
    initialPrompts: [{ role: 'system', content: 'x' }],
  });
  await page(Model as unknown as typeof LanguageModel, session as unknown as LanguageModel);
  installLanguageModel({ url: 'm.gguf', threads: 2 }, { replace: true });
  installLanguageModel(async ({ onProgress }) => {
    onProgress({ loaded: 1, total: 2, phase: 'ready', bytesPerSecond: 1, secondsLeft: 1 });
    return engine;
  });
  const methods: Record<keyof LanguageModel, unknown> = session;
  const statics: Record<Exclude<keyof typeof LanguageModel, 'prototype'>, unknown> = Model;
  // @ts-expect-error a mode that does not exist
  await Model.create({ samplingMode: 'wild' });
  return [methods, statics];
}
