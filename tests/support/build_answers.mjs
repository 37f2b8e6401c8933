// Prints the output of one build of the package's modules as JSON: text, tokens and logit hashes of
// many models, with a grammar, saved state and images.
//   node build_answers.mjs DIST BUILD THREADS [VECTORS]
// BUILD: e.g. simd128-threads; VECTORS: folder of the shared test vectors

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './locate.mjs';

const [dist, build, threads, vectors] = process.argv.slice(2);
/** @type {typeof import('../../js/index.js')} */
const { createEngine } = await import(pathToFileURL(join(dist, 'index.js')).href);
const wasm = pathToFileURL(join(dist, `wasm/wick-${build}.wasm`));
/** @type {Record<string, unknown>} */
const answers = {};

/** @param {any} source @param {(engine: import('../../js/index.js').Engine) => Promise<void>} use */
async function withEngine(source, use) {
  const engine = await createEngine({ wasm, threads: Number(threads), ...source });
  while ((await engine.info()).threads < Number(threads))
    await new Promise((settle) => setTimeout(settle, 5)); // helpers start asynchronously
  await use(engine);
  await engine.close();
}

/**
 * @param {import('../../js/index.js').Engine} engine @param {any} prompt @param {number} maxTokens
 * @returns {Promise<{tokens: number[], logits: string}>} greedy tokens, and a hash of all logits
 */
async function tokensOf(engine, prompt, maxTokens) {
  /** @type {number[]} */
  const tokens = [];
  const hash = createHash('sha256');
  await engine
    .generate(prompt, {
      ...{ temperature: 0, maxTokens, ignoreEnd: true },
      onToken: ({ token }) => tokens.push(token),
      logitsHook: (logits) => void hash.update(logits),
    })
    .text();
  return { tokens, logits: hash.digest('hex') };
}

const file = resolve(root, 'examples/models/wick-2.6m-q8_0.gguf');
await withEngine({ file }, async (engine) => {
  const once = 'Once upon a time';
  answers.sampled = await engine
    .generate(once, { temperature: 1, seed: 7, maxTokens: 48, topP: 0.9, minP: 0.02 })
    .text();
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  answers.schema = await engine
    .generate(once, { temperature: 1, seed: 3, maxTokens: 32, jsonSchema: schema })
    .text();
  const session = await engine.createSession();
  await session.prompt(once, { temperature: 0, maxTokens: 8 }).text();
  const state = await session.save();
  answers.state = createHash('sha256').update(state).digest('hex');
});
for (const kvType of ['f32', 'q8', 'q4'])
  await withEngine({ file, kvType }, async (engine) => {
    answers[kvType] = await tokensOf(engine, 'The fox and the crow', 24);
  });

/** @param {string} name @returns {any} */
const manifestOf = (name) =>
  JSON.parse(
    readFileSync(join(vectors, name, 'manifest.json'), 'utf8').replace(/:\s*NaN\b/g, ':null'),
  );

/** Encoders with learned positions, with window attention, and for audio. */
const media = ['idefics3', 'qwen25vl', 'lfm2a'];
/** @param {string} set @returns {any[]} every second model of the manifest */
const half = (set) =>
  vectors
    ? manifestOf(set).archs.filter((/** @type {any} */ _, /** @type {number} */ i) => i % 2 === 0)
    : [];

for (const set of ['reference', 'reference-more'])
  for (const { id, model, cases } of half(set))
    await withEngine({ file: join(vectors, set, model), kvType: 'f32' }, async (engine) => {
      answers[id] = await tokensOf(engine, cases[0].tokens, 4);
    });

for (const { id, text_model, mmproj, cases } of vectors ? manifestOf('vision').types : []) {
  if (!media.includes(id)) continue;
  const part = cases[0].parts.find((/** @type {any} */ { text }) => text === undefined);
  const folder = join(vectors, 'vision');
  const data = new Uint8Array(readFileSync(join(folder, part.image ?? part.audio)));
  const given = part.image
    ? { type: 'image', image: { width: part.width, height: part.height, data } }
    : { type: 'audio', audio: { samples: new Float32Array(data.buffer), sampleRate: 16000 } };
  const source = { file: join(folder, text_model), mmproj: join(folder, mmproj), contextSize: 512 };
  await withEngine(source, async (engine) => {
    answers[`media ${id}`] = await tokensOf(engine, [given, { type: 'text', text: 'What?' }], 4);
  });
}
console.log(JSON.stringify(answers));
