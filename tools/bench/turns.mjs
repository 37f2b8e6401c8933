// Runs rounds in which each side takes one turn. A side that fails, or does not respond in time, is
// dropped, and the others continue.

/** The beginning of the failure reason for a side that did not respond in time. */
export const LATE = 'no response within';

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {number} limitMs
 * @returns {Promise<T>} rejects after the limit
 */
export function withinLimit(promise, limitMs) {
  if (!Number.isFinite(limitMs)) return promise;
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_, fail) => {
    const seconds = Math.max(0, limitMs / 1000).toFixed(0);
    timer = setTimeout(() => fail(new Error(`${LATE} ${seconds} s`)), limitMs);
  });
  return /** @type {Promise<T>} */ (Promise.race([promise, late])).finally(() =>
    clearTimeout(timer),
  );
}

/** @param {unknown} error @returns {string} its first line */
export const reasonOf = (error) =>
  String(error instanceof Error ? error.message : error).split('\n')[0];

/**
 * Runs a step for each side, one after the other. A side whose step fails is dropped, and
 * the reason is recorded. The caller checks whether enough sides are left.
 * @param {string[]} names of the sides
 * @param {Record<string, string>} failures reasons by side; new ones are added here
 * @param {(name: string) => Promise<void>} step
 */
export async function doEach(names, failures, step) {
  for (const name of names) {
    if (name in failures) continue;
    try {
      await step(name);
    } catch (error) {
      failures[name] = reasonOf(error);
    }
  }
}

/**
 * @template T
 * @param {string[]} names the first is compared with the others; rounds end when it or all others have failed
 * @param {Record<string, string>} failures reasons by side; new ones are added here
 * @param {{rounds: number, hasTimeFor: (round: number, roundMs: number) => boolean,
 *   measure: (name: string, round: number) => Promise<T>}} how
 * @returns {Promise<Record<string, T[]>>} the measurements of the sides that did not fail in any round
 */
export async function takeTurns(names, failures, { rounds, hasTimeFor, measure }) {
  /** @type {Record<string, T[]>} */
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const left = names.filter((name) => !(name in failures));
    if (left.length < 2 || left[0] !== names[0]) break;
    const start = performance.now();
    await doEach(names, failures, async (name) => {
      samples[name].push(await measure(name, round));
    });
    if (!hasTimeFor(round + 1, performance.now() - start)) break;
  }
  for (const name of Object.keys(failures)) delete samples[name];
  return samples;
}

/** How long closing may take. A side that hangs ends with its browser or with this process. */
const CLOSE_MS = 20_000;

/**
 * Closes all sides, even if one of them hangs or fails.
 * @param {Record<string, {close: () => Promise<unknown>}>} sides
 * @param {number} [limitMs] how long each may take
 */
export async function closeAll(sides, limitMs = CLOSE_MS) {
  await Promise.allSettled(
    Object.values(sides).map(async (side) => withinLimit(side.close(), limitMs)),
  );
}
