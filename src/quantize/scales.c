// quantize/scales.c — the search: it varies the scale that the largest value requires by up to one
// step of that value's code, in tenths, and fits each scale to its codes by linear least squares.
#include "quantize/scales.h"

enum { TENTHS = 10 };

static const float TINY = 1e-15f;  // smaller scales would be 0 as half floats

float quantize_scale(const float *values, uint32_t count, int32_t levels) {
  float largest = 0, magnitude = 0;
  for (uint32_t i = 0; i < count; i++) {
    const float absolute = values[i] < 0 ? -values[i] : values[i];
    if (absolute > magnitude) magnitude = absolute, largest = values[i];
  }
  if (magnitude < TINY) return 0;
  float best = 0, best_dots = 0, best_squares = 1;
  for (int32_t tenth = -TENTHS; tenth <= TENTHS; tenth++) {
    // the largest value gets the code -levels, because the negative side has one more code
    const float inverse = -((float)levels + 0.1f * (float)tenth) / largest;
    float dots = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
      const int32_t nearest = quantize_nearest(inverse * values[i]);
      const float code = (float)quantize_clamp(nearest, -levels, levels - 1);
      dots += values[i] * code;
      squares += code * code;
    }
    // the squared error is sum(v^2) - dots^2 / squares
    if (dots * dots * best_squares > best_dots * best_dots * squares) {
      best = dots / squares;
      best_dots = dots;
      best_squares = squares;
    }
  }
  return best;
}

typedef struct line_fit {
  float codes, squares, dots;  // sums of code, code^2, code * value
} line_fit;

// Fits the line of least squared error through (code, value).
static quantize_line fit_line(const line_fit *fit, float values, float count, bool is_below_zero) {
  const float determinant = count * fit->squares - fit->codes * fit->codes;
  quantize_line line = {0, values / count};
  if (determinant > 0) {
    line.scale = (count * fit->dots - fit->codes * values) / determinant;
    line.min = (fit->squares * values - fit->codes * fit->dots) / determinant;
  }
  if (is_below_zero && line.min > 0) {
    line.min = 0;
    line.scale = fit->squares > 0 ? fit->dots / fit->squares : 0;
  }
  return line;
}

// Returns the squared error of a line, without sum(value^2).
static float error_of(const quantize_line *line, const line_fit *fit, float values, float count) {
  return line->scale * line->scale * fit->squares +
         2 * line->scale * (line->min * fit->codes - fit->dots) +
         line->min * (count * line->min - 2 * values);
}

quantize_line quantize_scale_and_min(const float *values, uint32_t count, int32_t top,
                                     bool is_below_zero) {
  float low = values[0], high = values[0], sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
    sum += values[i];
  }
  if (is_below_zero && low > 0) low = 0;
  quantize_line best = {0, low};
  if (high - low < TINY) return best;
  float best_error = 0;
  for (int32_t tenth = -TENTHS; tenth <= TENTHS; tenth++) {
    const float inverse = ((float)top + 0.1f * (float)tenth) / (high - low);
    line_fit fit = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
      const int32_t nearest = quantize_nearest(inverse * (values[i] - low));
      const float code = (float)quantize_clamp(nearest, 0, top);
      fit.codes += code;
      fit.squares += code * code;
      fit.dots += code * values[i];
    }
    const quantize_line line = fit_line(&fit, sum, (float)count, is_below_zero);
    const float error = error_of(&line, &fit, sum, (float)count);
    if (tenth == -TENTHS || error < best_error) best = line, best_error = error;
  }
  return best;
}
