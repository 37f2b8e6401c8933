// Building blocks of the kernels' tests: random numbers (the same in
// each run), random matrices of every type, the variants that this build has, and a stopwatch.
#ifndef WICK_TESTS_KERNEL_CASES_H
#define WICK_TESTS_KERNEL_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

uint32_t random_u32(void);
uint32_t random_u32_below(uint32_t end);
// About normal, deviation 1.
float random_normal(void);
void random_floats(float *x, size_t n, float deviation);

typedef enum scales_kind {
  SCALES_USUAL,
  SCALES_TINY,     // subnormal halves
  SCALES_EXTREME,  // from the smallest to the largest half
  SCALES_ZERO,     // half of the rows are 0
  SCALES_WILD,     // now and then Inf or NaN
  SCALES_KINDS
} scales_kind;

// Where a block of the file has 16-bit floats. scale_count 0: the block is a number itself, or has
// scales of another kind (random_block).
typedef struct type_case {
  uint32_t type;
  uint32_t scale_offsets[2], scale_count;
} type_case;

enum { TYPE_CASES = 28 };
extern const type_case type_cases[TYPE_CASES];

typedef struct test_matrix {
  kernel_matrix matrix;
  uint8_t *data;
  uint64_t bytes;
} test_matrix;

// Fills a matrix from random blocks, rows in a random order and in pieces. Free its `data`.
test_matrix matrix_make(const type_case *type, uint32_t rows, uint32_t cols, scales_kind kind,
                        bool minus_128);

enum { VARIANTS_MAX = 8 };

const kernel_table *scalar(void);
// The variants that this build has, the scalar one first, and how many they are.
size_t variants(const kernel_table *list[VARIANTS_MAX]);
// Whether the variant gives the scalar one's bits.
bool is_exact(const kernel_table *kernels);

typedef void bench_function(void *context);

// The shortest time of a call in seconds, after one call to warm up: others share the machine.
double bench_seconds(bench_function *run, void *context);

#endif
