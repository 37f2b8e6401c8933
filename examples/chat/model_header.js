// examples/chat/model_header.js — reads a model's header without its weights, and queries this machine's memory and storage.
// Loaded with the model lists and the settings.

import { createEngine } from 'wick-llm';
import { isPhone } from './host.js';
import { keptModels } from './kept_models.js';
import { activeBytesOf } from './speeds.js';

/** @import { Device, Facts } from './model_verdict.js' */

/**
 * @param {{url: string} | {file: File[]}} source
 * @param {AbortSignal} [signal]
 * @returns {Promise<{facts: Facts, limitBytes: number}>}
 */
export async function examine(source, signal) {
  const engine = await createEngine({
    ...source,
    directoryOnly: true,
    cache: false,
    threads: 1,
    signal,
  });
  try {
    const info = await engine.info();
    const inspection = await engine.inspect().catch(() => undefined);
    const { architecture, name, shape, plan, types, chatTemplate, error } = info;
    const fileBytes = Object.values(types ?? {}).reduce((sum, { bytes }) => sum + bytes, 0);
    const facts = {
      ...{ architecture, name, types: types ?? {}, hasTemplate: Boolean(chatTemplate) },
      ...(shape && { parameters: shape.parameters, contextTrained: shape.contextTrained }),
      ...(plan && { contextTokens: plan.contextTokens, needBytes: plan.totalBytes }),
      ...(fileBytes > 0 && { fileBytes: fileBytes + (plan?.directoryBytes ?? 0) }),
      ...(inspection && { activeBytes: activeBytesOf(inspection) }),
      ...(error && { error: error.message }),
    };
    return { facts, limitBytes: info.memory?.mostBytes ?? 4e9 };
  } finally {
    await engine.close();
  }
}

/** @param {number} limitBytes the memory limit of an engine @returns {Promise<Device>} */
export async function readDevice(limitBytes) {
  const memoryGb = /** @type {{deviceMemory?: number}} */ (navigator).deviceMemory;
  const estimate = await (await keptModels())?.estimate().catch(() => undefined);
  const freeBytes = estimate?.freeBytes;
  return {
    limitBytes,
    isPhone: isPhone(),
    ...(memoryGb && { memoryGb }),
    ...(freeBytes !== undefined && { freeBytes }),
  };
}
