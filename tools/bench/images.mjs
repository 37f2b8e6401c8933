// Measures the time from a question about an image to the first token of its answer, alternately in
// Wick and its peers: wllama in the same Chromium, native llama.cpp and Wick's native program in
// separate processes. Then measures the encoders' multiply-adds per second next to those of
// prefill, natively.
//   node tools/bench/images.mjs [--encoders smolvlm-256m:f16,smolvlm-256m:q8_0] [--threads 1] [--side 256] [--rounds 3]
//     [--layers 4] [--without wllama] [--before OTHER/dist]
// The encoders are those of `wick-lab mmproj`; the text model (text_model.mjs) is small, so nearly
// all of the time is the encoder's. All layers cost the same, so a few of them yield the same
// ratios sooner. Each round has another image of random pixels, so that nothing is cached.
// tools/setup.sh images installs native llama.cpp; a peer that is not installed is left out.
// --before adds another build of the package. Encoders without a type are measured in each type.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { openPage } from './browser_peer.mjs';
import { environmentLine } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel, modelFolder } from './models.mjs';
import { nativeImagesVersion, openNativeImages } from './native_images.mjs';
import { median } from './statistics.mjs';
import { writeTextModel } from './text_model.mjs';
import { closeAll, doEach, takeTurns, withinLimit } from './turns.mjs';

/**
 * By the encoder's name: the width of its rows, and the layers that add further rows for layers of
 * the text model.
 * @type {Record<string, {width: number, deepstacks: number[]}>}
 */
const shapes = {
  'smolvlm-256m': { width: 576, deepstacks: [] },
  'lfm2-vl-450m': { width: 1024, deepstacks: [] },
  'qwen3-vl-2b': { width: 2048, deepstacks: [5, 11, 17] },
  'gemma4-e2b': { width: 1536, deepstacks: [] },
};
const types = ['f16', 'q8_0'];

const { values: options } = parseArgs({
  options: {
    encoders: { type: 'string', default: Object.keys(shapes).join(',') },
    threads: { type: 'string', default: '1' },
    side: { type: 'string', default: '256' },
    rounds: { type: 'string', default: '3' },
    layers: { type: 'string', default: 'all' },
    without: { type: 'string', default: '' },
    before: { type: 'string' },
  },
});
const encoders = options.encoders
  .split(',')
  .flatMap((one) => (one.includes(':') ? [one] : types.map((type) => `${one}:${type}`)));
const rounds = Number(options.rounds);
const threads = Number(options.threads);
const LIMIT_MS = 600_000;
const question = 'What is this?';
const wllamaPackage = resolve(root, 'node_modules/@wllama/wllama/package.json');

/**
 * The peers by name; those without a version are not installed.
 * @type {Record<string, string | undefined>}
 */
const peers = {
  wllama: existsSync(wllamaPackage)
    ? JSON.parse(readFileSync(wllamaPackage, 'utf8')).version
    : undefined,
  'llama.cpp': nativeImagesVersion(),
};
const without = options.without.split(',');
const names = [
  ...(options.before ? ['wick before'] : []),
  ...['wick', 'wick native'],
  ...Object.keys(peers).filter((name) => peers[name] && !without.includes(name)),
];

/** @param {string} name of a file in the folder of models @param {(path: string) => void} make */
function makeOnce(name, make) {
  mkdirSync(modelFolder, { recursive: true });
  const path = resolve(modelFolder, name);
  if (existsSync(path)) return path;
  make(`${path}.part`);
  renameSync(`${path}.part`, path);
  return path;
}

const lab = resolve(root, 'build/native/wick-lab');

/**
 * @param {string} path of a GGUF file
 * @param {string} key of a u32
 * @param {number} value to write in its place, if the file has the key
 */
function setNumber(path, key, value) {
  const file = readFileSync(path);
  const at = file.indexOf(key);
  if (at < 0) return;
  file.writeUInt32LE(value, at + key.length + 4);
  writeFileSync(path, file);
}

/**
 * SmolVLM enlarges images to 2,048 pixels a side, which are 17 pictures of the same cost, so only
 * two are measured.
 * @param {string} shape
 * @param {string} type
 * @returns {string} its path
 */
const makeEncoder = (shape, type) =>
  makeOnce(`images-${shape}-${type}-${options.layers}.gguf`, (path) => {
    const layers = options.layers === 'all' ? [] : ['--layers', options.layers];
    execFileSync(lab, ['mmproj', shape, type, path, ...layers]);
    setNumber(path, 'clip.vision.preproc_image_size', 512);
  });

/** @param {string} shape @returns {string} its path */
function makeText(shape) {
  const { width, deepstacks } = shapes[shape];
  const layers = options.layers === 'all' ? Infinity : Number(options.layers);
  const count = deepstacks.filter((layer) => layer < layers).length;
  return makeOnce(`images-text-model-${width}-${count}.gguf`, (path) =>
    writeTextModel(path, width, count),
  );
}

/** Wick's native encoder as a side: without a text model. @returns {import('./browser_peer.mjs').Peer} */
function openLab() {
  let mmproj = '';
  return {
    async call(method, /** @type {any} */ argument) {
      if (method === 'load') {
        mmproj = argument.mmproj;
        return {};
      }
      const { gmac_all: all, gmac_per_s: rate } = encodeNatively(mmproj);
      return { ms: (all / rate) * 1000, promptTokens: '' };
    },
    close: async () => {},
  };
}

/** @param {string} mmproj @returns {any} the figures of `wick-lab media` */
function encodeNatively(mmproj) {
  const size = ['--width', options.side, '--height', options.side];
  return JSON.parse(
    execFileSync(lab, ['media', mmproj, ...size, '--runs', '1', '--threads', options.threads], {
      encoding: 'utf8',
    }),
  );
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

/** @param {string} name @param {{browser: import('playwright-core').Browser, url: string}} host */
async function openSide(name, { browser, url }) {
  if (name === 'wick native') return openLab();
  return name === 'llama.cpp'
    ? openNativeImages()
    : await openPage(browser, `${url}page.html?peer=${name.split(' ')[0]}`);
}

/**
 * @param {string} encoder
 * @param {{browser: import('playwright-core').Browser, url: string}} host
 * @returns {Promise<string>} lines of the table
 */
async function compare(encoder, host) {
  const [shape, type] = encoder.split(':');
  const [mmproj, model] = [makeEncoder(shape, type), makeText(shape)];
  const images = Array.from({ length: rounds }, (_, round) => makeImage(round));
  /** @type {Record<string, import('./browser_peer.mjs').Peer>} */
  const sides = {};
  /** @type {Record<string, string>} */
  const failures = {};
  const isPage = (/** @type {string} */ name) => ['wick', 'wick before', 'wllama'].includes(name);
  const see = (/** @type {string} */ name, /** @type {number} */ round) => {
    const path = resolve(modelFolder, images[round]);
    const place = isPage(name) ? { image: `/models/${images[round]}` } : { path };
    return withinLimit(sides[name].call('see', { text: question, ...place }), LIMIT_MS);
  };
  try {
    await doEach(names, failures, async (name) => {
      sides[name] = await openSide(name, host);
      const files = isPage(name)
        ? {
            ...{ url: `/models/${basename(model)}`, mmproj: `/models/${basename(mmproj)}` },
            ...(name === 'wick before' ? { dist: '/before' } : {}),
          }
        : { path: model, mmproj };
      const load = { context: 1024, threads, ...files };
      await withinLimit(sides[name].call('load', load), LIMIT_MS);
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

/** Multiply-adds of a token in the matrices of the shape 100mb. */
const PREFILL_MACS = 13 * (768 * (768 + 2 * 256) + 768 * 768 + 3 * 768 * 2048);

/** @param {string} encoder @returns {string} a line of the table */
function compareWithPrefill(encoder) {
  const [shape, type] = encoder.split(':');
  const mmproj = makeEncoder(shape, type);
  const { path } = makeModel('100mb', type);
  const wick = resolve(root, 'build/native/wick');
  const args = ['bench', path, '-p', '256', '-n', '1', '-r', '1', '--threads', options.threads];
  const rates = Array.from({ length: rounds }, () => {
    const bench = execFileSync(wick, [...args, '--format', 'json'], { encoding: 'utf8' });
    const tokens = JSON.parse(bench).runs[0].prefill_tok_s.median;
    return [(tokens * PREFILL_MACS) / 1e9, encodeNatively(mmproj).gmac_per_s];
  });
  const [prefill, encoding] = [0, 1].map((at) => median(rates.map((one) => one[at])));
  const ratio = median(rates.map(([prefill, encoding]) => encoding / prefill));
  return `| ${encoder} | ${encoding.toFixed(1)} | ${prefill.toFixed(1)} | ${ratio.toFixed(2)} |`;
}

const server = await serve({
  root: {
    '/': resolve(root, 'tools/bench'),
    '/dist': resolve(root, 'dist'),
    ...(options.before ? { '/before': resolve(options.before) } : {}),
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
  for (const encoder of encoders) console.log(await compare(encoder, { browser, url: server.url }));
  console.log('\n| encoder | GMAC/s of the encoder | of prefill | ratio |\n|---|---|---|---|');
  for (const encoder of encoders) console.log(compareWithPrefill(encoder));
} finally {
  await browser.close();
  await server.close();
}
