// The C half of `make coverage`: runs the C tests in build/test/coverage/ and adds up, by folder, the
// lines and branches that they ran (clang's source-based coverage).

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { root } from '../mutants/trial.mjs';
import { exportCounts, programs, runCounted } from './profiles.mjs';

/** @typedef {{lines: [number, number], branches: [number, number]}} Counts covered lines, and all lines */

const profiles = join(root, 'build/coverage/c');

/** @returns {Promise<Map<string, Counts>>} the counts by folder */
export async function coverC() {
  rmSync(profiles, { recursive: true, force: true });
  mkdirSync(profiles, { recursive: true });
  const names = readdirSync(programs);
  for (const name of names) {
    const { code } = await runCounted(name, [], profiles);
    if (code !== 0) console.log(`${name} failed, but its coverage is counted`);
  }
  /** @type {{filename: string, summary: any}[]} */
  const files = JSON.parse(exportCounts(profiles, names, '-summary-only') ?? '').data[0].files;
  /** @type {Map<string, Counts>} */
  const rooms = new Map();
  for (const { filename, summary } of files) {
    const file = relative(root, resolve(root, filename));
    const [top, room] = file.split('/');
    if (top !== 'src') continue;
    const key = `c/${room}`;
    const counts = rooms.get(key) ?? { lines: [0, 0], branches: [0, 0] };
    for (const kind of /** @type {const} */ (['lines', 'branches'])) {
      counts[kind][0] += summary[kind].covered;
      counts[kind][1] += summary[kind].count;
    }
    rooms.set(key, counts);
  }
  return rooms;
}
