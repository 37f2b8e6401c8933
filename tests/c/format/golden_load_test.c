// Loads the reference models and vocabularies: the loaded tensors equal the file's bytes, however
// the file is split into pieces. Randomly mutated files never crash, hang, leak or produce wrong
// tensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "load_sink.h"
#include "platform/platform.h"
#include "random.h"
#include "shared_files.h"

enum { PIECES_MAX = 600, MUTATIONS = 40 };

static const char *const FOLDERS[] = {"vectors/reference/models", "vectors/reference/corrupt",
                                      "vectors/reference/split", "vectors/stories260K"};

// The state of loading one file.
typedef struct attempt {
  memory_gate memory;
  wick_error error;
  load_sink sink;
  loader *loader;
  wick_status status;
} attempt;

static void begin(attempt *made) {
  memset(made, 0, sizeof *made);
  memory_init(&made->memory, 0, platform_alloc, platform_free);
  const loader_sink calls = sink_calls(&made->sink);
  made->status = loader_create(&made->memory, &calls, false, &made->loader, &made->error);
  made->sink.loader = made->loader;
}

static void end(attempt *made) {
  loader_destroy(made->loader);
  sink_free(&made->sink);
  CHECK_EQ_UINT(made->memory.blocks_now, 0);
}

static void offer(attempt *made, const memory_file *file, uint64_t first, uint64_t size_bytes) {
  if (made->status != WICK_OK) return;
  if (size_bytes > file->size_bytes - first) size_bytes = file->size_bytes - first;
  made->status =
      loader_feed(made->loader, 0, first, file->bytes + first, (size_t)size_bytes, &made->error);
}

// Feeds the file in order, in pieces of random sizes up to `size_max`.
static void offer_in_order(attempt *made, const memory_file *file, uint64_t size_max,
                           uint64_t *state) {
  for (uint64_t at = 0; at < file->size_bytes && made->status == WICK_OK;) {
    const uint64_t size_bytes = 1 + random_below(state, size_max);
    offer(made, file, at, size_bytes);
    at += size_bytes;
  }
}

// Feeds the directory, then the rest in shuffled pieces.
static void offer_shuffled(attempt *made, const memory_file *file, uint64_t *state) {
  uint64_t pieces[PIECES_MAX];
  uint64_t first = 0;
  while (loader_directory(made->loader) == NULL && first < file->size_bytes &&
         made->status == WICK_OK) {
    offer(made, file, first, 1000);
    first += 1000;
  }
  const uint64_t piece_bytes = 1 + file->size_bytes / PIECES_MAX + random_below(state, 20000);
  size_t count = 0;
  for (uint64_t at = first; at < file->size_bytes; at += piece_bytes) pieces[count++] = at;
  for (size_t i = count; i > 1; i--) {
    const size_t other = (size_t)random_below(state, i);
    const uint64_t last = pieces[i - 1];
    pieces[i - 1] = pieces[other];
    pieces[other] = last;
  }
  for (size_t i = 0; i < count; i++) offer(made, file, pieces[i], piece_bytes);
}

// ---- unmodified files ----

static void check_whole_file(const memory_file *file, const char *name, uint64_t *state) {
  uint64_t fingerprints[4];
  for (int way = 0; way < 4; way++) {
    attempt made;
    begin(&made);
    if (way == 0) offer(&made, file, 0, file->size_bytes);
    if (way == 1) offer_in_order(&made, file, 3000, state);
    if (way == 2) offer_in_order(&made, file, 2 * file->size_bytes / 3, state);
    if (way == 3) offer_shuffled(&made, file, state);
    const char *wrong = made.status != WICK_OK ? made.error.message : sink_check(&made.sink, file);
    if (!CHECK_EQ_STR(wrong, NULL)) printf("#   %s, way %d\n", name, way);
    CHECK(loader_is_complete(made.loader));
    fingerprints[way] = loader_fingerprint(made.loader);
    CHECK_EQ_UINT(fingerprints[way], fingerprints[0]);
    end(&made);
  }
}

TEST(loaded_models_equal_their_files) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  if (check_shared("") == NULL) SKIP("no shared folder");
  uint64_t state = 1;
  const char *folders[] = {"vectors/reference/models", "vectors/stories260K"};
  for (size_t i = 0; i < 2; i++) {
    const size_t count = shared_list(folders[i], names);
    CHECK(count >= 3);
    for (size_t j = 0; j < count; j++) {
      memory_file file = shared_read(folders[i], names[j]);
      check_whole_file(&file, names[j], &state);
      file_free(&file);
    }
  }
}

// Vocabulary files contain no tensors, but have the largest directories.
TEST(vocabularies_can_be_read_in_pieces) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  if (check_shared("") == NULL) SKIP("no shared folder");
  const size_t count = shared_list("vectors/vocab", names);
  CHECK(count >= 10);
  uint64_t state = 2;
  for (size_t i = 0; i < count; i++) {
    memory_file file = shared_read("vectors/vocab", names[i]);
    attempt made;
    begin(&made);
    offer_in_order(&made, &file, 5000, &state);
    CHECK_EQ_STR(made.status == WICK_OK ? "" : made.error.message, "");
    CHECK(loader_is_complete(made.loader));
    CHECK_EQ_UINT(loader_tensor_count(made.loader), 0);
    CHECK_EQ_UINT(loader_bytes_placed(made.loader), file.size_bytes);
    CHECK(made.memory.bytes_now < file.size_bytes + 65536);
    end(&made);
    file_free(&file);
  }
}

static const char *const PARTS[] = {"llama-small-F16-00001-of-00003.gguf",
                                    "llama-small-F16-00002-of-00003.gguf",
                                    "llama-small-F16-00003-of-00003.gguf"};

TEST(the_split_model_equals_the_whole_model) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  memory_file whole = shared_read("vectors/reference/models", "llama-small-F16.gguf");
  memory_file parts[3];
  attempt of_parts, of_whole;
  begin(&of_parts);
  begin(&of_whole);
  for (int i = 0; i < 3; i++) parts[i] = shared_read("vectors/reference/split", PARTS[i]);
  offer(&of_whole, &whole, 0, whole.size_bytes);
  for (;;) {
    uint32_t number;
    uint64_t at, length;
    loader_next_range(of_parts.loader, &number, &at, &length);
    if (length == 0) break;
    if (length > parts[number].size_bytes - at) length = parts[number].size_bytes - at;
    CHECK_EQ_INT(loader_feed(of_parts.loader, number, at, parts[number].bytes + at, (size_t)length,
                             &of_parts.error),
                 WICK_OK);
  }
  CHECK_EQ_STR(sink_check(&of_parts.sink, parts), NULL);
  CHECK_EQ_UINT(loader_tensor_count(of_parts.loader), loader_tensor_count(of_whole.loader));
  for (size_t i = 0; i < loader_tensor_count(of_whole.loader); i++) {
    const gguf_tensor *tensor = loader_tensor_at(of_whole.loader, i);
    char name[GGUF_TENSOR_NAME_BYTES_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)tensor->name.size_bytes, tensor->name.bytes);
    const int32_t index = loader_find_tensor(of_parts.loader, name);
    REQUIRE(index >= 0);
    CHECK_EQ_MEM(of_parts.sink.tensors[index].bytes, of_whole.sink.tensors[i].bytes,
                 (size_t)tensor->size_bytes);
  }
  end(&of_parts);
  end(&of_whole);
  for (int i = 0; i < 3; i++) file_free(&parts[i]);
  file_free(&whole);
}

// ---- mutated files ----

// Changes some bytes, mostly in the directory, and sometimes truncates the file.
static void mutate(memory_file *file, uint64_t directory_bytes, uint64_t *state) {
  const uint64_t flips = 1 + random_below(state, 3);
  for (uint64_t i = 0; i < flips; i++) {
    const uint64_t bound = random_below(state, 8) == 0 ? file->size_bytes : directory_bytes;
    uint8_t *at = &file->bytes[random_below(state, bound)];
    switch (random_below(state, 4)) {
      case 0:
        *at ^= (uint8_t)(1u << random_below(state, 8));
        break;
      case 1:
        *at = (uint8_t)random_u64(state);
        break;
      case 2:
        *at = 0;
        break;
      default:
        *at = 0xff;
        break;
    }
  }
  if (random_below(state, 4) == 0) file->size_bytes = (size_t)random_below(state, file->size_bytes);
}

// Whether the file needs no tensor that is larger than itself: such tensors would exhaust the
// memory.
static bool is_small(const memory_file *file, uint64_t *directory_bytes) {
  memory_gate memory;
  wick_error error;
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_directory *directory = NULL;
  size_t used;
  uint64_t needed = 0;
  if (gguf_directory_create(&memory, &directory, &error) != WICK_OK) return false;
  const wick_status status =
      gguf_directory_feed(directory, file->bytes, file->size_bytes, &used, &error);
  *directory_bytes = used;
  if (status == WICK_OK && gguf_directory_is_complete(directory)) {
    for (size_t i = 0; i < gguf_tensor_count(directory); i++) {
      const uint64_t size_bytes = gguf_tensor_at(directory, i)->size_bytes;
      needed += size_bytes < file->size_bytes ? size_bytes : UINT32_MAX;
    }
  }
  gguf_directory_destroy(directory);
  return needed <= file->size_bytes;
}

// Checks that a mutated file gives tensors that equal its bytes, or an error with a message.
static void check_mutated(const memory_file *file, const char *name, uint64_t seed) {
  uint64_t state = seed, directory_bytes;
  attempt made;
  begin(&made);
  const bool knows_size = !is_small(file, &directory_bytes) || random_below(&state, 2) == 0;
  if (knows_size) made.status = loader_end(made.loader, 0, file->size_bytes, &made.error);
  offer_in_order(&made, file, 1 + random_below(&state, 100000), &state);
  if (made.status == WICK_OK && loader_files(made.loader) == 1) {
    made.status = loader_end(made.loader, 0, file->size_bytes, &made.error);
    if (made.status == WICK_OK) {
      const char *wrong = sink_check(&made.sink, file);
      if (!CHECK_EQ_STR(wrong, NULL)) printf("#   %s, seed %llu\n", name, (unsigned long long)seed);
      CHECK(loader_is_complete(made.loader));
    }
  }
  if (made.status != WICK_OK) {
    CHECK_EQ_INT(made.error.status, made.status);
    CHECK(strlen(made.error.message) > 8);
    CHECK(!loader_is_complete(made.loader));
  }
  CHECK_EQ_STR(made.sink.fault, NULL);
  end(&made);
}

TEST(mutated_files_give_valid_tensors_or_errors) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  if (check_shared("") == NULL) SKIP("no shared folder");
  uint64_t state = 4;
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    const size_t count = shared_list(FOLDERS[i], names);
    for (size_t j = 0; j < count; j++) {
      memory_file file = shared_read(FOLDERS[i], names[j]);
      uint64_t directory_bytes = 0;
      is_small(&file, &directory_bytes);
      uint8_t *original = malloc(file.size_bytes + 1);
      if (original == NULL) abort();
      memcpy(original, file.bytes, file.size_bytes);
      const size_t size_bytes = file.size_bytes;
      for (int k = 0; k < MUTATIONS && size_bytes > 0 && directory_bytes > 0; k++) {
        mutate(&file, directory_bytes, &state);
        check_mutated(&file, names[j], random_u64(&state));
        file.size_bytes = size_bytes;
        memcpy(file.bytes, original, size_bytes);
      }
      free(original);
      file_free(&file);
    }
  }
}
