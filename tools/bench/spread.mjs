// Measures the speedup of a page without cross-origin isolation if the rows of each weight matrix are spread over several
// instances with separate memories, with the kernels of the web build, messages and JSPI.
//   node tools/bench/spread.mjs [--browsers chromium,firefox] [--models 'Qwen2.5-0.5B:q4_0,...'] [--seconds 6] [--awake 1]
// --awake: the time for which both sides keep their event loops from sleeping, in ms. `make
// bench-spread` builds what it needs. With one helper, two threads compute; results for four and
// eight are calculated. Prints Markdown (docs/lab/spread.md). The exit code is 1 if outputs differ
// from those of one thread.

import { parseArgs } from 'node:util';
import { launchFirefox, launchOwnChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import {
  fitShare,
  interpolate,
  passTime,
  planMatrices,
  shapes,
  splitRows,
} from './spread/plan.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    browsers: { type: 'string', default: 'chromium,firefox' },
    models: {
      type: 'string',
      default:
        'SmolLM2-135M:q4_0,Qwen2.5-0.5B:q4_0,Qwen2.5-0.5B:q4_k_m,Qwen3-1.7B:q4_0,Qwen3-4B:q4_k_m',
    },
    seconds: { type: 'string', default: '6' },
    share: { type: 'string' },
    awake: { type: 'string', default: '0' },
  },
});
const seconds = Number(options.seconds);
const awakeMs = Number(options.awake);
const CONTEXT = 256;
const PREFILL = { tokens: 64, layers: 8, seconds };
const PATIENCE_MS = 300_000;
const JSPI_PREFERENCE = 'javascript.options.wasm_js_promise_integration';
const ACT_BYTES_PER_COLUMN = 4;

/** @typedef {{peer: (method: string, argument?: object) => Promise<any>, close: () => Promise<unknown>}} Page */

/** @returns {Promise<{open: () => Promise<Page>, close: () => Promise<void>, note: string}>} */
async function startChromium(/** @type {string} */ url) {
  const browser = await launchOwnChromium();
  const open = async () => {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url);
    await page.waitForFunction('globalThis.peer !== undefined');
    /** @type {Page['peer']} */
    const peer = (method, argument = {}) =>
      page.evaluate(
        ([name, value]) => /** @type {any} */ (globalThis).peer(name, value),
        /** @type {[string, object]} */ ([method, argument]),
      );
    return { peer, close: () => page.context().close() };
  };
  return { open, close: () => browser.close(), note: 'as installed' };
}

/** @returns {ReturnType<typeof startChromium>} */
async function startFirefox(/** @type {string} */ url, preferences = {}, note = 'as installed') {
  // isolated only for the clock's resolution, which is 1 ms without isolation
  const browser = await launchFirefox({ 'privacy.reduceTimerPrecision': false, ...preferences });
  const open = async () => {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url);
    await page.waitForFunction('globalThis.peer !== undefined');
    /** @type {Page['peer']} */
    const peer = (method, argument = {}) =>
      page.evaluate(
        (name, value) => /** @type {any} */ (globalThis).peer(name, value),
        method,
        argument,
      );
    return { peer, close: () => page.close() };
  };
  const close = () => browser.close();
  const probe = await open();
  const has = await probe.peer('open', { helpers: 0, bufferBytes: 0 });
  await probe.close();
  if (has.hasSuspension || JSPI_PREFERENCE in preferences) return { open, close, note };
  await close();
  return startFirefox(url, { [JSPI_PREFERENCE]: true }, `with ${JSPI_PREFERENCE}`);
}

/** @type {Record<string, (url: string) => ReturnType<typeof startChromium>>} */
const starters = { chromium: startChromium, firefox: (url) => startFirefox(url) };

const print = (/** @type {string} */ text) => console.log(text);
const us = (/** @type {number} */ value) => (value < 10 ? value.toFixed(2) : value.toFixed(0));
const at = (/** @type {number[]} */ sorted, /** @type {number} */ part) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

/** Estimates the time on an idle machine: other processes only add to times. @param {number[]} times */
const undisturbed = (times) =>
  at(
    [...times].sort((a, b) => a - b),
    0.1,
  );

// ---- Exchanges ----

const best = { channel: 'worker', isTransferred: true };
const usual = {
  ...{ helpers: 1, bytes: 4096, busyUs: 300, batch: 32, samples: 40, transport: best },
  isSuspended: true,
};
const KB = 1024;
/** @type {[string, Partial<typeof usual>][]} */
const variants = [
  ['Worker.postMessage, transferred', {}],
  ['the same, awaited by JavaScript', { isSuspended: false }],
  ['the same, one after the other', { busyUs: 0, batch: 64 }],
  ['Worker.postMessage, cloned', { transport: { channel: 'worker', isTransferred: false } }],
  ['MessageChannel, transferred', { transport: { channel: 'port', isTransferred: true } }],
  ['MessageChannel, cloned', { transport: { channel: 'port', isTransferred: false } }],
  ['Worker.postMessage, transferred, 256 KB', { bytes: 256 * KB, batch: 16 }],
  ['the same, 1 MB', { bytes: 1024 * KB, batch: 8 }],
  ['Worker.postMessage, transferred, 3 helpers', { helpers: 3 }],
];

/** @param {Page} page */
async function measureExchanges(page) {
  const { hasSuspension } = await page.peer('open', { helpers: 3, bufferBytes: 1 << 20 });
  const { call, suspend } = await page.peer('suspensions');
  print(
    `\nA call of JavaScript from wasm: ${call.toFixed(3)} us. Suspending for a resolved promise: ` +
      `${suspend?.toFixed(2) ?? 'none'} us.\n`,
  );
  print('| exchange | bytes each way | work before | 10 % | median | 90 % | longest |');
  print('|---|---|---|---|---|---|---|');
  /** @type {Record<string, number>} */
  const found = {};
  for (const [name, change] of variants) {
    const asked = { ...usual, ...change };
    if (asked.isSuspended && !hasSuspension) continue;
    const times = await page.peer('exchange', {
      ...asked,
      transport: { ...asked.transport, awakeMs },
    });
    found[`${asked.helpers} ${asked.bytes}`] ??= Math.max(1, at(times, 0.25));
    const columns = [0.1, 0.5, 0.9, 1].map((part) => us(at(times, part)));
    print(`| ${name} | ${asked.bytes} | ${asked.busyUs} us | ${columns.join(' | ')} |`);
  }
  const sizes = [4096, 256 * KB, 1024 * KB];
  return {
    /** Microseconds per exchange with one helper, by payload. */
    time: interpolate(sizes.map((bytes) => [bytes, found[`1 ${bytes}`]])),
    /**
     * Microseconds that each further helper adds, measured on two cores, where helpers wait for
     * each other.
     */
    more: Math.max(0, (found['3 4096'] - found['1 4096']) / 2),
  };
}

// ---- Models ----

/** @param {number[][]} times per kind, by number of tokens @typedef {Awaited<ReturnType<typeof measureExchanges>>} Exchanges */

/**
 * @param {Page} page
 * @param {string} name
 * @param {'q4_0' | 'q4_k_m'} mix
 * @param {Exchanges} exchanges
 */
async function measureModel(page, name, mix, exchanges) {
  const shape = shapes[name];
  const { products, slots } = planMatrices(shape, mix);
  const { hidden, ffn, heads, kvHeads, headDim, layers, vocab } = shape;
  const most = Math.max(ffn, heads * headDim);
  const rowsOf = (/** @type {import('./spread/plan.mjs').Matrix[]} */ matrices) =>
    matrices.reduce((sum, { rows }) => sum + rows, 0);
  const outputs = Math.max(vocab, PREFILL.tokens * Math.max(...products.slice(0, 4).map(rowsOf)));
  const actBytes = PREFILL.tokens * most * ACT_BYTES_PER_COLUMN;
  const outputBytes = outputs * 4;
  const bufferBytes = Math.max(actBytes, outputBytes);
  await page.peer('open', { helpers: 1, bufferBytes });
  await page.peer('load', {
    products,
    model: [hidden, ffn, heads, kvHeads, headDim, slots, CONTEXT, PREFILL.tokens, outputs],
  });
  const kindOf = (/** @type {number} */ product) => (product === 4 * slots ? 4 : product % 4);
  const sample = [...products.slice(0, 4), products[4 * slots]];
  /** @type {Record<number, number[]>} */
  const timesOf = { 1: await page.peer('products', { tokens: 1 }) };
  timesOf[PREFILL.tokens] = await page.peer('products', { tokens: PREFILL.tokens });
  /** @returns {number[]} the share of each helper by kind; weights are stored once, for both phases */
  const sharesOf = (/** @type {number} */ helpers) =>
    timesOf[1].map((time) =>
      options.share === undefined
        ? fitShare(time, exchanges.time(4096) + (helpers - 1) * exchanges.more, helpers)
        : Number(options.share),
    );
  const shares = sharesOf(1);
  const bounds = products.map((matrices, product) =>
    matrices.map(({ rows }) => splitRows(rows, shares[kindOf(product)], 1)),
  );
  await page.peer('spread', { products, bounds, actBytes, outputBytes, awakeMs });
  const checks = [];
  for (const tokens of [1, PREFILL.tokens]) {
    checks.push(await page.peer('check', { tokens, layers: Math.min(layers, PREFILL.layers) }));
  }
  const areSame = checks.every((check) => check.single === check.spread && check.isFinite);
  if (!areSame) process.exitCode = 1;
  const rows = [];
  for (const phase of [
    { tokens: 1, layers, seconds, warmUps: 5 },
    { ...PREFILL, warmUps: 1 },
  ]) {
    const { single, spread } = await page.peer('measure', phase);
    const [ofSingle, ofSpread] = [undisturbed(single), undisturbed(spread)];
    const { tokens } = phase;
    const kindsFor = (/** @type {number} */ helpers) =>
      sharesOf(helpers).map((share, kind) => {
        const rowCount = kind === 4 ? 1 : tokens;
        const sent = rowCount * sample[kind][0].cols * ACT_BYTES_PER_COLUMN;
        const replied = rowCount * rowsOf(sample[kind]) * share * 4;
        const count = kind === 4 ? 1 : phase.layers;
        return { share, bytes: (sent + replied) / 2, us: timesOf[tokens][kind], count };
      });
    const alone = kindsFor(1).reduce((sum, { us: time, count }) => sum + time * count, 0);
    const rest = Math.max(0, ofSingle * 1000 - alone);
    const calculated = [2, 4, 8].map((threads) => {
      const helpers = threads - 1;
      const time = (/** @type {number} */ bytes) =>
        exchanges.time(bytes) + (helpers - 1) * exchanges.more;
      return (ofSingle * 1000) / passTime(kindsFor(helpers), rest, helpers, time);
    });
    const [low, high] = ratioInterval(single, spread);
    const exchanged = shares.reduce(
      (sum, share, i) => sum + (share > 0 ? (i === 4 ? 1 : phase.layers) : 0),
      0,
    );
    rows.push(
      `| ${name} | ${mix}${slots < layers ? `, ${slots} layers reused` : ''} | ${tokens} | ${median(single).toFixed(1)} | ` +
        `${median(spread).toFixed(1)} | **${(median(single) / median(spread)).toFixed(2)}** (${low.toFixed(2)} to ${high.toFixed(2)}) | ` +
        `${ofSingle.toFixed(1)} / ${ofSpread.toFixed(1)} = **${(ofSingle / ofSpread).toFixed(2)}** | ` +
        `${exchanged} | ${calculated.map((ratio) => ratio.toFixed(2)).join(' | ')} | ${areSame ? 'same' : 'DIFFERENT'} |`,
    );
    rows.push(
      `<!-- us of q k v, o, gate up, down, output: ${timesOf[tokens].map(us).join(', ')}; rest ${us(rest)}; shares ` +
        `${shares.map((share) => share.toFixed(2)).join(', ')} -->`,
    );
  }
  return rows;
}

const server = await serve({ root, isolated: false });
try {
  print(`\`make bench-spread\`: ${environmentLine(describeEnvironment())}.`);
  for (const name of options.browsers.split(',')) {
    const browser = await starters[name](`${server.url}tools/bench/spread/page.html`);
    try {
      const opened = async (/** @type {(page: Page) => Promise<any>} */ use) => {
        const page = await browser.open();
        try {
          return await use(page);
        } finally {
          await page.close();
        }
      };
      const facts = await opened((page) => page.peer('open', { helpers: 0, bufferBytes: 0 }));
      print(`\n### ${name}, ${browser.note}\n`);
      print(
        `${facts.userAgent}; kernels ${facts.kernels}; JSPI: ${facts.hasSuspension ? 'yes' : 'no'}; isolated: ` +
          `${facts.isIsolated ? 'yes' : 'no'}`,
      );
      const exchanges = await opened(measureExchanges);
      if (!facts.hasSuspension) continue;
      print(
        '\n| model | types | rows | one thread, ms | two, ms | speedup of medians | of the fastest tenth | exchanges | calculated: 2 | 4 | 8 | outputs |',
      );
      print('|---|---|---|---|---|---|---|---|---|---|---|---|');
      for (const model of options.models.split(',')) {
        const [shape, mix] = model.split(':');
        const rows = await opened((page) =>
          measureModel(page, shape, /** @type {'q4_0' | 'q4_k_m'} */ (mix), exchanges),
        );
        for (const row of rows) print(row);
      }
    } finally {
      await browser.close();
    }
  }
} finally {
  await server.close();
}
