// Encoding of blocks, and the conversion of a whole file: with any pieces of input, any number of
// threads, and any failing allocation.
#include "quantize/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "check.h"
#include "gguf_files.h"
#include "platform/platform.h"
#include "quantize/decode.h"
#include "quantize/encode.h"
#include "quantize/scales.h"
#include "random.h"

static const ggml_type TYPES[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0,
                                  GGML_TYPE_Q4_0, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q4_K,
                                  GGML_TYPE_Q5_K, GGML_TYPE_Q6_K};
enum { TYPE_COUNT = sizeof TYPES / sizeof TYPES[0], BLOCK = 256, ROUNDS = 40 };

// Returns the number of steps that a type's codes have over the range of its values.
static float steps_of(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q8_0:
      return 254;
    case GGML_TYPE_Q6_K:
      return 60;
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
      return 29;
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q4_0:
      return 13;
    case GGML_TYPE_BF16:
      return 256;
    default:
      return 2048;
  }
}

static void encode_and_decode(ggml_type type, const float values[BLOCK], float out[BLOCK]) {
  uint8_t blocks[BLOCK * 4];
  memset(blocks, 0xa5, sizeof blocks);
  quantize_encode(type, values, BLOCK, blocks);
  quantize_decode(kernels_by_name("scalar"), type, blocks, BLOCK, out);
}

TEST(decoded_values_are_within_one_step) {
  uint64_t random = 3;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    float values[BLOCK], back[BLOCK];
    const float size = round % 2 == 0 ? 1.0f : 0x1p-9f;
    for (uint32_t i = 0; i < BLOCK; i++) {
      values[i] = size * ((float)(random_u64(&random) % 20001) / 10000.0f - 1.0f);
    }
    for (uint32_t t = 0; t < TYPE_COUNT; t++) {
      encode_and_decode(TYPES[t], values, back);
      for (uint32_t i = 0; i < BLOCK; i++) {
        CHECK_NEAR(back[i], values[i], 1.05f * size * 2 / steps_of(TYPES[t]));
      }
    }
  }
}

TEST(representable_values_are_decoded_exactly) {
  float values[BLOCK], back[BLOCK];
  for (uint32_t i = 0; i < BLOCK; i++) values[i] = (float)((int32_t)(i * 7 % 16) - 8) * 0.125f;
  for (uint32_t t = 0; t < TYPE_COUNT; t++) {
    encode_and_decode(TYPES[t], values, back);
    for (uint32_t i = 0; i < BLOCK && TYPES[t] != GGML_TYPE_Q8_0; i++) {
      CHECK_NEAR(back[i], values[i], 0.002f);
    }
  }
  memset(values, 0, sizeof values);
  for (uint32_t t = 0; t < TYPE_COUNT; t++) {
    encode_and_decode(TYPES[t], values, back);
    for (uint32_t i = 0; i < BLOCK; i++) CHECK(back[i] == 0);
  }
}

TEST(extreme_values_stay_finite) {
  static const float extremes[] = {65504, -65504, 1e-7f, -1e-7f, 1e-30f, 0, 1000, 999.9f};
  enum { COUNT = sizeof extremes / sizeof extremes[0] };
  uint64_t random = 5;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    float values[BLOCK], back[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) values[i] = extremes[random_u64(&random) % COUNT];
    for (uint32_t t = 0; t < TYPE_COUNT; t++) {
      encode_and_decode(TYPES[t], values, back);
      for (uint32_t i = 0; i < BLOCK; i++) {
        CHECK(back[i] >= -70000 && back[i] <= 70000);
      }
    }
  }
}

TEST(a_chunk_of_every_type_fits_its_layout) {
  const kernel_table *kernels = kernels_bind();
  uint32_t count = 0;
  for (ggml_type type = 0; type < GGML_TYPE_COUNT; type++) {
    const ggml_type_facts *facts = type_facts(type);
    const bool is_float = facts != NULL && facts->block_values == 1;
    if (facts == NULL || kernels->types[type].matmul == NULL) continue;
    uint64_t bytes = 0;
    CHECK_EQ_UINT(QUANTIZE_CHUNK_VALUES % facts->block_values, 0);
    CHECK(quantize_can_decode(kernels, type));
    CHECK(kernels->types[type].matrix_bytes(1, QUANTIZE_CHUNK_VALUES, &bytes));
    CHECK(is_float || bytes <= QUANTIZE_LAYOUT_BYTES_MAX);
    count++;
  }
  CHECK(count >= TYPE_COUNT);
  CHECK(!quantize_can_decode(kernels, GGML_TYPE_I8));
  CHECK(!quantize_can_decode(kernels, GGML_TYPE_I32));
  CHECK(!quantize_can_decode(kernels, GGML_TYPE_F64));
}

// ---- the search for scales, compared with its definition in double precision ----

enum { GROUP_MAX = 32, TRIES = 21 };

static double code_of(double inverse, double value, double least, double most) {
  const double code = (double)quantize_nearest((float)inverse * (float)value);
  return code < least ? least : code > most ? most : code;
}

static void random_group(uint64_t *random, float values[GROUP_MAX], uint32_t count) {
  const float offset = random_below(random, 3) == 0 ? 0.7f : 0;
  for (uint32_t i = 0; i < count; i++) {
    const float value = (float)random_below(random, 20001) / 10000.0f - 1.0f;
    values[i] = value * value * value + offset;
  }
}

// Returns the squared error that remains when the codes of one attempt are fitted with one scale.
static double error_of_scale(const float *values, uint32_t count, int32_t levels, uint32_t attempt,
                             float largest, double *scale) {
  const float inverse = -((float)levels + 0.1f * (float)((int32_t)attempt - 10)) / largest;
  double dots = 0, squares = 0, sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    const double code = code_of((double)inverse, (double)values[i], -levels, levels - 1);
    dots += code * (double)values[i];
    squares += code * code;
    sum += (double)values[i] * (double)values[i];
  }
  *scale = squares > 0 ? dots / squares : 0;
  return sum - *scale * dots;
}

TEST(the_chosen_scale_is_the_best_of_all_attempts) {
  uint64_t random = soak_seed() + 7;
  for (uint32_t round = 0; round < 3000; round++) {
    float values[GROUP_MAX], largest = 0;
    const uint32_t count = round % 2 == 0 ? 16 : 32;
    const int32_t levels = 8 << (round / 2 % 3);
    random_group(&random, values, count);
    for (uint32_t i = 0; i < count; i++) {
      if ((values[i] < 0 ? -values[i] : values[i]) > (largest < 0 ? -largest : largest))
        largest = values[i];
    }
    const double found = (double)quantize_scale(values, count, levels);
    double best = 1e30, nearest = 1e30;
    for (uint32_t t = 0; t < TRIES; t++) {
      double scale;
      const double left = error_of_scale(values, count, levels, t, largest, &scale);
      if (left < best) best = left;
      const double distance = scale > found ? scale - found : found - scale;
      if (distance < 1e-5 * (found < 0 ? -found : found) && left < nearest) nearest = left;
    }
    CHECK(nearest <= best + 1e-5);  // the sums are computed in float
  }
}

// The same with a minimum: scale * code + min, where the minimum may have to be at most 0.
TEST(the_chosen_scale_and_minimum_are_the_best_of_all_attempts) {
  uint64_t random = soak_seed() + 8;
  for (uint32_t round = 0; round < 3000; round++) {
    float values[GROUP_MAX];
    const uint32_t count = 32;
    const int32_t top = round % 2 == 0 ? 15 : 31;
    const bool is_below_zero = round / 2 % 2 == 0;
    random_group(&random, values, count);
    float low = values[0], high = values[0];
    for (uint32_t i = 0; i < count; i++) {
      low = values[i] < low ? values[i] : low;
      high = values[i] > high ? values[i] : high;
    }
    if (is_below_zero && low > 0) low = 0;
    const quantize_line found = quantize_scale_and_min(values, count, top, is_below_zero);
    CHECK(!is_below_zero || found.min <= 0);
    double best = 1e30, own = 1e30;
    for (uint32_t t = 0; t < TRIES; t++) {
      const float inverse = ((float)top + 0.1f * (float)((int32_t)t - 10)) / (high - low);
      double n = 0, x = 0, xx = 0, y = 0, xy = 0, codes[GROUP_MAX];
      for (uint32_t i = 0; i < count; i++) {
        codes[i] = code_of((double)inverse, (double)(values[i] - low), 0, top);
        n += 1, x += codes[i], xx += codes[i] * codes[i];
        y += (double)values[i], xy += codes[i] * (double)values[i];
      }
      double scale = (n * xy - x * y) / (n * xx - x * x), min = (y - scale * x) / n;
      if (is_below_zero && min > 0) min = 0, scale = xy / xx;
      double left = 0, mine = 0;
      for (uint32_t i = 0; i < count; i++) {
        const double a = scale * codes[i] + min - (double)values[i];
        const double b = (double)found.scale * codes[i] + (double)found.min - (double)values[i];
        left += a * a, mine += b * b;
      }
      best = left < best ? left : best;
      own = mine < own ? mine : own;
    }
    CHECK(own <= best * 1.001 + 1e-6);
  }
}

TEST(groups_of_equal_values_have_a_valid_scale) {
  float values[GROUP_MAX] = {0};
  CHECK_EQ_F32(quantize_scale(values, 16, 8), 0.0f);
  const quantize_line zero = quantize_scale_and_min(values, 32, 15, true);
  CHECK(zero.scale == 0 && zero.min == 0);
  for (uint32_t i = 0; i < GROUP_MAX; i++) values[i] = 0.25f;
  const quantize_line flat = quantize_scale_and_min(values, 32, 15, false);
  CHECK(flat.scale == 0 && flat.min == 0.25f);
  const quantize_line below = quantize_scale_and_min(values, 32, 15, true);
  CHECK(below.min == 0);
  CHECK_NEAR(below.scale * 14, 0.25f, 1e-6);  // the first attempt with no remaining error
  CHECK_NEAR(quantize_scale(values, 16, 8) * -7, 0.25f, 1e-6);
  for (uint32_t i = 0; i < GROUP_MAX; i++) values[i] = 1e-16f;
  CHECK_EQ_F32(quantize_scale(values, 16, 8), 0.0f);
}

// FNV hashes of blocks of the same weights: identical on every host and in every version.
TEST(blocks_are_the_same_on_every_host) {
  static const uint64_t HASHES[TYPE_COUNT] = {
      0x741f2c49b9fca084, 0x4f37803b7ca4e1a5, 0x01cfe4596053c9c4, 0x1624111e6bb506dc,
      0xec58c8d3905b3ca6, 0xce548d47c3d0c380, 0x3b23a8f59a6ea11a, 0x90d55345f7b0252e,
      0x74635ffe336c024a, 0x3cb850749e4c7ee5};
  uint64_t random = 11;
  static float values[BLOCK * 64];
  for (uint32_t i = 0; i < BLOCK * 64; i++) {
    const float value = (float)random_below(&random, 20001) / 10000.0f - 1.0f;
    values[i] = value * value * value * (i / BLOCK % 5 == 0 ? 100.0f : 0.02f) +
                (i / 32 % 7 == 0 ? 0.01f : 0);
  }
  for (uint32_t t = 0; t < TYPE_COUNT; t++) {
    static uint8_t blocks[BLOCK * 64 * 4];
    uint64_t row_bytes = 0;
    REQUIRE(type_row_bytes(TYPES[t], BLOCK * 64, &row_bytes));
    memset(blocks, 0, sizeof blocks);
    quantize_encode(TYPES[t], values, BLOCK * 64, blocks);
    const uint64_t hash = hash_bytes(blocks, sizeof blocks, 1);
    if (!CHECK(hash == HASHES[t])) printf("# 0x%016llx,\n", (unsigned long long)hash);
    for (uint64_t i = row_bytes; i < sizeof blocks; i++) REQUIRE(blocks[i] == 0);
  }
}

TEST(nearest_rounds_ties_to_even_and_saturates) {
  CHECK_EQ_INT(quantize_nearest(0.5f), 0);
  CHECK_EQ_INT(quantize_nearest(1.5f), 2);
  CHECK_EQ_INT(quantize_nearest(-2.5f), -2);
  CHECK_EQ_INT(quantize_nearest(-126.6f), -127);
  CHECK_EQ_INT(quantize_nearest(1e30f), 2097152);
  CHECK_EQ_INT(quantize_nearest(-1e30f), -2097152);
}

TEST(bfloat16_rounds_to_even_and_keeps_nan) {
  static const uint32_t cases[][2] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},
                                      {0x3f808001, 0x3f81}, {0x7f800000, 0x7f80},
                                      {0x7f800001, 0x7fc0}, {0x80000000, 0x8000}};
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    float value;
    uint16_t half;
    memcpy(&value, &cases[i][0], sizeof value);
    quantize_encode(GGML_TYPE_BF16, &value, 1, (uint8_t *)&half);
    CHECK_EQ_UINT(half, cases[i][1]);
  }
}

// ---- files ----

static const sample_tensor TENSORS[] = {
    {"token_embd.weight", GGML_TYPE_BF16, 2, {256, 3, 1, 1}},
    {"blk.0.attn_norm.weight", GGML_TYPE_F32, 1, {256, 1, 1, 1}},
    {"blk.0.attn_v.weight", GGML_TYPE_Q8_0, 2, {96, 5, 1, 1}},
    {"blk.0.ffn_down.weight", GGML_TYPE_Q8_0, 2, {512, 160, 1, 1}},
    {"blk.1.ffn_down.weight", GGML_TYPE_Q5_K, 2, {256, 7, 1, 1}},
};

// Random bytes would make half-precision scales of any size, so the scales of quantised weights are
// set to 1.
static memory_file sample_file(void) {
  const sample_spec spec = {.tensors = TENSORS,
                            .tensor_count = sizeof TENSORS / sizeof TENSORS[0],
                            .files = 1,
                            .seed = 9};
  memory_file file = sample_make(&spec);
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_directory *directory = NULL;
  size_t used;
  if (gguf_directory_create(&memory, &directory, NULL) != WICK_OK ||
      gguf_directory_feed(directory, file.bytes, file.size_bytes, &used, NULL) != WICK_OK) {
    abort();
  }
  for (size_t i = 0; i < gguf_tensor_count(directory); i++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, i);
    const ggml_type_facts *facts = type_facts(tensor->type);
    uint8_t *bytes = file.bytes + tensor->offset_bytes;
    for (uint64_t at = 0; at < tensor->size_bytes; at += facts->block_bytes) {
      static const uint8_t one[4] = {0, 0x3c, 0, 0x3c};
      if (facts->block_values == 1) {
        memset(bytes + at, (int)(at % 64), facts->block_bytes);  // small floats
      } else {
        memcpy(bytes + at, one, tensor->type == GGML_TYPE_Q5_K ? 4 : 2);
      }
    }
  }
  gguf_directory_destroy(directory);
  return file;
}

typedef struct conversion {
  memory_gate memory;
  wick_error error;
  memory_file out;
  uint32_t reports;
} conversion;

static bool write_out(void *context, const void *bytes, size_t size_bytes) {
  return file_write(&((conversion *)context)->out, bytes, size_bytes);
}

static void count_report(void *context, const quantize_report *report) {
  conversion *run = context;
  CHECK_EQ_UINT(report->index, run->reports);
  run->reports++;
}

static wick_status convert(conversion *run, const memory_file *file, const char *mix,
                           uint32_t threads, size_t piece, uint64_t fail_at_call) {
  *run = (conversion){0};
  memory_init(&run->memory, 0, platform_alloc, platform_free);
  run->memory.fail_at_call = fail_at_call;
  const quantize_settings settings = {quantize_find_mix(mix), threads, true, write_out,
                                      count_report,           run};
  quantizer *made = NULL;
  wick_status status = quantizer_create(&run->memory, &settings, &made, &run->error);
  for (size_t at = 0; status == WICK_OK && at < file->size_bytes; at += piece) {
    const size_t left = file->size_bytes - at;
    status = quantizer_feed(made, file->bytes + at, left < piece ? left : piece, &run->error);
  }
  if (status == WICK_OK) status = quantizer_finish(made, &run->error);
  quantizer_destroy(made);
  CHECK_EQ_UINT(run->memory.blocks_now, 0);
  return status;
}

TEST(the_file_does_not_depend_on_pieces_and_threads) {
  memory_file file = sample_file();
  conversion whole;
  REQUIRE(convert(&whole, &file, "q4_k_m", 1, file.size_bytes, 0) == WICK_OK);
  CHECK_EQ_UINT(whole.reports, sizeof TENSORS / sizeof TENSORS[0]);
  static const size_t pieces[] = {1, 7, 1000, 65536};
  for (uint32_t i = 0; i < 4; i++) {
    conversion run;
    CHECK_EQ_INT(convert(&run, &file, "Q4_K_M", 1 + i, pieces[i], 0), WICK_OK);
    CHECK_EQ_UINT(run.out.size_bytes, whole.out.size_bytes);
    CHECK_EQ_MEM(run.out.bytes, whole.out.bytes, whole.out.size_bytes);
    file_free(&run.out);
  }
  file_free(&whole.out);
  file_free(&file);
}

TEST(an_allocation_failure_frees_all_memory) {
  memory_file file = sample_file();
  conversion run;
  REQUIRE(convert(&run, &file, "q6_k", 2, 4096, 0) == WICK_OK);
  const uint64_t calls = run.memory.calls;
  file_free(&run.out);
  CHECK(calls > 5);
  for (uint64_t call = 1; call <= calls; call++) {
    CHECK_EQ_INT(convert(&run, &file, "q6_k", 2, 4096, call), WICK_E_NOMEM);
    CHECK_EQ_INT(run.error.status, WICK_E_NOMEM);
    CHECK(strncmp(run.error.message, "out of memory: ", 15) == 0);
    file_free(&run.out);
  }
  file_free(&file);
}

TEST(a_truncated_file_is_rejected) {
  memory_file file = sample_file();
  conversion run;
  memory_file cut = file;
  cut.size_bytes -= 200;
  CHECK_EQ_INT(convert(&run, &cut, "q8_0", 1, 4096, 0), WICK_E_TRUNCATED);
  CHECK(strstr(run.error.message, "'blk.1.ffn_down.weight'") != NULL);
  file_free(&run.out);
  CHECK_EQ_INT(convert(&run, &cut, "q8_0", WICK_THREADS_MAX + 1, 4096, 0), WICK_E_ARG);
  file_free(&file);
}
