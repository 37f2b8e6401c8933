// tests/c/load_test.c — the loader: the same tensors from any pieces in any order, what it asks
// for, split models, and how it fails.
#include "load/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "load/fingerprint.h"
#include "load/ranges.h"
#include "load_sink.h"
#include "platform/platform.h"

static wick_memory memory;
static wick_error error;
static load_sink sink;

static loader *open_loader(uint64_t unwanted) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memset(&error, 0, sizeof error);
  sink = (load_sink){.unwanted = unwanted};
  const loader_sink calls = sink_calls(&sink);
  loader *made = NULL;
  CHECK_EQ_INT(loader_create(&memory, &calls, false, &made, &error), WICK_OK);
  sink.loader = made;
  return made;
}

static void close_loader(loader *loader) {
  loader_destroy(loader);
  sink_free(&sink);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

// Feeds [first, end) of a file from a copy of exactly that size.
static wick_status feed(loader *loader, uint32_t number, const memory_file *file, uint64_t first,
                        uint64_t end) {
  uint8_t *copy = malloc((size_t)(end - first) + (end == first));
  if (copy == NULL) abort();
  memcpy(copy, file->bytes + first, (size_t)(end - first));
  const wick_status status =
      loader_feed(loader, number, first, copy, (size_t)(end - first), &error);
  free(copy);
  return status;
}

static wick_status feed_in_order(loader *loader, const memory_file *file, uint64_t first,
                                 uint64_t chunk) {
  for (uint64_t at = first; at < file->size_bytes; at += chunk) {
    const uint64_t left = file->size_bytes - at;
    const wick_status status = feed(loader, 0, file, at, at + (left < chunk ? left : chunk));
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

// Does what is asked until nothing is.
static wick_status feed_as_asked(loader *loader, const memory_file *files) {
  for (;;) {
    uint32_t file;
    uint64_t offset, length;
    loader_next_range(loader, &file, &offset, &length);
    if (length == 0) return WICK_OK;
    const uint64_t size = files[file].size_bytes;
    if (!CHECK(offset < size)) return WICK_E_RANGE;
    const wick_status status =
        feed(loader, file, &files[file], offset, offset + length < size ? offset + length : size);
    if (status != WICK_OK) return status;
  }
}

static void check_loaded(loader *loader, const memory_file *files, const char *what) {
  if (!CHECK_EQ_STR(sink_check(&sink, files), NULL) || !CHECK(loader_is_complete(loader))) {
    printf("#   %s\n", what);
  }
  CHECK_EQ_UINT(loader_bytes_placed(loader), loader_bytes_wanted(loader));
}

static uint64_t directory_end(const memory_file *file) {
  loader *loader = open_loader(UINT64_MAX);
  CHECK_EQ_INT(feed(loader, 0, file, 0, file->size_bytes), WICK_OK);
  const uint64_t end = gguf_directory_bytes(loader_directory(loader));
  close_loader(loader);
  return end;
}

static uint64_t sample_fingerprint(const memory_file *file, uint64_t unwanted) {
  loader *loader = open_loader(unwanted);
  CHECK_EQ_INT(feed(loader, 0, file, 0, file->size_bytes), WICK_OK);
  const uint64_t fingerprint = loader_fingerprint(loader);
  close_loader(loader);
  return fingerprint;
}

// ---- any pieces, any order ----

// Between two wanted tensors: 128 KiB that nobody wants, then 1 MiB, then 9 MiB that are wanted.
static const sample_tensor BIG_TENSORS[] = {
    {"a", WICK_TYPE_F32, 1, {64}},        {"small hole", WICK_TYPE_I8, 1, {131072}},
    {"b", WICK_TYPE_F32, 1, {64}},        {"big hole", WICK_TYPE_I8, 1, {1048576}},
    {"c", WICK_TYPE_I8, 2, {1024, 9216}}, {"tail", WICK_TYPE_F32, 1, {64}}};

TEST(chunks_of_any_size_give_the_same_tensors) {
  static const uint64_t CHUNKS[] = {1, 2, 3, 17, 18, 19, 34, 210, 1000, 4096, 1000000};
  memory_file file = sample_model();
  const uint64_t fingerprint = sample_fingerprint(&file, 0);
  for (size_t i = 0; i < sizeof CHUNKS / sizeof *CHUNKS; i++) {
    loader *loader = open_loader(0);
    CHECK_EQ_INT(feed_in_order(loader, &file, 0, CHUNKS[i]), WICK_OK);
    char what[32];
    snprintf(what, sizeof what, "in chunks of %llu", (unsigned long long)CHUNKS[i]);
    check_loaded(loader, &file, what);
    CHECK_EQ_UINT(loader_fingerprint(loader), fingerprint);
    close_loader(loader);
  }
  file_free(&file);
}

// Rows go out whole and straight from the caller's buffer: a call of place() a row.
TEST(whole_rows_are_placed_at_once) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_OK);
  uint64_t rows = 0;
  for (size_t i = 0; i < SAMPLE_TENSOR_COUNT; i++) {
    const gguf_tensor *tensor = loader_tensor_at(loader, i);
    rows += tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
  }
  CHECK_EQ_UINT(sink.places, rows);
  close_loader(loader);
  file_free(&file);
}

// 9 MiB in 9216 rows, and four tensors of one row.
TEST(pieces_of_many_rows_cut_none) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = BIG_TENSORS, .tensor_count = 6, .seed = 3});
  loader *loader = open_loader(1 << 3);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_OK);
  CHECK_EQ_UINT(sink.places, 9216 + 4);
  close_loader(loader);
  file_free(&file);
}

// Bytes that nobody wants do not count as gaps.
TEST(unwanted_bytes_may_come_in_any_pieces) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = BIG_TENSORS, .tensor_count = 6, .seed = 3});
  const uint64_t end = directory_end(&file);
  for (int last = 0; last < 2; last++) {
    loader *loader = open_loader(last ? 31 : 62);  // only the last one or the first one is wanted
    CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
    for (uint64_t i = 0; i < LOAD_RANGES_MAX + 10; i++) {
      CHECK_EQ_INT(feed(loader, 0, &file, 200000 + 2 * i, 200001 + 2 * i), WICK_OK);
    }
    CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
    check_loaded(loader, &file, "with unwanted pieces");
    close_loader(loader);
  }
  file_free(&file);
}

typedef struct piece {
  uint64_t first, end;
} piece;

// Cuts [first, end) at random into pieces, and shuffles them.
static size_t cut_at_random(uint64_t first, uint64_t end, uint64_t size_max, piece *pieces,
                            size_t pieces_max, uint64_t *state) {
  size_t count = 0;
  while (first < end && count < pieces_max) {
    uint64_t size = 1 + random_below(state, size_max);
    if (size > end - first || count == pieces_max - 1) size = end - first;
    pieces[count++] = (piece){first, first + size};
    first += size;
  }
  for (size_t i = count; i > 1; i--) {
    const size_t other = (size_t)random_below(state, i);
    const piece last = pieces[i - 1];
    pieces[i - 1] = pieces[other];
    pieces[other] = last;
  }
  return count;
}

TEST(pieces_in_any_order_give_the_same_tensors) {
  enum { PIECES_MAX = 900, ROUNDS = 60 };
  static piece pieces[PIECES_MAX];
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  uint64_t state = 11;
  for (int round = 0; round < ROUNDS; round++) {
    // on some rounds not all tensors are wanted
    const uint64_t unwanted = round % 3 == 0 ? random_below(&state, 128) : 0;
    const uint64_t fingerprint = sample_fingerprint(&file, unwanted);
    loader *loader = open_loader(unwanted);
    CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
    const uint64_t size_max = 1 + random_below(&state, 400);
    const size_t count = cut_at_random(end, file.size_bytes, size_max, pieces, PIECES_MAX, &state);
    for (size_t i = 0; i < count; i++) {
      piece *at = &pieces[i];
      // some overlap with what came before or comes later
      const uint64_t before = random_below(&state, 4) == 0 ? random_below(&state, 50) : 0;
      at->first -= before < at->first ? before : at->first;
      CHECK_EQ_INT(feed(loader, 0, &file, at->first, at->end), WICK_OK);
    }
    check_loaded(loader, &file, "in random order");
    CHECK_EQ_UINT(loader_fingerprint(loader), fingerprint);
    close_loader(loader);
  }
  file_free(&file);
}

TEST(backwards_byte_by_byte_is_fine) {
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
  for (uint64_t at = file.size_bytes; at > end; at--) {
    CHECK_EQ_INT(feed(loader, 0, &file, at - 1, at), WICK_OK);
  }
  check_loaded(loader, &file, "backwards");
  close_loader(loader);
  file_free(&file);
}

TEST(bytes_that_came_before_are_ignored) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_OK);
  const uint64_t fingerprint = loader_fingerprint(loader);
  const uint32_t places = sink.places;
  // even when they say something else
  for (size_t i = 0; i < file.size_bytes; i++) file.bytes[i] ^= 0x55;
  CHECK_EQ_INT(feed_in_order(loader, &file, 0, 100), WICK_OK);
  for (size_t i = 0; i < file.size_bytes; i++) file.bytes[i] ^= 0x55;
  CHECK_EQ_UINT(sink.places, places);
  CHECK_EQ_UINT(loader_fingerprint(loader), fingerprint);
  check_loaded(loader, &file, "twice");
  close_loader(loader);
  file_free(&file);
}

// A block whose four parts come at four times.
TEST(a_block_may_come_in_many_parts) {
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
  const uint64_t block = gguf_data_offset(loader_directory(loader));
  CHECK_EQ_INT(feed(loader, 0, &file, block + 20, block + 25), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, block, block + 3), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, block + 30, block + 34), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, block + 3, block + 20), WICK_OK);
  CHECK_EQ_UINT(sink.places, 0);
  CHECK_EQ_INT(feed(loader, 0, &file, block + 25, block + 30), WICK_OK);
  CHECK_EQ_UINT(sink.places, 1);
  CHECK_EQ_MEM(sink.tensors[0].bytes, file.bytes + block, 34);
  CHECK_EQ_INT(feed(loader, 0, &file, block, file.size_bytes), WICK_OK);
  check_loaded(loader, &file, "in parts");
  close_loader(loader);
  file_free(&file);
}

// ---- gaps ----

static const sample_tensor LONG_TENSORS[] = {{"long", WICK_TYPE_Q8_0, 2, {64, 200}}};

TEST(too_many_gaps_are_refused_and_can_be_filled) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = LONG_TENSORS, .tensor_count = 1, .seed = 2});
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
  REQUIRE(loader_directory(loader) != NULL);
  const uint64_t data = gguf_data_offset(loader_directory(loader));
  wick_status status = WICK_OK;
  uint64_t odd = data + 1;
  while (status == WICK_OK) {
    status = feed(loader, 0, &file, odd, odd + 1);
    odd += 2;
  }
  CHECK_EQ_INT(status, WICK_E_FULL);
  CHECK(strstr(error.message, "gaps") != NULL);
  CHECK_EQ_UINT(error.offset_bytes, odd - 2);
  const uint64_t placed = loader_bytes_placed(loader);
  CHECK_EQ_INT(feed(loader, 0, &file, odd - 2, odd - 1), WICK_E_FULL);
  CHECK_EQ_UINT(loader_bytes_placed(loader), placed);
  CHECK_EQ_INT(feed(loader, 0, &file, data, data + 1), WICK_OK);  // joins what is there
  CHECK_EQ_INT(feed(loader, 0, &file, data + 2, data + 3), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, odd - 2, odd - 1), WICK_OK);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "with gaps");
  close_loader(loader);
  file_free(&file);
}

TEST(ranges_join_and_answer) {
  load_ranges ranges = {0};
  memory_init(&memory, 0, platform_alloc, platform_free);
  uint8_t present[300] = {0};
  uint64_t state = 5;
  for (int round = 0; round < 3000; round++) {
    if (round % 100 == 0) {
      ranges.count = 0;
      memset(present, 0, sizeof present);
    }
    const uint64_t first = random_below(&state, 280);
    const uint64_t end = first + 1 + random_below(&state, 12);
    CHECK_EQ_INT(ranges_reserve(&ranges, &memory, first, end, &error), WICK_OK);
    ranges_add(&ranges, first, end);
    memset(present + first, 1, (size_t)(end - first));
    const uint64_t from = random_below(&state, sizeof present);
    uint64_t missing = from;
    while (missing < sizeof present && present[missing] != 0) missing++;
    CHECK_EQ_UINT(ranges_next_missing(&ranges, from), missing);
    uint64_t there = from;
    while (there < sizeof present && present[there] == 0) there++;
    if (there == sizeof present) there = UINT64_MAX;
    CHECK_EQ_UINT(ranges_next_present(&ranges, from), there);
    for (size_t i = 1; i < ranges.count; i++) {
      CHECK(ranges.items[i - 1].end < ranges.items[i].first);
    }
  }
  memory_free(&memory, ranges.items);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// ---- asking ----

TEST(what_is_asked_for_is_enough) {
  memory_file file = sample_model();
  for (uint64_t unwanted = 0; unwanted < 128; unwanted++) {
    loader *loader = open_loader(unwanted);
    uint32_t number;
    uint64_t offset, length;
    loader_next_range(loader, &number, &offset, &length);
    CHECK_EQ_UINT(number, 0);
    CHECK_EQ_UINT(offset, 0);
    CHECK_EQ_UINT(length, 1024 * 1024);
    CHECK_EQ_INT(loader_end(loader, 0, file.size_bytes, &error), WICK_OK);
    loader_next_range(loader, &number, &offset, &length);
    CHECK_EQ_UINT(length, file.size_bytes);
    CHECK_EQ_INT(feed(loader, 0, &file, 0, 100), WICK_OK);
    loader_next_range(loader, &number, &offset, &length);
    CHECK_EQ_UINT(offset, 100);
    CHECK_EQ_UINT(length, file.size_bytes - 100);
    CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
    check_loaded(loader, &file, "as asked");
    close_loader(loader);
  }
  file_free(&file);
}

TEST(ranges_join_over_small_holes_and_end_at_8_mib) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = BIG_TENSORS, .tensor_count = 6, .seed = 3});
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(1 << 1 | 1 << 3);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
  REQUIRE(loader_directory(loader) != NULL);
  const uint64_t data = gguf_data_offset(loader_directory(loader));
  uint32_t number;
  uint64_t offset, length;
  loader_next_range(loader, &number, &offset, &length);
  CHECK_EQ_UINT(offset, data);
  CHECK_EQ_UINT(length, 256 + 131072 + 256);
  CHECK_EQ_INT(feed(loader, 0, &file, offset, offset + length), WICK_OK);
  const uint64_t c = loader_tensor_at(loader, 4)->offset_bytes;
  loader_next_range(loader, &number, &offset, &length);
  CHECK_EQ_UINT(offset, c);
  CHECK_EQ_UINT(length, 8 * 1024 * 1024);
  // several requests at a time: the second begins where the first ends
  loader_next_range_from(loader, 0, offset + length, &number, &offset, &length);
  CHECK_EQ_UINT(offset, c + 8 * 1024 * 1024);
  CHECK_EQ_UINT(length, 1024 * 1024 + 256);
  loader_next_range_from(loader, 0, offset + length, &number, &offset, &length);
  CHECK_EQ_UINT(length, 0);
  // what came is left out
  CHECK_EQ_INT(feed(loader, 0, &file, c + 5000, c + 6000), WICK_OK);
  loader_next_range(loader, &number, &offset, &length);
  CHECK_EQ_UINT(offset, c);
  CHECK_EQ_UINT(length, 5000);
  loader_next_range_from(loader, 0, c + 4999, &number, &offset, &length);
  CHECK_EQ_UINT(offset, c + 4999);
  CHECK_EQ_UINT(length, 1);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "with holes");
  close_loader(loader);
  file_free(&file);
}

TEST(progress_is_told) {
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(2);
  CHECK_EQ_UINT(loader_bytes_placed(loader), 0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, 50), WICK_OK);
  CHECK_EQ_UINT(loader_bytes_placed(loader), 50);
  CHECK(loader_bytes_wanted(loader) > 50);
  CHECK(loader_directory(loader) == NULL);
  CHECK_EQ_UINT(loader_tensor_count(loader), 0);
  CHECK_EQ_INT(loader_find_tensor(loader, "output.weight"), -1);
  CHECK(!loader_tensor_is_done(loader, 0));
  CHECK_EQ_INT(feed(loader, 0, &file, 50, end), WICK_OK);
  CHECK_EQ_UINT(loader_tensor_count(loader), SAMPLE_TENSOR_COUNT);
  CHECK_EQ_INT(loader_find_tensor(loader, "output.weight"), 6);
  CHECK_EQ_INT(loader_find_tensor(loader, "output"), -1);
  uint64_t wanted = end;
  for (size_t i = 0; i < SAMPLE_TENSOR_COUNT; i++) {
    if (i != 1) wanted += loader_tensor_at(loader, i)->size_bytes;
  }
  CHECK_EQ_UINT(loader_bytes_wanted(loader), wanted);
  const gguf_tensor *first = loader_tensor_at(loader, 0);
  CHECK_EQ_INT(feed(loader, 0, &file, end, first->offset_bytes + first->size_bytes - 1), WICK_OK);
  CHECK(!loader_tensor_is_done(loader, 0));
  CHECK(!loader_is_complete(loader));
  CHECK_EQ_UINT(loader_bytes_placed(loader), end + first->size_bytes - 1);
  CHECK_EQ_INT(feed(loader, 0, &file, end, file.size_bytes), WICK_OK);
  CHECK(loader_tensor_is_done(loader, 0));
  CHECK(!loader_tensor_is_done(loader, 1));
  CHECK_EQ_UINT(loader_bytes_placed(loader), wanted);
  close_loader(loader);
  file_free(&file);
}

// ---- the fingerprint ----

TEST(every_byte_that_is_wanted_counts_in_the_fingerprint) {
  memory_file file = sample_model();
  const uint64_t unwanted = 1 << 3;
  const uint64_t fingerprint = sample_fingerprint(&file, unwanted);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_OK);
  piece tensors[8];
  for (size_t i = 0; i < SAMPLE_TENSOR_COUNT; i++) {
    const gguf_tensor *tensor = loader_tensor_at(loader, i);
    tensors[i] = (piece){tensor->offset_bytes, tensor->offset_bytes + tensor->size_bytes};
  }
  close_loader(loader);
  uint64_t state = 3;
  for (uint64_t at = tensors[0].first; at < file.size_bytes; at++) {
    bool is_wanted = false;
    for (size_t i = 0; i < SAMPLE_TENSOR_COUNT; i++) {
      is_wanted = is_wanted || (i != 3 && at >= tensors[i].first && at < tensors[i].end);
    }
    const uint8_t flip = (uint8_t)(1u << random_below(&state, 8));
    file.bytes[at] ^= flip;
    CHECK_EQ_INT(sample_fingerprint(&file, unwanted) != fingerprint, is_wanted);
    file.bytes[at] ^= flip;
  }
  // a metadata value: the architecture's name
  file.bytes[24 + 8 + 20 + 4 + 8] ^= 1;
  CHECK(sample_fingerprint(&file, unwanted) != fingerprint);
  file_free(&file);
}

TEST(tensors_that_change_places_change_the_fingerprint) {
  static const sample_tensor TWINS[] = {{"a", WICK_TYPE_F32, 1, {64}},
                                        {"b", WICK_TYPE_F32, 1, {64}}};
  memory_file file = sample_make(&(sample_spec){.tensors = TWINS, .tensor_count = 2, .seed = 8});
  const uint64_t fingerprint = sample_fingerprint(&file, 0);
  uint8_t *first = file.bytes + file.size_bytes - 512;
  for (size_t i = 0; i < 256; i++) {
    const uint8_t byte = first[i];
    first[i] = first[256 + i];
    first[256 + i] = byte;
  }
  CHECK(sample_fingerprint(&file, 0) != fingerprint);
  file_free(&file);
}

TEST(fingerprints_tell_places_apart) {
  uint8_t bytes[256];
  uint64_t state = 9;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)random_u64(&state);
  uint64_t values[5];
  for (uint32_t i = 0; i < 5; i++) {
    load_fingerprint at = {{0}};
    const uint32_t file = i == 4 ? 1 : 0;
    fingerprint_add(&at, file, UINT64_C(1000) + (i == 4 ? 0 : i * UINT64_C(64)), bytes,
                    sizeof bytes);
    values[i] = fingerprint_value(&at);
    for (uint32_t j = 0; j < i; j++) CHECK(values[i] != values[j]);
  }
  // sign bits, in the same place of two lines
  load_fingerprint plain = {{0}}, flipped = {{0}};
  fingerprint_add(&plain, 0, 0, bytes, sizeof bytes);
  bytes[3] ^= 0x80;
  bytes[67] ^= 0x80;
  fingerprint_add(&flipped, 0, 0, bytes, sizeof bytes);
  CHECK(fingerprint_value(&plain) != fingerprint_value(&flipped));
}

// ---- split models ----

enum { PARTS = 3 };

static sample_spec part_spec(uint32_t file) {
  static const uint8_t FIRST[PARTS + 1] = {0, 3, 6, 7};
  return (sample_spec){.tensors = SAMPLE_TENSORS + FIRST[file],
                       .tensor_count = (size_t)(FIRST[file + 1] - FIRST[file]),
                       .file = file,
                       .files = PARTS,
                       .all_tensors = 7,
                       .seed = 20 + file};
}

static void make_parts(memory_file *files) {
  for (uint32_t i = 0; i < PARTS; i++) {
    const sample_spec spec = part_spec(i);
    files[i] = sample_make(&spec);
  }
}

static void free_parts(memory_file *files) {
  for (uint32_t i = 0; i < PARTS; i++) file_free(&files[i]);
}

TEST(a_split_model_is_one_model) {
  memory_file files[PARTS];
  make_parts(files);
  loader *loader = open_loader(0);
  CHECK_EQ_UINT(loader_files(loader), 1);
  CHECK_EQ_INT(feed_as_asked(loader, files), WICK_OK);
  CHECK_EQ_UINT(loader_files(loader), 3);
  check_loaded(loader, files, "split");
  CHECK_EQ_UINT(loader_tensor_count(loader), 7);
  for (uint32_t i = 0; i < 7; i++) {
    const gguf_tensor *tensor = loader_tensor_at(loader, i);
    CHECK(gguf_string_equals(tensor->name, SAMPLE_TENSORS[i].name));
    CHECK_EQ_UINT(tensor->file, i < 3 ? 0 : i < 6 ? 1 : 2);
    CHECK_EQ_INT(loader_find_tensor(loader, SAMPLE_TENSORS[i].name), i);
  }
  const uint64_t fingerprint = loader_fingerprint(loader);
  close_loader(loader);

  // the other files' directories in another order, and all data backwards
  loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &files[0], 0, files[0].size_bytes), WICK_OK);
  CHECK_EQ_UINT(loader_tensor_count(loader), 0);
  CHECK_EQ_INT(feed(loader, 2, &files[2], 0, files[2].size_bytes), WICK_OK);
  CHECK_EQ_UINT(sink.ready, 0);
  CHECK_EQ_INT(feed(loader, 1, &files[1], 0, files[1].size_bytes), WICK_OK);
  CHECK_EQ_UINT(sink.ready, 1);
  for (uint32_t i = PARTS; i-- > 0;) {
    CHECK_EQ_INT(feed(loader, i, &files[i], files[i].size_bytes / 2, files[i].size_bytes), WICK_OK);
    CHECK_EQ_INT(feed(loader, i, &files[i], 0, files[i].size_bytes / 2 + 9), WICK_OK);
  }
  check_loaded(loader, files, "split, backwards");
  CHECK_EQ_UINT(loader_fingerprint(loader), fingerprint);
  close_loader(loader);
  free_parts(files);
}

static void check_split_refusal(const memory_file *files, wick_status status, const char *words) {
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed_as_asked(loader, files), status);
  if (!CHECK(strstr(error.message, words) != NULL)) printf("#   %s\n", error.message);
  CHECK_EQ_UINT(sink.ready, 0);
  close_loader(loader);
}

TEST(parts_that_do_not_fit_are_refused) {
  memory_file files[PARTS], wrong[PARTS];
  make_parts(files);
  memcpy(wrong, files, sizeof files);
  wrong[1] = files[2];
  check_split_refusal(wrong, WICK_E_FORMAT, "file 2 of 3: key 'split.no' does not fit");
  wrong[0] = files[1];
  check_split_refusal(wrong, WICK_E_FORMAT, "this is file 2 of 3 of a split model");

  memcpy(wrong, files, sizeof files);
  sample_spec spec = part_spec(2);
  spec.files = 4;
  wrong[2] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT, "file 3 of 3: key 'split.count' does not fit");
  file_free(&wrong[2]);

  spec.files = 3;
  spec.tensors = SAMPLE_TENSORS + 1;
  wrong[2] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT,
                      "file 3 of 3: tensor 'blk.0.attn_norm.weight' is there in file 1, too");
  file_free(&wrong[2]);

  wrong[2] = files[2];
  spec = part_spec(0);
  spec.all_tensors = 8;
  wrong[0] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT,
                      "'split.tensors.count' is 8, but the 3 files hold 7 tensors");
  file_free(&wrong[0]);

  spec = part_spec(0);
  spec.files = LOADER_FILES_MAX + 1;
  wrong[0] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT, "'split.count' is 1025");
  file_free(&wrong[0]);
  free_parts(files);
}

TEST(a_missing_part_is_told) {
  memory_file files[PARTS];
  make_parts(files);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &files[0], 0, files[0].size_bytes), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 1, 0, &error), WICK_E_TRUNCATED);
  CHECK_EQ_STR(error.message, "file 2 of 3: the file ends in the header");
  close_loader(loader);
  free_parts(files);
}

// ---- truncation ----

TEST(a_short_file_is_told_as_soon_as_its_size_is_known) {
  memory_file file = sample_model();
  const uint64_t directory_bytes = directory_end(&file);
  const gguf_tensor *last = NULL;
  for (uint64_t size = 0; size <= file.size_bytes; size++) {
    loader *loader = open_loader(0);
    wick_status status = loader_end(loader, 0, size, &error);
    // the directory alone is enough to know
    const uint64_t end = size < directory_bytes ? size : directory_bytes;
    if (status == WICK_OK) status = feed(loader, 0, &file, 0, end);
    uint64_t needed = UINT64_MAX;
    if (size >= directory_bytes) {
      REQUIRE(loader_directory(loader) != NULL);
      last = gguf_tensor_at(loader_directory(loader), 6);
      needed = last->offset_bytes + last->size_bytes;
    }
    CHECK_EQ_INT(status, size >= needed ? WICK_OK : WICK_E_TRUNCATED);
    if (status != WICK_OK) CHECK_EQ_UINT(error.offset_bytes, size);
    if (size + 1 == needed) CHECK(strstr(error.message, "'output.weight'") != NULL);
    if (size == directory_bytes) CHECK(strstr(error.message, "'token_embd.weight'") != NULL);
    close_loader(loader);
  }
  file_free(&file);
}

TEST(the_size_may_become_known_later) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes - 100), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 0, file.size_bytes, &error), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 0, file.size_bytes - 100, &error), WICK_E_TRUNCATED);
  CHECK(strstr(error.message, "'output.weight'") != NULL);
  // and that is final
  wick_error again;
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_E_TRUNCATED);
  CHECK_EQ_INT(loader_end(loader, 0, file.size_bytes, &again), WICK_E_TRUNCATED);
  CHECK_EQ_STR(again.message, error.message);
  uint32_t number;
  uint64_t offset, length;
  loader_next_range(loader, &number, &offset, &length);
  CHECK_EQ_UINT(length, 0);
  CHECK(!loader_is_complete(loader));
  close_loader(loader);
  file_free(&file);
}

TEST(a_directory_alone_needs_no_tensors) {
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  memory_init(&memory, 0, platform_alloc, platform_free);
  loader *loader = NULL;
  CHECK_EQ_INT(loader_create(&memory, NULL, true, &loader, &error), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 0, end, &error), WICK_OK);
  CHECK_EQ_INT(feed_in_order(loader, &file, 0, 64), WICK_OK);
  CHECK(loader_is_complete(loader));
  CHECK_EQ_UINT(loader_tensor_count(loader), SAMPLE_TENSOR_COUNT);
  CHECK_EQ_UINT(loader_bytes_wanted(loader), end);
  CHECK_EQ_UINT(loader_bytes_placed(loader), end);
  uint32_t number;
  uint64_t offset, length;
  loader_next_range(loader, &number, &offset, &length);
  CHECK_EQ_UINT(length, 0);
  loader_destroy(loader);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  file_free(&file);
}

TEST(a_file_without_tensors_is_loaded_at_once) {
  memory_file file = sample_make(&(sample_spec){.tensor_count = 0});
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "no tensors");
  close_loader(loader);
  file_free(&file);
}

// ---- mistakes and failures ----

TEST(mistakes_of_the_caller_change_nothing) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  const loader_sink none = {0};
  struct loader *other = NULL;
  CHECK_EQ_INT(loader_create(&memory, NULL, false, &other, &error), WICK_E_ARG);
  CHECK_EQ_INT(loader_create(&memory, &none, false, &other, &error), WICK_E_ARG);
  CHECK_EQ_INT(feed(loader, 1, &file, 0, 10), WICK_E_ARG);
  CHECK_EQ_INT(loader_end(loader, 1, 10, &error), WICK_E_ARG);
  CHECK_EQ_INT(feed(loader, 0, &file, 1, 10), WICK_E_ARG);
  CHECK_EQ_INT(loader_feed(loader, 0, UINT64_MAX, "xy", 2, &error), WICK_E_ARG);
  CHECK_EQ_INT(loader_feed(loader, 0, INT64_MAX, "xy", 2, &error), WICK_E_ARG);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, 100), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, 50, 120), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, 20, 30), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, 121, 130), WICK_E_ARG);
  CHECK_EQ_INT(loader_feed(loader, 0, 120, NULL, 0, &error), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, 120, file.size_bytes), WICK_OK);
  CHECK_EQ_INT(loader_feed(loader, 0, 500, NULL, 0, &error), WICK_OK);
  CHECK_EQ_INT(loader_feed(loader, 0, INT64_MAX - 2, "xy", 2, &error), WICK_OK);  // nobody's
  check_loaded(loader, &file, "after mistakes");
  close_loader(loader);
  file_free(&file);
}

TEST(a_sink_that_fails_ends_the_loading) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  sink.fail_directory = true;
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(error.message, "the model says no");
  CHECK_EQ_INT(feed(loader, 0, &file, 0, 1), WICK_E_UNSUPPORTED);
  close_loader(loader);
  for (uint32_t k = 1; k < 40; k += 6) {
    loader = open_loader(0);
    sink.fail_at_place = k;
    CHECK_EQ_INT(feed_in_order(loader, &file, 0, 23), WICK_E_NONFINITE);
    CHECK_EQ_STR(error.message, "these blocks are bad");
    CHECK_EQ_UINT(sink.places, k);
    CHECK_EQ_INT(feed_in_order(loader, &file, 0, 23), WICK_E_NONFINITE);
    CHECK_EQ_UINT(sink.places, k);
    close_loader(loader);
  }
  file_free(&file);
}

TEST(a_bad_directory_ends_the_loading) {
  memory_file file = sample_model();
  file.bytes[0] = 'g';
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_E_FORMAT);
  CHECK_EQ_STR(error.message, "not a GGUF file: it begins with 'gGUF'");
  CHECK_EQ_INT(loader_end(loader, 0, 0, &error), WICK_E_FORMAT);
  close_loader(loader);
  file_free(&file);
}

// The first half of the data in order, the other half backwards in pieces of 13 bytes, so that
// every list of the loader grows.
static wick_status load_crosswise(loader *loader, const memory_file *file) {
  const uint64_t middle = file->size_bytes - 13 * 60;
  for (uint64_t at = 0; at < middle; at += 101) {
    const uint64_t end = at + 101 < middle ? at + 101 : middle;
    const wick_status status = feed(loader, 0, file, at, end);
    if (status != WICK_OK) return status;
  }
  for (uint64_t step = 0; step < 120; step++) {
    const uint64_t first = middle + 13 * (step < 60 ? 59 - step : step - 60);
    if (step < 60 && step % 2 == 0) continue;
    const wick_status status = feed(loader, 0, file, first, first + 13);
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

TEST(no_allocation_that_fails_leaks) {
  memory_file file = sample_model();
  uint64_t failed = 0;
  for (uint64_t k = 1;; k++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    sink = (load_sink){0};
    const loader_sink calls = sink_calls(&sink);
    loader *loader = NULL;
    wick_status status = loader_create(&memory, &calls, false, &loader, &error);
    sink.loader = loader;
    if (status == WICK_OK) status = load_crosswise(loader, &file);
    if (status == WICK_OK) check_loaded(loader, &file, "crosswise");
    close_loader(loader);
    if (status == WICK_OK) break;
    CHECK_EQ_INT(status, WICK_E_NOMEM);
    failed++;
  }
  CHECK(failed >= 12);
  file_free(&file);
}

// A refusal for want of memory while data comes can be mended by asking again.
TEST(data_can_be_fed_again_after_memory_was_short) {
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
  const uint64_t middle = gguf_data_offset(loader_directory(loader)) + 10;
  for (uint64_t k = 1; k <= 2; k++) {
    memory.fail_at_call = memory.calls + k;
    CHECK_EQ_INT(feed(loader, 0, &file, middle, middle + 7), WICK_E_NOMEM);
  }
  memory.fail_at_call = 0;
  CHECK_EQ_INT(feed(loader, 0, &file, middle, middle + 7), WICK_OK);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "after a refusal");
  close_loader(loader);
  file_free(&file);
}

TEST(no_allocation_of_a_split_model_leaks) {
  memory_file files[PARTS];
  make_parts(files);
  for (uint64_t k = 1;; k++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    sink = (load_sink){0};
    const loader_sink calls = sink_calls(&sink);
    loader *loader = NULL;
    wick_status status = loader_create(&memory, &calls, false, &loader, &error);
    sink.loader = loader;
    if (status == WICK_OK) status = feed_as_asked(loader, files);
    close_loader(loader);
    if (status == WICK_OK) break;
    CHECK_EQ_INT(status, WICK_E_NOMEM);
  }
  free_parts(files);
}

// Loading in order needs no memory beyond the directory's, the list of tensors, one range and one
// block.
TEST(memory_stays_small) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = BIG_TENSORS, .tensor_count = 6, .seed = 3});
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed_in_order(loader, &file, 0, 10007), WICK_OK);
  check_loaded(loader, &file, "in order");
  CHECK(memory.bytes_peak < 100000);
  close_loader(loader);
  file_free(&file);
}
