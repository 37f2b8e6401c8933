// Unit tests of parts of the package: names and numbers that an engine returns only in situations
// that are hard to reach.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { onAbort, unlessAborted } from '../../js/base/abort_signals.js';
import { nameOption, optionOf } from '../../js/base/error_subjects.js';
import {
  abortError,
  codeOfStatus,
  fromPlainError,
  refusalOf,
  throwIfAborted,
  toPlainError,
  WickError,
} from '../../js/base/errors.js';
import { checkNames } from '../../js/base/option_names.js';
import { samplingNumbers, subjects } from '../../js/base/option_table.js';
import { fileIsMissing, nameOfFile, splitNames } from '../../js/bytes/split_files.js';
import { callNamed, calls, usesSession } from '../../js/connection/calls.js';
import { isClientName, isFromLeader, isToLeader } from '../../js/connection/messages.js';
import { ChatCompletions, messagesOf } from '../../js/page/chat_completions.js';
import { infoOf, kvStatsOf, statsOf } from '../../js/page/engine_reports.js';
import { prometheusOf } from '../../js/page/prometheus.js';
import { settingsOf } from '../../js/page/request_options.js';
import { samplersOf } from '../../js/page/sampler_options.js';
import { Session } from '../../js/page/session.js';
import { storageError, writeFile } from '../../js/storage/browser_files.js';
import { SwapFile } from '../../js/storage/swap_file.js';
import { configWords, requestWords } from '../../js/wasm/engine_records.js';
import { decodeEvents } from '../../js/wasm/event_records.js';
import { Heap, Passed, unsigned } from '../../js/wasm/heap.js';
import * as layout from '../../js/wasm/layout.js';
import { StateBytes } from '../../js/wasm/state_transfer.js';
import { answerCall } from '../../js/worker/served_engine.js';
import { dist } from '../support/package.mjs';
import { CONFIG, REQUEST, SAMPLING } from '../support/records.mjs';

// Replaced before the clock is read for the first time, because js/base/clock.js keeps the function.
let fakeMs = 0;
const { hrtime } = process;
process.hrtime = /** @type {any} */ (() => [Math.floor(fakeMs / 1000), (fakeMs % 1000) * 1e6]);
const { ProgressMeter } = await import('../../js/bytes/download_progress.js');
process.hrtime = hrtime;

describe('info', () => {
  const raw = {
    ...{ architecture: 'llama', name: 'n', chat_template: 't', types: { F32: { tensors: 1 } } },
    shape: { layers: 2, kv_heads: 3, context_trained: 4 },
    tokenizer: { model: 'gpt2', adds_bos: true },
    plan: { context_tokens: 5, kv_page_bytes: 6 },
    error: { status: 'WICK_E_ARG', offset_bytes: 7 },
    load: { fingerprint: 'ab' },
    ...{
      threads: 8,
      threadsUsed: 9,
      kernels: 'simd128',
      sharing: 'tabs',
      k_type: 'q8',
      v_type: 'q4',
    },
    ...{ linearBytes: 10, bytesNow: 11, bytesPeak: 12, limitBytes: 13, mostBytes: 15 },
    allocations: 14,
  };

  test('has every member for a loaded model', () => {
    assert.deepEqual(infoOf(raw), {
      ...{ architecture: 'llama', name: 'n', chatTemplate: 't', types: { F32: { tensors: 1 } } },
      shape: { layers: 2, kvHeads: 3, contextTrained: 4 },
      contextSize: 5,
      tokenizer: { model: 'gpt2', addsBos: true },
      fingerprint: 'ab',
      ...{
        threads: 8,
        threadsUsed: 9,
        kernels: 'simd128',
        rounding: 'plain',
        sharing: 'tabs',
        kType: 'q8',
        vType: 'q4',
      },
      plan: { contextTokens: 5, kvPageBytes: 6 },
      error: { status: 'WICK_E_ARG', offsetBytes: 7 },
      media: [],
      mediaPlan: null,
      memory: {
        ...{ linearBytes: 10, usedBytes: 11, peakBytes: 12 },
        ...{ limitBytes: 13, mostBytes: 15, allocations: 14 },
      },
    });
  });

  test('is available before the directory is read', () => {
    const info = infoOf({ load: {}, threads: 1 });
    const { architecture, name, shape, contextSize, tokenizer, chatTemplate, types } = info;
    const none = { architecture, name, shape, contextSize, tokenizer, chatTemplate, types };
    assert.deepEqual(none, {
      ...{ architecture: null, name: null, shape: null, contextSize: 0, tokenizer: null },
      ...{ chatTemplate: null, types: {} },
    });
    const { fingerprint, plan, error, sharing } = info;
    assert.deepEqual([fingerprint, plan, error, sharing], [null, null, null, 'none']);
  });
});

const rawStats = {
  requests: {
    ...{ running: 1, waiting: 2, paused: 3, running_max: 4, waiting_max: 5, submitted: 6 },
    ...{ refused: 7, stopped: 8, length: 9, aborted: 10, failed: 11, preempted: 12 },
    ...{ swapped_out: 13, swapped_in: 14, swap_failed: 15 },
  },
  tokens: { prompt: 16, cached: 17, recomputed: 18, out: 19, proposed: 20, accepted: 21 },
  ...{ pass_us: [1], passes: 22, rows: 23, draft_failed: 24 },
  kv: {
    page_tokens: 16,
    pages: { all: 30, free: 5, shared: 6, cached: 7, used_max: 26 },
    bytes: { used: 28, capacity: 29 },
    groups: [{ layers: 2, window_tokens: 32, page_bytes: 33, pages: { all: 34, free: 35 } }],
    states: { state_bytes: 36, slots: 37, free: 38, cached: 39 },
    fragmentation: { largest_free_region: 31 },
    prefix: { hits: 32, misses: 33, hit_ratio: 0.5 },
    map: ['pp', '.'],
  },
};

describe('stats', () => {
  test('have every member', () => {
    const stats = statsOf(rawStats);
    assert.equal(stats.requests.runningMax, 4);
    assert.equal(stats.requests.swapFailed, 15);
    assert.equal(stats.tokens.recomputed, 18);
    assert.deepEqual([stats.passes, stats.rows, stats.draftFailed], [22, 23, 24]);
    assert.equal(stats.kv.pages.usedMax, 26);
    assert.equal(stats.kv.fragmentation.largestFreeRegion, 31);
    assert.equal(stats.kv.prefix?.hitRatio, 0.5);
    assert.equal(stats.kv.map, 'pp.');
    assert.deepEqual(stats.kv.groups, [
      { layers: 2, windowTokens: 32, pageBytes: 33, pages: { all: 34, free: 35 } },
    ]);
    assert.deepEqual(stats.kv.states, { stateBytes: 36, slots: 37, free: 38, cached: 39 });
    const without = kvStatsOf({ ...rawStats.kv, prefix: null, states: null, map: undefined });
    assert.equal(without.prefix, null);
    assert.equal(without.states, null);
    assert.equal(without.map, undefined);
  });

  test('have every line in Prometheus format', () => {
    const text = prometheusOf(statsOf(rawStats));
    const lines = text.split('\n').filter((line) => line && !line.startsWith('#'));
    assert.deepEqual(lines, [
      ...['running"} 1', 'waiting"} 2', 'paused"} 3'].map((end) => `wick_requests{state="${end}`),
      'wick_requests_submitted_total 6',
      'wick_requests_refused_total 7',
      ...['stop"} 8', 'length"} 9', 'abort"} 10', 'error"} 11'].map(
        (end) => `wick_requests_finished_total{reason="${end}`,
      ),
      'wick_preemptions_total 12',
      ...['out"} 13', 'in"} 14', 'failed"} 15'].map((end) => `wick_swaps_total{kind="${end}`),
      ...['prompt"} 16', 'cached"} 17', 'recomputed"} 18', 'out"} 19', 'proposed"} 20'].map(
        (end) => `wick_tokens_total{kind="${end}`,
      ),
      'wick_tokens_total{kind="accepted"} 21',
      'wick_passes_total 22',
      'wick_rows_total 23',
      'wick_draft_failures_total 24',
      ...['used"} 25', 'free"} 5', 'shared"} 6', 'cached"} 7'].map(
        (end) => `wick_kv_pages{state="${end}`,
      ),
      'wick_kv_bytes 28',
      'wick_prefix_hits_total 32',
      'wick_prefix_misses_total 33',
    ]);
    assert.match(
      text,
      /^# HELP wick_requests Current requests\.\n# TYPE wick_requests gauge\nwick/,
    );
    assert.match(text, /# TYPE wick_kv_bytes gauge\n/);
    assert.match(text, /# TYPE wick_rows_total counter\n/);
    const none = prometheusOf(statsOf({ ...rawStats, kv: { ...rawStats.kv, prefix: null } }));
    assert.match(none, /wick_prefix_hits_total 0\n[\s\S]*wick_prefix_misses_total 0\n$/);
  });
});

test('errors from the engine name the option of their subject', () => {
  /** @param {string} name */
  const number = (name) => subjects.findIndex(([subject]) => subject === name);
  for (const [subject, said, reports] of [
    [
      'context',
      'the prompt has 9 tokens, which exceeds the available context size of 8',
      ' (option contextSize)',
    ],
    ['plan', 'the model needs 4 bytes, the budget is 3', ' (options memoryLimit, contextSize)'],
    ['host', "the model needs 4 bytes, the host's limit is 3", ' (option contextSize)'],
    ['memory', 'out of memory: a page (1 bytes, budget 5)', ' (option memoryLimit)'],
    ['none', 'out of memory: a page (1 bytes)', ''],
    ['kv_tokens', '9 KV pages are needed, 8 are available', ' (option kvTokens)'],
    ['directory_only', "only the model's directory was read", ' (option directoryOnly)'],
    ['bias', 'a logit bias of NaN', ' (option logitBias)'],
    ['stops', 'stop string 3 is empty', ' (option stop)'],
    ['temperature', 'temperature is -1', ''],
    ['queue_tokens', 'too many are waiting', ''],
    ['top_p', 'top_p is 2', ' (option topP)'],
  ]) {
    assert.equal(nameOption(said, number(subject)), said + reports);
  }
  assert.equal(nameOption('of another version', 1000), 'of another version');
  assert.equal(optionOf(number('penalty_last')), 'penaltyLast');
  assert.equal(optionOf(0), undefined);
});

describe('file names and option names', () => {
  test('all files of a split model are derived from the name of any one', () => {
    const all = ['a-00001-of-00003.GGUF?x', 'a-00002-of-00003.GGUF?x', 'a-00003-of-00003.GGUF?x'];
    assert.deepEqual(splitNames(all[1]), all);
    for (const name of [
      'model.gguf',
      'a-1-of-3.gguf',
      'a-00001-of-00000.gguf',
      'a-00001-of-00003',
    ]) {
      assert.deepEqual(splitNames(name), [name]);
    }
    assert.deepEqual(splitNames('a-00001-of-00001.gguf'), ['a-00001-of-00001.gguf']);
  });

  test('a missing file of a split model is reported', () => {
    assert.equal(nameOfFile(['a', 'b'], 1), 'b');
    assert.throws(() => nameOfFile(['a', 'b'], 2), {
      code: 'ARG',
      message: /file 3 is needed, but only 2 given/,
    });
    assert.match(fileIsMissing(0, 0).message, /file 1 is needed, but only 0 given/);
  });

  test('unknown options are reported with the nearest name', () => {
    const known = /** @type {any[]} */ (['temperature', 'maxTokens', 'topP']);
    const check = (/** @type {any} */ options) => () => checkNames(options, known, ['n']);
    assert.equal(check({ topP: 1, n: 2, other: undefined })().topP, 1);
    assert.throws(
      check({ temprature: 1 }),
      /^WickError: temprature is not an option; did you mean temperature\?$/,
    );
    assert.throws(check({ max_tokens: 1 }), /did you mean maxTokens\?$/);
    assert.throws(check({ Top_P: 1 }), /did you mean topP\?$/);
    // at most a third of the letters may differ
    assert.throws(check({ maxTokenXYZ: 1 }), /did you mean maxTokens\?$/);
    assert.throws(check({ tXYZ: 1 }), /^WickError: tXYZ is not an option$/);
    for (const none of [null, 5, undefined]) {
      assert.throws(check(none), { code: 'ARG', message: 'options must be an object' });
    }
  });
});

test('progress: intervals of reports, speed over the last seconds, remaining time', () => {
  /** @type {import('../../js/connection/messages.js').Progress[]} */
  const reports = [];
  const meter = new ProgressMeter((progress) => reports.push(progress));
  const at = (/** @type {number} */ ms, /** @type {any[]} */ ...args) => {
    fakeMs = ms;
    const before = reports.length;
    meter.update(.../** @type {[number, number]} */ (args));
    return reports.length > before ? reports[reports.length - 1] : undefined;
  };
  const none = { bytesPerSecond: undefined, secondsLeft: undefined };
  assert.deepEqual(at(1000, 0, 9000), { loaded: 0, total: 9000, ...none, phase: 'loading' });
  assert.equal(at(1099, 100, 9000), undefined);
  assert.equal(at(1100, 100, 9000)?.bytesPerSecond, undefined);
  assert.equal(at(1199, 150, 9000, 'ready')?.phase, 'ready');
  assert.equal(at(1249, 200, 9000, 'ready')?.bytesPerSecond, undefined);
  const measured = at(1250, 250, 9000, 'ready');
  assert.deepEqual([measured?.bytesPerSecond, measured?.secondsLeft], [1000, 8.75]);
  assert.equal(at(1350, 300, undefined)?.secondsLeft, undefined);
  assert.equal(at(5000, 4000, 3000)?.secondsLeft, 0);
  // samples older than four seconds are dropped: the first one left is (1250, 250)
  assert.equal(at(5250, 4250, 9000)?.bytesPerSecond, 1000);
  assert.equal(at(5300, 8300, 9000, 'ready')?.bytesPerSecond, (8000 / 3950) * 1000);
  assert.equal(at(60_000, 8300, 9000)?.bytesPerSecond, 0);
  assert.equal(reports.at(-1)?.secondsLeft, undefined);
});

test('progress: a total that becomes known is reported immediately, regardless of the interval', () => {
  /** @type {(number | undefined)[]} */
  const totals = [];
  const meter = new ProgressMeter(({ total }) => totals.push(total));
  fakeMs = 1000;
  meter.update(0, undefined);
  meter.update(500, undefined);
  meter.update(600, 9000); // shown for a long time if the server stalls now
  meter.update(700, 9000);
  assert.deepEqual(totals, [undefined, 9000]);
});

describe('errors', () => {
  test('status codes match src/base/status.h', () => {
    assert.deepEqual([0, 1, 7, 18, 19, -1].map(codeOfStatus), [
      ...['OK', 'ARG', 'NOMEM', 'ABORTED', 'INTERNAL', 'INTERNAL'],
    ]);
  });

  test('are preserved in messages between threads', () => {
    const error = new WickError('HTTP', 'no', { status: 404 });
    const plain = structuredClone(toPlainError(error));
    assert.deepEqual(plain, { code: 'HTTP', message: 'no', cause: { status: 404 } });
    const again = fromPlainError(plain);
    assert.ok(again instanceof WickError);
    assert.deepEqual([again.code, again.message, again.cause], ['HTTP', 'no', { status: 404 }]);
    assert.deepEqual(toPlainError(new WickError('A', 'b', new RangeError('c'))).cause, {
      ...{ name: 'RangeError', message: 'c' },
    });
    assert.equal(toPlainError(new TypeError('t')).message, 'TypeError: t');
    assert.deepEqual(toPlainError(5), { code: 'INTERNAL', message: '5', cause: 5 });
    const silent = Object.create(null);
    assert.equal(toPlainError(silent).message, 'a value that cannot be converted to a string');
    assert.match(String(toPlainError(new WickError('A', 'b', () => 1)).cause), /=> 1/);
  });

  test('WickErrors are reported, traps are rethrown', () => {
    const error = new WickError('A', 'b');
    assert.equal(refusalOf(error), error);
    assert.equal(refusalOf(new TypeError('t')).code, 'ARG');
    assert.throws(() => refusalOf(new RangeError('r')), RangeError);
  });

  test('signals', () => {
    throwIfAborted(undefined);
    throwIfAborted(null);
    throwIfAborted(new AbortController().signal);
    assert.throws(
      () => throwIfAborted(AbortSignal.abort('why')),
      (reason) => reason === 'why',
    );
    assert.throws(() => throwIfAborted(/** @type {any} */ ({})), { code: 'ARG' });
    assert.equal(/** @type {any} */ (abortError()).name, 'AbortError');
  });
});

test('only the package’s own messages are accepted from a channel', () => {
  const output = { id: 1, texts: ['a'], tokens: [{}], prefill: { done: 0, total: 3 } };
  const error = { code: 'A', message: 'b' };
  const call = { index: 0, function: { arguments: '' } };
  for (const message of [
    { type: 'ready', info: { load: {} } },
    { type: 'failed', error },
    { type: 'progress', progress: {} },
    {
      type: 'step',
      outputs: [{ ...output, deltas: [[{ content: 'a' }, { tool_calls: [call] }]] }],
    },
    { type: 'step', outputs: [output, { id: 0, texts: [], tokens: [], done: {}, error }] },
    { type: 'result', id: 0 },
    { type: 'error', id: 3, error },
  ]) {
    assert.ok(isFromLeader(message), JSON.stringify(message));
    assert.ok(!isToLeader(message), JSON.stringify(message));
  }
  for (const message of [
    ...[null, undefined, 'step', {}, { type: 'toString' }, { type: 'closed' }],
    ...[
      { type: 'ready', info: {} },
      { type: 'ready', info: null },
      { type: 'failed', error: {} },
    ],
    ...[{ type: 'failed', error: { code: 1, message: 'b' } }, { type: 'progress' }],
    ...[
      { type: 'failed', error: { code: 'A', message: 1 } },
      { type: 'step', outputs: {} },
    ],
    ...[
      { type: 'result', id: -1 },
      { type: 'result', id: 0.5 },
      { type: 'error', id: 1 },
    ],
    { type: 'error', id: '1', error },
    ...[
      { id: -1 },
      { texts: 'a' },
      { texts: [1] },
      { tokens: {} },
      { tokens: [1] },
      { deltas: {} },
      { deltas: [{}] },
      { deltas: [[1]] },
      { deltas: [[{ tool_calls: {} }]] },
      { deltas: [[{ tool_calls: [{ function: {} }] }]] },
      { deltas: [[{ tool_calls: [{ index: 0 }] }]] },
      { done: 1 },
    ].map((wrong) => ({ type: 'step', outputs: [{ ...output, ...wrong }] })),
    ...[{ prefill: 1 }, { prefill: { done: 0 } }, { prefill: { total: 1 } }, { error: {} }].map(
      (wrong) => ({ type: 'step', outputs: [{ ...output, ...wrong }] }),
    ),
  ]) {
    assert.ok(!isFromLeader(message), JSON.stringify(message));
  }
  const generate = { type: 'generate', id: 0, completions: 1, input: {}, settings: {} };
  for (const message of [
    ...[generate, { ...generate, completions: 16 }],
    { type: 'call', id: 1, method: 'm', args: [] },
    ...[
      { type: 'ack', id: 0, count: 0 },
      { type: 'cancel', id: 0 },
    ],
  ]) {
    assert.ok(isToLeader(message), JSON.stringify(message));
    assert.ok(!isFromLeader(message), JSON.stringify(message));
  }
  for (const message of [
    ...[{ id: -1 }, { completions: 0 }, { completions: 17 }, { input: null }, { settings: 1 }].map(
      (wrong) => ({ ...generate, ...wrong }),
    ),
    ...[{ completions: 1.5 }, { completions: '1' }].map((wrong) => ({ ...generate, ...wrong })),
    { type: 'call', id: 1, method: 1, args: [] },
    { type: 'call', id: 1, method: 'm', args: {} },
    { type: 'call', id: -1, method: 'm', args: [] },
    ...[{ type: 'ack', id: 0 }, { type: 'ack', count: 0 }, { type: 'cancel' }, null, 5],
  ]) {
    assert.ok(!isToLeader(message), JSON.stringify(message));
  }
  assert.deepEqual(['a', '', 5, undefined].map(isClientName), [true, false, false, false]);
});

test('the bytes of a state are copied in pieces, and only as many as fit', () => {
  const memory = new Uint8Array(8);
  const heap = /** @type {any} */ ({
    read: (/** @type {number} */ at, /** @type {number} */ size) => memory.slice(at, at + size),
    write: (/** @type {number} */ at, /** @type {Uint8Array} */ bytes) => memory.set(bytes, at),
  });
  const state = new StateBytes(() => heap);
  memory.set([1, 2, 3, 4, 5, 6, 7, 8]);
  state.begin(new Uint8Array(6));
  assert.deepEqual(
    [state.take(0, 4), state.take(4, 3), state.take(4, 1), state.take(0, -1)],
    [...[true, false, true, false]],
  );
  assert.deepEqual([...state.end()], [1, 2, 3, 4, 5]);
  assert.equal(state.end().byteLength, 0);
  state.begin(new Uint8Array([9, 8, 7]));
  assert.deepEqual([state.give(1, 2), state.give(5, 2), state.give(7, 1)], [true, false, true]);
  assert.deepEqual([...memory], [1, 9, 8, 4, 5, 6, 7, 7]);
  assert.equal(state.give(0, 1), false);
});

describe('memory', () => {
  /** Allocates consecutive blocks in a memory of one page. @param {number} [limit] @param {boolean} [isWide] */
  function heapOf(limit = 65_536, isWide = false) {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 3 });
    /** @type {[number, number][]} */
    const freed = [];
    let top = 4096;
    const exports = /** @type {any} */ ({
      numbers_address: () => 64,
      error_address: () => 1024,
      alloc: (/** @type {number} */ size) => {
        if (top + size > limit) return 0;
        top += size;
        return top - size;
      },
      free: (/** @type {number} */ address, /** @type {number} */ size) =>
        freed.push([address, size]),
      isWide,
    });
    return { memory, freed, heap: new Heap(memory, exports), view: new DataView(memory.buffer) };
  }

  test('reads 64-bit numbers and the last error', () => {
    const { heap, view } = heapOf();
    view.setUint32(64 + 8, 5, true);
    view.setUint32(64 + 12, 3, true);
    assert.equal(heap.number(1), 5 + 3 * 2 ** 32);
    view.setUint32(1024, 7, true);
    view.setUint32(1024 + 4, 3, true);
    view.setUint32(1024 + 8, 9, true);
    view.setUint32(1024 + 12, 2, true);
    for (const i of [0, 1, 2]) view.setUint32(1024 + 16 + 8 * i, 10 + i, true);
    heap.write(1024 + 40, new TextEncoder().encode('nö\0behind'));
    assert.deepEqual(heap.lastError(), {
      ...{ status: 7, subject: 3, offset: 9 + 2 * 2 ** 32 },
      ...{ numbers: [10, 11, 12], message: 'nö' },
    });
    view.setUint32(1024 + 12, 0xffffffff, true);
    assert.equal(heap.lastError().offset, undefined);
  });

  test('copies are preserved, and grown memory is visible', () => {
    const { heap, memory } = heapOf();
    heap.write(100, new Uint8Array([1, 0, 0, 0, 255, 255, 255, 255]));
    const copy = heap.read(100, 2);
    assert.deepEqual([...heap.readInts(100, 2)], [1, -1]);
    memory.grow(1);
    assert.equal(heap.sizeBytes, 2 * 65_536);
    heap.write(70_000, new Uint8Array([97, 98]));
    assert.equal(heap.readText(70_000, 2), 'ab');
    assert.deepEqual([...copy, ...heap.read(100, 1)], [1, 0, 1]);
  });

  test('arguments are terminated, in order, and freed', () => {
    const { heap, freed } = heapOf();
    const passed = new Passed(heap);
    const [address, sizeBytes] = passed.text('aö');
    assert.deepEqual([sizeBytes, [...heap.read(address, 4)]], [3, [97, 195, 182, 0]]);
    const ints = passed.ints([1, -2]);
    assert.deepEqual([...heap.readInts(ints, 2)], [1, -2]);
    const record = passed.record([-1, 0.5, 1], 'ufa');
    assert.deepEqual([...heap.readInts(record, 3)], [-1, 0x3f000000, 1]);
    passed.free();
    passed.free();
    assert.deepEqual(freed, [
      [address, 4],
      [ints, 8],
      [record, 12],
    ]);
    const small = new Passed(heapOf(4100).heap);
    assert.equal(small.room(4), 4096);
    assert.throws(() => small.room(1), /linear memory: cannot allocate 1 bytes/);
  });

  test('64-bit addresses take 8 bytes of a record, at the right offset', () => {
    const { heap, freed } = heapOf(65_536, true);
    const passed = new Passed(heap);
    const high = 5 * 2 ** 32 + 7;
    const two = passed.record([1, high, 0.5, 2, 3, 4], 'uaf');
    const words = [...heap.readInts(two, 12)];
    assert.deepEqual(words, [1, 0, 7, 5, 0x3f000000, 0, 2, 0, 3, 0, 0x40800000, 0]);
    const addresses = passed.record([high, 8], 'a');
    assert.deepEqual([...heap.readInts(addresses, 4)], [7, 5, 8, 0]);
    passed.free();
    assert.deepEqual(
      freed.map(([, size]) => size),
      [48, 16],
    );
    assert.deepEqual([unsigned(-1), unsigned(high)], [2 ** 32 - 1, high]);
  });

  test('every field of a request and of a configuration is filled', () => {
    const { heap } = heapOf();
    const passed = new Passed(heap);
    const counts = { maxTokens: 7, topK: 8, penaltyLast: 9, logprobs: 10, tokenizeFlags: 3 };
    const floats = { temperature: 0.5, topP: 0.25, minP: 0.125, repeatPenalty: 1.5 };
    const samplers = {
      ...{ typicalP: 0.5, topNSigma: 1, xtcProbability: 0.25, xtcThreshold: 0.125, mirostat: 2 },
      ...{
        dynatempRange: 1.5,
        dynatempExponent: 2,
        dryMultiplier: 2.5,
        dryBase: 3,
        dryAllowedLength: 4,
      },
      ...{ dryPenaltyLast: -1, mirostatTau: 3.5, mirostatEta: 4.5, adaptiveTarget: 0.75 },
      ...{ adaptiveDecay: 0.625, samplers: 'kt', drySequenceBreakers: ['x', 'yz'] },
    };
    /** @type {import('../../js/wasm/engine_records.js').NativeRequest} */
    const request = {
      ...{ ...counts, ...floats, frequencyPenalty: 2, presencePenalty: 4, prompt: 'text' },
      ...{ seed: (5n << 32n) | 6n, logitBias: [[11, -0.5]], logprob: true, stop: ['a', 'bc'] },
      ...{
        healing: true,
        thinkingBudgetTokens: 17,
        reasoningEnding: '<think>',
        asksHost: true,
        ignoreEnd: true,
        printSpecial: true,
        session: 12,
        prefillOnly: true,
        drop: [13, 14],
      },
      ...{ priority: -1, passesWaited: 15, speculation: 'always', salt: 'salt', forced: [16] },
      ...{
        completions: 2,
        grammar: { kind: 3, text: '[ab]+', begun: 'a', isWhole: true },
        conversation: { json: '{}', nowS: 1, toolChoice: '"auto"', oneCall: true },
        logprobsAfter: true,
      },
      ...samplers,
      adapters: [{ name: 'a', scale: 1 }],
    };
    const adapters = /** @type {any} */ ({ pass: () => 1 });
    const byText = requestWords(request, passed, adapters);
    const byTokens = requestWords({ ...request, prompt: [1, 2, 3] }, passed, adapters);
    // a template variable named tools does not define a tool
    const chat = { json: '{"tools":[{"name":"a"}]}', nowS: 1 };
    const without = requestWords({ ...request, conversation: chat }, passed, adapters);
    assert.equal(heap.readText(without[REQUEST.toolChoice], 6), '"none"');
    const word = (/** @type {number} */ at) => byText[at] || byTokens[at];
    const empty = Array.from(byText.keys()).filter((at) => word(at) === 0);
    assert.deepEqual(empty, []);
    assert.equal(byText[REQUEST.priority] | 0, -1);
    assert.deepEqual([...heap.readInts(byText[REQUEST.stops + 1], 2)], [1, 2]);
    assert.equal(byText[REQUEST.grammarKind], 3);
    assert.equal(heap.readText(byText[REQUEST.grammar], 5), '[ab]+');
    assert.equal(byText[REQUEST.grammar + 1], 5);
    assert.equal(byText[REQUEST.limitsReasoning], 1);
    assert.equal(byText[REQUEST.reasoningTokens], 17);
    assert.equal(heap.readText(byText[REQUEST.reasoningEnding], 7), '<think>');
    assert.equal(byText[REQUEST.reasoningEnding + 1], 7);
    const words = heap.readInts(byText[REQUEST.sampling], layout.SAMPLING_KINDS.length);
    const chain = new Float32Array(words.slice().buffer);
    const unset = Array.from(words.keys()).filter((at) => words[at] === 0);
    assert.deepEqual(unset, [SAMPLING.logprobsAfter], 'set by a flag of the request');
    const [token, bias] = heap.readInts(words[SAMPLING.bias], 2);
    assert.deepEqual([token, bias], [11, 0xbf000000 | 0]);
    assert.deepEqual([words[SAMPLING.seed], words[SAMPLING.seed + 1]], [6, 5]);
    for (const [index, [name, row]] of Object.entries(samplingNumbers).entries()) {
      const whole = 'whole' in row;
      const at = SAMPLING.temperature + index;
      assert.equal(whole ? words[at] : chain[at], /** @type {any} */ (request)[name], name);
    }
    assert.equal(heap.readText(words[SAMPLING.samplers], 2), 'kt');
    assert.equal(words[SAMPLING.drySequenceBreakers + 2], 2);
    assert.deepEqual([...heap.readInts(words[SAMPLING.drySequenceBreakers + 1], 2)], [1, 2]);

    /** @type {import('../../js/wasm/engine_records.js').NativeConfig} */
    const settings = {
      ...{ threads: 2, contextSize: 3, batchSize: 4, kType: 'f32', vType: 'q4', kvTokens: 5 },
      ...{ memoryLimit: 2 ** 33 + 7, directoryOnly: true, metrics: true, timerGrainUs: 6 },
      ...{ chooseThreads: true, noPrefixCache: true, noPredictor: true, swap: 2 },
      ...{ tables: 'outside', grammarMemory: 8, maxTiles: 9, maxImageTokens: 10 },
      mediaLikeLlamaCpp: true,
    };
    const plain = configWords(settings, passed);
    assert.deepEqual(
      [...plain],
      [7, 2, 3, 4, 5, 8, 30e6, 9, 10, 1, 1, 1, 1, 2, 1, 3, 6, 1, 2, 0, 0, 2, 1],
    );
    const named = configWords({ ...settings, preTokenizer: 'qwen2' }, passed);
    assert.equal(named[CONFIG.preTokenizer + 1], 5);
    assert.equal(heap.readText(named[CONFIG.preTokenizer], 5), 'qwen2');
  });

  test('events include their alternatives and their text', () => {
    const words = new TextEncoder().encode('hé');
    const sizes = [80 + 16 + 8, 80];
    const bytes = new Uint8Array(sizes[0] + sizes[1]);
    const view = new DataView(bytes.buffer);
    for (const [index, at] of [0, sizes[0]].entries()) {
      view.setUint32(at, sizes[index], true);
      for (const offset of [4, 8, 36, 40, 44]) view.setUint32(at + offset, offset + index, true);
      for (const offset of [28, 30, 32, 34]) view.setUint16(at + offset, offset + index, true);
      view.setInt32(at + 12, -1 - index, true);
      view.setFloat32(at + 16, -0.5, true);
      for (const offset of [48, 56, 64, 72]) view.setFloat64(at + offset, offset + 0.5, true);
    }
    view.setUint32(20, 2, true);
    view.setUint32(24, words.byteLength, true);
    for (const i of [0, 1]) {
      view.setInt32(80 + 8 * i, i + 5, true);
      view.setFloat32(84 + 8 * i, -i - 0.25, true);
    }
    bytes.set(words, 96);
    const [first, second, none] = decodeEvents(bytes);
    const common = { logprob: -0.5, queueMs: 48.5, prefillMs: 56.5, decodeMs: 64.5, ttftMs: 72.5 };
    assert.deepEqual(first, {
      ...{ ...common, request: 4, kind: 8, token: -1, finish: 28 },
      ...{
        stop: 30,
        status: 32,
        subject: 34,
        tokensPrompt: 36,
        tokensCached: 40,
        tokensOut: 44,
        text: 'hé',
        id: '',
      },
      top: [
        { token: 5, logprob: -0.25 },
        { token: 6, logprob: -1.25 },
      ],
    });
    assert.deepEqual([second.request, second.token, second.text, second.top], [5, -2, '', []]);
    assert.equal(none, undefined);
  });
});

describe('chat', () => {
  /** Returns the engine request for a body. @param {any} body @returns {any} */
  function askedBy(body) {
    /** @type {any[]} */
    const asked = [];
    const link = /** @type {any} */ ({
      check() {},
      generate(/** @type {any} */ message, /** @type {any[]} */ waiters) {
        asked.push({ ...message, count: waiters.length });
        return waiters.map(() => ({ acknowledge() {}, cancel() {} }));
      },
    });
    const messages = [{ role: 'user', content: 'Hi' }];
    // no output arrives: only the requests are checked
    new ChatCompletions(link, 'm').create({ messages, seed: 7, ...body }).catch(() => {});
    return asked[0];
  }

  test('every parameter is passed to the engine by name', () => {
    const body = {
      ...{ max_tokens: 11, temperature: 0.25, top_k: 12, top_p: 0.5, min_p: 0.125 },
      ...{ repeat_penalty: 1.5, frequency_penalty: 0.75, presence_penalty: -0.75, seed: 13 },
      ...{ stop: ['x'], logit_bias: { 3: -4 }, logprobs: true, top_logprobs: 5, priority: 6 },
      ...{ speculation: 'always', salt: 'tenant', n: 3, chat_template_kwargs: { a: 1 } },
      thinking_budget_tokens: 17,
      adapters: [{ name: 'a', scale: 0.5 }, { name: 'b' }],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'null' } },
      },
    };
    const { settings, input, wantsTokens, count } = askedBy(body);
    assert.deepEqual(settings, {
      ...samplersOf({}),
      ...{ maxTokens: 11, temperature: 0.25, topK: 12, topP: 0.5, minP: 0.125 },
      ...{ repeatPenalty: 1.5, frequencyPenalty: 0.75, presencePenalty: -0.75 },
      ...{ seed: 13n, logitBias: [[3, -4]], logprob: true, logprobs: 5, stop: ['x'] },
      ...{
        healing: false,
        thinkingBudgetTokens: 17,
        asksHost: false,
        ignoreEnd: false,
        printSpecial: false,
        priority: 6,
        speculation: 'always',
      },
      ...{ salt: 'tenant', forced: [], grammar: { kind: 2, text: '{"type":"null"}' } },
      logprobsAfter: false,
      adapters: [
        { name: 'a', scale: 0.5 },
        { name: 'b', scale: 1 },
      ],
    });
    assert.deepEqual(input.variables, { a: 1 });
    assert.deepEqual([wantsTokens, count], [true, 3]);
    assert.equal(askedBy({ max_tokens: 1, max_completion_tokens: 2 }).settings.maxTokens, 2);
  });

  test('samplers have the same names as in llama.cpp’s server', () => {
    const body = {
      ...{ typical_p: 0.5, top_n_sigma: 1, xtc_probability: 0.25, xtc_threshold: 0.125 },
      ...{ dynatemp_range: 1.5, dynatemp_exponent: 2, dry_multiplier: 2.5, dry_base: 3 },
      ...{ dry_allowed_length: 4, dry_penalty_last_n: 5, dry_sequence_breakers: ['x'] },
      ...{ mirostat: 2, mirostat_tau: 3.5, mirostat_eta: 4.5, adaptive_target: 0.75 },
      ...{ adaptive_decay: 0.625, samplers: ['top_k', 'temperature'], repeat_last_n: -1 },
      post_sampling_probs: true,
    };
    const { settings } = askedBy(body);
    assert.deepEqual(settings, {
      ...settingsOf({ seed: 7 }),
      ...{ typicalP: 0.5, topNSigma: 1, xtcProbability: 0.25, xtcThreshold: 0.125, mirostat: 2 },
      ...{ dynatempRange: 1.5, dynatempExponent: 2, dryMultiplier: 2.5, dryBase: 3 },
      ...{ dryAllowedLength: 4, dryPenaltyLast: 5, mirostatTau: 3.5, mirostatEta: 4.5 },
      ...{ adaptiveTarget: 0.75, adaptiveDecay: 0.625, samplers: 'kt' },
      ...{ drySequenceBreakers: ['x'], penaltyLast: -1, logprobsAfter: true },
    });
    const nulls = Object.fromEntries(Object.keys(body).map((name) => [name, null]));
    assert.deepEqual(askedBy(nulls).settings, settingsOf({ seed: 7 }));
  });

  test('an option that is omitted or null has its default', () => {
    const names = [
      ...['max_tokens', 'max_completion_tokens', 'temperature', 'top_k', 'top_p', 'min_p', 'stop'],
      ...['repeat_penalty', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'priority'],
    ];
    const { settings, input, wantsTokens, count } = askedBy({});
    assert.deepEqual(settings, settingsOf({ seed: 7 }));
    assert.deepEqual([input.variables, wantsTokens, count], [{}, false, 1]);
    const nulls = askedBy(Object.fromEntries(names.map((name) => [name, null])));
    assert.deepEqual(nulls.settings, settings);
    assert.equal(askedBy({ logprobs: true }).settings.logprob, true);
    assert.equal(askedBy({ top_logprobs: 2 }), undefined);
  });

  test('messages consist of strings', () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ];
    const given = [{ role: 'user', content: parts, name: 'n' }, { role: 'assistant' }];
    // the engine joins parts, and treats missing content as empty
    assert.deepEqual(messagesOf(given), given);
    assert.throws(() => messagesOf([]), { code: 'ARG', message: /at least one message/ });
    assert.throws(() => messagesOf('a'), /at least one message/);
    assert.throws(() => messagesOf([given[1], {}]), /messages\[1\] has no role/);
    assert.throws(() => messagesOf(new Array(2)), /messages\[0\] has no role/);
    assert.throws(
      () => messagesOf([{ role: 'user', content: 5 }]),
      /messages\[0\]\.content must be/,
    );
    for (const part of [{ type: 'image_url' }, { type: 'audio', audio: null }]) {
      const messages = [{ role: 'user', content: [part] }];
      assert.throws(() => messagesOf(messages), { code: 'ARG', message: /is empty/ });
    }
    for (const part of [{ type: 'file' }, { type: 'text' }, null]) {
      const messages = [{ role: 'user', content: [part] }];
      assert.throws(() => messagesOf(messages), { code: 'UNSUPPORTED' });
    }
  });
});

describe('listeners on a signal', () => {
  /** Returns a signal and the number of its listeners. */
  function heard() {
    const controller = new AbortController();
    const { signal } = controller;
    const heard = { controller, signal, listeners: 0, added: 0 };
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (/** @type {any[]} */ ...args) => {
      heard.listeners++;
      heard.added++;
      Reflect.apply(addEventListener, signal, args);
    };
    signal.removeEventListener = (/** @type {any[]} */ ...args) => {
      heard.listeners--;
      Reflect.apply(removeEventListener, signal, args);
    };
    return heard;
  }

  test('all waiters share one listener, which is removed with the last waiter', () => {
    const one = heard();
    /** @type {string[]} */
    const called = [];
    const action = () => void called.push('twice');
    const stops = [onAbort(one.signal, action), onAbort(one.signal, action)];
    stops.push(onAbort(one.signal, () => called.push('once')));
    assert.deepEqual([one.listeners, one.added], [1, 1]);
    stops[0]();
    stops[0]();
    assert.equal(one.listeners, 1, 'the same function is still waiting');
    one.controller.abort();
    assert.deepEqual(called, ['twice', 'once']);
    for (const stop of stops) stop();
    assert.equal(one.listeners, 0);
    const again = onAbort(one.signal, action);
    assert.deepEqual([one.listeners, one.added], [1, 2]);
    again();
    again();
    assert.equal(one.listeners, 0, 'removed once');
    onAbort(undefined, action)();
  });

  test('an engine whose caller aborted is closed, and no listener remains', async () => {
    const one = heard();
    /** @type {number[]} */
    const undone = [];
    const undo = (/** @type {number} */ made) => void undone.push(made);
    assert.equal(await unlessAborted(Promise.resolve(1), one.signal, undo), 1);
    assert.deepEqual([one.listeners, one.added, undone], [0, 1, []]);
    let make = (/** @type {number} */ _) => {};
    const made = new Promise((settle) => {
      make = settle;
    });
    const waiting = unlessAborted(made, one.signal, undo);
    one.controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    assert.equal(one.listeners, 0);
    make(2);
    await made;
    assert.deepEqual(undone, [2]);
  });
});

describe('closing a session', () => {
  /** @param {() => Promise<unknown>} answer */
  function sessionOf(answer) {
    const link = {
      isEnded: false,
      calls: 0,
      call: (/** @type {string} */ method, /** @type {unknown[]} */ args) => {
        link.calls++;
        assert.deepEqual([method, args], ['closeSession', [7]]);
        return answer();
      },
    };
    return { link, session: new Session(/** @type {any} */ (link), 7) };
  }
  const failing = (/** @type {string} */ code) => () => Promise.reject(new WickError(code, 'gone'));

  test('that was lost with its leader or its engine succeeds', async () => {
    const { link, session } = sessionOf(failing('LEADER_GONE'));
    for (let i = 0; i < 2; i++) await session.close();
    assert.equal(link.calls, 1);
    const other = sessionOf(failing('CLOSED'));
    const closing = other.session.close();
    other.link.isEnded = true;
    await closing;
    const ended = sessionOf(failing('CLOSED'));
    ended.link.isEnded = true;
    await ended.session.close();
    assert.equal(ended.link.calls, 0);
  });

  test('that fails is reported, and can be retried', async () => {
    let answer = failing('BUSY');
    const { link, session } = sessionOf(() => answer());
    await assert.rejects(session.close(), { code: 'BUSY' });
    answer = /** @type {any} */ (async () => {});
    await session[Symbol.asyncDispose]();
    await session.close();
    assert.equal(link.calls, 2);
  });
});

describe('storage full', () => {
  test('is reported as STORAGE_FULL for every system error', () => {
    const codes = ['ENOSPC', 'EDQUOT'].map((code) => storageError('a', { code }));
    const quota = storageError('a', new DOMException('no', 'QuotaExceededError'));
    for (const { code, message } of [...codes, quota]) {
      assert.deepEqual([code, message], ['STORAGE_FULL', 'a: cannot be saved, storage is full']);
    }
  });

  /** Simulates storage without space for files. @param {import('node:test').TestContext} t @param {object} file */
  function pretendStorage(t, file) {
    /** @type {string[]} */
    const removed = [];
    const folder = {
      getDirectoryHandle: async () => folder,
      getFileHandle: async () => file,
      removeEntry: async (/** @type {string} */ name) => void removed.push(name),
    };
    const found = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
    const value = { storage: { getDirectory: async () => folder } };
    Object.defineProperty(globalThis, 'navigator', { value, configurable: true });
    t.after(() => {
      if (found) Object.defineProperty(globalThis, 'navigator', found);
      else Reflect.deleteProperty(globalThis, 'navigator');
    });
    return removed;
  }
  const bytes = new Uint8Array(10);

  test('in a page: existing data stays, an empty file is removed', async (t) => {
    let aborted = 0;
    let size = 5;
    const full = new DOMException('no', 'QuotaExceededError');
    const removed = pretendStorage(t, {
      getFile: async () => ({ size }),
      createWritable: async () => ({
        write: async () => {
          throw full;
        },
        abort: async () => void aborted++,
      }),
    });
    await assert.rejects(writeFile('kept', bytes), full);
    assert.deepEqual([aborted, removed], [1, []]);
    size = 0;
    await assert.rejects(writeFile('new', bytes), full);
    assert.deepEqual([aborted, removed], [2, ['new']]);
  });

  test('in a worker: an incomplete state is removed', async (t) => {
    let closed = 0;
    const room = [4, 3, 0];
    const removed = pretendStorage(t, {
      createSyncAccessHandle: async () => ({
        ...{ truncate() {}, flush() {}, write: () => room.shift() },
        close: () => void closed++,
      }),
    });
    await assert.rejects(writeFile('new', bytes), { code: 'STORAGE_FULL' });
    assert.deepEqual([closed, removed, room], [1, ['new'], []]);
  });

  test('storage for evicted pages may be short, or fail with an error', () => {
    let answer = () => 10;
    const file = new SwapFile({ read: () => answer(), write: () => answer(), close() {} });
    assert.ok(file.open(1, 10));
    assert.ok(file.write(1, 0, bytes));
    answer = () => 9;
    assert.ok(!file.write(1, 0, bytes));
    answer = () => {
      throw Object.assign(new Error('no'), { code: 'ENOSPC' });
    };
    assert.ok(!file.write(1, 0, bytes));
    assert.ok(!file.read(1, 0, bytes));
  });
});

describe('the table of calls', () => {
  test('each function in the table is exported by the modules', () => {
    const folder = join(dist, 'wasm');
    // other builds have the same sources, and not every Node supports their instructions; grammars are not in the table
    const modules = readdirSync(folder).filter((name) =>
      /simd128-(single|threads)\.wasm$/.test(name),
    );
    assert.equal(modules.length, 2);
    const named = Object.values(calls).flatMap((call) => ('native' in call ? [call.native] : []));
    assert.ok(named.length >= 8);
    for (const name of modules) {
      const module = new WebAssembly.Module(readFileSync(join(folder, name)));
      const exported = new Set(WebAssembly.Module.exports(module).map((one) => one.name));
      for (const native of named) assert.ok(exported.has(native), `${name} lacks ${native}`);
    }
  });

  test('a name without a row is not a call, even if every object has such a property', () => {
    const parts = /** @type {any} */ ({});
    for (const name of ['', 'toString', '__proto__', 'constructor', 'native']) {
      assert.equal(callNamed(name), undefined);
      assert.throws(() => answerCall(name, [], parts), { code: 'INTERNAL' });
    }
  });

  test('calls that use a session are recognized', () => {
    const using = Object.keys(calls).filter((name) => usesSession(callNamed(name)));
    assert.deepEqual(using.sort(), [
      ...['closeSession', 'dropFromSession', 'forkSession', 'saveState', 'sessionTokens'],
      'truncateSession',
    ]);
    assert.ok(!usesSession(undefined));
  });
});
