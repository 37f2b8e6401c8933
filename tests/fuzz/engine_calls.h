// tests/fuzz/engine_calls.h — a file is loaded, and calls of the public interface follow until the
// input ends. Asserted: each request ends once, within a bounded number of steps of the engine;
// pages are sound and all freed; after any error the engine continues and can be destroyed,
// and (by the leak detector) frees all memory.
#ifndef WICK_TESTS_ENGINE_CALLS_H
#define WICK_TESTS_ENGINE_CALLS_H

#include "../c/support/gguf_files.h"
#include "fuzz_input.h"

// The input chooses first how the engine is configured and how much of the file is loaded before
// the calls; the rest of it is loaded after them. `adapter` is loaded for some of the
// requests, and removed again; empty: none. Both files stay the caller's.
void engine_calls_run(input *in, memory_file file, memory_file adapter);

#endif
