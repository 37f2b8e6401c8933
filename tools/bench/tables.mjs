// Measures the cost and the savings of tables outside linear memory, in Node and in Chromium, with the
// shape of Gemma 4 E2B reduced to a given number of layers. Two engines, one with the tables in memory and
// one with the tables outside, take turns at processing prompts and generating.
//   node tools/bench/tables.mjs [--layers 8] [--vocab 262144] [--runs 9] [--prompt 128] [--tokens 16] [--browser]

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { createEngine } from '../../tests/support/package.mjs';
import { serve } from '../serve.mjs';
import { describeEnvironment } from './environment.mjs';
import { e2b, writeGemma4 } from './gemma4_file.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    layers: { type: 'string', default: '8' },
    vocab: { type: 'string', default: '262144' },
    runs: { type: 'string', default: '9' },
    prompt: { type: 'string', default: '128' },
    tokens: { type: 'string', default: '16' },
    browser: { type: 'boolean', default: false },
  },
});
const sizes = {
  runs: Number(options.runs),
  prompt: Number(options.prompt),
  tokens: Number(options.tokens),
  vocab: Number(options.vocab),
};
const folder = mkdtempSync(join(tmpdir(), 'wick-tables-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, 'model.gguf');

/** @typedef {{prefill: number[], decode: number[], loadMs: number, linearBytes: number, outsideBytes: number}} Side */

/**
 * Measures the sources alternately, each with a separate engine. Also runs in a page, so it must not
 * use other parts of this module.
 * @param {typeof createEngine} create
 * @param {Record<string, object>} sources options of createEngine
 * @param {typeof sizes} given
 * @returns {Promise<Record<string, Side>>}
 */
async function measure(create, sources, given) {
  const opened = [];
  for (const [name, source] of Object.entries(sources)) {
    const startMs = performance.now();
    const engine = await create(
      /** @type {any} */ ({ threads: 1, contextSize: 512, prefixCache: false, ...source }),
    );
    const loadMs = performance.now() - startMs;
    const { memory, plan } = await engine.info();
    const { linearBytes } = memory;
    const outsideBytes = plan?.outsideBytes ?? 0;
    opened.push({
      name,
      engine,
      side: { prefill: [], decode: [], loadMs, linearBytes, outsideBytes },
    });
  }
  let word = 1;
  for (let run = 0; run <= given.runs; run++) {
    // new words each time, the same for all sources, so that no row of the tables has been read before
    const prompt = Array.from({ length: given.prompt }, () => {
      word = (word * 48271) % 2147483647;
      return 260 + (word % (given.vocab - 260));
    });
    for (const { engine, side } of run % 2 === 0 ? opened : [...opened].reverse()) {
      const request = { maxTokens: given.tokens, temperature: 1, seed: run, ignoreEnd: true };
      const generation = engine.generate(prompt, { ...request, speculation: false });
      await generation.text();
      const { timings, usage } = /** @type {any} */ (generation.result);
      if (run === 0) continue;
      /** @type {number[]} */ (side.prefill).push((1e3 * given.prompt) / timings.prefillMs);
      /** @type {number[]} */ (side.decode).push(
        (1e3 * (usage.completionTokens - 1)) / timings.decodeMs,
      );
    }
  }
  for (const { engine } of opened) await engine.close();
  return Object.fromEntries(opened.map(({ name, side }) => [name, side]));
}

const mb = (/** @type {number} */ bytes) => (bytes / 1e6).toFixed(1);

/** @param {Record<string, Side>} sides @param {string} where */
function tell(sides, where) {
  const { inside } = sides;
  console.log(
    `\n| ${where} | linear memory MB | outside MB | loaded ms | prefill tokens/s | relative to inside | decode tokens/s | relative to inside |`,
  );
  console.log('|---|---|---|---|---|---|---|---|');
  for (const [name, side] of Object.entries(sides)) {
    const ratio = (/** @type {'prefill' | 'decode'} */ of) => {
      const [low, high] = ratioInterval(side[of], inside[of]);
      const middle = median(side[of]) / median(inside[of]);
      return `${middle.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
    };
    const cells = [
      ...[name, mb(side.linearBytes), mb(side.outsideBytes), side.loadMs.toFixed(0)],
      ...[median(side.prefill).toFixed(1), ratio('prefill')],
      ...[median(side.decode).toFixed(2), ratio('decode')],
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

writeGemma4(file, { ...e2b, layers: Number(options.layers), vocab: sizes.vocab });
const { cpu, node, commit, date } = describeEnvironment();
console.log(
  `${cpu}, Node ${node}, ${commit}, ${date}: ${options.layers} layers, ${mb(statSync(file).size)} MB, prompts of ${sizes.prompt} tokens, ${sizes.tokens} generated, ${sizes.runs} runs`,
);
tell(
  await measure(
    createEngine,
    { inside: { file, tables: 'inside' }, outside: { file, tables: 'outside' } },
    sizes,
  ),
  'Node',
);
if (options.browser) {
  const folders = {
    '/': join(root, 'tests/support/empty_page'),
    '/wick-llm/': join(root, 'dist'),
    '/models/': folder,
  };
  const server = await serve({ root: folders });
  const browser = await launchChromium();
  const page = await browser.newPage();
  page.setDefaultTimeout(600_000);
  await page.goto(server.url);
  const found = await page.evaluate(
    /** @type {any} */ (
      async (/** @type {{code: string, given: typeof sizes}} */ { code, given }) => {
        const entry = '/wick-llm/index.js';
        const { createEngine } = await import(entry);
        const url = new URL('/models/model.gguf', document.baseURI).href;
        const blob = await (await fetch(url)).blob();
        const measure = new Function(`return ${code}`)();
        const sources = {
          inside: { blob, tables: 'inside' },
          'outside, Blob': { blob, tables: 'outside' },
        };
        return measure(createEngine, sources, given);
      }
    ),
    { code: measure.toString(), given: sizes },
  );
  tell(/** @type {any} */ (found), 'Chromium');
  await browser.close();
  await server.close();
}
process.exit(0);
