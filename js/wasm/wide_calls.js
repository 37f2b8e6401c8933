// js/wasm/wide_calls.js — modules with 64-bit addresses (memory64): their addresses and sizes are
// bigints in the module's interface, and numbers in JavaScript. tools/build/wide_module.mjs adds a
// section to such a module that marks them.

/**
 * The section's name: JSON of the functions that are exported and imported, by name, with a letter
 * for each parameter and for the result: `a` for an address or a size, other letters for other
 * values.
 */
const SECTION = 'wick.wide';
/** No allocation of this size succeeds. */
const MOST = 2 ** 53;

/** @typedef {Record<string, {params: string, result: string}>} WideCalls */

/** @param {WebAssembly.Module} module @returns {WideCalls | undefined} undefined if its addresses have 32 bits */
function wideCallsOf(module) {
  const [section] = WebAssembly.Module.customSections(module, SECTION);
  return section && JSON.parse(new TextDecoder().decode(section));
}

/** @param {WebAssembly.Module} module @returns {boolean} whether its addresses have 64 bits */
export const isWide = (module) => WebAssembly.Module.customSections(module, SECTION).length > 0;

/** @param {unknown} value @returns {unknown} */
const toNumber = (value) => (typeof value === 'bigint' ? Number(BigInt.asUintN(64, value)) : value);

/**
 * @param {unknown} value
 * @param {string} kind
 * @returns {unknown} the value for the module, which also expects -1 on failure
 */
const toModule = (value, kind) => (kind === 'a' ? BigInt(Math.min(Number(value), MOST)) : value);

/**
 * Creates an instance whose functions accept and return numbers.
 * @param {WebAssembly.Module} module
 * @param {Record<string, any>} env its imports
 * @returns {Record<string, any>} its exports; `isWide` if addresses have 64 bits
 */
export function instantiateCalls(module, env) {
  const calls = wideCallsOf(module);
  if (!calls) return new WebAssembly.Instance(module, { env }).exports;
  const imports = Object.fromEntries(
    Object.entries(env).map(([name, value]) => [
      name,
      calls[name] ? hostCall(value, calls[name]) : value,
    ]),
  );
  const { exports } = new WebAssembly.Instance(module, { env: imports });
  const found = Object.entries(exports).map(([name, value]) => {
    if (typeof value === 'function')
      return [name, calls[name] ? moduleCall(value, calls[name]) : value];
    return [name, value instanceof WebAssembly.Global ? wideGlobal(value) : value];
  });
  return { ...Object.fromEntries(found), isWide: true };
}

/** @param {Function} run a function of the module @param {WideCalls[string]} call */
const moduleCall =
  (run, { params }) =>
  (/** @type {unknown[]} */ ...args) =>
    toNumber(run(...args.map((value, index) => toModule(value, params[index]))));

/** @param {Function} run a function of the host @param {WideCalls[string]} call */
const hostCall =
  (run, { result }) =>
  (/** @type {unknown[]} */ ...args) =>
    toModule(run(...args.map(toNumber)), result);

/** @param {WebAssembly.Global} global a global that contains an address */
const wideGlobal = (global) => ({
  get value() {
    return toNumber(global.value);
  },
  set value(value) {
    global.value = BigInt(/** @type {number} */ (value));
  },
});
