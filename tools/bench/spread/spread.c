// spread.c — the forward pass of a model with random weights, in which the rows of each matrix are
// spread over several instances of this module (tools/bench/spread.mjs). One instance, "main", has
// all rows of each matrix, so that it can also compute without helpers; a helper has only its own
// rows. Kernels, layouts and strips are the same as in the engine (src/model/product.c).
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "format/types.h"
#include "kernels/kernels.h"
#include "lab/synth_weights.h"
#include "web_heap.h"

#define WEB_EXPORT(name) __attribute__((export_name(name)))
#define WEB_IMPORT(name) __attribute__((import_module("env"), import_name(name)))

enum {
  MATRICES_MAX = 320,
  HELPERS_MAX = 7,
  PRODUCT_MATRICES = 3,
  STRIP_ROWS = 32 * KERNEL_ROW_GROUP,
  TILE_TOKENS = 4,
  EMPTY = -1,  // a product without rows: only the exchange
};

// Sends activations to all helpers.
WEB_IMPORT("post") void host_post(int32_t product, uint32_t tokens, const void *act, size_t bytes);
// Suspends until the replies of all helpers are stored in `replies`.
WEB_IMPORT("wait") void host_wait(void);
// The first one suspends for a resolved promise; the second one does not suspend.
WEB_IMPORT("settled") void host_settled(void);
WEB_IMPORT("nothing") void host_nothing(void);

typedef struct spread_matrix {
  kernel_matrix held;
  uint32_t bounds[HELPERS_MAX + 2];  // main's rows start at bounds[0], helper i's at bounds[i + 1]
} spread_matrix;

typedef struct spread_product {
  uint32_t first, count;  // matrices
} spread_product;

typedef struct spread_model {
  uint32_t hidden, ffn, heads, kv_heads, head_dim, slots, pages;
} spread_model;

extern uint8_t __heap_base;
static const kernel_table *kernels;
static spread_matrix matrices[MATRICES_MAX];
static spread_product products[MATRICES_MAX];
static uint32_t matrix_count, product_count, helper_count;
static spread_model model;
static float *replies[HELPERS_MAX];
static bool is_checking;
static uint64_t hash;
// each is [tokens][...]; y has the outputs of a product's matrices, concatenated
static float *hidden, *normed, *attended, *y;
static float *queries, *sums, *maxima, *totals;
static uint8_t *act, *pages;

WEB_EXPORT("start") const char *start(uint32_t pages_max) {
  web_heap_start((uintptr_t)&__heap_base, pages_max);
  kernels = kernels_bind();
  return kernels->name;
}

WEB_EXPORT("alloc") void *alloc(size_t bytes) { return web_heap_alloc(bytes); }

// ---- Weights ----

// Fills rows with weights that do not depend on the instance.
static bool fill(kernel_matrix *matrix, uint32_t seed, uint32_t first) {
  const ggml_type_facts *facts = type_facts((ggml_type)matrix->type);
  const kernel_type_ops *ops = &kernels->types[matrix->type];
  const uint32_t blocks = matrix->cols / facts->block_values;
  const size_t row_bytes = (size_t)blocks * facts->block_bytes;
  uint64_t bytes;
  if (matrix->rows == 0) return true;
  if (!ops->matrix_bytes(matrix->rows, matrix->cols, &bytes)) return false;
  uint8_t *data = web_heap_alloc((size_t)bytes), *row = web_heap_alloc(row_bytes);
  if (data == NULL || row == NULL) return false;
  synth_filler filler;
  synth_filler_init(&filler, (ggml_type)matrix->type, 1.0f / __builtin_sqrtf((float)matrix->cols),
                    seed);
  for (uint32_t r = 0; r < matrix->rows; r++) {
    filler.random.state = hash_mix_u64((uint64_t)seed << 32 | (first + r));
    synth_fill(&filler, row, blocks);
    matrix->flags |= ops->repack(data, matrix->cols, r, 0, blocks, row);
  }
  web_heap_free(row, row_bytes);
  matrix->data = data;
  return true;
}

// Adds the rows [first, last) of a matrix, in whole groups; returns false if out of memory.
WEB_EXPORT("add_matrix")
bool add_matrix(uint32_t seed, uint32_t type, uint32_t cols, uint32_t first, uint32_t last) {
  spread_matrix *matrix = &matrices[matrix_count++];
  matrix->held = (kernel_matrix){.rows = last - first, .cols = cols, .type = type};
  return fill(&matrix->held, seed, first);
}

// Combines the last `count` matrices, which share their activations, into one product.
WEB_EXPORT("add_product") void add_product(uint32_t count) {
  products[product_count++] = (spread_product){matrix_count - count, count};
}

WEB_EXPORT("set_bound") void set_bound(uint32_t matrix, uint32_t which, uint32_t row) {
  matrices[matrix].bounds[which] = row;
}

// ---- Products ----

static void multiply(const kernel_matrix *matrix, uint32_t rows, const uint8_t *from,
                     uint32_t tokens, float *to, size_t stride) {
  const size_t act_stride = kernels->act_bytes(KERNEL_ACT_Q8, matrix->cols);
  for (uint32_t row = 0; row < rows; row += STRIP_ROWS) {
    const uint32_t last = rows - row > STRIP_ROWS ? row + STRIP_ROWS : rows;
    kernels->types[matrix->type].matmul(matrix, row, last, from, act_stride, tokens, to, stride);
  }
}

// Writes a helper's part: [matrix][token][row]. Returns its size in bytes.
WEB_EXPORT("answer")
size_t answer(uint32_t product, uint32_t tokens, const uint8_t *from, float *to) {
  const spread_product *of = &products[product];
  float *next = to;
  for (uint32_t i = 0; i < of->count; i++) {
    const kernel_matrix *matrix = &matrices[of->first + i].held;
    multiply(matrix, matrix->rows, from, tokens, next, matrix->rows);
    next += (size_t)matrix->rows * tokens;
  }
  return (size_t)(next - to) * sizeof *to;
}

static void take_replies(const spread_product *of, uint32_t tokens) {
  for (uint32_t h = 0; h < helper_count; h++) {
    const float *from = replies[h];
    float *to = y;
    for (uint32_t i = 0; i < of->count; i++) {
      const spread_matrix *matrix = &matrices[of->first + i];
      const uint32_t first = matrix->bounds[h + 1], count = matrix->bounds[h + 2] - first;
      for (uint32_t t = 0; t < tokens; t++, from += count) {
        memcpy(to + (size_t)t * matrix->held.rows + first, from, count * sizeof *from);
      }
      to += (size_t)tokens * matrix->held.rows;
    }
  }
}

static bool is_shared(const spread_product *of) {
  const spread_matrix *matrix = &matrices[of->first];
  return matrix->bounds[1] < matrix->held.rows;
}

static void run_product(uint32_t product, const float *x, uint32_t tokens, bool is_spread) {
  const spread_product *of = &products[product];
  const uint32_t cols = matrices[of->first].held.cols;
  const size_t stride = kernels->act_bytes(KERNEL_ACT_Q8, cols);
  const bool is_sent = is_spread && is_shared(of);
  for (uint32_t t = 0; t < tokens; t++) {
    kernels->act_make(KERNEL_ACT_Q8, x + (size_t)t * cols, cols, act + t * stride);
  }
  if (is_sent) host_post((int32_t)product, tokens, act, stride * tokens);
  float *to = y;
  for (uint32_t i = 0; i < of->count; i++) {
    const spread_matrix *matrix = &matrices[of->first + i];
    const uint32_t rows = is_sent ? matrix->bounds[1] : matrix->held.rows;
    multiply(&matrix->held, rows, act, tokens, to, matrix->held.rows);
    to += (size_t)tokens * matrix->held.rows;
  }
  if (is_sent) {
    host_wait();
    take_replies(of, tokens);
  }
  if (is_checking) hash = hash_bytes(y, (size_t)(to - y) * sizeof *y, hash);
}

// ---- The model ----

static size_t page_bytes(void) {
  return kernels->kv[KERNEL_KV_F16].k_bytes(model.head_dim) +
         kernels->kv[KERNEL_KV_F16].v_bytes(model.head_dim);
}

static float *floats(size_t count) { return web_heap_alloc(count * sizeof(float)); }

static bool make_pages(void) {
  const kernel_kv_ops *ops = &kernels->kv[KERNEL_KV_F16];
  synth_random random = {7};
  const uint32_t count = model.pages * model.kv_heads;
  pages = web_heap_alloc(count * page_bytes());
  if (pages == NULL) return false;
  for (uint32_t i = 0; i < count * KERNEL_PAGE_TOKENS; i++) {
    uint8_t *page = pages + i / KERNEL_PAGE_TOKENS * page_bytes();
    for (uint32_t d = 0; d < model.head_dim; d++) queries[d] = synth_random_f32(&random);
    ops->k_write(page, i % KERNEL_PAGE_TOKENS, queries, model.head_dim);
    ops->v_write(page + ops->k_bytes(model.head_dim), i % KERNEL_PAGE_TOKENS, queries,
                 model.head_dim);
  }
  return true;
}

// Allocates memory for passes of up to `tokens`; `outputs` is the largest number of rows of a
// product. There are four products (q, k and v; attention's output; gate and up; down) for each of
// `slots` layers, and the output. Attention reads `context` positions, the same in each layer.
WEB_EXPORT("make_model")
bool make_model(uint32_t width, uint32_t ffn, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                uint32_t slots, uint32_t context, uint32_t tokens, uint32_t outputs) {
  model =
      (spread_model){width, ffn, heads, kv_heads, head_dim, slots, context / KERNEL_PAGE_TOKENS};
  const uint32_t dims = heads * head_dim, most = ffn > dims ? ffn : dims;
  const size_t tile = (size_t)TILE_TOKENS * dims;
  hidden = floats((size_t)tokens * width);
  normed = floats((size_t)tokens * width);
  attended = floats((size_t)tokens * dims);
  y = floats(outputs);
  act = web_heap_alloc(tokens * kernels->act_bytes(KERNEL_ACT_Q8, most));
  queries = floats(tile);
  sums = floats(tile);
  maxima = floats((size_t)TILE_TOKENS * heads);
  totals = floats((size_t)TILE_TOKENS * heads);
  return hidden != NULL && normed != NULL && attended != NULL && y != NULL && act != NULL &&
         totals != NULL && make_pages();
}

// Returns the address to which JavaScript writes the reply of helper `which`.
WEB_EXPORT("add_helper") void *add_helper(size_t bytes) {
  replies[helper_count] = web_heap_alloc(bytes);
  return replies[helper_count++];
}

static void attend_tile(uint32_t kv, uint32_t token, uint32_t count) {
  const uint32_t group = model.heads / model.kv_heads, dim = model.head_dim;
  const kernel_kv_ops *ops = &kernels->kv[KERNEL_KV_F16];
  const size_t row = (size_t)model.heads * dim, part = (size_t)group * dim;
  const kernel_attention state = {.group = group * count,
                                  .head_dim = dim,
                                  .q = queries,
                                  .acc = sums,
                                  .max = maxima,
                                  .sum = totals};
  for (uint32_t t = 0; t < count; t++) {
    memcpy(queries + t * part, y + (token + t) * row + kv * part, part * sizeof *y);
  }
  kernels->scale(queries, 1.0f / __builtin_sqrtf((float)dim), (uint32_t)part * count);
  if (ops->queries_make != NULL) ops->queries_make(queries, state.group, dim);
  kernels->attention_begin(&state);
  for (uint32_t p = 0; p < model.pages; p += KERNEL_STEP_PAGES) {
    kernel_page step[KERNEL_STEP_PAGES];
    for (uint32_t i = 0; i < KERNEL_STEP_PAGES; i++) {
      const uint8_t *k = pages + ((size_t)kv * model.pages + p + i) * page_bytes();
      step[i] = (kernel_page){.k = k, .v = k + ops->k_bytes(dim), .last = KERNEL_PAGE_TOKENS};
    }
    kernels->attention_step[KERNEL_KV_F16][KERNEL_KV_F16](&state, step, KERNEL_STEP_PAGES);
  }
  kernels->attention_end(&state, sums);
  for (uint32_t t = 0; t < count; t++) {
    memcpy(attended + (token + t) * row + kv * part, sums + t * part, part * sizeof *sums);
  }
}

static void attend(uint32_t tokens) {
  for (uint32_t kv = 0; kv < model.kv_heads; kv++) {
    for (uint32_t t = 0; t < tokens; t += TILE_TOKENS) {
      attend_tile(kv, t, tokens - t > TILE_TOKENS ? TILE_TOKENS : tokens - t);
    }
  }
}

static void norm(uint32_t tokens) {
  for (uint32_t t = 0; t < tokens; t++) {
    const size_t at = (size_t)t * model.hidden;
    kernels->rms_norm(hidden + at, NULL, model.hidden, 1e-6f, normed + at);
  }
}

static void run_layer(uint32_t slot, uint32_t tokens, bool is_spread) {
  norm(tokens);
  run_product(4 * slot, normed, tokens, is_spread);
  attend(tokens);
  run_product(4 * slot + 1, attended, tokens, is_spread);
  kernels->add(hidden, y, tokens * model.hidden);
  norm(tokens);
  run_product(4 * slot + 2, normed, tokens, is_spread);
  kernels->silu_mul(y, y + (size_t)tokens * model.ffn, tokens * model.ffn);
  run_product(4 * slot + 3, y, tokens, is_spread);
  kernels->add(hidden, y, tokens * model.hidden);
}

// Runs `tokens` rows through `layers`, then computes the output of the last row.
WEB_EXPORT("pass") void pass(uint32_t tokens, uint32_t layers, bool is_spread) {
  synth_random random = {1};
  for (uint32_t i = 0; i < tokens * model.hidden; i++) hidden[i] = synth_random_f32(&random);
  for (uint32_t l = 0; l < layers; l++) run_layer(l % model.slots, tokens, is_spread);
  norm(tokens);
  run_product(4 * model.slots, normed + (size_t)(tokens - 1) * model.hidden, 1, is_spread);
}

// Returns a hash of all product outputs in one pass.
WEB_EXPORT("check") uint32_t check(uint32_t tokens, uint32_t layers, bool is_spread) {
  is_checking = true;
  hash = 0;
  pass(tokens, layers, is_spread);
  is_checking = false;
  return (uint32_t)(hash ^ hash >> 32);
}

// Returns the logits of the last pass.
WEB_EXPORT("logits") const float *logits(void) { return y; }

// Runs only products of one kind (0 to 3: in a layer, 4: the output), layer by layer.
WEB_EXPORT("repeat") void repeat(uint32_t kind, uint32_t tokens, uint32_t count) {
  const float *x = kind == 1 ? attended : kind == 3 ? y : normed;
  for (uint32_t i = 0; i < count; i++) {
    run_product(kind == 4 ? 4 * model.slots : i % model.slots * 4 + kind, x, tokens, false);
  }
}

// ---- Exchanges without products ----

WEB_EXPORT("spin") uint32_t spin(uint32_t count) {
  uint32_t state = 1;
  for (uint32_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    __asm__ volatile("" : "+r"(state));
  }
  return state;
}

WEB_EXPORT("spins") void spins(uint32_t count, uint32_t turns) {
  for (uint32_t i = 0; i < count; i++) spin(turns);
}

// Runs `count` exchanges of `bytes` each way, after `busy` rounds of spin() each.
WEB_EXPORT("exchange")
void exchange(uint32_t count, const void *from, size_t bytes, uint32_t busy) {
  for (uint32_t i = 0; i < count; i++) {
    spin(busy);
    host_post(EMPTY, 0, from, bytes);
    host_wait();
  }
}

WEB_EXPORT("suspend") void suspend(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) host_settled();
}

WEB_EXPORT("call") void call(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) host_nothing();
}
