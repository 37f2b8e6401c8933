// reply/hold_calls.c — the calls of a format, as its models write them.
#include <string.h>

#include "reply/hold.h"

enum { MISTRAL_ID_LETTERS = 9, ID_LETTERS_MAX = 24, INDEX_DIGITS_MAX = 3 };

// ---- small rules ----

uint32_t hold_text(hold *h, uint32_t from, const char *text) {
  return program_text(h->builder, from, text, strlen(text));
}

static uint32_t call_rule(hold *h, uint32_t from, uint32_t rule) {
  const uint32_t to = program_place(h->builder);
  program_call(h->builder, from, rule, to);
  return to;
}

// Returns the rule for nothing, a line break or a space.
static uint32_t gap_rule(hold *h) {
  if (h->gap != 0) return h->gap;
  h->gap = program_rule(h->builder);
  const uint32_t start = program_start(h->builder, h->gap), end = program_place(h->builder);
  program_bytes(h->builder, start, '\n', '\n', end);
  program_bytes(h->builder, start, ' ', ' ', end);
  program_skip(h->builder, start, end);
  program_end(h->builder, end);
  return h->gap;
}

static uint32_t repeat_rule(hold *h, bool has_letters, uint32_t least, uint32_t most) {
  program_builder *builder = h->builder;
  const uint32_t one = program_rule(builder), end = program_place(builder);
  program_bytes(builder, program_start(builder, one), '0', '9', end);
  if (has_letters) {
    program_bytes(builder, program_start(builder, one), 'A', 'Z', end);
    program_bytes(builder, program_start(builder, one), 'a', 'z', end);
  }
  program_end(builder, end);
  const uint32_t rule = program_rule(builder), after = program_place(builder);
  program_repeat(builder, program_start(builder, rule), one, 0, least, most, false, after);
  program_end(builder, after);
  return rule;
}

static uint32_t put_index(hold *h, uint32_t from) {
  if (h->digits == 0) h->digits = repeat_rule(h, false, 1, INDEX_DIGITS_MAX);
  return call_rule(h, from, h->digits);
}

// Returns the rule for ids: Mistral's have nine letters; Kimi's contain the name: functions.NAME:0,
// or NAME:0.
static uint32_t put_id(hold *h, uint32_t from, const reply_form *form, const hold_tool *tool) {
  if ((form->flags & FORM_NAME_IN_ID) != 0) {
    const uint32_t name = program_place(h->builder);
    program_skip(h->builder, hold_text(h, from, "functions."), name);
    program_skip(h->builder, from, name);
    from = program_text(h->builder, name, tool->name.bytes, tool->name.size_bytes);
    return put_index(h, hold_text(h, from, ":"));
  }
  const bool is_mistral = forms_are_same(form->open, "[TOOL_CALLS]");
  uint32_t *rule = is_mistral ? &h->id : &h->short_id;
  const uint32_t least = is_mistral ? MISTRAL_ID_LETTERS : 1;
  const uint32_t most = is_mistral ? MISTRAL_ID_LETTERS : ID_LETTERS_MAX;
  if (*rule == 0) *rule = repeat_rule(h, true, least, most);
  return call_rule(h, from, *rule);
}

static uint32_t put_bytes(hold *h, uint32_t from, const uint8_t *bytes, size_t count) {
  const size_t left_out = h->skip < count ? h->skip : count;
  h->skip -= left_out;
  return program_text(h->builder, from, bytes + left_out, count - left_out);
}

uint32_t hold_put(hold *h, uint32_t from, const char *pattern, const reply_form *form,
                  const hold_tool *tool, uint32_t arguments) {
  for (; *pattern != '\0' && work_is_ok(h->builder->work); pattern++) {
    const bool names = *pattern == PATTERN_NAME[0] || *pattern == PATTERN_ID[0];
    if (names && tool == NULL)
      continue;  // not specific to a tool: the beginnings and ends of whole lists do not contain
                 // its name
    if (*pattern == PATTERN_NAME[0]) {
      from = put_bytes(h, from, tool->name.bytes, tool->name.size_bytes);
    } else if (*pattern == PATTERN_ID[0]) {
      from = put_id(h, from, form, tool);
    } else if (*pattern == PATTERN_INDEX[0]) {
      from = put_index(h, from);
    } else if (*pattern == PATTERN_SPACE[0] || *pattern == PATTERN_GAP[0]) {
      if (h->skip == 0) from = call_rule(h, from, gap_rule(h));
    } else if (*pattern == PATTERN_ARGUMENTS[0]) {
      from = call_rule(h, from, arguments);
    } else {
      from = put_bytes(h, from, (const uint8_t *)pattern, 1);
    }
  }
  return from;
}

// ---- arguments ----

// Concatenates strings; NULLs are skipped.
static const char *join(hold *h, const char *const *texts, size_t count) {
  size_t size = 1;
  for (size_t i = 0; i < count; i++) size += texts[i] == NULL ? 0 : strlen(texts[i]);
  char *joined = work_alloc(h->builder->work, size, 1), *to = joined;
  for (size_t i = 0; i < count && joined != NULL; i++) {
    if (texts[i] == NULL) continue;
    memcpy(to, texts[i], strlen(texts[i]));
    to += strlen(texts[i]);
  }
  return joined;
}

static argument_form form_of_params(hold *h, const reply_form *form) {
  const reply_params *params = form->params;
  const bool has_attributes = params->key_end[0] == '"';
  const char *const before_name[] = {SCHEMA_GAP, params->key};
  const char *const before_text[] = {params->key_end, params->says_text,
                                     has_attributes           ? params_attributes_end(params)
                                     : *params->value == '\0' ? NULL
                                                              : SCHEMA_GAP,
                                     params->value};
  const char *const before_json[] = {before_text[0], params->says_json, before_text[2],
                                     before_text[3]};
  return (argument_form){.style = ARGUMENT_PARAMS,
                         .before_name = join(h, before_name, 2),
                         .before_text = join(h, before_text, 4),
                         .before_json = join(h, before_json, 4),
                         .end = params->value_end,
                         .wrap = params->wrap,
                         .unwrap = params->unwrap,
                         .has_lines = (form->flags & FORM_LINES) != 0,
                         .has_attribute = params->says_text != NULL,
                         .escapes_names = params->escapes_keys};
}

// Removes the parts of a failed schema from the grammar.
static bool forgive(hold *h) {
  grammar_work *work = h->builder->work;
  if (h->is_required || (work->status != WICK_E_UNSUPPORTED && work->status != WICK_E_ARG)) {
    return false;
  }
  work->status = WICK_OK;
  return true;
}

static void name_tool(hold *h, const hold_tool *tool) {
  grammar_work *work = h->builder->work;
  char reason[sizeof work->error.message];
  memcpy(reason, work->error.message, sizeof reason);
  const wick_status status = work->status;
  work->status = WICK_OK;
  work_fail(work, status, work->error.offset_bytes, "the tool %.*s: %s", (int)tool->name.size_bytes,
            (const char *)tool->name.bytes, reason);
  work->error.subject = WICK_SUBJECT_TOOLS;
}

uint32_t hold_arguments(hold *h, const reply_form *form, hold_tool *tool) {
  static const char ANY[] = "{\"type\": \"object\"}";
  argument_form written = {.style = ARGUMENT_JSON};
  if (form->arguments == ARGUMENTS_PARAMS) written = form_of_params(h, form);
  if (form->arguments == ARGUMENTS_PYTHON) written.style = ARGUMENT_PYTHON;
  if (form->arguments == ARGUMENTS_QUOTED) {
    written = (argument_form){.style = ARGUMENT_MARKED, .quote = form->params->key};
  }
  const bool is_shared = written.style == ARGUMENT_JSON || written.style == ARGUMENT_PYTHON;
  const size_t at = is_shared ? (size_t)written.style : (size_t)(2 + (form - REPLY_FORMS));
  if (tool->rules[at] != 0) return tool->rules[at] == HOLD_NO_RULE ? 0 : tool->rules[at];
  uint32_t rule = schema_build_argument(h->builder, tool->schema, tool->schema_bytes, &written);
  if (rule == 0 && forgive(h) && written.style == ARGUMENT_JSON) {
    rule = schema_build_argument(h->builder, (const uint8_t *)ANY, sizeof ANY - 1, &written);
  }
  const bool has_failed = h->builder->work->status != WICK_OK;
  if (rule == 0 && has_failed && !work_is_paused(h->builder->work)) name_tool(h, tool);
  if (!has_failed) tool->rules[at] = rule == 0 ? HOLD_NO_RULE : rule;
  return rule;
}

// ---- calls ----

bool hold_can_call(const reply_form *form, const hold_tool *tool) {
  return (form->flags & FORM_RECIPIENT) == 0 || !text_is(tool->name, "all");
}

// Returns the rule for one call, without its tag and the text that closes it; 0 if the format
// cannot represent it.
static uint32_t put_call(hold *h, uint32_t from, const reply_form *form, hold_tool *tool) {
  if (tool == NULL || !hold_can_call(form, tool)) return 0;
  const uint32_t arguments = hold_arguments(h, form, tool);
  if (arguments == 0) return 0;
  if (form->arguments == ARGUMENTS_CALLS) {
    return hold_put(h, from, form->call, form, tool, arguments);
  }
  if (form->arguments == ARGUMENTS_PYTHON) {
    return hold_put(h, from, PATTERN_NAME "(" PATTERN_ARGUMENTS, form, tool, arguments);
  }
  from = hold_put(h, from, form->head, form, tool, 0);
  from = hold_put(h, from, PATTERN_ARGUMENTS, form, tool, arguments);
  if (form->arguments == ARGUMENTS_PARAMS) {
    from = call_rule(h, from, gap_rule(h));
    from = hold_text(h, from, form->params->end);
  }
  return form->tail == NULL ? from : hold_put(h, from, form->tail, form, tool, 0);
}

// Adds the text between the calls of a list, as JSON is printed.
static uint32_t put_break(hold *h, uint32_t from) {
  if (h->skip > 0) return from;
  from = call_rule(h, from, gap_rule(h));
  const uint32_t to = program_place(h->builder);
  program_skip(h->builder, from, to);
  program_skip(h->builder, hold_text(h, from, "    "), to);
  return to;
}

// Adds another call of the same format.
static uint32_t further_rule(hold *h, const reply_form *form) {
  const uint32_t rule = program_rule(h->builder), end = program_place(h->builder);
  const bool is_list = (form->flags & FORM_LIST) != 0;
  uint32_t start = program_start(h->builder, rule);
  if (is_list) start = put_break(h, hold_text(h, start, ","));
  if (!is_list && form->arguments == ARGUMENTS_CALLS) start = call_rule(h, start, gap_rule(h));
  for (uint32_t i = 0; i < h->tool_count && work_is_ok(h->builder->work); i++) {
    const uint32_t after = put_call(h, start, form, &h->tools[i]);
    if (after != 0) program_skip(h->builder, after, end);
  }
  program_end(h->builder, end);
  return rule;
}

static void put_close(hold *h, const reply_form *form, uint32_t from, uint32_t to) {
  const bool is_list = (form->flags & FORM_LIST) != 0;
  if (is_list) from = hold_text(h, put_break(h, from), "]");
  if (form->arguments == ARGUMENTS_CALLS && form->tail != NULL) {
    from = hold_put(h, from, form->tail, form, NULL, 0);
  }
  if (form->close == NULL || (form->flags & FORM_MAY_CLOSE) != 0)
    program_skip(h->builder, from, to);
  if (form->close == NULL) return;
  from = call_rule(h, from, gap_rule(h));
  program_skip(h->builder, hold_text(h, from, form->close), to);
}

bool hold_calls(hold *h, const reply_form *form, size_t skip, hold_tool *only, uint32_t from,
                uint32_t to) {
  const bool is_list = (form->flags & FORM_LIST) != 0;
  const bool is_whole = form->arguments == ARGUMENTS_CALLS || form->arguments == ARGUMENTS_PYTHON;
  const uint32_t after = program_place(h->builder);
  bool can = false;
  if (h->tools == NULL) return false;
  for (uint32_t i = 0; i < h->tool_count && work_is_ok(h->builder->work); i++) {
    if (only != NULL && only != &h->tools[i]) continue;
    uint32_t at = from;
    h->skip = skip;
    if (is_whole) at = hold_put(h, at, form->head, form, NULL, 0);
    if (is_list) at = put_break(h, hold_put(h, at, "[", form, NULL, 0));
    at = put_call(h, at, form, &h->tools[i]);
    h->skip = 0;
    if (at == 0) continue;
    program_skip(h->builder, at, after);
    can = true;
  }
  if (!can) return false;
  const bool has_more = h->is_parallel && (form->flags & (FORM_LIST | FORM_MANY)) != 0;
  if (has_more) program_call(h->builder, after, further_rule(h, form), after);
  put_close(h, form, after, to);
  return work_is_ok(h->builder->work);
}
