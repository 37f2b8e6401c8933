// reply/call.c — the text before and after the arguments of a call, and the call's format.
#include <string.h>

#include "reply/parser.h"

static void send_call(reply_parser *p, reply_event_kind kind) {
  const bool begins = kind == REPLY_CALL_BEGINS;
  const reply_event event = {.kind = kind,
                             .call = p->calls,
                             .text = begins ? p->name.bytes : "",
                             .text_bytes = begins ? p->name.size_bytes : 0,
                             .id = p->id.bytes,
                             .id_bytes = p->id.size_bytes};
  parser_show(p);
  if (!p->is_silent) p->sink(p->sink_context, &event);
}

// Whether a call without a tag begins exactly like the model's format.
static bool is_as_written(const reply_parser *p) {
  char text[REPLY_BEGINNING_BYTES];
  const size_t size = reply_call_beginning(p->form, p->name.bytes, p->name.size_bytes, text);
  const size_t from = p->base + p->body;
  return p->at - from == size && memcmp(p->held + from, text, size) == 0;
}

// Whether a call without a tag begins with the name, allowing white space before it and after
// brackets and the colon.
static bool begins_with_name(const reply_parser *p) {
  static const char KEY[] = "{\"name\":\"";
  const uint8_t *at = p->held + p->base + p->body, *end = p->held + p->at;
  if (at < end && *at == '[') at++;
  for (size_t i = 0; i < sizeof KEY - 1; i++, at++) {
    while (at < end && json_is_space(*at) && (i == 0 || KEY[i - 1] == '{' || KEY[i - 1] == ':'))
      at++;
    if (at == end || *at != (uint8_t)KEY[i]) return false;
  }
  return (size_t)(end - at) > p->name.size_bytes &&
         memcmp(at, p->name.bytes, p->name.size_bytes) == 0 && at[p->name.size_bytes] == '"';
}

// Whether an object without a tag is a call and not an answer.
static bool is_distinct(const reply_parser *p) {
  if ((p->form->flags & FORM_WHOLE) != 0) return true;
  if (p->form->arguments != ARGUMENTS_CALLS || p->is_listed) return true;
  if (p->is_limited) return is_as_written(p);
  return (p->format.own >> (p->form - REPLY_FORMS) & 1) != 0 || begins_with_name(p);
}

static bool is_answer(const reply_parser *p) {
  return (p->form->flags & FORM_KNOWN) != 0 && text_is_equal(&p->name, FORM_ANSWER_TOOL) &&
         !tools_have(p->tools, p->name.bytes, p->name.size_bytes);
}

bool call_begin(reply_parser *p) {
  if (p->tools == NULL || p->name.size_bytes == 0) return false;
  const bool is_bare = (p->form->flags & FORM_BARE) != 0;
  const bool is_known = tools_have(p->tools, p->name.bytes, p->name.size_bytes);
  if ((is_bare || (p->is_reasoning && p->is_ending)) && !is_known) return false;
  if (is_bare && !is_distinct(p)) return false;
  if (p->is_dry) return p->begun = p->is_silent = true;
  p->is_reasoning = false;
  p->is_silent = is_answer(p);
  send_call(p, REPLY_CALL_BEGINS);
  p->begun = true;
  p->call_at = parser_base_bytes(p);
  p->base = p->at;
  return true;
}

void call_end(reply_parser *p) {
  p->begun = false;
  if (p->is_dry) return;
  send_call(p, REPLY_CALL_ENDS);
  p->calls += p->is_silent ? 0 : 1;
  p->is_silent = false;
  p->is_listed = true;
  p->base = p->at;
  p->trims = p->is_fresh = true;
  p->is_prose = false;
  p->name.size_bytes = p->id.size_bytes = 0;
}

// ---- trying formats ----

static bool try_next(reply_parser *p) {
  if (p->tried_next == p->tried_count) return false;
  p->form = p->tried[p->tried_next++];
  p->at = p->base + p->body;
  p->phase = PHASE_HEAD;
  p->pattern = p->form->head;
  p->name.size_bytes = p->id.size_bytes = 0;
  p->is_listed = false;
  return true;
}

void call_enter(reply_parser *p, const char *open) {
  p->tried_count = p->tried_next = 0;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT && p->tried_count < FORMS_TRIED_MAX; i++) {
    const reply_form *form = &REPLY_FORMS[i];
    if ((p->format.forms >> i & 1) == 0 || form->arguments == ARGUMENTS_CHANNELS) continue;
    if (forms_are_same(form->open, open)) p->tried[p->tried_count++] = form;
  }
  p->body = p->at - p->base;
  if (try_next(p)) p->place = PLACE_CALL;
}

void call_enter_named(reply_parser *p) {
  static const reply_form NAMED = {.open = "", .head = "", .arguments = ARGUMENTS_JSON};
  p->form = &NAMED;
  p->tried_count = p->tried_next = 0;
  p->is_listed = false;
  p->body = 0;
  p->place = PLACE_CALL;
  p->phase = PHASE_ARGUMENTS;
  memset(&p->reads, 0, sizeof p->reads);
}

// Accepts calls without their tags, or written as code, because small models write such calls.
void call_enter_whole(reply_parser *p, uint8_t byte) {
  static const reply_form FORMS[] = {
      {.open = "",
       .head = "",
       .tail = PATTERN_SPACE,
       .arguments = ARGUMENTS_CALLS,
       .flags = FORM_BARE | FORM_WHOLE},
      {.open = "",
       .head = "```json" PATTERN_SPACE,
       .tail = PATTERN_SPACE "```" PATTERN_SPACE,
       .arguments = ARGUMENTS_CALLS,
       .flags = FORM_BARE | FORM_WHOLE},
      {.open = "",
       .head = "```" PATTERN_SPACE,
       .tail = PATTERN_SPACE "```" PATTERN_SPACE,
       .arguments = ARGUMENTS_CALLS,
       .flags = FORM_BARE | FORM_WHOLE},
  };
  p->tried_count = p->tried_next = 0;
  for (uint32_t i = 0; i < sizeof FORMS / sizeof FORMS[0]; i++) {
    if ((byte == '{') == (i == 0)) p->tried[p->tried_count++] = &FORMS[i];
  }
  p->body = p->at - p->base;
  p->place = PLACE_CALL;
  p->is_dry = try_next(p);
}

bool call_confirm_whole(reply_parser *p) {
  const bool is_whole = p->place == PLACE_CALL && p->is_dry && p->phase == PHASE_TAIL &&
                        forms_are_same(p->pattern, PATTERN_SPACE);
  p->begun = p->begun && !p->is_dry;
  if (!is_whole) return false;
  p->is_dry = p->is_silent = false;
  p->tried_next--;
  return try_next(p);
}

bool call_is_known(const reply_parser *p) {
  return p->phase == PHASE_HEAD && tools_have(p->tools, p->name.bytes, p->name.size_bytes);
}

bool call_is_certain(const reply_parser *p) {
  const bool is_named = p->phase == PHASE_HEAD && p->name.size_bytes > 0;
  if (p->is_listed) return true;
  if ((p->form->flags & FORM_RECIPIENT) != 0 && p->name.size_bytes <= 3 &&
      memcmp(p->name.bytes, "all", p->name.size_bytes) == 0) {
    return true;
  }
  if (is_named && !tools_begin(p->tools, p->name.bytes, p->name.size_bytes)) return false;
  if ((p->form->flags & FORM_BARE) == 0) return true;
  if (p->form->arguments == ARGUMENTS_PYTHON && p->name.size_bytes > 0) {
    return tools_begin(p->tools, p->name.bytes, p->name.size_bytes);
  }
  return !p->is_dry &&
         (p->phase == PHASE_TAIL || (p->format.own >> (p->form - REPLY_FORMS) & 1) != 0);
}

// Called if no format matches: the text counts as ordinary text, and the byte that did not match is
// parsed again.
static void give_up(reply_parser *p) {
  p->at--;
  p->is_dry = p->begun = p->is_silent = false;
  if ((p->form->flags & FORM_BARE) != 0 && p->phase != PHASE_CLOSE) {
    p->at = p->base + p->body;
    p->is_prose = true;
  } else {
    parser_give(p, p->at);
  }
  parser_enter_text(p, p->is_reasoning);
}

static void leave(reply_parser *p) {
  p->base = p->at;
  p->is_fresh = true;
  p->trims = !p->is_exact;
  parser_enter_text(p, false);
}

// ---- patterns ----

static reply_step pattern_step(reply_parser *p, uint8_t byte) {
  for (;; p->pattern++) {
    const char wanted = *p->pattern;
    if (wanted == '\0') return STEP_BEFORE;
    if (wanted == PATTERN_SPACE[0]) {
      if (json_is_space(byte)) return STEP_MORE;
    } else if (wanted == PATTERN_GAP[0]) {
      if (byte != ' ' && byte != '\n') continue;
      p->pattern++;
      return STEP_MORE;
    } else if (wanted == PATTERN_INDEX[0]) {
      if (byte >= '0' && byte <= '9') return STEP_MORE;
    } else if (wanted == PATTERN_NAME[0]) {
      if (is_name_byte(byte)) return text_add(&p->name, byte) ? STEP_MORE : STEP_FAIL;
      if (p->name.size_bytes == 0) return STEP_FAIL;
    } else if (wanted == PATTERN_ID[0]) {
      if (byte != (uint8_t)p->pattern[1]) return text_add(&p->id, byte) ? STEP_MORE : STEP_FAIL;
      if (p->id.size_bytes == 0) return STEP_FAIL;
    } else {
      if ((uint8_t)wanted != byte) return STEP_FAIL;
      return *++p->pattern == '\0' ? STEP_DONE : STEP_MORE;
    }
  }
}

// Parses functions.NAME:0.
static void take_name_of_id(reply_parser *p) {
  static const char PREFIX[] = "functions.";
  const uint32_t prefix_bytes = sizeof PREFIX - 1;
  uint32_t from = 0, to = p->id.size_bytes;
  if (to > prefix_bytes && memcmp(p->id.bytes, PREFIX, prefix_bytes) == 0) from = prefix_bytes;
  uint32_t digits = to;
  while (digits > from && p->id.bytes[digits - 1] >= '0' && p->id.bytes[digits - 1] <= '9') {
    digits--;
  }
  if (digits < to && digits > from && p->id.bytes[digits - 1] == ':') to = digits - 1;
  p->name.size_bytes = to - from;
  memcpy(p->name.bytes, p->id.bytes + from, to - from);
}

static void end_head(reply_parser *p) {
  if ((p->form->flags & FORM_RECIPIENT) != 0 && text_is_equal(&p->name, "all")) {
    leave(p);
    return;
  }
  if ((p->form->flags & FORM_NAME_IN_ID) != 0) take_name_of_id(p);
  p->phase = PHASE_ARGUMENTS;
  memset(&p->reads, 0, sizeof p->reads);
}

static void await_close(reply_parser *p) {
  if (p->form->close == NULL) {
    leave(p);
    return;
  }
  p->base = p->at;
  p->body = 0;
  p->phase = PHASE_CLOSE;
  p->pattern = p->form->close;
}

static void end_arguments(reply_parser *p) {
  if (p->form->tail == NULL) {
    await_close(p);
    return;
  }
  p->phase = PHASE_TAIL;
  p->pattern = p->form->tail;
}

static void end_phase(reply_parser *p) {
  switch (p->phase) {
    case PHASE_HEAD:
      end_head(p);
      break;
    case PHASE_ARGUMENTS:
      end_arguments(p);
      break;
    case PHASE_TAIL:
      await_close(p);
      break;
    default:
      leave(p);
      break;
  }
}

// ---- bytes ----

static reply_step json_step(reply_parser *p, uint8_t byte) {
  if (!p->begun && (byte != '{' || !call_begin(p))) return STEP_FAIL;
  const reply_step step = scan_step(&p->reads.json, byte);
  if (step == STEP_FAIL) return step;
  call_put(p, byte);
  p->base = p->at;
  if (step == STEP_DONE) call_end(p);
  return step;
}

static reply_step phase_step(reply_parser *p, uint8_t byte) {
  if (p->phase == PHASE_CLOSE && p->pattern == p->form->close && json_is_space(byte))
    return STEP_MORE;
  if (p->phase != PHASE_ARGUMENTS) return pattern_step(p, byte);
  switch (p->form->arguments) {
    case ARGUMENTS_JSON:
      return json_step(p, byte);
    case ARGUMENTS_CALLS:
      return calls_step(p, byte);
    case ARGUMENTS_PARAMS:
      return params_step(p, byte);
    default:
      return literal_step(p, byte);
  }
}

void call_step(reply_parser *p, uint8_t byte) {
  reply_step step = phase_step(p, byte);
  if (p->at - p->base > REPLY_HELD_BYTES_MAX) {
    if (p->begun && !p->is_dry) {
      parser_fail(p, WICK_E_FULL, "an argument is too long");
      return;
    }
    p->tried_next = p->tried_count;
    step = STEP_FAIL;
  }
  const bool is_more = p->is_dry && p->phase == PHASE_TAIL && step == STEP_BEFORE;
  if (is_more) step = STEP_FAIL;
  if (step == STEP_BEFORE) p->at--;
  if (step == STEP_DONE || step == STEP_BEFORE) end_phase(p);
  if (step != STEP_FAIL) return;
  if (!p->is_dry && (p->begun || (p->phase == PHASE_ARGUMENTS && p->is_listed))) {
    parser_fail(p, WICK_E_FORMAT, "the arguments do not match their format");
    return;
  }
  if (p->phase == PHASE_CLOSE) p->tried_next = 0;
  const size_t failed_at = p->at;
  if (p->phase == PHASE_TAIL || !try_next(p)) {
    p->at = failed_at;
    give_up(p);
  }
}
