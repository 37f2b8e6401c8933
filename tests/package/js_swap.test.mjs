// The swap file for pages of preempted requests, compared with a plain list of bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SwapFile } from '../../js/storage/swap_file.js';

/** Returns a file in memory. */
function memoryFile() {
  const file = {
    bytes: new Uint8Array(1 << 16),
    end: 0,
    read: (/** @type {Uint8Array} */ to, /** @type {number} */ at) => {
      to.set(file.bytes.subarray(at, at + to.byteLength));
      return to.byteLength;
    },
    write: (/** @type {Uint8Array} */ from, /** @type {number} */ at) => {
      file.bytes.set(from, at);
      file.end = Math.max(file.end, at + from.byteLength);
      return from.byteLength;
    },
    isClosed: false,
    close: () => {
      file.isClosed = true;
    },
  };
  return file;
}

test('records keep their bytes while others are added and dropped, and gaps are reused', async () => {
  const file = memoryFile();
  const swap = new SwapFile(file);
  /** @type {Map<number, Uint8Array>} */
  const kept = new Map();
  let state = 1;
  const draw = (/** @type {number} */ n) => {
    state = (state * 48271) % 0x7fffffff;
    return state % n;
  };
  let most = 0;
  for (let id = 1; id < 3000; id++) {
    const size = 8 * (1 + draw(4));
    assert.ok(swap.open(id, size));
    const bytes = Uint8Array.from({ length: size }, () => draw(256));
    assert.ok(swap.write(id, 0, bytes.subarray(0, 8)));
    assert.ok(swap.write(id, 8, bytes.subarray(8)));
    assert.ok(!swap.write(id, 8, bytes), 'beyond the end of the record');
    kept.set(id, bytes);
    if (kept.size > 12) {
      const gone = [...kept.keys()][draw(kept.size)];
      swap.drop(gone);
      kept.delete(gone);
      assert.ok(!swap.read(gone, 0, new Uint8Array(1)), 'a dropped record');
    }
    const [asked, whole] = [...kept][draw(kept.size)];
    const from = 4 * draw(2);
    const found = new Uint8Array(whole.byteLength - from);
    assert.ok(swap.read(asked, from, found));
    assert.deepEqual(found, whole.subarray(from));
    most = Math.max(
      most,
      [...kept.values()].reduce((sum, { byteLength }) => sum + byteLength, 0),
    );
  }
  assert.ok(file.end < 2 * most, `${file.end} bytes for at most ${most}`);
  await swap.close();
  assert.ok(file.isClosed);
});

test('a record takes the first gap that is large enough, including one of exactly its size', () => {
  const file = memoryFile();
  const swap = new SwapFile(file);
  /** @param {number} id @param {number} size @returns {number} the offset of its bytes */
  const place = (id, size) => {
    assert.ok(swap.open(id, size));
    file.bytes.fill(0);
    assert.ok(swap.write(id, 0, new Uint8Array(size).fill(id)));
    return file.bytes.indexOf(id);
  };
  const places = [1, 2, 3, 4, 5].map((id) => place(id, 10 * id));
  assert.deepEqual(places, [0, 10, 30, 60, 100]);
  swap.drop(2);
  swap.drop(4);
  assert.equal(place(6, 21), 60, 'too large for the first gap');
  assert.equal(place(7, 20), 10, 'a gap of exactly its size');
  assert.equal(place(8, 19), 81, 'a gap of exactly the remaining size');
  assert.equal(place(9, 1), 150, 'after the last record');
});
