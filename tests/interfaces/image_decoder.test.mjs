// Unit tests of js/cli/image_decoder.js: `wick serve` decodes images with the user's sharp.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { imageDecoder } from '../../js/cli/image_decoder.js';
import { temporaryFolder } from '../support/package.mjs';

/** Returns the bytes that it was given, after the names of the calls. */
const madeUpSharp = `module.exports = (bytes) => {
  const calls = [];
  const pixels = async () => ({ data: [...calls, ...bytes], info: { width: 2, height: 1, size: 8 } });
  const note = (name) => (...args) => (calls.push(name, ...args), image);
  const image = new Proxy({}, { get: (_, name) => (name === 'toBuffer' ? pixels : note(name)) });
  return image;
};`;

const decode = async () => {
  const { decodeImage } = await imageDecoder();
  return decodeImage?.(new Blob([Uint8Array.of(1, 2)]));
};

test('without sharp, the error says what to install', async () => {
  process.chdir(temporaryFolder());
  await assert.rejects(decode(), /npm install sharp/);
});

test('sharp is loaded from the current folder, and decodes to RGBA', async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'node_modules/sharp'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/sharp/index.js'), madeUpSharp);
  process.chdir(folder);
  const calls = ['rotate', 'toColourspace', 'srgb', 'ensureAlpha', 'raw', { depth: 'uchar' }];
  assert.deepEqual(await decode(), { width: 2, height: 1, data: [...calls, 1, 2] });
});

test('hosts with createImageBitmap keep their decoder', async () => {
  const host = /** @type {any} */ (globalThis);
  host.createImageBitmap = () => {};
  try {
    assert.deepEqual(await imageDecoder(), {});
  } finally {
    delete host.createImageBitmap;
  }
});
