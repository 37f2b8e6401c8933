// load/loader.c — the loader's functions: the next wanted range, and the loader's state.
#include "load/load.h"

#include "load/state.h"

enum {
  DIRECTORY_STEP_BYTES = 1024 * 1024,
  LATER_STEP_BYTES = 64 * 1024,  // a split model's later files have few keys
  PIECE_BYTES_MAX = 8 * 1024 * 1024,
  HOLE_BYTES_MAX = 256 * 1024  // unwanted bytes that are fetched rather than skipped
};

// Adds file 0 to a loader.
static wick_status open_first_file(loader *loader, wick_error *error) {
  loader->files = memory_alloc(loader->memory, sizeof *loader->files);
  if (loader->files == NULL) {
    return memory_fail(loader->memory, error, "a loader");
  }
  loader->files[0] = (load_file){.size_bytes = LOAD_SIZE_UNKNOWN};
  const wick_status status =
      gguf_directory_create(loader->memory, &loader->files[0].directory, error);
  if (status == WICK_OK) loader->file_count = 1;
  return status;
}

wick_status loader_create(memory_gate *memory, const loader_sink *sink, bool directory_only,
                          loader **out, wick_error *error) {
  if (!directory_only && (sink == NULL || sink->is_wanted == NULL || sink->place == NULL)) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "a loader needs a function to store bytes");
  }
  loader *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "a loader");
  made->memory = memory;
  made->directory_only = directory_only;
  if (!directory_only) {
    made->sink = *sink;
    made->receiver = sink->context;
  }
  const wick_status status = open_first_file(made, error);
  if (status != WICK_OK) {
    loader_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

void loader_destroy(loader *loader) {
  if (loader == NULL) return;
  memory_gate *memory = loader->memory;
  for (uint32_t i = 0; i < loader->file_count; i++) {
    gguf_directory_destroy(loader->files[i].directory);
    memory_free(memory, loader->files[i].wanted);
    memory_free(memory, loader->files[i].present.items);
  }
  memory_free(memory, loader->files);
  memory_free(memory, loader->tensor_left_bytes);
  memory_free(memory, loader->carries);
  memory_free(memory, loader);
}

void loader_fill(loader *loader, void *receiver) { loader->receiver = receiver; }

// ---- Requests ----

static bool ask_directory(const loader *loader, uint32_t from_file, uint64_t from, uint32_t *file,
                          uint64_t *offset, uint64_t *length) {
  for (uint32_t i = 0; i < loader->file_count; i++) {
    const load_file *at = &loader->files[i];
    if (gguf_directory_is_complete(at->directory)) continue;
    // The bytes that are needed after the next directory are not known yet.
    if (i < from_file || (i == from_file && at->fed_bytes < from)) return false;
    const uint64_t step = i == 0 ? DIRECTORY_STEP_BYTES : LATER_STEP_BYTES;
    const uint64_t left = at->size_bytes - at->fed_bytes;
    *file = i;
    *offset = at->fed_bytes;
    *length = step < left ? step : left;
    return true;
  }
  return false;
}

// Returns the first byte at or after `from` that is wanted and has not arrived, or UINT64_MAX.
// *number is the index of the file's wanted tensor that contains it.
static uint64_t find_missing(const load_file *file, uint64_t from, uint32_t *number) {
  for (;;) {
    from = ranges_next_missing(&file->present, from);
    *number = load_find_wanted(file, from);
    if (*number == file->wanted_count) return UINT64_MAX;
    const gguf_tensor *tensor = gguf_tensor_at(file->directory, file->wanted[*number]);
    if (tensor->offset_bytes <= from) return from;
    from = tensor->offset_bytes;
  }
}

static bool ask_data(const load_file *file, uint64_t from, uint64_t *offset, uint64_t *length) {
  uint32_t number;
  const uint64_t first = find_missing(file, from, &number);
  if (first == UINT64_MAX) return false;
  const uint64_t present = ranges_next_present(&file->present, first);
  uint64_t limit = first + PIECE_BYTES_MAX;
  if (present < limit) limit = present;
  uint64_t end = first;
  for (; number < file->wanted_count && end < limit; number++) {
    const gguf_tensor *tensor = gguf_tensor_at(file->directory, file->wanted[number]);
    if (tensor->offset_bytes >= limit) break;
    if (tensor->offset_bytes > end && tensor->offset_bytes - end > HOLE_BYTES_MAX) break;
    end = tensor->offset_bytes + tensor->size_bytes;
  }
  *offset = first;
  *length = (end < limit ? end : limit) - first;
  return true;
}

void loader_next_range_from(const loader *loader, uint32_t from_file, uint64_t from_offset_bytes,
                            uint32_t *file, uint64_t *offset_bytes, uint64_t *length_bytes) {
  *file = 0;
  *offset_bytes = 0;
  *length_bytes = 0;
  if (loader->failure.status != WICK_OK) return;
  if (!loader->is_ready) {
    ask_directory(loader, from_file, from_offset_bytes, file, offset_bytes, length_bytes);
    return;
  }
  for (uint32_t i = from_file; i < loader->file_count; i++) {
    const uint64_t from = i == from_file ? from_offset_bytes : 0;
    if (ask_data(&loader->files[i], from, offset_bytes, length_bytes)) {
      *file = i;
      return;
    }
  }
}

void loader_next_range(const loader *loader, uint32_t *file, uint64_t *offset_bytes,
                       uint64_t *length_bytes) {
  loader_next_range_from(loader, 0, 0, file, offset_bytes, length_bytes);
}

// ---- State ----

bool loader_has_directories(const loader *loader) {
  return loader->directories_complete == loader->file_count;
}

bool loader_is_complete(const loader *loader) {
  return loader->is_ready && loader->tensors_left == 0 && loader->failure.status == WICK_OK;
}

bool loader_tensor_is_done(const loader *loader, uint32_t index) {
  return loader->tensor_left_bytes != NULL && loader->tensor_left_bytes[index] == 0;
}

uint64_t loader_bytes_wanted(const loader *loader) {
  uint64_t bytes = loader->wanted_bytes;
  for (uint32_t i = 0; i < loader->file_count; i++) {
    bytes += gguf_directory_needs(loader->files[i].directory);
  }
  return bytes;
}

uint64_t loader_bytes_placed(const loader *loader) { return loader->placed_bytes; }

uint64_t loader_fingerprint(const loader *loader) {
  return fingerprint_value(&loader->fingerprint);
}

uint32_t loader_files(const loader *loader) { return loader->file_count; }

const gguf_directory *loader_directory(const loader *loader) {
  const gguf_directory *first = loader->files[0].directory;
  return gguf_directory_is_complete(first) ? first : NULL;
}

size_t loader_tensor_count(const loader *loader) { return loader->tensor_count; }

const gguf_tensor *loader_tensor_at(const loader *loader, size_t index) {
  uint32_t file = loader->file_count - 1;
  while (loader->files[file].first_tensor > index) file--;
  return gguf_tensor_at(loader->files[file].directory, index - loader->files[file].first_tensor);
}

int32_t loader_find_tensor(const loader *loader, const char *name) {
  if (loader->directories_complete < loader->file_count) return -1;
  for (uint32_t i = 0; i < loader->file_count; i++) {
    const load_file *file = &loader->files[i];
    const gguf_tensor *tensor = gguf_find_tensor(file->directory, name);
    if (tensor != NULL) {
      const gguf_tensor *first = gguf_tensor_at(file->directory, 0);
      return (int32_t)file->first_tensor + (int32_t)(tensor - first);
    }
  }
  return -1;
}
