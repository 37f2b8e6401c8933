// Tests the format and arithmetic of the output of `wick-lab serve`, `convoy` and `saturation`, in small runs on the
// built-in model. Makes no assertions about time.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder, wick } from '../support/cli.mjs';
import { built, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const program = resolve(root, 'build/native/wick-lab');
const temporary = temporaryFolder();
const model = 'examples/models/wick-2.6m-q8_0.gguf';

/** @param {string[]} words a command and its options */
const bench = (...[command, ...options]) => run(program, [command, model, ...options]);

/** @param {string[]} words @returns {Promise<any>} */
async function measure(...words) {
  const { code, stdout, stderr } = await bench(...words, '--format', 'json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

const sum = (/** @type {number[]} */ values) => values.reduce((a, b) => a + b, 0);

describe('requests with independent arrivals', () => {
  const options = ['serve', '--requests', '8', '--rate', '1000', '--mix', '20/4:3,8/6:1'];
  /** @type {Promise<any>} */
  const first = measure(...options, '--seed', '7');

  test('every request and every token is accounted for', async () => {
    const { kind, workload, overall, load, classes, result, summary, requests } = await first;
    assert.equal(kind, 'serve');
    assert.deepEqual(
      workload.mix.map((/** @type {any} */ { class: name, share }) => [name, share]),
      [
        ['20/4', 0.75],
        ['8/6', 0.25],
      ],
    );
    assert.deepEqual([overall.requests, overall.finished, load.refused], [8, 8, 0]);
    assert.equal(requests.length, 8);
    const tokens = sum(requests.map((/** @type {any} */ row) => row.tokens_out));
    assert.deepEqual([load.tokens_out, result.tokens_generated], [tokens, tokens]);
    assert.equal(result.ttft_ms.length, 8);
    assert.equal(result.itl_ms.length, tokens - 8);
    assert.deepEqual([result.energy_j, summary.iterations], [null, 8]);
    for (const name of ['requests', 'finished', 'served_well']) {
      assert.equal(sum(classes.map((/** @type {any} */ row) => row[name])), overall[name], name);
    }
    for (const row of [...classes, overall]) {
      assert.ok(row.served_well <= row.finished && row.finished <= row.requests);
      const wanted = row.served_well / (load.elapsed_ms / 1e3);
      assert.ok(Math.abs(row.goodput_per_s - wanted) < 1e-9);
    }
    // evaluated tokens: prompts and outputs, without the last token of each output
    const prompts = sum(classes.map((/** @type {any} */ row) => row.tokens_in * row.requests));
    assert.equal(load.rows, prompts + tokens - 8);
  });

  test('shares are within bounds, and times increase', async () => {
    const { load, requests } = await first;
    assert.ok(load.kv_fragmentation_pct >= 0 && load.kv_waste_pct >= load.kv_fragmentation_pct);
    assert.ok(load.kv_waste_pct < 100 && load.pages_max > 0 && load.queue_max <= 8);
    for (const row of requests) {
      assert.ok(0 < row.read_ms && row.read_ms <= row.ttft_ms && row.ttft_ms <= row.total_ms);
    }
  });

  test('a seed determines the classes and arrivals', async () => {
    const drawn = (/** @type {any} */ { requests }) =>
      requests.map((/** @type {any} */ row) => [row.class, row.arrival_ms]);
    const before = drawn(await first);
    assert.deepEqual(drawn(await measure(...options, '--seed', '7')), before);
    assert.notDeepEqual(drawn(await measure(...options, '--seed', '8')), before);
  });

  test('the WASI program generates and serves the same requests', async () => {
    const program = 'wasi/wick-lab.wasm';
    const host = { name: 'WASI', program, runtime: 'node', skip: /** @type {false} */ (false) };
    const args = ['serve', resolve(root, model), ...options.slice(1), '--seed', '7'];
    const { code, stdout, stderr } = await wick(host, [...args, '--format', 'json']);
    assert.equal(code, 0, stderr);
    const { environment, overall, requests } = JSON.parse(stdout.toString());
    const before = await first;
    assert.deepEqual([environment.runtime, overall.finished], ['WASI', 8]);
    for (const [at, { class: kind, arrival_ms }] of before.requests.entries())
      assert.deepEqual([requests[at].class, requests[at].arrival_ms], [kind, arrival_ms]);
  });

  test('limits can be missed by all requests or met by all', async () => {
    const none = await measure(...options, '--ttft', '0');
    assert.equal(none.overall.served_well, 0);
    const all = await measure(...options, '--ttft', '1e7', '--itl', '1e7');
    assert.equal(all.overall.served_well, 8);
  });

  test('if the pool is too small for all requests, some wait or are preempted, but none is lost', async () => {
    const { load, overall } = await measure(
      ...['serve', '--requests', '6', '--rate', '0', '--mix', '20/20', '--kv-tokens', '64'],
    );
    assert.equal(overall.finished, 6);
    assert.ok(load.pages_max <= 4 && load.queue_max === 6);
  });

  test('tables list the classes; invalid measurements are rejected', async () => {
    const { stdout } = await bench(...options);
    assert.match(stdout.toString(), /\n\| 20\/4 \| \d+ \| \d+ \| [\d.]+ \| [\d.]+ \/ - \/ - \|/);
    for (const [mix, message] of [
      ['chat:0.5,tiny', /--mix takes classes/],
      ['chat:-1', /--mix takes classes/],
      ['4-2', /--mix takes classes/],
      ['4/2/1', /--mix takes classes/],
      ['4000/200', /need 4200 tokens; the context is 4096/],
    ]) {
      const { code, stderr } = await bench('serve', '--mix', String(mix));
      assert.equal(code, 2);
      assert.match(stderr, /** @type {RegExp} */ (message));
    }
  });

  test('rates that would take forever are rejected everywhere', async () => {
    for (const rate of ['1e-30', '1e-60', '0.0009', '-1', 'nan', '1e9']) {
      for (const what of ['serve', 'convoy']) {
        const { code, stdout, stderr } = await bench(what, `--rate=${rate}`);
        assert.deepEqual([code, stdout.length], [2, 0], rate);
        assert.match(stderr, /--rate takes/);
      }
    }
    const few = ['serve', '--requests', '2', '--mix', '4/2', '--clock', 'cpu'];
    const { load, requests } = await measure(...few, '--rate', '0.001');
    assert.ok(requests[1].arrival_ms > requests[0].arrival_ms && requests[0].arrival_ms > 1000);
    // no second is spent waiting, but the clock counts all of them
    const last = requests[1].arrival_ms;
    assert.ok(load.elapsed_ms >= last && load.elapsed_ms < last + 60_000);
  });

  test('known classes count equally by default', async () => {
    const none = ['serve', '--requests', '1', '--clock', 'cpu', '--mix', 'short,long'];
    const { workload } = await measure(...none);
    assert.deepEqual(
      workload.mix.map((/** @type {any} */ row) => [row.tokens_in, row.tokens_out, row.share]),
      [
        [32, 64, 0.5],
        [2048, 512, 0.5],
      ],
    );
  });

  test('the help documents the values of each option', async () => {
    const { stdout } = await bench('serve', '--help');
    assert.match(stdout.toString(), /^ {2}--clock wall\|cpu +measure wall time or cpu time/m);
  });

  test('a request that can never get its pages is reported', async () => {
    const { code, stderr } = await bench('serve', '--mix', '40/4', '--kv-tokens', '16');
    assert.equal(code, 4);
    assert.match(stderr, /^wick-lab: request: .*pages.* \(\w+\)/m);
  });
});

const percentile = (/** @type {number[]} */ values, /** @type {number} */ share) =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1];

const totals = (/** @type {any[]} */ rows, /** @type {string} */ name) =>
  rows.filter((row) => row.class === name).map((row) => row.total_ms);

describe('convoy', () => {
  const options = ['convoy', '--long', '2x40/4', '--short', '6x4/3', '--rate', '500'];
  /** @type {Promise<any>} */
  const first = measure(...options);

  test('short requests arrive after the long ones, with the same timing as alone', async () => {
    const { kind, config, baseline, convoy } = await first;
    assert.equal(kind, 'convoy');
    assert.deepEqual([config.long.requests, config.short.requests], [2, 6]);
    const arrivals = (/** @type {any} */ { requests }, /** @type {string} */ name) =>
      requests
        .filter((/** @type {any} */ row) => row.class === name)
        .map((/** @type {any} */ row) => row.arrival_ms);
    assert.equal(baseline.requests.length, 6);
    assert.deepEqual(arrivals(convoy, '4/3'), arrivals(baseline, '4/3'));
    assert.deepEqual(arrivals(convoy, '40/4'), [0, 0]);
    assert.deepEqual([baseline.load.tokens_out, convoy.load.tokens_out], [18, 26]);
    assert.equal(convoy.load.rows - baseline.load.rows, 2 * (40 + 4 - 1));
  });

  test('the verdict follows from the raw samples', async () => {
    const { config, baseline, convoy, verdict } = await first;
    const alone = percentile(totals(baseline.requests, '4/3'), 0.99);
    const beside = percentile(totals(convoy.requests, '4/3'), 0.99);
    assert.ok(Math.abs(verdict.baseline_short_ms_p99 - alone) < 1e-9);
    assert.ok(Math.abs(verdict.convoy_short_ms_p99 - beside) < 1e-9);
    assert.ok(Math.abs(verdict.p99_increase_pct - (beside / alone - 1) * 100) < 1e-6);
    assert.equal(verdict.hol_blocking_ms.length, 6);
    assert.equal(verdict.hol_blocking_ms_max, Math.max(...verdict.hol_blocking_ms));
    assert.equal(verdict.kv_fragmentation_pct, convoy.load.kv_fragmentation_pct);
    const wanted = [
      ['P99_INCREASE', verdict.p99_increase_pct > config.p99_increase_pct_max],
      ['HOL_BLOCKING', verdict.hol_blocking_ms_max > config.hol_blocking_ms_max],
      ['KV_FRAGMENTATION', verdict.kv_fragmentation_pct > config.kv_fragmentation_pct_max],
    ];
    const reasons = wanted.filter(([, isOver]) => isOver).map(([name]) => name);
    assert.deepEqual(verdict.reasons, reasons);
    assert.equal(verdict.passed, reasons.length === 0);
  });

  test('the table matches the JSON, and a failed verdict is not a failed command', async () => {
    const { code, stdout } = await bench(...options);
    assert.equal(code, 0);
    assert.match(
      stdout.toString(),
      /\nConvoy of 2 x 40\/4, 6 x 4\/3 at 500.00\/s: (passed|failed)/,
    );
    assert.match(
      stdout.toString(),
      /\nWith fewer than 100 requests, there is no p99: for 6, it is the time of the slowest/,
    );
    const many = await bench('convoy', '--long', '1x8/2', '--short', '100x2/2');
    assert.match(many.stdout.toString(), /\nConvoy of 1 x 8\/2, 100 x 2\/2/);
    assert.doesNotMatch(many.stdout.toString(), /Fewer than 100/);
    const wrong = await bench('convoy', '--long', '10*20/5');
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /--long takes a number of requests and their lengths/);
  });
});

test('saturation: the verdict follows from the raw samples', async () => {
  const { kind, config, alone, loaded, verdict } = await measure(
    ...['saturation', '--short', '6x4/3'],
  );
  assert.equal(kind, 'saturation');
  for (const pass of [alone, loaded]) {
    const times = totals(pass.requests, '4/3');
    assert.equal(times.length, 6);
    assert.ok(Math.abs(pass.throughput_tok_s - 18e3 / sum(times)) < 1e-6);
    assert.ok(Math.abs(pass.total_ms_p99 - Math.max(...times)) < 1e-9);
    assert.deepEqual([pass.result.ttft_ms.length, pass.result.itl_ms.length], [6, 12]);
    assert.ok(pass.summary.iterations === 6 && pass.result.load_ms > 0);
  }
  const rate = (alone.throughput_tok_s / config.tokens_out) * (config.load_pct / 100);
  assert.ok(Math.abs(verdict.load_rate_per_s - rate) < 1e-6);
  const drop = (1 - loaded.throughput_tok_s / alone.throughput_tok_s) * 100;
  assert.ok(Math.abs(verdict.throughput_drop_pct - drop) < 1e-6);
  const increase = (loaded.total_ms_p99 / alone.total_ms_p99 - 1) * 100;
  assert.ok(Math.abs(verdict.p99_increase_pct - increase) < 1e-6);
  const isKept = drop <= config.throughput_drop_pct_max && increase <= config.p99_increase_pct_max;
  assert.equal(verdict.passed, isKept);
  const { stdout } = await bench('saturation', '--short', '6x4/3');
  assert.match(
    stdout.toString(),
    /\nWith fewer than 100 requests, there is no p99: for 6, it is the time of the slowest/,
  );
});

test('an allocation failure anywhere in a measurement is reported', async () => {
  const counted = resolve(temporary, 'callocs');
  const shim = { LD_PRELOAD: built('test/host_shim.so'), SHIM_CALLOC_COUNT: counted };
  const serve = ['serve', '--requests', '3', '--rate', '1000', '--mix', '8/3'];
  const convoy = ['convoy', '--long', '1x20/3', '--short', '2x4/3', '--rate', '500'];
  const saturation = ['saturation', '--short', '2x4/3'];
  for (const [command, ...options] of [serve, convoy, saturation]) {
    // until a run ends before it reaches that call
    let call = 1;
    for (; call <= 60; call++) {
      const env = { ...shim, SHIM_CALLOC_FAILS: String(call) };
      const { code, signal, stderr } = await run(program, [command, model, ...options], { env });
      const about = `${command}, call ${call}: ${stderr}`;
      assert.equal(signal, null, about);
      const reached = Number(readFileSync(counted, 'utf8'));
      if (reached < call) break;
      assert.equal(code, 4, about);
      assert.match(stderr, /^wick-lab: out of memory for /, about);
    }
    assert.ok(call > 4, `${command} ended after ${call} calls`);
  }
});

test('percentiles match the samples, including fractions such as p99.9', async () => {
  const { classes, result } = await measure(
    ...['serve', '--requests', '40', '--mix', '2/41', '--rate', '0', '--clock', 'cpu'],
  );
  assert.equal(result.itl_ms.length, 1600);
  for (const [name, share] of /** @type {const} */ ([
    ['p50', 0.5],
    ['p95', 0.95],
    ['p99', 0.99],
  ])) {
    const wanted = percentile(result.itl_ms, share);
    assert.ok(Math.abs(classes[0].itl_ms[name] - wanted) < 1e-9, name);
  }
});
