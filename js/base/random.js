// js/base/random.js — random numbers, fetched from the system 256 at a time. In Node, each call of
// crypto.getRandomValues creates an object with a finalizer, which would outlive its request.

const stock = new Uint32Array(256);
let used = stock.length;

/** @returns {string} 128 random bits; crypto.randomUUID exists only in pages served over HTTPS or from localhost */
export const randomName = () =>
  Array.from({ length: 4 }, () => randomWord().toString(16).padStart(8, '0')).join('');

/** @returns {number} 32 random bits, from the system's source */
export function randomWord() {
  if (used === stock.length) {
    crypto.getRandomValues(stock);
    used = 0;
  }
  return stock[used++];
}
