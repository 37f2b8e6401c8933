// Constrained output whose beginning is in the prompt: the `begun` option of generate(), a prefix in
// chat completions. The beginning and the continuation together match the schema, expression,
// grammar or choice.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z as zod } from 'zod';
import { hasCode, modelPath, openEngine } from '../support/package.mjs';

const wild = /** @type {const} */ ({ temperature: 2, topK: 0, topP: 1, minP: 0, maxTokens: 120 });
const record = {
  type: 'object',
  properties: { city: { enum: ['Oslo', 'Lima'] }, degrees: { type: 'integer' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
};
const response_format = /** @type {const} */ ({
  type: 'json_schema',
  json_schema: { name: 'weather', schema: record },
});
/** The error for a prefix that contradicts the grammar. */
const refused = (/** @type {number} */ byte) => ({
  ...hasCode('ARG'),
  message: new RegExp(`prefix does not match the grammar at byte ${byte}`),
});

/** @param {string} text @param {string} named */
function assertRecord(text, named) {
  const { city, degrees, ...others } = JSON.parse(text);
  assert.ok(['Oslo', 'Lima'].includes(city), `${named}: ${text}`);
  assert.ok(Number.isInteger(degrees), `${named}: ${text}`);
  assert.deepEqual(others, {});
}

test('generate: the prefix and the continuation match the grammar together', async (t) => {
  const engine = await openEngine(t);
  for (const [seed, begun] of [
    '{',
    '{ "city" :',
    '{"degrees": 1',
    '\n{\n  "city": "O',
    '',
  ].entries()) {
    const asked = { ...wild, maxTokens: 400, seed, jsonSchema: record, begun };
    const generation = engine.generate(`Weather: ${begun}`, asked);
    const text = await generation.text();
    if (generation.result?.finishReason === 'stop') assertRecord(begun + text, begun);
    assert.ok(
      generation.result?.finishReason === 'stop' || begun === '{"degrees": 1',
      begun + text,
    );
  }
  for (const [options, begun, pattern] of /** @type {[object, string, RegExp][]} */ ([
    [{ regex: /^[a-c]{3}-[0-9]{2}$/ }, 'ab', /^ab[a-c]-[0-9]{2}$/],
    [{ choices: ['a red fox', 'a hen', 'an ox'] }, 'a ', /^a (red fox|hen)$/],
    [{ grammar: 'root ::= "(" [a-z]{2,4} ")"' }, '(x', /^\(x[a-z]{1,3}\)$/],
  ])) {
    for (let seed = 0; seed < 3; seed++) {
      const text = await engine.generate(begun, { ...wild, ...options, begun, seed }).text();
      assert.match(begun + text, pattern);
    }
  }
});

test('a prefix may end inside a character', async (t) => {
  const engine = await openEngine(t);
  const [first, ...rest] = new TextEncoder().encode('日');
  const begun = Uint8Array.of(first);
  /** @type {number[]} */
  const bytes = [];
  const onToken = (/** @type {{bytes: number[]}} */ token) => void bytes.push(...token.bytes);
  await engine.generate('a', { ...wild, regex: '日{1}', begun, onToken }).text();
  assert.deepEqual(bytes, rest);
  await assert.rejects(engine.generate('a', { regex: 'é', begun }).text(), refused(0));
});

test('a mismatched prefix is rejected with the byte position, a wrong type with the option’s name', async (t) => {
  const engine = await openEngine(t);
  const text = (/** @type {any} */ options) => engine.generate('a', { ...wild, ...options }).text();
  await assert.rejects(text({ jsonSchema: record, begun: '{"city": "Rome' }), refused(10));
  await assert.rejects(text({ choices: ['yes', 'no'], begun: 'maybe' }), refused(0));
  await assert.rejects(text({ regex: /^é+$/, begun: 'éa' }), refused(2));
  for (const begun of [7, {}, ['a'], true]) {
    const words = { ...hasCode('ARG'), message: /begun must be a string/ };
    await assert.rejects(async () => text({ choices: ['yes'], begun }), words);
  }
  const alone = {
    ...hasCode('ARG'),
    message: /begun needs one of grammar, jsonSchema, regex, choices/,
  };
  await assert.rejects(async () => text({ begun: 'a' }), alone);
  assert.equal(await text({ choices: ['yes'], begun: null }), 'yes');
  // the prefix is a complete match
  const whole = engine.generate('yes', { ...wild, choices: ['yes'], begun: 'yes' });
  assert.equal(await whole.text(), '');
  assert.equal(whole.result?.finishReason, 'stop');
});

describe('chat completions: a prefix with response_format', () => {
  const turns = '{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>';
  const templates = {
    plain: turns,
    'with reasoning tags': `{% if false %}<think></think>{% endif %}${turns}`,
    'that opens a reasoning block': `{% if false %}</think>{% endif %}${turns}<think>\n`,
  };
  /** @param {string} content */
  const from = (content) =>
    /** @type {any[]} */ ([
      { role: 'user', content: 'The weather, please.' },
      { role: 'assistant', content, prefix: true },
    ]);
  const body = { temperature: 2, top_k: 0, top_p: 1, min_p: 0, max_tokens: 120, response_format };

  for (const [name, chatTemplate] of Object.entries(templates)) {
    test(name, async (t) => {
      const engine = await openEngine(t, { file: modelPath, chatTemplate });
      const begins = ['{ "city": ', '{"city": "O'];
      const thought = name === 'plain' ? '' : 'hm</think>\n\n';
      const opened = name === 'with reasoning tags' ? `<think>${thought}` : thought;
      for (const begin of begins) {
        const messages = from(opened + begin);
        const { choices } = await engine.chat.completions.create({
          ...body,
          messages,
          n: 3,
          seed: 1,
        });
        const whole = choices.filter(({ finish_reason }) => finish_reason === 'stop');
        for (const { message } of whole) assertRecord(begin + message.content, name);
        assert.ok(whole.length > 0, JSON.stringify(choices));
      }
      const wrong = { ...body, messages: from(`${opened}Here: `) };
      await assert.rejects(engine.chat.completions.create(wrong), refused(0));
    });
  }

  test('parse includes the prefix and the continuation', async (t) => {
    const engine = await openEngine(t);
    const Weather = zod.object({ city: zod.enum(['Oslo', 'Lima']) });
    for (const content of ['{"city": ', [{ type: 'text', text: '{"city"' }]]) {
      const messages = from(/** @type {any} */ (content));
      const { choices } = await engine.chat.completions.parse({
        ...body,
        messages,
        response_format: Weather,
      });
      assert.ok(['Oslo', 'Lima'].includes(choices[0].message.parsed?.city ?? ''));
    }
  });
});
