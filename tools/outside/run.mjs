// tools/outside/run.mjs — runs test suites from other projects with the native `wick` command and writes
// docs/outside.md, with the numbers of cases that pass, are rejected as unsupported, and are wrong.
// `make outside` installs what it needs.
//   node tools/outside/run.mjs [--maskbench FOLDER]   FOLDER: maskbench/data of a clone of guidance-ai/jsonschemabench

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const root = new URL('../../', import.meta.url).pathname;
const chain = join(root, '.toolchain/outside');
const wick = join(root, 'build/native/wick');
const shared = process.env.WICK_SHARED ?? join(root, '../shared');
const { values: options } = parseArgs({ options: { maskbench: { type: 'string' } } });
const scratch = mkdtempSync(join(tmpdir(), 'wick-outside-'));

/**
 * Parses JSON and keeps the digits of numbers: JSON.parse turns 12345.0 into an integer, and rounds.
 * @param {string} text
 */
function parseExact(text) {
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
  return JSON.parse(
    text.replace(tokens, (token) => (token[0] === '"' ? token : `"${NUMBER}${token}"`)),
  );
}

/** @param {unknown} value parsed by parseExact @returns {string} */
const textOf = (value) => JSON.stringify(value).replaceAll(NUMBERS, '$1');

const NUMBER = '\ue000';
const NUMBERS = new RegExp(`"${NUMBER}([^"]*)"`, 'g');

/**
 * @typedef {{schema: unknown, accept: string[], reject: string[], label: string}} Group instances as JSON
 * @typedef {{suite: string, groups: Group[]}} Suite
 */

const SCHEMA_SUITE = 'jsonschema-4.23.0';

function fetchSchemaSuite() {
  if (existsSync(join(chain, SCHEMA_SUITE))) return;
  mkdirSync(chain, { recursive: true });
  const asked = ['-r', 'tools/outside/requirements.txt', '--require-hashes', '--no-deps'];
  const given = ['-m', 'pip', 'download', '-q', ...asked, '--no-binary', 'jsonschema', '-d', chain];
  check(spawnSync('python3', given, { cwd: root, stdio: 'inherit' }));
  check(spawnSync('tar', ['xzf', join(chain, `${SCHEMA_SUITE}.tar.gz`), '-C', chain]));
}

/** @param {import('node:child_process').SpawnSyncReturns<any>} ended */
function check(ended) {
  if (ended.status !== 0) throw new Error(`a command failed: ${ended.error ?? ended.stderr}`);
}

/**
 * @param {string} draft
 * @returns {Suite} the groups of JSON-Schema-Test-Suite, where each test is an instance
 */
function schemaSuite(draft) {
  const names = {
    draft4: 'http://json-schema.org/draft-04/schema#',
    draft6: 'http://json-schema.org/draft-06/schema#',
    draft7: 'http://json-schema.org/draft-07/schema#',
    'draft2019-09': 'https://json-schema.org/draft/2019-09/schema',
    'draft2020-12': 'https://json-schema.org/draft/2020-12/schema',
  };
  const folder = join(chain, SCHEMA_SUITE, 'json/tests', draft);
  const groups = [];
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
    const text = readFileSync(join(folder, file), 'utf8');
    for (const { description, schema, tests } of parseExact(text)) {
      const named = /** @type {any} */ (names)[draft];
      const dated = typeof schema === 'object' ? { $schema: named, ...schema } : schema;
      const of = (/** @type {boolean} */ valid) =>
        tests
          .filter((/** @type {any} */ one) => one.valid === valid)
          .map((/** @type {any} */ one) => textOf(one.data));
      groups.push({
        label: `${file}: ${description}`,
        schema: dated,
        accept: of(true),
        reject: of(false),
      });
    }
  }
  return { suite: `JSON-Schema-Test-Suite, ${draft}`, groups };
}

/** @returns {Suite[]} */
function maskBench() {
  const path = join(shared, 'vectors/structure/schema/real.json');
  if (!existsSync(path)) return [];
  /** @type {any[]} */
  const cases = parseExact(readFileSync(path, 'utf8'));
  const groups = cases.map((one) => ({
    label: one.name,
    schema: one.schema,
    accept: one.accept.map(textOf),
    reject: one.reject
      .filter(
        (/** @type {any} */ _, /** @type {number} */ at) =>
          !one.reject_needs_format?.some((/** @type {string} */ index) => index === NUMBER + at),
      )
      .map(textOf),
  }));
  return [{ suite: 'MaskBench, a sample', groups }];
}

/** Reads all of MaskBench. @param {string} folder @returns {Suite[]} */
function wholeMaskBench(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  const groups = files.map((name) => {
    const { schema, tests } = parseExact(readFileSync(join(folder, name), 'utf8'));
    const of = (/** @type {boolean} */ valid) =>
      tests
        .filter((/** @type {any} */ one) => one.valid === valid)
        .map((/** @type {any} */ one) => textOf(one.data));
    return { label: name, schema, accept: of(true), reject: of(false) };
  });
  return [{ suite: 'MaskBench', groups }];
}

/**
 * Returns whether Wick differs from a suite on purpose: it validates formats, ignores the vocabularies of custom
 * metaschemas, and accepts 1.0 as an integer in draft 4.
 * @param {Group} group
 * @param {string} text
 * @param {boolean} holds Wick's verdict
 */
function isOnPurpose({ label, schema }, text, holds) {
  if (!holds) return /^(format|vocabulary)\.json/.test(label);
  const isDraft4 = /"\$schema":"http:\/\/json-schema.org\/draft-04\//.test(textOf(schema));
  return isDraft4 && /[:[,]-?\d+\.0+[,}\]]/.test(text);
}

/**
 * @param {Group} group
 * @returns {boolean[] | undefined} whether each instance is valid; undefined if the schema is not
 * supported
 */
function decide({ schema, accept, reject }) {
  const [schemaPath, textsPath] = [join(scratch, 'schema.json'), join(scratch, 'texts.json')];
  writeFileSync(schemaPath, textOf(schema));
  writeFileSync(textsPath, JSON.stringify([...accept, ...reject]));
  const given = ['constrain', '--json-schema', schemaPath, '--check', textsPath];
  const ended = spawnSync(wick, given, { encoding: 'utf8' });
  // a schema that no instance satisfies rejects all of them
  if (/no text satisfies/.test(ended.stderr) && accept.length === 0) return reject.map(() => false);
  if (ended.status === 2 || /grammar state exceeds/.test(ended.stderr)) return undefined;
  check(ended);
  return JSON.parse(ended.stdout);
}

/** @param {Suite} suite */
function runSuite({ suite, groups }) {
  const counts = { schemas: 0, cases: 0, passed: 0, refused: 0, onPurpose: 0, wrong: 0 };
  for (const group of groups) {
    const texts = [...group.accept, ...group.reject];
    counts.cases += texts.length;
    const decided = decide(group);
    if (decided === undefined) {
      counts.refused += texts.length;
      counts.schemas++;
      continue;
    }
    for (const [at, holds] of decided.entries()) {
      const isRight = holds === at < group.accept.length;
      const isMeant = !isRight && isOnPurpose(group, texts[at], holds);
      counts[isRight ? 'passed' : isMeant ? 'onPurpose' : 'wrong']++;
      if (!isRight && !isMeant) {
        const wanted = holds ? 'rejected' : 'accepted';
        console.error(`${suite}: ${group.label}: ${texts[at].slice(0, 200)} should be ${wanted}`);
      }
    }
  }
  const { schemas, cases, passed, refused, onPurpose, wrong } = counts;
  return `| ${suite} | ${groups.length} | ${schemas} | ${cases} | ${passed} | ${refused} | ${onPurpose} | ${wrong} |`;
}

const drafts = ['draft4', 'draft6', 'draft7', 'draft2019-09', 'draft2020-12'];
/** The suites in the order of the table. */
const SUITES = [
  ...drafts.map((draft) => `JSON-Schema-Test-Suite, ${draft}`),
  ...['MaskBench, a sample', 'MaskBench'],
];

/** The heading at which the part about these suites ends. */
const NEXT = "## llama.cpp's server";

fetchSchemaSuite();
const document = join(root, 'docs/outside.md');
const whole = options.maskbench ? wholeMaskBench(options.maskbench) : [];
const ran = [...drafts.map(schemaSuite), ...maskBench(), ...whole].map(runSuite);
const before = readFileSync(document, 'utf8').split('\n');
// a suite whose data is not available keeps its row
const rows = SUITES.flatMap((suite) => {
  const isOf = (/** @type {string} */ row) => row.startsWith(`| ${suite} | `);
  return ran.find(isOf) ?? before.find(isOf) ?? [];
});
rmSync(scratch, { recursive: true });
writeFileSync(
  document,
  `# Test suites from other projects

\`make outside\` runs these suites (from PyPI's jsonschema 4.23.0 and jsonschemabench ba103c73) natively and writes this table. A case is an
instance of a schema. It is rejected if Wick does not support a keyword in the schema, or if validating it exceeds the position limit.
Optional parts of the JSON-Schema-Test-Suite (\`format\` and others) are not run. Intentional differences: Wick validates \`format\`, which is
only an annotation since draft 2019-09; vocabularies of custom metaschemas are not loaded; and in draft 4, \`12345.0\` is accepted as an
integer. \`--maskbench FOLDER\` runs all of MaskBench.

| suite | schemas | rejected | cases | passed | rejected | intentional | wrong |
|---|---:|---:|---:|---:|---:|---:|---:|
${rows.join('\n')}

${before.slice(before.indexOf(NEXT)).join('\n')}`,
);
console.log(rows.join('\n'));
