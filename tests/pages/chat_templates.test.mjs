// The chat page with a model without a chat template: it continues text, or uses a template that the user chooses, which is
// remembered with the model. With the package's engine and the built-in model without its template.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { before, test } from 'node:test';
import { templates } from '../../examples/chat/template_list.js';
import { assertAccessible } from '../support/accessible.mjs';
import { launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { useChat } from '../support/chat_page.mjs';
import { openReal, setTemperature, writePlainModel } from '../support/chat_real.mjs';
import { onBattery, untilKept } from '../support/chat_stub.mjs';
import { locate } from '../support/locate.mjs';
import { takePicture } from '../support/pictures.mjs';

const { skip, site, browser, url: siteUrl } = useChat('chat-templates');
/** @typedef {import('playwright-core').Page} Page */

const NAME = 'plain.gguf';

before(() => writePlainModel(resolve(site, NAME)));

/** @param {import('node:test').TestContext} t @param {string} [script] @returns {Promise<Page>} */
async function open(t, script = onBattery) {
  /** @type {string[]} */
  const problems = [];
  const url = `${siteUrl()}?model=${siteUrl()}${NAME}`;
  const page = await openReal(browser(), url, { problems, script });
  t.after(() => page.context().close());
  t.after(() => assert.deepEqual(problems, []));
  await page.locator('.template').waitFor();
  return page;
}

/** @param {Page} page @param {string} template @param {string} [source] */
async function choose(page, template, source) {
  await page.getByRole('button', { name: 'Choose a template' }).click();
  await page.selectOption('#template-dialog select', template);
  if (source !== undefined) await page.fill('#template-dialog textarea', source);
  await page.getByRole('button', { name: 'Use it' }).click();
}

/** @param {Page} page @param {(turns: any[]) => boolean} condition @returns {Promise<any[]>} in the order in which they were announced */
async function untilTurns(page, condition) {
  const inOrder = (/** @type {any[]} */ turns) => turns.sort((a, b) => a.created - b.created);
  const { turns } = await untilKept(page, (kept) => condition(inOrder(kept.turns)));
  return inOrder(turns);
}

const begun = 'There was once a fox who';

test('a model without a template continues the text; Stop, Continue and reload', {
  skip,
}, async (t) => {
  const page = await open(t);
  await setTemperature(page, 0);
  const expected = await page.evaluate(
    `engine.generate(${JSON.stringify(begun)}, { temperature: 0, maxTokens: 24 }).text()`,
  );
  await page.click('#open-settings');
  await page.fill('[name=maxTokens]', '8');
  await page.click('#settings-form [value=save]');
  await page.fill('#prompt', `${begun} `); // the trailing space is not a word
  await page.getByRole('button', { name: 'Generate' }).click();
  await page.locator('.continue').waitFor();
  const kept = await untilTurns(page, (turns) => turns.some(({ state }) => state === 'length'));
  assert.equal(kept[0].content, begun);
  assert.ok(kept[1].content !== '' && expected.startsWith(kept[1].content));
  await takePicture(page, 'light-continuing');
  await page.reload();
  await page.locator('.template').waitFor();
  await page.locator('.continue').click();
  const [, more] = await untilTurns(
    page,
    ([, { state, content }]) => state === 'length' && content.length > kept[1].content.length,
  );
  assert.ok(expected.startsWith(more.content), `${expected} begins with ${more.content}`);
  await page.fill('#prompt', 'Then');
  await page.keyboard.press('Enter');
  const turns = await untilTurns(page, (all) => all.length === 4 && all[3].state !== 'writing');
  const texts = turns.map(({ content }) => content);
  const prompt = await page.evaluate(
    `engine.applyTemplate(${JSON.stringify(
      texts
        .slice(0, 3)
        .map((content, index) => ({ role: index === 1 ? 'assistant' : 'user', content })),
    )})`,
  );
  assert.equal(prompt, `${texts[0]}${texts[1]} Then`);
});

test('the weights of a model without a template are loaded once', {
  skip,
}, async (t) => {
  const page = await open(t);
  const created = `created.filter(({ url, model, directoryOnly }) =>
    !directoryOnly && String(url ?? model).endsWith('${NAME}')).map(({ chatTemplate }) => typeof chatTemplate)`;
  assert.deepEqual(await page.evaluate(created), ['string']);
  await page.reload();
  await page.locator('.template').waitFor();
  assert.deepEqual(await page.evaluate(created), ['string']);
  assert.equal(await page.evaluate('created.some(({ directoryOnly }) => directoryOnly)'), false);
});

test('a template is chosen, and remembered with the model', { skip }, async (t) => {
  const page = await open(t);
  await choose(page, 'chatml');
  await page.locator('.template', { hasText: 'ChatML' }).waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await page.fill('#prompt', 'What is Wick?');
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant footer').waitFor();
  assert.match(await page.locator('.message.assistant .body').innerText(), /Wick/);
  await page.reload();
  await page.locator('.template', { hasText: 'ChatML' }).waitFor();
});

test('a template that fails is reported, and the previous one stays', {
  skip,
}, async (t) => {
  const page = await open(t);
  await page.getByRole('button', { name: 'Choose a template' }).click();
  await page.selectOption('#template-dialog select', 'own');
  await assertAccessible(page);
  await page.setViewportSize({ width: 390, height: 780 });
  await assertAccessible(page);
  await takePicture(page, 'light-template-phone');
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.locator('#template-dialog [value=cancel]').click();
  for (const source of [
    '{% if %}',
    "{{ raise_exception('no') }}",
    '{% for a in range(9999999) %}{% endfor %}',
  ]) {
    await choose(page, 'own', source);
    await page.locator('#template-dialog .problem:not([hidden])').waitFor();
    assert.notEqual(await page.locator('#template-dialog .problem').innerText(), '');
    await page.getByRole('button', { name: 'Cancel' }).last().click();
    assert.match(await page.locator('.template').innerText(), /continues your text/);
  }
  await choose(page, 'own', "{% for m in messages %}{{ m.content }}{{ '\\n' }}{% endfor %}");
  await page.locator('.template', { hasText: 'a custom template' }).waitFor();
  await page.reload();
  await page.locator('.template', { hasText: 'a custom template' }).waitFor();
});

/** The model has ChatML's end token, and no token for the start of a text. */
const rendered = {
  plain: 'Be brief.\n\nOne?Yes. Two?',
  chatml:
    '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n' +
    '<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n',
  llama3:
    '<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>' +
    '<|start_header_id|>user<|end_header_id|>\n\nOne?<|eot_id|>' +
    '<|start_header_id|>assistant<|end_header_id|>\n\nYes.<|eot_id|>' +
    '<|start_header_id|>user<|end_header_id|>\n\nTwo?<|eot_id|>' +
    '<|start_header_id|>assistant<|end_header_id|>\n\n',
  mistral: '[INST] Be brief.\n\nOne? [/INST] Yes.<|im_end|>[INST] Two? [/INST]',
  gemma:
    '<start_of_turn>user\nBe brief.\n\nOne?<end_of_turn>\n<start_of_turn>model\nYes.<end_of_turn>\n' +
    '<start_of_turn>user\nTwo?<end_of_turn>\n<start_of_turn>model\n',
  phi:
    '<|system|>\nBe brief.<|end|>\n<|user|>\nOne?<|end|>\n<|assistant|>\nYes.<|end|>\n' +
    '<|user|>\nTwo?<|end|>\n<|assistant|>\n',
  zephyr:
    '<|system|>\nBe brief.<|im_end|>\n<|user|>\nOne?<|im_end|>\n<|assistant|>\nYes.<|im_end|>\n' +
    '<|user|>\nTwo?<|im_end|>\n<|assistant|>\n',
  vicuna: 'Be brief.\n\nUSER: One?\nASSISTANT: Yes.<|im_end|>\nUSER: Two?\nASSISTANT:',
  alpaca:
    'Be brief.\n\n### Instruction:\nOne?\n\n### Response:\nYes.\n\n### Instruction:\nTwo?\n\n### Response:\n',
};

test('every template in the list renders a conversation, also with a system message', {
  skip,
}, async (t) => {
  const page = await open(t);
  const texts = await page.evaluate(`(async (all) => {
    const { createEngine } = await import(new URL('wick-llm/index.js', document.baseURI).href);
    const said = [
      { role: 'system', content: 'Be brief.' }, { role: 'user', content: 'One?' },
      { role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'Two?' },
    ];
    const texts = {};
    for (const { id, source } of all) {
      const made = await createEngine({ url: '${NAME}', chatTemplate: source });
      texts[id] = await made.applyTemplate(said);
      await made.close();
    }
    return texts;
  })(${JSON.stringify(templates)})`);
  assert.deepEqual(texts, rendered);
});

/** Runs in the page. */
const wholePass = `
  const until = async (condition) => {
    for (;;) {
      const value = condition();
      if (value) return value;
      await new Promise((settle) => setTimeout(settle, 50));
    }
  };
  const one = (selector) => document.querySelector(selector);
  await until(() => one('.template') && !one('#send').disabled);
  one('#prompt').value = ${JSON.stringify(begun)};
  one('#composer').requestSubmit();
  await until(() => one('.message.assistant footer'));
  return { says: one('.template').textContent, text: one('.message.assistant .body').textContent };`;

/** @param {{says: string, text: string}} found */
function assertPassed({ says, text }) {
  assert.match(says, /continues your text/);
  assert.match(text, /\w+ \w+/);
}

test('Firefox continues a text', { skip: locate('firefox').skip }, async (t) => {
  const firefox = await launchFirefox();
  t.after(() => firefox.close());
  const page = await firefox.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${siteUrl()}?model=${siteUrl()}${NAME}`);
  assertPassed(/** @type {any} */ (await page.evaluate(`(async () => { ${wholePass} })()`)));
});

test('so does WebKitGTK', { skip: locate('webkitDriver').skip }, async (t) => {
  const page = await launchWebKit();
  t.after(() => page.close());
  await page.goto(`${siteUrl()}?model=${siteUrl()}${NAME}`);
  assertPassed(await page.evaluate(wholePass));
});
