// js/wasm/wasm_module.js — compiles the engine's module and instantiates it.

import { nowMs } from '../base/clock.js';
import { WickError } from '../base/errors.js';
import { unsigned } from './heap.js';
import { HELPER_STACK_BYTES } from './layout.js';
import { joinPart } from './module_part.js';
import { instantiateCalls } from './wide_calls.js';

export const WASM_PAGE_BYTES = 65536;
/** Stack and data of a module (flags.mk, WEB_MEMORY_INITIAL_BYTES). */
const INITIAL_PAGES = 16;
/** The sizes to try: 4, 2, 1 and 0.5 GiB, 384 and 256 MiB. Phones cannot reserve the larger ones. */
const MAXIMUM_PAGES = [65536, 32768, 16384, 8192, 6144, 4096];
/** The 64-bit sizes to try: 16, 12, 8 and 6 GiB. For less, a module with 32-bit addresses suffices. */
const WIDE_MAXIMUM_PAGES = [262144, 196608, 131072, 98304];

/**
 * @param {URL | string | Response | WebAssembly.Module | BufferSource} source
 * @returns {Promise<WebAssembly.Module>}
 */
export async function compileModule(source) {
  try {
    if (source instanceof WebAssembly.Module) return source;
    if (source instanceof ArrayBuffer) return await WebAssembly.compile(source);
    if (ArrayBuffer.isView(source)) {
      const { buffer, byteOffset, byteLength } = source;
      // V8 does not accept a DataView
      return await WebAssembly.compile(
        new Uint8Array(/** @type {ArrayBuffer} */ (buffer), byteOffset, byteLength),
      );
    }
    // Only objects are compared with Response: the first use of the name Response makes Node load fetch, which
    // takes 30 ms.
    const isObject = typeof source === 'object' && !(source instanceof URL);
    if (isObject && typeof Response === 'function' && source instanceof Response) {
      return await compileResponse(source);
    }
    return await compileUrl(new URL(String(source), globalThis.location?.href));
  } catch (error) {
    if (error instanceof WickError) throw error;
    throw new WickError('WASM', `The engine's WebAssembly could not be loaded: ${error}`, error);
  }
}

/** @param {URL} url */
async function compileUrl(url) {
  if (url.protocol === 'file:') {
    const fs = globalThis.process?.getBuiltinModule?.('node:fs');
    // a synchronous read takes less than a millisecond; the thread pool is busy while workers start
    if (fs) return WebAssembly.compile(fs.readFileSync(url));
  }
  return compileResponse(await fetch(url, { credentials: 'same-origin' }));
}

/** @param {Response} response */
async function compileResponse(response) {
  if (!response.ok) {
    throw new WickError('WASM', `${response.url} answered ${response.status}`, {
      status: response.status,
      url: response.url,
    });
  }
  const type = response.headers.get('Content-Type') ?? '';
  if (type.startsWith('text/html')) {
    const lost = `${response.url || 'The response'} is a web page instead of the engine's WebAssembly`;
    throw new WickError(
      'WASM',
      `${lost}: a bundler has lost the file (docs/guide/troubleshooting.md)`,
    );
  }
  if (type.startsWith('application/wasm') && typeof WebAssembly.compileStreaming === 'function') {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

/** @param {WebAssembly.Module} module @returns {boolean} whether it is a build with threads */
export function isThreaded(module) {
  return WebAssembly.Module.exports(module).some(({ name }) => name === 'helper_main');
}

/**
 * Creates the largest memory that the host allows. Address space is reserved for all of it, but
 * physical memory is used only as it grows.
 * @param {{shared: boolean, helpers: number, isWide?: boolean}} options `isWide`: with 64-bit
 * addresses
 * @returns {{memory: WebAssembly.Memory, maximum: number} | undefined} undefined if even the
 * smallest could not be created; `maximum` is in pages
 */
export function createMemory({ shared, helpers, isWide = false }) {
  const initial = INITIAL_PAGES + Math.ceil((helpers * HELPER_STACK_BYTES) / WASM_PAGE_BYTES);
  for (const maximum of isWide ? WIDE_MAXIMUM_PAGES : MAXIMUM_PAGES) {
    const wide = { address: 'i64', initial: BigInt(initial), maximum: BigInt(maximum), shared };
    const descriptor = isWide ? /** @type {any} */ (wide) : { initial, maximum, shared };
    try {
      return { memory: new WebAssembly.Memory(descriptor), maximum };
    } catch {
      // try the next smaller size
    }
  }
  return undefined;
}

/**
 * The functions of web/exports.c. Returned addresses may be negative: js/wasm/heap.js makes them
 * unsigned. `isWide`: they have 64 bits.
 * @typedef {Record<string, (...values: number[]) => number> &
 *   {__stack_pointer: WebAssembly.Global, __heap_base: WebAssembly.Global, isWide?: any}} Exports
 */

/**
 * The functions that the module calls. Callbacks for saved states and swapping return false on
 * failure; `read_table` and `read_media` return -1.
 * @typedef {{log: (address: number, size: number) => void,
 *   random: (address: number, size: number) => void,
 *   state_write: (address: number, size: number) => boolean,
 *   state_read: (address: number, size: number) => boolean,
 *   swap_open: (id: number, size: number) => boolean,
 *   swap_write: (id: number, offset: number, address: number, size: number) => boolean,
 *   swap_read: (id: number, offset: number, address: number, size: number) => boolean,
 *   swap_drop: (id: number) => void,
 *   read_table: (file: number, offset: number, address: number, size: number) => number,
 *   read_media: (offset: number, address: number, size: number) => number}} Host
 */

/**
 * These have exactly the parameters that the module passes; otherwise V8 would compile an additional wrapper.
 * @type {Host}
 */
const absent = {
  log: (_address, _size) => {},
  random: (_address, _size) => {},
  state_write: (_address, _size) => false,
  state_read: (_address, _size) => false,
  swap_open: (_id, _size) => false,
  swap_write: (_id, _offset, _address, _size) => false,
  swap_read: (_id, _offset, _address, _size) => false,
  swap_drop: (_id) => {},
  read_table: (_file, _offset, _address, _size) => -1,
  read_media: (_offset, _address, _size) => -1,
};

/**
 * Instantiates a module synchronously, which is allowed in workers. A promise would have to wait for
 * other startup tasks.
 * @param {WebAssembly.Module} module
 * @param {WebAssembly.Memory} memory
 * @param {Partial<Host>} host missing functions are replaced by ones that do nothing and return
 * false
 * @returns {Exports}
 */
export function instantiate(module, memory, host) {
  const now_us = () => nowMs() * 1000;
  return /** @type {Exports} */ (instantiateCalls(module, { memory, now_us, ...absent, ...host }));
}

/**
 * The data that a helper receives from the engine's worker: `module`, which may differ from the one
 * that it was started with; `extras`, if the model needs them, and `media` with an mmproj file.
 * @typedef {{memory: WebAssembly.Memory, module?: WebAssembly.Module, extras: WebAssembly.Module | undefined, media?: WebAssembly.Module | undefined}} HelperStart
 */

/**
 * Makes this thread a helper until it ends. It no longer receives messages.
 * @param {WebAssembly.Module} module
 * @param {HelperStart} start
 * @param {number} index from 0
 */
export async function runHelper(module, { memory, extras, media }, index) {
  const exports = instantiate(module, memory, {});
  if (extras) joinPart(exports, extras);
  if (media) joinPart(exports, media);
  const base = unsigned(exports.__heap_base.value);
  exports.__stack_pointer.value = (base + (index + 1) * HELPER_STACK_BYTES) & ~15;
  exports.helper_main(index);
}
