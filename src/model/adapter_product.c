// model/adapter_product.c — see adapter_product.h.
#include "model/adapter_product.h"

#include "base/checked.h"

_Static_assert((int)ADAPTER_TARGETS_MAX == (int)PRODUCT_MATRICES_MAX,
               "room for A x of each target");

// Adjacent rows of the product that use the same adapters.
typedef struct row_run {
  const adapter_set *set;
  uint32_t first, count;
} row_run;

// Finds the next run with adapters, starting at row *at. Returns false after the last run.
static bool next_run(const model_product *product, uint32_t *at, row_run *run) {
  const adapter_set *const *sets = product->adapters;
  while (*at < product->tokens && sets[*at] == NULL) ++*at;
  if (*at >= product->tokens) return false;
  *run = (row_run){sets[*at], *at, 0};
  while (*at < product->tokens && adapter_set_is_same(sets[*at], run->set)) ++*at;
  run->count = *at - run->first;
  return true;
}

float adapter_factor(const struct adapter_use *use, const adapter_pair *pair) {
  const float alpha = use->adapter->alpha;
  return alpha == 0 ? use->scale : use->scale * alpha / (float)pair->b.dims[0];
}

float *adapter_low_of(const model_adapter *adapter, uint32_t index, uint32_t row) {
  return adapter->low + ((size_t)index * adapter->rows_max + row) * adapter->low_stride;
}

// Multiplies rows [first, last) of A with the rows of a run.
static void multiply_low(const model_product *product, const row_run *run,
                         const struct adapter_use *use, const adapter_pair *pair, uint32_t index,
                         uint32_t first, uint32_t last) {
  const kernel_matrix a = tensor_matrix(&pair->a, 0);
  const size_t stride = use->adapter->low_stride;
  const float factor = adapter_factor(use, pair);
  float *low = adapter_low_of(use->adapter, index, run->first);
  product->kernels->types[a.type].matmul(
      &a, first, last, product->x + run->first * product->x_stride,
      product->x_stride * sizeof(float), run->count, low, stride);
  for (uint32_t t = 0; t < run->count; t++) {
    product->kernels->scale(low + t * stride + first, factor, last - first);
  }
}

// Walks over groups of rows of A, for all runs, adapters and targets. If `multiplies`, multiplies
// the groups [first, last). Returns the number of groups visited.
static uint32_t walk(const model_product *product, uint32_t first, uint32_t last, bool multiplies) {
  uint32_t base = 0, at = 0;
  row_run run;
  while (base < last && next_run(product, &at, &run)) {
    for (uint32_t i = 0; i < run.set->count * product->target_count; i++) {
      const struct adapter_use *use = &run.set->uses[i / product->target_count];
      const uint32_t index = i % product->target_count;
      const adapter_pair *pair = adapter_pair_of(use->adapter, product->few[index].number);
      if (pair == NULL) continue;
      const uint32_t rank = pair->a.dims[1], groups = ceil_div_u32(rank, KERNEL_ROW_GROUP);
      const uint32_t from = first > base ? first - base : 0;
      const uint32_t to = last - base < groups ? last - base : groups;
      if (multiplies && from < to) {
        const uint32_t end = to * KERNEL_ROW_GROUP < rank ? to * KERNEL_ROW_GROUP : rank;
        multiply_low(product, &run, use, pair, index, from * KERNEL_ROW_GROUP, end);
      }
      base += groups;
      if (base >= last) break;
    }
  }
  return base;
}

uint32_t adapter_low_units(const model_product *product) {
  return walk(product, 0, UINT32_MAX, false);
}

void adapter_low_run(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  (void)thread;
  walk(context, first, last, true);
}

// Computes y[t] += B low[t] for rows [row_first, row_last) of B, four tokens at a time.
static void add_pair(const model_product *product, const row_run *run,
                     const struct adapter_use *use, const adapter_pair *pair, uint32_t index,
                     uint32_t row_first, uint32_t row_last) {
  enum { TOKENS = 4 };
  float part[TOKENS][ADAPTER_STRIP_ROWS];
  const product_target *target = &product->few[index];
  const uint32_t rows = row_last - row_first;
  const kernel_type_ops *ops = &product->kernels->types[pair->b.type];
  uint64_t before = 0;  // bytes of the preceding rows; this fits because the whole matrix does
  if (row_first != 0) ops->matrix_bytes(row_first, pair->b.dims[0], &before);
  kernel_matrix b = tensor_matrix(&pair->b, 0);
  b.data += before;
  b.rows = rows;
  const size_t stride = use->adapter->low_stride;
  for (uint32_t t = 0; t < run->count; t += TOKENS) {
    const uint32_t row = run->first + t;
    const uint32_t count = run->count - t < TOKENS ? run->count - t : TOKENS;
    ops->matmul(&b, 0, rows, adapter_low_of(use->adapter, index, row), stride * sizeof(float),
                count, part[0], ADAPTER_STRIP_ROWS);
    for (uint32_t i = 0; i < count; i++) {
      product->kernels->add(target->y + (row + i) * target->y_stride + row_first, part[i], rows);
    }
  }
}

void adapter_add(const model_product *product, uint32_t index, uint32_t row_first,
                 uint32_t row_last) {
  uint32_t at = 0;
  row_run run;
  while (next_run(product, &at, &run)) {
    for (uint32_t i = 0; i < run.set->count; i++) {
      const struct adapter_use *use = &run.set->uses[i];
      const adapter_pair *pair = adapter_pair_of(use->adapter, product->few[index].number);
      if (pair != NULL) add_pair(product, &run, use, pair, index, row_first, row_last);
    }
  }
}

void adapter_add_embedding(const adapter_set *set, const weight_tensor *embedding, uint32_t token,
                           uint32_t row, float *room, float *out) {
  for (uint32_t i = 0; i < set->count; i++) {
    const struct adapter_use *use = &set->uses[i];
    const adapter_pair *pair = adapter_pair_of(use->adapter, embedding->number);
    if (pair == NULL) continue;
    const kernel_table *kernels = use->adapter->kernels;
    const kernel_matrix a = tensor_matrix(&pair->a, 0), b = tensor_matrix(&pair->b, 0);
    float *low = adapter_low_of(use->adapter, 0, row);
    kernels->types[a.type].row_dequant(&a, token, low);
    kernels->scale(low, adapter_factor(use, pair), a.cols);
    kernels->types[b.type].matmul(&b, 0, b.rows, low, a.cols * sizeof(float), 1, room, b.rows);
    kernels->add(out, room, b.rows);
  }
}
