// Compares resampling with values computed by hand, and tests how images are fitted into frames.
#include <string.h>

#include "check.h"
#include "media/image.h"
#include "platform/platform.h"

static memory_gate memory;
static wick_error error;

static wick_status image_fit(image_view in, const image_frame *frame, uint8_t *out) {
  image_fitting *fitting;
  bool is_done = false;
  wick_status status = image_fit_begin(&memory, in.width, in.height, frame, out, &fitting, &error);
  if (status == WICK_OK)
    status = image_fit_feed(fitting, in.rgb, in.stride_bytes, in.height, &error);
  if (status == WICK_OK) status = image_fit_step(fitting, UINT64_MAX, &is_done, &error);
  image_fit_end(fitting);
  return status;
}

// A grey image of one row or column.
static void resample_grey(const uint8_t *grey, uint32_t from, uint32_t to, image_filter filter,
                          bool is_column, uint8_t *out) {
  uint8_t in_rgb[64 * 3], out_rgb[64 * 3];
  for (uint32_t i = 0; i < from; i++) memset(in_rgb + 3 * i, grey[i], 3);
  memory_init(&memory, 0, platform_alloc, platform_free);
  const image_view in = is_column ? image_whole(in_rgb, 1, from) : image_whole(in_rgb, from, 1);
  const image_frame frame = {
      .width = is_column ? 1 : to, .height = is_column ? to : 1, .filter = filter};
  CHECK_EQ_INT(image_fit(in, &frame, out_rgb), WICK_OK);
  for (uint32_t i = 0; i < to; i++) {
    CHECK_EQ_UINT(out_rgb[3 * i], out_rgb[3 * i + 1]);
    CHECK_EQ_UINT(out_rgb[3 * i], out_rgb[3 * i + 2]);
    out[i] = out_rgb[3 * i];
  }
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static void check_both_ways(const uint8_t *grey, uint32_t from, image_filter filter,
                            const uint8_t *wanted, uint32_t to) {
  uint8_t out[64];
  for (int is_column = 0; is_column < 2; is_column++) {
    resample_grey(grey, from, to, filter, is_column != 0, out);
    for (uint32_t i = 0; i < to; i++) CHECK_EQ_UINT(out[i], wanted[i]);
  }
}

TEST(bilinear_averages_and_rounds_halves_up) {
  check_both_ways((const uint8_t[]){10, 20}, 2, IMAGE_BILINEAR, (const uint8_t[]){15}, 1);
  check_both_ways((const uint8_t[]){10, 21}, 2, IMAGE_BILINEAR, (const uint8_t[]){16}, 1);
}

TEST(bilinear_enlarges_between_centres) {
  check_both_ways((const uint8_t[]){0, 100}, 2, IMAGE_BILINEAR, (const uint8_t[]){0, 25, 75, 100},
                  4);
}

// With a = -0.5, the weights at distances 1.75, 0.75, 0.25 and 1.25 are -0.0234375, 0.2265625,
// 0.8671875 and -0.0703125, so next to a step of 100 the levels are 2.3 and 7 too dark.
TEST(bicubic_overshoots_next_to_a_step) {
  check_both_ways((const uint8_t[]){100, 100, 100, 200, 200, 200}, 6, IMAGE_BICUBIC,
                  (const uint8_t[]){100, 100, 100, 98, 93, 120, 180, 207, 202, 200, 200, 200}, 12);
}

TEST(all_filters_keep_a_flat_image) {
  const uint8_t flat[9] = {77, 77, 77, 77, 77, 77, 77, 77, 77};
  for (int filter = IMAGE_BILINEAR; filter <= IMAGE_LANCZOS; filter++) {
    uint8_t wanted[13];
    memset(wanted, 77, sizeof wanted);
    check_both_ways(flat, 9, (image_filter)filter, wanted, 13);
    check_both_ways(flat, 9, (image_filter)filter, wanted, 4);
    check_both_ways(flat, 9, (image_filter)filter, wanted, 9);
  }
}

TEST(the_frame_around_the_image_is_filled) {
  uint8_t in[4 * 2 * 3], out[4 * 4 * 3];
  memset(in, 200, sizeof in);
  memory_init(&memory, 0, platform_alloc, platform_free);
  const image_frame frame = {
      .width = 4, .height = 4, .filter = IMAGE_BICUBIC, .keeps_aspect = true, .colour = {1, 2, 3}};
  CHECK_EQ_INT(image_fit(image_whole(in, 4, 2), &frame, out), WICK_OK);
  for (uint32_t i = 0; i < 16; i++) {
    const bool is_inside = i >= 4 && i < 12;
    for (uint32_t c = 0; c < 3; c++) CHECK_EQ_UINT(out[3 * i + c], is_inside ? 200 : c + 1);
  }
}

enum { ACROSS = 37, DOWN = 29, FITTED = 64 };

static const image_frame FRAMES[] = {
    {.width = 16, .height = 20},
    {.width = FITTED, .height = FITTED, .filter = IMAGE_LANCZOS},
    {.width = ACROSS, .height = DOWN},
    {.width = ACROSS, .height = 7, .filter = IMAGE_BICUBIC},
    {.width = 11, .height = DOWN},
    {.width = 24, .height = 40, .keeps_aspect = true, .colour = {4, 5, 6}},
    {.width = 48, .height = 16, .via_width = 50, .via_height = 12, .filter = IMAGE_LANCZOS},
    {.width = 20, .height = 20, .via_width = 20, .via_height = 20, .keeps_aspect = true},
};

// Fits an image that arrives in strips of `strip` rows, one output row per step.
static void fit_in_strips(const uint8_t *in, const image_frame *frame, uint32_t strip,
                          uint8_t *out) {
  image_fitting *fitting;
  bool is_done = false;
  uint32_t steps = 0;
  const uint64_t planned = image_fit_bytes(ACROSS, DOWN, frame);
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(image_fit_begin(&memory, ACROSS, DOWN, frame, out, &fitting, &error), WICK_OK);
  for (uint32_t left; (left = image_fit_rows_left(fitting)) != 0;) {
    const uint8_t *rows = in + (size_t)(DOWN - left) * ACROSS * 3;
    const uint32_t count = left < strip ? left : strip;
    CHECK_EQ_INT(image_fit_feed(fitting, rows, (size_t)ACROSS * 3, count, &error), WICK_OK);
  }
  for (; !is_done; steps++) {
    CHECK_EQ_INT(image_fit_step(fitting, 1, &is_done, &error), WICK_OK);
  }
  CHECK(steps <= frame->via_height + frame->via_width + 2 * frame->height + 1);
  CHECK(memory.bytes_peak <= planned + 5 * 128);  // blocks have headers and rounded sizes
  image_fit_end(fitting);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(strips_of_any_height_give_the_same_image) {
  uint8_t in[ACROSS * DOWN * 3], whole[FITTED * FITTED * 3], parts[FITTED * FITTED * 3];
  for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i * 2654435761u >> 13);
  for (size_t i = 0; i < sizeof FRAMES / sizeof *FRAMES; i++) {
    const size_t bytes = (size_t)FRAMES[i].width * FRAMES[i].height * 3;
    memory_init(&memory, 0, platform_alloc, platform_free);
    const image_view image = image_whole(in, ACROSS, DOWN);
    CHECK_EQ_INT(image_fit(image, &FRAMES[i], whole), WICK_OK);
    for (uint32_t strip = 1; strip <= DOWN; strip += 9) {
      memset(parts, 0, sizeof parts);
      fit_in_strips(in, &FRAMES[i], strip, parts);
      CHECK(memcmp(whole, parts, bytes) == 0);
    }
  }
}

TEST(an_abandoned_image_frees_its_memory) {
  static const uint8_t in[ACROSS * DOWN * 3];
  uint8_t out[FITTED * FITTED * 3];
  image_fitting *fitting;
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(image_fit_begin(&memory, ACROSS, DOWN, &FRAMES[6], out, &fitting, &error), WICK_OK);
  CHECK_EQ_INT(image_fit_feed(fitting, in, (size_t)ACROSS * 3, 5, &error), WICK_OK);
  image_fit_end(fitting);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(sizes_beyond_the_limits_are_rejected) {
  CHECK_EQ_INT(image_check(0, 5, &error), WICK_E_ARG);
  CHECK_EQ_INT(image_check(5, 0, &error), WICK_E_ARG);
  CHECK_EQ_INT(image_check(IMAGE_SIDE_MAX + 1, 1, &error), WICK_E_ARG);
  CHECK_EQ_INT(image_check(IMAGE_SIDE_MAX, IMAGE_SIDE_MAX, &error), WICK_E_ARG);
  CHECK_EQ_INT(image_check(10000, 10000, &error), WICK_OK);
}

TEST(allocation_failures_are_reported) {
  uint8_t in[8 * 8 * 3], out[5 * 5 * 3];
  memset(in, 9, sizeof in);
  const image_frame frame = {
      .width = 5, .height = 5, .via_width = 7, .via_height = 6, .keeps_aspect = true};
  uint64_t calls = 1;
  for (uint64_t call = 1; call <= calls; call++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    CHECK_EQ_INT(image_fit(image_whole(in, 8, 8), &frame, out), WICK_OK);
    calls = memory.calls;
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = call;
    CHECK_EQ_INT(image_fit(image_whole(in, 8, 8), &frame, out), WICK_E_NOMEM);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
  CHECK(calls > 5);
}
