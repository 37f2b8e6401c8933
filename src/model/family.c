// model/family.c — the list of families, and the functions that they use to plan layers.
#include "model/family.h"

#include <string.h>

#include "base/math.h"
#include "model/families/families.h"

#define FAMILY_ADDRESS(name) &FAMILY_##name,
static const model_family *const FAMILIES[] = {MODEL_FAMILIES(FAMILY_ADDRESS)};

const model_family *family_find(gguf_string name) {
  for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
    if (gguf_string_equals(name, FAMILIES[i]->name)) return FAMILIES[i];
  }
  return NULL;
}

void *plan_block(model_plan *plan, const model_block_ops *ops, size_t size_bytes) {
  if (plan->keys->status != WICK_OK) return NULL;
  model_block *block = memory_alloc_zeroed(plan->model->memory, size_bytes);
  if (block == NULL) {
    plan->keys->status = memory_fail(plan->model->memory, plan->keys->error, "a layer's block");
    return NULL;
  }
  block->ops = ops;
  return block;
}

void plan_layer(model_plan *plan, uint32_t layer, model_block *mixer, model_block *feed_forward) {
  plan->model->layers[layer] = (model_layer){.mixer = mixer, .feed_forward = feed_forward};
  plan_last(plan, layer, mixer);
  plan_last(plan, layer, feed_forward);
}

void plan_first(model_plan *plan, uint32_t layer, model_block *first) {
  if (first == NULL) return;
  first->next = plan->model->layers[layer].first;
  plan->model->layers[layer].first = first;
}

void plan_last(model_plan *plan, uint32_t layer, model_block *last) {
  model_block **at = &plan->model->layers[layer].first;
  while (*at != NULL) at = &(*at)->next;
  *at = last;
}

// Reads YaRN's settings. YaRN enlarges rotated parts (Peng et al. 2023, section 3.4); a file may
// specify that whole keys and queries are scaled instead: "rope.scaling.yarn_log_multiplier".
static void read_yarn(model_keys *keys, model_rope *rope) {
  rope->yarn = (model_yarn){true, keys_number(keys, "rope.scaling.yarn_beta_fast", 32),
                            keys_number(keys, "rope.scaling.yarn_beta_slow", 1)};
  if (keys->status == WICK_OK && rope->original_context == 0) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "rope.scaling.type",
              "the key '%s.rope.scaling.original_context_length' is missing", keys->architecture);
  }
  if (keys->status == WICK_OK && rope->scale > 1)
    rope->magnitude *= 1 + 0.1 * math_log(rope->scale);
}

// Reads "rope.scaling.*" like llama.cpp: linear unless a type is specified; factors in the file
// (LongRoPE) apply in addition to the scale. A factor of 0 means that there is no scaling.
static void read_rope_scale(model_keys *keys, model_rope *rope) {
  gguf_string type = {"linear", 6};
  keys_text(keys, "rope.scaling.type", &type);
  rope->scale = rope->magnitude = 1;
  rope->original_context =
      keys_count_or_none(keys, "rope.scaling.original_context_length", UINT32_MAX);
  if (keys->status != WICK_OK) return;
  if (!gguf_string_equals(type, "linear") && !gguf_string_equals(type, "yarn") &&
      !gguf_string_equals(type, "none") && !gguf_string_equals(type, "longrope")) {
    KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "rope.scaling.type",
              "RoPE scaling '%.*s' ('%s.rope.scaling.type') is not supported",
              type.size_bytes > 32 ? 32 : (int)type.size_bytes, type.bytes, keys->architecture);
  }
  if (!gguf_string_equals(type, "none")) {
    const bool is_old = keys_offset(keys, "rope.scaling.factor") == WICK_NO_OFFSET;
    rope->scale = keys_number_or_none(keys, is_old ? "rope.scale_linear" : "rope.scaling.factor");
    if (rope->scale == 0) rope->scale = 1;
  }
  rope->magnitude = keys_number(keys, "rope.scaling.attn_factor", 1);
  if (keys->status == WICK_OK && gguf_string_equals(type, "yarn")) read_yarn(keys, rope);
}

static uint32_t add_rope(model_plan *plan, model_rope rope, uint32_t head_dim) {
  model_keys *keys = plan->keys;
  loaded_model *model = plan->model;
  if (keys->status != WICK_OK) return 0;
  if (rope.dims % 2 != 0 || rope.dims > head_dim) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "rope.dimension_count",
              "%s.rope.dimension_count %u must be even and at most the head's %u",
              keys->architecture, rope.dims, head_dim);
    return 0;
  }
  keys->status = rope_create(model->memory, &rope, keys->error);
  if (keys->status != WICK_OK) return 0;
  model->ropes[model->rope_count] = rope;
  return model->rope_count++;
}

// Plans a rope. `theta`: the key of the base, if it differs from "rope.freq_base".
static uint32_t plan_scaled_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved,
                                 const char *theta) {
  model_keys *keys = plan->keys;
  model_rope rope = {.is_interleaved = is_interleaved};
  rope.theta = keys_number(keys, theta, keys_number(keys, "rope.freq_base", 10000.0));
  rope.dims = keys_count(keys, "rope.dimension_count", 2, MODEL_HEAD_DIM_MAX, head_dim);
  read_rope_scale(keys, &rope);
  return add_rope(plan, rope, head_dim);
}

uint32_t plan_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved) {
  return plan_scaled_rope(plan, head_dim, is_interleaved, "rope.freq_base");
}

void plan_axes(model_plan *plan, uint32_t rope, bool is_alternating) {
  model_keys *keys = plan->keys;
  uint32_t sections[4];
  for (uint32_t i = 0; i < 4; i++) {
    sections[i] =
        keys_count_of_layer(keys, "rope.dimension_sections", i, 4, MODEL_HEAD_DIM_MAX / 2, 0);
  }
  if (keys->status != WICK_OK) return;
  model_rope *turned = &plan->model->ropes[rope];
  memcpy(turned->sections, sections, sizeof sections);
  turned->is_alternating = is_alternating;
  plan->model->has_axes = sections[0] != 0;
}

uint32_t plan_window_rope_like(model_plan *plan, uint32_t rope, uint32_t head_dim) {
  if (plan->keys->status != WICK_OK ||
      keys_offset(plan->keys, "rope.freq_base_swa") == WICK_NO_OFFSET) {
    return rope;
  }
  return plan_scaled_rope(plan, head_dim, plan->model->ropes[rope].is_interleaved,
                          "rope.freq_base_swa");
}

uint32_t plan_window_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved) {
  model_keys *keys = plan->keys;
  model_rope rope = {.is_interleaved = is_interleaved, .scale = 1};
  rope.magnitude = keys_number(keys, "rope.scaling.attn_factor", 1);
  rope.theta = keys_number(keys, "rope.freq_base_swa", 10000.0);
  const bool is_own = keys_offset(keys, "rope.dimension_count_swa") != WICK_NO_OFFSET;
  rope.dims = keys_count(keys, is_own ? "rope.dimension_count_swa" : "rope.dimension_count", 2,
                         MODEL_HEAD_DIM_MAX, head_dim);
  return add_rope(plan, rope, head_dim);
}

model_pages plan_pages(model_plan *plan, uint32_t kv_heads, uint32_t head_dim, uint32_t window) {
  loaded_model *model = plan->model;
  for (uint32_t i = 0; i < model->group_count; i++) {
    model_group *group = &model->groups[i];
    if (group->kv_heads != kv_heads || group->head_dim != head_dim || group->window != window) {
      continue;
    }
    return (model_pages){i, group->layers++};
  }
  if (model->group_count == MODEL_GROUPS_MAX) {
    if (plan->keys->status == WICK_OK) {
      plan->keys->status =
          fail_with(plan->keys->error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                    "layers with keys and values of more than %d shapes are not supported",
                    (int)MODEL_GROUPS_MAX);
    }
    return (model_pages){0, 0};
  }
  model->groups[model->group_count] = (model_group){1, kv_heads, head_dim, window};
  return (model_pages){model->group_count++, 0};
}

uint32_t plan_kv_heads(model_plan *plan, uint32_t layer) {
  return keys_count_of_layer(plan->keys, "attention.head_count_kv", layer,
                             plan->model->config.layers, MODEL_HEADS_MAX, 1);
}

uint32_t plan_ffn(model_plan *plan) {
  return keys_size(plan->keys, "feed_forward_length", MODEL_FFN_MAX);
}

uint32_t plan_ffn_of_layer(model_plan *plan, uint32_t layer) {
  model_keys *keys = plan->keys;
  if (keys_offset(keys, "feed_forward_length") == WICK_NO_OFFSET) return plan_ffn(plan);
  return keys_count_of_layer(keys, "feed_forward_length", layer, plan->model->config.layers,
                             MODEL_FFN_MAX, 0);
}

uint64_t plan_state(model_plan *plan, uint64_t size_bytes) {
  const uint64_t begin = plan->model->state_bytes, line = CACHE_LINE_BYTES;
  plan->model->state_bytes += (size_bytes + line - 1) / line * line;
  return begin;
}

bool plan_has_tensor(const model_plan *plan, const char *name) {
  return plan->tensors->find(plan->tensors->context, name) >= 0;
}

static void refuse_count(model_plan *plan, const char *what, const char *name) {
  model_keys *keys = plan->keys;
  const uint32_t count = keys_count_or_none(keys, name, UINT32_MAX);
  if (keys->status != WICK_OK || count == 0) return;
  KEYS_FAIL(keys, WICK_E_UNSUPPORTED, name, "%s ('%s.%s' is %u) are not supported", what,
            keys->architecture, name, count);
}

void plan_refuse_window(model_plan *plan) {
  refuse_count(plan, "sliding windows", "attention.sliding_window");
}

void plan_refuse_experts(model_plan *plan) {
  refuse_count(plan, "mixtures of experts", "expert_count");
}
