// model/forward.c — the pass: embeddings, each layer's mixer and feed-forward, norm, logits. The
// computation of a layer belongs to its blocks (model/blocks/).
#include "model/forward.h"

#include <string.h>

#include "base/checked.h"
#include "model/adapter_product.h"
#include "model/measure.h"
#include "model/product.h"
#include "model/tables.h"
#include "platform/platform.h"
#include "thread/choice.h"

struct forward_pass {
  model_pass pass;
  void *block;            // all scratch
  float *logits;          // [FORWARD_LOGITS_ROWS, vocab]
  uint32_t vocab_stride;  // floats
  bool is_choosing;       // whether the number of threads is chosen by measurement
  thread_choice choice;
};

// ---- Scratch ----

// Takes the memory for logits, which keys of pages share: when logits are computed, the layers no
// longer need these keys.
static void take_logits(const loaded_model *model, forward_pass *forward, uint64_t logits_rows) {
  scratch_arena *arena = &forward->pass.arena;
  const uint64_t logits_bytes = logits_rows * forward->vocab_stride * sizeof(float);
  uint64_t begin[MODEL_GROUPS_MAX], keys_bytes = 0;
  for (uint32_t i = 0; model->has_open_pages && i < model->group_count; i++) {
    const model_group *group = &model->groups[i];
    begin[i] = keys_bytes;
    keys_bytes +=
        kv_open_pass_bytes(model->kernels, group->kv_heads, group->head_dim, arena->batch_tokens);
    keys_bytes = (keys_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
  }
  uint8_t *bytes = arena_take_bytes(arena, logits_bytes > keys_bytes ? logits_bytes : keys_bytes);
  forward->logits = (float *)(void *)bytes;
  for (uint32_t i = 0; keys_bytes != 0 && bytes != NULL && i < model->group_count; i++) {
    forward->pass.open[i] = bytes + begin[i];
  }
}

// Lays out the buffers that exist as long as the pass. The blocks' buffers follow.
static void take_buffers(const loaded_model *model, forward_pass *forward) {
  model_pass *pass = &forward->pass;
  scratch_arena *arena = &pass->arena;
  const uint64_t rows = arena->batch_tokens;
  uint64_t logits_rows = rows < FORWARD_LOGITS_ROWS ? rows : FORWARD_LOGITS_ROWS;
  if (model->is_encoder) logits_rows = 0;
  if (model->logits_rows_max != 0) logits_rows = model->logits_rows_max;
  pass->hidden_stride = arena_line_floats(model->config.hidden);
  forward->vocab_stride = arena_line_floats(model->config.vocab);
  pass->inputs = arena_take_bytes(arena, rows * sizeof(model_input));
  pass->wanted = arena_take_bytes(arena, rows * sizeof(uint32_t));
  pass->adapters = arena_take_bytes(arena, rows * sizeof(adapter_set *));
  pass->hidden = arena_take_floats(arena, rows * pass->hidden_stride);
  pass->normed = arena_take_floats(arena, rows * pass->hidden_stride);
  if (model->keeps_inputs) pass->aside = arena_take_floats(arena, rows * pass->hidden_stride);
  pass->streams = arena_take_floats(arena, rows * model->streams * pass->hidden_stride);
  pass->layer_inputs =
      arena_take_floats(arena, rows * model->config.layers * model->layer_inputs_dim);
  for (uint32_t i = 0; i < model->rope_count; i++) {
    pass->cos_sin[i] = arena_take_floats(arena, rows * model->ropes[i].dims);
  }
  take_logits(model, forward, logits_rows);
}

// Reserves the maximum of the scratch memory that the blocks and the computation of logits need.
static void reserve_blocks(const loaded_model *model, scratch_arena *arena) {
  const uint64_t begin = arena_mark(arena);
  for (uint32_t i = 0; i < model->config.layers; i++) {
    const model_block *block = model->layers[i].first;
    for (; block != NULL; block = block->next) {
      if (block->ops->reserve != NULL) block->ops->reserve(block, arena);
      arena_release(arena, begin);
    }
  }
  arena_reserve_act(arena, arena->batch_tokens, model->config.hidden);
  head_reserve(&model->head, model->config.hidden, arena);
  if (model->embedding.outside != NULL) tables_reserve(&model->embedding, arena);
  arena_release(arena, begin);
}

uint64_t forward_plan_bytes(const loaded_model *model, uint32_t batch_tokens, uint32_t threads) {
  forward_pass forward = {.pass.arena = {model->kernels, batch_tokens, threads, NULL, 0, 0}};
  take_buffers(model, &forward);
  reserve_blocks(model, &forward.pass.arena);
  return forward.pass.arena.peak_bytes;
}

wick_status forward_create(const loaded_model *model, seq_store *store, thread_pool *threads,
                           uint32_t threads_max, uint32_t batch_tokens, forward_pass **out,
                           wick_error *error) {
  memory_gate *memory = model->memory;
  forward_pass *forward = memory_alloc_zeroed(memory, sizeof *forward);
  if (forward == NULL) return memory_fail(memory, error, "the forward pass");
  forward->pass = (model_pass){.model = model,
                               .kernels = model->kernels,
                               .threads = threads,
                               .store = store,
                               .arena = {model->kernels, batch_tokens, threads_max, NULL, 0, 0}};
  const uint64_t bytes = forward_plan_bytes(model, batch_tokens, threads_max);
  forward->block = bytes > SIZE_MAX ? NULL : memory_alloc(memory, (size_t)bytes);
  if (forward->block == NULL) {
    forward_destroy(forward);
    return memory_fail(memory, error, "the scratch of the forward pass");
  }
  arena_begin(&forward->pass.arena, forward->block, bytes);
  take_buffers(model, forward);
  *out = forward;
  return WICK_OK;
}

void forward_destroy(forward_pass *forward) {
  if (forward == NULL) return;
  memory_gate *memory = forward->pass.model->memory;
  memory_free(memory, forward->block);
  memory_free(memory, forward);
}

void forward_measure(forward_pass *forward, op_records *ops) { forward->pass.ops = ops; }

// ---- Jobs over the tokens of the batch ----

typedef struct embed_job {
  const model_pass *pass;
  kernel_matrix rows;  // of all tokens, or of the pass's tokens
} embed_job;

// Returns the input's media row [media_width].
static const float *media_row(const model_input *input) {
  const media_span *span = input->media->span;
  return span->rows + (size_t)(input->position - input->media->first) * span->is.width;
}

static void embed_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const embed_job *job = context;
  const model_pass *pass = job->pass;
  const weight_tensor *embedding = &pass->model->embedding;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const uint32_t token = (uint32_t)pass->inputs[t].token;
    const size_t at = (size_t)t * pass->hidden_stride;
    if (pass->inputs[t].media != NULL) {
      memcpy(pass->hidden + at, media_row(&pass->inputs[t]),
             pass->model->config.hidden * sizeof(float));
      continue;
    }
    pass->kernels->types[embedding->type].row_dequant(&job->rows, tables_row(pass, embedding, t),
                                                      pass->hidden + at);
    if (pass->adapters[t] == NULL) continue;
    adapter_add_embedding(pass->adapters[t], embedding, token, t, pass->normed + at,
                          pass->hidden + at);
  }
}

static wick_status embed(model_pass *pass, wick_error *error) {
  const weight_tensor *embedding = &pass->model->embedding;
  const uint64_t begin = arena_mark(&pass->arena);
  embed_job job = {.pass = pass};
  const wick_status status = tables_rows(pass, embedding, &job.rows, error);
  if (status == WICK_OK) thread_pool_for(pass->threads, pass->count, embed_tokens, &job);
  arena_release(&pass->arena, begin);
  measure_rows(pass->ops, OP_EMBED, pass->count, pass->model->config.hidden);
  return status;
}

static void turn_positions(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_pass *pass = context;
  (void)thread;
  for (uint32_t i = 0; i < pass->model->rope_count; i++) {
    const model_rope *rope = &pass->model->ropes[i];
    for (uint32_t t = first; t < last; t++) {
      input_rope_table(rope, &pass->inputs[t], 0, pass->cos_sin[i] + (size_t)t * rope->dims);
    }
  }
}

static void fill_ropes(model_pass *pass) {
  const loaded_model *model = pass->model;
  for (uint32_t i = 0; !pass->has_frequencies && i < model->rope_count; i++) {
    rope_fill(&model->ropes[i], model->context_tokens);
  }
  pass->has_frequencies = true;
  thread_pool_for(pass->threads, pass->count, turn_positions, pass);
}

// Computes hidden[t] = norm(scale * hidden[t] + types[0] + positions[position]).
static void begin_rows(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_pass *pass = context;
  const loaded_model *model = pass->model;
  const uint32_t hidden = model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *row = pass->hidden + (size_t)t * pass->hidden_stride;
    float *other = pass->normed + (size_t)t * pass->hidden_stride;
    const bool is_scaled = pass->inputs[t].media == NULL || model->config.scales_media;
    if (model->config.embedding_scale != 1 && is_scaled) {
      pass->kernels->scale(row, model->config.embedding_scale, hidden);
    }
    if (tensor_is_present(&model->types)) {
      const kernel_matrix types = tensor_matrix(&model->types, 0);
      pass->kernels->types[types.type].row_dequant(&types, 0, other);
      pass->kernels->add(row, other, hidden);
    }
    if (model->has_positions) {
      const kernel_matrix positions = tensor_matrix(&model->positions, 0);
      pass->kernels->types[positions.type].row_dequant(&positions, pass->inputs[t].position, other);
      pass->kernels->add(row, other, hidden);
    }
    if (model->embedding_norm != NULL) {
      norm_row(pass, row, model->embedding_norm, model->embedding_norm_bias, hidden, row);
    }
  }
}

// Begins the pass. Everything that the first layer needs has arrived together with its weights.
static wick_status begin_layers(model_pass *pass, wick_error *error) {
  const loaded_model *model = pass->model;
  const wick_status status = embed(pass, error);
  if (status != WICK_OK) return status;
  fill_ropes(pass);
  if (model->config.embedding_scale != 1 || model->has_positions ||
      tensor_is_present(&model->types) || model->embedding_norm != NULL) {
    thread_pool_for(pass->threads, pass->count, begin_rows, pass);
    measure_rows(pass->ops, OP_EMBED, pass->count, model->config.hidden);
  }
  return WICK_OK;
}

// ---- The pass ----

void forward_begin(forward_pass *forward, const model_input *inputs, uint32_t count) {
  model_pass *pass = &forward->pass;
  memcpy(pass->inputs, inputs, count * sizeof *inputs);
  pass->count = count;
  pass->layer = 0;
  pass->wanted_count = 0;
  pass->has_adapters = pass->keeps_rows = false;
  for (uint32_t i = 0; i < count; i++) {
    pass->adapters[i] = inputs[i].adapters;
    pass->has_adapters = pass->has_adapters || inputs[i].adapters != NULL;
    if (inputs[i].wants_logits) pass->wanted[pass->wanted_count++] = i;
  }
  const bool is_decode = pass->wanted_count == count && !pass->model->is_encoder;
  ops_begin(pass->ops, is_decode ? PASS_DECODE : PASS_PREFILL);
}

void forward_keep_rows(forward_pass *forward) { forward->pass.keeps_rows = true; }

void forward_use_trunk(forward_pass *forward, const float *rows) { forward->pass.trunk = rows; }

uint32_t forward_row_stride(const forward_pass *forward) { return forward->pass.hidden_stride; }

uint32_t forward_next_layer(const forward_pass *forward) { return forward->pass.layer; }

// Returns whether all layers are done and the rows are still in the order of their inputs.
static bool keeps_all(const model_pass *pass) {
  return pass->keeps_rows && pass->layer == pass->model->config.layers;
}

// Adds the layer's part to each media row. In the last layer, rows have been compacted.
static void add_deepstack(model_pass *pass) {
  const model_config *config = &pass->model->config;
  const bool is_moved = pass->layer + 1 == config->layers && !pass->keeps_rows;
  for (uint32_t t = 0; t < pass->count && pass->layer < config->deepstack_layers; t++) {
    const model_input *input = &pass->inputs[is_moved ? pass->wanted[t] : t];
    if (input->media == NULL) continue;
    pass->kernels->add(pass->hidden + (size_t)t * pass->hidden_stride,
                       media_row(input) + (size_t)(pass->layer + 1) * config->hidden,
                       config->hidden);
  }
}

static wick_status run_layer(model_pass *pass, wick_error *error) {
  const model_block *block = pass->model->layers[pass->layer].first;
  const uint64_t begin = arena_mark(&pass->arena);
  wick_status status = pass->layer == 0 ? begin_layers(pass, error) : WICK_OK;
  for (; status == WICK_OK && block != NULL && pass->count != 0; block = block->next) {
    status = block->ops->run(block, pass, error);
    arena_release(&pass->arena, begin);
  }
  if (status != WICK_OK) return status;
  add_deepstack(pass);
  pass->layer++;
  // only for rows that need logits, in the order of pass_keep_wanted
  for (uint32_t i = 0; i < pass->wanted_count && keeps_all(pass); i++) {
    pass->adapters[i] = pass->adapters[pass->wanted[i]];
  }
  return WICK_OK;
}

// Returns whether a layer's time can be compared: only layers with the same blocks, except the last
// one, where only some rows continue.
static bool is_comparable(const model_pass *pass) {
  const loaded_model *model = pass->model;
  const model_layer *first = &model->layers[0], *layer = &model->layers[pass->layer];
  return pass->layer + 1 != model->config.layers && layer->mixer->ops == first->mixer->ops &&
         layer->feed_forward->ops == first->feed_forward->ops;
}

wick_status forward_layer(forward_pass *forward, wick_error *error) {
  model_pass *pass = &forward->pass;
  if (!forward->is_choosing) return run_layer(pass, error);
  const bool is_measured = is_comparable(pass);
  const uint32_t threads = thread_pool_threads(pass->threads), tokens = pass->count;
  const uint64_t start_us = platform_now_us();
  thread_pool_limit(pass->threads, thread_choice_next(&forward->choice, threads, tokens, start_us));
  const wick_status status = run_layer(pass, error);
  const uint64_t end_us = platform_now_us();
  if (is_measured) thread_choice_took(&forward->choice, end_us - start_us, end_us);
  thread_pool_limit(pass->threads, thread_choice_now(&forward->choice, threads, 1));
  return status;
}

void forward_choose_threads(forward_pass *forward) { forward->is_choosing = true; }

uint32_t forward_threads(const forward_pass *forward, uint32_t tokens) {
  return thread_choice_now(&forward->choice, thread_pool_threads(forward->pass.threads), tokens);
}

const float *forward_vectors(forward_pass *forward, uint32_t *stride) {
  model_pass *pass = &forward->pass;
  const loaded_model *model = pass->model;
  *stride = pass->hidden_stride;
  if (model->output_norm == NULL) return pass->hidden;
  pass->count = pass->wanted_count;
  pass_norm(pass, pass->hidden, model->output_norm, model->output_norm_bias);
  return pass->normed;
}

void forward_row(const forward_pass *forward, uint32_t row, float *out) {
  const model_pass *pass = &forward->pass;
  const loaded_model *model = pass->model;
  norm_row(pass, pass->hidden + (size_t)row * pass->hidden_stride, model->output_norm,
           model->output_norm_bias, model->config.hidden, out);
}

void forward_head(forward_pass *forward, const float *vector, bool is_score, float *out) {
  head_run(&forward->pass.model->head, &forward->pass, vector, is_score, out);
}

uint32_t forward_logits_count(const forward_pass *forward) { return forward->pass.wanted_count; }

static void bend_logits(forward_pass *forward, uint32_t rows) {
  const model_pass *pass = &forward->pass;
  const model_config *config = &pass->model->config;
  for (uint32_t i = 0; i < rows; i++) {
    float *row = forward->logits + (size_t)i * forward->vocab_stride;
    if (config->logit_scale != 1) pass->kernels->scale(row, config->logit_scale, config->vocab);
    if (config->logit_cap != 0) pass->kernels->soft_cap(row, config->logit_cap, config->vocab);
  }
}

uint32_t forward_logits_compute(forward_pass *forward, uint32_t first) {
  model_pass *pass = &forward->pass;
  const loaded_model *model = pass->model;
  uint32_t rows = pass->wanted_count - first;
  if (rows > FORWARD_LOGITS_ROWS) rows = FORWARD_LOGITS_ROWS;
  const uint64_t begin = arena_mark(&pass->arena);
  const size_t at = (size_t)first * pass->hidden_stride;
  for (uint32_t i = 0; i < rows; i++) {
    const uint32_t from = pass->keeps_rows ? pass->wanted[first + i] : first + i;
    forward_row(forward, from, pass->normed + at + (size_t)i * pass->hidden_stride);
  }
  measure_rows(pass->ops, OP_NORM, rows, 2ull * model->config.hidden);
  model_product logits =
      pass_product(pass, pass->normed + at, pass->hidden_stride, model->config.hidden);
  logits.tokens = rows;
  // the rows from `first` on belong to requests that have not ended
  if (pass->has_adapters) logits.adapters = pass->adapters + first;
  product_add(&logits, &model->output, model->output_bias, forward->logits, forward->vocab_stride);
  product_run(&logits);
  bend_logits(forward, rows);
  measure_product(pass->ops, OP_LOGITS, &logits);
  arena_release(&pass->arena, begin);
  return rows;
}

const float *forward_logits(const forward_pass *forward, uint32_t row) {
  return forward->logits + (size_t)row * forward->vocab_stride;
}

uint32_t forward_logits_input(const forward_pass *forward, uint32_t index) {
  return forward->pass.wanted[index];
}
