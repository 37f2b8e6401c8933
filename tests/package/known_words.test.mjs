// `wick-llm-demo-model/words.js` constrains the demo model's answers to known words. Tests its output
// for invented streams, word by word, and for the model itself with its grammar.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createEngine } from 'wick-llm';
import { modelUrl } from 'wick-llm-demo-model';
import {
  answerInKnownWords,
  held,
  readWords,
  wordGrammar,
  wordsUrl,
} from 'wick-llm-demo-model/words.js';

const text = readFileSync(wordsUrl, 'utf8');
const known = readWords(text);

/** @param {string} content */
const user = (content) => ({ role: /** @type {const} */ ('user'), content });

/** @param {string} said @param {string | null} [end] @param {number} [index] @returns {AsyncGenerator<any>} pieces of one or two letters */
async function* stream(said, end = 'stop', index = 0) {
  const pieces = said.match(/.{1,2}/gsu) ?? [];
  for (const content of pieces)
    yield { choices: [{ index, delta: { content }, finish_reason: null }] };
  yield { choices: [{ index, delta: {}, finish_reason: end }], timings: { decodeMs: 1 } };
}

/**
 * @param {string} said the model's answer
 * @param {{question?: string, messages?: any[], again?: string | Error, prefix?: string, end?: string, pieces?: AsyncIterable<any>, n?: number}} [how] `again`: its answer with the grammar
 */
async function hear(
  said,
  { question = 'hi', again, prefix, end = 'stop', pieces, n, messages: given } = {},
) {
  /** @type {any[]} */
  const asked = [];
  const ask = async (
    /** @type {import("wick-llm").ChatCompletionRequest & {stream?: false}} */ body,
  ) => {
    asked.push(body);
    if (again instanceof Error) throw again;
    const message = { content: again ?? 'Zorble.' };
    return /** @type {any} */ ({ choices: [{ message, finish_reason: 'stop' }], timings: {} });
  };
  const begun = { role: /** @type {const} */ ('assistant'), content: prefix ?? '', prefix: true };
  const messages = given ?? [user(question), ...(prefix ? [begun] : [])];
  const shown = Array.from({ length: n ?? 1 }, () => '');
  /** @type {string[]} */
  const ways = [];
  const all = pieces ?? stream(said, end);
  for await (const chunk of held(all, { messages, n, stream: true }, known, ask)) {
    for (const { index, delta } of chunk.choices) shown[index] += delta.content ?? '';
    if (chunk.held) ways.push(chunk.held);
  }
  return { shown: shown[0], all: shown, ways, asked };
}

test('the word list is parsed; anything else, or an incomplete list, is rejected', () => {
  assert.ok(known.size > 1000);
  assert.equal(known.get('createengine'), 'createEngine');
  const hostile = [
    '',
    '0 words\n',
    '<!doctype html><title>404</title>',
    text.slice(0, -9),
    '1 words\n<b>',
  ];
  hostile.push(
    '1 words\na b',
    '1 words\n"a',
    '2 words\nfox',
    `1 words\n${'a'.repeat(41)}`,
    '\0\0\0',
  );
  hostile.push(`9999999 words\n${'fox\n'.repeat(9_999_999)}`);
  for (const one of hostile) assert.throws(() => readWords(one), TypeError, one.slice(0, 40));
});

test('known words, digits and punctuation pass unchanged', async () => {
  for (const said of [
    'Hello! How can I help you?',
    '47 + 38 = 70 + 15 = 85.',
    'HELLO. hello.\nHello — “hello” … 3.14 😅',
    '["cat", "dog"]',
    "I don't know it. The cat's name, q8_0.",
    '```js\nconst zorble = florpify();\n```',
  ]) {
    const { shown, ways, asked } = await hear(said, { question: "the cat's, don't" });
    assert.deepEqual([shown, ways, asked.length], [said, [], 0]);
  }
});

test('words from the conversation pass, in upper or lower case', async () => {
  const long = 'z'.repeat(3000);
  const many = Array.from(
    { length: 10_000 },
    (_, index) => `q${index.toString(36).replace(/\d/g, (digit) => 'ghijklmnop'[+digit])}`,
  );
  for (const [question, said] of [
    ["I am O'Neill", "Your name is O'Neill."],
    ['I am O’NEILL', "Your name is O'Neill."],
    ['say Jean-Zorble', 'Jean-Zorble'],
    ['zorbles', 'ZORBLES zorbles'],
    ['the zorble', "The zorbles and the zorble's."],
    [`${long}`, `The word is ${long}.`],
    [many.join(' '), `The word is ${many.at(-1)}.`],
    ['Cafe\u0301', 'The caf\u00e9.'],
    ['zorble7', 'zorble 7zorble8'],
  ]) {
    const { shown, ways } = await hear(said, { question });
    assert.deepEqual([shown.slice(0, 80), ways], [said.slice(0, 80), []]);
  }
});

test('content parts are joined as in the prompt, and an answer without content is not a prefix', async () => {
  const part = (/** @type {string} */ text) => ({ type: 'text', text });
  const parts = [
    { role: 'user', content: [part('say:\nzebraq\t"florp"'), part('zor'), part('ble')] },
  ];
  const { shown, ways } = await hear('zebraq florp. The zebraq.', { messages: parts });
  assert.deepEqual([shown, ways], ['zebraq florp. The zebraq.', []]);
  assert.equal((await hear('nzebraq', { messages: parts })).shown, 'Zorble.');
  const begun = [
    user('hi'),
    { role: 'assistant', content: [part('The'), part(' zo')], prefix: true },
  ];
  const held = await hear('rble is a florp.', { messages: begun });
  assert.equal(held.asked[0].messages.at(-1).content, 'The zo');
  const whole = [user('hi'), { role: 'assistant', content: 'The zo' }];
  const next = await hear('rble is a cat.', { messages: whole });
  assert.deepEqual([next.shown, next.asked[0].messages], ['I do not know that.', whole]);
});

test('an invented word is not shown, whatever its characters', async () => {
  for (const said of [
    'The zorble is here.',
    'ZORBLE',
    'The word is zorble7.',
    'The word is 7zorble.',
    'cat-zorble',
    "O'Zorble",
    'The \u0441at.', // a Cyrillic letter
    'The \uff43at.', // a full-width letter
    'The \u24d2at.', // a circled letter
    'The cat\u0301.', // an accent
    'The \u{1d41c}at.', // a mathematical letter
    "zorble's",
  ]) {
    const { shown, ways } = await hear(said);
    assert.match(shown, /^I DO NOT KNOW THAT\.$|^I do not know that\.$/, said);
    assert.deepEqual(ways, ['refused']);
  }
});

test('a sentence is shown once it is complete, and an invented word removes only its sentence', async () => {
  /** @type {string[]} */
  const pieces = [];
  const all = held(
    stream('Hello! I am here. The zorble is a cat.'),
    { messages: [user('hi')] },
    known,
    async () => {
      throw new Error('no grammar');
    },
  );
  for await (const { choices } of all)
    if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
  assert.deepEqual(pieces, ['Hello!', ' I am here.', ' I do not know that.']);
});

test('a word corrected by the grammar is accepted; a known word in place of a different one is not', async () => {
  const right = await hear('The word is zorb.', {
    question: 'zorble',
    again: 'The word is zorble.',
  });
  assert.deepEqual([right.shown, right.ways], ['The word is zorble.', ['again']]);
  const wrong = await hear('The word is zorb.', { question: 'zorble', again: 'The word is cat.' });
  assert.deepEqual([wrong.shown, wrong.ways], ['I do not know that.', ['refused']]);
  const twice = await hear('The word is zorb.', {
    question: 'zorble',
    again: 'The word is zorble zorble.',
  });
  assert.equal(twice.shown, 'I do not know that.');
  const still = await hear('The word is zorb.', { question: 'zorble', again: 'The word is zorb.' });
  assert.equal(still.shown, 'I do not know that.');
  const tale = await hear('Once there was a cat. The zorb ran.', { again: ' The cat ran away.' });
  assert.equal(tale.shown, 'Once there was a cat. The cat ran away.');
});

test('the request is repeated once, after the shown text, with its settings', async () => {
  const { asked } = await hear('Hello! The zorb.', { question: 'zorble' });
  assert.equal(asked.length, 1);
  assert.deepEqual(asked[0].messages.at(-1), {
    role: 'assistant',
    content: 'Hello!',
    prefix: true,
  });
  assert.match(asked[0].grammar, /^root ::=/);
  assert.deepEqual(
    [asked[0].stream, asked[0].n, asked[0].session],
    [undefined, undefined, undefined],
  );
});

test('the repeated part is at most as long as the rest of the answer', async () => {
  for (const [max_tokens, least, most] of [
    [20, 15, 17],
    [3, 1, 1],
    [undefined, 500, 512],
  ]) {
    const body = { messages: [user('hi')], max_tokens };
    let asked = 0;
    const ask = async (/** @type {any} */ again) => {
      asked = again.max_tokens;
      throw new Error('no');
    };
    for await (const _ of held(stream('Hello! The zorble.'), body, known, ask));
    assert.ok(asked >= Number(least) && asked <= Number(most), `${max_tokens}: ${asked}`);
  }
});

test('a repeated answer ends with the usage of the repetition, if usage is requested', async () => {
  const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
  for (const [include_usage, content] of [
    [true, 'The zorble.'],
    [true, 'Flip.'],
    [false, 'Flip.'],
  ]) {
    const body = { messages: [user('zorble')], stream_options: { include_usage } };
    const ask = async () =>
      /** @type {any} */ ({ choices: [{ message: { content }, finish_reason: 'stop' }], usage });
    const all = [];
    for await (const chunk of held(stream('The zorb.'), /** @type {any} */ (body), known, ask))
      all.push(chunk);
    const counted = all.filter((chunk) => chunk.usage);
    assert.equal(counted.length, include_usage ? 1 : 0);
    if (include_usage) assert.deepEqual([all.at(-1)?.usage, all.at(-1)?.choices], [usage, []]);
  }
});

test('a sentence without an end is checked once, not again for each piece', async () => {
  const said = '- the cat is here\n'.repeat(2000);
  const begin = process.cpuUsage(); // not elapsed time, which depends on other processes
  assert.equal((await hear(said)).shown, said);
  assert.ok(process.cpuUsage(begin).user < 4e6);
  const late = await hear(`${said}- the zorble`);
  assert.equal(late.shown, 'I do not know that.');
});

test('an answer is passed on unchanged for any size of pieces', async () => {
  const said =
    'Hello!) I am... 3.14 a "cat." The cat! ```js\nflorp\n``` Hello.\n\n- cat.\n\ud83d\ude05 Hello?';
  for (let size = 1; size < 12; size++) {
    const pieces = said.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    async function* all() {
      for (const content of pieces)
        yield { choices: [{ index: 0, delta: { content }, finish_reason: null }] };
      yield { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
    }
    assert.deepEqual((await hear('', { pieces: all() })).shown, said);
    const parts = [...said.replace('florp', 'cat').replaceAll('```', ' '), ' zorble'];
    async function* wrong() {
      for (const content of parts)
        yield { choices: [{ index: 0, delta: { content }, finish_reason: null }] };
      yield { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
    }
    assert.match((await hear('', { pieces: wrong() })).shown, /Hello\? I do not know that\.$/);
  }
});

test('JSON is replaced by a refusal in JSON', async () => {
  const { shown } = await hear('{"name": "Zorb"}');
  assert.deepEqual(JSON.parse(shown), { answer: 'I do not know that.' });
  const list = await hear('["Zorb"]');
  assert.deepEqual(JSON.parse(list.shown), { answer: 'I do not know that.' });
  const link = await hear('[zorble](https://zorble.dev)');
  assert.equal(link.shown, 'I do not know that.');
});

test('a word that the user began may be completed; the rest is checked', async () => {
  const begun = await hear('rble is a cat.', { prefix: 'The zo' });
  assert.deepEqual([begun.shown, begun.ways], ['rble is a cat.', []]);
  const next = await hear(' is a florp.', { prefix: 'The cat', again: ' is a cat.' });
  assert.deepEqual([next.shown, next.ways], [' is a cat.', ['again']]);
  assert.equal(next.asked[0].messages.length, 2);
});

test('a truncated answer may end within a known word, but not within an unknown one', async () => {
  assert.equal((await hear('The larg', { end: 'length' })).shown, 'The larg');
  assert.equal((await hear('The zorb', { end: 'length' })).shown, 'I do not know that.');
});

test('each of several answers is checked separately', async () => {
  async function* both() {
    yield* stream('The zorble.', 'stop', 0);
    yield* stream('Hello! I am here.', 'stop', 1);
  }
  const { all, ways } = await hear('', { pieces: both(), n: 2 });
  assert.deepEqual(all, ['I do not know that.', 'Hello! I am here.']);
  assert.deepEqual(ways, ['refused']);
});

test('a stopped answer keeps its complete words; failures are reported', async () => {
  async function* broken() {
    yield { choices: [{ index: 0, delta: { content: 'The cat is he' }, finish_reason: null }] };
    throw new DOMException('stopped', 'AbortError');
  }
  let shown = '';
  const all = held(/** @type {any} */ (broken()), { messages: [user('hi')] }, known, async () =>
    assert.fail(),
  );
  await assert.rejects(async () => {
    for await (const { choices } of all) shown += choices[0].delta.content;
  }, /stopped/);
  assert.equal(shown, 'The cat is ');
  const stopped = new DOMException('stopped', 'AbortError');
  await assert.rejects(hear('The zorble.', { again: stopped }), /stopped/);
});

test('the demo model', async (t) => {
  const engine = await createEngine({ url: modelUrl, threads: 1 });
  t.after(() => engine.close());
  const ask = async (
    /** @type {import("wick-llm").ChatCompletionRequest & {stream?: false}} */ body,
  ) =>
    (await engine.chat.completions.create({ temperature: 0, max_tokens: 60, ...body })).choices[0]
      .message.content;

  await t.test(
    'a grammar with ten thousand words, some of them long, is compiled and enforced',
    async () => {
      const many = Array.from(
        { length: 10_000 },
        (_, index) => `zo${index.toString(36).replace(/\d/g, (digit) => 'ghijklmnop'[+digit])}`,
      );
      for (const words of [
        [...known.values(), ...many],
        [...known.values(), 'z'.repeat(3000)],
        ['hello', 'wick', "o'neill"],
      ]) {
        const said = await ask({ messages: [user('hi')], grammar: wordGrammar(words) });
        const small = new Set(words.map((one) => one.toLowerCase()));
        for (const [word] of said.matchAll(/[a-z']+/gi))
          assert.ok(small.has(word.toLowerCase()), said);
      }
    },
  );

  await t.test(
    'a word that it miscopies is corrected, and an answer without such a word is unchanged',
    async () => {
      const system = {
        role: /** @type {const} */ ('system'),
        content: 'You are Wick, a small and friendly assistant.',
      };
      for (const question of [
        'hi',
        'Make a JSON array with saita, Luis, blng.',
        'Tell me a story about a zorblax.',
        'WHICH CITY IS THE CAPITAL OF VIETNAM',
      ]) {
        const body = { messages: [system, user(question)], temperature: 0, max_tokens: 200 };
        let shown = '';
        let isHeld = false;
        for await (const { choices, held: how } of answerInKnownWords(engine, body, known)) {
          shown += choices.map(({ delta }) => delta.content ?? '').join('');
          isHeld ||= how !== undefined;
        }
        if (!isHeld) assert.equal(shown, await ask(body));
        const reports = question.toLowerCase();
        for (const [word] of shown.matchAll(/\p{L}+/gu))
          assert.ok(
            known.has(word.toLowerCase()) || reports.includes(word.toLowerCase().replace(/s$/, '')),
            `${word} in ${shown}`,
          );
      }
    },
  );
});
