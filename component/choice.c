// component/choice.c — one completion of a running request.
#include "choice.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/math.h"
#include "platform/platform.h"
#include "shape.h"

void random_name(char name[RANDOM_NAME_BYTES]) {
  uint8_t bytes[RANDOM_NAME_BYTES - 1];
  platform_random(bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; i++) {
    name[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[bytes[i] % 36];
  }
  name[RANDOM_NAME_BYTES - 1] = '\0';
}

// ---- replies ----

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

// Emits a part. `broken`: a malformed call before it, or NULL.
static void give_part(const wick_event *event, const wick_event *broken, choice *from,
                      delta_sink sink, void *context) {
  const bool begins = event->kind == WICK_EVENT_CALL;
  delta piece = delta_of(event);
  if (begins && piece.call_id[0] == '\0') {
    char made[RANDOM_NAME_BYTES];
    random_name(made);
    // some templates require call ids with nine letters and digits
    snprintf(piece.call_id, sizeof piece.call_id, "%.9s", made);
  }
  if (broken != NULL) piece.call_index = broken->call;
  piece.breaks_calls = broken != NULL;
  from->has_called = (from->has_called || begins) && broken == NULL;
  if (event->kind != WICK_EVENT_CALL_END) sink(context, from, &piece);
}

static const wick_event *next_of(const wick_event *event) {
  return (const wick_event *)(const void *)((const uint8_t *)event + event->size_bytes);
}

void choice_read(choice *from, const wick_event *event, delta_sink sink, void *context) {
  const wick_event *part = from->parts, *broken = NULL;
  from->parts = NULL;
  if (!from->has_parts) {
    const delta piece = {.content = {wick_event_text(event), event->text_bytes}};
    if (event->text_bytes > 0) sink(context, from, &piece);
    return;
  }
  for (; part != NULL && part != event; part = next_of(part)) {
    if (part->kind == WICK_EVENT_CALL_BROKEN) {
      broken = part;
    } else {
      give_part(part, broken, from, sink, context);
    }
  }
}

// ---- responses that are not streamed ----

static call *call_at(choice *to, uint32_t index) {
  if (index < to->call_count) return &to->calls[index];
  if (to->call_count == to->call_capacity) {
    const uint32_t capacity = to->call_capacity * 2 + 4;
    call *grown = realloc(to->calls, capacity * sizeof *grown);
    if (grown == NULL) {
      to->content.has_failed = true;
      return NULL;
    }
    to->calls = grown;
    to->call_capacity = capacity;
  }
  to->calls[to->call_count] = (call){0};
  return &to->calls[to->call_count++];
}

static void drop_calls(choice *from, uint32_t count) {
  while (from->call_count > count) {
    call *last = &from->calls[--from->call_count];
    buffer_free(&last->name);
    buffer_free(&last->arguments);
  }
}

void choice_keep(void *nothing, choice *to, const delta *piece) {
  (void)nothing;
  if (piece->breaks_calls) drop_calls(to, piece->call_index);
  buffer_put(&to->content, piece->content.bytes, piece->content.size_bytes);
  buffer_put(&to->reasoning, piece->reasoning.bytes, piece->reasoning.size_bytes);
  call *called = piece->is_call ? call_at(to, piece->call_index) : NULL;
  if (called == NULL) return;
  if (piece->call_name.bytes != NULL) {
    snprintf(called->id, sizeof called->id, "%s", piece->call_id);
    buffer_put(&called->name, piece->call_name.bytes, piece->call_name.size_bytes);
  }
  buffer_put(&called->arguments, piece->call_arguments.bytes, piece->call_arguments.size_bytes);
}

static void free_details(details *held) {
  for (uint32_t i = 0; i < 4; i++) buffer_free(&held->lists[i]);
}

void choice_free(choice *from) {
  drop_calls(from, 0);
  free(from->calls);
  buffer_free(&from->content);
  buffer_free(&from->reasoning);
  free_details(&from->details);
  free_details(&from->echo);
}

// ---- logprobs ----

wick_text token_bytes(wick_engine *engine, int32_t token, char scratch[TOKEN_BYTES_MAX]) {
  wick_text text = {"", 0};
  wick_error error;
  if (wick_detokenize_bytes_max(engine, 0) <= TOKEN_BYTES_MAX) {
    wick_token_bytes(engine, token, scratch, &text, &error);
  }
  return text;
}

// Writes a token as an object, without the closing bracket.
static void open_token(buffer *out, wick_engine *engine, wick_logprob of, details_form form) {
  char scratch[TOKEN_BYTES_MAX];
  const wick_text text = token_bytes(engine, of.token, scratch);
  buffer_put_text(out, "{");
  if (form != DETAILS_CHAT) shape_put(out, "'id':%d,", of.token);
  if (form == DETAILS_PROBABILITIES) {
    shape_put(out, "'token':%t,'prob':%f,'bytes':%y", text, math_exp((double)of.logprob), text);
  } else {
    shape_put(out, "'token':%t,'logprob':%g,'bytes':%y", text, (double)of.logprob, text);
  }
}

static void add_object(details *to, wick_engine *engine, const wick_event *event,
                       uint32_t alternatives, details_form form) {
  buffer *out = &to->tokens;
  open_token(out, engine, (wick_logprob){event->token, event->logprob}, form);
  shape_put(out, form == DETAILS_PROBABILITIES ? ",'top_probs':[" : ",'top_logprobs':[");
  for (uint32_t i = 0; i < alternatives && i < event->top_count; i++) {
    if (i > 0) buffer_put_text(out, ",");
    open_token(out, engine, wick_event_top(event, i), form);
    buffer_put_text(out, "}");
  }
  buffer_put_text(out, "]}");
}

// Returns the UTF-16 length of UTF-8 text; invalid bytes count one each.
static uint32_t units_of(wick_text text) {
  uint32_t units = 0;
  for (size_t i = 0; i < text.size_bytes; i++) {
    const uint8_t byte = (uint8_t)text.bytes[i];
    units += (byte & 0xc0) != 0x80 ? 1 + (byte >= 0xf0) : 0;
  }
  return units;
}

uint32_t details_units(wick_engine *engine, int32_t token) {
  char scratch[TOKEN_BYTES_MAX];
  return units_of(token_bytes(engine, token, scratch));
}

void details_add_first(details *to, wick_engine *engine, int32_t token) {
  char scratch[TOKEN_BYTES_MAX];
  const wick_text text = token_bytes(engine, token, scratch);
  shape_put(&to->tokens, "%t", text);
  buffer_put_text(&to->logprobs, "null");
  buffer_put_text(&to->tops, "null");
  buffer_put_text(&to->offsets, "0");
  to->text_units = units_of(text);
}

static void add_text(details *to, wick_engine *engine, const wick_event *event,
                     uint32_t alternatives) {
  char scratch[TOKEN_BYTES_MAX];
  const wick_text text = token_bytes(engine, event->token, scratch);
  shape_put(&to->tokens, "%t", text);
  shape_put(&to->logprobs, "%g", (double)event->logprob);
  shape_put(&to->offsets, "%u", to->text_units);
  to->text_units += units_of(text);
  buffer_put_text(&to->tops, "{");
  for (uint32_t i = 0; i < alternatives && i < event->top_count; i++) {
    const wick_logprob top = wick_event_top(event, i);
    shape_put(&to->tops, "%r%t:%g", i > 0 ? "," : "", token_bytes(engine, top.token, scratch),
              (double)top.logprob);
  }
  buffer_put_text(&to->tops, "}");
}

void details_add(details *to, wick_engine *engine, const wick_event *event, uint32_t alternatives,
                 details_form form) {
  const bool has_items = to->tokens.size_bytes > 0;
  for (uint32_t i = 0; has_items && i < (form == DETAILS_TEXT ? 4 : 1); i++) {
    buffer_put_text(&to->lists[i], ",");
  }
  if (form == DETAILS_TEXT) add_text(to, engine, event, alternatives);
  if (form != DETAILS_TEXT) add_object(to, engine, event, alternatives, form);
}

void details_clear(details *held) {
  for (uint32_t i = 0; i < 4; i++) buffer_clear(&held->lists[i]);
}
