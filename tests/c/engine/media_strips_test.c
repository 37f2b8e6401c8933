// Images whose rows are fed in strips: narrow, flat and odd ones, several at once, and images that
// are removed, whose encoders are closed, or that run out of memory in the middle.
#include "api/media_strips.h"
#include "api/media_items.h"
#include "media_engines.h"
#include "random.h"

static vectors v;
static wick_engine *engine;
static uint64_t seed;

static uint32_t find_type(const char *name) {
  const uint32_t types = document_find(&v.document, 1, "types");
  for (uint32_t at = vectors_node(&v, types)->first; at != 0; at = vectors_node(&v, at)->next) {
    const document_text id = vectors_text(&v, at, "id");
    if (id.size_bytes == strlen(name) && memcmp(id.bytes, name, id.size_bytes) == 0) return at;
  }
  return 0;
}

static bool open_name(const char *name) {
  if (check_shared("vectors/vision/manifest.json") == NULL) return false;
  if (!vectors_open(&v, "vectors/vision/manifest.json")) return false;
  engine = media_open_type(&v, find_type(name));
  if (engine == NULL) return false;
  engine->config.media_bytes_max = 1;  // nothing is cached
  return true;
}

static void close_engine(void) {
  wick_engine_destroy(engine);
  vectors_close(&v);
}

// An image that is fed row by row.
typedef struct fed_image {
  uint8_t *rgb;
  uint32_t width, height, fed, media;
} fed_image;

static fed_image image_of(uint32_t width, uint32_t height, uint32_t salt) {
  fed_image image = {malloc((size_t)width * height * 3), width, height, 0, 0};
  for (size_t i = 0; i < (size_t)width * height * 3; i++) {
    image.rgb[i] = (uint8_t)((i + salt) * 2654435761u >> 13);
  }
  return image;
}

static wick_status begin(fed_image *image, wick_error *error) {
  image->fed = 0;
  return engine_media_begin_image(engine, image->width, image->height, &image->media, error);
}

static wick_status feed(fed_image *image, uint32_t most, wick_error *error) {
  const uint32_t left = image->height - image->fed, rows = left < most ? left : most;
  const uint8_t *from = image->rgb + (size_t)image->fed * image->width * 3;
  const wick_status status = engine_media_feed_image(engine, image->media, from, rows, error);
  if (status == WICK_OK) image->fed += rows;
  return status;
}

// Returns the rows of the encoded image, one chunk after the other; the caller frees them.
static float *rows_of(uint32_t media, size_t *bytes) {
  const media_item *item = media_item_find(engine, media);
  const size_t row_bytes =
      media_row_width(items_of(engine)->encoders[MEDIA_IMAGES]) * sizeof(float);
  uint8_t *rows = malloc(item->plan.rows * row_bytes);
  *bytes = 0;
  for (uint32_t i = 0; i < item->plan.count; i++) {
    if (item->spans[i] == NULL) continue;
    memcpy(rows + *bytes, item->spans[i]->rows, item->spans[i]->is.count * row_bytes);
    *bytes += item->spans[i]->is.count * row_bytes;
  }
  return (float *)(void *)rows;
}

static void check_rows(uint32_t media, const float *wanted, size_t wanted_bytes) {
  size_t bytes;
  float *rows = rows_of(media, &bytes);
  CHECK_EQ_UINT(bytes, wanted_bytes);
  CHECK_EQ_MEM(rows, wanted, bytes);
  free(rows);
}

static float *encode_whole(const fed_image *image, size_t *bytes) {
  uint32_t media;
  wick_error error = {0};
  CHECK_EQ_INT(
      wick_media_add_image(engine, image->rgb, image->width, image->height, &media, &error),
      WICK_OK);
  media_encode(engine, media);
  float *rows = rows_of(media, bytes);
  CHECK_EQ_INT(wick_media_remove(engine, media), WICK_OK);
  return rows;
}

// Feeds two images in strips of random order, then encodes them alternately.
static void check_pair(uint32_t width, uint32_t height) {
  fed_image images[2] = {image_of(width, height, 1), image_of(width, height, 77)};
  float *wanted[2];
  size_t bytes[2];
  bool is_ready[2] = {false, false};
  wick_error error = {0};
  for (int i = 0; i < 2; i++) wanted[i] = encode_whole(&images[i], &bytes[i]);
  for (int i = 0; i < 2; i++) CHECK_EQ_INT(begin(&images[i], &error), WICK_OK);
  while (images[0].fed < height || images[1].fed < height) {
    fed_image *image = &images[random_below(&seed, 2)];
    if (image->fed < height) {
      CHECK_EQ_INT(wick_media_step(engine, image->media, 0, is_ready, &error), WICK_E_NODATA);
    }
    CHECK_EQ_INT(feed(image, (uint32_t)random_below(&seed, 9), &error), WICK_OK);
    const uint32_t more = height - image->fed + 1;
    CHECK_EQ_INT(engine_media_feed_image(engine, image->media, image->rgb, more, &error),
                 WICK_E_ARG);
  }
  for (int i = 0; !is_ready[0] || !is_ready[1]; i ^= 1) {
    const wick_status status = wick_media_step(engine, images[i].media, 0, &is_ready[i], &error);
    if (!CHECK_EQ_INT(status, WICK_OK)) break;
  }
  for (int i = 0; i < 2; i++) {
    check_rows(images[i].media, wanted[i], bytes[i]);
    CHECK_EQ_INT(wick_media_remove(engine, images[i].media), WICK_OK);
    free(wanted[i]);
    free(images[i].rgb);
  }
}

TEST(images_fed_in_strips_have_the_same_rows_as_whole_images) {
  static const uint32_t SIZES[][2] = {{1, 1},    {1, 130}, {130, 1}, {2, 333},  {333, 2},
                                      {37, 101}, {61, 48}, {48, 47}, {200, 133}};
  if (!open_name("idefics3")) SKIP("no shared folder");
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) check_pair(SIZES[i][0], SIZES[i][1]);
  close_engine();
}

// Runs `moment` strips and then steps of an image. Returns false if it is done.
static bool bring_to(fed_image *image, uint32_t moment, bool *is_ready) {
  enum { STRIP = 16 };
  wick_error error = {0};
  *is_ready = false;
  CHECK_EQ_INT(begin(image, &error), WICK_OK);
  for (; moment > 0 && image->fed < image->height; moment--) {
    CHECK_EQ_INT(feed(image, STRIP, &error), WICK_OK);
  }
  for (; moment > 0 && !*is_ready; moment--) {
    CHECK_EQ_INT(wick_media_step(engine, image->media, 0, is_ready, &error), WICK_OK);
  }
  return !*is_ready;
}

TEST(an_image_can_be_removed_at_any_moment_without_affecting_another) {
  size_t bytes;
  bool is_ready;
  wick_error error = {0};
  if (!open_name("lfm2")) SKIP("no shared folder");
  fed_image left = image_of(90, 120, 3), kept = image_of(90, 120, 4);
  float *wanted = encode_whole(&kept, &bytes);
  bool is_left = true;
  for (uint32_t moment = 0; is_left; moment++) {
    const uint64_t blocks = engine->memory.blocks_now;
    CHECK_EQ_INT(begin(&kept, &error), WICK_OK);
    CHECK_EQ_INT(feed(&kept, moment, &error), WICK_OK);
    is_left = bring_to(&left, moment, &is_ready);
    CHECK_EQ_INT(wick_media_remove(engine, left.media), WICK_OK);
    CHECK_EQ_INT(wick_media_step(engine, left.media, 0, &is_ready, &error), WICK_E_ARG);
    CHECK_EQ_INT(feed(&left, 1, &error), WICK_E_ARG);
    CHECK_EQ_INT(feed(&kept, kept.height, &error), WICK_OK);
    if (moment % 4 == 0) {
      media_encode(engine, kept.media);
      check_rows(kept.media, wanted, bytes);
    }
    CHECK_EQ_INT(wick_media_remove(engine, kept.media), WICK_OK);
    CHECK_EQ_UINT(engine->memory.blocks_now, blocks);
  }
  free(wanted);
  free(left.rgb);
  free(kept.rgb);
  close_engine();
}

TEST(encoders_can_be_closed_and_loaded_again_at_any_moment) {
  bool is_ready, is_left = true;
  wick_error error = {0};
  if (!open_name("lfm2")) SKIP("no shared folder");
  fed_image image = image_of(90, 120, 3);
  const uint32_t type = find_type("lfm2");
  engine->media->close(engine);
  const uint64_t blocks = engine->memory.blocks_now;
  for (uint32_t moment = 0; is_left; moment++) {
    if (!CHECK_EQ_INT(media_load(engine, &v, type, &error), WICK_OK)) break;
    is_left = bring_to(&image, moment, &is_ready);
    CHECK_EQ_INT(media_load(engine, &v, type, &error), WICK_E_BUSY);
    engine->media->close(engine);
    CHECK_EQ_UINT(engine->memory.blocks_now, blocks);
    CHECK_EQ_INT(wick_media_step(engine, image.media, 0, &is_ready, &error), WICK_E_ARG);
    CHECK_EQ_INT(wick_media_remove(engine, image.media), WICK_E_ARG);
  }
  free(image.rgb);
  close_engine();
}

// Runs all strips and steps until the image is encoded.
static wick_status encode_in_strips(fed_image *image, wick_error *error) {
  bool is_ready = false;
  wick_status status = begin(image, error);
  while (status == WICK_OK && image->fed < image->height) status = feed(image, 50, error);
  while (status == WICK_OK && !is_ready) {
    status = wick_media_step(engine, image->media, 0, &is_ready, error);
  }
  return status;
}

// While an image that ran out of memory still exists, the same image can be added again.
static void check_again(const fed_image *image, const float *wanted, size_t bytes) {
  uint32_t media;
  wick_error error = {0};
  CHECK_EQ_INT(
      wick_media_add_image(engine, image->rgb, image->width, image->height, &media, &error),
      WICK_OK);
  media_encode(engine, media);
  check_rows(media, wanted, bytes);
  CHECK_EQ_INT(wick_media_remove(engine, media), WICK_OK);
}

static void check_memory(const char *type, uint32_t width, uint32_t height) {
  size_t bytes;
  if (!open_name(type)) return;
  fed_image image = image_of(width, height, 5);
  float *wanted = encode_whole(&image, &bytes);
  memory_gate *memory = &engine->memory;
  wick_status status = WICK_E_NOMEM;
  uint32_t failures = 0;
  for (uint64_t k = 1; status == WICK_E_NOMEM; k++, failures++) {
    wick_error error = {0};
    const uint64_t blocks = memory->blocks_now;
    image.media = 0;
    memory->fail_at_call = memory->calls + k;
    status = encode_in_strips(&image, &error);
    memory->fail_at_call = 0;
    CHECK(status == WICK_OK || status == WICK_E_NOMEM);
    if (image.media != 0 && failures % 3 == 0) check_again(&image, wanted, bytes);
    if (image.media != 0) CHECK_EQ_INT(wick_media_remove(engine, image.media), WICK_OK);
    if (!CHECK_EQ_UINT(memory->blocks_now, blocks)) break;
  }
  CHECK(failures > 15);
  free(wanted);
  free(image.rgb);
  close_engine();
}

TEST(running_out_of_memory_fails_only_one_image) {
  if (check_shared("vectors/vision/manifest.json") == NULL) SKIP("no shared folder");
  check_memory("idefics3", 200, 133);
  check_memory("idefics3", 20, 13);  // it is enlarged and kept until it is encoded
  check_memory("lfm2", 90, 120);
}

// The image is narrow, so its rows have few bytes but become wide when resized.
TEST(a_narrow_image_is_resized_in_steps) {
  enum { HEIGHT = 3000, STEP_ROWS_MAX = 256 };
  bool is_ready = false;
  wick_error error = {0};
  if (!open_name("lfm2")) SKIP("no shared folder");
  fed_image image = image_of(1, HEIGHT, 6);
  CHECK_EQ_INT(begin(&image, &error), WICK_OK);
  CHECK_EQ_INT(feed(&image, HEIGHT, &error), WICK_OK);
  const media_item *item = media_item_find(engine, image.media);
  CHECK(item->pixels != NULL);
  for (uint32_t before = 0; item->pixels != NULL; before = item->resized) {
    if (!CHECK_EQ_INT(wick_media_step(engine, image.media, 0, &is_ready, &error), WICK_OK)) break;
    CHECK(item->resized >= before && item->resized - before <= STEP_ROWS_MAX);
  }
  free(image.rgb);
  close_engine();
}
