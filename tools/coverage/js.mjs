// The JavaScript half of `make coverage`: runs the package's Node tests with bundles that have source
// maps, in a copy in build/coverage/.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Place, root } from '../mutants/trial.mjs';
import { SourceCoverage } from './v8.mjs';

/** @type {Record<string, {sources: string[]}>} */
const rooms = JSON.parse(readFileSync(join(root, 'tools/mutants/rooms.json'), 'utf8')).js;

/** @param {string} tree @param {string} folder with V8's files @returns {SourceCoverage} */
function gather(tree, folder) {
  const coverage = new SourceCoverage();
  const dist = join(tree, 'dist');
  /** @type {[string, import('./v8.mjs').FunctionCoverage[]][]} */
  const alone = [];
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    for (const { url, functions } of result) {
      const path = url.startsWith('file:') ? fileURLToPath(url) : '';
      if (path.startsWith(join(tree, 'js/'))) alone.push([path, functions]);
      if (!path.startsWith(dist) || !existsSync(`${path}.map`)) continue;
      const map = JSON.parse(readFileSync(`${path}.map`, 'utf8'));
      map.sources = map.sources.map((/** @type {string} */ each) => resolve(dirname(path), each));
      coverage.add({ code: readFileSync(path, 'utf8'), map, functions });
    }
  }
  for (const [path, functions] of alone) {
    coverage.addSource(path, { code: readFileSync(path, 'utf8'), functions });
  }
  return coverage;
}

/** @returns {Map<string, import('./c.mjs').Counts>} the counts by folder */
export function coverJs() {
  const place = new Place(join(root, 'build/coverage/js'));
  const folder = join(place.folder, 'v8');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const bundle = join(place.tree, 'tools/build/bundle.mjs');
  const env = {
    ...process.env,
    WICK_SHARED: process.env.WICK_SHARED ?? resolve(root, '../shared'),
  };
  const made = spawnSync(process.execPath, [bundle], { env });
  if (made.status !== 0) throw new Error(`cannot build the bundles: ${made.stderr}`);
  const tests = ['package', 'interfaces'].flatMap((group) =>
    readdirSync(join(place.tree, 'tests', group))
      .filter((name) => name.startsWith('js_'))
      .map((name) => join(group, name)),
  );
  for (const test of tests) {
    const { status } = spawnSync(process.execPath, [join(place.tree, 'tests', test)], {
      env: { ...env, NODE_V8_COVERAGE: folder },
    });
    if (status !== 0) console.log(`${test} failed, but its coverage is counted`);
  }
  /** @type {Map<string, import('./c.mjs').Counts>} */
  const counts = new Map();
  for (const [path, { lines, branches }] of gather(place.tree, folder).files) {
    const file = relative(place.tree, path);
    const room = Object.keys(rooms).find((name) =>
      rooms[name].sources.some((source) => file.startsWith(source)),
    );
    if (!room || !file.startsWith('js/')) continue;
    const all = counts.get(`js/${room}`) ?? { lines: [0, 0], branches: [0, 0] };
    for (const [kind, hits] of /** @type {const} */ ([
      ['lines', [...lines.values()]],
      ['branches', [...branches.values()]],
    ])) {
      all[kind][0] += hits.filter(Boolean).length;
      all[kind][1] += hits.length;
    }
    counts.set(`js/${room}`, all);
  }
  return counts;
}
