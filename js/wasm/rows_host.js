// js/wasm/rows_host.js — the functions that the module calls to read rows of tables outside of its
// memory.

/** @typedef {import('./heap.js').Heap} Heap */

/**
 * @param {{read: (file: number, offset: number, size: number) => Uint8Array}} rows
 * @param {() => Heap} heap
 * @returns {Partial<import('./wasm_module.js').Host>}
 */
export function rowsHost(rows, heap) {
  return {
    read_table: (file, offset, address, size) => {
      try {
        const bytes = rows.read(file, offset, size >>> 0);
        heap().write(address, bytes);
        return bytes.length;
      } catch {
        return -1; // the engine then requests the row itself
      }
    },
  };
}
