// js/cli/print.js — writes to standard output, and fails with the exit code of file errors if it is
// full or closed.

import process from 'node:process';
import { EXIT_FILE, Exit } from './exit.js';

/** @param {string} text @returns {Promise<void>} resolves once the text has been written */
export function print(text) {
  return new Promise((settle, fail) => {
    const failed = (/** @type {Error} */ error) =>
      fail(new Exit(EXIT_FILE, `cannot write to standard output: ${error.message}`));
    process.stdout.once('error', failed);
    process.stdout.write(text, (error) => {
      if (error) return failed(error); // the stream then emits an event, which must have a listener
      process.stdout.off('error', failed);
      settle();
    });
  });
}
