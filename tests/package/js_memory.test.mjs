// The web build's memory: its allocator, its peak compared with the plan, a constant size while
// decoding, addresses above 2 GiB.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { createSource } from '../../js/bytes/model_sources.js';
import { wordsOf } from '../../js/wasm/engine_records.js';
import { Heap, Passed } from '../../js/wasm/heap.js';
import { CONFIG, CONFIG_KINDS, FINISH_ERROR, STEP_IDLE } from '../../js/wasm/layout.js';
import { NativeEngine } from '../../js/wasm/native_engine.js';
import { StateBytes } from '../../js/wasm/state_transfer.js';
import { createMemory, instantiate } from '../../js/wasm/wasm_module.js';
import { loadModel } from '../../js/worker/load_model.js';
import { isFull } from '../support/level.mjs';
import {
  dist,
  modelPath,
  openEngine,
  synthesize,
  temporaryFolder,
  waitUntil,
} from '../support/package.mjs';

const folder = temporaryFolder();
const builds = ['simd128-single', 'simd128-threads'];
const relaxedBuilds = ['relaxed-single', 'relaxed-threads'];

// Node 20 has relaxed SIMD only with a flag, and its baseline compiler miscompiles the dot product
if (!WebAssembly.validate(readFileSync(join(dist, 'wasm/wick-relaxed-single.wasm')))) {
  setFlagsFromString('--experimental-wasm-relaxed-simd');
  setFlagsFromString('--no-liftoff');
}

/** @param {string} build */
const compile = (build) => WebAssembly.compile(readFileSync(join(dist, `wasm/wick-${build}.wasm`)));

/** Returns a small seeded random generator, so that failures are reproducible (Marsaglia's xorshift32). */
function makeRandom(seed = 1) {
  let state = seed;
  return (/** @type {number} */ below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** @param {{helpers?: number}} [options] */
async function startInstance({ helpers = 0 } = {}) {
  const module = await compile(helpers > 0 ? 'simd128-threads' : 'simd128-single');
  const created = createMemory({ shared: helpers > 0, helpers });
  if (!created) throw new Error('memory could not be allocated');
  const { memory, maximum } = created;
  const exports = instantiate(module, memory, {});
  exports.start(helpers, maximum);
  return { memory, exports };
}

test('the allocator: blocks are aligned, do not overlap, keep their contents, and merge when freed', async () => {
  const { memory, exports } = await startInstance();
  const random = makeRandom();
  /** @type {{address: number, size: number, mark: number}[]} */
  const held = [];
  let most = 0;
  for (let round = 0; round < 4000; round++) {
    if (held.length > 0 && random(100) < 48) {
      const [{ address, size, mark }] = held.splice(random(held.length), 1);
      const bytes = new Uint8Array(memory.buffer, address, size);
      assert.ok(bytes[0] === mark && bytes[size - 1] === mark, `round ${round}: overwritten`);
      exports.free(address, size);
    } else {
      const size = 1 + random(random(20) === 0 ? 2_000_000 : 5000);
      const address = exports.alloc(size) >>> 0;
      assert.ok(address > 0 && address % 64 === 0);
      const mark = random(256);
      const bytes = new Uint8Array(memory.buffer, address, size);
      bytes[0] = mark;
      bytes[size - 1] = mark;
      held.push({ address, size, mark });
    }
    most = Math.max(
      most,
      held.reduce((sum, { size }) => sum + size, 0),
    );
  }
  const byAddress = held.sort((a, b) => a.address - b.address);
  byAddress.forEach(({ address, size }, i) => {
    assert.ok(i + 1 === byAddress.length || address + size <= byAddress[i + 1].address);
  });
  const grown = memory.buffer.byteLength;
  assert.ok(grown < most * 1.5 + 2 ** 20, `${grown} bytes for ${most}`);
  for (const { address, size } of held) exports.free(address, size);
  const all = grown - exports.__heap_base.value - 64;
  assert.notEqual(exports.alloc(all) >>> 0, 0, 'the free blocks did not merge');
  assert.equal(memory.buffer.byteLength, grown);
});

test('the allocator grows memory only by the missing bytes, and fails above the maximum', async () => {
  const { memory, exports } = await startInstance({ helpers: 1 });
  const before = memory.buffer.byteLength;
  const free = before - exports.__heap_base.value - 131072;
  assert.notEqual(exports.alloc(100_000_000) >>> 0, 0);
  assert.ok(memory.buffer.byteLength - before <= 100_000_000 - free + 65_536 + 64);
  assert.equal(exports.alloc(4_200_000_000) >>> 0, 0);
  assert.equal(exports.alloc(0xffffffff) >>> 0, 0);
  assert.notEqual(exports.alloc(1000) >>> 0, 0);
});

test('linear memory peaks at no more than 1.1 x the planned file + KV + scratch size', async (t) => {
  const file = join(folder, '100mb.gguf');
  await synthesize('100mb', 'q8_0', file);
  for (const threads of [1, 2]) {
    const engine = await openEngine(t, { file, threads, contextSize: 256 });
    // fill the context, so that all pages are allocated
    const full = engine.generate(await engine.tokenize('a '.repeat(230)), { ignoreEnd: true });
    await full.text();
    assert.equal(full.result?.finishReason, 'length');
    const { plan, memory } = await engine.info();
    if (!plan) throw new Error('no plan');
    const planned = statSync(file).size + plan.kvBytes + plan.scratchBytes;
    const ratio = memory.linearBytes / planned;
    t.diagnostic(
      `${threads} thread(s): ${memory.linearBytes} bytes, ${ratio.toFixed(3)} of the plan`,
    );
    assert.ok(ratio <= 1.1, `${ratio} times the planned size`);
    await engine.close();
  }
});

const helperScript = `
import { workerData } from 'node:worker_threads';
const { runHelper } = await import(workerData.script);
await runHelper(workerData.module, { memory: workerData.memory, extras: undefined }, 0);
`;

/** @param {WebAssembly.Module} module @param {WebAssembly.Memory} memory */
function startHelper(module, memory) {
  const script = new URL('../../js/wasm/wasm_module.js', import.meta.url).href;
  const address = new URL(`data:text/javascript,${encodeURIComponent(helperScript)}`);
  new Worker(address, { workerData: { script, module, memory } }).unref();
}

/**
 * @param {string} build
 * @param {number} wasteBytes
 * @param {Partial<import('../../js/wasm/engine_records.js').NativeConfig>} [more] at most two threads
 */
async function loadDirectly(build, wasteBytes, more = {}) {
  const config = {
    threads: 1,
    contextSize: 0,
    batchSize: 0,
    kType: /** @type {const} */ ('f16'),
    vType: /** @type {const} */ ('f16'),
    memoryLimit: 0,
    directoryOnly: false,
    metrics: false,
    timerGrainUs: 1,
    ...more,
  };
  const module = await compile(build);
  const native = await NativeEngine.create(module, config, {
    wasteBytes,
    onMemory: (memory) => {
      if (config.threads > 1) startHelper(module, memory);
    },
  });
  const source = createSource({ kind: 'path', paths: [modelPath] }, () => {});
  await loadModel(native, source);
  return native;
}

/** @type {import('../../js/wasm/engine_records.js').NativeRequest} */
const request = {
  prompt: '<|im_start|>user\nWhat is Wick?<|im_end|>\n<|im_start|>assistant\n',
  tokenizeFlags: 3,
  maxTokens: 40,
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repeatPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  penaltyLast: 0,
  seed: 1n,
  logitBias: [[5, -1]],
  logprob: true,
  logprobs: 2,
  stop: ['never said'],
  ignoreEnd: true,
  printSpecial: false,
  priority: 0,
  speculation: false,
};

/** @param {NativeEngine} native @param {() => void} [onStep] */
function speak(native, onStep = () => {}) {
  native.submit(request);
  let text = '';
  let result;
  do {
    result = native.step(0);
    for (const event of native.takeEvents()) text += event.text;
    onStep();
  } while (result !== STEP_IDLE);
  return text;
}

test('addresses above 2 GiB give the same text, tokens and info as lower ones', async () => {
  for (const build of builds) {
    const low = await loadDirectly(build, 0);
    const high = await loadDirectly(build, 2.2 * 2 ** 30);
    assert.ok(high.counters().linearBytes > 2.2 * 2 ** 30);
    const text = speak(low);
    assert.ok(text.length > 20);
    assert.equal(speak(high), text);
    const tokens = high.tokenize(text, 0);
    assert.deepEqual(tokens, low.tokenize(text, 0));
    assert.equal(high.detokenize(tokens, { whole: true, special: false }), text);
    assert.deepEqual(high.tokenBytes(tokens[0]), low.tokenBytes(tokens[0]));
    assert.deepEqual(high.info().plan, low.info().plan);
    assert.throws(() => high.submit(/** @type {any} */ ({ ...request, prompt: [7777] })), {
      code: 'ARG',
    });
    low.destroy();
    high.destroy();
  }
});

/** @param {NativeEngine} native */
function memoryOf(native) {
  const { allocations, linearBytes } = native.counters();
  return { allocations, linearBytes };
}

for (const build of isFull ? [...builds, ...relaxedBuilds] : builds) {
  const counts = build.endsWith('threads') ? [1, 2] : [1];
  for (const threads of counts) {
    test(`decoding neither allocates nor grows memory: ${build}, ${threads} thread(s)`, async () => {
      const native = await loadDirectly(build, 0, { threads });
      await waitUntil(() => native.info().threads === threads, 'the helper');
      speak(native);
      /** @type {ReturnType<typeof memoryOf>[]} */
      const seen = [];
      speak(native, () => seen.push(memoryOf(native)));
      // submitting allocates, and so does the first step (the request's pages)
      const decoding = seen.slice(2);
      assert.ok(decoding.length > 40);
      for (const state of decoding) assert.deepEqual(state, decoding[0]);
      native.destroy();
    });

    test(`several requests with speculation neither allocate nor grow memory: ${build}, ${threads} thread(s)`, async () => {
      // enough for all four requests at their final length, and enough for only two
      for (const kvTokens of [1024, 192]) {
        const native = await loadDirectly(build, 0, { threads, contextSize: 128, kvTokens });
        await waitUntil(() => native.info().threads === threads, 'the helper');
        runTogether(native);
        const proposed = native.stats().tokens.proposed;
        const seen = runTogether(native);
        assert.ok(native.stats().tokens.proposed > proposed, 'nothing was proposed');
        // preemption and resumption may allocate, as submitting does, but never grow linear memory
        assert.equal(new Set(seen.map(({ linearBytes }) => linearBytes)).size, 1);
        const first = seen.findIndex(({ preempted }) => preempted > seen[0].preempted);
        assert.equal(first >= 0, kvTokens === 192);
        const decoding = seen.slice(1, first < 0 ? undefined : first);
        assert.ok(decoding.length > 40);
        for (const { allocations } of decoding) assert.equal(allocations, decoding[0].allocations);
        checkAfterGivingWay(seen.slice(Math.max(first, 1)));
        native.destroy();
      }
    });
  }
}

/** Runs four requests at once. @param {NativeEngine} native @returns memory after each step */
function runTogether(native) {
  for (let index = 0; index < 4; index++) {
    native.submit({ ...request, maxTokens: 80, priority: index, speculation: 'always' });
  }
  const seen = [];
  do {
    const { requests, passes } = native.stats();
    const { preempted, running } = requests;
    seen.push({ ...memoryOf(native), preempted, running, passes });
    for (const event of native.takeEvents()) assert.notEqual(event.finish, FINISH_ERROR);
  } while (native.step(0) !== STEP_IDLE);
  return seen;
}

/**
 * Checks that running requests do not allocate: only a preempted request does, when it tries to
 * resume, before a pass, and not repeatedly.
 * @param {ReturnType<typeof runTogether>} seen
 */
function checkAfterGivingWay(seen) {
  let tries = 0;
  let changes = 0;
  for (const [index, state] of seen.entries()) {
    const before = seen[Math.max(0, index - 1)];
    changes += Number(
      state.running !== before.running || state.preempted !== before.preempted || index === 0,
    );
    if (state.allocations === before.allocations) continue;
    assert.notEqual(state.passes, before.passes, `step ${index}`);
    tries++;
  }
  assert.ok(tries <= changes, `${tries} tries after ${changes} changes`);
}

test('destroying an engine frees every block', async () => {
  const { memory, exports } = await startInstance();
  const heap = new Heap(memory, exports);
  const passed = new Passed(heap);
  const state = new StateBytes(() => heap);
  const words = wordsOf(CONFIG, { tables: 1 }); // inside
  const config = passed.record(words, CONFIG_KINDS);
  const native = new NativeEngine(heap, exports, exports.engine_create(config) >>> 0, state);
  const source = createSource({ kind: 'path', paths: [modelPath] }, () => {});
  await loadModel(native, source);
  speak(native);
  native.destroy();
  passed.free();
  const grown = memory.buffer.byteLength;
  assert.notEqual(exports.alloc(grown - exports.__heap_base.value - 64) >>> 0, 0);
  assert.equal(memory.buffer.byteLength, grown);
});
