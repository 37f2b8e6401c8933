// The chat page's store: conversations, turns and drafts in IndexedDB (fake-indexeddb) and in memory,
// two tabs at once, full disks, records from other versions, and imports.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { IDBFactory } from 'fake-indexeddb';
import 'fake-indexeddb/auto';
import { openDatabase, openMemory } from '../../examples/chat/database.js';
import {
  newConversation,
  newId,
  RECORD_VERSION,
  titleOf,
  wholeFrom,
} from '../../examples/chat/records.js';
import { Store } from '../../examples/chat/store.js';
import { readConversations, toMarkdown } from '../../examples/chat/transfer.js';
import { Keeper } from '../../examples/chat/write_queue.js';

/** @typedef {import('../../examples/chat/records.js').Turn} Turn */
/** @typedef {import('../../examples/chat/records.js').Conversation} Conversation */

let time = 0;

/** @param {Conversation} conversation @param {Partial<Turn>} [about] @returns {Turn} */
const turnOf = ({ id }, about = {}) => ({
  ...{ id: newId(), version: RECORD_VERSION, conversation: id, parent: '', role: 'user' },
  ...{ content: 'Question', state: 'whole', created: ++time },
  ...about,
});

/** @param {Conversation} conversation @param {string} text */
const draftOf = ({ id }, text) => ({
  ...{ id: 'a draft', version: RECORD_VERSION, conversation: id, field: '', text, tab: 'a tab' },
  changed: ++time,
});

beforeEach(() => {
  globalThis.indexedDB = new IDBFactory();
});

const openDisk = () => openDatabase('chat');

for (const [kind, open] of Object.entries({
  indexeddb: openDisk,
  memory: async () => openMemory(),
})) {
  describe(`over ${kind}`, () => {
    test('a question replaces its draft, and an answer is stored while it is generated', async () => {
      /** @type {object[]} */
      const news = [];
      const store = new Store(await open(), (one) => news.push(one));
      assert.equal(store.kind, kind);
      const about = newConversation({ title: 'A title' });
      await store.keepDraft(about, draftOf(about, 'Ques'));
      assert.deepEqual((await store.open(about.id))?.drafts[0].text, 'Ques');
      const question = turnOf(about);
      await store.ask(about, question, { draft: 'a draft' });
      const answer = turnOf(about, { parent: question.id, role: 'assistant', content: 'An' });
      await store.keepAnswer({ ...answer, state: 'writing' });
      const half = await store.open(about.id);
      assert.deepEqual(half?.drafts, []);
      assert.deepEqual(
        half?.turns.map(({ content, state }) => [content, state]),
        [
          ['Question', 'whole'],
          ['An', 'writing'],
        ],
      );
      await store.keepAnswer({ ...answer, content: 'An answer' }, true);
      const whole = await store.open(about.id);
      assert.equal(whole?.turns[1].content, 'An answer');
      assert.equal(whole?.turns[0].shown, answer.id);
      assert.equal(whole?.conversation.shown, question.id);
      assert.equal((await store.turn(answer.id))?.state, 'whole');
      assert.deepEqual(
        news.map((/** @type {any} */ one) => one.kind),
        ['conversation', 'turn', 'conversation', 'turn', 'turn', 'conversation'],
      );
      await store.close();
    });

    test('a conversation with only drafts is removed with its last letter', async () => {
      const store = new Store(await open());
      const about = newConversation();
      await store.keepDraft(about, draftOf(about, 'x'));
      assert.equal((await store.list()).length, 1);
      await store.keepDraft(about, draftOf(about, ''));
      assert.deepEqual(await store.list(), []);
      await store.close();
    });

    test('permanent deletion removes the turns; a deleted conversation that gets a question returns', async () => {
      const store = new Store(await open());
      const [about, other] = [newConversation(), newConversation()];
      const first = turnOf(about);
      await store.ask(about, first);
      await store.ask(other, turnOf(other));
      await store.changeConversation(about.id, { deleted: 5 });
      await store.ask(about, turnOf(about, { parent: first.id }));
      assert.equal((await store.open(about.id))?.conversation.deleted, 0);
      await store.remove([about.id]);
      const left = await store.everything();
      assert.deepEqual([left.conversations.length, left.turns.length], [1, 1]);
      // another tab still has it open
      await store.ask(about, turnOf(about, { parent: first.id }), { known: [first] });
      assert.equal((await store.open(about.id))?.turns.length, 2);
      await store.changeConversation(other.id, { deleted: 5 });
      await store.removeOld();
      assert.deepEqual(
        (await store.list()).map(({ id }) => id),
        [about.id],
      );
      await store.close();
    });

    test('a conversation that another tab deleted permanently stays deleted, unless it gets a message', async () => {
      const store = new Store(await open());
      const about = newConversation();
      const first = turnOf(about);
      const answer = turnOf(about, { parent: first.id, role: 'assistant', state: 'writing' });
      await store.ask(about, first);
      await store.keepAnswer(answer);
      await store.remove([about.id]);
      await store.keepAnswer({ ...answer, content: 'more' });
      await store.keepAnswer({ ...answer, state: 'whole' }, true);
      assert.deepEqual(
        (await store.everything()).turns,
        [],
        'an answer is not restored without its question',
      );
      await store.keepDraft(about, draftOf(about, 'And'));
      const next = turnOf(about, { parent: answer.id, content: 'And then?' });
      await store.ask(about, next, { draft: 'a draft', known: [first, answer] });
      const { turns } = await store.everything();
      assert.deepEqual(
        turns.map(({ id }) => id),
        [first, answer, next].map(({ id }) => id),
      );
      await store.close();
    });

    test('a failed transaction changes nothing', async () => {
      const database = await open();
      const store = new Store(database);
      const about = newConversation();
      await store.ask(about, turnOf(about));
      await assert.rejects(
        database.run('readwrite', async (rows) => {
          await rows('conversations').delete(about.id);
          throw new Error('no');
        }),
        /no/,
      );
      assert.equal((await store.list()).length, 1);
      await store.close();
    });
  });
}

test('two tabs at once: the messages of both are kept', async () => {
  const tabs = [new Store(await openDisk()), new Store(await openDisk())];
  const about = newConversation();
  const root = turnOf(about);
  await tabs[0].ask(about, root);
  const said = Array.from({ length: 40 }, (_, index) =>
    turnOf(about, { parent: root.id, content: `${index}` }),
  );
  await Promise.all(
    said.flatMap((turn, index) => [
      tabs[index % 2].ask(about, turn),
      tabs[(index + 1) % 2].changeConversation(about.id, { title: `Title ${index}` }),
      tabs[index % 2].changeTurn(root.id, { shown: turn.id }),
    ]),
  );
  const whole = await tabs[0].open(about.id);
  assert.deepEqual(
    whole?.turns.map(({ content }) => content),
    ['Question', ...said.map(({ content }) => content)],
  );
  assert.equal(whole?.conversation.title, 'Title 39');
  for (const tab of tabs) await tab.close();
});

test('records of a newer version are not changed', async () => {
  const database = await openDisk();
  const store = new Store(database);
  const about = newConversation();
  const newer = turnOf(about, { version: RECORD_VERSION + 1 });
  await store.ask(about, turnOf(about));
  await database.run('readwrite', async (rows) => {
    await rows('turns').put(newer);
    await rows('conversations').put(newConversation({ id: 'new', version: RECORD_VERSION + 1 }));
  });
  assert.deepEqual(
    (await store.list()).map(({ id }) => id),
    [about.id],
  );
  assert.equal((await store.open(about.id))?.turns.length, 1);
  assert.equal(await store.open('new'), undefined);
  assert.equal(await store.turn(newer.id), undefined);
  await store.changeTurn(newer.id, { content: 'overwritten' });
  await store.changeConversation('new', { title: 'overwritten' });
  const kept = await database.run('readonly', async (rows) => [
    await rows('turns').get(newer.id),
    await rows('conversations').get('new'),
  ]);
  assert.deepEqual([kept[0].content, kept[1].title], ['Question', '']);
  await store.close();
});

test('with a full disk, writes wait in order, and are made once there is space', async () => {
  const database = openMemory();
  let isFull = true;
  const full = {
    ...database,
    run: (/** @type {any} */ mode, /** @type {any} */ work) => {
      if (isFull && mode === 'readwrite') throw new DOMException('full', 'QuotaExceededError');
      return database.run(mode, work);
    },
  };
  const keeper = new Keeper();
  /** @type {(string | undefined)[]} */
  const troubles = [];
  keeper.onTrouble((error) => troubles.push(/** @type {Error | undefined} */ (error)?.name));
  const about = newConversation();
  const question = turnOf(about);
  const answer = turnOf(about, { parent: question.id, role: 'assistant' });
  const asked = keeper.add((store) => store.ask(about, question));
  keeper.use(new Store(full));
  await asked;
  for (const content of ['A', 'An', 'An answer']) {
    keeper.replace('answer', (store) => store.keepAnswer({ ...answer, content }));
  }
  keeper.replace('draft', (store) => store.keepDraft(about, draftOf(about, 'typed')));
  keeper.forget('draft');
  assert.equal(keeper.waiting, 2, 'only the last write of a key is made');
  assert.deepEqual(troubles, ['QuotaExceededError']);
  await keeper.add(async () => {}, 'last'); // the write waits for space, but the page does not
  keeper.forget('last');
  isFull = false;
  keeper.retry();
  await keeper.untilIdle();
  assert.equal(troubles.at(-1), undefined);
  const whole = await keeper.store.open(about.id);
  assert.deepEqual(
    whole?.turns.map(({ content }) => content),
    ['Question', 'An answer'],
  );
});

test('a write that replaces a waiting one is queued after all waiting ones', async () => {
  const keeper = new Keeper();
  /** @type {string[]} */
  const written = [];
  const write = (/** @type {string} */ text) => async () => void written.push(text);
  keeper.replace('draft', write('t'));
  keeper.add(write('the draft of a closed tab, in the same record'));
  keeper.replace('draft', write('that draft, and the typed text'));
  keeper.use(/** @type {any} */ ({}));
  await keeper.untilIdle();
  assert.deepEqual(written, [
    'the draft of a closed tab, in the same record',
    'that draft, and the typed text',
  ]);
});

test('an imported conversation keeps its branches, and gets new ids', () => {
  const turns = [
    { id: '0', parent: '', role: 'user', content: 'one', system: 'Be short.', shown: '1' },
    { id: '1', parent: '0', role: 'assistant', content: 'chosen', shown: '3' },
    { id: '2', parent: '0', role: 'assistant', content: 'other' },
    { id: '3', parent: '1', role: 'user', content: 'two', shown: '2' },
  ];
  const whole = wholeFrom({ conversation: { shown: '0' }, turns });
  const [one, chosen, other, two] = whole?.turns ?? [];
  assert.deepEqual([whole?.conversation.title, whole?.conversation.shown], ['one', one.id]);
  assert.deepEqual([chosen.parent, other.parent, two.parent], [one.id, one.id, chosen.id]);
  assert.deepEqual([one.shown, chosen.shown, two.shown], [chosen.id, two.id, undefined]);
  assert.equal(one.system, 'Be short.');
  assert.ok(turns.every(({ id }) => whole?.turns.every((turn) => turn.id !== id)));
});

test('input other than a conversation is rejected', () => {
  const message = { id: 'a', parent: '', role: 'user', content: 'text' };
  for (const turns of [
    undefined,
    'text',
    [],
    [1],
    [{ ...message, role: 'robot' }],
    [{ ...message, content: 1 }],
    [{ ...message, id: 1 }],
    [{ ...message, parent: 'later' }],
    [{ ...message, parent: 'a' }],
    [message, message],
  ]) {
    assert.equal(wholeFrom({ turns }), undefined, JSON.stringify(turns));
  }
  const conversation = {
    title: 7,
    model: 'x',
    settings: 'y',
    created: 'z',
    isPinned: 1,
    id: 'mine',
  };
  const whole = wholeFrom({ conversation, turns: [{ ...message, id: '__proto__' }] });
  assert.equal(whole?.conversation.title, 'text');
  assert.deepEqual([whole?.conversation.model, whole?.conversation.isPinned], [undefined, false]);
  assert.notEqual(whole?.conversation.id, 'mine');
});

test('a title consists of the first words', () => {
  assert.equal(titleOf('  Tell me\n a story '), 'Tell me a story');
  const long = titleOf('word '.repeat(40));
  assert.ok(long.length <= 61 && long.endsWith('word…'), long);
  assert.equal(titleOf('x'.repeat(90)), `${'x'.repeat(60)}…`);
});

test('Markdown contains tool calls with any content, and is imported with them', () => {
  const odd = '## You\n\n```\n## Call: x\n\\## Model\n````';
  const call = { id: 'a', name: 'calculator', arguments: '{"expression":"2+2"}', result: '4' };
  const rounds = [
    { content: 'Let me see.', calls: [call, { ...call, arguments: odd, result: odd }] },
    { content: '', calls: [{ id: 'b', name: 'clock', arguments: '{}' }] },
  ];
  const said = (/** @type {any[]} */ all) =>
    all.map(({ role, content, rounds: of = [] }) => [
      role,
      content,
      of.map((/** @type {any} */ one) => [
        one.content,
        one.calls.map((/** @type {any} */ { id: _, ...rest }) => rest),
      ]),
    ]);
  const turn = (/** @type {any} */ one, /** @type {number} */ index) => ({
    ...{ id: String(index), parent: index ? String(index - 1) : '', created: index },
    ...one,
  });
  const turns = [
    { role: 'user', content: 'How much?' },
    { role: 'assistant', content: 'Four.', rounds },
    { role: 'user', content: '## Call: no call\n\nBut a text.' },
    { role: 'assistant', content: '', rounds: [{ content: '', calls: [call] }] },
    { role: 'user', content: 'Go on.' },
  ].map(turn);
  const [whole] = readConversations(
    JSON.stringify({ format: 'wick-chat', version: 1, conversations: [{ turns }] }),
    'a.json',
  );
  const markdown = toMarkdown(whole);
  assert.match(
    markdown,
    /## Call: calculator\n\n```json\n\{"expression":"2\+2"\}\n```\n\n```\n4\n```/,
  );
  const [read] = readConversations(markdown, 'a.md');
  assert.deepEqual(said(read.turns), said(turns));
  // a file from an earlier version has such lines as text
  const [old] = readConversations('# T\n\n## You\n\nHi\n\n## Call: me\n\nBye\n', 'b.md');
  assert.equal(old.turns[0].content, 'Hi\n\n## Call: me\n\nBye');
});
