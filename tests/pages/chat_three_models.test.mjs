// Models in the chat page in Firefox and WebKitGTK, with the package's engine and store: the hub's search,
// models in the list, an imported file, the list of stored models. More thorough tests in Chromium:
// tests/pages/chat_models.test.mjs, tests/pages/chat_picker.test.mjs.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { before } from 'node:test';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { startListedHub } from '../support/fake_hub.mjs';
import { root } from '../support/locate.mjs';
import { assertContinued, serveModel } from '../support/model_server.mjs';
import { runPasses, testInBoth, useReal } from '../support/two_browsers.mjs';

const small = readFileSync(resolve(root, 'examples/models/wick-2.6m-q4_0.gguf'));
/** Four chunks in the store; the bytes after the weights are not read. */
const large = Buffer.concat([small, Buffer.alloc(3 * CHUNK_BYTES)]);

/** The page's URL contains the hub's URL. */
const { site, url } = useReal(
  'chat-three-models',
  `const hub = new URLSearchParams(location.search).get('hub');
  if (hub) localStorage.setItem('wick-chat-hub', hub);`,
);

before(() => writeFileSync(resolve(site, 'small.gguf'), small));

const listing = `
  const { openModels } = await import('./wick-llm/models.js');
  const listed = async () => {
    const store = await openModels();
    const all = await store.list();
    await store.close();
    return all;
  };`;

const searching = `${listing}
  one('#new-chat').click();
  await askReal('What is Wick?'); // the model's speed is measured
  one('#choose-model').click();
  const row = (text) => until(text, () => all('#found .row').find((one) => one.textContent.includes(text)));
  type('tiny', one('#model-url'));
  (await row('wick/tiny-GGUF')).click();
  const file = await row('tiny-Q4_0.gguf');
  const others = all('#found .row').filter((one) => one.textContent.includes('mmproj')).length;
  file.click();
  const words = (await until('judged', () => one('#found .verdict'))).textContent;
  one('#load-model').click();
  await untilModel('tiny-Q4_0.gguf');
  const kept = await until('kept', async () => (await listed()).find(({ isWhole }) => isWhole));
  return { others, fits: /It fits: it needs 11 MB/.test(words), shape: /llama, 3 M parameters/.test(words),
    speed: /about \\d+ tokens\\/s/.test(words), size: kept.size, hash: /^[0-9a-f]{64}$/.test(kept.sha256) };`;

const list = `
  one('#choose-model').click();
  const choose = (id) => one('[value="' + id + '"]').click();
  const judged = (words) => until(words, () => all('#listed .verdict').find((one) => one.textContent.includes(words)));
  choose('smollm2-360m');
  await judged('It does not run here');
  choose('smollm2-135m');
  const card = await judged('It fits: it needs 11 MB');
  const speed = /about \\d+ tokens\\/s/.test(card.textContent);
  choose('smollm2-360m'); // the model is checked again, and loaded only if the user insists
  one('#load-model').click();
  await judged('It does not run here');
  const stays = one('#model-dialog').open;
  choose('smollm2-135m');
  one('#load-model').click();
  await untilModel('SmolLM2 135M Instruct, Q8_0');
  return { speed, stays };`;

testInBoth(
  'words are searched for, a repository lists its files; a model in the list is rated with its speed',
  async (visit, t) => {
    const hub = await startListedHub(small);
    t.after(() => hub.close());
    const address = `${url()}?hub=${encodeURIComponent(hub.url)}`;
    const found = {
      others: 0,
      fits: true,
      shape: true,
      speed: true,
      size: small.length,
      hash: true,
    };
    await runPasses(visit, address, [['search', searching, found]]);
    const { length } = hub.state.asked;
    const name = 'tiny-Q4_0.gguf';
    const loaded = `await untilModel('${name}'); return { name: one('#model-name').textContent };`;
    await runPasses(visit, address, [['at the next visit', loaded, { name }]]);
    assert.equal(hub.state.asked.length, length, 'the hub is not queried again');
    await runPasses(visit, address, [['list', list, { speed: true, stays: true }]]);
  },
);

const importing = `
  one('#new-chat').click();
  one('#developer').open = true;
  const bytes = await (await fetch('small.gguf')).arrayBuffer();
  one('#choose-model').click();
  takeIn('mine.gguf', bytes, one('#model-file'));
  one('#load-model').click();
  await untilModel('mine.gguf');
  await until('told', () => one('#notice-text').textContent.includes('mine.gguf (1.6 MB) is saved'));
  const said = await askReal('What is Wick?');
  await fact('Next visit', /kept in this browser/);
  return { isSaid: /\\w/.test(said), isOne: all('.message.assistant').length === 1 };`;

const imported = `
  one('#developer').open = true;
  await untilModel('mine.gguf');
  const [, count] = await fact('Last visit', /^(\\d+) of \\d+ tokens restored/);
  return { isThere: shown().length === 2, isTaken: Number(count) > 0, said: /\\w/.test(await askReal('And now?')) };`;

/** Runs in the page: changes a byte of the third chunk, in a file or in a record. */
const damaging = `
  const damage = async () => {
    const { kind } = await openModels();
    if (kind === 'indexeddb') return damageRecord();
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('wick-llm-models');
    for await (const handle of folder.values()) {
      const file = handle.kind === 'directory' && await handle.getFileHandle('2').catch(() => undefined);
      if (!file) continue;
      const bytes = new Uint8Array(await (await file.getFile()).arrayBuffer());
      bytes[99] ^= 1;
      const writable = await file.createWritable();
      await writable.write(bytes);
      await writable.close();
    }
  };
  const damageRecord = () => new Promise((settle, fail) => {
    const opening = indexedDB.open('wick-llm-models');
    opening.onerror = fail;
    opening.onsuccess = () => {
      const transaction = opening.result.transaction('chunks', 'readwrite');
      transaction.oncomplete = () => { opening.result.close(); settle(); };
      transaction.objectStore('chunks').openCursor().onsuccess = ({ target: { result: cursor } }) => {
        if (!cursor) return;
        const bytes = cursor.value;
        if (cursor.key[1] === 2) { new Uint8Array(bytes.buffer ?? bytes)[99] ^= 1; cursor.update(bytes); }
        cursor.continue();
      };
    };
  });`;

const managing = `${listing}${damaging}
  await untilModel('slow.gguf');
  one('#choose-model').click();
  const line = () => all('#kept-models li').find((one) => one.textContent.includes('slow.gguf'));
  const press = (name) => until(name, () => button(name + ': slow.gguf')).then((one) => one.click());
  const says = (words) => until(words, () => line()?.textContent.includes(words));
  await press('Verify');
  await says('undamaged');
  const size = line().textContent.match(/[\\d.]+ MB/)[0];
  await damage();
  await press('Verify');
  await says('1 damaged part: Resume downloads them again');
  await press('Resume');
  await press('Verify');
  await says('undamaged');
  await press('Delete');
  const isAsked = line() !== undefined && /Really/.test(line().textContent);
  [...line().querySelectorAll('button')].find((one) => /Really/.test(one.textContent)).click();
  await until('gone', () => !line());
  return { size, isAsked, left: (await listed()).filter(({ name }) => name === 'slow.gguf').length };`;

testInBoth(
  'a file is imported with its saved state; damage is found and repaired, a model is deleted',
  async (visit, t) => {
    await runPasses(visit, url(), [
      ['a file', importing, { isSaid: true, isOne: true }],
      ['at the next visit', imported, { isThere: true, isTaken: true, said: true }],
    ]);
    const model = await serveModel(large);
    t.after(() => model.close());
    const address = `${model.url.replace(/\/[^/]*$/, '')}/slow.gguf`;
    const size = `${(large.length / 1e6).toFixed(1)} MB`;
    await runPasses(visit, `${url()}?model=${encodeURIComponent(address)}`, [
      ['the list of models', managing, { size, isAsked: true, left: 0 }],
    ]);
    assertContinued(model.state.starts, 2 * CHUNK_BYTES);
  },
);
