// Grammars and schemas made to keep a compiler busy or to exhaust its stack: each compiles or is rejected
// with a typed error, natively and with the stack size of a page.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { native, plainHosts, temporaryFolder, wick } from '../support/cli.mjs';

const folder = temporaryFolder();
const texts = join(folder, 'texts.json');
writeFileSync(texts, '[""]');

/** Each grammar takes less than a second on an idle machine. Before the fixes, some took up to a minute. */
const timeoutMs = 30_000;
const LENGTH = 10_000;

const steps = /takes more than 60000000 steps to compile \(WICK_E_FULL\)/;
const bytes = /takes more than 201326592 bytes to compile \(WICK_E_FULL\)/;
const choices = /schema, #[^:]*: too many choices in one value \(WICK_E_UNSUPPORTED/;

/**
 * Makes definitions that each refer to the next one.
 * @param {(next: object, index: number) => object} link
 * @param {object} [last]
 */
function chain(link, last = { type: 'string' }) {
  /** @type {Record<string, object>} */
  const definitions = {};
  for (let i = 0; i < LENGTH; i++) {
    definitions[`d${i}`] = link({ $ref: `#/$defs/d${i + 1}` }, i);
  }
  return { $defs: { ...definitions, [`d${LENGTH}`]: last }, $ref: '#/$defs/d0' };
}

/** @param {(index: number) => [string, any]} entry @param {number} [count] */
const record = (entry, count = LENGTH) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => entry(i)));

/** A schema and its error, if it is rejected. @type {Record<string, [object, RegExp?]>} */
const schemas = {
  oneOf: [chain((next) => ({ oneOf: [next, { const: 0 }] })), bytes],
  'oneOf in a circle': [
    {
      $defs: record((i) => [
        `d${i}`,
        {
          oneOf: [
            { required: ['a'], properties: { a: { $ref: `#/$defs/d${(i + 1) % LENGTH}` } } },
            { $ref: `#/$defs/d${(i + 7) % LENGTH}` },
          ],
        },
      ]),
      $ref: '#/$defs/d0',
    },
    bytes,
  ],
  anyOf: [chain((next, i) => ({ anyOf: [next, { const: i }] })), choices],
  not: [chain((next) => ({ not: next })), choices],
  if: [chain((next) => ({ if: next, else: { const: 1 } })), choices],
  allOf: [chain((next, i) => ({ allOf: [next, { minimum: i }] }), { type: 'integer' }), steps],
  $ref: [chain((next) => next)],
  items: [chain((next) => ({ type: 'array', minItems: 1, items: next }))],
  prefixItems: [chain((next) => ({ prefixItems: [next] }))],
  properties: [chain((next) => ({ required: ['a'], properties: { a: next } }))],
  additionalProperties: [chain((next) => ({ additionalProperties: next }))],
  propertyNames: [chain((next) => ({ propertyNames: { allOf: [next] } }))],
  unevaluatedProperties: [chain((next) => ({ ...next, unevaluatedProperties: next }))],
  'anchors, each looked for in all': [
    {
      $defs: record((i) => [`d${i}`, { $anchor: `a${i}`, items: { $ref: `#a${i + 1}` } }]),
      $ref: '#a0',
    },
    steps,
  ],
  'addresses, each looked for in all': [
    {
      $defs: record((i) => [`d${i}`, { $id: `a:/${i}`, items: { $ref: `a:/${i + 1}` } }]),
      $ref: 'a:/0',
    },
    steps,
  ],
  'members that 5,000 schemas declare': [
    { allOf: Array.from({ length: 5000 }, (_, i) => ({ properties: { [`p${i}`]: {} } })) },
    /more than 900 optional members in a row/,
  ],
  'one member required 20,000 times': [
    { required: Array(20_000).fill('a') },
    /more than 2,048 requirements on members/,
  ],
};

/** @type {Record<string, [string, RegExp]>} */
const grammars = {
  groups: [`root ::= ${'('.repeat(1e5)}`, /groups are nested too deeply/],
  'rules that may be empty': [
    `${rules((i) => `r${i} ::= r${i - 1}`)}\nr0 ::= "a"?\nroot ::= r19999`,
    steps,
  ],
};

/** @param {(index: number) => string} rule @returns {string} rules; the last ones call the first ones */
function rules(rule) {
  return Array.from({ length: 19_999 }, (_, i) => rule(i + 1)).join('\n');
}

/** @type {Record<string, [string, RegExp]>} */
const patterns = {
  groups: ['('.repeat(1e5), /groups are nested too deeply/],
  'states that double': ['(a|b)*a(a|b){20}', /more than 200000 states/],
};

for (const host of [native, plainHosts[0]]) {
  describe(`hostile grammars, ${host.name}`, { skip: host.skip }, () => {
    /** @param {string[]} given @param {RegExp} [refusal] */
    async function check(given, refusal) {
      const args = ['constrain', ...given, '--check', texts];
      const { code, signal, stdout, stderr } = await wick(host, args, {
        folders: [folder],
        timeoutMs,
      });
      if (refusal !== undefined) {
        assert.match(stderr.toString(), refusal);
        assert.equal(signal ?? code, 2);
        return;
      }
      assert.equal(signal ?? code, 0, stderr.toString());
      assert.equal(stdout.toString(), '[false]\n');
    }

    for (const [name, [schema, refusal]] of Object.entries(schemas)) {
      test(`a schema: ${name}`, async () => {
        const path = join(folder, 'schema.json');
        writeFileSync(path, JSON.stringify(schema));
        await check(['--json-schema', path], refusal);
      });
    }

    for (const [name, [grammar, refusal]] of Object.entries(grammars)) {
      test(`GBNF: ${name}`, async () => {
        const path = join(folder, 'grammar.gbnf');
        writeFileSync(path, grammar);
        await check(['--grammar', path], refusal);
      });
    }

    for (const [name, [pattern, refusal]] of Object.entries(patterns)) {
      test(`a regular expression: ${name}`, () => check(['--regex', pattern], refusal));
    }
  });
}
