// Constrained output: generations with a JSON schema, a grammar, a regular expression or choices,
// from a model with random weights and from the demo model, both at temperature 2. Every complete
// output is valid according to ajv, or Python's jsonschema if ajv cannot compile the schema.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvDraft4 from 'ajv-draft-04';
import ajvFormats from 'ajv-formats';
import { locate, root } from '../support/locate.mjs';
import {
  dist,
  hasCode,
  modelPath,
  openEngine,
  synthesize,
  temporaryFolder,
} from '../support/package.mjs';
import { run } from '../support/process.mjs';
import { soakCount } from '../support/soak.mjs';

/** @type {typeof import('../../js/openai.js')} */
const { createHandler } = await import(pathToFileURL(join(dist, 'openai.js')).href);

const shared = locate('shared');
const python = locate('tokenizers');
const randomModel = join(temporaryFolder(), 'tiny.gguf');
await synthesize('tiny', 'q8_0', randomModel);

const wild = /** @type {const} */ ({ temperature: 2, topK: 0, topP: 1, minP: 0 });
const question = /** @type {const} */ ([{ role: 'user', content: 'A record, please.' }]);

/** @typedef {import('../../js/index.js').Engine} Engine */
/** @typedef {import('../../js/index.js').GenerateOptions} GenerateOptions */

const options = { strict: false, allErrors: false, logger: /** @type {false} */ (false) };
/** Classes by draft, as named by Python's jsonschema. @type {Record<string, any>} */
const validators = {
  Draft4Validator: /** @type {any} */ (ajvDraft4).default ?? ajvDraft4,
  Draft6Validator: Ajv,
  Draft7Validator: Ajv,
  Draft202012Validator: Ajv2020,
};

/**
 * Compares whole numbers, because ajv divides doubles and does not accept 0.29 as a multiple of 0.01.
 * @param {number} step @param {number} value
 */
function isMultiple(step, value) {
  const decimals = (/** @type {number} */ of) => {
    const [digits, exponent = 0] = String(of).split('e');
    return Math.max(0, (digits.split('.')[1]?.length ?? 0) - Number(exponent));
  };
  const places = Math.max(decimals(step), decimals(value));
  const whole = (/** @type {number} */ of) => {
    const [digits, exponent = 0] = String(of).split('e');
    const [before, after = ''] = digits.split('.');
    return BigInt(before + after + '0'.repeat(places - after.length + Number(exponent)));
  };
  return whole(value) % whole(step) === 0n;
}

/** @param {any} schema @param {string} [draft] @returns {(value: unknown) => boolean} */
function validatorOf(schema, draft = 'Draft202012Validator') {
  const ajv = new validators[draft](options);
  /** @type {any} */ (ajvFormats.default ?? ajvFormats)(ajv);
  ajv.removeKeyword('multipleOf');
  ajv.addKeyword({ keyword: 'multipleOf', type: 'number', validate: isMultiple });
  const { $schema, $id, id, ...rest } = schema;
  return ajv.compile(rest);
}

/**
 * Raises the logits of closing tokens, so that random output ends.
 * @param {Engine} engine
 */
async function closingBias(engine) {
  const lists = await Promise.all(['"', '}', ']', '0'].map((text) => engine.tokenize(text)));
  return Object.fromEntries(lists.map((ids) => [ids[ids.length - 1], 5]));
}

/**
 * @param {Engine} engine
 * @param {GenerateOptions} more
 */
async function generate(engine, more) {
  const generation = engine.generate('{"name": "', { ...wild, maxTokens: 400, ...more });
  const text = await generation.text();
  return { text, finish: generation.result?.finishReason };
}

/** @type {any[]} */
const schemas = [
  {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 12 },
      age: { type: 'integer', minimum: 0, maximum: 130 },
      mail: { type: 'string', format: 'email' },
      tags: { type: 'array', items: { enum: ['a', 'é', '"'] }, minItems: 1, maxItems: 3 },
    },
    required: ['name', 'age'],
    additionalProperties: false,
  },
  { type: 'array', items: { type: 'number', exclusiveMinimum: -1.5, maximum: 2.25 }, maxItems: 4 },
  {
    $defs: {
      tree: {
        type: 'object',
        properties: { kids: { type: 'array', maxItems: 2, items: { $ref: '#/$defs/tree' } } },
      },
    },
    $ref: '#/$defs/tree',
  },
  {
    oneOf: [
      { type: 'string', pattern: '^[A-Z]{2}\\d{4}$' },
      { type: 'integer', multipleOf: 7 },
      { type: 'null' },
    ],
  },
  { type: 'string', format: 'date-time' },
  { anyOf: [{ const: { a: [1, 'x'] } }, { type: 'boolean' }] },
];

for (const [name, file] of [
  ['random weights', randomModel],
  ['the demo model', modelPath],
]) {
  describe(`constrained output of ${name}`, () => {
    test('JSON matches its schema', async (t) => {
      const engine = await openEngine(t, { file, contextSize: 512 });
      const logitBias = await closingBias(engine);
      let stopped = 0;
      for (const schema of schemas) {
        const isValid = validatorOf(schema);
        for (let seed = 0; seed < 4; seed++) {
          const { text, finish } = await generate(engine, { jsonSchema: schema, seed, logitBias });
          if (finish !== 'stop') continue;
          stopped++;
          assert.ok(isValid(JSON.parse(text)), `${JSON.stringify(schema)}: ${text}`);
        }
      }
      assert.ok(stopped >= schemas.length * 3, `${stopped} ended before the limit`);
    });

    test('output matches its regular expression or one of its choices', async (t) => {
      const engine = await openEngine(t, { file });
      const pattern = /[a-f]{3}-\d+(, [xyzé]{1,9})?\.|[^\sa-z]{4}/u;
      const choices = ['yes', 'no', 'não', 'yesterday "or" \\today'];
      const seen = new Set();
      for (let seed = 0; seed < 24; seed++) {
        const matched = await generate(engine, { regex: pattern, seed });
        if (matched.finish === 'stop')
          assert.match(matched.text, new RegExp(`^(${pattern.source})$`, 'u'));
        const chosen = await generate(engine, { choices, seed });
        assert.equal(chosen.finish, 'stop');
        assert.ok(choices.includes(chosen.text), chosen.text);
        seen.add(chosen.text);
      }
      assert.ok(seen.size > 1);
    });
  });
}

/**
 * After 100 tokens, raises the logits of tokens that complete the output as soon as possible: closing quotes and brackets,
 * and a digit where a number is required.
 * @param {Engine} engine
 */
async function closingHooks(engine) {
  const pushes = new Map([
    ['"', 24],
    ['}', 20],
    [']', 20],
    ['0', 10],
  ]);
  const lists = [...pushes.keys()].map((text) => engine.tokenize(text));
  const ids = (await Promise.all(lists)).map((list) => list[list.length - 1]);
  const closing = [...pushes.values()].map((push, index) => ({ token: ids[index], push }));
  return () => {
    /** @type {number | undefined} */
    let first;
    return (/** @type {Float32Array} */ logits, /** @type {{tokens: Int32Array}} */ { tokens }) => {
      first ??= tokens.length;
      if (tokens.length - first < 100) return;
      for (const { token, push } of closing) logits[token] += push;
    };
  };
}

/**
 * Returns the result of Python's jsonschema for each output ('' if it is valid), or the reason why it cannot use the schema.
 * @param {{draft: string, schema: any, texts: string[]}[]} asked
 * @returns {Promise<(string[] | {error: string})[]>}
 */
async function judgeInPython(asked) {
  const input = asked.map((one) => JSON.stringify([one.draft, one.schema, one.texts])).join('\n');
  const program = join(root, 'tools/text/schemas.py');
  const { code, stdout, stderr } = await run(python.path, [program], { input });
  assert.equal(code, 0, stderr.toString());
  return stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Returns ajv's validator, or undefined if ajv cannot compile the schema. @param {any} schema @param {string} draft */
function validatorByAjv(schema, draft) {
  try {
    return validatorOf(schema, draft);
  } catch {
    return undefined;
  }
}

/**
 * Returns the complete outputs for a schema and the number of truncated ones, or that the schema was rejected.
 * @param {Engine} engine
 * @param {any} one of real.json
 * @param {number} seeds
 * @param {Awaited<ReturnType<typeof closingHooks>>} closingHook
 */
async function textsOf(engine, { schema: jsonSchema, policy, name }, seeds, closingHook) {
  const texts = [];
  for (let seed = 0; seed < seeds; seed++) {
    const more = { jsonSchema, seed, logitsHook: closingHook(), maxTokens: 1500 };
    try {
      const { text, finish } = await generate(engine, more);
      if (finish === 'stop') texts.push(text);
    } catch (error) {
      assert.ok(policy !== 'honour' && hasCode('UNSUPPORTED')(error), `${name}: ${error}`);
      return { isRefused: true, texts, cut: 0 };
    }
  }
  return { isRefused: false, texts, cut: seeds - texts.length };
}

/** @param {{name: string}} one */
const named =
  ({ name }) =>
  (/** @type {string} */ text) =>
    `${name}: ${text}`;

const skip = shared.skip || python.skip;
test('outputs for real-world schemas are valid', { skip }, async (t) => {
  /** @type {any[]} */
  const all = JSON.parse(
    readFileSync(join(shared.path, 'vectors/structure/schema/real.json'), 'utf8'),
  );
  const engine = await openEngine(t, { file: randomModel, contextSize: 2048 });
  const closingHook = await closingHooks(engine);
  const [step, seeds] = [Math.floor(all.length / soakCount(all.length)), soakCount(20)];
  const tally = { refused: 0, stopped: 0, cut: 0, byPython: 0, unjudged: '' };
  /** @type {any[]} */
  const forPython = [];
  /** @type {string[]} */
  const invalid = [];
  for (const [index, one] of all.entries()) {
    const isValid = validatorByAjv(one.schema, one.draft);
    if (isValid && index % step !== 0) continue; // all of the few schemas that ajv cannot compile are tried
    const { isRefused, texts, cut } = await textsOf(engine, one, seeds, closingHook);
    tally.refused += Number(isRefused);
    tally.stopped += texts.length;
    tally.cut += cut;
    if (!isValid && texts.length > 0) forPython.push({ ...one, texts });
    else invalid.push(...texts.filter((text) => !isValid?.(JSON.parse(text))).map(named(one)));
  }
  for (const [index, verdict] of (await judgeInPython(forPython)).entries()) {
    const one = forPython[index];
    if (Array.isArray(verdict)) {
      tally.byPython += verdict.length;
      invalid.push(
        ...one.texts
          .filter((/** @type {string} */ _, /** @type {number} */ place) => verdict[place] !== '')
          .map(named(one)),
      );
    } else tally.unjudged += `${one.name}: ${verdict.error}; `;
  }
  t.diagnostic(JSON.stringify(tally));
  assert.deepEqual(invalid, []);
  assert.ok(tally.byPython > 0);
  assert.equal(tally.unjudged, '');
  assert.ok(tally.stopped >= 0.95 * (tally.stopped + tally.cut), JSON.stringify(tally));
});

test('multipleOf is checked exactly', () => {
  for (const [value, isValid] of /** @type {const} */ ([
    [0.29, true],
    [999936654.06, true],
    [-0.07, true],
    [0.295, false],
    [1e21, true],
    [1e-7, false],
  ])) {
    assert.equal(validatorOf({ multipleOf: 0.01 })(value), isValid, String(value));
  }
  assert.ok(validatorOf({ multipleOf: 1e-7 })(3e-7));
  assert.ok(!validatorOf({ multipleOf: 7 })(20));
});

test('Python’s jsonschema distinguishes valid and invalid outputs', {
  skip: python.skip,
}, async () => {
  const schema = { type: 'string', pattern: '^[\\.\\-]+$', maxLength: 3 };
  const ipv4 = { type: 'string', format: 'ipv4' };
  const verdicts = await judgeInPython([
    { draft: 'Draft4Validator', schema, texts: ['".-"', '"a"', '"...."'] },
    { draft: 'Draft202012Validator', schema: ipv4, texts: ['"1.2.3.4"', '"1.2.3"'] },
    { draft: 'Draft7Validator', schema: { type: 'nothing' }, texts: ['1'] },
  ]);
  const [first, second, third] = /** @type {any[]} */ (verdicts);
  assert.deepEqual(
    [...first, ...second].map((why) => why === ''),
    [true, false, false, true, false],
  );
  assert.match(third.error, /SchemaError/);
});

describe('forced text', () => {
  const text = 'The quick brown fox jumps over the lazy dog, and nobody minds, 1234 times.';

  test('is tokenized as usual, takes one pass, and has logprobs if they are requested', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    const wanted = await engine.tokenize(text);
    for (const [settings, passes] of /** @type {const} */ ([
      [{}, 2 + Math.floor(wanted.length / 17)],
      [{ logprobs: 2 }, wanted.length],
    ])) {
      const before = (await engine.stats()).passes;
      /** @type {import('../../js/index.js').TokenDetail[]} */
      const came = [];
      const options = { choices: [text], temperature: 0, ...settings };
      const stream = engine.generate('Once upon a time', {
        ...options,
        onToken: (token) => void came.push(token),
      });
      assert.equal(await stream.text(), text);
      const ids = came.map(({ token }) => token);
      // the model chooses the first token among those that begin the text
      const rest = await engine.tokenize(text.slice(came[0].text.length));
      assert.deepEqual(ids, ids[0] === wanted[0] ? wanted : [ids[0], ...rest]);
      assert.ok((await engine.stats()).passes - before <= passes);
      if ('logprobs' in settings) assert.ok(came.every(({ logprob }) => Number(logprob) < 0));
    }
  });

  test('records with known keys take a third of the passes', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    const word = { type: 'string', maxLength: 6 };
    const properties = { first_name: word, last_name: word, is_a_member: { type: 'boolean' } };
    const jsonSchema = { type: 'object', properties, required: Object.keys(properties) };
    let tokens = 0;
    const before = (await engine.stats()).passes;
    for (let seed = 0; seed < 8; seed++) {
      const stream = engine.generate('Ada is', { jsonSchema, seed, temperature: 1 });
      assert.ok(validatorOf(jsonSchema)(JSON.parse(await stream.text())));
      tokens += stream.result?.usage.completionTokens ?? 0;
    }
    const passes = (await engine.stats()).passes - before;
    t.diagnostic(`${passes} passes for ${tokens} tokens`);
    assert.ok(passes * 3 < tokens * 1.2, `${passes} passes for ${tokens} tokens`);
  });
});

describe('healing', () => {
  test('the first token begins with the prompt’s last one, whose text is not repeated', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    for (const prompt of ['Once upon a ti', 'The fox ran to the gar', 'caf', 'un été']) {
      const ids = await engine.tokenize(prompt);
      let [end, taken] = ['\ufffd', 0]; // a character may take several tokens
      while (end.includes('\ufffd')) end = await engine.detokenize(ids.slice(-++taken));
      /** @type {number[]} */
      const tokens = [];
      const text = await engine
        .generate(prompt, {
          healing: true,
          temperature: 0,
          maxTokens: 6,
          onToken: ({ token }) => void tokens.push(token),
        })
        .text();
      const [first] = tokens;
      const isHealed = ids.length > taken;
      if (isHealed && taken === 1) {
        assert.ok((await engine.detokenize([first])).startsWith(end), prompt);
      }
      assert.equal(isHealed ? end + text : text, await engine.detokenize(tokens), prompt);
    }
  });

  test('requires a string prompt and no grammar', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    const long = 'Once upon a ti';
    for (const [prompt, options, message] of /** @type {[any, any, RegExp][]} */ ([
      [[1, 2], {}, /a string prompt/],
      [long, { choices: ['a'] }, /no grammar/],
      [long, { healing: 'yes' }, /healing must be true or false/],
    ])) {
      await assert.rejects(
        async () => engine.generate(prompt, { healing: true, ...options }).text(),
        {
          code: 'ARG',
          message,
        },
      );
    }
  });
});

describe('extract', () => {
  const { mail, ...properties } = schemas[0].properties; // mail addresses may be long
  const schema = { ...schemas[0], properties };
  const text = 'Ada is 36 years old.';

  for (const [name, file] of [
    ['without a chat template', randomModel],
    ['the demo model', modelPath],
  ]) {
    test(`a record is valid and parsed: ${name}`, async (t) => {
      const engine = await openEngine(t, { file });
      const isValid = validatorOf(schema);
      const record = await engine.extract(text, schema);
      assert.ok(isValid(record), JSON.stringify(record));
      assert.deepEqual(await engine.extract(text, JSON.stringify(schema)), record);
      assert.deepEqual([await engine.extract(text, { const: 'é' })], ['é']);
      const numbers = new Set();
      for (let seed = 0; seed < 6; seed++) {
        const wide = { type: 'integer', minimum: 0, maximum: 999999 };
        numbers.add(await engine.extract(text, wide, { temperature: 2, seed }));
      }
      assert.ok(numbers.size > 1 && [...numbers].every(Number.isInteger));
    });
  }

  test('the user’s message consists of the instructions, the schema and the text', async (t) => {
    const engine = await openEngine(t, { file: modelPath });
    const given = { const: 1 };
    const asked = (/** @type {string} */ content) =>
      engine.applyTemplate([{ role: 'user', content }]);
    const tokens = async (/** @type {string} */ content) =>
      (await engine.tokenize(await asked(content))).length;
    const before = (await engine.stats()).tokens.prompt;
    await engine.extract(text, given, { instructions: 'Count.' });
    const read = (await engine.stats()).tokens.prompt - before;
    assert.equal(read, await tokens(`Count.\n{"const":1}\n\n${text}`));
  });

  test('errors about invalid arguments name the argument', async (t) => {
    const engine = await openEngine(t, { file: randomModel });
    const wide = { type: 'array', items: { type: 'integer' }, minItems: 9 };
    /** @type {any} */
    const cut = await engine.extract(text, wide, { maxTokens: 4 }).catch((error) => error);
    assert.deepEqual([cut.code, cut.cause.text[0]], ['INCOMPLETE', '[']);
    /** @type {[any[], string, RegExp][]} */
    const refusals = [
      [[1, schema], 'ARG', /text must be a string, not 1/],
      [[text, undefined], 'ARG', /needs a JSON schema/],
      [[text, schema, { instructions: 1 }], 'ARG', /instructions must be a string/],
      [[text, schema, { maxToken: 1 }], 'ARG', /did you mean maxTokens/],
      [[text, schema, { maxTokens: 0.5 }], 'ARG', /maxTokens/],
      [[text, { type: 'thing' }], 'ARG', /#.type: unknown type/],
    ];
    for (const [args, code, message] of refusals) {
      await assert.rejects(/** @type {any} */ (engine).extract(...args), { code, message });
    }
    const signal = AbortSignal.abort();
    await assert.rejects(engine.extract(text, schema, { signal }), { name: 'AbortError' });
  });
});

describe('chat completions', () => {
  const { mail, ...properties } = schemas[0].properties; // mail addresses may be long
  const schema = { ...schemas[0], properties };

  test('response_format is enforced, streamed or not, and for all choices', async (t) => {
    const { chat } = await openEngine(t, { file: modelPath });
    const isValid = validatorOf(schema);
    const body = { messages: [...question], seed: 1, temperature: 1.5, max_tokens: 300 };
    const format = {
      type: /** @type {const} */ ('json_schema'),
      json_schema: { name: 'person', schema, strict: true },
    };
    const answer = await chat.completions.create({ ...body, response_format: format, n: 3 });
    assert.equal(answer.choices.length, 3);
    for (const { message, finish_reason } of answer.choices) {
      assert.equal(finish_reason, 'stop');
      assert.ok(isValid(JSON.parse(message.content)), message.content);
    }
    const chunks = await chat.completions.create({
      ...body,
      response_format: format,
      stream: true,
    });
    let streamed = '';
    for await (const chunk of chunks) streamed += chunk.choices[0].delta.content ?? '';
    assert.equal(streamed, answer.choices[0].message.content);
    const free = await chat.completions.create({
      ...body,
      response_format: { type: 'json_object' },
      seed: 3,
    });
    const { content } = free.choices[0].message;
    assert.equal(content[0], '{');
    if (free.choices[0].finish_reason === 'stop')
      assert.equal(typeof JSON.parse(content), 'object');
    const asked = { type: /** @type {const} */ ('json_object'), schema };
    const limited = await chat.completions.create({ ...body, response_format: asked });
    assert.ok(isValid(JSON.parse(limited.choices[0].message.content)));
    const plain = await chat.completions.create({ ...body, response_format: { type: 'text' } });
    assert.notEqual(plain.choices[0].message.content[0], '{');
  });

  test('the handler passes response_format on', async (t) => {
    const handle = createHandler(await openEngine(t));
    const response_format = { type: 'json_schema', json_schema: { name: 'person', schema } };
    const body = { messages: [...question], seed: 1, max_tokens: 300, response_format };
    const answer = await handle(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
    assert.equal(answer.status, 200);
    const [{ message, finish_reason }] = (await answer.json()).choices;
    assert.equal(finish_reason, 'stop');
    assert.ok(validatorOf(schema)(JSON.parse(message.content)), message.content);
  });

  test('an unknown format is rejected', async (t) => {
    const { chat } = await openEngine(t);
    const messages = [...question];
    for (const [response_format, code] of /** @type {any[]} */ ([
      [{ type: 'xml' }, 'UNSUPPORTED'],
      [{}, 'UNSUPPORTED'],
      [{ schema: { type: 'object' } }, 'UNSUPPORTED'],
      [{ type: 'json_schema' }, 'ARG'],
      [{ type: 'json_schema', schema: { type: 'object' } }, 'ARG'],
      [{ type: 'json_schema', json_schema: { schema: {}, name: 5 } }, 'ARG'],
      [{ type: 'json_schema', json_schema: { schema: {}, schemas: {} } }, 'ARG'],
      [{ type: 'json_object', schema: 5 }, 'ARG'],
      [{ type: 'text', schema: {} }, 'ARG'],
      [{ type: 'json_schema', json_schema: { schema: 'x' } }, 'ARG'],
      [{ type: 'json_schema', json_schema: { schema: { type: 'nothing' } } }, 'ARG'],
    ])) {
      await assert.rejects(chat.completions.create({ messages, response_format }), hasCode(code));
    }
  });
});

test('unsupported options are rejected with typed errors that name them', async (t) => {
  const engine = await openEngine(t);
  /** @type {any} */
  const circular = { type: 'array' };
  circular.items = circular;
  const deepSchema = (/** @type {number} */ depth) =>
    JSON.parse(`${'{"items":'.repeat(depth)}{}${'}'.repeat(depth)}`);
  for (const [given, code, reported] of /** @type {[any, string, RegExp][]} */ ([
    [{ grammar: 5 }, 'ARG', /grammar must be/],
    [{ grammar: 'root ::= [' }, 'ARG', /line 1/],
    [{ grammar: 'root ::= root "a" | "b"' }, 'UNSUPPORTED', /left recursion: rule 'root'/],
    [{ regex: 5 }, 'ARG', /regex must be/],
    [{ regex: '(a' }, 'ARG', /pattern '\(a', byte 2/],
    [{ regex: /a/i }, 'UNSUPPORTED', /flag i/],
    [{ regex: /(a)\1/ }, 'UNSUPPORTED', /back references/],
    // checked before the engine, so that the message contains the option's name
    [{ choices: [] }, 'ARG', /choices must be an array of at least one string/],
    [{ choices: ['a', 5] }, 'ARG', /choices must be an array of at least one string/],
    [{ choices: { length: 1, every: () => true } }, 'ARG', /choices must be an array/],
    [{ jsonSchema: [] }, 'ARG', /jsonSchema/],
    [{ jsonSchema: circular }, 'ARG', /jsonSchema must be JSON: .*circular/],
    [{ jsonSchema: deepSchema(20000) }, 'GRAMMAR_TOO_LARGE', /jsonSchema is nested too deeply/],
    [{ jsonSchema: deepSchema(1000) }, 'GRAMMAR_TOO_LARGE', /nested deeper than 500/],
    [{ jsonSchema: '{"type":' }, 'ARG', /JSON, byte \d/],
    [{ jsonSchema: { type: 'nothing' } }, 'ARG', /#\/type/],
    [{ jsonSchema: { $ref: 'https://example.com/x.json' } }, 'UNSUPPORTED', /#\/\$ref/],
    [
      { jsonSchema: { unevaluatedProperties: false, $dynamicRef: '#x' } },
      'UNSUPPORTED',
      /dynamicRef/,
    ],
    [{ regex: 'a', choices: ['a'] }, 'ARG', /regex and choices/],
    [{ regex: 'a{100001}' }, 'GRAMMAR_TOO_LARGE', /the count is above 100000/],
    [
      { jsonSchema: { maxLength: 1e9 } },
      'GRAMMAR_TOO_LARGE',
      /takes more than 67108864 bytes to compile \(options/,
    ],
  ])) {
    await assert.rejects(
      async () => engine.generate('a', given).text(),
      (error) => {
        assert.match(/** @type {Error} */ (error).message, reported);
        return hasCode(code)(error);
      },
    );
  }
  await assert.rejects(
    async () => engine.generate('a', { jsonSchema: deepSchema(20000) }).text(),
    { cause: { option: 'grammar' } }, // the server uses it to name the field
  );
  assert.equal(await engine.generate('a', { choices: ['fine'], ...wild }).text(), 'fine');
});

test('grammars are compiled between the steps of other requests', async (t) => {
  const engine = await openEngine(t);
  /** @type {string[]} */
  const ended = [];
  const ask = async (/** @type {string} */ name, /** @type {GenerateOptions} */ given) => {
    const answer = engine.generate('It is ', { maxTokens: 4, ignoreEnd: true, ...given }).text();
    const error = await answer.then(() => undefined).catch((/** @type {any} */ reason) => reason);
    ended.push(name);
    return error;
  };
  // the grammar module is loaded by the first request with a grammar
  await ask('first', { regex: /a+/ });
  const slow = (/** @type {number} */ count) =>
    ask(`slow ${count}`, { regex: new RegExp(`(a|b)*a(a|b){${count}}`) });
  const many = [14, 15].map(slow);
  assert.equal(await ask('plain', {}), undefined);
  assert.equal(await ask('quick', { regex: /b+/ }), undefined);
  assert.deepEqual(ended, ['first', 'plain', 'quick']);
  await Promise.all(many);
  assert.equal(ended.length, 5);
});

test('a request is cancelled while its grammar is compiled', async (t) => {
  const engine = await openEngine(t);
  const regex = /(a|b)*a(a|b){13}/;
  const controller = new AbortController();
  const { signal } = controller;
  const answer = engine.generate('It is ', { regex, signal }).text();
  setTimeout(() => controller.abort(), 1);
  await assert.rejects(answer);
  assert.equal(await engine.generate('It is ', { maxTokens: 4, regex: /b{3}/ }).text(), 'bbb');
});

test('limits on grammar compilation can be set', async (t) => {
  const engine = await openEngine(t, { file: modelPath, grammarSteps: 2000 });
  const jsonSchema = { type: 'string', pattern: '^(a|b){40}c{0,200}$' };
  await assert.rejects(engine.generate('It is ', { jsonSchema }).text(), /2000 steps/);
  const tight = await openEngine(t, { file: modelPath, grammarMemory: 20000 });
  await assert.rejects(tight.generate('It is ', { jsonSchema }).text(), /20000 bytes/);
});

test('sessions, forks and completions follow the grammar', async (t) => {
  const engine = await openEngine(t);
  const session = await engine.createSession();
  const regex = /[ab]{4,8}\./;
  const first = await session.prompt('Letters: ', { ...wild, seed: 1, regex }).text();
  assert.match(first, /^[ab]{4,8}\.$/);
  const fork = await session.fork();
  const [left, right] = await Promise.all(
    [session, fork].map((one) => one.prompt(' More: ', { ...wild, seed: 2, regex }).text()),
  );
  assert.match(left, /^[ab]{4,8}\.$/);
  assert.equal(left, right);
  const many = engine.generateMany('Letters: ', { ...wild, seed: 1, regex, n: 4 });
  const texts = await Promise.all(many.map((one) => one.text()));
  for (const text of texts) assert.match(text, /^[ab]{4,8}\.$/);
  assert.ok(new Set(texts).size > 1);
});

test('beam search and best-of-n follow the schema and the expression', async (t) => {
  const engine = await openEngine(t);
  const jsonSchema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
  const given = { width: 3, maxTokens: 60, jsonSchema: { ...jsonSchema, maxProperties: 1 } };
  const isValid = validatorOf(given.jsonSchema);
  const records = await engine.beamSearch('It is ', given);
  const whole = records.filter(({ finishReason }) => finishReason === 'stop');
  assert.ok(whole.length > 0 && whole.every(({ text }) => isValid(JSON.parse(text))));
  const regex = /[ab]{4}\./;
  for (const { text } of await engine.bestOf('It is ', { ...wild, n: 3, regex, seed: 4 }))
    assert.match(text, /^[ab]{4}\.$/);
});

test('GBNF refers to tokens by id and text, and excludes one with !', async (t) => {
  const engine = await openEngine(t, { file: modelPath });
  const [id] = await engine.tokenize(' fox', { addSpecial: false });
  const name = await engine.detokenize([id]);
  /** @param {string} grammar */
  const tokensOf = async (grammar) => {
    /** @type {number[]} */
    const tokens = [];
    const onToken = (/** @type {{token: number}} */ { token }) => void tokens.push(token);
    await engine.generate('The', { ...wild, grammar, onToken }).text();
    return tokens;
  };
  assert.deepEqual(await tokensOf(`root ::= <[${id}]>{3}`), [id, id, id]);
  const others = await tokensOf(`root ::= !<[${id}]>{40}`);
  assert.equal(others.length, 40);
  assert.ok(!others.includes(id), name);
  await assert.rejects(tokensOf('root ::= <no such name>'), {
    code: 'ARG',
    message: /no single token is <no such name>/,
  });
});
