// base/math.c — exp, log, pow, sin and cos in double, by argument reduction and polynomials, and
// half floats. The engine has its own functions so that a model generates the same text on every
// host.
#include "base/math.h"

static double f64_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t bits_of_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Returns value * 2^exponent, in two steps, for exponents far beyond the normal range.
static double scale_by_power(double value, int exponent) {
  const int half = exponent / 2;
  value *= f64_of_bits((uint64_t)(1023 + half) << 52);
  return value * f64_of_bits((uint64_t)(1023 + exponent - half) << 52);
}

// ln 2 in two parts, the first with 32 trailing zero bits (Cody and Waite 1980).
static const double LN2_HIGH = 6.93147180369123816490e-01;
static const double LN2_LOW = 1.90821492927058770002e-10;

double math_exp(double x) {
  if (x != x) return x;
  if (x > 709.782712893384) return f64_of_bits(0x7ff0000000000000u);
  if (x < -745.2) return 0.0;
  const double n = __builtin_floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - n * LN2_HIGH) - n * LN2_LOW;  // |r| <= 0.3466
  double sum = 1.0;                                   // Taylor to r^14: remainder below 1e-19
  for (int k = 14; k >= 1; k--) sum = 1.0 + sum * r / (double)k;
  return scale_by_power(sum, (int)n);
}

double math_log(double x) {
  if (x != x || x < 0) return f64_of_bits(0x7ff8000000000000u);
  if (x == 0) return f64_of_bits(0xfff0000000000000u);
  uint64_t bits = bits_of_f64(x);
  if (bits == 0x7ff0000000000000u) return x;
  int exponent = 0;
  if (bits < 0x0010000000000000u) {  // subnormal
    bits = bits_of_f64(x * 18014398509481984.0);
    exponent = -54;
  }
  exponent += (int)(bits >> 52) - 1023;
  double m = f64_of_bits((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent++;
  }
  // log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = 0.0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / (double)k) * z;
  const double correction = 2.0 * s * series;
  // log(1 + f) = f - s * f + 2 s (series), because 2 s = f - s f
  return (double)exponent * LN2_HIGH + (f - (s * f - (correction + (double)exponent * LN2_LOW)));
}

double math_pow(double base, double exponent) { return math_exp(exponent * math_log(base)); }

// pi / 2 in three parts (Cody and Waite), the first two of which have at most 30 bits, so their
// products with integers below 2^23 are exact.
static const double PIO2_1 = 1.570796325802803;
static const double PIO2_2 = 9.920935791635221e-10;
static const double PIO2_3 = 5.170182981794105e-19;
static const double SIN_COS_EXACT_MAX = 1e7;

// Returns the exact remainder of dividing by the double nearest to 2 pi, with the sign of x: each
// difference has no more bits than x (Sterbenz 1974). NaN for infinities. O(log |x|).
static double turn_remainder(double x) {
  const double turn = 6.283185307179586;
  const double limit = x < 0 ? -x : x;
  if (!(limit <= 1.7976931348623157e308)) return x - x;
  double rest = limit, part = turn;
  while (part <= limit / 2) part *= 2;
  for (; part >= turn; part /= 2) {
    if (rest >= part) rest -= part;
  }
  return x < 0 ? -rest : rest;
}

void math_sin_cos(double x, double *sine, double *cosine) {
  if (!(x < SIN_COS_EXACT_MAX && x > -SIN_COS_EXACT_MAX)) x = turn_remainder(x);
  const double n = __builtin_floor(x * 0.63661977236758134308 + 0.5);
  const double r = ((x - n * PIO2_1) - n * PIO2_2) - n * PIO2_3;  // |r| <= pi / 4
  const double z = r * r;
  double s = 0.0, c = 0.0;  // Taylor to r^21 and r^20: remainders below 1e-22
  for (int k = 20; k >= 2; k -= 2) s = (1.0 + s) * -z / ((double)k * (double)(k + 1));
  for (int k = 20; k >= 2; k -= 2) c = (1.0 + c) * -z / ((double)k * (double)(k - 1));
  s = r + r * s;
  c = 1.0 + c;
  const unsigned quadrant = n == n ? (unsigned)((int64_t)n & 3) : 0;
  const double a = (quadrant & 1) != 0 ? c : s;
  const double b = (quadrant & 1) != 0 ? s : c;
  *sine = (quadrant & 2) != 0 ? -a : a;
  *cosine = quadrant == 1 || quadrant == 2 ? -b : b;
}

float f32_of_f16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return f32_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // The exponent's bias is 112 too small. The product corrects it exactly, subnormals included.
  const float magnitude = f32_of_bits(rest << 13) * 5.192296858534828e33f;  // 2^112
  return f32_of_bits(sign | bits_of_f32(magnitude));
}

uint16_t f16_of_f32(float value) {
  const uint32_t bits = bits_of_f32(value);
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);  // rounds to 65536 or is above
  if (rest < 0x38800000u) {
    // Subnormal: adding 0.5 moves the wanted bits to the end of the significand, rounded to even.
    const float aligned = f32_of_bits(rest) + 0.5f;
    return (uint16_t)(sign | (bits_of_f32(aligned) - 0x3f000000u));
  }
  const uint32_t odd = rest >> 13 & 1u;
  return (uint16_t)(sign | ((rest - 0x38000000u + 0xfffu + odd) >> 13));
}
