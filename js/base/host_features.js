// js/base/host_features.js — detects the features of the host. Each feature is tested separately,
// because hosts may support any combination of them (WebKitGTK is cross-origin isolated but has no
// SharedArrayBuffer).

import { WickError } from './errors.js';

// (func (result v128) i32.const 0 i8x16.splat i8x16.popcnt)
const simdProbe = [
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0],
  ...[10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
];
// (func (export "f") (param $n i32) (param $x i32) (param $y i32) (result i32) (local $s v128)
//   $s = i32x4.splat 7
//   loop $n times: $s = i32x4.relaxed_dot_i8x16_i7x16_add_s (i8x16.splat $x) (i8x16.splat $y) $s
//   i32x4.extract_lane 0 $s)
const relaxedProbe = [
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 127, 127, 127, 1, 127, 3, 2, 1, 0],
  ...[7, 5, 1, 1, 102, 0, 0, 10, 52, 1, 50, 1, 3, 123, 32, 1, 253, 15, 33, 4, 32, 2, 253, 15, 33],
  ...[5, 65, 7, 253, 17, 33, 3, 3, 64, 32, 4, 32, 5, 32, 3, 253, 147, 2, 33, 3],
  ...[32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 32, 3, 253, 27, 0, 11],
];
// (memory 1 1 shared) (func i32.const 0 i32.const 0 i32.const 0 i32.atomic.rmw.cmpxchg drop)
const atomicsProbe = [
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1],
  ...[10, 15, 1, 13, 0, 65, 0, 65, 0, 65, 0, 254, 72, 2, 0, 26, 11],
];

// (memory i64 1)
const wideProbe = [0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1];

/** @param {number[]} bytes */
const isValid = (bytes) => WebAssembly.validate(new Uint8Array(bytes));

/** @returns {boolean} whether memory can be shared with workers here */
export function hasSharedMemory() {
  if (typeof SharedArrayBuffer !== 'function') return false;
  if (globalThis.crossOriginIsolated === false) return false;
  try {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    return memory.buffer instanceof SharedArrayBuffer && isValid(atomicsProbe);
  } catch {
    return false;
  }
}

/** Many dot products are tested, because hosts recompile functions that are called often. */
const PROBE = { calls: 200, dots: 50, x: -3, y: 5 };

/**
 * Returns whether relaxed SIMD exists and computes the right sums. V8 11 (Node 20 with its flag) doubles
 * the dot product and loses the accumulator if both are in one register.
 * @returns {boolean}
 */
function isRelaxedRight() {
  if (!isValid(relaxedProbe)) return false;
  try {
    const module = new WebAssembly.Module(new Uint8Array(relaxedProbe));
    const probe = /** @type {any} */ (new WebAssembly.Instance(module).exports).f;
    const { calls, dots, x, y } = PROBE;
    for (let i = 0; i < calls; i++) {
      if (probe(dots, x, y) !== 7 + dots * 4 * x * y) return false;
    }
    return true;
  } catch {
    return false;
  }
}

/** The result of the first test. @type {boolean | undefined} */
let relaxedIsRight;

/** @returns {'relaxed' | 'simd128'} */
export function detectSimd() {
  if (typeof WebAssembly !== 'object') {
    throw new WickError('UNSUPPORTED', 'host: WebAssembly is not available');
  }
  if (!isValid(simdProbe)) {
    throw new WickError(
      'UNSUPPORTED',
      'host: WebAssembly does not support 128-bit SIMD, which the engine requires',
    );
  }
  relaxedIsRight ??= isRelaxedRight();
  return relaxedIsRight ? 'relaxed' : 'simd128';
}

/** @returns {boolean} whether memory may have 64-bit addresses (memory64) */
export const hasWideMemory = () => isValid(wideProbe);

/** @returns {number} the number of logical processors; 1 if it is unknown */
function countProcessors() {
  const reported = globalThis.navigator?.hardwareConcurrency;
  if (reported) return reported;
  const os = globalThis.process?.getBuiltinModule?.('node:os');
  return os?.availableParallelism() ?? 1;
}

const DEFAULT_THREADS_MAX = 8;
/**
 * The number of threads that is allowed on every host, because some browsers report fewer processors
 * than the machine has.
 */
const ANYWHERE_THREADS_MAX = 8;

/**
 * Returns half of the logical processors if there are more than two. Two logical processors often share the arithmetic units
 * of one core, and the page needs processors as well.
 * @returns {number}
 */
export function defaultThreads() {
  const processors = countProcessors();
  if (processors <= 2) return processors;
  return Math.min(DEFAULT_THREADS_MAX, Math.max(2, Math.floor(processors / 2)));
}

/**
 * Returns the largest number of threads that a caller may request. With more threads, all of them would
 * wait at every barrier for those without a processor.
 * @returns {number}
 */
export const mostThreads = () => Math.max(ANYWHERE_THREADS_MAX, 2 * countProcessors());
