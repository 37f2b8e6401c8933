// A chat with a model: chat MODEL.gguf QUESTION..., each question a turn.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wick.h"

static char chat_json[1 << 16];  // the conversation
static size_t chat_bytes;

static void add(const char *text, size_t size_bytes, bool escapes) {
  for (size_t i = 0; i < size_bytes; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (chat_bytes + 8 > sizeof chat_json) exit(puts("the chat is too long"));
    if (escapes && (c < ' ' || c == '"' || c == '\\')) {
      chat_bytes += (size_t)snprintf(chat_json + chat_bytes, 8, "\\u%04x", c);
    } else {
      chat_json[chat_bytes++] = (char)c;
    }
  }
}

static void add_json(const char *json) { add(json, strlen(json), false); }

static void check(wick_status status, const wick_error *error) {
  if (status == WICK_OK) return;
  fprintf(stderr, "%s: %s\n", wick_status_name(status), error->message);
  exit(1);
}

// Prints the answer while it is written, and adds it to the conversation: without the reasoning.
static void answer(wick_engine *engine) {
  wick_step_result result;
  do {
    result = wick_step(engine, 10000);
    size_t size_bytes;
    const uint8_t *events = wick_events_take(engine, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      if (event->kind != WICK_EVENT_CONTENT) continue;
      fwrite(wick_event_text(event), 1, event->text_bytes, stdout);
      add(wick_event_text(event), event->text_bytes, true);
    }
    fflush(stdout);
  } while (result != WICK_STEP_IDLE);
}

static void ask(wick_engine *engine, const char *question) {
  wick_error error;
  add_json(chat_bytes == 0 ? "{\"messages\":[" : ",");
  add_json("{\"role\":\"user\",\"content\":\""), add(question, strlen(question), true);
  add_json("\"}]}");

  const wick_conversation conversation = {.chat = {.json = chat_json, .json_bytes = chat_bytes}};
  wick_request request;
  wick_request_default(&request);
  request.conversation = &conversation;
  request.max_tokens = 256;
  uint32_t id;
  check(wick_request_submit(engine, &request, &id, &error), &error);

  chat_bytes -= strlen("]}");
  add_json(",{\"role\":\"assistant\",\"content\":\"");
  answer(engine);
  add_json("\"}");
  puts("");
}

int main(int argc, char **argv) {
  if (argc < 3) return puts("usage: chat MODEL.gguf QUESTION..."), 1;
  wick_error error = {0};
  wick_config config;
  wick_config_default(&config);
  config.threads = 2;
  wick_engine *engine;
  wick_status status = wick_engine_create(&config, &engine, &error);
  if (error.subject == WICK_SUBJECT_THREADS) {  // WASI, and Emscripten without -pthread
    config.threads = 1;
    status = wick_engine_create(&config, &engine, &error);
  }
  check(status, &error);
  check(wick_load_file(engine, argv[1], &error), &error);
  for (int i = 2; i < argc; i++) ask(engine, argv[i]);
  wick_engine_destroy(engine);
  return 0;
}
