// media/resample.c — see image.h. Separable filters with integer weights of 22 bits, as in Pillow
// (libImaging/Resample.c documents the method).
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "media/image.h"

enum { WEIGHT_BITS = 22 };

// The weights of one axis: output o is the sum of inputs [first[o], first[o] + count[o]).
typedef struct axis_weights {
  uint32_t taps;  // room for weights of an output
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

// The weights of output `o`; `values` has room for `taps`.
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

// `sums` has room for a row.
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

static void copy_rows(image_view in, uint8_t *out, size_t stride_bytes) {
  for (uint32_t y = 0; y < in.height; y++) {
    memcpy(out + y * stride_bytes, in.rgb + y * in.stride_bytes, (size_t)in.width * 3);
  }
}

static wick_status resample_across(memory_gate *memory, image_view in, image_filter filter,
                                   uint32_t width, uint8_t *out, wick_error *error) {
  axis_weights axis;
  if (!make_axis(memory, filter, in.width, width, &axis)) {
    return memory_fail(memory, error, "an image's filter");
  }
  for (uint32_t y = 0; y < in.height; y++) {
    across_row(&axis, in.rgb + y * in.stride_bytes, width, out + (size_t)y * width * 3);
  }
  memory_free(memory, axis.block);
  return WICK_OK;
}

static wick_status resample_down(memory_gate *memory, image_view in, image_filter filter,
                                 uint32_t height, uint8_t *out, wick_error *error) {
  axis_weights axis;
  if (!make_axis(memory, filter, in.height, height, &axis)) {
    return memory_fail(memory, error, "an image's filter");
  }
  int32_t *sums = memory_alloc_array(memory, (size_t)in.width * 3, sizeof *sums);
  for (uint32_t o = 0; o < height && sums != NULL; o++) {
    down_row(&axis, in, o, sums, out + (size_t)o * in.width * 3);
  }
  const bool is_done = sums != NULL;
  memory_free(memory, sums);
  memory_free(memory, axis.block);
  return is_done ? WICK_OK : memory_fail(memory, error, "a row of an image");
}

wick_status image_resample(memory_gate *memory, image_view in, image_filter filter, uint32_t width,
                           uint32_t height, uint8_t *out, wick_error *error) {
  if (in.width == width && in.height == height) {
    copy_rows(in, out, (size_t)width * 3);
    return WICK_OK;
  }
  if (in.width == width) return resample_down(memory, in, filter, height, out, error);
  if (in.height == height) return resample_across(memory, in, filter, width, out, error);
  uint8_t *middle = memory_alloc_wide(memory, (uint64_t)width * in.height * 3);
  if (middle == NULL) return memory_fail(memory, error, "a resampled image");
  wick_status status = resample_across(memory, in, filter, width, middle, error);
  if (status == WICK_OK) {
    status =
        resample_down(memory, image_whole(middle, width, in.height), filter, height, out, error);
  }
  memory_free(memory, middle);
  return status;
}

wick_status image_check(uint32_t width, uint32_t height, wick_error *error) {
  if (width == 0 || height == 0) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "image: %u x %u has no pixels", width,
                     height);
  }
  if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX ||
      (uint64_t)width * height > IMAGE_PIXELS_MAX) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "image: %u x %u exceeds %u a side or %u pixels", width, height, IMAGE_SIDE_MAX,
                     IMAGE_PIXELS_MAX);
  }
  return WICK_OK;
}

static uint32_t fitted_side(uint32_t side, float scale, uint32_t limit) {
  const float length = (float)side * scale;
  uint32_t fitted = (uint32_t)length;
  if ((float)fitted < length) fitted++;
  if (fitted > limit) fitted = limit;
  return fitted == 0 ? 1 : fitted;
}

// The picture in its own aspect in the middle of the frame.
static wick_status fit_padded(memory_gate *memory, image_view in, const image_frame *frame,
                              uint8_t *out, wick_error *error) {
  const float across = (float)frame->width / (float)in.width;
  const float down = (float)frame->height / (float)in.height;
  const float scale = across < down ? across : down;
  const uint32_t width = fitted_side(in.width, scale, frame->width);
  const uint32_t height = fitted_side(in.height, scale, frame->height);
  uint8_t *inner = memory_alloc_wide(memory, (uint64_t)width * height * 3);
  if (inner == NULL) return memory_fail(memory, error, "a resampled image");
  const wick_status status = image_resample(memory, in, frame->filter, width, height, inner, error);
  if (status == WICK_OK) {
    const size_t pixels = (size_t)frame->width * frame->height;
    for (size_t i = 0; i < pixels; i++) memcpy(out + 3 * i, frame->colour, 3);
    const size_t left = (frame->width - width) / 2, top = (frame->height - height) / 2;
    copy_rows(image_whole(inner, width, height), out + 3 * (top * frame->width + left),
              (size_t)frame->width * 3);
  }
  memory_free(memory, inner);
  return status;
}

static uint64_t larger_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t resample_bytes(const image_frame *frame, uint32_t in_width, uint32_t in_height,
                               uint32_t width, uint32_t height) {
  const bool has_both = in_width != width && in_height != height;
  const uint64_t middle_bytes = has_both ? (uint64_t)width * in_height * 3 : 0;
  const uint64_t sums_bytes = (uint64_t)width * 3 * sizeof(int32_t);
  return middle_bytes + larger_of(axis_bytes(frame->filter, in_width, width),
                                  axis_bytes(frame->filter, in_height, height) + sums_bytes);
}

uint64_t image_fit_bytes(uint32_t width, uint32_t height, const image_frame *frame) {
  uint64_t via_bytes = 0, bytes = 0;
  if (frame->via_width != 0) {
    via_bytes = (uint64_t)frame->via_width * frame->via_height * 3;
    bytes = resample_bytes(frame, width, height, frame->via_width, frame->via_height);
    width = frame->via_width;
    height = frame->via_height;
  }
  const uint64_t padded_bytes =
      frame->keeps_aspect ? (uint64_t)frame->width * frame->height * 3 : 0;
  const uint64_t last_bytes =
      padded_bytes + resample_bytes(frame, width, height, frame->width, frame->height);
  return via_bytes + larger_of(bytes, last_bytes);
}

wick_status image_fit(memory_gate *memory, image_view in, const image_frame *frame, uint8_t *out,
                      wick_error *error) {
  uint8_t *middle = NULL;
  wick_status status = WICK_OK;
  if (frame->via_width != 0) {
    middle = memory_alloc_wide(memory, (uint64_t)frame->via_width * frame->via_height * 3);
    if (middle == NULL) return memory_fail(memory, error, "a resampled image");
    status = image_resample(memory, in, frame->filter, frame->via_width, frame->via_height, middle,
                            error);
    in = image_whole(middle, frame->via_width, frame->via_height);
  }
  const bool is_right = in.width == frame->width && in.height == frame->height;
  if (status == WICK_OK && frame->keeps_aspect && !is_right) {
    status = fit_padded(memory, in, frame, out, error);
  } else if (status == WICK_OK) {
    status = image_resample(memory, in, frame->filter, frame->width, frame->height, out, error);
  }
  memory_free(memory, middle);
  return status;
}
