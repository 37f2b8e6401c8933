// The chat page in Chromium, used like a person would; in Firefox and WebKitGTK, it loads and answers once.
// Screenshots are written to build/screenshots.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { builtPage } from '../support/built_pages.mjs';
import { onBattery } from '../support/chat_stub.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';
import { openDeveloper } from '../support/page_menu.mjs';
import { takePicture } from '../support/pictures.mjs';

const chromium = locate('chromium');
const modelFile = resolve(root, 'examples/models/wick-2.6m-q4_0.gguf');
const answered = '.message.assistant footer';

let site = '';
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser | undefined} */
let browser;

before(async () => {
  site = await builtPage('chat');
  server = await serve({ root: site });
  if (!chromium.skip) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/**
 * @param {string} [address]
 * @param {import('playwright-core').BrowserContextOptions} [options]
 * @param {string} [script] that runs before the page's own
 */
async function openPage(address = server.url, options = {}, script = '') {
  const context = await /** @type {import('playwright-core').Browser} */ (browser).newContext(
    options,
  );
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.addInitScript(script);
  /** @type {string[]} */
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(address);
  return { page, problems, close: () => context.close() };
}

/** @typedef {import('playwright-core').Page} Page */

/** @param {Page} page */
const waitUntilReady = (page) => page.waitForSelector('#send:not([disabled])');

/** @param {Page} page @param {string} text */
async function ask(page, text) {
  const before = await page.locator(answered).count();
  await page.fill('#prompt', text);
  await page.click('#send');
  await page.locator(answered).nth(before).waitFor();
  return (await page.locator('.message.assistant .body').last().innerText()).trim();
}

/** Stops the answer immediately, if it has not ended yet. @param {Page} page */
const clickStop = (page) => page.evaluate("document.getElementById('stop').click()");

/**
 * Starts a server that serves the model from another origin in a custom way.
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} answer
 */
async function serveModel(answer) {
  const own = createServer((request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    answer(request, response);
  });
  await new Promise((settle) => own.listen(0, '127.0.0.1', () => settle(undefined)));
  own.unref(); // a failing test does not close it
  const { port } = /** @type {import('node:net').AddressInfo} */ (own.address());
  return {
    url: `http://127.0.0.1:${port}/model.gguf`,
    close: () => {
      own.closeAllConnections();
      own.close();
    },
  };
}

for (const [name, options] of Object.entries({
  light: { viewport: { width: 1000, height: 760 }, colorScheme: /** @type {const} */ ('light') },
  dark: { viewport: { width: 1000, height: 760 }, colorScheme: /** @type {const} */ ('dark') },
  phone: { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true },
})) {
  test(`the built-in model answers (${name})`, {
    skip: chromium.skip || (name !== 'light' && !isFull),
  }, async () => {
    const { page, problems, close } = await openPage(server.url, options);
    await waitUntilReady(page);
    await takePicture(page, `${name}-welcome`);
    assert.match(await ask(page, 'What is Wick?'), /\w+ \w+/);
    assert.match(await ask(page, 'Tell me a story about a fox.'), /\w+ \w+ \w+ \w+/);
    const figures = (await page.locator(answered).last().textContent()) ?? '';
    assert.match(figures, /tokens\/s.*first token after/s);
    await takePicture(page, `${name}-chat`);
    await openDeveloper(page);
    await page.locator('#kv-pages .cached').first().waitFor();
    await takePicture(page, `${name}-developer`);
    const sideways = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.equal(sideways, 0, 'the page does not scroll sideways');
    await page.click('#choose-model');
    await takePicture(page, `${name}-models`);
    await page.keyboard.press('Escape');
    await page.click('#open-settings');
    await takePicture(page, `${name}-settings`);
    assert.deepEqual(problems, []);
    await close();
  });
}

test('on a narrow phone: headings, code, wide tables, endless words, right-to-left text', {
  skip: chromium.skip || !isFull,
}, async () => {
  const viewport = { width: 360, height: 640 };
  const { page, problems, close } = await openPage(`${server.url}?model=none.gguf`, { viewport });
  const table = ['a', '--', 'unbreakable'].map((cell) => `|${`${cell}|`.repeat(7)}`).join('\n');
  const said = [
    { role: 'user', content: 'x'.repeat(500) },
    { role: 'assistant', content: `# Title\n\n\`\`\`\n${'y'.repeat(200)}\n\`\`\`\n\n${table}` },
    { role: 'user', content: 'שלום' },
    { role: 'assistant', content: 'مرحبا\n\n```\ncode\n```' },
  ];
  const turns = said.map((one, index) => ({ ...one, id: `${index}`, parent: `${index - 1}` }));
  turns[0].parent = '';
  const conversations = [{ turns }];
  const buffer = Buffer.from(JSON.stringify({ format: 'wick-chat', version: 1, conversations }));
  await page.setInputFiles('#import-file', { name: 'a.json', mimeType: '', buffer });
  await page.locator('.message').nth(3).waitFor();
  await takePicture(page, 'phone-content');
  assert.ok(
    ((await page.locator('.body h1').boundingBox())?.height ?? 0) > 12,
    'the heading is legible',
  );
  assert.equal(
    await page.evaluate('document.getElementById("log").scrollWidth'),
    await page.evaluate('document.getElementById("log").clientWidth'),
  );
  const cell = await page.locator('td').first().boundingBox();
  assert.ok(cell && cell.height < 40, 'a word of a table stays whole');
  const directions = await page
    .locator('.body, .body code')
    .evaluateAll((all) => all.map((one) => getComputedStyle(one).direction));
  assert.deepEqual(directions, ['ltr', 'ltr', 'ltr', 'rtl', 'rtl', 'ltr']);
  assert.deepEqual(problems, []);
  await close();
});

test('for text that is too long, the excess is reported, and the text stays in the field', {
  skip: chromium.skip || !isFull,
}, async () => {
  const { page, problems, close } = await openPage();
  await waitUntilReady(page);
  const long = 'word '.repeat(5000);
  await page.fill('#prompt', long);
  await page.keyboard.press('Enter');
  await page.locator('#context-note:visible').waitFor();
  assert.match(
    await page.innerText('#context-text'),
    /^This text is [\d,]+ tokens too long: it has [\d,]+, and the context of the model has 4,096 tokens, of which .* reserved for the answer\.$/,
  );
  assert.equal(await page.isHidden('#problem'), true);
  assert.equal(await page.inputValue('#prompt'), long);
  assert.deepEqual(problems, []);
  await close();
});

test('the developer panel shows the current pages during an answer', {
  skip: chromium.skip || !isFull,
}, async () => {
  // early answers must not occupy KV pages
  const { page, problems, close } = await openPage(server.url, {}, onBattery);
  await waitUntilReady(page);
  /** @param {string} kind */
  const count = (kind) => page.locator(`#kv-pages .${kind}`).count();
  assert.equal(await page.locator('#kv-facts > *').count(), 0, 'a closed panel requests nothing');
  await openDeveloper(page);
  await page.locator('[data-fact="Prefix cache"]').waitFor();
  assert.equal(await count('kv-page'), 0, 'pages are allocated when needed');
  // an answer that continues until it is stopped
  await page.click('#open-settings');
  await page.fill('[name=temperature]', '2');
  await page.fill('[name=minP]', '0');
  await page.fill('[name=topK]', '0');
  await page.fill('[name=topP]', '1');
  await page.click('#settings-form [value=save]');
  const own = page.locator('#kv-pages .private').first();
  let wasSeen = false;
  for (let tries = 0; tries < 60 && !wasSeen; tries++) {
    await page.fill('#prompt', `Tell me a long story, number ${tries}.`);
    await page.keyboard.press('Enter');
    wasSeen = await Promise.race([
      own.waitFor().then(() => true),
      page
        .locator(answered)
        .nth(tries)
        .waitFor()
        .then(() => false), // the answer has ended normally
    ]);
  }
  assert.ok(wasSeen, 'the running answer has separate pages');
  await clickStop(page);
  await page.locator('#send:visible').waitFor();
  await page.locator('#kv-pages .private').first().waitFor({ state: 'detached' });
  const cached = await count('cached');
  assert.ok(cached > 0, 'its pages are cached for the next prompt');
  assert.match(await page.innerText('#kv-legend'), new RegExp(`${cached} cached`));
  const label = (await page.getAttribute('#kv-pages', 'aria-label')) ?? '';
  assert.match(label, new RegExp(`^${await count('kv-page')} pages: .*${cached} cached`));
  await page.click('#open-settings');
  await page.click('#reset-settings');
  await page.click('#new-chat');
  await ask(page, 'Tell me a story about a fox and a lamp.');
  await ask(page, 'And then?');
  const last = await page.locator('[data-fact="Last prompt"]').innerText();
  const [, all, kept] = /^(\d+) tokens, (\d+) of them/.exec(last) ?? [];
  assert.ok(Number(kept) > 0 && Number(all) - Number(kept) < 32, last);
  // the map is drawn after the engine has responded
  await page
    .locator('[data-fact="Prefix cache"]', { hasText: /^[1-9].* [1-9]\d* tokens saved/ })
    .waitFor();
  assert.deepEqual(problems, []);
  await close();
});

test('stopping keeps the generated text, and the next question is answered', {
  skip: chromium.skip,
}, async () => {
  const { page, close } = await openPage();
  await waitUntilReady(page);
  await page.click('#open-settings');
  await page.fill('[name=temperature]', '2');
  await page.fill('[name=minP]', '0');
  await page.click('#settings-form [value=save]');
  await page.fill('#prompt', 'Tell me a long story about a fox, a lamp and a river.');
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant .body:not(:empty)').waitFor();
  await clickStop(page);
  await page.locator(answered).first().waitFor();
  await page.click('#open-settings');
  await page.click('#reset-settings');
  await page.click('#new-chat');
  assert.equal(await page.locator('.message').count(), 0);
  assert.match(await ask(page, 'What is Wick?'), /\w+ \w+/);
  await page.click('.regenerate');
  await page.locator('.regenerate').waitFor();
  assert.equal(await page.locator('.message').count(), 2);
  await close();
});

test('a dropped file is loaded', { skip: chromium.skip || !isFull }, async () => {
  const { page, close } = await openPage();
  await waitUntilReady(page);
  const bytes = readFileSync(modelFile).toString('base64');
  await page.evaluate(async (text) => {
    const data = new DataTransfer();
    const body = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    data.items.add(new File([body], 'dropped.gguf'));
    dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
  }, bytes);
  await untilTrue(page, "document.getElementById('model-name').textContent === 'dropped.gguf'");
  assert.match(await ask(page, 'What is Wick?'), /\w+ \w+/);
  await close();
});

/** @param {Page} page @param {string} name @param {Buffer} buffer */
async function loadFile(page, name, buffer) {
  const mimeType = 'application/octet-stream';
  await page.setInputFiles('#model-file', { name, mimeType, buffer });
  await page.click('#choose-model');
  await page.click('#load-model');
}

/** @param {Page} page @param {string} name of the current model */
async function waitForModel(page, name) {
  // just after the choice, the previous model is still loaded and ready
  const wanted = JSON.stringify(name);
  await untilTrue(page, `document.getElementById('model-name').textContent === ${wanted}`);
  await waitUntilReady(page);
  assert.match(await ask(page, 'What is Wick?'), /\w+ \w+/);
}

test('a file that is not a model is rejected with a reason, and the previous model stays in use', {
  skip: chromium.skip,
}, async () => {
  const { page, close } = await openPage();
  await waitUntilReady(page);
  const letter = Buffer.from('Dear reader, this is not a model at all.');
  for (const before of ['Wick 4.2M', 'mine.gguf']) {
    if (before === 'mine.gguf') {
      await loadFile(page, before, readFileSync(modelFile));
      await waitForModel(page, before);
    }
    await loadFile(page, 'letter.gguf', letter);
    await page.waitForSelector('#problem:not([hidden])');
    const said = await page.innerText('#problem-text');
    assert.match(said, /^letter\.gguf could not be loaded: .*GGUF/s);
    assert.ok(said.endsWith(` ${before} is still loaded.`), said);
    await takePicture(page, 'light-problem');
    await waitForModel(page, before);
  }
  await close();
});

test('a broken URL is reported and can be retried, and the built-in model answers', {
  skip: chromium.skip || !isFull,
}, async () => {
  let requests = 0;
  const model = await serveModel((_, response) => {
    requests++;
    response.writeHead(404).end();
  });
  const { page, close } = await openPage(`${server.url}?model=${encodeURIComponent(model.url)}`);
  for (let tries = 1; tries <= 2; tries++) {
    await page.waitForSelector('#problem:not([hidden])');
    assert.match(
      await page.innerText('#problem-text'),
      /model\.gguf .* 404.*Wick 4\.2M( is still loaded)?\.$/,
    );
    await waitUntilReady(page);
    assert.equal(requests, tries);
    if (tries === 1) await page.click('#retry-loading');
  }
  await waitForModel(page, 'Wick 4.2M');
  await close();
  model.close();
});

test('if no model can be loaded, each reason is reported', {
  skip: chromium.skip || !isFull,
}, async () => {
  const page = await /** @type {import('playwright-core').Browser} */ (browser).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.route('**/wick-llm-demo-model/*.gguf', (route) => route.fulfill({ status: 410 }));
  await page.goto(`${server.url}?model=missing.gguf`);
  await page.locator('#problem-text', { hasText: 'missing.gguf' }).waitFor();
  await page.waitForSelector('#loading', { state: 'hidden' });
  const said = await page.innerText('#problem-text');
  assert.match(said, /^missing\.gguf could not be loaded: .*404.*Wick 4\.2M could not be .*410/);
  assert.equal(await page.innerText('#model-name'), 'No model');
  await page.unroute('**/wick-llm-demo-model/*.gguf');
  await page.click('#choose-model');
  await page.click('#load-model');
  await waitForModel(page, 'Wick 4.2M');
  await page.close();
});

test('an interrupted download is resumed', { skip: chromium.skip || !isFull }, async () => {
  const bytes = readFileSync(modelFile);
  let requests = 0;
  const model = await serveModel((request, response) => {
    requests++;
    response.setHeader('ETag', '"one"');
    response.setHeader('Accept-Ranges', 'bytes');
    response.setHeader('Access-Control-Allow-Headers', '*');
    response.setHeader('Access-Control-Expose-Headers', '*');
    if (request.method === 'OPTIONS') return void response.writeHead(204).end();
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const headers = { 'Content-Length': bytes.length - from };
    if (from > 0) {
      response.writeHead(206, {
        ...headers,
        'Content-Range': `bytes ${from}-${bytes.length - 1}/${bytes.length}`,
      });
    } else {
      response.writeHead(200, headers);
    }
    if (requests > 1) return void response.end(bytes.subarray(from));
    response.write(bytes.subarray(0, bytes.length >> 1));
    setTimeout(() => response.destroy(), 300);
  });
  const { page, close } = await openPage(`${server.url}?model=${encodeURIComponent(model.url)}`);
  await waitForModel(page, 'model.gguf');
  assert.ok(requests > 1);
  assert.match(await ask(page, 'What is Wick?'), /\w+ \w+/);
  await close();
  model.close();
});

test('cancelling a download leaves a page that works', {
  skip: chromium.skip || !isFull,
}, async () => {
  const bytes = readFileSync(modelFile);
  const model = await serveModel((_, response) => {
    response.writeHead(200, { 'Content-Length': bytes.length });
    response.write(bytes.subarray(0, bytes.length >> 1)); // the rest is never sent
  });
  const { page, close } = await openPage(`${server.url}?model=${encodeURIComponent(model.url)}`);
  await page.locator('#loading-facts', { hasText: /^[1-9][0-9.]* [kM]B of [0-9.]+ MB/ }).waitFor();
  await takePicture(page, 'light-loading');
  await page.click('#cancel-loading');
  await waitUntilReady(page);
  assert.equal(await page.isHidden('#problem'), true);
  await waitForModel(page, 'Wick 4.2M');
  await close();
  model.close();
});

test('without cross-origin isolation one thread answers', {
  skip: chromium.skip || !isFull,
}, async () => {
  const plain = await serve({ root: site, isolated: false });
  const { page, close } = await openPage(plain.url);
  assert.equal(await page.evaluate('crossOriginIsolated'), false);
  await waitUntilReady(page);
  assert.match(await page.innerText('#facts'), /one thread/);
  assert.match(await ask(page, 'What is Wick?'), /\w+ \w+/);
  await close();
  await plain.close();
});

const waitReadyScript = `!document.getElementById('send').disabled`;
const askScript = `document.getElementById('prompt').value = 'What is Wick?';
  document.getElementById('composer').requestSubmit();`;
const answerScript = `document.querySelector('${answered}') ? document.querySelector('.message.assistant .body').textContent : ''`;

test('Firefox loads the page and answers', {
  skip: locate('firefox').skip,
}, async () => {
  const firefox = await launchFirefox();
  try {
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(server.url);
    await untilTrue(page, waitReadyScript);
    await page.evaluate(askScript);
    await untilTrue(page, answerScript);
    assert.match(String(await page.evaluate(answerScript)), /\w+ \w+/);
  } finally {
    await firefox.close();
  }
});

test('WebKitGTK loads the page and answers', {
  skip: locate('webkitDriver').skip,
}, async () => {
  const page = await launchWebKit();
  try {
    await page.goto(server.url);
    const untilTrue = (/** @type {string} */ condition) =>
      page.evaluate(`for (;;) {
        const value = ${condition};
        if (value) return value;
        await new Promise((settle) => setTimeout(settle, 50));
      }`);
    await untilTrue(waitReadyScript);
    await page.evaluate(askScript);
    assert.match(await untilTrue(answerScript), /\w+ \w+/);
    await takePicture(page, 'webkit-chat');
  } finally {
    await page.close();
  }
});
