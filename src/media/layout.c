// media/layout.c — see layout.h. Sizes are computed in 32-bit floats: with doubles, the sizes of a
// few images would differ.
#include "media/layout.h"

#include "base/checked.h"
#include "base/math.h"

enum { LFM2_TILE = 512, LFM2_TILES_MIN = 2, LFM2_TILES_MAX = 10, SLICES_MAX = 9 };

// ---- rounding floats above 0 to whole numbers ----

static uint32_t floor_of(float x) { return x < 4294967040.0f ? (uint32_t)x : UINT32_MAX; }
static uint32_t ceil_of(float x) {
  const uint32_t low = floor_of(x);
  return (float)low < x ? low + 1 : low;
}
static uint32_t round_of(double x) {  // rounds half away from zero
  return x < 4294967040.0 ? (uint32_t)(x + 0.5) : UINT32_MAX;
}
static uint32_t round_even_of(double x) {
  const uint32_t low = (uint32_t)x;
  const double rest = x - low;
  if (rest != 0.5) return rest > 0.5 ? low + 1 : low;
  return low + (low & 1);
}
static float root_of(float x) { return __builtin_sqrtf(x); }
static uint32_t at_least(uint32_t value, uint32_t least) { return value > least ? value : least; }

static uint32_t nearest_multiple(uint32_t value, uint32_t of) {
  return at_least(round_of((float)value / (float)of) * of, of);
}

// ---- frames ----

typedef struct image_size {
  uint32_t width, height;
} image_size;

static image_frame frame_of(const layout_settings *settings, image_size size, bool keeps_aspect) {
  return (image_frame){.width = size.width,
                       .height = size.height,
                       .filter = settings->kind->filter,
                       .keeps_aspect = keeps_aspect};
}

static image_size square_of(const layout_settings *settings) {
  return (image_size){settings->image_size, settings->image_size};
}

static image_size smart_size(image_size in, uint32_t align, uint32_t min, uint32_t max) {
  image_size out = {nearest_multiple(in.width, align), nearest_multiple(in.height, align)};
  const uint64_t pixels = (uint64_t)out.width * out.height;
  const float width = (float)in.width, height = (float)in.height, step = (float)align;
  if (max > 0 && pixels > max) {
    const float by = root_of(height * width / (float)max);
    out.height = at_least(floor_of(height / by / step) * align, align);
    out.width = at_least(floor_of(width / by / step) * align, align);
  } else if (pixels < min) {
    const float by = root_of((float)min / (height * width));
    out.height = ceil_of(height * by / step) * align;
    out.width = ceil_of(width * by / step) * align;
  }
  return out;
}

static void plan_smart(const layout_settings *settings, image_size in, image_layout *out) {
  const uint32_t align = settings->patch * settings->merge;
  const image_size size = smart_size(in, align, settings->pixels_min, settings->pixels_max);
  out->overview = frame_of(settings, size, true);
}

static void plan_longest(const layout_settings *settings, image_size in, image_layout *out) {
  const uint32_t align = settings->patch * settings->merge;
  const float edge = (float)(settings->longest != 0 ? settings->longest : settings->image_size);
  const float across = edge / (float)in.width, down = edge / (float)in.height;
  const float scale = across < down ? across : down, step = (float)align;
  const image_size size = {ceil_of((float)in.width * scale / step) * align,
                           ceil_of((float)in.height * scale / step) * align};
  out->overview = frame_of(settings, size, true);
}

static void plan_square(const layout_settings *settings, image_size in, image_layout *out) {
  (void)in;
  const bool stretches = settings->kind->stretches && !settings->pads;
  out->overview = frame_of(settings, square_of(settings), !stretches);
}

// Returns the maximum number of tiles of a grid: one less than the limit, which includes the
// overview.
static uint32_t tiles_limit(const layout_settings *settings, uint32_t usual) {
  const uint32_t limit = settings->pictures_max;
  return limit != 0 && limit - 1 < usual ? limit - 1 : usual;
}

static void set_tiles(image_layout *out, uint32_t columns, uint32_t rows, image_frame frame) {
  out->columns = columns;
  out->rows = rows;
  out->tiles = frame;
}

// ---- Idefics 3 ----

static image_size size_of_edge(image_size in, uint32_t edge) {
  const double aspect = (double)in.width / in.height;
  image_size size;
  if (in.width >= in.height) {
    size = (image_size){edge, (uint32_t)(edge / aspect)};
    size.height += size.height & 1;
  } else {
    size = (image_size){(uint32_t)(edge * aspect), edge};
    size.width += size.width & 1;
  }
  return (image_size){at_least(size.width, 1), at_least(size.height, 1)};
}

static image_size grid_of(image_size size, uint32_t side) {
  return (image_size){ceil_div_u32(size.width, side), ceil_div_u32(size.height, side)};
}

// While a grid has too many tiles, removes a row or column along its longer side.
static void plan_idefics(const layout_settings *settings, image_size in, image_layout *out) {
  const uint32_t side = at_least(settings->image_size, 1);
  const uint32_t most = tiles_limit(settings, UINT32_MAX);
  image_size size =
      settings->longest == 0 ? smart_size(in, side, 0, 0) : size_of_edge(in, settings->longest);
  image_size grid = grid_of(size, side);
  while ((uint64_t)grid.width * grid.height > most && most != 0) {
    size = size_of_edge(in, (at_least(grid.width, grid.height) - 1) * side);
    grid = grid_of(size, side);
  }
  image_frame frame =
      frame_of(settings, (image_size){grid.width * side, grid.height * side}, false);
  out->overview = frame_of(settings, square_of(settings), false);
  if (most == 0) return;
  if (settings->longest != 0) {
    frame.via_width = size.width;
    frame.via_height = size.height;
    out->overview_is_of_tiles = true;
  } else {
    frame.filter = IMAGE_BICUBIC;
  }
  set_tiles(out, grid.width, grid.height, frame);
}

// ---- LFM2 ----

static float distance(float a, float b) { return a > b ? a - b : b - a; }

static image_size lfm2_grid(image_size in, uint32_t tiles_max) {
  const float aspect = (float)in.width / (float)in.height;
  const double area = (double)in.width * in.height;
  image_size best = {1, 1};
  float least = 3e38f;
  for (uint32_t tiles = LFM2_TILES_MIN; tiles <= tiles_max; tiles++) {
    for (uint32_t most = 2; most <= tiles;
         most++) {  // grids with equal numbers of tiles, sorted by the longer side
      for (uint32_t columns = 1; columns <= most; columns++) {
        if (tiles % columns != 0) continue;
        const uint32_t rows = tiles / columns, longer = columns > rows ? columns : rows;
        if (at_least(longer, 2) != most) continue;
        const float off = distance(aspect, (float)columns / (float)rows);
        const bool is_tie = off == least && area > (double)(LFM2_TILE * LFM2_TILE) * tiles * 0.5;
        if (off >= least && !is_tie) continue;
        least = off;
        best = (image_size){columns, rows};
      }
    }
  }
  return best;
}

static void plan_lfm2(const layout_settings *settings, image_size in, image_layout *out) {
  const uint32_t align = settings->patch * settings->merge, most = settings->pixels_max;
  const image_size size = smart_size(in, align, settings->pixels_min, most);
  out->overview = frame_of(settings, size, false);
  const double height = (double)align * round_even_of((double)in.height / align);
  const double width = (double)align * round_even_of((double)in.width / align);
  const double patch = settings->patch;
  if ((height > patch ? height : patch) * (width > patch ? width : patch) <= 2.0 * most) return;
  const uint32_t tiles_max = tiles_limit(settings, LFM2_TILES_MAX);
  if (tiles_max < LFM2_TILES_MIN) return;
  const image_size grid = lfm2_grid(in, tiles_max);
  set_tiles(out, grid.width, grid.height,
            frame_of(settings, (image_size){LFM2_TILE * grid.width, LFM2_TILE * grid.height},
                     settings->pads));
}

// ---- the best of several sizes ----

typedef struct best_size {
  image_size in, size;
  uint64_t used, wasted;  // pixels
} best_size;

static void consider(best_size *best, uint32_t width, uint32_t height) {
  const float across = (float)width / (float)best->in.width;
  const float down = (float)height / (float)best->in.height;
  const float scale = across < down ? across : down;
  uint64_t used =
      (uint64_t)floor_of((float)best->in.width * scale) * floor_of((float)best->in.height * scale);
  const uint64_t all = (uint64_t)best->in.width * best->in.height;
  if (used > all) used = all;
  const uint64_t wasted = (uint64_t)width * height - used;
  if (best->size.width != 0 &&
      (used < best->used || (used == best->used && wasted >= best->wasted))) {
    return;
  }
  *best = (best_size){best->in, {width, height}, used, wasted};
}

static void plan_best(const layout_settings *settings, image_size in, image_layout *out) {
  const uint32_t side = settings->image_size, most = tiles_limit(settings, UINT32_MAX);
  out->overview = frame_of(settings, square_of(settings), false);
  if (in.width <= side && in.height <= side) return;
  best_size best = {.in = in};
  for (uint32_t i = 0; i < settings->pinpoint_count; i++) {
    const uint32_t *size = settings->pinpoints[i];
    if ((size[0] / side) * (size[1] / side) <= most) consider(&best, size[0], size[1]);
  }
  const uint32_t min = settings->tiles_min;
  const uint32_t max = settings->tiles_max < most ? settings->tiles_max : most;
  for (uint32_t a = min; settings->pinpoint_count == 0 && a <= max; a++) {
    const uint32_t end = max / a < max ? max / a : max;
    for (uint32_t b = at_least(min, ceil_div_u32(min, a)); b <= end; b++) {
      consider(&best, a * side, b * side);
    }
  }
  if (best.size.width == 0) return;
  set_tiles(out, best.size.width / side, best.size.height / side,
            frame_of(settings, best.size, true));
}

static void plan_pinpoints(const layout_settings *settings, image_size in, image_layout *out) {
  if (settings->pinpoint_count != 0) {
    plan_best(settings, in, out);
    return;
  }
  plan_square(settings, in, out);
  out->overview.colour[0] = 122;
  out->overview.colour[1] = 116;
  out->overview.colour[2] = 104;
}

// ---- MiniCPM ----

static image_size slice_size(const layout_settings *settings, image_size in, bool enlarges) {
  const uint32_t side = settings->image_size, align = settings->patch * settings->merge;
  if ((uint64_t)in.width * in.height > (uint64_t)side * side || enlarges) {
    const float aspect = (float)in.width / (float)in.height;
    in.height = floor_of((float)side / root_of(aspect));
    in.width = floor_of((float)in.height * aspect);
  }
  return (image_size){nearest_multiple(in.width, align), nearest_multiple(in.height, align)};
}

static image_size slice_grid(image_size in, uint32_t slices, uint32_t most) {
  const double aspect = math_log((double)in.width / in.height);
  image_size best = {1, 1};
  double least = 1e300;
  for (uint32_t count = slices - 1; count <= slices + 1 && count <= most; count++) {
    for (uint32_t m = 1; m <= count && count != 1; m++) {
      if (count % m != 0) continue;
      const double off = aspect - math_log((double)m / (count / m));
      const double distance = off < 0 ? -off : off;
      if (distance >= least) continue;
      least = distance;
      best = (image_size){m, count / m};
    }
  }
  return best;
}

static void plan_slices(const layout_settings *settings, image_size in, image_layout *out) {
  const uint32_t side = settings->image_size;
  const uint64_t pixels = (uint64_t)in.width * in.height, whole = (uint64_t)side * side;
  const bool is_small = in.width <= side && in.height <= side;
  if (settings->merge == 2 && pixels <= whole) {
    out->overview = frame_of(settings, slice_size(settings, in, true), false);
    return;
  }
  out->overview =
      frame_of(settings, is_small ? square_of(settings) : slice_size(settings, in, false), false);
  if (is_small) return;
  const uint64_t parts = (pixels + whole - 1) / whole;
  const uint32_t most = tiles_limit(settings, SLICES_MAX);
  if (most == 0) return;
  const image_size grid = slice_grid(in, parts < most ? (uint32_t)parts : most, most);
  if (grid.width * grid.height < 2) return;
  const image_size cell = {at_least(round_of((float)in.width / (float)grid.width), 1),
                           at_least(round_of((float)in.height / (float)grid.height), 1)};
  const image_size size = slice_size(settings, cell, true);
  set_tiles(
      out, grid.width, grid.height,
      frame_of(settings, (image_size){size.width * grid.width, size.height * grid.height}, true));
}

// ---- all layouts ----

static void (*const PLANS[])(const layout_settings *settings, image_size in, image_layout *out) = {
    [SIZING_SQUARE] = plan_square,       [SIZING_SMART] = plan_smart,
    [SIZING_LONGEST] = plan_longest,     [SIZING_IDEFICS] = plan_idefics,
    [SIZING_LFM2] = plan_lfm2,           [SIZING_CANDIDATES] = plan_best,
    [SIZING_PINPOINTS] = plan_pinpoints, [SIZING_SLICES] = plan_slices};

static bool is_frame_sane(const image_frame *frame) {
  return frame->width != 0 && frame->height != 0 &&
         (uint64_t)frame->width * frame->height <= IMAGE_PIXELS_MAX;
}

wick_status layout_plan(const layout_settings *settings, uint32_t width, uint32_t height,
                        image_layout *out, wick_error *error) {
  const image_size in = {width, height};
  *out = (image_layout){0};
  PLANS[settings->kind->sizing](settings, in, out);
  const uint64_t tiles = (uint64_t)out->columns * out->rows;
  if (tiles > LAYOUT_TILES_MAX || !is_frame_sane(&out->overview) ||
      (tiles != 0 && !is_frame_sane(&out->tiles))) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "image: %u x %u needs more than %u tiles or %u pixels", width, height,
                     LAYOUT_TILES_MAX, IMAGE_PIXELS_MAX);
  }
  return WICK_OK;
}
