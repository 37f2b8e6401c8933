// A chat with a model: chat MODEL.gguf QUESTION..., each question a turn. Reasoning goes to stderr.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick.h"

static char chat_json[1 << 16];  // the conversation
static size_t chat_bytes;
static wick_error error;

static void fail(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

static void check(wick_status status) {
  if (status != WICK_OK) fail(error.message);
}

static void add(const char *text, size_t size_bytes, bool is_json) {
  for (size_t i = 0; i < size_bytes; i++) {
    const unsigned char c = (unsigned char)text[i];
    const bool escapes = !is_json && (c < ' ' || c == '"' || c == '\\');
    if (chat_bytes + 9 > sizeof chat_json) fail("the chat is too long");
    chat_bytes += (size_t)snprintf(chat_json + chat_bytes, 7, escapes ? "\\u%04x" : "%c", c);
  }
}

static void add_json(const char *json) { add(json, strlen(json), true); }

// Answers a question. The answer becomes part of the conversation, its reasoning does not.
static void ask(wick_engine *engine, const char *question) {
  add_json(chat_bytes == 0 ? "{\"messages\":[" : ",");
  add_json("{\"role\":\"user\",\"content\":\""), add(question, strlen(question), false);
  add_json("\"}");
  memcpy(chat_json + chat_bytes, "]}", 2);
  const wick_conversation conversation = {
      .chat = {.json = chat_json, .json_bytes = chat_bytes + 2}};
  wick_request request;
  wick_request_default(&request);
  request.conversation = &conversation, request.max_tokens = 256;
  uint32_t id;
  check(wick_request_submit(engine, &request, &id, &error));
  add_json(",{\"role\":\"assistant\",\"content\":\"");
  wick_step_result result;
  do {
    result = wick_step(engine, 10000);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      const bool is_content = event->kind == WICK_EVENT_CONTENT;
      if (event->kind == WICK_EVENT_DONE && event->finish == WICK_FINISH_ERROR) {
        snprintf(error.message, sizeof error.message, "%.*s", (int)event->text_bytes,
                 wick_event_text(event));
        fail(error.message);
      }
      if (!is_content && event->kind != WICK_EVENT_REASONING) continue;
      fwrite(wick_event_text(event), 1, event->text_bytes, is_content ? stdout : stderr);
      if (is_content) add(wick_event_text(event), event->text_bytes, false);
    }
    fflush(stdout);
  } while (result != WICK_STEP_IDLE);
  add_json("\"}");
  puts("");
}

int main(int argc, char **argv) {
  if (argc < 3) return puts("usage: chat MODEL.gguf QUESTION..."), 1;
  const wick_config config = {.threads = 0};
  wick_engine *engine;
  check(wick_engine_create(&config, &engine, &error));
  check(wick_load_file(engine, argv[1], &error));
  for (int i = 2; i < argc; i++) ask(engine, argv[i]);
  wick_engine_destroy(engine);
  return 0;
}
