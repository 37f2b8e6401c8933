// Runs the C unit tests in tests/c/ natively under the sanitizers, and *_tsan_test.c under ThreadSanitizer.

import { describe, test } from 'node:test';
import { runNative, threaded, units } from '../support/c_units.mjs';
import { concurrency } from '../support/level.mjs';

describe('C units, native, address and undefined behaviour sanitizers', { concurrency }, () => {
  for (const name of units) test(name, () => runNative(`test/native/${name}`));
});

describe('C units, native, thread sanitizer', () => {
  for (const name of threaded) test(name, () => runNative(`test/tsan/${name}`));
});
