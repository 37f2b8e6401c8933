// Runs the C unit tests in tests/c/ as WASI modules with plain SIMD.

import { describe } from 'node:test';
import { testModules, units } from '../support/c_units.mjs';
import { concurrency } from '../support/level.mjs';

describe('C units, WASI, plain SIMD', { concurrency }, () => {
  testModules('node', 'wasi', units);
});
