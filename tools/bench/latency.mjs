// Measures the delay of the first piece of text in addition to the engine's own time (ttftMs), the time
// for one token just after another request was aborted, and the speed at which streamed text arrives.
// Prints medians for this Node and for Chromium.
//
//   node tools/bench/latency.mjs [DIST] [THREADS] [HOSTS]    HOSTS: node,chromium (both by default)
// To compare two DISTs, run this alternately for both.

import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { launchChromium } from '../../tests/support/browsers.mjs';
import { serve } from '../serve.mjs';
import { measureLatency } from './latency_measure.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [dist = resolve(root, 'dist'), threadsText = '1', hosts = 'node,chromium'] =
  process.argv.slice(2);
const threads = Number(threadsText);
const model = 'examples/models/wick-2.6m-q8_0.gguf';

async function measureInNode() {
  const { createEngine } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
  const engine = await createEngine({ file: resolve(root, model), threads });
  const found = await measureLatency(engine);
  await engine.close();
  return found;
}

async function measureInChromium() {
  const server = await serve({
    root: {
      '/': resolve(root, 'tests/support/empty_page'),
      '/dist/': resolve(dist),
      '/examples/models/': resolve(root, 'examples/models'),
      '/bench/': resolve(root, 'tools/bench'),
    },
  });
  const browser = await launchChromium();
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  await page.goto(server.url);
  const given = { entry: '/dist/index.js', code: '/bench/latency_measure.mjs', model, threads };
  const found = await page.evaluate(async ({ entry, code, model: name, threads: count }) => {
    const { createEngine } = await import(entry);
    const { measureLatency: measure } = await import(code);
    const engine = await createEngine({ url: `/${name}`, threads: count, cache: false });
    return measure(engine);
  }, given);
  await browser.close();
  await server.close();
  return found;
}

/** @type {Record<string, () => ReturnType<typeof measureLatency>>} */
const measures = { node: measureInNode, chromium: measureInChromium };
for (const host of hosts.split(',')) {
  const { firstPieceMs, afterAbortMs, tokensPerSecond } = await measures[host]();
  console.log(`${host}: first piece after its token: ${firstPieceMs.toFixed(2)} ms`);
  console.log(`${host}: one token after an abort: ${afterAbortMs.toFixed(2)} ms`);
  console.log(`${host}: streamed: ${tokensPerSecond.toFixed(2)} tokens/s`);
}
