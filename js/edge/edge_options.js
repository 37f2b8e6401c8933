// js/edge/edge_options.js — checks the options of wick-llm/edge and fills in the defaults.

import { argumentError } from '../base/errors.js';
import { BytesSource } from '../bytes/given_sources.js';
import { createSource } from '../bytes/model_sources.js';
import { RangeSource } from '../bytes/range_source.js';
import { allNames, checkCommon, configOf } from '../page/engine_options.js';
import { mmprojOf, onlySourceOf, sourceOf } from '../page/model_options.js';
import { checkCallback, shown } from '../page/option_checks.js';
import { isThreaded } from '../wasm/wasm_module.js';
import { memoryLimitOf } from './memory_plan.js';

/** @import { Source } from '../bytes/model_sources.js' */
/** @import { EdgeModel, EdgeOptions } from '../edge.js' */

/** Options that require an engine with workers. */
const absent = ['threads', 'worker', 'shared', 'onLead', 'swap', 'eager', 'draft', 'tables'];
const unknown = ['model', 'cache', 'hub', ...absent];
const names = [...allNames.filter((name) => !unknown.includes(name)), ...['range', 'isolateBytes']];

/** @param {any} options */
export function checkEdgeOptions(options) {
  const found = absent.find((name) => options?.[name] !== undefined);
  if (found) throw argumentError(`${found} is an option of wick-llm: this engine has no workers`);
  checkCommon(options, names);
  checkWasm(options.wasm);
  for (const part of ['grammar', 'extras', 'media']) {
    const option = `${part}Wasm`;
    if ((options[option] ?? null) !== null) checkModule(options[option], option, `-${part}`);
  }
  if ((options.mmproj ?? null) !== null && !options.mediaWasm) {
    throw argumentError('mmproj needs mediaWasm, the media module of the same build');
  }
}

/** @param {unknown} wasm @param {string} option @param {string} ending of the file's name */
function checkModule(wasm, option, ending) {
  if (wasm instanceof WebAssembly.Module) return;
  throw argumentError(
    `${option} must be a WebAssembly.Module, such as an import from ` +
      `'wick-llm/wasm/wick-simd128-single${ending}.wasm', not ${shown(wasm)}`,
  );
}

/** @param {any} wasm */
function checkWasm(wasm) {
  checkModule(wasm, 'wasm', '');
  const exports = WebAssembly.Module.exports(wasm);
  const words = exports.some(({ name }) => name === 'engine_create')
    ? isThreaded(wasm) && 'a build with threads'
    : 'not an engine of this package';
  if (words) throw argumentError(`wasm is ${words}. Use wick-simd128-single.wasm`);
}

/** @param {EdgeOptions} options */
export function edgeConfigOf(options) {
  const memoryLimit = memoryLimitOf(options, heldBytesOf(options));
  return configOf(
    { .../** @type {any} */ (options), memoryLimit, tables: 'inside', threads: 1 },
    1,
  );
}

/** @param {EdgeModel} model @returns {number} bytes that stay in JavaScript's memory while the engine runs */
export const heldBytesOf = ({ bytes, mmproj }) => sizeOf(bytes) + sizeOf(mmproj);

/** @param {any} given @returns {number} the size of bytes in JavaScript's memory */
const sizeOf = (given) => given?.byteLength ?? 0;

/**
 * @param {EdgeModel} model
 * @param {() => void} onRetry
 * @returns {Promise<Source | undefined>} undefined without an mmproj file
 */
export async function mmprojSourceOf({ mmproj, headers, fetch, retries, stallMs }, onRetry) {
  if ((mmproj ?? undefined) === undefined) return undefined;
  const how = { headers, fetch, retries, stallMs };
  if (typeof mmproj === 'function') return edgeSourceOf({ range: mmproj, ...how }, onRetry);
  if (mmproj instanceof ArrayBuffer || ArrayBuffer.isView(mmproj)) {
    return edgeSourceOf({ bytes: /** @type {any} */ (mmproj) }, onRetry);
  }
  const { source, description } = mmprojOf(mmproj, how);
  return source ? source() : createSource(/** @type {any} */ (description), onRetry);
}

/** @param {EdgeModel} model @param {() => void} onRetry @returns {Promise<Source>} */
export async function edgeSourceOf(model, onRetry) {
  const kinds = /** @type {const} */ (['bytes', 'range', 'stream', 'url', 'file', 'blob']);
  onlySourceOf(model, kinds);
  const { bytes, range } = model;
  if (bytes) return new BytesSource(bytesOf(bytes));
  if (range) {
    checkCallback('range', range);
    return new RangeSource(range);
  }
  const { source, description } = sourceOf(/** @type {any} */ (model));
  return source ? source() : createSource(/** @type {any} */ (description), onRetry);
}

/** @param {unknown} bytes */
function bytesOf(bytes) {
  if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes);
  if (ArrayBuffer.isView(bytes)) {
    return new Uint8Array(
      /** @type {ArrayBuffer} */ (bytes.buffer),
      bytes.byteOffset,
      bytes.byteLength,
    );
  }
  throw argumentError(`bytes must be a Uint8Array or an ArrayBuffer, not ${shown(bytes)}`);
}
