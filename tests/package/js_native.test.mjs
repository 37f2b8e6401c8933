// The JavaScript wrapper of the engine's exports, with a fake instance: the functions that are called,
// their arguments, the contents of memory during the call, and that every block is freed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { subjects } from '../../js/base/option_table.js';
import { AdapterTable } from '../../js/wasm/adapter_table.js';
import { Heap } from '../../js/wasm/heap.js';
import { swapHost } from '../../js/wasm/host_functions.js';
import * as layout from '../../js/wasm/layout.js';
import { NativeEngine } from '../../js/wasm/native_engine.js';
import { StateBytes } from '../../js/wasm/state_transfer.js';
import { createMemory, instantiate, runHelper } from '../../js/wasm/wasm_module.js';
import { CHAT, REQUEST, SAMPLING } from '../support/records.mjs';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const NUMBERS = 1024;
const ERROR = 2048;
const ENGINE = 77;
const STAGING_BYTES = 262144;

/** Returns exports that record their calls. Functions in `acts` are also called for their effects and results. */
function instanceOf() {
  let memory = new WebAssembly.Memory({ initial: 20, maximum: 40 });
  const view = () => new DataView(memory.buffer);
  /** @type {Map<number, number>} block sizes by address */
  const blocks = new Map();
  /** @type {any[]} */
  const log = [];
  /** @type {Record<string, (...values: any[]) => any>} */
  const acts = {};
  let next = 65536;
  let isFull = false;
  const own = /** @type {Record<string, any>} */ ({
    numbers_address: () => NUMBERS,
    error_address: () => ERROR,
    alloc(/** @type {number} */ size) {
      if (isFull) return 0;
      blocks.set(next, size);
      next += Math.ceil((size + 1) / 8) * 8;
      return next - Math.ceil((size + 1) / 8) * 8;
    },
    free(/** @type {number} */ address, /** @type {number} */ size) {
      assert.equal(blocks.get(address), size, `a block of ${size} bytes at ${address}`);
      blocks.delete(address);
    },
    __heap_base: { value: 5000 },
    __stack_pointer: { value: 1 },
  });
  const exports = any(
    new Proxy(own, {
      get(_, name) {
        if (name in own) return own[String(name)];
        return (/** @type {any[]} */ ...values) => {
          log.push([name, ...values]);
          return acts[String(name)]?.(...values) ?? 0;
        };
      },
    }),
  );
  const heap = new Heap(memory, exports);
  const state = new StateBytes(() => heap);
  return {
    ...{ exports, heap, state, log, acts, blocks, memory },
    native: new NativeEngine(heap, exports, ENGINE, state),
    /** @param {WebAssembly.Memory} own the memory of the instance */
    use(own) {
      memory = own;
    },
    full: (/** @type {boolean} */ isIt) => {
      isFull = isIt;
    },
    /** @param {number[]} values */
    numbers(...values) {
      for (const [i, value] of values.entries()) {
        view().setBigUint64(NUMBERS + 8 * i, BigInt(value), true);
      }
    },
    /** @param {number} status @param {string} message @param {string} [subject] */
    fails(status, message, subject = 'none') {
      view().setUint32(ERROR, status, true);
      const number = subjects.findIndex(([name]) => name === subject);
      view().setUint32(ERROR + 4, number, true);
      view().setBigUint64(ERROR + 8, 99n, true);
      for (const i of [0, 1, 2]) view().setBigUint64(ERROR + 16 + 8 * i, BigInt(i + 4), true);
      new Uint8Array(memory.buffer).set(new TextEncoder().encode(`${message}\0`), ERROR + 40);
      return status;
    },
    /** @param {number} address @param {number} size */
    text: (address, size) => Buffer.from(memory.buffer, address, size).toString(),
    /** @param {number} address @param {number} count */
    ints: (address, count) => [
      ...new Int32Array(memory.buffer.slice(address, address + 4 * count)),
    ],
    /** @param {string} text @param {number} [at] */
    put(text, at = 500_000) {
      const bytes = new TextEncoder().encode(text);
      new Uint8Array(memory.buffer).set(bytes, at);
      return [at, bytes.length];
    },
  };
}

describe('loading', () => {
  test('results are read from the right indices', () => {
    const { native, numbers, log } = instanceOf();
    numbers(3, 2 ** 40 + 5, 7, 8, 9, 10, 11, 12, 13);
    assert.deepEqual(native.nextRange(), { file: 3, offset: 2 ** 40 + 5, length: 7 });
    assert.deepEqual(native.loadState(), {
      ...{ bytesWanted: 3, bytesPlaced: 2 ** 40 + 5, files: 8, layersReady: 9 },
      ...{ isDirectoryReady: true, isComplete: true },
    });
    assert.deepEqual(native.counters(), {
      ...{ bytesNow: 2 ** 40 + 5, bytesPeak: 7, allocations: 8, blocksNow: 9, threads: 10 },
      ...{ threadsUsed: { decode: 11, prefill: 12 }, limitBytes: 13, mostBytes: 13 },
      linearBytes: 20 * 65536,
    });
    numbers(0, 0, 0, 0, 0, 0, 0);
    const { isDirectoryReady, isComplete } = native.loadState();
    assert.deepEqual([isDirectoryReady, isComplete], [false, false]);
    native.endFile(2, 500);
    assert.deepEqual(log, [
      ...[
        ['load_next_range', ENGINE],
        ['load_state', ENGINE],
        ['engine_counters', ENGINE],
      ],
      ...[
        ['load_state', ENGINE],
        ['load_end', ENGINE, 2, 500],
      ],
    ]);
  });

  test('bytes go through one buffer, which is freed when all have arrived', () => {
    const { native, numbers, log, acts, blocks, memory, fails, full } = instanceOf();
    const bytes = Uint8Array.from({ length: 2 * STAGING_BYTES + 5 }, (_, i) => i % 251);
    /** @type {Uint8Array[]} */
    const fed = [];
    acts.load_feed = (_, __, ___, address, size) => {
      fed.push(new Uint8Array(memory.buffer, address, size).slice());
    };
    acts.load_state = () => numbers(0, 0, 0, 0, 0, 1, 0);
    native.feed(1, 1000, bytes);
    assert.deepEqual([...blocks.values()], [STAGING_BYTES]);
    const [address] = [...blocks.keys()];
    const feeds = log.splice(0);
    assert.deepEqual(feeds, [
      ['load_feed', ENGINE, 1, 1000, address, STAGING_BYTES],
      ['load_feed', ENGINE, 1, 1000 + STAGING_BYTES, address, STAGING_BYTES],
      ['load_feed', ENGINE, 1, 1000 + 2 * STAGING_BYTES, address, 5],
      ['load_state', ENGINE],
      ['extras_are_wanted'],
    ]);
    assert.ok(Buffer.concat(fed).equals(bytes));
    native.feed(0, 0, bytes.subarray(0, STAGING_BYTES));
    native.feed(0, 0, bytes.subarray(0, 0));
    assert.deepEqual(
      log.splice(0).map(([name]) => name),
      ['load_feed', 'load_state', 'extras_are_wanted', 'load_state', 'extras_are_wanted'],
    );
    assert.deepEqual([...blocks.keys()], [address]);
    acts.load_state = () => numbers(0, 0, 0, 0, 0, 0, 1);
    native.feed(0, 0, bytes.subarray(0, 1));
    assert.equal(blocks.size, 0);
    full(true);
    assert.throws(() => native.feed(0, 0, bytes), {
      code: 'NOMEM',
      message: `linear memory: cannot allocate ${STAGING_BYTES} bytes in addition to ${20 * 65536}`,
    });
    full(false);
    acts.load_feed = () => fails(16, 'of no kind');
    assert.throws(() => native.feed(0, 0, bytes), { code: 'UNSUPPORTED', message: 'of no kind' });
    acts.load_end = () => fails(17, 'too short');
    assert.throws(() => native.endFile(0, 1), { code: 'TRUNCATED' });
    assert.equal(blocks.size, 1);
    native.destroy(); // before all bytes have arrived
    assert.equal(blocks.size, 0);
  });
});

test('memory that has grown is visible to every read', () => {
  /** @type {[(heap: Heap) => unknown, unknown][]} */
  const looks = [
    [(heap) => [...heap.read(70_000, 4)], [0xef, 0xbb, 0xbf, 97]],
    [(heap) => heap.readText(70_000, 4), '\ufeffa'],
    [(heap) => [...heap.readInts(70_000, 1)], [0x61bfbbef]],
    [(heap) => heap.number(0), 21],
    [(heap) => heap.lastError().message, 'it'],
    [(heap) => heap.sizeBytes, 21 * 65536],
  ];
  for (const [look, wanted] of looks) {
    const { heap, memory, put, numbers, fails } = instanceOf();
    memory.grow(1);
    put('\ufeffa', 70_000);
    numbers(21);
    fails(1, 'it');
    assert.deepEqual(look(heap), wanted);
    memory.grow(1);
    heap.write(21 * 65536, Uint8Array.of(8));
    assert.equal(new Uint8Array(memory.buffer)[21 * 65536], 8);
  }
});

describe('errors', () => {
  test('contain the status, the option, the offset and the numbers', () => {
    const { native, acts, fails } = instanceOf();
    acts.request_submit = () => {
      fails(1, 'top_p is 2', 'top_p');
      return 0;
    };
    const request = any({ prompt: [], seed: 0n, logitBias: [], stop: [] });
    assert.throws(
      () => native.submit(request),
      (error) => {
        const { code, message, cause } = any(error);
        assert.deepEqual([code, message], ['ARG', 'top_p is 2 (option topP)']);
        assert.deepEqual(cause, {
          ...{ status: 'WICK_E_ARG', offset: 99, option: 'topP', numbers: [4, 5, 6] },
          subject: 'top_p',
        });
        return true;
      },
    );
    acts.state_load = () => fails(13, 'another model');
    const context = 'The saved state was rejected: another model';
    assert.throws(() => native.restoreState(Uint8Array.of(1)), {
      code: 'MISMATCH',
      message: context,
    });
  });

  test('a failed allocation is reported as NOMEM, other errors are unchanged, and blocks are freed', () => {
    const { native, acts, blocks, full } = instanceOf();
    acts.chat_set_template = () => {
      throw new WebAssembly.RuntimeError('unreachable');
    };
    assert.throws(() => native.setChatTemplate('a'), WebAssembly.RuntimeError);
    assert.equal(blocks.size, 0);
    full(true);
    assert.throws(() => native.setChatTemplate('abc'), {
      code: 'NOMEM',
      message: 'linear memory: cannot allocate 4 bytes',
    });
  });
});

describe('strings', () => {
  test('are tokenized, twice if there are more tokens than bytes', () => {
    const { native, acts, log, blocks, text, numbers, memory } = instanceOf();
    const answer =
      (/** @type {number[]} */ tokens, /** @type {number} */ status = 0) =>
      (
        /** @type {number} */ _,
        /** @type {number} */ at,
        /** @type {number} */ size,
        /** @type {number} */ flags,
        /** @type {number} */ out,
        /** @type {number} */ capacity,
      ) => {
        assert.deepEqual([text(at, size + 1), flags], ['é!\0', 3]);
        assert.equal(blocks.get(out), capacity * 4);
        new Int32Array(memory.buffer).set(tokens, out / 4);
        numbers(status === 0 ? tokens.length : 100);
        return status;
      };
    acts.tokenize = answer([5, -6, 7]);
    assert.deepEqual([...native.tokenize('é!', 3)], [5, -6, 7]);
    assert.equal(log[0].at(-1), 3 + 16);
    assert.equal(blocks.size, 0);
    log.length = 0;
    const many = Array.from({ length: 90 }, (_, i) => i);
    const answers = [answer([], layout.E_FULL), answer(many)];
    acts.tokenize = (...values) => any(answers.shift())(...values);
    assert.deepEqual([...native.tokenize('é!', 3)], many);
    assert.deepEqual(
      log.map((call) => call.at(-1)),
      [19, 100],
    );
    assert.equal(blocks.size, 0);
    const fails = [answer([], layout.E_FULL), () => layout.E_FULL];
    acts.tokenize = (...values) => any(fails.shift())(...values);
    assert.throws(() => native.tokenize('é!', 3));
  });

  test('are decoded from tokens, and the bytes of one token are returned', () => {
    const { native, acts, log, ints, numbers, put, blocks, fails } = instanceOf();
    acts.detokenize_bytes_max = (_, count) => 10 * count;
    acts.detokenize = (_, ids, count, whole, special, out) => {
      assert.deepEqual([ints(ids, count), blocks.get(out)], [[4, -5], 20]);
      put('fïn…', out);
      numbers(6 + 10 * whole + 100 * special - 10 * whole - 100 * special);
      return 0;
    };
    assert.equal(native.detokenize([4, -5], { whole: true, special: false }), 'fïn\ufffd'); // cut inside a character
    native.detokenize([4, -5], { whole: false, special: true });
    const flags = log.filter(([name]) => name === 'detokenize').map((call) => call.slice(4, 6));
    assert.deepEqual(flags, [
      [1, 0],
      [0, 1],
    ]);
    assert.equal(blocks.size, 0);
    log.length = 0;
    acts.token_piece = (_, token, scratch) => {
      assert.deepEqual([token, blocks.get(scratch)], [9, 10]);
      numbers(...put('\u00e9'));
      return 0;
    };
    assert.deepEqual([...native.tokenBytes(9)], [0xc3, 0xa9]);
    assert.deepEqual(log[0], ['detokenize_bytes_max', ENGINE, 1]);
    assert.equal(blocks.size, 0);
    acts.token_piece = () => fails(4, 'no such token');
    assert.throws(() => native.tokenBytes(9), { code: 'RANGE' });
    acts.detokenize = () => fails(4, 'no such token');
    assert.throws(() => native.detokenize([1], { whole: true, special: true }), { code: 'RANGE' });
  });

  test('from the engine: the size is requested first, and may grow before the second call', () => {
    const { native, acts, log, put, blocks } = instanceOf();
    /** @type {[string, () => unknown, number[]][]} */
    const texts = [
      ['info_json', () => native.info(), []],
      ['metrics_json', () => native.metrics(), []],
      ['metrics_prometheus', () => native.metricsText(), []],
      ['stats_json', () => native.stats(), []],
      ['kv_json', () => native.kvStats(), [0]],
      [
        'inspect_json',
        () => native.call({ native: 'inspect_json', takes: ['number'], gives: 'json' }, [6]),
        [6],
      ],
    ];
    for (const [name, read, more] of texts) {
      for (const grown of [0, 60]) {
        const text = JSON.stringify({ a: 'x'.repeat(grown) });
        acts[name] = (_, out, capacity) => {
          if (out === 0) return text.length - grown;
          assert.deepEqual([capacity, blocks.get(out)], [text.length - grown + 64, capacity]);
          put(text, out);
          return text.length;
        };
        log.length = 0;
        const wanted = name === 'metrics_prometheus' ? text : JSON.parse(text);
        assert.deepEqual(read(), wanted);
        assert.deepEqual(log[0], [name, ENGINE, 0, 0, ...more]);
        assert.deepEqual([log[1][1], log[1].slice(4)], [ENGINE, more]);
        assert.equal(blocks.size, 0);
      }
    }
    acts.metrics_prometheus = (_, out) => {
      if (out !== 0) put('a'.repeat(90), out);
      return out === 0 ? 10 : 90;
    };
    assert.equal(native.metricsText(), 'a'.repeat(74)); // it has grown by more than 64 bytes, so it is truncated
    for (const name of ['metrics_json', 'metrics_prometheus']) acts[name] = () => 0;
    assert.deepEqual([native.metrics(), native.metricsText()], [undefined, undefined]);
    native.resetMetrics();
    assert.deepEqual(log.at(-1), ['metrics_reset', ENGINE]);
  });
});

describe('conversations', () => {
  test('templates and prompts', () => {
    const { native, acts, text, put, numbers, blocks, memory, fails } = instanceOf();
    acts.chat_set_template = (_, at, size) => {
      assert.equal(text(at, size + 1), 'chatml\0');
      return 0;
    };
    native.setChatTemplate('chatml');
    const chatAt = (/** @type {number} */ at) => {
      const words = new Uint32Array(memory.buffer, at, layout.CHAT_KINDS.length);
      const textOf = (/** @type {number} */ field) => text(words[field], words[field + 1]);
      return {
        json: textOf(CHAT.json),
        nowS: words[CHAT.nowS],
        parseSpecial: words[CHAT.parseSpecial] === 1,
        prefix: textOf(CHAT.prefix),
      };
    };
    const plain = { json: '{}', nowS: 12 };
    const begun = { json: '{"a":1}', nowS: 5, parseSpecial: true, prefix: 'é' };
    acts.chat_render = (_, at) => {
      assert.deepEqual(chatAt(at), { ...plain, parseSpecial: false, prefix: '' });
      numbers(...put('<é>'));
      return 0;
    };
    assert.equal(native.renderChat(plain), '<é>');
    acts.chat_tokenize = (_, at) => {
      assert.deepEqual(chatAt(at), begun);
      new Int32Array(memory.buffer).set([3, -4], 125_000);
      numbers(500_000, 2);
      return 0;
    };
    assert.deepEqual([...native.tokenizeChat(begun)], [3, -4]);
    assert.equal(blocks.size, 0);
    for (const name of ['chat_set_template', 'chat_render', 'chat_tokenize']) {
      acts[name] = () => fails(15, 'no template');
    }
    for (const call of [
      () => native.setChatTemplate('a'),
      () => native.renderChat(plain),
      () => native.tokenizeChat(plain),
    ]) {
      assert.throws(call, { code: 'FORMAT' });
    }
    assert.equal(blocks.size, 0);
  });
});

describe('requests', () => {
  const request = any({
    ...{
      prompt: 'hi',
      tokenizeFlags: 3,
      maxTokens: 7,
      temperature: 0.5,
      topK: 1,
      topP: 1,
      minP: 0,
    },
    ...{ repeatPenalty: 1, frequencyPenalty: 0, presencePenalty: 0, penaltyLast: 0, seed: 1n },
    ...{ logprob: false, logprobs: 0, stop: ['a', 'bcd', ''], ignoreEnd: false, speculation: true },
    logitBias: [
      [3, 0.5],
      [9, -2],
      [1, 4],
    ],
    ...{ printSpecial: false, priority: 0 },
  });

  test('are passed as records, with unsigned numbers', () => {
    const { native, acts, log, ints, text, blocks, memory } = instanceOf();
    acts.request_submit = (_, at) => {
      const words = ints(at, layout.REQUEST_KINDS.length);
      const word = (/** @type {keyof typeof REQUEST} */ name, after = 0) =>
        words[REQUEST[name] + after];
      assert.equal(text(word('text'), word('text', 1)), 'hi');
      const sampling = ints(word('sampling'), layout.SAMPLING_KINDS.length);
      const [count, biasAt] = [sampling[SAMPLING.bias + 1], sampling[SAMPLING.bias]];
      const floats = [...new Float32Array(memory.buffer.slice(biasAt, biasAt + 24))];
      assert.deepEqual([count, blocks.get(biasAt)], [3, 24]);
      assert.deepEqual([ints(biasAt, 6)[0], ints(biasAt, 6)[2], ints(biasAt, 6)[4]], [3, 9, 1]);
      assert.deepEqual([floats[1], floats[3], floats[5]], [0.5, -2, 4]);
      const sizes = ints(word('stops', 1), 3);
      const stops = ints(word('stops'), 3).map((one, i) => text(one, sizes[i]));
      assert.deepEqual([stops, word('stops', 2)], [['a', 'bcd', ''], 3]);
      for (const name of /** @type {(keyof typeof REQUEST)[]} */ ([
        ...['session', 'prefillOnly', 'dropFirst', 'passesWaited', 'speculation', 'forced'],
        ...['salt', 'grammarKind', 'tokens', 'grammar'],
      ])) {
        assert.equal(word(name), 0, name);
      }
      assert.deepEqual([word('dropFirst', 1), word('forced', 1), word('tokens', 1)], [0, 0, 0]);
      assert.equal(word('completions'), 1);
      return -5;
    };
    assert.equal(native.submit(request), 2 ** 32 - 5);
    assert.equal(blocks.size, 0);
    acts.request_submit = (_, at) => {
      const words = ints(at, layout.REQUEST_KINDS.length);
      return words[REQUEST.speculation] * 100 + words[REQUEST.tokens + 1] + 1;
    };
    assert.equal(native.submit({ ...request, speculation: false, prompt: [1] }), 102);
    assert.equal(native.submit({ ...request, speculation: 'always', prompt: [] }), 201);
    log.length = 0;
    native.cancel(4);
    native.pause(5, true);
    native.pause(6, false);
    acts.passes = () => 8;
    acts.step = () => 2;
    assert.deepEqual([native.passes(), native.step(500)], [8, 2]);
    assert.deepEqual(log, [
      ...[
        ['request_cancel', ENGINE, 4],
        ['request_pause', ENGINE, 5, 1],
      ],
      ...[
        ['request_pause', ENGINE, 6, 0],
        ['passes', ENGINE],
        ['step', ENGINE, 500],
      ],
    ]);
  });

  test('events are read from the engine’s memory, if there are any', () => {
    const { native, acts, numbers, memory } = instanceOf();
    acts.events_take = () => 600_000;
    numbers(0);
    assert.deepEqual(native.takeEvents(), []);
    const view = new DataView(memory.buffer, 600_000);
    for (const [i, at] of [0, layout.EVENT_BYTES].entries()) {
      view.setUint32(at + layout.EVENT_SIZE_BYTES_AT, layout.EVENT_BYTES, true);
      view.setUint32(at + layout.EVENT_REQUEST_AT, 40 + i, true);
    }
    numbers(2 * layout.EVENT_BYTES);
    assert.deepEqual(
      native.takeEvents().map((event) => event.request),
      [40, 41],
    );
  });

  test('embeddings', () => {
    const { native, acts, log, ints, text, numbers, memory, blocks, fails } = instanceOf();
    acts.embed_begin = (_, at) => {
      const [texts, count, ...words] = ints(at, layout.EMBED_KINDS.length);
      assert.deepEqual([count, words], [3, [5, 12, 1, 0, 0, 0]]);
      const items = [0, 1, 2].map((i) => ints(texts + i * 4 * layout.EMBED_TEXT_KINDS.length, 6));
      assert.deepEqual([text(items[0][0], items[0][1]), items[0].slice(2)], ['é', [0, 0, 0, 0]]);
      assert.deepEqual(
        [items[1].slice(0, 4), ints(items[1][4], 2)],
        [
          [0, 0, 0, 0],
          [8, 9],
        ],
      );
      assert.equal(items[1][5], 2);
      const [query, queryBytes, document, documentBytes, ...rest] = items[2];
      const pair = [text(query, queryBytes), text(document, documentBytes)];
      assert.deepEqual(
        [pair, rest],
        [
          ['q', 'doc'],
          [0, 0],
        ],
      );
      return 0;
    };
    const texts = /** @type {any} */ (['é', [8, 9], ['q', 'doc']]);
    const asked = { texts, dimensions: 12, normalize: true, truncate: false };
    native.embedBegin({ ...asked, pooling: 'rank' });
    for (const [index, pooling] of ['model', 'none', 'mean', 'cls', 'last'].entries()) {
      acts.embed_begin = (_, at) => {
        assert.deepEqual(ints(at, 6).slice(2), [index, 0, 0, 1]);
        return 0;
      };
      const other = { texts, dimensions: 0, normalize: false, truncate: true };
      native.embedBegin({ ...other, pooling: any(pooling) });
    }
    assert.equal(blocks.size, 0);
    numbers(2, 3, 7);
    new Float32Array(memory.buffer).set([1, 2, 3, -4, 5, 0.5], 125_000);
    acts.embed_get = () => 500_000;
    log.length = 0;
    const { vector, tokens } = native.embedded(4);
    assert.deepEqual([[...vector], tokens], [[1, 2, 3, -4, 5, 0.5], 7]);
    assert.equal(native.embedStep(900), 2); // the first result
    native.embedEnd();
    assert.deepEqual(log, [
      ...[
        ['embed_get', ENGINE, 4],
        ['embed_step', ENGINE, 900],
        ['embed_end', ENGINE],
      ],
    ]);
    for (const name of ['embed_begin', 'embed_step']) acts[name] = () => fails(16, 'no embeddings');
    assert.throws(() => native.embedBegin({ ...asked, pooling: 'cls' }), { code: 'UNSUPPORTED' });
    assert.throws(() => native.embedStep(1), { code: 'UNSUPPORTED' });
  });

  test('calls described by a row of the table', () => {
    const { native, acts, log, text, numbers, memory, blocks, fails } = instanceOf();
    const call = (/** @type {any} */ row, /** @type {any[]} */ args) =>
      native.call({ native: 'f', takes: [], ...row }, args);
    acts.f = (_, number, one, other, at, size, none, noneBytes) => {
      assert.deepEqual([number, one, other], [5, 1, 0]);
      assert.deepEqual([text(at, size), text(none, noneBytes + 1), noneBytes], ['12', '\0', 0]);
      return 0;
    };
    const takes = ['number', 'flag', 'flag', 'text', 'text'];
    assert.equal(call({ takes }, [5, 'yes', 0, 12, undefined]), undefined);
    assert.equal(log.length, 1);
    assert.equal(blocks.size, 0);
    acts.f = () => -3;
    assert.equal(call({ gives: 'session' }, []), 2 ** 32 - 3);
    acts.f = () => {
      fails(1, 'none');
      return 0;
    };
    assert.throws(() => call({ gives: 'session' }, []), { code: 'ARG' });
    acts.f = () => {
      new Int32Array(memory.buffer).set([6, -7], 125_000);
      numbers(500_000, 2);
      return 0;
    };
    assert.deepEqual(call({ gives: 'tokens' }, []), [6, -7]);
    acts.f = () => fails(11, 'busy');
    assert.throws(() => call({}, []), { code: 'BUSY' });
    assert.throws(() => call({ gives: 'tokens' }, []), { code: 'BUSY' });
  });

  test('states are copied in pieces', () => {
    const { native, acts, log, numbers, state, put, fails, memory } = instanceOf();
    acts.state_bytes = () => {
      numbers(6);
      return 0;
    };
    acts.state_save = () => {
      const [at] = put('abcdef');
      assert.ok(state.take(at, 4) && state.take(at + 4, 1));
      return 0;
    };
    assert.equal(Buffer.from(native.saveState(9)).toString(), 'abcde');
    assert.deepEqual(log.splice(0), [
      ['state_bytes', ENGINE, 9, -1, -1],
      ['state_save', ENGINE, 9, -1, -1],
    ]);
    native.saveState(9, { kType: 'q8', vType: 'q4' });
    assert.deepEqual(log.splice(0), [
      ['state_bytes', ENGINE, 9, 2, 3],
      ['state_save', ENGINE, 9, 2, 3],
    ]);
    assert.equal(state.take(0, 1), false); // all bytes were taken
    acts.state_load = () => {
      assert.ok(state.give(700_000, 3));
      numbers(12, 34);
      return 0;
    };
    assert.deepEqual(native.restoreState(Uint8Array.of(5, 6, 7)), { session: 12, entries: 34 });
    assert.deepEqual([...new Uint8Array(memory.buffer, 700_000, 3)], [5, 6, 7]);
    assert.deepEqual(log.splice(0), [['state_load', ENGINE, 3]]);
    assert.equal(state.give(0, 1), false);
    acts.state_save = () => fails(14, 'short');
    assert.throws(() => native.saveState(0), { code: 'IO' });
    assert.equal(state.take(0, 1), false);
    acts.state_bytes = () => fails(3, 'no session');
    assert.throws(() => native.saveState(0), { code: 'SEQ' });
    acts.state_bytes = () => {
      numbers(2 ** 52);
      return 0;
    };
    assert.throws(() => native.saveState(0), { code: 'NOMEM' });
  });
});

test('the adapters of a request are passed one by one, each by number and scale', () => {
  let made = 0;
  const engine = { run: () => ++made, check: () => {} };
  const table = new AdapterTable(/** @type {any} */ (engine));
  for (const name of ['a', 'b', 'c']) table.add(name);
  const record = (/** @type {Float64Array} */ values, /** @type {string} */ kinds) => [
    ...values,
    kinds,
  ];
  const uses = [
    { name: 'c', scale: 0.5 },
    { name: 'a', scale: -2 },
  ];
  const passed = /** @type {any} */ ({ record });
  assert.deepEqual(table.pass(uses, passed), [3, 0.5, 1, -2, layout.ADAPTER_USE_KINDS]);
  assert.deepEqual(table.pass([], passed), [layout.ADAPTER_USE_KINDS]);
});

describe('an engine', () => {
  const smallest = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
  const name = Buffer.from('helper_main');
  const threaded = Uint8Array.from([
    ...[...smallest, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0],
    ...[7, 4 + name.length, 1, name.length, ...name, 0, 0, 10, 4, 1, 2, 0, 0x0b],
  ]);
  const config = any({
    threads: 3,
    contextSize: 1,
    batchSize: 2,
    kType: 'f16',
    vType: 'f16',
    memoryLimit: 0,
  });

  /** @param {import('node:test').TestContext} t @param {ReturnType<typeof instanceOf>} made replaces new instances */
  function pretend(t, made) {
    /** @type {any[]} */
    const envs = [];
    const { Instance } = WebAssembly;
    any(WebAssembly).Instance = class {
      /** @param {any} _ @param {any} imports */
      constructor(_, imports) {
        envs.push(imports.env);
        made.use(imports.env.memory);
        this.exports = made.exports;
      }
    };
    t.after(() => {
      WebAssembly.Instance = Instance;
    });
    return envs;
  }

  test('is created with its helpers’ memory, used with a draft, and destroyed with both', async (t) => {
    for (const [bytes, helpers] of /** @type {[Uint8Array<ArrayBuffer>, number][]} */ ([
      [smallest, 0],
      [threaded, 2],
    ])) {
      const made = instanceOf();
      const { log, acts, blocks, ints } = made;
      const envs = pretend(t, made);
      acts.engine_create = (at) => {
        const words = ints(at, layout.CONFIG_KINDS.length);
        const { KV_F16 } = layout;
        assert.deepEqual(words.slice(0, 7), [0, 0, 1, 2, 0, 67108864, 30000000]);
        // by default, tables are loaded into memory
        assert.deepEqual(words.slice(7, 16), [...Array(6).fill(0), 3, KV_F16, KV_F16]);
        assert.deepEqual(words.slice(16), [0, 0, 0, 0, 0, 1, 0]);
        return -64;
      };
      /** @type {any[]} */
      const reports = [];
      const module = new WebAssembly.Module(bytes);
      const native = await NativeEngine.create(module, config, {
        onMemory: (memory) => void reports.push(memory),
        onLog: (text) => void reports.push(text),
      });
      const [memory] = reports.splice(0);
      assert.equal(memory.buffer instanceof SharedArrayBuffer, helpers > 0);
      assert.equal(envs[0].memory, memory);
      const pages = memory.buffer.byteLength / 65536;
      assert.equal(pages, 16 + (helpers * layout.HELPER_STACK_BYTES) / 65536);
      assert.deepEqual(log[0], ['start', helpers, 65536]);
      assert.equal(blocks.size, 0);
      acts.state_bytes = () => {
        made.numbers(5);
        return 0;
      };
      acts.state_save = () => Number(!envs[0].state_write(made.put('state', 300)[0], 5));
      assert.equal(Buffer.from(native.saveState(1)).toString(), 'state');
      acts.state_load = () => Number(!envs[0].state_read(320, 2));
      native.restoreState(Uint8Array.of(104, 111));
      assert.equal(made.text(320, 2), 'ho');
      acts.engine_create = () => 99;
      const draft = native.createSibling(config);
      native.useDraft(draft);
      log.length = 0;
      native.destroy();
      assert.deepEqual(log, [
        ...[['engine_destroy', 2 ** 32 - 64], ['engine_destroy', 99], ['helpers_dismiss']],
      ]);
      assert.ok(Math.abs(envs[0].now_us() - performance.now() * 1000) < 1e12);
      new Uint8Array(memory.buffer).set([104, 105], 300);
      envs[0].log(300, 2);
      assert.deepEqual(reports, ['hi']);
      envs[0].random(400, 64);
      const random = new Uint8Array(memory.buffer).slice(400, 465);
      assert.ok(new Set(random).size > 20 && random[64] === 0);
    }
  });

  test('creation fails without memory or space for waste, or with a wrong configuration or draft', async (t) => {
    const made = instanceOf();
    pretend(t, made);
    const [module, shared] = [smallest, threaded].map((bytes) => new WebAssembly.Module(bytes));
    made.acts.engine_create = () => {
      made.fails(8, 'batch is 5', 'batch');
      return 0;
    };
    await assert.rejects(NativeEngine.create(module, config), {
      code: 'SHAPE',
      message: 'batch is 5 (option batchSize)',
    });
    assert.equal(made.blocks.size, 0);
    made.acts.engine_create = () => 5;
    await NativeEngine.create(module, config, { wasteBytes: 999 });
    assert.deepEqual([...made.blocks.values()], [999]);
    made.full(true);
    const waste = NativeEngine.create(module, config, { wasteBytes: 1 });
    await assert.rejects(waste, {
      code: 'NOMEM',
      message: /^linear memory: cannot allocate 1 bytes in addition to \d+$/,
    });
    made.full(false);
    const native = await NativeEngine.create(module, config);
    made.acts.engine_set_draft = () => made.fails(13, 'another vocabulary');
    assert.throws(() => native.useDraft(native), {
      message: 'The draft model: another vocabulary',
    });
    made.log.length = 0;
    native.destroy();
    const ended = made.log.filter(([call]) => call === 'engine_destroy');
    assert.equal(ended.length, 1); // the rejected draft is not destroyed with it
    const { Memory } = WebAssembly;
    t.after(() => {
      WebAssembly.Memory = Memory;
    });
    any(WebAssembly).Memory = function refuse() {
      throw new RangeError('no');
    };
    const message = 'host: could not allocate memory for the engine';
    await assert.rejects(NativeEngine.create(module, config), { code: 'NOMEM', message });
    await assert.rejects(NativeEngine.create(shared, { ...config, threads: 2 }), {
      code: 'NO_SHARED_MEMORY',
      message,
    });
    // without helpers, memory is not shared
    const alone = { ...config, threads: 1 };
    await assert.rejects(NativeEngine.create(shared, alone), { code: 'NOMEM', message });
  });

  test('memory is as large as the host allows', (t) => {
    const { Memory } = WebAssembly;
    t.after(() => {
      WebAssembly.Memory = Memory;
    });
    for (const granted of [65536, 32768, 16384, 8192, 6144, 4096, 0]) {
      /** @type {any[]} */
      const asked = [];
      any(WebAssembly).Memory = function grant(/** @type {any} */ options) {
        asked.push(options);
        if (options.maximum > granted) throw new RangeError('no');
      };
      const made = createMemory({ shared: true, helpers: 3 });
      assert.equal(made?.maximum, granted || undefined);
      assert.deepEqual(
        asked.map(({ maximum }) => maximum),
        [65536, 32768, 16384, 8192, 6144, 4096].filter((one) => one >= granted),
      );
      assert.ok(asked.every(({ initial, shared }) => initial === 16 + 6 && shared));
    }
    const sizes = [262144n, 196608n, 131072n, 98304n];
    for (const granted of [...sizes, 0n]) {
      /** @type {any[]} */
      const asked = [];
      any(WebAssembly).Memory = function grant(/** @type {any} */ options) {
        asked.push(options);
        if (options.maximum > granted) throw new RangeError('no');
      };
      const made = createMemory({ shared: false, helpers: 0, isWide: true });
      assert.equal(made?.maximum, Number(granted) || undefined);
      const wanted = { address: 'i64', initial: 16n, shared: false };
      const tried = sizes.filter((one) => one >= granted);
      assert.deepEqual(
        asked,
        tried.map((maximum) => ({ ...wanted, maximum })),
      );
    }
  });

  test('pages are written to the file and read back; without a file nothing is swapped', async (t) => {
    const made = instanceOf();
    const envs = pretend(t, made);
    made.acts.engine_create = () => 5;
    /** @type {any[]} */
    const log = [];
    let isRead = true;
    const swap = any({
      open: (/** @type {any[]} */ ...values) => log.push(['open', ...values]) > 0,
      write: (/** @type {number} */ id, /** @type {number} */ offset, /** @type {any} */ bytes) => {
        log.push(['write', id, offset, ...bytes]);
        return true;
      },
      read: (/** @type {number} */ id, /** @type {number} */ offset, /** @type {any} */ bytes) => {
        log.push(['read', id, offset, bytes.length]);
        bytes.fill(8);
        return isRead;
      },
      drop: (/** @type {number} */ id) => void log.push(['drop', id]),
    });
    const module = new WebAssembly.Module(smallest);
    await NativeEngine.create(module, config, { host: (heap) => swapHost(swap, heap) });
    const { swap_open, swap_write, swap_read, swap_drop, memory } = envs[0];
    const bytes = new Uint8Array(memory.buffer);
    bytes.set([1, 2, 3], 300);
    assert.equal(swap_open(4, -1), true);
    assert.equal(swap_write(4, -2, 300, 3), true);
    assert.equal(swap_read(4, -3, 400, 2), true);
    assert.deepEqual([...bytes.slice(399, 403)], [0, 8, 8, 0]);
    isRead = false;
    assert.equal(swap_read(4, 0, 500, 2), false);
    assert.deepEqual([...bytes.slice(500, 502)], [0, 0]);
    swap_drop(4);
    assert.deepEqual(log, [
      ...[
        ['open', 4, 2 ** 32 - 1],
        ['write', 4, 2 ** 32 - 2, 1, 2, 3],
      ],
      ...[
        ['read', 4, 2 ** 32 - 3, 2],
        ['read', 4, 0, 2],
        ['drop', 4],
      ],
    ]);
    instantiate(module, made.memory, {});
    const none = envs[1];
    assert.deepEqual(
      [none.swap_open(1, 1), none.swap_write(1, 1, 1, 1), none.swap_read(1, 1, 1, 1)],
      [false, false, false],
    );
    assert.deepEqual([none.state_write(1, 1), none.state_read(1, 1)], [false, false]);
    assert.deepEqual(
      [none.log(1, 1), none.random(1, 1), none.swap_drop(1)],
      Array(3).fill(undefined),
    );
    assert.deepEqual(Object.keys(none).sort(), Object.keys(envs[0]).sort());
  });

  test('a helper has a separate stack', async (t) => {
    const made = instanceOf();
    pretend(t, made);
    const module = new WebAssembly.Module(threaded);
    for (const index of [0, 2]) {
      await runHelper(module, { memory: made.memory, extras: undefined }, index);
      const top = 5000 + (index + 1) * layout.HELPER_STACK_BYTES;
      assert.equal(made.exports.__stack_pointer.value, top - (top % 16));
      assert.deepEqual(made.log.pop(), ['helper_main', index]);
    }
  });
});
