// `wick bench` and `wick-lab` (serve, convoy, saturation) on a host whose clock advances only when it is read
// (tests/support/host_shim.c). Two runs are therefore identical, so the tables must match the JSON, and the figures in the
// JSON must follow from its raw samples. Nothing depends on the speed of the machine.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { lab, native, temporaryFolder, wick } from '../support/cli.mjs';
import { built, root } from '../support/locate.mjs';
import { run } from '../support/process.mjs';

const temporary = temporaryFolder();
const builtIn = join(root, 'examples/models/wick-2.6m-q8_0.gguf');
const shim = { LD_PRELOAD: built('test/host_shim.so'), SHIM_TIME_S: '1700000000' };
/** `even`: each reading advances the clock by the same time; `uneven`: by up to seven times that time. */
const even = { ...shim, SHIM_CLOCK_STEP_US: '250' };
const uneven = { ...even, SHIM_CLOCK_SPREAD: '7' };

/** @param {Record<string, string>} env @param {string} model @param {string[]} options of `wick bench`, or a command of wick-lab with its options */
async function bench(env, model, ...options) {
  const [first, ...rest] = options;
  const done = first.startsWith('-')
    ? await run(built('native/wick'), ['bench', model, ...options], { env })
    : await run(built('native/wick-lab'), [first, model, ...rest], { env });
  assert.equal(done.code, 0, done.stderr);
  return { text: done.stdout.toString(), told: done.stderr };
}

/**
 * @param {Record<string, string>} env @param {string} model @param {string[]} options
 * @returns {Promise<{json: any, text: string}>} the same run reported twice
 */
async function both(env, model, ...options) {
  const { text } = await bench(env, model, ...options);
  const { text: json } = await bench(env, model, ...options, '--format', 'json');
  return { text, json: JSON.parse(json) };
}

// ---- figures, computed independently ----

const sum = (/** @type {number[]} */ values) => values.reduce((a, b) => a + b, 0);
const mean = (/** @type {number[]} */ values) => sum(values) / values.length;
const sorted = (/** @type {number[]} */ values) => values.toSorted((a, b) => a - b);

/** @param {number[]} values */
function median(values) {
  const rising = sorted(values);
  const at = values.length / 2;
  return values.length % 2 ? rising[Math.floor(at)] : (rising[at - 1] + rising[at]) / 2;
}

/** @param {number[]} values */
function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1));
}

/** Returns a percentile by nearest rank. @param {number[]} values @param {number} permille */
const percentile = (values, permille) =>
  sorted(values)[Math.ceil((values.length * permille) / 1000) - 1];

/**
 * Returns a percentile, or null if there are too few values for it.
 * @param {number[]} values
 * @param {number} permille
 */
const tail = (values, permille) =>
  values.length * (1000 - permille) >= 1000 ? percentile(values, permille) : null;

/** @param {number | null} found @param {number | null} wanted @param {string} [what] */
function assertSame(found, wanted, what) {
  const isSame =
    wanted === null || found === null
      ? found === wanted
      : Math.abs(found - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted));
  assert.ok(isSame, `${what}: ${found}, expected ${wanted}`);
}

/** Formats a number like C's "%.nf", which rounds ties to the even digit. @param {number} value @param {number} digits */
function fixed(value, digits) {
  const isMiddle = Number.isInteger(value * 2 ** (digits + 1));
  const halves = value * 2 * 10 ** digits;
  if (!isMiddle || halves % 2 === 0) return value.toFixed(digits);
  const even = (halves - 1) % 4 === 0 ? halves - 1 : halves + 1;
  return (even / 2 / 10 ** digits).toFixed(digits);
}

const percentiles = (/** @type {number[]} */ values) =>
  [500, 950, 990]
    .map((permille) => tail(values, permille))
    .map((value) => (value === null ? '-' : fixed(value, 2)))
    .join(' / ');

// ---- prefill and decode ----

describe('bench', () => {
  const model = join(temporary, 'bench.gguf');
  before(async () => {
    assert.equal((await wick(native, ['synth', 'tiny', 'q8_0', model])).code, 0);
  });

  /** @param {any} json @param {any} one a run @param {any} info the model's */
  function table(json, one, info) {
    const row = (/** @type {string} */ name, /** @type {any} */ of) =>
      `| ${one.threads} | ${one.kernels} | ${name} | ${fixed(of.median, 2)} | ` +
      `${fixed(of.stddev, 2)} | ${fixed(of.mean_low, 2)} to ${fixed(of.mean_high, 2)} |\n`;
    const { p50, p95, p99 } = one.itl_ms ?? {};
    let shown =
      `${json.model}: ${info.architecture}, ${fixed(info.parameters / 1e6, 1)} million parameters, ` +
      `weights ${fixed(one.weights_bytes / 1e6, 1)} MB\n\n` +
      '| threads | kernels | test | tok/s, median | standard deviation | mean, 95 % |\n' +
      '|---|---|---|---|---|---|\n' +
      row(`prefill ${json.prompt_tokens}`, one.prefill_tok_s);
    if (json.decode_tokens > 0) shown += row(`decode ${json.decode_tokens}`, one.decode_tok_s);
    shown +=
      `\nload ${fixed(one.load_ms, 1)} ms, time to the first token ` +
      `${fixed(one.ttft_ms.median, 2)} ms (median)`;
    if (json.decode_tokens > 0) shown += `, between tokens p50 ${fixed(p50, 3)} ms`;
    if (p95 !== null && p95 !== undefined) shown += `, p95 ${fixed(p95, 3)} ms`;
    if (p99 !== null && p99 !== undefined) shown += `, p99 ${fixed(p99, 3)} ms`;
    return `${shown}\n`;
  }

  /** @param {any} metrics */
  function opsTable({ passes }) {
    let shown = '';
    for (const [pass, ops] of Object.entries(passes)) {
      shown +=
        `\n| ${pass} | count | mean us | p50 us | p99 us | GB/s | GMAC/s | share |\n` +
        '|---|---|---|---|---|---|---|---|\n';
      for (const [op, of] of Object.entries(/** @type {Record<string, any>} */ (ops))) {
        if (of.time_us === 0) continue;
        const { mean, p50, p99 } = of.latency_us;
        shown +=
          `| ${op} | ${of.count} | ${fixed(mean, 1)} | ${fixed(p50, 0)} | ${fixed(p99, 0)} | ` +
          `${fixed(of.gb_per_s, 2)} | ${fixed(of.gmac_per_s, 2)} | ${fixed(of.share * 100, 1)} % |\n`;
      }
    }
    return shown;
  }

  test('the tables match the JSON', async () => {
    const inspected = await wick(native, ['inspect', model, '--json']);
    const { info } = JSON.parse(inspected.stdout.toString());
    const architecture = 'llama';
    const parameters = info.shape.parameters;
    assert.ok(parameters > 1e6);
    for (const options of [
      ['-p', '40', '-n', '20', '-r', '5', '--metrics'],
      ['-p', '7', '-n', '10', '-r', '2'],
      ['-p', '5', '-n', '33', '-r', '3'],
      ['-p', '9', '-n', '0', '-r', '1'],
      ['-p', '3', '-n', '2', '-r', '1'],
    ]) {
      const { text, json } = await both(uneven, model, ...options);
      const [one] = json.runs;
      const { metrics } = one;
      const shown = table(json, one, { architecture, parameters });
      assert.equal(text, metrics ? shown + opsTable(metrics) : shown);
      const gaps = json.decode_tokens * json.repetitions;
      assert.equal(one.itl_ms?.p95 === null, gaps < 20 && gaps > 0);
      assert.equal(one.itl_ms?.p99 === null, gaps < 100 && gaps > 0);
      assert.equal('decode_tok_s' in one, gaps > 0);
    }
  });

  test('the summaries follow from the values', async () => {
    const options = ['-p', '40', '-n', '20', '-r', '6', '--format', 'json'];
    const { text } = await bench(uneven, model, ...options);
    const { model: path, prompt_tokens, decode_tokens, repetitions, runs } = JSON.parse(text);
    assert.deepEqual([path, prompt_tokens, decode_tokens, repetitions], [model, 40, 20, 6]);
    const [one] = runs;
    for (const name of ['prefill_tok_s', 'ttft_ms', 'decode_tok_s']) {
      const of = one[name];
      assert.equal(of.values.length, 6);
      assert.ok(new Set(of.values).size > 1, 'the clock is uneven');
      assertSame(of.median, median(of.values), name);
      assertSame(of.mean, mean(of.values), name);
      assertSame(of.stddev, deviation(of.values), name);
      assert.ok(Math.min(...of.values) <= of.mean_low && of.mean_low < of.mean);
      assert.ok(of.mean < of.mean_high && of.mean_high <= Math.max(...of.values));
    }
    for (const [i, ms] of one.ttft_ms.values.entries())
      assertSame(one.prefill_tok_s.values[i], 40e3 / ms, 'prefill tokens per second');
    assert.equal(one.load_ms % 0.25, 0);
    assert.ok(one.load_ms > 0 && one.load_ms < 1000);
    assert.ok(one.memory_bytes_peak > one.weights_bytes && one.weights_bytes > 1e6);
  });

  test('the time of a token is measured from the previous token', async () => {
    const { text } = await bench(even, model, '-p', '8', '-n', '1', '-r', '3', '--format', 'json');
    const [one] = JSON.parse(text).runs;
    assertSame(one.decode_tok_s.median, 1000 / one.itl_ms.p50, 'tokens per second');
    assert.equal(one.decode_tok_s.stddev, 0);
    // evaluating eight tokens reads the clock as often as evaluating one: once per layer
    assert.ok(one.itl_ms.p50 <= one.ttft_ms.median && one.ttft_ms.median < 4 * one.itl_ms.p50);
    const few = await bench(even, model, '-p', '8', '-n', '9', '-r', '2', '--format', 'json');
    const [slow] = JSON.parse(few.text).runs;
    const gap = 1000 / slow.decode_tok_s.median;
    assert.ok(Math.abs(gap - slow.itl_ms.p50) < 0.25 * slow.itl_ms.p50);
  });

  test('defaults: 128 prompt tokens, 32 output tokens, five runs, one thread', async () => {
    const { text } = await bench(even, model, '--format', 'json');
    const { prompt_tokens, decode_tokens, repetitions, runs } = JSON.parse(text);
    assert.deepEqual([prompt_tokens, decode_tokens, repetitions], [128, 32, 5]);
    assert.deepEqual(
      runs.map((/** @type {any} */ one) => one.threads),
      [1],
    );
    assert.ok(!('metrics' in runs[0]));
  });

  test('each number of threads has rows, and the last one has the latencies', async () => {
    const options = ['-p', '4', '-n', '2', '-r', '1', '--threads', '2,1', '--metrics'];
    const { text } = await bench(uneven, model, ...options);
    assert.equal(text.split('million parameters').length, 2);
    assert.deepEqual(
      [...text.matchAll(/^\| (\d) \| \w+ \| (prefill|decode) (\d) /gm)].map((m) => m.slice(1)),
      [
        ['2', 'prefill', '4'],
        ['2', 'decode', '2'],
        ['1', 'prefill', '4'],
        ['1', 'decode', '2'],
      ],
    );
    assert.equal(text.split('\nload ').length, 2);
    assert.ok(text.indexOf('\nload ') > text.indexOf('| 1 | '));
    assert.equal(text.split('| prefill | count').length, 3);
  });

  test('more tokens than the context can hold are rejected', async () => {
    const few = ['-p', '60', '-r', '1', '--ctx', '64'];
    const { code, stderr } = await wick(native, ['bench', builtIn, ...few, '-n', '5']);
    assert.equal(code, 2);
    assert.match(stderr, /-p 60 and -n 5 are 65 tokens; the context is 64/);
    assert.equal((await wick(native, ['bench', builtIn, ...few, '-n', '4'])).code, 0);
  });
});

// ---- requests with independent arrival times ----

/** @param {any} load */
const loadLine = (load) =>
  `${fixed(load.elapsed_ms / 1e3, 1)} s, ${fixed(load.tokens_per_s, 1)} tokens/s out, ` +
  `${load.passes} passes of ${fixed(load.rows / load.passes, 1)} rows, at most ` +
  `${load.running_max} running and ${load.queue_max} waiting, ${load.preempted} preempted, ` +
  `${load.refused} refused, ${load.pages_max} KV pages at once, ` +
  `${fixed(load.kv_waste_pct, 1)} % of their slots without a token, ` +
  `${fixed(load.kv_fragmentation_pct, 1)} % of those of pages in use\n`;

/** @param {any} e the environment @param {string} clock */
const hostLine = (e, clock) =>
  `${e.model}, ${e.runtime}, ${e.kernels} kernels, ${e.threads} thread${e.threads === 1 ? '' : 's'}, ` +
  `context ${e.context_tokens}, seed ${e.seed}, ${clock}\n\n`;

const few = (/** @type {number} */ count) =>
  count >= 100
    ? ''
    : `With fewer than 100 requests, there is no p99: for ${count}, it is the time of the slowest request.\n`;

/** Checks that a run's result and summary follow from its requests. @param {any} pass */
function assertSummary({ result, summary, requests }) {
  const done = requests.filter((/** @type {any} */ row) => row.finished);
  assert.equal(result.iterations, done.length);
  assert.equal(summary.iterations, done.length);
  assert.equal(result.tokens_generated, sum(done.map((/** @type {any} */ row) => row.tokens_out)));
  const ttft = done.map((/** @type {any} */ row) => row.ttft_ms);
  for (const [i, ms] of ttft.entries()) assertSame(result.ttft_ms[i], ms, 'first token');
  const slow = done.filter((/** @type {any} */ row) => row.itl_ms_mean > 0);
  assert.equal(result.generation_tok_s.length, slow.length);
  for (const [i, row] of slow.entries())
    assertSame(result.generation_tok_s[i], 1e3 / row.itl_ms_mean, 'tokens per second');
  let gaps = 0;
  for (const row of done) {
    const own = result.itl_ms.slice(gaps, gaps + row.tokens_out - 1);
    gaps += own.length;
    assertSame(sum(own), row.itl_ms_mean * own.length, 'gaps of a request');
    assertSame(row.total_ms, row.ttft_ms + sum(own), 'a request’s time');
    assert.ok(row.read_ms > 0 && row.read_ms <= row.ttft_ms);
  }
  assert.equal(result.itl_ms.length, gaps);
  assertSame(summary.ttft_ms_mean, mean(ttft), 'ttft mean');
  assertSame(summary.ttft_ms_p50, percentile(ttft, 500), 'ttft p50');
  assertSame(summary.ttft_ms_p95, tail(ttft, 950), 'ttft p95');
  assertSame(summary.ttft_ms_p99, tail(ttft, 990), 'ttft p99');
  assertSame(summary.ttft_ms_p999, tail(ttft, 999), 'ttft p999');
  assertSame(summary.itl_ms_median, median(result.itl_ms), 'itl median');
  assertSame(summary.itl_ms_stddev, deviation(result.itl_ms), 'itl deviation');
  assertSame(summary.itl_ms_p99, tail(result.itl_ms, 990), 'itl p99');
  assertSame(summary.prefill_tok_s_median, median(result.prefill_tok_s), 'prefill');
  const speeds = result.generation_tok_s;
  assertSame(summary.throughput_tok_s_median, median(speeds), 'speed');
  assertSame(summary.throughput_tok_s_mean, mean(speeds), 'mean speed');
  assert.ok(summary.throughput_tok_s_mean_low <= mean(speeds) + 1e-9);
  assert.ok(summary.throughput_tok_s_mean_high >= mean(speeds) - 1e-9);
  assert.ok(Math.min(...speeds) <= summary.throughput_tok_s_mean_low + 1e-9);
  assert.ok(Math.max(...speeds) >= summary.throughput_tok_s_mean_high - 1e-9);
  assert.equal(summary.kv_waste_pct, result.kv_waste_pct);
  assert.equal(summary.memory_bytes_peak, result.memory_bytes_peak);
  assert.ok(result.memory_bytes_peak > 3e6 && result.memory_bytes_peak < 1e9);
  assert.deepEqual([result.energy_j, summary.token_j], [null, null]);
  assert.equal(result.timestamp_s, 1700000000);
  assert.ok(0 < result.load_ms && result.load_ms < result.cold_start_ms);
  assert.ok(result.cold_start_ms < 10_000);
}

/** @param {any} load @param {any[]} requests */
function assertLoad(load, requests) {
  assertSame(load.tokens_per_s, (load.tokens_out * 1e3) / load.elapsed_ms, 'tokens per second');
  assert.equal(load.submitted, requests.length);
  assert.ok(load.kv_fragmentation_pct > 0 && load.kv_waste_pct >= load.kv_fragmentation_pct);
  assert.ok(load.kv_waste_pct < 100);
  assert.ok(load.passes > 0 && load.rows >= load.passes);
  const last = Math.max(...requests.map((row) => row.arrival_ms + row.total_ms));
  assert.ok(load.elapsed_ms >= last && load.elapsed_ms < last + 50);
}

describe('wick-lab serve', () => {
  const columns =
    '| class | requests | served well | goodput, requests/s | TTFT ms, p50 / p95 / p99 | ITL ms, p50 / ' +
    'p95 / p99 |\n|---|---|---|---|---|---|\n';

  /** @param {any} json @param {string} clock */
  function table(json, clock) {
    const { environment, workload: w, overall, load, classes, result } = json;
    const cells = (/** @type {any} */ of) =>
      [500, 950, 990].map((p) => of[`p${p / 10}`]).map((v) => (v === null ? '-' : fixed(v, 2)));
    const row = (
      /** @type {string} */ name,
      /** @type {any} */ of,
      /** @type {string[]} */ ...more
    ) =>
      `| ${name} | ${of.requests} | ${of.served_well} | ${fixed(of.goodput_per_s, 2)} | ` +
      `${more.join(' | ')} |\n`;
    return (
      hostLine(environment, clock) +
      columns +
      classes
        .map((/** @type {any} */ of) =>
          row(of.class, of, cells(of.ttft_ms).join(' / '), cells(of.itl_ms).join(' / ')),
        )
        .join('') +
      row('all', overall, percentiles(result.ttft_ms), percentiles(result.itl_ms)) +
      `\nServed well: the first token within ${fixed(w.ttft_ms_max, 0)} ms, the mean gap within ` +
      `${fixed(w.itl_ms_max, 0)} ms. Arrivals ${fixed(w.rate_per_s, 2)}/s.\n${loadLine(load)}` +
      `peak memory ${fixed(result.memory_bytes_peak / 1e6, 1)} MB, load ${fixed(result.load_ms, 1)} ms, ` +
      `cold start ${fixed(result.cold_start_ms, 1)} ms\n`
    );
  }

  test('the table matches the JSON, which follows from the requests', async () => {
    const options = ['serve', '--requests', '21', '--rate', '50', '--mix', '20/6:3,8/5:1,5/1:1'];
    const limits = ['--ttft', '90', '--itl', '26', '--seed', '5'];
    const { text, json } = await both(uneven, builtIn, ...options, ...limits);
    assert.equal(text, table(json, 'wall time'));
    const { workload, overall, classes, load, requests } = json;
    assert.deepEqual(
      [workload.rate_per_s, workload.ttft_ms_max, workload.itl_ms_max, workload.adaptive],
      [50, 90, 26, false],
    );
    assertSummary(json);
    assertLoad(load, requests);
    assertSame(json.result.kv_waste_pct, load.kv_waste_pct, 'waste');
    for (const of of [...classes, overall]) {
      const own = requests.filter(
        (/** @type {any} */ row) => of === overall || row.class === of.class,
      );
      const well = own.filter(
        (/** @type {any} */ row) => row.finished && row.ttft_ms <= 90 && row.itl_ms_mean <= 26,
      );
      assert.deepEqual(
        [of.requests, of.finished, of.served_well],
        [own.length, own.length, well.length],
      );
      assertSame(of.goodput_per_s, (well.length * 1e3) / load.elapsed_ms, 'goodput');
      if (of === overall) continue;
      assert.deepEqual(
        [of.ttft_ms.count, of.itl_ms.count],
        [own.length, own.length * (of.tokens_out - 1)],
      );
      const ttft = own.map((/** @type {any} */ row) => row.ttft_ms);
      for (const p of [500, 950, 990])
        assertSame(of.ttft_ms[`p${p / 10}`], tail(ttft, p), `${of.class} ${p}`);
    }
    assert.ok(overall.served_well > 0 && overall.served_well < 21, `${overall.served_well} of 21`);
    assert.ok(load.running_max <= 21 && load.running_max > 1);
  });

  test('a run that takes almost no time also has rates', async () => {
    const quick = { ...shim, SHIM_CLOCK_STEP_US: '1' };
    const options = ['serve', '--requests', '2', '--mix', '4/2', '--rate', '0'];
    const { text, json } = await both(quick, builtIn, ...options);
    assert.equal(text, table(json, 'wall time'));
    const { load, overall, requests } = json;
    assert.ok(load.elapsed_ms < 1 && load.elapsed_ms > 0, `${load.elapsed_ms} ms`);
    assertSummary(json);
    assertLoad(load, requests);
    assert.equal(overall.served_well, 2);
    assertSame(overall.goodput_per_s, 2e3 / load.elapsed_ms, 'goodput');
    const saturation = await bench(
      quick,
      builtIn,
      'saturation',
      '--short',
      '2x4/2',
      '--format',
      'json',
    );
    const { alone, verdict } = JSON.parse(saturation.text);
    assertSummary(alone);
    const times = alone.requests.map((/** @type {any} */ row) => row.total_ms);
    assert.ok(sum(times) < 1);
    assertSame(alone.throughput_tok_s, 4e3 / sum(times), 'throughput');
    assertSame(verdict.load_rate_per_s, alone.throughput_tok_s / 4, 'load');
  });

  test('a stopped clock gives rates of 0', async () => {
    const still = { ...shim, SHIM_CLOCK_STEP_US: '0' };
    const { text, json } = await both(still, builtIn, 'serve', '--mix', '1/2', '--rate', '0');
    assert.equal(text, table(json, 'wall time'));
    const { load, overall, result, requests } = json;
    assert.equal(requests.length, 100, 'the default in the help');
    assert.deepEqual([overall.finished, overall.served_well, overall.goodput_per_s], [100, 100, 0]);
    assert.deepEqual([load.elapsed_ms, load.tokens_per_s, load.tokens_out], [0, 0, 200]);
    assert.deepEqual([result.prefill_tok_s, result.generation_tok_s], [[], []]);
    const args = ['saturation', builtIn, '--short', '2x4/2'];
    const { code, stdout, stderr } = await run(built('native/wick-lab'), args, { env: still });
    assert.deepEqual([code, stdout.length], [5, 0]);
    assert.equal(
      stderr,
      'wick-lab: no request of 4/2 took a measurable time, so the load cannot be chosen\n',
    );
    const plain = await bench(still, builtIn, '-p', '2', '-n', '2', '-r', '1', '--metrics');
    assert.match(
      plain.text,
      /\| prefill 2 \| 0\.00 \| 0\.00 \| 0\.00 to 0\.00 \|\n.* decode 2 \| 0\.00 /,
    );
    assert.match(plain.text, /\nload 0\.0 ms, time to the first token 0\.00 ms/);
    assert.ok(plain.text.endsWith('| share |\n|---|---|---|---|---|---|---|---|\n'), plain.text);
  });

  test('the environment of a run is reported', async () => {
    const options = ['serve', '--requests', '2', '--mix', '4/2', '--rate', '0', '--clock', 'cpu'];
    const more = ['--ctx', '128', '--kv', 'q8:f16', '--kv-tokens', '256', '--seed', '9'];
    const { text, json } = await both(even, builtIn, ...options, ...more);
    assert.equal(text, table(json, 'CPU time'));
    const inspected = await wick(native, ['inspect', builtIn, '--json']);
    const { parameters } = JSON.parse(inspected.stdout.toString()).info.shape;
    const { kernels, batch_tokens, ...rest } = json.environment;
    assert.ok(kernels.length > 2 && batch_tokens >= 16);
    assert.deepEqual(rest, {
      ...{ model: builtIn, architecture: 'llama', parameters, runtime: 'native', threads: 1 },
      ...{ context_tokens: 128, kv_tokens: 256, k_type: 'q8', v_type: 'f16' },
      ...{ clock: 'cpu', seed: 9, timestamp_s: 1700000000 },
    });
    const threads = ['--threads', '2', '--clock', 'wall', '--mix', '4/2', '--requests', '1'];
    const two = await bench(even, builtIn, 'serve', ...threads, '--rate', '0');
    assert.match(two.text, / kernels, 2 threads, context 4096, seed 1, wall time\n/);
  });

  test('the default classes, rate and limits match the help', async () => {
    const options = ['serve', '--requests', '1', '--clock', 'cpu', '--format', 'json'];
    const { workload } = JSON.parse((await bench(even, builtIn, ...options)).text);
    assert.deepEqual(
      { ...workload, mix: workload.mix.map((/** @type {any} */ of) => Object.values(of)) },
      {
        ...{ rate_per_s: 1, adaptive: false, ttft_ms_max: 1000, itl_ms_max: 100 },
        mix: [
          ['chat', 256, 128, 0.7],
          ['short', 32, 64, 0.2],
          ['long', 2048, 512, 0.1],
        ],
      },
    );
  });

  test('arrivals are a Poisson process, and classes follow their shares', async () => {
    const options = ['serve', '--requests', '500', '--mix', '2/1:2,1/1:1,3/1:1', '--rate', '40'];
    const { text } = await bench(even, builtIn, ...options, '--clock', 'cpu', '--format', 'json');
    const { requests } = JSON.parse(text);
    assert.equal(requests.length, 500);
    const gaps = requests.map(
      (/** @type {any} */ row, /** @type {number} */ i) =>
        row.arrival_ms - (i === 0 ? 0 : requests[i - 1].arrival_ms),
    );
    assert.ok(Math.min(...gaps) >= 0);
    assert.ok(Math.abs(mean(gaps) - 25) < 3, `${mean(gaps)} ms`);
    assert.ok(Math.abs(deviation(gaps) - 25) < 4, `${deviation(gaps)} ms`);
    const long = gaps.filter((/** @type {number} */ gap) => gap > 25).length / 500;
    assert.ok(Math.abs(long - Math.exp(-1)) < 0.06, `${long} are longer than the mean`);
    for (const [name, share] of /** @type {const} */ ([
      ['2/1', 0.5],
      ['1/1', 0.25],
      ['3/1', 0.25],
    ])) {
      const found = requests.filter((/** @type {any} */ row) => row.class === name).length / 500;
      assert.ok(Math.abs(found - share) < 0.06, `${name}: ${found}`);
    }
  });

  test('a run lasts until the speed is steady: a hundred requests, and two checks after the first', async () => {
    const options = ['serve', '--requests', '0', '--mix', '4/3', '--rate', '1', '--clock', 'cpu'];
    const { text } = await bench(even, builtIn, ...options, '--format', 'json');
    const { workload, overall, result, summary } = JSON.parse(text);
    assert.equal(workload.adaptive, true);
    // each runs alone and reads the clock as often as the others
    assert.equal(overall.finished, 102);
    assert.ok(result.cv_at_stop < 0.05 && summary.cv_final < 0.05);
  });

  test('progress is reported every ten seconds', async () => {
    const slow = { ...shim, SHIM_CLOCK_STEP_US: '1000000' };
    const options = ['serve', '--requests', '3', '--mix', '4/3', '--rate', '0'];
    const { told } = await bench(slow, builtIn, ...options);
    const lines = told.trimEnd().split('\n');
    const found = lines.flatMap((line) => {
      const [, second, ended, all] =
        /^wick-lab: (\d+) s: (\d) of (\d) requests have ended$/.exec(line) ?? [];
      assert.ok(ended, line);
      return all === '1' ? [] : [[Number(second), Number(ended), Number(all)]]; // not the warm-up
    });
    assert.ok(found.length > 3);
    for (const [i, [second, ended, all]] of found.entries()) {
      const [before, less] = found[i - 1] ?? [0, 0];
      assert.ok(second - before >= 10 && second - before < 25, `${before} s, ${second} s`);
      assert.ok(ended >= less && ended <= all && all === 3);
    }
  });

  test('invalid mixes are rejected, and the largest valid one runs', async () => {
    const eight = Array.from({ length: 8 }, (_, i) => `${i + 1}/1`);
    const env = { ...even };
    const options = ['serve', '--requests', '1', '--rate', '0', '--format', 'json'];
    const { text } = await bench(env, builtIn, ...options, '--mix', eight.join(','));
    assert.equal(JSON.parse(text).workload.mix.length, 8);
    for (const mix of [
      [...eight, '9/1'].join(','),
      ...[
        '',
        ',',
        '1/1,',
        ',1/1',
        '1/0',
        '0/1',
        '/1',
        '1/',
        '1/1:',
        '1/1:0',
        '1/1:x',
        '1/1:2000000',
      ],
      ...[
        '1000001/1',
        '1/1000001',
        '1/1;1/1',
        'chat:1:2',
        'cha',
        'chats',
        ' 1/1',
        '1/1 ',
        '1/+1',
        '-1/1',
      ],
      ...['1/1:nan', '1/1:inf', '1/1:-1', `${'0'.repeat(21)}1/1`],
    ]) {
      const done = await wick(lab, ['serve', builtIn, '--mix', mix]);
      assert.deepEqual([done.code, done.stdout.length], [2, 0], `'${mix}': ${done.stderr}`);
      assert.equal(
        done.stderr,
        `wick-lab: --mix takes classes with shares, such as chat:0.7,short:0.2,512/128:0.1, not '${mix}'\n`,
      );
    }
    const named = `${'0'.repeat(20)}1/1`;
    const padded = await bench(env, builtIn, ...options, '--mix', named);
    const [only] = JSON.parse(padded.text).workload.mix;
    assert.deepEqual(only, { class: named, tokens_in: 1, tokens_out: 1, share: 1 });
  });
});

// ---- short requests alongside long ones ----

test('wick-lab convoy: the tables match the JSON, which follows from the requests', async () => {
  const options = ['convoy', '--long', '2x70/5', '--short', '9x4/3', '--rate', '30'];
  const { text, json } = await both(uneven, builtIn, ...options, '--ctx', '128');
  const { environment, config, baseline, convoy, verdict } = json;
  assert.deepEqual(config, {
    rate_per_s: 30,
    long: { requests: 2, class: '70/5', tokens_in: 70, tokens_out: 5 },
    short: { requests: 9, class: '4/3', tokens_in: 4, tokens_out: 3 },
    ...{ p99_increase_pct_max: 50, hol_blocking_ms_max: 500, kv_fragmentation_pct_max: 15 },
  });
  for (const pass of [baseline, convoy]) {
    assertSummary(pass);
    assertLoad(pass.load, pass.requests);
  }
  const of = (/** @type {any} */ pass, /** @type {string} */ name) =>
    pass.requests.filter((/** @type {any} */ row) => row.class === name);
  const longs = of(convoy, '70/5');
  const behind = of(convoy, '4/3');
  const alone = of(baseline, '4/3');
  // a short request is blocked while long prompts are evaluated, at most for its additional waiting time
  const read = Math.max(...longs.map((/** @type {any} */ row) => row.arrival_ms + row.ttft_ms));
  const overlaps = behind.map((/** @type {any} */ row) =>
    Math.max(0, Math.min(read, row.arrival_ms + row.read_ms) - row.arrival_ms),
  );
  const blocked = behind.map((/** @type {any} */ row, /** @type {number} */ i) =>
    Math.max(0, Math.min(overlaps[i], row.read_ms - alone[i].read_ms)),
  );
  assert.equal(verdict.hol_blocking_ms.length, 9);
  for (const [i, ms] of blocked.entries())
    assert.ok(Math.abs(verdict.hol_blocking_ms[i] - ms) < 1e-6, `${i}: ${ms}`);
  assert.ok(Math.max(...blocked) > 0 && Math.min(...blocked) === 0, `${blocked}`);
  assertSame(verdict.hol_blocking_ms_mean, mean(verdict.hol_blocking_ms), 'mean');
  assert.ok(Math.abs(verdict.wait_overlap_ms_max - Math.max(...overlaps)) < 1e-6);
  assert.equal(verdict.short_requests, 9);
  assert.equal(verdict.kv_fragmentation_pct, convoy.load.kv_fragmentation_pct);

  const row = (/** @type {string} */ name, /** @type {any[]} */ rows, /** @type {any} */ pass) => {
    // the result lists the gaps of all requests, one request after the other
    const at = new Map();
    let from = 0;
    for (const each of pass.requests) {
      at.set(each, pass.result.itl_ms.slice(from, from + each.tokens_out - 1));
      from += each.tokens_out - 1;
    }
    const gaps = rows.flatMap((each) => at.get(each));
    return `| ${name} | ${rows.length} | ${percentiles(rows.map((each) => each.ttft_ms))} | ${percentiles(gaps)} |\n`;
  };
  const limit = (
    /** @type {string} */ what,
    /** @type {number} */ value,
    /** @type {number} */ most,
    /** @type {string} */ unit,
  ) =>
    `| ${what} | ${fixed(value, 1)} ${unit} | ${most} ${unit} | ${value > most ? 'exceeded' : 'kept'} |\n`;
  const said = verdict.passed ? 'passed' : ['failed by', ...verdict.reasons].join(' ');
  assert.equal(
    text,
    hostLine(environment, 'wall time') +
      '| requests | count | TTFT ms, p50 / p95 / p99 | ITL ms, p50 / p95 / p99 |\n|---|---|---|---|\n' +
      row('short, alone', alone, baseline) +
      row('short, convoy', behind, convoy) +
      row('long', longs, convoy) +
      `\nConvoy of 2 x 70/5, 9 x 4/3 at 30.00/s: ${said}` +
      '\n\n| | measured | limit | |\n|---|---|---|---|\n' +
      limit('p99 of short requests, increase', verdict.p99_increase_pct, 50, '%') +
      limit('head-of-line blocking, maximum', verdict.hol_blocking_ms_max, 500, 'ms') +
      limit('KV fragmentation', verdict.kv_fragmentation_pct, 15, '%') +
      `\np99 of short requests ${fixed(verdict.baseline_short_ms_p99, 1)} ms alone, ` +
      `${fixed(verdict.convoy_short_ms_p99, 1)} ms in the convoy; blocked ` +
      `${fixed(verdict.hol_blocking_ms_mean, 1)} ms in the mean; at most ` +
      `${fixed(verdict.wait_overlap_ms_max, 1)} ms waited while long prompts were processed.\n${few(9)}` +
      `Alone: ${loadLine(baseline.load)}Convoy: ${loadLine(convoy.load)}`,
  );
});

test('wick-lab convoy: short requests may arrive together, and groups state the number per class', async () => {
  const options = ['convoy', '--long', '1x20/2', '--short', '2x4/2'];
  const { text } = await bench(even, builtIn, ...options);
  assert.match(text, /\nConvoy of 1 x 20\/2, 2 x 4\/2 at once: (passed|failed by [A-Z_ 0-9]+)\n/);
  for (const [name, wrong] of [
    ...[
      '',
      'x',
      '1',
      '1x',
      '0x1/1',
      '10001x1/1',
      '1*1/1',
      '1x1/1x',
      '1x1/1,1/1',
      '1xcha',
      'x1/1',
    ].map((each) => ['--long', each]),
    ['--short', '2x4'],
  ]) {
    const done = await wick(lab, ['convoy', builtIn, name, wrong]);
    assert.deepEqual([done.code, done.stdout.length], [2, 0], `'${wrong}': ${done.stderr}`);
    assert.equal(
      done.stderr,
      `wick-lab: ${name} takes a number of requests and their lengths, such as 10x2048/512, not '${wrong}'\n`,
    );
  }
  const large = await wick(lab, ['convoy', builtIn, '--short', '1x4000/97']);
  assert.deepEqual(
    [large.code, large.stderr],
    [2, 'wick-lab: requests of class 4000/97 need 4097 tokens; the context is 4096\n'],
  );
});

// ---- sequential requests, alone and under load ----

test('wick-lab saturation: the table matches the JSON, which follows from the requests', async () => {
  const { text, json } = await both(uneven, builtIn, 'saturation', '--short', '7x4/3');
  const { environment, config, alone, loaded, verdict } = json;
  assert.deepEqual(config, {
    ...{ class: '4/3', tokens_in: 4, tokens_out: 3, adaptive: false },
    ...{ load_pct: 50, throughput_drop_pct_max: 30, p99_increase_pct_max: 100 },
  });
  for (const pass of [alone, loaded]) {
    assertSummary(pass);
    const times = pass.requests.map((/** @type {any} */ row) => row.total_ms);
    assertSame(pass.total_ms_p99, percentile(times, 990), 'p99');
    assertSame(pass.throughput_tok_s, (7 * 3 * 1e3) / sum(times), 'throughput');
    // each starts when the previous one has ended
    for (const [i, row] of pass.requests.entries()) {
      const before = pass.requests[i - 1];
      if (before) assert.ok(row.arrival_ms >= before.arrival_ms + before.total_ms);
    }
  }
  assertLoad(alone.load, alone.requests);
  assert.equal(alone.load.running_max, 1);
  assert.ok(loaded.load.submitted > 7 && loaded.load.tokens_out > alone.load.tokens_out);
  const change = (/** @type {number} */ from, /** @type {number} */ to) => (to / from - 1) * 100;
  const speed = change(alone.throughput_tok_s, loaded.throughput_tok_s);
  const slower = change(alone.total_ms_p99, loaded.total_ms_p99);
  assertSame(verdict.throughput_drop_pct, -speed, 'drop');
  const row = (/** @type {string} */ name, /** @type {any} */ pass) =>
    `| ${name} | ${pass.result.iterations} | ${fixed(pass.throughput_tok_s, 1)} | ` +
    `${fixed(pass.total_ms_p99, 1)} | ${percentiles(pass.result.ttft_ms)} | ` +
    `${percentiles(pass.result.itl_ms)} |\n`;
  const signed = (/** @type {number} */ value) => `${value < 0 ? '' : '+'}${fixed(value, 1)}`;
  assert.equal(
    text,
    `${hostLine(environment, 'wall time')}| 4/3, one by one | requests | tok/s | p99 of a request, ms | ` +
      'TTFT ms, p50 / p95 / p99 | ITL ms, p50 / p95 / p99 |\n|---|---|---|---|---|---|\n' +
      row('alone', alone) +
      row('under load', loaded) +
      `\nSaturation at 50 % load (${fixed(verdict.load_rate_per_s, 2)} arrivals/s): ` +
      `${verdict.passed ? 'passed' : 'failed'}. Throughput ${signed(speed)} % (limit -30 %), p99 ` +
      `${signed(slower)} % (limit +100 %).\n${few(7)}Under load: ${loadLine(loaded.load)}`,
  );
});

test('wick-lab saturation --adaptive ends when the speed is steady', async () => {
  const options = ['saturation', '--adaptive', '--short', '110x4/3', '--format', 'json'];
  const { config, alone } = JSON.parse((await bench(uneven, builtIn, ...options)).text);
  assert.equal(config.adaptive, true);
  assert.equal(alone.requests.length, 102);
  assertSummary(alone);
  const speeds = alone.requests.map((/** @type {any} */ row) => 3e3 / row.total_ms).slice(-50);
  const cv = deviation(speeds) / mean(speeds);
  assert.ok(cv > 0.001 && cv < 0.05, `${cv}`);
  assertSame(alone.result.cv_at_stop, cv, 'variation');
});

test('requests that exceed the context and unknown clocks are rejected', async () => {
  for (const [options, told] of [
    [
      ['saturation', '--short', '1x4090/7'],
      'requests of class 4090/7 need 4097 tokens; the context is 4096',
    ],
    [
      ['serve', '--clock', 'cpu', '--threads', '2'],
      '--clock cpu counts one thread: it cannot be combined with --threads 2',
    ],
  ]) {
    const [command, ...rest] = options;
    const done = await wick(lab, [command, builtIn, ...rest]);
    assert.deepEqual([done.code, done.stderr], [2, `wick-lab: ${told}\n`]);
    assert.equal(done.stdout.length, 0);
  }
  const fits = await bench(
    even,
    builtIn,
    'serve',
    '--requests',
    '1',
    '--mix',
    '4090/6',
    '--clock',
    'cpu',
  );
  assert.match(fits.text, /^\| 4090\/6 \| 1 \| /m);
});
