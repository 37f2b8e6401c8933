// Books in the chat page in Firefox and WebKitGTK, with the package's engine and the built-in model: the shelf, and an imported
// book. More thorough tests in Chromium, and reading once: tests/pages/chat_books.test.mjs.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { begin } from '../support/chat_steps.mjs';
import { testInBoth, useReal } from '../support/two_browsers.mjs';

const { site, url } = useReal('chat-three-books');
/** Another origin, which has no access to the data of the first one. @type {Awaited<ReturnType<typeof serve>>} */
let elsewhere;

before(async () => {
  elsewhere = await serve({ root: site });
});
after(() => elsewhere.close());

const text = Array.from(
  { length: 40 },
  (_, index) => `The fox number ${index} lives in a small house by the river.\n`,
).join('');

/** Runs in the page. */
const shelf = `${begin}
  const saved = saving();
  const save = async (name) => {
    saved.file = undefined;
    await click(name);
    const file = await until(name, () => saved.file);
    let binary = '';
    for (const byte of new Uint8Array(await file.arrayBuffer())) binary += String.fromCharCode(byte);
    return btoa(binary);
  };
  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const openShelf = async () => {
    if (one('#books-dialog')?.open) return;
    one('#open-books').click();
    await until('shelf', () => one('#books-dialog[open]') && one('#book-file'));
  };
  const says = (words) => until(words, () => words.test(one('#books-note').textContent) && one('#books-note').textContent);
  const row = (title) => all('#books li').find((one) => one.querySelector('.name').textContent.includes(title));
  const read = async (title) => {
    await until('read: ' + title, () => button('Ask: ' + title));
    return Number(/([\\d,]+) tokens/.exec(row(title).textContent)[1].replaceAll(',', ''));
  };
  const ask = async (title) => {
    await click('Ask: ' + title);
    await until('opened', () => document.body.textContent.includes('About “' + title + '”') && !one('#books-dialog').open);
    one('#developer').open = true;
    await askReal('Why?');
    const [, prompt, cached] = await fact('Last prompt', /^(\\d+) tokens, (\\d+) of/);
    return { prompt: Number(prompt), cached: Number(cached) };
  };
  const remove = async (title) => {
    await click('Delete: ' + title);
    await says(/was deleted/);
  };
  await openShelf();`;

const mine = `${shelf}
  takeIn('mine.txt', ${JSON.stringify(text)}, one('#book-file'));
  const tokens = await read('mine.txt');
  const facts = row('mine.txt').textContent;
  const key = await save('Export the key');
  await says(/anyone who has it can sign books in your name/);
  const book = await save('Export: mine.txt');
  const { cached } = await ask('mine.txt');
  await openShelf();
  await until('time', () => /saved/.test(row('mine.txt').textContent));
  return { tokens, facts, key, book, cached, wrong };`;

/** @param {string} key @param {string} book */
const theirs = (key, book) => `${shelf}
  const book = bytesOf('${book}');
  const add = (name, bytes) => takeIn(name, bytes, one('#book-file'));
  add('mine.wickbook', book);
  await says(/is read again from its text: its saved state is not signed/);
  await read('mine.txt');
  await remove('mine.txt');
  takeIn('key.json', bytesOf('${key}'), one('#book-key-file'));
  await says(/This is now your key/);
  add('mine.wickbook', book);
  await says(/is signed with your key, so .* does not read it again/);
  const tokens = await read('mine.txt');
  const { cached } = await ask('mine.txt');
  await openShelf();
  const forged = book.slice();
  forged[forged.length - 100] ^= 1;
  add('forged.wickbook', forged);
  await says(/its saved state does not match the signature of your key/);
  add('cut.wickbook', book.subarray(0, book.length - 1));
  await says(/cut\\.wickbook: it is damaged, or not a book from this page/);
  return { tokens, cached, wrong };`;

testInBoth(
  'the shelf shows sizes and saved time; an imported book is read again, unless its signature is valid',
  async (visit) => {
    const { key, book, facts, ...own } = await visit(url(), mine);
    assert.deepEqual(own.wrong, []);
    assert.ok(own.tokens > 500 && own.cached >= own.tokens, `${own.cached} of ${own.tokens}`);
    assert.match(facts, /\d+(\.\d+)? (kB|MB)/);
    const found = await visit(elsewhere.url, theirs(key, book));
    assert.deepEqual(found.wrong, []);
    assert.ok(found.cached >= found.tokens, `${found.cached} of ${found.tokens}`);
  },
);
