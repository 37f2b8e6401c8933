// js/cli/wasi_memory.js — makes node:wasi follow a memory that grows. Used by the command-line program and by tests that run
// the WASI module.

/**
 * node:wasi keeps a pointer to the initial memory. After memory.grow it would write to freed memory
 * (nodejs/node#51303), so it is passed each new buffer before the next call.
 * @param {InstanceType<typeof import('node:wasi').WASI>} wasi
 * @returns {(memory: WebAssembly.Memory) => void} a function to call with the instance's memory
 */
export function followMemory(wasi) {
  const setMemory = Object.getOwnPropertySymbols(wasi).find((s) => s.description === 'kSetMemory');
  /** @type {WebAssembly.Memory | undefined} */
  let memory;
  /** @type {ArrayBuffer | undefined} */
  let buffer;
  for (const [name, call] of Object.entries(wasi.wasiImport)) {
    wasi.wasiImport[name] = (/** @type {unknown[]} */ ...values) => {
      if (setMemory && memory && memory.buffer !== buffer) {
        buffer = memory.buffer;
        /** @type {any} */ (wasi)[setMemory](memory);
      }
      return call(...values);
    };
  }
  return (made) => {
    memory = made;
  };
}
