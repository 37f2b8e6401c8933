// kernels/answers.h — checks whether a table of kernels computes correct results on this host. A
// WebAssembly engine may compile an instruction incorrectly, as V8 11 did with the relaxed dot,
// either immediately or later when it optimises. Without this check, only wrong output would reveal
// it.
#ifndef WICK_KERNELS_ANSWERS_H
#define WICK_KERNELS_ANSWERS_H

#include "kernels/kernels.h"

// The part of a table that a model uses.
typedef struct kernel_needs {
  bool types[GGML_TYPE_COUNT];  // types of its weights; unsupported ones are skipped
  kernel_kv_type k_type, v_type;
  bool is_recurrent;  // has convolutions, delta nets or scans
} kernel_needs;

// Computes products of each type with 1, 2, 5 and 33 tokens, a step of attention, the operations on
// rows and, for models that need them, convolutions, delta nets and scans, for small fixed cases.
// Results must be within 1e-4 of those of plain loops, or within 1e-3 if keys or values are codes.
// Otherwise returns WICK_E_UNSUPPORTED and an error that names the faulty kernel. Allocates nothing
// and uses 64 KB of stack. Cost: ten to a few hundred microseconds per type.
wick_status kernels_check(const kernel_table *kernels, const kernel_needs *needs,
                          wick_error *error);

// Returns the error to report if kernels->dots_are_right returns false.
wick_status kernels_fail_dots(const kernel_table *kernels, wick_error *error);

#endif
