// The documentation's search: queries that users type, and the page that contains the first result.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAll, searchIndex } from '../../examples/docs/build.mjs';
import { firstWords } from '../../examples/shared/query.js';

const index = searchIndex(readAll().documents);

/** @type {[question: string, url: string][]} */
const questions = [
  ['how do I stop an answer', 'guide/streaming.html#stop-an-answer'],
  ['how much memory does a 1.7B model need with context 8192', 'guide/which-model.html'],
  ['which headers do threads need', 'guide/troubleshooting.html#threads'],
  ['keep a model for offline use', 'guide/offline.html'],
  ['get JSON by a schema', 'guide/structured-output.html'],
  ['how do I run two requests at once', 'guide/many-requests.html'],
  ['parallel requests', 'guide/many-requests.html'],
  ['which GGUF types are supported', 'features.html#models-and-gguf-types'],
  ['how do I embed documents', 'guide/embeddings.html'],
  ['what happens if storage is full', 'models.html#createengine-caches-what-it-loads'],
  ['how is a LoRA adapter loaded', 'guide/adapters.html'],
  ['stream tokens', 'guide/streaming.html'],
];

for (const [question, url] of questions) {
  test(`the first result for "${question}" answers it`, () => {
    const found = index.search(firstWords(question)).map((one) => one.url);
    assert.ok(found[0]?.startsWith(url), found.slice(0, 3).join(', '));
  });
}

test('a word with a typing error finds its section', () => {
  assert.equal(index.search('saltt')[0].url, 'guide/sessions.html#tenants-salt');
});

test('words without a subject find nothing', () => {
  assert.deepEqual(index.search('how do I use it'), []);
});
