// Runs C unit tests in tests/c/ as WASI modules with relaxed SIMD: those that test kernels or run whole models.

import { describe } from 'node:test';
import { roomOf, testModules, units } from '../support/c_units.mjs';
import { concurrency } from '../support/level.mjs';
import { locateRelaxedNode } from '../support/locate.mjs';

const rooms = ['conformance', 'engine', 'kernels', 'kv', 'model'];
const { skip } = locateRelaxedNode();

describe('C units, WASI, relaxed SIMD', { concurrency, skip }, () => {
  testModules(
    'node24',
    'wasi-relaxed',
    units.filter((name) => rooms.includes(roomOf(name))),
  );
});
