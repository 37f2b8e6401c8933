// Compares the gzipped sizes of the built files with those in docs/sizes.md. A file may be 3%
// larger than its row there, and some files have a size limit (goal). The tests of the modules, the
// package and the chat page call sizeFault.
//   node tools/build/sizes.mjs            prints the table (make does it after each build)
//   node tools/build/sizes.mjs --write    writes the current sizes to docs/sizes.md: commit it with the reason
//   node tools/build/sizes.mjs FOLDER     prints the sizes of the archives below a folder

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const document = join(root, 'docs/sizes.md');
const HEADROOM = 0.03;
/** Names of rows that are not files. */
export const CHAT_PAGE = 'everything that the chat page loads before it is usable';
export const PACKAGE = 'the npm package, packed';

/** Size limits of rows. @type {[name: RegExp, bytes: number][]} */
const goals = [
  [/^build\/web\/.*-wide\.wasm$/, 430_000],
  [/^build\/web\/wick-\w+-(single|threads)\.wasm$/, 240_000],
  [/^build\/web\/.*-extras\.wasm$/, 75_000],
  [/^build\/web\/.*-grammar\.wasm$/, 50_000],
  [/^build\/web\/.*-media\.wasm$/, 45_000],
  [/^build\/wasi\/wick(-relaxed)?\.wasm$/, 280_000],
  [new RegExp(`^${CHAT_PAGE}$`), 110_000],
];
/** @param {string} name @returns {number | undefined} */
const goalOf = (name) => goals.find(([names]) => names.test(name))?.[1];

/** @param {string} path @returns {number} */
const gzippedBytes = (path) => gzipSync(readFileSync(path), { level: 9 }).byteLength;

/**
 * @param {string} folder
 * @param {RegExp} names
 * @returns {string[]} the files below it, as paths relative to the root
 */
function filesBelow(folder, names) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return filesBelow(path, names);
      return names.test(entry.name) ? [path] : [];
    })
    .sort();
}

/** @returns {Map<string, number>} the gzipped bytes of each file that is built */
export function builtSizes() {
  const files = [
    ...filesBelow('build/web', /\.wasm$/),
    ...filesBelow('build/wasi', /\.wasm$/),
    ...filesBelow('dist', /\.js$/),
  ];
  return new Map(files.map((file) => [file, gzippedBytes(join(root, file))]));
}

/**
 * @param {string} site a folder with the built chat page
 * @returns {number} the size of the page's scripts and of the package's scripts that load with them
 */
export function chatPageBytes(site) {
  /** @param {string} name @param {Set<string>} found */
  const addImports = (name, found) => {
    if (found.has(name)) return found;
    found.add(name);
    const text = readFileSync(join(site, name), 'utf8');
    for (const [, part] of text.matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g))
      addImports(part, found);
    return found;
  };
  const ofPackage = ['index', 'models', 'tabs', 'sources'].map((name) => `wick-llm/${name}.js`);
  const files = [...addImports('page.js', new Set()), ...ofPackage];
  return files.reduce((sum, name) => sum + gzippedBytes(join(site, name)), 0);
}

/** @returns {Map<string, number>} the rows of docs/sizes.md */
function tableSizes() {
  const rows = readFileSync(document, 'utf8').matchAll(/^- (.+?): ([\d,]+)/gm);
  return new Map(
    [...rows].map(([, name, bytes]) => [
      name.replaceAll('`', ''),
      Number(bytes.replaceAll(',', '')),
    ]),
  );
}

const digits = (/** @type {number} */ bytes) => bytes.toLocaleString('en');

/**
 * @param {string} name of a row @param {number} bytes its size now @param {Map<string, number>} [table]
 * @returns {string | undefined} why it is too large
 */
export function sizeFault(name, bytes, table = tableSizes()) {
  const [listed, goal] = [table.get(name), goalOf(name)];
  if (goal && bytes > goal)
    return `${name}: ${digits(bytes)} bytes, limit is ${digits(goal)}. Make it smaller.`;
  const raise =
    'If the growth is justified, run node tools/build/sizes.mjs --write and explain it in the commit.';
  if (listed === undefined) return `${name}: has no row in docs/sizes.md. ${raise}`;
  if (bytes <= listed * (1 + HEADROOM)) return undefined;
  return `${name}: ${digits(bytes)} bytes, more than 3 % above ${digits(listed)} in docs/sizes.md. ${raise}`;
}

// ---- the command ----

/** @returns {Promise<number>} */
async function measurePage() {
  const { buildChat } = await import('../../examples/chat/build.mjs');
  const site = mkdtempSync(join(tmpdir(), 'wick-sizes-'));
  await buildChat(site);
  const bytes = chatPageBytes(site);
  rmSync(site, { recursive: true });
  return bytes;
}

function measurePackage() {
  const args = ['pack', '--dry-run', '--json', '--offline'];
  const packed = execFileSync('npm', args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] });
  return JSON.parse(packed.toString())[0].size;
}

async function writeTable() {
  const sizes = builtSizes();
  sizes.set(CHAT_PAGE, await measurePage());
  sizes.set(PACKAGE, measurePackage());
  const rows = [...sizes].map(([name, bytes]) => {
    const goal = goalOf(name);
    const shown = name.includes('/') ? `\`${name}\`` : name;
    return `- ${shown}: ${digits(bytes)}${goal ? ` (${digits(goal)})` : ''}\n`;
  });
  const [head] = readFileSync(document, 'utf8').split(/^- /m);
  writeFileSync(document, `${head}${rows.join('')}`);
}

/** @param {Map<string, number>} sizes */
function printTable(sizes) {
  const table = tableSizes();
  const width = Math.max(...[...sizes.keys()].map((name) => name.length));
  const columns = ['gzipped', 'docs/sizes.md', 'change'].map((name) => name.padStart(14)).join('');
  console.log(`${'bytes'.padEnd(width)}${columns}`);
  for (const [name, bytes] of sizes) {
    const listed = table.get(name);
    const change = listed ? `${(((bytes - listed) / listed) * 100).toFixed(1)} %` : 'new';
    const row = [digits(bytes), listed ? digits(listed) : '', change];
    console.log(`${name.padEnd(width)}${row.map((cell) => cell.padStart(14)).join('')}`);
  }
  for (const [name, bytes] of sizes) {
    const fault = sizeFault(name, bytes, table);
    if (fault) console.log(`  ${fault}`);
  }
}

/** @param {string} folder */
function printArchives(folder) {
  for (const file of filesBelow(folder, /\.a$/))
    console.log(`${digits(gzippedBytes(join(root, file))).padStart(12)} bytes gzipped  ${file}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [word] = process.argv.slice(2);
  if (word === '--write') await writeTable();
  else if (word) printArchives(word);
  else printTable(builtSizes());
}
