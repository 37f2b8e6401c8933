// Measures Wick in several browsers, in one run and alternately: Chromium with relaxed and with
// plain SIMD, Firefox and WebKitGTK. Also measures a second visit in Chromium, when the code cache
// contains the engine.
//   node tools/bench/browsers.mjs [--models shape:type,...] [--threads 1] [--prompt 128] [--tokens 32]
//     [--repetitions 5] [--hosts chromium,plain,firefox,webkit] [--visits 5] [--no-document]
// A browser that does not start, fails or hangs is skipped, and the reason is recorded. Writes
// build/bench/browsers.json after each model, and its section of docs/benchmarks.md at the end.

import { mkdirSync, writeFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium, launchFirefox, launchWebKit } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { openPage } from './browser_peer.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel, modelFolder } from './models.mjs';
import { makePrompt } from './prompts.mjs';
import { hostsTable } from './rows.mjs';
import { median } from './statistics.mjs';
import { closeAll, doEach, withinLimit } from './turns.mjs';

const { values: options } = parseArgs({
  options: {
    models: { type: 'string', default: 'smollm2-135m:q8_0,smollm2-135m:q4_0,smollm2-135m:q4_k_m' },
    threads: { type: 'string', default: '1' },
    prompt: { type: 'string', default: '128' },
    tokens: { type: 'string', default: '32' },
    repetitions: { type: 'string', default: '5' },
    hosts: { type: 'string', default: 'chromium,plain,firefox,webkit' },
    visits: { type: 'string', default: '5' },
    out: { type: 'string', default: 'build/bench/browsers.json' },
    document: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const threads = Number(options.threads);
const context = 512;
const PAGE_MINUTES_MS = 600_000;
const VISIT_PROMPT_TOKENS = 32;

/** @typedef {import('./browser_peer.mjs').Peer} Peer */
/** @typedef {import('./rows.mjs').HostRow} HostRow */

const chromium = await launchChromium();
// the exit of this process ends the browsers, regardless of its cause
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

/** @param {string} url @returns {Promise<Peer>} */
async function openFirefox(url) {
  const browser = await launchFirefox();
  const page = await browser.newPage();
  page.setDefaultTimeout(PAGE_MINUTES_MS);
  await page.goto(url);
  await page.waitForFunction('globalThis.peer !== undefined');
  return {
    call: (method, argument) =>
      page.evaluate(
        (name, value) => /** @type {any} */ (globalThis).peer[name](value),
        method,
        argument,
      ),
    close: () => browser.close(),
  };
}

/** @param {string} url @returns {Promise<Peer>} */
async function openWebKit(url) {
  const page = await launchWebKit({ scriptTimeoutMs: PAGE_MINUTES_MS });
  await page.goto(url);
  await page.evaluate('while (!globalThis.peer) await new Promise((go) => setTimeout(go, 50));');
  return {
    call: (method, argument) =>
      page.evaluate('return globalThis.peer[args[0]](args[1]);', method, argument),
    close: () => page.close(),
  };
}

/** @type {Record<string, (url: string) => Promise<Peer>>} */
const openers = {
  chromium: (url) => openPage(chromium, url),
  plain: (url) => openPage(chromium, url),
  firefox: openFirefox,
  webkit: openWebKit,
};

/** @type {Record<string, string>} */
const names = {
  chromium: 'Chromium',
  plain: 'Chromium, plain SIMD',
  firefox: 'Firefox',
  webkit: 'WebKitGTK',
};
const hosts = options.hosts.split(',');
const unknown = hosts.find((host) => !(host in openers));
if (unknown !== undefined) {
  console.error(`bench-browsers: unknown host '${unknown}' (known: ${Object.keys(openers)})`);
  process.exit(1);
}

/**
 * @param {string} url of the server
 * @param {string} shape
 * @param {string} type
 * @returns {Promise<{rows: HostRow[], failures: Record<string, string>}>} reasons by host
 */
async function measureModel(url, shape, type) {
  const { name, path } = makeModel(shape, type);
  /** @type {Record<string, Peer>} */
  const sides = {};
  /** @type {Record<string, {prefill: number[], decode: number[]}>} */
  const samples = {};
  /** @type {Record<string, string>} */
  const kernels = {};
  /** @type {Record<string, string>} */
  const failures = {};
  /** @param {string} host */
  const prepare = async (host) => {
    sides[host] = await openers[host](`${url}page.html?peer=wick`);
    samples[host] = { prefill: [], decode: [] };
    const build = `simd128-${threads > 1 ? 'threads' : 'single'}`;
    const wasm = host === 'plain' ? `/dist/wasm/wick-${build}.wasm` : undefined;
    const loaded = { url: `/models/${name}`, threads, context, wasm };
    kernels[host] = (await sides[host].call('load', loaded)).kernels;
    const warmUp = { ...makePrompt(path, Number(options.prompt), 99), count: 4 };
    await sides[host].call('measure', warmUp);
  };
  try {
    await doEach(hosts, failures, (host) => withinLimit(prepare(host), PAGE_MINUTES_MS));
    for (let round = 0; round < Number(options.repetitions); round++) {
      const work = { ...makePrompt(path, Number(options.prompt), round) };
      await doEach(hosts, failures, async (host) => {
        const asked = sides[host].call('measure', { ...work, count: Number(options.tokens) });
        const found = await withinLimit(asked, PAGE_MINUTES_MS);
        samples[host].prefill.push(found.prefill);
        samples[host].decode.push(found.decode);
      });
    }
  } finally {
    await closeAll(sides);
  }
  const left = hosts.filter((host) => !(host in failures));
  const first = samples[left[0]];
  const rows = left.map((host) => ({
    model: shape,
    type,
    threads,
    host: names[host],
    kernels: kernels[host],
    prefill: median(samples[host].prefill),
    decode: median(samples[host].decode),
    prefill_ratio: median(samples[host].prefill) / median(first.prefill),
    decode_ratio: median(samples[host].decode) / median(first.decode),
    samples: samples[host],
  }));
  return { rows, failures };
}

/**
 * Measures the first and the second visit to a page in a new Chromium profile, up to the first token.
 * @param {string} url
 */
async function measureVisits(url) {
  const { name, path } = makeModel('tiny', 'q8_0');
  const { text } = makePrompt(path, VISIT_PROMPT_TOKENS, 0);
  const query = new URLSearchParams({
    peer: 'wick',
    url: `/models/${name}`,
    threads: '1',
    context: '512',
    text,
  });
  /** @type {number[][]} */
  const times = [[], []];
  for (let round = 0; round < Number(options.visits); round++) {
    const browserContext = await chromium.newContext();
    for (const visit of [0, 1]) {
      const page = await browserContext.newPage();
      page.setDefaultTimeout(PAGE_MINUTES_MS);
      await page.goto(`${url}cold.html?${query}`);
      const found = await (await page.waitForFunction('globalThis.cold')).jsonValue();
      if (found.error) throw new Error(found.error);
      times[visit].push(found.firstTokenMs);
      await page.close();
    }
    await browserContext.close();
  }
  return { first_ms: median(times[0]), second_ms: median(times[1]), samples: times };
}

const server = await serve({
  root: {
    '/': resolve(root, 'tools/bench'),
    '/dist': resolve(root, 'dist'),
    '/models': modelFolder,
  },
});
try {
  const environment = describeEnvironment();
  /** @type {HostRow[]} */
  const rows = [];
  /** @type {string[]} */
  const skipped = [];
  const out = resolve(root, options.out);
  mkdirSync(resolve(out, '..'), { recursive: true });
  /** @param {Awaited<ReturnType<typeof measureVisits>>} [visits] */
  const save = (visits) =>
    writeFileSync(out, `${JSON.stringify({ environment, rows, skipped, visits }, null, 2)}\n`);
  for (const pair of options.models.split(',').filter(Boolean)) {
    const [shape, type] = pair.split(':');
    console.error(`${shape} ${type}`);
    const found = await measureModel(server.url, shape, type);
    rows.push(...found.rows);
    for (const [host, reason] of Object.entries(found.failures)) {
      skipped.push(`${shape} ${type}, ${names[host]}: ${reason}`);
      console.error(`  skipped: ${skipped.at(-1)}`);
    }
    save();
  }
  const visits = Number(options.visits) > 0 ? await measureVisits(server.url) : undefined;
  const said = visits
    ? `A page with the smallest model, navigation to first token: ${visits.first_ms.toFixed(0)} ms on the first visit of ` +
      `a Chromium profile, ${visits.second_ms.toFixed(0)} ms on the second.`
    : '';
  console.log(`${hostsTable(rows)}\n\n${said}`);
  save(visits);
  console.error(`wrote ${relative(root, out)}`);
  if (skipped.length > 0) process.exitCode = 1;
  if (options.document) {
    writeSection(
      'browsers',
      `## Browsers, with and without relaxed SIMD

Medians of ${options.repetitions} rounds in tokens/s, with ${options.prompt} prompt tokens, ${options.tokens} answer tokens and ${threads === 1 ? '1 thread' : `${threads} threads`}. Ratios
are relative to the model's first row.

\`make bench-browsers\`: ${environmentLine(environment)}.

${hostsTable(rows)}

${said}`,
    );
  }
} finally {
  await chromium.close();
  await server.close();
}
