// `make soak` runs hundreds of cases, `make test-all` a twentieth of them, and `make test` a fifth of those
// (tests/c/support/random.h is the equivalent for C).

import { isFull } from './level.mjs';

export const isSoak = process.env.WICK_SOAK === '1';

/** The seed for random tests: 0, or the number printed by make soak. */
export const soakSeed = isSoak ? Number(process.env.WICK_SEED ?? 0) : 0;

/** @param {number} full the number of cases in a soak */
export const soakCount = (full) =>
  isSoak || full < 20 ? full : Math.max(1, Math.floor(full / (isFull ? 20 : 100)));
