// Prints the final output of `make mutants`: one line per folder, then the surviving mutants.

/** @typedef {import('./run.mjs').Result} Result */

/** @param {Result[]} results */
function countsOf(results) {
  const of = (/** @type {Result['outcome']} */ outcome) =>
    results.filter((result) => result.outcome === outcome).length;
  const killed = of('killed') + of('timeout');
  const survived = of('survived');
  const share = killed + survived === 0 ? 1 : killed / (killed + survived);
  return { killed, timeouts: of('timeout'), survived, listed: of('listed'), share };
}

const DEVIATIONS = 1.96; // for 95%

/**
 * Returns the Wilson score interval, which estimates the share of killed mutants from a sample.
 * @param {number} share
 * @param {number} count
 */
export function intervalOf(share, count) {
  if (count === 0) return [0, 1];
  const z = DEVIATIONS ** 2 / count;
  const middle = (share + z / 2) / (1 + z);
  const half = (DEVIATIONS * Math.sqrt((share * (1 - share)) / count + z / (4 * count))) / (1 + z);
  return [middle - half, middle + half];
}

/** @param {string} name @param {Result[]} results */
function rowOf(name, results) {
  const { killed, timeouts, survived, listed, share } = countsOf(results);
  const cells = [killed, timeouts, survived, listed].map((count) => String(count).padStart(9));
  return `${name.padEnd(14)}${cells.join('')}${`${(100 * share).toFixed(1)} %`.padStart(9)}`;
}

/** @param {Result[]} results */
export function printReport(results) {
  const counted = results.filter(({ outcome }) => outcome !== 'same' && outcome !== 'uncompilable');
  const head = ['killed', 'by time', 'survived', 'listed', 'share'].map((word) => word.padStart(9));
  console.log(`\n${'folder'.padEnd(14)}${head.join('')}`);
  for (const language of ['c', 'js']) {
    const own = counted.filter((result) => result.language === language);
    if (own.length === 0) continue;
    for (const room of [...new Set(own.map((result) => result.room))].sort()) {
      const inRoom = own.filter((result) => result.room === room);
      console.log(rowOf(`${language}/${room}`, inRoom));
    }
    const { killed, survived, share } = countsOf(own);
    const ends = intervalOf(share, killed + survived).map((end) => (100 * end).toFixed(1));
    console.log(`${rowOf(`${language}, all`, own)}  (95 % interval: ${ends.join(' to ')} %)`);
  }
  const ms = counted.reduce((sum, result) => sum + result.ms, 0) / Math.max(1, counted.length);
  const redrawn = results.length - counted.length;
  console.log(
    `\nreplaced, because they do not compile or compile to the same code: ${redrawn}; a mutant took ` +
      `${(ms / 1000).toFixed(1)} s of one worker`,
  );
  for (const result of counted.filter(({ outcome }) => outcome === 'survived')) {
    const by = result.by && ` (${result.by})`;
    console.log(`\n${result.file}:${result.line} ${result.operator}${by}`);
    console.log(`  - ${result.before}\n  + ${result.after}`);
  }
}
