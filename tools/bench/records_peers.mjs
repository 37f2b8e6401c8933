// Compares the cost of a JSON schema, and of a record, with wllama's grammar, alternately in one
// Chromium.
//   node tools/bench/records_peers.mjs [--models smollm2-135m:q4_0,qwen2.5-0.5b:q4_0] [--rounds 11] [--threads 1] [--document]
// "strings" are outputs without forced tokens: each token is sampled from all that match. "records"
// have four keys, whose tokens are forced. The unconstrained output of a round has as many tokens.
// wllama is given the schema as GBNF, because llama.cpp also converts schemas to GBNF; the cost of
// strings is measured only in Wick, because wllama needs minutes for it. Exit code 1: a token of a
// string takes significantly more than 3% longer than an unconstrained one, or a record takes at
// least as long as in wllama.

import { existsSync, readFileSync } from 'node:fs';
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
import { closeAll } from './turns.mjs';

const { values: options } = parseArgs({
  options: {
    models: { type: 'string', default: 'smollm2-135m:q4_0,qwen2.5-0.5b:q4_0' },
    rounds: { type: 'string', default: '11' },
    threads: { type: 'string', default: '1' },
    document: { type: 'boolean', default: false },
  },
});
const rounds = Number(options.rounds);
const COST_MAX = 1.03;
const STRING_TOKENS = 64;
const STRINGS_A_ROUND = 3; // several, because one takes little time
const RECORD_TOKENS_MAX = 200;

const word = { type: 'string', maxLength: 12 };
const properties = {
  first_name: word,
  family_name: word,
  years_of_age: { type: 'integer', minimum: 0, maximum: 99 },
  is_a_member: { type: 'boolean' },
};
const character = String.raw`char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4})`;
const member = (/** @type {string} */ name) => String.raw`"\"${name}\": "`;
const kinds = {
  strings: { schema: { type: 'string', minLength: 400 }, count: STRING_TOKENS },
  records: {
    schema: { type: 'object', properties, required: Object.keys(properties) },
    grammar: String.raw`root ::= "{" ${member('first_name')} word ", " ${member('family_name')} word ", " ${member('years_of_age')} ([0-9] | [1-9] [0-9]) ", " ${member('is_a_member')} ("true" | "false") "}"
word ::= "\"" char{0,12} "\""
${character}`,
    count: RECORD_TOKENS_MAX,
  },
};

/** @typedef {{text: string, tokens: number, ms: number}} Written */
/** @typedef {{bound: Written[], free: Written[]}} Samples */

/**
 * Measures strings: constrained and unconstrained outputs, whose order alternates, after an output
 * that is not measured.
 * @param {import('./browser_peer.mjs').Peer} page
 * @returns {Promise<Samples>}
 */
async function measureStrings(page) {
  const { schema, count } = kinds.strings;
  /** @type {Samples} */
  const samples = { bound: [], free: [] };
  await page.call('write', { text: 'A text:', seed: 1, schema, count });
  for (let round = 0; round < rounds * STRINGS_A_ROUND; round++) {
    const work = { text: 'A text:', seed: round + 2, count };
    const both = /** @type {('bound' | 'free')[]} */ (['bound', 'free']);
    for (const which of round % 2 === 0 ? both : both.toReversed()) {
      const more = which === 'bound' ? { schema } : {};
      samples[which].push(await page.call('write', { ...work, ...more }));
    }
    const [bound, free] = [samples.bound, samples.free].map((all) => all[round].ms.toFixed(0));
    console.error(`strings ${round}: ${bound} of ${free} ms`);
  }
  return samples;
}

/**
 * @param {Record<string, import('./browser_peer.mjs').Peer>} pages
 * @returns {Promise<Record<string, Samples>>}
 */
async function measureRecords(pages) {
  const names = Object.keys(pages);
  const { schema, grammar, count } = kinds.records;
  /** @type {Record<string, Samples>} */
  const samples = Object.fromEntries(names.map((name) => [name, { bound: [], free: [] }]));
  for (let round = -1; round < rounds; round++) {
    // the order changes from round to round
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const work = { text: 'A text:', seed: round + 2 };
      /** @type {Written} */
      const bound = await pages[name].call('write', { ...work, schema, grammar, count });
      checkRecord(name, bound);
      /** @type {Written} */
      const free = await pages[name].call('write', { ...work, count: bound.tokens });
      console.error(`records ${round}: ${name} ${bound.ms.toFixed(0)} of ${free.ms.toFixed(0)} ms`);
      if (round < 0) continue;
      samples[name].bound.push(bound);
      samples[name].free.push(free);
    }
  }
  return samples;
}

/** @param {string} name @param {Written} written */
function checkRecord(name, written) {
  const keys = Object.keys(JSON.parse(written.text)).join();
  if (keys !== Object.keys(properties).join()) throw new Error(`${name} wrote ${written.text}`);
}

/** @param {Written[]} written */
const msPerToken = (written) => written.map(({ ms, tokens }) => ms / (tokens - 1));

/** @param {number[]} over @param {number[]} under */
function ratio(over, under) {
  const [low, high] = ratioInterval(over, under);
  const shown = `${(median(over) / median(under)).toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
  return { low, high, shown };
}

/** @param {string} model @param {string} kind @param {Record<string, Samples>} samples @returns {string} */
function rows(model, kind, samples) {
  const lines = Object.entries(samples).map(([name, { bound, free }]) => {
    const cost = ratio(msPerToken(bound), msPerToken(free));
    if (name === 'wick' && kind === 'strings' && cost.low > COST_MAX) hasFailed = true;
    const whole = median(bound.map(({ ms }) => ms)).toFixed(1);
    const tokens = median(bound.map((one) => one.tokens));
    return `| ${model} | ${kind} | ${name} | ${median(msPerToken(bound)).toFixed(2)} | ${cost.shown} | ${whole} | ${tokens} |`;
  });
  return lines.join('\n');
}

/**
 * Returns a line that reports how much longer wllama takes.
 * @param {string} model
 * @param {Record<string, Samples>} samples
 * @returns {string}
 */
function recordsLine(model, { wick, wllama }) {
  const [ours, theirs] = [wick, wllama].map(({ bound }) => bound.map(({ ms }) => ms));
  const { low, shown } = ratio(theirs, ours);
  if (low <= 1) hasFailed = true;
  return `With ${model}, a record takes ${shown} times as long in wllama.`;
}

let hasFailed = false;
if (!existsSync(resolve(root, 'node_modules/@wllama/wllama/package.json'))) {
  console.error('records_peers: wllama is not installed. Run make setup-all');
  process.exit(1);
}
const wllama = JSON.parse(
  readFileSync(resolve(root, 'node_modules/@wllama/wllama/package.json'), 'utf8'),
);
const server = await serve({
  root: {
    '/': resolve(root, 'tools/bench'),
    '/dist': resolve(root, 'dist'),
    '/models': modelFolder,
    '/wllama': resolve(root, 'node_modules/@wllama/wllama/esm'),
  },
});
const browser = await launchChromium();
const [table, told] = [/** @type {string[]} */ ([]), /** @type {string[]} */ ([])];
try {
  for (const model of options.models.split(',')) {
    const [shape, type] = model.split(':');
    const { name } = makeModel(shape, type);
    /** @type {Record<string, import('./browser_peer.mjs').Peer>} */
    const pages = {};
    try {
      for (const peer of ['wick', 'wllama']) {
        pages[peer] = await openPage(browser, `${server.url}page.html?peer=${peer}`);
        const wanted = { url: `/models/${name}`, threads: Number(options.threads), context: 512 };
        await pages[peer].call('load', wanted);
      }
      table.push(rows(model, 'strings', { wick: await measureStrings(pages.wick) }));
      const records = await measureRecords(pages);
      table.push(rows(model, 'records', records));
      told.push(recordsLine(model, records));
    } finally {
      await closeAll(pages);
    }
  }
  const text = `| model | output | engine | ms per token | with / without schema (95 %) | ms per output | tokens |
|---|---|---|---|---|---|---|
${table.join('\n')}

${told.join('\n')}`;
  console.log(text);
  if (options.document) {
    writeSection(
      'records',
      `## JSON schemas compared with wllama's grammar

One Chromium (${browser.version()}), wllama ${wllama.version}, ${options.threads} thread, alternately: medians of ${rounds} rounds, and 95 % intervals of ratios.

\`node tools/bench/records_peers.mjs --document\`: ${environmentLine(describeEnvironment())}.

${text}`,
    );
  }
} finally {
  await browser.close();
  await server.close();
}
if (hasFailed) console.error('a schema costs too much, or records are not faster');
process.exitCode = hasFailed ? 1 : 0;
