// The rows of a comparison with the peers as the tables of docs/benchmarks.md, one table a phase, and
// back: the picture is drawn from what the document says.

import { digits } from './rows.mjs';

/** @typedef {import('./rows.mjs').RowKey['phase']} Phase */

/**
 * @typedef {{model: string, type: string, threads: number, phase: Phase, peer: string, wick: number,
 *   peer_value: number, ratio: number, ratio_ci: [number, number] | null}} PeerRow
 */

/** @type {Record<Phase, string>} */
const titles = {
  decode: 'Decode, tokens/s',
  prefill: 'Prefill, tokens/s',
  cold_ttft: 'First token of a page that opens for the first time, ms',
};
const phases = /** @type {Phase[]} */ (Object.keys(titles));
const peers = ['llama.cpp', 'wllama'];

/** @param {PeerRow | undefined} row @returns {string} the peer's figure, and the ratio with its interval */
function peerCell(row) {
  if (!row) return '';
  const interval = row.ratio_ci?.map((end) => end.toFixed(2)).join(' to ');
  return `${digits(row.peer_value)}, ${row.ratio.toFixed(2)}${interval ? ` (${interval})` : ''}`;
}

/** @param {PeerRow[]} rows of one phase @returns {string[]} lines of Markdown */
function phaseTable(rows) {
  const shown = peers.filter((peer) => rows.some((row) => row.peer === peer));
  const head = ['model', 'threads', 'Wick', ...shown.map((peer) => `${peer}, ratio`)];
  const keyOf = (/** @type {PeerRow} */ { model, type, threads }) =>
    `${model} ${type} | ${threads}`;
  const lines = [...new Set(rows.map(keyOf))].map((key) => {
    const same = rows.filter((row) => keyOf(row) === key);
    const cells = shown.map((peer) => peerCell(same.find((row) => row.peer === peer)));
    return `| ${[key, digits(same[0].wick), ...cells].join(' | ')} |`;
  });
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...lines];
}

/** @param {PeerRow[]} rows @returns {string} Markdown */
export function phaseTables(rows) {
  return phases
    .map((phase) => ({ phase, of: rows.filter((row) => row.phase === phase) }))
    .filter(({ of }) => of.length > 0)
    .map(({ phase, of }) => [`### ${titles[phase]}`, '', ...phaseTable(of)].join('\n'))
    .join('\n\n');
}

/** @param {number[]} ratios @returns {string} from the least to the largest */
const range = (ratios) =>
  [...new Set([Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2)))].join(
    ' to ',
  );

/** @param {PeerRow[]} rows @returns {string} a line of Markdown for each phase: the ratios to each peer */
export function ratioLines(rows) {
  const names = { decode: 'Decode', prefill: 'Prefill', cold_ttft: 'First token of a page' };
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

/** @param {string} section @param {Phase} phase @returns {string[][]} the cells of its table, head first */
function tableOf(section, phase) {
  const lines = section.split('\n');
  const from = lines.indexOf(`### ${titles[phase]}`) + 1;
  if (from === 0) return [];
  const after = lines.findIndex((line, i) => i >= from && line !== '' && !line.startsWith('|'));
  return lines
    .slice(from, after < 0 ? undefined : after)
    .filter((line) => line.startsWith('|') && !line.startsWith('|-'))
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()));
}

/** @param {string} section that `phaseTables` wrote @returns {PeerRow[]} */
export function readPhaseTables(section) {
  return phases.flatMap((phase) => {
    const [head, ...lines] = tableOf(section, phase);
    return lines.flatMap(([name, threads, wick, ...cells]) =>
      head.slice(3).flatMap((title, i) => {
        if (cells[i] === '') return [];
        const [model, type] = name.split(' ');
        const peer = title.replace(', ratio', '');
        const [peer_value, ratio, ...ends] = (cells[i].match(/[\d.]+/g) ?? []).map(Number);
        const key = { model, type, threads: Number(threads), phase, peer };
        const values = { wick: Number(wick), peer_value, ratio };
        return { ...key, ...values, ratio_ci: ends.length === 2 ? [ends[0], ends[1]] : null };
      }),
    );
  });
}
