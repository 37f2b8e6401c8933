// tools/outside/run.mjs — runs suites of peers on the native command line and writes docs/outside.md: how many cases pass,
// are refused by name, and are wrong. `make outside` installs what it needs.

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

const root = new URL('../../', import.meta.url).pathname;
const chain = join(root, '.toolchain/outside');
const wick = join(root, 'build/native/wick');
const shared = process.env.WICK_SHARED ?? join(root, '../shared');
const scratch = mkdtempSync(join(tmpdir(), 'wick-outside-'));

/**
 * @typedef {{schema: unknown, accept: string[], reject: string[], label: string}} Group instances as JSON
 * @typedef {{suite: string, version: string, groups: Group[]}} Suite
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

/** @param {string} draft @returns {Suite} of JSON-Schema-Test-Suite: each test is an instance */
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
    for (const { description, schema, tests } of JSON.parse(text)) {
      const named = /** @type {any} */ (names)[draft];
      const dated = typeof schema === 'object' ? { $schema: named, ...schema } : schema;
      const of = (/** @type {boolean} */ valid) =>
        tests
          .filter((/** @type {any} */ one) => one.valid === valid)
          .map((/** @type {any} */ one) => JSON.stringify(one.data));
      groups.push({
        label: `${file}: ${description}`,
        schema: dated,
        accept: of(true),
        reject: of(false),
      });
    }
  }
  return { suite: `JSON-Schema-Test-Suite, ${draft}`, version: 'PyPI jsonschema 4.23.0', groups };
}

/** @returns {Suite[]} */
function maskBench() {
  const path = join(shared, 'vectors/structure/schema/real.json');
  if (!existsSync(path)) return [];
  /** @type {any[]} */
  const cases = JSON.parse(readFileSync(path, 'utf8'));
  const groups = cases.map((one) => ({
    label: one.name,
    schema: one.schema,
    // instances that a decoder need not write are left out
    accept: one.accept
      .filter((/** @type {any} */ _, /** @type {number} */ at) => !one.accept_notes?.[at])
      .map((/** @type {any} */ value) => JSON.stringify(value)),
    reject: one.reject
      .filter(
        (/** @type {any} */ _, /** @type {number} */ at) => !one.reject_needs_format?.includes(at),
      )
      .map((/** @type {any} */ value) => JSON.stringify(value)),
  }));
  return [{ suite: 'MaskBench, a sample', version: 'jsonschemabench ba103c73', groups }];
}

/** @param {Suite} suite */
function runSuite({ suite, version, groups }) {
  const counts = { cases: 0, passed: 0, refused: 0, wrong: 0 };
  const [schemaPath, textsPath] = [join(scratch, 'schema.json'), join(scratch, 'texts.json')];
  for (const { schema, accept, reject, label } of groups) {
    const texts = [...accept, ...reject];
    counts.cases += texts.length;
    writeFileSync(schemaPath, JSON.stringify(schema));
    writeFileSync(textsPath, JSON.stringify(texts));
    const given = ['constrain', '--json-schema', schemaPath, '--check', textsPath];
    const ended = spawnSync(wick, given, { encoding: 'utf8' });
    if (ended.status === 2) {
      // a schema that nothing satisfies has all instances rejected
      const isEmpty = /no text satisfies/.test(ended.stderr) && accept.length === 0;
      counts[isEmpty ? 'passed' : 'refused'] += texts.length;
      continue;
    }
    check(ended);
    for (const [at, holds] of JSON.parse(ended.stdout).entries()) {
      const isRight = holds === at < accept.length;
      counts[isRight ? 'passed' : 'wrong']++;
      if (!isRight)
        console.error(
          `${suite}: ${label}: ${texts[at].slice(0, 200)} should be ${holds ? 'rejected' : 'accepted'}`,
        );
    }
  }
  return `| ${suite} | ${version} | ${counts.cases} | ${counts.passed} | ${counts.refused} | ${counts.wrong} |`;
}

fetchSchemaSuite();
const drafts = ['draft4', 'draft6', 'draft7', 'draft2019-09', 'draft2020-12'];
const rows = [...drafts.map(schemaSuite), ...maskBench()].map(runSuite);
rmSync(scratch, { recursive: true });
writeFileSync(
  join(root, 'docs/outside.md'),
  `# Suites of other projects

\`make outside\` installs pinned versions of these suites into \`.toolchain/outside\`, runs them on the native command line, and writes
this table. A case is an instance of a schema; it is refused when Wick names a keyword of the schema that it does not support.
Optional parts of the JSON-Schema-Test-Suite (\`format\` and others) are not run. The public reports that were rebuilt as tests are in
\`tests/outside/README.md\`.

| suite | version | cases | passed | refused | wrong |
|---|---|---:|---:|---:|---:|
${rows.join('\n')}
`,
);
console.log(rows.join('\n'));
