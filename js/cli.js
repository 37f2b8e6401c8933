#!/usr/bin/env node
// js/cli.js — the package's command, `wick`: the command line as WebAssembly under node:wasi. That build
// has one thread. So `run --threads 2` (or more) uses the package's engine, with the same options, output and exit
// codes.

import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { parse, relative, resolve, sep } from 'node:path';
import process from 'node:process';
import { detectSimd } from './base/host_features.js';
import { samplerLetters } from './base/sampler_fields.js';
import { EXIT_FILE, EXIT_INTERNAL, EXIT_MEMORY, EXIT_USAGE, Exit } from './cli/exit.js';
import { serveModel } from './cli/serve_command.js';
import { followMemory } from './cli/wasi_memory.js';

/** @typedef {import('./index.js').Engine} Engine */
/** @typedef {import('./index.js').GenerateOptions} GenerateOptions */

/** The options without a value. All others have one. */
const flags = new Set([
  ...['--healing', '--help', '-h', '--json', '--metrics', '--no-bos', '--no-special'],
  ...['--logprobs-after', '--no-log', '--no-predictor', '--no-speculation', '--special', '--stats'],
]);
const pathOptions = new Set(['-f', '--kl', '--out', '--save']);

/** @typedef {import('./cli/exit.js').Argument} Argument */

/** @param {string[]} args behind the command @returns {Argument[]} parsed as src/cli/args.c does */
function takeApart(args) {
  /** @type {Argument[]} */
  const found = [];
  let areOptionsOver = false;
  for (let at = 0; at < args.length; at++) {
    const argument = args[at];
    if (areOptionsOver || argument === '-' || !argument.startsWith('-')) {
      found.push({ positional: argument });
    } else if (argument === '--') {
      areOptionsOver = true;
    } else {
      const [, name, joined] = /^(--[^=]*)=(.*)$/s.exec(argument) ?? [
        undefined,
        argument,
        undefined,
      ];
      const isFlag = flags.has(name) || joined !== undefined;
      found.push({ option: name, value: isFlag ? joined : args[++at] });
    }
  }
  return found;
}

/** @param {Argument[]} found @returns {string[]} */
function putTogether(found) {
  const positionals = found.flatMap((one) => ('positional' in one ? [one.positional] : []));
  const options = found.flatMap((one) => {
    if ('positional' in one) return [];
    return one.value === undefined ? [one.option] : [one.option, one.value];
  });
  return [...options, '--', ...positionals];
}

/** The folder of the package's files: that of this file, or in the repository dist/. */
const home = new URL(
  existsSync(new URL('wasi', import.meta.url)) ? './' : '../dist/',
  import.meta.url,
);

// ---- the WASI build ----

const { root } = parse(resolve('.'));

/** @param {string} path @returns {string} the same path for the module, which has the disk at / */
const guestPath = (path) => `/${relative(root, resolve(path)).replaceAll(sep, '/')}`;

/** @param {string} command @param {Argument[]} found @returns {Argument[]} */
function withGuestPaths(command, found) {
  const pathAt = command === 'synth' ? 2 : 0;
  let positionals = 0;
  return found.map((one) => {
    if ('positional' in one) {
      const isPath = command === 'quantize' ? positionals < 2 : positionals === pathAt;
      positionals++;
      return isPath && one.positional !== '-' ? { positional: guestPath(one.positional) } : one;
    }
    const isPath = pathOptions.has(one.option) && one.value !== undefined && one.value !== '-';
    return isPath ? { ...one, value: guestPath(one.value ?? '') } : one;
  });
}

/** @returns {Promise<typeof import('node:wasi').WASI>} without the warning that it is experimental */
async function importWasi() {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  const { WASI } = await import('node:wasi');
  process.emitWarning = emitWarning;
  return WASI;
}

/** @param {string[]} args @param {{stdout?: number}} [options] @returns {Promise<number>} the exit code */
async function runWasi(args, { stdout = 1 } = {}) {
  const WASI = await importWasi();
  const name = detectSimd() === 'relaxed' ? 'wick-full-relaxed.wasm' : 'wick-full.wasm';
  const wasi = new WASI({
    version: 'preview1',
    args: ['wick', ...args],
    env: process.env,
    preopens: { '/': root },
    returnOnExit: true,
    stdout,
  });
  const setMemory = followMemory(wasi);
  const bytes = readFileSync(new URL(`wasi/${name}`, home));
  const module = await WebAssembly.compile(bytes);
  const imports = /** @type {WebAssembly.Imports} */ (wasi.getImportObject());
  const instance = await WebAssembly.instantiate(module, imports);
  setMemory(/** @type {WebAssembly.Memory} */ (instance.exports.memory));
  return wasi.start(instance);
}

// ---- run with threads ----

/** The command line's options that are settings of generate(). @type {Record<string, keyof GenerateOptions>} */
const settings = {
  '-n': 'maxTokens',
  '--temp': 'temperature',
  '--top-k': 'topK',
  '--top-p': 'topP',
  '--min-p': 'minP',
  '--repeat-penalty': 'repeatPenalty',
  '--frequency-penalty': 'frequencyPenalty',
  '--presence-penalty': 'presencePenalty',
  '--logprobs': 'logprobs',
  '--reasoning-budget': 'thinkingBudgetTokens',
  '--repeat-last-n': 'penaltyLast',
  '--typical': 'typicalP',
  '--top-nsigma': 'topNSigma',
  '--xtc-probability': 'xtcProbability',
  '--xtc-threshold': 'xtcThreshold',
  '--dynatemp-range': 'dynatempRange',
  '--dynatemp-exp': 'dynatempExponent',
  '--dry-multiplier': 'dryMultiplier',
  '--dry-base': 'dryBase',
  '--dry-allowed-length': 'dryAllowedLength',
  '--dry-penalty-last-n': 'dryPenaltyLast',
  '--mirostat': 'mirostat',
  '--mirostat-ent': 'mirostatTau',
  '--mirostat-lr': 'mirostatEta',
  '--adaptive-target': 'adaptiveTarget',
  '--adaptive-decay': 'adaptiveDecay',
};

/**
 * @param {Map<string, string | undefined>} last
 * @param {string[]} breakers
 * @returns {GenerateOptions} the samplers' options that are no numbers
 */
function readSamplers(last, breakers) {
  /** @type {GenerateOptions} */
  const options = {};
  const names = last.get('--samplers');
  const letters = last.get('--sampling-seq');
  if (names !== undefined) {
    options.samplers = /** @type {any} */ (names.split(';').filter((name) => name !== ''));
  }
  if (letters !== undefined) {
    const all = Object.entries(samplerLetters);
    const found = [...letters].map((letter) => all.find(([, one]) => one === letter)?.[0]);
    options.samplers = /** @type {any} */ (found);
  }
  if (breakers.length > 0) options.drySequenceBreakers = breakers.includes('none') ? [] : breakers;
  if (last.has('--logprobs-after')) options.logprobsAfter = true;
  return options;
}

/** @param {Argument[]} found options that the WASI build has checked */
function readRunOptions(found) {
  /** @type {Map<string, string | undefined>} */
  const last = new Map();
  /** @type {string[]} */
  const stop = [];
  /** @type {string[]} */
  const breakers = [];
  /** @type {string[]} */
  const positionals = [];
  for (const one of found) {
    if ('positional' in one) positionals.push(one.positional);
    else if (one.option === '--stop') stop.push(String(one.value));
    else if (one.option === '--dry-sequence-breaker') breakers.push(String(one.value));
    else last.set(one.option, one.value);
  }
  /** @type {GenerateOptions} */
  const generation = {
    temperature: 0,
    topK: 0,
    topP: 1,
    minP: 0,
    stop,
    ...readSamplers(last, breakers),
  };
  for (const [option, name] of Object.entries(settings)) {
    const value = last.get(option);
    if (value !== undefined) Object.assign(generation, { [name]: Number(value) });
  }
  if (last.has('--healing')) generation.healing = true;
  if (last.has('--no-speculation')) generation.speculation = false;
  const seed = last.get('--seed');
  if (seed !== undefined) generation.seed = BigInt(seed);
  return { last, generation, positionals };
}

/** @param {Map<string, string | undefined>} last @param {string} model @returns {string} */
function readPrompt(last, model) {
  const text = last.get('-p');
  const path = last.get('-f');
  if (text !== undefined && path !== undefined) {
    throw new Exit(EXIT_USAGE, 'the text comes from -p or from -f, not from both');
  }
  if (text !== undefined) return text;
  const isInput = path === undefined || path === '-';
  if (isInput && model === '-') {
    const message = 'standard input is the model already: give the text with -p or -f';
    throw new Exit(EXIT_USAGE, message);
  }
  try {
    return readFileSync(isInput ? 0 : path, 'utf8');
  } catch (error) {
    throw new Exit(EXIT_FILE, `cannot open ${path ?? 'standard input'}: ${error}`);
  }
}

/** @param {any} error of the package @returns {Exit} */
function exitFor(error) {
  const { code, message } = error;
  if (['ARG', 'GRAMMAR_TOO_LARGE', 'PROMPT_TOO_LONG'].includes(code))
    return new Exit(EXIT_USAGE, message);
  if (['NOMEM', 'PAGES'].includes(code)) return new Exit(EXIT_MEMORY, message);
  const isOurs = code === undefined || ['INTERNAL', 'WASM', 'WORKER_CRASHED'].includes(code);
  return new Exit(isOurs ? EXIT_INTERNAL : EXIT_FILE, message);
}

const HELPERS_MS_MAX = 30_000;

/** @param {Engine} engine @param {number} threads */
async function awaitHelpers(engine, threads) {
  let found = 0;
  for (const end = Date.now() + HELPERS_MS_MAX; found < threads && Date.now() < end; ) {
    found = (await engine.info()).threads;
  }
  if (found >= threads) return;
  throw new Exit(EXIT_USAGE, `--threads ${threads}: only ${found} can be had here`);
}

/** @param {string} text @returns {Promise<void>} when it was written */
function print(text) {
  return new Promise((settle, fail) => {
    const failed = (/** @type {Error} */ error) =>
      fail(new Exit(EXIT_FILE, `cannot write to standard output: ${error.message}`));
    process.stdout.once('error', failed);
    process.stdout.write(text, (error) => {
      if (error) return failed(error); // the stream's event follows, and somebody has to hear it
      process.stdout.off('error', failed);
      settle();
    });
  });
}

/** @param {number} value a float32 @returns {number} the one with the fewest digits that reads back */
function shortest(value) {
  const digits = [6, 7, 8].find((count) => Math.fround(Number(value.toPrecision(count))) === value);
  return digits === undefined ? Number(value.toPrecision(9)) : Number(value.toPrecision(digits));
}

/** @param {import('./index.js').TokenDetail} detail */
function printLogprobs({ top, ...one }) {
  /** @param {import('./index.js').TokenAlternative} shown */
  const fields = ({ token, text, logprob }) => ({ token, text, logprob: shortest(logprob) });
  const { logprob = 0 } = one; // asked for
  const shown = { ...fields({ ...one, logprob }), top: top.map(fields) };
  process.stderr.write(`${JSON.stringify(shown)}\n`);
}

/** @param {number} value */
const rounded = (value) => Math.round(value * 1000) / 1000;

/**
 * @param {Engine} engine
 * @param {import('./index.js').GenerationResult} result
 * @param {number} loadMs
 */
async function printStats(engine, { finishReason, usage, timings }, loadMs) {
  const { memory, plan, threads, kernels } = await engine.info();
  const stats = {
    load_ms: rounded(loadMs),
    ttft_ms: rounded(timings.ttftMs),
    prefill_tok_s: rounded(timings.prefillTokensPerSecond),
    decode_tok_s: rounded(timings.decodeTokensPerSecond),
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    finish_reason: finishReason,
    memory_bytes_peak: memory.peakBytes,
    memory_bytes_planned: plan?.totalBytes,
    threads,
    kernels,
  };
  process.stderr.write(`${JSON.stringify(stats)}\n`);
}

/** @param {string | undefined} given one type, or two as K:V @returns {any} what createEngine takes */
function kvTypeOf(given) {
  const [k, v = k] = given?.split(':') ?? [];
  return given && { k, v };
}

/** @param {Argument[]} found @param {number} threads @returns {Promise<undefined>} */
async function runThreaded(found, threads) {
  const { last, generation, positionals } = readRunOptions(found);
  if (positionals.length !== 1) {
    const [, more] = positionals;
    const problem = more === undefined ? 'MODEL is missing' : `unexpected argument '${more}'`;
    throw new Exit(EXIT_USAGE, `${problem} (usage: wick run MODEL [-p TEXT | -f FILE] [options])`);
  }
  const [model] = positionals;
  const prompt = readPrompt(last, model);
  /** @type {typeof import('./index.js')} */
  const { createEngine } = await import(new URL('index.js', home).href);
  const start = performance.now();
  const engine = await createEngine({
    ...(model === '-' ? { stream: process.stdin } : { file: model }),
    threads,
    contextSize: Number(last.get('--ctx') ?? 0),
    kvType: kvTypeOf(last.get('--kv')),
  });
  const loadMs = performance.now() - start;
  await awaitHelpers(engine, threads);
  if (generation.logprobs) generation.onToken = printLogprobs;
  const text = engine.generate(prompt, generation);
  for await (const piece of text) await print(piece);
  if (text.result && last.has('--stats')) await printStats(engine, text.result, loadMs);
  await engine.close();
}

/** @param {Argument[]} found @returns {number} how many are asked for, 0 when that is not a number */
function threadsOf(found) {
  const given = found.findLast((one) => 'option' in one && one.option === '--threads');
  const value = given && 'value' in given ? given.value : undefined;
  return /^\d+$/.test(value ?? '') ? Number(value) : 0;
}

/** Printed after the WASI program's list of commands. */
const SERVE_LINE = "This package also has 'wick serve MODEL': a server that OpenAI's clients know.";

/** @param {string[]} argv @returns {Promise<number | undefined>} the exit code, 0 where there is none */
async function main(argv) {
  const [command, ...args] = argv;
  if (['help', '-h', '--help'].includes(command)) {
    if (args[0] === 'serve') return serveModel([{ option: '--help', value: undefined }], home);
    const code = await runWasi(argv);
    if (args.length === 0) process.stdout.write(`${SERVE_LINE}\n`);
    return code;
  }
  if (command === undefined) return runWasi(argv);
  const found = takeApart(args);
  const isHelp = found.some((one) => 'option' in one && ['--help', '-h'].includes(one.option));
  if (command === 'serve') return serveModel(found, home);
  const guestArgs = [command, ...putTogether(withGuestPaths(command, found))];
  const threads = threadsOf(found);
  if (command !== 'run' || isHelp || threads < 2) return runWasi(guestArgs);
  // The WASI program checks the options; with valid ones it prints its help.
  const nowhere = openSync(devNull, 'w');
  const checked = await runWasi([...guestArgs.slice(0, guestArgs.indexOf('--')), '--help'], {
    stdout: nowhere,
  });
  closeSync(nowhere);
  if (checked !== 0) return checked;
  return runThreaded(found, threads);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { code, message } = error instanceof Exit ? error : exitFor(error);
  process.stderr.write(`wick: ${message}\n`);
  process.exit(code);
}
