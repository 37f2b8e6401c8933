// Measures tokens per second of 1, 2, 4, 8 and 16 sequences that decode together, and of prefill,
// in Chromium on one thread. Each round measures all counts, one after the other.
//   node tools/bench/batch.mjs [--model shape:type] [--tokens 32] [--repetitions 5] [--counts 1,2,4]
//     [--document]
// With --document, it writes its section of docs/benchmarks.md.

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { root } from '../../tests/support/locate.mjs';
import { serve } from '../serve.mjs';
import { openPage } from './browser_peer.mjs';
import { environmentLine, writeSection } from './document.mjs';
import { describeEnvironment } from './environment.mjs';
import { makeModel, modelFolder } from './models.mjs';
import { median, ratioInterval } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'smollm2-135m:q8_0' },
    tokens: { type: 'string', default: '32' },
    repetitions: { type: 'string', default: '5' },
    counts: { type: 'string', default: '1,2,4,8,16' },
    document: { type: 'boolean', default: false },
  },
});
const [shape, type] = options.model.split(':');
const tokens = Number(options.tokens);
const counts = options.counts.split(',').map(Number);
const PROMPT_TOKENS = 256;

/** @param {string} url of the server */
async function measure(url) {
  const { name } = makeModel(shape, type);
  const chromium = await launchChromium();
  try {
    const page = await openPage(chromium, `${url}page.html?peer=together`);
    const { kernels } = await page.call('load', {
      url: `/models/${name}`,
      threads: 1,
      context: 512,
    });
    /** @type {number[]} */
    const prefill = [];
    /** @type {Map<number, number[]>} */
    const decode = new Map(counts.map((count) => [count, []]));
    for (let round = -1; round < Number(options.repetitions); round++) {
      const rate = await page.call('prefill', { round: round + 1, tokens: PROMPT_TOKENS });
      if (round >= 0) prefill.push(rate);
      for (const count of counts) {
        const together = await page.call('decode', { count, tokens });
        if (round >= 0) decode.get(count)?.push(together);
      }
    }
    return { kernels, prefill, decode };
  } finally {
    await chromium.close();
  }
}

/** @param {Awaited<ReturnType<typeof measure>>} found */
function tableOf({ kernels, prefill, decode }) {
  const solo = /** @type {number[]} */ (decode.get(counts[0]));
  const lines = [...decode].map(([count, rates]) => {
    const [low, high] = ratioInterval(rates, solo);
    const times = (median(rates) / median(solo)).toFixed(2);
    const share = (median(rates) / median(prefill)).toFixed(2);
    return `| ${count} | ${median(rates).toFixed(1)} | ${times} (${low.toFixed(2)} to ${high.toFixed(2)}) | ${share} |`;
  });
  return `${options.model}, ${kernels} kernels, 1 thread, Chromium; prefill of ${PROMPT_TOKENS} tokens ${median(prefill).toFixed(1)} tok/s

| requests | tok/s in total | relative to one (95% CI) | relative to prefill |
|---|---|---|---|
${lines.join('\n')}`;
}

const folders = { '/': 'tools/bench', '/dist': 'dist' };
const server = await serve({
  root: {
    ...Object.fromEntries(Object.entries(folders).map(([to, from]) => [to, resolve(root, from)])),
    '/models': modelFolder,
  },
});
try {
  const environment = describeEnvironment();
  const table = tableOf(await measure(server.url));
  console.log(`${JSON.stringify(environment)}\n${table}`);
  if (options.document) {
    writeSection(
      'together',
      `## Several sequences at once

Medians of ${options.repetitions} rounds with ${tokens} tokens per request.

\`node tools/bench/batch.mjs --document\`: ${environmentLine(environment)}.

${table}`,
    );
  }
} finally {
  await server.close();
}
