// Random JSON schemas: values that ajv rejects are never accepted, values that ajv accepts are accepted in some order
// of their members, and a model with random weights generates valid values.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { native, wick } from '../support/cli.mjs';
import { openEngine, synthesize, temporaryFolder } from '../support/package.mjs';
import { randomFrom } from '../support/random_numbers.mjs';
import { names, texts, value, wholeSchema } from '../support/random_schema.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';

const folder = temporaryFolder();
const ORDERS_MAX = 120;

/** @typedef {ReturnType<typeof randomFrom>} Random */

/**
 * Makes a value that is likely to be valid.
 * @param {Random} random @param {any} of @param {any} root @param {number} depth
 * @returns {any}
 */
function sample(random, of, root, depth = 5) {
  if (typeof of !== 'object' || depth === 0) return value(random, 1);
  const again = (/** @type {any} */ inner) => sample(random, inner, root, depth - 1);
  if (of.$ref !== undefined) return again(root.$defs[of.$ref.slice(8)]);
  if ('const' in of) return of.const;
  if (of.enum !== undefined) return random.pick(of.enum);
  const cases = of.anyOf ?? of.oneOf ?? of.allOf;
  if (cases !== undefined && random.chance(0.8)) return again(random.pick(cases));
  if (of.if !== undefined) return again(random.pick([of.if, of.then, of.else ?? of.if]));
  const type = Array.isArray(of.type) ? random.pick(of.type) : of.type;
  if (type === 'string') return random.pick(texts);
  if (type === 'integer' || type === 'number') return sampleNumber(random, of);
  if (type === 'boolean') return random.chance(0.5);
  if (type === 'null') return null;
  if (type === 'array') {
    const count = (of.minItems ?? 0) + random.below(3);
    return Array.from({ length: count }, (_, at) =>
      again(of.prefixItems?.[at] ?? of.items ?? true),
    );
  }
  if (type !== 'object') return value(random);
  const members = Object.entries(of.properties)
    .filter(([key]) => of.required?.includes(key) || random.chance(0.6))
    .map(([key, inner]) => [key, again(inner)]);
  if (random.chance(0.2))
    members.push([random.pick(names), again(of.additionalProperties ?? true)]);
  return Object.fromEntries(members);
}

/** @param {Random} random @param {any} of */
function sampleNumber(random, of) {
  const step = of.multipleOf ?? (of.type === 'integer' ? 1 : 0.25);
  const low = Math.max(of.minimum ?? -20, of.exclusiveMinimum ?? -20);
  return (Math.ceil(low / step) + random.below(6)) * step;
}

/** Returns the value with one change. @param {Random} random @param {any} of @returns {any} */
function changed(random, of) {
  if (of === null || typeof of !== 'object' || random.chance(0.2)) return value(random, 1);
  if (Array.isArray(of)) {
    const copy = [...of];
    const at = random.below(copy.length + 1);
    copy.splice(at, random.below(2), changed(random, copy[at] ?? null));
    return copy;
  }
  const copy = { ...of };
  const key = random.pick([...Object.keys(copy), random.pick(names)]);
  if (random.chance(0.4)) delete copy[key];
  else copy[key] = changed(random, copy[key] ?? null);
  return copy;
}

/**
 * Serializes a value with its members in different orders, up to a limit.
 * @param {any} of @returns {string[]}
 */
function orders(of) {
  if (of === null || typeof of !== 'object') return [JSON.stringify(of)];
  const isList = Array.isArray(of);
  const parts = (isList ? of : Object.entries(of)).map((/** @type {any} */ part) =>
    isList ? orders(part) : orders(part[1]).map((text) => `${JSON.stringify(part[0])}:${text}`),
  );
  const [open, close] = isList ? '[]' : '{}';
  /** @type {string[]} */
  const found = [];
  const put = (/** @type {string[]} */ begun, /** @type {string[][]} */ rest) => {
    if (found.length >= ORDERS_MAX) return;
    if (rest.length === 0) found.push(open + begun.join(',') + close);
    for (const [at, part] of rest.entries()) {
      if (isList && at > 0) break;
      for (const text of part) put([...begun, text], rest.toSpliced(at, 1));
    }
  };
  put([], parts);
  return found;
}

/** @param {any} of @returns {(value: unknown) => boolean} */
const validatorOf = (of) =>
  new Ajv2020({ strict: false, logger: false, unicodeRegExp: true, ownProperties: true }).compile(
    of,
  );

/** @param {Random} random @param {any} of */
function instancesFor(random, of) {
  const likely = Array.from({ length: 12 }, () => sample(random, of, of));
  const near = likely.map((one) => changed(random, one));
  return [...likely, ...near, ...Array.from({ length: 4 }, () => value(random))];
}

/**
 * Returns the verdicts on the inputs, or the error if the schema is rejected.
 * @param {any} of @param {string[]} texts @param {number} index
 * @returns {Promise<boolean[] | string>}
 */
async function checked(of, texts, index) {
  const paths = ['schema', 'texts'].map((name) => join(folder, `${name}-${index % 100}.json`));
  writeFileSync(paths[0], JSON.stringify(of));
  writeFileSync(paths[1], JSON.stringify(texts));
  const given = ['constrain', '--json-schema', paths[0], '--check', paths[1]];
  const { code, stdout, stderr } = await wick(native, given);
  if (code === 0) return JSON.parse(stdout.toString());
  assert.equal(code, 2, `${stderr}`);
  return stderr.toString();
}

/** @param {number} index @param {Record<string, number>} counts */
async function compare(index, counts) {
  const random = randomFrom(soakSeed * 1e6 + index);
  const of = wholeSchema(random);
  const label = `${index}: ${JSON.stringify(of)}`;
  const isValid = validatorOf(of);
  const instances = instancesFor(random, of).map((one) => ({ one, texts: orders(one) }));
  const valid = instances.map(({ one }) => isValid(one));
  const all = instances.flatMap(({ texts }) => texts);
  const accepted = await checked(of, all, index);
  if (typeof accepted === 'string') {
    const isTooMuch = /WICK_E_(UNSUPPORTED|FULL)/.test(accepted);
    counts[isTooMuch ? 'refused' : 'empty']++;
    if (isTooMuch) return;
    assert.match(accepted, /no text satisfies/, `${label}: ${accepted}`);
    assert.ok(!valid.includes(true), `${label}: ${accepted}`);
    return;
  }
  let at = 0;
  for (const [which, { one, texts }] of instances.entries()) {
    const verdicts = accepted.slice(at, at + texts.length);
    at += texts.length;
    const told = `${label}\n${JSON.stringify(one)}`;
    if (!valid[which]) assert.ok(!verdicts.includes(true), `accepted: ${told}`);
    else if (texts.length < ORDERS_MAX) assert.ok(verdicts.includes(true), `refused: ${told}`);
    counts[valid[which] ? 'valid' : 'invalid']++;
  }
}

test('a schema accepts what ajv accepts', async (t) => {
  const count = soakCount(4000);
  const counts = { valid: 0, invalid: 0, refused: 0, empty: 0 };
  for (let index = 0; index < count; index++) await compare(index, counts);
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.valid > count * 5, `${counts.valid} values are valid`);
  assert.ok(counts.invalid > count * 5, `${counts.invalid} values are invalid`);
  assert.ok(counts.refused < count / 10, `${counts.refused} schemas are rejected`);
});

test('generated output is valid', async (t) => {
  const file = join(folder, 'tiny.gguf');
  await synthesize('tiny', 'q8_0', file);
  const engine = await openEngine(t, { file, contextSize: 1024 });
  const lists = await Promise.all(['"', '}', ']', '0'].map((text) => engine.tokenize(text)));
  const logitBias = Object.fromEntries(lists.map((ids) => [ids[ids.length - 1], 5]));
  const wild = { temperature: 2, topK: 0, topP: 1, minP: 0, maxTokens: 500, logitBias };
  const count = soakCount(2000);
  const counts = { stopped: 0, cut: 0, refused: 0 };
  for (let index = 0; index < count; index++) {
    const seed = soakSeed * 1e6 + index;
    const jsonSchema = wholeSchema(randomFrom(seed));
    const generation = engine.generate('A record: ', { ...wild, jsonSchema, seed });
    const text = await generation.text().catch((error) => {
      assert.match(error.code, /^(UNSUPPORTED|ARG|GRAMMAR_TOO_LARGE)$/, `${error}`);
      if (error.code === 'ARG') assert.match(error.message, /no text satisfies/);
      return undefined;
    });
    const isWhole = generation.result?.finishReason === 'stop';
    counts[text === undefined ? 'refused' : isWhole ? 'stopped' : 'cut']++;
    if (!isWhole || text === undefined) continue;
    const isValid = validatorOf(jsonSchema)(JSON.parse(text));
    assert.ok(isValid, `${index}: ${JSON.stringify(jsonSchema)}\n${text}`);
  }
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.stopped > count * 0.7, JSON.stringify(counts));
});

// Replacements for a keyword's value; most are invalid for most keywords.
/** @type {any[]} */
const wrongValues = [null, true, 'no', -1, 2.5, 3, [], [1], ['a', 1], {}, { a: 1 }, { a: ['b'] }];
wrongValues.push({ a: [1] }, { a: 'b' }, 'string', ['a'], '2', [true], [null], { a: null });

/** Yields the schema and all schemas within it. @param {any} of @returns {any[]} */
function schemasWithin(of) {
  if (of === null || typeof of !== 'object') return [];
  const named = ['properties', 'patternProperties', 'dependentSchemas', '$defs'];
  const lists = ['prefixItems', 'anyOf', 'oneOf', 'allOf'];
  const single = ['items', 'contains', 'additionalProperties', 'propertyNames', 'not'];
  const inner = [...named, ...lists].flatMap((key) => Object.values(of[key] ?? {}));
  const alone = [...single, 'if', 'then', 'else'].map((key) => of[key]);
  return [of, ...[...inner, ...alone].flatMap(schemasWithin)];
}

/** Replaces the value of a random keyword with a wrong one. @param {Random} random @param {any} of */
function breakSchema(random, of) {
  const extra = ['minLength', 'maxItems', 'uniqueItems', 'multipleOf', 'minContains', 'required'];
  extra.push('dependentRequired', 'enum', 'type', 'pattern', 'properties', 'maximum', 'not');
  const within = random.pick(schemasWithin(of).filter((one) => Object.keys(one).length > 0));
  const known = Object.keys(within).filter((key) => key !== '$schema');
  const key = random.pick(random.chance(0.6) && known.length > 0 ? known : extra);
  within[key] = structuredClone(random.pick(wrongValues));
  return key;
}

/** Returns whether it uses draft 4's bounds or item lists, which are enforced in every draft. @param {any} of @returns {boolean} */
const hasOlderForm = (of) =>
  schemasWithin(of).some(
    (one) =>
      typeof (one.exclusiveMinimum ?? one.exclusiveMaximum) === 'boolean' ||
      Array.isArray(one.items),
  );

/** Duplicates in a list have no effect; an empty enum matches no value. @param {any} error */
const isRepetition = (error) =>
  error.keyword === 'uniqueItems' ||
  (error.instancePath.endsWith('/enum') && error.keyword === 'minItems');

test('a keyword with a value of the wrong type is rejected with its path', async (t) => {
  const count = soakCount(8000);
  const drafts = [
    { ajv: new Ajv2020({ strict: false, logger: false, allErrors: true }), $schema: undefined },
    {
      ajv: new Ajv({ strict: false, logger: false, allErrors: true }),
      $schema: 'http://json-schema.org/draft-07/schema#',
    },
  ];
  const counts = { broken: 0, whole: 0, older: 0 };
  for (let index = 0; index < count; index++) {
    const random = randomFrom(soakSeed * 1e6 + index);
    const { ajv, $schema } = drafts[index % drafts.length];
    const whole = wholeSchema(random);
    const of = structuredClone($schema === undefined ? whole : { $schema, ...whole });
    breakSchema(random, of);
    const label = `${index}: ${JSON.stringify(of)}`;
    const answer = await checked(of, [], index);
    const isRefused =
      typeof answer === 'string' &&
      /schema, #.*: .*(is expected|unknown type|a schema is an object).*WICK_E_ARG/s.test(answer);
    if (ajv.validateSchema(of)) {
      counts.whole++;
      // draft 7 has no "$defs", but references point there
      if ($schema === undefined) assert.ok(!isRefused, `${label}: ${answer}`);
    } else if (hasOlderForm(of) || ajv.errors?.some(isRepetition)) {
      counts.older++;
    } else {
      counts.broken++;
      assert.ok(isRefused, `${label}: ${answer}\n${JSON.stringify(ajv.errors)}`);
    }
  }
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.broken > count / 4, `${counts.broken} schemas were broken`);
});
