// model/blocks/laurel.c — see laurel.h.
#include "model/blocks/laurel.h"

#include "model/binder.h"
#include "model/pass.h"

typedef struct laurel_block {
  model_block block;
  uint32_t rank;
  float *norm, *norm_bias;    // [hidden]
  weight_tensor left, right;  // [rank, hidden], [hidden, rank]
  float *post_norm;           // [hidden]
} laurel_block;

static void bind(model_block *block, model_binder *binder) {
  laurel_block *laurel = (laurel_block *)block;
  const uint32_t hidden = binder->model->config.hidden;
  bind_norm(binder, "attn_norm.weight", hidden, &laurel->norm, &laurel->norm_bias);
  bind_matrix(binder, "laurel_l.weight", laurel->rank, hidden, BINDING_REQUIRED, &laurel->left);
  bind_matrix(binder, "laurel_r.weight", hidden, laurel->rank, BINDING_REQUIRED, &laurel->right);
  bind_vector(binder, "laurel_post_norm.weight", hidden, BINDING_REQUIRED, &laurel->post_norm);
}

static float *take_rows(const laurel_block *laurel, scratch_arena *arena) {
  return arena_take_floats(arena, (uint64_t)arena->batch_tokens * arena_line_floats(laurel->rank));
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const laurel_block *laurel = (const laurel_block *)block;
  const uint32_t hidden = laurel->left.dims[0];
  take_rows(laurel, arena);
  arena_take_act(arena, arena->batch_tokens, hidden > laurel->rank ? hidden : laurel->rank);
}

static void add_inputs(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_pass *pass = context;
  const uint32_t hidden = pass->model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * pass->hidden_stride;
    pass->kernels->add(pass->hidden + at, pass->aside + at, hidden);
    pass->kernels->scale(pass->hidden + at, LAUREL_SCALE, hidden);
  }
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const laurel_block *laurel = (const laurel_block *)block;
  const uint32_t stride = arena_line_floats(laurel->rank);
  const pass_output output = {&laurel->right, NULL, laurel->post_norm, 1, OP_DOWN};
  float *rows = take_rows(laurel, &pass->arena);
  (void)error;
  pass_norm(pass, pass->hidden, laurel->norm, laurel->norm_bias);
  pass_set_aside(pass, pass->normed);
  pass_multiply(pass, OP_GATE_UP, &laurel->left, NULL, pass->normed, pass->hidden_stride, rows,
                stride);
  pass_add_output(pass, &output, rows, stride);
  thread_pool_for(pass->threads, pass->count, add_inputs, pass);
  return WICK_OK;
}

model_block *laurel_make(model_plan *plan, uint32_t rank) {
  static const model_block_ops OPS = {"laurel", bind, reserve, run};
  laurel_block *laurel = plan_block(plan, &OPS, sizeof *laurel);
  if (laurel == NULL) return NULL;
  laurel->rank = rank;
  plan->model->keeps_inputs = true;
  return &laurel->block;
}
