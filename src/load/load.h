// load/load.h — the streaming loader: says which bytes it wants, takes what it is offered, puts each
// tensor's bytes to their place in kernel layout as they pass, and tells when a layer is complete.
#ifndef WICK_LOAD_H
#define WICK_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"

typedef struct loader loader;

// Where a tensor's bytes go; filled by the model's binding (model/weights) when the directory is
// complete. place() takes whole file blocks of one row, in any order, each once (it repacks); it is
// called for bound tensors only. Others are skipped.
typedef struct loader_sink {
  void *context;
  // Called once for each file of the model as soon as its directory is complete (and for file 0
  // after all of a split model's directories are): binds tensors, allocates weights.
  wick_status (*directory_ready)(void *context, wick_error *error);
  // Tensor `index` (over all files) is wanted?
  bool (*is_wanted)(void *context, uint32_t index);
  wick_status (*place)(void *context, uint32_t index, uint32_t row, uint32_t first_block,
                       uint32_t block_count, const uint8_t *blocks, wick_error *error);
  void (*tensor_done)(void *context, uint32_t index);
} loader_sink;

wick_status loader_create(wick_memory *memory, const loader_sink *sink, bool directory_only,
                          loader **out, wick_error *error);
void loader_destroy(loader *loader);   // also destroys the directories

// The next bytes wanted: file index, offset, length (0: nothing more is wanted). In file order while
// the directory is unknown (1 MiB steps from 0), then the wanted tensors' ranges joined to pieces
// of 1 to 8 MiB. Asking again without feeding gives the same answer.
void loader_next_range(const loader *loader, uint32_t *file, uint64_t *offset_bytes,
                       uint64_t *length_bytes);

// Takes bytes of a file from any offset, any number, any order once the directory is there (before
// that: from the directory's next byte on, WICK_E_ARG otherwise). Bytes nobody wants are skipped,
// bytes that came before are ignored. Data that cannot be placed yet because a block is cut between
// two calls is kept (at most one block a place where a gap was left).
wick_status loader_feed(loader *loader, uint32_t file, uint64_t offset_bytes, const void *bytes,
                        size_t size_bytes, wick_error *error);
// The file ended at `size_bytes` (known from the start when there is a Content-Length): tells
// WICK_E_TRUNCATED with the tensor that is cut, as early as that is known.
wick_status loader_end(loader *loader, uint32_t file, uint64_t size_bytes, wick_error *error);

bool loader_is_complete(const loader *loader);       // everything wanted is placed
bool loader_tensor_is_done(const loader *loader, uint32_t index);
uint64_t loader_bytes_wanted(const loader *loader);  // directory and wanted tensors, known so far
uint64_t loader_bytes_placed(const loader *loader);
uint64_t loader_fingerprint(const loader *loader);   // of everything placed, whatever the order

uint32_t loader_files(const loader *loader);         // 1, or split.count once known
// The model's directory: file 0's metadata, all files' tensors.
const gguf_directory *loader_directory(const loader *loader);  // NULL until file 0's is complete
size_t loader_tensor_count(const loader *loader);
const gguf_tensor *loader_tensor_at(const loader *loader, size_t index);
// Index over all files, or -1.
int32_t loader_find_tensor(const loader *loader, const char *name);

#endif
