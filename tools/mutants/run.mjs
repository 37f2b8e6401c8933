// `make mutants`: inserts small faults into the engine and the package, one at a time, and checks whether the tests
// of the folder (rooms.json) detect them. C tests that do not reach a mutant's line (reach.mjs) are
// skipped. SEED chooses the mutants, C and JS set their numbers, ROOM restricts them to an entry of
// rooms.json and AT to a folder, a file or lines of a file (AT='src/cli/ src/base/math.c:20-24'), JOBS
// is the number of mutants tried in parallel, and RESUME=1 continues an earlier run.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describeMutation, mutate, mutationsOf } from './operators.mjs';
import { Reach } from './reach.mjs';
import { printReport } from './report.mjs';
import { BUDGET_MS, hashOf, Place, root, tryTests } from './trial.mjs';

/**
 * A source belongs to the first room with a prefix of its path. `own` lists tests for single sources, which run before
 * the other tests of the room, so that there is enough time for them.
 * @typedef {{sources: string[], tests: string[], own?: Record<string, string[]>}} Room
 */
/** @typedef {import('./operators.mjs').Mutation} Mutation */
/** @typedef {{language: 'c' | 'js', room: string, file: string, mutation: Mutation, id: string}} Mutant */
/**
 * @typedef {object} Result
 * @property {string} id
 * @property {'c' | 'js'} language
 * @property {string} room
 * @property {string} file
 * @property {number} line
 * @property {string} operator
 * @property {string} before
 * @property {string} after
 * @property {'killed' | 'timeout' | 'survived' | 'listed' | 'same' | 'uncompilable'} outcome `listed`: survived, and
 *   equivalent.json has the reason; `same`: compiles to the same code; the last two are replaced
 * @property {string} by the test that failed, or a reason
 * @property {number} ms
 */

/** @type {{c: Record<string, Room>, js: Record<string, Room>}} */
const rooms = JSON.parse(readFileSync(new URL('./rooms.json', import.meta.url), 'utf8'));
/**
 * `above`: the line before it, if the reason does not apply to other lines with the same text.
 * @type {{file: string, above?: string, before: string, after: string, reason: string}[]}
 */
const listed = JSON.parse(readFileSync(new URL('./equivalent.json', import.meta.url), 'utf8'));

/** @param {string} file @param {{above: string, before: string, after: string}} described @returns {string | undefined} */
function reasonOf(file, { above, before, after }) {
  const known = listed.find(
    (each) =>
      each.file === file &&
      each.before === before &&
      each.after === after &&
      (each.above ?? above) === above,
  );
  return known?.reason;
}

const number = (/** @type {string} */ name, /** @type {number} */ usual) =>
  process.env[name] ? Number(process.env[name]) : usual;
const seed = number('SEED', Math.floor(Math.random() * 1e6));
const wanted = { c: number('C', 300), js: number('JS', 200) };
const jobs = number('JOBS', 2);
const only = process.env.ROOM ?? '';
const at = (process.env.AT ?? '').split(' ').filter((word) => word !== '');
const folder = join(root, process.env.MUTANTS_FOLDER ?? 'build/mutants');
const resultsPath = join(folder, 'results.jsonl');
mkdirSync(folder, { recursive: true });

/** @param {number} state @returns {() => number} in [0, 1): mulberry32 */
function randomOf(state) {
  let at = state >>> 0;
  return () => {
    at = (at + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(at ^ (at >>> 15), at | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** @template T @param {T[]} items @param {() => number} random @returns {T[]} */
function shuffled(items, random) {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    [all[i], all[other]] = [all[other], all[i]];
  }
  return all;
}

/** @param {string} file @param {string} source @param {Mutation} mutation @returns {string} */
const idOf = (file, source, mutation) =>
  createHash('sha256')
    .update(JSON.stringify([file, source, mutation]))
    .digest('hex')
    .slice(0, 16);

/** @param {Pick<Mutant, 'language' | 'room' | 'file'>} mutant @returns {string[]} */
function testsOf({ language, room, file }) {
  const { own = {}, tests } = rooms[language][room];
  return [...new Set([...(own[file] ?? []), ...tests])];
}

/**
 * @param {string} file
 * @param {number} line
 * @returns {boolean} whether AT is empty or includes the line
 */
const isAt = (file, line) =>
  at.length === 0 ||
  at.some((word) => {
    const [path, first, last = first] = word.split(/[:-](?=\d+(?:-\d+)?$)/);
    if (first === undefined) return file.startsWith(path);
    return file === path && line >= Number(first) && line <= Number(last);
  });

/**
 * Returns all mutants of a language in random order. First a line is drawn, then one of its changes,
 * so that a line with many operators does not count more than others. The other changes follow, in
 * case there are too few lines.
 * @param {'c' | 'js'} language
 * @returns {Mutant[]}
 */
function drawn(language) {
  const random = randomOf(seed);
  /** @type {Map<string, Mutant[]>} */
  const lines = new Map();
  const listedFiles = execFileSync('git', ['ls-files', 'src', 'component', 'js'], {
    cwd: root,
    encoding: 'utf8',
  });
  const suffix = language === 'c' ? '.c' : '.js';
  for (const file of listedFiles.trim().split('\n')) {
    if (!file.endsWith(suffix) || !existsSync(join(root, file))) continue;
    const room = Object.entries(rooms[language]).find(([, { sources }]) =>
      sources.some((source) => file.startsWith(source)),
    )?.[0];
    if (!room) throw new Error(`${file} is missing in tools/mutants/rooms.json`);
    if (only && room !== only) continue;
    const source = readFileSync(join(root, file), 'utf8');
    for (const mutation of mutationsOf(source, language)) {
      const { line } = describeMutation(source, mutation);
      if (!isAt(file, line)) continue;
      const key = `${file}:${line}`;
      const id = idOf(file, source, mutation);
      lines.set(key, [...(lines.get(key) ?? []), { language, room, file, mutation, id }]);
    }
  }
  const order = shuffled([...lines.values()], random).map((mutants) => shuffled(mutants, random));
  const longest = Math.max(0, ...order.map((mutants) => mutants.length));
  return Array.from({ length: longest }, (_, i) => order.flatMap((m) => m.slice(i, i + 1))).flat();
}

const reach = new Reach(folder);

/** @param {Mutant} mutant @param {number} line @returns {string[]} tests that may reach it */
const testsOfLine = (mutant, line) =>
  testsOf(mutant).filter((test) => reach.mayRun(test, mutant.file, line));

/** The time of each test without a mutant, stored for the next run with the same programs. */
class Baseline {
  #path = join(folder, 'baseline.json');
  #stamp = [
    ...(wanted.c > 0
      ? ['build/test/native-asan/libwick.a', 'build/native/wick', 'build/edge/wick-p3.wasm']
      : []),
    ...(wanted.js > 0 ? ['dist/index.js'] : []),
  ]
    .map((file) => hashOf(join(root, file)))
    .join(' ');
  /** @type {Map<string, import('./trial.mjs').Times>} */
  #times = new Map();

  constructor() {
    if (!existsSync(this.#path)) return;
    const { stamp, times } = JSON.parse(readFileSync(this.#path, 'utf8'));
    if (stamp === this.#stamp) this.#times = new Map(times);
  }

  /**
   * @param {Place[]} places
   * @param {Iterable<string>} tests tests that fail without a mutant are left out
   */
  async measure(places, tests) {
    const left = [...new Set(tests)].filter((test) => !this.#times.has(test));
    const take = async (/** @type {Place} */ place) => {
      for (let test = left.shift(); test; test = left.shift()) {
        const limits = { cpuMs: 120_000, idleMs: 60_000 };
        let ended = await place.runTest(test, limits);
        if (ended.status !== 'passed') ended = await place.runTest(test, limits);
        const { cpuMs, idleMs, skipped = 0 } = ended;
        if (ended.status === 'passed') this.#times.set(test, { cpuMs, idleMs });
        else console.log(`${test} fails without a mutant and is left out`);
        if (skipped > 0) {
          console.log(
            `${test}: ${skipped} skipped here, so mutants that only they detect survive (WICK_SHARED?)`,
          );
        }
        const kept = { stamp: this.#stamp, times: [...this.#times] };
        writeFileSync(this.#path, JSON.stringify(kept));
      }
    };
    await Promise.all(places.map(take));
  }

  /** @param {string} test */
  of(test) {
    return this.#times.get(test) ?? { cpuMs: 0, idleMs: 0 };
  }

  /**
   * Selects the tests that fit into a mutant's time budget.
   * @param {string[]} tests
   * @param {(test: string) => number} chance that a test detects a mutant
   * @returns {string[]} the tests, ordered by mutants detected per unit of time
   */
  ordered(tests, chance) {
    const cost = (/** @type {string} */ test) => 150 + this.of(test).cpuMs + this.of(test).idleMs;
    const best = tests.toSorted((a, b) => chance(b) / cost(b) - chance(a) / cost(a));
    return this.#withinBudget(best);
  }

  /**
   * @param {string[]} tests in order of preference
   * @returns {string[]} the tests that fit; a test that takes too long is skipped
   */
  #withinBudget(tests) {
    let leftMs = BUDGET_MS;
    return tests.filter((test) => {
      const { cpuMs } = this.of(test);
      if (!this.#times.has(test) || cpuMs >= leftMs) return false;
      leftMs -= cpuMs;
      return true;
    });
  }

  /** Reports the tests that do not fit into the time budget. @param {string} room @param {string[]} tests */
  tellLeftOut(room, tests) {
    for (const test of tests) {
      if (!this.#times.has(test) || this.of(test).cpuMs < BUDGET_MS) continue;
      const seconds = (this.of(test).cpuMs / 1000).toFixed(1);
      console.log(`${room}: ${test} is left out because it takes ${seconds} s`);
    }
  }
}

/**
 * Counts how often each test has detected mutants of a source and of its room. The counts order the
 * tests for the next mutants.
 */
class Chances {
  #path = join(folder, 'kills.json');
  /** @type {Map<string, number>} includes earlier runs, whose results make later ones shorter */
  #kills = new Map(existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, 'utf8')) : []);

  /** @param {Result} result */
  take({ language, room, file, outcome, by }) {
    if (outcome !== 'killed' && outcome !== 'timeout') return;
    for (const key of [`${language}/${room} ${by}`, `${file} ${by}`]) {
      this.#kills.set(key, (this.#kills.get(key) ?? 0) + 1);
    }
    writeFileSync(this.#path, JSON.stringify([...this.#kills]));
  }

  /** @param {Mutant} mutant @returns {(test: string) => number} */
  of({ language, room, file }) {
    const kills = (/** @type {string} */ key) => this.#kills.get(key) ?? 0;
    const own = rooms[language][room].own?.[file] ?? [];
    return (test) =>
      (own.includes(test) ? 20 : 1) +
      kills(`${language}/${room} ${test}`) +
      4 * kills(`${file} ${test}`);
  }
}
const chances = new Chances();

/** @param {Place} place @param {Mutant} mutant @param {string} source */
function build(place, { language, file }, source) {
  if (file.startsWith('component/')) return place.buildComponent(file, source);
  return language === 'c' ? place.buildC(file, source) : place.buildJs(file, source);
}

/**
 * @param {Place} place
 * @param {Mutant} mutant
 * @param {Baseline} baseline
 * @returns {Promise<Result>}
 */
async function tryMutant(place, mutant, baseline) {
  const start = performance.now();
  const { language, room, file, mutation, id } = mutant;
  const original = readFileSync(join(root, file), 'utf8');
  const source = mutate(original, mutation);
  const described = describeMutation(original, mutation);
  const about = { id, language, room, file, ...described, operator: mutation.operator };
  const told = (/** @type {Pick<Result, 'outcome' | 'by'>} */ { outcome, by }) => {
    return { ...about, outcome, by, ms: Math.round(performance.now() - start) };
  };
  const known = reasonOf(file, described);
  if (known) return told({ outcome: 'listed', by: known });
  try {
    const made = await build(place, mutant, source);
    if (made === 'uncompilable') return told({ outcome: made, by: '' });
    if (made === 'equivalent') return told({ outcome: 'same', by: '' });
    const ordered = baseline.ordered(testsOfLine(mutant, described.line), chances.of(mutant));
    return told(await tryTests(place, ordered, (test) => baseline.of(test), made.object));
  } finally {
    place.restore(file);
  }
}

/** @returns {Map<string, Result>} the results of an earlier run */
function before() {
  if (process.env.RESUME !== '1' || !existsSync(resultsPath)) {
    rmSync(resultsPath, { force: true });
    return new Map();
  }
  const lines = readFileSync(resultsPath, 'utf8').trim().split('\n');
  /** @type {Result[]} */
  const results = lines.filter(Boolean).map((line) => JSON.parse(line));
  return new Map(results.map((result) => [result.id, result]));
}

const counts = (/** @type {Result} */ { outcome }) =>
  outcome !== 'same' && outcome !== 'uncompilable';

/**
 * Tries mutants in their order until the requested number of them counts.
 * @param {Mutant[]} mutants
 * @param {number} count
 * @param {{places: Place[], baseline: Baseline, known: Map<string, Result>}} with_
 * @returns {Promise<Result[]>}
 */
async function tryAll(mutants, count, { places, baseline, known }) {
  /** @type {Result[]} */
  const results = [];
  let next = 0;
  let counted = 0;
  let underWay = 0;
  const start = performance.now();
  let tried = 0;
  const tell = (/** @type {Result} */ result) => {
    const perMutant = (performance.now() - start) / Math.max(1, tried);
    const end = new Date(Date.now() + perMutant * (count - counted));
    const change =
      result.outcome === 'survived' ? `\n    ${result.before}\n    ${result.after}` : '';
    const where = `${result.file}:${result.line}`;
    console.log(
      `${counted}/${count} ${result.outcome.padEnd(8)} ${where} ${result.operator} ` +
        `(${(result.ms / 1000).toFixed(1)} s${result.by && `, ${result.by}`}; end at ` +
        `${end.toTimeString().slice(0, 5)})${change}`,
    );
  };
  const take = async (/** @type {Place} */ place) => {
    while (next < mutants.length && counted + underWay < count) {
      const mutant = mutants[next++];
      underWay++;
      const old = known.get(mutant.id);
      // a mutant that has been listed since then is tried again, and reported with its reason
      const isOld = old && old.outcome !== 'listed' && !reasonOf(old.file, { above: '', ...old });
      const result = isOld ? old : await tryMutant(place, mutant, baseline);
      underWay--;
      results.push(result);
      if (counts(result)) counted++;
      if (isOld) continue;
      chances.take(result);
      appendFileSync(resultsPath, `${JSON.stringify(result)}\n`);
      if (!counts(result)) continue;
      tried++;
      tell(result);
    }
  };
  // a worker that has to wait for another's last mutant would end too early, so the remaining
  // workers draw mutants in its place
  while (next < mutants.length && counted < count) await Promise.all(places.map(take));
  return results;
}

console.log(
  `mutants: SEED=${seed}, C=${wanted.c}, JS=${wanted.js}${only && `, ROOM=${only}`}${at.map((word) => `, AT=${word}`).join('')}`,
);
const known = before();
const places = Array.from({ length: jobs }, (_, i) => new Place(join(folder, `worker${i}`)));
const baseline = new Baseline();
const used = /** @type {const} */ (['c', 'js']).filter((language) => wanted[language] > 0);
const mutants = { c: wanted.c > 0 ? drawn('c') : [], js: wanted.js > 0 ? drawn('js') : [] };
const needed = used.flatMap((language) => {
  const sources = new Map(mutants[language].map((mutant) => [mutant.file, mutant]));
  return [...sources.values()].map((mutant) => ({ mutant, tests: testsOf(mutant) }));
});
await baseline.measure(
  places,
  needed.flatMap(({ tests }) => tests),
);
if (wanted.c > 0) {
  const ofC = needed.filter(({ mutant }) => mutant.language === 'c');
  await reach.measure(
    ofC.flatMap(({ tests }) => tests),
    jobs,
  );
}
const lists = new Map(
  needed.map(({ mutant: { language, room, file }, tests }) => {
    const own = rooms[language][room].own?.[file];
    return own ? [file, own] : [`${language}/${room}`, tests];
  }),
);
for (const [name, tests] of lists) baseline.tellLeftOut(name, tests);
/** @type {Result[]} */
const results = [];
for (const language of used) {
  results.push(...(await tryAll(mutants[language], wanted[language], { places, baseline, known })));
}
writeFileSync(join(folder, 'report.json'), `${JSON.stringify({ seed, results }, null, 1)}\n`);
printReport(results);
process.exit(0);
