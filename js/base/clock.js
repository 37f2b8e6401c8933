// js/base/clock.js — a clock for durations. Times from different threads cannot be compared.

const hrtime = globalThis.process?.hrtime;

function hrtimeMs() {
  const [seconds, nanoseconds] = /** @type {[number, number]} */ (hrtime());
  return seconds * 1e3 + nanoseconds / 1e6;
}

/**
 * Returns the time. The first use of `performance` makes Node load node:perf_hooks, which takes 1.4 ms.
 * process.hrtime is also faster.
 * @type {() => number} milliseconds
 */
export const nowMs = typeof hrtime === 'function' ? hrtimeMs : () => performance.now();
