// format/gguf_complete.c — completes a directory after its last entry: sets pointers into the
// buffer, which no longer moves, indexes names, and checks the position of the tensors' bytes.
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "format/gguf_directory.h"

enum {
  ALIGNMENT_DEFAULT = 32,
  SLACK_BYTES_MAX = 4096,
  // In a half-full table of ordinary names, runs are well below a hundred; the limit is for
  // malicious names.
  PROBES_MAX = 1024
};

typedef gguf_string (*name_at)(const gguf_directory *directory, size_t number);

static gguf_string value_name(const gguf_directory *directory, size_t number) {
  return directory->values[number].key;
}

static gguf_string tensor_name(const gguf_directory *directory, size_t number) {
  return directory->tensors[number].name;
}

static bool names_are_equal(gguf_string a, gguf_string b) {
  return a.size_bytes == b.size_bytes && memcmp(a.bytes, b.bytes, (size_t)a.size_bytes) == 0;
}

// Returns the slot with `name`, or the free slot for it, or UINT32_MAX if the run is too long.
static uint32_t find_slot(const gguf_directory *directory, const gguf_index *index, name_at name_of,
                          gguf_string name) {
  uint32_t slot = (uint32_t)hash_bytes(name.bytes, (size_t)name.size_bytes, 0) & index->mask;
  for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
    const uint32_t held = index->slots[slot];
    if (held == 0 || names_are_equal(name_of(directory, held - 1), name)) return slot;
    slot = (slot + 1) & index->mask;
  }
  return UINT32_MAX;
}

static wick_status build_index(gguf_directory *directory, gguf_index *index, name_at name_of,
                               size_t count, const char *kind) {
  size_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  index->slots = memory_alloc_zeroed(directory->memory, slots * sizeof *index->slots);
  if (index->slots == NULL) {
    return memory_fail(directory->memory, &directory->failure, "a model's directory");
  }
  index->mask = (uint32_t)(slots - 1);
  for (size_t i = 0; i < count; i++) {
    const gguf_string name = name_of(directory, i);
    const uint32_t slot = find_slot(directory, index, name_of, name);
    if (slot == UINT32_MAX || index->slots[slot] != 0) {
      char quoted[GGUF_QUOTE_BYTES];
      const uint64_t entry =
          (uint64_t)((const uint8_t *)name.bytes - directory->bytes) - sizeof(uint64_t);
      return fail_with(
          &directory->failure, WICK_E_FORMAT, entry, "%s '%s' %s", kind, gguf_quote(name, quoted),
          slot == UINT32_MAX ? "shares its hash with too many others" : "appears twice");
    }
    index->slots[slot] = (uint32_t)i + 1;
  }
  return WICK_OK;
}

// Returns the number of the entry with this name, plus 1, or 0 if no entry has the name.
static uint32_t find_number(const gguf_directory *directory, const gguf_index *index,
                            name_at name_of, gguf_string name) {
  if (index->slots == NULL) return 0;
  const uint32_t slot = find_slot(directory, index, name_of, name);
  return slot == UINT32_MAX ? 0 : index->slots[slot];
}

const gguf_value *gguf_find(const gguf_directory *directory, const char *key) {
  const gguf_string name = {key, strlen(key)};
  const uint32_t number = find_number(directory, &directory->value_index, value_name, name);
  return number == 0 ? NULL : &directory->values[number - 1];
}

const gguf_tensor *gguf_find_tensor_string(const gguf_directory *directory, gguf_string name) {
  const uint32_t number = find_number(directory, &directory->tensor_index, tensor_name, name);
  return number == 0 ? NULL : &directory->tensors[number - 1];
}

const gguf_tensor *gguf_find_tensor(const gguf_directory *directory, const char *name) {
  return gguf_find_tensor_string(directory, (gguf_string){name, strlen(name)});
}

// Frees unused memory from growth by doubling. If the host cannot shrink it, nothing changes.
static void *shrink(gguf_directory *directory, void *block, size_t used, size_t held) {
  if (held - used <= SLACK_BYTES_MAX) return block;
  void *moved = memory_resize(directory->memory, block, used);
  return moved != NULL ? moved : block;
}

static void settle(gguf_directory *directory) {
  directory->bytes =
      shrink(directory, directory->bytes, directory->size_bytes, directory->capacity_bytes);
  directory->values =
      shrink(directory, directory->values, directory->value_count * sizeof(gguf_value),
             directory->value_capacity * sizeof(gguf_value));
  directory->tensors =
      shrink(directory, directory->tensors, directory->tensor_count * sizeof(gguf_tensor),
             directory->tensor_capacity * sizeof(gguf_tensor));
  for (size_t i = 0; i < directory->value_count; i++) {
    gguf_value *value = &directory->values[i];
    const uint8_t *key = directory->bytes + value->offset_bytes + sizeof(uint64_t);
    const size_t array_head = value->type == GGUF_ARRAY ? sizeof(uint32_t) + sizeof(uint64_t) : 0;
    value->key.bytes = (const char *)key;
    value->data = key + value->key.size_bytes + sizeof(uint32_t) + array_head;
  }
  for (size_t i = 0; i < directory->tensor_count; i++) {
    gguf_tensor *tensor = &directory->tensors[i];
    tensor->name.bytes =
        (const char *)directory->bytes + tensor->entry_offset_bytes + sizeof(uint64_t);
  }
}

static wick_status read_alignment(gguf_directory *directory) {
  uint32_t alignment = ALIGNMENT_DEFAULT;
  const wick_status status =
      gguf_get_u32(directory, "general.alignment", &alignment, &directory->failure);
  if (status != WICK_OK && status != WICK_E_NODATA) return status;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > GGUF_ALIGNMENT_MAX) {
    return fail_with(&directory->failure, WICK_E_FORMAT,
                     gguf_find(directory, "general.alignment")->offset_bytes,
                     "key 'general.alignment' is %u; must be a power of two up to %d", alignment,
                     GGUF_ALIGNMENT_MAX);
  }
  directory->alignment = alignment;
  return WICK_OK;
}

// ---- Position of the tensors' bytes ----

static wick_status place_tensor(gguf_directory *directory, gguf_tensor *tensor) {
  char name[GGUF_QUOTE_BYTES];
  if (tensor->offset_bytes % directory->alignment != 0) {
    return fail_with(&directory->failure, WICK_E_FORMAT, tensor->entry_offset_bytes,
                     "the data of tensor '%s' begins at %llu, not at a multiple of alignment %u",
                     gguf_quote(tensor->name, name), (unsigned long long)tensor->offset_bytes,
                     directory->alignment);
  }
  uint64_t end;
  if (!checked_add_u64(directory->data_offset, tensor->offset_bytes, &tensor->offset_bytes) ||
      !checked_add_u64(tensor->offset_bytes, tensor->size_bytes, &end) || end > INT64_MAX) {
    return fail_with(&directory->failure, WICK_E_OVERFLOW, tensor->entry_offset_bytes,
                     "the data of tensor '%s' ends past 2^63", gguf_quote(tensor->name, name));
  }
  return WICK_OK;
}

// Restores the heap below `root`: a tensor begins at or after those below it (the largest is on
// top).
static void sift_down(const gguf_tensor *tensors, uint32_t *order, size_t root, size_t count) {
  const uint32_t moving = order[root];
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= count) break;
    if (child + 1 < count &&
        tensors[order[child + 1]].offset_bytes > tensors[order[child]].offset_bytes) {
      child++;
    }
    if (tensors[order[child]].offset_bytes <= tensors[moving].offset_bytes) break;
    order[root] = order[child];
    root = child;
  }
  order[root] = moving;
}

// Sorts with a heap sort: no recursion, and n log n for every input.
static wick_status sort_by_offset(gguf_directory *directory) {
  const size_t count = directory->tensor_count;
  const gguf_tensor *tensors = directory->tensors;
  size_t ascending = 1;
  while (ascending < count &&
         tensors[ascending - 1].offset_bytes <= tensors[ascending].offset_bytes) {
    ascending++;
  }
  if (ascending >= count) return WICK_OK;  // every known writer orders them by offset
  uint32_t *order = memory_alloc_array(directory->memory, count, sizeof *order);
  if (order == NULL) {
    return memory_fail(directory->memory, &directory->failure, "a model's directory");
  }
  directory->by_offset = order;
  for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (size_t i = count / 2; i-- > 0;) sift_down(tensors, order, i, count);
  for (size_t left = count; left-- > 1;) {
    const uint32_t last = order[left];
    order[left] = order[0];
    order[0] = last;
    sift_down(tensors, order, 0, left);
  }
  return WICK_OK;
}

size_t gguf_tensor_by_offset(const gguf_directory *directory, size_t rank) {
  return directory->by_offset == NULL ? rank : directory->by_offset[rank];
}

static wick_status check_overlaps(gguf_directory *directory) {
  for (size_t rank = 1; rank < directory->tensor_count; rank++) {
    const gguf_tensor *before = &directory->tensors[gguf_tensor_by_offset(directory, rank - 1)];
    const gguf_tensor *tensor = &directory->tensors[gguf_tensor_by_offset(directory, rank)];
    if (tensor->offset_bytes < before->offset_bytes + before->size_bytes) {
      char name[GGUF_QUOTE_BYTES], name_before[GGUF_QUOTE_BYTES];
      return fail_with(&directory->failure, WICK_E_FORMAT, tensor->entry_offset_bytes,
                       "the data of tensor '%s' overlaps that of '%s'",
                       gguf_quote(tensor->name, name), gguf_quote(before->name, name_before));
    }
  }
  return WICK_OK;
}

static wick_status lay_out(gguf_directory *directory) {
  directory->data_offset = (directory->size_bytes + (uint64_t)directory->alignment - 1) &
                           ~(directory->alignment - UINT64_C(1));
  for (size_t i = 0; i < directory->tensor_count; i++) {
    const wick_status status = place_tensor(directory, &directory->tensors[i]);
    if (status != WICK_OK) return status;
  }
  const wick_status status = sort_by_offset(directory);
  return status != WICK_OK ? status : check_overlaps(directory);
}

void gguf_complete(gguf_directory *directory) {
  settle(directory);
  wick_status status =
      build_index(directory, &directory->value_index, value_name, directory->value_count, "key");
  if (status == WICK_OK) status = read_alignment(directory);
  if (status == WICK_OK) {
    status = build_index(directory, &directory->tensor_index, tensor_name, directory->tensor_count,
                         "tensor");
  }
  if (status == WICK_OK) lay_out(directory);
}
