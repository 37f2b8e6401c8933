// Compiling the module from different sources, and converting the event records that it writes to objects.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { decodeEvents } from '../../js/wasm/event_records.js';
import { rowsHost } from '../../js/wasm/host_functions.js';
import * as layout from '../../js/wasm/layout.js';
import { compileModule, isThreaded } from '../../js/wasm/wasm_module.js';

/** The smallest module, and one with only an empty function, exported as helper_main. */
const smallest = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
const name = Buffer.from('helper_main');
const exporting = Uint8Array.from([
  ...smallest,
  ...[1, 4, 1, 0x60, 0, 0],
  ...[3, 2, 1, 0],
  ...[7, 4 + name.length, 1, name.length, ...name, 0, 0],
  ...[10, 4, 1, 2, 0, 0x0b],
]);

const folder = mkdtempSync(join(tmpdir(), 'wick-wasm-'));
after(() => rmSync(folder, { recursive: true }));

describe('the module', () => {
  /** @param {string} type @param {BodyInit} body @param {number} [status] */
  const response = (type, body, status = 200) =>
    new Response(body, { status, headers: { 'Content-Type': type } });

  test('can be bytes, a part of a buffer, a module, a file or a response', async () => {
    const file = join(folder, 'm.wasm');
    writeFileSync(file, exporting);
    const padded = Uint8Array.from([1, 2, ...exporting, 3]);
    const sources = [
      exporting.buffer,
      padded.subarray(2, -1),
      new DataView(exporting.buffer),
      new WebAssembly.Module(exporting),
      pathToFileURL(file),
      pathToFileURL(file).href,
      response('application/wasm', exporting),
      response('application/octet-stream', exporting),
    ];
    for (const source of sources) assert.ok(isThreaded(await compileModule(source)));
    const given = new WebAssembly.Module(smallest);
    assert.equal(await compileModule(given), given);
    assert.ok(!isThreaded(given));
  });

  test('is rejected with the reason', async () => {
    const missing = pathToFileURL(join(folder, 'missing.wasm'));
    /** @type {[any, RegExp][]} */
    const refusals = [
      [smallest.subarray(1), /could not be loaded: CompileError/],
      [missing, /could not be loaded: .*ENOENT/],
      ['not a url', /could not be loaded: .*Invalid URL/],
      [response('application/wasm', exporting, 404), /answered 404/],
      [response('text/html; charset=utf-8', '<p>'), /web page instead.*bundler has lost the file/],
    ];
    for (const [source, message] of refusals) {
      await assert.rejects(compileModule(source), { code: 'WASM', message });
    }
    const { cause } = await compileModule(response('a/b', '', 503)).catch((error) => error);
    assert.deepEqual(cause, { status: 503, url: '' });
  });
});

describe('events', () => {
  /** @param {Record<string, number>} fields @param {string} text @param {[number, number][]} top */
  function recordOf(fields, text, top) {
    const bytes = Buffer.from(text);
    const used = layout.EVENT_BYTES + top.length * layout.TOP_BYTES + bytes.length;
    const record = Buffer.alloc(Math.ceil(used / 8) * 8);
    record.writeUInt32LE(record.length, layout.EVENT_SIZE_BYTES_AT);
    record.writeUInt32LE(bytes.length, layout.EVENT_TEXT_BYTES_AT);
    record.writeUInt32LE(top.length, layout.EVENT_TOP_COUNT_AT);
    for (const [name, value] of Object.entries(fields)) {
      const at = /** @type {any} */ (layout)[`EVENT_${name}_AT`];
      if (name.endsWith('_MS')) record.writeDoubleLE(value, at);
      else if (name === 'LOGPROB') record.writeFloatLE(value, at);
      else if (/^(FINISH|STOP|STATUS|SUBJECT)$/.test(name)) record.writeUInt16LE(value, at);
      else record.writeInt32LE(value, at);
    }
    for (const [i, [token, logprob]] of top.entries()) {
      const at = layout.EVENT_BYTES + i * layout.TOP_BYTES;
      record.writeInt32LE(token, at + layout.TOP_TOKEN_AT);
      record.writeFloatLE(logprob, at + layout.TOP_LOGPROB_AT);
    }
    bytes.copy(record, layout.EVENT_BYTES + top.length * layout.TOP_BYTES);
    return record;
  }

  test('every field, the candidates and the text of consecutive records are read', () => {
    const fields = {
      ...{ REQUEST: 3, KIND: 2, TOKEN: -1, LOGPROB: -0.5 },
      ...{ FINISH: 4, STOP: 5, STATUS: 500, SUBJECT: 600 },
      ...{ TOKENS_PROMPT: 7, TOKENS_CACHED: 8, TOKENS_OUT: 9 },
      ...{ QUEUE_MS: 0.1, PREFILL_MS: 0.2, DECODE_MS: 0.3, TTFT_MS: 0.4 },
    };
    const top = /** @type {[number, number][]} */ ([
      [5, -1.5],
      [-6, -2.5],
    ]);
    // a byte order mark at the beginning of a piece is kept
    const text = '\uFEFFaß€';
    const records = [recordOf(fields, text, top), recordOf({ REQUEST: 4 }, '', [])];
    const bytes = new Uint8Array(Buffer.concat(records));
    const [first, second, ...others] = decodeEvents(bytes);
    assert.deepEqual(first, {
      ...{ request: 3, kind: 2, token: -1, logprob: -0.5 },
      ...{ finish: 4, stop: 5, status: 500, subject: 600 },
      ...{ tokensPrompt: 7, tokensCached: 8, tokensOut: 9 },
      ...{ queueMs: 0.1, prefillMs: 0.2, decodeMs: 0.3, ttftMs: 0.4 },
      ...{ text, id: '', top: top.map(([token, logprob]) => ({ token, logprob })) },
    });
    assert.deepEqual([second.request, second.text, second.top], [4, '', []]);
    assert.deepEqual(others, []);
    const call = { KIND: layout.EVENT_CALL, FINISH: Buffer.byteLength('wetter_für'), STOP: 2 };
    const [begun] = decodeEvents(new Uint8Array(recordOf(call, 'wetter_fürcall_7', [])));
    assert.deepEqual([begun.text, begun.id, begun.stop], ['wetter_für', 'call_7', 2]);
    assert.deepEqual(decodeEvents(new Uint8Array(0)), []);
  });
});

test('table rows are written to the given address, and the byte count is returned', () => {
  const memory = new Uint8Array(8);
  const heap = /** @type {any} */ ({
    write: (/** @type {number} */ at, /** @type {Uint8Array} */ bytes) => memory.set(bytes, at),
  });
  /** @type {number[][]} */
  const asked = [];
  const read = (
    /** @type {number} */ file,
    /** @type {number} */ offset,
    /** @type {number} */ size,
  ) => {
    asked.push([file, offset, size]);
    if (file > 1) throw new Error('gone');
    return Uint8Array.of(7, 8, 9).subarray(0, size);
  };
  const { read_table: readTable } = /** @type {any} */ (rowsHost({ read }, () => heap));
  assert.deepEqual([readTable(1, 50, 2, 2), readTable(0, 60, 5, -1)], [2, 3]);
  assert.deepEqual([...memory], [0, 0, 7, 8, 0, 7, 8, 9]);
  assert.equal(readTable(2, 0, 0, 1), -1);
  assert.deepEqual(asked, [
    [1, 50, 2],
    [0, 60, 2 ** 32 - 1],
    [2, 0, 1],
  ]);
});
