// load/directories.c — the directories of a model's file or files. The first directory contains the
// number of files (split.count), and the others must agree with it. Together they form one list of
// tensors. Source of the split.* keys: llama-gguf-split of llama.cpp.
#include "base/checked.h"
#include "base/text.h"
#include "load/state.h"

// Adds the number of the failing file to loader->failure if there are several files.
static wick_status fail_in_file(loader *loader, uint32_t file) {
  wick_error *failure = &loader->failure;
  if (loader->file_count > 1) {
    const wick_error inner = *failure;
    fail_with(failure, inner.status, inner.offset_bytes, "file %u of %u: %s", file + 1,
              loader->file_count, inner.message);
  }
  return failure->status;
}

static wick_status check_tensors_end(loader *loader, uint32_t file) {
  const load_file *at = &loader->files[file];
  for (size_t rank = 0; rank < gguf_tensor_count(at->directory); rank++) {
    const gguf_tensor *tensor =
        gguf_tensor_at(at->directory, gguf_tensor_by_offset(at->directory, rank));
    const uint64_t end = tensor->offset_bytes + tensor->size_bytes;
    if (end > at->size_bytes) {
      char name[GGUF_QUOTE_BYTES];
      fail_with(&loader->failure, WICK_E_TRUNCATED, at->size_bytes,
                "the file ends at byte %llu, but tensor '%s' ends at %llu",
                (unsigned long long)at->size_bytes, gguf_quote(tensor->name, name),
                (unsigned long long)end);
      return fail_in_file(loader, file);
    }
  }
  return WICK_OK;
}

wick_status load_check_size(loader *loader, uint32_t file) {
  const load_file *at = &loader->files[file];
  if (at->size_bytes == LOAD_SIZE_UNKNOWN) return WICK_OK;
  if (gguf_directory_is_complete(at->directory)) {
    return loader->directory_only ? WICK_OK : check_tensors_end(loader, file);
  }
  if (gguf_directory_needs(at->directory) <= at->size_bytes) return WICK_OK;
  gguf_directory_finish(at->directory, &loader->failure);
  loader->failure.offset_bytes = at->size_bytes;
  return fail_in_file(loader, file);
}

// ---- Split models ----

static wick_status read_split_key(loader *loader, uint32_t file, const char *key, uint32_t absent,
                                  uint32_t *out) {
  *out = absent;
  const wick_status status =
      gguf_get_u32(loader->files[file].directory, key, out, &loader->failure);
  return status == WICK_OK || status == WICK_E_NODATA ? WICK_OK : fail_in_file(loader, file);
}

static uint64_t offset_of_key(const loader *loader, uint32_t file, const char *key) {
  const gguf_value *value = gguf_find(loader->files[file].directory, key);
  return value != NULL ? value->offset_bytes : WICK_NO_OFFSET;
}

static wick_status open_other_files(loader *loader, uint32_t count) {
  load_file *moved = memory_resize(loader->memory, loader->files, count * sizeof *moved);
  if (moved == NULL) {
    return memory_fail(loader->memory, &loader->failure, "the list of a model's files");
  }
  loader->files = moved;
  while (loader->file_count < count) {
    load_file *file = &moved[loader->file_count];
    *file = (load_file){.size_bytes = LOAD_SIZE_UNKNOWN};
    const wick_status status =
        gguf_directory_create(loader->memory, &file->directory, &loader->failure);
    if (status != WICK_OK) return status;
    gguf_directory_set_file(file->directory, loader->file_count);
    loader->file_count++;
  }
  return WICK_OK;
}

// Reads the number of files from the first file.
static wick_status begin_split(loader *loader) {
  uint32_t count, number;
  wick_status status = read_split_key(loader, 0, "split.count", 1, &count);
  if (status == WICK_OK) status = read_split_key(loader, 0, "split.no", 0, &number);
  if (status != WICK_OK) return status;
  if (count <= 1) return WICK_OK;
  if (count > LOADER_FILES_MAX) {
    return fail_with(&loader->failure, WICK_E_FORMAT, offset_of_key(loader, 0, "split.count"),
                     "key 'split.count' is %u, limit is %d files", count, LOADER_FILES_MAX);
  }
  if (number != 0) {
    return fail_with(&loader->failure, WICK_E_FORMAT, offset_of_key(loader, 0, "split.no"),
                     "key 'split.no' is %u: this is file %llu of %u of a split model; load the "
                     "first one",
                     number, number + 1ull, count);
  }
  return open_other_files(loader, count);
}

// Checks that a later file's number is its index in the list.
static wick_status check_split(loader *loader, uint32_t file) {
  uint32_t count, number;
  wick_status status = read_split_key(loader, file, "split.count", 0, &count);
  if (status == WICK_OK) status = read_split_key(loader, file, "split.no", 0, &number);
  if (status != WICK_OK) return status;
  const char *wrong = count != loader->file_count ? "split.count" : "split.no";
  if (count != loader->file_count || number != file) {
    fail_with(&loader->failure, WICK_E_FORMAT, offset_of_key(loader, file, wrong),
              "key '%s' is wrong: the file claims to be %llu of %u", wrong, number + 1ull, count);
    return fail_in_file(loader, file);
  }
  return WICK_OK;
}

// Checks that no tensor is in two complete directories.
static wick_status check_duplicates(loader *loader, uint32_t file) {
  const gguf_directory *directory = loader->files[file].directory;
  for (uint32_t other = 0; other < loader->file_count; other++) {
    const gguf_directory *against = loader->files[other].directory;
    if (other == file || !gguf_directory_is_complete(against)) continue;
    for (size_t i = 0; i < gguf_tensor_count(directory); i++) {
      const gguf_tensor *tensor = gguf_tensor_at(directory, i);
      if (gguf_find_tensor_string(against, tensor->name) != NULL) {
        char name[GGUF_QUOTE_BYTES];
        fail_with(&loader->failure, WICK_E_FORMAT, tensor->entry_offset_bytes,
                  "tensor '%s' is also in file %u", gguf_quote(tensor->name, name), other + 1);
        return fail_in_file(loader, file);
      }
    }
  }
  return WICK_OK;
}

// Numbers the tensors of all files.
static wick_status count_tensors(loader *loader) {
  uint64_t total = 0;
  for (uint32_t file = 0; file < loader->file_count; file++) {
    loader->files[file].first_tensor = (uint32_t)total;
    total += gguf_tensor_count(loader->files[file].directory);
    if (total > GGUF_TENSORS_MAX) {
      return fail_with(&loader->failure, WICK_E_FORMAT, WICK_NO_OFFSET,
                       "%llu tensors in %u files; the limit is %d", (unsigned long long)total,
                       loader->file_count, GGUF_TENSORS_MAX);
    }
  }
  loader->tensor_count = (uint32_t)total;
  uint32_t declared;
  const wick_status status =
      read_split_key(loader, 0, "split.tensors.count", loader->tensor_count, &declared);
  if (status != WICK_OK || loader->file_count == 1) return status;
  if (declared != loader->tensor_count) {
    return fail_with(&loader->failure, WICK_E_FORMAT,
                     offset_of_key(loader, 0, "split.tensors.count"),
                     "key 'split.tensors.count' is %u, but the %u files have %u tensors", declared,
                     loader->file_count, loader->tensor_count);
  }
  return WICK_OK;
}

// ---- Wanted tensors ----

static wick_status list_wanted(loader *loader, load_file *file) {
  const size_t count = gguf_tensor_count(file->directory);
  file->wanted = memory_alloc_array(loader->memory, count, sizeof *file->wanted);
  if (file->wanted == NULL) {
    return memory_fail(loader->memory, &loader->failure, "the list of wanted tensors");
  }
  for (size_t rank = 0; rank < count; rank++) {
    const size_t number = gguf_tensor_by_offset(file->directory, rank);
    const uint32_t index = file->first_tensor + (uint32_t)number;
    const bool is_wanted = loader->sink.is_wanted(loader->receiver, index);
    loader->tensor_left_bytes[index] = LOAD_UNWANTED;
    if (!is_wanted) continue;
    loader->tensor_left_bytes[index] = gguf_tensor_at(file->directory, number)->size_bytes;
    loader->wanted_bytes += loader->tensor_left_bytes[index];
    loader->tensors_left++;
    file->wanted[file->wanted_count++] = (uint32_t)number;
  }
  return WICK_OK;
}

static wick_status begin_data(loader *loader) {
  wick_status status = WICK_OK;
  if (loader->sink.directory_ready != NULL) {
    status = loader->sink.directory_ready(loader->sink.context, &loader->failure);
    if (status != WICK_OK) loader->failure.status = status;
  }
  if (status != WICK_OK) return status;
  const size_t size_bytes = loader->tensor_count * sizeof *loader->tensor_left_bytes;
  loader->tensor_left_bytes = memory_alloc(loader->memory, size_bytes);
  if (loader->tensor_left_bytes == NULL) {
    return memory_fail(loader->memory, &loader->failure, "the list of tensors");
  }
  for (uint32_t file = 0; file < loader->file_count && status == WICK_OK; file++) {
    status = list_wanted(loader, &loader->files[file]);
  }
  return status;
}

static wick_status end_directory(loader *loader, uint32_t file) {
  wick_status status = file == 0 ? begin_split(loader) : check_split(loader, file);
  if (status == WICK_OK) status = load_check_size(loader, file);
  if (status == WICK_OK) status = check_duplicates(loader, file);
  if (status != WICK_OK) return status;
  loader->directories_complete++;
  if (loader->directories_complete < loader->file_count) return WICK_OK;
  status = count_tensors(loader);
  return status == WICK_OK ? load_begin(loader) : status;
}

wick_status load_begin(loader *loader) {
  const loader_sink *sink = &loader->sink;
  if (sink->is_held != NULL && sink->is_held(sink->context)) return WICK_OK;
  const wick_status status = loader->directory_only ? WICK_OK : begin_data(loader);
  loader->is_ready = status == WICK_OK;
  return status;
}

wick_status load_take_directory(loader *loader, uint32_t file, uint64_t offset_bytes,
                                const uint8_t *bytes, size_t size_bytes, size_t *used,
                                wick_error *error) {
  load_file *at = &loader->files[file];
  *used = size_bytes;
  if (offset_bytes > at->fed_bytes) {
    return fail_with(error, WICK_E_ARG, offset_bytes,
                     "bytes at %llu were fed, but the directory continues at %llu",
                     (unsigned long long)offset_bytes, (unsigned long long)at->fed_bytes);
  }
  const uint64_t known = at->fed_bytes - offset_bytes;
  if (known >= size_bytes) return WICK_OK;
  const uint8_t *fresh = bytes + known;
  size_t taken;
  gguf_directory_feed(at->directory, fresh, size_bytes - (size_t)known, &taken, &loader->failure);
  if (loader->failure.status != WICK_OK) return fail_in_file(loader, file);
  fingerprint_add(&loader->fingerprint, file, at->fed_bytes, fresh, taken);
  at->fed_bytes += taken;
  loader->placed_bytes += taken;
  *used = (size_t)known + taken;
  if (gguf_directory_is_complete(at->directory)) return end_directory(loader, file);
  return load_check_size(loader, file);
}
