// `make coverage`: reports the share of lines and branches that tests run, by folder. The C unit tests
// run natively and the package's tests in Node, so code that only browsers run is left out.
// ONLY=c or ONLY=js measures only one of the two.

import { coverC } from './c.mjs';
import { coverJs } from './js.mjs';

const only = process.env.ONLY ?? '';
const share = (/** @type {[number, number]} */ [covered, count]) =>
  `${(count === 0 ? 100 : (100 * covered) / count).toFixed(1)} %`.padStart(9);

/** @param {Map<string, import('./c.mjs').Counts>} rooms @param {string} name */
function print(rooms, name) {
  /** @type {import('./c.mjs').Counts} */
  const all = { lines: [0, 0], branches: [0, 0] };
  for (const [room, { lines, branches }] of [...rooms].sort()) {
    console.log(`${room.padEnd(14)}${share(lines)}${share(branches)}`);
    for (const i of [0, 1]) {
      all.lines[i] += lines[i];
      all.branches[i] += branches[i];
    }
  }
  console.log(`${name.padEnd(14)}${share(all.lines)}${share(all.branches)}`);
}

console.log(`${'folder'.padEnd(14)}${'lines'.padStart(9)}${'branches'.padStart(9)}`);
if (only !== 'js') print(await coverC(), 'c, all');
if (only !== 'c') print(coverJs(), 'js, all');
