// The chat page with the package's engine and a built-in model, in Firefox and WebKitGTK: known
// words, early answers, dropped turns, a chosen template. More thorough tests in Chromium:
// tests/pages/chat_known_words.test.mjs, tests/pages/chat_ahead.test.mjs,
// tests/pages/chat_context.test.mjs, tests/pages/chat_templates.test.mjs.

import { resolve } from 'node:path';
import { before } from 'node:test';
import { areWordsRead, saying, writePlainModel } from '../support/chat_real.mjs';
import { runPasses, testInBoth, useReal } from '../support/two_browsers.mjs';

/** Takes the output that replaces the model's, and the replacement of the word list, from the URL. */
const replacing = `
  const wanted = new URLSearchParams(location.search);
  const replies = {
    missing: () => new Response('none', { status: 404 }),
    never: () => new Promise(() => {}),
  };
  const { fetch: ownFetch } = globalThis;
  globalThis.listed = new Promise((settle) => {
    globalThis.fetch = async (...request) => {
      if (!String(request[0]).endsWith('-words.txt')) return ownFetch(...request);
      const reply = await (replies[wanted.get('list')]?.() ?? ownFetch(...request));
      settle();
      return reply;
    };
  });
  if (wanted.has('says')) { ${saying("wanted.get('says')")} }`;

const { site, url } = useReal('chat-three-answers', replacing);

before(() => writePlainModel(resolve(site, 'plain.gguf')));

/** @param {string} said @param {string} [list] */
const saysTo = (said, list = '') => `${url()}?${new URLSearchParams({ says: said, list })}`;

/** Waits for the word list, which is loaded without an event. */
const untilListed =
  'await listed; await new Promise((settle) => setTimeout(settle, 300)); await until("saying", () => globalThis.isSaying);';
const untilWordsRead = `await until('words', () => ${areWordsRead}); ${untilListed}`;

testInBoth(
  'an invented word is not shown, copied words are, and answers do not wait for the word list',
  async (visit) => {
    const invented = `one('#new-chat').click();
    ${untilWordsRead}
    const said = await askReal('the capital of France?');
    const isTold = one('.message.assistant footer').textContent.includes('instead of an invented word');
    const [{ grammar, messages }] = again;
    return { said, isTold, isHeld: grammar.startsWith('root ::='), begun: messages.at(-1).content };`;
    const said = {
      said: 'Hello! I do not know that.',
      isTold: true,
      isHeld: true,
      begun: 'Hello!',
    };
    await runPasses(visit, saysTo('Hello! The capital of France is Zorble.'), [
      ['invented', invented, said],
    ]);
    const copied = `one('#new-chat').click();
    ${untilWordsRead}
    return { said: await askReal('i am zorble'), again };`;
    await runPasses(visit, saysTo('Your name is Zorble.'), [
      ['copied', copied, { said: 'Your name is Zorble.', again: [] }],
    ]);
    for (const list of ['missing', 'never']) {
      const asking = `one('#new-chat').click();
      ${list === 'never' ? 'await until("saying", () => globalThis.isSaying);' : untilListed}
      const said = await askReal('the capital of France?');
      one('#developer').open = true;
      ${list === 'never' ? '' : "await fact('Known words', /word list/);"}
      return { said };`;
      await runPasses(visit, saysTo('The capital is Zorble.', list), [
        [list, asking, { said: 'The capital is Zorble.' }],
      ]);
    }
  },
);

const aheadHelpers = `
  one('#developer').open = true;
  const untilBegun = (text) => fact('Before Enter', new RegExp('answer to “' + text.slice(-30).replace(/[?.]/g, '\\\\$&') + '”'));
  const untilAllReturned = () => until('all returned', async () => {
    const { sessions, pages, requests } = await engine.kvStats();
    return sessions === 0 && requests.running === 0 && requests.waiting === 0 && pages.free + pages.cached === pages.all;
  });
  const switchAhead = async (isOn) => {
    one('#open-settings').click();
    one('[name=ahead]').checked = isOn;
    one('#settings-form [value=save]').click();
    await until('closed', () => !one('#settings-dialog').open);
  };`;

/** @type {[name: string, script: string, wanted: object][]} */
const ahead = [
  [
    'answers to suggested follow-up questions are started, too',
    `${aheadHelpers}
    await askReal('What is Wick?');
    const chip = await until('two', () => all('.follow-ups button').length > 1 && one('.follow-ups button'));
    await fact('Follow-ups', /^2 answers started/);
    await until('forks', async () => {
      const { sessions, pages } = await engine.kvStats();
      return sessions >= 2 && pages.shared > 0;
    });
    const question = chip.textContent;
    chip.click();
    const footer = await until('answered', () => all('.message.assistant footer')[1]);
    return { isBegun: footer.textContent.includes('started before Enter'), isAsked: shown()[2] === question };`,
    { isBegun: true, isAsked: true },
  ],
  [
    'unused answers free their pages',
    `${aheadHelpers}
    one('#new-chat').click();
    type('Tell me a story about a fox.');
    await untilBegun('Tell me a story about a fox.');
    await until('separate pages', async () => {
      const { sessions, pages } = await engine.kvStats();
      return sessions > 0 && pages.cached < pages.all - pages.free;
    });
    type('');
    await fact('Before Enter', /^released/);
    await untilAllReturned();
    type('What is a fork?');
    await untilBegun('What is a fork?');
    one('#new-chat').click();
    await untilAllReturned();
    return {};`,
    {},
  ],
  [
    'the switch frees the early answers',
    `${aheadHelpers}
    one('#new-chat').click();
    type('What is Wick?');
    await untilBegun('What is Wick?');
    await switchAhead(false);
    await untilAllReturned();
    return {};`,
    {},
  ],
  [
    'the switch is remembered',
    `${aheadHelpers}
    await fact('Before Enter', /^off: switched off/);
    one('#new-chat').click();
    type('What is Wick?');
    await fact('Before Enter', /^off: switched off/);
    await switchAhead(true);
    await untilBegun('What is Wick?');
    return {};`,
    {},
  ],
];

testInBoth(
  'follow-up answers are started; unused answers free their pages; the switch is remembered',
  (visit) => runPasses(visit, `${url()}?ahead`, ahead),
);

/** Limits answers, so that the kept turns do not depend on an answer's length, and no answer contains an invented word. */
const dropping = `
  one('#new-chat').click();
  await setting('maxTokens', '8');
  one('#developer').open = true;
  const long = 'The fox and the lamp went to the river. '.repeat(95);
  for (const turn of ['1.', '2.']) await askReal(turn + ' ' + long);
  submit('And now? ' + long);
  (await until('offer', () => one('#make-room')?.checkVisibility() && one('#make-room'))).click();
  await until('answered', () => all('.message.assistant footer').length === 3);
  await atRest();
  const [, kept] = await fact('Left out', /^(\\d+) tokens after/);
  const [, , before] = await fact('Last prompt', /^(\\d+) tokens, (\\d+) of/);
  return { isMuch: kept > 800, isKept: Number(before) >= Number(kept), isProblem: !one('#problem').hidden };`;

const choosing = `
  await until('asked for', () => one('.template'));
  await click('Choose a template');
  const list = await until('list', () => one('#template-dialog[open] select'));
  list.value = 'chatml';
  list.dispatchEvent(new Event('change'));
  await click('Use it');
  await until('chosen', () => one('.template')?.textContent.includes('ChatML') && button('Send'));
  one('#new-chat').click();
  return { isAnswer: /Wick/.test(await askReal('What is Wick?')) };`;

const remembered = `
  await until('remembered', () => one('.template')?.textContent.includes('ChatML'));
  return { name: one('#model-name').textContent };`;

testInBoth(
  'removed turns are dropped from the session, the rest is not recomputed; a template is chosen',
  async (visit) => {
    const dropped = { isMuch: true, isKept: true, isProblem: false };
    await runPasses(visit, url(), [['the oldest turns', dropping, dropped]]);
    await runPasses(visit, `${url()}?model=${url()}plain.gguf`, [
      ['a template', choosing, { isAnswer: true }],
      ['at the next visit', remembered, { name: 'plain.gguf' }],
    ]);
  },
);
