// media/resample.c — see image.h. Separable filters with integer weights of 22 bits, as in Pillow
// (libImaging/Resample.c documents the method).
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "media/image.h"

enum { WEIGHT_BITS = 22 };

// The weights of one axis: output o is the weighted sum of inputs [first[o], first[o] + count[o]).
typedef struct axis_weights {
  uint32_t taps;  // maximum number of weights of an output
  uint32_t *first, *count;
  int32_t *weights;  // [outputs][taps]
  void *block;
} axis_weights;

static double sinc(double x) {
  if (x == 0) return 1;
  double sine, cosine;
  x *= 3.14159265358979323846;
  math_sin_cos(x, &sine, &cosine);
  return sine / x;
}

static double filter_support(image_filter filter) { return 1.0 + (double)filter; }

static double filter_value(image_filter filter, double x) {
  const double a = -0.5;
  if (filter == IMAGE_LANCZOS) return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  if (x < 0) x = -x;
  if (filter == IMAGE_BILINEAR) return x < 1 ? 1 - x : 0;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static int32_t weight_code(double weight) {
  const double scaled = weight * (1 << WEIGHT_BITS);
  return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

// Computes the weights of output `o`; `values` has room for `taps` values.
static void make_output(axis_weights *axis, image_filter filter, uint32_t in, uint32_t out,
                        uint32_t o, double *values) {
  const double scale = (double)in / out, stretch = scale > 1 ? scale : 1;
  const double support = filter_support(filter) * stretch, centre = (o + 0.5) * scale;
  const double low = centre - support + 0.5, high = centre + support + 0.5;
  const uint32_t first = low > 0 ? (uint32_t)low : 0;
  const uint32_t end = high < in ? (uint32_t)high : in;
  double sum = 0;
  for (uint32_t i = first; i < end; i++) {
    values[i - first] = filter_value(filter, (i - centre + 0.5) / stretch);
    sum += values[i - first];
  }
  axis->first[o] = first;
  axis->count[o] = end - first;
  for (uint32_t i = 0; i < end - first; i++) {
    axis->weights[(size_t)o * axis->taps + i] = weight_code(sum != 0 ? values[i] / sum : values[i]);
  }
}

static uint32_t axis_taps(image_filter filter, uint32_t in, uint32_t out) {
  const double scale = (double)in / out;
  return (uint32_t)(filter_support(filter) * (scale > 1 ? scale : 1)) * 2 + 4;
}

static uint64_t axis_bytes(image_filter filter, uint32_t in, uint32_t out) {
  const uint64_t taps = axis_taps(filter, in, out);
  return taps * sizeof(double) + out * (taps * sizeof(int32_t) + 2 * sizeof(uint32_t));
}

static bool make_axis(memory_gate *memory, image_filter filter, uint32_t in, uint32_t out,
                      axis_weights *axis) {
  axis->taps = axis_taps(filter, in, out);
  axis->block = memory_alloc_wide(memory, axis_bytes(filter, in, out));
  if (axis->block == NULL) return false;
  double *values = axis->block;
  axis->first = (uint32_t *)(void *)(values + axis->taps);
  axis->count = axis->first + out;
  axis->weights = (int32_t *)(void *)(axis->count + out);
  for (uint32_t o = 0; o < out; o++) make_output(axis, filter, in, out, o, values);
  return true;
}

static uint8_t level_of(int32_t sum) {
  const int32_t level = sum >> WEIGHT_BITS;
  return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
}

static void across_row(const axis_weights *axis, const uint8_t *in, uint32_t width, uint8_t *out) {
  for (uint32_t o = 0; o < width; o++) {
    const int32_t *weights = axis->weights + (size_t)o * axis->taps;
    const uint8_t *from = in + (size_t)axis->first[o] * 3;
    int32_t red = 1 << (WEIGHT_BITS - 1), green = red, blue = red;
    for (uint32_t i = 0; i < axis->count[o]; i++) {
      red += from[3 * i] * weights[i];
      green += from[3 * i + 1] * weights[i];
      blue += from[3 * i + 2] * weights[i];
    }
    out[3 * o] = level_of(red);
    out[3 * o + 1] = level_of(green);
    out[3 * o + 2] = level_of(blue);
  }
}

// Computes a row vertically. `sums` has room for one row.
static void down_row(const axis_weights *axis, image_view in, uint32_t o, int32_t *sums,
                     uint8_t *out) {
  const uint32_t bytes = in.width * 3;
  for (uint32_t x = 0; x < bytes; x++) sums[x] = 1 << (WEIGHT_BITS - 1);
  for (uint32_t i = 0; i < axis->count[o]; i++) {
    const uint8_t *from = in.rgb + (axis->first[o] + i) * in.stride_bytes;
    const int32_t weight = axis->weights[(size_t)o * axis->taps + i];
    for (uint32_t x = 0; x < bytes; x++) sums[x] += from[x] * weight;
  }
  for (uint32_t x = 0; x < bytes; x++) out[x] = level_of(sums[x]);
}

// ---- passes ----

// A pass computes one image from another: with narrower or wider rows, with fewer or more rows, or
// as a copy.
typedef struct image_pass {
  uint32_t in_width, in_height, width, height;
} image_pass;

enum { PASSES_MAX = 4 };

struct image_fitting {
  memory_gate *memory;
  image_filter filter;
  image_pass passes[PASSES_MAX];
  uint32_t count, pass;   // index of the current pass
  uint32_t row;           // the pass's next row
  image_view in;          // input of every pass except the first one
  uint8_t *owned, *made;  // input and output image, if owned by the pass
  uint8_t *last;          // output of the last pass
  size_t last_stride_bytes;
  axis_weights axis;
  int32_t *sums;
};

static bool is_across(const image_pass *pass) { return pass->width != pass->in_width; }
static bool is_down(const image_pass *pass) { return pass->height != pass->in_height; }
static uint64_t made_bytes(const image_pass *pass) {
  return (uint64_t)pass->width * pass->height * 3;
}

// Adds the passes from one size to another, the horizontal pass first. The first pass always
// computes each row from one row.
static uint32_t add_passes(image_pass *passes, uint32_t count, uint32_t in_width,
                           uint32_t in_height, uint32_t width, uint32_t height) {
  if (count == 0 || in_width != width || in_height == height) {
    passes[count++] = (image_pass){in_width, in_height, width, in_height};
  }
  if (in_height != height) passes[count++] = (image_pass){width, in_height, width, height};
  return count;
}

static uint32_t fitted_side(uint32_t side, float scale, uint32_t limit) {
  const float length = (float)side * scale;
  uint32_t fitted = (uint32_t)length;
  if ((float)fitted < length) fitted++;
  if (fitted > limit) fitted = limit;
  return fitted == 0 ? 1 : fitted;
}

static uint32_t plan_passes(const image_frame *frame, uint32_t width, uint32_t height,
                            image_pass *passes) {
  uint32_t count = 0, to_width = frame->width, to_height = frame->height;
  if (frame->via_width != 0) {
    count = add_passes(passes, 0, width, height, frame->via_width, frame->via_height);
    width = frame->via_width;
    height = frame->via_height;
  }
  if (frame->keeps_aspect && (width != to_width || height != to_height)) {
    const float across = (float)to_width / (float)width, down = (float)to_height / (float)height;
    const float scale = across < down ? across : down;
    to_width = fitted_side(width, scale, to_width);
    to_height = fitted_side(height, scale, to_height);
  }
  return add_passes(passes, count, width, height, to_width, to_height);
}

static uint64_t pass_bytes(const image_pass *pass, image_filter filter) {
  if (is_across(pass)) return axis_bytes(filter, pass->in_width, pass->width);
  if (!is_down(pass)) return 0;
  return axis_bytes(filter, pass->in_height, pass->height) +
         (uint64_t)pass->width * 3 * sizeof(int32_t);
}

uint64_t image_fit_bytes(uint32_t width, uint32_t height, const image_frame *frame) {
  image_pass passes[PASSES_MAX];
  const uint32_t count = plan_passes(frame, width, height, passes);
  uint64_t most = 0, read_bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t own_bytes = i + 1 < count ? made_bytes(&passes[i]) : 0;
    const uint64_t bytes = read_bytes + own_bytes + pass_bytes(&passes[i], frame->filter);
    if (bytes > most) most = bytes;
    read_bytes = own_bytes;
  }
  return most + sizeof(image_fitting);
}

wick_status image_check(uint32_t width, uint32_t height, wick_error *error) {
  if (width == 0 || height == 0) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "image: %u x %u has no pixels", width,
                     height);
  }
  if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX ||
      (uint64_t)width * height > IMAGE_PIXELS_MAX) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "image: %u x %u exceeds %u per side or %u pixels", width, height,
                     IMAGE_SIDE_MAX, IMAGE_PIXELS_MAX);
  }
  return WICK_OK;
}

// ---- fitting ----

static void end_pass(image_fitting *fitting) {
  memory_free(fitting->memory, fitting->axis.block);
  memory_free(fitting->memory, fitting->sums);
  memory_free(fitting->memory, fitting->owned);
  fitting->axis.block = NULL;
  fitting->sums = NULL;
  fitting->owned = fitting->made;
  fitting->made = NULL;
}

static bool begin_pass(image_fitting *fitting) {
  const image_pass *pass = &fitting->passes[fitting->pass];
  memory_gate *memory = fitting->memory;
  const bool across = is_across(pass), down = is_down(pass);
  if (fitting->pass + 1 < fitting->count) {
    fitting->made = memory_alloc_wide(memory, made_bytes(pass));
    if (fitting->made == NULL) return false;
  }
  if (across && !make_axis(memory, fitting->filter, pass->in_width, pass->width, &fitting->axis)) {
    return false;
  }
  if (!down) return true;
  fitting->sums = memory_alloc_array(memory, (size_t)pass->width * 3, sizeof *fitting->sums);
  return fitting->sums != NULL &&
         make_axis(memory, fitting->filter, pass->in_height, pass->height, &fitting->axis);
}

// Computes the next row of the pass, from the row `in` or from the whole image. *macs counts
// multiply-adds and copied bytes.
static wick_status run_row(image_fitting *fitting, const uint8_t *in, uint64_t *macs,
                           wick_error *error) {
  const image_pass *pass = &fitting->passes[fitting->pass];
  const size_t bytes = (size_t)pass->width * 3;
  if (fitting->row == 0 && !begin_pass(fitting)) {
    return memory_fail(fitting->memory, error, "a resampled image");
  }
  uint8_t *out = fitting->made != NULL ? fitting->made + fitting->row * bytes
                                       : fitting->last + fitting->row * fitting->last_stride_bytes;
  if (is_down(pass)) {
    down_row(&fitting->axis, fitting->in, fitting->row, fitting->sums, out);
  } else if (is_across(pass)) {
    across_row(&fitting->axis, in, pass->width, out);
  } else {
    memcpy(out, in, bytes);
  }
  *macs += bytes * (is_down(pass) || is_across(pass) ? fitting->axis.taps : 1);
  if (++fitting->row < pass->height) return WICK_OK;
  if (fitting->made != NULL) fitting->in = image_whole(fitting->made, pass->width, pass->height);
  end_pass(fitting);
  fitting->row = 0;
  fitting->pass++;
  return WICK_OK;
}

// Positions the image, with its aspect ratio, in the middle of the frame.
static void place_last(image_fitting *fitting, const image_frame *frame, uint8_t *out) {
  const image_pass *last = &fitting->passes[fitting->count - 1];
  const size_t left = (frame->width - last->width) / 2, top = (frame->height - last->height) / 2;
  const size_t pixels = (size_t)frame->width * frame->height;
  fitting->last = out + 3 * (top * frame->width + left);
  fitting->last_stride_bytes = (size_t)frame->width * 3;
  if (last->width == frame->width && last->height == frame->height) return;
  for (size_t i = 0; i < pixels; i++) memcpy(out + 3 * i, frame->colour, 3);
}

wick_status image_fit_begin(memory_gate *memory, uint32_t width, uint32_t height,
                            const image_frame *frame, uint8_t *out, image_fitting **fitting,
                            wick_error *error) {
  image_fitting *made = memory_alloc_zeroed(memory, sizeof *made);
  *fitting = made;
  if (made == NULL) return memory_fail(memory, error, "a resampled image");
  made->memory = memory;
  made->filter = frame->filter;
  made->count = plan_passes(frame, width, height, made->passes);
  place_last(made, frame, out);
  return WICK_OK;
}

// Returns the input row from which a pass computes a row, or NULL if it uses several rows.
static const uint8_t *row_in(const image_fitting *fitting) {
  if (is_down(&fitting->passes[fitting->pass])) return NULL;
  return fitting->in.rgb + fitting->row * fitting->in.stride_bytes;
}

uint32_t image_fit_rows_left(const image_fitting *fitting) {
  return fitting->pass != 0 ? 0 : fitting->passes[0].height - fitting->row;
}

wick_status image_fit_feed(image_fitting *fitting, const uint8_t *rgb, size_t stride_bytes,
                           uint32_t rows, wick_error *error) {
  uint64_t macs = 0;
  wick_status status = WICK_OK;
  for (uint32_t row = 0; row < rows && status == WICK_OK; row++) {
    status = run_row(fitting, rgb + row * stride_bytes, &macs, error);
  }
  return status;
}

wick_status image_fit_step(image_fitting *fitting, uint64_t macs_max, bool *is_done,
                           wick_error *error) {
  uint64_t macs = 0;
  wick_status status = WICK_OK;
  while (status == WICK_OK && macs < macs_max && fitting->pass < fitting->count) {
    status = run_row(fitting, row_in(fitting), &macs, error);
  }
  *is_done = fitting->pass == fitting->count;
  return status;
}

void image_fit_end(image_fitting *fitting) {
  if (fitting == NULL) return;
  end_pass(fitting);
  end_pass(fitting);
  memory_free(fitting->memory, fitting);
}
