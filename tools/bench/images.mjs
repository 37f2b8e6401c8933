// Measures a question about an image until the first token of its answer, in Wick and its peers, alternately: wllama in the
// same Chromium, native llama.cpp in a separate process.
//   node tools/bench/images.mjs [--encoders lfm2-vl-450m:f16,lfm2-vl-450m:q8_0] [--text lfm2.5-350m:q4_0] [--threads 1]
//     [--side 512] [--rounds 5] [--native FOLDER]
// The encoders are those of `wick-lab mmproj`, the model is as wide as their rows. Each round has another image of random
// pixels, so that nothing is cached. --native: the package that has llama.cpp with its library of images, which node-llama-cpp
// is built without:  npm install --prefix .toolchain/bench-images --ignore-scripts --include=optional @fugood/llama.node@1.7.15
// A peer that is not installed is left out.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { openPage } from './browser_peer.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel, modelFolder } from './models.mjs';
import { openNative } from './native_peer.mjs';
import { median } from './statistics.mjs';
import { closeAll, doEach, takeTurns, withinLimit } from './turns.mjs';

const { values: options } = parseArgs({
  options: {
    encoders: { type: 'string', default: 'lfm2-vl-450m:f16,lfm2-vl-450m:q8_0' },
    text: { type: 'string', default: 'lfm2.5-350m:q4_0' },
    threads: { type: 'string', default: '1' },
    side: { type: 'string', default: '512' },
    rounds: { type: 'string', default: '5' },
    native: {
      type: 'string',
      default: '.toolchain/bench-images/node_modules/@fugood/llama.node',
    },
  },
});
const rounds = Number(options.rounds);
const threads = Number(options.threads);
const LIMIT_MS = 600_000;
const question = 'What is this?';
const nativeEntry = resolve(root, options.native, 'lib/index.js');

/** @param {string} path @returns {string | undefined} the package's version */
const versionOf = (path) =>
  existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined;

/** By name; those without a version are not installed. @type {Record<string, string | undefined>} */
const peers = {
  wllama: versionOf(resolve(root, 'node_modules/@wllama/wllama/package.json')),
  'llama.cpp': versionOf(resolve(root, options.native, 'package.json')),
};
const names = ['wick', ...Object.keys(peers).filter((name) => peers[name])];

/** @param {string} encoder `shape:type` @returns {string} its file's name, in the folder of models */
function makeEncoder(encoder) {
  mkdirSync(modelFolder, { recursive: true });
  const name = `mmproj-${encoder.replace(':', '-')}.gguf`;
  const path = resolve(modelFolder, name);
  if (!existsSync(path)) {
    const lab = resolve(root, 'build/native/wick-lab');
    execFileSync(lab, ['mmproj', ...encoder.split(':'), `${path}.part`]);
    renameSync(`${path}.part`, path);
  }
  return name;
}

/** @param {number} round @returns {string} the name of a PPM file of random pixels */
function makeImage(round) {
  const name = `noise-${options.side}-${round}.ppm`;
  const pixels = new Uint8Array(Number(options.side) ** 2 * 3);
  let state = round + 1;
  for (let i = 0; i < pixels.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    pixels[i] = state >>> 24;
  }
  const head = `P6\n${options.side} ${options.side}\n255\n`;
  writeFileSync(resolve(modelFolder, name), Buffer.concat([Buffer.from(head), pixels]));
  return name;
}

/**
 * @param {string} encoder
 * @param {{browser: import('playwright-core').Browser, url: string}} host
 * @returns {Promise<string>} lines of the table
 */
async function compare(encoder, { browser, url }) {
  const [mmproj, model] = [
    makeEncoder(encoder),
    makeModel(.../** @type {[string, string]} */ (options.text.split(':'))),
  ];
  const images = Array.from({ length: rounds + 1 }, (_, round) => makeImage(round));
  const at = (/** @type {string} */ name) => resolve(modelFolder, name);
  const load = { context: 1024, threads, url: `/models/${model.name}` };
  /** @type {Record<string, import('./browser_peer.mjs').Peer>} */
  const sides = {};
  /** @type {Record<string, string>} */
  const failures = {};
  const see = (/** @type {string} */ name, /** @type {number} */ round) => {
    const image = images[round];
    const work = { text: question, image: `/models/${image}`, path: at(image) };
    return withinLimit(sides[name].call('see', work), LIMIT_MS);
  };
  try {
    await doEach(names, failures, async (name) => {
      const isNative = name === 'llama.cpp';
      const child = resolve(root, 'tools/bench/native_images_child.mjs');
      sides[name] = isNative
        ? openNative(child, nativeEntry)
        : await openPage(browser, `${url}page.html?peer=${name}`);
      const files = isNative
        ? { path: model.path, mmproj: at(mmproj) }
        : { mmproj: `/models/${mmproj}` };
      await withinLimit(sides[name].call('load', { ...load, ...files }), LIMIT_MS);
      await see(name, rounds);
    });
    const samples = await takeTurns(names, failures, {
      ...{ rounds, hasTimeFor: () => true, measure: see },
    });
    return linesOf(encoder, samples, failures);
  } finally {
    await closeAll(sides);
  }
}

/** @param {string} encoder @param {Record<string, any[]>} samples @param {Record<string, string>} failures */
function linesOf(encoder, samples, failures) {
  const macs = samples.wick?.[0].macs;
  const ours = median((samples.wick ?? []).map(({ ms }) => ms));
  return names
    .map((name) => {
      if (failures[name]) return `| ${encoder} | ${name} | failed: ${failures[name]} | | | |`;
      const ms = median(samples[name].map((one) => one.ms));
      const cells = [ms.toFixed(0), samples[name][0].promptTokens, (macs / ms / 1e6).toFixed(1)];
      return `| ${encoder} | ${name} | ${cells.join(' | ')} | ${(ms / ours).toFixed(2)} |`;
    })
    .join('\n');
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
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));
try {
  console.log(
    `${environmentLine(describeEnvironment())}, Chromium ${browser.version()}, ${threads} thread(s)`,
  );
  for (const [name, version] of Object.entries(peers)) {
    console.log(`${name} ${version ?? 'is not installed, so it is left out'}`);
  }
  console.log(
    '\n| encoder | engine | ms | tokens | GMAC/s of the encoder, at least | times Wick |',
  );
  console.log('|---|---|---|---|---|---|');
  for (const encoder of options.encoders.split(',')) {
    console.log(await compare(encoder, { browser, url: server.url }));
  }
} finally {
  await browser.close();
  await server.close();
}
