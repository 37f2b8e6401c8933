// model/blocks/none.c — see none.h.
#include "model/blocks/none.h"

#include "model/pass.h"

static void bind(model_block *block, model_binder *binder) {
  (void)block;
  (void)binder;
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  (void)block;
  (void)pass;
  (void)error;
  return WICK_OK;
}

static wick_status run_mixer(const model_block *block, model_pass *pass, wick_error *error) {
  pass_keep_wanted(pass, pass->normed, pass->hidden_stride, 0);
  return run(block, pass, error);
}

model_block *none_make(model_plan *plan) {
  static const model_block_ops OPS = {"none", bind, NULL, run};
  return plan_block(plan, &OPS, sizeof(model_block));
}

model_block *none_make_mixer(model_plan *plan) {
  static const model_block_ops OPS = {"none", bind, NULL, run_mixer};
  return plan_block(plan, &OPS, sizeof(model_block));
}
