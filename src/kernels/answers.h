// kernels/answers.h — whether a table of kernels computes here what it should. An
// engine of WebAssembly may translate an instruction wrongly (V8 11 did with the relaxed dot), at
// first or once it optimises; a wrong text would be all that shows it.
#ifndef WICK_KERNELS_ANSWERS_H
#define WICK_KERNELS_ANSWERS_H

#include "kernels/kernels.h"

// What a model takes of a table.
typedef struct kernel_needs {
  bool types[GGML_TYPE_COUNT];  // of its weights; those that do not run are left out
  kernel_kv_type k_type, v_type;
} kernel_needs;

// Products of each type with 1, 2, 5 and 33 tokens, a step of attention and the operations on rows,
// on small fixed cases, within 1e-4 of what plain loops give, 1e-3 where keys or values are codes.
// WICK_E_UNSUPPORTED names the kernel that is off. Allocates nothing, takes 60 KB of stack. Cost:
// some ten to a few hundred microseconds a type.
wick_status kernels_check(const kernel_table *kernels, const kernel_needs *needs,
                          wick_error *error);

// kernels->dots_are_right says no.
wick_status kernels_fail_dots(const kernel_table *kernels, wick_error *error);

#endif
