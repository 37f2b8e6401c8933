// Draws docs/benchmarks-peers.svg, the decode and prefill speeds of Wick and its peers, from rows. When
// run as a script, it reads the rows from the tables in docs/benchmarks.md:
//   node tools/bench/peers_picture.mjs

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../tests/support/locate.mjs';
import { drawBars } from './bars_svg.mjs';
import { readSection } from './document.mjs';
import { readPhaseTables } from './peers_tables.mjs';

/** @typedef {import('./peers_tables.mjs').PeerRow} PeerRow */

const series = ['Wick', 'llama.cpp', 'wllama'];
const speeds = /** @type {const} */ (['decode', 'prefill']);

/** @param {PeerRow[]} rows of one phase and number of threads */
function groupsOf(rows) {
  const nameOf = (/** @type {PeerRow} */ { model, type }) => `${model} ${type}`;
  return [...new Set(rows.map(nameOf))].map((name) => {
    const same = rows.filter((row) => nameOf(row) === name);
    const theirs = series.slice(1).map((peer) => same.find((row) => row.peer === peer)?.peer_value);
    return { name, values: [same[0].wick, ...theirs] };
  });
}

/** @param {PeerRow[]} rows @returns {string} an SVG: decode next to prefill, one row per number of threads */
export function drawPeers(rows) {
  const threads = [...new Set(rows.map((row) => row.threads))].sort((a, b) => a - b);
  const panels = threads.flatMap((count) =>
    speeds.map((phase) => ({
      title: `${phase === 'decode' ? 'Decode' : 'Prefill'}, ${count} thread${count > 1 ? 's' : ''}, tokens/s`,
      groups: groupsOf(rows.filter((row) => row.phase === phase && row.threads === count)),
    })),
  );
  return drawBars(
    'Tokens per second: Wick, native llama.cpp and wllama',
    series,
    panels.filter(({ groups }) => groups.length > 0),
  );
}

/** @param {PeerRow[]} rows */
export const writePeersPicture = (rows) =>
  writeFileSync(resolve(root, 'docs/benchmarks-peers.svg'), drawPeers(rows));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writePeersPicture(readPhaseTables(readSection('peers')));
}
