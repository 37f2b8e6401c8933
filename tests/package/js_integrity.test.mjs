// The page of docs/bundlers.md that checks the hashes of files from another origin, in three browsers: it generates text,
// and rejects each file of the package that differs from the released one.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { locate, root } from '../support/locate.mjs';
import { dist, modelFolder, openEngine, untilTrue } from '../support/package.mjs';

const smallModel = join(modelFolder, 'wick-2.6m-q4_0.gguf');
const ask = { temperature: 0, maxTokens: 6 };
const place = 'https://cdn.example/wick-llm/dist/';
/** @type {Record<string, string>} */
const hashes = JSON.parse(readFileSync(join(dist, 'integrity.json'), 'utf8'));
/** @type {Record<string, string>} */
const types = { '.js': 'text/javascript', '.wasm': 'application/wasm' };

/** @param {string} origin of the package @returns {string} the page in the document */
function pageFor(origin) {
  const text = readFileSync(join(root, 'docs/bundlers.md'), 'utf8');
  const [, block] = /^```html\n(<!-- integrity\.html -->.*?)^```$/ms.exec(text) ?? [];
  const filled = block.replace(
    /(["'])https:\/\/cdn\.example\/wick-llm\/dist\/([^"']+)(["']: ["'])sha384-\.\.\./g,
    (_, quote, name, between) => `${quote}${place}${name}${between}${hashes[name]}`,
  );
  assert.doesNotMatch(filled, /sha384-\.\.\./);
  const made = filled.replaceAll(place, `${origin}/`).replace(
    /(const engine = await .*)/,
    `$1
  globalThis.found = await engine.generate('Once', ${JSON.stringify(ask)}).text();`,
  );
  // WebKitGTK does not report a module whose top-level await failed
  const watch = `<script>
    const refuse = (error) => { globalThis.found = 'refused'; throw error; };
    const real = globalThis.fetch;
    globalThis.fetch = (...given) => real(...given).catch(refuse);
    addEventListener('error', () => { globalThis.found = 'refused'; }, true);
  </script>`;
  return `<!doctype html><meta charset="utf-8"><title>x</title>${watch}${made}`;
}

let changed = '';
/** The other origin, which serves the package; the `changed` file has an extra line or byte. */
const elsewhere = createServer(({ url = '' }, response) => {
  const name = url.slice(1);
  const bytes = readFileSync(join(dist, name));
  const end = name === changed ? [extname(name) === '.js' ? '\n;' : '\0\x01\0'] : [];
  const headers = { 'Content-Type': types[extname(name)], 'Access-Control-Allow-Origin': '*' };
  response
    .writeHead(200, headers)
    .end(Buffer.concat([bytes, ...end.map((one) => Buffer.from(one))]));
});
const own = createServer(({ url }, response) => {
  if (url === '/model.gguf') return response.end(readFileSync(smallModel));
  response.writeHead(200, { 'Content-Type': 'text/html' }).end(pageFor(originOf(elsewhere)));
});

/** @param {import('node:http').Server} server */
const originOf = (server) =>
  `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`;

before(async () => {
  for (const server of [elsewhere, own]) await once(server.listen(0, '127.0.0.1'), 'listening');
});
after(() => {
  for (const server of [elsewhere, own]) {
    server.close();
    server.closeAllConnections();
  }
});

/** @typedef {{visit: (url: string) => Promise<{evaluate: (code: string) => Promise<any>}>, close: () => Promise<void>}} Visitor */

/** @param {any} browser @returns {Visitor} */
const visitor = (browser) => ({
  visit: async (url) => {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url);
    return { evaluate: (code) => page.evaluate(code) };
  },
  close: () => browser.close(),
});

/** @type {Record<string, {skip: string | false, launch: () => Promise<Visitor>}>} */
const browsers = {
  Chromium: { skip: locate('chromium').skip, launch: async () => visitor(await launchChromium()) },
  Firefox: { skip: locate('firefox').skip, launch: async () => visitor(await launchFirefox()) },
  WebKitGTK: {
    skip: locate('webkitDriver').skip,
    launch: async () => {
      const page = await launchWebKit();
      const evaluate = (/** @type {string} */ code) => page.evaluate(`return ${code}`);
      return {
        visit: async (url) => {
          await page.goto(url);
          return { evaluate };
        },
        close: () => page.close(),
      };
    },
  },
};

for (const [name, { skip, launch }] of Object.entries(browsers)) {
  describe(name, { skip }, () => {
    /** @type {Visitor} */
    let browser;
    before(async () => {
      browser = await launch();
    });
    after(() => browser?.close());

    /** @param {string} file differs from the released one; '' for none */
    async function tried(file) {
      changed = file;
      const tab = await browser.visit(`${originOf(own)}/?${file}`);
      await untilTrue(tab, 'globalThis.found !== undefined');
      return tab.evaluate('globalThis.found');
    }

    test('the page generates text', async (t) => {
      const engine = await openEngine(t, { file: smallModel });
      assert.equal(await tried(''), await engine.generate('Once', ask).text());
    });

    for (const file of [
      'index.js',
      'worker.js',
      'wasm/wick-simd128-single.wasm',
      'wasm/wick-simd128-single-grammar.wasm',
      'wasm/wick-simd128-single-extras.wasm',
    ]) {
      test(`a modified ${file} is rejected`, async () => {
        assert.equal(await tried(file), 'refused');
      });
    }
  });
}
