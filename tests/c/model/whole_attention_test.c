// Compares attention over whole texts with sums in double, and checks that a text's rows have the
// same bits alone and with other texts, for any number of threads.
#include "model/whole_attention.h"

#include <math.h>

#include "check.h"
#include "platform/platform.h"
#include "random.h"

enum { HEADS = 4, KV_HEADS = 2, DIM = 8, ROWS = 300, TEXTS = 9, SCRATCH = 4096 };

typedef struct whole_case {
  uint32_t window;
  bool has_slopes;
} whole_case;

static const whole_case CASES[] = {{0, false}, {24, false}, {7, false}, {0, true}, {50, true}};
static const float SLOPES[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f};
// Some lengths end at, just before or just after the end of a page or a block of pages.
static const uint32_t LENGTHS[TEXTS] = {1, 16, 64, 65, 3, 15, 17, 63, 40};

typedef struct whole_rows {
  _Alignas(64) float q[ROWS][HEADS * DIM];
  float k[ROWS][KV_HEADS * DIM], v[ROWS][KV_HEADS * DIM], out[ROWS][HEADS * DIM];
  model_input inputs[ROWS];
  uint32_t count;
} whole_rows;

static whole_rows made, run;
static memory_gate gate;

static float any(uint64_t *random) { return (float)(random_u64(random) % 2001) / 500 - 2; }

static void make_rows(void) {
  uint64_t random = 5;
  made.count = 0;
  for (uint32_t text = 0; text < TEXTS; text++) {
    for (uint32_t p = 0; p < LENGTHS[text]; p++) {
      made.inputs[made.count++] = (model_input){0, p, text, false, NULL, 0, 0, NULL};
    }
  }
  for (uint32_t r = 0; r < made.count; r++) {
    for (uint32_t i = 0; i < HEADS * DIM; i++) made.q[r][i] = any(&random);
    for (uint32_t i = 0; i < KV_HEADS * DIM; i++) {
      made.k[r][i] = any(&random);
      made.v[r][i] = any(&random);
    }
  }
}

// Computes rows [first, first + count), which are whole texts, into `run`.
static wick_status attend(const whole_case *one, uint32_t first, uint32_t count, uint32_t threads,
                          wick_error *error) {
  static _Alignas(64) uint8_t pages[1 << 20];
  static _Alignas(64) float scratch[4 * SCRATCH];
  thread_pool *pool = NULL;
  wick_status status = thread_pool_create(&gate, NULL, threads, &pool, error);
  if (!CHECK_EQ_INT(status, WICK_OK)) return status;
  const kernel_table *kernels = kernels_bind();
  memcpy(run.q, made.q[first], count * sizeof *run.q);
  memcpy(run.k, made.k[first], count * sizeof *run.k);
  memcpy(run.v, made.v[first], count * sizeof *run.v);
  for (uint32_t r = 0; r < count; r++) {
    run.inputs[r] = made.inputs[first + r];
    run.inputs[r].sequence -= made.inputs[first].sequence;
  }
  const paged_attention attention = {
      .kernels = kernels,
      .heads = HEADS,
      .kv_heads = KV_HEADS,
      .head_dim = DIM,
      .window = one->window,
      .scale = 0.5f,
      .slopes = one->has_slopes ? SLOPES : NULL,
      .inputs = run.inputs,
      .count = count,
      .batch_tokens = ROWS,
      .q = run.q[0],
      .k = run.k[0],
      .v = run.v[0],
      .out = run.out[0],
      .q_stride = HEADS * DIM,
      .kv_stride = KV_HEADS * DIM,
      .out_stride = HEADS * DIM,
      .per_thread = scratch,
      .per_thread_stride = whole_attention_thread_floats(HEADS, KV_HEADS, DIM)};
  CHECK(attention.per_thread_stride <= SCRATCH);
  CHECK(whole_attention_bytes(kernels, KV_HEADS, DIM, ROWS) <= sizeof pages);
  status = whole_attention_run(&attention, pages, pool, 3, error);
  thread_pool_destroy(pool);
  return status;
}

static double score_of(const whole_case *one, uint32_t r, uint32_t other, uint32_t head) {
  const int32_t distance =
      abs((int32_t)made.inputs[r].position - (int32_t)made.inputs[other].position);
  double sum = 0;
  if (one->window != 0 && distance > (int32_t)one->window / 2) return -INFINITY;
  for (uint32_t i = 0; i < DIM; i++) {
    sum += (double)made.q[r][head * DIM + i] * (double)made.k[other][head / 2 * DIM + i];
  }
  return sum * 0.5 - (one->has_slopes ? (double)SLOPES[head] * distance : 0);
}

static void check_row(const whole_case *one, uint32_t r, uint32_t head) {
  const uint32_t first = r - made.inputs[r].position;
  double sums[DIM] = {0}, sum = 0;
  for (uint32_t other = first;
       other < made.count && made.inputs[other].sequence == made.inputs[r].sequence; other++) {
    const double weight = exp(score_of(one, r, other, head));
    sum += weight;
    for (uint32_t i = 0; i < DIM; i++) {
      sums[i] += weight * (double)made.v[other][head / 2 * DIM + i];
    }
  }
  for (uint32_t i = 0; i < DIM; i++) {
    CHECK_NEAR((double)run.out[r][head * DIM + i], sums[i] / sum, 2e-6);
  }
}

TEST(every_token_attends_to_its_text_within_the_window) {
  memory_init(&gate, 0, platform_alloc, platform_free);
  make_rows();
  for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
    wick_error error = {0};
    CHECK_EQ_INT(attend(&CASES[c], 0, made.count, 1, &error), WICK_OK);
    for (uint32_t r = 0; r < made.count; r++) {
      for (uint32_t head = 0; head < HEADS; head++) check_row(&CASES[c], r, head);
    }
  }
}

TEST(a_text_gives_the_same_bits_alone_and_with_threads) {
  static float all[ROWS][HEADS * DIM];
  memory_init(&gate, 0, platform_alloc, platform_free);
  make_rows();
  for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
    wick_error error = {0};
    CHECK_EQ_INT(attend(&CASES[c], 0, made.count, 3, &error), WICK_OK);
    memcpy(all, run.out, sizeof all);
    for (uint32_t text = 0, first = 0; text < TEXTS; first += LENGTHS[text++]) {
      CHECK_EQ_INT(attend(&CASES[c], first, LENGTHS[text], 1, &error), WICK_OK);
      CHECK_EQ_MEM(run.out, all[first], LENGTHS[text] * sizeof *all);
    }
  }
}

TEST(nonfinite_values_are_reported_with_their_layer) {
  memory_init(&gate, 0, platform_alloc, platform_free);
  make_rows();
  made.v[70][3] = NAN;
  wick_error error = {0};
  CHECK_EQ_INT(attend(&CASES[0], 0, made.count, 1, &error), WICK_E_NONFINITE);
  CHECK_EQ_STR(error.message, "1 keys or values of layer 3 are not finite");
}
