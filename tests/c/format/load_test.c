// The loader: any pieces in any order give the same tensors and the same fingerprint; also which
// ranges it requests and how much memory it takes. load_failure_test.c tests its failures.
#include "load/load.h"

#include "base/hash.h"
#include "load/fingerprint.h"
#include "load/ranges.h"
#include "load_rig.h"
#include "random.h"

// ---- the fingerprint ----

// Computes the first 32 fractional bits of a square root bit by bit, and sets the lowest bit.
static uint32_t factor_of(uint32_t prime) {
  const __uint128_t wanted = (__uint128_t)prime << 64;
  uint64_t root = 0;
  for (int bit = 36; bit-- > 0;) {
    const uint64_t more = root | UINT64_C(1) << bit;
    if ((__uint128_t)more * more <= wanted) root = more;
  }
  return (uint32_t)root | 1;
}

// Computes the fingerprint byte by byte, as defined in load/fingerprint.h.
static uint64_t plain_fingerprint(uint32_t file, uint64_t offset_bytes, const uint8_t *bytes,
                                  size_t size_bytes) {
  static const uint32_t primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
  uint64_t sums[2] = {0};
  for (size_t i = 0; i < size_bytes; i++) {
    const uint64_t at = offset_bytes + i, line = at / 64;
    const uint64_t key = hash_mix_u64(hash_mix_u64(file + UINT64_C(1)) + line);
    const uint64_t part = ((uint64_t)bytes[i] << 8 * (at % 4)) * factor_of(primes[at % 64 / 4]);
    sums[0] += part * (key | 1);
    sums[1] += part * (hash_mix_u64(key) | 1);
  }
  return hash_mix_u64(sums[0] ^ hash_mix_u64(sums[1]));
}

TEST(the_fingerprint_matches_its_definition) {
  enum { BYTES = 700 };
  uint8_t bytes[BYTES];
  uint64_t random = 5;
  for (int i = 0; i < BYTES; i++) bytes[i] = (uint8_t)random_u64(&random);
  for (uint32_t i = 0; i < 60; i++) {
    const uint32_t file = i % 3;
    const uint64_t offset = i < 20 ? i : random_u64(&random) >> (20 + i % 40);
    const size_t size = i < 2 ? 64 * i : (size_t)random_below(&random, BYTES + 1);
    const uint64_t wanted = plain_fingerprint(file, offset, bytes, size);
    load_fingerprint whole = {0}, pieces = {0};
    fingerprint_add(&whole, file, offset, bytes, size);
    CHECK_EQ_UINT(fingerprint_value(&whole), wanted);
    // the second half first
    const size_t half = size * (i % 7) / 7;
    fingerprint_add(&pieces, file, offset + half, bytes + half, size - half);
    fingerprint_add(&pieces, file, offset, bytes, half);
    CHECK_EQ_UINT(fingerprint_value(&pieces), wanted);
  }
}

// ---- any pieces, any order ----

static uint64_t sample_fingerprint(const memory_file *file, uint64_t unwanted) {
  loader *loader = open_loader(unwanted);
  CHECK_EQ_INT(feed(loader, 0, file, 0, file->size_bytes), WICK_OK);
  const uint64_t fingerprint = loader_fingerprint(loader);
  close_loader(loader);
  return fingerprint;
}

// Tensors with holes between the needed ones: 128 KiB and 1 MiB that are not needed, then 9 MiB
// that are needed.
static const sample_tensor BIG_TENSORS[] = {
    {"a", GGML_TYPE_F32, 1, {64}},        {"small hole", GGML_TYPE_I8, 1, {131072}},
    {"b", GGML_TYPE_F32, 1, {64}},        {"big hole", GGML_TYPE_I8, 1, {1048576}},
    {"c", GGML_TYPE_I8, 2, {1024, 9216}}, {"tail", GGML_TYPE_F32, 1, {64}}};

TEST(the_tensors_do_not_depend_on_the_chunk_size) {
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

// Whole rows are passed directly from the caller's buffer, with one call of place() per row.
TEST(whole_rows_are_placed_in_one_call) {
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

// A tensor of 9216 rows (9 MiB) and four tensors of one row.
TEST(a_piece_with_many_rows_splits_none) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = BIG_TENSORS, .tensor_count = 6, .seed = 3});
  loader *loader = open_loader(1 << 3);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_OK);
  CHECK_EQ_UINT(sink.places, 9216 + 4);
  close_loader(loader);
  file_free(&file);
}

// Bytes that are not needed do not count as gaps.
TEST(unneeded_bytes_may_arrive_in_any_pieces) {
  memory_file file =
      sample_make(&(sample_spec){.tensors = BIG_TENSORS, .tensor_count = 6, .seed = 3});
  const uint64_t end = directory_end(&file);
  for (int last = 0; last < 2; last++) {
    loader *loader = open_loader(last ? 31 : 62);  // only the last or first tensor is needed
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

// Divides [first, end) into random pieces and shuffles them.
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

TEST(the_tensors_do_not_depend_on_the_order_of_pieces) {
  enum { PIECES_MAX = 900, ROUNDS = 60 };
  static piece pieces[PIECES_MAX];
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  uint64_t state = 11;
  for (int round = 0; round < ROUNDS; round++) {
    // in some rounds not all tensors are needed
    const uint64_t unwanted = round % 3 == 0 ? random_below(&state, 128) : 0;
    const uint64_t fingerprint = sample_fingerprint(&file, unwanted);
    loader *loader = open_loader(unwanted);
    CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
    const uint64_t size_max = 1 + random_below(&state, 400);
    const size_t count = cut_at_random(end, file.size_bytes, size_max, pieces, PIECES_MAX, &state);
    for (size_t i = 0; i < count; i++) {
      piece *at = &pieces[i];
      // some overlap with earlier or later pieces
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

TEST(bytes_may_arrive_backwards) {
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

TEST(repeated_bytes_are_ignored) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_OK);
  const uint64_t fingerprint = loader_fingerprint(loader);
  const uint32_t places = sink.places;
  // even if they differ
  for (size_t i = 0; i < file.size_bytes; i++) file.bytes[i] ^= 0x55;
  CHECK_EQ_INT(feed_in_order(loader, &file, 0, 100), WICK_OK);
  for (size_t i = 0; i < file.size_bytes; i++) file.bytes[i] ^= 0x55;
  CHECK_EQ_UINT(sink.places, places);
  CHECK_EQ_UINT(loader_fingerprint(loader), fingerprint);
  check_loaded(loader, &file, "twice");
  close_loader(loader);
  file_free(&file);
}

// The four parts of a block arrive separately.
TEST(a_block_may_arrive_in_several_parts) {
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

static const sample_tensor LONG_TENSORS[] = {{"long", GGML_TYPE_Q8_0, 2, {64, 200}}};

TEST(too_many_gaps_are_rejected_and_can_be_filled) {
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
  CHECK_EQ_INT(feed(loader, 0, &file, data, data + 1), WICK_OK);  // closes a gap
  CHECK_EQ_INT(feed(loader, 0, &file, data + 2, data + 3), WICK_OK);
  CHECK_EQ_INT(feed(loader, 0, &file, odd - 2, odd - 1), WICK_OK);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "with gaps");
  close_loader(loader);
  file_free(&file);
}

TEST(adjacent_ranges_are_merged_and_can_be_queried) {
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

// The list allocates memory only when it is full; a failed allocation changes nothing.
TEST(ranges_allocate_only_when_their_list_is_full) {
  enum { COUNT = 20 };
  load_ranges ranges = {0};
  uint32_t refused = 0;
  memory_init(&memory, 0, platform_alloc, platform_free);
  for (uint64_t i = 0; i < COUNT; i++) {
    const uint64_t first = 10 * i, calls = memory.calls;
    const size_t count = ranges.count;
    const bool is_full = count == ranges.capacity;
    memory.fail_from_call = calls + 1;
    error = (wick_error){0};
    wick_status status = ranges_reserve(&ranges, &memory, first, first + 5, &error);
    CHECK_EQ_INT(status, is_full ? WICK_E_NOMEM : WICK_OK);
    CHECK_EQ_UINT(memory.calls, calls + is_full);
    CHECK_EQ_UINT(ranges.count, count);
    memory.fail_from_call = 0;
    if (status != WICK_OK) {
      CHECK_EQ_INT(error.status, WICK_E_NOMEM);
      CHECK(strstr(error.message, "the list of loaded ranges") != NULL);
      status = ranges_reserve(&ranges, &memory, first, first + 5, &error);
      refused++;
    }
    REQUIRE(status == WICK_OK && ranges.capacity > ranges.count);
    ranges_add(&ranges, first, first + 5);
    CHECK_EQ_UINT(ranges.count, i + 1);
  }
  CHECK(refused >= 2 && refused < COUNT / 2);
  memory_free(&memory, ranges.items);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// ---- requested ranges ----

TEST(the_requested_ranges_are_sufficient) {
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

TEST(requests_span_small_holes_and_are_limited_to_8_mib) {
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
  // several requests at the same time: the second range begins where the first ends
  loader_next_range_from(loader, 0, offset + length, &number, &offset, &length);
  CHECK_EQ_UINT(offset, c + 8 * 1024 * 1024);
  CHECK_EQ_UINT(length, 1024 * 1024 + 256);
  loader_next_range_from(loader, 0, offset + length, &number, &offset, &length);
  CHECK_EQ_UINT(length, 0);
  // bytes that have arrived are not requested again
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

TEST(progress_is_reported) {
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

TEST(every_needed_byte_affects_the_fingerprint) {
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
  // a metadata value: the name of the architecture
  file.bytes[24 + 8 + 20 + 4 + 8] ^= 1;
  CHECK(sample_fingerprint(&file, unwanted) != fingerprint);
  file_free(&file);
}

TEST(swapping_two_tensors_changes_the_fingerprint) {
  static const sample_tensor TWINS[] = {{"a", GGML_TYPE_F32, 1, {64}},
                                        {"b", GGML_TYPE_F32, 1, {64}}};
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

TEST(fingerprints_depend_on_file_and_offset) {
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
  // flip sign bits at the same position of two lines
  load_fingerprint plain = {{0}}, flipped = {{0}};
  fingerprint_add(&plain, 0, 0, bytes, sizeof bytes);
  bytes[3] ^= 0x80;
  bytes[67] ^= 0x80;
  fingerprint_add(&flipped, 0, 0, bytes, sizeof bytes);
  CHECK(fingerprint_value(&plain) != fingerprint_value(&flipped));
}

// ---- memory ----

// Loading in order needs no memory beyond the directory, the list of tensors, one range and one
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
