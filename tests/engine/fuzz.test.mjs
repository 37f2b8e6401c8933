// Runs each fuzzer in tests/fuzz/, starting with its committed seeds in tests/fuzz/seeds/NAME: a fixed
// number of inputs from a fixed seed, so that a slow machine tries equally many. With FUZZ_SECONDS (make fuzz),
// each runs for that time from a different seed, and its corpus stays in build/test/fuzz/corpus for the
// next run.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { built, ci, locate, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';
import { isSoak, soakSeed } from '../support/soak.mjs';

/**
 * The number of inputs in CI, which take 15 to 100 s per fuzzer on one core. Other runs try a sixth, and a soak twenty times as many.
 */
const inputs = new Map([
  ['gguf_fuzz', 600_000],
  ['grammar_fuzz', 8_000],
  ['kv_fuzz', 20_000],
  ['load_fuzz', 100_000],
  ['media_engine_fuzz', 1_000],
  ['media_fuzz', 2_000],
  ['model_fuzz', 3_000],
  ['quantize_fuzz', 100_000],
  ['reference_fuzz', 1_000],
  ['stop_fuzz', 800_000],
  ['template_fuzz', 60_000],
  ['tokenizer_fuzz', 36_000],
]);
/** Options for fuzzers without seeds, because their files are not in the repository. Inputs of a few bytes would be useless. */
const further = new Map([
  ['media_engine_fuzz', ['-len_control=0', '-max_len=512']],
  ['media_fuzz', ['-len_control=0', '-max_len=1024']],
  ['reference_fuzz', ['-len_control=0', '-max_len=256']],
]);
/** The number of inputs for a fuzzer that is not in the list yet. */
const INPUTS = 20_000;
const LOCAL_PART = 6;
const SOAK_TIMES = 20;

const seconds = Number(process.env.FUZZ_SECONDS ?? 0);
const folder = join(root, 'tests/fuzz');
const fuzzers = readdirSync(folder)
  .filter((file) => file.endsWith('_fuzz.c'))
  .map((file) => file.slice(0, -2));
const withSeeds = new Set(readdirSync(join(folder, 'seeds')));

/**
 * libFuzzer tracks comparisons by the addresses of their instructions: if these are the same in each run
 * (a container may forbid this), the same code receives nearly the same inputs.
 */
const steady = spawnSync('setarch', ['-R', 'true']).status === 0 ? ['setarch', '-R'] : [];

/** The small models and their adapters whose files reference_fuzz changes, and the encoders of media_fuzz. */
const shared = locate('shared');
const foldersOf = (/** @type {string[]} */ ...names) =>
  names.map((name) => join(shared.path, 'vectors', name)).join(':');
const references = new Map([
  ['reference_fuzz', foldersOf('reference/models', 'reference-more/models', 'reference-more/lora')],
  ['media_engine_fuzz', foldersOf('vision/models')],
  ['media_fuzz', foldersOf('vision/models')],
]);

/** @param {string} name @returns {{bound: string[], corpus: string, least: number}} */
function planFor(name) {
  if (seconds > 0) {
    const corpus = join(root, 'build/test/fuzz/corpus', name);
    return { bound: [`-max_total_time=${seconds}`], corpus, least: 1 };
  }
  const usual = inputs.get(name) ?? INPUTS;
  const least = isSoak ? usual * SOAK_TIMES : Math.ceil(usual / (ci ? 1 : LOCAL_PART));
  const corpus = join(root, 'build/test/fuzz/fresh', name);
  rmSync(corpus, { recursive: true, force: true });
  return { bound: [`-runs=${least}`, `-seed=${soakSeed + 1}`], corpus, least };
}

for (const name of fuzzers) {
  const skip = references.has(name) ? shared.skip : false;
  test(`${name}, ${seconds > 0 ? `${seconds} s` : 'a fixed number of inputs'}`, {
    skip,
  }, async () => {
    const { bound, corpus, least } = planFor(name);
    const artifacts = join(root, 'build/test/fuzz/found', name);
    mkdirSync(corpus, { recursive: true });
    mkdirSync(artifacts, { recursive: true });
    const [program, ...before] = [...steady, built(`test/fuzz/${name}`)];
    const { code, signal, stderr } = await run(
      program,
      [
        ...before,
        ...bound,
        ...(further.get(name) ?? []),
        '-timeout=120',
        '-rss_limit_mb=2048',
        '-print_final_stats=1',
        `-artifact_prefix=${artifacts}/`,
        corpus,
        ...(withSeeds.has(name) ? [join(folder, 'seeds', name)] : []),
      ],
      {
        env: { WICK_REFERENCES: references.get(name) ?? '' },
        // only ends runs that hang, even on a busy machine
        timeoutMs: (seconds + 1800) * 1000,
      },
    );
    assert.equal(signal ?? code, 0, `\n${stderr.slice(-6000)}`);
    const executed = Number(/number_of_executed_units: (\d+)/.exec(stderr)?.[1] ?? 0);
    assert.ok(executed >= least, `${executed} of ${least} executed:\n${stderr.slice(-2000)}`);
  });
}
