// Block facts, the GGUF directory read in chunks of every size, typed access, the cost of reading,
// and the writer. gguf_refusal_test.c tests the rejected files.
#include "format/gguf.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "gguf_rig.h"
#include "random.h"

// ---- block facts ----

TEST(types_match_ggml) {
  for (uint32_t type = 0; type < GGML_TYPE_COUNT + 3; type++) {
    const ggml_type_facts *facts = type_facts(type);
    const bool is_gone = type == 4 || type == 5 || (type >= 31 && type <= 33) ||
                         (type >= 36 && type <= 38) || type >= GGML_TYPE_COUNT;
    CHECK_EQ_INT(facts == NULL, is_gone);
    if (facts == NULL) continue;
    CHECK(facts->block_bytes <= GGML_TYPE_BLOCK_BYTES_MAX);
    uint64_t bytes = 0;
    CHECK(type_row_bytes(type, UINT64_C(7) * facts->block_values, &bytes));
    CHECK_EQ_UINT(bytes, UINT64_C(7) * facts->block_bytes);
  }
  CHECK(type_facts(UINT32_MAX) == NULL);
}

TEST(rows_are_whole_blocks_and_fit_64_bits) {
  uint64_t bytes = 0;
  CHECK(!type_row_bytes(GGML_TYPE_Q4_0, 33, &bytes));
  CHECK(!type_row_bytes(4, 32, &bytes));
  CHECK(!type_row_bytes(GGML_TYPE_F32, UINT64_C(1) << 62, &bytes));
  CHECK(type_row_bytes(GGML_TYPE_F32, UINT64_C(1) << 61, &bytes));
  CHECK_EQ_UINT(bytes, UINT64_C(1) << 63);
}

// The reference's quantised rows: two rows of 256 values for each type.
TEST(block_bytes_match_the_reference_rows) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  size_t checked = 0;
  for (uint32_t type = 1; type < GGML_TYPE_COUNT; type++) {
    const ggml_type_facts *facts = type_facts(type);
    if (facts == NULL) continue;
    char name[64];
    snprintf(name, sizeof name, "vectors/reference/dequant/%s.quant.bin", facts->name);
    FILE *there = fopen(check_shared(name), "rb");
    if (there == NULL) continue;  // integers, and types that are only used for activations
    fclose(there);
    size_t size_bytes;
    free(check_read_file(check_shared(name), &size_bytes));
    uint64_t row_bytes = 0;
    CHECK(type_row_bytes(type, 256, &row_bytes));
    CHECK_EQ_UINT(size_bytes, 2 * row_bytes);
    checked++;
  }
  CHECK_EQ_UINT(checked, 27);
}

// ---- reading written files ----

static void add_every_type(gguf_writer *writer) {
  gguf_writer_add_number(writer, "u8", GGUF_U8, &(uint8_t){200});
  gguf_writer_add_number(writer, "i8", GGUF_I8, &(int8_t){-100});
  gguf_writer_add_number(writer, "u16", GGUF_U16, &(uint16_t){60000});
  gguf_writer_add_number(writer, "i16", GGUF_I16, &(int16_t){-30000});
  gguf_writer_add_u32(writer, "u32", 4000000000u);
  gguf_writer_add_number(writer, "i32", GGUF_I32, &(int32_t){-2000000000});
  gguf_writer_add_f32(writer, "f32", 1.5f);
  gguf_writer_add_bool(writer, "bool", true);
  gguf_writer_add_string(writer, "string", "caf\xc3\xa9", 5);
  gguf_writer_add_number(writer, "u64", GGUF_U64, &(uint64_t){UINT64_MAX});
  gguf_writer_add_number(writer, "i64", GGUF_I64, &(int64_t){-5});
  gguf_writer_add_number(writer, "f64", GGUF_F64, &(double){-2.25});
  gguf_writer_add_array(writer, "i32s", GGUF_I32, (const int32_t[]){1, -2, 3}, 3);
  gguf_writer_add_array(writer, "bools", GGUF_BOOL, (const uint8_t[]){0, 1}, 2);
  gguf_writer_add_array(writer, "u64s", GGUF_U64, (const uint64_t[]){7, UINT64_MAX}, 2);
  gguf_writer_add_array(writer, "f64s", GGUF_F64, (const double[]){-1.75, NAN, 0x1p63, -1e300}, 4);
  gguf_writer_add_array(writer, "none", GGUF_U8, NULL, 0);
  gguf_writer_add_strings(writer, "strings", 3);
  gguf_writer_add_item(writer, "a", 1);
  gguf_writer_add_item(writer, "", 0);
  gguf_writer_add_item(writer, "bcd", 3);
  gguf_writer_add_strings(writer, "no strings", 0);
  gguf_writer_add_tensor(writer, "q", GGML_TYPE_Q4_0, (const uint64_t[]){64, 3}, 2);
  gguf_writer_add_tensor(writer, "norm", GGML_TYPE_F32, (const uint64_t[]){3}, 1);
}

static memory_file every_type_file(uint32_t alignment) {
  memory_gate writer_memory;
  memory_init(&writer_memory, 0, platform_alloc, platform_free);
  memory_file file = {0};
  gguf_writer *writer = NULL;
  CHECK_EQ_INT(gguf_writer_create(&writer_memory, file_write, &file, alignment, &writer, &error),
               WICK_OK);
  if (writer == NULL) return file;
  add_every_type(writer);
  const uint8_t data[2 * 3 * 18 + 3 * 4] = {1, 2, 3};
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_write_data(writer, data, 50, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_write_data(writer, data + 50, sizeof data - 50, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_finish(writer, &error), WICK_OK);
  CHECK_EQ_UINT(file.size_bytes, gguf_writer_file_bytes(writer));
  gguf_writer_destroy(writer);
  CHECK_EQ_UINT(writer_memory.blocks_now, 0);
  return file;
}

static void check_every_type(const gguf_directory *directory) {
  static const struct {
    const char *key;
    double value;
  } NUMBERS[] = {{"u8", 200},   {"i8", -100}, {"u16", 60000},  {"i16", -30000}, {"u32", 4e9},
                 {"i32", -2e9}, {"f32", 1.5}, {"u64", 0x1p64}, {"i64", -5},     {"f64", -2.25}};
  for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
    double value = 0;
    CHECK_EQ_INT(gguf_get_f64(directory, NUMBERS[i].key, &value, &error), WICK_OK);
    CHECK_NEAR(value, NUMBERS[i].value, 0);
    CHECK_EQ_UINT(gguf_find(directory, NUMBERS[i].key)->count, 1);
  }
  gguf_string text = {0};
  CHECK_EQ_INT(gguf_get_string(directory, "string", &text, &error), WICK_OK);
  CHECK(gguf_string_equals(text, "caf\xc3\xa9"));
  CHECK(!gguf_string_equals(text, "caf"));
  bool truth = false;
  CHECK_EQ_INT(gguf_get_bool(directory, "bool", &truth, &error), WICK_OK);
  CHECK(truth);
}

static void check_arrays(const gguf_directory *directory) {
  const gguf_value *array = NULL;
  CHECK_EQ_INT(gguf_get_array(directory, "i32s", GGUF_I32, &array, &error), WICK_OK);
  REQUIRE(array != NULL && array->count == 3);
  CHECK_EQ_INT(gguf_array_i64(array, 1), -2);
  CHECK_NEAR(gguf_array_f64(array, 2), 3, 0);
  CHECK_EQ_INT(gguf_get_array(directory, "bools", GGUF_BOOL, &array, &error), WICK_OK);
  CHECK_EQ_INT(gguf_array_i64(array, 0), 0);
  CHECK_EQ_INT(gguf_array_i64(array, 1), 1);
  CHECK_EQ_INT(gguf_get_array(directory, "u64s", GGUF_U64, &array, &error), WICK_OK);
  CHECK_EQ_INT(gguf_array_i64(array, 0), 7);
  CHECK_EQ_INT(gguf_array_i64(array, 1), INT64_MAX);
  CHECK_EQ_INT(gguf_get_array(directory, "f64s", GGUF_F64, &array, &error), WICK_OK);
  CHECK_EQ_INT(gguf_array_i64(array, 0), -1);
  CHECK_EQ_INT(gguf_array_i64(array, 1), 0);
  CHECK_EQ_INT(gguf_array_i64(array, 2), INT64_MAX);
  CHECK_EQ_INT(gguf_array_i64(array, 3), INT64_MIN);
  CHECK_EQ_INT(gguf_get_array(directory, "none", GGUF_U8, &array, &error), WICK_OK);
  CHECK_EQ_UINT(array->count, 0);
  CHECK_EQ_INT(gguf_get_array(directory, "no strings", GGUF_STRING, &array, &error), WICK_OK);
  CHECK_EQ_UINT(array->count, 0);
  CHECK_EQ_INT(gguf_get_array(directory, "strings", GGUF_STRING, &array, &error), WICK_OK);
  const uint8_t *cursor = array->data;
  CHECK(gguf_string_equals(gguf_next_string(&cursor), "a"));
  CHECK(gguf_string_equals(gguf_next_string(&cursor), ""));
  CHECK(gguf_string_equals(gguf_next_string(&cursor), "bcd"));
}

TEST(the_directory_does_not_depend_on_the_chunk_size) {
  static const size_t CHUNKS[] = {1, 2, 3, 7, 8, 64, 1000, 100000};
  memory_file file = every_type_file(32);
  for (size_t i = 0; i < sizeof CHUNKS / sizeof *CHUNKS; i++) {
    gguf_directory *directory = open_directory();
    size_t used;
    CHECK_EQ_INT(feed_all(directory, &file, CHUNKS[i], &used), WICK_OK);
    REQUIRE(gguf_directory_is_complete(directory));
    CHECK_EQ_UINT(used, gguf_directory_bytes(directory));
    CHECK_EQ_UINT(gguf_directory_needs(directory), gguf_directory_bytes(directory));
    CHECK_EQ_UINT(gguf_version(directory), 3);
    CHECK_EQ_UINT(gguf_alignment(directory), 32);
    CHECK_EQ_UINT(gguf_value_count(directory), 19);
    check_every_type(directory);
    check_arrays(directory);
    const gguf_tensor *norm = gguf_find_tensor(directory, "norm");
    REQUIRE(norm != NULL);
    CHECK(gguf_find_tensor(directory, "nor") == NULL);
    CHECK_EQ_UINT(norm->offset_bytes, gguf_data_offset(directory) + 128);
    CHECK_EQ_UINT(norm->size_bytes, 12);
    CHECK_EQ_UINT(norm->dims[0], 3);
    CHECK_EQ_UINT(norm->dims[3], 1);
    CHECK_EQ_UINT(gguf_tensor_by_offset(directory, 1), 1);
    CHECK_EQ_UINT(file.size_bytes, norm->offset_bytes + 32);
    close_directory(directory);
  }
  file_free(&file);
}

TEST(entries_contain_their_file_offset) {
  memory_file file = every_type_file(32);
  gguf_directory *directory = parse(&file);
  for (size_t i = 0; i < gguf_value_count(directory); i++) {
    const gguf_value *value = gguf_value_at(directory, i);
    uint64_t length;
    memcpy(&length, file.bytes + value->offset_bytes, sizeof length);
    CHECK_EQ_UINT(length, value->key.size_bytes);
    CHECK_EQ_MEM(file.bytes + value->offset_bytes + 8, value->key.bytes, (size_t)length);
  }
  const gguf_tensor *tensor = gguf_tensor_at(directory, 1);
  CHECK_EQ_MEM(file.bytes + tensor->entry_offset_bytes + 8, "norm", 4);
  close_directory(directory);
  file_free(&file);
}

TEST(the_declared_alignment_is_used) {
  static const uint32_t ALIGNMENTS[] = {8, 64, 4096};
  for (size_t i = 0; i < 3; i++) {
    memory_file file = every_type_file(ALIGNMENTS[i]);
    gguf_directory *directory = parse(&file);
    CHECK_EQ_UINT(gguf_alignment(directory), ALIGNMENTS[i]);
    CHECK_EQ_UINT(gguf_data_offset(directory) % ALIGNMENTS[i], 0);
    CHECK_EQ_UINT(gguf_tensor_at(directory, 1)->offset_bytes % ALIGNMENTS[i], 0);
    close_directory(directory);
    file_free(&file);
  }
}

TEST(version_2_is_read_like_version_3) {
  memory_file file = every_type_file(32);
  file.bytes[4] = 2;
  gguf_directory *directory = parse(&file);
  CHECK_EQ_UINT(gguf_version(directory), 2);
  check_every_type(directory);
  close_directory(directory);
  file_free(&file);
}

// ---- typed access ----

static void check_refused_access(wick_status status, const char *key, const char *words,
                                 const gguf_directory *directory) {
  CHECK_EQ_INT(status, WICK_E_FORMAT);
  CHECK_EQ_INT(error.status, WICK_E_FORMAT);
  CHECK_EQ_UINT(error.offset_bytes, gguf_find(directory, key)->offset_bytes);
  if (!CHECK(strstr(error.message, words) != NULL)) printf("#   %s\n", error.message);
}

TEST(numbers_convert_when_they_fit) {
  memory_file file = every_type_file(32);
  gguf_directory *directory = parse(&file);
  uint32_t number = 9;
  CHECK_EQ_INT(gguf_get_u32(directory, "u8", &number, &error), WICK_OK);
  CHECK_EQ_UINT(number, 200);
  CHECK_EQ_INT(gguf_get_u32(directory, "u32", &number, &error), WICK_OK);
  CHECK_EQ_UINT(number, 4000000000u);
  CHECK_EQ_INT(gguf_get_u32(directory, "nothing", &number, NULL), WICK_E_NODATA);
  CHECK_EQ_UINT(number, 4000000000u);
  check_refused_access(gguf_get_u32(directory, "i8", &number, &error), "i8", "'i8' is -100",
                       directory);
  check_refused_access(gguf_get_u32(directory, "u64", &number, &error), "u64",
                       "18446744073709551615", directory);
  check_refused_access(gguf_get_u32(directory, "f32", &number, &error), "f32",
                       "of type f32, not an integer", directory);
  check_refused_access(gguf_get_u32(directory, "bool", &number, &error), "bool", "of type bool",
                       directory);
  CHECK_EQ_UINT(number, 4000000000u);
  close_directory(directory);
  file_free(&file);
}

TEST(wrong_types_are_reported) {
  memory_file file = every_type_file(32);
  gguf_directory *directory = parse(&file);
  double number = 0;
  bool truth = false;
  gguf_string text;
  const gguf_value *array;
  check_refused_access(gguf_get_f64(directory, "string", &number, &error), "string",
                       "of type string, not a number", directory);
  check_refused_access(gguf_get_bool(directory, "u8", &truth, &error), "u8", "not bool", directory);
  check_refused_access(gguf_get_string(directory, "strings", &text, &error), "strings",
                       "of type array of string, not string", directory);
  check_refused_access(gguf_get_array(directory, "i32s", GGUF_STRING, &array, &error), "i32s",
                       "array of i32, not array of string", directory);
  CHECK_EQ_INT(gguf_get_array(directory, "absent", GGUF_STRING, &array, &error), WICK_E_NODATA);
  CHECK_EQ_INT(gguf_get_string(directory, "absent", &text, &error), WICK_E_NODATA);
  CHECK_EQ_INT(gguf_get_bool(directory, "absent", &truth, &error), WICK_E_NODATA);
  CHECK_EQ_INT(gguf_get_f64(directory, "absent", &number, &error), WICK_E_NODATA);
  close_directory(directory);
  file_free(&file);
}

TEST(quotes_are_short_and_printable) {
  char out[GGUF_QUOTE_BYTES];
  CHECK_EQ_STR(gguf_quote((gguf_string){"", 0}, out), "");
  CHECK_EQ_STR(gguf_quote((gguf_string){"a\n\x7f\xc3\xa9\xff\xc2\x85z", 9}, out), "a??\xc3\xa9??z");
  CHECK_EQ_STR(gguf_quote((gguf_string){"cut\xe2\x82", 5}, out), "cut??");
  char longer[200];
  memset(longer, 'x', sizeof longer);
  memcpy(longer + 79, "\xc3\xa9", 2);
  CHECK_EQ_UINT(strlen(gguf_quote((gguf_string){longer, sizeof longer}, out)), 79 + 3);
  CHECK_EQ_STR(out + 79, "...");
}

// ---- layouts ----

// A scalar (0 dimensions) has one value; the data may have gaps and be in a different order.
TEST(unusual_layouts_are_accepted) {
  memory_file file = {0};
  file_header(&file, 3, 0);
  file_string(&file, "scalar");
  file_u32(&file, 0);
  file_u32(&file, GGML_TYPE_F32);
  file_u64(&file, 4096);
  file_tensor(&file, "b", 8, 2, GGML_TYPE_F32, 64);
  file_tensor(&file, "c", 16, 1, GGML_TYPE_F32, 0);
  gguf_directory *directory = parse(&file);
  REQUIRE(gguf_directory_is_complete(directory));
  const gguf_tensor *scalar = gguf_tensor_at(directory, 0);
  CHECK_EQ_UINT(scalar->dim_count, 1);
  CHECK_EQ_UINT(scalar->dims[0], 1);
  CHECK_EQ_UINT(scalar->size_bytes, 4);
  CHECK_EQ_UINT(gguf_tensor_by_offset(directory, 0), 2);
  CHECK_EQ_UINT(gguf_tensor_by_offset(directory, 1), 1);
  CHECK_EQ_UINT(gguf_tensor_by_offset(directory, 2), 0);
  close_directory(directory);
  file_free(&file);
}

TEST(many_tensors_in_any_order_are_sorted) {
  enum { COUNT = 1000 };
  uint32_t places[COUNT];
  uint64_t state = 7;
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint32_t other = (uint32_t)random_below(&state, i + 1);
    places[i] = places[other];
    places[other] = i;
  }
  memory_file file = {0};
  file_header(&file, COUNT, 0);
  for (uint32_t i = 0; i < COUNT; i++) {
    char name[16];
    snprintf(name, sizeof name, "t%u", i);
    file_tensor(&file, name, 8, 1, GGML_TYPE_F32, places[i] * UINT64_C(32));
  }
  gguf_directory *directory = parse(&file);
  REQUIRE(gguf_directory_is_complete(directory));
  for (uint32_t rank = 0; rank < COUNT; rank++) {
    CHECK_EQ_UINT(places[gguf_tensor_by_offset(directory, rank)], rank);
  }
  close_directory(directory);
  file_free(&file);
}

// ---- cost ----

static memory_file vocabulary_file(uint32_t tokens) {
  memory_file file = {0};
  file_header(&file, 0, 1);
  file_string(&file, "tokenizer.ggml.tokens");
  file_u32(&file, GGUF_ARRAY);
  file_u32(&file, GGUF_STRING);
  file_u64(&file, tokens);
  for (uint32_t i = 0; i < tokens; i++) {
    char token[16];
    snprintf(token, sizeof token, "token%u", i);
    file_string(&file, token);
  }
  return file;
}

// Reading byte by byte grows the memory by doubling, and at the end only the directory is left.
TEST(reading_byte_by_byte_takes_no_more_memory) {
  memory_file file = vocabulary_file(20000);
  gguf_directory *directory = open_directory();
  size_t used;
  CHECK_EQ_INT(feed_all(directory, &file, 1, &used), WICK_OK);
  CHECK_EQ_UINT(used, file.size_bytes);
  CHECK(memory.calls < 25);
  CHECK(memory.bytes_now < file.size_bytes + 8192);
  CHECK(memory.bytes_peak < 4 * file.size_bytes);
  close_directory(directory);
  file_free(&file);
}

TEST(declared_counts_do_not_allocate_memory) {
  memory_file file = {0};
  file_header(&file, GGUF_TENSORS_MAX, GGUF_KEYS_MAX);
  file_string(&file, "x");
  file_u32(&file, GGUF_ARRAY);
  file_u32(&file, GGUF_U8);
  file_u64(&file, 400000000);
  gguf_directory *directory = open_directory();
  size_t used;
  CHECK_EQ_INT(feed_all(directory, &file, 16, &used), WICK_E_TRUNCATED);
  CHECK(memory.bytes_peak < 16384);
  close_directory(directory);
  file_free(&file);
}

// Keys that all hash to the same slot are rejected instead of taking quadratic time.
TEST(colliding_keys_are_rejected) {
  enum { COUNT = 1100, SLOTS = 4096 };
  memory_file file = {0};
  file_header(&file, 0, COUNT);
  uint32_t made = 0;
  for (uint32_t i = 0; made < COUNT; i++) {
    char key[16];
    const int length = snprintf(key, sizeof key, "%x", i);
    if ((hash_bytes(key, (size_t)length, 0) & (SLOTS - 1)) != 77) continue;
    file_string(&file, key);
    file_u32(&file, GGUF_U8);
    file_u8(&file, 0);
    made++;
  }
  gguf_directory *directory = open_directory();
  size_t used;
  CHECK_EQ_INT(feed_all(directory, &file, 4096, &used), WICK_E_FORMAT);
  CHECK(strstr(error.message, "shares its hash") != NULL);
  close_directory(directory);
  file_free(&file);
}

// ---- failures ----

TEST(failing_allocations_leak_nothing) {
  memory_file file = sample_model();
  uint64_t failed = 0;
  for (uint64_t k = 1;; k++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    gguf_directory *directory = NULL;
    size_t used;
    wick_status status = gguf_directory_create(&memory, &directory, &error);
    if (status == WICK_OK) status = feed_all(directory, &file, 100, &used);
    gguf_directory_destroy(directory);
    CHECK_EQ_UINT(memory.blocks_now, 0);
    CHECK_EQ_INT(status, memory.calls < k ? WICK_OK : WICK_E_NOMEM);
    if (status == WICK_OK) break;
    failed++;
  }
  CHECK(failed >= 6);
  file_free(&file);
}

static bool write_nothing(void *context, const void *bytes, size_t size_bytes) {
  (void)bytes;
  size_t *left = context;
  if (size_bytes > *left) return false;
  *left -= size_bytes;
  return true;
}

TEST(the_writer_reports_its_failures) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_writer *writer = NULL;
  size_t left = SIZE_MAX;
  CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &left, 48, &writer, &error), WICK_E_ARG);
  CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &left, 32, &writer, &error), WICK_OK);
  gguf_writer_add_tensor(writer, "t", GGML_TYPE_Q4_0, (const uint64_t[]){33}, 1);
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_E_ARG);
  CHECK(strstr(error.message, "'t' has an impossible shape") != NULL);
  gguf_writer_destroy(writer);
  CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &left, 32, &writer, &error), WICK_OK);
  gguf_writer_add_strings(writer, "list", 2);
  gguf_writer_add_item(writer, "one", 3);
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_E_ARG);
  gguf_writer_destroy(writer);
  CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &left, 32, &writer, &error), WICK_OK);
  gguf_writer_add_tensor(writer, "t", GGML_TYPE_F32, (const uint64_t[]){3}, 1);
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_write_data(writer, "1234567", 7, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_finish(writer, &error), WICK_E_NODATA);
  gguf_writer_destroy(writer);
  CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &left, 32, &writer, &error), WICK_OK);
  gguf_writer_add_tensor(writer, "t", GGML_TYPE_F32, (const uint64_t[]){1}, 1);
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_write_data(writer, "12345", 5, &error), WICK_E_RANGE);
  gguf_writer_destroy(writer);
  left = 10;
  CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &left, 32, &writer, &error), WICK_OK);
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_E_IO);
  gguf_writer_destroy(writer);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(the_writer_reports_running_out_of_memory) {
  for (uint64_t k = 1;; k++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    gguf_writer *writer = NULL;
    size_t left = SIZE_MAX;
    wick_status status = gguf_writer_create(&memory, write_nothing, &left, 64, &writer, &error);
    if (status == WICK_OK) {
      add_every_type(writer);
      status = gguf_writer_write_header(writer, &error);
    }
    gguf_writer_destroy(writer);
    CHECK_EQ_UINT(memory.blocks_now, 0);
    CHECK_EQ_INT(status, memory.calls < k ? WICK_OK : WICK_E_NOMEM);
    if (status == WICK_OK) break;
  }
}
