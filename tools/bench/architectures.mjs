// Lists the architectures that run, their references, and the differences from them:
//
//   node tools/bench/architectures.mjs [--document]
//
// Logits and vectors from the native build are compared with the references in the shared folder
// (WICK_SHARED), which were computed by llama.cpp or an exact run in float64;
// tests/engine/golden.test.mjs and tests/engine/embed.test.mjs also check them for WASI, and
// tests/package/js_extras.test.mjs for the web builds. With --document, the table is written to
// docs/architectures.md.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { built, locate, root } from '../../tests/support/locate.mjs';
import { environmentLine, withSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';

const document = resolve(root, 'docs/architectures.md');

/** @typedef {{architecture: string, kind: string, largest: number, exact: boolean, refused: string}} Row */

/** @param {Uint8Array} bytes @returns {Float32Array} */
function floatsOf(bytes) {
  const copy = new Uint8Array(bytes); // an aligned copy
  return new Float32Array(copy.buffer, 0, copy.byteLength / 4);
}

/** Runs a command of the native build and returns its output. @param {string[]} args */
const outputOf = (args) =>
  floatsOf(
    execFileSync(built('native/wick'), [...args, '--out', '-'], {
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );

/**
 * @param {Float32Array} found
 * @param {Float32Array} wanted the expected values; their number must match, too
 */
function largestOf(found, wanted) {
  let largest = 0;
  for (const [i, value] of wanted.entries()) {
    const off = Math.abs(found[i] - value);
    if (!(off <= largest)) largest = off; // keeps a NaN
  }
  return largest;
}

/**
 * @param {string} folder
 * @param {string} path
 * @param {any} one a case
 * @param {'model' | 'embedder'} kind
 */
function compare(folder, path, one, kind) {
  const tokens = ['--tokens', one.tokens.join(',')];
  const golden =
    kind === 'model' ? one[one.golden === 'greedy' ? 'logits' : one.golden] : undefined;
  const vectors = one.per_token_f64ref ?? one.per_token;
  const wanted = floatsOf(readFileSync(join(folder, (golden ?? vectors).file)));
  const args =
    kind === 'model' ? ['logits', path] : ['embed', path, '--pooling', 'none', '--kv', 'f32'];
  const exact =
    kind === 'model' ? one.golden === 'logits_f64ref' : one.per_token_f64ref !== undefined;
  return { largest: largestOf(outputOf([...args, ...tokens]), wanted), exact };
}

/**
 * Adds a file's cases to the row of its architecture.
 * @param {Map<string, Row>} rows
 * @param {any} entry of a manifest @param {string} folder @param {'model' | 'embedder'} kind
 */
function addFile(rows, { arch, model, cases }, folder, kind) {
  const key = `${arch} ${kind}`;
  const fresh = { architecture: arch, kind, largest: 0 };
  const row = rows.get(key) ?? { ...fresh, exact: false, refused: '' };
  rows.set(key, row);
  for (const one of cases) {
    try {
      const { largest, exact } = compare(folder, join(folder, model), one, kind);
      row.largest = Math.max(row.largest, largest);
      row.exact ||= exact;
    } catch (error) {
      const { stderr } = /** @type {any} */ (error);
      if (!/WICK_E_UNSUPPORTED/.test(`${stderr}`)) throw error;
      row.refused = 'unsupported';
    }
  }
}

/** @returns {Row[]} */
function measure() {
  const { path, skip } = locate('shared');
  if (skip) throw new Error(`no references: ${skip}`);
  /** @type {Map<string, Row>} */
  const rows = new Map();
  for (const name of ['reference', 'reference-more']) {
    const folder = join(path, 'vectors', name);
    const text = readFileSync(join(folder, 'manifest.json'), 'utf8').replace(/:\s*NaN\b/g, ':null');
    const { archs, embeddings = [] } = JSON.parse(text);
    for (const entry of archs) addFile(rows, entry, folder, 'model');
    for (const entry of embeddings) addFile(rows, entry, folder, 'embedder');
  }
  return [...rows.values()].sort((a, b) => (a.architecture < b.architecture ? -1 : 1));
}

/** Lists the architectures of a kind in a paragraph, with their largest difference. @param {string} kind @param {boolean} exact */
function paragraphOf(kind, exact) {
  const shown = rows.filter((row) => row.kind === kind && row.exact === exact);
  const one = (/** @type {Row} */ { architecture, refused }) =>
    `\`${architecture}\`${refused && ` (${refused})`}`;
  const largest = Math.max(...shown.map((row) => row.largest)).toExponential(1);
  const against = exact ? 'an exact run in float64' : 'llama.cpp';
  const title = `${kind === 'model' ? 'Language models' : 'Embedders'} against ${against}`;
  return wrap(`**${title}**, at most ${largest}: ${shown.map(one).join(', ')}.`);
}

/**
 * @param {string} text
 * @returns {string} the text in lines of at most 120 characters, each broken after a name
 */
const wrap = (text) => text.replace(/(.{1,119}[,.])(?: |$)/g, '$1\n').trim();

const { values } = parseArgs({ options: { document: { type: 'boolean', default: false } } });
const rows = measure();
const table = ['model', 'embedder']
  .flatMap((kind) => [paragraphOf(kind, false), paragraphOf(kind, true)])
  .join('\n\n');
const counts = `${rows.filter(({ refused }) => !refused).length} of ${rows.length} models run.`;
const line = environmentLine(describeEnvironment());
const text = `${table}\n\n${counts} \`node tools/bench/architectures.mjs --document\`: ${line}.`;
process.stdout.write(`${text}\n`);
if (values.document)
  writeFileSync(document, withSection(readFileSync(document, 'utf8'), 'architectures', text));
