// Every way in which a GGUF file is rejected or truncated: the status, the byte offset and the
// message.
#include <stdio.h>

#include "gguf_rig.h"

// ---- rejected files ----

// A file that must be rejected: the function that writes it, and the expected error.
typedef struct refusal {
  const char *name;
  void (*make)(memory_file *file);
  wick_status status;
  int64_t offset_bytes;  // negative: from the end of the file
  const char *words;
} refusal;

static void make_html(memory_file *file) { file_write(file, "<!DOCTYPE html>", 15); }

static void make_version(memory_file *file, uint32_t version) {
  file_write(file, "GGUF", 4);
  file_u32(file, version);
}
static void make_version_0(memory_file *file) { make_version(file, 0); }
static void make_version_1(memory_file *file) { make_version(file, 1); }
static void make_version_4(memory_file *file) { make_version(file, 4); }
static void make_big_endian(memory_file *file) { make_version(file, 0x03000000); }

static void make_many_tensors(memory_file *file) { file_header(file, GGUF_TENSORS_MAX + 1, 0); }
static void make_many_keys(memory_file *file) { file_header(file, 0, GGUF_KEYS_MAX + 1); }

static void make_key_length(memory_file *file, uint64_t length) {
  file_header(file, 0, 1);
  file_u64(file, length);
}
static void make_empty_key(memory_file *file) { make_key_length(file, 0); }
static void make_long_key(memory_file *file) { make_key_length(file, GGUF_KEY_BYTES_MAX + 1); }

static void make_key(memory_file *file, const char *key, uint32_t type) {
  file_header(file, 0, 1);
  file_string(file, key);
  file_u32(file, type);
}
static void make_type_13(memory_file *file) { make_key(file, "x", 13); }
static void make_bool_2(memory_file *file) {
  make_key(file, "x", GGUF_BOOL);
  file_u8(file, 2);
}
static void make_string_length(memory_file *file, uint64_t length) {
  make_key(file, "x", GGUF_STRING);
  file_u64(file, length);
}
static void make_huge_string(memory_file *file) { make_string_length(file, UINT64_MAX - 7); }
static void make_big_string(memory_file *file) {
  make_string_length(file, GGUF_DIRECTORY_BYTES_MAX);
}

static void make_array(memory_file *file, uint32_t type, uint64_t count) {
  make_key(file, "x", GGUF_ARRAY);
  file_u32(file, type);
  file_u64(file, count);
}
static void make_array_of_13(memory_file *file) { make_array(file, 13, 1); }
static void make_array_of_arrays(memory_file *file) { make_array(file, GGUF_ARRAY, 1); }
static void make_array_wraps(memory_file *file) { make_array(file, GGUF_U64, UINT64_C(1) << 61); }
static void make_array_of_many_strings(memory_file *file) {
  make_array(file, GGUF_STRING, UINT64_C(1) << 32);
}
static void make_array_of_bools(memory_file *file) {
  make_array(file, GGUF_BOOL, 3);
  file_write(file, "\1\0\7", 3);
}
static void make_array_of_huge_string(memory_file *file) {
  make_array(file, GGUF_STRING, 2);
  file_string(file, "good");
  file_u64(file, UINT64_MAX);
}

static void make_duplicate_key(memory_file *file) {
  file_header(file, 0, 2);
  for (int i = 0; i < 2; i++) {
    file_string(file, "same");
    file_u32(file, GGUF_U8);
    file_u8(file, (uint8_t)i);
  }
}

static void make_alignment(memory_file *file, uint32_t alignment) {
  make_key(file, "general.alignment", GGUF_U32);
  file_u32(file, alignment);
}
static void make_alignment_0(memory_file *file) { make_alignment(file, 0); }
static void make_alignment_48(memory_file *file) { make_alignment(file, 48); }
static void make_alignment_2_21(memory_file *file) { make_alignment(file, 1u << 21); }
static void make_alignment_text(memory_file *file) {
  make_key(file, "general.alignment", GGUF_STRING);
  file_string(file, "32");
}

static void make_alignment_float(memory_file *file) {
  make_key(file, "general.alignment", GGUF_F32);
  file_u32(file, 0x42000000u);  // 32
}
static void make_alignment_negative(memory_file *file) {
  make_key(file, "general.alignment", GGUF_I32);
  file_u32(file, (uint32_t)-32);
}

static void make_nameless(memory_file *file) {
  file_header(file, 1, 0);
  file_string(file, "");
}
static void make_long_name(memory_file *file) {
  file_header(file, 1, 0);
  file_u64(file, 64);
}
static void make_5_dims(memory_file *file) {
  file_header(file, 1, 0);
  file_string(file, "t");
  file_u32(file, 5);
}

static void make_tensor(memory_file *file, uint64_t columns, uint64_t rows, uint32_t type,
                        uint64_t offset_bytes) {
  file_header(file, 1, 0);
  file_tensor(file, "t", columns, rows, type, offset_bytes);
}
static void make_zero_dim(memory_file *file) { make_tensor(file, 8, 0, 0, 0); }
static void make_negative_dim(memory_file *file) { make_tensor(file, 0 - UINT64_C(8), 1, 0, 0); }
static void make_type_4(memory_file *file) { make_tensor(file, 32, 1, 4, 0); }
static void make_type_43(memory_file *file) { make_tensor(file, 32, 1, 43, 0); }
static void make_part_of_a_block(memory_file *file) { make_tensor(file, 48, 1, GGML_TYPE_Q4_0, 0); }
static void make_wrapping_bytes(memory_file *file) {
  make_tensor(file, UINT64_C(1) << 32, UINT64_C(1) << 32, 0, 0);
}
static void make_many_rows(memory_file *file) { make_tensor(file, 1, UINT64_C(1) << 32, 0, 0); }
static void make_long_row(memory_file *file) { make_tensor(file, UINT64_C(1) << 32, 1, 0, 0); }
static void make_misaligned(memory_file *file) { make_tensor(file, 8, 1, 0, 8); }
static void make_wrapping_offset(memory_file *file) {
  make_tensor(file, 8, 1, 0, 0 - UINT64_C(32));
}

static void make_two_tensors(memory_file *file, const char *first, const char *second,
                             uint64_t offset_bytes) {
  file_header(file, 2, 0);
  file_tensor(file, first, 8, 2, 0, 64);
  file_tensor(file, second, 8, 2, 0, offset_bytes);
}
static void make_duplicate_tensor(memory_file *file) { make_two_tensors(file, "a", "a", 0); }
static void make_overlap(memory_file *file) { make_two_tensors(file, "a", "b", 96); }
static void make_overlap_before(memory_file *file) { make_two_tensors(file, "a", "b", 32); }

static const refusal REFUSALS[] = {
    {"html", make_html, WICK_E_FORMAT, 0, "begins with '<!DO'"},
    {"version 0", make_version_0, WICK_E_FORMAT, 4, "version 0"},
    {"version 1", make_version_1, WICK_E_UNSUPPORTED, 4, "version 1"},
    {"version 4", make_version_4, WICK_E_UNSUPPORTED, 4, "version 4"},
    {"big-endian", make_big_endian, WICK_E_UNSUPPORTED, 4, "big-endian"},
    {"many tensors", make_many_tensors, WICK_E_FORMAT, 8, "65537 tensors"},
    {"many keys", make_many_keys, WICK_E_FORMAT, 16, "65537 metadata keys"},
    {"empty key", make_empty_key, WICK_E_FORMAT, 24, "key 1 of 1 is 0 bytes long"},
    {"long key", make_long_key, WICK_E_FORMAT, 24, "key 1 of 1 is 65536 bytes long"},
    {"type 13", make_type_13, WICK_E_FORMAT, 33, "key 'x' has value type 13"},
    {"bool 2", make_bool_2, WICK_E_FORMAT, 37, "key 'x' has bool value 2"},
    {"huge string", make_huge_string, WICK_E_FORMAT, -1, "512 MiB in the value of key 'x'"},
    {"big string", make_big_string, WICK_E_FORMAT, -1, "512 MiB in the value of key 'x'"},
    {"array of 13", make_array_of_13, WICK_E_FORMAT, 37, "array of type 13"},
    {"array of arrays", make_array_of_arrays, WICK_E_UNSUPPORTED, 37, "array of arrays"},
    {"array wraps", make_array_wraps, WICK_E_FORMAT, 41, "2305843009213693952 items"},
    {"many strings", make_array_of_many_strings, WICK_E_FORMAT, 41, "4294967296 items"},
    {"array of bools", make_array_of_bools, WICK_E_FORMAT, 51, "bool value 7"},
    {"array of huge string", make_array_of_huge_string, WICK_E_FORMAT, 61, "512 MiB"},
    {"duplicate key", make_duplicate_key, WICK_E_FORMAT, 41, "key 'same' appears twice"},
    {"alignment 0", make_alignment_0, WICK_E_FORMAT, 24, "'general.alignment' is 0"},
    {"alignment 48", make_alignment_48, WICK_E_FORMAT, 24, "'general.alignment' is 48"},
    {"alignment 2^21", make_alignment_2_21, WICK_E_FORMAT, 24, "'general.alignment' is 2097152"},
    {"alignment text", make_alignment_text, WICK_E_FORMAT, 24, "of type string, not an integer"},
    {"alignment float", make_alignment_float, WICK_E_FORMAT, 24, "of type f32, not an integer"},
    {"alignment -32", make_alignment_negative, WICK_E_FORMAT, 24, "'general.alignment' is -32"},
    {"nameless", make_nameless, WICK_E_FORMAT, 24, "tensor 1 of 1 is 0 bytes long"},
    {"long name", make_long_name, WICK_E_FORMAT, 24, "tensor 1 of 1 is 64 bytes long"},
    {"5 dimensions", make_5_dims, WICK_E_SHAPE, 33, "tensor 't' has 5 dimensions"},
    {"zero dimension", make_zero_dim, WICK_E_SHAPE, 45, "dimension 1 of tensor 't' is 0"},
    {"negative dimension", make_negative_dim, WICK_E_SHAPE, 37, "dimension 0 of tensor 't' is -8"},
    {"type 4", make_type_4, WICK_E_UNSUPPORTED, 53, "tensor 't' has type 4"},
    {"type 43", make_type_43, WICK_E_UNSUPPORTED, 53, "tensor 't' has type 43"},
    {"part of a block", make_part_of_a_block, WICK_E_SHAPE, 24, "rows of 48 values; Q4_0 needs"},
    {"wrapping bytes", make_wrapping_bytes, WICK_E_OVERFLOW, 24, "tensor 't' does not fit"},
    {"many rows", make_many_rows, WICK_E_SHAPE, 24, "4294967296 rows of 1 values"},
    {"long row", make_long_row, WICK_E_SHAPE, 24, "1 rows of 4294967296 values"},
    {"misaligned", make_misaligned, WICK_E_FORMAT, 24, "tensor 't' begins at 8"},
    {"wrapping offset", make_wrapping_offset, WICK_E_OVERFLOW, 24, "tensor 't' ends past 2^63"},
    {"duplicate tensor", make_duplicate_tensor, WICK_E_FORMAT, 65, "tensor 'a' appears twice"},
    {"overlap", make_overlap, WICK_E_FORMAT, 65, "'b' overlaps that of 'a'"},
    {"overlap before", make_overlap_before, WICK_E_FORMAT, 24, "'a' overlaps that of 'b'"},
};

static void check_refusal(const refusal *wanted, const memory_file *file, size_t chunk) {
  gguf_directory *directory = open_directory();
  size_t used;
  const wick_status status = feed_all(directory, file, chunk, &used);
  const int64_t offset =
      wanted->offset_bytes < 0 ? (int64_t)file->size_bytes : wanted->offset_bytes;
  bool is_right = CHECK_EQ_STR(wick_status_name(status), wick_status_name(wanted->status));
  is_right = CHECK_EQ_INT(error.status, status) && is_right;
  is_right = CHECK_EQ_INT((int64_t)error.offset_bytes, offset) && is_right;
  is_right = CHECK(strstr(error.message, wanted->words) != NULL) && is_right;
  if (!is_right) printf("#   %s in chunks of %zu: %s\n", wanted->name, chunk, error.message);
  // later calls return the same error
  wick_error again;
  CHECK_EQ_INT(gguf_directory_feed(directory, "x", 1, &used, &again), status);
  CHECK_EQ_STR(again.message, error.message);
  CHECK_EQ_INT(gguf_directory_finish(directory, NULL), status);
  CHECK(!gguf_directory_is_complete(directory));
  close_directory(directory);
}

TEST(each_error_contains_the_cause_and_the_offset) {
  for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++) {
    memory_file file = {0};
    REFUSALS[i].make(&file);
    check_refusal(&REFUSALS[i], &file, file.size_bytes);
    check_refusal(&REFUSALS[i], &file, 1);
    file_free(&file);
  }
}

TEST(names_in_error_messages_are_printable) {
  memory_file file = {0};
  make_key(&file, "bad\xff\nkey", 99);
  gguf_directory *directory = open_directory();
  size_t used;
  CHECK_EQ_INT(feed_all(directory, &file, file.size_bytes, &used), WICK_E_FORMAT);
  CHECK(strstr(error.message, "'bad\?\?key'") != NULL);
  close_directory(directory);
  file_free(&file);
}

TEST(a_file_cut_at_any_byte_is_truncated) {
  memory_file file = sample_model();
  gguf_directory *whole = parse(&file);
  const size_t directory_bytes = (size_t)gguf_directory_bytes(whole);
  close_directory(whole);
  for (size_t size = 0; size < directory_bytes; size++) {
    const memory_file cut = {file.bytes, size, size};
    gguf_directory *directory = open_directory();
    size_t used;
    CHECK_EQ_INT(feed_all(directory, &cut, 64, &used), WICK_E_TRUNCATED);
    CHECK_EQ_UINT(error.offset_bytes, size);
    CHECK(strncmp(error.message, size == 0 ? "the file is empty" : "the file ends in ", 17) == 0);
    CHECK(gguf_directory_needs(directory) > size);
    close_directory(directory);
  }
  file_free(&file);
}

static void check_truncation_words(size_t keep, const char *words) {
  memory_file file = {0};
  file_header(&file, 1, 2);
  file_string(&file, "first");  // 24: 8 + 5, 37: type, 41: value
  file_u32(&file, GGUF_U32);
  file_u32(&file, 1);
  file_string(&file, "list");  // 45: 8 + 4, 57: type
  file_u32(&file, GGUF_ARRAY);
  file_u32(&file, GGUF_STRING);         // 61
  file_u64(&file, 2);                   // 65
  file_string(&file, "one");            // 73
  file_string(&file, "two");            // 84
  file_tensor(&file, "t", 8, 1, 0, 0);  // 95
  file.size_bytes = keep;
  gguf_directory *directory = open_directory();
  size_t used;
  CHECK_EQ_INT(feed_all(directory, &file, 5, &used), WICK_E_TRUNCATED);
  CHECK_EQ_STR(error.message, words);
  close_directory(directory);
  file_free(&file);
}

// For each part, the byte at which it ends, and the message if the file ends before that byte.
TEST(truncation_errors_contain_the_part_being_read) {
  static const struct {
    size_t end;
    const char *words;
  } parts[] = {
      {1, "the file is empty"},
      {24, "the file ends in the header"},
      {41, "the file ends in key 1 of 2"},
      {45, "the file ends in the value of key 'first' (1 of 2)"},
      {61, "the file ends in key 2 of 2"},
      {95, "the file ends in the value of key 'list' (2 of 2)"},
      {108, "the file ends in tensor entry 1 of 1"},
      {128, "the file ends in the entry of tensor 't' (1 of 1)"},
  };
  size_t keep = 0;
  for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
    for (; keep < parts[part].end; keep++) check_truncation_words(keep, parts[part].words);
  }
}

// ---- values at the limits ----

TEST(values_at_the_limits_are_accepted) {
  static char long_key[GGUF_KEY_BYTES_MAX + 1], long_name[GGUF_TENSOR_NAME_BYTES_MAX + 1];
  memset(long_key, 'k', GGUF_KEY_BYTES_MAX);
  memset(long_name, 'n', GGUF_TENSOR_NAME_BYTES_MAX);
  memory_file file = {0};
  file_header(&file, 3, 2);
  file_string(&file, long_key);
  file_u32(&file, GGUF_U32);
  file_u32(&file, 7);
  file_string(&file, "general.alignment");
  file_u32(&file, GGUF_U32);
  file_u32(&file, GGUF_ALIGNMENT_MAX);
  file_string(&file, long_name);
  file_u32(&file, GGUF_DIMS_MAX);
  for (uint64_t i = 0; i < GGUF_DIMS_MAX; i++) file_u64(&file, 2 + i);
  file_u32(&file, GGML_TYPE_F32);
  file_u64(&file, 0);
  file_tensor(&file, "rows", 1, UINT32_MAX, GGML_TYPE_F32, GGUF_ALIGNMENT_MAX);
  file_tensor(&file, "columns", UINT32_MAX, 1, GGML_TYPE_F32, UINT64_C(1) << 40);
  gguf_directory *directory = parse(&file);
  REQUIRE(gguf_directory_is_complete(directory));
  uint32_t value = 0;
  CHECK_EQ_INT(gguf_get_u32(directory, long_key, &value, &error), WICK_OK);
  CHECK_EQ_UINT(value, 7);
  const gguf_tensor *tensor = gguf_tensor_at(directory, 0);
  CHECK_EQ_UINT(tensor->name.size_bytes, GGUF_TENSOR_NAME_BYTES_MAX);
  CHECK_EQ_UINT(tensor->dim_count, GGUF_DIMS_MAX);
  for (uint64_t i = 0; i < GGUF_DIMS_MAX; i++) CHECK_EQ_UINT(tensor->dims[i], 2 + i);
  CHECK_EQ_UINT(tensor->size_bytes, 4 * 2 * 3 * 4 * 5);
  CHECK_EQ_UINT(gguf_tensor_at(directory, 1)->size_bytes, 4 * (uint64_t)UINT32_MAX);
  CHECK_EQ_UINT(gguf_tensor_at(directory, 2)->size_bytes, 4 * (uint64_t)UINT32_MAX);
  close_directory(directory);
  file_free(&file);
}

TEST(only_powers_of_two_are_valid_alignments) {
  for (int bit = 0; bit < 32; bit++) {
    for (int more = -1; more < 2; more++) {
      memory_file file = {0};
      const uint32_t alignment = (UINT32_C(1) << bit) + (uint32_t)more;
      make_alignment(&file, alignment);
      gguf_directory *directory = open_directory();
      size_t used;
      const bool is_power = alignment != 0 && (more == 0 || alignment < 3);
      const bool is_read = is_power && alignment <= GGUF_ALIGNMENT_MAX;
      const wick_status status = feed_all(directory, &file, file.size_bytes, &used);
      if (!CHECK_EQ_INT(status, is_read ? WICK_OK : WICK_E_FORMAT)) printf("# %u\n", alignment);
      if (is_read) CHECK_EQ_UINT(gguf_alignment(directory), alignment);
      close_directory(directory);
      file_free(&file);
    }
  }
}

// If the tensors are sorted by offset, the directory needs no list for their order and allocates
// one block less.
TEST(sorted_tensors_need_no_list) {
  uint64_t blocks[2];
  for (int is_turned = 0; is_turned < 2; is_turned++) {
    memory_file file = {0};
    file_header(&file, 2, 0);
    file_tensor(&file, "a", 8, 1, GGML_TYPE_F32, is_turned ? 32 : 0);
    file_tensor(&file, "b", 8, 1, GGML_TYPE_F32, is_turned ? 0 : 32);
    gguf_directory *directory = parse(&file);
    blocks[is_turned] = memory.blocks_now;
    close_directory(directory);
    file_free(&file);
  }
  CHECK_EQ_UINT(blocks[1], blocks[0] + 1);
}
