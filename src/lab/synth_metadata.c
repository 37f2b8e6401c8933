// lab/synth_metadata.c — metadata keys of dense, hybrid and expert models.
#include "lab/synth_metadata.h"

#include <stdio.h>
#include <string.h>

#include "lab/synth_vocab.h"

typedef struct synth_keys {
  gguf_writer *writer;
  const synth_shape *shape;
  char name[96];
} synth_keys;

static void add_text(gguf_writer *writer, const char *key, const char *text) {
  gguf_writer_add_string(writer, key, text, strlen(text));
}

// Returns "ARCHITECTURE.key".
static const char *own_key(synth_keys *keys, const char *key) {
  snprintf(keys->name, sizeof keys->name, "%s.%s", keys->shape->architecture, key);
  return keys->name;
}

static void add_u32(synth_keys *keys, const char *key, uint32_t value) {
  gguf_writer_add_u32(keys->writer, own_key(keys, key), value);
}

static void add_f32(synth_keys *keys, const char *key, float value) {
  gguf_writer_add_f32(keys->writer, own_key(keys, key), value);
}

// Writes one number or, if the architecture distinguishes layers in this way, one per layer, with 0
// for layers without attention.
static void add_kv_heads(synth_keys *keys) {
  const synth_shape *s = keys->shape;
  int32_t heads[64] = {0};
  if (s->hybrid == NULL || s->hybrid->mixer == SYNTH_DELTA_NET) {
    add_u32(keys, "attention.head_count_kv", s->kv_heads);
    return;
  }
  for (uint32_t i = 0; i < s->layers; i++) {
    if (synth_mixer_at(s, i) == SYNTH_ATTENTION) heads[i] = (int32_t)s->kv_heads;
  }
  gguf_writer_add_array(keys->writer, own_key(keys, "attention.head_count_kv"), GGUF_I32, heads,
                        s->layers);
}

static void add_rope(synth_keys *keys) {
  const uint32_t flags = keys->shape->flags;
  add_f32(keys, "rope.freq_base", keys->shape->rope_theta);
  if ((flags & SYNTH_HAS_QUARTER_ROPE) != 0) {
    static const int32_t SECTIONS[4] = {
        11, 11, 10, 0};  // of 32 pairs; for text, all pairs rotate in the same way
    gguf_writer_add_array(keys->writer, own_key(keys, "rope.dimension_sections"), GGUF_I32,
                          SECTIONS, 4);
  }
  if ((flags & SYNTH_HAS_YARN) != 0) {
    add_text(keys->writer, own_key(keys, "rope.scaling.type"), "yarn");
    add_f32(keys, "rope.scaling.factor", 32);
    add_u32(keys, "rope.scaling.original_context_length", 4096);
  }
  if ((flags & SYNTH_HAS_NO_ROPE) != 0) {
    gguf_writer_add_bool(keys->writer, own_key(keys, "rope.scaling.finetuned"), false);
  }
}

static void add_scan(synth_keys *keys) {
  const synth_hybrid *h = keys->shape->hybrid;
  add_u32(keys, "ssm.conv_kernel", h->conv_kernel);
  add_u32(keys, "ssm.inner_size", h->heads * h->head_dim);
  add_u32(keys, "ssm.state_size", h->state_size);
  add_u32(keys, "ssm.time_step_rank", h->heads);
  add_u32(keys, "ssm.group_count", h->groups);
}

static void add_hybrid(synth_keys *keys) {
  switch (keys->shape->hybrid->mixer) {
    case SYNTH_SHORT_CONV:
      add_u32(keys, "shortconv.l_cache", keys->shape->hybrid->conv_kernel);
      return;
    case SYNTH_MAMBA2:  // includes Granite's factors
      add_scan(keys);
      add_f32(keys, "attention.scale", 0.015625f);
      add_f32(keys, "embedding_scale", 12);
      add_f32(keys, "residual_scale", 0.246f);
      add_f32(keys, "logit_scale", 3);
      return;
    case SYNTH_DELTA_NET:
      add_scan(keys);
      add_u32(keys, "full_attention_interval", 4);
      return;
    case SYNTH_ATTENTION:
      return;
  }
}

static void add_experts(synth_keys *keys, const synth_experts *experts) {
  add_u32(keys, "expert_count", experts->count);
  add_u32(keys, "expert_used_count", experts->used);
  add_u32(keys, "expert_feed_forward_length", experts->ffn);
}

void synth_add_metadata(gguf_writer *writer, const synth_shape *s, const synth_mix *mix,
                        memory_gate *memory) {
  synth_keys keys = {.writer = writer, .shape = s};
  char name[96];
  snprintf(name, sizeof name, "random weights in the shape of %s", s->name);
  add_text(writer, "general.architecture", s->architecture);
  add_text(writer, "general.name", name);
  gguf_writer_add_u32(writer, "general.file_type", mix->file_type);
  gguf_writer_add_u32(writer, "general.quantization_version", 2);
  add_u32(&keys, "context_length", s->context);
  add_u32(&keys, "embedding_length", s->hidden);
  add_u32(&keys, "block_count", s->layers);
  add_u32(&keys, "feed_forward_length", s->ffn);
  add_u32(&keys, "attention.head_count", s->heads);
  add_kv_heads(&keys);
  const bool is_quarter = (s->flags & SYNTH_HAS_QUARTER_ROPE) != 0;
  add_u32(&keys, "rope.dimension_count", synth_head_dim(s) / (is_quarter ? 4 : 1));
  add_u32(&keys, "vocab_size", s->vocab);
  add_rope(&keys);
  add_f32(&keys, "attention.layer_norm_rms_epsilon", s->norm_epsilon);
  if (s->head_dim != 0) {
    add_u32(&keys, "attention.key_length", s->head_dim);
    add_u32(&keys, "attention.value_length", s->head_dim);
  }
  if (s->window != 0) add_u32(&keys, "attention.sliding_window", s->window);
  if (s->hybrid != NULL) add_hybrid(&keys);
  if (s->experts != NULL) add_experts(&keys, s->experts);
  if ((s->flags & SYNTH_HAS_PREDICTOR) != 0) add_u32(&keys, "nextn_predict_layers", 1);
  synth_add_vocab(writer, s, memory);
}
