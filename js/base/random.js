// js/base/random.js — random numbers from a stock: Node makes an object with a finalizer for each call that
// asks the system, and that outlives its request.

const stock = new Uint32Array(256);
let used = stock.length;

/** @returns {number} 32 random bits, from the system's source */
export function randomWord() {
  if (used === stock.length) {
    crypto.getRandomValues(stock);
    used = 0;
  }
  return stock[used++];
}
