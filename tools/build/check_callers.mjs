// Checks that functions declared in headers under src/ are called by the engine, a program or a host. Functions that only
// tests use belong in src/reference, except for those that expose otherwise invisible state.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));

/**
 * Functions that only tests call, and what each of them exposes.
 * @type {Record<string, string>}
 */
const forTests = {
  gguf_writer_file_bytes:
    'the number of bytes that a writer has declared, to compare with what it wrote',
  kv_seq_exists: 'whether a pool has a sequence',
  loader_tensor_is_done: 'the progress of a loader, tensor by tensor',
  reply_parser_steps: 'the number of steps of a parser, which is bounded',
  tokenizer_kind: 'the detected kind of the vocabulary',
};

/** @param {string} path @returns {string} without comments */
const read = (path) => readFileSync(resolve(root, path), 'utf8').replace(/\/\/[^\n]*/g, '');

const listed = execFileSync('git', ['ls-files', 'src', 'web', 'wasi'], {
  cwd: root,
  encoding: 'utf8',
});
const files = listed.split('\n').filter((path) => /\.[ch]$/.test(path));
/** @type {Map<string, number>} */
const counts = new Map();
/**
 * The first halves of names that macros concatenate: `add_` of `add_##variant`.
 * @type {Set<string>}
 */
const pasted = new Set();
for (const file of files) {
  const text = read(file);
  for (const [word] of text.matchAll(/\w+/g)) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [, half] of text.matchAll(/(\w+_)##/g)) pasted.add(half);
}

/** @type {string[]} */
const faults = [];
const headers = files.filter((path) => /^src\/(?!reference\/).*\.h$/.test(path));
for (const header of headers) {
  for (const [, name] of read(header).matchAll(
    /^(?!static|typedef)[a-z][\w *]*?\b(\w+)\([^;{]*\);/gm,
  )) {
    const isPasted = pasted.has(name.slice(0, name.lastIndexOf('_') + 1));
    if ((counts.get(name) ?? 0) > 2 || isPasted) continue; // occurs not only in its declaration and definition
    if (!forTests[name]) faults.push(`${header}: nothing calls ${name}`);
  }
}
for (const name of Object.keys(forTests)) {
  if (!counts.has(name)) faults.push(`tools/build/check_callers.mjs: ${name} does not exist`);
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;
