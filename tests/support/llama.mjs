// Locates llama.cpp's library, which `tools/setup.sh bench` installs with node-llama-cpp, including
// in CI.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ci, root } from './locate.mjs';

/** The folder of its shared libraries. */
export const libraries = join(
  root,
  '.toolchain/bench/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64',
);

/** The reason for skipping tests that compare with llama.cpp, or false. */
export const noLlama = !existsSync(libraries) && 'llama.cpp was not found (tools/setup.sh bench)';
if (noLlama && ci) throw new Error(`CI must not skip: ${noLlama}`);

/** Runs llama.cpp in a separate process, which ends if llama.cpp aborts. */
export class Llama {
  #cpu;
  /** @type {import('node:child_process').ChildProcessWithoutNullStreams | undefined} */
  #process;
  /** @type {AsyncIterator<string> | undefined} */
  #lines;

  /** @param {'x64' | 'haswell'} [cpu] the CPU variant of its kernels */
  constructor(cpu = 'x64') {
    this.#cpu = cpu;
  }

  /**
   * Writes the logits after each token, starting at `from`, like `wick logits`.
   * @param {string} path
   * @param {number[]} tokens
   * @param {string} out
   * @param {number} [from]
   * @returns {Promise<boolean>} whether llama.cpp supports the model
   */
  async logits(path, tokens, out, from = 0) {
    if (!this.#process) {
      const script = join(root, 'tests/support/llama_logits.py');
      this.#process = spawn('python3', [script, libraries], {
        env: { ...process.env, GGML_NO_BACKTRACE: '1', LLAMA_CPU: this.#cpu },
      });
      this.#process.stdin.on('error', () => {});
      this.#process.stderr.resume();
      this.#lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
    }
    this.#process.stdin.write(`${path}\t${tokens}\t${out}\t${from}\n`);
    const { value, done } = (await this.#lines?.next()) ?? { done: true };
    if (value === 'ok') return true;
    if (done || !value.startsWith('no')) await this.close();
    return false;
  }

  async close() {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}

/** @param {string} path */
export function readFloats(path) {
  const bytes = readFileSync(path);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}
