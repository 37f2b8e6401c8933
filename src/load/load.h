// load/load.h — the streaming loader. It requests the bytes that it needs, accepts the bytes that
// are fed, places each tensor's bytes in kernel layout as they arrive, and reports complete
// tensors.
#ifndef WICK_LOAD_H
#define WICK_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"

typedef struct loader loader;

enum { LOADER_FILES_MAX = 1024 };

// The receiver of a tensor's bytes (model/weights). place() repacks whole file blocks of one row,
// in any order, each once. It is called for wanted tensors only; others are skipped.
// is_held, directory_ready and tensor_done may be NULL.
typedef struct loader_sink {
  void *context;
  // Called when all directories are complete. While it returns true, nothing more happens and no
  // bytes are stored; the next loader_feed calls it again.
  bool (*is_held)(void *context);
  // Binds tensors and allocates weights. Called once, within loader_feed, when the directories
  // of all files of the model are complete.
  wick_status (*directory_ready)(void *context, wick_error *error);
  // Whether tensor `index` (over all files) is wanted. Called once for each, after directory_ready.
  bool (*is_wanted)(void *context, uint32_t index);
  wick_status (*place)(void *context, uint32_t index, uint32_t row, uint32_t first_block,
                       uint32_t block_count, const uint8_t *blocks, wick_error *error);
  // Called once for each wanted tensor, when all of its bytes are placed.
  void (*tensor_done)(void *context, uint32_t index);
} loader_sink;

// The sink is copied. With directory_only no tensor is wanted, the sink is not used and may be
// NULL, and the file need not contain the tensors' bytes.
wick_status loader_create(memory_gate *memory, const loader_sink *sink, bool directory_only,
                          loader **out, wick_error *error);
void loader_destroy(loader *loader);  // also destroys the directories

// The next bytes wanted: file index, offset, length (0: nothing more is wanted). In file order
// while the directory is unknown (1 MiB steps from 0; 64 KiB in later files of a split model), then
// the wanted tensors' ranges, merged into pieces of up to 8 MiB. A second call without feeding
// returns the same range.
void loader_next_range(const loader *loader, uint32_t *file, uint64_t *offset_bytes,
                       uint64_t *length_bytes);
// The first such range at or after a place, for hosts with several requests at once: each request
// begins where the one before ends.
void loader_next_range_from(const loader *loader, uint32_t from_file, uint64_t from_offset_bytes,
                            uint32_t *file, uint64_t *offset_bytes, uint64_t *length_bytes);

// Takes bytes of a file. Once the directory is complete they may have any offset, number and order;
// before that they must begin at the directory's next byte (else WICK_E_ARG). Unwanted bytes are
// skipped, and bytes that were fed before are ignored. If a call ends within a block, that part of
// the block is stored (at most one block at each open gap). Bytes after a directory are not stored
// while another file's directory is missing: the loader requests them again. WICK_E_ARG,
// WICK_E_FULL (1024 gaps are open; the caller must fill some first) and WICK_E_NOMEM for the lists
// of gaps and blocks change nothing, and the call may be repeated. Every other failure is final.
wick_status loader_feed(loader *loader, uint32_t file, uint64_t offset_bytes, const void *bytes,
                        size_t size_bytes, wick_error *error);
// Sets the length of a file, which a Content-Length may announce from the start. A tensor that is
// cut off fails with WICK_E_TRUNCATED, here or in a later loader_feed, as soon as that is known. A
// later call corrects an earlier one. `file` < loader_files().
wick_status loader_end(loader *loader, uint32_t file, uint64_t size_bytes, wick_error *error);

bool loader_has_directories(const loader *loader);  // those of all files are complete
bool loader_is_complete(const loader *loader);      // everything wanted is placed
bool loader_tensor_is_done(const loader *loader, uint32_t index);
uint64_t loader_bytes_wanted(const loader *loader);  // directory and wanted tensors, known so far
uint64_t loader_bytes_placed(const loader *loader);
// The fingerprint of the directories and of the wanted tensors' bytes that have arrived.
uint64_t loader_fingerprint(const loader *loader);

uint32_t loader_files(const loader *loader);  // 1, or split.count once known
// The model's directory: file 0's metadata, all files' tensors.
const gguf_directory *loader_directory(const loader *loader);  // NULL until file 0's is complete
// Over all files: 0 and -1 until all directories are complete.
size_t loader_tensor_count(const loader *loader);
const gguf_tensor *loader_tensor_at(const loader *loader, size_t index);
int32_t loader_find_tensor(const loader *loader, const char *name);

#endif
