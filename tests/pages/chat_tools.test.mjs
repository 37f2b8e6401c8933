// Tools in the chat page: their results, enabling them for a conversation, and the parts of each call that are shown and
// stored. In Chromium, with an engine whose output the test controls.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { calculate } from '../../examples/chat/calculator.js';
import { messagesOfRounds, roundsFrom } from '../../examples/chat/tool_calls.js';
import { runTool, tools } from '../../examples/chat/tools.js';
import { useChat } from '../support/chat_page.mjs';
import { openReal } from '../support/chat_real.mjs';
import { ask, openStub, untilKept } from '../support/chat_stub.mjs';
import { toolTemplate } from '../support/client_requests.mjs';
import { isFull } from '../support/level.mjs';
import { untilTrue, waitForPage } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, openPage, browser, url } = useChat('chat-tools');
/** @typedef {import('playwright-core').Page} Page */

describe('the calculator', () => {
  /** @type {[text: string, value: number][]} */
  const values = [
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['2^3^2', 512],
    ['-2^2', -4],
    ['2 ** -1', 0.5],
    ['0.1 + 0.2', 0.3],
    ['10 % 4 - -1', 3],
    ['17 × 23 ÷ 2', 195.5],
    ['1.5e3 / .5', 3000],
    ['8 - 3 - 2', 3],
    ['9007199254740991', 9007199254740991],
    ['94906265 * 94906265', 9007199136250225],
  ];
  for (const [text, value] of values) test(text, () => assert.equal(calculate(text), value));
  const wrong = ['', '1 +', '(1', '1)', '2 3', 'x', '1/0', '9^999', 'alert(1)', '1..2', '1 + $'];
  for (const text of wrong)
    test(`not ${JSON.stringify(text)}`, () => assert.throws(() => calculate(text), Error));
  test('an expression that is too deep is rejected and does not overflow the stack', () => {
    for (const deep of ['('.repeat(1e5), '-'.repeat(1e5), '2^'.repeat(1e5)])
      assert.throws(() => calculate(deep), /too deep/);
  });
});

test('a tool reports why it failed, for any arguments from the model', async () => {
  const day = await runTool('clock', '{"timeZone":"Asia/Tokyo"}');
  assert.match(day, /\d{4}.*(GMT\+9|JST)/);
  assert.match(await runTool('clock', '{}'), /\d{4}/);
  /** @type {[name: string, json: string, says: RegExp][]} */
  const cases = [
    ['clock', '{"timeZone":"Mars/Olympus"}', /^Error: .*Mars/],
    ['calculator', '{"expression":"1/0"}', /^Error: it has no value/],
    ['calculator', '{"expression":5}', /^Error: expression must be a string/],
    ['calculator', `{"expression":"${'1+'.repeat(200)}1"}`, /^Error: expression must have at most/],
    ['calculator', '{"expr', /^Error: /],
    ['calculator', '{"expression":"123456789 * 987654321"}', /^about 121932631112635\d*$/],
    ['calculator', '{"expression":"2^100"}', /^about 1\.26765060022823e\+30$/],
    ['calculator', '{"expression":"3 * 5"}', /^15$/],
    ['calculator', 'null', /^Error: arguments must be an object/],
    ['toString', '{}', /^Error: unknown tool toString/],
    ['__proto__', '{}', /^Error: unknown tool/],
  ];
  for (const [name, json, says] of cases) assert.match(await runTool(name, json), says);
  assert.deepEqual(Object.keys(tools), ['clock', 'calculator']);
});

test('calls in an imported conversation are imported unchanged or not at all', () => {
  const call = { id: 'a', name: 'n', arguments: '{}' };
  const rounds = [{ content: '', calls: [{ ...call, result: 'r', other: 1 }, call] }];
  const taken = roundsFrom(rounds);
  assert.deepEqual(taken, [{ content: '', calls: [{ ...call, result: 'r' }, call] }]);
  assert.match(String(messagesOfRounds(taken)[2].content), /^Error: it was not run/);
  const bad = [
    undefined,
    [],
    {},
    [null],
    [{ content: '', calls: [] }],
    [{ content: 1, calls: [call] }],
  ];
  for (const one of [...bad, [{ content: '', calls: [{ ...call, name: 5 }] }], [{ content: '' }]])
    assert.equal(roundsFrom(one), undefined);
});

/** @param {Page} page */
async function allowTools(page) {
  await page.click('#open-settings');
  await page.getByLabel('Let the model use a clock and a calculator').check();
  await page.getByRole('button', { name: 'Done' }).click();
}

/** Makes the model call a tool. @param {Page} page @param {string} name @param {string} json */
const call = (page, name, json) =>
  page.evaluate(`call(${JSON.stringify(name)}, ${JSON.stringify(json)}); end('tool_calls')`);

/** @param {Page} page */
const cards = (page) => page.locator('.call').allInnerTexts();

test('a conversation has tools if the user enables them; each call is shown, stored and sent again', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await ask(page, 'No tools yet');
  await page.evaluate("say('None.'); end()");
  await page.locator('#log[aria-busy=false] .message.assistant footer').waitFor();
  await allowTools(page);
  await ask(page, 'What is 17 * 23?');
  await page.evaluate("say('Let me compute.')");
  await call(page, 'calculator', '{"expression":"17 * 23"}');
  await page.locator('.call-result', { hasText: '391' }).waitFor();
  await untilTrue(page, 'asked.length === 3');
  await page.evaluate("say('It is 391.'); end()");
  await page.locator('#log[aria-busy=false]').waitFor();
  assert.deepEqual(await cards(page), ['calculator 17 * 23\n\n391']);
  assert.equal(await page.locator('.calls .said').innerText(), 'Let me compute.');
  assert.equal(await page.locator('.message.assistant .body').last().innerText(), 'It is 391.');
  /** @type {any[]} */
  const bodies = await page.evaluate('bodies');
  assert.deepEqual(
    bodies.map(({ tools: reports }) => reports?.length),
    [undefined, 2, 2],
  );
  const [called, result] = bodies[2].messages.slice(-2);
  assert.equal(called.content, 'Let me compute.');
  assert.equal(called.tool_calls[0].function.name, 'calculator');
  assert.deepEqual(result, {
    ...{ role: 'tool', tool_call_id: 'c1', name: 'calculator', content: '391' },
  });
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    await takePicture(page, `chat-tools-${colorScheme}`);
  }
  await page.setViewportSize({ width: 390, height: 780 });
  await takePicture(page, 'chat-tools-phone');
  await page.setViewportSize({ width: 1280, height: 720 });
  await untilKept(page, ({ turns }) => turns.some((one) => one.rounds && one.state === 'whole'));
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  assert.deepEqual(await cards(page), ['calculator 17 * 23\n\n391']);
  await ask(page, 'And then?');
  await untilTrue(page, 'bodies.length === 1');
  const again = /** @type {any} */ (await page.evaluate('bodies[0]'));
  assert.deepEqual(
    again.messages.map((/** @type {any} */ { role }) => role),
    ['user', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user'],
  );
  assert.equal(again.tools.length, 2, 'the setting belongs to the conversation');
});

test('if the model does not know how to call tools, the switch says so', { skip }, async (t) => {
  for (const [script, isTold] of /** @type {[string, boolean][]} */ ([
    ['', true],
    [`globalThis.engineOptions = ${JSON.stringify({ chatTemplate: toolTemplate })};`, false],
  ])) {
    const page = await openReal(browser(), url(), { script });
    t.after(() => page.context().close());
    await page.evaluate(`globalThis.counted = 0;
      const count = engine.countTokens.bind(engine);
      engine.countTokens = (...input) => count(...input).finally(() => void counted++);`);
    await page.click('#open-settings');
    await untilTrue(page, 'counted === 2');
    assert.equal(await page.locator('#tools-hint').isVisible(), isTold);
  }
});

test('calls of the model are always shown as text, and failures are reported', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await allowTools(page);
  await ask(page, 'Do something');
  await call(page, '<img src=x onerror=alert(1)>', '{"a": "<b>bold</b>"}');
  const card = page.locator('.call');
  await card.getByText('unknown tool').waitFor();
  assert.equal(await card.locator('img, b').count(), 0);
  assert.match(await card.innerText(), /<img src=x onerror=alert\(1\)> <b>bold<\/b>/);
  await untilTrue(page, 'bodies.length === 2');
  await page.evaluate("say('No.'); end()");
  await page.locator('#log[aria-busy=false]').waitFor();
});

/** Malicious or broken output of a model. @type {[name: string, json: string][]} */
const hostile = [
  ['__proto__', '{}'],
  ['constructor', '{"prototype":{"isHarmed":true}}'],
  ['hasOwnProperty', '{}'],
  ['', '{}'],
  ['calculator'.repeat(10_000), '{}'],
  ['calculator', '{"__proto__":{"expression":"1","isHarmed":true}}'],
  ['calculator', '{"constructor":{"prototype":{"isHarmed":true}},"expression":"3 * 5"}'],
  ['calculator', '{"expression":{"toString":"x"}}'],
  ['calculator', '{"expression":["1"]}'],
  ['calculator', '[]'],
  ['calculator', '"1 + 1"'],
  ['calculator', ''],
  ['calculator', `{"expression":${'['.repeat(200_000)}`],
  ['calculator', `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)},"expression":"4 * 5"}`],
  ['calculator', `{"expression":"${'9'.repeat(300_000)}"}`],
  ['clock', '{"timeZone":"<script>globalThis.isHarmed = true</script>"}'],
  ['clock', '{"timeZone":{"length":1}}'],
  ['clock', '{"timeZone":"\\u202eEurope/Oslo\\u0000"}'],
  ['<script>globalThis.isHarmed = true</script>', '{"a":"<img src=x onerror=isHarmed=true>"}'],
];

test('malicious calls are shown as text and reported, have no effect, and are kept after a reload', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t, { options: { viewport: { width: 390, height: 780 } } });
  await allowTools(page);
  await ask(page, 'Do your worst');
  const began = Date.now();
  // in two replies, because a reply has at most 16 calls
  for (const [index, some] of [hostile.slice(0, 9), hostile.slice(9)].entries()) {
    await page.evaluate((calls) => {
      const stub = /** @type {any} */ (globalThis);
      for (const [at, [name, json]] of calls.entries()) stub.call(name, json, `c${at}`, at);
      stub.end('tool_calls');
    }, some);
    await untilTrue(page, `bodies.length === ${index + 2}`);
  }
  await page.evaluate("say('I tried.'); end()");
  await page.locator('#log[aria-busy=false]').waitFor();
  const tookMs = Date.now() - began;
  assert.ok(tookMs < 20_000, `${tookMs} ms`);
  const messages = /** @type {any[]} */ (await page.evaluate('bodies.at(-1).messages'));
  const results = messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []));
  assert.equal(results.length, hostile.length);
  for (const [index, result] of results.entries()) {
    const [name, json] = hostile[index];
    const isRight = /3 \* 5|4 \* 5/.test(json);
    assert.match(result, isRight ? /^(15|20)$/ : /^Error: /, `${name} ${json.slice(0, 60)}`);
    assert.ok(result.length < 1000, `${name}: the result has ${result.length} characters`);
  }
  const check = async () => {
    const found = await page.evaluate(() => ({
      isHarmed: 'isHarmed' in globalThis || 'isHarmed' in {},
      elements: document.querySelectorAll('.calls script, .calls img').length,
      isWide: document.documentElement.scrollWidth > innerWidth,
      cards: document.querySelectorAll('.call').length,
      letters: document.querySelector('.calls')?.textContent?.length ?? 0,
    }));
    assert.deepEqual(
      { ...found, letters: 0 },
      {
        ...{ isHarmed: false, elements: 0, isWide: false, cards: hostile.length, letters: 0 },
      },
    );
    assert.ok(found.letters < 50_000, `${found.letters} characters are shown`);
  };
  await check();
  await takePicture(page, 'chat-tools-hostile');
  await untilKept(page, ({ turns }) => turns.some((one) => one.rounds && one.state === 'whole'));
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await check();
  await ask(page, 'And then?'); // earlier calls are sent to the model again, within limits
  await untilTrue(page, 'bodies.length === 1');
  const reports = /** @type {number} */ (await page.evaluate('JSON.stringify(bodies[0]).length'));
  assert.ok(reports > 1000);
});

test('a page that closes after a call continues with its result', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(t);
  await allowTools(page);
  await ask(page, 'What is 2 + 2?');
  await call(page, 'calculator', '{"expression":"2 + 2"}');
  await page.locator('.call-result', { hasText: '4' }).waitFor();
  await untilKept(page, ({ turns }) => turns.some((one) => one.rounds?.[0].calls[0].result));
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  await page.locator('.continue').click();
  await untilTrue(page, 'bodies.length === 1');
  const last = await page.evaluate('bodies[0].messages.at(-1)');
  assert.deepEqual(last, { role: 'tool', tool_call_id: 'c1', name: 'calculator', content: '4' });
  await page.evaluate("say('Four.'); end()");
  await page.locator('.message.assistant .body', { hasText: 'Four.' }).waitFor();
  await page.locator('#log[aria-busy=false]').waitFor();
  assert.equal((await cards(page)).length, 1);
});

test('a model that keeps calling tools finally answers without them; Stop keeps the calls', {
  skip,
}, async (t) => {
  const page = await openPage(t);
  await allowTools(page);
  await ask(page, 'Count');
  for (let round = 1; round <= 8; round++) {
    await call(page, 'calculator', `{"expression":"${round}"}`);
    await untilTrue(page, `bodies.length === ${round + 1}`);
  }
  const choices = await page.evaluate('bodies.map((one) => one.tool_choice)');
  assert.deepEqual(choices, [...Array(8).fill(undefined), 'none']);
  await page.evaluate("say('Half')");
  await page.locator('.message.assistant .body', { hasText: 'Half' }).waitFor();
  await page.click('#stop');
  await page.locator('.continue').waitFor();
  assert.equal((await cards(page)).length, 8);
  await page.locator('.continue').click();
  await untilTrue(page, 'bodies.length === 10');
  const body = /** @type {any} */ (await page.evaluate('bodies[9]'));
  assert.equal(body.tools, undefined);
  assert.deepEqual(body.messages.at(-1), { role: 'assistant', content: 'Half', prefix: true });
  await page.evaluate("say(' done.'); end()");
  await page.locator('.message.assistant .body', { hasText: 'Half done.' }).waitFor();
});

test('Stop does not wait for a tool, and calls that were not run say so', { skip }, async (t) => {
  const page = await openPage(t);
  await page.route('**/calculator-*.js', () => {}); // it never arrives
  await allowTools(page);
  await ask(page, 'What is 2 + 2, and when?');
  await page.evaluate(`call('calculator', '{"expression":"2 + 2"}'); call('clock', '{}', 'c2', 1)`);
  await page.evaluate("end('tool_calls')");
  await page.locator('.call-result', { hasText: 'Running' }).first().waitFor();
  await page.click('#stop');
  await page.locator('.continue').waitFor();
  const results = page.locator('.call-result');
  assert.deepEqual(await results.allInnerTexts(), ['Not run', 'Not run']);
  await untilKept(page, ({ turns }) => turns.some(({ state }) => state === 'stopped'));
  await page.reload();
  await page.waitForSelector('#send:not([disabled])');
  assert.deepEqual(await results.allInnerTexts(), ['Not run', 'Not run']);
  await page.locator('.continue').click();
  await untilTrue(page, 'bodies.length === 1');
  assert.match(await page.evaluate('bodies[0].messages.at(-1).content'), /^Error: it was not run/);
});

test('another tab shows the calls', { skip: skip || !isFull }, async (t) => {
  const page = await openPage(t);
  await allowTools(page);
  await ask(page, 'What is 2 + 2?');
  await untilKept(page, ({ turns }) => turns.length === 1);
  const other = await openStub(page.context(), page.url());
  await call(page, 'calculator', '{"expression":"2 + 2"}');
  await other.locator('.call-result', { hasText: '4' }).waitFor();
  await untilTrue(page, 'bodies.length === 2');
  await page.evaluate("say('Four.'); end()");
  await other.locator('.message.assistant .body', { hasText: 'Four.' }).waitFor();
  await waitForPage(
    async () => isDeepStrictEqual(await cards(other), await cards(page)),
    'the same cards',
  );
});
