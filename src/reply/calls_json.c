// reply/calls_json.c — calls as JSON: {"name": NAME, "arguments": {...}} or a list of such objects,
// with the alternative names that models use for these members.
#include <string.h>

#include "reply/parser.h"

enum {
  AT_START,
  AT_ITEM,
  AT_FIRST_KEY,
  AT_KEY,
  IN_KEY,
  AT_COLON,
  AT_VALUE,
  IN_NAME,
  IN_ID,
  IN_ARGUMENTS,
  IN_OTHER,
  AFTER_VALUE,
  AFTER_ITEM
};

enum { MEMBER_OTHER, MEMBER_NAME, MEMBER_ID, MEMBER_ARGUMENTS, MEMBER_FUNCTION };

static uint8_t member_of(const reply_text *key) {
  static const struct {
    const char *name;
    uint8_t member;
  } MEMBERS[] = {{"name", MEMBER_NAME},
                 {"tool_name", MEMBER_NAME},
                 {"id", MEMBER_ID},
                 {"tool_call_id", MEMBER_ID},
                 {"arguments", MEMBER_ARGUMENTS},
                 {"parameters", MEMBER_ARGUMENTS},
                 {"args", MEMBER_ARGUMENTS},
                 {"function", MEMBER_FUNCTION}};
  for (size_t i = 0; i < sizeof MEMBERS / sizeof MEMBERS[0]; i++) {
    if (text_is_equal(key, MEMBERS[i].name)) return MEMBERS[i].member;
  }
  return MEMBER_OTHER;
}

// ---- arguments ----

// Writes arguments that arrived before the call could be shown.
static void put_held_arguments(reply_parser *p, size_t from, size_t to) {
  json_unescape string = {0};
  if (!p->reads.calls_json.is_text) {
    parser_put(p, REPLY_CALL_ARGUMENTS, p->held + from, to - from);
    return;
  }
  for (size_t at = from + 1; at < to; at++) {
    uint8_t decoded[4];
    size_t count = 0;
    (void)unescape_step(&string, p->held[at], decoded, &count);
    parser_put(p, REPLY_CALL_ARGUMENTS, decoded, count);
  }
}

static bool begin_with_held(reply_parser *p) {
  const calls_state *calls = &p->reads.calls_json;
  const size_t base = p->base;
  if (!call_begin(p)) return false;
  if (calls->has_arguments) {
    put_held_arguments(p, base + calls->from, base + calls->to);
  } else {
    parser_put_text(p, "{}");
  }
  return true;
}

static reply_step begin_arguments(reply_parser *p, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  if (calls->has_arguments || (byte != '{' && byte != '"')) return STEP_FAIL;
  calls->has_arguments = true;
  calls->is_text = byte == '"';
  calls->from = p->at - 1 - p->base;
  calls->string = (json_unescape){0};
  calls->state = IN_ARGUMENTS;
  scan_begin(&calls->scan);
  const bool awaits_id = (p->form->flags & FORM_ID_LAST) != 0 && p->id.size_bytes == 0;
  if (p->name.size_bytes > 0 && !awaits_id && !call_begin(p)) return STEP_FAIL;
  if (calls->is_text) return STEP_MORE;
  if (p->begun) call_put(p, byte);
  return scan_step(&calls->scan, byte);
}

// Processes a byte of the arguments' JSON; STEP_DONE if it ends the object.
static reply_step take_argument(reply_parser *p, uint8_t byte) {
  const reply_step step = scan_step(&p->reads.calls_json.scan, byte);
  if (step != STEP_FAIL && p->begun) call_put(p, byte);
  return step;
}

// Processes arguments that are an object within a string.
static reply_step arguments_text_step(reply_parser *p, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  uint8_t decoded[4];
  size_t count = 0;
  const reply_step step = unescape_step(&calls->string, byte, decoded, &count);
  for (size_t i = 0; i < count; i++) {
    const bool is_object = calls->scan.depth > 0 || calls->has_items || decoded[i] == '{';
    if (calls->has_items && !json_is_space(decoded[i])) return STEP_FAIL;
    if (!is_object && !json_is_space(decoded[i])) return STEP_FAIL;
    if (calls->has_items) continue;
    const reply_step inner = take_argument(p, decoded[i]);
    if (inner == STEP_FAIL) return inner;
    calls->has_items = inner == STEP_DONE;
  }
  return step == STEP_DONE && !calls->has_items ? STEP_FAIL : step;
}

static reply_step arguments_step(reply_parser *p, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  const reply_step step = calls->is_text ? arguments_text_step(p, byte) : take_argument(p, byte);
  if (step != STEP_DONE) return step;
  calls->to = p->at - p->base;
  calls->state = AFTER_VALUE;
  return STEP_MORE;
}

// ---- members ----

static reply_step text_step(reply_parser *p, reply_text *text, uint8_t next, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  uint8_t decoded[4];
  size_t count = 0;
  const reply_step step = unescape_step(&calls->string, byte, decoded, &count);
  for (size_t i = 0; i < count; i++) {
    if (!text_add(text, decoded[i])) return STEP_FAIL;
  }
  if (step != STEP_DONE) return step;
  calls->state = next;
  if (text != &p->name || !calls->has_arguments) return STEP_MORE;
  if ((p->form->flags & FORM_ID_LAST) != 0) return STEP_MORE;
  return begin_with_held(p) ? STEP_MORE : STEP_FAIL;
}

static void begin_text(calls_state *calls, reply_text *text, uint8_t state) {
  text->size_bytes = 0;
  calls->string = (json_unescape){0};
  calls->state = state;
}

static reply_step begin_other(calls_state *calls, uint8_t byte) {
  calls->state = IN_OTHER;
  scan_begin(&calls->scan);
  return scan_step(&calls->scan, byte);
}

static reply_step begin_member(reply_parser *p, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  if (json_is_space(byte)) return STEP_MORE;
  const bool is_key = (p->form->flags & FORM_NAME_IS_KEY) != 0 && p->name.size_bytes == 0;
  const bool is_whole = (p->form->flags & FORM_WHOLE) != 0;
  if (is_whole && !p->begun && calls->member == MEMBER_OTHER && !text_is_equal(&p->key, "type"))
    return STEP_FAIL;
  if (p->begun || calls->member == MEMBER_OTHER) {
    if (!is_key || byte != '{' || p->begun) return begin_other(calls, byte);
    p->name = p->key;
    return begin_arguments(p, byte);
  }
  if (calls->member == MEMBER_ARGUMENTS) return begin_arguments(p, byte);
  if (calls->member == MEMBER_FUNCTION && byte == '{' && !calls->is_inner) {
    calls->is_inner = true;
    calls->state = AT_FIRST_KEY;
    return STEP_MORE;
  }
  if (byte != '"') return calls->member == MEMBER_ID ? begin_other(calls, byte) : STEP_FAIL;
  if (calls->member == MEMBER_ID) {
    begin_text(calls, &p->id, IN_ID);
  } else {
    begin_text(calls, &p->name, IN_NAME);
  }
  return STEP_MORE;
}

static reply_step other_step(calls_state *calls, uint8_t byte) {
  const reply_step step = scan_step(&calls->scan, byte);
  if (step == STEP_DONE || step == STEP_BEFORE) calls->state = AFTER_VALUE;
  return step == STEP_DONE ? STEP_MORE : step;
}

static reply_step end_object(reply_parser *p) {
  calls_state *calls = &p->reads.calls_json;
  if (calls->is_inner) {
    calls->is_inner = false;
    calls->state = AFTER_VALUE;
    return STEP_MORE;
  }
  const bool is_whole = (p->form->flags & FORM_WHOLE) != 0;
  if (is_whole && !calls->has_arguments) return STEP_FAIL;
  if (!p->begun && !begin_with_held(p)) return STEP_FAIL;
  call_end(p);
  const bool is_list = calls->is_list;
  memset(calls, 0, sizeof *calls);
  calls->is_list = is_list;
  calls->state = AFTER_ITEM;
  return is_list ? STEP_MORE : STEP_DONE;
}

// ---- structure ----

static reply_step go(calls_state *calls, uint8_t state) {
  calls->state = state;
  return STEP_MORE;
}

static reply_step step_between(reply_parser *p, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  if (json_is_space(byte)) return STEP_MORE;
  switch (calls->state) {
    case AT_START:
      if (byte == '[' && (p->form->flags & FORM_WHOLE) == 0) {
        calls->is_list = true;
        return go(calls, AT_ITEM);
      }
      return byte == '{' ? go(calls, AT_FIRST_KEY) : STEP_FAIL;
    case AT_ITEM:
      return byte == '{' ? go(calls, AT_FIRST_KEY) : STEP_FAIL;
    case AT_FIRST_KEY:
    case AT_KEY:
      if (byte == '}' && calls->state == AT_FIRST_KEY) return end_object(p);
      if (byte != '"') return STEP_FAIL;
      begin_text(calls, &p->key, IN_KEY);
      return STEP_MORE;
    case AT_COLON:
      calls->member = member_of(&p->key);
      return byte == ':' ? go(calls, AT_VALUE) : STEP_FAIL;
    case AFTER_VALUE:
      if (byte == '}') return end_object(p);
      return byte == ',' ? go(calls, AT_KEY) : STEP_FAIL;
    default:
      if (byte == ']') return STEP_DONE;
      return byte == ',' ? go(calls, AT_ITEM) : STEP_FAIL;
  }
}

static reply_step state_step(reply_parser *p, uint8_t byte) {
  calls_state *calls = &p->reads.calls_json;
  switch (calls->state) {
    case IN_KEY:
      return text_step(p, &p->key, AT_COLON, byte);
    case IN_NAME:
      return text_step(p, &p->name, AFTER_VALUE, byte);
    case IN_ID:
      return text_step(p, &p->id, AFTER_VALUE, byte);
    case IN_ARGUMENTS:
      return arguments_step(p, byte);
    case IN_OTHER: {
      const reply_step step = other_step(calls, byte);
      return step == STEP_BEFORE ? step_between(p, byte) : step;
    }
    case AT_VALUE:
      return begin_member(p, byte);
    default:
      return step_between(p, byte);
  }
}

reply_step calls_step(reply_parser *p, uint8_t byte) {
  const reply_step step = state_step(p, byte);
  if (p->begun && !p->is_dry) p->base = p->at;
  return step;
}
