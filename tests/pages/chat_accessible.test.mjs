// Accessibility of the chat page: axe-core finds no violations of WCAG 2.1 A and AA in any state of the page, with the
// light and dark themes, on a desktop and on a phone. In Chromium, with a fake engine.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertAccessible } from '../support/accessible.mjs';
import { useChat } from '../support/chat_page.mjs';
import { ask, chooseRow, lastAnswer, talk } from '../support/chat_stub.mjs';
import { untilTrue } from '../support/package.mjs';
import { chooseInMenu, openDeveloper } from '../support/page_menu.mjs';

const { skip, openPage } = useChat('chat-accessible');
/** @typedef {import('playwright-core').Page} Page */

const answer = `Some **words** with \`code\`, a [link](https://example.org/), $x^2$:

\`\`\`js
const long = ${"'a very long line of text '+".repeat(8)} 1; // a comment
\`\`\`

| Name ${'| A column '.repeat(15)}|
|---${'|---'.repeat(30)}|
| one ${'| a_value_in_one_word '.repeat(15)}|

$$${'x + '.repeat(60)} x$$

![A fox](https://example.org/fox.png)

1. First
2. Second

> quoted`;

const leave = (/** @type {Page} */ page) => page.keyboard.press('Escape');

/** @typedef {Record<string, (page: Page) => Promise<unknown>>} Walk */

/** Menus, dialogs and panels over a conversation. Each state begins in the previous one. @type {Walk} */
const opened = {
  'a conversation': async () => {},
  'the menu of an answer': async (page) => {
    await lastAnswer(page).locator('.open-menu').click();
    await lastAnswer(page).locator('.menu').waitFor();
  },
  'a reworded question': async (page) => {
    await lastAnswer(page).locator('.open-menu').click();
    await page.locator('.message.user').getByRole('button', { name: 'Edit' }).first().click();
    await page.locator('.edit textarea').waitFor();
  },
  'the words of an answer': async (page) => {
    await leave(page);
    await chooseRow(lastAnswer(page), '.open-words');
    await page.locator('.words-text span').first().waitFor();
  },
  'the shelf of books': async (page) => {
    await chooseRow(lastAnswer(page), '.open-words'); // closes the alternatives
    await chooseInMenu(page, '#open-books');
    await page.locator('#books-dialog summary', { hasText: 'Your key' }).click();
    await page.locator('#book-file').setInputFiles({
      name: 'a.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('word '.repeat(5000)),
    });
    await page.getByText(/tokens too long/).waitFor();
  },
  'the picker, and the stored models': async (page) => {
    await leave(page);
    await page.evaluate(
      `localStorage.setItem('stub-kept', JSON.stringify(['https://example.org/a-model.gguf']))`,
    );
    await page.click('#choose-model');
    await page.locator('#kept-models li').waitFor();
  },
  'the settings': async (page) => {
    await leave(page);
    await page.click('#open-settings');
    await page.locator('#settings-dialog[open]').waitFor();
  },
  'the list of keys': async (page) => {
    await leave(page);
    await chooseInMenu(page, '#open-shortcuts');
    await page.locator('#shortcuts-dialog').waitFor();
  },
  'a search that finds': async (page) => {
    await leave(page);
    await page.keyboard.press('Control+k');
    await page.fill('#search', 'quoted');
    await page.locator('#conversation-list mark').first().waitFor();
  },
  'a search that finds nothing': async (page) => {
    await page.fill('#search', 'zebra');
    await untilTrue(page, "document.querySelector('#conversation-list').children.length === 0");
  },
  'the list of conversations': async (page) => {
    await page.fill('#search', '');
    await page.getByRole('button', { name: 'Actions for A first question' }).click();
    await page.locator('.actions').waitFor();
  },
  'what was deleted': async (page) => {
    await page.locator('.actions').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.locator('#deleted summary').click();
    await page.locator('#deleted-list li').waitFor();
  },
};

/** An answer while it is generated, and the ways in which it ends. @type {Walk} */
const written = {
  'an answer that begins': (page) => ask(page, 'A question'),
  'an answer that is being written': async (page) => {
    await page.evaluate("think('Let me see.'); say('Half an')");
    await page.getByText('Half an', { exact: true }).waitFor();
  },
  'thoughts, unfolded': async (page) => {
    await page.evaluate("say(' answer.'); end()");
    await page.locator('#log[aria-busy=false]').waitFor();
    await page.locator('.reasoning summary').last().click();
  },
  'an answer that stopped': async (page) => {
    await ask(page, 'Another question');
    await page.evaluate("say('Half an'); end('length')");
    await page.locator('.continue').waitFor();
  },
  'calls of tools': async (page) => {
    await page.click('#open-settings');
    await page.locator('[name=tools]').check();
    await page.getByRole('button', { name: 'Done' }).click();
    await ask(page, 'What is 1 + 1?');
    await page.evaluate(`call('calculator', '{"expression":"1 + 1"}'); end('tool_calls')`);
    await page.locator('.call-result', { hasText: '2' }).waitFor();
    await page.evaluate("say('Two.'); end()");
    await page.locator('#log[aria-busy=false]').waitFor();
  },
  'a problem': async (page) => {
    await ask(page, 'A last question');
    await page.evaluate("fail('OUT_OF_MEMORY')");
    await page.locator('#problem:not([hidden])').waitFor();
  },
  'a new conversation': (page) => page.click('#new-chat'),
};

/** Changes of a conversation. @type {Walk} */
const changed = {
  'variants side by side': async (page) => {
    await chooseRow(lastAnswer(page), '.compare');
    await page.evaluate("say('One.'); end()");
    await page.locator('.choose').first().waitFor();
  },
  'versions of a question, and what follows another': async (page) => {
    await page.locator('.choose').first().click();
    await talk(page, 'Second', 'Two.');
    await page.locator('.regenerate').first().click();
    await page.evaluate("say('Another one.'); end()");
    await page.locator('.elsewhere').waitFor();
  },
  'a question that was forgotten': async (page) => {
    await chooseRow(page.locator('.message.user').first(), '.forget');
    await page.getByRole('button', { name: 'Forget permanently' }).waitFor();
  },
  'a context that is nearly full': async (page) => {
    await page.fill('#prompt', 'word '.repeat(5000));
    await page.locator('#context.over, #gauge-text').first().waitFor();
    await page.click('#send');
    await page.locator('#context-note:not([hidden])').waitFor();
  },
  'the developer panel': openDeveloper,
};

const devices = {
  'on a desktop': { viewport: { width: 1280, height: 800 } },
  'on a phone': { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true },
};

/**
 * Goes from state to state in one page, which takes a twentieth of the time that a separate page for each state would take.
 * A violation that remains in the next state is reported there, too.
 * @param {import('node:test').TestContext} t
 * @param {Page} page
 * @param {Walk} walk
 */
async function assertEachAccessible(t, page, walk) {
  let reached = 0;
  for (const [state, enter] of Object.entries(walk)) {
    const before = reached;
    await t.test(state, async () => {
      await enter(page);
      reached++;
      await assertAccessible(page);
    });
    if (reached === before) return; // later states cannot be reached either
  }
}

for (const [device, options] of Object.entries(devices)) {
  describe(`axe finds nothing ${device}`, () => {
    test('while a model is loaded', { skip }, async (t) => {
      const script = 'globalThis.holdLoading = () => new Promise(() => {})';
      const page = await openPage(t, { options, script, isReady: false });
      await page.locator('#loading').waitFor();
      await assertAccessible(page);
    });
    for (const [name, walk] of Object.entries({ opened, written, changed })) {
      test(`states of a conversation: ${name}`, { skip }, async (t) => {
        const page = await openPage(t, { options });
        await ask(page, 'A first question');
        await page.evaluate(`say(${JSON.stringify(answer)}); end()`);
        await page.locator('#log[aria-busy=false] .message.assistant footer').waitFor();
        await page.locator('.formula math').nth(1).waitFor();
        await assertEachAccessible(t, page, walk);
      });
    }
  });
}

test('the menu of an answer can be used by keyboard, and shows the figures', {
  skip,
}, async (t) => {
  const page = await openPage(t, {});
  await ask(page, 'A first question');
  await page.evaluate(`say('One.'); end()`);
  const menu = lastAnswer(page).locator('.menu');
  await lastAnswer(page).getByRole('button', { name: 'More' }).focus();
  await page.keyboard.press('Enter');
  await menu.waitFor();
  await page.keyboard.press('Tab');
  const focused = () => page.evaluate('document.activeElement.innerText');
  assert.match(await focused(), /^3 variants/);
  await page.keyboard.press('Escape');
  await menu.waitFor({ state: 'hidden' });
  assert.equal(await focused(), 'More');
});
