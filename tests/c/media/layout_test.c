// Image sizes and tile grids, computed by hand from the rules.
#include "media/layout.h"
#include "check.h"

static const vision_kind *kind_of(const char *name) {
  size_t size = 0;
  while (name[size] != '\0') size++;
  return vision_kind_find((gguf_string){name, size});
}

static image_layout plan(const layout_settings *settings, uint32_t width, uint32_t height) {
  image_layout layout = {0};
  wick_error error;
  CHECK_EQ_INT(layout_plan(settings, width, height, &layout, &error), WICK_OK);
  return layout;
}

static void check_overview(const image_layout *layout, uint32_t width, uint32_t height) {
  CHECK_EQ_UINT(layout->overview.width, width);
  CHECK_EQ_UINT(layout->overview.height, height);
}

static void check_tiles(const image_layout *layout, uint32_t columns, uint32_t rows, uint32_t width,
                        uint32_t height) {
  CHECK_EQ_UINT(layout->columns, columns);
  CHECK_EQ_UINT(layout->rows, rows);
  CHECK_EQ_UINT(layout->tiles.width, width);
  CHECK_EQ_UINT(layout->tiles.height, height);
}

static layout_settings qwen(void) {
  return (layout_settings){.kind = kind_of("qwen3vl_merger"),
                           .image_size = 192,
                           .patch = 16,
                           .merge = 2,
                           .pixels_min = 8 * 32 * 32,
                           .pixels_max = 4096 * 32 * 32};
}

TEST(smart_sizes_are_near_the_image) {
  const layout_settings settings = qwen();
  image_layout layout = plan(&settings, 200, 133);  // 6.25 and 4.16 blocks
  check_overview(&layout, 192, 128);
  CHECK(layout.overview.keeps_aspect);
  CHECK_EQ_UINT(layout.columns, 0);
}

TEST(smart_sizes_have_a_minimum_and_a_maximum) {
  const layout_settings settings = qwen();
  // 64 x 64 has 4 of 8 required blocks, so it is scaled by sqrt(2) and rounded up
  image_layout layout = plan(&settings, 64, 64);
  check_overview(&layout, 96, 96);
  // 16 Mpx, but only 4 are allowed, so each side is halved
  layout = plan(&settings, 4096, 4096);
  check_overview(&layout, 2048, 2048);
  layout = plan(&settings, 1, 1);
  check_overview(&layout, 96, 96);
}

TEST(idefics_enlarges_to_the_longest_edge_and_splits_into_tiles) {
  const layout_settings settings = {
      .kind = kind_of("idefics3"), .image_size = 48, .patch = 8, .merge = 2, .longest = 144};
  image_layout layout = plan(&settings, 200, 133);  // 144 x 95, rounded to even sizes
  check_tiles(&layout, 3, 2, 144, 96);
  CHECK_EQ_UINT(layout.tiles.via_width, 144);
  CHECK_EQ_UINT(layout.tiles.via_height, 96);
  check_overview(&layout, 48, 48);
  CHECK(layout.overview_is_of_tiles);
  layout = plan(&settings, 10, 10000);  // no side becomes 0
  check_tiles(&layout, 1, 3, 48, 144);
}

TEST(lfm2_splits_only_large_images) {
  const layout_settings settings = {.kind = kind_of("lfm2"),
                                    .image_size = 256,
                                    .patch = 16,
                                    .merge = 2,
                                    .pixels_min = 64 * 32 * 32,
                                    .pixels_max = 256 * 32 * 32};
  image_layout layout = plan(&settings, 640, 360);
  CHECK_EQ_UINT(layout.columns, 0);
  layout = plan(&settings, 1010, 550);  // aspect 1.84
  check_tiles(&layout, 2, 1, 1024, 512);
  // a square with the area of four tiles or more gets the larger grid with its aspect ratio
  layout = plan(&settings, 2000, 2000);
  check_tiles(&layout, 3, 3, 1536, 1536);
  layout = plan(&settings, 1000, 1000);  // at most half the area of 9 tiles
  check_tiles(&layout, 2, 2, 1024, 1024);
}

TEST(internvl_chooses_the_grid_that_keeps_most_pixels) {
  const layout_settings settings = {.kind = kind_of("internvl"),
                                    .image_size = 48,
                                    .patch = 8,
                                    .merge = 2,
                                    .tiles_min = 1,
                                    .tiles_max = 6};
  image_layout layout = plan(&settings, 48, 40);
  CHECK_EQ_UINT(layout.columns, 0);
  layout = plan(&settings, 200, 100);  // at most 6 tiles: 96 x 48, or 144 x 72 in 3 x 2
  check_tiles(&layout, 3, 2, 144, 96);
  layout = plan(&settings, 300, 20);
  check_tiles(&layout, 6, 1, 288, 48);
}

TEST(llava_without_a_size_list_uses_a_square) {
  const layout_settings settings = {
      .kind = kind_of("mlp"), .image_size = 56, .patch = 8, .merge = 1};
  const image_layout layout = plan(&settings, 200, 100);
  check_overview(&layout, 56, 56);
  CHECK_EQ_UINT(layout.overview.colour[0], 122);
  CHECK(layout.overview.keeps_aspect);
}

TEST(minicpm_chooses_slices_close_to_the_image_size) {
  const layout_settings settings = {
      .kind = kind_of("minicpmv4_6"), .image_size = 96, .patch = 8, .merge = 4};
  image_layout layout = plan(&settings, 64, 64);
  check_overview(&layout, 96, 96);
  CHECK_EQ_UINT(layout.columns, 0);
  layout =
      plan(&settings, 200, 133);  // area of 2.9 slices, so 2, 3 or 4; 2 x 1 has the nearest aspect
  check_overview(&layout, 128, 64);
  CHECK_EQ_UINT(layout.columns, 2);
}

// Returns the number of tiles of an image if at most `most` tiles and overviews are encoded.
static uint32_t tiles_of(layout_settings settings, uint32_t most, uint32_t width, uint32_t height) {
  settings.pictures_max = most;
  const image_layout layout = plan(&settings, width, height);
  CHECK(layout.overview.width != 0);
  CHECK_EQ_UINT(layout.columns == 0, layout.rows == 0);
  return layout.columns * layout.rows;
}

TEST(the_number_of_tiles_respects_the_limit) {
  const layout_settings all[] = {
      {.kind = kind_of("idefics3"), .image_size = 48, .patch = 8, .merge = 2, .longest = 240},
      {.kind = kind_of("idefics3"), .image_size = 48, .patch = 8, .merge = 2},
      {.kind = kind_of("lfm2"),
       .image_size = 256,
       .patch = 16,
       .merge = 2,
       .pixels_min = 64 * 32 * 32,
       .pixels_max = 256 * 32 * 32},
      {.kind = kind_of("internvl"),
       .image_size = 48,
       .patch = 8,
       .merge = 2,
       .tiles_min = 1,
       .tiles_max = 12},
      {.kind = kind_of("mlp"),
       .image_size = 48,
       .patch = 8,
       .merge = 1,
       .pinpoints = {{48, 96}, {96, 48}, {96, 96}, {144, 48}, {48, 144}},
       .pinpoint_count = 5},
      {.kind = kind_of("minicpmv4_6"), .image_size = 96, .patch = 8, .merge = 4}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const uint32_t tiles = tiles_of(all[i], 0, 1400, 1000);
    CHECK(tiles > 2);
    CHECK_EQ_UINT(tiles_of(all[i], tiles + 1, 1400, 1000), tiles);
    for (uint32_t most = 1; most <= tiles; most++) {
      CHECK(tiles_of(all[i], most, 1400, 1000) < most);
    }
    CHECK_EQ_UINT(tiles_of(all[i], 1, 1400, 1000), 0);
    CHECK(tiles_of(all[i], 4, 1400, 1000) >= 1);
  }
  CHECK_EQ_UINT(tiles_of(all[2], 3, 1010, 550), 2);
}

TEST(images_are_stretched_as_in_published_models_or_padded_as_in_llama_cpp) {
  layout_settings settings = {.kind = kind_of("gemma3"), .image_size = 56, .patch = 8, .merge = 1};
  CHECK(!plan(&settings, 200, 100).overview.keeps_aspect);
  settings.pads = true;
  CHECK(plan(&settings, 200, 100).overview.keeps_aspect);
  settings = (layout_settings){.kind = kind_of("lfm2"),
                               .image_size = 256,
                               .patch = 16,
                               .merge = 2,
                               .pixels_min = 64 * 32 * 32,
                               .pixels_max = 256 * 32 * 32};
  CHECK(!plan(&settings, 2000, 1000).tiles.keeps_aspect);
  settings.pads = true;
  CHECK(plan(&settings, 2000, 1000).tiles.keeps_aspect);
}

TEST(absurd_sizes_are_rejected) {
  const layout_settings settings = {
      .kind = kind_of("idefics3"), .image_size = 16, .patch = 8, .merge = 2, .longest = 8192};
  image_layout layout;
  wick_error error;
  CHECK_EQ_INT(layout_plan(&settings, 100, 100, &layout, &error), WICK_E_ARG);
}
