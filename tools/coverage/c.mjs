// The half of make coverage that is about C: runs the C tests of build/test/coverage/ and adds up, by
// room, which lines and branches they ran (clang's source-based coverage).

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { run } from '../../tests/support/process.mjs';
import { root } from '../mutants/trial.mjs';

/** @typedef {{lines: [number, number], branches: [number, number]}} Counts covered, and of how many */

const programs = join(root, 'build/test/coverage');
const profiles = join(root, 'build/coverage/c');
const llvm = process.env.LLVM ?? '19';

/** @param {string} name */
async function runTest(name) {
  const { code } = await run(join(programs, name), [], {
    env: {
      WICK_ROOT: root,
      WICK_TMP: profiles,
      WICK_SHARED: process.env.WICK_SHARED ?? resolve(root, '../shared'),
      LLVM_PROFILE_FILE: join(profiles, `${name}-%p.profraw`),
    },
  });
  if (code !== 0) console.log(`${name} failed: its share is counted all the same`);
}

/** @param {string[]} names @returns {{filename: string, summary: any}[]} */
function filesOf(names) {
  const merged = join(profiles, 'merged.profdata');
  const raw = readdirSync(profiles).filter((name) => name.endsWith('.profraw'));
  const paths = raw.map((name) => join(profiles, name));
  execFileSync(`llvm-profdata-${llvm}`, ['merge', '-sparse', ...paths, '-o', merged]);
  const objects = names.flatMap((name) => ['-object', join(programs, name)]).slice(1);
  const args = ['export', '-summary-only', `-instr-profile=${merged}`, ...objects];
  const text = execFileSync(`llvm-cov-${llvm}`, args, { maxBuffer: 1 << 28, encoding: 'utf8' });
  return JSON.parse(text).data[0].files;
}

/** @returns {Promise<Map<string, Counts>>} by room */
export async function coverC() {
  rmSync(profiles, { recursive: true, force: true });
  mkdirSync(profiles, { recursive: true });
  const names = readdirSync(programs);
  for (const name of names) await runTest(name);
  /** @type {Map<string, Counts>} */
  const rooms = new Map();
  for (const { filename, summary } of filesOf(names)) {
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
