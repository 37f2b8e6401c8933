// wick embed-component, without `make edge`: small components are assembled here byte by byte, and the results are checked
// with the host's WebAssembly.

import assert from 'node:assert/strict';
import {
  existsSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { native, temporaryFolder, wick } from '../support/cli.mjs';

const folder = temporaryFolder();
const at = (/** @type {string} */ name) => join(folder, name);
const PAGE_BYTES = 65536;
const MARK = Buffer.from("wick: the model's place\0");

/** @param {number} value @returns {number[]} unsigned LEB128 */
function u32(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return [...bytes, value];
}

/** @param {number} id @param {...(number[] | Buffer)} parts @returns {Buffer} */
function section(id, ...parts) {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from([id, ...u32(content.length)]), content]);
}

/** Returns a segment at an address below 64. @param {number} address @param {Buffer} bytes */
const segment = (address, bytes) =>
  Buffer.concat([Buffer.from([0, 0x41, address, 0x0b, ...u32(bytes.length)]), bytes]);
const place = Buffer.concat([Buffer.from('before'), MARK, Buffer.alloc(8), Buffer.from('behind')]);
const MARK_AT = 8;
const exported = section(7, [1, 6], Buffer.from('memory'), [2, 0]);

/** @param {{pages?: number, memory?: number[], segments?: Buffer[], counted?: boolean, more?: Buffer[]}} [options] */
function moduleOf({ pages = 2, memory, segments, counted = false, more = [] } = {}) {
  const all = segments ?? [segment(MARK_AT, place), segment(0, Buffer.from('first'))];
  return Buffer.concat([
    Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]),
    section(5, memory ?? [1, 0, ...u32(pages)]),
    exported,
    ...(counted ? [section(12, u32(all.length))] : []),
    section(11, u32(all.length), ...all),
    ...more,
  ]);
}

/** Returns a component with a module without the marker and the given module, with custom sections around them. @param {Buffer} module */
function componentOf(module) {
  const before = [section(0, [1, 0x78, 7]), section(1, moduleOf({ segments: [] }))];
  const parts = [...before, section(1, module), section(0, [1, 0x79, 8, 9])];
  return Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 13, 0, 1, 0]), ...parts]);
}

/** @param {Buffer} component @returns {[number, Buffer][]} ids and contents of its sections */
function sectionsOf(component) {
  /** @type {[number, Buffer][]} */
  const found = [];
  for (let from = 8; from < component.length; ) {
    const id = component[from++];
    let size = 0;
    for (let shift = 1, more = true; more; shift *= 128) {
      const byte = component[from++];
      size += (byte & 127) * shift;
      more = byte > 127;
    }
    assert.ok(from + size <= component.length);
    found.push([id, component.subarray(from, from + size)]);
    from += size;
  }
  return found;
}

/** @param {Buffer} component @param {Buffer} model */
async function embed(component, model) {
  writeFileSync(at('plain.wasm'), component);
  writeFileSync(at('model'), model);
  const args = ['embed-component', at('model'), '--component', at('plain.wasm')];
  const { code, stderr } = await wick(native, [...args, '-o', at('out.wasm')]);
  return { code, stderr: stderr.toString() };
}

/** Returns a file of this size that begins like a GGUF file. @param {number} size */
const modelOf = (size) =>
  Buffer.from(Uint8Array.from({ length: size }, (_, i) => 'GGUF'.charCodeAt(i) || (i * 37) % 251));

/** @param {{pages: number, model: Buffer, counted?: boolean, more?: Buffer[]}} options */
async function assertEmbedded({ pages, model, ...rest }) {
  const component = componentOf(moduleOf({ pages, ...rest }));
  const result = await embed(component, model);
  assert.equal(result.code, 0, result.stderr);
  const made = readFileSync(at('out.wasm'));
  const [old, found] = [sectionsOf(component), sectionsOf(made)];
  assert.deepEqual(made.subarray(0, 8), component.subarray(0, 8));
  assert.equal(found.length, old.length);
  for (const i of [0, 1, 3]) assert.deepEqual(found[i], old[i]);
  const module = new WebAssembly.Module(new Uint8Array(found[2][1]));
  const { memory } = new WebAssembly.Instance(module).exports;
  const { buffer } = /** @type {WebAssembly.Memory} */ (memory);
  assert.equal(buffer.byteLength, (pages + Math.ceil(model.length / PAGE_BYTES)) * PAGE_BYTES);
  assert.ok(model.equals(Buffer.from(buffer, pages * PAGE_BYTES, model.length)), 'the model');
  const wanted = Buffer.from(place);
  wanted.writeUInt32LE(pages * PAGE_BYTES, 6 + MARK.length);
  wanted.writeUInt32LE(model.length, 6 + MARK.length + 4);
  assert.deepEqual(Buffer.from(buffer, MARK_AT, place.length), wanted, 'its position is recorded');
  assert.equal(Buffer.from(buffer, 0, 5).toString(), 'first', 'other data is unchanged');
  for (const section of rest.more ?? []) assert.ok(made.includes(section));
}

test('the model is stored after the memory, and its position is recorded', async () => {
  // sizes around each change of LEB128 length, and around a page
  for (const size of [4, 127, 128, 16383, 16384, 65535, 65536, 65537, 1 << 20, 2100000]) {
    await assertEmbedded({ pages: 2, model: modelOf(size) });
  }
  for (const pages of [1, 126, 127, 128, 1024, 16383, 16384, 32768]) {
    await assertEmbedded({ pages, model: modelOf(70000) });
  }
  const name = section(0, [1, 0x7a], Buffer.alloc(300, 5));
  await assertEmbedded({ pages: 3, model: modelOf(99), counted: true, more: [name] });
});

test('a component that cannot hold a model is rejected', async () => {
  const model = modelOf(99);
  const good = componentOf(moduleOf());
  const result = Buffer.from(place);
  result[6 + MARK.length + 7] = 1;
  const of = (/** @type {Parameters<typeof moduleOf>[0]} */ options) =>
    componentOf(moduleOf(options));
  /** @type {Record<string, Buffer>} */
  const wrong = {
    nothing: Buffer.alloc(0),
    'only a preamble': good.subarray(0, 8),
    'a wrong preamble': Buffer.from([...good.subarray(0, 4), 1, ...good.subarray(5)]),
    'an incomplete preamble': good.subarray(0, 7),
    'truncated inside the module': good.subarray(0, good.length - 12),
    'only a module': moduleOf(),
    'without a marker': of({ segments: [segment(0, Buffer.from('x'))] }),
    'a marker with a model': of({ segments: [segment(0, result)] }),
    'a marker without space for two numbers': of({
      segments: [segment(0, place.subarray(0, 6 + MARK.length + 7))],
    }),
    'a memory with a maximum': of({ memory: [1, 1, 2, 3] }),
    'two memories': of({ memory: [2, 0, 2, 0, 2] }),
    'a memory without pages': of({ memory: [1, 0] }),
    'extra bytes after a memory': of({ memory: [1, 0, 2, 9] }),
    'an unterminated number of pages': of({ memory: [1, 0, 128] }),
    'an unterminated section size': of({ more: [Buffer.from([0, 128])] }),
    'a truncated section': of({ more: [Buffer.from([0, 3, 1, 1])] }),
  };
  rmSync(at('out.wasm'), { force: true });
  for (const [what, component] of Object.entries(wrong)) {
    const { code, stderr } = await embed(component, model);
    assert.equal(code, 3, `${what}: ${stderr}`);
    assert.match(
      stderr,
      /plain\.wasm is not a component without a model, built by `make edge`/,
      what,
    );
    assert.equal(existsSync(at('out.wasm')), false, what);
  }
  // data may end right after the two numbers, and the number of pages may be padded
  const least = place.subarray(0, 6 + MARK.length + 8);
  assert.equal((await embed(of({ segments: [segment(0, least)] }), model)).code, 0);
  assert.equal((await embed(of({ memory: [1, 0, 130, 0] }), model)).code, 0);
});

test('a model that does not fit is rejected', async () => {
  const good = componentOf(moduleOf());
  for (const bytes of [Buffer.alloc(0), Buffer.from('GGU'), Buffer.from('GGUX, and more')]) {
    const { code, stderr } = await embed(good, bytes);
    assert.equal(code, 3);
    assert.match(stderr, /model is not a GGUF file/);
  }
  writeFileSync(at('large'), 'GGUF');
  truncateSync(at('large'), 2 ** 31);
  const args = ['embed-component', at('large'), '--component', at('plain.wasm')];
  const large = await wick(native, [...args, '-o', at('large.wasm')]);
  assert.equal(large.code, 3);
  assert.match(large.stderr.toString(), /is too large: a component can contain less than 2 GiB/);
  assert.equal(existsSync(at('large.wasm')), false);
});

test('a full disk, a missing option and --help have their exit codes', async () => {
  writeFileSync(at('plain.wasm'), componentOf(moduleOf()));
  writeFileSync(at('model'), modelOf(70000));
  const args = ['embed-component', at('model'), '--component', at('plain.wasm')];
  symlinkSync('/dev/full', at('full'));
  assert.equal((await wick(native, [...args, '-o', at('full')])).code, 3);
  assert.ok(existsSync(at('full')), 'a device is not removed');
  assert.equal((await wick(native, args)).code, 2);
  assert.equal((await wick(native, [...args, '--none'])).code, 2);
  assert.equal((await wick(native, [...args, '--help'])).code, 0);
  const missing = ['embed-component', at('model'), '--component', at('none.wasm')];
  const { code, stderr } = await wick(native, [...missing, '-o', at('none')]);
  assert.equal(code, 3);
  assert.match(stderr.toString(), /cannot open .*none\.wasm: No such file.*`make edge` builds/);
  const piped = await wick(native, [...args, '-o', '-']);
  assert.equal(piped.code, 0);
  assert.ok(piped.stdout.includes(modelOf(70000)));
});
