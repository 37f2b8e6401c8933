// Files in the origin private file system, and the data stored in them, with fake folders; also files
// in Node.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import {
  canWriteHere,
  openSyncFile,
  readFile,
  storageError,
  wholeArray,
  writeFile,
} from '../../js/storage/browser_files.js';
import { keepBytes, readBytes } from '../../js/storage/saved_states.js';
import { openSwap } from '../../js/storage/swap_file.js';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);
const disk = mkdtempSync(join(tmpdir(), 'wick-storage-'));
after(() => rmSync(disk, { recursive: true }));
const notFound = () => Object.assign(new Error('none'), { name: 'NotFoundError' });

/**
 * Simulates an origin's files. `kind` determines how they can be written: through a copy, in place, or not at all.
 * @param {{kind?: 'copy' | 'place' | 'none', quota?: number, step?: number}} [options] `step`: limit of bytes per write
 */
function origin({ kind = 'copy', quota = 1e9, step = 1e9 } = {}) {
  /** @type {Map<string, Map<string, Uint8Array>>} */
  const folders = new Map();
  /** @type {any[]} */
  const log = [];
  /** The number of failed attempts before a file can be removed. @type {Map<string, number>} */
  const held = new Map();
  const full = () => Object.assign(new Error('quota'), { name: 'QuotaExceededError' });

  const folderOf = (/** @type {Map<string, Uint8Array>} */ files) => {
    const handleOf = (/** @type {string} */ name) => ({
      async getFile() {
        const bytes = any(files.get(name));
        return { size: bytes.length, arrayBuffer: async () => bytes.slice().buffer };
      },
      ...(kind === 'copy' && {
        async createWritable() {
          /** @type {Uint8Array | undefined} */
          let copy;
          return {
            async write(/** @type {Uint8Array} */ bytes) {
              if (bytes.length > quota) throw full();
              copy = bytes.slice();
            },
            async close() {
              log.push('close copy');
              files.set(name, any(copy));
            },
            async abort() {
              log.push('abort copy');
              throw new Error('the stream has ended');
            },
          };
        },
      }),
      ...(kind === 'place' && {
        async createSyncAccessHandle() {
          log.push(`open ${name === '' ? '' : 'file'}`.trim());
          return {
            truncate(/** @type {number} */ size) {
              log.push(['truncate', size]);
              files.set(name, any(files.get(name)).slice(0, size));
            },
            write(/** @type {Uint8Array} */ bytes, /** @type {any} */ { at }) {
              const count = Math.max(0, Math.min(bytes.length, step, quota - at));
              log.push(['write', bytes.length, at]);
              const before = any(files.get(name));
              const next = new Uint8Array(Math.max(before.length, at + count));
              next.set(before);
              next.set(bytes.subarray(0, count), at);
              files.set(name, next);
              return count;
            },
            read(/** @type {Uint8Array} */ bytes, /** @type {any} */ { at }) {
              const there = any(files.get(name)).subarray(at, at + bytes.length);
              bytes.set(there);
              return there.length;
            },
            flush: () => void log.push('flush'),
            close: () => void log.push('close'),
          };
        },
      }),
    });
    return {
      async getFileHandle(/** @type {string} */ name, { create = false } = {}) {
        if (!files.has(name)) {
          if (!create) throw notFound();
          files.set(name, new Uint8Array(0));
        }
        return handleOf(name);
      },
      async removeEntry(/** @type {string} */ name) {
        log.push('remove');
        const times = held.get(name) ?? held.get('*') ?? 0;
        if (times > 0) {
          held.set(held.has(name) ? name : '*', times - 1);
          throw new Error('the file is open');
        }
        if (!files.delete(name)) throw notFound();
      },
      async *keys() {
        yield* [...files.keys()];
      },
    };
  };
  const root = {
    async getDirectoryHandle(/** @type {string} */ name, { create = false } = {}) {
      if (!folders.has(name)) {
        if (!create) throw notFound();
        folders.set(name, new Map());
      }
      return folderOf(any(folders.get(name)));
    },
  };
  return { root, folders, log, held };
}

/**
 * Simulates a browser with these files.
 * @param {import('node:test').TestContext} t
 * @param {{root?: any, handle?: any}} [globals]
 */
function browse(t, { root, handle } = {}) {
  t.mock.method(any(process), 'getBuiltinModule', () => undefined);
  const storage = root && { getDirectory: async () => root };
  for (const [name, value] of /** @type {[string, any][]} */ ([
    ['navigator', { storage }],
    ['FileSystemFileHandle', handle],
  ])) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    t.after(() => {
      if (before) Object.defineProperty(globalThis, name, before);
      else delete any(globalThis)[name];
    });
  }
}

const bytes = Uint8Array.of(1, 2, 3, 4, 5);

describe('states in a browser', () => {
  test('are written through a copy and read back by name', async (t) => {
    const { root, folders, log } = origin();
    browse(t, { root });
    const never = async () => assert.fail('the worker was asked');
    await keepBytes('one', bytes, never);
    await keepBytes('two.x', bytes.subarray(1), never);
    await keepBytes('one', bytes.subarray(3), never);
    assert.deepEqual(Object.fromEntries(any(folders.get('wick-llm'))), {
      one: bytes.slice(3),
      'two.x': bytes.slice(1),
    });
    assert.deepEqual(await readBytes('one'), bytes.slice(3));
    assert.deepEqual(log, ['close copy', 'close copy', 'close copy']);
    assert.deepEqual([...folders.keys()], ['wick-llm']);
  });

  test('are written by the worker if only it can, in place and in as many writes as necessary', async (t) => {
    const { root, folders, log } = origin({ kind: 'place', step: 2 });
    browse(t, { root, handle: class {} });
    assert.equal(canWriteHere(), false);
    let asked = 0;
    await keepBytes('a', bytes, async () => void asked++);
    assert.deepEqual([asked, folders.size], [1, 0]);
    await writeFile('a', bytes);
    assert.deepEqual(any(folders.get('wick-llm')).get('a'), bytes);
    const writes = [5, 3, 1].map((left) => ['write', left, 5 - left]);
    assert.deepEqual(log, ['open file', ['truncate', 0], ...writes, 'flush', 'close']);
    log.length = 0;
    await writeFile('a', new Uint8Array(0));
    assert.deepEqual(any(folders.get('wick-llm')).get('a'), new Uint8Array(0));
    assert.deepEqual(log, ['open file', ['truncate', 0], 'flush', 'close']);
  });

  test('the host determines who writes files', (t) => {
    browse(t, { handle: undefined });
    assert.equal(canWriteHere(), true); // no thread can write, which writeFile reports
    any(globalThis).FileSystemFileHandle = class {
      createWritable() {}
    };
    assert.equal(canWriteHere(), true);
    any(globalThis).FileSystemFileHandle = class {};
    assert.equal(canWriteHere(), false);
  });

  test('if storage is full, the old file is kept, and a partial one is removed', async (t) => {
    const copied = origin({ quota: 4 });
    browse(t, { root: copied.root });
    const fullError = { code: 'STORAGE_FULL', message: 'a: cannot be saved, storage is full' };
    const none = async () => {};
    await assert.rejects(keepBytes('a', bytes, none), fullError);
    assert.deepEqual(copied.log, ['abort copy', 'remove']);
    assert.deepEqual([...any(copied.folders.get('wick-llm')).keys()], []);
    copied.log.length = 0;
    await keepBytes('a', bytes.subarray(4), none);
    await assert.rejects(keepBytes('a', bytes, none), fullError);
    assert.deepEqual(copied.log, ['close copy', 'abort copy']);
    assert.deepEqual(await readBytes('a'), bytes.slice(4));
    const placed = origin({ kind: 'place', quota: 4 });
    any(globalThis.navigator).storage.getDirectory = async () => placed.root;
    await assert.rejects(writeFile('a', bytes), {
      code: 'STORAGE_FULL',
      message: 'state: cannot be saved, storage is full',
    });
    assert.deepEqual(placed.log.slice(-2), ['close', 'remove']);
    assert.equal(any(placed.folders.get('wick-llm')).size, 0);
  });

  test('missing, forbidden and unnamed files are rejected', async (t) => {
    const { root } = origin();
    browse(t, { root });
    const none = { code: 'NOT_FOUND', message: 'Saved state not found: a' };
    await assert.rejects(readBytes('a'), none);
    for (const name of ['a/b', 'a\\b', '.', '..', '...']) {
      const error = {
        code: 'ARG',
        message: `${name} is not a valid name for a state: it must not be a path in browsers`,
      };
      await assert.rejects(readBytes(name), error);
      await assert.rejects(
        keepBytes(name, bytes, async () => {}),
        error,
      );
    }
    for (const name of ['', 5, null, undefined]) {
      const error = { code: 'ARG', message: 'state: needs a name' };
      await assert.rejects(readBytes(any(name)), error);
      await assert.rejects(
        keepBytes(any(name), bytes, async () => {}),
        error,
      );
    }
    await keepBytes('.a', bytes, async () => {}); // only names that consist of dots are invalid
    const closed = origin({ kind: 'none' });
    any(globalThis.navigator).storage.getDirectory = async () => closed.root;
    await assert.rejects(
      keepBytes('a', bytes, async () => {}),
      {
        code: 'NO_STORAGE',
        message: 'storage: this browser does not let pages write files',
      },
    );
    assert.equal(any(closed.folders.get('wick-llm')).size, 0);
    any(globalThis.navigator).storage = {};
    const noFiles = {
      code: 'NO_STORAGE',
      message: 'a: cannot be saved, this browser does not let pages write files',
    };
    await assert.rejects(
      keepBytes('a', bytes, async () => {}),
      noFiles,
    );
    any(globalThis).navigator = undefined;
    await assert.rejects(readBytes('a'), noFiles);
  });
});

test('file errors are mapped to error codes', () => {
  const of = (/** @type {any} */ error, /** @type {any[]} */ ...more) => {
    const result = storageError('a', error, ...more);
    assert.equal(result.cause, error);
    return [result.code, result.message];
  };
  const named = (/** @type {string} */ name) => ({ name });
  const coded = (/** @type {string} */ code) => ({ code });
  for (const error of [named('NotFoundError'), coded('ENOENT')]) {
    assert.deepEqual(of(error), ['NOT_FOUND', 'Saved state not found: a']);
    assert.deepEqual(of(error, 'x'), ['NOT_FOUND', 'x']);
  }
  for (const error of [named('QuotaExceededError'), coded('ENOSPC'), coded('EDQUOT')]) {
    assert.deepEqual(of(error), ['STORAGE_FULL', 'a: cannot be saved, storage is full']);
  }
  assert.deepEqual(of(new Error('odd')), ['IO', 'a could not be saved or read: Error: odd']);
  assert.deepEqual(of('odd'), ['IO', 'a could not be saved or read: odd']);
  assert.deepEqual(storageError('a', undefined).code, 'IO');
  assert.deepEqual(storageError('a', null).code, 'IO');
});

describe('states in Node', () => {
  test('replace their file once they are complete, and leave no other file', async () => {
    const name = join(disk, 'state');
    const never = async () => assert.fail('the worker was asked');
    await keepBytes(name, bytes, never);
    await keepBytes(name, bytes.subarray(2), never);
    assert.deepEqual(await readBytes(name), bytes.slice(2));
    assert.deepEqual(readdirSync(disk), ['state']);
    const other = join(disk, 'folder');
    mkdirSync(other);
    await assert.rejects(keepBytes(other, bytes, never), { code: 'IO' });
    assert.deepEqual(readdirSync(disk), ['folder', 'state']); // no temporary file remains
    rmSync(other, { recursive: true });
    const lost = join(disk, 'none', 'state');
    const message = `Folder not found: ${lost}`;
    await assert.rejects(keepBytes(lost, bytes, never), { code: 'NOT_FOUND', message });
    await assert.rejects(readBytes(lost), { message: `Saved state not found: ${lost}` });
    rmSync(name);
  });
});

describe('the swap file', () => {
  test('in a browser: a new file is created, abandoned ones are removed, and it is emptied and removed at the end', async (t) => {
    const { root, folders, log, held } = origin({ kind: 'place' });
    browse(t, { root });
    folders.set('wick-llm-swap', new Map(['old', 'open', 'older'].map((name) => [name, bytes])));
    held.set('open', 1e9);
    const swap = any(await openSwap(undefined));
    const files = any(folders.get('wick-llm-swap'));
    const [open, name] = [...files.keys()];
    assert.deepEqual([open, files.size, name.length], ['open', 2, 36]);
    assert.equal(swap.open(1, 5), true);
    assert.equal(swap.open(2, 4), true);
    assert.equal(swap.write(2, 1, bytes.subarray(0, 3)), true);
    const back = new Uint8Array(3);
    assert.equal(swap.read(2, 1, back), true);
    assert.deepEqual(back, bytes.slice(0, 3));
    assert.deepEqual(
      log.filter((one) => one[0] === 'write'),
      [['write', 3, 6]],
    );
    assert.equal(swap.read(2, 2, back), false); // beyond the end of the record
    log.length = 0;
    await swap.close();
    assert.deepEqual(log, [['truncate', 0], 'close', 'remove']);
    assert.deepEqual([...files.keys()], ['open']);
    assert.equal((await readFile('x').catch((error) => error)).name, 'NotFoundError');
  });

  test('in a browser: removal is retried up to a hundred times', async (t) => {
    browse(t, { root: {} });
    for (const [refusals, removes] of [
      [0, 1],
      [99, 100],
      [1000, 100],
    ]) {
      const { root, log, held } = origin({ kind: 'place' });
      any(globalThis.navigator).storage.getDirectory = async () => root;
      const { remove } = await openSyncFile();
      held.set('*', refusals);
      t.mock.timers.enable({ apis: ['setTimeout'] });
      let isOver = false;
      const removing = remove().then(() => {
        isOver = true;
      });
      const turns = async () => {
        for (let i = 0; i < 4; i++) await new Promise((settle) => setImmediate(settle));
      };
      for (let i = 1; i < removes; i++) {
        await turns();
        t.mock.timers.tick(19);
        await turns();
        assert.deepEqual([isOver, log.filter((one) => one === 'remove').length], [false, i]);
        t.mock.timers.tick(1);
      }
      await turns();
      t.mock.timers.tick(20);
      await removing;
      assert.equal(log.filter((one) => one === 'remove').length, removes);
      t.mock.timers.reset();
    }
  });

  test('in Node: an unlinked file in the given folder, or undefined if it cannot be created', async () => {
    const swap = any(await openSwap(disk));
    assert.deepEqual(readdirSync(disk), []); // it is already unlinked
    swap.open(1, 3);
    assert.equal(swap.write(1, 0, bytes.subarray(0, 3)), true);
    const back = new Uint8Array(2);
    assert.equal(swap.read(1, 1, back), true);
    assert.deepEqual(back, bytes.slice(1, 3));
    swap.open(2, 4);
    assert.equal(swap.read(2, 0, new Uint8Array(4)), false); // no bytes were written there
    swap.close();
    assert.equal(swap.write(1, 0, back), false); // the file is closed
    assert.equal(await openSwap(join(disk, 'none')), undefined);
    const file = join(disk, 'file');
    writeFileSync(file, 'x');
    assert.equal(await openSwap(file), undefined);
    assert.equal(readFileSync(file, 'utf8'), 'x');
  });
});

test('a save removes temporary files of killed saves of the same state, but not those of a running process', async () => {
  const folder = join(disk, 'killed');
  mkdirSync(folder);
  const state = join(folder, 'state');
  const { pid } = spawnSync(process.execPath, ['-e', '']); // a process that has exited
  const id = crypto.randomUUID();
  const left = `state.${pid}-${id}.tmp`;
  const old = `state.${id}.tmp`;
  const live = [`state.${process.pid}-${id}.tmp`, `state.${crypto.randomUUID()}.tmp`];
  const others = [`other.${pid}-${id}.tmp`, 'state.mine.tmp', 'state2'];
  for (const name of [left, old, ...live, ...others]) writeFileSync(join(folder, name), 'x');
  utimesSync(join(folder, old), new Date(0), new Date(0));
  await keepBytes(state, Uint8Array.of(1), async () => {});
  assert.deepEqual(readdirSync(folder).sort(), ['state', ...live, ...others].sort());
});

test('writes receive whole buffers, because Safari 26 ignores the bounds of views', () => {
  const view = Uint8Array.of(1, 2, 3, 4).subarray(1, 3);
  assert.deepEqual(new Uint8Array(wholeArray(view).buffer), Uint8Array.of(2, 3));
  const whole = Uint8Array.of(1, 2);
  assert.equal(wholeArray(whole), whole);
});
