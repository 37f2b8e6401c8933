// media/plan.c — plans the chunks of an image in a prompt, and their cost; and prepares the tiles
// to encode.
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "media/encode.h"
#include "media/weights.h"

// ---- chunks ----

typedef struct chunk_list {
  const media_model *model;
  media_chunk *chunks;  // NULL: only counts the chunks
  uint32_t count;
} chunk_list;

static media_chunk *add_chunk(chunk_list *list, const media_chunk *chunk) {
  media_chunk *added = list->chunks == NULL ? NULL : &list->chunks[list->count];
  if (added != NULL) *added = *chunk;
  list->count++;
  return added;
}

static void add_text(chunk_list *list, const char *text) {
  media_chunk chunk = {.is_text = true};
  if (text == NULL) return;
  text_format(chunk.text, sizeof chunk.text, "%s", text);
  (void)add_chunk(list, &chunk);
}

static void add_token(chunk_list *list, const char *text) {
  media_chunk chunk = {.is_text = true, .is_one_token = true};
  text_format(chunk.text, sizeof chunk.text, "%s", text);
  (void)add_chunk(list, &chunk);
}

// Adds "<row_2_col_3>", with rows and columns from 1.
static void add_place(chunk_list *list, const char *before, const char *between, const char *after,
                      uint32_t row, uint32_t column) {
  media_chunk chunk = {.is_text = true};
  text_format(chunk.text, sizeof chunk.text, "%s%u%s%u%s", before, (unsigned)row + 1, between,
              (unsigned)column + 1, after);
  (void)add_chunk(list, &chunk);
}

// Returns the number of rows of a tile with this size in pixels.
static uint32_t rows_of(const media_model *model, uint32_t width, uint32_t height) {
  const uint32_t patch = model->layout.patch, merge = encode_patches_a_side(model);
  const uint32_t across = ceil_div_u32(width / patch, merge);
  const uint32_t down = ceil_div_u32(height / patch, merge);
  return across * down + (model->line_break != NULL ? down - 1 : 0);
}

static void add_rows(chunk_list *list, uint32_t width, uint32_t height, bool is_overview,
                     uint32_t row, uint32_t column) {
  const media_model *model = list->model;
  const uint32_t patch = model->layout.patch, merge = encode_patches_a_side(model);
  media_chunk chunk = {.is_non_causal = model->text.sees_both_ways,
                       .is_overview = is_overview,
                       .column = column,
                       .row = row,
                       .across = ceil_div_u32(width / patch, merge),
                       .down = ceil_div_u32(height / patch, merge),
                       .width = width,
                       .height = height,
                       .macs = encode_macs(model, width / patch, height / patch)};
  chunk.rows = rows_of(model, width, height);
  const uint32_t longer = chunk.across > chunk.down ? chunk.across : chunk.down;
  chunk.counts_rows = !model->text.has_axes || model->kind->sizing == SIZING_SLICES;
  chunk.positions = chunk.counts_rows ? chunk.rows : longer;
  (void)add_chunk(list, &chunk);
}

static void add_overview(chunk_list *list, const image_layout *layout) {
  add_rows(list, layout->overview.width, layout->overview.height, true, 0, 0);
}

static void add_tile(chunk_list *list, const image_layout *layout, uint32_t row, uint32_t column) {
  add_rows(list, layout->tiles.width / layout->columns, layout->tiles.height / layout->rows, false,
           row, column);
}

static void list_idefics(chunk_list *list, const image_layout *layout) {
  const char *fake = "<fake_token_around_image>";
  for (uint32_t row = 0; row < layout->rows; row++) {
    for (uint32_t column = 0; column < layout->columns; column++) {
      add_text(list, fake);
      add_place(list, "<row_", "_col_", ">", row, column);
      add_tile(list, layout, row, column);
    }
    if (row + 1 < layout->rows) add_token(list, "\n");
  }
  if (layout->rows != 0) add_token(list, "\n\n");
  add_token(list, fake);
  add_token(list, "<global-img>");
  add_overview(list, layout);
  add_text(list, fake);
}

static void list_slices(chunk_list *list, const image_layout *layout) {
  add_text(list, "<image>");
  add_overview(list, layout);
  add_text(list, "</image>");
  for (uint32_t row = 0; row < layout->rows; row++) {
    for (uint32_t column = 0; column < layout->columns; column++) {
      add_text(list, "<slice>");
      add_tile(list, layout, row, column);
      add_text(list, "</slice>");
    }
    if (row + 1 < layout->rows) add_token(list, "\n");
  }
}

static void list_chunks(chunk_list *list, const image_layout *layout) {
  const vision_kind *kind = list->model->kind;
  if (kind->sizing == SIZING_IDEFICS) {
    list_idefics(list, layout);
    return;
  }
  if (kind->sizing == SIZING_SLICES) {
    list_slices(list, layout);
    return;
  }
  const bool has_places = kind->sizing == SIZING_LFM2;
  add_text(list, kind->before);
  for (uint32_t row = 0; row < layout->rows; row++) {
    for (uint32_t column = 0; column < layout->columns; column++) {
      if (has_places) add_place(list, "<|img_row_", "_col_", "|>", row, column);
      add_tile(list, layout, row, column);
    }
  }
  if (has_places && layout->columns != 0) add_text(list, "<|img_thumbnail|>");
  add_overview(list, layout);
  add_text(list, kind->after);
}

// ---- the plan ----

typedef struct image_plan {
  image_layout layout;
  uint32_t width, height;  // of the image
} image_plan;

static void add_costs(const media_model *model, media_plan *plan) {
  const image_layout *layout = &plan->image->layout;
  for (uint32_t i = 0; i < plan->count; i++) {
    const media_chunk *chunk = &plan->chunks[i];
    if (chunk->is_text) continue;
    plan->tiles++;
    plan->rows += chunk->rows;
    plan->macs += chunk->macs;
    const uint64_t bytes = encode_bytes(model, chunk, 1);
    if (bytes > plan->encode_bytes) plan->encode_bytes = bytes;
  }
  plan->prepare_bytes = (uint64_t)layout->overview.width * layout->overview.height * 3 +
                        (uint64_t)layout->tiles.width * layout->tiles.height * 3;
  const image_plan *image = plan->image;
  const bool is_of_tiles = layout->overview_is_of_tiles;
  plan->resize_bytes =
      image_fit_bytes(is_of_tiles ? layout->tiles.width : image->width,
                      is_of_tiles ? layout->tiles.height : image->height, &layout->overview);
  if (layout->columns == 0) return;
  const uint64_t tiles_bytes = image_fit_bytes(image->width, image->height, &layout->tiles);
  if (!is_of_tiles) {  // both are computed from the same rows, at the same time
    plan->resize_bytes += tiles_bytes;
  } else if (tiles_bytes > plan->resize_bytes) {
    plan->resize_bytes = tiles_bytes;
  }
}

// ---- limits ----

static uint64_t layout_rows(const media_model *model, const image_layout *layout) {
  const uint64_t tiles = (uint64_t)layout->columns * layout->rows;
  uint64_t rows = rows_of(model, layout->overview.width, layout->overview.height);
  if (tiles == 0) return rows;
  return rows + tiles * rows_of(model, layout->tiles.width / layout->columns,
                                layout->tiles.height / layout->rows);
}

// Selects the next smaller layout: with fewer tiles, or with a smaller overview. Returns false if
// the layout is the smallest already.
static bool shrink(layout_settings *settings, const image_layout *layout) {
  const uint32_t tiles = layout->columns * layout->rows;
  uint32_t *size = &settings->pixels_max;
  if (tiles != 0) {
    settings->pictures_max = tiles;
    return true;
  }
  if (settings->kind->sizing == SIZING_LONGEST) {
    size = &settings->longest;
    if (*size == 0) *size = settings->image_size;
  } else if (settings->kind->sizing == SIZING_SMART || settings->kind->sizing == SIZING_LFM2) {
    const uint32_t pixels = layout->overview.width * layout->overview.height;
    if (*size == 0 || *size > pixels) *size = pixels;
  } else {
    return false;
  }
  const uint32_t step = *size / 64 + 1;
  if (*size <= step) return false;
  *size -= step;
  if (settings->pixels_min > settings->pixels_max) settings->pixels_min = settings->pixels_max;
  return true;
}

// Whether the position table has a row for each patch of a side. Other tables are resampled.
static bool has_positions(const media_model *model, const image_frame *frame) {
  const uint32_t patch = model->layout.patch, most = model->position_rows;
  return model->kind->positions != POSITIONS_AXES ||
         (frame->width / patch <= most && frame->height / patch <= most);
}

static wick_status plan_layout(const media_model *model, uint32_t width, uint32_t height,
                               image_layout *out, wick_error *error) {
  layout_settings settings = model->layout;
  const uint32_t most = model->options.max_image_tokens;
  for (;;) {
    const wick_status status = layout_plan(&settings, width, height, out, error);
    if (status != WICK_OK) return status;
    const uint64_t rows = layout_rows(model, out);
    const bool fits = most == 0 || rows <= most;
    if (fits && has_positions(model, &out->overview)) return WICK_OK;
    if (shrink(&settings, out)) continue;
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "image: %u x %u takes at least %llu tokens, limit is %u", (unsigned)width,
                     (unsigned)height, (unsigned long long)rows, (unsigned)most);
  }
}

wick_status media_plan_image(const media_model *model, uint32_t width, uint32_t height,
                             media_plan *out, wick_error *error) {
  image_layout layout;
  *out = (media_plan){0};
  wick_status status = image_check(width, height, error);
  if (status == WICK_OK) status = plan_layout(model, width, height, &layout, error);
  if (status != WICK_OK) return status;
  chunk_list list = {.model = model};
  list_chunks(&list, &layout);
  out->image = memory_alloc(model->memory, sizeof *out->image);
  list.chunks = memory_alloc_array(model->memory, list.count, sizeof *list.chunks);
  out->chunks = list.chunks;
  if (out->image == NULL || out->chunks == NULL) {
    media_plan_free(model->memory, out);
    return memory_fail(model->memory, error, "the plan of an image");
  }
  *out->image = (image_plan){layout, width, height};
  out->count = list.count;
  list.count = 0;
  list_chunks(&list, &layout);
  add_costs(model, out);
  return WICK_OK;
}

void media_plan_free(memory_gate *memory, media_plan *plan) {
  memory_free(memory, plan->image);
  memory_free(memory, plan->chunks);
  *plan = (media_plan){0};
}

// ---- tiles ----

// Multiply-adds of a slice: 20 ms on one core. Each input byte costs as much as about 6
// multiply-adds.
enum { RESIZE_SLICE_MACS = 1 << 23, RESIZE_SLICE_BYTES = 1 << 20, TILES = 0, OVERVIEW = 1 };

static wick_status begin_picture(const media_model *model, uint32_t width, uint32_t height,
                                 const image_frame *frame, uint8_t **out, image_fitting **fitting,
                                 wick_error *error) {
  *out = memory_alloc_wide(model->memory, (uint64_t)frame->width * frame->height * 3);
  if (*out == NULL) return memory_fail(model->memory, error, "a resized image");
  return image_fit_begin(model->memory, width, height, frame, *out, fitting, error);
}

static image_view tiles_of(const media_plan *plan, const media_prepared *prepared) {
  const image_frame *tiles = &plan->image->layout.tiles;
  return image_whole(prepared->tiles, tiles->width, tiles->height);
}

static wick_status begin_overview(const media_model *model, const media_plan *plan, uint32_t width,
                                  uint32_t height, media_prepared *prepared, wick_error *error) {
  return begin_picture(model, width, height, &plan->image->layout.overview, &prepared->overview,
                       &prepared->fittings[OVERVIEW], error);
}

wick_status media_begin_image(const media_model *model, const media_plan *plan, media_prepared *out,
                              wick_error *error) {
  const image_plan *image = plan->image;
  const image_layout *layout = &image->layout;
  wick_status status = WICK_OK;
  *out = (media_prepared){0};
  if (layout->columns != 0) {
    status = begin_picture(model, image->width, image->height, &layout->tiles, &out->tiles,
                           &out->fittings[TILES], error);
  }
  if (status == WICK_OK && !layout->overview_is_of_tiles) {
    status = begin_overview(model, plan, image->width, image->height, out, error);
  }
  if (status != WICK_OK) media_prepared_free(model->memory, out);
  return status;
}

wick_status media_feed_image(const media_model *model, media_prepared *prepared, const uint8_t *rgb,
                             size_t stride_bytes, uint32_t rows, wick_error *error) {
  wick_status status = WICK_OK;
  for (int i = TILES; i <= OVERVIEW && status == WICK_OK; i++) {
    image_fitting *fitting = prepared->fittings[i];
    if (fitting != NULL) status = image_fit_feed(fitting, rgb, stride_bytes, rows, error);
  }
  if (status != WICK_OK) media_prepared_free(model->memory, prepared);
  return status;
}

// Runs one slice: feeds more rows of the tiles to the fitting, or runs its later passes.
static wick_status run_fitting(const media_plan *plan, const media_prepared *prepared,
                               image_fitting *fitting, bool *is_done, wick_error *error) {
  const uint32_t left = image_fit_rows_left(fitting);
  if (left == 0) return image_fit_step(fitting, RESIZE_SLICE_MACS, is_done, error);
  const image_view in = tiles_of(plan, prepared);
  const uint32_t most = RESIZE_SLICE_BYTES / (in.width * 3) + 1;
  return image_fit_feed(fitting, in.rgb + (in.height - left) * in.stride_bytes, in.stride_bytes,
                        left < most ? left : most, error);
}

wick_status media_resize(const media_model *model, const media_plan *plan, media_prepared *prepared,
                         bool *is_done, wick_error *error) {
  const int which = prepared->fittings[TILES] != NULL ? TILES : OVERVIEW;
  wick_status status = WICK_OK;
  bool is_fitted = false;
  if (which == OVERVIEW && prepared->overview == NULL) {
    const image_view tiles = tiles_of(plan, prepared);
    status = begin_overview(model, plan, tiles.width, tiles.height, prepared, error);
  }
  if (status == WICK_OK) {
    status = run_fitting(plan, prepared, prepared->fittings[which], &is_fitted, error);
  }
  if (is_fitted) {
    image_fit_end(prepared->fittings[which]);
    prepared->fittings[which] = NULL;
  }
  if (status != WICK_OK) media_prepared_free(model->memory, prepared);
  *is_done = is_fitted && which == OVERVIEW;
  return status;
}

wick_status media_prepare(const media_model *model, const media_plan *plan, image_view image,
                          media_prepared *out, wick_error *error) {
  bool is_done = false;
  *out = (media_prepared){0};
  if (image.width != plan->image->width || image.height != plan->image->height) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "image: %u x %u is not the planned size",
                     (unsigned)image.width, (unsigned)image.height);
  }
  wick_status status = media_begin_image(model, plan, out, error);
  if (status == WICK_OK) {
    status = media_feed_image(model, out, image.rgb, image.stride_bytes, image.height, error);
  }
  while (status == WICK_OK && !is_done) status = media_resize(model, plan, out, &is_done, error);
  return status;
}

void media_prepared_free(memory_gate *memory, media_prepared *prepared) {
  image_fit_end(prepared->fittings[TILES]);
  image_fit_end(prepared->fittings[OVERVIEW]);
  memory_free(memory, prepared->tiles);
  memory_free(memory, prepared->overview);
  *prepared = (media_prepared){0};
}

image_view media_chunk_pixels(const media_plan *plan, const media_prepared *prepared,
                              uint32_t chunk) {
  const media_chunk *part = &plan->chunks[chunk];
  if (part->is_overview) return image_whole(prepared->overview, part->width, part->height);
  const size_t stride_bytes = (size_t)plan->image->layout.tiles.width * 3;
  const uint8_t *first = prepared->tiles + (size_t)part->row * part->height * stride_bytes +
                         (size_t)part->column * part->width * 3;
  return (image_view){first, part->width, part->height, stride_bytes};
}

uint64_t media_hash_size(uint32_t width, uint32_t height) {
  return hash_mix_u64((uint64_t)width << 32 | height);
}

uint64_t media_hash_rows(image_view rows, uint64_t hash) {
  for (uint32_t y = 0; y < rows.height; y++) {
    hash = hash_bytes(rows.rgb + y * rows.stride_bytes, (size_t)rows.width * 3, hash);
  }
  return hash;
}

uint64_t media_hash_pixels(image_view image) {
  return media_hash_rows(image, media_hash_size(image.width, image.height));
}
