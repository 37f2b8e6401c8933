// Converts the rows of a comparison with the peers to the tables in docs/benchmarks.md, one for
// each phase, and back, because the chart is drawn from the document.

import { digits } from './rows.mjs';

/** @typedef {import('./rows.mjs').RowKey['phase']} Phase */

/**
 * @typedef {{model: string, type: string, threads: number, phase: Phase, peer: string, wick: number,
 *   peer_value: number, ratio: number, ratio_ci: [number, number] | null}} PeerRow
 */

/** The tables: their titles, and the phases that share one. @type {[title: string, phases: Phase[]][]} */
const tables = [
  ['Tokens/s', ['decode', 'prefill']],
  ['First token on the first visit to a page, ms', ['cold_ttft']],
];
const phases = tables.flatMap(([, shared]) => shared);
const peers = ['llama.cpp', 'wllama'];

/** @param {PeerRow | undefined} row @returns {string} the ratio with its interval */
function peerCell(row) {
  if (!row) return '';
  const interval = row.ratio_ci?.map((end) => end.toFixed(2)).join(' to ');
  return `${row.ratio.toFixed(2)}${interval ? ` (${interval})` : ''}`;
}

/**
 * @param {PeerRow[]} rows
 * @param {Phase[]} shared the phases of one table
 * @returns {string[]} lines of Markdown
 */
function phaseTable(rows, shared) {
  const isOf = (/** @type {Phase} */ phase) => (/** @type {PeerRow} */ row) => row.phase === phase;
  const columns = shared
    .filter((phase) => rows.some(isOf(phase)))
    .map((phase) => ({
      phase,
      shown: peers.filter((peer) => rows.filter(isOf(phase)).some((row) => row.peer === peer)),
    }));
  const head = columns.flatMap(({ phase, shown }) => [
    phase === 'cold_ttft' ? 'Wick' : `${phase}: Wick`,
    ...shown.map((peer) => `vs ${peer}`),
  ]);
  const keyOf = (/** @type {PeerRow} */ { model, type, threads }) =>
    `${model} ${type} | ${threads}`;
  const lines = [...new Set(rows.map(keyOf))].map((key) => {
    const cells = columns.flatMap(({ phase, shown }) => {
      const same = rows.filter((row) => keyOf(row) === key && row.phase === phase);
      const wick = same.length > 0 ? digits(same[0].wick) : '';
      return [wick, ...shown.map((peer) => peerCell(same.find((row) => row.peer === peer)))];
    });
    return `| ${[key, ...cells].join(' | ')} |`;
  });
  const titles = ['model', 'threads', ...head];
  return [`| ${titles.join(' | ')} |`, `|${'---|'.repeat(titles.length)}`, ...lines];
}

/** @param {PeerRow[]} rows @returns {string} Markdown */
export function phaseTables(rows) {
  return tables
    .map(([title, shared]) => ({
      ...{ title, shared },
      of: rows.filter(({ phase }) => shared.includes(phase)),
    }))
    .filter(({ of }) => of.length > 0)
    .map(({ title, shared, of }) => [`### ${title}`, '', ...phaseTable(of, shared)].join('\n'))
    .join('\n\n');
}

/** @param {number[]} ratios @returns {string} the range from the smallest to the largest */
const range = (ratios) =>
  [...new Set([Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2)))].join(
    ' to ',
  );

/** @param {PeerRow[]} rows @returns {string} one line of Markdown per phase, with the ratios to each peer */
export function ratioLines(rows) {
  const names = { decode: 'Decode', prefill: 'Prefill', cold_ttft: 'First token on a first visit' };
  return phases
    .flatMap((phase) => {
      const to = peers.flatMap((peer) => {
        const of = rows.filter((row) => row.phase === phase && row.peer === peer);
        return of.length > 0 ? [`${range(of.map(({ ratio }) => ratio))} times ${peer}`] : [];
      });
      return to.length > 0 ? [`- ${names[phase]}: ${to.join(', ')}.`] : [];
    })
    .join('\n');
}

/**
 * @param {string} section
 * @param {string} title
 * @returns {string[][]} the cells of its table, with the header first
 */
function tableOf(section, title) {
  const lines = section.split('\n');
  const from = lines.indexOf(`### ${title}`) + 1;
  if (from === 0) return [];
  const after = lines.findIndex((line, i) => i >= from && line !== '' && !line.startsWith('|'));
  return lines
    .slice(from, after < 0 ? undefined : after)
    .filter((line) => line.startsWith('|') && !line.startsWith('|-'))
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()));
}

/**
 * @param {string} section written by `phaseTables`
 * @returns {PeerRow[]} the rows, ordered by phase
 */
export function readPhaseTables(section) {
  const rows = tables.flatMap(([title, shared]) => {
    const [head = [], ...lines] = tableOf(section, title);
    return lines.flatMap(([name, threads, ...cells]) => {
      const [model, type] = name.split(' ');
      let [phase] = shared;
      let wick = 0;
      return cells.flatMap((cell, i) => {
        const [, peer] = /^vs (.+)/.exec(head[i + 2]) ?? [];
        if (!peer) {
          phase = shared.find((one) => head[i + 2].startsWith(one)) ?? phase;
          wick = Number(cell);
        }
        if (!peer || cell === '') return [];
        const [ratio, ...ends] = (cell.match(/[\d.]+/g) ?? []).map(Number);
        const peer_value = phase === 'cold_ttft' ? wick * ratio : wick / ratio;
        const key = { model, type, threads: Number(threads), phase, peer };
        const ratio_ci = /** @type {[number, number] | null} */ (ends.length === 2 ? ends : null);
        return { ...key, wick, peer_value, ratio, ratio_ci };
      });
    });
  });
  return phases.flatMap((phase) => rows.filter((row) => row.phase === phase));
}
