// js/base/clock.js — the time, for durations: of this thread only, from a moment that nobody knows.

const hrtime = globalThis.process?.hrtime;

function hrtimeMs() {
  const [seconds, nanoseconds] = /** @type {[number, number]} */ (hrtime());
  return seconds * 1e3 + nanoseconds / 1e6;
}

/**
 * Node loads node:perf_hooks, 1.4 ms, when somebody says performance; its own clock takes less a call, too.
 * @type {() => number} milliseconds
 */
export const nowMs = typeof hrtime === 'function' ? hrtimeMs : () => performance.now();
