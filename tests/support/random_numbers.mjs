// Makes random choices that are reproducible with a seed, for tests that generate their cases.

/**
 * @param {number} seed
 * @returns {{below: (limit: number) => number, chance: (share: number) => boolean,
 *   pick: <T>(items: readonly T[]) => T, list: <T>(most: number, make: () => T) => T[]}}
 */
export function randomFrom(seed) {
  let state = (seed + 1) | 0;
  const next = () => {
    // Mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (/** @type {number} */ limit) => Math.floor(next() * limit);
  return {
    below,
    chance: (share) => next() < share,
    pick: (items) => items[below(items.length)],
    list: (most, make) => Array.from({ length: below(most + 1) }, make),
  };
}
