// The writer's errors and their messages: calls in the wrong order, and names and shapes at the
// limits of the format. The first error is kept.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "format/gguf_directory.h"
#include "format/gguf_writer.h"
#include "platform/platform.h"

static bool write_nothing(void *context, const void *bytes, size_t size_bytes) {
  (void)bytes;
  *(size_t *)context += size_bytes;
  return true;
}

static char key_longest[GGUF_KEY_BYTES_MAX + 1], key_too_long[GGUF_KEY_BYTES_MAX + 2];
static char name_longest[GGUF_TENSOR_NAME_BYTES_MAX + 1];
static char name_too_long[GGUF_TENSOR_NAME_BYTES_MAX + 2];

typedef enum misuse {
  NOTHING,
  KEY_LONGEST,
  KEY_EMPTY,
  KEY_TOO_LONG,
  KEY_AFTER_THE_HEADER,
  KEY_WITHIN_AN_ARRAY,
  NUMBER_OF_STRINGS,
  ARRAY_OF_STRINGS,
  ITEM_WITHOUT_AN_ARRAY,
  ITEM_TOO_MANY,
  ITEM_MISSING,
  NAME_LONGEST,
  NAME_EMPTY,
  NAME_TOO_LONG,
  TENSOR_AFTER_THE_HEADER,
  TENSOR_OF_FOUR,
  TENSOR_OF_FIVE,
  TENSOR_OF_NONE,
  TENSOR_WITH_ZERO_ROWS,
  TENSOR_WITH_ZERO_VALUES,
  TENSOR_OF_HALF_A_BLOCK,
  TENSOR_TOO_LARGE,
  HEADER_TWICE,
  DATA_BEFORE_THE_HEADER,
  DATA_TOO_LONG,
  DATA_MISSING,
  NO_HEADER
} misuse;

static const struct {
  misuse how;
  wick_status status;
  const char *message;
} CASES[] = {
    {NOTHING, WICK_OK, ""},
    {KEY_LONGEST, WICK_OK, ""},
    {KEY_EMPTY, WICK_E_ARG, "GGUF writer: '' is not a valid key"},
    {KEY_TOO_LONG, WICK_E_ARG, NULL},
    {KEY_AFTER_THE_HEADER, WICK_E_ARG, "GGUF writer: 'a.key' was added after the header"},
    {KEY_WITHIN_AN_ARRAY, WICK_E_ARG,
     "GGUF writer: 'a.key' was added before an array was complete"},
    {NUMBER_OF_STRINGS, WICK_E_ARG, "GGUF writer: 'a.key' is not a number"},
    {ARRAY_OF_STRINGS, WICK_E_ARG, "GGUF writer: 'a.key' is not an array of numbers"},
    {ITEM_WITHOUT_AN_ARRAY, WICK_E_ARG,
     "GGUF writer: array of strings has more items than declared"},
    {ITEM_TOO_MANY, WICK_E_ARG, "GGUF writer: array of strings has more items than declared"},
    {ITEM_MISSING, WICK_E_ARG, "GGUF writer: array of strings has fewer items than declared"},
    {NAME_LONGEST, WICK_OK, ""},
    {NAME_EMPTY, WICK_E_ARG, "GGUF writer: '' is not a valid tensor name"},
    {NAME_TOO_LONG, WICK_E_ARG, NULL},
    {TENSOR_AFTER_THE_HEADER, WICK_E_ARG, "GGUF writer: 'a' was added after the header"},
    {TENSOR_OF_FOUR, WICK_OK, ""},
    {TENSOR_OF_FIVE, WICK_E_ARG, "GGUF writer: 'a' has an impossible shape"},
    {TENSOR_OF_NONE, WICK_E_ARG, "GGUF writer: 'a' has an impossible shape"},
    {TENSOR_WITH_ZERO_ROWS, WICK_E_ARG, "GGUF writer: 'a' has an impossible shape"},
    {TENSOR_WITH_ZERO_VALUES, WICK_E_ARG, "GGUF writer: 'a' has an impossible shape"},
    {TENSOR_OF_HALF_A_BLOCK, WICK_E_ARG, "GGUF writer: 'a' has an impossible shape"},
    {TENSOR_TOO_LARGE, WICK_E_ARG, "GGUF writer: 'a' has an impossible shape"},
    {HEADER_TWICE, WICK_E_ARG, "GGUF writer: the header was already written"},
    {DATA_BEFORE_THE_HEADER, WICK_E_ARG, "GGUF writer: data was written before the header"},
    {DATA_TOO_LONG, WICK_E_RANGE, "GGUF writer: data is longer than declared"},
    {DATA_MISSING, WICK_E_NODATA, "GGUF writer: tensor data is missing"},
    {NO_HEADER, WICK_E_ARG, "GGUF writer: the header was not written"},
};

static void add_f32(gguf_writer *writer, const char *name, const uint64_t dims[5], uint32_t count) {
  gguf_writer_add_tensor(writer, name, GGML_TYPE_F32, dims, count);
}

static void declare(gguf_writer *writer, misuse how) {
  static const uint64_t ONE[5] = {1, 1, 1, 1, 1}, NO_ROWS[5] = {1, 0}, NO_VALUES[5] = {0, 1};
  static const uint64_t LARGE[5] = {1u << 31, 1u << 30, 1};
  if (how == KEY_EMPTY) gguf_writer_add_u32(writer, "", 1);
  if (how == KEY_LONGEST) gguf_writer_add_u32(writer, key_longest, 1);
  if (how == KEY_TOO_LONG) gguf_writer_add_u32(writer, key_too_long, 1);
  if (how == NUMBER_OF_STRINGS) gguf_writer_add_number(writer, "a.key", GGUF_STRING, "");
  if (how == ARRAY_OF_STRINGS) gguf_writer_add_array(writer, "a.key", GGUF_STRING, "", 1);
  if (how == ITEM_WITHOUT_AN_ARRAY) gguf_writer_add_item(writer, "a", 1);
  if (how == KEY_WITHIN_AN_ARRAY || how == ITEM_MISSING || how == ITEM_TOO_MANY) {
    gguf_writer_add_strings(writer, "list", 1);
  }
  if (how == KEY_WITHIN_AN_ARRAY) gguf_writer_add_bool(writer, "a.key", true);
  for (int i = 0; how == ITEM_TOO_MANY && i < 2; i++) gguf_writer_add_item(writer, "a", 1);
  if (how == NAME_LONGEST) add_f32(writer, name_longest, ONE, 1);
  if (how == NAME_EMPTY) add_f32(writer, "", ONE, 1);
  if (how == NAME_TOO_LONG) add_f32(writer, name_too_long, ONE, 1);
  if (how == TENSOR_OF_FOUR) add_f32(writer, "a", ONE, 4);
  if (how == TENSOR_OF_FIVE) add_f32(writer, "a", ONE, 5);
  if (how == TENSOR_OF_NONE) add_f32(writer, "a", ONE, 0);
  if (how == TENSOR_WITH_ZERO_ROWS) add_f32(writer, "a", NO_ROWS, 2);
  if (how == TENSOR_WITH_ZERO_VALUES) add_f32(writer, "a", NO_VALUES, 2);
  if (how == TENSOR_OF_HALF_A_BLOCK) {
    gguf_writer_add_tensor(writer, "a", GGML_TYPE_Q4_0, (const uint64_t[]){16}, 1);
  }
  if (how == TENSOR_TOO_LARGE) add_f32(writer, "a", LARGE, 2);
}

// Returns the number of data bytes to write: the size of the tensors, except in cases that test a
// wrong size.
static size_t data_bytes(misuse how) {
  if (how == DATA_MISSING) return 0;
  return how == TENSOR_OF_FOUR || how == NAME_LONGEST ? 8 : how == DATA_TOO_LONG ? 5 : 4;
}

static wick_status write_all(gguf_writer *writer, misuse how, wick_error *error) {
  static const uint64_t ONE[5] = {1};
  add_f32(writer, "first", ONE, 1);
  declare(writer, how);
  if (how == DATA_BEFORE_THE_HEADER) gguf_writer_write_data(writer, "1234", 4, NULL);
  if (how != NO_HEADER) gguf_writer_write_header(writer, NULL);
  if (how == HEADER_TWICE) gguf_writer_write_header(writer, NULL);
  if (how == KEY_AFTER_THE_HEADER) gguf_writer_add_u32(writer, "a.key", 1);
  if (how == TENSOR_AFTER_THE_HEADER) add_f32(writer, "a", ONE, 1);
  if (how != NO_HEADER) gguf_writer_write_data(writer, "12345678", data_bytes(how), NULL);
  return gguf_writer_finish(writer, error);
}

TEST(each_wrong_call_fails_with_its_message) {
  memset(key_longest, 'k', GGUF_KEY_BYTES_MAX);
  memset(key_too_long, 'k', GGUF_KEY_BYTES_MAX + 1);
  memset(name_longest, 'n', GGUF_TENSOR_NAME_BYTES_MAX);
  memset(name_too_long, 'n', GGUF_TENSOR_NAME_BYTES_MAX + 1);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    memory_gate memory;
    gguf_writer *writer = NULL;
    wick_error error = {0};
    size_t written = 0;
    memory_init(&memory, 0, platform_alloc, platform_free);
    REQUIRE(gguf_writer_create(&memory, write_nothing, &written, 32, &writer, NULL) == WICK_OK);
    const wick_status status = write_all(writer, CASES[i].how, &error);
    if (!CHECK_EQ_INT(status, CASES[i].status)) printf("#   case %d\n", (int)CASES[i].how);
    CHECK_EQ_INT(error.status, CASES[i].status);
    if (CASES[i].message != NULL) CHECK_EQ_STR(error.message, CASES[i].message);
    if (status == WICK_OK) CHECK_EQ_UINT(written, gguf_writer_file_bytes(writer));
    gguf_writer_destroy(writer);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

TEST(only_powers_of_two_of_at_least_8_are_valid_alignments) {
  static const struct {
    uint32_t alignment;
    wick_status status;
  } ALIGNMENTS[] = {{0, WICK_E_ARG},
                    {4, WICK_E_ARG},
                    {7, WICK_E_ARG},
                    {8, WICK_OK},
                    {12, WICK_E_ARG},
                    {32, WICK_OK},
                    {4096, WICK_OK},
                    {GGUF_ALIGNMENT_MAX, WICK_OK},
                    {2u * GGUF_ALIGNMENT_MAX, WICK_E_ARG}};
  for (size_t i = 0; i < sizeof ALIGNMENTS / sizeof *ALIGNMENTS; i++) {
    memory_gate memory;
    gguf_writer *writer = NULL;
    size_t written = 0;
    memory_init(&memory, 0, platform_alloc, platform_free);
    CHECK_EQ_INT(gguf_writer_create(&memory, write_nothing, &written, ALIGNMENTS[i].alignment,
                                    &writer, NULL),
                 ALIGNMENTS[i].status);
    if (writer != NULL) {
      add_f32(writer, "a", (const uint64_t[5]){1}, 1);
      CHECK_EQ_INT(gguf_writer_write_header(writer, NULL), WICK_OK);
      CHECK_EQ_UINT(written % ALIGNMENTS[i].alignment, 0);
      CHECK_EQ_INT(gguf_writer_write_data(writer, "1234", 4, NULL), WICK_OK);
      CHECK_EQ_INT(gguf_writer_finish(writer, NULL), WICK_OK);
      CHECK_EQ_UINT(written, gguf_writer_file_bytes(writer));
      CHECK_EQ_UINT(written % ALIGNMENTS[i].alignment, 0);
    }
    gguf_writer_destroy(writer);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}
