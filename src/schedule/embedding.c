// schedule/embedding.c — see embedding.h.
#include "schedule/embedding.h"

#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "model/whole_attention.h"

#define LENGTH_LEAST 1e-12f  // lower bound for dividing a vector by its length

// A text's part of the current pass.
typedef struct embedding_part {
  uint32_t rows, first_position;
  kv_seq_id sequence;
} embedding_part;

struct embedding {
  embedding_parts parts;
  wick_pooling pooling;
  uint32_t width;
  bool is_normalised;
  int32_t *tokens;
  uint32_t *counts, text_count;
  size_t *firsts;  // [text_count] the index in `vectors` where each text begins
  float *vectors;
  float *sum, *row;  // [hidden] sum for the current text; [head's width]
  model_input *inputs;
  embedding_part part[WHOLE_TEXTS_MAX];
  uint32_t part_count;  // in the current pass; 0: no pass is running
  uint32_t at;          // the first text that is not done
  uint32_t fed;         // number of tokens of text `at` that were processed
  size_t fed_tokens;    // tokens of all earlier texts
  kv_seq_id sequence;   // sequence of text `at`, if fed != 0
  bool reads_alone;     // one text per pass, to find the text whose values are not finite
  wick_error failure;   // status WICK_OK: none
};

static void free_sequences(embedding *job);

// Frees the job's pages; its texts are recomputed from their first tokens.
static bool give_pages(void *context) {
  embedding *job = context;
  if (job->part_count == 0 && job->fed == 0) return false;
  free_sequences(job);
  return true;
}

static bool is_score(const embedding *job) { return job->pooling == WICK_POOLING_RANK; }

static uint32_t rows_of(const embedding *job, uint32_t text) {
  return job->pooling == WICK_POOLING_NONE ? job->counts[text] : 1;
}

// Allocates the lists of the job; `floats`: the size of all vectors.
static bool allocate(embedding *job, size_t floats) {
  memory_gate *memory = job->parts.memory;
  const loaded_model *model = job->parts.model;
  const uint32_t hidden = model->config.hidden;
  job->vectors = memory_alloc_array(memory, floats, sizeof(float));
  job->sum = memory_alloc_array(memory, hidden, sizeof(float));
  job->row =
      memory_alloc_array(memory, head_width(&model->head, hidden, is_score(job)), sizeof(float));
  job->inputs = memory_alloc_array(memory, job->parts.batch_tokens, sizeof(model_input));
  return job->vectors != NULL && job->sum != NULL && job->row != NULL && job->inputs != NULL;
}

wick_status embedding_create(const embedding_parts *parts, int32_t *tokens, uint32_t *counts,
                             uint32_t text_count, wick_pooling pooling, uint32_t width,
                             bool is_normalised, embedding **out, wick_error *error) {
  embedding *job = memory_alloc_zeroed(parts->memory, sizeof *job);
  if (job == NULL) {
    memory_free(parts->memory, tokens);
    memory_free(parts->memory, counts);
    return memory_fail(parts->memory, error, "an embedding");
  }
  job->parts = *parts;
  adapter_set_hold(&job->parts.adapters);
  job->tokens = tokens;
  job->counts = counts;
  job->text_count = text_count;
  job->pooling = pooling;
  job->width = width;
  job->is_normalised = is_normalised && pooling != WICK_POOLING_RANK;
  job->firsts = memory_alloc_array(parts->memory, text_count, sizeof *job->firsts);
  size_t floats = 0;
  for (uint32_t i = 0; job->firsts != NULL && i < text_count; i++) {
    size_t more;
    job->firsts[i] = floats;
    if (!checked_mul_size(rows_of(job, i), width, &more) ||
        !checked_add_size(floats, more, &floats)) {
      floats = SIZE_MAX;  // more than can be allocated
    }
  }
  if (job->firsts == NULL || !allocate(job, floats)) {
    embedding_destroy(job);
    return memory_fail(parts->memory, error, "the vectors of texts");
  }
  if (parts->scheduler != NULL) {
    scheduler_set_guest(parts->scheduler, (page_guest){job, give_pages});
  }
  *out = job;
  return WICK_OK;
}

// Frees the sequences of the pass, including that of a partly processed text.
static void free_sequences(embedding *job) {
  if (job->parts.model->is_encoder) return;
  for (uint32_t i = 0; i < job->part_count; i++) {
    store_settle(job->parts.store, job->part[i].sequence);
    store_free(job->parts.store, job->part[i].sequence);
  }
  if (job->part_count == 0 && job->fed != 0) store_free(job->parts.store, job->sequence);
  job->part_count = job->fed = 0;
}

void embedding_destroy(embedding *job) {
  if (job == NULL) return;
  memory_gate *memory = job->parts.memory;
  if (job->parts.scheduler != NULL) scheduler_set_guest(job->parts.scheduler, (page_guest){0});
  free_sequences(job);
  adapter_set_let_go(&job->parts.adapters);
  memory_free(memory, job->tokens);
  memory_free(memory, job->counts);
  memory_free(memory, job->firsts);
  memory_free(memory, job->vectors);
  memory_free(memory, job->sum);
  memory_free(memory, job->row);
  memory_free(memory, job->inputs);
  memory_free(memory, job);
}

// ---- A pass ----

static wick_pooling pooling_of(const embedding *job) {
  return is_score(job) ? job->parts.model->head.score_pooling : job->pooling;
}

static bool is_wanted(const embedding *job, uint32_t position, uint32_t count) {
  const wick_pooling pooling = pooling_of(job);
  if (pooling == WICK_POOLING_CLS) return position == 0;
  if (pooling == WICK_POOLING_LAST) return position + 1 == count;
  return true;
}

// Reserves pages in the store for a causal model's text. All of its pages are taken before its
// first rows are computed, so that two users of the pages never wait for each other halfway.
static wick_status prepare_sequence(embedding *job, embedding_part *part, uint32_t left,
                                    wick_error *error) {
  seq_store *store = job->parts.store;
  wick_status status = WICK_OK;
  part->sequence = job->sequence;
  if (part->first_position == 0) status = store_new(store, &part->sequence, error);
  if (status != WICK_OK) return status;
  status = store_prepare(store, part->sequence, left, error);
  if (status == WICK_OK) {
    status = store_begin_rows(store, part->sequence, part->rows, part->rows, error);
  }
  if (status != WICK_OK && part->first_position == 0) store_free(store, part->sequence);
  return status;
}

// Adds rows of the texts, starting at `at`, while they fit. A text that does not fit after other
// texts waits for the next pass.
static wick_status begin_pass(embedding *job, wick_error *error) {
  const bool is_encoder = job->parts.model->is_encoder;
  const int32_t *tokens = job->tokens + job->fed_tokens;
  const adapter_set *adapters = job->parts.adapters.count == 0 ? NULL : &job->parts.adapters;
  const uint32_t parts_max = job->reads_alone ? 1 : WHOLE_TEXTS_MAX;
  uint32_t rows = 0, fed = job->fed;
  for (uint32_t text = job->at; text < job->text_count && job->part_count < parts_max; text++) {
    const uint32_t left = job->counts[text] - fed, room = job->parts.batch_tokens - rows;
    if (room == 0 || (is_encoder && left > room)) break;
    embedding_part *part = &job->part[job->part_count];
    *part = (embedding_part){left < room ? left : room, fed, (kv_seq_id)job->part_count};
    const wick_status status = is_encoder ? WICK_OK : prepare_sequence(job, part, left, error);
    if (status != WICK_OK && job->part_count == 0) return status;
    if (status != WICK_OK) break;
    for (uint32_t i = 0; i < part->rows; i++) {
      const uint32_t position = fed + i;
      job->inputs[rows++] =
          (model_input){.token = tokens[position],
                        .position = position,
                        .sequence = (uint32_t)part->sequence,
                        .wants_logits = is_wanted(job, position, job->counts[text]),
                        .adapters = adapters};
    }
    job->part_count++;
    tokens += job->counts[text];
    fed = 0;
  }
  forward_begin(job->parts.forward, job->inputs, rows);
  return WICK_OK;
}

// ---- Pooling ----

// Computes out [width], the head's output for a vector, truncated and normalised if the request has
// these settings.
static wick_status write_vector(embedding *job, const float *vector, float *out,
                                wick_error *error) {
  forward_head(job->parts.forward, vector, is_score(job), job->row);
  for (uint32_t i = 0; i < job->width; i++) {
    if (math_is_finite_f32(job->row[i])) continue;
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "the vector of text %u is not finite",
                     job->at);
  }
  memcpy(out, job->row, job->width * sizeof *out);
  if (job->is_normalised) job->parts.model->kernels->l2_norm(out, job->width, LENGTH_LEAST, out);
  return WICK_OK;
}

// Adds the vector of one token of text `at`. The mean's terms are added in token order.
static wick_status take_row(embedding *job, uint32_t position, const float *vector,
                            wick_error *error) {
  const kernel_table *kernels = job->parts.model->kernels;
  const uint32_t hidden = job->parts.model->config.hidden, count = job->counts[job->at];
  float *out = job->vectors + job->firsts[job->at];
  const wick_pooling pooling = pooling_of(job);
  if (pooling == WICK_POOLING_NONE) {
    return write_vector(job, vector, out + (size_t)position * job->width, error);
  }
  if (pooling != WICK_POOLING_MEAN) return write_vector(job, vector, out, error);
  if (position == 0) memset(job->sum, 0, hidden * sizeof *job->sum);
  kernels->add(job->sum, vector, hidden);
  if (position + 1 < count) return WICK_OK;
  kernels->scale(job->sum, 1.0f / (float)count, hidden);
  return write_vector(job, job->sum, out, error);
}

// Finishes a part whose rows were computed; its text continues in the next pass or is done.
static void close_part(embedding *job, const embedding_part *part) {
  seq_store *store = job->parts.store;
  const uint32_t end = part->first_position + part->rows;
  const bool is_done = end == job->counts[job->at];
  if (!job->parts.model->is_encoder) {
    store_commit(store, part->sequence, part->rows);
    store_settle(store, part->sequence);
    if (is_done) store_free(store, part->sequence);
  }
  job->sequence = part->sequence;
  job->fed = is_done ? 0 : end;
  if (!is_done) return;
  job->fed_tokens += end;
  job->at++;
}

static wick_status end_pass(embedding *job, wick_error *error) {
  uint32_t stride;
  const float *vectors = forward_vectors(job->parts.forward, &stride);
  const uint32_t parts = job->part_count;
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < parts; i++) {
    const embedding_part *part = &job->part[i];
    for (uint32_t r = 0; r < part->rows && status == WICK_OK; r++) {
      const uint32_t position = part->first_position + r;
      if (!is_wanted(job, position, job->counts[job->at])) continue;
      status = take_row(job, position, vectors, error);
      vectors += stride;
    }
    close_part(job, part);
  }
  job->part_count = 0;
  return status;
}

// ---- Steps ----

static wick_status fail_as(const wick_error *own, wick_status status, wick_error *error) {
  if (status != WICK_OK) *error = *own;
  return status;
}

// Begins a pass. If too few pages are free, frees some pages or runs a unit of the requests
// instead.
static wick_status begin_or_wait(embedding *job, wick_step_result *result, wick_error *error) {
  wick_error shortage = {0};
  const wick_status status = begin_pass(job, &shortage);
  scheduler *scheduler = job->parts.scheduler;
  const bool is_short = status == WICK_E_PAGES || status == WICK_E_NOMEM;
  if (!is_short || scheduler == NULL) return fail_as(&shortage, status, error);
  if (scheduler_gives_room(scheduler)) return WICK_OK;
  give_pages(job);  // in groups with a window, a text takes pages while it is processed
  const scheduler_result of_requests = scheduler_step(scheduler);
  if (of_requests == SCHEDULER_IDLE) return fail_as(&shortage, status, error);
  if (of_requests == SCHEDULER_WAIT_BYTES) *result = WICK_STEP_WAIT_BYTES;
  return WICK_OK;
}

// Runs a layer of the pass. Values that are not finite are reported with the text: if the pass has
// several texts, each is recomputed in a separate pass.
static wick_status run_layer(embedding *job, wick_error *error) {
  wick_error reason;
  const wick_status status = forward_layer(job->parts.forward, &reason);
  if (status != WICK_E_NONFINITE) return fail_as(&reason, status, error);
  if (job->part_count == 1) {
    return fail_with(error, status, WICK_NO_OFFSET, "text %u: %s", job->at, reason.message);
  }
  free_sequences(job);
  job->part_count = 0;  // also for an encoder
  job->reads_alone = true;
  return WICK_OK;
}

static wick_status work(embedding *job, wick_step_result *result, wick_error *error) {
  const loaded_model *model = job->parts.model;
  *result = WICK_STEP_PROGRESS;
  if (job->at == job->text_count) {
    *result = WICK_STEP_IDLE;
    return WICK_OK;
  }
  const uint32_t next = job->part_count == 0 ? 0 : forward_next_layer(job->parts.forward);
  const bool is_last = next == model->config.layers;
  const bool is_there = job->part_count == 0 ? model->is_embedding_ready
                        : is_last            ? model_is_ready(model)
                                             : next < model_layers_ready(model);
  if (!is_there) {
    *result = WICK_STEP_WAIT_BYTES;
    return WICK_OK;
  }
  if (job->part_count == 0) return begin_or_wait(job, result, error);
  return is_last ? end_pass(job, error) : run_layer(job, error);
}

wick_status embedding_step(embedding *job, wick_step_result *result, wick_error *error) {
  if (job->failure.status == WICK_OK && work(job, result, &job->failure) == WICK_OK) {
    return WICK_OK;
  }
  free_sequences(job);
  *result = WICK_STEP_IDLE;
  if (error != NULL) *error = job->failure;
  return job->failure.status;
}

const float *embedding_vectors(const embedding *job, uint32_t index, uint32_t *rows,
                               uint32_t *width, uint32_t *tokens) {
  if (job->at != job->text_count) return NULL;
  *rows = rows_of(job, index);
  *width = job->width;
  *tokens = job->counts[index];
  return job->vectors + job->firsts[index];
}
