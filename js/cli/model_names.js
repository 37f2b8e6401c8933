// js/cli/model_names.js — models that are specified by a URL or by their name on a hub. They
// are downloaded once, and saved in the store of the user's models.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { EXIT_FILE, Exit } from './exit.js';

const HUB_NAME = /^(?:hf:)?[\w.-]+\/[\w.-]+(?:@[\w.-]+)?(?:\/.+\.gguf|:[\w.-]+)?$/i;
const SPLIT_FILE = /-\d{5}-of-(?!00001)\d{5}\.gguf$/i;
const DATA = 'model.gguf';

/**
 * @param {string} model the argument MODEL
 * @returns {boolean} whether it is a name rather than a file on this machine
 */
export function isModelName(model) {
  if (existsSync(model)) return false;
  if (/^https?:\/\//i.test(model)) return true;
  return HUB_NAME.test(model) && (/^hf:/i.test(model) || model.includes(':'));
}

/** Returns the hub from the environment variables that the hub's own tools use. */
function hubOf() {
  const { HF_ENDPOINT: endpoint, HF_TOKEN: token } = process.env;
  return { ...(endpoint && { endpoint }), ...(token && { token }) };
}

/** @param {number} bytes */
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Shows the progress of a download on a terminal. @param {string} model */
function progressOf(model) {
  let isShown = false;
  return {
    /** @param {{loaded: number, total?: number}} progress */
    show({ loaded, total }) {
      if (!process.stderr.isTTY || loaded === total) return;
      const whole = total === undefined ? '' : ` of ${megabytes(total)}`;
      process.stderr.write(`\r\u001b[K${model}: ${megabytes(loaded)}${whole}`);
      isShown = true;
    },
    clear() {
      if (isShown) process.stderr.write('\r\u001b[K');
      isShown = false;
    },
  };
}

/**
 * @param {string} model
 * @param {URL} home the folder of the package
 * @returns {Promise<string>} the path of the named model's file
 */
export async function keptFile(model, home) {
  /** @type {typeof import('../models.js')} */
  const { openModels } = await import(new URL('models.js', home).href);
  const models = await openModels();
  const progress = progressOf(model);
  try {
    const entry = await models.get(model, { hub: hubOf(), onProgress: progress.show });
    if (!SPLIT_FILE.test(entry.name)) return join(String(models.folder), entry.id, DATA);
    throw new Exit(
      EXIT_FILE,
      `${model}: the model is split into several files (${entry.name}). Use chat, serve, or run --threads 2`,
    );
  } finally {
    progress.clear();
    await models.close();
  }
}

/**
 * @param {string} model a path, a name, or - for standard input
 * @returns {{source: Record<string, any>, ready: () => void}} the source for createEngine; `ready`
 * ends the progress display
 */
export function sourceOf(model) {
  if (model === '-') return { source: { stream: process.stdin }, ready() {} };
  if (!isModelName(model)) return { source: { file: model }, ready() {} };
  const progress = progressOf(model);
  const from = /^https?:/i.test(model) ? { url: model, cache: true } : { model, hub: hubOf() };
  return { source: { ...from, onProgress: progress.show }, ready: progress.clear };
}
