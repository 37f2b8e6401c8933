// js/wasm/host_functions.js — functions that the module calls: to swap pages to a file, and to read rows of tables outside of
// its memory.

/** @import { Heap } from './heap.js' */

/**
 * @param {import('../storage/swap_file.js').SwapFile} swap
 * @param {() => Heap} heap
 * @returns {Partial<import('./wasm_module.js').Host>}
 */
export function swapHost(swap, heap) {
  return {
    swap_open: (id, size) => swap.open(id, size >>> 0),
    swap_write: (id, offset, address, size) =>
      swap.write(id, offset >>> 0, heap().read(address, size >>> 0)),
    swap_read: (id, offset, address, size) => {
      const bytes = new Uint8Array(size >>> 0);
      const isRead = swap.read(id, offset >>> 0, bytes);
      if (isRead) heap().write(address, bytes);
      return isRead;
    },
    swap_drop: (id) => swap.drop(id),
  };
}

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
