// The models of the benchmarks: random weights in the shapes that people run, made by `wick synth`.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { root } from '../../tests/support/locate.mjs';

const folder = resolve(root, 'build/bench/models');

/**
 * Makes the file when it is not there.
 * @param {string} shape
 * @param {string} type
 * @returns {{name: string, path: string, bytes: number}}
 */
export function makeModel(shape, type) {
  mkdirSync(folder, { recursive: true });
  const name = `${shape}-${type}.gguf`;
  const path = resolve(folder, name);
  if (!existsSync(path)) {
    execFileSync(resolve(root, 'build/native/wick'), ['synth', shape, type, `${path}.part`]);
    renameSync(`${path}.part`, path);
  }
  return { name, path, bytes: statSync(path).size };
}

/** @param {string} model `shape:type`, made when it is not there, or a file's path @returns {string} its path */
export function modelFile(model) {
  const [shape, type] = model.split(':');
  return type ? makeModel(shape, type).path : resolve(model);
}

export { folder as modelFolder };
