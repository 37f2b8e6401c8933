// Detection of the host's features, the host functions that a module may call, and the CPU time of
// an idle engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSharedMemory } from '../../js/base/host_features.js';
import { instantiate } from '../../js/wasm/wasm_module.js';
import { modelPath, openEngine } from '../support/package.mjs';

/**
 * @param {string[]} path of a member of globalThis
 * @param {unknown} value set while `action` runs
 * @param {() => void} action
 */
function withGlobal([...path], value, action) {
  const name = /** @type {string} */ (path.pop());
  const holder = path.reduce((at, key) => at[key], /** @type {any} */ (globalThis));
  const before = Object.getOwnPropertyDescriptor(holder, name);
  Object.defineProperty(holder, name, { value, configurable: true, writable: true });
  try {
    action();
  } finally {
    if (before) Object.defineProperty(holder, name, before);
    else delete holder[name];
  }
}

test('memory is shared only if the host fully supports it', () => {
  assert.equal(hasSharedMemory(), true);
  const isNot = () => assert.equal(hasSharedMemory(), false);
  withGlobal(['SharedArrayBuffer'], undefined, isNot);
  withGlobal(['crossOriginIsolated'], false, isNot);
  withGlobal(['crossOriginIsolated'], true, () => assert.equal(hasSharedMemory(), true));
  const refuse = function Memory() {
    throw new RangeError('out of memory');
  };
  withGlobal(['WebAssembly', 'Memory'], refuse, isNot);
  const unshared = function Memory() {
    return { buffer: new ArrayBuffer(0) };
  };
  withGlobal(['WebAssembly', 'Memory'], unshared, isNot);
  withGlobal(['WebAssembly', 'validate'], () => false, isNot);
});

const IMPORTS = [
  ...[
    { name: 'state_write', parameters: 2, hasResult: true },
    { name: 'state_read', parameters: 2, hasResult: true },
    { name: 'swap_open', parameters: 2, hasResult: true },
    { name: 'swap_write', parameters: 4, hasResult: true },
    { name: 'swap_read', parameters: 4, hasResult: true },
  ],
  ...[
    { name: 'log', parameters: 2, hasResult: false },
    { name: 'random', parameters: 2, hasResult: false },
    { name: 'swap_drop', parameters: 1, hasResult: false },
  ],
];

/** Returns a module that exports what it imports. */
function echo() {
  const name = (/** @type {string} */ text) => [text.length, ...Buffer.from(text)];
  const section = (/** @type {number} */ id, /** @type {number[][]} */ items) => {
    const body = [items.length, ...items.flat()];
    const size = body.length < 128 ? [body.length] : [(body.length & 127) | 128, body.length >> 7];
    return [id, ...size, ...body];
  };
  const i32 = 0x7f;
  const types = IMPORTS.map(({ parameters, hasResult }) => [
    ...[0x60, parameters, ...Array(parameters).fill(i32)],
    ...(hasResult ? [1, i32] : [0]),
  ]);
  const functions = IMPORTS.map((each, i) => [...name('env'), ...name(each.name), 0, i]);
  const memory = [...name('env'), ...name('memory'), 2, 0, 1];
  const exported = IMPORTS.map((each, i) => [...name(each.name), 0, i]);
  const head = [0, 97, 115, 109, 1, 0, 0, 0];
  const sections = [section(1, types), section(2, [...functions, memory]), section(7, exported)];
  return new WebAssembly.Module(new Uint8Array([...head, ...sections.flat()]));
}

test('missing host functions fail or do nothing', () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const bare = /** @type {any} */ (instantiate(echo(), memory, {}));
  for (const { name, parameters, hasResult } of IMPORTS) {
    const found = bare[name](...Array(parameters).fill(1));
    assert.equal(found, hasResult ? 0 : undefined, name);
  }
});

test('host functions are called with the module’s arguments', () => {
  /** @type {unknown[][]} */
  const calls = [];
  const taken = (/** @type {string} */ name, /** @type {any} */ result) =>
    function host(/** @type {number[]} */ ...values) {
      calls.push([name, ...values]);
      return result;
    };
  const given = {
    ...{ state_write: taken('state_write', true), state_read: taken('state_read', true) },
    ...{ swap_open: taken('swap_open', true), swap_write: taken('swap_write', true) },
    ...{ swap_read: taken('swap_read', true), swap_drop: taken('swap_drop', undefined) },
    ...{ log: taken('log', undefined), random: taken('random', undefined) },
  };
  const memory = new WebAssembly.Memory({ initial: 1 });
  const full = /** @type {any} */ (instantiate(echo(), memory, given));
  for (const { name, parameters, hasResult } of IMPORTS) {
    const values = Array.from({ length: parameters }, (_, i) => 10 + i);
    assert.equal(full[name](...values), hasResult ? 1 : undefined, name);
    assert.deepEqual(calls.pop(), [name, ...values]);
  }
});

test('an idle engine uses almost no CPU time', async (t) => {
  const engine = await openEngine(t, { file: modelPath, threads: 2 });
  const wait = (/** @type {number} */ ms) => new Promise((settle) => setTimeout(settle, ms));
  await engine.generate('Once', { maxTokens: 8 }).text();
  // helpers need a moment to go to sleep, and V8 may still be compiling, which takes longer on a busy machine
  let usedUs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 8 && usedUs >= 250_000; tries++) {
    const before = process.cpuUsage();
    await wait(1000);
    const { user, system } = process.cpuUsage(before);
    usedUs = user + system;
  }
  assert.ok(usedUs < 250_000, `${usedUs / 1000} ms of CPU time per second`);
});
