#!/usr/bin/env node
// Starts `wick serve` with the options of llama.cpp's server, whose tests run this file instead of
// llama-server (llama_server_tests.py).
//   WICK_DIST=FOLDER WICK_MODELS=FOLDER [WICK_ADAPTER=1] tools/bench/llama_server.mjs [options of llama-server]
// Models that the tests name are replaced with small local ones, derived from the vectors in
// WICK_SHARED and written to WICK_MODELS. Options that `wick serve` does not have are ignored. With
// WICK_ADAPTER, a proxy (llama_adapter.mjs) applies the defaults that some of them set.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  addTensor,
  readPieces,
  writeNumbers,
  writePieces,
} from '../../tests/support/gguf_pieces.mjs';
import { startAdapter } from './llama_adapter.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { WICK_DIST: dist = join(root, 'dist'), WICK_MODELS: models = join(root, 'build/llama') } =
  process.env;
const vectors = join(process.env.WICK_SHARED ?? join(root, '../shared'), 'vectors');

/** Options without a value. */
const flags = new Set([
  ...['--offline', '--cont-batching', '--embedding', '--reranking', '--metrics', '--kv-unified'],
  ...['--slots', '--no-slots', '--verbose', '--context-shift', '--no-webui', '--jinja'],
  ...['--no-jinja', '--no-models-autoload', '--no-cache-idle-slots', '--webui-mcp-proxy'],
]);

/** Two of the templates that llama-server knows by name; `wick serve` knows chatml. */
const templates = {
  llama3:
    '{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}<|eot_id|>{% endfor %}' +
    '{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}',
  'command-r':
    "{% set marks = {'system': '<|SYSTEM_TOKEN|>', 'user': '<|USER_TOKEN|>'} %}{% for m in messages %}" +
    "<|START_OF_TURN_TOKEN|>{{ marks.get(m.role, '<|CHATBOT_TOKEN|>') }}{{ m.content }}<|END_OF_TURN_TOKEN|>" +
    '{% endfor %}{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}',
};

// ---- models ----

/** @param {number} count @param {number} scale @returns {Float32Array} the same numbers each time */
function noise(count, scale) {
  let state = 1;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return scale * (state / 2 ** 31 - 1);
  });
}

/** The vectors of positions of a BERT, for more positions than it has. @param {string} from @param {number} count */
function withPositions(from, count) {
  const pieces = readPieces(join(vectors, from));
  const [width] = pieces.tensors.get('position_embd.weight')?.dims ?? [];
  addTensor(pieces, 'position_embd.weight', [width, count], noise(width * count, 0.1));
  return { pieces, width };
}

/** An embedder with the vocabulary of BGE. @param {string} to */
function writeEmbedder(to) {
  const { pieces, width } = withPositions('reference-more/models/bert-cls.gguf', 1024);
  const vocabulary = readPieces(join(vectors, 'vocab/ggml-vocab-bert-bge.gguf'));
  const ofTokenizer = (/** @type {[string, Buffer]} */ [key]) => key.startsWith('tokenizer.');
  pieces.keys = new Map([
    ...[...pieces.keys].filter((pair) => !ofTokenizer(pair)),
    ...[...vocabulary.keys].filter(ofTokenizer),
  ]);
  const tokens = 30_522;
  addTensor(pieces, 'token_embd.weight', [width, tokens], noise(width * tokens, 0.1));
  writeFileSync(to, writePieces(pieces));
  writeNumbers(to, { 'bert.context_length': 1024, 'bert.vocab_size': tokens }, to);
}

/** @param {string} to */
function writeReranker(to) {
  const { pieces } = withPositions('reference-more/models/bert-rank.gguf', 2048);
  writeFileSync(to, writePieces(pieces));
  writeNumbers(to, { 'bert.context_length': 2048 }, to);
}

const stories = 'stories260K/stories260K-f32.gguf';
const long = { 'llama.context_length': 16_384 };
const infill = ['pre', 'suf', 'mid'].map((name, at) => [
  `tokenizer.ggml.fim_${name}_token_id`,
  500 + at,
]);

/** How each model is made. @type {Record<string, (to: string) => void>} */
const makers = {
  stories: (to) => writeNumbers(join(vectors, stories), long, to),
  infill: (to) =>
    writeNumbers(join(vectors, stories), { ...long, ...Object.fromEntries(infill) }, to),
  // of the adapter in reference-more/lora
  base: (to) => writeNumbers(join(vectors, 'reference/models/llama.gguf'), long, to),
  embedder: writeEmbedder,
  reranker: writeReranker,
  gemma3: (to) =>
    writeNumbers(
      join(vectors, 'vision/models/text-gemma3.gguf'),
      { 'gemma3.context_length': 4096 },
      to,
    ),
};

/** @param {keyof typeof makers} name @returns {string} the path of its file, which is written once */
function made(name) {
  const path = join(models, `${name}.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(models, { recursive: true });
  makers[name](`${path}.new`);
  renameSync(`${path}.new`, path);
  return path;
}

/**
 * @param {string} name the repository and file that the test names
 * @param {boolean} hasAdapter whether it loads an adapter
 * @returns {string | undefined} a model of the same kind
 */
function modelOf(name, hasAdapter) {
  if (name.includes('infill')) return made('infill');
  if (name.includes('bert-bge')) return made('embedder');
  if (name.includes('reranker')) return made('reranker');
  if (name.includes('gemma3')) return made('gemma3');
  if (name.includes('split')) {
    return join(vectors, 'reference/split/llama-small-F16-00001-of-00003.gguf');
  }
  if (hasAdapter) return made('base');
  return name.includes('stories') ? made('stories') : undefined;
}

// ---- options ----

/** @param {string[]} args @returns {{given: Map<string, string>, adapters: string[]}} */
function readArguments(args) {
  /** @type {Map<string, string>} */
  const given = new Map();
  const adapters = [];
  for (let at = 0; at < args.length; at++) {
    const name = args[at];
    const value = flags.has(name) ? '' : (args[++at] ?? '');
    if (name === '--lora') adapters.push(value);
    else given.set(name, value);
  }
  return { given, adapters };
}

/** @param {Map<string, string>} given @returns {string[]} --chat-template and its value */
function templateOf(given) {
  const file = given.get('--chat-template-file');
  if (file !== undefined) return ['--chat-template', resolve(file)];
  const name = given.get('--chat-template') ?? 'chatml';
  if (name === 'chatml') return ['--chat-template', name];
  const path = join(models, `${Buffer.from(name).toString('hex').slice(0, 60)}.jinja`);
  mkdirSync(models, { recursive: true });
  writeFileSync(path, templates[/** @type {keyof typeof templates} */ (name)] ?? name);
  return ['--chat-template', path];
}

/** @param {Map<string, string>} given @returns {string[]} --ctx and its value: the context of one request */
function contextOf(given) {
  const size = Number(given.get('--ctx-size') ?? 0);
  const slots = given.has('--kv-unified') ? 1 : Number(given.get('--parallel') ?? 1);
  return size > 0 ? ['--ctx', String(Math.floor(size / slots))] : [];
}

/**
 * @param {ReturnType<typeof readArguments>} read
 * @returns {string[]} the arguments of `wick serve`, without the address
 */
function argumentsOf({ given, adapters }) {
  const name = `${given.get('--hf-repo') ?? ''}/${given.get('--hf-file') ?? given.get('--model') ?? ''}`;
  const model = modelOf(name, adapters.length > 0);
  if (model === undefined) throw new Error(`no model of the kind of ${name}`);
  const [alias] = (given.get('--alias') ?? '').split(',');
  const key = given.get('--api-key');
  const draft = given.get('--model-draft');
  const isText = !/embedder|reranker/.test(model);
  return [
    ...[model, '--threads', '1', '--no-log', ...contextOf(given)],
    ...(isText ? templateOf(given) : []),
    ...(alias ? ['--name', alias] : []),
    ...(key ? ['--key', key] : []),
    ...(draft ? ['--draft', resolve(draft)] : []),
    ...adapters.flatMap((file) => ['--lora', resolve(file)]),
    ...(/gemma3/.test(model)
      ? ['--mmproj', join(vectors, 'vision/models/mmproj-gemma3.gguf')]
      : []),
  ];
}

// ---- processes ----

const read = readArguments(process.argv.slice(2));
const { given } = read;
const [host, port] = [given.get('--host') ?? '127.0.0.1', given.get('--port') ?? '8080'];
const isAdapted = process.env.WICK_ADAPTER === '1';
const address = ['--host', host, '--port', isAdapted ? '0' : port];
const args = [join(dist, 'cli.js'), 'serve', ...argumentsOf(read), ...address];
const child = spawn(process.execPath, args, {
  stdio: ['ignore', isAdapted ? 'pipe' : 'inherit', 'inherit'],
});
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) {
  process.on(signal, () => child.kill(signal));
}
child.on('exit', (code) => process.exit(code ?? 1));
if (child.stdout) {
  const lines = createInterface({ input: child.stdout });
  const [url] = await once(lines, 'line');
  startAdapter({ host, port: Number(port), target: new URL(url).origin, given });
}
