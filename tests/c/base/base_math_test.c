// The engine's exp, log, pow, sin and cos compared with libc's in long double, and every
// half-precision float.
#include "base/math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "random.h"

static uint64_t random_state = 1;

static double random_between(double least, double most) {
  return least + (most - least) * (double)(random_u64(&random_state) >> 11) * 0x1p-53;
}

static double double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double relative_error(double found, long double exact) {
  return (double)fabsl(((long double)found - exact) / exact);
}

static void check_worst(const char *what, double worst, double bound) {
  printf("#   %s: worst error %.3g\n", what, worst);
  CHECK(worst <= bound);
}

// ---- exp and log ----

TEST(exp_is_within_its_bound) {
  double worst = 0;
  for (int i = 0; i < 60000; i++) {
    const double x = i % 3 == 0 ? random_between(-1, 1) : random_between(-708, 709.7);
    const double error = relative_error(math_exp(x), expl((long double)x));
    worst = error > worst ? error : worst;
  }
  check_worst("exp, relative", worst, 4e-16);
}

TEST(exp_at_the_ends_of_its_range) {
  CHECK(math_exp(0) == 1.0);
  CHECK(math_exp(-0.0) == 1.0);
  CHECK(math_exp(1e-300) == 1.0);
  CHECK(isnan(math_exp(NAN)));
  CHECK(math_exp(INFINITY) == (double)INFINITY);
  CHECK(math_exp(-INFINITY) == 0.0);
  CHECK(math_exp(709.782712893384) < (double)INFINITY);
  CHECK(math_exp(709.79) == (double)INFINITY);
  CHECK(math_exp(1e300) == (double)INFINITY);
  CHECK(math_exp(-746) == 0.0);
  CHECK(math_exp(-1e300) == 0.0);
  // Subnormal results: the unit in the last place is 5e-324.
  for (double x = -708.5; x > -745; x -= 0.37) {
    CHECK(fabsl((long double)math_exp(x) - expl((long double)x)) <= 5e-324L);
  }
}

TEST(log_is_within_its_bound) {
  double worst = 0;
  for (int i = 0; i < 60000; i++) {
    double x = random_between(0.5, 2);
    if (i % 3 == 1) x = exp(random_between(-700, 700));
    if (i % 3 == 2) x = 1 + ldexp(random_between(-1, 1), -(i % 50));
    if (x == 1) continue;
    const double error = relative_error(math_log(x), logl((long double)x));
    worst = error > worst ? error : worst;
  }
  check_worst("log, relative", worst, 4e-16);
}

TEST(log_at_the_ends_of_its_range) {
  CHECK(math_log(1) == 0.0);
  CHECK(math_log(0) == -(double)INFINITY);
  CHECK(math_log(-0.0) == -(double)INFINITY);
  CHECK(math_log(INFINITY) == (double)INFINITY);
  CHECK(isnan(math_log(-1)));
  CHECK(isnan(math_log(-INFINITY)));
  CHECK(isnan(math_log(NAN)));
  const double smallest = double_of_bits(1);
  CHECK(relative_error(math_log(smallest), logl((long double)smallest)) < 4e-16);
  const double subnormal = double_of_bits(0x000fffffffffffffu);
  CHECK(relative_error(math_log(subnormal), logl((long double)subnormal)) < 4e-16);
}

TEST(pow_error_grows_with_the_exponent) {
  double worst = 0;
  for (int i = 0; i < 20000; i++) {
    const double base = exp(random_between(-20, 20));
    const double exponent = random_between(-30, 30);
    const long double exact = powl((long double)base, (long double)exponent);
    const double power = fabs(exponent * log(base));
    const double error = relative_error(math_pow(base, exponent), exact) / (1 + power);
    worst = error > worst ? error : worst;
  }
  check_worst("pow, relative / (1 + |exponent log base|)", worst, 4e-16);
}

TEST(pow_is_accurate_to_a_float_for_rope_frequencies) {
  double worst = 0;
  const double bases[] = {10000, 500000, 1e6};
  for (int b = 0; b < 3; b++) {
    for (int dim = 64; dim <= 256; dim *= 2) {
      for (int i = 0; i < dim; i += 2) {
        const double exponent = -(double)i / dim;
        const long double exact = powl((long double)bases[b], (long double)exponent);
        const double error = relative_error(math_pow(bases[b], exponent), exact);
        worst = error > worst ? error : worst;
      }
    }
  }
  check_worst("pow of rope's frequencies, relative", worst, 4e-15);
}

// ---- sin and cos ----

static double sin_cos_error(double x) {
  double sine, cosine;
  math_sin_cos(x, &sine, &cosine);
  const double of_sine = (double)fabsl((long double)sine - sinl((long double)x));
  const double of_cosine = (double)fabsl((long double)cosine - cosl((long double)x));
  return of_sine > of_cosine ? of_sine : of_cosine;
}

TEST(sin_and_cos_are_within_their_bound) {
  const double ranges[] = {1, 10, 1e3, 1e5, 1e7};
  double worst = 0;
  for (int i = 0; i < 60000; i++) {
    const double range = ranges[i % 5];
    const double error = sin_cos_error(random_between(-range, range));
    worst = error > worst ? error : worst;
  }
  check_worst("sin and cos, absolute", worst, 4e-16);
}

TEST(sin_and_cos_are_accurate_near_multiples_of_a_quarter_turn) {
  double worst = 0;
  for (int i = -2000; i <= 2000; i++) {
    const double around = i * 1.5707963267948966;
    for (int step = -2; step <= 2; step++) {
      const double error = sin_cos_error(around + step * 1e-13);
      worst = error > worst ? error : worst;
    }
  }
  check_worst("sin and cos around quarter turns, absolute", worst, 1e-20);
  double sine, cosine;
  math_sin_cos(0, &sine, &cosine);
  CHECK(sine == 0.0 && cosine == 1.0);
}

TEST(sin_and_cos_are_accurate_for_integer_positions) {
  double worst = 0;
  for (int position = 0; position < 140000; position += 7) {
    const double error = sin_cos_error(position);
    worst = error > worst ? error : worst;
  }
  check_worst("sin and cos of positions, absolute", worst, 4e-16);
}

// Values in a file can make an angle any double.
TEST(sin_and_cos_are_defined_for_every_double) {
  const double turn = 6.283185307179586;
  const double wild[] = {1e7,    9999999.5, 1e8,  1e15, 4.6e18, 9.3e18, 0x1p62,
                         0x1p63, 0x1p64,    1e30, 1e39, 1e45,   1e300,  1.7976931348623157e308};
  for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      double sine, cosine;
      const double x = sign * wild[i];
      math_sin_cos(x, &sine, &cosine);
      const double rest = wild[i] < 1e7 ? x : fmod(x, turn);
      CHECK_NEAR(sine, sin(rest), 4e-16);
      CHECK_NEAR(cosine, cos(rest), 4e-16);
    }
  }
  const double none[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    double sine, cosine;
    math_sin_cos(none[i], &sine, &cosine);
    CHECK(isnan(sine) && isnan(cosine));
  }
}

// ---- half floats ----

// Computes the value of a half from its sign, exponent and fraction.
static double half_value(uint32_t half) {
  const double sign = (half >> 15) != 0 ? -1 : 1;
  const int exponent = (int)(half >> 10 & 31);
  const double fraction = (double)(half & 1023);
  if (exponent == 0) return sign * ldexp(fraction, -24);
  return sign * ldexp(1024 + fraction, exponent - 25);
}

TEST(every_half_survives_conversion_to_float_and_back) {
  for (uint32_t half = 0; half < 65536; half++) {
    const float value = f32_of_f16((uint16_t)half);
    if ((half & 0x7fff) > 0x7c00) {
      CHECK(isnan(value));
      CHECK_EQ_UINT(bits_of_f32(value) >> 13 & 0x3ff, half & 0x3ff);
      CHECK_EQ_UINT(f16_of_f32(value) & 0x7e00u, 0x7e00u);
    } else if ((half & 0x7fff) == 0x7c00) {
      CHECK_EQ_F32(value, half == 0x7c00 ? INFINITY : -INFINITY);
      CHECK_EQ_UINT(f16_of_f32(value), half);
    } else {
      CHECK_EQ_F32(value, (float)half_value(half));
      CHECK_EQ_UINT(f16_of_f32(value), half);
    }
  }
}

TEST(floats_between_two_halves_round_to_nearest_even) {
  for (uint32_t half = 0; half < 0x7bff; half++) {
    const float low = f32_of_f16((uint16_t)half);
    const float high = f32_of_f16((uint16_t)(half + 1));
    const float middle = (float)(((double)low + (double)high) / 2);  // exact
    const uint32_t even = (half & 1) == 0 ? half : half + 1;
    CHECK_EQ_UINT(f16_of_f32(middle), even);
    CHECK_EQ_UINT(f16_of_f32(-middle), even | 0x8000u);
    CHECK_EQ_UINT(f16_of_f32(nextafterf(middle, low)), half);
    CHECK_EQ_UINT(f16_of_f32(nextafterf(middle, high)), half + 1);
  }
}

TEST(floats_outside_the_range_of_halves) {
  CHECK_EQ_UINT(f16_of_f32(65504.0f), 0x7bff);
  CHECK_EQ_UINT(f16_of_f32(nextafterf(65520.0f, 0)), 0x7bff);
  CHECK_EQ_UINT(f16_of_f32(65520.0f), 0x7c00);
  CHECK_EQ_UINT(f16_of_f32(-3e38f), 0xfc00);
  CHECK_EQ_UINT(f16_of_f32(0x1p-25f), 0);  // halfway to the smallest subnormal, rounds to even
  CHECK_EQ_UINT(f16_of_f32(nextafterf(0x1p-25f, 1)), 1);
  CHECK_EQ_UINT(f16_of_f32(1e-45f), 0);
  CHECK_EQ_UINT(f16_of_f32(-1e-45f), 0x8000);
  CHECK_EQ_UINT(f16_of_f32(NAN) & 0x7fff, 0x7e00);
}

TEST(bf16_is_the_upper_half_of_a_float) {
  CHECK_EQ_F32(f32_of_bf16(0x3f80), 1.0f);
  CHECK_EQ_F32(f32_of_bf16(0xc049), -3.140625f);
  CHECK_EQ_F32(f32_of_bf16(0x0001), f32_of_bits(0x00010000));
  CHECK_EQ_F32(f32_of_bf16(0xff80), -INFINITY);
  CHECK(isnan(f32_of_bf16(0x7fc0)));
}

TEST(is_finite_rejects_infinities_and_nan) {
  CHECK(math_is_finite_f32(0) && math_is_finite_f32(-3.4e38f) && math_is_finite_f32(1e-45f));
  CHECK(!math_is_finite_f32(INFINITY) && !math_is_finite_f32(-INFINITY));
  CHECK(!math_is_finite_f32(NAN) && !math_is_finite_f32(-NAN));
}

// ---- identical on all hosts ----

static uint64_t fold(uint64_t hash, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return hash_mix_u64(hash ^ bits);
}

TEST(results_have_the_same_bits_on_every_host) {
  uint64_t hash = 0;
  for (int i = -3000; i <= 3000; i++) {
    const double x = (double)i / 17;
    double sine, cosine;
    math_sin_cos(x * 1000, &sine, &cosine);
    hash = fold(fold(hash, sine), cosine);
    hash = fold(fold(hash, math_exp(x)), math_log(x * x + 0.01));
    hash = fold(hash, math_pow(x * x + 1, x / 100));
  }
  CHECK_EQ_UINT(hash, 5048020127834914875u);
}
