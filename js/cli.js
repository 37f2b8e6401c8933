#!/usr/bin/env node
// js/cli.js — the package's command, `wick`: runs the command-line program as WebAssembly under
// node:wasi. That build has one thread and cannot interrupt an answer, so run and chat with
// `--threads 2` or more, and chat at a terminal, use the package's engine, with the same options,
// output and exit codes.

import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { parse, relative, resolve, sep } from 'node:path';
import process from 'node:process';
import { detectSimd } from './base/host_features.js';
import { loadAdapters } from './cli/adapters.js';
import { CHAT_HELP, chatWith } from './cli/chat_command.js';
import { EXIT_FILE, EXIT_INTERNAL, EXIT_MEMORY, EXIT_USAGE, Exit, readText } from './cli/exit.js';
import { isModelName, keptFile, sourceOf } from './cli/model_names.js';
import { print } from './cli/print.js';
import { engineOptionsOf, onlyModel, readOptions } from './cli/run_options.js';
import { serveModel } from './cli/serve_command.js';
import { followMemory } from './cli/wasi_memory.js';

/** @import { Argument } from './cli/exit.js' */
/** @import { Engine } from './index.js' */

/** Options that take no value. All others take one. */
const flags = new Set([
  ...['--healing', '--help', '-h', '--json', '--metrics', '--no-bos', '--no-special'],
  ...['--logprobs-after', '--no-predictor', '--no-speculation', '--special', '--stats'],
  ...['--llama', '--no-normalize', '--normalize', '--parse-special', '--truncate'],
  ...['--cost', '--like-llama-cpp', '--no-log'],
]);
const pathOptions = new Set([
  ...['-f', '-o', '--audio', '--check', '--choices', '--component', '--grammar', '--image'],
  ...['--json-schema', '--kl', '--lora', '--mmproj', '--out', '--parts', '--save', '--template'],
]);

/**
 * @param {string[]} args after the command
 * @returns {Argument[]} the arguments, parsed as in src/cli/args.c
 */
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

/** The folder of the package's files: the folder of this file, or dist/ in the repository. */
const home = new URL(
  existsSync(new URL('wasi', import.meta.url)) ? './' : '../dist/',
  import.meta.url,
);

// ---- the WASI build ----

const { root } = parse(resolve('.'));

/**
 * @param {string} path
 * @returns {string} the same path for the module, in which the disk is mounted at /
 */
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

/**
 * @returns {Promise<typeof import('node:wasi').WASI>} node:wasi, imported without the warning that
 * it is experimental
 */
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

/** @param {Map<string, string | undefined>} last @param {string} model @returns {string} */
function readPrompt(last, model) {
  const text = last.get('-p');
  const path = last.get('-f');
  if (text !== undefined && path !== undefined) {
    throw new Exit(EXIT_USAGE, 'give the text with -p or -f, not both');
  }
  if (text !== undefined) return text;
  const isInput = path === undefined || path === '-';
  if (isInput && model === '-') {
    const message = 'standard input is the model already: give the text with -p or -f';
    throw new Exit(EXIT_USAGE, message);
  }
  return readText(isInput ? 0 : path);
}

/** @param {any} error thrown by the package @returns {Exit} */
function exitFor(error) {
  const { code, message, cause } = error;
  const isGrammar = String(cause?.option).startsWith('grammar');
  if (isGrammar && code !== 'NOMEM') return new Exit(EXIT_USAGE, message);
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
  throw new Exit(EXIT_USAGE, `--threads ${threads}: the limit here is ${found}`);
}

/**
 * @param {number} value a float32
 * @returns {number} the number with the fewest digits that converts back to the same float32
 */
function shortest(value) {
  const digits = [6, 7, 8].find((count) => Math.fround(Number(value.toPrecision(count))) === value);
  return digits === undefined ? Number(value.toPrecision(9)) : Number(value.toPrecision(digits));
}

/** @param {import('./index.js').TokenDetail} detail */
function printLogprobs({ top, ...one }) {
  /** @param {import('./index.js').TokenAlternative} shown */
  const fields = ({ token, text, logprob }) => ({ token, text, logprob: shortest(logprob) });
  const { logprob = 0 } = one; // always set: it was requested
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

/** @param {Argument[]} found @param {number} threads @returns {Promise<undefined>} */
async function runThreaded(found, threads) {
  const { last, generation, lora, positionals } = readOptions(found);
  const model = onlyModel(positionals, 'wick run MODEL [-p TEXT | -f FILE] [options]');
  const prompt = readPrompt(last, model);
  /** @type {typeof import('./index.js')} */
  const { createEngine } = await import(new URL('index.js', home).href);
  const start = performance.now();
  const { source, ready } = sourceOf(model);
  const options = /** @type {any} */ ({ ...source, ...engineOptionsOf(last) });
  const engine = await createEngine(options).finally(ready);
  const loadMs = performance.now() - start;
  await awaitHelpers(engine, threads);
  Object.assign(generation, await loadAdapters(engine, lora));
  if (generation.logprobs) generation.onToken = printLogprobs;
  const text = engine.generate(prompt, generation);
  for await (const piece of text) await print(piece);
  if (text.result && last.has('--stats')) await printStats(engine, text.result, loadMs);
  await engine.close();
}

/**
 * @param {Argument[]} found
 * @returns {number} the number of requested threads, or 0 if the value is not a number
 */
function threadsOf(found) {
  const given = found.findLast((one) => 'option' in one && one.option === '--threads');
  const value = given && 'value' in given ? given.value : undefined;
  return /^\d+$/.test(value ?? '') ? Number(value) : 0;
}

/** Printed after the WASI program's list of commands. */
const MORE_HELP = `This package also has 'wick serve MODEL': a server for OpenAI's clients. A MODEL can also be a URL,
or a name on a hub such as Qwen/Qwen3-0.6B-GGUF:Q8_0: it is downloaded once and kept.
`;

/** The commands whose first argument is a model. */
const readers = new Set([
  ...['run', 'chat', 'embed', 'rerank', 'tokenize', 'detokenize', 'template', 'inspect'],
  ...['logits', 'bench', 'perplexity'],
]);

/**
 * @param {Argument[]} found
 * @param {string} command
 * @returns {Promise<Argument[]>} the arguments, with the file in place of a model's name
 */
async function withKeptModel(found, command) {
  const at = found.findIndex((one) => 'positional' in one);
  const model = at >= 0 && 'positional' in found[at] ? found[at].positional : undefined;
  if (model === undefined || !readers.has(command) || !isModelName(model)) return found;
  return found.with(at, { positional: await keptFile(model, home) });
}

/**
 * @param {string} command @param {Argument[]} found @returns {Promise<number>} the exit code of the
 * WASI program, which checks the options
 */
async function checkOptions(command, found) {
  const options = putTogether(
    withGuestPaths(
      command,
      found.filter((one) => 'option' in one),
    ),
  );
  // if the options are valid, the program prints its help
  const nowhere = openSync(devNull, 'w');
  const code = await runWasi([command, ...options.slice(0, -1), '--help'], { stdout: nowhere });
  closeSync(nowhere);
  return code;
}

/**
 * @param {string} command
 * @param {Argument[]} found
 * @returns {boolean} whether the package's engine runs the command
 */
function usesEngine(command, found) {
  if (threadsOf(found) >= 2) return ['run', 'chat'].includes(command);
  const asksOnce = found.some((one) => 'option' in one && one.option === '-p');
  return command === 'chat' && process.stdin.isTTY && !asksOnce;
}

/**
 * @param {string[]} argv
 * @returns {Promise<number | undefined>} the exit code, 0 if there is none
 */
async function main(argv) {
  const [command, ...args] = argv;
  if (['help', '-h', '--help'].includes(command)) {
    if (args[0] === 'serve') return serveModel([{ option: '--help', value: undefined }], home);
    const code = await runWasi(argv);
    if (args.length === 0) process.stdout.write(MORE_HELP);
    return code;
  }
  if (command === undefined) return runWasi(argv);
  const found = takeApart(args);
  const isHelp = found.some((one) => 'option' in one && ['--help', '-h'].includes(one.option));
  if (command === 'serve') return serveModel(found, home);
  if (isHelp || !usesEngine(command, found)) {
    const whole = isHelp ? found : await withKeptModel(found, command);
    const code = await runWasi([command, ...putTogether(withGuestPaths(command, whole))]);
    if (isHelp && code === 0 && command === 'chat') process.stdout.write(`${CHAT_HELP}\n`);
    return code;
  }
  const checked = await checkOptions(command, found);
  if (checked !== 0) return checked;
  return command === 'chat' ? chatWith(found, home) : runThreaded(found, threadsOf(found));
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { code, message } = error instanceof Exit ? error : exitFor(error);
  process.stderr.write(`wick: ${message}\n`);
  process.exit(code);
}
