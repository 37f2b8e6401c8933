// js/cli/exit.js — exit codes, and the type of parsed arguments.

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
