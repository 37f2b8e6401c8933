// model/rope.c — see rope.h.
#include "model/rope.h"

#include "base/math.h"

wick_status rope_create(memory_gate *memory, model_rope *rope, wick_error *error) {
  rope->frequencies = memory_alloc_array(memory, rope->dims / 2, sizeof(double));
  return rope->frequencies != NULL ? WICK_OK : memory_fail(memory, error, "rotary frequencies");
}

void rope_destroy(memory_gate *memory, model_rope *rope) {
  memory_free(memory, rope->frequencies);
  rope->frequencies = NULL;
}

// Returns the pair whose rotation makes this many turns within the original context, limited to -1
// to dims, because it does not matter where the ramp ends outside of the head. With a base of 1,
// the quotient is infinite or NaN, and the result is -1 or dims.
static double yarn_pair(const model_rope *rope, double turns) {
  const double turn_tokens = turns * 2 * 3.14159265358979323846;
  const double pair =
      rope->dims * math_log(rope->original_context / turn_tokens) / (2 * math_log(rope->theta));
  if (!(pair > -1)) return -1;
  return pair < rope->dims ? pair : rope->dims;
}

// Returns the degree to which pair i is interpolated; 0: not at all, 1: by the whole scale. The
// ramp begins at the first whole pair with fewer than `fast` turns, and ends after the last pair
// with `slow` turns.
static double yarn_share(const model_rope *rope, uint32_t i) {
  const double low = yarn_pair(rope, rope->yarn.fast), high = yarn_pair(rope, rope->yarn.slow);
  int32_t first = (int32_t)low, last = (int32_t)high;
  if (first > low) first--;
  if (last < high) last++;
  if (first < 0) first = 0;
  if (last > (int32_t)rope->dims - 1) last = (int32_t)rope->dims - 1;
  const double width = last > first ? last - first : 0.001;
  const double share = ((double)i - first) / width;
  return share < 0 ? 0 : share > 1 ? 1 : share;
}

static const float *chosen_factors(const model_rope *rope, uint32_t context_tokens) {
  const float *chosen =
      context_tokens > rope->original_context ? rope->long_factors : rope->short_factors;
  return chosen == NULL ? rope->factors : chosen;
}

void rope_fill(const model_rope *rope, uint32_t context_tokens) {
  const float *factors = chosen_factors(rope, context_tokens);
  for (uint32_t i = 0; i < rope->dims / 2; i++) {
    const double exponent = -2.0 * (double)i / (double)rope->dims;
    double frequency = math_pow(rope->theta, exponent);
    if (factors != NULL) frequency /= (double)factors[i];
    if (rope->yarn.is_on) {
      const double share = yarn_share(rope, i);
      frequency = frequency / rope->scale * share + frequency * (1 - share);
    } else {
      frequency /= rope->scale;
    }
    rope->frequencies[i] = frequency;
  }
}

// Returns the axis of pair i; sections repeat if there are more pairs.
static uint32_t axis_of(const model_rope *rope, uint32_t i) {
  const uint32_t *sections = rope->sections;
  const uint32_t pairs = sections[0] + sections[1] + sections[2] + sections[3];
  if (pairs == 0) return 0;
  i %= pairs;
  if (rope->is_alternating) return i < 3 * sections[i % 3] ? i % 3 : 3;
  uint32_t axis = 0;
  for (; i >= sections[axis]; axis++) i -= sections[axis];
  return axis;
}

void rope_table(const model_rope *rope, const int64_t positions[4], float *cos_sin) {
  for (uint32_t i = 0; i < rope->dims / 2; i++) {
    double sine, cosine;
    const double position = (double)positions[axis_of(rope, i)];
    math_sin_cos(position * rope->frequencies[i], &sine, &cosine);
    cos_sin[2 * i] = (float)(cosine * rope->magnitude);
    cos_sin[2 * i + 1] = (float)(sine * rope->magnitude);
  }
}
