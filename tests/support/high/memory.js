// Fills the low addresses of 64-bit memories, in a worker that imports this file before the package's
// worker. All allocations of an engine are then above 4 GiB, where an address truncated to 32 bits
// becomes a different one. Pages that are never touched do not use physical memory.

const LOW_BYTES = 2n ** 32n;
const { Instance } = WebAssembly;

/** @param {WebAssembly.Module} module @param {WebAssembly.Imports} imports */
function HighInstance(module, imports) {
  const instance = new Instance(module, imports);
  if (WebAssembly.Module.customSections(module, 'wick.wide').length === 0) return instance;
  const { start, alloc } = /** @type {Record<string, any>} */ (instance.exports);
  const startHigh = (/** @type {unknown[]} */ ...args) => {
    start(...args);
    if (alloc(LOW_BYTES) === 0n) throw new Error('no memory above 4 GiB');
  };
  return { exports: { ...instance.exports, start: startHigh } };
}

WebAssembly.Instance = /** @type {any} */ (HighInstance);
