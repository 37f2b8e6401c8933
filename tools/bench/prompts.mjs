// Makes prompts with an exact number of tokens. Each begins differently, so that no engine can reuse results of the previous one.

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { root } from '../../tests/support/locate.mjs';

const LETTERS = 'qzxjkvbwpyg';
const TRIES_MAX = 200;

/** @param {string} model @param {string} text @returns {number[]} */
function tokenize(model, text) {
  const program = resolve(root, 'build/native/wick');
  const printed = execFileSync(program, ['tokenize', model, '-p', text], { encoding: 'utf8' });
  return printed.trim().split(/\s+/).map(Number);
}

/** @param {number} length @param {number} round */
function makeText(length, round) {
  let text = '';
  for (let i = 0; i < length; i++) text += LETTERS[(i * 7 + round * 3) % LETTERS.length];
  return text;
}

/**
 * @param {string} model a file
 * @param {number} count
 * @param {number} round
 * @returns {{text: string, tokens: number[]}}
 */
export function makePrompt(model, count, round) {
  let length = count;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const text = makeText(length, round);
    const tokens = tokenize(model, text);
    if (tokens.length === count) return { text, tokens };
    length += tokens.length < count ? count - tokens.length : -1;
  }
  throw new Error(`${model}: cannot make a prompt of ${count} tokens`);
}
