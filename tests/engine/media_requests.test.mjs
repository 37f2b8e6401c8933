// Prompts with images and recordings on the command line: `wick logits --parts`, `run` and `chat`
// with --image and --audio, and what they refuse.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';
import { locate } from '../support/locate.mjs';

const shared = locate('shared');
const folder = join(shared.path, 'vectors', 'vision');
const temporary = temporaryFolder();
const manifest = shared.skip
  ? { types: [] }
  : JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));

/** @typedef {{text?: string, image?: string, audio?: string, width?: number, height?: number}} Part */

/** @param {string} name */
function floatsOf(name) {
  const bytes = new Uint8Array(readFileSync(name)); // at an aligned address
  return new Float32Array(bytes.buffer, 0, bytes.byteLength / 4);
}

let runs = 0;

/** @param {any} type @param {Part[]} parts @param {string[]} options */
async function logits(type, parts, options = []) {
  const name = join(temporary, `logits-${runs++}`);
  const named = parts.map(({ image, audio, ...part }) => ({
    ...part,
    ...(image && { image: resolve(folder, image) }),
    ...(audio && { audio: resolve(folder, audio) }),
  }));
  writeFileSync(`${name}.json`, JSON.stringify(named));
  const files = ['--mmproj', join(folder, type.mmproj), '--parts', `${name}.json`];
  const from = ['logits', join(folder, type.text_model), ...files, '--out', `${name}.f32`];
  const done = await wick(native, [...from, ...options]);
  return { ...done, values: done.code === 0 ? floatsOf(`${name}.f32`) : new Float32Array() };
}

describe('logits of prompts with images and recordings', { concurrency: 2, skip: shared.skip }, () => {
  for (const type of manifest.types) {
    for (const one of type.cases) {
      test(`${type.id}: ${one.id}`, async () => {
        const { code, stderr, values } = await logits(type, one.parts);
        assert.equal(code, 0, stderr);
        const wanted = floatsOf(join(folder, one.logits.file));
        assert.equal(values.length, wanted.length);
        const most = wanted.reduce((max, value, i) => {
          const off = Math.abs(values[i] - value);
          return off <= max ? max : off; // NaN stays
        }, 0);
        const tolerance = Math.max(5e-4, 100 * one.logits.moved_by_1e6_noise);
        assert.ok(most <= tolerance, `off by ${most}, at most ${tolerance}`);
      });
    }
  }
});
