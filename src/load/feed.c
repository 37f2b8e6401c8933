// load/feed.c — accepts bytes from any offset of a file, and turns them into whole blocks for the
// sink. Blocks are passed to the sink from the caller's buffer, one row at a time. Only a block
// that is split between calls waits in a carry for its remaining bytes.
#include <string.h>

#include "base/checked.h"
#include "load/state.h"

enum {
  // Bytes are fingerprinted and placed in slices, so that the second pass finds them in the cache.
  SLICE_BYTES = 131072,
  CARRIES_MIN = 4,
  CARRIES_A_CALL = 2  // a call can split its first and its last block
};

// A piece of one wanted tensor, and the tensor's block layout.
typedef struct load_piece {
  uint32_t tensor;  // index over all files
  uint32_t type;
  uint64_t first, end;  // bytes of the tensor
  const uint8_t *bytes;
  uint32_t block_bytes;
  uint32_t row_blocks;
} load_piece;

uint32_t load_find_wanted(const load_file *file, uint64_t offset_bytes) {
  uint32_t low = 0, high = file->wanted_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const gguf_tensor *tensor = gguf_tensor_at(file->directory, file->wanted[middle]);
    if (tensor->offset_bytes + tensor->size_bytes <= offset_bytes) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A separate function, because it runs often: a JavaScript engine replaces a short function with
// optimised code sooner while it is running.
__attribute__((noinline)) static wick_status place_blocks(loader *loader, const load_piece *piece,
                                                          uint64_t block, uint64_t count,
                                                          const uint8_t *bytes) {
  uint32_t row = (uint32_t)(block / piece->row_blocks);
  uint32_t column = (uint32_t)(block % piece->row_blocks);
  while (count > 0) {
    const uint32_t left = piece->row_blocks - column;
    const uint32_t run = count < left ? (uint32_t)count : left;
    const wick_status status = loader->sink.place(loader->receiver, piece->tensor, piece->type, row,
                                                  column, run, bytes, &loader->failure);
    if (status != WICK_OK) {
      loader->failure.status = status;
      return status;
    }
    bytes += (size_t)run * piece->block_bytes;
    count -= run;
    column = 0;
    row++;
  }
  return WICK_OK;
}

// Stores part of one block. reserve_carries has made room for a new carry.
static wick_status carry_bytes(loader *loader, const load_piece *piece, uint64_t at,
                               const uint8_t *bytes, size_t size_bytes) {
  const uint64_t block = at / piece->block_bytes;
  size_t number = 0;
  while (number < loader->carry_count && (loader->carries[number].tensor != piece->tensor ||
                                          loader->carries[number].block != block)) {
    number++;
  }
  load_carry *carry = &loader->carries[number];
  if (number == loader->carry_count) {
    loader->carry_count++;
    carry->block = block;
    carry->tensor = piece->tensor;
    carry->filled_bytes = 0;
  }
  memcpy(carry->bytes + at % piece->block_bytes, bytes, size_bytes);
  carry->filled_bytes += (uint32_t)size_bytes;
  if (carry->filled_bytes < piece->block_bytes) return WICK_OK;
  const wick_status status = place_blocks(loader, piece, block, 1, carry->bytes);
  *carry = loader->carries[--loader->carry_count];
  return status;
}

// Stores bytes [first, end) of the tensor from the piece: a partial block, whole blocks, a partial
// block.
static wick_status place_slice(loader *loader, const load_piece *piece, uint64_t first,
                               uint64_t end) {
  const uint8_t *bytes = piece->bytes + (first - piece->first);
  const uint32_t past = (uint32_t)(first % piece->block_bytes);
  wick_status status = WICK_OK;
  if (past > 0) {
    const uint64_t left = piece->block_bytes - past;
    const size_t size_bytes = (size_t)(end - first < left ? end - first : left);
    status = carry_bytes(loader, piece, first, bytes, size_bytes);
    first += size_bytes;
    bytes += size_bytes;
  }
  const uint64_t count = (end - first) / piece->block_bytes;
  const uint64_t whole_bytes = count * piece->block_bytes;
  if (status == WICK_OK && count > 0) {
    status = place_blocks(loader, piece, first / piece->block_bytes, count, bytes);
  }
  if (status == WICK_OK && first + whole_bytes < end) {
    status = carry_bytes(loader, piece, first + whole_bytes, bytes + whole_bytes,
                         (size_t)(end - first - whole_bytes));
  }
  return status;
}

// Returns the end of a slice that begins at `first`: the end of a row, or of a block if rows are
// longer than slices.
static uint64_t end_slice(const load_piece *piece, uint64_t first) {
  const uint64_t aim = first + SLICE_BYTES;
  if (aim >= piece->end) return piece->end;
  const uint64_t row_end = aim - aim % ((uint64_t)piece->row_blocks * piece->block_bytes);
  return row_end > first ? row_end : aim - aim % piece->block_bytes;
}

static wick_status place_piece(loader *loader, uint32_t file, uint64_t tensor_offset,
                               const load_piece *piece) {
  uint64_t first = piece->first;
  while (first < piece->end) {
    const uint64_t end = end_slice(piece, first);
    fingerprint_add(&loader->fingerprint, file, tensor_offset + first,
                    piece->bytes + (first - piece->first), (size_t)(end - first));
    const wick_status status = place_slice(loader, piece, first, end);
    if (status != WICK_OK) return status;
    first = end;
  }
  const uint64_t size_bytes = piece->end - piece->first;
  loader->placed_bytes += size_bytes;
  loader->tensor_left_bytes[piece->tensor] -= size_bytes;
  if (loader->tensor_left_bytes[piece->tensor] == 0) {
    loader->tensors_left--;
    if (loader->sink.tensor_done != NULL) {
      loader->sink.tensor_done(loader->receiver, piece->tensor);
    }
  }
  return WICK_OK;
}

// Accepts bytes [first, end) of the file, none of which has arrived before; `bytes` points to the
// first byte.
static wick_status place_fresh(loader *loader, uint32_t file, uint64_t first, uint64_t end,
                               const uint8_t *bytes) {
  const load_file *at = &loader->files[file];
  for (uint32_t i = load_find_wanted(at, first); i < at->wanted_count; i++) {
    const gguf_tensor *tensor = gguf_tensor_at(at->directory, at->wanted[i]);
    if (tensor->offset_bytes >= end) break;
    const uint64_t tensor_end = tensor->offset_bytes + tensor->size_bytes;
    const uint64_t from = first > tensor->offset_bytes ? first : tensor->offset_bytes;
    const uint64_t to = end < tensor_end ? end : tensor_end;
    const ggml_type_facts *facts = type_facts(tensor->type);
    const load_piece piece = {
        .tensor = at->first_tensor + at->wanted[i],
        .type = tensor->type,
        .first = from - tensor->offset_bytes,
        .end = to - tensor->offset_bytes,
        .bytes = bytes + (from - first),
        .block_bytes = facts->block_bytes,
        .row_blocks = (uint32_t)(tensor->dims[0] / facts->block_values),
    };
    const wick_status status = place_piece(loader, file, tensor->offset_bytes, &piece);
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

// Extends a range that begins in unwanted bytes back to the end of the wanted bytes before it, so
// that unwanted bytes leave no gaps.
static uint64_t widen_first(const load_file *file, uint64_t first) {
  const uint32_t number = load_find_wanted(file, first);
  if (number < file->wanted_count &&
      gguf_tensor_at(file->directory, file->wanted[number])->offset_bytes < first) {
    return first;
  }
  if (number == 0) return 0;
  const gguf_tensor *before = gguf_tensor_at(file->directory, file->wanted[number - 1]);
  return before->offset_bytes + before->size_bytes;
}

static wick_status reserve_carries(loader *loader, wick_error *error) {
  const size_t wanted = loader->carry_count + CARRIES_A_CALL;
  if (wanted <= loader->carry_capacity) return WICK_OK;
  const size_t capacity = 2 * wanted < CARRIES_MIN ? CARRIES_MIN : 2 * wanted;
  load_carry *moved =
      memory_resize(loader->memory, loader->carries, capacity * sizeof *loader->carries);
  if (moved == NULL) {
    return memory_fail(loader->memory, error, "partly loaded blocks");
  }
  loader->carries = moved;
  loader->carry_capacity = capacity;
  return WICK_OK;
}

// Accepts bytes from any offset of a file once loader->is_ready is set.
static wick_status take_data(loader *loader, uint32_t file, uint64_t offset_bytes,
                             const uint8_t *bytes, size_t size_bytes, wick_error *error) {
  load_file *at = &loader->files[file];
  const uint64_t end = offset_bytes + size_bytes;
  const uint64_t wide_first = widen_first(at, offset_bytes);
  wick_status status = ranges_reserve(&at->present, loader->memory, wide_first, end, error);
  if (status == WICK_OK) status = reserve_carries(loader, error);
  if (status != WICK_OK) return status;
  uint64_t first = ranges_next_missing(&at->present, offset_bytes);
  while (first < end) {
    const uint64_t present = ranges_next_present(&at->present, first);
    const uint64_t fresh_end = present < end ? present : end;
    status = place_fresh(loader, file, first, fresh_end, bytes + (first - offset_bytes));
    if (status != WICK_OK) return status;
    first = ranges_next_missing(&at->present, fresh_end);
  }
  ranges_add(&at->present, wide_first, end);
  return WICK_OK;
}

// Returns the permanent failure in loader->failure, if any. Other errors are already in *error.
static wick_status answer(const loader *loader, wick_status status, wick_error *error) {
  if (loader->failure.status == WICK_OK) return status;
  if (error != NULL) *error = loader->failure;
  return loader->failure.status;
}

static wick_status check_file(const loader *loader, uint32_t file, wick_error *error) {
  if (file < loader->file_count) return WICK_OK;
  return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "file %u of a model with %u files", file,
                   loader->file_count);
}

wick_status loader_feed(loader *loader, uint32_t file, uint64_t offset_bytes, const void *bytes,
                        size_t size_bytes, wick_error *error) {
  if (loader->failure.status != WICK_OK) return answer(loader, WICK_OK, error);
  wick_status status = check_file(loader, file, error);
  if (status != WICK_OK) return status;
  uint64_t end;
  if (!checked_add_u64(offset_bytes, size_bytes, &end) || end > INT64_MAX) {
    return fail_with(error, WICK_E_ARG, offset_bytes, "invalid byte range of a file");
  }
  size_t used = 0;
  if (!gguf_directory_is_complete(loader->files[file].directory)) {
    status = load_take_directory(loader, file, offset_bytes, bytes, size_bytes, &used, error);
    if (status != WICK_OK) return answer(loader, status, error);
  }
  if (!loader->is_ready && loader_has_directories(loader)) {
    status = load_begin(loader);
    if (status != WICK_OK) return answer(loader, status, error);
  }
  if (!loader->is_ready || loader->directory_only || used == size_bytes) return WICK_OK;
  status = take_data(loader, file, offset_bytes + used, (const uint8_t *)bytes + used,
                     size_bytes - used, error);
  return answer(loader, status, error);
}

wick_status loader_end(loader *loader, uint32_t file, uint64_t size_bytes, wick_error *error) {
  if (loader->failure.status != WICK_OK) return answer(loader, WICK_OK, error);
  const wick_status status = check_file(loader, file, error);
  if (status != WICK_OK) return status;
  loader->files[file].size_bytes = size_bytes;
  return answer(loader, load_check_size(loader, file), error);
}
