// js/cli/exit.js — exit codes, the type of parsed arguments, and reading files passed as options.

import { readFileSync } from 'node:fs';

export const EXIT_USAGE = 2;
export const EXIT_FILE = 3;
export const EXIT_MEMORY = 4;
export const EXIT_INTERNAL = 5;

/**
 * @typedef {{option: string, value: string | undefined} | {positional: string}} Argument
 */

/** Ends the command with a message. */
export class Exit extends Error {
  /** @param {number} code @param {string} [message] */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** @param {string | 0} path 0: standard input @returns {string} */
export function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Exit(EXIT_FILE, `cannot open ${path === 0 ? 'standard input' : path}: ${error}`);
  }
}
