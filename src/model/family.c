// model/family.c — the list of families, and what they plan layers with.
#include "model/family.h"

#include "model/families/families.h"

static const model_family *const FAMILIES[] = {
    &FAMILY_LFM2,  &FAMILY_LLAMA,  &FAMILY_QWEN2,    &FAMILY_QWEN2MOE,
    &FAMILY_QWEN3, &FAMILY_QWEN35, &FAMILY_QWEN3MOE,
};

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
    plan->keys->status =
        memory_fail(plan->model->memory, plan->keys->error, "a layer's block", size_bytes);
    return NULL;
  }
  block->ops = ops;
  return block;
}

void plan_layer(model_plan *plan, uint32_t layer, model_block *mixer, model_block *feed_forward) {
  plan->model->layers[layer] = (model_layer){mixer, feed_forward};
}

static double read_rope_scale(model_keys *keys) {
  gguf_string type = {"none", 4};
  const bool has_type = keys_text(keys, "rope.scaling.type", &type);
  if (keys->status != WICK_OK) return 1.0;
  if (!has_type) return keys_number(keys, "rope.scale_linear", 0, 1);  // older files
  if (gguf_string_equals(type, "linear")) return keys_number(keys, "rope.scaling.factor", 0, 1);
  if (!gguf_string_equals(type, "none")) {
    keys->status =
        fail_with(keys->error, WICK_E_UNSUPPORTED, keys_offset(keys, "rope.scaling.type"),
                  "RoPE scaling '%.*s' ('%s.rope.scaling.type') is not supported",
                  type.size_bytes > 32 ? 32 : (int)type.size_bytes, type.bytes, keys->architecture);
  }
  return 1.0;
}

uint32_t plan_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved) {
  model_keys *keys = plan->keys;
  loaded_model *model = plan->model;
  model_rope rope = {.is_interleaved = is_interleaved};
  rope.theta = keys_number(keys, "rope.freq_base", 0, 10000.0);
  rope.dims = keys_count(keys, "rope.dimension_count", 2, MODEL_HEAD_DIM_MAX, head_dim);
  rope.scale = read_rope_scale(keys);
  if (keys->status != WICK_OK) return 0;
  if (rope.dims % 2 != 0 || rope.dims > head_dim) {
    keys->status = fail_with(keys->error, WICK_E_FORMAT, keys_offset(keys, "rope.dimension_count"),
                             "%s.rope.dimension_count %u must be even and at most the head's %u",
                             keys->architecture, rope.dims, head_dim);
    return 0;
  }
  keys->status = rope_create(model->memory, &rope, keys->error);
  if (keys->status != WICK_OK) return 0;
  model->ropes[model->rope_count] = rope;
  return model->rope_count++;
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

uint64_t plan_state(model_plan *plan, uint64_t size_bytes) {
  const uint64_t begin = plan->model->state_bytes, line = CACHE_LINE_BYTES;
  plan->model->state_bytes += (size_bytes + line - 1) / line * line;
  return begin;
}

void plan_refuse_experts(model_plan *plan) {
  model_keys *keys = plan->keys;
  const uint32_t experts = keys_count_or_none(keys, "expert_count", UINT32_MAX);
  if (keys->status != WICK_OK || experts == 0) return;
  keys->status = fail_with(keys->error, WICK_E_UNSUPPORTED, keys_offset(keys, "expert_count"),
                           "mixtures of experts ('%s.expert_count' is %u) are not supported",
                           keys->architecture, experts);
}
