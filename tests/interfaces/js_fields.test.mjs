// Each field of a request body: accepted values, and errors for other values.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fieldAliases } from '../../js/base/option_table.js';
import { adaptersOf, lora } from '../../js/handler/adapter_fields.js';
import {
  checkBody,
  checkFields,
  checkTogether,
  commonFields,
  pickFields,
  withAliases,
} from '../../js/handler/fields.js';
import { headOf } from '../../js/handler/response_shape.js';

const wholes = 'a whole number of at least';
/** Fields with accepted values, rejected values, and the requirement in the error. @type {[string, unknown[], unknown[], string][]} */
const table = [
  ['stream', [true, false], [1, 'true', {}], 'true or false'],
  [
    'max_tokens',
    [1, -1, 2 ** 32 - 1],
    [0, -2, 1.5, '1', 2 ** 32],
    `${wholes} 1, or -1 for no limit`,
  ],
  ['n', [1, 16], [0, 0.5, 17], 'a whole number from 1 to 16'],
  ['stop', ['a', '', [], ['a', 'b']], [1, ['a', 1], {}], 'a string or an array of strings'],
  ['seed', [-1, 0, 2 ** 53 - 1], [0.5, 2 ** 53, '1'], 'a whole number'],
  ['temperature', [0, 0.1, 100], [-0.1, '1', true], 'a number of at least 0'],
  ['top_p', [0, 1], [-0.1, 1.1], 'a number from 0 to 1'],
  ['top_k', [-1, 0, 7], [-2, 0.5], 'a whole number from -1 to 4294967295'],
  ['min_p', [0, 1], [-0.1, 1.01], 'a number from 0 to 1'],
  ['repeat_penalty', [0.1, 9], [0, -1], 'a number above 0'],
  ['thinking_budget_tokens', [-1, 0, 9], [-2, 0.5], 'a whole number from -1 to 4294967295'],
  ['grammar', ['root ::= "a"'], [1, {}], 'a string'],
  ['regex', ['a+'], [1, {}], 'a string'],
  ['choices', [['a'], ['a', '']], [[], 'a', [1]], 'an array of at least one string'],
  ['typical_p', [0, 1], [-0.1, 1.1], 'a number from 0 to 1'],
  ['json_schema', [{}, '{}'], [1, []], 'a JSON schema or its text'],
  ['frequency_penalty', [-100, 100], [-100.5, 101], 'a number from -100 to 100'],
  ['presence_penalty', [-100, 100], [-100.5, 101], 'a number from -100 to 100'],
  [
    'logit_bias',
    [{}, { 1: 0.5, 20: -1 }],
    [[], 1, { a: 1 }, { 1: '1' }, { '-1': 1 }],
    'an object of token ids and numbers',
  ],
  ['salt', ['a'], ['', 1, []], 'a non-empty string'],
  ['repeat_last_n', [-1, 0, 2 ** 20], [-2, 2 ** 20 + 1], 'a whole number from -1 to 1048576'],
];

describe('fields', () => {
  for (const [name, good, bad, wanted] of table) {
    test(`${name}: ${wanted}`, () => {
      for (const value of [...good, null]) checkFields({ [name]: value }, commonFields);
      for (const value of bad) {
        const message = `${name} must be ${wanted}, not ${JSON.stringify(value)}`;
        const error = { status: 400, code: 'invalid_value', param: name, message };
        assert.throws(() => checkFields({ [name]: value }, commonFields), error);
      }
    });
  }

  test('field names of other servers are mapped and checked like ours', () => {
    const fields = withAliases(commonFields);
    for (const [alias, own] of Object.entries(fieldAliases)) {
      const row = table.find(([name]) => name === own);
      for (const value of row?.[1] ?? [{ type: 'object' }]) {
        const body = { [alias]: value };
        checkBody(body, fields);
        assert.deepEqual(pickFields(body, commonFields), { [own]: value });
      }
      for (const value of row?.[2] ?? [[]]) {
        assert.throws(() => checkBody({ [alias]: value }, fields), { param: alias });
      }
    }
    const both = { n_predict: 1, max_tokens: 1 };
    const message = 'n_predict and max_tokens are the same field: send one';
    assert.throws(() => checkBody(both, fields), { param: 'n_predict', message });
    checkBody({ n_predict: 1, max_tokens: null }, fields);
    const { max_tokens, ...others } = commonFields;
    assert.throws(() => checkBody({ n_predict: 1 }, withAliases(others)), {
      code: 'unknown_parameter',
    });
  });

  test('members of structured_outputs become fields', () => {
    const fields = withAliases(commonFields);
    for (const [given, wanted] of /** @type {[object, object][]} */ ([
      [{ json: { const: 1 } }, { json_schema: { const: 1 } }],
      [{ regex: 'a' }, { regex: 'a' }],
      [{ choice: ['a'] }, { choices: ['a'] }],
      [{ grammar: 'root ::= "a"', regex: null }, { grammar: 'root ::= "a"' }],
      [{ json_object: true }, { json_schema: { type: 'object' } }],
      [{ json_object: false }, {}],
    ])) {
      const body = { structured_outputs: given };
      checkBody(body, fields);
      assert.deepEqual(body, wanted);
    }
  });

  test('long values in errors are shortened, and undefined is shown', () => {
    const long = 'x'.repeat(100);
    const cut = `n must be a whole number from 1 to 16, not "${'x'.repeat(59)}…`;
    assert.throws(() => checkFields({ n: long }, commonFields), { message: cut });
    const whole = 'x'.repeat(58); // 60 characters with its quotes
    const uncut = `n must be a whole number from 1 to 16, not "${whole}"`;
    assert.throws(() => checkFields({ n: whole }, commonFields), { message: uncut });
    const said = `n must be a whole number from 1 to 16, not undefined`;
    assert.throws(() => checkFields({ n: undefined }, commonFields), { message: said });
  });

  test('errors about members of stream_options contain the field’s name', () => {
    const good = { include_usage: true, include_obfuscation: false };
    checkFields({ stream_options: good }, commonFields);
    /** @type {[unknown, string, string][]} */
    const wrong = [
      [1, 'stream_options', 'invalid_value'],
      [[], 'stream_options', 'invalid_value'],
      [{ include_usage: 1 }, 'stream_options.include_usage', 'invalid_value'],
      [{ usage: true }, 'stream_options.usage', 'unknown_parameter'],
    ];
    for (const [value, param, code] of wrong) {
      const error = { status: 400, param, code };
      assert.throws(() => checkFields({ stream_options: value }, commonFields), error);
    }
  });

  test('names that every object inherits are unknown fields', () => {
    for (const name of ['toString', '__proto__', 'constructor']) {
      const body = JSON.parse(`{"${name}": 1}`);
      assert.throws(() => checkFields(body, commonFields), { code: 'unknown_parameter' });
      assert.deepEqual(Object.keys(pickFields(body, commonFields)), []);
    }
    assert.deepEqual(pickFields({ n: 2, seed: null, model: 'a' }, commonFields), { n: 2 });
  });

  test('required fields, and fields that depend on others, are checked', () => {
    for (const body of [{}, { prompt: null }]) {
      const error = { status: 400, code: 'missing_required_parameter', param: 'prompt' };
      assert.throws(() => checkTogether(body, 'prompt'), error);
    }
    const alone = { prompt: 'a', stream_options: {} };
    assert.throws(() => checkTogether(alone, 'prompt'), { param: 'stream_options' });
    checkTogether({ ...alone, stream: true }, 'prompt');
    checkTogether({ prompt: '', stream_options: null }, 'prompt');
  });
});

test('lora takes adapter ids with scales and nothing else', () => {
  for (const list of [[], [{ id: 0 }], [{ id: 2, scale: -0.5 }, { id: 0 }]]) lora(list, 'lora');
  const wrong = [
    null,
    'a',
    [],
    {},
    { id: -1 },
    { id: 0.5 },
    { id: 0, scale: '1' },
    { id: 0, size: 1 },
  ];
  for (const use of wrong) {
    assert.throws(() => lora([{ id: 0 }, use], 'lora'), { param: 'lora' }, JSON.stringify(use));
  }
  assert.throws(() => lora({ id: 0 }, 'lora'), { param: 'lora' });
});

test('lora: each id is mapped to an adapter, with its scale or 1', async () => {
  let asked = 0;
  const list = async () => {
    asked++;
    return [{ name: 'a' }, { name: 'b' }];
  };
  const engine = /** @type {any} */ ({ adapters: { list } });
  for (const none of [null, undefined, []]) {
    assert.equal(await adaptersOf(engine, none), undefined);
  }
  assert.equal(asked, 0);
  assert.deepEqual(await adaptersOf(engine, [{ id: 1, scale: 0 }, { id: 0 }]), [
    { name: 'b', scale: 0 },
    { name: 'a', scale: 1 },
  ]);
  await assert.rejects(adaptersOf(engine, [{ id: 0 }, { id: 2 }]), { param: 'lora[1].id' });
});

test('a response repeats the request’s fields, with defaults for missing ones', () => {
  const given = {
    ...{
      instructions: 'i',
      max_output_tokens: 3,
      metadata: { a: 'b' },
      parallel_tool_calls: false,
    },
    ...{ temperature: 0, tool_choice: 'none', tools: [{ type: 'function' }], top_logprobs: 2 },
    ...{ top_p: 0.5, user: 'u', text: { format: { type: 'json_object' } } },
  };
  const usual = {
    ...{ instructions: null, max_output_tokens: null, metadata: {}, parallel_tool_calls: true },
    ...{ temperature: null, tool_choice: 'auto', tools: [], top_logprobs: 0 },
    ...{ top_p: null, user: null, text: { format: { type: 'text' } } },
  };
  const same = {
    ...{ object: 'response', model: 'm', background: false, store: false, truncation: 'disabled' },
    ...{ previous_response_id: null, reasoning: { effort: null, summary: null } },
  };
  for (const [body, repeated] of [
    [given, given],
    [{}, usual],
  ]) {
    const { id, created_at, ...head } = headOf(body, 'm');
    assert.match(id, /^resp_/);
    assert.ok(Math.abs(created_at - Date.now() / 1000) < 60);
    assert.deepEqual(head, { ...same, ...repeated });
  }
});
