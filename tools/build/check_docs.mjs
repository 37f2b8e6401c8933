// Checks that files mentioned in documents and comments exist: in a document every path or file name in
// backticks, in a source every path that begins with a folder of the repository. NAME and * match
// anything, {a,b} matches either. Files that exist only after a build are not checked. Code that a
// document quotes must be in the source (quoted_code.mjs).

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkQuotes } from './quoted_code.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const listed = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
const files = listed.split('\0').filter((file) => file && existsSync(join(root, file)));
const known = files.map((file) => `/${file}`).join('\n');

/** Build outputs, and names of package files as users see them. */
const isMade = /^(\.ci|\.toolchain|build|dist|lib|node_modules|wick-llm)\//;
const namesFile = /^[\w.*{},-]+\.(?:[ch]|m?js|d\.ts|md|css|html|svg|sh|py|tsv)$/;
const namesPath =
  /^(?:[\w.*{},/-]+\.\w+|(?:component|docs|emscripten|examples|js|library|src|tests|tools|wasi|web)(?:\/[\w.*{},-]+)*\/?)$/;
const inComment =
  /(?<![\w./<-])(?:component|docs|emscripten|examples|js|library|src|tests|tools|wasi|web)\/[\w*/-]+\.(?:[ch]|m?js|md)\b/g;

/** @param {string} file @returns {RegExp | undefined} matches its comment lines, if it is a source */
function commentOf(file) {
  if (/\.(?:c|h|m?js|d\.ts)$/.test(file)) return /(?:\/\/|^ *\/\*|^ *\*).*$/gm;
  return /\.(?:mk|sh|py)$|Makefile$/.test(file) ? /# .*$/gm : undefined;
}

/**
 * @param {string} name a path, or its end
 * @returns {boolean} whether a file or folder has this path
 */
function exists(name) {
  const pattern = name
    .replaceAll('.', '\\.')
    .replace(/NAME|\*/g, '[^/\n]*')
    .replace(/\{([^}]*)\}/g, (_, words) => `(?:${words.replaceAll(',', '|')})`)
    .replace(/\/$/, '');
  return new RegExp(`/${pattern}(?:/|$)`, 'm').test(known);
}

/** @param {string} text of a document @returns {string[]} */
const namedInDocument = (text) =>
  [...text.matchAll(/`([^`\n]+)`/g)]
    .flatMap(([, code]) => code.split(/[\s;:()'"=]+/))
    .filter(
      (word) =>
        !isMade.test(word) &&
        (namesFile.test(word) || (word.includes('/') && namesPath.test(word))),
    );

/** @param {string} text of a source @param {RegExp} comment @returns {string[]} */
const namedInComments = (text, comment) =>
  [...text.matchAll(comment)].flatMap(([line]) => line.match(inComment) ?? []);

/** @param {string} path @returns {string | undefined} */
const readListed = (path) =>
  files.includes(path) ? readFileSync(join(root, path), 'utf8') : undefined;

let faults = 0;
for (const file of files) {
  const comment = commentOf(file);
  if (!comment && !file.endsWith('.md')) continue;
  const text = readFileSync(join(root, file), 'utf8');
  const names = comment ? namedInComments(text, comment) : namedInDocument(text);
  for (const name of new Set(names)) {
    if (exists(name)) continue;
    console.error(`${file}: refers to ${name}, which does not exist`);
    faults++;
  }
  if (comment) continue;
  for (const fault of checkQuotes(text, readListed).faults) {
    console.error(`${file}: ${fault}`);
    faults++;
  }
}
if (faults > 0) process.exit(1);
