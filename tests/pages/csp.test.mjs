// The pages' content security policy: each page works under it without violations, foreign scripts do not run, and models
// can be loaded over HTTPS and from this machine.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { buildBench } from '../../examples/bench/build.mjs';
import { buildFork } from '../../examples/fork/build.mjs';
import { serve } from '../../tools/serve.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { locate, root } from '../support/locate.mjs';
import { untilTrue } from '../support/package.mjs';

/** @typedef {{goto: (url: string) => Promise<any>, evaluate: (code: string) => Promise<any>,
 *   close: () => Promise<any>}} Tab */

/** @type {Record<string, {skip: string | false, launch: () => Promise<Tab>}>} */
const browsers = {
  Chromium: {
    skip: locate('chromium').skip,
    launch: async () => {
      const browser = await launchChromium();
      const page = await browser.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      return {
        goto: (url) => page.goto(url),
        evaluate: (code) => page.evaluate(code),
        close: () => browser.close(),
      };
    },
  },
  Firefox: {
    skip: locate('firefox').skip,
    launch: async () => {
      const browser = await launchFirefox();
      // each visit uses a separate page, because leaving an isolated page confuses the driver
      let page = await browser.newPage();
      return {
        goto: async (url) => {
          await page.close();
          page = await browser.newPage();
          page.setDefaultTimeout(PATIENCE_MS);
          await page.goto(url);
        },
        evaluate: (code) => page.evaluate(code),
        close: () => browser.close(),
      };
    },
  },
  WebKitGTK: {
    skip: locate('webkitDriver').skip,
    launch: async () => {
      const page = await launchWebKit();
      return {
        goto: (url) => page.goto(url),
        evaluate: (code) => page.evaluate(`return ${code}`),
        close: () => page.close(),
      };
    },
  },
};

/** The steps that each page performs under its policy, each with a condition that is then true. @type {Record<string, [string, string][]>} */
const uses = {
  chat: [
    ['undefined', "!document.getElementById('send').disabled"],
    [
      "document.getElementById('prompt').value = 'What is Wick?'," +
        "document.getElementById('composer').requestSubmit()",
      "document.querySelector('.message.assistant footer') !== null &&" +
        "/\\w+ \\w+/.test(document.querySelector('.message.assistant .body').textContent)",
    ],
    // by then the service worker is installed
    [
      'undefined',
      'caches.keys().then((names) => names.some((name) => /^wick-chat http/.test(name)))',
    ],
  ],
  bench: [
    // WebKitGTK reports that the page has loaded before its modules have run
    ['undefined', "document.readyState === 'complete'"],
    [
      "Object.entries({ threads: '1', prompts: '8', tokens: '4', repetitions: '1' })" +
        '.forEach(([id, value]) => { document.getElementById(id).value = value; }),' +
        "document.getElementById('run').click()",
      "!document.getElementById('results').hidden && document.querySelector('canvas') !== null",
    ],
  ],
  fork: [
    ['undefined', "document.getElementById('begin').getAttribute('aria-disabled') !== 'true'"],
    [
      "document.getElementById('begin').click()",
      "document.querySelector('article:nth-child(3) button:enabled') !== null",
    ],
    [
      "document.querySelector('article button:enabled').click()",
      "document.querySelector('article:nth-child(4) button:enabled') !== null && / 4 forks, /.test(document.getElementById('facts').textContent)",
    ],
  ],
};

const chatSite = resolve(root, 'build/chat-csp');
const benchSite = resolve(root, 'build/bench-csp');
const forkSite = resolve(root, 'build/fork-csp');
const sites = { chat: chatSite, bench: benchSite, fork: forkSite };
const policy = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/;
const models = resolve(root, 'examples/models');

/** @param {string} folder @param {(html: string) => string} change */
function changePage(folder, change) {
  const page = resolve(folder, 'index.html');
  writeFileSync(page, change(readFileSync(page, 'utf8')));
}

/** @type {Record<string, string>} */
const policies = {};
/** @type {Record<string, Awaited<ReturnType<typeof serve>>>} */
const servers = {};
/** @type {Awaited<ReturnType<typeof serve>>} another origin */
let other;

before(async () => {
  await copyChat(chatSite);
  await buildBench(benchSite);
  await buildFork(forkSite);
  for (const [name, site] of Object.entries(sites)) {
    copyFileSync(resolve(root, 'tests/support/csp_probe.js'), resolve(site, 'csp_probe.js'));
    changePage(site, (html) => {
      policies[name] = policy.exec(html)?.[1] ?? '';
      return html.replace(policy, '$&<script src="csp_probe.js"></script>');
    });
    servers[name] = await serve({ root: site });
  }
  const folder = resolve(root, 'build/csp-other');
  mkdirSync(folder, { recursive: true });
  copyFileSync(resolve(models, 'wick-2.6m-q4_0.gguf'), resolve(folder, 'own.gguf'));
  writeFileSync(resolve(folder, 'attack.js'), 'probe.ran.push("another server\'s script")');
  other = await serve({ root: folder, cors: true });
});

after(async () => {
  await other?.close();
  for (const server of Object.values(servers)) await server.close();
});

const attacks = ['Function', "another server's script", 'eval', 'event handler', 'inline script'];

test('the pages have one policy, except for the chat page’s manifest and media, and the hashes of inline scripts and import maps', () => {
  const media = "img-src 'self' blob:; media-src blob:;";
  assert.ok(policies.chat.includes(media), 'attached images and recordings are shown');
  const hash = / 'sha256-[\w+/]{43}='/;
  const shared = policies.chat
    .replace(hash, '')
    .replace(" manifest-src 'self';", '')
    .replace(media, "img-src 'self';");
  assert.notEqual(shared, policies.chat);
  assert.match(shared, /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; /);
  assert.doesNotMatch(shared, /unsafe-inline|'unsafe-eval'|\*(?!;)(?<!:\*)|data:|blob:/);
  assert.equal(policies.bench, shared);
  assert.equal(policies.fork.replace(hash, ''), shared);
});

for (const [name, { skip, launch }] of Object.entries(browsers)) {
  describe(name, { skip }, () => {
    /** @type {Tab} */
    let tab;
    before(async () => {
      tab = await launch();
    });
    after(() => tab?.close());

    for (const [page, steps] of Object.entries(uses)) {
      test(`the ${page} page works, and other scripts do not`, async () => {
        await tab.goto(servers[page].url);
        for (const [step, condition] of steps) {
          await tab.evaluate(`void (${step})`);
          await untilTrue(tab, condition);
        }
        assert.deepEqual(await tab.evaluate('probe.heard'), []);
        assert.deepEqual(await tab.evaluate(`probe.attack(${other.port})`), []);
        const heard = await tab.evaluate('probe.heard');
        assert.ok(heard.length >= attacks.length, String(heard));
      });
    }

    test('models may come only from this machine or over HTTPS', async () => {
      for (const host of ['localhost', '127.0.0.1']) {
        const model = encodeURIComponent(`http://${host}:${other.port}/own.gguf`);
        await tab.goto(`${servers.chat.url}?model=${model}`);
        await untilTrue(tab, "document.getElementById('model-name').textContent === 'own.gguf'");
        assert.deepEqual(await tab.evaluate('probe.heard'), []);
      }
      const allowed = ['https://localhost:9/', 'https://models.invalid/', 'http://localhost:9/'];
      const forbidden = ['http://models.invalid/', 'http://192.0.2.1/', 'data:,text'];
      const addresses = JSON.stringify([...allowed, ...forbidden]);
      assert.deepEqual(await tab.evaluate(`probe.forbidden(${addresses})`), forbidden);
    });

    test('without the policy the scripts would run', async (t) => {
      changePage(benchSite, (html) => html.replace(policy, ''));
      t.after(() =>
        changePage(benchSite, (html) =>
          html.replace(
            '<script src="csp_probe.js">',
            `<meta http-equiv="Content-Security-Policy" content="${policies.bench}">$&`,
          ),
        ),
      );
      // a separate path, so that no page comes from a cache; a script from another server needs no isolation
      const plain = await serve({ root: benchSite, isolated: false });
      t.after(() => plain.close());
      await tab.goto(plain.url);
      await untilTrue(tab, 'globalThis.probe !== undefined');
      assert.deepEqual(await tab.evaluate(`probe.attack(${other.port})`), attacks);
    });
  });
}
