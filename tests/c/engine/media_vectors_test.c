// The cases of vectors/vision, using the reference's rows for images and recordings: logits of all
// text positions and the greedy tokens, for several batch sizes and numbers of threads.
#include <stdio.h>

#include "media_rig.h"
#include "media_vectors.h"

typedef struct vision {
  vectors vectors;
  fixture_file model;
  int32_t *tokens[MEDIA_PARTS_MAX];
  float *rows[MEDIA_PARTS_MAX];
  prompt_parts prompt;
  uint32_t image_rows;  // the largest image whose rows are evaluated together
} vision;

static int32_t *read_ints(const vectors *v, uint32_t node, uint32_t *count) {
  *count = vectors_node(v, node)->count;
  int32_t *ints = malloc((*count + 1) * sizeof *ints);
  uint32_t at = vectors_node(v, node)->first;
  for (uint32_t i = 0; i < *count; i++, at = vectors_node(v, at)->next) {
    ints[i] = (int32_t)vectors_number(v, at);
  }
  return ints;
}

// Returns the grid's width: how many rows have the same y as the first. Returns 0 if x grows with
// time.
static uint32_t grid_width(const vectors *v, uint32_t chunk, uint32_t count) {
  const uint32_t list = document_find(&v->document, chunk, "pos_txy");
  if (list == 0) return 0;
  uint32_t width = 0, at = vectors_node(v, list)->first;
  int32_t first[3] = {0};
  for (uint32_t i = 0; i < count; i++, at = vectors_node(v, at)->next) {
    uint32_t three;
    int32_t *txy = read_ints(v, at, &three);
    if (i == 0) memcpy(first, txy, sizeof first);
    if (txy[0] == first[0] && txy[2] == first[2]) width++;
    free(txy);
  }
  return count > 1 && width == 1 && first[0] == first[2] &&
                 vectors_member_number(v, chunk, "n_pos") == count
             ? 0
             : width;
}

static void read_media(vision *vision, uint32_t chunk, uint32_t part, bool is_image) {
  const vectors *v = &vision->vectors;
  size_t size_bytes;
  const uint32_t embd = document_find(&v->document, chunk, "embd");
  vision->rows[part] = (float *)(void *)media_read_file(vectors_text(v, embd, "file"), &size_bytes);
  const uint32_t count = (uint32_t)vectors_member_number(v, chunk, "n_tokens");
  media_rows *media = &vision->prompt.media[part];
  *media = (media_rows){.rows = vision->rows[part],
                        .count = count,
                        .width = (uint32_t)(size_bytes / sizeof(float) / count),
                        .grid_x = grid_width(v, chunk, count),
                        .is_image = is_image,
                        .key = {chunk, 7}};
  media->grid_y = media->grid_x == 0 ? 0 : count / media->grid_x;
  const bool is_at_once = vectors_member_number(v, chunk, "non_causal") != 0;
  if (is_at_once && count > vision->image_rows) vision->image_rows = count;
  vision->prompt.parts[part].media = media;
}

static void read_case(vision *vision, uint32_t node) {
  const vectors *v = &vision->vectors;
  const uint32_t chunks = document_find(&v->document, node, "chunks");
  memset(&vision->prompt, 0, sizeof vision->prompt);
  vision->image_rows = 0;
  for (uint32_t at = vectors_node(v, chunks)->first; at != 0; at = vectors_node(v, at)->next) {
    const uint32_t part = vision->prompt.count++;
    const document_text type = vectors_text(v, at, "type");
    vision->tokens[part] = NULL;
    vision->rows[part] = NULL;
    if (text_is(type, "text")) {
      uint32_t count;
      vision->tokens[part] = read_ints(v, document_find(&v->document, at, "tokens"), &count);
      vision->prompt.parts[part] = (prompt_part){vision->tokens[part], count, NULL};
    } else {
      read_media(vision, at, part, text_is(type, "image"));
    }
  }
}

static void free_case(vision *vision) {
  for (uint32_t i = 0; i < vision->prompt.count; i++) {
    free(vision->tokens[i]);
    free(vision->rows[i]);
  }
}

static void check_logits(const vision *vision, uint32_t node, const media_result *result,
                         double tolerance, const char *label) {
  const vectors *v = &vision->vectors;
  size_t size_bytes;
  const uint32_t logits = document_find(&v->document, node, "logits");
  float *wanted = (float *)(void *)media_read_file(vectors_text(v, logits, "file"), &size_bytes);
  const size_t values = (size_t)result->logits_count * result->vocab;
  double worst = 0;
  if (CHECK_EQ_UINT(values * sizeof(float), size_bytes)) {
    for (size_t i = 0; i < values; i++) {
      const double off = (double)wanted[i] - (double)result->logits[i];
      if (!(off < worst && off > -worst)) worst = off < 0 ? -off : off;
    }
  }
  if (!CHECK_NEAR(worst, 0, tolerance)) printf("#   in %s\n", label);
  free(wanted);
  uint32_t count;
  int32_t *greedy = read_ints(v, document_find(&v->document, node, "greedy"), &count);
  if (CHECK_EQ_UINT(count, result->said_count)) {
    CHECK_EQ_MEM(result->said, greedy, count * sizeof *greedy);
  }
  free(greedy);
}

static void check_case(vision *vision, uint32_t node, double tolerance, const char *label) {
  static const media_setup SETUPS[] = {{512, 1, 1024, WICK_KV_F32},
                                       {64, 3, 1024, WICK_KV_F32},
                                       {7, 1, 1024, WICK_KV_F32},
                                       {1, 2, 1024, WICK_KV_F32}};
  media_result first = {0};
  for (uint32_t s = 0; s < sizeof SETUPS / sizeof *SETUPS; s++) {
    if (SETUPS[s].batch_tokens < vision->image_rows) continue;
    wick_engine *engine = media_engine(&vision->model, &SETUPS[s]);
    if (engine == NULL) continue;
    media_result result = media_run(engine, &vision->prompt, 0, true);
    CHECK_EQ_STR(result.error.message, "");
    if (s == 0) {
      check_logits(vision, node, &result, tolerance, label);
      first = result;
    } else if (CHECK_EQ_UINT(result.logits_count, first.logits_count)) {
      CHECK_EQ_MEM(result.logits, first.logits,
                   (size_t)first.logits_count * first.vocab * sizeof(float));
      CHECK_EQ_MEM(result.said, first.said, sizeof first.said);
    }
    if (s != 0) free(result.logits);
    wick_engine_destroy(engine);
  }
  free(first.logits);
}

static void check_type(vision *vision, uint32_t type) {
  const vectors *v = &vision->vectors;
  const document_text name = vectors_text(v, type, "id");
  vision->model.bytes =
      media_read_file(vectors_text(v, type, "text_model"), &vision->model.size_bytes);
  const uint32_t cases = document_find(&v->document, type, "cases");
  // linear attention amplifies rounding errors
  const bool is_linear = text_is(name, "qwen35") || text_is(name, "minicpmv4_6");
  for (uint32_t at = vectors_node(v, cases)->first; at != 0; at = vectors_node(v, at)->next) {
    const document_text id = vectors_text(v, at, "id");
    char label[64];
    text_format(label, sizeof label, "%.*s %.*s", (int)name.size_bytes, name.bytes,
                (int)id.size_bytes, id.bytes);
    read_case(vision, at);
    check_case(vision, at, is_linear ? 2e-3 : 1e-4, label);
    free_case(vision);
  }
  free(vision->model.bytes);
}

TEST(logits_and_tokens_after_images_and_recordings_match_the_reference) {
  static vision vision;
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  if (vectors_open(&vision.vectors, "vectors/vision/manifest.json")) {
    const vectors *v = &vision.vectors;
    const uint32_t types = document_find(&v->document, 1, "types");
    uint32_t at = vectors_node(v, types)->first;
    for (; at != 0; at = vectors_node(v, at)->next) check_type(&vision, at);
  }
  vectors_close(&vision.vectors);
}
