// Computes medians, and intervals of their ratios by resampling pairs (Efron 1979) with a fixed seed.

/** @param {number[]} values @returns {number} */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Generates numbers in [0, 1) with splitmix64 (Steele, Lea, Flood 2014). @param {bigint} seed */
function makeRandom(seed) {
  const mask = (1n << 64n) - 1n;
  let state = seed;
  return () => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  };
}

/**
 * Returns the 95% interval of median(ours) / median(theirs). Measurements with the same index were made one
 * after the other and are resampled together.
 * @param {number[]} ours
 * @param {number[]} theirs
 * @returns {[number, number]}
 */
export function ratioInterval(ours, theirs, resamples = 1000) {
  const random = makeRandom(42n);
  const count = Math.min(ours.length, theirs.length);
  const ratios = Array.from({ length: resamples }, () => {
    const picks = Array.from({ length: count }, () => Math.floor(random() * count));
    return median(picks.map((i) => ours[i])) / median(picks.map((i) => theirs[i]));
  }).sort((a, b) => a - b);
  const low = Math.floor((resamples * 0.05) / 2);
  return [ratios[low], ratios[resamples - 1 - low]];
}
