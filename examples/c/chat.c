// Chats with a model: chat MODEL.gguf QUESTION..., one turn per question. Reasoning is written to
// stderr.
#include <stdio.h>

#include "wick.h"

static bool show(void *context, wick_event_kind kind, const char *text, size_t text_bytes) {
  FILE *to = kind == WICK_EVENT_CONTENT ? context : stderr;
  return fwrite(text, 1, text_bytes, to) == text_bytes && fflush(to) == 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return puts("usage: chat MODEL.gguf QUESTION..."), 1;
  const wick_config config = {.threads = 0};
  wick_request settings;
  wick_request_default(&settings);
  settings.max_tokens = 256;
  wick_engine *engine = NULL;
  wick_dialog *dialog = NULL;
  wick_error error;
  wick_status status = wick_engine_create(&config, &engine, &error);
  if (status == WICK_OK) status = wick_load_file(engine, argv[1], &error);
  if (status == WICK_OK) status = wick_dialog_create(engine, NULL, &dialog, &error);
  for (int i = 2; i < argc && status == WICK_OK; i++, puts("")) {
    status = wick_dialog_ask(dialog, argv[i], &settings, show, stdout, &error);
  }
  if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
  wick_dialog_destroy(dialog);
  wick_engine_destroy(engine);
  return status != WICK_OK;
}
