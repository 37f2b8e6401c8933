// Opens native llama.cpp with its image library as a side of a comparison: a child process in Python (native_images.py).
// The other comparisons run node-llama-cpp, which is built without that library.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../../tests/support/locate.mjs';

const python = resolve(root, '.toolchain/images/bin/python');

/** @returns {string | undefined} the package and its version, if it is installed */
export function nativeImagesVersion() {
  const lock = readFileSync(resolve(root, 'tools/images/requirements.txt'), 'utf8');
  return existsSync(python) ? /^xllamacpp==\S+/m.exec(lock)?.[0] : undefined;
}

/** @returns {import('./browser_peer.mjs').Peer} */
export function openNativeImages() {
  const child = spawn(python, [resolve(root, 'tools/bench/native_images.py')], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  /** @type {Map<number, {settle: (value: any) => void, fail: (error: Error) => void}>} */
  const waiters = new Map();
  let lastId = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('{"id"')) return;
    const { id, value, error } = JSON.parse(line);
    const waiter = waiters.get(id);
    waiters.delete(id);
    if (error) waiter?.fail(new Error(`native llama.cpp: ${error}`));
    else waiter?.settle(value);
  });
  const failAll = (/** @type {unknown} */ reason) => {
    for (const { fail } of waiters.values()) fail(new Error(`native llama.cpp: ${reason}`));
    waiters.clear();
  };
  child.on('exit', (code, signal) => failAll(`exited with ${code ?? signal}`));
  child.on('error', failAll);
  child.stdin.on('error', failAll);
  return {
    call: (method, argument) =>
      new Promise((settle, fail) => {
        waiters.set(++lastId, { settle, fail });
        child.stdin.write(`${JSON.stringify({ id: lastId, method, argument })}\n`);
      }),
    close: async () => {
      child.kill();
    },
  };
}
