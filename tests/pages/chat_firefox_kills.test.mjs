// Firefox is killed (SIGKILL) at random moments while a model downloads, an answer streams and a draft is typed, and restarted with the
// same profile. No stored data is lost or downloaded twice. With an engine that answers automatically and the package's store.
// `make soak` kills Firefox 60 times; a normal test run, a twentieth as often. For Chromium:
// tests/pages/chat_kills.test.mjs, tests/pages/chat_download_kills.test.mjs.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { CHUNK_BYTES } from '../../js/models/records.js';
import { serve } from '../../tools/serve.mjs';
import { killFirefox, launchFirefox, PATIENCE_MS } from '../support/browsers.mjs';
import { copyChat } from '../support/built_pages.mjs';
import { begin, prelude } from '../support/chat_steps.mjs';
import { stubEngine } from '../support/chat_stub.mjs';
import { locate, root } from '../support/locate.mjs';
import { pretendedModel, serveModel, TAIL_BYTES } from '../support/model_server.mjs';
import { randomOf } from '../support/random_bytes.mjs';
import { soakCount, soakSeed } from '../support/soak.mjs';
import { runFirst } from '../support/two_browsers.mjs';

const site = resolve(root, 'build/chat-firefox-kills');
const words = 'The answer has some words, which come one after the other. '.repeat(15).trim();
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;

before(async () => {
  await copyChat(site);
  runFirst(site, prelude);
  const answers = `globalThis.answersByItself = ${JSON.stringify(words)};`;
  writeFileSync(resolve(site, 'wick-llm/index.js'), answers + stubEngine);
  server = await serve({ root: site });
});

after(() => server.close());

/** Reads the stored data: rows of conversations, and the number of bytes of the model. */
const look = `
  const { openModels } = await import('/wick-llm/models.js');
  const stored = async () => {
    const store = await openModels();
    const [one] = await store.list();
    await store.close();
    const { turns, drafts } = await readAll();
    const answers = new Map(turns.filter(({ role }) => role === 'assistant').map(({ parent, content }) => [parent, content]));
    return { bytes: one?.storedBytes ?? 0, isWhole: one?.isWhole ?? false, drafts: drafts.map(({ text }) => text),
      said: turns.filter(({ role }) => role === 'user').map(({ id, content }) => [content, answers.get(id) ?? '']) };
  };`;

/** @param {string} question @param {string} draft @param {number} ms @param {number} least the minimum number of the model's bytes */
const live = (question, draft, ms, least) => `${begin}${look}
  const found = { box: one('#prompt').value, ...(await stored()) };
  submit(${JSON.stringify(question)});
  await until('asked', () => shown().includes(${JSON.stringify(question)}));
  type(${JSON.stringify(draft)});
  await until('a part', async () => (await stored()).bytes >= ${least});
  await until('the draft', async () => (await stored()).drafts.includes(${JSON.stringify(draft)}));
  await new Promise((settle) => setTimeout(settle, ${ms}));
  return { found, left: await stored() };`;

/** @typedef {{bytes: number, isWhole: boolean, drafts: string[], said: [string, string][]}} Stored */

/** @param {Stored & {box: string}} found @param {Stored} left @param {string} draft @param {string} what */
function assertThere(found, left, draft, what) {
  assert.equal(found.box, draft, what);
  assert.ok(found.bytes >= left.bytes, `${what}: ${found.bytes} of ${left.bytes} are left`);
  const said = new Map(found.said);
  for (const [question, answer] of left.said) {
    const now = said.get(question);
    assert.ok(now?.startsWith(answer), `${what}: ${question}: "${answer}" became "${now}"`);
  }
}

test('Firefox is killed at random moments: input, answers and downloads are kept', {
  skip: locate('firefox').skip,
}, async (t) => {
  const profile = mkdtempSync(join(tmpdir(), 'wick-firefox-'));
  const remote = await serveModel(pretendedModel(6 * CHUNK_BYTES));
  const random = randomOf(soakSeed + 5);
  /** @type {import('puppeteer-core').Browser | undefined} */
  let firefox;
  t.after(async () => {
    await firefox?.close();
    await remote.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  const { state } = remote;
  state.paceMs = 100;
  const address = `${remote.url.replace(/\/[^/]*$/, '')}/slow.gguf`;
  const url = `${server.url}?model=${encodeURIComponent(address)}`;
  const open = async () => {
    firefox = await launchFirefox({}, profile);
    const page = await firefox.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(url);
    return page;
  };
  /** @type {Stored | undefined} */
  let left;
  let draft = '';
  const rounds = soakCount(60);
  for (let round = 0; round <= rounds; round++) {
    state.starts.length = 0;
    if (round === rounds) state.paceMs = 0;
    const page = await open();
    const question = `Question ${round} of ${soakSeed}`;
    const least = round === 0 ? CHUNK_BYTES : 0;
    const next = `Draft ${round} of ${soakSeed}`;
    const script = live(
      question,
      next,
      random() * 700,
      round === rounds ? state.bytes.length : least,
    );
    const result = /** @type {any} */ (await page.evaluate(`(async () => { ${script} })()`));
    const what = `seed ${soakSeed}, round ${round}`;
    if (left) {
      assertThere(result.found, left, draft, what);
      const { bytes } = left;
      assert.ok(
        state.starts.every((start) => start >= bytes - TAIL_BYTES),
        `${what}: requested from ${state.starts}, but ${bytes} bytes are stored`,
      );
    }
    [left, draft] = [result.left, next];
    if (round === rounds) break;
    if (firefox) await killFirefox(firefox, profile);
  }
  assert.equal(left?.isWhole, true);
  const halves = left?.said.filter(([, answer]) => answer.length < words.length).length;
  t.diagnostic(
    `${rounds} kills, ${left?.said.length} questions, ${halves} partial answers, all kept`,
  );
});
