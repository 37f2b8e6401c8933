// examples/bench/import.js — reads a result from a file or a link. It may come from anyone, so the
// page shows only its numbers and strings of limited length.

const RUNS_MAX = 400;
const SAMPLES_MAX = 1000;
const FACTS_MAX = 40;
const TEXT_MAX = 400;

/** @typedef {import('./measure.js').Result} Result */
/** @typedef {Record<string, string | number | boolean>} Environment */

/** @param {unknown} value @param {string} name @returns {any[]} */
function listOf(value, name, most = SAMPLES_MAX) {
  if (Array.isArray(value) && value.length <= most) return value;
  throw new Error(`${name} must be a list of at most ${most} items`);
}

/** @param {any} from @param {string} name @returns {number} */
function numberOf(from, name) {
  const value = from?.[name];
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw new Error(`${name} is not a number`);
}

/** @param {any} row @returns {import('./measure.js').Run} */
function runOf(row) {
  return {
    threads: numberOf(row, 'threads'),
    promptTokens: numberOf(row, 'prompt_tokens'),
    tokens: numberOf(row, 'tokens'),
    loadMs: numberOf(row, 'load_ms'),
    samples: listOf(row.samples, 'samples').map((sample) => ({
      prefill: numberOf(sample, 'prefill'),
      decode: numberOf(sample, 'decode'),
      ttftMs: numberOf(sample, 'ttftMs'),
    })),
  };
}

/** @param {any} value @returns {Environment} */
function environmentOf(value) {
  const facts = Object.entries(value ?? {}).slice(0, FACTS_MAX);
  const isPlain = (/** @type {unknown} */ one) =>
    ['string', 'number', 'boolean'].includes(typeof one);
  return Object.fromEntries(
    facts
      .filter(([, one]) => isPlain(one))
      .map(([name, one]) => [
        name.slice(0, TEXT_MAX),
        typeof one === 'string' ? one.slice(0, TEXT_MAX) : /** @type {any} */ (one),
      ]),
  );
}

/** @param {any} metrics @returns {Result['metrics']} the fields that the page's table shows */
function metricsOf(metrics) {
  if (!metrics) return undefined;
  const passes = Object.entries(metrics.passes ?? {}).slice(0, FACTS_MAX);
  const ops = (/** @type {any} */ of) =>
    Object.entries(of ?? {})
      .slice(0, FACTS_MAX)
      .map(([name, op]) => [
        name,
        {
          count: numberOf(op, 'count'),
          latency_us: { mean: numberOf(op.latency_us, 'mean') },
          macs: numberOf(op, 'macs'),
          share: numberOf(op, 'share'),
          ...(op.gb_per_s && { gb_per_s: numberOf(op, 'gb_per_s') }),
          ...(op.gmac_per_s && { gmac_per_s: numberOf(op, 'gmac_per_s') }),
        },
      ]);
  return /** @type {any} */ ({
    timer_grain_us: numberOf(metrics, 'timer_grain_us'),
    passes: Object.fromEntries(passes.map(([name, of]) => [name, Object.fromEntries(ops(of))])),
  });
}

/**
 * @param {any} saved the output of toJson (report.js)
 * @returns {{result: Result, environment: Environment}} the result; throws an error with the reason if it is
 * something else
 */
export function readReport(saved) {
  const runs = listOf(saved?.rows, 'rows', RUNS_MAX).map(runOf);
  if (runs.length === 0) throw new Error('rows is empty');
  const metrics = metricsOf(saved.metrics);
  const metricsThreads = metrics ? numberOf(saved, 'metrics_threads') : 0;
  return {
    result: { runs, info: undefined, metrics, metricsThreads },
    environment: environmentOf(saved.environment),
  };
}
