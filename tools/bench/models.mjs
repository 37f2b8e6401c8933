// The models of the benchmarks: random weights in the shapes that people run, made by `wick synth`, and the real models
// that tools/setup.sh models installs.

import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { root } from '../../tests/support/locate.mjs';

const folder = resolve(root, 'build/bench/models');
const realFolder = resolve(root, '.toolchain/models');

/**
 * Makes the file unless it exists: a link to a real model of that name, or a model with random weights.
 * @param {string} shape
 * @param {string} type
 * @returns {{name: string, path: string, bytes: number}}
 */
export function makeModel(shape, type) {
  mkdirSync(folder, { recursive: true });
  const name = `${shape}-${type}.gguf`;
  const path = resolve(folder, name);
  const real = resolve(realFolder, name);
  if (!existsSync(path) && existsSync(real)) linkSync(real, path);
  if (!existsSync(path)) {
    execFileSync(resolve(root, 'build/native/wick'), ['synth', shape, type, `${path}.part`]);
    renameSync(`${path}.part`, path);
  }
  return { name, path, bytes: statSync(path).size };
}

/** Shapes that people run, in the types in which they run them. */
export const peopleModels = [
  ...['smollm2-135m:q8_0', 'gemma3-270m:q8_0', 'gemma3-270m:q4_0', 'smollm2-360m:q8_0'],
  ...['qwen2.5-0.5b:q4_k_m', 'qwen3-0.6b:q4_0', 'qwen3-0.6b:q4_k_m', 'qwen3-0.6b:q8_0'],
  ...['gemma3-1b:q4_0', 'gemma3-1b:q4_k_m', 'llama3.2-1b:q4_0', 'llama3.2-1b:q4_k_m'],
  ...['qwen3-1.7b:q1_0', 'smollm3-3b:q4_k_m', 'lfm2.5-350m:q4_0', 'granite4-h-350m:q4_0'],
  ...['qwen3.5-0.8b:q4_0', 'gpt-oss-cut:mxfp4'],
].join(',');

/** The models that tools/setup.sh models installs. */
export const realModels = 'smollm2-135m-instruct:q4_1,gemma-3-270m:q4_k_m';

/** @param {string} model `shape:type`, made when it does not exist, or a file's path @returns {string} its path */
export function modelFile(model) {
  const [shape, type] = model.split(':');
  return type ? makeModel(shape, type).path : resolve(model);
}

export { folder as modelFolder };
