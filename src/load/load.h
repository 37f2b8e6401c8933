// load/load.h — the streaming loader. It requests the bytes that it needs, accepts the bytes that
// are fed, stores each tensor's bytes in kernel layout as they arrive, and reports complete
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

// The receiver of a tensor's bytes (model/weights). place() repacks whole file blocks of one row of
// a tensor of this type. It is called in any order, once per block, and only for wanted tensors;
// others are skipped. is_held, directory_ready and tensor_done may be NULL. The last three
// functions are passed `context`, unless loader_fill names another receiver.
typedef struct loader_sink {
  void *context;
  // Called when all directories are complete. While it returns true, nothing more happens and no
  // bytes are stored; the next loader_feed calls it again.
  bool (*is_held)(void *context);
  // Binds tensors and allocates weights. Called once, within loader_feed, when the directories
  // of all files of the model are complete.
  wick_status (*directory_ready)(void *context, wick_error *error);
  // Returns whether tensor `index` (over all files) is wanted. Called once for each tensor, after
  // directory_ready.
  bool (*is_wanted)(void *receiver, uint32_t index);
  wick_status (*place)(void *receiver, uint32_t index, uint32_t type, uint32_t row,
                       uint32_t first_block, uint32_t block_count, const uint8_t *blocks,
                       wick_error *error);
  // Called once for each wanted tensor, when all of its bytes are placed.
  void (*tensor_done)(void *receiver, uint32_t index);
} loader_sink;

// Creates a loader. The sink is copied. With directory_only, no tensor is wanted, the sink is not
// used and may be NULL, and the file need not contain the tensors' bytes.
wick_status loader_create(memory_gate *memory, const loader_sink *sink, bool directory_only,
                          loader **out, wick_error *error);
void loader_destroy(loader *loader);  // also destroys the directories
// Sets what the sink fills. Called before or within directory_ready.
void loader_fill(loader *loader, void *receiver);

// Returns the next bytes that are needed: file index, offset, length (0: the loader needs nothing
// more). While the directory is incomplete, these are in file order (1 MiB steps from 0; 64 KiB in
// later files of a split model). Then they are the wanted tensors' ranges, merged into pieces of up
// to 8 MiB. A second call without feeding returns the same range.
void loader_next_range(const loader *loader, uint32_t *file, uint64_t *offset_bytes,
                       uint64_t *length_bytes);
// Like loader_next_range, but returns the first range at or after a position, for hosts with
// several parallel requests: each request begins where the previous one ends.
void loader_next_range_from(const loader *loader, uint32_t from_file, uint64_t from_offset_bytes,
                            uint32_t *file, uint64_t *offset_bytes, uint64_t *length_bytes);

// Accepts bytes of a file. Once the directory is complete, they may have any offset, size and
// order; before that they must begin at the directory's next byte (else WICK_E_ARG). Unwanted bytes
// are skipped, and bytes that were fed before are ignored. If a call ends within a block, that part
// of the block is stored (at most one block at each open gap). Bytes after a directory are not
// stored while the directory of another file is missing: the loader requests them again. After
// WICK_E_ARG, WICK_E_FULL (1024 gaps are open; the caller must fill some first) and WICK_E_NOMEM
// for the lists of gaps and blocks, nothing has changed, and the call may be repeated. Every other
// failure is permanent.
wick_status loader_feed(loader *loader, uint32_t file, uint64_t offset_bytes, const void *bytes,
                        size_t size_bytes, wick_error *error);
// Sets the size of a file, which may be known from the start (Content-Length). If a tensor is
// truncated, this call or a later loader_feed fails with WICK_E_TRUNCATED as soon as the truncation
// is known. A later call corrects an earlier one. `file` must be below loader_files().
wick_status loader_end(loader *loader, uint32_t file, uint64_t size_bytes, wick_error *error);

bool loader_has_directories(const loader *loader);  // of all files
bool loader_is_complete(const loader *loader);      // every wanted byte is stored
bool loader_tensor_is_done(const loader *loader, uint32_t index);
uint64_t loader_bytes_wanted(const loader *loader);  // of directory and tensors, as far as known
uint64_t loader_bytes_placed(const loader *loader);
// Returns the fingerprint of the directories and of the wanted tensors' bytes that have arrived.
uint64_t loader_fingerprint(const loader *loader);

uint32_t loader_files(const loader *loader);  // 1, or split.count once it is known
// Returns the model's directory: the metadata of file 0 and the tensors of all files. NULL until
// the directory of file 0 is complete.
const gguf_directory *loader_directory(const loader *loader);
// The functions below cover all files; until all directories are complete, counts are 0 and indexes
// are -1.
size_t loader_tensor_count(const loader *loader);
const gguf_tensor *loader_tensor_at(const loader *loader, size_t index);
int32_t loader_find_tensor(const loader *loader, const char *name);

#endif
