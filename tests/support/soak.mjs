// `make soak` runs hundreds of cases; a normal test run covers a twentieth of them
// (tests/c/support/random.h is the equivalent for C).

export const isSoak = process.env.WICK_SOAK === '1';

/** The seed for random tests: 0, or the number printed by make soak. */
export const soakSeed = isSoak ? Number(process.env.WICK_SEED ?? 0) : 0;

/** @param {number} full the number of cases in a soak */
export const soakCount = (full) => (isSoak || full < 20 ? full : Math.floor(full / 20));
