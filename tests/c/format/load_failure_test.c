// Failures of the loader: split models with missing or wrong files, truncated files, wrong calls,
// and failing sinks and allocations.
#include "load_rig.h"

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

TEST(a_split_model_is_loaded_as_one_model) {
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

  // feed the other directories in a different order, and all data backwards
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

TEST(parts_that_do_not_fit_are_rejected) {
  memory_file files[PARTS], wrong[PARTS];
  make_parts(files);
  memcpy(wrong, files, sizeof files);
  wrong[1] = files[2];
  check_split_refusal(wrong, WICK_E_FORMAT,
                      "file 2 of 3: key 'split.no' is wrong: the file claims to be 3 of 3");
  wrong[0] = files[1];
  check_split_refusal(wrong, WICK_E_FORMAT, "this is file 2 of 3 of a split model");

  memcpy(wrong, files, sizeof files);
  sample_spec spec = part_spec(2);
  spec.files = 4;
  wrong[2] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT,
                      "file 3 of 3: key 'split.count' is wrong: the file claims to be 3 of 4");
  file_free(&wrong[2]);

  spec.files = 3;
  spec.tensors = SAMPLE_TENSORS + 1;
  wrong[2] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT,
                      "file 3 of 3: tensor 'blk.0.attn_norm.weight' is also in file 1");
  file_free(&wrong[2]);

  wrong[2] = files[2];
  spec = part_spec(0);
  spec.all_tensors = 8;
  wrong[0] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT,
                      "'split.tensors.count' is 8, but the 3 files have 7 tensors");
  file_free(&wrong[0]);

  spec = part_spec(0);
  spec.files = LOADER_FILES_MAX + 1;
  wrong[0] = sample_make(&spec);
  check_split_refusal(wrong, WICK_E_FORMAT, "'split.count' is 1025");
  file_free(&wrong[0]);
  free_parts(files);
}

TEST(the_loader_requests_up_to_the_maximum_number_of_parts) {
  sample_spec spec = part_spec(0);
  spec.files = LOADER_FILES_MAX;
  memory_file first = sample_make(&spec);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &first, 0, first.size_bytes), WICK_OK);
  CHECK_EQ_UINT(loader_files(loader), 1024);
  uint32_t number;
  uint64_t offset, length;
  loader_next_range(loader, &number, &offset, &length);
  CHECK(number != 0 && length != 0);
  CHECK_EQ_INT(loader_end(loader, 1023, 0, &error), WICK_E_TRUNCATED);
  CHECK_EQ_STR(error.message, "file 1024 of 1024: the file is empty");
  close_loader(loader);
  file_free(&first);
}

TEST(a_missing_part_is_reported) {
  memory_file files[PARTS];
  make_parts(files);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &files[0], 0, files[0].size_bytes), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 1, 0, &error), WICK_E_TRUNCATED);
  CHECK_EQ_STR(error.message, "file 2 of 3: the file is empty");
  close_loader(loader);
  free_parts(files);
}

// ---- truncation ----

TEST(a_truncated_file_is_reported_when_its_size_is_known) {
  memory_file file = sample_model();
  const uint64_t directory_bytes = directory_end(&file);
  const gguf_tensor *last = NULL;
  for (uint64_t size = 0; size <= file.size_bytes; size++) {
    loader *loader = open_loader(0);
    wick_status status = loader_end(loader, 0, size, &error);
    // the directory is enough to detect it
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

TEST(the_size_may_be_set_after_data_has_arrived) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes - 100), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 0, file.size_bytes, &error), WICK_OK);
  CHECK_EQ_INT(loader_end(loader, 0, file.size_bytes - 100, &error), WICK_E_TRUNCATED);
  CHECK(strstr(error.message, "'output.weight'") != NULL);
  // the error is final
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

TEST(loading_only_the_directory_needs_no_tensors) {
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

TEST(a_file_without_tensors_is_complete_after_its_directory) {
  memory_file file = sample_make(&(sample_spec){.tensor_count = 0});
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "no tensors");
  close_loader(loader);
  file_free(&file);
}

// ---- wrong calls and failures ----

TEST(wrong_calls_change_nothing) {
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
  // belongs to no tensor
  CHECK_EQ_INT(loader_feed(loader, 0, INT64_MAX - 2, "xy", 2, &error), WICK_OK);
  check_loaded(loader, &file, "after mistakes");
  close_loader(loader);
  file_free(&file);
}

TEST(a_failing_sink_ends_the_load) {
  memory_file file = sample_model();
  loader *loader = open_loader(0);
  sink.fail_directory = true;
  CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(error.message, "the model rejects the directory");
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
    if (k > 31) continue;  // this is the number of blocks if no piece splits a row
    // it fails in the call that delivers the block, not in a later one
    loader = open_loader(0);
    sink.fail_at_place = k;
    CHECK_EQ_INT(feed(loader, 0, &file, 0, file.size_bytes), WICK_E_NONFINITE);
    CHECK_EQ_STR(error.message, "these blocks are bad");
    CHECK_EQ_UINT(sink.places, k);
    close_loader(loader);
  }
  file_free(&file);
}

TEST(an_invalid_directory_ends_the_load) {
  memory_file file = sample_model();
  file.bytes[0] = 'g';
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_E_FORMAT);
  CHECK_EQ_STR(error.message, "not a GGUF file: it begins with 'gGUF'");
  CHECK_EQ_INT(loader_end(loader, 0, 0, &error), WICK_E_FORMAT);
  close_loader(loader);
  file_free(&file);
}

// Feeds the first half of the data in order and the other half backwards in pieces of 13 bytes, so
// that every list of the loader grows.
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

TEST(failing_allocations_leak_nothing) {
  memory_file file = sample_model();
  uint64_t failed = 0;
  for (uint64_t k = 1;; k++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    sink = (load_sink){0};
    const loader_sink calls = sink_calls(&sink);
    loader *loader = NULL;
    error = (wick_error){0};
    wick_status status = loader_create(&memory, &calls, false, &loader, &error);
    sink.loader = loader;
    if (status == WICK_OK) status = load_crosswise(loader, &file);
    if (status == WICK_OK) check_loaded(loader, &file, "crosswise");
    close_loader(loader);
    CHECK_EQ_INT(status, memory.calls < k ? WICK_OK : WICK_E_NOMEM);
    if (status == WICK_OK) break;
    CHECK_EQ_INT(error.status, WICK_E_NOMEM);
    CHECK(strstr(error.message, "out of memory: ") != NULL);
    failed++;
  }
  CHECK(failed >= 12);
  file_free(&file);
}

// If memory runs out while data arrives, feeding the same data again must succeed.
TEST(data_can_be_fed_again_after_running_out_of_memory) {
  memory_file file = sample_model();
  const uint64_t end = directory_end(&file);
  loader *loader = open_loader(0);
  CHECK_EQ_INT(feed(loader, 0, &file, 0, end), WICK_OK);
  const uint64_t middle = gguf_data_offset(loader_directory(loader)) + 10;
  for (uint64_t k = 1; k <= 2; k++) {
    memory.fail_at_call = memory.calls + k;
    error = (wick_error){0};
    CHECK_EQ_INT(feed(loader, 0, &file, middle, middle + 7), WICK_E_NOMEM);
    CHECK_EQ_INT(error.status, WICK_E_NOMEM);
    CHECK(strstr(error.message, k == 1 ? "the list of loaded ranges" : "partly loaded blocks") !=
          NULL);
  }
  memory.fail_at_call = 0;
  CHECK_EQ_INT(feed(loader, 0, &file, middle, middle + 7), WICK_OK);
  CHECK_EQ_INT(feed_as_asked(loader, &file), WICK_OK);
  check_loaded(loader, &file, "after a refusal");
  close_loader(loader);
  file_free(&file);
}

TEST(failing_allocations_of_a_split_model_leak_nothing) {
  memory_file files[PARTS];
  make_parts(files);
  for (uint64_t k = 1;; k++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = k;
    sink = (load_sink){0};
    const loader_sink calls = sink_calls(&sink);
    loader *loader = NULL;
    error = (wick_error){0};
    wick_status status = loader_create(&memory, &calls, false, &loader, &error);
    sink.loader = loader;
    if (status == WICK_OK) status = feed_as_asked(loader, files);
    close_loader(loader);
    CHECK_EQ_INT(status, memory.calls < k ? WICK_OK : WICK_E_NOMEM);
    if (status == WICK_OK) break;
    CHECK_EQ_INT(error.status, WICK_E_NOMEM);
    CHECK(strstr(error.message, "out of memory: ") != NULL);
  }
  free_parts(files);
}
