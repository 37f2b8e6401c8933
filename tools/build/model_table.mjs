// Writes the model tables in the guide and in the package's README. Download sizes are from
// examples/chat/good_models.json, speeds from docs/benchmarks.md.
//   node tools/build/model_table.mjs --write

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bytesOfShape, shapes } from './model_bytes.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const read = (/** @type {string} */ name) => readFileSync(join(root, name), 'utf8');
const models = JSON.parse(read('examples/chat/good_models.json'));

const CONTEXT = 4096;
const F16_BYTES = 2;

/** Names of shapes in the benchmarks that differ from the model's id. @type {Record<string, string>} */
const measuredAs = { 'bonsai-1.7b': 'qwen3-1.7b' };

/**
 * For each type, the model whose measured speed is scaled for models that were not measured.
 * @type {Record<string, string>}
 */
const yardsticks = { Q8_0: 'smollm2-135m', Q4_0: 'qwen3-0.6b' };

/** Decoding speed on one thread by model and type, from docs/benchmarks.md. @returns {Map<string, number>} */
function measuredSpeeds() {
  const text = read('docs/benchmarks.md');
  /** @type {Map<string, number>} */
  const speeds = new Map();
  for (const section of ['people', 'peers']) {
    const [, marked = ''] = text.split(`<!-- ${section}: begin -->`);
    const [, decode = ''] = marked.split('### Tokens/s');
    const table = decode.split('###')[0];
    for (const [, id, type, speed] of table.matchAll(/^\| (\S+) (\S+) \| 1 \| ([\d.]+) \|/gm)) {
      const key = `${id} ${type.toUpperCase()}`;
      if (!speeds.has(key)) speeds.set(key, Number(speed));
    }
  }
  return speeds;
}

const speeds = measuredSpeeds();
/** @param {any} model @param {string} [type] @returns {number} */
function bytesOf(model, type = model.type) {
  const shape = shapes[model.id];
  return 'synth' in shape ? model.bytes : bytesOfShape(shape, type);
}

/** @param {any} model @returns {string} tokens per second, and where the number is from */
function speedOf(model) {
  const id = measuredAs[model.id] ?? model.id;
  const exact = speeds.get(`${id} ${model.type}`);
  if (exact !== undefined) return `${exact}`;
  const other = [...speeds].find(([key]) => key.startsWith(`${id} Q4_`));
  if (other) return `${other[1]} in ${other[0].split(' ')[1]}`;
  const yardstick = models.find((/** @type {any} */ one) => one.id === yardsticks[model.type]);
  const rate = speeds.get(`${yardstick.id} ${model.type}`) ?? 0;
  const speed = (rate * bytesOf(yardstick, model.type)) / bytesOf(model);
  return `about ${speed.toPrecision(2)}, computed`;
}

/** @param {number} bytes */
const rounded = (bytes) =>
  bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;

/** @param {any} model @returns {string} the KV cache size for a full context */
function cacheOf({ id }) {
  const shape = shapes[id];
  if ('synth' in shape) return '—';
  return rounded(2 * F16_BYTES * CONTEXT * shape.layers * shape.kvHeads * shape.headDim);
}

/** @param {any} model */
const nameOf = ({ repo, type }) => `\`${repo}:${type}\``;

/** @param {number} [count] @returns {string} */
export function modelTable(count = models.length) {
  const sorted = models.toSorted(
    (/** @type {any} */ a, /** @type {any} */ b) => bytesOf(a) - bytesOf(b),
  );
  const rows = sorted
    .slice(0, count)
    .map((/** @type {any} */ model) =>
      [nameOf(model), rounded(bytesOf(model)), cacheOf(model), speedOf(model), model.use].join(
        ' | ',
      ),
    );
  return [
    '| model | download | KV cache | tokens/s | use |',
    '|---|---:|---:|---:|---|',
    ...rows.map((/** @type {string} */ row) => `| ${row} |`),
  ].join('\n');
}

/**
 * The documents with a table, and the number of rows in it.
 * @type {Record<string, number | undefined>}
 */
const documents = { 'docs/guide/which-model.md': undefined, 'js/README.md': 5 };
const marked = /(<!-- models: begin -->\n)[\s\S]*?(<!-- models: end -->)/;

/**
 * @returns {[string, string, string][]} each document, its text, and the text with the current
 * table
 */
export const documentsWithTable = () =>
  Object.entries(documents).map(([name, count]) => {
    const text = read(name);
    return [name, text, text.replace(marked, `$1${modelTable(count)}\n$2`)];
  });

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv.includes('--write')) {
  for (const [name, , text] of documentsWithTable()) writeFileSync(join(root, name), text);
}
