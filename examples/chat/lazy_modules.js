// examples/chat/lazy_modules.js — loads code on first use.

/**
 * Makes a function that loads a library on first use.
 * @template T
 * @param {() => Promise<T>} bring
 */
export function later(bring) {
  /** @type {T | undefined} */
  let here;
  /** @type {Promise<T | undefined> | undefined} */
  let coming;
  return {
    here: () => here,
    async come() {
      coming ??= bring().catch(() => {
        coming = undefined; // the next call tries again
        return undefined;
      });
      here = await coming;
      return here;
    },
  };
}
