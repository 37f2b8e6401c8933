// Collects the output of requests from their events, and compares two outputs. The including file
// defines OUT_TOKENS, TEXT_BYTES_MAX and RUNS.
#ifndef WICK_TESTS_SAID_H
#define WICK_TESTS_SAID_H

#include <stdio.h>

#include "fixture_model.h"

typedef struct said {
  uint32_t id, finish, status, subject;
  bool has_ended;
  uint32_t count;
  int32_t tokens[OUT_TOKENS];
  float logprobs[OUT_TOKENS];
  char text[TEXT_BYTES_MAX];
  size_t text_bytes;
  uint64_t calls_first, calls_last;  // number of allocator calls
  const wick_engine *engine;
} said;

static said alone[RUNS], together[RUNS];

static void take_event(void *context, const wick_event *event, const uint8_t *after) {
  said *of = NULL;
  for (said *at = context; of == NULL && at < (said *)context + RUNS; at++) {
    if (at->id == event->request) of = at;
  }
  const bool is_part =
      event->kind >= WICK_EVENT_CONTENT;  // the text of parts is repeated in other events
  if (!CHECK(of != NULL) || event->kind == WICK_EVENT_PREFILL || is_part) return;
  of->calls_last = of->engine->memory.calls;
  if (CHECK(of->text_bytes + event->text_bytes < TEXT_BYTES_MAX)) {
    memcpy(of->text + of->text_bytes, after + event->top_count * 8, event->text_bytes);
    of->text_bytes += event->text_bytes;
  }
  if (event->kind == WICK_EVENT_TOKEN && CHECK(of->count < OUT_TOKENS)) {
    if (of->count == 0) of->calls_first = of->calls_last;
    of->logprobs[of->count] = event->logprob;
    of->tokens[of->count++] = event->token;
  }
  if (event->kind != WICK_EVENT_DONE) return;
  CHECK(!of->has_ended);
  of->has_ended = true;
  of->finish = event->finish;
  of->status = event->status;
  of->subject = event->subject;
}

static const fixture_shape SAID_SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 2, 512, false, 0};

static wick_engine *open_engine(uint32_t kv_tokens, const wick_swap_host *swap) {
  fixture_file file = fixture_make(&SAID_SHAPE);
  wick_config config;
  wick_config_default(&config);
  config.kv_tokens_max = kv_tokens;
  config.context_tokens = 160;
  config.swap = swap;
  wick_engine *engine = NULL;
  wick_error error = {0};
  if (CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) {
    CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  }
  free(file.bytes);
  return engine;
}

static void submit(wick_engine *engine, const wick_request *wanted, said *of) {
  wick_error error = {0};
  memset(of, 0, sizeof *of);
  of->engine = engine;
  if (!CHECK_EQ_INT(wick_request_submit(engine, wanted, &of->id, &error), WICK_OK)) {
    printf("# %s\n", error.message);
  }
}

static void check_same(const said *a, const said *b) {
  CHECK_EQ_UINT(a->finish, b->finish);
  CHECK_EQ_UINT(a->count, b->count);
  CHECK_EQ_MEM(a->tokens, b->tokens, b->count * sizeof *b->tokens);
  CHECK_EQ_MEM(a->logprobs, b->logprobs, b->count * sizeof *b->logprobs);
  CHECK_EQ_UINT(a->text_bytes, b->text_bytes);
  CHECK_EQ_MEM(a->text, b->text, b->text_bytes);
}

#endif
