// api/reply.c — replies split into their parts, as wick.h offers them: room reply's events as JSON.
#include <string.h>

#include "api/insides.h"
#include "base/json.h"
#include "reply/forms.h"

struct wick_reply {
  memory_gate *memory;
  reply_tools *tools;
  reply_parser *parser;
  json_writer json;
  char *bytes;  // the deltas
  size_t size_bytes, capacity;
  bool is_short;  // of memory
};

wick_status wick_reply_create(wick_engine *engine, const char *tools, size_t tools_bytes,
                              const char *ending, size_t ending_bytes, wick_reply **out,
                              wick_error *error) {
  wick_reply *reply = memory_alloc_zeroed(&engine->memory, sizeof *reply);
  if (reply == NULL) return memory_fail(&engine->memory, error, "a reply");
  const reply_format format = engine_reply_format(engine, tools, tools_bytes);
  wick_status status = WICK_OK;
  reply->memory = &engine->memory;
  if (tools != NULL) {
    status = reply_tools_create(&engine->memory, tools, tools_bytes, &reply->tools, error);
  }
  if (status == WICK_OK) {
    status = reply_parser_create(&engine->memory, &format, reply->tools, ending, ending_bytes,
                                 &reply->parser, error);
  }
  if (status == WICK_OK) {
    *out = reply;
  } else {
    wick_reply_destroy(reply);
  }
  return status;
}

void wick_reply_destroy(wick_reply *reply) {
  if (reply == NULL) return;
  reply_parser_destroy(reply->parser);
  reply_tools_destroy(reply->tools);
  memory_free(reply->memory, reply->bytes);
  memory_free(reply->memory, reply);
}

static void put(void *context, const char *bytes, size_t size_bytes) {
  wick_reply *reply = context;
  while (!reply->is_short && reply->capacity - reply->size_bytes < size_bytes) {
    const size_t wanted = reply->capacity == 0 ? 512 : 2 * reply->capacity;
    char *larger = memory_resize(reply->memory, reply->bytes, wanted);
    reply->is_short = larger == NULL;
    if (larger == NULL) break;
    reply->bytes = larger;
    reply->capacity = wanted;
  }
  if (reply->is_short) return;
  memcpy(reply->bytes + reply->size_bytes, bytes, size_bytes);
  reply->size_bytes += size_bytes;
}

static void put_call(json_writer *json, const reply_event *event) {
  const bool begins = event->kind == REPLY_CALL_BEGINS;
  json_open(json, "tool_calls", '[');
  json_open(json, NULL, '{');
  json_u64(json, "index", event->call);
  if (begins) json_string(json, "id", event->id, event->id_bytes);
  if (begins) json_text(json, "type", "function");
  json_open(json, "function", '{');
  if (begins) json_string(json, "name", event->text, event->text_bytes);
  json_string(json, "arguments", event->text, begins ? 0 : event->text_bytes);
  json_close(json, '{');
  json_close(json, '{');
  json_close(json, '[');
}

static void take(void *context, const reply_event *event) {
  wick_reply *reply = context;
  json_writer *json = &reply->json;
  if (event->kind == REPLY_CALL_ENDS) return;
  json_open(json, NULL, '{');
  if (event->kind == REPLY_CONTENT) {
    json_string(json, "content", event->text, event->text_bytes);
  } else if (event->kind == REPLY_REASONING) {
    json_string(json, "reasoning_content", event->text, event->text_bytes);
  } else {
    put_call(json, event);
  }
  json_close(json, '{');
}

wick_status wick_reply_read(wick_reply *reply, const char *text, size_t text_bytes, bool is_last,
                            wick_text *deltas, wick_error *error) {
  reply->size_bytes = 0;
  json_begin(&reply->json, put, reply);
  json_open(&reply->json, NULL, '[');
  wick_status status = reply_parser_feed(reply->parser, text, text_bytes, take, reply, error);
  if (status == WICK_OK && is_last) status = reply_parser_end(reply->parser, take, reply, error);
  json_close(&reply->json, '[');
  *deltas = (wick_text){reply->bytes, reply->size_bytes};
  if (!reply->is_short) return status;
  *deltas = (wick_text){"[]", 2};
  return memory_fail(reply->memory, error, "a reply");
}

// ---- grammars ----

// The part of the content that is in the prompt: a beginning may close the reasoning first.
static wick_text begun_content(const reply_format *format, const wick_grammar *wanted) {
  const char *close = REPLY_THOUGHTS[format->thought].close;
  const size_t close_bytes = strlen(close);
  wick_text begun = {wanted->begun, wanted->begun_bytes};
  for (size_t end = begun.size_bytes; close_bytes != 0 && end >= close_bytes; end--) {
    if (memcmp(begun.bytes + end - close_bytes, close, close_bytes) != 0) continue;
    while (end < begun.size_bytes && json_is_space((uint8_t)begun.bytes[end])) end++;
    return (wick_text){begun.bytes + end, begun.size_bytes - end};
  }
  return begun;
}

wick_status engine_complete_grammar(wick_engine *engine, const wick_grammar *wanted,
                                    wick_grammar *out, char **owned, wick_error *error) {
  *owned = NULL;
  *out = *wanted;
  if (wanted->kind != WICK_GRAMMAR_TOOLS || engine == NULL) return WICK_OK;
  const reply_format format = engine_reply_format(engine, wanted->text, wanted->text_bytes);
  json_room text = {0};
  reply_grammar_write(&format, wanted->text, wanted->text_bytes, json_room_put, &text);
  const size_t size_bytes = text.size_bytes;
  *owned = memory_alloc(&engine->memory, size_bytes);
  if (*owned == NULL) return memory_fail(&engine->memory, error, "a grammar's text");
  text = (json_room){.bytes = *owned};
  reply_grammar_write(&format, wanted->text, wanted->text_bytes, json_room_put, &text);
  const wick_text begun = begun_content(&format, wanted);
  out->text = *owned;
  out->text_bytes = size_bytes;
  out->begun = begun.bytes;
  out->begun_bytes = begun.size_bytes;
  return WICK_OK;
}
