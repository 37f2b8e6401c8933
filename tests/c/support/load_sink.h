// A loader_sink for tests and fuzzers that assembles tensors in memory, records mistakes of the
// loader, and compares the result with the files that were fed.
#ifndef WICK_TESTS_LOAD_SINK_H
#define WICK_TESTS_LOAD_SINK_H

#include "gguf_files.h"
#include "load/load.h"

typedef struct sink_tensor {
  uint8_t *bytes;      // file layout
  uint8_t *is_placed;  // for each block
  bool is_wanted;
  uint32_t done;  // calls of tensor_done
} sink_tensor;

typedef struct load_sink {
  loader *loader;          // set it once the loader exists
  uint64_t unwanted;       // bit i: tensor i is not wanted (of the first 64)
  uint32_t fail_at_place;  // the k-th place() fails; 0: none
  bool fail_directory;     // directory_ready() fails
  uint32_t ready, places;  // calls
  const char *fault;       // the first mistake, or NULL
  sink_tensor *tensors;
  size_t count;
} load_sink;

loader_sink sink_calls(load_sink *sink);
void sink_free(load_sink *sink);

// Checks, after everything was fed, that each wanted tensor was completed exactly once and equals
// the bytes of its file, and that no other tensor was touched. Returns the error, or NULL.
const char *sink_check(const load_sink *sink, const memory_file *files);

#endif
