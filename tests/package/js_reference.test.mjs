// The examples in the package's types, which editors and the reference show: every function and method has one, and each
// prints the lines that start with `//=>`. They run with SmolLM2-135M, whose answers are the same on all machines.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';
import { modules } from '../../examples/docs/outline.mjs';
import { declarationsOf } from '../../examples/docs/reference.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, modelPath, temporaryFolder } from '../support/package.mjs';

const real = locate('smollm2');

/** Called by Wick, not by users. */
const called = new Set(['WorkerLike', 'PolyfillBackend', 'PolyfillBackendClass']);

/** Not run here: they need a model with a ranking head, a LoRA file, an mmproj file, a network, a page or another package. */
const notRun = new Set([
  ...['Engine.rerank', 'WickProvider.rerankingModel', 'Adapters.add', 'Engine.mediaCost'],
  ...['ModelStore.get', 'ModelStore.check', 'isolate', 'fastifyPlugin', 'honoHandler'],
]);

/** Returns whether a declaration or member is a function. @param {string} code */
const isCalled = (code) => /^(?:export (?:declare )?function )?\w+(?:<[^()]*?>)?\(/.test(code);

/** Every function and method of the modules, with its example if it has one. */
const examples = Object.entries(modules).flatMap(([module, types]) =>
  declarationsOf(readFileSync(join(root, types), 'utf8')).flatMap(({ members, ...own }) => {
    const all = [own, ...members.map((one) => ({ ...one, name: `${own.name}.${one.name}` }))];
    const isShown = all.some(({ example }) => example);
    return all
      .filter(({ code, comment, example }) => {
        if (example) return true;
        if (called.has(own.name) || comment === 'Older names.' || !isCalled(code)) return false;
        return !(isShown && code.startsWith('constructor(')); // shown in the examples of its members
      })
      .map((one) => ({ module, ...one }));
  }),
);

/** @param {string} module @returns {string} its file in the package's folder */
const fileOf = (module) =>
  `${module === 'wick-llm' ? 'index' : module.slice('wick-llm/'.length)}.js`;

test('every function and method has an example', () => {
  const shown = new Set(examples.filter(({ example }) => example).map(({ name }) => name));
  assert.deepEqual(
    examples.map(({ name }) => name).filter((name) => !shown.has(name)),
    [],
  );
  for (const name of notRun) assert.ok(shown.has(name), name);
});

describe('the examples print the output that they show', { skip: real.skip || !isFull }, () => {
  const modelUrl = pathToFileURL(modelPath);
  /** @type {import('../../js/index.js').Engine | undefined} */
  let engine;
  after(() => engine?.close());

  /** @param {string} module @returns {Promise<Record<string, unknown>>} variables for its examples */
  async function namesFor(module) {
    const load = (/** @type {string} */ name) =>
      import(pathToFileURL(join(dist, fileOf(name))).href);
    const own = await load(module);
    const { createEngine, WickError } = await load('wick-llm');
    engine ??= await createEngine({ file: real.path, contextSize: 2048 });
    const names = { engine, modelUrl, modelPath, folder: temporaryFolder(), createServer };
    const wasm = new WebAssembly.Module(readFileSync(join(dist, 'wasm/wick-simd128-single.wasm')));
    const { createHandler } = await load('wick-llm/openai');
    const { embed, generateText } = await import('ai');
    return { createEngine, WickError, createHandler, embed, generateText, wasm, ...names, ...own };
  }

  /** @param {string} code @param {Record<string, unknown>} names @returns {Promise<string[]>} printed lines */
  async function run(code, names) {
    /** @type {string[]} */
    const lines = [];
    const console = {
      log: (/** @type {unknown[]} */ ...values) =>
        void lines.push(...format(...values).split(/ *\n/)),
    };
    const AsyncFunction = /** @type {FunctionConstructor} */ ((async () => {}).constructor);
    // an example may declare a variable itself
    const own = Object.keys(names).filter((name) => !new RegExp(`\\bconst ${name} = `).test(code));
    await new AsyncFunction('console', ...own, code)(console, ...own.map((name) => names[name]));
    return lines.map((line) => line.trimEnd()); // the formatter trims comments
  }

  for (const { module, name, example } of examples.filter((one) => one.example)) {
    const shown = [...example.matchAll(/^\/\/=>(?: (.*))?$/gm)].map(([, line = '']) =>
      line.trimEnd(),
    );
    if (notRun.has(name)) {
      test(`${module}: ${name} is not run, and shows no output`, () => assert.deepEqual(shown, []));
      continue;
    }
    test(`${module}: ${name}`, async () => {
      assert.deepEqual(await run(example, await namesFor(module)), shown);
    });
  }
});
