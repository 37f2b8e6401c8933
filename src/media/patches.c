// media/patches.c — the patches of an image as rows: their order, the patch kernel, positions
// (encode.h).
#include <string.h>

#include "base/math.h"
#include "media/encode.h"

enum { BUCKETS_A_SIDE = 70 };

// ---- order ----

void grid_measure(const media_model *model, const media_chunk *chunk, patch_grid *grid) {
  const uint32_t patch = model->layout.patch;
  *grid = (patch_grid){
      .across = chunk->width / patch, .down = chunk->height / patch, .window = model->window};
  grid->patches = grid->across * grid->down;
  grid->rows = grid->patches + (model->class_row != NULL);
  grid->windows = grid->window == 0 ? 1
                                    : ceil_div_u32(grid->across, grid->window) *
                                          ceil_div_u32(grid->down, grid->window);
}

void grid_take(patch_grid *grid, scratch_arena *arena) {
  const uint64_t bytes = (uint64_t)grid->patches * sizeof(uint32_t);
  grid->row_of = arena_take_bytes(arena, bytes);
  grid->y = arena_take_bytes(arena, bytes);
  grid->x = arena_take_bytes(arena, bytes);
  grid->whole = arena_take_bytes(arena, (uint64_t)grid->rows * sizeof *grid->whole);
  grid->windowed = arena_take_bytes(arena, (uint64_t)grid->rows * sizeof *grid->windowed);
}

// Orders the rows: the rows of a window are consecutive, and windows are ordered line by line.
void grid_fill(patch_grid *grid) {
  const uint32_t side = grid->window == 0 ? grid->across + grid->down : grid->window;
  uint32_t row = 0, window = 0;
  for (uint32_t top = 0; top < grid->down; top += side) {
    for (uint32_t left = 0; left < grid->across; left += side, window++) {
      const uint32_t first = row;
      for (uint32_t y = top; y < grid->down && y - top < side; y++) {
        for (uint32_t x = left; x < grid->across && x - left < side; x++, row++) {
          grid->row_of[y * grid->across + x] = row;
          grid->y[row] = y;
          grid->x[row] = x;
          grid->windowed[row] = (model_input){.position = row - first, .sequence = window};
        }
      }
    }
  }
  for (row = 0; row < grid->rows; row++) grid->whole[row] = (model_input){.position = row};
}

// ---- the patch kernel ----

static void read_patch(const row_job *job, uint32_t row) {
  const media_encoding *encoding = job->encoding;
  const media_model *model = encoding->model;
  const uint32_t patch = model->layout.patch, at = row + job->width;
  const patch_grid *grid = &encoding->grid;
  float *to = job->rows + row * job->stride;
  const bool is_centred = model->kind->positions == POSITIONS_AXES;
  for (uint32_t channel = 0; channel < 3; channel++) {
    for (uint32_t y = 0; y < patch; y++) {
      const uint8_t *from = encoding->pixels.rgb +
                            (grid->y[at] * patch + y) * encoding->pixels.stride_bytes +
                            (size_t)grid->x[at] * patch * 3 + channel;
      for (uint32_t x = 0; x < patch; x++) {
        const float level =
            ((float)from[3 * x] / 255.0f - model->mean[channel]) / model->std[channel];
        *to++ = is_centred ? 2 * level - 1 : level;
      }
    }
  }
}

static void multiply_patches(media_encoding *encoding) {
  const patch_grid *grid = &encoding->grid;
  for (uint32_t row = 0; row < grid->patches; row += ENCODE_BLOCK_ROWS) {
    const uint32_t left = grid->patches - row;
    const uint32_t some = left < ENCODE_BLOCK_ROWS ? left : ENCODE_BLOCK_ROWS;
    const row_job job = {.encoding = encoding,
                         .run = read_patch,
                         .rows = encoding->wide,
                         .stride = encoding->wide_stride,
                         .macs = 64ull * encoding->model->patches.matrix.dims[0],
                         .width = row};
    rows_run(&job, some);
    rows_multiply(encoding, &encoding->model->patches, encoding->wide, encoding->wide_stride, some,
                  encoding->hidden + row * encoding->stride, encoding->stride);
  }
}

// ---- positions ----

// The sources of a position on an axis: up to `count` rows of the table, starting at `first`.
typedef struct axis_taps {
  int32_t first, count;
  double weight[4];
} axis_taps;

static int32_t floor_double(double x) {
  const int32_t low = (int32_t)x;
  return low > x ? low - 1 : low;
}

static double cubic(double x) {
  const double a = -0.75;
  if (x < 0) x = -x;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static axis_taps corner_taps(uint32_t n, uint32_t o, uint32_t i) {
  const double scale = o == 1 || n == 1 ? (double)o / n : (double)(o - 1) / (n - 1);
  const double at = i / scale;
  const int32_t low = floor_double(at);
  return (axis_taps){low, 2, {1 - (at - low), at - low}};
}

static axis_taps cubic_taps(uint32_t n, uint32_t o, uint32_t i) {
  const double at = (i + 0.5) * n / o - 0.5;
  const int32_t low = floor_double(at);
  axis_taps taps = {.first = low - 1, .count = 4};
  for (int k = 0; k < 4; k++) taps.weight[k] = cubic(at - (low - 1 + k));
  return taps;
}

// The weights of the entries [first, end): a triangle around `centre`, to be divided by `sum`.
typedef struct triangle_axis {
  uint32_t first, end;
  double centre, support, sum;
} triangle_axis;

static double triangle_weight(const triangle_axis *axis, uint32_t j) {
  double distance = j - axis->centre + 0.5;
  if (distance < 0) distance = -distance;
  distance = 1 - distance / axis->support;
  return distance > 0 ? distance : 0;
}

static triangle_axis triangle_of(uint32_t n, uint32_t o, uint32_t i) {
  const double scale = (double)o / n, support = scale < 1 ? 1 / scale : 1;
  const double centre = (i + 0.5) / scale;
  const double low = centre - support + 0.5, high = centre + support + 0.5;
  triangle_axis axis = {.centre = centre, .support = support};
  axis.first = low > 0 ? (uint32_t)low : 0;
  axis.end = high < n ? (uint32_t)high : n;
  for (uint32_t j = axis.first; j < axis.end; j++) axis.sum += triangle_weight(&axis, j);
  return axis;
}

static void add_scaled(float *to, const float *from, float factor, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] += factor * from[i];
}

static const float *table_row(const media_model *model, uint64_t index) {
  return model->positions + index * model->width;
}

static void add_triangles(const media_encoding *encoding, uint32_t side, uint32_t y, uint32_t x,
                          float *to) {
  const media_model *model = encoding->model;
  const triangle_axis down = triangle_of(side, encoding->grid.down, y);
  const triangle_axis across = triangle_of(side, encoding->grid.across, x);
  for (uint32_t j = down.first; j < down.end; j++) {
    const double part = triangle_weight(&down, j) / down.sum;
    for (uint32_t i = across.first; i < across.end; i++) {
      const double weight = part * triangle_weight(&across, i) / across.sum;
      if (weight == 0) continue;
      add_scaled(to, table_row(model, (uint64_t)j * side + i), (float)weight, model->width);
    }
  }
}

static uint32_t clamp_index(int32_t index, uint32_t n) {
  if (index < 0) return 0;
  return (uint32_t)index < n ? (uint32_t)index : n - 1;
}

static void add_taps(const media_encoding *encoding, uint32_t side, const axis_taps *down,
                     const axis_taps *across, float *to) {
  const media_model *model = encoding->model;
  for (int32_t j = 0; j < down->count; j++) {
    const uint64_t line = (uint64_t)clamp_index(down->first + j, side) * side;
    for (int32_t i = 0; i < across->count; i++) {
      const double weight = down->weight[j] * across->weight[i];
      if (weight == 0) continue;
      add_scaled(to, table_row(model, line + clamp_index(across->first + i, side)), (float)weight,
                 model->width);
    }
  }
}

static void add_resampled(const media_encoding *encoding, uint32_t y, uint32_t x, float *to) {
  const patch_grid *grid = &encoding->grid;
  uint32_t side = 1;
  while ((uint64_t)side * side < encoding->model->position_rows) side++;
  if (encoding->model->kind->positions == POSITIONS_ANTIALIAS) {
    add_triangles(encoding, side, y, x, to);
    return;
  }
  const bool is_cubic = encoding->model->kind->positions == POSITIONS_BICUBIC;
  const axis_taps down =
      is_cubic ? cubic_taps(side, grid->down, y) : corner_taps(side, grid->down, y);
  const axis_taps across =
      is_cubic ? cubic_taps(side, grid->across, x) : corner_taps(side, grid->across, x);
  add_taps(encoding, side, &down, &across, to);
}

static void add_position(const row_job *job, uint32_t row) {
  const media_encoding *encoding = job->encoding;
  const media_model *model = encoding->model;
  const patch_grid *grid = &encoding->grid;
  const uint32_t y = grid->y[row], x = grid->x[row], n = model->width;
  float *to = encoding->hidden + row * encoding->stride;
  const bool is_second = model->class_row != NULL && !model->options.follows_llama_cpp;
  switch (model->kind->positions) {
    case POSITIONS_FIXED:
      add_scaled(to, table_row(model, y * grid->across + x + is_second), 1, n);
      return;
    case POSITIONS_AXES:
      add_scaled(to, table_row(model, x), 1, n);
      add_scaled(to, table_row(model, (uint64_t)model->position_rows + y), 1, n);
      return;
    case POSITIONS_BUCKETS:
      add_scaled(to,
                 table_row(model, BUCKETS_A_SIDE * y / grid->down * BUCKETS_A_SIDE +
                                      BUCKETS_A_SIDE * x / grid->across),
                 1, n);
      return;
    default:
      add_resampled(encoding, y, x, to);
  }
}

static void put_class_row(media_encoding *encoding) {
  const media_model *model = encoding->model;
  if (model->class_row == NULL || !encode_takes(encoding, model->width)) return;
  float *to = encoding->hidden + encoding->grid.patches * encoding->stride;
  memcpy(to, model->class_row, model->width * sizeof *to);
  const uint32_t row = model->options.follows_llama_cpp ? encoding->grid.patches : 0;
  if (model->positions != NULL) add_scaled(to, table_row(model, row), 1, model->width);
}

// ---- rotation ----

static void put_angle(float *pair, uint32_t position, double exponent, double base) {
  double sine, cosine;
  math_sin_cos(position * math_pow(base, exponent), &sine, &cosine);
  pair[0] = (float)cosine;
  pair[1] = (float)sine;
}

static void put_angles(const row_job *job, uint32_t row) {
  const media_encoding *encoding = job->encoding;
  const media_model *model = encoding->model;
  const vision_rotary rotary = model->kind->rotary;
  const uint32_t dim = model->head_dim, half = dim / 4;  // pairs
  const uint32_t y = encoding->grid.y[row], x = encoding->grid.x[row];
  const bool is_gemma = rotary == ROTARY_QUARTERS;
  float *to = encoding->cos_sin + (size_t)row * dim;
  for (uint32_t j = 0; j < half; j++) {
    const double exponent = -2.0 * j / (dim / 2), base = is_gemma ? 100 : 10000;
    const double shift = rotary == ROTARY_NEIGHBOURS ? -2.0 / dim : 0;
    put_angle(to + 2 * j, is_gemma ? x : y, exponent, base);
    put_angle(to + 2 * (half + j), is_gemma ? y : x, exponent + shift, base);
  }
}

void patches_embed(media_encoding *encoding) {
  const media_model *model = encoding->model;
  const patch_grid *grid = &encoding->grid;
  enum { TAPS_MACS = 64, ANGLE_MACS = 2048 };
  row_job job = {
      .encoding = encoding, .run = add_position, .macs = (uint64_t)TAPS_MACS * model->width};
  multiply_patches(encoding);
  if (model->embedding_norm.weight != NULL) {
    rows_norm(encoding, &model->embedding_norm, true, model->epsilon, model->width,
              encoding->hidden, encoding->stride, encoding->hidden, encoding->stride,
              grid->patches);
  }
  if (model->positions != NULL) rows_run(&job, grid->patches);
  put_class_row(encoding);
  if (encoding->cos_sin != NULL) {
    job.run = put_angles;
    job.macs = (uint64_t)ANGLE_MACS * model->head_dim;
    rows_run(&job, grid->patches);
  }
  if (model->pre_norm.weight != NULL) {
    rows_norm(encoding, &model->pre_norm, model->has_rms_norms, model->epsilon, model->width,
              encoding->hidden, encoding->stride, encoding->hidden, encoding->stride, grid->rows);
  }
}
