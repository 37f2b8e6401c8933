// Images and audio through wick.h: the cases of vectors/vision from pixels and samples to logits
// and tokens, the cache of encoded items, and rejected input.
#include <stdio.h>

#include "api/media_strips.h"
#include "media_engines.h"
#include "random.h"

enum { ITEMS_MAX = 8, TEXT_BYTES_MAX = 4096 };

static const char MARKER[] = "<media-7f3a>";

// ---- a case ----

typedef struct question {
  char text[TEXT_BYTES_MAX];
  size_t text_bytes;
  uint32_t media[ITEMS_MAX];
  uint32_t count;
} question;

static void put(question *to, const char *bytes, size_t size_bytes) {
  if (!CHECK(to->text_bytes + size_bytes <= TEXT_BYTES_MAX)) return;
  memcpy(to->text + to->text_bytes, bytes, size_bytes);
  to->text_bytes += size_bytes;
}

static void add_audio(wick_engine *engine, const uint8_t *bytes, size_t size_bytes, uint32_t repeat,
                      uint32_t *media) {
  wick_error error = {0};
  uint8_t *all = malloc(size_bytes * repeat + 1);
  for (uint32_t i = 0; i < repeat; i++) memcpy(all + i * size_bytes, bytes, size_bytes);
  CHECK_EQ_INT(wick_media_add_audio(engine, (const float *)(const void *)all,
                                    size_bytes * repeat / sizeof(float), media, &error),
               WICK_OK);
  CHECK_EQ_STR(error.message, "");
  free(all);
}

static void add_part(wick_engine *engine, const vectors *v, uint32_t part, question *to) {
  const document_text text = vectors_text(v, part, "text");
  const document_text image = vectors_text(v, part, "image");
  const document_text audio = vectors_text(v, part, "audio");
  wick_error error = {0};
  if (document_find(&v->document, part, "text") != 0) {
    put(to, (const char *)text.bytes, text.size_bytes);
    return;
  }
  size_t size_bytes;
  uint8_t *bytes = media_read_file(image.size_bytes != 0 ? image : audio, &size_bytes);
  uint32_t *media = &to->media[to->count++];
  if (image.size_bytes != 0) {
    const uint32_t width = (uint32_t)vectors_member_number(v, part, "width");
    const uint32_t height = (uint32_t)vectors_member_number(v, part, "height");
    CHECK_EQ_INT(wick_media_add_image(engine, bytes, width, height, media, &error), WICK_OK);
    CHECK_EQ_STR(error.message, "");
  } else {
    const uint32_t repeat = (uint32_t)vectors_member_number(v, part, "repeat");
    add_audio(engine, bytes, size_bytes, repeat == 0 ? 1 : repeat, media);
  }
  free(bytes);
  put(to, MARKER, sizeof MARKER - 1);
}

static question read_question(wick_engine *engine, const vectors *v, uint32_t node) {
  question asked = {.count = 0};
  const uint32_t parts = document_find(&v->document, node, "parts");
  for (uint32_t at = vectors_node(v, parts)->first; at != 0; at = vectors_node(v, at)->next) {
    add_part(engine, v, at, &asked);
  }
  return asked;
}

static void encode_all(wick_engine *engine, const question *asked) {
  for (uint32_t i = 0; i < asked->count; i++) media_encode(engine, asked->media[i]);
}

static wick_status tokenize(wick_engine *engine, const question *asked, wick_request *request,
                            wick_error *error) {
  const wick_media_prompt prompt = {.text = asked->text,
                                    .text_bytes = asked->text_bytes,
                                    .marker = MARKER,
                                    .marker_bytes = sizeof MARKER - 1,
                                    .media = asked->media,
                                    .media_count = asked->count};
  return wick_media_tokenize(engine, &prompt, &request->tokens, &request->token_count, error);
}

static media_result ask(wick_engine *engine, const question *asked, bool with_logits) {
  media_result result = {0};
  uint32_t id = 0;
  wick_request request = media_request(MEDIA_SAID_MAX);
  if (with_logits) {
    request.on_logits = media_take_logits;
    request.on_logits_context = &result;
  }
  wick_status status = tokenize(engine, asked, &request, &result.error);
  if (status == WICK_OK) status = wick_request_submit(engine, &request, &id, &result.error);
  if (status == WICK_OK) media_steps(engine, id, &result);
  return result;
}

static void check_logits(const vectors *v, uint32_t node, const media_result *result,
                         const char *label) {
  size_t size_bytes;
  const uint32_t logits = document_find(&v->document, node, "logits");
  float *wanted = (float *)(void *)media_read_file(vectors_text(v, logits, "file"), &size_bytes);
  const size_t values = (size_t)result->logits_count * result->vocab;
  const double noise = 100 * vectors_member_number(v, logits, "moved_by_1e6_noise");
  double worst = 0;
  if (CHECK_EQ_UINT(values * sizeof(float), size_bytes)) {
    for (size_t i = 0; i < values; i++) {
      const double off = (double)wanted[i] - (double)result->logits[i];
      if (!(off < worst && off > -worst)) worst = off < 0 ? -off : off;
    }
  }
  if (!CHECK_NEAR(worst, 0, noise > 5e-4 ? noise : 5e-4)) printf("#   in %s\n", label);
  free(wanted);
}

static void check_greedy(const vectors *v, uint32_t node, const media_result *result) {
  const uint32_t greedy = document_find(&v->document, node, "greedy");
  uint32_t at = vectors_node(v, greedy)->first;
  for (uint32_t i = 0; at != 0; at = vectors_node(v, at)->next) {
    CHECK_EQ_INT(result->said[i++], (int32_t)vectors_number(v, at));
  }
  CHECK_EQ_UINT(result->said_count, vectors_node(v, greedy)->count);
}

// Whether all items of the question are already encoded, by an earlier case.
static bool is_encoded(wick_engine *engine, const question *asked) {
  wick_media_info info = {.is_ready = true};
  for (uint32_t i = 0; i < asked->count && info.is_ready; i++) {
    wick_media_get_info(engine, asked->media[i], &info, NULL);
  }
  return info.is_ready;
}

// Runs a case and checks that the token count is known before anything is encoded.
static void check_case(wick_engine *engine, const vectors *v, uint32_t node, const char *label) {
  const question asked = read_question(engine, v, node);
  wick_request request = media_request(1);
  wick_error error = {0};
  uint32_t id;
  size_t rows = 0, tokens = 0;
  const uint32_t chunks = document_find(&v->document, node, "chunks");
  for (uint32_t at = vectors_node(v, chunks)->first; at != 0; at = vectors_node(v, at)->next) {
    const uint32_t list = document_find(&v->document, at, "tokens");
    rows += (size_t)vectors_member_number(v, at, "n_tokens");
    tokens += list == 0 ? 0 : vectors_node(v, list)->count;
  }
  CHECK_EQ_INT(tokenize(engine, &asked, &request, &error), WICK_OK);
  CHECK_EQ_STR(error.message, "");
  CHECK_EQ_UINT(request.token_count, rows + tokens);
  if (!is_encoded(engine, &asked)) {
    CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_ARG);
  }
  encode_all(engine, &asked);
  media_result result = ask(engine, &asked, true);
  CHECK_EQ_STR(result.error.message, "");
  check_logits(v, node, &result, label);
  check_greedy(v, node, &result);
  free(result.logits);
  for (uint32_t i = 0; i < asked.count; i++) {
    CHECK_EQ_INT(wick_media_remove(engine, asked.media[i]), WICK_OK);
  }
}

static void check_type(const vectors *v, uint32_t type) {
  const document_text name = vectors_text(v, type, "id");
  const uint32_t cases = document_find(&v->document, type, "cases");
  wick_engine *engine = media_open_type(v, type);
  if (engine == NULL) return;
  for (uint32_t at = vectors_node(v, cases)->first; at != 0; at = vectors_node(v, at)->next) {
    const document_text id = vectors_text(v, at, "id");
    char label[64];
    text_format(label, sizeof label, "%.*s %.*s", (int)name.size_bytes, name.bytes,
                (int)id.size_bytes, id.bytes);
    check_case(engine, v, at, label);
  }
  wick_engine_destroy(engine);
}

TEST(pixels_and_samples_give_the_reference_logits_and_tokens) {
  vectors v;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (vectors_open(&v, "vectors/vision/manifest.json")) {
    const uint32_t types = document_find(&v.document, 1, "types");
    uint32_t at = vectors_node(&v, types)->first;
    for (; at != 0; at = vectors_node(&v, at)->next) check_type(&v, at);
  }
  vectors_close(&v);
}

// ---- the first type: idefics3 ----

typedef struct first_case {
  vectors v;
  uint32_t node;
  wick_engine *engine;
} first_case;

static bool open_first(first_case *first) {
  if (!vectors_open(&first->v, "vectors/vision/manifest.json")) return false;
  const vectors *v = &first->v;
  const uint32_t type = vectors_node(v, document_find(&v->document, 1, "types"))->first;
  first->node = vectors_node(v, document_find(&v->document, type, "cases"))->first;
  first->engine = media_open_type(v, type);
  return first->engine != NULL;
}

static void close_first(first_case *first) {
  wick_engine_destroy(first->engine);
  vectors_close(&first->v);
}

TEST(a_removed_image_is_not_encoded_again_when_it_is_added) {
  first_case first;
  wick_media_info info = {0};
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  const question asked = read_question(first.engine, &first.v, first.node);
  CHECK_EQ_INT(wick_media_get_info(first.engine, asked.media[0], &info, NULL), WICK_OK);
  CHECK(!info.is_ready && info.macs > 0 && info.rows < info.tokens);
  encode_all(first.engine, &asked);
  wick_media_remove(first.engine, asked.media[0]);
  const question again = read_question(first.engine, &first.v, first.node);
  CHECK_EQ_UINT(again.media[0], asked.media[0]);
  wick_media_get_info(first.engine, again.media[0], &info, NULL);
  CHECK(info.is_ready);
  // a second question about it takes the prefix from the cache
  ask(first.engine, &again, false);
  const media_result result = ask(first.engine, &again, false);
  CHECK(result.cached >= info.rows);
  close_first(&first);
}

TEST(removed_images_beyond_the_budget_are_dropped) {
  first_case first;
  wick_media_info info = {0};
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  const question asked = read_question(first.engine, &first.v, first.node);
  encode_all(first.engine, &asked);
  wick_media_get_info(first.engine, asked.media[0], &info, NULL);
  first.engine->config.media_bytes_max = info.rows_bytes - 1;
  // the request keeps the rows alive
  uint32_t id = 0;
  wick_request request = media_request(MEDIA_SAID_MAX);
  media_result result = {0};
  CHECK_EQ_INT(tokenize(first.engine, &asked, &request, NULL), WICK_OK);
  CHECK_EQ_INT(wick_request_submit(first.engine, &request, &id, NULL), WICK_OK);
  CHECK_EQ_INT(wick_media_remove(first.engine, asked.media[0]), WICK_OK);
  CHECK_EQ_INT(wick_media_get_info(first.engine, asked.media[0], &info, NULL), WICK_E_ARG);
  media_steps(first.engine, id, &result);
  check_greedy(&first.v, first.node, &result);
  close_first(&first);
}

TEST(media_that_cannot_be_encoded_is_rejected_with_a_reason) {
  first_case first;
  wick_error error = {0};
  wick_media_info info;
  uint32_t media;
  const float sample = 0;
  const uint8_t pixel[3] = {0};
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  wick_engine *engine = first.engine;
  CHECK(wick_media_has(engine, WICK_MEDIA_IMAGE) && !wick_media_has(engine, WICK_MEDIA_AUDIO));
  CHECK_EQ_INT(wick_media_add_audio(engine, &sample, 1, &media, &error), WICK_E_NODATA);
  CHECK_EQ_STR(error.message, "audio: the mmproj file has no encoder for audio");
  CHECK_EQ_INT(wick_media_add_image(engine, pixel, 0, 1, &media, &error), WICK_E_ARG);
  CHECK_EQ_INT(wick_media_plan_image(engine, 1u << 30, 1, &info, &error), WICK_E_ARG);
  CHECK_EQ_INT(wick_media_plan_image(engine, 640, 480, &info, &error), WICK_OK);
  CHECK(info.tokens > info.rows && info.rows > 0 && !info.is_ready);
  question asked = read_question(engine, &first.v, first.node);
  put(&asked, MARKER, sizeof MARKER - 1);
  wick_request request = media_request(1);
  CHECK_EQ_INT(tokenize(engine, &asked, &request, &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, "prompt: 2 markers for 1 images and recordings");
  CHECK_EQ_INT(wick_media_load_bytes(engine, "GGUF", 4, &error), WICK_E_BUSY);
  close_first(&first);
}

TEST(broken_mmproj_files_leave_the_engine_without_encoders) {
  first_case first;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  const vectors *v = &first.v;
  const uint32_t refuse = document_find(&v->document, 1, "refuse");
  uint32_t refused = 0;
  for (uint32_t at = vectors_node(v, refuse)->first; at != 0; at = vectors_node(v, at)->next) {
    size_t size_bytes;
    wick_error error = {0};
    if (first.engine->media != NULL) first.engine->media->close(first.engine);
    const uint64_t blocks = first.engine->memory.blocks_now;
    uint8_t *bytes = media_read_file(vectors_text(v, at, "file"), &size_bytes);
    const wick_status status = wick_media_load_bytes(first.engine, bytes, size_bytes, &error);
    free(bytes);
    if (text_is(vectors_text(v, at, "expect"), "accept")) {
      CHECK_EQ_INT(status, WICK_OK);
      continue;
    }
    refused++;
    CHECK(status != WICK_OK && error.message[0] != '\0');
    CHECK(first.engine->media == NULL);
    CHECK_EQ_UINT(first.engine->memory.blocks_now, blocks);
  }
  CHECK_EQ_UINT(refused, 20);
  close_first(&first);
}

// Loads, adds, encodes, tokenizes and submits; stops at the first failure.
static wick_status do_all(first_case *first, const uint8_t *mmproj, size_t mmproj_bytes,
                          const uint8_t *rgb, uint32_t width, uint32_t height, wick_error *error) {
  wick_engine *engine = first->engine;
  question asked = {.count = 1};
  bool is_ready = false;
  uint32_t id = 0;
  wick_request request = media_request(1);
  put(&asked, MARKER, sizeof MARKER - 1);
  wick_status status = wick_media_load_bytes(engine, mmproj, mmproj_bytes, error);
  if (status == WICK_OK) {
    status = wick_media_add_image(engine, rgb, width, height, &asked.media[0], error);
  }
  while (status == WICK_OK && !is_ready) {
    status = wick_media_step(engine, asked.media[0], 0, &is_ready, error);
  }
  if (status == WICK_OK) status = tokenize(engine, &asked, &request, error);
  if (status == WICK_OK) status = wick_request_submit(engine, &request, &id, error);
  media_result result = {0};
  if (status == WICK_OK) media_steps(engine, id, &result);
  return status;
}

// ---- memory ----

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// The peaks of loading and encoding equal the plan made before any weights were read.
static void check_memory(const vectors *v, uint32_t type) {
  wick_media_memory plan;
  wick_error error = {0};
  wick_engine *engine = media_open_text(v, type);
  if (engine == NULL) return;
  const uint64_t before = engine->memory.bytes_now;
  if (!CHECK_EQ_INT(media_load(engine, v, type, &error), WICK_OK)) return;
  REQUIRE(wick_media_get_memory(engine, &plan, &error) == WICK_OK);
  const uint64_t held = engine->memory.bytes_now - before;
  CHECK_NEAR((double)plan.weights_bytes, (double)held, 0.02 * (double)held + 4096);
  CHECK_EQ_UINT(plan.total_bytes, plan.weights_bytes + plan.cache_bytes +
                                      larger(plan.prepare_bytes, plan.encode_bytes));
  const uint32_t cases = document_find(&v->document, type, "cases");
  for (uint32_t at = vectors_node(v, cases)->first; at != 0; at = vectors_node(v, at)->next) {
    engine->memory.bytes_peak = engine->memory.bytes_now;
    const uint64_t base = before + held;
    const question asked = read_question(engine, v, at);
    CHECK(engine->memory.bytes_peak - base <=
          larger(plan.prepare_bytes, plan.encode_bytes) + 16384 * asked.count);
    encode_all(engine, &asked);
    CHECK(asked.count > 1 ||
          engine->memory.bytes_peak - base <= plan.encode_bytes + plan.cache_bytes);
    for (uint32_t i = 0; i < asked.count; i++) wick_media_remove(engine, asked.media[i]);
  }
  wick_engine_destroy(engine);
}

// Adds a black image in strips. Returns the number of steps for resizing and encoding it.
static uint32_t count_slices(wick_engine *engine, uint32_t side, uint32_t *media) {
  enum { STRIP = 7 };
  wick_error error = {0};
  uint32_t slices = 0;
  bool is_ready = false;
  uint8_t *rgb = calloc((size_t)side * STRIP, 3);
  CHECK_EQ_INT(engine_media_begin_image(engine, side, side, media, &error), WICK_OK);
  CHECK_EQ_INT(wick_media_step(engine, *media, 0, &is_ready, &error), WICK_E_NODATA);
  for (uint32_t row = 0; row < side; row += STRIP) {
    const uint32_t rows = side - row < STRIP ? side - row : STRIP;
    CHECK_EQ_INT(engine_media_feed_image(engine, *media, rgb, rows, &error), WICK_OK);
  }
  CHECK_EQ_INT(engine_media_feed_image(engine, *media, rgb, 1, &error), WICK_E_ARG);
  free(rgb);
  while (!is_ready &&
         CHECK_EQ_INT(wick_media_step(engine, *media, 0, &is_ready, &error), WICK_OK)) {
    slices++;
  }
  return slices;
}

// Other requests wait for at most one strip and one step.
TEST(a_large_image_is_resized_in_parts_with_identical_rows) {
  enum { SIDE = 3000 };
  first_case first;
  wick_media_info info = {0};
  wick_error error = {0};
  uint32_t small, large, whole;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  wick_engine *engine = first.engine;
  uint8_t *rgb = calloc((size_t)SIDE * SIDE, 3);
  CHECK_EQ_INT(wick_media_plan_image(engine, SIDE, SIDE, &info, &error), WICK_OK);
  const uint64_t before = engine->memory.bytes_now;
  engine->memory.bytes_peak = before;
  count_slices(engine, 64, &small);
  count_slices(engine, SIDE, &large);
  CHECK(engine->memory.bytes_peak - before < (uint64_t)SIDE * SIDE * 3);
  // content that is still cached is not encoded again
  CHECK_EQ_INT(wick_media_add_image(engine, rgb, SIDE, SIDE, &whole, &error), WICK_OK);
  CHECK_EQ_UINT(whole, large);
  uint32_t again;
  CHECK_EQ_UINT(count_slices(engine, SIDE, &again), 1);
  CHECK(again != large);
  free(rgb);
  close_first(&first);
}

TEST(the_memory_plan_matches_the_peaks_of_all_types) {
  vectors v;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!vectors_open(&v, "vectors/vision/manifest.json")) return;
  const uint32_t types = document_find(&v.document, 1, "types");
  uint32_t number = 0;
  for (uint32_t at = vectors_node(&v, types)->first; at != 0; at = vectors_node(&v, at)->next) {
    if (number++ % level_step(3) == 0) check_memory(&v, at);
  }
  vectors_close(&v);
}

// Encoding the largest image takes as much memory as planned, not less.
TEST(the_largest_image_takes_the_planned_memory) {
  enum { SIDE = 2048 };
  first_case first;
  wick_media_memory plan;
  wick_error error = {0};
  uint32_t media;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  wick_engine *engine = first.engine;
  REQUIRE(wick_media_get_memory(engine, &plan, &error) == WICK_OK);
  uint8_t *rgb = calloc((size_t)SIDE * SIDE, 3);
  const uint64_t before = engine->memory.bytes_now;
  engine->memory.bytes_peak = before;
  CHECK_EQ_INT(wick_media_add_image(engine, rgb, SIDE, SIDE, &media, &error), WICK_OK);
  CHECK(engine->memory.bytes_peak - before <= plan.prepare_bytes);
  engine->memory.bytes_peak = engine->memory.bytes_now;
  media_encode(engine, media);
  const double peak = (double)(engine->memory.bytes_peak - before);
  CHECK_NEAR(peak, (double)plan.encode_bytes, 0.1 * (double)plan.encode_bytes);
  wick_media_remove(engine, media);
  free(rgb);
  close_first(&first);
}

TEST(a_file_that_exceeds_the_budget_is_rejected_before_its_weights) {
  first_case first;
  wick_error error = {0};
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  wick_engine *engine = first.engine;
  engine->media->close(engine);
  const uint32_t type = vectors_node(&first.v, document_find(&first.v.document, 1, "types"))->first;
  engine->memory.budget_bytes = engine->memory.bytes_now + 400000;
  CHECK_EQ_INT(media_load(engine, &first.v, type, &error), WICK_E_NOMEM);
  CHECK(strstr(error.message, "the mmproj file's encoders take") != NULL);
  CHECK(!wick_media_has(engine, WICK_MEDIA_IMAGE));
  CHECK_EQ_INT(wick_media_get_memory(engine, &(wick_media_memory){0}, &error), WICK_E_NODATA);
  close_first(&first);
}

TEST(an_image_that_exceeds_the_context_is_not_encoded) {
  vectors v;
  uint32_t media;
  bool is_ready;
  wick_error error = {0};
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!vectors_open(&v, "vectors/vision/manifest.json")) return;
  const uint32_t type = vectors_node(&v, document_find(&v.document, 1, "types"))->first;
  static const media_setup SETUP = {64, 1, 32, WICK_KV_F32};
  fixture_file file = {0};
  file.bytes = media_read_file(vectors_text(&v, type, "text_model"), &file.size_bytes);
  wick_engine *engine = media_engine(&file, &SETUP);
  REQUIRE(engine != NULL);
  CHECK_EQ_INT(media_load(engine, &v, type, &error), WICK_OK);
  static const uint8_t rgb[3];
  CHECK_EQ_INT(wick_media_add_image(engine, rgb, 1, 1, &media, &error), WICK_OK);
  CHECK_EQ_INT(wick_media_step(engine, media, 0, &is_ready, &error), WICK_E_FULL);
  CHECK(strstr(error.message, "prompt: an image has") != NULL);
  CHECK_EQ_INT(wick_media_remove(engine, media), WICK_OK);
  wick_engine_destroy(engine);
  free(file.bytes);
  vectors_close(&v);
}

TEST(an_allocation_failure_returns_a_status_and_leaks_nothing) {
  first_case first;
  size_t mmproj_bytes, rgb_bytes;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (!open_first(&first)) return;
  const vectors *v = &first.v;
  const uint32_t type = vectors_node(v, document_find(&v->document, 1, "types"))->first;
  const uint32_t parts = document_find(&v->document, first.node, "parts");
  uint32_t image = vectors_node(v, parts)->first;
  while (vectors_text(v, image, "image").size_bytes == 0) image = vectors_node(v, image)->next;
  uint8_t *mmproj = media_read_file(vectors_text(v, type, "mmproj"), &mmproj_bytes);
  uint8_t *rgb = media_read_file(vectors_text(v, image, "image"), &rgb_bytes);
  const uint32_t width = (uint32_t)vectors_member_number(v, image, "width");
  const uint32_t height = (uint32_t)vectors_member_number(v, image, "height");
  memory_gate *memory = &first.engine->memory;
  wick_status status = WICK_E_NOMEM;
  uint64_t failures = 0;
  for (uint64_t k = 1; status != WICK_OK; k += level_step(3)) {
    wick_error error = {0};
    first.engine->media->close(first.engine);
    const uint64_t blocks = memory->blocks_now;
    memory->fail_at_call = memory->calls + k;
    status = do_all(&first, mmproj, mmproj_bytes, rgb, width, height, &error);
    memory->fail_at_call = 0;
    if (status == WICK_OK) break;
    failures++;
    CHECK_EQ_INT(status, WICK_E_NOMEM);
    if (first.engine->media != NULL) first.engine->media->close(first.engine);
    CHECK_EQ_UINT(memory->blocks_now, blocks);
    if (k > 2000 || memory->blocks_now != blocks) break;
    CHECK_EQ_INT(media_load(first.engine, v, type, &error), WICK_OK);
  }
  CHECK(failures > 40 / level_step(3));
  free(mmproj);
  free(rgb);
  close_first(&first);
}
