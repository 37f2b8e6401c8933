// model/blocks/side_by_side.c — see side_by_side.h.
#include "model/blocks/side_by_side.h"

#include <string.h>

#include "model/binder.h"
#include "model/pass.h"

typedef struct side_block {
  model_block block;
  const char *name;  // name of the norm
  float *norm, *norm_bias;
} side_block;

static void bind(model_block *block, model_binder *binder) {
  side_block *side = (side_block *)block;
  bind_norm(binder, side->name, binder->model->config.hidden, &side->norm, &side->norm_bias);
}

static wick_status run_begin(const model_block *block, model_pass *pass, wick_error *error) {
  (void)block;
  (void)error;
  pass_set_aside(pass, pass->hidden);
  memset(pass->hidden, 0, (size_t)pass->count * pass->hidden_stride * sizeof(float));
  return WICK_OK;
}

static wick_status run_end(const model_block *block, model_pass *pass, wick_error *error) {
  const side_block *side = (const side_block *)block;
  (void)error;
  pass_norm(pass, pass->hidden, side->norm, side->norm_bias);
  memcpy(pass->hidden, pass->aside, (size_t)pass->count * pass->hidden_stride * sizeof(float));
  pass_add_normed(pass, NULL, 1);
  return WICK_OK;
}

model_block *side_by_side_begin_make(model_plan *plan) {
  static const model_block_ops OPS = {"side by side", bind, NULL, run_begin};
  side_block *side = plan_block(plan, &OPS, sizeof *side);
  if (side == NULL) return NULL;
  plan->model->keeps_inputs = true;
  return &side->block;
}

model_block *side_by_side_end_make(model_plan *plan, const char *norm) {
  static const model_block_ops OPS = {"sum of both sides", bind, NULL, run_end};
  side_block *side = plan_block(plan, &OPS, sizeof *side);
  if (side == NULL) return NULL;
  side->name = norm;
  return &side->block;
}
