// Determines the part of a test file that runs. `make test` runs the main part of the large files
// and sets WICK_TEST_LEVEL;
// `make test-all`, and a file that is run alone, run all of it.

import { availableParallelism } from 'node:os';

/** Whether to run the tests that belong only to `make test-all`. */
export const isFull = process.env.WICK_TEST_LEVEL !== 'main';

/**
 * The number of tests of a file that run at the same time. `make test-all` has enough other files
 * for every core, and a file of several processes would only slow down the browsers next to it.
 */
export const concurrency = process.env.WICK_TEST_LEVEL === 'all' ? 1 : availableParallelism();
