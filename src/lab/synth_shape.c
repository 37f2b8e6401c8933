// lab/synth_shape.c — shapes from the models' published configurations.
#include "lab/synth_shape.h"

#include <string.h>

// Layers 2, 5, 8, 10, 12 and 14 have attention.
static const synth_hybrid LFM2 = {
    .mixer = SYNTH_SHORT_CONV, .attention_layers = 0x5524, .conv_kernel = 3};
// Layers 10, 13, 17 and 27 have attention.
static const synth_hybrid GRANITE_H = {.mixer = SYNTH_MAMBA2,
                                       .attention_layers = 0x8022400,
                                       .conv_kernel = 4,
                                       .heads = 48,
                                       .head_dim = 32,
                                       .groups = 1,
                                       .state_size = 128};
// Every fourth layer has attention, and so does the predicting layer.
static const synth_hybrid QWEN35 = {.mixer = SYNTH_DELTA_NET,
                                    .attention_layers = 0x1888888,
                                    .conv_kernel = 4,
                                    .heads = 16,
                                    .head_dim = 128,
                                    .groups = 16,
                                    .state_size = 128};
// Eight of GPT-OSS-20B's 32 experts; "gpt-oss-cut" also has only four of 24 layers and a small
// vocabulary.
static const synth_experts GPT_OSS = {.count = 8, .used = 4, .ffn = 2880};

static const synth_shape shapes[] = {
    {"tiny", "llama", 2, 256, 512, 4, 2, 1024, 2048, 10000, 1e-5f, "gpt-2", 0, 0, 0, NULL, NULL},
    {"wick-2.6m", "llama", 4, 256, 512, 4, 2, 1024, 4096, 10000, 1e-5f, "gpt-2", 0, 0, 0, NULL,
     NULL},
    {"100mb", "llama", 13, 768, 2048, 12, 4, 16384, 4096, 10000, 1e-5f, "gpt-2", 0, 0, 0, NULL,
     NULL},
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 49152, 8192, 100000, 1e-5f, "gpt-2", 0, 0, 0,
     NULL, NULL},
    {"smollm2-360m", "llama", 32, 960, 2560, 15, 5, 49152, 8192, 100000, 1e-5f, "gpt-2", 0, 0, 0,
     NULL, NULL},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 151936, 32768, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QKV_BIAS, 0, 0, NULL, NULL},
    {"llama3.2-1b", "llama", 16, 2048, 8192, 32, 8, 128256, 131072, 500000, 1e-5f, "llama-bpe",
     SYNTH_HAS_ROPE_FACTORS, 0, 0, NULL, NULL},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 151936, 40960, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QK_NORMS, 128, 0, NULL, NULL},
    {"qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 151936, 40960, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QK_NORMS, 128, 0, NULL, NULL},
    {"qwen3-8b", "qwen3", 36, 4096, 12288, 32, 8, 151936, 40960, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_OUTPUT, 128, 0, NULL, NULL},
    {"gemma3-270m", "gemma3", 18, 640, 2048, 4, 1, 262144, 32768, 1000000, 1e-6f, "gpt-2",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_POST_NORMS, 256, 512, NULL, NULL},
    {"gemma3-1b", "gemma3", 26, 1152, 6912, 4, 1, 262144, 32768, 1000000, 1e-6f, "gpt-2",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_POST_NORMS, 256, 512, NULL, NULL},
    {"smollm3-3b", "smollm3", 36, 2048, 11008, 16, 4, 128256, 65536, 5000000, 1e-6f, "llama-bpe", 0,
     0, 0, NULL, NULL},
    {"lfm2.5-350m", "lfm2", 16, 1024, 4608, 16, 8, 65536, 128000, 1000000, 1e-5f, "llama-bpe",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_EMBEDDING_NAMES, 0, 0, &LFM2, NULL},
    {"granite4-h-350m", "granitehybrid", 32, 768, 2048, 12, 4, 100352, 32768, 10000, 1e-5f, "gpt-2",
     SYNTH_HAS_NO_ROPE, 0, 0, &GRANITE_H, NULL},
    {"qwen3.5-0.8b", "qwen35", 24, 1024, 3584, 8, 2, 248320, 262144, 10000000, 1e-6f, "qwen35",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_QUERY_GATES | SYNTH_HAS_POST_NAMES | SYNTH_HAS_QUARTER_ROPE,
     256, 0, &QWEN35, NULL},
    {"qwen3.5-0.8b-mtp", "qwen35", 25, 1024, 3584, 8, 2, 248320, 262144, 10000000, 1e-6f, "qwen35",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_QUERY_GATES | SYNTH_HAS_POST_NAMES | SYNTH_HAS_QUARTER_ROPE |
         SYNTH_HAS_PREDICTOR,
     256, 0, &QWEN35, NULL},
    {"gpt-oss-cut", "gpt-oss", 4, 2880, 2880, 64, 8, 32768, 131072, 150000, 1e-5f, "gpt-4o",
     SYNTH_HAS_QKV_BIAS | SYNTH_HAS_SINKS | SYNTH_HAS_OUTPUT | SYNTH_HAS_POST_NAMES |
         SYNTH_HAS_YARN,
     64, 128, NULL, &GPT_OSS},
};

// A mix of one type, except for the tensors that matrix_type() selects
#define PLAIN(name, type, file_type) {name, type, type, file_type, false, false}

static const synth_mix mixes[] = {
    PLAIN("f32", GGML_TYPE_F32, 0),
    PLAIN("f16", GGML_TYPE_F16, 1),
    PLAIN("bf16", GGML_TYPE_BF16, 32),
    PLAIN("q8_0", GGML_TYPE_Q8_0, 7),
    PLAIN("q4_0", GGML_TYPE_Q4_0, 2),
    PLAIN("q6_k", GGML_TYPE_Q6_K, 18),
    {"q4_k_m", GGML_TYPE_Q4_K, GGML_TYPE_Q4_K, 15, true, false},
    {"q1_0", GGML_TYPE_Q1_0, GGML_TYPE_Q1_0, 40, false, true},
    {"mxfp4", GGML_TYPE_Q8_0, GGML_TYPE_MXFP4, 38, false, false},
};

const synth_shape *synth_shape_at(uint32_t index) {
  return index < sizeof shapes / sizeof shapes[0] ? &shapes[index] : NULL;
}

const synth_mix *synth_mix_at(uint32_t index) {
  return index < sizeof mixes / sizeof mixes[0] ? &mixes[index] : NULL;
}

const synth_shape *synth_find_shape(const char *name) {
  const synth_shape *shape;
  for (uint32_t i = 0; (shape = synth_shape_at(i)) != NULL; i++) {
    if (strcmp(shape->name, name) == 0) return shape;
  }
  return NULL;
}

const synth_mix *synth_find_mix(const char *name) {
  const synth_mix *mix;
  for (uint32_t i = 0; (mix = synth_mix_at(i)) != NULL; i++) {
    if (strcmp(mix->name, name) == 0) return mix;
  }
  return NULL;
}

uint32_t synth_head_dim(const synth_shape *shape) {
  return shape->head_dim != 0 ? shape->head_dim : shape->hidden / shape->heads;
}

synth_mixer synth_mixer_at(const synth_shape *shape, uint32_t layer) {
  if (shape->hybrid == NULL || (shape->hybrid->attention_layers >> layer & 1) != 0) {
    return SYNTH_ATTENTION;
  }
  return shape->hybrid->mixer;
}
