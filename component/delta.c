// component/delta.c — see delta.h.
#include "delta.h"

#include <stdio.h>

delta delta_of(const wick_event *event) {
  const wick_text text = {wick_event_text(event), event->text_bytes};
  delta made = {.call_index = event->call, .call_arguments = {"", 0}};
  made.is_call = event->kind == WICK_EVENT_CALL || event->kind == WICK_EVENT_ARGUMENTS;
  if (event->kind == WICK_EVENT_CONTENT) made.content = text;
  if (event->kind == WICK_EVENT_REASONING) made.reasoning = text;
  if (event->kind == WICK_EVENT_ARGUMENTS) made.call_arguments = text;
  if (event->kind == WICK_EVENT_CALL) {
    made.call_name = (wick_text){text.bytes, event->name_bytes};
    snprintf(made.call_id, sizeof made.call_id, "%.*s", (int)(text.size_bytes - event->name_bytes),
             text.bytes + event->name_bytes);
  }
  return made;
}

static void write_call(json_writer *json, const delta *piece) {
  const bool begins = piece->call_name.bytes != NULL;
  json_open(json, "tool_calls", '[');
  json_open(json, NULL, '{');
  json_u64(json, "index", piece->call_index);
  if (begins) json_text(json, "id", piece->call_id);
  if (begins) json_text(json, "type", "function");
  json_open(json, "function", '{');
  if (begins) json_string(json, "name", piece->call_name.bytes, piece->call_name.size_bytes);
  json_string(json, "arguments", piece->call_arguments.bytes, piece->call_arguments.size_bytes);
  json_close(json, '{');
  json_close(json, '{');
  json_close(json, '[');
}

void delta_write(json_writer *json, const delta *piece) {
  const wick_text content = piece->content, reasoning = piece->reasoning;
  if (piece->is_call) write_call(json, piece);
  if (reasoning.bytes != NULL) {
    json_string(json, "reasoning_content", reasoning.bytes, reasoning.size_bytes);
  }
  if (content.bytes != NULL) json_string(json, "content", content.bytes, content.size_bytes);
}
