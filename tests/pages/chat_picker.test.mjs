// The choice of a model in the chat page: the names that people type, the facts that the page shows before it downloads weights, and
// the hub's search. In Chromium with a fake hub.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { formatDuration } from '../../examples/chat/dom.js';
import goodModels from '../../examples/chat/good_models.json' with { type: 'json' };
import { expectSpeed, judge, quantisationOf } from '../../examples/chat/model_verdict.js';
import { largerModel, models } from '../../examples/chat/models.js';
import { specOf } from '../../examples/chat/specs.js';
import { bytesOfShape, shapes } from '../../tools/build/model_bytes.mjs';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { startListedHub } from '../support/fake_hub.mjs';
import { built, locate, root } from '../support/locate.mjs';
import { temporaryFolder, untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';
import { run } from '../support/process.mjs';

const { skip } = locate('chromium');
const site = resolve(root, 'build/chat-picker');
const hub = 'https://huggingface.co';
const wick = resolve(root, 'build/native/wick');

describe('names of models', () => {
  const file = `${hub}/o/r/resolve/main/m.gguf`;
  /** @type {[string, object][]} */
  const cases = [
    ['', { kind: 'none' }],
    ['o/r', { kind: 'repository', name: 'o/r', revision: 'main' }],
    ['hf:o/r', { kind: 'repository', name: 'o/r', revision: 'main' }],
    ['o/r:Q4_K_M', { kind: 'repository', name: 'o/r', revision: 'main', type: 'Q4_K_M' }],
    ['o/r/m.gguf', { kind: 'file', url: file }],
    ['hf:o/r@v2/sub/m b.gguf', { kind: 'file', url: `${hub}/o/r/resolve/v2/sub/m%20b.gguf` }],
    [`${hub}/o/r`, { kind: 'repository', name: 'o/r', revision: 'main' }],
    ['huggingface.co/o/r', { kind: 'repository', name: 'o/r', revision: 'main' }],
    [`${hub}/o/r/tree/v2`, { kind: 'repository', name: 'o/r', revision: 'v2' }],
    [`${hub}/o/r/blob/main/m.gguf`, { kind: 'file', url: file }],
    [`${hub}/o/r/resolve/main/m.gguf?download=true`, { kind: 'file', url: file }],
    ['https://example.org/x/m.gguf', { kind: 'file', url: 'https://example.org/x/m.gguf' }],
    ['models/m.gguf', { kind: 'file', url: 'https://page.example/chat/models/m.gguf' }],
    ['qwen3 0.6b', { kind: 'search', text: 'qwen3 0.6b' }],
    ['https://[', { kind: 'none' }],
    ['qwen3:0.6b', { kind: 'search', text: 'qwen3:0.6b' }],
    ...['javascript:alert(1)', 'file:///m.gguf', 'data:text/plain,x', 'ftp://o/r/m.gguf'].map(
      (typed) =>
        /** @type {[string, object]} */ ([
          typed,
          { kind: 'none', why: 'The URL must begin with https://.' },
        ]),
    ),
    [
      'https://me:secret@example.org/m.gguf',
      { kind: 'none', why: 'The URL must not contain a user name or a password.' },
    ],
    [
      `${hub}/o/r/blob/main/%E0%A4.gguf`,
      { kind: 'file', url: `${file.slice(0, -6)}%25E0%25A4.gguf` },
    ],
  ];
  for (const [typed, wanted] of cases) {
    test(JSON.stringify(typed), () => {
      assert.deepEqual(specOf(typed, hub, 'https://page.example/chat/'), wanted);
    });
  }
});

describe('the description of a model', () => {
  const facts = {
    ...{ architecture: 'qwen3', name: 'Test', parameters: 6e8, contextTrained: 32768 },
    ...{ contextTokens: 4096, needBytes: 1.2e9, fileBytes: 6e8, activeBytes: 6e8 },
    ...{ types: { Q8_0: { bytes: 6e8 }, F32: { bytes: 1e5 } }, hasTemplate: true },
  };
  const device = { limitBytes: 4e9, memoryGb: 8, freeBytes: 1e10 };
  /** @param {object} changed @param {object} [other] @param {any[]} [speeds] */
  const say = (changed, other = {}, speeds = [{ bytes: 3e8, tokensPerSecond: 20 }]) =>
    judge({ ...facts, ...changed }, { ...device, ...other }, speeds);

  test('a model that fits, with its speed in the known precision', () => {
    const found = say({});
    assert.equal(found.fits, 'yes');
    assert.equal(found.verdict, 'It fits: it needs 1.2 GB. It writes as fast as you read.');
    assert.deepEqual(Object.fromEntries(found.facts), {
      Architecture: 'qwen3, 600 M parameters',
      Quantisation: 'Q8_0',
      Download: '600 MB',
      Context: '4,096 tokens here, trained for 32,768',
      Memory: '1.2 GB of 4.0 GB that a page can have; the device has 8 GB or more',
      Speed: 'about 10 tokens/s, as measured on this machine',
    });
  });

  test('too large, nearly too large, not storable, slow, without a template, broken', () => {
    assert.match(
      say({ needBytes: 5e9 }).verdict,
      /^It does not fit: it needs 5\.0 GB, .* 4\.0 GB\.$/,
    );
    assert.equal(say({ needBytes: 5e9 }).fits, 'no');
    assert.equal(say({ needBytes: 3e9 }, { memoryGb: 4 }).fits, 'tight');
    const wide = { limitBytes: 16e9, memoryGb: undefined };
    assert.equal(say({ needBytes: 4e9 }, wide).fits, 'yes');
    assert.match(say({ needBytes: 5e9 }, wide).verdict, /needs 5\.0 GB, and this browser does not/);
    assert.equal(say({ needBytes: 5e9 }, { ...wide, memoryGb: 16 }).fits, 'yes');
    assert.match(
      say({}, { freeBytes: 1e8 }).verdict,
      /not enough storage to save its 600 MB: 100 MB is free/,
    );
    assert.match(
      say({}, {}, [{ bytes: 6e8, tokensPerSecond: 2 }]).verdict,
      /more slowly than you read/,
    );
    assert.match(say({ hasTemplate: false }).verdict, /no chat template/);
    const broken = say({ error: 'no such architecture' });
    assert.deepEqual(
      [broken.fits, broken.verdict],
      ['no', 'It does not run here: no such architecture.'],
    );
    assert.match(JSON.stringify(say({}, {}, [])), /not measured yet/);
  });

  test('a speed estimated from a much smaller model is labelled as an estimate', () => {
    const speeds = [{ bytes: 3e6, tokensPerSecond: 1000 }];
    assert.deepEqual(expectSpeed(6e8, speeds), { tokensPerSecond: 5, isRough: true });
    assert.match(say({}, {}, speeds).verdict, /may write more slowly/);
    const nearer = [...speeds, { bytes: 5e8, tokensPerSecond: 12 }];
    assert.deepEqual(expectSpeed(6e8, nearer), { tokensPerSecond: 10, isRough: false });
    assert.equal(expectSpeed(6e8, []), undefined);
  });

  test('quantisation: the main types are listed, the largest share first', () => {
    const mixed = { Q6_K: { bytes: 30 }, Q4_K: { bytes: 68 }, F32: { bytes: 2 } };
    assert.equal(quantisationOf(mixed), 'Q4_K 68 %, Q6_K 30 %');
    assert.equal(quantisationOf({}), '');
  });
});

test('a duration is rounded before it is split into minutes and seconds', () => {
  assert.equal(formatDuration(59.2), '1 min');
  assert.equal(formatDuration(119.5), '2 min');
  assert.equal(formatDuration(61), '1 min 1 s');
});

test('sizes of the recommended models follow from their shapes', () => {
  // file sizes from the hub, which include the vocabulary
  const known = {
    'smollm2-135m': 145,
    'smollm2-360m': 386,
    'llama-3.2-1b': 773,
  };
  for (const { id, type, bytes } of goodModels) {
    const shape = shapes[id];
    if (!('synth' in shape)) assert.equal(bytes, bytesOfShape(shape, type), id);
  }
  for (const [id, megabytes] of Object.entries(known)) {
    const bytes = models.find((one) => one.id === id)?.bytes ?? 0;
    assert.ok(bytes / 1e6 < megabytes && bytes / 1e6 > 0.97 * megabytes, `${id}: ${bytes}`);
  }
  // as reported in GitHub's FuJacob/cotabby#245: a file on the hub with more weight types than a typical mix
  const real = 532_517_120;
  const qwen = models.find((one) => one.id === 'qwen3.5-0.8b')?.bytes ?? 0;
  assert.ok(qwen < real && qwen > 0.95 * real, `${qwen}`);
});

test('files of recommended models are named after their repositories, and encoders have the size that is shown', async () => {
  for (const { repo, file, type } of goodModels) {
    const name = repo.replace(/^.*\//, '').replace(/-gguf$/i, '');
    assert.equal(file.toLowerCase(), `${name}-${type}.gguf`.toLowerCase());
  }
  const withEncoders = goodModels.filter((one) => 'mmproj' in one);
  assert.deepEqual(
    withEncoders.map((one) => one.id),
    ['smolvlm-256m'],
  );
  for (const { id, use } of withEncoders) {
    const path = join(temporaryFolder(), 'mmproj.gguf');
    const { code, stderr } = await run(built('native/wick-lab'), ['mmproj', id, 'q8_0', path]);
    assert.equal(code, 0, stderr);
    const shown = Number(/\((\d+) MB more\)/.exec(use)?.[1]);
    assert.ok(Math.abs(statSync(path).size / 1e6 - shown) < 1, `${statSync(path).size}, ${use}`);
  }
});

test('sizes of recommended models that are not dense transformers match the output of wick synth', async () => {
  const others = goodModels.filter(({ id }) => 'synth' in shapes[id]);
  assert.deepEqual(
    others.map((one) => one.id),
    ['lfm2.5-350m', 'qwen3.5-0.8b'],
  );
  for (const { id, type, bytes } of others) {
    const { synth } = /** @type {{synth: string}} */ (shapes[id]);
    const command = spawn(wick, ['synth', synth, type.toLowerCase(), '-']);
    let written = 0;
    for await (const part of command.stdout) written += part.length;
    assert.equal(written, bytes, synth);
  }
});

test('the memory of the model offered first matches its plan', async () => {
  const path = join(temporaryFolder(), 'offered.gguf');
  const made = await run(wick, ['synth', 'smollm2-360m', 'q8_0', path]);
  assert.equal(made.code, 0, made.stderr);
  const { stdout } = await run(wick, ['inspect', path, '--json']);
  const { total_bytes: totalBytes } = JSON.parse(String(stdout)).info.plan;
  const { needBytes = 0 } = largerModel;
  assert.ok(Math.abs(totalBytes - needBytes) < totalBytes / 100, `${totalBytes}`);
});

describe('in the page', { skip }, () => {
  const small = readFileSync(resolve(root, 'examples/models/wick-2.6m-q4_0.gguf'));
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  /** @type {import('playwright-core').Browser} */
  let browser;
  /** @type {Awaited<ReturnType<typeof startListedHub>>} */
  let fake;

  before(async () => {
    await copyChat(site);
    server = await serve({ root: site });
    browser = await launchChromium();
    fake = await startListedHub(small);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
    await fake?.close();
  });

  /** @param {import('node:test').TestContext} t @param {object} [options] */
  async function openPage(t, options = {}) {
    const context = await browser.newContext(options);
    t.after(() => context.close());
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await page.addInitScript(`localStorage.setItem('wick-chat-hub', '${fake.url}')`);
    await page.goto(server.url);
    await page.waitForSelector('#send:not([disabled])');
    return page;
  }

  test('words are searched for, a repository lists its files, a file is checked, and then loaded with its hash', async (t) => {
    const page = await openPage(t, { viewport: { width: 1000, height: 900 } });
    await page.fill('#prompt', 'Tell me a story about a fox.');
    await page.keyboard.press('Enter');
    await page.locator('.message.assistant footer', { hasText: 'Regenerate' }).waitFor();
    await page.click('#choose-model');
    await page.fill('#model-url', 'tiny');
    await page.locator('#found .row', { hasText: 'wick/tiny-GGUF' }).click();
    const row = page.locator('#found .row', { hasText: 'tiny-Q4_0.gguf' });
    await row.waitFor();
    assert.equal(await page.locator('#found .row', { hasText: 'mmproj' }).count(), 0);
    await row.click();
    const card = page.locator('#found .verdict');
    await card.waitFor();
    const said = await card.innerText();
    assert.match(said, /It fits: it needs 11 MB/);
    assert.match(said, /llama, 3 M parameters/);
    assert.match(said, /about \d+ tokens\/s/);
    await takePicture(page, 'models-verdict');
    await page.click('#load-model');
    await page.locator('#model-name', { hasText: 'tiny-Q4_0.gguf' }).waitFor();
    await page.click('#choose-model');
    await page.getByRole('button', { name: 'Verify: tiny-Q4_0.gguf' }).waitFor();
    const kept = await page.evaluate(async () => {
      const entry = '/wick-llm/models.js';
      const { openModels } = await import(entry);
      const [one] = await (await openModels()).list();
      return { sha256: one.sha256, size: one.size };
    });
    assert.equal(kept.size, small.length);
    assert.match(kept.sha256 ?? '', /^[0-9a-f]{64}$/);
    const { length } = fake.state.asked;
    await page.reload();
    await untilTrue(page, "document.getElementById('model-name').textContent === 'tiny-Q4_0.gguf'");
    assert.equal(fake.state.asked.length, length, 'the hub is not queried again');
  });

  test('a type selects its file, and a file that is not a model is rejected before its weights are loaded', async (t) => {
    const page = await openPage(t, { viewport: { width: 390, height: 780 }, colorScheme: 'dark' });
    await page.click('#choose-model');
    await page.fill('#model-url', 'wick/tiny-GGUF:q4_0');
    await page.locator('#found .verdict').waitFor();
    await takePicture(page, 'phone-dark-verdict');
    await page.fill('#model-url', `${fake.url}/wick/tiny-GGUF/blob/main/broken.gguf`);
    await page.locator('#found .bad', { hasText: 'ends in the header' }).waitFor();
    await page.fill('#model-url', 'nobody/nothing');
    await page.locator('#found .bad', { hasText: 'Repository not found' }).waitFor();
    await page.fill('#model-url', 'https://[');
    await page.locator('#found .bad', { hasText: 'A URL looks like https://' }).waitFor();
    await page.click('#load-model'); // the dialog stays open with a message
    await page.locator('#found .bad', { hasText: 'not a URL' }).waitFor();
    await page.fill('#model-url', 'words of nothing');
    await page.getByText('No GGUF model on the hub matches.').waitFor();
    await page.route(`${fake.url}/**`, (route) => route.abort()); // as if offline
    const { host } = new URL(fake.url);
    for (const words of ['qwen3:0.6b', 'wick/tiny-GGUF']) {
      await page.fill('#model-url', words);
      await page.locator('#found .bad', { hasText: `${host} could not be reached` }).waitFor();
      await page.fill('#model-url', '');
    }
  });

  test('a model in the list is rated before it is loaded, with a measured speed', async (t) => {
    const page = await openPage(t, { viewport: { width: 1000, height: 900 } });
    await page.click('#choose-model');
    await page.check('[value="smollm2-360m"]');
    const card = page.locator('#listed .verdict');
    await card.getByText('It does not run here').waitFor();
    await page.check('[value="smollm2-135m"]');
    await card.getByText('It fits: it needs 11 MB').waitFor();
    assert.match(await card.innerText(), /about \d+ tokens\/s/);
    assert.equal(await card.count(), 1);
    assert.ok(await page.locator('#choose-model').isVisible());
    await takePicture(page, 'models-listed');
    await page.check('[value="wick"]');
    await card.waitFor({ state: 'detached' });
    // chosen immediately, before its card is shown: the model is checked first, and loaded only if the user insists
    await page.evaluate(`for (const one of ['[value="smollm2-360m"]', '#load-model'])
      document.querySelector(one).click();`);
    await card.getByText('It does not run here').waitFor();
    assert.equal(await page.isVisible('#model-dialog'), true);
    await page.check('[value="smollm2-135m"]');
    await page.click('#load-model');
    await page.locator('#model-name', { hasText: 'SmolLM2 135M' }).waitFor();
  });

  test('an invalid mirror of the hub is rejected with a reason, a valid one is stored and used for all requests', async (t) => {
    const context = await browser.newContext({ serviceWorkers: 'block' });
    t.after(() => context.close());
    context.setDefaultTimeout(PATIENCE_MS);
    /** @type {string[]} */
    const elsewhere = [];
    await context.route(/huggingface\.co/, (route) => {
      elsewhere.push(route.request().url());
      return route.abort();
    });
    const page = await context.newPage();
    await page.goto(server.url);
    await page.waitForSelector('#send:not([disabled])');
    await page.click('#choose-model');
    await page.getByText('Use another hub', { exact: true }).click();
    const says = page.locator('#hub-state');
    /** @type {[typed: string, words: RegExp][]} */
    const wrong = [
      ['mirror', /must begin with https/],
      ['ftp://mirror.example', /must begin with https/],
      ['http://mirror.example', /must begin with https/],
      ['https://me:secret@mirror.example', /must not contain a login/],
      ['https://mirror.example/?a=b', /must not contain a login/],
      [`${server.url}nowhere`, /^No hub was found at .*nowhere: the hub responded with 404\.$/],
      [server.url, /^No hub was found at /],
    ];
    for (const [typed, words] of wrong) {
      await page.fill('#hub-address', typed);
      await page.click('#use-hub');
      await untilTrue(page, `${words}.test(document.getElementById('hub-state').textContent)`);
      assert.equal(await page.evaluate("localStorage.getItem('wick-chat-hub')"), null, typed);
    }
    await page.fill('#hub-address', `${fake.url}/`);
    await page.press('#hub-address', 'Enter');
    await says.getByText('Models are now found on and downloaded from this hub').waitFor();
    await takePicture(page, 'models-hub');
    await page.reload();
    await page.waitForSelector('#send:not([disabled])');
    await page.click('#choose-model');
    await page.fill('#model-url', 'tiny');
    await page.locator('#found .row', { hasText: 'wick/tiny-GGUF' }).waitFor();
    // a URL on the default hub is also fetched from the mirror
    const usual = 'https://huggingface.co/wick/tiny-GGUF/resolve/main/tiny-Q4_0.gguf';
    await page.fill('#model-url', usual);
    await page.locator('#found .verdict').waitFor();
    await page.click('#load-model');
    await page.locator('#model-name', { hasText: 'tiny-Q4_0.gguf' }).waitFor();
    assert.deepEqual(elsewhere, []);
    await page.click('#choose-model');
    await page.getByText('Use another hub', { exact: true }).click();
    await page.fill('#hub-address', '');
    await page.click('#use-hub');
    await untilTrue(
      page,
      "document.getElementById('hub-address').value === 'https://huggingface.co'",
    );
  });
});
