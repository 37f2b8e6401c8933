// Tests the type chosen for each tensor, layer by layer, and the limits on directory values. The
// rows follow llama.cpp's rules (src/llama-quant.cpp); tests/engine/quantize.test.mjs compares
// whole files with llama.cpp's.
#include <stdio.h>
#include <string.h>

#include "gguf_rig.h"
#include "quantize/mix.h"

// Returns one letter per type, so that the types of all layers form a string.
static char letter_of(ggml_type type) {
  switch (type) {
    case GGML_TYPE_F32:
      return 'F';
    case GGML_TYPE_F16:
      return 'H';
    case GGML_TYPE_BF16:
      return 'B';
    case GGML_TYPE_Q8_0:
      return '8';
    case GGML_TYPE_Q6_K:
      return '6';
    case GGML_TYPE_Q5_K:
      return '5';
    case GGML_TYPE_Q4_K:
      return '4';
    case GGML_TYPE_Q5_0:
      return 'o';
    case GGML_TYPE_Q5_1:
      return 'p';
    case GGML_TYPE_Q4_0:
      return 'z';
    default:
      return '?';
  }
}

typedef struct model {
  const char *architecture;
  uint32_t layers, experts, heads, kv_heads, cols;
  bool has_output;
} model;

static void file_number(memory_file *file, const char *architecture, const char *key,
                        uint32_t value) {
  char name[80];
  snprintf(name, sizeof name, "%s.%s", architecture, key);
  file_string(file, name);
  file_u32(file, GGUF_U32);
  file_u32(file, value);
}

// The projections of each layer; only every `every`-th layer has attention.
static const char *const PARTS[] = {"attn_v", "attn_k", "attn_output", "ffn_down", "ffn_up"};
enum { PART_COUNT = 5 };

static gguf_directory *open_model(const model *m, uint32_t every) {
  memory_file file = {0};
  uint32_t tensors = 1 + m->has_output;
  for (uint32_t i = 0; i < m->layers; i++) tensors += i % every == every - 1 ? PART_COUNT : 2;
  file_header(&file, tensors, 5);
  file_string(&file, "general.architecture");
  file_u32(&file, GGUF_STRING);
  file_string(&file, m->architecture);
  file_number(&file, m->architecture, "block_count", m->layers);
  file_number(&file, m->architecture, "expert_count", m->experts);
  file_number(&file, m->architecture, "attention.head_count", m->heads);
  file_number(&file, m->architecture, "attention.head_count_kv", m->kv_heads);
  uint64_t offset = 0;
  const uint64_t size_bytes = (uint64_t)m->cols * 2 * 4;
  file_tensor(&file, "token_embd.weight", m->cols, 2, GGML_TYPE_F32, 0);
  if (m->has_output)
    file_tensor(&file, "output.weight", m->cols, 2, GGML_TYPE_F32, offset += size_bytes);
  for (uint32_t i = 0; i < m->layers; i++) {
    for (uint32_t k = i % every == every - 1 ? 0 : PART_COUNT - 2; k < PART_COUNT; k++) {
      char name[64];
      snprintf(name, sizeof name, "blk.%u.%s.weight", i, PARTS[k]);
      file_tensor(&file, name, m->cols, 2, GGML_TYPE_F32, offset += size_bytes);
    }
  }
  gguf_directory *directory = parse(&file);
  file_free(&file);
  return directory;
}

// "output.weight" is a tensor name and also a suffix of other names.
static bool matches(const char *name, const char *part) {
  return strcmp(part, "output.weight") == 0 ? strcmp(name, part) == 0 : strstr(name, part) != NULL;
}

// Writes the types of one projection in all layers that have it.
static void row_of(const gguf_directory *directory, const quantize_facts *facts, const char *mix,
                   const char *part, char *out) {
  const quantize_mix *found = quantize_find_mix(mix);
  for (size_t i = 0; found != NULL && i < gguf_tensor_count(directory); i++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, i);
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)tensor->name.size_bytes,
             (const char *)tensor->name.bytes);
    if (matches(name, part)) *out++ = letter_of(quantize_choose(found, facts, tensor));
  }
  *out = 0;
}

static const model LLAMA = {"llama", 10, 0, 4, 4, 256, true};
static const model DEEP = {"llama", 32, 0, 4, 4, 256, true};
static const model BIG = {"llama", 80, 0, 64, 8, 256, true};
static const model BIG_QWEN = {"qwen2", 80, 0, 64, 8, 256, true};
static const model WIDE = {"llama", 80, 0, 64, 64, 256, true};
static const model OTHER = {"gemma2", 80, 0, 64, 8, 256, true};
static const model FALCON = {"falcon", 32, 0, 4, 4, 256, true};
static const model EIGHT = {"llama", 8, 8, 4, 4, 256, true};
static const model FOUR = {"llama", 8, 4, 4, 4, 256, true};
static const model TIED = {"llama", 10, 0, 4, 4, 256, false};
static const model NARROW = {"llama", 10, 0, 4, 4, 96, true};
static const model ODD = {"llama", 10, 0, 4, 4, 40, true};

static const struct {
  const model *model;
  const char *mix, *part, *wanted;
  uint32_t every;  // every `every`-th layer has attention
} ROWS[] = {
#include "quantize_mix_rows.h"
};

TEST(each_layer_gets_its_type) {
  for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
    gguf_directory *directory = open_model(ROWS[i].model, ROWS[i].every);
    static quantize_facts facts;
    char row[200];
    REQUIRE(quantize_facts_read(directory, &facts, &error) == WICK_OK);
    row_of(directory, &facts, ROWS[i].mix, ROWS[i].part, row);
    if (!CHECK(strcmp(row, ROWS[i].wanted) == 0)) {
      printf("# %s of %u layers, %s, %s: \"%s\"\n", ROWS[i].model->architecture,
             ROWS[i].model->layers, ROWS[i].mix, ROWS[i].part, row);
    }
    close_directory(directory);
  }
}

// Makes a directory with a single tensor.
static gguf_directory *open_tensor(const char *name, uint64_t columns, uint64_t rows,
                                   uint32_t type) {
  memory_file file = {0};
  file_header(&file, 1, 0);
  file_tensor(&file, name, columns, rows, type, 0);
  gguf_directory *directory = parse(&file);
  file_free(&file);
  return directory;
}

static char choose_one(const char *mix, const char *name, uint64_t columns, uint64_t rows) {
  gguf_directory *directory = open_tensor(name, columns, rows, GGML_TYPE_F32);
  static quantize_facts facts;
  char letter = '!';
  if (CHECK_EQ_INT(quantize_facts_read(directory, &facts, &error), WICK_OK)) {
    letter =
        letter_of(quantize_choose(quantize_find_mix(mix), &facts, gguf_tensor_at(directory, 0)));
  }
  close_directory(directory);
  return letter;
}

TEST(small_and_odd_tensors_keep_their_type) {
  static const char *const KEPT[] = {"blk.0.attn_norm.weight",
                                     "blk.0.ffn_gate_inp.weight",
                                     "blk.0.ffn_gate_tid2eid.weight",
                                     "altup_proj.weight",
                                     "blk.0.laurel_l.weight",
                                     "per_layer_model_proj.weight",
                                     "blk.0.ssm_conv1d.weight",
                                     "blk.0.shortconv.conv.weight",
                                     "blk.0.indexer.k_proj.weight",
                                     "blk.0.indexer.q_proj.weight",
                                     "blk.0.time_mix_first.weight",
                                     "blk.0.time_mix_w0.weight",
                                     "blk.0.time_mix_w1.weight",
                                     "blk.0.time_mix_w2.weight",
                                     "blk.0.time_mix_v0.weight",
                                     "blk.0.time_mix_v1.weight",
                                     "blk.0.time_mix_v2.weight",
                                     "blk.0.time_mix_a0.weight",
                                     "blk.0.time_mix_a1.weight",
                                     "blk.0.time_mix_a2.weight",
                                     "blk.0.time_mix_g1.weight",
                                     "blk.0.time_mix_g2.weight",
                                     "blk.0.time_mix_decay_w1.weight",
                                     "blk.0.time_mix_decay_w2.weight",
                                     "blk.0.time_mix_lerp_fused.weight",
                                     "blk.0.attn_rel_b.weight",
                                     "position_embd.weight",
                                     "token_types.weight",
                                     "v.pos_embd.weight",
                                     "v.rel_pos.weight",
                                     "v.patch_embd.weight",
                                     "v.patch_merger.weight",
                                     "blk.0.attn_q.bias",
                                     "weights",
                                     "w",
                                     "weigh"};
  for (size_t i = 0; i < sizeof KEPT / sizeof KEPT[0]; i++) {
    if (!CHECK(choose_one("q4_0", KEPT[i], 256, 4) == 'F')) printf("# %s\n", KEPT[i]);
  }
  CHECK(choose_one("q4_0", "blk.0.attn_q.weight", 256, 1) == 'F');  // a vector
  CHECK(choose_one("q4_0", "blk.0.attn_q.weight", 256, 2) == 'z');
  CHECK(choose_one("q4_0", "weight", 256, 2) == 'z');
  CHECK(choose_one("q4_0", "blk.0.ffn_gate_inp2.weight", 256, 2) == 'z');
  CHECK(choose_one("q4_0", "per_layer_token_embd.weight", 256, 2) == '6');
  CHECK(choose_one("f16", "blk.0.attn_q.weight", 255, 2) == 'H');
  CHECK(choose_one("bf16", "blk.0.attn_norm.weight", 256, 2) == 'F');
  // if the number of layers is unknown, each tensor is treated as layer 0 of 0
  CHECK(choose_one("q4_k_m", "blk.0.attn_kv_b.weight", 256, 2) == '6');
  CHECK(choose_one("q4_k_m", "blk.0.attn_qkv.weight", 256, 2) == '6');
  CHECK(choose_one("q4_k_s", "blk.0.attn_qkv.weight", 256, 2) == '5');
  // layer numbers beyond the limit count as the last layer
  CHECK(choose_one("q4_k_s", "blk.1023.attn_v.weight", 256, 2) == '5');
  CHECK(choose_one("q4_k_s", "blk.99999999999.attn_v.weight", 256, 2) == '5');
}

// A name ends after its size in bytes: what follows it in memory is ignored.
TEST(names_need_no_terminator) {
  gguf_directory *directory = open_model(&DEEP, 1);
  static quantize_facts facts;
  REQUIRE(quantize_facts_read(directory, &facts, &error) == WICK_OK);
  const quantize_mix *mix = quantize_find_mix("q4_k_m");
  static const struct {
    const char *bytes;
    size_t size_bytes;
    char wanted;
  } NAMES[] = {
      {"output.weight", 13, '6'},
      {"output.weights", 13, '6'},
      {"output.weights", 14, 'F'},
      {"output.weigh", 12, 'F'},
      {"blk.0.attn_v.weight", 19, '6'},
      {"blk.0.attn_v.weight", 18, 'F'},
      {"blk.8.attn_v.weight", 19, '4'},
      {"blk.30.attn_v.weight", 20, '6'},
      {"blk.13.attn_v.weight", 20, '4'},
      {"weight", 6, '4'},
      {"blk.4294967309.attn_v.weight", 28, '6'},  // 13 + 2^32
      {"blk.", 4, 'F'},
  };
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    gguf_tensor tensor = *gguf_tensor_at(directory, 0);
    tensor.name = (gguf_string){(const void *)NAMES[i].bytes, NAMES[i].size_bytes};
    const char letter = letter_of(quantize_choose(mix, &facts, &tensor));
    if (!CHECK(letter == NAMES[i].wanted)) {
      printf("# %.*s: %c\n", (int)NAMES[i].size_bytes, NAMES[i].bytes, letter);
    }
  }
  close_directory(directory);
}

TEST(mixes_are_found_by_name_and_index) {
  static const char *const NAMES[] = {"f32",    "F16",  "Bf16",   "q8_0",   "Q6_K", "q5_K_m",
                                      "q5_k_s", "Q5_0", "q4_k_m", "q4_k_s", "q4_0"};
  static const uint32_t FILE_TYPES[] = {0, 1, 32, 7, 18, 17, 16, 8, 15, 14, 2};
  for (uint32_t i = 0; i < 11; i++) {
    const quantize_mix *mix = quantize_find_mix(NAMES[i]);
    REQUIRE(mix != NULL);
    CHECK(mix == quantize_mix_at(i));
    CHECK_EQ_UINT(mix->file_type, FILE_TYPES[i]);
  }
  CHECK(quantize_mix_at(11) == NULL && quantize_mix_at(UINT32_MAX) == NULL);
  static const char *const NONE[] = {"", "q4", "q4_00", "q4_k", "q4_k_l", "f3", "f322", "q4-0"};
  for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++)
    CHECK(quantize_find_mix(NONE[i]) == NULL);
}

// A key of the wrong type fails with an error that names the key.
TEST(keys_of_the_wrong_type_are_rejected) {
  static const char *const KEYS[] = {"llama.block_count", "llama.expert_count",
                                     "llama.attention.head_count", "llama.attention.head_count_kv",
                                     "general.architecture"};
  for (size_t wrong = 0; wrong < 5; wrong++) {
    memory_file file = {0};
    file_header(&file, 0, 5);
    for (size_t i = 0; i < 5; i++) {
      const size_t key = (i + 4) % 5;  // the architecture is first
      const bool is_text = (key == 4) != (key == wrong);
      file_string(&file, KEYS[key]);
      file_u32(&file, is_text ? GGUF_STRING : GGUF_U32);
      if (is_text) {
        file_string(&file, "llama");
      } else {
        file_u32(&file, 80);
      }
    }
    gguf_directory *directory = parse(&file);
    static quantize_facts facts;
    CHECK(quantize_facts_read(directory, &facts, &error) != WICK_OK);
    if (!CHECK(strstr(error.message, KEYS[wrong]) != NULL)) printf("# %s\n", error.message);
    close_directory(directory);
    file_free(&file);
  }
}
