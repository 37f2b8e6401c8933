// tools/bench/library.c — measures the speed of a program that links libwick.a (library.mjs):
//   library MODEL.gguf PROMPT_TOKENS TOKENS RUNS
// Prints the best decode and prefill speeds of the runs, in tokens per second, as JSON.
#include <stdio.h>
#include <stdlib.h>

#include "wick.h"

typedef struct best {
  double decode, prefill;
} best;

static void fail(const wick_error *error) {
  fprintf(stderr, "%s: %s\n", wick_status_name(error->status), error->message);
  exit(1);
}

static double faster(double one, double other) { return one > other ? one : other; }

// Works until the request is done.
static void finish(wick_engine *engine, best *found) {
  wick_step_result result;
  do {
    result = wick_step(engine, 10000);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (event->kind != WICK_EVENT_DONE) continue;
      found->decode = faster(found->decode, (event->tokens_out - 1) / event->decode_ms * 1e3);
      found->prefill = faster(found->prefill, event->tokens_prompt / event->prefill_ms * 1e3);
    }
  } while (result != WICK_STEP_IDLE);
}

static void ask(wick_engine *engine, const int32_t *prompt, size_t count, uint32_t tokens,
                best *found) {
  wick_request request;
  wick_request_default(&request);
  request.tokens = prompt;
  request.token_count = count;
  request.max_tokens = tokens;
  request.ignore_end = true;
  request.no_speculation = true;
  uint32_t id;
  wick_error error;
  if (wick_request_submit(engine, &request, &id, &error) != WICK_OK) fail(&error);
  finish(engine, found);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  const size_t count = (size_t)atoi(argv[2]);
  const uint32_t tokens = (uint32_t)atoi(argv[3]);
  const int runs = atoi(argv[4]);
  wick_config config;
  wick_config_default(&config);
  config.no_prefix_cache = true;
  wick_engine *engine;
  wick_error error;
  if (wick_engine_create(&config, &engine, &error) != WICK_OK) fail(&error);
  if (wick_load_file(engine, argv[1], &error) != WICK_OK) fail(&error);
  const uint32_t vocab = wick_tokenizer_vocab(engine);
  int32_t *prompt = calloc(count, sizeof *prompt);
  if (prompt == NULL) return 1;
  best warm = {0, 0}, found = {0, 0};
  for (int run = 0; run < runs + 1; run++) {
    for (size_t i = 0; i < count; i++) {
      prompt[i] = (int32_t)((i * 31 + (size_t)run * 977) % vocab);
    }
    ask(engine, prompt, count, tokens, run == 0 ? &warm : &found);
  }
  free(prompt);
  wick_engine_destroy(engine);
  printf("{\"decode\": %.3f, \"prefill\": %.3f}\n", found.decode, found.prefill);
  return 0;
}
