// Determines which part of a test file runs. `make test` sets WICK_TEST_LEVEL and runs the main part
// of the large files; `make test-all`, and a file that is run alone, run all parts.

import { availableParallelism } from 'node:os';

/** Whether to run the tests that belong only to `make test-all`. */
export const isFull = process.env.WICK_TEST_LEVEL !== 'main';

/**
 * The number of tests in a file that run at the same time. `make test-all` has enough files to keep
 * every core busy, and a file with several processes would only slow down browsers.
 */
export const concurrency = process.env.WICK_TEST_LEVEL === 'all' ? 1 : availableParallelism();
