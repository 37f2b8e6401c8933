// Helpers for kernel tests: random numbers (the same in each run), random matrices of every type,
// the variants in this build, and a stopwatch.
#ifndef WICK_TESTS_KERNEL_CASES_H
#define WICK_TESTS_KERNEL_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

uint32_t random_u32(void);
uint32_t random_u32_below(uint32_t end);
// Returns an approximately normal random number with mean 0 and standard deviation 1.
float random_normal(void);
void random_floats(float *x, size_t n, float deviation);

typedef enum scales_kind {
  SCALES_USUAL,
  SCALES_TINY,     // subnormal halves
  SCALES_EXTREME,  // from the smallest to the largest half
  SCALES_ZERO,     // half of the rows are 0
  SCALES_WILD,     // occasionally Inf or NaN
  SCALES_KINDS
} scales_kind;

// The offsets of 16-bit floats in a block of the file. If scale_count is 0, the block is a single
// number or has a different kind of scale (random_block).
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

// Fills a matrix with random blocks, rows in random order and in pieces. The caller frees `data`.
test_matrix matrix_make(const type_case *type, uint32_t rows, uint32_t cols, scales_kind kind,
                        bool minus_128);

enum { VARIANTS_MAX = 8 };

const kernel_table *scalar(void);
// Lists the variants in this build, with the scalar variant first; returns their number.
size_t variants(const kernel_table *list[VARIANTS_MAX]);
// Whether the variant's results are bit-identical to those of the scalar variant.
bool is_exact(const kernel_table *kernels);

typedef void bench_function(void *context);

// Returns the shortest time of a call in seconds, after a warm-up call. The minimum excludes the
// effect of other processes on the machine.
double bench_seconds(bench_function *run, void *context);

#endif
