// Conformance cases KQ-01 to KQ-12 of the seed systems: the KV cache's block codecs, page data in
// each type, and the page header.
#include "check.h"
#include "fixture_model.h"
#include "kv/pool.h"
#include "reference/codec.h"
#include "reference/pages.h"

// The conformance page: 16 tokens of 8 heads of 64 in one layer.
enum { HEADS = 8, HEAD_DIM = 64, ROW = HEADS * HEAD_DIM, PAGE_BYTES_MAX = 65536 };
enum { BLOCK = KV_BLOCK_VALUES, PAIR = 2 * BLOCK };

typedef struct page_case {
  kv_layout layout;
  kv_page page;
  _Alignas(64) uint8_t bytes[PAGE_BYTES_MAX];
} page_case;

static page_case *open_page(kernel_kv_type type) {
  static page_case c;
  const kv_shape shape = {1, HEADS, HEAD_DIM, type, type, 0};
  wick_error error = {0};
  CHECK_EQ_INT(kv_layout_init(&c.layout, kernels_bind(), &shape, &error), WICK_OK);
  CHECK(c.layout.page_bytes <= PAGE_BYTES_MAX);
  memset(c.bytes, 0xa5, sizeof c.bytes);
  kv_page_init(&c.page, 0, &c.layout, c.bytes);
  return &c;
}

// Fills x with the golden input: two blocks.
static void make_pair(float x[PAIR]) {
  for (int i = 0; i < PAIR; i++) x[i] = (float)(i - 32) * 0.1f;
}

static const struct {
  uint32_t scale_bits;
  int8_t codes[BLOCK];
  double error_max;
} GOLDEN_Q8[2] = {
    {0x3cce69a0u,
     {-127, -123, -119, -115, -111, -107, -103, -99, -95, -91, -87, -83, -79, -75, -71, -67,
      -64,  -60,  -56,  -52,  -48,  -44,  -40,  -36, -32, -28, -24, -20, -16, -12, -8,  -4},
     0.012599},
    {0x3cc7f654u,
     {0,  4,  8,  12, 16, 20, 25, 29, 33, 37,  41,  45,  49,  53,  57,  61,
      66, 70, 74, 78, 82, 86, 90, 94, 98, 102, 107, 111, 115, 119, 123, 127},
     0.011812},
};

static const struct {
  uint32_t scale_bits;
  uint8_t bytes[BLOCK / 2];
  double error_max;
} GOLDEN_Q4[2] = {
    {0x3eea0ea1u,
     {0x11, 0x21, 0x22, 0x32, 0x33, 0x33, 0x44, 0x44, 0x54, 0x55, 0x65, 0x66, 0x66, 0x77, 0x77,
      0x88},
     0.228572},
    {0x3ee2be2du,
     {0x88, 0x98, 0x99, 0xa9, 0xaa, 0xaa, 0xbb, 0xbb, 0xcc, 0xcc, 0xdd, 0xdd, 0xed, 0xee, 0xfe,
      0xff},
     0.214286},
};

static double largest_error(const float *found, const float *wanted, uint32_t count) {
  double worst = 0;
  for (uint32_t i = 0; i < count; i++) {
    const double difference = (double)found[i] - (double)wanted[i];
    const double magnitude = difference < 0 ? -difference : difference;
    if (!(magnitude <= worst)) worst = magnitude;  // a NaN is the worst
  }
  return worst;
}

TEST(kq_01_bytes_of_a_q8_page) {
  const size_t bytes_f32 = kv_page_data_bytes(&open_page(KERNEL_KV_F32)->page.data);
  const kv_page_data *data = &open_page(KERNEL_KV_Q8)->page.data;
  CHECK_EQ_INT(kv_page_data_type(data), KERNEL_KV_Q8);
  CHECK_EQ_UINT(kv_page_data_bytes(data), 18432);
  CHECK_EQ_UINT(bytes_f32, 65536);
  CHECK(kv_page_data_bytes(data) < bytes_f32);
}

TEST(kq_02_bytes_of_a_q4_page) {
  const size_t bytes_q8 = kv_page_data_bytes(&open_page(KERNEL_KV_Q8)->page.data);
  const kv_page_data *data = &open_page(KERNEL_KV_Q4)->page.data;
  CHECK_EQ_INT(kv_page_data_type(data), KERNEL_KV_Q4);
  CHECK_EQ_UINT(kv_page_data_bytes(data), 10240);
  CHECK_EQ_UINT(bytes_q8, 18432);
  CHECK(kv_page_data_bytes(data) < bytes_q8);
}

// A row of the wrong length or at a position outside the page is rejected, and nothing is written.
static void check_refusals(page_case *c, const float *row) {
  static uint8_t before[PAGE_BYTES_MAX];
  const kv_page_data *data = &c->page.data;
  memcpy(before, c->bytes, c->layout.page_bytes);
  CHECK_EQ_INT(kv_data_keys_write(data, 0, 0, row, 64, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(kv_data_values_write(data, 0, 0, row, ROW - 1, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(kv_data_keys_write(data, 0, 16, row, ROW, NULL), WICK_E_RANGE);
  CHECK_EQ_INT(kv_data_values_write(data, 1, 0, row, ROW, NULL), WICK_E_RANGE);
  CHECK_EQ_MEM(c->bytes, before, c->layout.page_bytes);
  float bad[ROW];
  memcpy(bad, row, sizeof bad);
  bad[ROW - 1] = __builtin_inff();
  wick_error error = {0};
  CHECK_EQ_INT(kv_data_keys_write(data, 0, 0, bad, ROW, &error), WICK_E_NONFINITE);
  CHECK_EQ_STR(error.message, "1 values are not finite or too large for the KV type");
  CHECK_EQ_INT(kv_data_values_write(data, 0, 0, bad, ROW, NULL), WICK_E_NONFINITE);
  memcpy(c->bytes, before, c->layout.page_bytes);
  float found[ROW] = {77};
  CHECK_EQ_INT(kv_data_keys_read(data, 0, 16, found, ROW, NULL), WICK_E_RANGE);
  CHECK_EQ_INT(kv_data_values_read(data, 0, 0, found, 64, NULL), WICK_E_SHAPE);
  CHECK_EQ_F32(found[0], 77);
}

TEST(kq_03_f32_keys_are_read_back_exactly) {
  page_case *c = open_page(KERNEL_KV_F32);
  float keys[ROW] = {0}, found[ROW];
  for (int i = 0; i < 64; i++) keys[i] = (float)i * 0.1f;
  CHECK_EQ_INT(kv_data_keys_read(&c->page.data, 0, 0, found, ROW, NULL), WICK_OK);
  CHECK_NEAR(largest_error(found, (float[ROW]){0}, ROW), 0, 0);  // a new page contains zeros
  CHECK_EQ_INT(kv_data_keys_write(&c->page.data, 0, 0, keys, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_keys_read(&c->page.data, 0, 0, found, ROW, NULL), WICK_OK);
  CHECK_EQ_MEM(found, keys, sizeof keys);
  check_refusals(c, keys);
}

TEST(kq_04_q8_rows_are_close_to_the_written_values) {
  page_case *c = open_page(KERNEL_KV_Q8);
  float row[ROW] = {0}, keys[ROW], values[ROW];
  make_pair(row);
  CHECK_EQ_INT(kv_data_keys_write(&c->page.data, 0, 0, row, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_values_write(&c->page.data, 0, 0, row, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_keys_read(&c->page.data, 0, 0, keys, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_values_read(&c->page.data, 0, 0, values, ROW, NULL), WICK_OK);
  CHECK(largest_error(keys, row, ROW) < 0.05);
  CHECK(largest_error(values, row, ROW) < 0.05);
  CHECK(largest_error(keys, row, ROW) <= 0.0126);
  for (int i = 0; i < PAIR; i++) {
    const float wanted =
        (float)GOLDEN_Q8[i / BLOCK].codes[i % BLOCK] * f32_of_bits(GOLDEN_Q8[i / BLOCK].scale_bits);
    CHECK_EQ_F32(keys[i], wanted);
    CHECK_EQ_F32(values[i], wanted);
  }
  check_refusals(c, row);
}

TEST(kq_05_a_new_page) {
  const kv_page *page = &open_page(KERNEL_KV_Q8)->page;
  CHECK_EQ_INT(page->id, 0);
  CHECK_EQ_INT(kv_page_type(page), KERNEL_KV_Q8);
  CHECK_EQ_UINT(page->fill_tokens, 0);
  CHECK_EQ_UINT(page->ref_count, 0);
  CHECK(!kv_page_is_full(page));
  CHECK(!kv_page_is_shared(page));
  CHECK(!page->is_sealed);
}

TEST(kq_06_keys_and_values_of_a_page) {
  page_case *c = open_page(KERNEL_KV_F32);
  float keys[ROW], values[ROW], found_keys[ROW], found_values[ROW];
  for (int i = 0; i < ROW; i++) {
    keys[i] = (float)i * 0.01f;
    values[i] = (float)-i * 0.01f;
  }
  CHECK_EQ_INT(kv_data_keys_write(&c->page.data, 0, 0, keys, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_values_write(&c->page.data, 0, 0, values, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_keys_read(&c->page.data, 0, 0, found_keys, 512, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_values_read(&c->page.data, 0, 0, found_values, 512, NULL), WICK_OK);
  for (int i = 0; i < ROW; i++) {
    CHECK(found_keys[i] == keys[i]);
    CHECK(found_values[i] == values[i]);
  }
}

TEST(kq_07_a_page_is_full_at_16_tokens) {
  kv_page *page = &open_page(KERNEL_KV_Q8)->page;
  CHECK_EQ_UINT(kv_page_room_tokens(page), 16);
  CHECK(!kv_page_is_full(page));
  page->fill_tokens = 15;
  CHECK_EQ_UINT(kv_page_room_tokens(page), 1);
  CHECK(!kv_page_is_full(page));
  page->fill_tokens = 16;
  CHECK(kv_page_is_full(page));
  CHECK_EQ_UINT(kv_page_room_tokens(page), 0);
}

TEST(kq_08_a_q8_block_begins_empty) {
  kvq8_block block;
  memset(&block, 0xa5, sizeof block);
  kvq8_clear(&block);
  CHECK(block.scale == 0);
  for (int i = 0; i < BLOCK; i++) CHECK_EQ_INT(block.codes[i], 0);
}

TEST(kq_09_a_q4_block_begins_empty) {
  kvq4_block block;
  memset(&block, 0xa5, sizeof block);
  kvq4_clear(&block);
  CHECK(block.scale == 0);
  float x[BLOCK];
  kvq4_decode(&block, x);
  for (int i = 0; i < BLOCK; i++) CHECK(x[i] == 0);  // includes -0
}

static void check_golden(void) {
  float x[PAIR], found[BLOCK];
  make_pair(x);
  for (int b = 0; b < 2; b++) {
    kvq8_block q8;
    kvq4_block q4;
    CHECK_EQ_UINT(kvq8_encode(x + b * BLOCK, &q8), 0);
    CHECK_EQ_UINT(bits_of_f32(q8.scale), GOLDEN_Q8[b].scale_bits);
    CHECK_EQ_MEM(q8.codes, GOLDEN_Q8[b].codes, sizeof q8.codes);
    kvq8_decode(&q8, found);
    CHECK(largest_error(found, x + b * BLOCK, BLOCK) <= GOLDEN_Q8[b].error_max);
    CHECK_EQ_UINT(kvq4_encode(x + b * BLOCK, &q4), 0);
    CHECK_EQ_UINT(bits_of_f32(q4.scale), GOLDEN_Q4[b].scale_bits);
    CHECK_EQ_MEM(q4.bytes, GOLDEN_Q4[b].bytes, sizeof q4.bytes);
    kvq4_decode(&q4, found);
    CHECK(largest_error(found, x + b * BLOCK, BLOCK) <= GOLDEN_Q4[b].error_max);
  }
}

// Returns a block in which only this value is nonzero.
static void check_empty(float amax, bool is_empty) {
  float x[BLOCK] = {0}, found[BLOCK];
  x[5] = amax;
  kvq8_block q8;
  kvq4_block q4;
  CHECK_EQ_UINT(kvq8_encode(x, &q8), 0);
  CHECK_EQ_UINT(kvq4_encode(x, &q4), 0);
  CHECK((q8.scale == 0) == is_empty);
  CHECK((q4.scale == 0) == is_empty);
  CHECK_EQ_INT(q8.codes[5], is_empty ? 0 : 127);
  CHECK_EQ_UINT(q4.bytes[2], is_empty ? 0x88 : 0xf8);
  CHECK_EQ_UINT(q4.bytes[0], 0x88);
  kvq4_decode(&q4, found);
  CHECK((found[5] == 0) == is_empty);
  kvq8_decode(&q8, found);
  CHECK((found[5] == 0) == is_empty);
}

// Values of one magnitude with alternating signs are read back unchanged.
static void check_extremes(float q8_value, float q4_value) {
  float a[BLOCK], b[BLOCK], found[BLOCK];
  for (int i = 0; i < BLOCK; i++) {
    a[i] = i % 2 == 0 ? q8_value : -q8_value;
    b[i] = i % 2 == 0 ? q4_value : -q4_value;
  }
  kvq8_block q8;
  kvq4_block q4;
  CHECK_EQ_UINT(kvq8_encode(a, &q8), 0);
  kvq8_decode(&q8, found);
  CHECK_EQ_MEM(found, a, sizeof a);
  CHECK_EQ_UINT(kvq4_encode(b, &q4), 0);
  kvq4_decode(&q4, found);
  CHECK_EQ_MEM(found, b, sizeof b);
}

TEST(kq_10_codes_and_scales) {
  check_golden();
  check_empty(0, true);
  check_empty(9e-11f, true);
  check_empty(1e-10f, false);
  float ones[BLOCK], found[BLOCK];
  for (int i = 0; i < BLOCK; i++) ones[i] = 1;
  kvq8_block q8;
  kvq4_block q4;
  CHECK_EQ_UINT(kvq8_encode(ones, &q8), 0);
  CHECK_EQ_UINT(kvq4_encode(ones, &q4), 0);
  for (int i = 0; i < BLOCK; i++) CHECK_EQ_INT(q8.codes[i], 127);
  for (int i = 0; i < BLOCK / 2; i++) CHECK_EQ_UINT(q4.bytes[i], 0xff);
  kvq8_decode(&q8, found);
  CHECK_EQ_MEM(found, ones, sizeof ones);
  kvq4_decode(&q4, found);
  CHECK_EQ_MEM(found, ones, sizeof ones);
  check_extremes(1000, 100);
}

TEST(kq_11_q4_rows_and_an_overfull_page) {
  page_case *c = open_page(KERNEL_KV_Q4);
  float row[ROW] = {0}, keys[ROW], values[ROW];
  make_pair(row);
  CHECK_EQ_INT(kv_data_keys_write(&c->page.data, 0, 0, row, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_values_write(&c->page.data, 0, 0, row, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_keys_read(&c->page.data, 0, 0, keys, ROW, NULL), WICK_OK);
  CHECK_EQ_INT(kv_data_values_read(&c->page.data, 0, 0, values, ROW, NULL), WICK_OK);
  CHECK(largest_error(keys, row, ROW) < 0.5);
  CHECK(largest_error(keys, row, ROW) <= 0.228572);
  CHECK_EQ_MEM(values, keys, sizeof keys);
  c->page.fill_tokens = 20;
  CHECK(kv_page_is_full(&c->page));
  CHECK_EQ_UINT(kv_page_room_tokens(&c->page), 0);
}

// Replaces two values of the golden second block; all other values must be encoded as before.
static void check_replaced(float first, float second, int first_sign, int second_sign) {
  float x[PAIR];
  make_pair(x);
  x[BLOCK + 2] = first;
  x[BLOCK + 9] = second;
  kvq8_block q8;
  kvq4_block q4;
  CHECK_EQ_UINT(kvq8_encode(x + BLOCK, &q8), 2);
  CHECK_EQ_UINT(kvq4_encode(x + BLOCK, &q4), 2);
  CHECK_EQ_UINT(bits_of_f32(q8.scale), GOLDEN_Q8[1].scale_bits);
  CHECK_EQ_UINT(bits_of_f32(q4.scale), GOLDEN_Q4[1].scale_bits);
  for (int i = 0; i < BLOCK; i++) {
    const int golden_q4 = (GOLDEN_Q4[1].bytes[i / 2] >> (i % 2 * 4) & 15) - 8;
    const int sign = i == 2 ? first_sign : second_sign;
    const bool is_replaced = i == 2 || i == 9;
    CHECK_EQ_INT(q8.codes[i], is_replaced ? sign * 127 : GOLDEN_Q8[1].codes[i]);
    CHECK_EQ_INT((q4.bytes[i / 2] >> (i % 2 * 4) & 15) - 8, is_replaced ? sign * 7 : golden_q4);
  }
}

// A block with zeros and an infinity is encoded as an empty block.
static void check_lone_infinity(float infinity) {
  float x[BLOCK] = {0}, found[BLOCK];
  x[7] = infinity;
  kvq8_block q8;
  kvq4_block q4;
  CHECK_EQ_UINT(kvq8_encode(x, &q8), 1);
  CHECK_EQ_UINT(kvq4_encode(x, &q4), 1);
  CHECK(q8.scale == 0 && q4.scale == 0);
  kvq8_decode(&q8, found);
  for (int i = 0; i < BLOCK; i++) CHECK(found[i] == 0);
  kvq4_decode(&q4, found);
  for (int i = 0; i < BLOCK; i++) CHECK(found[i] == 0);
}

// The pool counts non-finite values, and the count is never reset.
static void check_pool_counter(kernel_kv_type type, float nan, float infinity) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, HEADS, HEAD_DIM, type, type, 0};
  kv_pool *pool = NULL;
  wick_error error = {0};
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &shape, 1, 1, &pool, &error) == WICK_OK);
  kv_seq_id seq;
  CHECK_EQ_INT(kv_seq_new(pool, 16, &seq, NULL, &error), WICK_OK);
  float k[ROW] = {1, 2, 3}, v[ROW] = {4, 5, 6};
  CHECK_EQ_UINT(kv_row_write(pool, seq, 0, 0, k, v), 0);
  CHECK_EQ_UINT(kv_pool_stats(pool).nonfinite_values, 0);
  k[100] = nan;
  v[0] = infinity;
  v[ROW - 1] = -infinity;
  CHECK_EQ_UINT(kv_row_write(pool, seq, 0, 1, k, v), 3);
  CHECK_EQ_UINT(kv_pool_stats(pool).nonfinite_values, 3);
  k[100] = v[0] = v[ROW - 1] = 1;
  CHECK_EQ_UINT(kv_row_write(pool, seq, 0, 1, k, v), 0);
  CHECK_EQ_UINT(kv_pool_stats(pool).nonfinite_values, 3);
  kv_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Expects a single event: the end of the request, with an error about the non-finite values. Counts
// these events in `context`.
static void take_refusal(void *context, const wick_event *event, const uint8_t *after) {
  CHECK(event->kind != WICK_EVENT_TOKEN);
  if (event->kind != WICK_EVENT_DONE) return;
  char reply_text[256] = {0};  // not the message for non-finite logits
  memcpy(reply_text, after, event->text_bytes < 255 ? event->text_bytes : 255);
  CHECK(strstr(reply_text, "keys or values of layer 1 are not finite") != NULL);
  CHECK_EQ_UINT(event->finish, WICK_FINISH_ERROR);
  CHECK_EQ_UINT(event->status, WICK_E_NONFINITE);
  ++*(uint32_t *)context;
}

// Runs a model whose layer 0 produces NaN or infinity, which layer 1 would store as keys and
// values.
static void check_engine(wick_kv_type type, float poison) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.poison = poison;
  fixture_file file = fixture_make(&shape);
  wick_config config;
  wick_config_default(&config);
  config.k_type = config.v_type = type;
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  wick_request request;
  wick_request_default(&request);
  request.text = "the inner";
  request.text_bytes = strlen(request.text);
  request.max_tokens = 4;
  uint32_t id, ends = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  fixture_run(engine, take_refusal, &ends);
  CHECK_EQ_UINT(ends, 1);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(kq_12_non_finite_values) {
  const float nan = f32_of_bits(0x7fc00000u), infinity = f32_of_bits(0x7f800000u);
  check_replaced(nan, nan, 0, 0);
  check_replaced(infinity, -infinity, 1, -1);
  check_replaced(-infinity, nan, -1, 0);
  check_lone_infinity(infinity);
  check_lone_infinity(-infinity);
  for (kernel_kv_type type = KERNEL_KV_F32; type <= KERNEL_KV_Q4; type++) {
    check_pool_counter(type, nan, infinity);
  }
  for (wick_kv_type type = 0; type < WICK_KV_TYPE_COUNT; type++) {
    check_engine(type, nan);
    check_engine(type, infinity);
  }
}
