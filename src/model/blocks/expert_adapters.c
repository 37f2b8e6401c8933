// model/blocks/expert_adapters.c — see expert_adapters.h.
#include "model/blocks/expert_adapters.h"

#include "model/adapter_product.h"

typedef struct adapters_job {
  const model_pass *pass;
  const expert_product *product;
} adapters_job;

// Computes y += B low, one strip of rows at a time.
static void add_strips(const kernel_table *kernels, const kernel_matrix *whole, const float *low,
                       float *y) {
  float part[ADAPTER_STRIP_ROWS];
  const kernel_type_ops *ops = &kernels->types[whole->type];
  for (uint32_t first = 0; first < whole->rows; first += ADAPTER_STRIP_ROWS) {
    kernel_matrix strip = *whole;
    uint64_t before = 0;  // bytes of the preceding rows; this fits because the whole matrix does
    if (first != 0) ops->matrix_bytes(first, whole->cols, &before);
    strip.data += before;
    strip.rows = whole->rows - first < ADAPTER_STRIP_ROWS ? whole->rows - first
                                                          : (uint32_t)ADAPTER_STRIP_ROWS;
    ops->matmul(&strip, 0, strip.rows, low, whole->cols * sizeof(float), 1, part, strip.rows);
    kernels->add(y + first, part, strip.rows);
  }
}

// Adds an adapter to all of a token's experts.
static void add_use(const adapters_job *job, const struct adapter_use *use, uint32_t token) {
  const expert_product *product = job->product;
  const kernel_table *kernels = job->pass->kernels;
  const adapter_pair *pair = adapter_pair_of(use->adapter, product->stack->number);
  if (pair == NULL) return;
  float *low = adapter_low_of(use->adapter, 0, token);
  for (uint32_t i = 0; i < product->used; i++) {
    const size_t choice = (size_t)token * product->used + i;
    const uint32_t expert = product->chosen[choice], row = product->row_of[choice];
    const kernel_matrix a = tensor_matrix(&pair->a, expert), b = tensor_matrix(&pair->b, expert);
    const float *x = product->x + (product->is_by_token ? token : row) * product->x_stride;
    kernels->types[a.type].matmul(&a, 0, a.rows, x, product->x_stride * sizeof(float), 1, low,
                                  a.rows);
    kernels->scale(low, adapter_factor(use, pair), a.rows);
    add_strips(kernels, &b, low, product->y + row * product->y_stride);
  }
}

static void add_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const adapters_job *job = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const adapter_set *set = job->pass->adapters[t];
    for (uint32_t i = 0; set != NULL && i < set->count; i++) add_use(job, &set->uses[i], t);
  }
}

void expert_adapters_add(model_pass *pass, const expert_product *product) {
  adapters_job job = {pass, product};
  if (pass->has_adapters) thread_pool_for(pass->threads, pass->count, add_tokens, &job);
}
