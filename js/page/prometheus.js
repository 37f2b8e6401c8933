// js/page/prometheus.js — the engine's counters in Prometheus' text format.

/** @import { EngineStats } from '../index.js' */

/**
 * Name, help and value of each counter or gauge. Prometheus recommends base units, and `_total` in the names of
 * counters.
 * @param {EngineStats} stats
 * @returns {[name: string, help: string, value: number | Record<string, number>][]} values with several labels are
 *   objects
 */
function seriesOf({ requests, tokens, kv, passes, rows, draftFailed }) {
  const { running, waiting, paused, stopped, length, aborted, failed } = requests;
  const { swappedOut, swappedIn, swapFailed } = requests;
  const { all, free, shared, cached } = kv.pages;
  const ends = { stop: stopped, length, abort: aborted, error: failed };
  const swaps = { out: swappedOut, in: swappedIn, failed: swapFailed };
  const { hits = 0, misses = 0 } = kv.prefix ?? {};
  return [
    ['wick_requests', 'Current requests.', by('state', { running, waiting, paused })],
    ['wick_requests_submitted_total', 'Accepted requests.', requests.submitted],
    [
      'wick_requests_refused_total',
      'Requests rejected because the queue was full.',
      requests.refused,
    ],
    ['wick_requests_finished_total', 'Finished requests.', by('reason', ends)],
    ['wick_preemptions_total', 'Pages evicted for other requests.', requests.preempted],
    [
      'wick_swaps_total',
      'Preempted requests: pages swapped out, swapped in, failed.',
      by('kind', swaps),
    ],
    [
      'wick_tokens_total',
      'Tokens: prefilled, cached, recomputed, generated, proposed, accepted.',
      by('kind', tokens),
    ],
    ['wick_passes_total', 'Passes through the model.', passes],
    ['wick_rows_total', 'Tokens in all passes.', rows],
    ['wick_draft_failures_total', 'Failures of the draft model.', draftFailed],
    [
      'wick_kv_pages',
      'Pages of the KV cache.',
      by('state', { used: all - free, free, shared, cached }),
    ],
    ['wick_kv_bytes', 'Bytes of used pages.', kv.bytes.used],
    ['wick_prefix_hits_total', 'Prompts with a cached prefix.', hits],
    ['wick_prefix_misses_total', 'Prompts without a cached prefix.', misses],
  ];
}

/** @param {string} label @param {Record<string, number>} values */
const by = (label, values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`{${label}="${name}"}`, value]),
  );

/** @param {EngineStats} stats @returns {string} the counters in Prometheus' text format */
export function prometheusOf(stats) {
  return seriesOf(stats)
    .map(([name, help, value]) => {
      const type = name.endsWith('_total') ? 'counter' : 'gauge';
      const values = typeof value === 'object' ? value : { '': value };
      const lines = Object.entries(values).map(([labels, one]) => `${name}${labels} ${one}\n`);
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}
