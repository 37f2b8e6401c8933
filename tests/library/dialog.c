// Tests dialogs of the C library. Usage: dialog MODEL.gguf. Prints "ok" if all checks pass.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick.h"

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("line %d: %s; %s\n", __LINE__, #condition, error.message); \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

static wick_error error;

// A reply, and the number of pieces to accept.
typedef struct collected {
  char text[4096];
  size_t bytes;
  unsigned pieces, pieces_max;
} collected;

static bool collect(void *context, wick_event_kind kind, const char *text, size_t text_bytes) {
  collected *all = context;
  if (kind != WICK_EVENT_CONTENT || all->bytes + text_bytes >= sizeof all->text) return false;
  memcpy(all->text + all->bytes, text, text_bytes);
  all->bytes += text_bytes;
  return ++all->pieces != all->pieces_max;
}

// Returns the answer to messages in JSON, and the number of cached prompt tokens.
static collected answer(wick_engine *engine, const char *json, const wick_request *settings) {
  const wick_conversation asked = {.chat = {.json = json, .json_bytes = strlen(json)}};
  wick_request request = *settings;
  request.conversation = &asked;
  collected all = {.bytes = 0};
  uint32_t id;
  CHECK(wick_request_submit(engine, &request, &id, &error) == WICK_OK);
  while (wick_step(engine, 10000) != WICK_STEP_IDLE || all.pieces_max == 0) {
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (event->kind == WICK_EVENT_DONE) all.pieces_max = 1;
      if (event->kind == WICK_EVENT_CONTENT) {
        memcpy(all.text + all.bytes, wick_event_text(event), event->text_bytes);
        all.bytes += event->text_bytes;
      }
    }
  }
  return all;
}

static bool equal(const collected *a, const collected *b) {
  return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
}

int main(int argc, char **argv) {
  const wick_config config = {.threads = 1};
  wick_engine *engine;
  wick_dialog *dialog;
  CHECK(argc == 2);
  CHECK(wick_engine_create(&config, &engine, &error) == WICK_OK);
  CHECK(wick_dialog_create(engine, NULL, &dialog, &error) == WICK_E_NODATA && dialog == NULL);
  wick_dialog_destroy(dialog);
  CHECK(wick_load_file(engine, argv[1], &error) == WICK_OK);
  wick_request settings;
  wick_request_default(&settings);
  settings.max_tokens = 12;

  // the answer equals that of a request with the same messages, which contain quotes and control
  // characters
  CHECK(wick_dialog_create(engine, "Answer \"briefly\".", &dialog, &error) == WICK_OK);
  collected first = {.bytes = 0}, second = {.bytes = 0};
  CHECK(wick_dialog_ask(dialog, "a\tfox\n", &settings, collect, &first, &error) == WICK_OK);
  const char *messages =
      "{\"messages\":[{\"role\":\"system\",\"content\":\"Answer \\\"briefly\\\".\"},"
      "{\"role\":\"user\",\"content\":\"a\\tfox\\n\"}]}";
  collected wanted = answer(engine, messages, &settings);
  CHECK(first.bytes > 0 && first.pieces > 1 && equal(&first, &wanted));

  // an error leaves the dialog unchanged: the next question gets the same reply as without it
  settings.sampling.temperature = -1;
  CHECK(wick_dialog_ask(dialog, "lost", &settings, collect, &second, &error) == WICK_E_ARG);
  settings.sampling.temperature = 0;
  uint32_t id;
  wick_request other = settings;
  other.text = "once upon a time", other.text_bytes = strlen(other.text);
  CHECK(wick_request_submit(engine, &other, &id, &error) == WICK_OK);
  CHECK(wick_dialog_ask(dialog, "lost", &settings, collect, &second, &error) == WICK_E_BUSY);
  size_t size_bytes;
  while (wick_step(engine, 10000) != WICK_STEP_IDLE) wick_events_take(engine, &size_bytes);
  wick_events_take(engine, &size_bytes);
  CHECK(second.bytes == 0);
  CHECK(wick_dialog_ask(dialog, "a hen", &settings, collect, &second, &error) == WICK_OK);
  wick_dialog *twin;
  collected again = {.bytes = 0};
  CHECK(wick_dialog_create(engine, "Answer \"briefly\".", &twin, &error) == WICK_OK);
  CHECK(wick_dialog_ask(twin, "a\tfox\n", &settings, NULL, NULL, &error) == WICK_OK);
  CHECK(wick_dialog_ask(twin, "a hen", &settings, collect, &again, &error) == WICK_OK);
  CHECK(second.bytes > 0 && equal(&second, &again));
  wick_dialog_destroy(twin);

  // a callback that returns false ends the reply; the text so far stays in the dialog
  collected some = {.pieces_max = 2};
  CHECK(wick_dialog_ask(dialog, "more", &settings, collect, &some, &error) == WICK_OK);
  CHECK(some.pieces >= 2 && some.pieces < 12);
  CHECK(wick_dialog_ask(dialog, "and more", NULL, NULL, NULL, &error) == WICK_OK ||
        error.status == WICK_E_FULL);
  wick_dialog_destroy(dialog);
  wick_engine_destroy(engine);
  puts("ok");
  return 0;
}
