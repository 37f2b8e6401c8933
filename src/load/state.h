// load/state.h — the loader's state, shared by its files. Only src/load/*.c include this header.
//
//   loader_feed (feed.c) -> load_take_directory (directories.c)   until all are complete
//                        -> the sink                              then
#ifndef WICK_LOAD_STATE_H
#define WICK_LOAD_STATE_H

#include "load/fingerprint.h"
#include "load/load.h"
#include "load/ranges.h"

#define LOAD_SIZE_UNKNOWN UINT64_MAX
#define LOAD_UNWANTED UINT64_MAX  // in tensor_left_bytes

// A block that has arrived only in part, because a call ended within it.
typedef struct load_carry {
  uint64_t block;         // of the tensor
  uint32_t tensor;        // index over all files
  uint32_t filled_bytes;  // a byte never arrives twice, so counting is enough
  uint8_t bytes[GGML_TYPE_BLOCK_BYTES_MAX];
} load_carry;

typedef struct load_file {
  gguf_directory *directory;
  uint64_t fed_bytes;     // of the directory
  uint64_t size_bytes;    // or LOAD_SIZE_UNKNOWN
  uint32_t first_tensor;  // index over all files
  uint32_t wanted_count;
  uint32_t *wanted;  // this file's wanted tensors, sorted by offset
  // Bytes that have arrived. Unwanted bytes count with the wanted bytes after them, so only wanted
  // bytes cause gaps.
  load_ranges present;
} load_file;

struct loader {
  memory_gate *memory;
  loader_sink sink;
  void *receiver;  // filled by the sink
  bool directory_only;
  bool is_ready;       // all directories are complete and the sink was notified
  wick_error failure;  // WICK_OK until a permanent failure
  load_file *files;
  uint32_t file_count;
  uint32_t directories_complete;
  uint32_t tensor_count;        // of all files, once is_ready
  uint32_t tensors_left;        // wanted and not done
  uint64_t *tensor_left_bytes;  // bytes of each tensor that have not arrived, or LOAD_UNWANTED
  load_carry *carries;          // unordered
  size_t carry_count, carry_capacity;
  uint64_t wanted_bytes;  // of tensors
  uint64_t placed_bytes;  // including directories
  load_fingerprint fingerprint;
};

// Accepts bytes for an incomplete directory. *used is the number of bytes that belong to it or were
// fed before. A failure is stored in loader->failure; only WICK_E_ARG fills *error.
wick_status load_take_directory(loader *loader, uint32_t file, uint64_t offset_bytes,
                                const uint8_t *bytes, size_t size_bytes, size_t *used,
                                wick_error *error);
// Starts loading tensors when the directories of all files are complete, unless the sink holds the
// load.
wick_status load_begin(loader *loader);
// Checks that everything in the directory fits into the file, whose size is known.
wick_status load_check_size(loader *loader, uint32_t file);

// Returns the first of the file's wanted tensors, by offset, that ends after `offset_bytes`.
uint32_t load_find_wanted(const load_file *file, uint64_t offset_bytes);

#endif
