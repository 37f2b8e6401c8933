// The notes page: searching thousands of notes by meaning and by keyword; new, changed and removed notes; a pause, a reload, two tabs,
// a full disk, offline use; files that are not notes; models that are not embedders. In Chromium; the main functions also in Firefox
// and WebKitGTK. Screenshots (light, dark, phone) are written to build/screenshots.

import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { buildNotes } from '../../examples/notes/build.mjs';
import { passagesOf, titleOf } from '../../examples/notes/passages.js';
import { firstWords } from '../../examples/shared/query.js';
import { serve } from '../../tools/serve.mjs';
import { violations } from '../support/accessible.mjs';
import { launchChromium, launchFirefox, launchWebKit, PATIENCE_MS } from '../support/browsers.mjs';
import { isFull } from '../support/level.mjs';
import { locate, root } from '../support/locate.mjs';
import { temporaryFolder, untilTrue } from '../support/package.mjs';
import { takePicture } from '../support/pictures.mjs';
import { randomFrom } from '../support/random_numbers.mjs';

const { skip: skipChromium } = locate('chromium');
const shared = locate('shared');
const models = join(shared.path, 'vectors/reference-more/models');
const skip = skipChromium || shared.skip;
const site = resolve(root, 'build/notes-test');
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;
/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
  await buildNotes(site);
  server = await serve({ root: shared.skip ? { '/': site } : { '/': site, '/models/': models } });
  if (!skipChromium) browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server.close();
});

/** @typedef {import('playwright-core').Page} Page */

/**
 * @param {import('node:test').TestContext} t @param {RegExp} [expected] of the console
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function openContext(t, expected, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const problems = [];
  context.on('weberror', (error) => problems.push(error.error().message));
  context.on('console', (message) => {
    if (message.type() === 'error' && !expected?.test(message.text()))
      problems.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(problems, []);
  });
  return context;
}

/** @param {import('playwright-core').BrowserContext} context @param {boolean} [hasModel] */
async function openPage(context, hasModel = false) {
  const page = await context.newPage();
  await page.goto(server.url);
  if (hasModel) await loadModel(page, 'nomic-bert.gguf');
  return page;
}

/** @param {Page} page @param {string} name */
async function loadModel(page, name) {
  await page.selectOption('#model', 'address');
  await page.fill('#model-address', `${server.url}models/${name}`);
  await page.click('#model-load');
  await page.locator('#model-state', { hasText: `${name} is ready` }).waitFor();
}

/** @param {Record<string, string | Buffer>} files @returns {string} a folder */
function folderOf(files) {
  const folder = join(temporaryFolder(), 'my notes');
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** @param {Page} page @param {string} folder @param {RegExp} state */
async function choose(page, folder, state) {
  await page.setInputFiles('#folder-files', folder);
  await page.locator('#folder-state', { hasText: state }).waitFor();
}

const whole = (/** @type {Page} */ page) =>
  page.locator('#embedding-state', { hasText: 'The index is complete' }).waitFor();

/** @param {Page} page @param {string} id @param {RegExp} text of the first hit */
const firstHit = (page, id, text) =>
  page.locator(`#${id} li:first-child`, { hasText: text }).waitFor();

const garden =
  '# The garden\n\nThe roses need water in the evening.\n\n## Tools\n\nA spade and two buckets.\n';
const letter = '# A letter\n\nDear aunt, the train to Bergen was late again.\n';

describe('passages', () => {
  test('stay within a heading, have a limited length, and lose only headings', () => {
    assert.deepEqual(passagesOf(garden), [
      { heading: 'The garden', text: 'The roses need water in the evening.' },
      { heading: 'Tools', text: 'A spade and two buckets.' },
    ]);
    assert.equal(titleOf(garden, 'x/y.md'), 'The garden');
    assert.equal(titleOf('no heading', 'x/My note.md'), 'My note');
    assert.deepEqual(passagesOf(''), []);
    const code = '```\n# no heading\n```\n';
    assert.deepEqual(passagesOf(code), [{ heading: '', text: code.trim() }]);
    const words = Array.from({ length: 20_000 }, (_, index) => `w${index}`).join(' ');
    const long = passagesOf(words);
    assert.ok(long.every(({ text }) => text.length <= 1000));
    assert.equal(long.map(({ text }) => text).join(' '), words);
    const foxes = passagesOf('🦊'.repeat(5000)); // no word boundaries
    assert.equal(foxes.map(({ text }) => text).join(''), '🦊'.repeat(5000));
    for (const { text } of foxes) encodeURIComponent(text); // throws if the text begins or ends inside a character
    for (const [line, heading] of [
      ['# a  #  b ##', 'a  #  b'],
      ['## C#', 'C#'],
      ['###', ''],
      ['#tag', undefined],
    ])
      assert.deepEqual(
        passagesOf(`${line}\nx`),
        heading === undefined ? [{ heading: '', text: `${line}\nx` }] : [{ heading, text: 'x' }],
      );
    const wide = `# a${' '.repeat(400_000)}b`; // once took minutes
    assert.deepEqual(
      passagesOf(wide).map(({ text }) => text),
      ['# a', 'b'],
    );
  });
});

test('for text pasted into the search box, only its first words are searched, each once', () => {
  assert.equal(firstWords('  the  KV cache the '), 'the KV cache');
  assert.equal(firstWords('a '.repeat(3000)), 'a'); // once took half a minute
  const words = Array.from({ length: 100 }, (_, index) => `w${index}`);
  assert.equal(firstWords(words.join('\n')), words.slice(0, 32).join(' '));
  assert.equal(firstWords('x'.repeat(1e6)).length, 2000);
  assert.equal(firstWords(' '), '');
});

test('by words without a model; files that are not notes are reported, and HTML in notes is text', {
  skip: skipChromium,
}, async (t) => {
  const context = await openContext(t);
  const page = await openPage(context);
  await page.fill('#query', 'zebra');
  await page.locator('#words-note', { hasText: 'No folder of notes is chosen yet' }).waitFor();
  await page.fill('#query', '');
  const folder = folderOf({
    'garden.md': garden,
    'deep/er/letter.markdown': letter,
    'hostile <img src=x onerror=alert(1)>.md':
      '# <script>alert(2)</script>\n\n<img src=x onerror="document.title=3"> zebra [a](javascript:alert(4))\n',
    'picture.md': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3]),
    'zeros.txt': Buffer.alloc(100),
    'empty.md': '',
    'program.js': 'zebra',
    '.hidden/secret.md': 'zebra',
    'huge.md': Buffer.alloc(21 << 20, 'a'),
  });
  await choose(page, folder, /my notes: 4 notes, 4 passages\. 4 new/);
  assert.match(await page.locator('#skipped-title').innerText(), /^3 files are left out/);
  await page.click('#skipped-title');
  const skipped = await page.locator('#skipped-list').innerText();
  for (const words of [
    /picture\.md: not UTF-8 text/,
    /zeros\.txt: not UTF-8 text/,
    /huge\.md: larger than 20 MB/,
  ])
    assert.match(skipped, words);
  await page.fill('#query', 'rose wat');
  await firstHit(page, 'words', /The garden.*The roses need water/s);
  assert.match(await page.locator('#meaning-note').innerText(), /needs a model/);
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page, colorScheme), [], colorScheme);
  }
  await page.fill('#query', 'zebra');
  await firstHit(page, 'words', /<script>alert\(2\)<\/script>.*<img src=x onerror="document/s);
  assert.equal(await page.locator('#words li').count(), 1);
  await page.locator('#words .open').click();
  await page.locator('#note[open] .found').waitFor();
  assert.equal(await page.locator('#note img, #words img, #note script').count(), 0);
  assert.equal(await page.title(), 'Wick notes');
  assert.deepEqual(await violations(page), []);
});

test('the guide can be opened as an example folder', { skip: skipChromium }, async (t) => {
  const page = await openPage(await openContext(t));
  await page.click('#try-example');
  await page.locator('#folder-state', { hasText: /^Guide of Wick: \d+ notes, / }).waitFor();
  assert.equal(await page.locator('#try-example').isVisible(), false);
  await page.fill('#query', 'troubleshooting');
  await firstHit(page, 'words', /Troubleshooting/);
});

test('search by meaning works offline, and only new or changed notes are embedded again', {
  skip,
}, async (t) => {
  const context = await openContext(t, /ERR_INTERNET_DISCONNECTED/);
  const page = await openPage(context, true);
  const folder = folderOf({
    'garden.md': garden,
    'letter.md': letter,
    'old.md': '# Old\n\nGone soon.\n',
  });
  await choose(page, folder, /3 notes, 4 passages\. 3 new/);
  await whole(page);
  // the same text has the same vector
  await page.fill('#query', 'A letter\nDear aunt, the train to Bergen was late again.');
  await firstHit(page, 'meaning', /A letter/);
  assert.equal(await page.locator('#meaning li').count(), 4);
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page, colorScheme), [], colorScheme);
    await takePicture(page, `notes-${colorScheme}`, { fullPage: true });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await takePicture(page, 'notes-phone', { fullPage: true });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);

  /** Replaces each vector's first number, so that recomputed vectors differ. */
  const mark = `new Promise((settle) => {
    const opening = indexedDB.open('wick-notes');
    opening.onsuccess = () => {
      const store = opening.result.transaction('vectors', 'readwrite').objectStore('vectors');
      store.openCursor().onsuccess = ({ target: { result } }) => {
        if (!result) return settle(opening.result.close());
        result.value.vectors.fill(42);
        result.update(result.value);
        result.continue();
      };
    };
  })`;
  await page.evaluate(mark);
  rmSync(join(folder, 'old.md'));
  writeFileSync(join(folder, 'garden.md'), garden.replace('evening', 'morning')); // one of two passages
  writeFileSync(join(folder, 'new.md'), '# New\n\nSomething else.\n');
  await choose(page, folder, /3 notes, 4 passages\. 2 new or changed, 1 removed/);
  await whole(page);
  const kept = /** @type {any[]} */ (
    await page.evaluate(`new Promise((settle) => {
      const opening = indexedDB.open('wick-notes');
      opening.onsuccess = () => {
        const all = opening.result.transaction('vectors').objectStore('vectors').getAll();
        all.onsuccess = () => {
          opening.result.close();
          settle(all.result.map(({ path, vectors, dimensions }) =>
            [path, Array.from({ length: vectors.length / dimensions }, (_, i) => vectors[i * dimensions] === 42)]));
        };
      };
    })`)
  );
  assert.deepEqual(Object.fromEntries(kept), {
    'garden.md': [false, true],
    'letter.md': [true],
    'new.md': [false],
  });

  await untilTrue(page, 'navigator.serviceWorker.controller !== null');
  await context.setOffline(true);
  await page.reload();
  await page.locator('#model-state', { hasText: 'nomic-bert.gguf is ready' }).waitFor();
  await whole(page);
  await page.fill('#query', 'something');
  await firstHit(page, 'words', /New/);
  await page.locator('#meaning li').first().waitFor();
});

test('an index of thousands of notes and one of 5 MB resumes after a pause and a reload', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await openContext(t);
  const page = await openPage(context);
  /** @type {Record<string, string>} */
  const files = {};
  for (let index = 0; index < 3000; index++)
    files[`folder ${index % 50}/note ${index}.md`] =
      `# Note ${index}\n\nIt speaks of thing${index} and of lamps.\n`;
  const line = 'a line of a long book about ships and storms, number ';
  files['long.md'] =
    `# Long\n\n${Array.from({ length: 80_000 }, (_, index) => line + index).join('\n')}\n`;
  assert.ok(files['long.md'].length > 4.5e6);
  const folder = folderOf(files);
  await choose(page, folder, /3,001 notes, [\d,]+ passages\. 3,001 new/);
  await page.fill('#query', 'thing1234');
  await firstHit(page, 'words', /Note 1234/);
  await loadModel(page, 'nomic-bert.gguf');
  await page.locator('#embedding-state', { hasText: / per second, / }).waitFor();
  // more passages than are stored in one step
  await untilTrue(
    page,
    "Number(/^[\\d,]+/.exec(document.getElementById('embedding-state').textContent)?.[0].replace(',', '')) > 400",
  );
  await page.click('#pause');
  /** Waits for a state and returns the number in it. @param {RegExp} told */
  const numberIn = async (told) => {
    const text = await page.locator('#embedding-state', { hasText: told }).textContent();
    return Number(told.exec(text ?? '')?.[1].replaceAll(',', ''));
  };
  const paused = await numberIn(/^Paused at ([\d,]+) of/);
  await page.waitForTimeout(1000); // results in flight at the pause arrive now, but must not be shown
  assert.match((await page.textContent('#embedding-state')) ?? '', /^Paused at /);
  assert.ok(paused >= 256, `${paused} passages`);
  await page.reload();
  // the index resumes automatically without the folder
  const first = await numberIn(/^([\d,]+) of [\d,]+ passages, /);
  assert.ok(first >= paused - 64, `${first} after ${paused}`);
  const start = performance.now();
  await page.fill('#query', 'thing2999');
  await firstHit(page, 'words', /Note 2999/);
  t.diagnostic(
    `words among 3,001 notes while the index is made: ${Math.round(performance.now() - start)} ms`,
  );
  await page.click('#pause');
  const again = performance.now();
  await choose(page, folder, /0 new or changed, 0 removed/);
  t.diagnostic(`3,001 unchanged notes looked at in ${Math.round(performance.now() - again)} ms`);
});

test('with two tabs, one builds the index, and both use it', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await openContext(t);
  const first = await openPage(context, true);
  const second = await openPage(context, true);
  /** @type {Record<string, string>} */
  const files = {};
  for (let index = 0; index < 300; index++)
    files[`${index}.md`] = `# N${index}\n\nNumber ${index}.\n`;
  const folder = folderOf(files);
  await first.bringToFront(); // a file field works only in the foreground
  await choose(first, folder, /300 notes/);
  await second.bringToFront();
  await choose(second, folder, /300 notes/);
  await Promise.all([whole(first), whole(second)]);
  for (const page of [first, second]) {
    await page.bringToFront();
    await page.fill('#query', 'N77');
    await firstHit(page, 'words', /N77/);
    await page.locator('#meaning li').nth(19).waitFor();
  }
});

test('a full disk is reported; the existing index is searched, and indexing continues with more space', {
  skip: skip || !isFull,
}, async (t) => {
  // Chromium caches the available space for half a minute, so it is low from the beginning
  const context = await openContext(t, undefined, { serviceWorkers: 'block' });
  const page = await context.newPage();
  const { origin } = new URL(server.url);
  const devtools = await context.newCDPSession(page);
  await devtools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1e6 });
  await page.goto(server.url);
  await loadModel(page, 'nomic-bert.gguf');
  await choose(page, folderOf({ 'garden.md': garden }), /1 notes/);
  await whole(page);
  // text that cannot be compressed well, with few distinct passages
  const { pick } = randomFrom(1);
  const paragraphs = Array.from({ length: 90 }, (_, index) => {
    const letters = Array.from({ length: 900 }, () => pick([...'abcdefghij klmnop']));
    return `paragraph${index} ${letters.join('')}`;
  });
  const text = Array.from({ length: 20 }, () => paragraphs.join('\n\n')).join('\n\n');
  const folder = folderOf({ 'garden.md': garden, 'long.md': text, 'other.md': letter });
  await choose(page, folder, /my notes: 3 notes, 1,803 passages\. 2 new/);
  await page.locator('.problem', { hasText: 'storage of this browser is full' }).first().waitFor();
  for (const [query, found] of /** @type {const} */ ([
    ['roses', /The garden/],
    ['paragraph77', /long/],
    ['bergen', /A letter/],
  ])) {
    await page.fill('#query', query);
    await firstHit(page, 'words', found);
  }
  await devtools.send('Storage.overrideQuotaForOrigin', { origin });
  await choose(page, folder, /3 notes, 1,803 passages\. 1 new/);
  await page.locator('#embedding-problem').waitFor({ state: 'hidden' }); // embedding continues automatically
  await whole(page);
  assert.equal(await page.locator('.problem:visible').count(), 0);
  await page.reload();
  await page.locator('#folder-state', { hasText: '3 notes, 1,803 passages. Unchanged' }).waitFor();
});

test('a text-generation model is accepted with a warning, a reranker is rejected', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await openContext(t);
  const page = await openPage(context, true);
  await choose(page, folderOf({ 'garden.md': garden }), /1 notes/);
  await whole(page);
  await page.fill('#model-address', `${server.url}models/bert-rank.gguf`);
  await page.click('#model-load');
  await page
    .locator('#model-problem', {
      hasText: /this model ranks texts.* nomic-bert\.gguf is still loaded/,
    })
    .waitFor();
  await page.selectOption('#model', 'file');
  await page.setInputFiles('#model-file', resolve(root, 'examples/models/wick-4.2m-q4_0.gguf'));
  await page.click('#model-load');
  await page.locator('#model-warning', { hasText: 'made to write text' }).waitFor();
  await whole(page); // all notes are embedded again, because vectors of different models cannot be compared
  await page.fill('#query', 'roses');
  await page.locator('#meaning li').first().waitFor();
});

test('a folder with a handle is checked again after a reload', {
  skip: skip || !isFull,
}, async (t) => {
  const context = await openContext(t);
  // the origin's private folder replaces the one that a user picks
  await context.addInitScript(`globalThis.showDirectoryPicker = async () =>
    (await navigator.storage.getDirectory()).getDirectoryHandle('picked', { create: true });`);
  const page = await openPage(context);
  const write = (/** @type {string} */ name, /** @type {string} */ text) =>
    page.evaluate(`(async () => {
      const folder = await showDirectoryPicker();
      const file = await folder.getFileHandle(${JSON.stringify(name)}, { create: true });
      const stream = await file.createWritable();
      await stream.write(${JSON.stringify(text)});
      await stream.close();
    })()`);
  await write('one.md', garden);
  await page.click('#choose-folder');
  await page.locator('#folder-state', { hasText: /^picked: 1 notes/ }).waitFor();
  await page.reload();
  await page.locator('#folder-state', { hasText: 'Unchanged since the last visit' }).waitFor();
  await write('two.md', letter);
  await page.click('#again');
  await page.locator('#folder-state', { hasText: /2 notes, 3 passages\. 1 new/ }).waitFor();
  // empties the folder, as if its disk were not connected
  await page.evaluate(`showDirectoryPicker().then((folder) =>
    Promise.all(['one.md', 'two.md'].map((name) => folder.removeEntry(name))))`);
  await page.click('#again');
  await page.locator('#folder-state', { hasText: 'The folder has no notes now' }).waitFor();
  await page.fill('#query', 'bergen');
  await firstHit(page, 'words', /A letter/);
  await page.click('#forget');
  await page.locator('#folder-state', { hasText: 'No folder yet' }).waitFor();
});

test('two folders with the same name are kept separate, and each is recognised again', {
  skip: skip || !isFull,
}, async (t) => {
  const page = await openPage(await openContext(t));
  const first = folderOf({ 'garden.md': garden, 'README.md': '# First\n\nOf roses.\n' });
  const second = folderOf({
    'letter.md': letter,
    'README.md': '# Second\n\nOf trains and more.\n',
  });
  await choose(page, first, /^my notes: 2 notes, 3 passages\. 2 new or changed, 0 removed/);
  await choose(page, second, /^my notes \(2\): 2 notes, 2 passages\. 2 new or changed, 0 removed/);
  await page.fill('#query', 'roses');
  await page.locator('#words-note', { hasText: 'No note contains these words' }).waitFor();
  writeFileSync(join(first, 'README.md'), '# First\n\nOf roses, and changed.\n');
  await choose(page, first, /^my notes: 2 notes, 3 passages\. 1 new or changed, 0 removed/);
  await page.reload();
  await page.locator('#folder-state', { hasText: /^my notes: 2 notes/ }).waitFor();
  await choose(page, second, /^my notes \(2\): 2 notes, 2 passages\. 0 new or changed, 0 removed/);
});

/** Steps for Firefox and WebKitGTK, run as a script: the files of a folder are assigned to the file field. */
const steps = `
  const until = async (condition) => { while (!condition()) await new Promise((settle) => setTimeout(settle, 50)); };
  const byId = (id) => document.getElementById(id);
  await until(() => byId('model').options.length > 3);
  byId('model').value = 'address';
  byId('model-address').value = 'models/nomic-bert.gguf';
  byId('model-load').click();
  await until(() => byId('model-state').textContent.includes('is ready') || !byId('model-problem').hidden);
  const fileOf = (name, text) => {
    const file = new File([text], name, { lastModified: 1 });
    Object.defineProperty(file, 'webkitRelativePath', { value: 'own/' + name });
    return file;
  };
  const files = [fileOf('garden.md', '# The garden\\n\\nThe roses need water.\\n'), fileOf('b.md', '# Other\\n\\nNothing.\\n')];
  Object.defineProperty(byId('folder-files'), 'files', { value: files });
  byId('folder-files').dispatchEvent(new Event('change'));
  await until(() => byId('embedding-state').textContent.includes('is complete'));
  byId('query').value = 'roses';
  byId('query').dispatchEvent(new Event('input'));
  await until(() => byId('words').children.length === 1 && byId('meaning').children.length === 2);
  return [byId('folder-state').textContent, byId('words').textContent];`;

/** @param {string[]} found */
function assertWorks([state, words]) {
  assert.match(state, /^own: 2 notes, 2 passages\. 2 new/);
  assert.match(words, /The garden.*The roses need water\./s);
}

test('Firefox: a folder, its index, both searches', {
  skip: locate('firefox').skip || shared.skip,
}, async () => {
  const firefox = await launchFirefox();
  try {
    const page = await firefox.newPage();
    await page.goto(server.url);
    assertWorks(/** @type {any} */ (await page.evaluate(`(async () => { ${steps} })()`)));
  } finally {
    await firefox.close();
  }
});

test('WebKitGTK: a folder, its index, both searches', {
  skip: locate('webkitDriver').skip || shared.skip,
}, async () => {
  const page = await launchWebKit();
  try {
    await page.goto(server.url);
    assertWorks(await page.evaluate(steps));
  } finally {
    await page.close();
  }
});
