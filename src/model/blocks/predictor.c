// model/blocks/predictor.c — see predictor.h.
#include "model/blocks/predictor.h"

#include <string.h>

#include "base/text.h"
#include "model/binder.h"
#include "model/pass.h"

typedef struct predictor_block {
  model_block block;
  uint32_t hidden;
  float *enorm, *enorm_bias, *hnorm, *hnorm_bias;  // [hidden], biases or NULL
  weight_tensor project;                           // [hidden, 2 hidden]
} predictor_block;

static void bind(model_block *block, model_binder *binder) {
  predictor_block *predictor = (predictor_block *)block;
  const uint32_t hidden = predictor->hidden;
  bind_norm(binder, "nextn.enorm.weight", hidden, &predictor->enorm, &predictor->enorm_bias);
  bind_norm(binder, "nextn.hnorm.weight", hidden, &predictor->hnorm, &predictor->hnorm_bias);
  bind_matrix(binder, "nextn.eh_proj.weight", hidden, 2 * hidden, BINDING_REQUIRED,
              &predictor->project);
}

static float *take_rows(const predictor_block *predictor, scratch_arena *arena) {
  return arena_take_floats(
      arena, (uint64_t)arena->batch_tokens * arena_line_floats(2 * predictor->hidden));
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const predictor_block *predictor = (const predictor_block *)block;
  take_rows(predictor, arena);
  arena_take_act(arena, arena->batch_tokens, 2 * predictor->hidden);
}

typedef struct predictor_job {
  const predictor_block *predictor;
  const model_pass *pass;
  float *rows;  // [tokens, 2 hidden]
} predictor_job;

static void norm_pairs(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const predictor_job *job = context;
  const predictor_block *predictor = job->predictor;
  const model_pass *pass = job->pass;
  const uint32_t hidden = predictor->hidden, stride = arena_line_floats(2 * hidden);
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * pass->hidden_stride;
    float *row = job->rows + (size_t)t * stride;
    norm_row(pass, pass->hidden + at, predictor->enorm, predictor->enorm_bias, hidden, row);
    norm_row(pass, pass->trunk + at, predictor->hnorm, predictor->hnorm_bias, hidden, row + hidden);
  }
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const predictor_block *predictor = (const predictor_block *)block;
  predictor_job job = {predictor, pass, take_rows(predictor, &pass->arena)};
  (void)error;
  thread_pool_for(pass->threads, pass->count, norm_pairs, &job);
  pass_multiply(pass, OP_GATE_UP, &predictor->project, NULL, job.rows,
                arena_line_floats(2 * predictor->hidden), pass->hidden, pass->hidden_stride);
  return WICK_OK;
}

model_block *predictor_make(model_plan *plan) {
  static const model_block_ops OPS = {"predictor", bind, reserve, run};
  predictor_block *predictor = plan_block(plan, &OPS, sizeof *predictor);
  if (predictor == NULL) return NULL;
  predictor->hidden = plan->model->config.hidden;
  return &predictor->block;
}

// ---- The layer ----

// Checks that the layer is a predictor. Otherwise skipping it would leave out a regular layer.
static bool is_own_layer(const model_plan *plan, uint32_t layer, char name[], size_t size_bytes) {
  text_format(name, size_bytes, "blk.%u.nextn.enorm.weight", layer);
  if (plan_has_tensor(plan, name)) return false;
  text_format(name, size_bytes, "blk.%u.attn_norm.weight", layer);
  return plan_has_tensor(plan, name);
}

void plan_leave_out_predictors(model_plan *plan) {
  static const char KEY[] = "nextn_predict_layers";
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  char name[GGUF_TENSOR_NAME_BYTES_MAX];
  const uint32_t predictors = keys_count_or_none(keys, KEY, config->layers - 1);
  for (uint32_t i = 0; i < predictors && keys->status == WICK_OK; i++) {
    if (!is_own_layer(plan, --config->layers, name, sizeof name)) continue;
    KEYS_FAIL(keys, WICK_E_FORMAT, KEY, "'%s.%s' is %u, but '%s' has no nextn.enorm",
              keys->architecture, KEY, predictors, name);
  }
  plan->with_predictor = plan->with_predictor && predictors != 0;
}

bool plan_begins_predictor(model_plan *plan) {
  loaded_model *model = plan->model;
  char name[GGUF_TENSOR_NAME_BYTES_MAX];
  text_format(name, sizeof name, "blk.%u.nextn.eh_proj.weight", model->config.layers);
  if (!plan->with_predictor || plan->keys->status != WICK_OK || !plan_has_tensor(plan, name)) {
    return false;
  }
  memcpy(plan->groups, model->groups, sizeof plan->groups);
  plan->group_count = model->group_count;
  model->group_count = 0;
  return true;
}

void plan_predictor(model_plan *plan, model_block *input, model_block *mixer,
                    model_block *feed_forward) {
  loaded_model *model = plan->model;
  model_layer *layer = &model->predictor;
  *layer = (model_layer){.first = input, .mixer = mixer, .feed_forward = feed_forward};
  if (input != NULL) input->next = mixer;
  if (mixer != NULL) mixer->next = feed_forward;
  model->predictor_group = model->groups[0];
  memcpy(model->groups, plan->groups, sizeof plan->groups);
  model->group_count = plan->group_count;
}

void predictor_bind(model_binder *binder) {
  loaded_model *model = binder->model;
  binder->layer = (int32_t)model->config.layers;
  binder->waits = MODEL_LAYER_NONE;
  binder->is_apart = true;
  for (model_block *block = model->predictor.first; block != NULL; block = block->next) {
    block->ops->bind(block, binder);
  }
  static const char NORM[] = "nextn.shared_head_norm.weight";
  if (!binder_has(binder, NORM)) return;
  bind_norm(binder, NORM, model->config.hidden, &model->predictor_norm,
            &model->predictor_norm_bias);
}
