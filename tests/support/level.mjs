// Which part of a test file runs. `make test` runs the main part of the large files and sets WICK_TEST_LEVEL;
// `make test-all`, and a file that is run alone, run all of it.

/** Whether the tests that only `make test-all` runs are to run. */
export const isFull = process.env.WICK_TEST_LEVEL !== 'main';
