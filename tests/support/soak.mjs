// make soak: runs hundreds of cases, of which a normal test runs a twentieth
// (tests/c/support/random.h has the same for C).

export const isSoak = process.env.WICK_SOAK === '1';

/** The seed of random tests: 0, or the number that make soak has printed. */
export const soakSeed = isSoak ? Number(process.env.WICK_SEED ?? 0) : 0;

/** @param {number} full how many a soak does */
export const soakCount = (full) => (isSoak || full < 20 ? full : Math.floor(full / 20));
