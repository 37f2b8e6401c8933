// Computes the rows of a comparison (medians, ratio, interval) and writes their tables.

import { median, ratioInterval } from './statistics.mjs';

/** Speeds in tokens/s. */
/** @typedef {{promptTokens: number, tokens: number, prefill: number, decode: number}} Measurement */

/**
 * @typedef {{model: string, type: string, threads: number,
 *   phase: 'prefill' | 'decode' | 'cold_ttft', peer: string, peer_version: string}} RowKey
 */

/**
 * Higher speeds and lower times are better: a ratio above 1 means that Wick is better.
 * @param {{row: RowKey, ours: number[], theirs: number[], hasInterval: boolean}} measured
 */
export function compareSamples({ row, ours, theirs, hasInterval }) {
  const isTime = row.phase === 'cold_ttft';
  const [better, worse] = isTime ? [theirs, ours] : [ours, theirs];
  return {
    ...row,
    unit: isTime ? 'ms' : 'tok/s',
    wick: median(ours),
    peer_value: median(theirs),
    ratio: median(better) / median(worse),
    ratio_ci: hasInterval ? ratioInterval(better, worse) : null,
    samples: { wick: ours, peer: theirs },
  };
}

/**
 * Returns the content of build/bench/peers.json. Its readers rely only on these keys.
 * @param {ReturnType<typeof compareSamples>[]} rows
 */
export function peersFile(rows) {
  return {
    rows: rows.map((row) => {
      const { model, type, threads, phase, peer, wick, peer_value, ratio, ratio_ci } = row;
      return { model, type, threads, phase, peer, wick, peer_value, ratio, ratio_ci };
    }),
  };
}

/** @param {number} value */
export const digits = (value) =>
  value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);

/** @param {ReturnType<typeof compareSamples>[]} rows @returns {string} */
export function peersTable(rows) {
  const lines = rows.map((row) => {
    const interval = row.ratio_ci ? row.ratio_ci.map((x) => x.toFixed(2)).join(' to ') : '';
    const cells = [
      row.model,
      row.type,
      row.threads,
      row.phase,
      row.unit,
      digits(row.wick),
      `${row.peer} ${row.peer_version}`,
      digits(row.peer_value),
      row.ratio.toFixed(2),
      interval,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| model | type | threads | phase | unit | Wick | peer | peer | ratio | 95 % |',
    '|---|---|---|---|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

/**
 * @typedef {{model: string, type: string, threads: number, host: string, kernels: string,
 *   prefill: number, decode: number, prefill_ratio: number, decode_ratio: number, samples: object}} HostRow
 */

/** @param {HostRow[]} rows @returns {string} */
export function hostsTable(rows) {
  const lines = rows.map(
    (row) =>
      `| ${row.model} ${row.type} | ${row.host} | ` +
      `${digits(row.prefill)}, ${row.prefill_ratio.toFixed(2)} | ${digits(row.decode)}, ${row.decode_ratio.toFixed(2)} |`,
  );
  return ['| model | host | prefill, ratio | decode, ratio |', '|---|---|---|---|', ...lines].join(
    '\n',
  );
}
