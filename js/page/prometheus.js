// js/page/prometheus.js — the engine's counters in Prometheus' text format.

/** @typedef {import('../index.js').EngineStats} EngineStats */

/**
 * Name, help, type, value and labels of each line. Prometheus recommends base units, and `_total`
 * in the names of counters.
 * @param {EngineStats} stats
 * @returns {[name: string, help: string, type: 'gauge' | 'counter', values: Record<string, number>][]}
 */
function seriesOf({ requests, tokens, kv, passes, rows, draftFailed }) {
  const { running, waiting, paused, stopped, length, aborted, failed } = requests;
  const { pages } = kv;
  const used = pages.all - pages.free;
  return [
    ['wick_requests', 'Current requests.', 'gauge', by('state', { running, waiting, paused })],
    ['wick_requests_submitted_total', 'Accepted requests.', 'counter', { '': requests.submitted }],
    [
      'wick_requests_refused_total',
      'Requests rejected because the queue was full.',
      'counter',
      { '': requests.refused },
    ],
    [
      'wick_requests_finished_total',
      'Finished requests.',
      'counter',
      by('reason', { stop: stopped, length, abort: aborted, error: failed }),
    ],
    [
      'wick_preemptions_total',
      'Pages evicted for other requests.',
      'counter',
      { '': requests.preempted },
    ],
    [
      'wick_swaps_total',
      'Preempted requests: pages swapped out, swapped in, failed.',
      'counter',
      by('kind', {
        out: requests.swappedOut,
        in: requests.swappedIn,
        failed: requests.swapFailed,
      }),
    ],
    [
      'wick_tokens_total',
      'Tokens: prefilled, cached, recomputed, generated, proposed, accepted.',
      'counter',
      by('kind', /** @type {any} */ (tokens)),
    ],
    ['wick_passes_total', 'Passes through the model.', 'counter', { '': passes }],
    ['wick_rows_total', 'Tokens in all passes.', 'counter', { '': rows }],
    ['wick_draft_failures_total', 'Failures of the draft model.', 'counter', { '': draftFailed }],
    [
      'wick_kv_pages',
      'Pages of the KV cache.',
      'gauge',
      by('state', { used, free: pages.free, shared: pages.shared, cached: pages.cached }),
    ],
    ['wick_kv_bytes', 'Bytes of used pages.', 'gauge', { '': kv.bytes.used }],
    [
      'wick_prefix_hits_total',
      'Prompts with a cached prefix.',
      'counter',
      { '': kv.prefix?.hits ?? 0 },
    ],
    [
      'wick_prefix_misses_total',
      'Prompts without a cached prefix.',
      'counter',
      { '': kv.prefix?.misses ?? 0 },
    ],
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
    .map(([name, help, type, values]) => {
      const lines = Object.entries(values).map(([labels, value]) => `${name}${labels} ${value}\n`);
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}
