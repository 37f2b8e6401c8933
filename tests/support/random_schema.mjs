// Generates random JSON schemas, and random values that nearly match them.

import { randomFrom } from './random_numbers.mjs';

/** @typedef {ReturnType<typeof randomFrom>} Random */

// without the empty name, because ajv's "required" does not detect that it is missing
export const names = ['a', 'b', 'c', 'é', 'x y', 'a"b'];
export const texts = [
  '',
  'a',
  'b',
  'ab',
  'é',
  '😀',
  'a\nb',
  '"',
  '\\',
  'A1',
  'x'.repeat(5),
  '2026-11-23',
];
const patterns = ['^a', 'b$', '^[a-c]{1,3}$', '\\d', '^(?:x|yé)+$', '^$', '.'];
const numbers = [0, 1, -1, 2, 3, 7, 10, 12, -12, 99, 100, 0.5, -0.5, 1.25, 2.5, 1e3];

/** @param {Random} random @returns {any} */
export function value(random, depth = 2) {
  const kind = random.below(depth > 0 ? 8 : 6);
  if (kind < 2) return random.pick(texts);
  if (kind < 4) return random.pick(numbers);
  if (kind === 4) return random.chance(0.5);
  if (kind === 5) return null;
  if (kind === 6) return random.list(3, () => value(random, depth - 1));
  return Object.fromEntries(random.list(3, () => [random.pick(names), value(random, depth - 1)]));
}

/** @param {Random} random @param {Record<string, () => unknown>} ways @param {number} share */
const some = (random, ways, share) =>
  Object.fromEntries(
    Object.entries(ways)
      .filter(() => random.chance(share))
      .map(([key, make]) => [key, make()]),
  );

/** @typedef {(random: Random, depth: number) => any} Maker */

/** @type {Maker} */
const ofString = (random) => ({
  type: 'string',
  ...some(
    random,
    {
      minLength: () => random.below(3),
      maxLength: () => 1 + random.below(5),
      pattern: () => random.pick(patterns),
    },
    0.35,
  ),
});

/** @type {Maker} */
const ofNumber = (random) => {
  const isWhole = random.chance(0.5);
  const bound = () => (isWhole ? random.below(240) - 120 : (random.below(48) - 24) / 4);
  return {
    type: isWhole ? 'integer' : 'number',
    ...some(
      random,
      {
        minimum: bound,
        maximum: bound,
        exclusiveMinimum: bound,
        exclusiveMaximum: bound,
        multipleOf: () => (isWhole ? 1 + random.below(12) : random.pick([0.5, 0.25, 1, 3])),
      },
      0.25,
    ),
  };
};

/** @type {Maker} */
const ofArray = (random, depth) => {
  const inner = () => schema(random, depth - 1);
  // not both, because with "prefixItems", ajv accepts an empty list for "contains"
  /** @type {Record<string, () => unknown>} */
  const first = random.chance(0.8)
    ? { prefixItems: () => [inner(), ...random.list(1, inner)] }
    : { contains: inner, minContains: () => random.below(3), maxContains: () => random.below(3) };
  const often = { items: inner, minItems: () => random.below(3), maxItems: () => random.below(4) };
  const rarely = { uniqueItems: () => true, unevaluatedItems: () => false };
  return {
    type: 'array',
    ...some(random, { ...first, ...often }, 0.5),
    ...some(random, rarely, 0.06),
  };
};

/** @type {Maker} */
const ofObject = (random, depth) => {
  const keys = [...new Set(random.list(4, () => random.pick(names)))];
  const inner = () => schema(random, depth - 1);
  return {
    type: 'object',
    properties: Object.fromEntries(keys.map((key) => [key, inner()])),
    ...some(
      random,
      {
        required: () => keys.filter(() => random.chance(0.5)),
        additionalProperties: () => (random.chance(0.6) ? false : inner()),
      },
      0.5,
    ),
    ...some(
      random,
      {
        patternProperties: () => ({ [random.pick(patterns)]: inner() }),
        propertyNames: () => ofString(random, 0),
        minProperties: () => random.below(3),
        maxProperties: () => random.below(4),
        dependentRequired: () => ({ [random.pick(names)]: [random.pick(names)] }),
        // not both, because ajv would treat members as unevaluated that "properties" has evaluated
        ...(random.chance(0.5)
          ? { dependentSchemas: () => ({ [random.pick(names)]: ofObject(random, depth - 1) }) }
          : { unevaluatedProperties: () => false }),
      },
      0.08,
    ),
  };
};

/** @type {Maker} */
const ofCases = (random, depth) => {
  const inner = () => schema(random, depth - 1);
  const list = () => [inner(), ...random.list(2, inner)];
  const kind = random.below(8);
  if (kind < 3) return { anyOf: list() };
  if (kind === 3) return { oneOf: list() };
  if (kind === 4) return { not: schema(random, 0) };
  if (kind === 5) return Object.fromEntries(['if', 'then', 'else'].map((key) => [key, inner()]));
  if (kind === 6) return { ...schema(random, 0), anyOf: list() };
  return { allOf: list() };
};

/** @type {Maker} */
function schema(random, depth) {
  const kind = random.below(depth > 0 ? 20 : 9);
  if (kind < 3) return ofString(random, depth);
  if (kind < 6) return ofNumber(random, depth);
  if (kind === 6) return { enum: [value(random), ...random.list(3, () => value(random))] };
  if (kind === 7)
    return random.pick([{ const: value(random) }, { type: 'boolean' }, { type: 'null' }]);
  if (kind === 8) return random.pick([true, {}, { type: ['string', 'null'] }, { minimum: 2 }]);
  if (kind < 12) return ofArray(random, depth);
  if (kind < 15) return ofObject(random, depth);
  if (kind === 15) return { $ref: `#/$defs/${random.pick(['one', 'two'])}` };
  return ofCases(random, depth);
}

/**
 * Generates a complete schema, whose definitions may refer to themselves, but only inside members or items.
 * @param {Random} random
 */
export function wholeSchema(random) {
  const named = () => random.pick([ofObject, ofArray])(random, 2);
  const root = random.chance(0.7) ? ofObject(random, 2) : ofCases(random, 2);
  return { ...root, $defs: { one: named(), two: named() } };
}
