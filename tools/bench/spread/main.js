// The main instance, in a worker: it computes its own rows, and waits for its helpers' rows in the middle
// of a pass (JSPI). The driver (../spread.mjs) calls the methods below through page.html.
import { detectSimd } from '../../../js/base/host_features.js';
import { stayAwake } from './awake.js';
import { EMPTY, HEADER_BYTES, headerOf, makeInstance, payloadOf } from './instance.js';

const { Suspending, promising } = /** @type {any} */ (WebAssembly);
const hasSuspension = Suspending !== undefined && promising !== undefined;

/** @typedef {import('./instance.js').Matrix} Matrix */
/** @typedef {{channel: 'worker' | 'port', isTransferred: boolean, awakeMs: number}} Transport awakeMs: how long both sides stay awake */

/** @type {Awaited<ReturnType<typeof makeInstance>>} */
let instance;
/** @type {{worker: Worker, port: MessagePort, buffer: ArrayBuffer, reply: number}[]} */
const helpers = [];
/** The number of helpers in use. */
let active = 0;
/** @type {Transport} */
let transport = { channel: 'worker', isTransferred: true, awakeMs: 0 };
let pending = 0;
let resume = () => {};

// ---- Messages ----

/** @param {number} product @param {number} tokens @param {number} address @param {number} bytes */
function post(product, tokens, address, bytes) {
  const payload = instance.bytes().subarray(address, address + bytes);
  const { channel, isTransferred, awakeMs } = transport;
  pending = active;
  for (const helper of helpers.slice(0, active)) {
    const buffer = isTransferred ? helper.buffer : new ArrayBuffer(HEADER_BYTES + bytes);
    headerOf(buffer).set([product, tokens, bytes, isTransferred ? 1 : 0, awakeMs]);
    payloadOf(buffer, bytes).set(payload);
    helper[channel].postMessage(buffer, isTransferred ? [buffer] : []);
  }
}

/**
 * @returns {Promise<void>} resolves when all have replied; this thread must not be busy in the meantime,
 * because replies are events
 */
const wait = () =>
  new Promise((settle) => {
    resume = settle;
    if (transport.awakeMs > 0) stayAwake(transport.awakeMs);
  });

/** @param {(typeof helpers)[0]} helper @param {ArrayBuffer} buffer */
function receive(helper, buffer) {
  const [, , bytes, isTransferred] = headerOf(buffer);
  if (isTransferred) helper.buffer = buffer;
  if (helper.reply !== 0) instance.bytes().set(payloadOf(buffer, bytes), helper.reply);
  if (--pending > 0) return;
  stayAwake(0);
  resume();
}

/**
 * @param {(typeof helpers)[0]} helper
 * @param {string} method
 * @param {any} argument
 * @param {Transferable[]} [transferred]
 */
function setUp(helper, method, argument, transferred = []) {
  return new Promise((settle, fail) => {
    helper.worker.onmessage = ({ data }) => {
      helper.worker.onmessage = (event) => receive(helper, event.data);
      if (data.done) settle(undefined);
      else fail(new Error(data.reason));
    };
    helper.worker.postMessage({ method, argument }, transferred);
  });
}

// ---- Times ----

/** Without isolation, the clock resolution is 0.1 ms (Chromium) or 1 ms (Firefox), so short work is repeated. */
const SAMPLE_MS = 25;
const ROUNDS_MIN = 5;

/** Estimates the time on an idle machine: other processes can only make a measurement longer. @param {number[]} values */
const quartile = (values) => values.sort((a, b) => a - b)[values.length >> 2];

/**
 * @param {(count: number) => unknown} run
 * @param {number} samples
 * @returns {Promise<number>} the lower quartile in microseconds
 */
async function timeOf(run, samples) {
  let count = 1;
  for (;;) {
    const start = performance.now();
    await run(count);
    if (performance.now() - start >= SAMPLE_MS) break;
    count *= 2;
  }
  const times = [];
  for (let i = 0; i < samples; i++) {
    const start = performance.now();
    await run(count);
    times.push(((performance.now() - start) * 1000) / count);
  }
  return quartile(times);
}

/** @param {string} name @returns {(...values: any[]) => Promise<any>} an export that may suspend */
const suspendable = (name) => promising(instance.wasm[name]);

// ---- Methods that the driver calls ----

/** @type {Record<string, (argument: any) => any>} */
const methods = {
  /** @param {{helpers: number, bufferBytes: number}} argument */
  async open({ helpers: count, bufferBytes }) {
    const simd = detectSimd();
    const url = new URL(`../../../build/bench/spread-${simd}.wasm`, location.href);
    const module = await WebAssembly.compileStreaming(fetch(url));
    const block = (/** @type {() => Promise<void>} */ call) =>
      hasSuspension ? new Suspending(call) : () => {};
    const resolved = Promise.resolve();
    instance = await makeInstance(module, {
      post,
      wait: block(wait),
      settled: block(() => resolved),
      nothing: () => {},
    });
    for (let i = 0; i < count; i++) {
      const { port1, port2 } = new MessageChannel();
      const worker = new Worker(new URL('helper.js', location.href), { type: 'module' });
      const buffer = new ArrayBuffer(HEADER_BYTES + bufferBytes);
      const helper = { worker, port: port1, buffer, reply: 0 };
      await setUp(helper, 'open', { module, port: port2 }, [port2]);
      port1.onmessage = (event) => receive(helper, event.data);
      helpers.push(helper);
    }
    active = count;
    return {
      kernels: instance.kernels(),
      hasSuspension,
      isIsolated: crossOriginIsolated,
      userAgent: navigator.userAgent,
    };
  },

  /** Measures the cost of suspending for a resolved promise, and of a call without suspending. @returns {Promise<object>} us */
  async suspensions() {
    const call = await timeOf(instance.wasm.call, 7);
    return { call, suspend: hasSuspension ? await timeOf(suspendable('suspend'), 7) : undefined };
  },

  /**
   * Measures exchanges of `bytes` with `helpers` helpers, `batch` per sample.
   * @param {{helpers: number, bytes: number, busyUs: number, batch: number, samples: number, transport: Transport,
   *   isSuspended: boolean}} argument isSuspended: whether WebAssembly is suspended; otherwise
   *   JavaScript awaits each exchange
   * @returns {Promise<number[]>} microseconds of one exchange, by sample, sorted
   */
  async exchange({ bytes, busyUs, batch, samples, isSuspended, ...rest }) {
    const { wasm } = instance;
    active = rest.helpers;
    transport = rest.transport;
    const from = instance.alloc(bytes);
    await timeOf((n) => wasm.spin(n * 1000), 5); // a warm-up: JavaScript engines optimize code only after a while
    const turns = Math.round((busyUs * 1000) / (await timeOf((n) => wasm.spin(n * 1000), 5)));
    const awaited = async () => {
      for (let i = 0; i < batch; i++) {
        wasm.spin(turns);
        post(EMPTY, 0, from, bytes);
        await wait();
      }
    };
    const suspended = hasSuspension ? suspendable('exchange') : undefined;
    const run = isSuspended ? () => suspended?.(batch, from, bytes, turns) : awaited;
    const found = [];
    for (let i = -samples >> 2; i < samples; i++) {
      const start = performance.now();
      await run();
      const middle = performance.now();
      wasm.spins(batch, turns);
      const end = performance.now();
      if (i >= 0) found.push(((middle - start - (end - middle)) * 1000) / batch);
    }
    return found.sort((a, b) => a - b);
  },

  /**
   * @param {{products: Matrix[][], model: number[]}} argument `model`: the argument of make_model
   */
  load({ products, model }) {
    instance.addProducts(products, ({ rows }) => [0, rows]);
    if (!instance.wasm.make_model(...model)) throw new Error('out of memory');
  },

  /** @param {{tokens: number}} argument @returns {Promise<number[]>} microseconds for each kind of product, on one thread */
  async products({ tokens }) {
    const found = [];
    instance.wasm.pass(tokens, 1, false);
    for (const kind of [0, 1, 2, 3, 4]) {
      const rows = kind === 4 ? 1 : tokens;
      const run = (/** @type {number} */ count) => instance.wasm.repeat(kind, rows, count);
      run(tokens === 1 ? 30 : 2);
      found.push(await timeOf(run, 5));
    }
    return found;
  },

  /**
   * Loads the helpers' rows, which follow main's rows in each matrix.
   * @param {{products: Matrix[][], bounds: number[][][], actBytes: number, outputBytes: number,
   *   awakeMs: number}} argument
   *   bounds: for each product and matrix, the rows at which the part of main and of each helper ends
   */
  async spread({ products, bounds, actBytes, outputBytes, awakeMs }) {
    let matrix = 0;
    for (const ends of bounds.flat()) {
      [0, ...ends].forEach((row, i) => void instance.wasm.set_bound(matrix, i, row));
      matrix++;
    }
    transport = { channel: 'worker', isTransferred: true, awakeMs };
    active = bounds[0][0].length - 1;
    await Promise.all(
      helpers.slice(0, active).map((helper, i) => {
        helper.reply = instance.wasm.add_helper(outputBytes);
        const rows = bounds.map((matrices) => matrices.map((ends) => [ends[i], ends[i + 1]]));
        return setUp(helper, 'load', { products, rows, actBytes, outputBytes });
      }),
    );
  },

  /** @param {{tokens: number, layers: number}} argument @returns {Promise<object>} hashes of all outputs */
  async check({ tokens, layers }) {
    const single = instance.wasm.check(tokens, layers, false);
    const spread = await suspendable('check')(tokens, layers, true);
    const logits = new Float32Array(instance.bytes().buffer, instance.wasm.logits(), 1000);
    return { single, spread, isFinite: logits.every(Number.isFinite), first: logits[0] };
  },

  /**
   * Measures single-thread passes and spread passes, alternately.
   * @param {{tokens: number, layers: number, seconds: number, warmUps: number}} argument
   * @returns {Promise<{single: number[], spread: number[]}>} ms
   */
  async measure({ tokens, layers, seconds, warmUps }) {
    const pass = suspendable('pass');
    /** @type {{single: number[], spread: number[]}} */
    const found = { single: [], spread: [] };
    const end = performance.now() + 1000 * seconds;
    for (let i = -warmUps; i < ROUNDS_MIN || performance.now() < end; i++) {
      const start = performance.now();
      instance.wasm.pass(tokens, layers, false);
      const middle = performance.now();
      await pass(tokens, layers, true);
      const last = performance.now();
      if (i < 0) continue;
      found.single.push(middle - start);
      found.spread.push(last - middle);
    }
    return found;
  },
};

const scope = /** @type {any} */ (globalThis);
scope.onmessage = async (/** @type {MessageEvent} */ { data: { method, argument } }) => {
  try {
    scope.postMessage({ value: await methods[method](argument) });
  } catch (error) {
    scope.postMessage({ reason: String(error) });
  }
};
