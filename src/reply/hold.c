// reply/hold.c — the grammar of a reply that may call tools: reasoning, free text, and calls, which
// start at the tags of their formats.
#include "reply/hold.h"

#include <string.h>

#include "base/json.h"
#include "grammar/free.h"
#include "reply/parser.h"
#include "reply/reply.h"

enum { MARKS_OF_HOLD_MAX = 64, BRACKETS_BYTES_MAX = 4 };

// ---- the request ----

static const json_node *node_of(const hold *h, uint32_t node) {
  return document_node(&h->document, node);
}

static bool fail(hold *h, wick_status status, wick_subject subject, const char *what) {
  work_fail(h->builder->work, status, WICK_NO_OFFSET, "%s", what);
  h->builder->work->error.subject = subject;
  return false;
}

static bool is_kind(const hold *h, uint32_t node, json_kind kind) {
  return node != 0 && node_of(h, node)->kind == kind;
}

static bool can_be_written(document_text name) {
  bool can = name.size_bytes > 0 && name.size_bytes <= REPLY_NAME_BYTES_MAX;
  for (uint32_t i = 0; i < name.size_bytes && can; i++) can = is_name_byte(name.bytes[i]);
  return can;
}

static bool read_tool(hold *h, uint32_t tool, document_text only) {
  static const char NONE[] = "{\"type\":\"object\",\"additionalProperties\":false}";
  const uint32_t inner = document_find(&h->document, tool, "function");
  const uint32_t function = inner == 0 ? tool : inner;
  const uint32_t name = document_find(&h->document, function, "name");
  const uint32_t schema = document_find(&h->document, function, "parameters");
  if (!is_kind(h, name, JSON_STRING))
    return fail(h, WICK_E_ARG, WICK_SUBJECT_TOOLS, "tools: a tool has no name");
  hold_tool made = {.name = node_of(h, name)->text,
                    .schema = (const uint8_t *)NONE,
                    .schema_bytes = sizeof NONE - 1};
  if (only.bytes != NULL && !text_is_same(made.name, only)) return true;
  if (!can_be_written(made.name)) {
    return fail(h, WICK_E_UNSUPPORTED, WICK_SUBJECT_TOOLS,
                "tools: a name contains characters that a call cannot have");
  }
  if (schema != 0 && node_of(h, schema)->kind != JSON_NULL) {
    made.schema = h->document_source + node_of(h, schema)->at;
    made.schema_bytes = node_of(h, schema)->end - node_of(h, schema)->at;
  }
  h->tools[h->tool_count++] = made;
  return true;
}

// Reads tool_choice: "auto", "required", or {"function": {"name"}}, which must be called once.
static bool read_choice(hold *h, document_text *only) {
  const uint32_t choice = hold_find(h, "tool_choice");
  *only = (document_text){0};
  if (node_of(h, choice)->kind == JSON_NULL) return true;
  h->is_required = !is_kind(h, choice, JSON_STRING) || !text_is(node_of(h, choice)->text, "auto");
  if (!h->is_required || text_is(node_of(h, choice)->text, "required")) return true;
  const uint32_t function = document_find(&h->document, choice, "function");
  const uint32_t name = document_find(&h->document, function, "name");
  if (!is_kind(h, name, JSON_STRING)) {
    return fail(h, WICK_E_ARG, WICK_SUBJECT_TOOL_CHOICE,
                "tool_choice must be auto, required, or a function");
  }
  *only = node_of(h, name)->text;
  h->is_parallel = false;
  return true;
}

static bool read_tools(hold *h) {
  const uint32_t tools = hold_find(h, "tools"), ending = hold_find(h, "ending");
  document_text only;
  if (is_kind(h, ending, JSON_STRING)) h->ending = node_of(h, ending)->text;
  if (tools == 0 && h->content != 0) return true;
  if (!is_kind(h, tools, JSON_ARRAY))
    return fail(h, WICK_E_ARG, WICK_SUBJECT_TOOLS, "tools must be an array");
  h->is_parallel = !is_kind(h, hold_find(h, "parallel_tool_calls"), JSON_FALSE);
  if (!read_choice(h, &only)) return false;
  if (node_of(h, tools)->count > HOLD_TOOLS_MAX) {
    return fail(h, WICK_E_UNSUPPORTED, WICK_SUBJECT_TOOLS,
                "tools: calls can be constrained to at most 1024");
  }
  h->tools = work_alloc(h->builder->work, node_of(h, tools)->count + 1, sizeof *h->tools);
  if (h->tools == NULL) return false;
  for (uint32_t at = node_of(h, tools)->first; at != 0; at = node_of(h, at)->next) {
    if (!read_tool(h, at, only)) return false;
  }
  if (h->tool_count == 0)
    return fail(h, WICK_E_ARG, WICK_SUBJECT_TOOL_CHOICE, "tool_choice: no tool has this name");
  return true;
}

// ---- reasoning ----

static uint32_t gap(hold *h, uint32_t from) {
  return hold_put(h, from, PATTERN_SPACE, NULL, NULL, 0);
}

static size_t last_in_ending(const hold *h, const char *wanted) {
  return parser_find_last((const char *)h->ending.bytes, h->ending.size_bytes, wanted);
}

// Adds reasoning up to its closing tag, and returns the state after it. If nothing is required
// after it, the text may end within the reasoning.
static uint32_t put_thought(hold *h, uint32_t from, uint32_t end) {
  const char *close = h->thought->close;
  const uint32_t after = program_place(h->builder);
  const free_mark mark = {(const uint8_t *)close, (uint32_t)strlen(close), after};
  free_build(h->builder, from,
             (free_text){.marks = &mark, .mark_count = 1, .end = hold_must_answer(h) ? 0 : end});
  return hold_is_json(h) ? gap(h, gap(h, after)) : after;
}

// Returns the state where the reply continues after the reasoning, if any.
static uint32_t put_thoughts(hold *h, uint32_t from, uint32_t end) {
  const size_t closed = last_in_ending(h, h->thought->close);
  const bool may_come = h->thought->trait[0] != '\0' && closed == 0;
  if (last_in_ending(h, h->thought->open) > closed) return put_thought(h, from, end);
  const uint32_t after = program_place(h->builder);
  program_skip(h->builder, from, after);
  if (h->has_begun || (hold_must_answer(h) && !may_come)) return after;
  const uint32_t open = hold_text(h, gap(h, from), h->thought->open);
  program_skip(h->builder, put_thought(h, open, end), after);
  return after;
}

// ---- formats ----

// Whether a format is selected among the formats with the same tag. The formats that the template
// has are selected, preferably those with a distinct trait.
static bool is_preferred(const hold *h, uint32_t index) {
  const reply_form *form = &REPLY_FORMS[index];
  bool has_own = false, has_special = false;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    if ((h->own >> i & 1) == 0 || !forms_are_same(REPLY_FORMS[i].open, form->open)) continue;
    has_own = true;
    has_special = has_special || !forms_are_same(REPLY_FORMS[i].trait, form->open);
  }
  if (!has_own) return true;
  if ((h->own >> index & 1) == 0) return false;
  return !has_special || form->open[0] == '\0' || !forms_are_same(form->trait, form->open);
}

// ---- required calls ----

static uint32_t put_wrapper(hold *h, uint32_t from) {
  const uint32_t after = program_place(h->builder);
  program_skip(h->builder, from, after);
  for (uint32_t i = 0; i < REPLY_WRAPPER_COUNT; i++) {
    if ((h->wrappers >> i & 1) == 0) continue;
    program_skip(h->builder, hold_text(h, from, REPLY_WRAPPERS[i].mark), after);
  }
  return after;
}

// Whether the template has already written a format's tag.
static bool is_begun(const hold *h, const reply_form *form) {
  const size_t end = last_in_ending(h, form->open);
  return end != 0 && end == h->ending.size_bytes;
}

// Returns a rule for all formats that the template's model writes, with their tags, or for the
// formats that the template has begun, starting after their tag; 0 if there are no such formats.
static uint32_t calls_rule(hold *h, bool after_mark) {
  const uint32_t rule = program_rule(h->builder), end = program_place(h->builder);
  bool can = false;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT && work_is_ok(h->builder->work); i++) {
    const reply_form *form = &REPLY_FORMS[i];
    if (!hold_uses(h, i) || (after_mark && !is_begun(h, form))) continue;
    const uint32_t start = program_start(h->builder, rule);
    const uint32_t at = after_mark ? start : hold_text(h, start, form->open);
    can = hold_calls(h, form, 0, NULL, at, end) || can;
  }
  program_end(h->builder, end);
  return can ? rule : 0;
}

// Whether calls may have no tags, as Llama's, which may have semicolons between them.
static bool calls_can_be_bare(const hold *h) {
  bool can = false;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    can = can || ((h->own >> i & 1) != 0 && (REPLY_FORMS[i].flags & FORM_BARE) != 0);
  }
  return can;
}

static bool put_required(hold *h, uint32_t from, uint32_t to) {
  const uint32_t begun = calls_rule(h, true);
  const uint32_t calls = calls_rule(h, false), after = program_place(h->builder);
  if (calls == 0) return false;
  if (begun == 0) {
    if (!h->has_begun) from = put_wrapper(h, put_wrapper(h, from));
    from = gap(h, from);
  }
  program_call(h->builder, from, begun != 0 ? begun : calls, after);
  program_skip(h->builder, after, to);
  if (!h->is_parallel) return true;
  if (calls_can_be_bare(h)) program_skip(h->builder, hold_text(h, after, ";"), after);
  const uint32_t next = gap(h, after);
  program_skip(h->builder, next, to);
  program_call(h->builder, next, calls, after);
  return true;
}

// Returns the state where content begins: after its wrapper, or after the name of its recipient.
static uint32_t content_place(hold *h, uint32_t from) {
  if (h->has_begun) return from;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    const reply_form *form = &REPLY_FORMS[i];
    if ((h->own >> i & 1) == 0 || (form->flags & FORM_RECIPIENT) == 0) continue;
    return hold_text(h, is_begun(h, form) ? from : hold_text(h, from, form->open), "all\n");
  }
  return put_wrapper(h, put_wrapper(h, from));
}

// Adds the required content, or calls.
static bool put_answer(hold *h, uint32_t from, uint32_t to) {
  if (h->content != 0 && !h->is_required) {
    program_call(h->builder, content_place(h, from), h->content, to);
    if (h->tools == NULL) return true;
  }
  return put_required(h, from, to);
}

// ---- optional calls ----

typedef struct hold_marks {
  free_mark marks[MARKS_OF_HOLD_MAX], *starts;
  uint32_t mark_count, start_count;
  uint32_t text;   // the state where text begins
  uint32_t after;  // the state after a call
} hold_marks;

static uint32_t target_of(hold *h, const char *open, hold_marks *marks) {
  const uint32_t size = (uint32_t)strlen(open);
  for (uint32_t i = 0; i < marks->mark_count; i++) {
    if (marks->marks[i].size_bytes == size && memcmp(marks->marks[i].bytes, open, size) == 0) {
      return marks->marks[i].to;
    }
  }
  const uint32_t to = program_place(h->builder);
  if (marks->mark_count == MARKS_OF_HOLD_MAX) return to;
  marks->marks[marks->mark_count++] = (free_mark){(const uint8_t *)open, size, to};
  return to;
}

// Adds the text that begins the reply's first call: `before`, the name of `tool` if it is given,
// `after`. As the format's models write it, the text may have `spaces` additional spaces.
static void add_start(hold *h, hold_marks *marks, const reply_form *form, const char *before,
                      hold_tool *tool, const char *after, uint32_t spaces) {
  const document_text name = tool == NULL ? (document_text){0} : tool->name;
  const char *parts[] = {before, (const char *)name.bytes, after};
  const size_t sizes[] = {strlen(before), name.size_bytes, strlen(after)};
  uint8_t *bytes = work_alloc(h->builder->work, sizes[0] + sizes[1] + sizes[2], 1);
  const uint32_t to = program_place(h->builder);
  uint32_t size = 0;
  for (int i = 0; i < 3 && bytes != NULL; i++) {
    if (sizes[i] > 0) memcpy(bytes + size, parts[i], sizes[i]);
    size += (uint32_t)sizes[i];
  }
  if (bytes == NULL || !hold_calls(h, form, size + spaces, tool, to, marks->after)) return;
  marks->starts[marks->start_count++] = (free_mark){bytes, size, to};
}

// Adds calls without a tag, which are recognised by the beginning of the model's own format. If
// that format is unknown, an object may be an answer, but an object with a tool's name is a call.
static void add_bare(hold *h, hold_marks *marks, const reply_form *form, bool is_own) {
  const bool is_json = form->arguments == ARGUMENTS_CALLS;
  reply_form one = *form;
  if (!is_own) one.call = REPLY_FORMS[0].call;
  reply_form list = one;
  list.flags |= FORM_LIST;
  if (is_json && is_own) {
    add_start(h, marks, &one, "{\"", NULL, "", 0);
    add_start(h, marks, &list, "[{\"", NULL, "", 0);
    return;
  }
  for (uint32_t i = 0; i < h->tool_count; i++) {
    if (is_json) {
      add_start(h, marks, &one, "{\"name\":\"", &h->tools[i], "\"", 1);
      add_start(h, marks, &list, "[{\"name\":\"", &h->tools[i], "\"", 1);
    } else {
      add_start(h, marks, form, "[", &h->tools[i], "(", 0);
    }
  }
}

// Adds Command R's calls. Their tag is an ordinary word: it counts only with the text after it. The
// tools include a built-in tool that announces an answer.
static void add_actions(hold *h, hold_marks *marks, const reply_form *form) {
  static const char *const OPENS[] = {"Action:```json", "Action: ```json", "Action:\n```json"};
  const uint32_t to = program_place(h->builder);
  if (!hold_calls(h, form, strlen("```json"), NULL, to, marks->after)) return;
  const uint32_t answer =
      hold_text(h, gap(h, to), "[{\"tool_name\": \"" FORM_ANSWER_TOOL "\", \"parameters\": {}}]");
  program_skip(h->builder, hold_text(h, gap(h, answer), "```"), marks->text);
  for (size_t i = 0; i < sizeof OPENS / sizeof OPENS[0]; i++) {
    program_skip(h->builder, target_of(h, OPENS[i], marks), to);
  }
}

static void add_form(hold *h, hold_marks *marks, uint32_t index) {
  const reply_form *form = &REPLY_FORMS[index];
  const bool is_own = (h->own >> index & 1) != 0;
  if ((form->flags & FORM_KNOWN) != 0 && (form->flags & FORM_RECIPIENT) == 0) {
    add_actions(h, marks, form);
    return;
  }
  if ((form->flags & FORM_BARE) != 0) {
    add_bare(h, marks, form, is_own);
    return;
  }
  const bool has_bracket = (form->flags & FORM_BRACKET) != 0;
  const char *open = has_bracket ? form->trait : form->open;
  const uint32_t to = program_place(h->builder);
  if (!hold_calls(h, form, has_bracket ? 1 : 0, NULL, to, marks->after)) return;
  const uint32_t target = target_of(h, open, marks);
  program_skip(h->builder, target, to);
  if ((form->flags & FORM_RECIPIENT) != 0) {
    program_skip(h->builder, gap(h, hold_text(h, target, "all")), marks->text);
  }
}

static void put_auto(hold *h, uint32_t from, uint32_t to) {
  hold_marks *marks = work_alloc(h->builder->work, 1, sizeof *marks);
  if (marks == NULL) return;
  marks->starts = work_alloc(h->builder->work, 3 * h->tool_count + 2, sizeof *marks->starts);
  if (marks->starts == NULL) return;
  marks->text = program_place(h->builder);
  marks->after = program_place(h->builder);
  const uint32_t within = program_place(h->builder);
  for (uint32_t i = 0; i < REPLY_FORM_COUNT && work_is_ok(h->builder->work); i++) {
    if (hold_uses(h, i)) add_form(h, marks, i);
  }
  free_build(h->builder, marks->text,
             (free_text){.marks = marks->marks,
                         .starts = marks->starts,
                         .mark_count = marks->mark_count,
                         .start_count = marks->start_count,
                         .within = within,
                         .end = to});
  program_skip(h->builder, marks->after, h->is_parallel ? marks->text : to);
  for (uint32_t i = 0; i < marks->mark_count; i++) {
    const free_mark *mark = &marks->marks[i];
    const bool is_open = mark->size_bytes <= h->ending.size_bytes &&
                         memcmp(h->ending.bytes + h->ending.size_bytes - mark->size_bytes,
                                mark->bytes, mark->size_bytes) == 0;
    if (!is_open) continue;
    program_skip(h->builder, from, mark->to);
    return;
  }
  program_skip(h->builder, from, h->has_begun ? within : marks->text);
}

// ---- the whole reply ----

void reply_grammar_begin(json_writer *json, const reply_format *format) {
  json_open(json, NULL, '{');
  json_u64(json, "forms", format->forms);
  json_u64(json, "own", format->own);
  json_u64(json, "wrappers", format->wrappers);
  json_u64(json, "thought", format->thought);
}

static uint64_t read_number(const hold *h, const char *name) {
  const document_text text = node_of(h, hold_find(h, name))->text;
  uint64_t value = 0;
  for (uint32_t i = 0; i < text.size_bytes; i++)
    value = value * 10 + (text.bytes[i] - (uint8_t)'0');
  return value;
}

static void read_format(hold *h) {
  h->forms = read_number(h, "forms");
  h->own = read_number(h, "own");
  h->wrappers = (uint32_t)read_number(h, "wrappers");
  uint64_t before = read_number(h, "thought");
  for (h->thought = REPLY_THOUGHTS; h->thought->trait[0] != '\0' && before > 0; before--) {
    h->thought++;
  }
}

// Whether control tokens of calls and reasoning tags are matched by their text.
static bool has_controls(const hold *h) {
  if (h->tools != NULL) return true;
  return hold_has_channels(h) || h->wrappers != 0 || !forms_are_same(h->thought->open, "<think>");
}

bool hold_read(hold *h, const tokenizer *tokens, const wick_grammar *grammar, gbnf_names **names) {
  const uint8_t *text = (const uint8_t *)grammar->text;
  h->document_source = text;
  h->any_spelling = grammar->any_spelling;
  if (!document_read(h->builder->work, text, grammar->text_bytes, &h->document)) return false;
  read_format(h);
  if (!hold_read_content(h, tokens, names) || !read_tools(h)) return false;
  h->has_begun = is_kind(h, hold_find(h, "has_begun"), JSON_TRUE);
  return hold_check_content(h, tokens);
}

bool hold_uses(const hold *h, uint32_t index) {
  const reply_form *form = &REPLY_FORMS[index];
  if (form->arguments == ARGUMENTS_CHANNELS || !is_preferred(h, index)) return false;
  if (hold_must_answer(h)) {
    return (h->own >> index & 1) != 0 && (!h->has_begun || form->open[0] != '\0');
  }
  if ((h->forms >> index & 1) == 0) return false;
  return (form->flags & FORM_KNOWN) == 0 || (form->flags & FORM_RECIPIENT) != 0 ||
         form->arguments == ARGUMENTS_CALLS;
}

uint32_t hold_build(hold *h) {
  program_builder *builder = h->builder;
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  const uint32_t start = program_start(builder, rule);
  program_end(builder, end);
  builder->has_controls = has_controls(h);
  builder->ends_turn = h->is_required;
  bool can = true;
  if (hold_has_channels(h)) {
    can = hold_channels(h, start, end);
  } else if (hold_must_answer(h)) {
    can = put_answer(h, put_thoughts(h, start, end), end);
  } else {
    put_auto(h, put_thoughts(h, start, end), end);
  }
  if (!can && work_is_ok(builder->work)) {
    fail(h, WICK_E_UNSUPPORTED, WICK_SUBJECT_TOOL_CHOICE,
         "the model's call format cannot be required");
  }
  return work_is_ok(builder->work) ? rule : 0;
}
