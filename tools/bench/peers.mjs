// Wick against its peers on the same files, in one run, in turns:
//   node tools/bench/peers.mjs [--models shape:type,...] [--threads 1,2] [--prompt 128] [--tokens 32]
//     [--repetitions 7]
// QUICK=1: 64 + 16 tokens, 3 repetitions, no intervals. Writes build/bench/peers.json and a table.

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { makeModel, modelFolder } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const quick = process.env.QUICK === '1';
const { values: options } = parseArgs({
  options: {
    models: { type: 'string', default: 'smollm2-135m:q8_0,smollm2-135m:q4_0' },
    threads: { type: 'string', default: '1' },
    prompt: { type: 'string', default: quick ? '64' : '128' },
    tokens: { type: 'string', default: quick ? '16' : '32' },
    repetitions: { type: 'string', default: quick ? '3' : '7' },
    out: { type: 'string', default: 'build/bench/peers.json' },
  },
});
const promptTokens = Number(options.prompt);
const newTokens = Number(options.tokens);
const repetitions = Number(options.repetitions);
const context = 512;

/** @typedef {{promptTokens: number, tokens: number, prefill: number, decode: number}} Measurement */

/**
 * A prompt of about `count` tokens: in the synthetic vocabularies a letter or two is a token.
 * @param {number} count
 */
function makePrompt(count) {
  let text = '';
  for (let i = 0; i < count; i++) text += 'qzxjkvbwpyg'[(i * 7) % 11];
  return text;
}

/** @param {import('playwright-core').Browser} browser @param {string} address */
async function openPeer(browser, address) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(600_000);
  await page.goto(address);
  await page.waitForFunction('globalThis.peer !== undefined');
  return {
    /** @param {'load' | 'measure' | 'facts'} method @param {object} argument @returns {Promise<any>} */
    call: (method, argument) =>
      page.evaluate(
        ([name, value]) => /** @type {any} */ (globalThis).peer[name](value),
        /** @type {[string, object]} */ ([method, argument]),
      ),
    close: () => page.context().close(),
  };
}

/**
 * Both sides of one model and thread count, measured in turns.
 * @param {import('playwright-core').Browser} browser
 * @param {string} base
 * @param {string} name
 * @param {number} threads
 */
async function compare(browser, base, name, threads) {
  /** @type {Record<string, Awaited<ReturnType<typeof openPeer>>>} */
  const sides = {};
  /** @type {Record<string, Measurement[]>} */
  const measured = { wick: [], wllama: [] };
  for (const peer of Object.keys(measured)) {
    sides[peer] = await openPeer(browser, `${base}page.html?peer=${peer}`);
    await sides[peer].call('load', { url: `/models/${name}`, threads, context });
  }
  const work = { prompt: makePrompt(promptTokens), tokens: newTokens };
  for (let round = -1; round < repetitions; round++) {
    for (const peer of Object.keys(measured)) {
      const result = await sides[peer].call('measure', work);
      if (round >= 0) measured[peer].push(result); // the first round warms up
    }
  }
  const facts = await sides.wick.call('facts', {});
  for (const side of Object.values(sides)) await side.close();
  return { measured, facts };
}

/**
 * @param {string} model
 * @param {string} type
 * @param {number} threads
 * @param {Record<string, Measurement[]>} measured
 */
function makeRows(model, type, threads, measured) {
  return /** @type {const} */ (['prefill', 'decode']).map((phase) => {
    const ours = measured.wick.map((m) => m[phase]);
    const theirs = measured.wllama.map((m) => m[phase]);
    return {
      model,
      type,
      threads,
      phase,
      peer: 'wllama 3.8.1',
      wick: median(ours),
      peer_value: median(theirs),
      ratio: median(ours) / median(theirs),
      ratio_ci: quick ? null : ratioInterval(ours, theirs),
      prompt_tokens: [measured.wick[0].promptTokens, measured.wllama[0].promptTokens],
      samples: { wick: ours, peer: theirs },
    };
  });
}

/** @param {ReturnType<typeof makeRows>} rows */
function printTable(rows) {
  console.log('| model | type | threads | phase | wick tok/s | wllama tok/s | ratio | 95 % |');
  console.log('|---|---|---|---|---|---|---|---|');
  for (const row of rows) {
    const interval = row.ratio_ci ? row.ratio_ci.map((x) => x.toFixed(1)).join(' to ') : '';
    console.log(
      `| ${row.model} | ${row.type} | ${row.threads} | ${row.phase} | ${row.wick.toFixed(1)} | ` +
        `${row.peer_value.toFixed(1)} | ${row.ratio.toFixed(2)} | ${interval} |`,
    );
  }
}

const server = await serve({
  root: {
    '/': resolve(root, 'tools/bench'),
    '/dist': resolve(root, 'dist'),
    '/models': modelFolder,
    '/wllama': resolve(root, 'node_modules/@wllama/wllama/esm'),
  },
});
const browser = await launchChromium();
const rows = [];
try {
  for (const pair of options.models.split(',')) {
    const [shape, type] = pair.split(':');
    const { name } = makeModel(shape, type);
    for (const threads of options.threads.split(',').map(Number)) {
      console.error(`${name}, ${threads} thread(s)`);
      const { measured, facts } = await compare(browser, server.url, name, threads);
      console.error(`  wick runs ${facts.build ?? facts.kernels ?? ''}`);
      rows.push(...makeRows(shape, type, threads, measured));
    }
  }
  printTable(rows);
  const environment = {
    cpu: cpus()[0].model,
    cores: cpus().length,
    browser: `Chromium ${browser.version()}`,
    node: process.version,
    date: new Date().toISOString(),
    prompt_tokens: promptTokens,
    tokens: newTokens,
    repetitions,
  };
  const out = resolve(root, options.out);
  mkdirSync(resolve(out, '..'), { recursive: true });
  writeFileSync(out, `${JSON.stringify({ environment, rows }, null, 2)}\n`);
} finally {
  await browser.close();
  await server.close();
}
