// Checks the format strings for base/text.h. The compiler checks them as printf formats, but base/text.h lacks features such as widths.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const FUNCTIONS = 'fail_with output_format put report text_format work_fail jinja_fail'.split(' ');
const call = new RegExp(`\\b(${FUNCTIONS.join('|')})\\(`, 'g');
const known = /^%(?:%|(?:\.(?:\*|\d+))?s|c|(?:ll|l|z)?[diux]|g)/;

/** @param {string} text @param {number} at after the opening parenthesis @returns {string} the text up to the closing one */
function argumentsAt(text, at) {
  let [end, depth] = [at, 1];
  for (; depth > 0 && end < text.length; end++) {
    if (text[end] === '"') {
      for (end++; text[end] !== '"'; end++) if (text[end] === '\\') end++;
    } else if (text[end] === '(') depth++;
    else if (text[end] === ')') depth--;
  }
  return text.slice(at, end - 1);
}

/** @param {string} text all arguments @returns {string[]} the unsupported format specifiers */
function unknownIn(text) {
  const literals = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, literal]) => literal);
  return literals.flatMap((literal) => {
    /** @type {string[]} */
    const found = [];
    for (let at = literal.indexOf('%'); at >= 0; ) {
      const [spec] = known.exec(literal.slice(at)) ?? [];
      if (!spec) found.push(literal.slice(at, at + 6));
      at = literal.indexOf('%', at + (spec ?? '%').length);
    }
    return found;
  });
}

const listed = execFileSync('git', ['ls-files', 'src', 'web', 'wasi', 'library'], {
  cwd: root,
  encoding: 'utf8',
});
let faults = 0;
let calls = 0;
for (const file of listed.split('\n').filter((path) => /\.[ch]$/.test(path))) {
  const text = readFileSync(resolve(root, file), 'utf8').replace(/\/\/[^\n]*/g, '');
  for (const { 0: match, 1: name, index } of text.matchAll(call)) {
    calls++;
    for (const spec of unknownIn(argumentsAt(text, index + match.length))) {
      const line = text.slice(0, index).split('\n').length;
      console.error(`${file}:${line}: ${name} does not support '${spec}' (base/text.h)`);
      faults++;
    }
  }
}
if (calls < 500) console.error(`check_formats.mjs: only ${calls} calls found`);
process.exitCode = faults > 0 || calls < 500 ? 1 : 0;
