// Fuzzes the loader with any order of feeding. Input: a byte that chooses the files (a model, a
// split model, or the rest of the input), a byte for the allocation that fails (0: none), a byte
// for which tensors are wanted, then for the first two kinds commands of 5 bytes (file, offset,
// length), for the third a seed and the file. Asserts that, whatever was fed before, feeding the
// requested bytes gives the tensors of the files, with each block placed once and the same
// fingerprint as in one piece, and that nothing leaks.
#include <string.h>

#include "../c/support/load_sink.h"
#include "../c/support/random.h"
#include "platform/platform.h"

#define REQUIRE(condition)              \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (0)

enum { PARTS = 2, ORDER_BYTES = 5, OWN_HEADER_BYTES = 1, STEPS_MAX = 200 };

typedef struct fuzz_models {
  memory_file one;
  memory_file parts[PARTS];
} fuzz_models;

static const fuzz_models *models(void) {
  static fuzz_models made;
  if (made.one.bytes != NULL) return &made;
  made.one = sample_model();
  for (uint32_t i = 0; i < PARTS; i++) {
    const sample_spec spec = {.tensors = SAMPLE_TENSORS + 3 * i,
                              .tensor_count = i == 0 ? 3 : SAMPLE_TENSOR_COUNT - 3,
                              .file = i,
                              .files = PARTS,
                              .all_tensors = (uint32_t)SAMPLE_TENSOR_COUNT,
                              .seed = 5 + i};
    made.parts[i] = sample_make(&spec);
  }
  return &made;
}

typedef struct loading {
  memory_gate memory;
  wick_error error;
  load_sink sink;
  loader *loader;
} loading;

static wick_status begin(loading *run, uint64_t unwanted, uint64_t fail_at_call) {
  *run = (struct loading){.sink = {.unwanted = unwanted}};
  memory_init(&run->memory, 0, platform_alloc, platform_free);
  run->memory.fail_at_call = fail_at_call;
  const loader_sink calls = sink_calls(&run->sink);
  const wick_status status = loader_create(&run->memory, &calls, false, &run->loader, &run->error);
  run->sink.loader = run->loader;
  return status;
}

static void end(loading *run) {
  REQUIRE(run->sink.fault == NULL);
  loader_destroy(run->loader);
  sink_free(&run->sink);
  REQUIRE(run->memory.blocks_now == 0);
}

static wick_status offer(loading *run, uint32_t number, const memory_file *file, uint64_t first,
                         uint64_t size_bytes) {
  if (first > file->size_bytes) first = file->size_bytes;
  if (size_bytes > file->size_bytes - first) size_bytes = file->size_bytes - first;
  return loader_feed(run->loader, number, first, file->bytes + first, (size_t)size_bytes,
                     &run->error);
}

static wick_status offer_as_asked(loading *run, const memory_file *files) {
  uint64_t placed = UINT64_MAX;
  for (;;) {
    uint32_t number;
    uint64_t first, length;
    loader_next_range(run->loader, &number, &first, &length);
    if (length == 0) return WICK_OK;
    REQUIRE(first < files[number].size_bytes);
    REQUIRE(loader_bytes_placed(run->loader) != placed);  // each step makes progress
    placed = loader_bytes_placed(run->loader);
    const wick_status status = offer(run, number, &files[number], first, length);
    if (status != WICK_OK) return status;
  }
}

static uint64_t fingerprint_of(const memory_file *files, uint64_t unwanted) {
  loading run;
  REQUIRE(begin(&run, unwanted, 0) == WICK_OK);
  REQUIRE(offer_as_asked(&run, files) == WICK_OK);
  const uint64_t fingerprint = loader_fingerprint(run.loader);
  end(&run);
  return fingerprint;
}

// Feeding the requested bytes recovers from wrong orders and failing allocations, except for an
// allocation failure while a directory is read.
static void run_orders(const memory_file *files, uint32_t file_count, uint64_t unwanted,
                       uint64_t fail_at_call, const uint8_t *orders, size_t size_bytes) {
  loading run;
  wick_status status = begin(&run, unwanted, fail_at_call);
  for (size_t step = 0; step < STEPS_MAX && size_bytes >= ORDER_BYTES && status == WICK_OK;
       step++) {
    const uint32_t number = orders[0] % (file_count + 1);
    const uint64_t first = (uint64_t)orders[1] | (uint64_t)orders[2] << 8;
    const uint64_t length = (uint64_t)orders[3] | (uint64_t)(orders[4] & 31) << 8;
    const memory_file *file = &files[number < file_count ? number : 0];
    status = offer(&run, number, file, first % (file->size_bytes + 1), length);
    if (status == WICK_E_ARG || status == WICK_E_FULL) status = WICK_OK;
    orders += ORDER_BYTES;
    size_bytes -= ORDER_BYTES;
  }
  if (status == WICK_OK) status = offer_as_asked(&run, files);
  if (status == WICK_OK) {
    REQUIRE(loader_is_complete(run.loader));
    REQUIRE(sink_check(&run.sink, files) == NULL);
    REQUIRE(loader_bytes_placed(run.loader) == loader_bytes_wanted(run.loader));
    REQUIRE(loader_fingerprint(run.loader) == fingerprint_of(files, unwanted));
  } else {
    REQUIRE(status == WICK_E_NOMEM && fail_at_call != 0);
  }
  end(&run);
}

// Feeds a file from the input in sequential pieces; its size is known from the start, so that no
// larger tensors are allocated.
static void run_own(const uint8_t *data, size_t size_bytes, uint64_t unwanted,
                    uint64_t fail_at_call) {
  uint64_t state = data[0];
  memory_file file = {0};
  file_write(&file, data + OWN_HEADER_BYTES, size_bytes - OWN_HEADER_BYTES);
  loading run;
  wick_status status = begin(&run, unwanted, fail_at_call);
  if (status == WICK_OK) status = loader_end(run.loader, 0, file.size_bytes, &run.error);
  for (uint64_t at = 0; at < file.size_bytes && status == WICK_OK;) {
    const uint64_t length = 1 + random_below(&state, 300);
    status = offer(&run, 0, &file, at, length);
    at += length;
  }
  if (status == WICK_OK && loader_files(run.loader) == 1) {
    REQUIRE(loader_is_complete(run.loader));
    REQUIRE(sink_check(&run.sink, &file) == NULL);
  }
  if (status != WICK_OK) REQUIRE(run.error.status == status);
  end(&run);
  file_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes < 3 + OWN_HEADER_BYTES) return 0;
  const uint64_t fail_at_call = data[1], unwanted = data[2];
  const uint8_t kind = data[0] % 3;
  data += 3;
  size_bytes -= 3;
  if (kind == 0) run_orders(&models()->one, 1, unwanted, fail_at_call, data, size_bytes);
  if (kind == 1) run_orders(models()->parts, PARTS, unwanted, fail_at_call, data, size_bytes);
  if (kind == 2) run_own(data, size_bytes, unwanted, fail_at_call);
  return 0;
}
