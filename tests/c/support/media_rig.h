// Helpers for requests with images and recordings in their prompts: engines, runs and results.
#ifndef WICK_TESTS_MEDIA_RIG_H
#define WICK_TESTS_MEDIA_RIG_H

#include "api/parts.h"
#include "fixture_model.h"

enum { MEDIA_PARTS_MAX = 40, MEDIA_SAID_MAX = 12 };

typedef struct prompt_parts {
  prompt_part parts[MEDIA_PARTS_MAX];
  media_rows media[MEDIA_PARTS_MAX];  // for the media parts
  uint32_t count;
} prompt_parts;

typedef struct media_result {
  float *logits;  // [logits_count, vocab], after each text position
  uint32_t logits_count, logits_max;
  uint32_t vocab;
  int32_t said[MEDIA_SAID_MAX];
  uint32_t said_count;
  uint32_t cached;
  wick_error error;
} media_result;

typedef struct media_setup {
  uint32_t batch_tokens, threads;
  uint32_t context_tokens;  // may exceed the trained length; 0: as trained
  wick_kv_type kv_type;
} media_setup;

static inline wick_engine *media_engine(const fixture_file *file, const media_setup *setup) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error = {0};
  wick_config_default(&config);
  config.batch_tokens = setup->batch_tokens;
  config.threads = check_threads(setup->threads);
  config.context_tokens = setup->context_tokens;
  config.beyond_trained = true;
  config.k_type = config.v_type = setup->kv_type;
  if (!CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) return NULL;
  if (!CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK)) {
    CHECK_EQ_STR(error.message, "");
    wick_engine_destroy(engine);
    return NULL;
  }
  return engine;
}

static inline void media_take_logits(void *context, uint32_t position, const float *logits,
                                     uint32_t vocab) {
  media_result *result = context;
  (void)position;
  if (result->logits_count == result->logits_max) {
    result->logits_max = result->logits_max == 0 ? 64 : 2 * result->logits_max;
    result->logits = realloc(result->logits, (size_t)result->logits_max * vocab * sizeof *logits);
  }
  result->vocab = vocab;
  memcpy(result->logits + (size_t)result->logits_count++ * vocab, logits, vocab * sizeof *logits);
}

typedef struct media_listener {
  uint32_t id;
  media_result *result;
} media_listener;

static inline void media_take(void *context, const wick_event *event, const uint8_t *after) {
  const media_listener *listener = context;
  media_result *result = listener->result;
  if (event->request != listener->id) return;
  if (event->kind == WICK_EVENT_TOKEN && result->said_count < MEDIA_SAID_MAX) {
    result->said[result->said_count++] = event->token;
  }
  if (event->kind != WICK_EVENT_DONE) return;
  result->cached = event->tokens_cached;
  if (event->finish == WICK_FINISH_ERROR) {
    result->error.status = (wick_status)event->status;
    memcpy(result->error.message, after, event->text_bytes);
  }
}

// Steps until the engine is idle; stores the output of request `id` in `result`.
static inline void media_steps(wick_engine *engine, uint32_t id, media_result *result) {
  media_listener listener = {id, result};
  fixture_run(engine, media_take, &listener);
}

// Returns a greedy request for `tokens` tokens.
static inline wick_request media_request(uint32_t tokens) {
  wick_request request;
  wick_request_default(&request);
  request.sampling.temperature = 0;
  request.max_tokens = tokens;
  request.ignore_end = true;
  return request;
}

// Runs a prompt. with_logits requests the logits of all text positions, which bypasses the prefix
// cache.
static inline media_result media_run(wick_engine *engine, const prompt_parts *prompt,
                                     uint32_t session, bool with_logits) {
  media_result result = {0};
  wick_request request = media_request(MEDIA_SAID_MAX);
  request.session = session;
  if (with_logits) {
    request.on_logits = media_take_logits;
    request.on_logits_context = &result;
  }
  uint32_t id = 0;
  const wick_status status =
      engine_submit_parts(engine, &request, prompt->parts, prompt->count, &id, &result.error);
  if (status == WICK_OK) media_steps(engine, id, &result);
  return result;
}

#endif
