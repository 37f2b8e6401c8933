// Loads a file and then makes calls to the public interface until the input ends. Asserts that each
// request ends once, within a bounded number of engine steps; that pages are consistent and all
// freed; that after any error the engine continues and can be destroyed; and (with the leak
// detector) that it frees all memory.
#ifndef WICK_TESTS_ENGINE_CALLS_H
#define WICK_TESTS_ENGINE_CALLS_H

#include "../c/support/gguf_files.h"
#include "fuzz_input.h"

// The input first chooses how the engine is configured and how much of the file is loaded before
// the calls; the rest is loaded after them. `adapter`, unless empty, is loaded for some of the
// requests and removed again. The caller keeps ownership of both files.
void engine_calls_run(input *in, memory_file file, memory_file adapter);

#endif
