// Runs each fuzzer of tests/fuzz/ for FUZZ_SECONDS (30 in CI, else 5), beginning with its committed
// seeds in tests/fuzz/seeds/NAME. What it learns stays in build/test/fuzz/corpus for the next run.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { built, ci, root } from './support/locate.mjs';
import { run } from './support/process.mjs';

const seconds = Number(process.env.FUZZ_SECONDS ?? (ci ? 30 : 5));
const folder = join(root, 'tests/fuzz');
const fuzzers = existsSync(folder)
  ? readdirSync(folder)
      .filter((file) => file.endsWith('_fuzz.c'))
      .map((file) => file.slice(0, -2))
  : [];

for (const name of fuzzers) {
  test(`${name}, ${seconds} s`, async () => {
    const corpus = join(root, 'build/test/fuzz/corpus', name);
    const artifacts = join(root, 'build/test/fuzz/found', name);
    const seeds = join(folder, 'seeds', name);
    mkdirSync(corpus, { recursive: true });
    mkdirSync(artifacts, { recursive: true });
    const { code, signal, stderr } = await run(
      built(`test/fuzz/${name}`),
      [
        `-max_total_time=${seconds}`,
        // the same code is given the same inputs, unless more than usual is asked for (make fuzz)
        ...(process.env.FUZZ_SECONDS ? [] : ['-seed=1']),
        '-timeout=120',
        '-rss_limit_mb=2048',
        '-print_final_stats=1',
        `-artifact_prefix=${artifacts}/`,
        corpus,
        ...(existsSync(seeds) ? [seeds] : []),
      ],
      { timeoutMs: (seconds + 600) * 1000 },
    );
    assert.equal(signal ?? code, 0, `\n${stderr.slice(-6000)}`);
    const executed = Number(/number_of_executed_units: (\d+)/.exec(stderr)?.[1] ?? 0);
    assert.ok(executed > 0, `nothing was executed:\n${stderr.slice(-2000)}`);
  });
}
