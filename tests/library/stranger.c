// A program that uses only the installed files, valid in C17 and C++20. Usage: stranger MODEL.gguf
// THREADS TOKENS PROMPT [file]. It prints the continuation of the prompt. The model is loaded from
// memory, or from its files if "file" is given.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick.h"

#define WAIT_STEPS_MAX 100000000

static int fail(const wick_error *error) {
  fprintf(stderr, "%s: %s\n", wick_status_name(error->status), error->message);
  return 1;
}

static void *read_all(const char *path, size_t *size_bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size_bytes = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size_bytes);
  if (bytes != NULL && fread(bytes, 1, *size_bytes, file) != *size_bytes) *size_bytes = 0;
  fclose(file);
  return bytes;
}

static wick_status load(wick_engine *engine, const char *path, bool is_by_file, wick_error *error) {
  if (is_by_file) return wick_load_file(engine, path, error);
  size_t size_bytes = 0;
  void *model = read_all(path, &size_bytes);
  const wick_status status = wick_load_bytes(engine, model, size_bytes, error);
  free(model);
  return status;
}

static void print_text(wick_engine *engine) {
  wick_step_result result;
  do {
    result = wick_step(engine, 10000);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      fwrite(wick_event_text(event), 1, event->text_bytes, stdout);
    }
  } while (result != WICK_STEP_IDLE);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc < 5 || wick_version() != WICK_VERSION) return 2;
  wick_error error;
  wick_config config;
  wick_config_default(&config);
  config.threads = (uint32_t)atoi(argv[2]);
  wick_engine *engine;
  if (wick_engine_create(&config, &engine, &error) != WICK_OK) return fail(&error);
  if (load(engine, argv[1], argc > 5, &error) != WICK_OK) return fail(&error);
  for (int i = 0; i < WAIT_STEPS_MAX && wick_engine_threads(engine) < config.threads; i++) {
  }
  wick_request request;
  wick_request_default(&request);
  request.text = argv[4];
  request.text_bytes = strlen(argv[4]);
  request.max_tokens = (uint32_t)atoi(argv[3]);
  uint32_t id;
  if (wick_request_submit(engine, &request, &id, &error) != WICK_OK) return fail(&error);
  printf("threads %u:", (unsigned)wick_engine_threads(engine));
  print_text(engine);
  wick_engine_destroy(engine);
  return 0;
}
