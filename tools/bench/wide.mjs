// Tests a model that needs more than 4 GiB, in Node 24 and Chromium: whether its logits are
// bit-identical to those of the native build, its loading time, and the time per token.
//   node tools/bench/wide.mjs [--shape qwen3-8b] [--type q4_k_m] [--folder /tmp] [--hosts node,chromium]
//     [--simd simd128,relaxed] [--threads 2] [--tokens 6] [--model FILE]
// Writes the model into the folder (5 GB) and removes it at the end, unless a file is given.
// With plain SIMD, results are bit-identical to those of the native build; relaxed SIMD is the
// default of these hosts.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { launchOwnChromium } from '../../tests/support/browsers.mjs';
import { built, locate, root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';

const { values: options } = parseArgs({
  options: {
    shape: { type: 'string', default: 'qwen3-8b' },
    type: { type: 'string', default: 'q4_k_m' },
    folder: { type: 'string', default: '/tmp' },
    hosts: { type: 'string', default: 'node,chromium' },
    simd: { type: 'string', default: 'simd128,relaxed' },
    threads: { type: 'string', default: '2' },
    tokens: { type: 'string', default: '6' },
    model: { type: 'string' },
  },
});
const dist = resolve(root, 'dist');
const folder = mkdtempSync(join(options.folder, 'wick-wide-'));
const model = options.model ? resolve(options.model) : join(folder, 'model.gguf');
const prompt = [3, 14, 15, 92, 65, 35];

/** @typedef {{loadS: number, tokenMs: number[], tokens: number[], sums: string[], linearBytes: number, kernels: string}} Found */

/**
 * Runs in pages and in Node 24, so it must not use other code in this file.
 * @param {string} entry the URL of the package
 * @param {any} settings of createEngine
 * @param {number[]} prompt
 * @param {number} maxTokens
 * @returns {Promise<Found>}
 */
async function measure(entry, settings, prompt, maxTokens) {
  const { createEngine } = await import(entry);
  const begin = performance.now();
  const engine = await createEngine(settings);
  const loadS = (performance.now() - begin) / 1000;
  const tokens = /** @type {number[]} */ ([]);
  const times = /** @type {number[]} */ ([]);
  const rows = /** @type {Float32Array<ArrayBuffer>[]} */ ([]);
  const logitsHook = (/** @type {Float32Array} */ logits) => {
    times.push(performance.now());
    rows.push(new Float32Array(logits));
  };
  const onToken = (/** @type {{token: number}} */ { token }) => tokens.push(token);
  await engine
    .generate(prompt, { temperature: 0, maxTokens, ignoreEnd: true, onToken, logitsHook })
    .text();
  const { memory, kernels } = await engine.info();
  await engine.close();
  const sums = [];
  for (const row of rows) {
    const hash = await crypto.subtle.digest('SHA-256', row);
    sums.push(
      Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join(''),
    );
  }
  const tokenMs = times.slice(1).map((time, index) => time - times[index]);
  return { loadS, tokenMs, tokens, sums, linearBytes: memory.linearBytes, kernels };
}

/** @param {number[]} tokens @returns {string[]} the native build's checksums after the prompt and after each token except the last */
function nativeSums(tokens) {
  const out = join(folder, 'logits.f32');
  const all = [...prompt, ...tokens.slice(0, -1)];
  execFileSync(built('native/wick'), [
    'logits',
    model,
    '--tokens',
    all.join(','),
    '--out',
    out,
    '--threads',
    options.threads,
  ]);
  const bytes = readFileSync(out);
  const rowBytes = bytes.length / all.length;
  return tokens.map((_, index) => {
    const at = (prompt.length - 1 + index) * rowBytes;
    return createHash('sha256')
      .update(bytes.subarray(at, at + rowBytes))
      .digest('hex');
  });
}

/** @param {any[]} args of `measure` @returns {Found} */
function inNode(args) {
  const given = args.map((one) => JSON.stringify(one)).join();
  const script = `console.log(JSON.stringify(await (${measure})(${given})))`;
  const { path } = locate('node24');
  return JSON.parse(execFileSync(path, ['--input-type=module', '-e', script]).toString());
}

/** @param {any[]} args of `measure` @returns {Promise<Found>} */
async function inChromium(args) {
  const folders = { '/': resolve(root, 'tests/support/empty_page'), '/dist/': dist };
  const server = await serve({ root: { ...folders, '/models/': dirname(model) } });
  const browser = await launchOwnChromium();
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(0);
    await page.goto(server.url);
    return await page.evaluate(
      ([source, ...given]) => new Function(`return ${source}`)()(...given),
      [`${measure}`, ...args],
    );
  } finally {
    await browser.close();
    await server.close();
  }
}

try {
  if (!options.model) {
    execFileSync(built('native/wick'), ['synth', options.shape, options.type, model]);
  }
  const kind = Number(options.threads) > 1 ? 'threads' : 'single';
  console.log('| host | kernels | loading, s | ms per token | memory, GB | identical to native |');
  console.log('|---|---|---|---|---|---|');
  for (const host of options.hosts.split(',')) {
    for (const simd of options.simd.split(',')) {
      const wasm = `wasm/wick-${simd}-${kind}.wasm`;
      const settings = { threads: Number(options.threads), cache: false, kvType: 'f32' }; // as in `wick logits`
      const found = await (host === 'node'
        ? inNode([
            pathToFileURL(join(dist, 'index.js')).href,
            { ...settings, file: model, wasm: pathToFileURL(join(dist, wasm)).href },
            ...[prompt, Number(options.tokens)],
          ])
        : inChromium([
            '/dist/index.js',
            { ...settings, url: `/models/${basename(model)}`, wasm: `/dist/${wasm}` },
            ...[prompt, Number(options.tokens)],
          ]));
      const { loadS, tokenMs, tokens, sums, linearBytes, kernels } = found;
      const sorted = tokenMs.sort((a, b) => a - b);
      const native = nativeSums(tokens);
      const same = sums.filter((sum, index) => sum === native[index]).length;
      console.log(
        `| ${host} | ${kernels} | ${loadS.toFixed(1)} | ${sorted[sorted.length >> 1].toFixed(0)} | ` +
          `${(linearBytes / 1e9).toFixed(2)} | ${same} of ${sums.length} |`,
      );
    }
  }
} finally {
  rmSync(folder, { recursive: true });
}
