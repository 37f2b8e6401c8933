// model/blocks/experts.c — see experts.h.
//
// Each token is routed independently. Rows are then gathered by expert, so that one pass over an
// expert's weights serves all of its tokens. A token's results are summed in the order of its own
// ranking, so they do not depend on the rest of the batch.
#include "model/blocks/experts.h"

#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/blocks/expert_adapters.h"
#include "model/measure.h"
#include "model/pass.h"

typedef struct experts_block {
  model_block block;
  experts_settings is;
  uint32_t hidden;
  float *norm, *norm_bias;  // [hidden] or NULL
  float *sum_norm, *sum_norm_bias;
  float *post_norm;              // [hidden] or NULL
  float *router_norm;            // [hidden] or NULL
  bool is_fused;                 // the rows of the gate come first in `up`
  weight_tensor router;          // [experts, hidden]
  float *router_bias;            // [experts] or NULL
  float *choice_bias;            // [experts] or NULL
  float *gate_bias, *up_bias;    // [experts, expert_ffn] or NULL
  float *down_bias;              // [experts, hidden] or NULL
  weight_tensor gate, up;        // [experts][expert_ffn, hidden]
  weight_tensor down;            // [experts][hidden, expert_ffn]
  weight_tensor sh_gate, sh_up;  // [shared_ffn, hidden]; or no shared expert
  weight_tensor sh_down;         // [hidden, shared_ffn]
  weight_tensor sh_router;       // [1, hidden]; or no gate
} experts_block;

// ---- Tensors ----

static bool has_gate(const experts_block *experts) {
  return experts->is.activation != EXPERTS_RELU_SQUARE &&
         experts->is.activation != EXPERTS_GELU_PLAIN;
}

static void refuse_apart(model_binder *binder) {
  if (binder->status != WICK_OK || binder_has(binder, "ffn_gate_exps.weight") ||
      !binder_has(binder, "ffn_gate.0.weight")) {
    return;
  }
  binder->status = fail_with(binder->error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                             "experts as separate tensors ('blk.%d.ffn_gate.0.weight') are not "
                             "supported: convert the model again",
                             (int)binder->layer);
}

static void bind_shared(experts_block *experts, model_binder *binder) {
  const uint32_t hidden = experts->hidden, ffn = experts->is.shared_ffn;
  if (has_gate(experts)) {
    bind_matrix(binder, "ffn_gate_shexp.weight", ffn, hidden, BINDING_REQUIRED, &experts->sh_gate);
  }
  bind_matrix(binder, "ffn_up_shexp.weight", ffn, hidden, BINDING_REQUIRED, &experts->sh_up);
  bind_matrix(binder, "ffn_down_shexp.weight", hidden, ffn, BINDING_REQUIRED, &experts->sh_down);
  if (!experts->is.has_shared_gate) return;
  bind_matrix(binder, "ffn_gate_inp_shexp.weight", 1, hidden, BINDING_REQUIRED,
              &experts->sh_router);
}

static void bind_stacks(experts_block *experts, model_binder *binder) {
  const uint32_t hidden = experts->hidden, count = experts->is.experts,
                 ffn = experts->is.expert_ffn;
  const bool is_fused = experts->is_fused;
  const uint32_t up = is_fused ? 2 * ffn : ffn;
  binder->is_routed = true;
  if (has_gate(experts) && !is_fused) {
    bind_stack(binder, "ffn_gate_exps.weight", count, ffn, hidden, BINDING_REQUIRED,
               &experts->gate);
    bind_table(binder, "ffn_gate_exps.bias", count, ffn, BINDING_OPTIONAL, &experts->gate_bias);
  }
  bind_stack(binder, is_fused ? "ffn_gate_up_exps.weight" : "ffn_up_exps.weight", count, up, hidden,
             BINDING_REQUIRED, &experts->up);
  bind_table(binder, is_fused ? "ffn_gate_up_exps.bias" : "ffn_up_exps.bias", count, up,
             BINDING_OPTIONAL, &experts->up_bias);
  bind_stack(binder, "ffn_down_exps.weight", count, hidden, ffn, BINDING_REQUIRED, &experts->down);
  binder->is_routed = false;
}

static void bind_router(experts_block *experts, model_binder *binder) {
  const uint32_t hidden = experts->hidden;
  binder->is_unscaled = experts->is.norms_routes;
  bind_matrix(binder, "ffn_gate_inp.weight", experts->is.experts, hidden, BINDING_REQUIRED,
              &experts->router);
  binder->is_unscaled = false;
  if (!experts->is.norms_routes) return;
  bind_vector(binder, "ffn_gate_inp.scale", hidden, BINDING_REQUIRED, &experts->router_norm);
}

static void bind(model_block *block, model_binder *binder) {
  experts_block *experts = (experts_block *)block;
  const uint32_t hidden = experts->hidden, count = experts->is.experts;
  experts->is_fused = has_gate(experts) && binder_has(binder, "ffn_gate_up_exps.weight");
  refuse_apart(binder);
  bind_norm(binder, experts->is.norm, hidden, &experts->norm, &experts->norm_bias);
  bind_norm(binder, experts->is.sum_norm, hidden, &experts->sum_norm, &experts->sum_norm_bias);
  bind_router(experts, binder);
  if (experts->is.post_norm != NULL) {
    bind_vector(binder, experts->is.post_norm, hidden, BINDING_REQUIRED, &experts->post_norm);
  }
  bind_stacks(experts, binder);
  bind_vector(binder, "ffn_gate_inp.bias", count, BINDING_OPTIONAL, &experts->router_bias);
  bind_table(binder, "ffn_down_exps.bias", count, hidden, BINDING_OPTIONAL, &experts->down_bias);
  bind_vector(binder, "exp_probs_b.bias", count, BINDING_OPTIONAL, &experts->choice_bias);
  if (experts->is.shared_ffn != 0) bind_shared(experts, binder);
}

// ---- Scratch ----

// A choice is a token and one of its experts: each token has `used` choices, the largest weight
// first. A row is a choice in the order of experts.
typedef struct routing {
  uint32_t scores_stride;  // floats
  float *scores;           // [batch_tokens, experts]
  float *ranks;            // [batch_tokens, experts]: the scores that experts are selected by
  uint32_t *chosen;        // [batch_tokens, used] experts
  float *weights;          // [batch_tokens, used]
  uint32_t *row_of;        // [batch_tokens, used] row of each choice
  uint32_t *token_of;      // [batch_tokens * used] token of each row
  uint32_t *ends;          // [experts] index after the expert's last row
} routing;

typedef struct expert_buffers {
  routing routing;
  uint32_t ffn_stride, shared_stride;  // floats
  uint32_t active;                     // experts that can be used at once
  float *wide;                         // [batch_tokens * used, hidden] inputs, then results
  float *gate, *up;         // [batch_tokens * used, expert_ffn]; without a gate, both are
                            // the product of up, or of the single product if they are
                            // fused
  product_target *targets;  // [2 * active]
  float *sh_gate, *sh_up;   // [batch_tokens, shared_ffn]
  float *sh_out;            // [batch_tokens, hidden]
  float *sh_weight;         // [batch_tokens]
} expert_buffers;

static routing take_routing(const experts_block *experts, scratch_arena *arena) {
  const uint64_t tokens = arena->batch_tokens, choices = tokens * experts->is.used;
  routing routing = {.scores_stride = arena_line_floats(experts->is.experts)};
  routing.scores = arena_take_floats(arena, tokens * routing.scores_stride);
  routing.ranks = arena_take_floats(arena, tokens * routing.scores_stride);
  routing.chosen = arena_take_bytes(arena, choices * sizeof(uint32_t));
  routing.weights = arena_take_floats(arena, choices);
  routing.row_of = arena_take_bytes(arena, choices * sizeof(uint32_t));
  routing.token_of = arena_take_bytes(arena, choices * sizeof(uint32_t));
  routing.ends = arena_take_bytes(arena, experts->is.experts * sizeof(uint32_t));
  return routing;
}

static expert_buffers take_buffers(const experts_block *experts, scratch_arena *arena) {
  const uint64_t tokens = arena->batch_tokens, rows = tokens * experts->is.used;
  const uint32_t hidden_stride = arena_line_floats(experts->hidden);
  const uint32_t width = experts->is_fused ? 2 * experts->is.expert_ffn : experts->is.expert_ffn;
  expert_buffers buffers = {.ffn_stride = arena_line_floats(width),
                            .shared_stride = arena_line_floats(experts->is.shared_ffn),
                            .active = experts->is.experts};
  if (rows < buffers.active) buffers.active = (uint32_t)rows;
  buffers.routing = take_routing(experts, arena);
  buffers.wide = arena_take_floats(arena, rows * hidden_stride);
  buffers.gate = arena_take_floats(arena, rows * buffers.ffn_stride);
  buffers.up = buffers.gate;
  if (experts->is_fused && buffers.gate != NULL) {
    buffers.up = buffers.gate + experts->is.expert_ffn;
  } else if (has_gate(experts) && !experts->is_fused) {
    buffers.up = arena_take_floats(arena, rows * buffers.ffn_stride);
  }
  buffers.targets = arena_take_bytes(arena, 2ull * buffers.active * sizeof(product_target));
  if (experts->is.shared_ffn != 0) {
    buffers.sh_gate = arena_take_floats(arena, tokens * buffers.shared_stride);
    buffers.sh_up = has_gate(experts) ? arena_take_floats(arena, tokens * buffers.shared_stride)
                                      : buffers.sh_gate;
    buffers.sh_out = arena_take_floats(arena, tokens * hidden_stride);
    buffers.sh_weight = arena_take_floats(arena, tokens);
  }
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const experts_block *experts = (const experts_block *)block;
  const uint64_t tokens = arena->batch_tokens;
  take_buffers(experts, arena);
  const uint64_t rows = tokens * experts->is.used;
  arena_reserve_act(arena, rows, experts->hidden);  // also for the tokens' own rows
  arena_reserve_act(arena, rows, experts->is.expert_ffn);
  arena_reserve_act(arena, tokens, experts->is.shared_ffn);
}

// ---- Routing ----

typedef struct experts_job {
  const experts_block *experts;
  const model_pass *pass;
  const expert_buffers *buffers;
} experts_job;

// Turns logits into the scores that experts are selected by. Returns false if a score is not
// finite.
static bool score_experts(const experts_settings *is, float *scores) {
  float largest = scores[0];
  double sum = 0;
  for (uint32_t e = 0; e < is->experts; e++) {
    if (!math_is_finite_f32(scores[e])) return false;
    if (scores[e] > largest) largest = scores[e];
  }
  if (is->gating == EXPERTS_SOFTMAX_OF_CHOSEN) return true;
  for (uint32_t e = 0; e < is->experts; e++) {
    if (is->gating == EXPERTS_SIGMOID) {
      scores[e] = (float)(1.0 / (1.0 + math_exp(-(double)scores[e])));
    } else {
      scores[e] = (float)math_exp((double)scores[e] - largest);
      sum += scores[e];
    }
  }
  for (uint32_t e = 0; sum != 0 && e < is->experts; e++) scores[e] = (float)(scores[e] / sum);
  return true;
}

static float choice_score(const experts_block *experts, const float *scores, uint32_t expert) {
  return experts->choice_bias == NULL ? scores[expert]
                                      : scores[expert] + experts->choice_bias[expert];
}

// Returns the sum of the two largest scores of a group.
static float score_group(const experts_block *experts, const float *scores, uint32_t group) {
  const uint32_t size = experts->is.experts / experts->is.groups, first = group * size;
  float best = choice_score(experts, scores, first), second = 0;
  for (uint32_t e = 1; e < size; e++) {
    const float score = choice_score(experts, scores, first + e);
    if (e == 1 || score > second) second = score < best ? score : best;
    if (score > best) best = score;
  }
  return best + second;
}

// Returns whether the group is used. Equal groups are ordered by index.
static bool is_group_used(const experts_block *experts, const float *scores, uint32_t group) {
  const float score = score_group(experts, scores, group);
  uint32_t better = 0;
  for (uint32_t g = 0; g < experts->is.groups; g++) {
    const float its = score_group(experts, scores, g);
    if (its > score || (its == score && g < group)) better++;
  }
  return better < experts->is.groups_used;
}

// Returns the scores that experts are selected by: `scores`, or, with biases or groups, `ranks`,
// which is then filled. The scores of experts in unused groups become -infinity.
static const float *rank_experts(const experts_block *experts, const float *scores, float *ranks) {
  const experts_settings *is = &experts->is;
  const uint32_t groups = is->groups == 0 ? 1 : is->groups, size = is->experts / groups;
  if (experts->choice_bias == NULL && is->groups == 0) return scores;
  for (uint32_t g = 0; g < groups; g++) {
    const bool is_used = is->groups == 0 || is_group_used(experts, scores, g);
    for (uint32_t e = g * size; e < (g + 1) * size; e++) {
      ranks[e] = is_used ? choice_score(experts, scores, e) : -f32_of_bits(0x7f800000);
    }
  }
  return ranks;
}

// Selects the experts with the largest ranks, equal ranks by index. Returns false if a rank is not
// finite.
static bool choose_experts(const experts_settings *is, const float *ranks, uint32_t *chosen) {
  float last = 0;  // the previously selected rank
  for (uint32_t i = 0; i < is->used; i++) {
    uint32_t best = UINT32_MAX;
    float best_rank = 0;
    for (uint32_t e = 0; e < is->experts; e++) {
      if (i != 0 && (ranks[e] > last || (ranks[e] == last && e <= chosen[i - 1]))) continue;
      if (best == UINT32_MAX || ranks[e] > best_rank) {
        best = e;
        best_rank = ranks[e];
      }
    }
    if (!math_is_finite_f32(best_rank)) return false;
    chosen[i] = best;
    last = best_rank;
  }
  return true;
}

static void weigh_experts(const experts_settings *is, const float *scores, const uint32_t *chosen,
                          float *weights) {
  double sum = 0;
  for (uint32_t i = 0; i < is->used; i++) {
    weights[i] = scores[chosen[i]];
    if (is->gating == EXPERTS_SOFTMAX_OF_CHOSEN) {
      weights[i] = (float)math_exp((double)weights[i] - scores[chosen[0]]);
    }
    sum += weights[i];
  }
  // llama.cpp's lower bound of the sum: the smallest normal 16-bit float
  if (sum < 6.103515625e-5) sum = 6.103515625e-5;
  if (!is->is_normalised && is->gating != EXPERTS_SOFTMAX_OF_CHOSEN) sum = 1;
  for (uint32_t i = 0; i < is->used; i++) weights[i] = (float)(weights[i] / sum) * is->scale;
}

// Sets weights to NaN, which makes the token's hidden row NaN, so the engine ends its request.
static void choose_any(uint32_t used, uint32_t *chosen, float *weights) {
  for (uint32_t i = 0; i < used; i++) {
    chosen[i] = i;
    weights[i] = f32_of_bits(0x7fc00000);
  }
}

static void route_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const experts_job *job = context;
  const experts_settings *is = &job->experts->is;
  const routing *routing = &job->buffers->routing;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *scores = routing->scores + (size_t)t * routing->scores_stride;
    if (is->norms_routes) {
      job->pass->kernels->scale(scores, 1 / __builtin_sqrtf((float)job->experts->hidden),
                                is->experts);
    }
    uint32_t *chosen = routing->chosen + (size_t)t * is->used;
    float *weights = routing->weights + (size_t)t * is->used;
    float *ranks = routing->ranks + (size_t)t * routing->scores_stride;
    if (score_experts(is, scores) &&
        choose_experts(is, rank_experts(job->experts, scores, ranks), chosen)) {
      weigh_experts(is, scores, chosen, weights);
    } else {
      choose_any(is->used, chosen, weights);
    }
  }
}

// Assigns a row to each choice: the rows of an expert are adjacent, in the order of tokens.
static void sort_choices(const experts_settings *is, const routing *routing, uint32_t tokens) {
  const uint32_t choices = tokens * is->used;
  uint32_t *ends = routing->ends;
  memset(ends, 0, is->experts * sizeof *ends);
  for (uint32_t i = 0; i < choices; i++) ends[routing->chosen[i]]++;
  for (uint32_t e = 0, row = 0; e < is->experts; e++) {
    const uint32_t count = ends[e];
    ends[e] = row;
    row += count;
  }
  for (uint32_t i = 0; i < choices; i++) {
    const uint32_t row = ends[routing->chosen[i]]++;
    routing->row_of[i] = row;
    routing->token_of[row] = i / is->used;
  }
}

static void route(const experts_block *experts, model_pass *pass, const expert_buffers *buffers) {
  const uint64_t begin = arena_mark(&pass->arena);
  const routing *routing = &buffers->routing;
  experts_job job = {experts, pass, buffers};
  const float *input = experts->is.routes_aside ? pass->aside : pass->normed;
  model_product scores = pass_product(pass, input, pass->hidden_stride, experts->hidden);
  product_add(&scores, &experts->router, experts->router_bias, routing->scores,
              routing->scores_stride);
  if (tensor_is_present(&experts->sh_router)) {
    product_add(&scores, &experts->sh_router, NULL, buffers->sh_weight, 1);
  }
  product_run(&scores);
  thread_pool_for(pass->threads, pass->count, route_tokens, &job);
  sort_choices(&experts->is, routing, pass->count);
  measure_product(pass->ops, OP_ROUTE, &scores);
  arena_release(&pass->arena, begin);
}

// ---- Experts ----

static void gather_rows(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const experts_job *job = context;
  const size_t stride = job->pass->hidden_stride;
  (void)thread;
  for (uint32_t row = first; row < last; row++) {
    memcpy(job->buffers->wide + row * stride,
           job->pass->normed + job->buffers->routing.token_of[row] * stride,
           job->experts->hidden * sizeof(float));
  }
}

// Computes gate[n] = act(gate) * up.
static void activate(const experts_job *job, float *gate, const float *up, uint32_t n) {
  const kernel_table *kernels = job->pass->kernels;
  if (job->experts->is.activation == EXPERTS_GELU_PLAIN) {
    kernels->gelu_mul(gate, NULL, n);
  } else if (job->experts->is.activation == EXPERTS_GELU) {
    kernels->gelu_mul(gate, up, n);
  } else if (job->experts->is.activation == EXPERTS_RELU) {
    kernels->relu_mul(gate, up, n);
  } else if (job->experts->is.activation == EXPERTS_SWIGLU_CLAMPED) {
    kernels->swiglu_clamped(gate, up, n);
  } else if (job->experts->is.activation == EXPERTS_RELU_SQUARE) {
    kernels->relu_square(gate, n);
  } else {
    kernels->silu_mul(gate, up, n);
  }
}

static void gate_rows(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const experts_job *job = context;
  (void)thread;
  for (uint32_t row = first; row < last; row++) {
    const size_t at = (size_t)row * job->buffers->ffn_stride;
    activate(job, job->buffers->gate + at, job->buffers->up + at, job->experts->is.expert_ffn);
  }
}

// Returns a product over the rows of experts, without targets.
static model_product rows_product(model_pass *pass, const expert_buffers *buffers, const float *x,
                                  uint32_t x_stride, uint32_t cols, uint32_t rows) {
  return (model_product){.kernels = pass->kernels,
                         .threads = pass->threads,
                         .x = x,
                         .x_stride = x_stride,
                         .cols = cols,
                         .tokens = rows,
                         .act = arena_take_act(&pass->arena, rows, cols),
                         .many = buffers->targets};
}

// Adds each used expert as a target. is_shared: all experts read row 0.
static void add_experts(model_product *product, const expert_buffers *buffers,
                        const weight_tensor *stack, const float *biases, bool is_shared, float *y,
                        uint32_t y_stride) {
  const uint32_t *ends = buffers->routing.ends;
  for (uint32_t e = 0, row = 0; e < stack->dims[2]; row = ends[e], e++) {
    if (ends[e] == row) continue;
    const float *bias = biases == NULL ? NULL : biases + (size_t)e * stack->dims[1];
    product_add_rows(product, stack, e, bias, is_shared ? 0 : row, ends[e] - row,
                     y + (size_t)row * y_stride, y_stride);
  }
}

// Adds the adapters to the product with a stack. is_up: the input rows are those of the tokens.
static void adapt(const experts_block *experts, model_pass *pass, const expert_buffers *buffers,
                  const weight_tensor *stack, bool is_up, float *y) {
  const routing *routing = &buffers->routing;
  expert_product product = {.stack = stack,
                            .used = experts->is.used,
                            .chosen = routing->chosen,
                            .row_of = routing->row_of,
                            .is_by_token = is_up,
                            .x = is_up ? pass->normed : buffers->gate,
                            .x_stride = is_up ? pass->hidden_stride : buffers->ffn_stride,
                            .y = y,
                            .y_stride = is_up ? buffers->ffn_stride : pass->hidden_stride};
  if (tensor_is_present(stack)) expert_adapters_add(pass, &product);
}

// Computes wide = the result of each row's expert   [rows, hidden].
static void run_experts(const experts_block *experts, model_pass *pass,
                        const expert_buffers *buffers) {
  const uint64_t begin = arena_mark(&pass->arena);
  const uint32_t rows = pass->count * experts->is.used, ffn = experts->is.expert_ffn;
  const bool is_alone = pass->count == 1;  // the experts of a single token read it directly
  experts_job job = {experts, pass, buffers};
  if (!is_alone) thread_pool_for(pass->threads, rows, gather_rows, &job);
  model_product up = rows_product(pass, buffers, is_alone ? pass->normed : buffers->wide,
                                  pass->hidden_stride, experts->hidden, is_alone ? 1 : rows);
  if (has_gate(experts) && !experts->is_fused) {
    add_experts(&up, buffers, &experts->gate, experts->gate_bias, is_alone, buffers->gate,
                buffers->ffn_stride);
  }
  add_experts(&up, buffers, &experts->up, experts->up_bias, is_alone,
              experts->is_fused ? buffers->gate : buffers->up, buffers->ffn_stride);
  product_run(&up);
  measure_product(pass->ops, OP_EXPERTS, &up);
  arena_release(&pass->arena, begin);
  adapt(experts, pass, buffers, &experts->gate, true, buffers->gate);
  adapt(experts, pass, buffers, &experts->up, true,
        experts->is_fused ? buffers->gate : buffers->up);
  thread_pool_for(pass->threads, rows, gate_rows, &job);
  measure_rows(pass->ops, OP_SILU, rows, 3ull * ffn);
  model_product down = rows_product(pass, buffers, buffers->gate, buffers->ffn_stride, ffn, rows);
  add_experts(&down, buffers, &experts->down, experts->down_bias, false, buffers->wide,
              pass->hidden_stride);
  product_run(&down);
  measure_product(pass->ops, OP_EXPERTS, &down);
  arena_release(&pass->arena, begin);
  adapt(experts, pass, buffers, &experts->down, false, buffers->wide);
}

// ---- The shared expert ----

static void gate_shared(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const experts_job *job = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->buffers->shared_stride;
    activate(job, job->buffers->sh_gate + at, job->buffers->sh_up + at,
             job->experts->is.shared_ffn);
  }
}

// Computes sh_out = the result of the shared expert   [tokens, hidden].
static void run_shared(const experts_block *experts, model_pass *pass,
                       const expert_buffers *buffers) {
  const uint64_t begin = arena_mark(&pass->arena);
  const uint32_t ffn = experts->is.shared_ffn, stride = buffers->shared_stride;
  experts_job job = {experts, pass, buffers};
  model_product up = pass_product(pass, pass->normed, pass->hidden_stride, experts->hidden);
  if (has_gate(experts)) product_add(&up, &experts->sh_gate, NULL, buffers->sh_gate, stride);
  product_add(&up, &experts->sh_up, NULL, buffers->sh_up, stride);
  product_run(&up);
  measure_product(pass->ops, OP_GATE_UP, &up);
  arena_release(&pass->arena, begin);
  thread_pool_for(pass->threads, pass->count, gate_shared, &job);
  measure_rows(pass->ops, OP_SILU, pass->count, 3ull * ffn);
  model_product down = pass_product(pass, buffers->sh_gate, stride, ffn);
  product_add(&down, &experts->sh_down, NULL, buffers->sh_out, pass->hidden_stride);
  product_run(&down);
  measure_product(pass->ops, OP_DOWN, &down);
  arena_release(&pass->arena, begin);
}

// ---- The block ----

static void add_shared(const experts_job *job, uint32_t token, float *sum) {
  const kernel_table *kernels = job->pass->kernels;
  const expert_buffers *buffers = job->buffers;
  float *out = buffers->sh_out + (size_t)token * job->pass->hidden_stride;
  if (tensor_is_present(&job->experts->sh_router)) {
    float weight = 1;
    kernels->sigmoid_mul(&weight, &buffers->sh_weight[token], 1);
    kernels->scale(out, weight, job->experts->hidden);
  }
  kernels->add(sum, out, job->experts->hidden);
}

// Computes hidden[t] += sum of weight * result over the experts of token t, in the order of its
// ranking.
static void sum_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const experts_job *job = context;
  const kernel_table *kernels = job->pass->kernels;
  const routing *routing = &job->buffers->routing;
  const uint32_t hidden = job->experts->hidden, used = job->experts->is.used;
  const size_t stride = job->pass->hidden_stride;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t choices = (size_t)t * used;
    float *sum = job->buffers->wide + routing->row_of[choices] * stride;
    for (uint32_t i = 0; i < used; i++) {
      float *row = job->buffers->wide + routing->row_of[choices + i] * stride;
      kernels->scale(row, routing->weights[choices + i], hidden);
      if (i != 0) kernels->add(sum, row, hidden);
    }
    if (job->experts->is.shared_ffn != 0) add_shared(job, t, sum);
    if (job->experts->is.residual_scale != 1) {
      kernels->scale(sum, job->experts->is.residual_scale, hidden);
    }
    if (job->experts->post_norm != NULL) {
      norm_row(job->pass, sum, job->experts->post_norm, NULL, hidden, sum);
    }
    kernels->add(job->pass->hidden + t * stride, sum, hidden);
  }
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const experts_block *experts = (const experts_block *)block;
  const expert_buffers buffers = take_buffers(experts, &pass->arena);
  experts_job job = {experts, pass, &buffers};
  const float *input = experts->is.is_aside ? pass->aside : pass->hidden;
  (void)error;
  if (experts->router_norm != NULL) {
    pass_norm(pass, input, experts->router_norm, NULL);
    route(experts, pass, &buffers);
  }
  if (experts->norm != NULL) {
    pass_norm(pass, input, experts->norm, experts->norm_bias);
  } else {
    memcpy(pass->normed, input, (size_t)pass->count * pass->hidden_stride * sizeof(float));
  }
  if (experts->router_norm == NULL) route(experts, pass, &buffers);
  run_experts(experts, pass, &buffers);
  if (experts->is.shared_ffn != 0) run_shared(experts, pass, &buffers);
  thread_pool_for(pass->threads, pass->count, sum_tokens, &job);
  measure_rows(pass->ops, OP_EXPERTS, pass->count,
               (uint64_t)experts->hidden * (experts->is.used + 1));
  pass_norm_sums(pass, false, experts->sum_norm, experts->sum_norm_bias);
  return WICK_OK;
}

// ---- Planning ----

static void read_groups(model_keys *keys, experts_settings *is) {
  const uint32_t groups = keys_count_or_none(keys, "expert_group_count", is->experts);
  if (groups <= 1) return;
  is->groups = groups;
  is->groups_used = keys_size(keys, "expert_group_used_count", groups);
  if (keys->status != WICK_OK) return;
  if (is->experts % groups != 0 || is->used > is->experts / groups * is->groups_used) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "expert_group_count",
              "%u of %u experts cannot be chosen from %u of %u groups ('%s.expert_group_count')",
              is->used, is->experts, is->groups_used, groups, keys->architecture);
  }
}

experts_settings experts_read(model_plan *plan, bool is_required) {
  model_keys *keys = plan->keys;
  experts_settings is = {
      .norm = "ffn_norm.weight", .gating = EXPERTS_SOFTMAX, .scale = 1, .residual_scale = 1};
  is.experts = is_required ? keys_size(keys, "expert_count", MODEL_EXPERTS_MAX)
                           : keys_count_or_none(keys, "expert_count", MODEL_EXPERTS_MAX);
  if (keys->status != WICK_OK || is.experts == 0) return is;
  is.used = keys_size(keys, "expert_used_count", is.experts);
  read_groups(keys, &is);
  return is;
}

experts_gating experts_read_gating(model_plan *plan, experts_gating usual) {
  return (experts_gating)keys_count(plan->keys, "expert_gating_func", EXPERTS_SOFTMAX,
                                    EXPERTS_SOFTMAX_OF_CHOSEN, usual);
}

float experts_read_scale(model_plan *plan) {
  const float scale = (float)keys_number_or_none(plan->keys, "expert_weights_scale");
  return scale == 0 ? 1 : scale;  // older files write 0 for no scale
}

experts_settings experts_read_shared(model_plan *plan, bool is_required, experts_gating gating,
                                     bool is_normalised) {
  experts_settings is = experts_read(plan, is_required);
  if (is.experts == 0) return is;
  is.gating = experts_read_gating(plan, gating);
  is.scale = experts_read_scale(plan);
  is.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  is.shared_ffn =
      is.expert_ffn * keys_count_or_none(plan->keys, "expert_shared_count", MODEL_EXPERTS_MAX);
  is.is_normalised = keys_flag(plan->keys, "expert_weights_norm", is_normalised);
  return is;
}

model_block *experts_make(model_plan *plan, const experts_settings *settings) {
  static const model_block_ops OPS = {"experts", bind, reserve, run};
  experts_block *experts = plan_block(plan, &OPS, sizeof *experts);
  if (experts == NULL) return NULL;
  experts->hidden = plan->model->config.hidden;
  experts->is = *settings;
  if (plan->model->config.ffn == 0) plan->model->config.ffn = settings->expert_ffn;
  return &experts->block;
}
