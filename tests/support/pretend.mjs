// Sets up a fake environment during a test.

/**
 * Replaces globals until the test ends.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, any>} globals
 */
export function pretend(t, globals) {
  for (const [name, value] of Object.entries(globals)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    t.after(() => {
      if (before) Object.defineProperty(globalThis, name, before);
      else delete (/** @type {any} */ (globalThis)[name]);
    });
  }
}

/**
 * @param {AbortSignal} signal
 * @returns {string[]} a log: each call that adds or removes a listener appends its name
 */
export function logListeners(signal) {
  /** @type {string[]} */
  const log = [];
  for (const name of /** @type {const} */ (['addEventListener', 'removeEventListener'])) {
    const plain = /** @type {any} */ (signal[name].bind(signal));
    signal[name] = (/** @type {any[]} */ ...args) => {
      log.push(name);
      return plain(...args);
    };
  }
  return log;
}
