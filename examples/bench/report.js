// examples/bench/report.js — converts a result and its environment to rows, JSON and Markdown.

/** Version and commit, filled in by build.mjs. */
const WICK_VERSION = /** @type {any} */ (globalThis).WICK_VERSION;

/** @typedef {import('./measure.js').Result} Result */
/** @typedef {import('./measure.js').Run} Run */
/** @typedef {import('./measure.js').Plan} Plan */

/** @param {number[]} values @returns {number} */
export function median(values) {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {number} value */
export function digits(value) {
  if (!Number.isFinite(value)) return '';
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

/** @returns {Promise<string>} the browser's name with its full version, which the user agent string lacks */
async function browserName() {
  const data = /** @type {any} */ (navigator).userAgentData;
  if (!data) return navigator.userAgent;
  const { fullVersionList = [] } = await data.getHighEntropyValues(['fullVersionList']);
  const real = fullVersionList.filter(
    (/** @type {any} */ { brand }) => !/not.?a.?brand/i.test(brand),
  );
  const names = real.map((/** @type {any} */ { brand, version }) => `${brand} ${version}`);
  return [...names, navigator.userAgent].join('; ');
}

/** @param {Plan} plan @param {Result} result @returns {Promise<Record<string, string | number | boolean>>} */
export async function describeEnvironment(plan, { info }) {
  const deviceMemory = /** @type {any} */ (navigator).deviceMemory;
  return {
    wick: WICK_VERSION,
    model: plan.model,
    architecture: info?.architecture ?? '',
    parameters: info?.shape?.parameters ?? 0,
    types: Object.keys(info?.types ?? {}).join(', '),
    fingerprint: info?.fingerprint ?? '',
    kernels: info?.kernels ?? '',
    'linear memory, bytes': info?.memory.linearBytes ?? 0,
    browser: await browserName(),
    processors: navigator.hardwareConcurrency,
    ...(deviceMemory && { 'device memory in GB (lower bound)': deviceMemory }),
    'cross-origin isolated': crossOriginIsolated,
    date: new Date().toISOString(),
  };
}

/** @param {Run[]} runs @returns {string[][]} rows, including a header row */
export function speedRows(runs) {
  const head = [
    'threads',
    'prompt',
    'generated',
    'prefill tok/s',
    'decode tok/s',
    'TTFT ms',
    'load ms',
  ];
  return [
    head,
    ...runs.map((run) => [
      String(run.threads),
      String(run.promptTokens),
      String(run.tokens),
      digits(median(run.samples.map(({ prefill }) => prefill))),
      digits(median(run.samples.map(({ decode }) => decode))),
      digits(median(run.samples.map(({ ttftMs }) => ttftMs))),
      digits(run.loadMs),
    ]),
  ];
}

/** @param {NonNullable<Result['metrics']>} metrics @returns {string[][]} rows, including a header row */
export function opRows({ passes }) {
  const head = ['op', 'count', 'mean µs', 'GB/s', 'GMAC/s', 'share'];
  const rows = Object.entries(passes).flatMap(([pass, ops]) =>
    Object.entries(ops)
      .filter(([, op]) => op.count > 0)
      .map(([name, op]) => [
        `${pass} ${name}`,
        String(op.count),
        digits(op.latency_us.mean),
        digits(op.gb_per_s ?? Number.NaN),
        op.macs > 0 ? digits(op.gmac_per_s ?? Number.NaN) : '',
        `${(op.share * 100).toFixed(1)} %`,
      ]),
  );
  return [head, ...rows];
}

/** @param {string[][]} rows */
function markdownTable([head, ...rows]) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/** @param {Result} result @param {Awaited<ReturnType<typeof describeEnvironment>>} environment */
export function toMarkdown(result, environment) {
  const facts = Object.entries(environment).map(([name, value]) => `- ${name}: ${value}`);
  const ops = result.metrics ? `\n\n${markdownTable(opRows(result.metrics))}` : '';
  return `${markdownTable(speedRows(result.runs))}${ops}\n\n${facts.join('\n')}\n`;
}

/** @param {Result} result @param {Awaited<ReturnType<typeof describeEnvironment>>} environment */
export function toJson({ runs, metrics, metricsThreads }, environment) {
  const rows = runs.map((run) => ({
    threads: run.threads,
    prompt_tokens: run.promptTokens,
    tokens: run.tokens,
    load_ms: run.loadMs,
    prefill_tok_s: median(run.samples.map(({ prefill }) => prefill)),
    decode_tok_s: median(run.samples.map(({ decode }) => decode)),
    ttft_ms: median(run.samples.map(({ ttftMs }) => ttftMs)),
    samples: run.samples,
  }));
  const all = { environment, rows, metrics_threads: metricsThreads, metrics: metrics ?? null };
  return `${JSON.stringify(all, null, 2)}\n`;
}
