// schedule/predict.c — the predictor's state for each request, and its passes.
#include "schedule/predict.h"

#include <string.h>

#include "base/math.h"
#include "schedule/scheduler_types.h"
#include "schedule/speculation.h"

enum {
  // The number of requests that the predictor follows, which is also the limit of requests that
  // decode with proposals at the same time.
  PREDICT_TEXTS = SPECULATION_REQUESTS_MAX,
  PREDICT_ROWS = 32,           // rows per pass
  PREDICT_TOKENS_MAX = 8192,   // size of the window
  PREDICT_USES_BETWEEN = 256,  // a request loses its slot after this many uses without new rows
};
_Static_assert(PREDICT_ROWS > SPECULATION_ROWS_MAX, "one pass of proposals fits in one batch");
static const float COST_WEIGHT = 0.2f;

// The sequence has the positions [base, next) of the request's text, counted from 0: rotary
// embeddings depend only on distances. `waiting` rows follow, which will be processed together with
// the tokens after them.
typedef struct predict_text {
  uint32_t request;  // 0: the slot is free
  uint32_t base, next, waiting;
  kv_seq_id sequence;
  float *rows;  // [PREDICT_ROWS] of row_stride
  uint64_t last_use;
} predict_text;

struct predictor {
  predictor_parts parts;
  loaded_model model;  // one layer, with the embeddings and the output of the whole model
  seq_store *store;
  forward_pass *forward;
  float *rows;
  uint32_t row_stride, tokens_max;
  predict_text texts[PREDICT_TEXTS];
  model_input batch[PREDICT_ROWS];
  uint64_t uses, failures;
  float token_us;
};

// ---- The predictor's model ----

// Returns the predictor as a model; called again when more weights have arrived.
static loaded_model view_of(const loaded_model *whole) {
  loaded_model view = *whole;
  view.config.layers = 1;
  view.layers = (model_layer *)&whole->predictor;
  view.groups[0] = whole->predictor_group;
  view.group_count = 1;
  view.state_bytes = 0;
  view.logits_rows_max = 1;
  if (whole->predictor_norm == NULL) return view;
  view.output_norm = whole->predictor_norm;
  view.output_norm_bias = whole->predictor_norm_bias;
  return view;
}

static uint32_t tokens_max(const predictor_parts *parts) {
  return parts->context_tokens < PREDICT_TOKENS_MAX ? parts->context_tokens : PREDICT_TOKENS_MAX;
}

// Returns the configuration of the store: all requests share one context, and each may have one
// additional partly filled page.
static store_config store_of(const predictor_parts *parts) {
  const model_group *group = &parts->model->predictor_group;
  const uint32_t pages = ceil_div_u32(tokens_max(parts), KERNEL_PAGE_TOKENS) + PREDICT_TEXTS;
  return (store_config){.groups = {{.layers = group->layers,
                                    .kv_heads = group->kv_heads,
                                    .head_dim = group->head_dim,
                                    .k_type = parts->k_type,
                                    .v_type = parts->v_type}},
                        .group_count = 1,
                        .batch_tokens = PREDICT_ROWS,
                        .pages_max = pages,
                        .pages_keep = pages};
}

predictor_plan predictor_plan_bytes(const predictor_parts *parts) {
  const loaded_model view = view_of(parts->model);
  const store_config store = store_of(parts);
  const uint64_t row_bytes = arena_line_floats(view.config.hidden) * sizeof(float);
  return (predictor_plan){
      .scratch_bytes = forward_plan_bytes(&view, PREDICT_ROWS, parts->threads_max) +
                       PREDICT_TEXTS * PREDICT_ROWS * row_bytes + sizeof(predictor),
      .kv_bytes = store_plan_bytes(view.kernels, &store, store.pages_max * KERNEL_PAGE_TOKENS) +
                  PREDICT_TEXTS * store_open_bytes(view.kernels, &store)};
}

static wick_status make_texts(predictor *made, wick_error *error) {
  const size_t floats = (size_t)PREDICT_ROWS * made->row_stride;
  made->rows = memory_alloc_array(made->parts.memory, PREDICT_TEXTS * floats, sizeof *made->rows);
  if (made->rows == NULL) return memory_fail(made->parts.memory, error, "the predictor's rows");
  store_expect(made->store, 1);
  for (uint32_t i = 0; i < PREDICT_TEXTS; i++) {
    predict_text *text = &made->texts[i];
    const wick_status status = store_new(made->store, &text->sequence, error);
    if (status != WICK_OK) return status;
    store_reserve(made->store, text->sequence, made->tokens_max, 0);
    text->rows = made->rows + i * floats;
  }
  store_room room = {{0}};
  store_add_room(made->store, KV_SEQ_NONE, made->tokens_max, &room);
  for (uint32_t i = 0; i < PREDICT_TEXTS; i++) store_add_room(made->store, KV_SEQ_NONE, 1, &room);
  return store_grow_for(made->store, &room, error);
}

wick_status predictor_create(const predictor_parts *parts, predictor **out, wick_error *error) {
  const store_config store = store_of(parts);
  predictor *made = memory_alloc_zeroed(parts->memory, sizeof *made);
  if (made == NULL) return memory_fail(parts->memory, error, "the predictor");
  made->parts = *parts;
  made->model = view_of(parts->model);
  made->tokens_max = tokens_max(parts);
  wick_status status =
      store_create(parts->memory, made->model.kernels, &store, &made->store, error);
  if (status == WICK_OK) {
    status = forward_create(&made->model, made->store, parts->threads, parts->threads_max,
                            PREDICT_ROWS, &made->forward, error);
  }
  if (status == WICK_OK) {
    made->row_stride = forward_row_stride(made->forward);
    status = make_texts(made, error);
  }
  if (status != WICK_OK) {
    predictor_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

void predictor_destroy(predictor *predictor) {
  if (predictor == NULL) return;
  memory_gate *memory = predictor->parts.memory;
  forward_destroy(predictor->forward);
  store_destroy(predictor->store);
  memory_free(memory, predictor->rows);
  memory_free(memory, predictor);
}

uint64_t predictor_failures(const predictor *predictor) { return predictor->failures; }

float predictor_token_us(const predictor *predictor) { return predictor->token_us; }

const float *predictor_logits(const predictor *predictor) {
  return forward_logits(predictor->forward, 0);
}

// ---- Slots ----

// Drops the content of the pages. Waiting rows are kept.
static void empty(predictor *predictor, predict_text *text) {
  store_truncate(predictor->store, text->sequence, 0);
  text->base = text->next;
}

static predict_text *find_text(predictor *predictor, uint32_t request) {
  for (uint32_t i = 0; i < PREDICT_TEXTS; i++) {
    if (predictor->texts[i].request == request) return &predictor->texts[i];
  }
  return NULL;
}

void predictor_forget(predictor *predictor, uint32_t request) {
  predict_text *text = find_text(predictor, request);
  if (text == NULL) return;
  text->request = text->next = text->waiting = 0;
  empty(predictor, text);
}

// Returns the slot of the request, or a slot that is free or has long been unused. NULL: none.
static predict_text *take_text(predictor *predictor, uint32_t request) {
  predict_text *text = find_text(predictor, request);
  for (uint32_t i = 0; text == NULL && i < PREDICT_TEXTS; i++) {
    predict_text *at = &predictor->texts[i];
    if (at->request != 0) {
      if (predictor->uses - at->last_use < PREDICT_USES_BETWEEN) continue;
      predictor_forget(predictor, at->request);
    }
    at->request = request;
    text = at;
  }
  if (text != NULL) text->last_use = ++predictor->uses;
  return text;
}

// ---- Passes ----

// Reserves pages for `tokens` more tokens. If there are too few, all slots are cleared.
static bool prepare(predictor *predictor, predict_text *text, uint32_t tokens) {
  if (text->next - text->base + tokens > predictor->tokens_max) empty(predictor, text);
  if (store_prepare(predictor->store, text->sequence, tokens, NULL) == WICK_OK) return true;
  for (uint32_t i = 0; i < PREDICT_TEXTS; i++) empty(predictor, &predictor->texts[i]);
  return store_prepare(predictor->store, text->sequence, tokens, NULL) == WICK_OK;
}

// Processes `count` rows together with the tokens after them. with_logits: computes the logits of
// the last row. Returns false if values are not finite; the pages are then empty.
static bool read_rows(predictor *predictor, predict_text *text, const float *rows,
                      const int32_t *tokens, uint32_t count, bool with_logits) {
  const uint32_t first = store_tokens(predictor->store, text->sequence);
  bool is_read = store_begin_rows(predictor->store, text->sequence, count, count, NULL) == WICK_OK;
  for (uint32_t i = 0; i < count; i++) {
    predictor->batch[i] = (model_input){.token = tokens[i],
                                        .position = first + i,
                                        .sequence = text->sequence,
                                        .wants_logits = with_logits && i + 1 == count};
  }
  predictor->model = view_of(predictor->parts.model);
  if (is_read) {
    forward_begin(predictor->forward, predictor->batch, count);
    forward_use_trunk(predictor->forward, rows);
    is_read = forward_layer(predictor->forward, NULL) == WICK_OK;
  }
  if (!is_read) {
    predictor->failures++;
    return false;
  }
  store_commit(predictor->store, text->sequence, count);
  if (with_logits) forward_logits_compute(predictor->forward, 0);
  return true;
}

// Processes the waiting rows; `tokens` are those of the request.
static bool read_waiting(predictor *predictor, predict_text *text, const int32_t *tokens,
                         bool with_logits) {
  const uint32_t count = text->waiting;
  const bool is_read =
      prepare(predictor, text, count) &&
      read_rows(predictor, text, text->rows, tokens + text->next + 1, count, with_logits);
  text->next += count;
  text->waiting = 0;
  if (!is_read) empty(predictor, text);
  return is_read;
}

void predictor_read(predictor *predictor, uint32_t request, const int32_t *tokens, uint32_t first,
                    uint32_t end, const forward_pass *forward, uint32_t input) {
  predict_text *text = take_text(predictor, request);
  if (text == NULL) return;
  uint32_t at = text->next + text->waiting;
  if (at < first) {  // the tokens before `first` were not processed
    text->next = at = first;
    text->waiting = 0;
    empty(predictor, text);
  }
  for (; at < end; at++) {
    if (text->waiting == PREDICT_ROWS) read_waiting(predictor, text, tokens, false);
    forward_row(forward, input + at - first,
                text->rows + (size_t)text->waiting++ * predictor->row_stride);
  }
}

static int32_t likeliest(const predictor *predictor) {
  const float *logits = predictor_logits(predictor);
  const uint32_t vocab = predictor->model.config.vocab;
  uint32_t best = 0;
  for (uint32_t i = 1; i < vocab; i++) {
    if (logits[i] > logits[best]) best = i;
  }
  return (int32_t)best;
}

// Makes the proposals after the first one, each from the output for the previous one. Nothing is
// stored.
static uint32_t propose_more(predictor *predictor, predict_text *text, uint32_t most,
                             int32_t *out) {
  seq_store *store = predictor->store;
  const uint32_t end = text->next - text->base;
  uint32_t made = 1;
  if (most > predictor->tokens_max - end + 1) most = predictor->tokens_max - end + 1;
  for (; made < most && store_prepare(store, text->sequence, 1, NULL) == WICK_OK; made++) {
    forward_row(predictor->forward, 0, text->rows);
    if (!read_rows(predictor, text, text->rows, &out[made - 1], 1, true)) break;
    out[made] = likeliest(predictor);
  }
  store_truncate(store, text->sequence, end);
  return made;
}

uint32_t predictor_propose(predictor *predictor, uint32_t request, const int32_t *tokens,
                           uint32_t count, uint32_t most, int32_t *out) {
  predict_text *text = find_text(predictor, request);
  if (most == 0 || text == NULL || text->waiting == 0) return 0;
  if (text->next + text->waiting + 1 != count) return 0;
  const uint64_t start_us = predictor->parts.now_us();
  if (!read_waiting(predictor, text, tokens, true)) return 0;
  out[0] = likeliest(predictor);
  const uint32_t made = propose_more(predictor, text, most, out);
  const float took = (float)(predictor->parts.now_us() - start_us) / (float)made;
  predictor->token_us +=
      predictor->token_us == 0.0f ? took : COST_WEIGHT * (took - predictor->token_us);
  return made;
}

// ---- Alongside the scheduler's passes ----

static bool is_predicted(const scheduler *scheduler, const request *request) {
  return scheduler->parts.drafter == NULL && scheduler->running <= SPECULATION_REQUESTS_MAX &&
         request != NULL && request->speculates && request->tokens_max > 1 &&
         request->media.count == 0;
}

bool predict_begin(const scheduler *scheduler) {
  if (!model_is_ready(scheduler->parts.model)) return false;  // including the predictor's weights
  for (uint32_t i = 0; i < scheduler->batch_count; i++) {
    if (is_predicted(scheduler, scheduler->owners[i])) return true;
  }
  return false;
}

void predict_after(scheduler *scheduler) {
  for (uint32_t i = 0, next; i < scheduler->batch_count; i = next) {
    const request *owner = scheduler->owners[i];
    for (next = i + 1; next < scheduler->batch_count && scheduler->owners[next] == owner;) next++;
    if (!is_predicted(scheduler, owner)) continue;
    const uint32_t first = scheduler->batch[i].position, end = first + (next - i);
    predictor_read(scheduler->parts.predictor, owner->id, owner->tokens, first,
                   owner->fed < end ? owner->fed : end, scheduler->parts.forward, i);
  }
}
