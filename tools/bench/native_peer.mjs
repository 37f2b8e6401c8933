// Opens native llama.cpp as a side of a comparison: a child process with the same methods as a browser page.

import { fork } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../tests/support/locate.mjs';

const folder = resolve(root, '.toolchain/bench/node_modules/node-llama-cpp');
const entry = resolve(folder, 'dist/index.js');
const child = resolve(dirname(fileURLToPath(import.meta.url)), 'native_child.mjs');

/** @returns {string | undefined} the package's version, if it is installed */
export function nativeVersion() {
  if (!existsSync(entry)) return undefined;
  return JSON.parse(readFileSync(resolve(folder, 'package.json'), 'utf8')).version;
}

/** @returns {import('./browser_peer.mjs').Peer} */
export function openNative() {
  const started = fork(child, [entry], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  /** @type {Map<number, {settle: (value: any) => void, fail: (error: Error) => void}>} */
  const waiters = new Map();
  let lastId = 0;
  started.on('message', (/** @type {any} */ { id, value, error }) => {
    const waiter = waiters.get(id);
    waiters.delete(id);
    if (error) waiter?.fail(new Error(`native llama.cpp: ${error}`));
    else waiter?.settle(value);
  });
  /** @param {Error} error */
  const failAll = (error) => {
    for (const { fail } of waiters.values()) fail(error);
    waiters.clear();
  };
  started.on('exit', (code, signal) =>
    failAll(new Error(`native llama.cpp exited with ${code ?? signal}`)),
  );
  started.on('error', failAll); // it could not be started, or it has exited and cannot respond
  return {
    call: (method, argument) =>
      new Promise((settle, fail) => {
        waiters.set(++lastId, { settle, fail });
        started.send({ id: lastId, method, argument });
      }),
    close: async () => {
      if (started.connected) started.disconnect();
    },
  };
}
