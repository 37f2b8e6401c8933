// Malicious book files: wrong sizes, text and states that differ from the signed ones, invalid keys. With
// fake-indexeddb.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import 'fake-indexeddb/auto';

Object.assign(globalThis, { BroadcastChannel: undefined }); // an open channel keeps Node alive
Object.assign(globalThis, globalThis.navigator ? {} : { navigator: {} }); // Node 20 has none
const { isBook, readBookFile, writeBook } = await import('../../examples/chat/book_file.js');
const { exportKey, importKey } = await import('../../examples/chat/book_key.js');
const store = await import('../../examples/chat/book_store.js');
const { partsInWords, partsOf } = await import('../../examples/chat/book_text.js');

const text = 'A fox lives by the river. Ein Fuchs — 狐.';
const state = Uint8Array.from({ length: 5000 }, (_, index) => index * 7);
const book = {
  ...{ id: 'b', version: /** @type {const} */ (1), title: 'Foxes', letters: text.length },
  ...{ created: 5, deleted: 0, savedMs: 0, opened: 0 },
};
const reading = {
  ...{ key: 'b f', book: 'b', fingerprint: 'f', model: 'm', kvType: /** @type {const} */ ('q8') },
  ...{ tokens: 12, total: 12, ms: 900, size: state.length, pieces: 1 },
};

/** @param {import('../../examples/chat/book_store.js').Reading} [of] */
const written = async (of = reading) => {
  const blob = await writeBook(book, text, { reading: of, bytes: state });
  return new Uint8Array(await blob.arrayBuffer());
};

/** @param {Uint8Array<ArrayBuffer>} bytes */
const read = (bytes) => readBookFile(new Blob([bytes]));

const damage =
  /it is damaged, or not a book from this page|written by a different version of this page|encoded data was not valid/;

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {(head: any) => unknown} change changes the head, whose length is then corrected
 * @returns {Uint8Array<ArrayBuffer>}
 */
function withHead(bytes, change) {
  const view = new DataView(bytes.buffer);
  const length = view.getUint32(12, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.slice(16, 16 + length)));
  const made = new TextEncoder().encode(JSON.stringify(change(head) ?? head));
  const start = bytes.slice(0, 16);
  new DataView(start.buffer).setUint32(12, made.length, true);
  return new Uint8Array([...start, ...made, ...bytes.slice(16 + length)]);
}

/** Returns the range of the signature, after the head. @param {Uint8Array<ArrayBuffer>} bytes */
function proofOf({ buffer }) {
  const view = new DataView(buffer);
  const at = 16 + view.getUint32(12, true);
  return { at, end: at + 8 + view.getUint32(at, true) };
}

test('a written book is read back, with its state if the key is available', async () => {
  const bytes = await written();
  assert.equal(await isBook(new Blob([bytes])), true);
  const found = await read(bytes);
  assert.equal(found.text, text);
  assert.equal(found.title, 'Foxes');
  assert.deepEqual(found.bytes, state);
  assert.equal(found.why, '');
  assert.deepEqual([found.state?.tokens, found.state?.kvType], [12, 'q8']);
  const plain = await writeBook(book, text);
  assert.match((await readBookFile(plain)).why, /none of it has been read yet/);
});

test('any changed byte is detected: the file is rejected, or only its text is used', async () => {
  const bytes = await written();
  const proof = proofOf(bytes);
  for (let at = 0; at < bytes.length; at += at < 1200 ? 7 : 211) {
    const changed = bytes.slice();
    changed[at] ^= 0x04;
    const found = await read(changed).catch((error) => {
      assert.match(error.message, damage, `byte ${at}`);
      return undefined;
    });
    if (!found) continue;
    assert.equal(found.text, text);
    if (at >= proof.at && at < proof.end && found.bytes) continue; // base64 has unused bits
    assert.equal(found.bytes, undefined, `byte ${at}`);
    assert.notEqual(found.why, '');
  }
});

test('a file that is truncated anywhere, or too long, is rejected', async () => {
  const bytes = await written();
  for (let size = 0; size < bytes.length; size += size < 600 ? 13 : 401)
    await assert.rejects(read(bytes.slice(0, size)), damage, `${size}`);
  await assert.rejects(read(new Uint8Array([...bytes, 0])), damage);
});

test('false sizes are rejected before memory is allocated', async () => {
  const bytes = await written();
  /** @type {((head: any) => unknown)[]} */
  const lies = [
    (head) => {
      head.text.bytes = 2 ** 40;
    },
    (head) => {
      head.text.bytes = -1;
    },
    (head) => {
      head.text.bytes = 0.5;
    },
    (head) => {
      head.text.bytes += 1;
    },
    (head) => {
      head.state.bytes = 2 ** 53;
    },
    (head) => {
      head.state.bytes = '5000';
    },
    (head) => {
      head.state.bytes -= 1;
    },
    (head) => {
      head.state.tokens = 1e9;
    },
    (head) => {
      head.state.tokens = 13;
    },
    (head) => {
      head.state.kvType = 'f64';
    },
    (head) => {
      head.state.ms = -1;
    },
    (head) => {
      head.state.ms = 1e300;
    },
    (head) => {
      head.state.fingerprint = 'x'.repeat(300);
    },
    (head) => {
      head.state = null;
    },
    (head) => {
      head.title = '';
    },
    (head) => {
      head.title = 'x'.repeat(400);
    },
    (head) => {
      head.title = { toString: 'no' };
    },
    (head) => {
      head.created = 'now';
    },
    (head) => {
      delete head.text;
    },
    () => [],
    () => 7,
  ];
  for (const [index, lie] of lies.entries())
    await assert.rejects(read(withHead(bytes, lie)), damage, `lie ${index}`);
  for (const [at, word] of /** @type {const} */ ([
    [8, 2],
    [12, 0xffffffff],
    [12, 17_000],
  ])) {
    const changed = bytes.slice();
    new DataView(changed.buffer).setUint32(at, word, true);
    await assert.rejects(read(changed), damage);
  }
  // well-formed metadata that was not signed
  for (const change of [
    (/** @type {any} */ head) => {
      head.state.fingerprint = 'another';
    },
    (/** @type {any} */ head) => {
      head.state.tokens = 11;
    },
    (/** @type {any} */ head) => {
      head.title = 'Hens';
    },
  ])
    assert.match((await read(withHead(bytes, change))).why, /not signed by any of your keys/);
});

test('different text with a correct digest does not match the signature, nor does a signature from another book', async () => {
  const bytes = await written();
  const other = await writeBook({ ...book, title: 'Hens' }, 'Hens!', { reading, bytes: state });
  const theirs = new Uint8Array(await other.arrayBuffer());
  const [mine, foreign] = [proofOf(bytes), proofOf(theirs)];
  const swapped = new Uint8Array([
    ...theirs.slice(0, foreign.at),
    ...bytes.slice(mine.at, mine.end),
    ...theirs.slice(foreign.end),
  ]);
  const found = await read(swapped);
  assert.equal(found.bytes, undefined);
  assert.match(found.why, /not signed by any of your keys/);
});

test('a key that is invalid, or not a pair, is rejected; the previous key still works', async () => {
  const bytes = await written();
  const key = JSON.parse(await exportKey());
  for (const broken of [
    'no JSON',
    '{}',
    JSON.stringify({ ...key, algorithm: 'constructor' }),
    JSON.stringify({ ...key, private: { ...key.private, d: key.public.x } }),
    JSON.stringify({ ...key, public: { ...key.public, x: 7 } }),
    JSON.stringify({ ...key, public: undefined }),
  ])
    await assert.rejects(importKey(broken), /not a key from this page|damaged/);
  const pair = /** @type {CryptoKeyPair} */ (
    await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
      'sign',
      'verify',
    ])
  );
  const [own, shown] = await Promise.all(
    [pair.privateKey, pair.publicKey].map((one) => crypto.subtle.exportKey('jwk', one)),
  );
  const next = { ...key, algorithm: 'ECDSA', private: own, public: shown };
  await importKey(JSON.stringify(next));
  assert.equal(JSON.parse(await exportKey()).algorithm, 'ECDSA');
  assert.equal((await read(bytes)).why, ''); // the book was signed with the previous key
  assert.equal((await read(await written())).why, '');
  await importKey(JSON.stringify(key));
  assert.equal(JSON.parse(await exportKey()).public.x, key.public.x);
  assert.equal((await store.listKeys()).length, 2);
});

test('a longer saved state is not replaced by a shorter one, and is deleted with its book', async () => {
  await store.addBook(book, text);
  const { key, size, pieces, ...facts } = reading;
  const long = new Uint8Array(9 << 20).fill(3);
  await store.keepReading(facts, long);
  await store.keepReading({ ...facts, tokens: 5 }, state);
  const kept = await store.readingOf('b', 'f');
  assert.ok(kept);
  assert.deepEqual([kept.tokens, kept.pieces], [12, 3]);
  assert.deepEqual(await store.readState('b f'), { reading: kept, bytes: long });
  await store.removeBooks(['b']);
  assert.equal(await store.readingOf('b', 'f'), undefined);
  assert.equal(await store.readState('b f'), undefined);
  await store.keepReading(facts, state); // the book was deleted
  assert.equal(await store.readingOf('b', 'f'), undefined);
});

test('only the examined reading is removed, and the store is read in one transaction', async () => {
  await store.addBook(book, text);
  const { key, size, pieces, ...facts } = reading;
  await store.keepReading({ ...facts, tokens: 5 }, state);
  const judged = await store.readingOf('b', 'f');
  const [short, long] = [state, new Uint8Array(9 << 20).fill(3)];
  // another tab stores a larger part of the book in the meantime
  const [found] = await Promise.all([store.readState('b f'), store.keepReading(facts, long)]);
  const isWhole = found?.bytes?.length === (found?.reading.tokens === 5 ? short : long).length;
  assert.ok(isWhole, JSON.stringify(found?.reading));
  await store.removeReading('b f', judged);
  assert.equal((await store.readState('b f'))?.bytes?.length, long.length);
  await store.removeReading('b f', await store.readingOf('b', 'f'));
  assert.equal(await store.readState('b f'), undefined);
});

test('if a text is not split into all of its parts, the share of the text that they contain is reported', async () => {
  /** Each letter is a token. @type {any} */
  const engine = {
    tokenize: async (/** @type {any[]} */ messages) =>
      Array.from(messages.map(({ content }) => content).join('\n'), (one) => one.charCodeAt(0)),
  };
  const long = 'A line of a long text.\n'.repeat(100);
  const all = await partsOf(engine, 'Long', long, 500);
  assert.equal(all.join(''), long);
  assert.equal(
    partsInWords(all, long),
    `It was split into ${all.length} parts. The first one is being read.`,
  );
  const some = await partsOf(engine, 'Long', long, 500, 3);
  assert.ok(some.length === 3 && long.startsWith(some.join('')));
  assert.match(partsInWords(some, long), / 3 parts\. .* They contain its first \d\d %; the rest/);
});

test('a book is stored although the browser has closed the connection to the database', async (t) => {
  await store.listBooks();
  const { transaction } = IDBDatabase.prototype;
  const lost = t.mock.method(IDBDatabase.prototype, 'transaction', transaction);
  lost.mock.mockImplementationOnce(() => {
    throw new DOMException('The database connection is closing.', 'InvalidStateError');
  });
  await store.addBook({ ...book, id: 'lost' }, text);
  assert.equal((await store.readBook('lost'))?.text, text);
  assert.ok(lost.mock.callCount() > 1);
});
