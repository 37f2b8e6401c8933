// The engine in a worker with a stack of half a megabyte, as in Safari: the most deeply nested templates, JSON schemas, regular
// expressions, grammars and tool calls are accepted or rejected as with a large stack, never with a RangeError.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createEngine, dist, modelPath, WickError } from '../support/package.mjs';

const SMALL_MB = 0.5;
const LARGE_MB = 4;
/** At the depth limits (12 to 1000), between them, and far above. */
const depths = [10, 30, 63, 96, 100, 199, 500, 1000, 3000];
/** Only a few, because each depth needs two engines. */
const templateDepths = [10, 63, 199, 3000];

/** @param {number} stackSizeMb @param {string} [chatTemplate] */
const open = (stackSizeMb, chatTemplate) =>
  createEngine({
    ...{ file: modelPath, threads: 1, chatTemplate, directoryOnly: chatTemplate !== undefined },
    worker: () => new Worker(join(dist, 'worker.js'), { resourceLimits: { stackSizeMb } }),
  });

/** @typedef {Awaited<ReturnType<typeof open>>} Engine */

/** @param {string} before @param {string} middle @param {string} end @param {number} depth */
const nest = (before, middle, end, depth) => before.repeat(depth) + middle + end.repeat(depth);

/** @type {Record<string, (depth: number) => object>} */
const schemas = {
  members: (depth) => JSON.parse(nest('{"required":["a"],"properties":{"a":', '{}', '}}', depth)),
  items: (depth) => JSON.parse(nest('{"minItems":1,"items":', '{}', '}', depth)),
  choices: (depth) => JSON.parse(nest('{"anyOf":[{"const":1},', '{"const":2}', ']}', depth)),
  conjunctions: (depth) => JSON.parse(nest('{"allOf":[{"type":"string"},', '{}', ']}', depth)),
  negations: (depth) => JSON.parse(nest('{"not":', '{"type":"string"}', '}', depth)),
  references: (depth) => {
    const names = Array.from({ length: depth }, (_, i) => [`r${i}`, { $ref: `#/$defs/r${i + 1}` }]);
    return { $defs: Object.fromEntries([...names, [`r${depth}`, {}]]), $ref: '#/$defs/r0' };
  },
};

/** @type {Record<string, (depth: number) => object>} */
const constraints = {
  'groups of a regular expression': (depth) => ({ regex: nest('(', 'a', ')', depth) }),
  'repetitions of a regular expression': (depth) => ({ regex: nest('(?:b?', 'a', ')?', depth) }),
  'look-aheads of a regular expression': (depth) => ({ regex: `${'(?=a)'.repeat(depth)}a` }),
  'groups of a grammar': (depth) => ({ grammar: `root ::= ${nest('(', '"a"', ')', depth)}` }),
  'rules of a grammar': (depth) => {
    const rules = Array.from({ length: depth }, (_, i) => `r${i} ::= r${i + 1} "c" | "b"`);
    return { grammar: ['root ::= r0', ...rules, `r${depth} ::= "a"`].join('\n') };
  },
  ...Object.fromEntries(
    Object.entries(schemas).map(([name, make]) => [
      `${name} of a JSON schema`,
      (/** @type {number} */ depth) => ({ jsonSchema: make(depth) }),
    ]),
  ),
};

const nested = (/** @type {number} */ depth) =>
  `{% set l = namespace(s=[]) %}{% for i in range(${depth}) %}{% set l.s = [l.s] %}{% endfor %}`;
/** @type {Record<string, (depth: number) => string>} */
const templates = {
  brackets: (depth) => `{{ ${nest('(', '1', ')', depth)} }}`,
  lists: (depth) => `{{ ${nest('[', '1', ']', depth)} }}`,
  negations: (depth) => `{{ ${'not '.repeat(depth)}1 }}`,
  sums: (depth) => `{{ 1${' + 1'.repeat(depth)} }}`,
  filters: (depth) => `{{ 'a'${' | trim'.repeat(depth)} }}`,
  blocks: (depth) => nest('{% if true %}', '1', '{% endif %}', depth),
  macros: (depth) =>
    `{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(${depth}) }}`,
  'recursive loops': (depth) =>
    `${nested(depth)}{% for x in l.s recursive %}{{ loop(x) }}{% endfor %}`,
  'lists as JSON': (depth) => `${nested(depth)}{{ l.s | tojson }}`,
  'lists as text': (depth) => `${nested(depth)}{{ l.s }}`,
  'compared lists': (depth) => `${nested(depth)}{% set k = l.s %}${nested(depth)}{{ k == l.s }}`,
};

/** Returns the answer, or the code and message of the error. @param {() => Promise<unknown>} ask */
async function outcomeOf(ask) {
  try {
    return JSON.stringify(await ask());
  } catch (error) {
    assert.ok(error instanceof WickError, `${error}`); // not a RangeError
    assert.doesNotMatch(error.message, /call stack/);
    return `${error.code}: ${error.message}`;
  }
}

/** Compares two engines; at least one depth must succeed. @param {string} name @param {(engine: Engine, depth: number) => Promise<unknown>} ask @param {{small: Engine, large: Engine}} engines */
async function compare(name, ask, { small, large }) {
  let answers = 0;
  for (const depth of depths) {
    const [found, wanted] = await Promise.all(
      [small, large].map((engine) => outcomeOf(() => ask(engine, depth))),
    );
    assert.equal(found, wanted, `${name}, depth ${depth}`);
    answers += Number(/^"/.test(found));
  }
  assert.ok(answers > 0, `${name}: rejected at every depth`);
}

describe('a worker with a small stack', () => {
  test('the most deeply nested constraints and tool calls', async (t) => {
    const [small, large] = await Promise.all([open(SMALL_MB), open(LARGE_MB)]);
    t.after(() => Promise.all([small.close(), large.close()]));
    const usual = { temperature: 0, maxTokens: 6 };
    for (const [name, make] of Object.entries(constraints)) {
      const ask = (/** @type {Engine} */ engine, /** @type {number} */ depth) =>
        engine.generate('Once', { ...usual, ...make(depth) }).text();
      await compare(name, ask, { small, large });
    }
    const call = (/** @type {Engine} */ engine, /** @type {number} */ depth) => {
      const parameters = schemas.members(depth);
      const tools = [{ type: 'function', function: { name: 'f', parameters } }];
      const asked = { messages: [{ role: 'user', content: 'x' }], tools, tool_choice: 'required' };
      return engine.chat.completions
        .create(/** @type {any} */ ({ ...asked, temperature: 0, max_tokens: 6 }))
        .then((/** @type {any} */ { choices }) => JSON.stringify(choices));
    };
    await compare('parameters of a tool', call, { small, large });
    const render = (/** @type {Engine} */ engine, /** @type {number} */ depth) => {
      const said = { name: 'f', arguments: nest('{"a":', '1', '}', depth) };
      const tool_calls = [{ id: '1', type: 'function', function: said }];
      const messages = [
        { role: 'user', content: 'x' },
        { role: 'assistant', tool_calls },
      ];
      return engine.applyTemplate(/** @type {any} */ (messages));
    };
    await compare('arguments of an earlier call', render, { small, large });
  });

  for (const [name, make] of Object.entries(templates)) {
    test(`the most deeply nested templates: ${name}`, async () => {
      let answers = 0;
      for (const depth of templateDepths) {
        const render = async (/** @type {number} */ stackSizeMb) => {
          const engine = await open(stackSizeMb, make(depth));
          try {
            return await engine.applyTemplate([{ role: 'user', content: 'x' }]);
          } finally {
            await engine.close();
          }
        };
        const [found, wanted] = await Promise.all(
          [SMALL_MB, LARGE_MB].map((mb) => outcomeOf(() => render(mb))),
        );
        assert.equal(found, wanted, `depth ${depth}`);
        answers += Number(/^"/.test(found));
      }
      assert.ok(answers > 0, 'rejected at every depth');
    });
  }
});
