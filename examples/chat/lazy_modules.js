// examples/chat/lazy_modules.js — code that is loaded when it is first wanted.

/**
 * A library that comes when it is first wanted.
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
