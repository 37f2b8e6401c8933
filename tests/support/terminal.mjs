// Runs a program in a terminal, which Python's pty provides; the test types and reads the output.

import { spawn } from 'node:child_process';
import { root } from './locate.mjs';

/** The time limit for a program to print the expected text. */
const TIMEOUT_MS = 60_000;
const python = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';

/**
 * @param {import('node:test').TestContext} t
 * @param {string[]} command
 * @param {Record<string, string>} [env]
 */
export function openTerminal(t, command, env = {}) {
  const child = spawn('python3', ['-c', python, ...command], {
    ...{ cwd: root, env: { ...process.env, TERM: 'dumb', ...env } },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let shown = '';
  let hasEnded = false;
  let changed = () => {};
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shown += text;
    changed();
  });
  const ended = new Promise((settle) => child.on('close', settle));
  ended.then(() => {
    hasEnded = true;
    changed();
  });
  return {
    /** @param {string} keys */
    type: (keys) => void child.stdin.write(keys),
    /** @param {string} wanted @returns {Promise<string>} the output before this; both are consumed */
    async until(wanted) {
      const late = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
      while (!shown.includes(wanted)) {
        if (hasEnded)
          throw new Error(`the program ended without printing ${wanted}. Output: ${shown}`);
        await new Promise((settle) => {
          changed = () => settle(undefined);
        });
      }
      clearTimeout(late);
      const at = shown.indexOf(wanted);
      const before = shown.slice(0, at);
      shown = shown.slice(at + wanted.length);
      return before;
    },
    /** @returns {Promise<number>} the exit status */
    ended: () => ended,
  };
}
