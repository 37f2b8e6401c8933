// Which part of a test file runs. `make test` runs the main part of the large files and sets WICK_TEST_LEVEL;
// `make test-all`, and a file that is run alone, run all of it.

import { availableParallelism } from 'node:os';

/** Whether the tests that only `make test-all` runs are to run. */
export const isFull = process.env.WICK_TEST_LEVEL !== 'main';

/**
 * How many tests of a file run at a time. `make test-all` has enough other files for every core, and a file of several
 * processes would only slow down the browsers next to it.
 */
export const concurrency = process.env.WICK_TEST_LEVEL === 'all' ? 1 : availableParallelism();
