// template/template.c — compiles and renders templates, and chooses the form of arguments.
#include "template/template.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "template/messages.h"
#include "template/parser.h"
#include "template/run.h"

struct chat_template {
  memory_gate *memory;
  jinja_program program;
};

// ---- compiling ----

// Normalises the source: lines end with \n, invalid UTF-8 is replaced, and one line break at the
// end is removed.
static uint32_t normalise(const char *source, size_t size_bytes, char *out) {
  uint32_t written = 0;
  for (size_t at = 0; at < size_bytes;) {
    if (source[at] == '\r') {
      out[written++] = '\n';
      at += at + 1 < size_bytes && source[at + 1] == '\n' ? 2 : 1;
      continue;
    }
    uint32_t code;
    const int bytes = utf8_decode((const uint8_t *)source + at, size_bytes - at, &code);
    memcpy(out + written, bytes > 0 ? source + at : "\xef\xbf\xbd", bytes > 0 ? (size_t)bytes : 3);
    written += bytes > 0 ? (uint32_t)bytes : 3;
    at += bytes > 0 ? (size_t)bytes : 1;
  }
  if (written > 0 && out[written - 1] == '\n') written--;
  return written;
}

wick_status template_create(memory_gate *memory, const char *source, size_t size_bytes,
                            chat_template **out, wick_error *error) {
  *out = NULL;
  if (size_bytes > TEMPLATE_SOURCE_BYTES_MAX) {
    return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET,
                     "a chat template of %zu bytes: the limit is %d", size_bytes,
                     TEMPLATE_SOURCE_BYTES_MAX);
  }
  chat_template *made = memory_alloc_zeroed(memory, sizeof *made);
  char *copy = memory_alloc(memory, 3 * size_bytes + 1);
  wick_status status = WICK_OK;
  if (made == NULL || copy == NULL) {
    status = memory_fail(memory, error, "a chat template");
  } else {
    made->memory = memory;
    jinja_arena_init(&made->program.arena, memory, TEMPLATE_PROGRAM_BYTES_MAX);
    const uint32_t copy_bytes = normalise(source, size_bytes, copy);
    status = jinja_parse(&made->program, copy, copy_bytes, error);
  }
  memory_free(memory, copy);
  if (status == WICK_OK) {
    *out = made;
    return WICK_OK;
  }
  if (made != NULL && made->memory != NULL) {
    template_destroy(made);
  } else {
    memory_free(memory, made);
  }
  return status;
}

void template_destroy(chat_template *template) {
  if (template == NULL) return;
  jinja_arena_free(&template->program.arena);
  memory_free(template->memory, template);
}

// ---- the conversation ----

// Whether a role is common. A common role may be part of a control token ('<|' + role + '|>'), so
// it counts as written by the template. Other roles are content.
static bool is_usual_role(const jinja_string *role) {
  static const char *const roles[] = {
      "user",    "assistant", "system",        "developer",   "tool",         "function",
      "model",   "ipython",   "human",         "observation", "environment",  "chatbot",
      "bot",     "ai",        "tool_response", "tool_result", "tool_results", "tool_call",
      "context", "documents", "critic"};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (jinja_string_is(role, roles[i])) return true;
  }
  return false;
}

static void trust_role(jinja_run *run, jinja_dict *message) {
  jinja_value *role = jinja_dict_find_text(message, "role");
  if (role == NULL || role->kind != JINJA_STRING || !is_usual_role(role->string)) return;
  jinja_string *trusted = jinja_take(run, sizeof *trusted);
  if (trusted == NULL) return;
  *trusted = *role->string;
  trusted->mark = JINJA_MARK_TEMPLATE;
  role->string = trusted;
}

// How the arguments of tool calls are passed to the template.
typedef enum arguments_form {
  AS_GIVEN,
  AS_OBJECTS,
  AS_TEXTS,
  IN_OBJECTS  // like AS_OBJECTS, and other text becomes the member "arguments" of an object
} arguments_form;

// Converts arguments to an object. An empty string, or null, becomes an empty object: the call has
// no arguments.
static void read_object(jinja_run *run, jinja_value *arguments, arguments_form form) {
  jinja_run reading = *run;
  const jinja_string *text = arguments->string;
  const jinja_value read = jinja_read_json(&reading, text->bytes, text->size_bytes, text->mark);
  run->steps = reading.steps;
  if (reading.status != WICK_E_FORMAT) run->status = reading.status;
  const bool is_none =
      text->size_bytes == 0 || (reading.status == WICK_OK && read.kind == JINJA_NONE);
  if (read.kind == JINJA_DICT) {
    *arguments = read;
  } else if ((is_none || form == IN_OBJECTS) && run->status == WICK_OK) {
    const jinja_value object = {.kind = JINJA_DICT, .dict = jinja_new_dict(run)};
    if (run->status != WICK_OK) return;
    if (!is_none) messages_set(run, object, "arguments", *arguments);
    *arguments = object;
  }
}

static void change_arguments(jinja_run *run, jinja_value *arguments, arguments_form form) {
  const bool is_object = form == AS_OBJECTS || form == IN_OBJECTS;
  if (arguments->kind == JINJA_NONE && form != AS_GIVEN) *arguments = jinja_text_value(run, "{}");
  if (run->status != WICK_OK) return;
  if (arguments->kind == JINJA_STRING && is_object) {
    read_object(run, arguments, form);
  } else if (arguments->kind == JINJA_DICT && form == AS_TEXTS) {
    const jinja_json_style style = {0};
    jinja_buffer buffer = {0};
    jinja_write_json(run, &buffer, *arguments, &style);
    *arguments = jinja_buffer_value(run, &buffer);
  }
  run->has_arguments = true;
  if (arguments->kind == JINJA_DICT) arguments->dict->is_arguments = true;
  if (arguments->kind == JINJA_STRING) {
    jinja_string *text = jinja_take(run, sizeof *text);
    if (text == NULL) return;
    *text = *arguments->string;
    text->is_arguments = true;
    arguments->string = text;
  }
}

static void prepare_calls(jinja_run *run, jinja_value calls, arguments_form form) {
  for (uint32_t i = 0; calls.kind == JINJA_LIST && i < calls.list->count; i++) {
    const jinja_value call = calls.list->items[i];
    if (call.kind != JINJA_DICT) continue;
    const jinja_value *function = jinja_dict_find_text(call.dict, "function");
    const bool is_nested = function != NULL && function->kind == JINJA_DICT;
    jinja_value *arguments =
        jinja_dict_find_text(is_nested ? function->dict : call.dict, "arguments");
    if (arguments != NULL) change_arguments(run, arguments, form);
  }
}

static void prepare_messages(jinja_run *run, jinja_value messages, arguments_form form) {
  for (uint32_t i = 0; messages.kind == JINJA_LIST && i < messages.list->count; i++) {
    const jinja_value message = messages.list->items[i];
    if (message.kind != JINJA_DICT || run->status != WICK_OK) continue;
    trust_role(run, message.dict);
    const jinja_value *calls = jinja_dict_find_text(message.dict, "tool_calls");
    if (calls != NULL) prepare_calls(run, *calls, form);
    const jinja_value *call = jinja_dict_find_text(message.dict, "function_call");
    if (call != NULL && call->kind == JINJA_DICT) {
      jinja_value *arguments = jinja_dict_find_text(call->dict, "arguments");
      if (arguments != NULL) change_arguments(run, arguments, form);
    }
  }
}

// Adds the members of a JSON object to the variables.
static void read_variables(jinja_run *run, const char *json, size_t size_bytes, uint8_t mark) {
  if (json == NULL || size_bytes == 0) return;
  const jinja_value object = jinja_read_json(run, json, size_bytes, mark);
  if (run->status != WICK_OK) return;
  if (object.kind != JINJA_DICT) {
    jinja_fail(run, WICK_E_FORMAT, "a template's variables are not a JSON object");
    return;
  }
  for (uint32_t i = 0; i < object.dict->count; i++) {
    jinja_put(run, run->variables, object.dict->entries[i].key, object.dict->entries[i].value);
  }
}

// ---- rendering ----

// Copies text and spans into one block that outlives the arena.
static wick_status finish_text(memory_gate *memory, const jinja_buffer *buffer, template_text *text,
                               wick_error *error) {
  size_t span_count = buffer->size_bytes > 0;
  for (uint32_t i = 1; i < buffer->size_bytes; i++) {
    span_count += buffer->marks[i] != buffer->marks[i - 1];
  }
  const size_t spans_bytes = span_count * sizeof(wick_span);
  char *block = memory_alloc(memory, spans_bytes + buffer->size_bytes + 1);
  if (block == NULL) {
    return memory_fail(memory, error, "a rendered template");
  }
  wick_span *spans = (wick_span *)(void *)block;
  size_t at = 0;
  for (uint32_t i = 0; i < buffer->size_bytes; i++) {
    const bool ends = i + 1 == buffer->size_bytes || buffer->marks[i + 1] != buffer->marks[i];
    if (ends) spans[at++] = (wick_span){i + 1, buffer->marks[i] == JINJA_MARK_CONTENT};
  }
  char *bytes = block + spans_bytes;
  if (buffer->size_bytes > 0) memcpy(bytes, buffer->bytes, buffer->size_bytes);
  bytes[buffer->size_bytes] = '\0';
  *text = (template_text){.bytes = bytes,
                          .size_bytes = buffer->size_bytes,
                          .spans = spans,
                          .span_count = span_count,
                          .memory = block};
  return WICK_OK;
}

typedef struct attempt {
  wick_status status;
  wick_error error;
  template_text text;
  bool has_arguments;
  bool is_doubtful;   // arguments were quoted twice or printed as Python does
  messages prepared;  // the lists in it must be freed
  bool is_complete;   // no message or call was omitted
} attempt;

static uint64_t limit_of(uint64_t fixed, uint64_t per_byte, const template_input *input) {
  const uint64_t bytes = (uint64_t)input->variables_bytes + input->own_bytes;
  return fixed + per_byte * bytes;
}

// Returns the step limit.
static size_t init_arena(jinja_arena *arena, memory_gate *memory, const template_input *input) {
  const uint64_t arena_bytes = limit_of(TEMPLATE_BYTES_MAX, TEMPLATE_BYTES_PER_BYTE, input);
  size_t limit_bytes;
  if (!checked_to_size(arena_bytes, &limit_bytes)) limit_bytes = SIZE_MAX / 2;
  jinja_arena_init(arena, memory, limit_bytes);
  return limit_bytes;
}

static void render_once(const chat_template *template, const template_input *input,
                        const messages_form *other, arguments_form form, attempt *out) {
  memory_gate *memory = template->memory;
  jinja_arena arena;
  const size_t limit_bytes = init_arena(&arena, memory, input);
  jinja_buffer buffer = {0};
  jinja_run run = {.program = &template->program,
                   .arena = &arena,
                   .out = &buffer,
                   .steps_max = limit_of(TEMPLATE_STEPS_MAX, TEMPLATE_STEPS_PER_BYTE, input),
                   .output_bytes_max = limit_bytes > INT32_MAX ? INT32_MAX : (uint32_t)limit_bytes,
                   .now_s = input->now_s,
                   .has_now = input->has_now,
                   .error = &out->error};
  *out = (attempt){0};
  run.variables = jinja_new_dict(&run);
  run.scope = jinja_new_scope(&run, NULL);
  read_variables(&run, input->own, input->own_bytes, JINJA_MARK_TEMPLATE);
  read_variables(&run, input->variables, input->variables_bytes, JINJA_MARK_CONTENT);
  if (run.status == WICK_OK && !input->keeps_arguments)
    messages_prepare(&run, other, &out->prepared);
  if (run.status == WICK_OK) {
    const jinja_value *messages = jinja_dict_find_text(run.variables, "messages");
    if (messages != NULL) prepare_messages(&run, *messages, form);
  }
  if (run.status == WICK_OK) jinja_execute(&run, template->program.body);
  out->is_complete = messages_are_rendered(&run, &out->prepared, &buffer);
  out->status = run.status;
  out->has_arguments = run.has_arguments;
  out->is_doubtful = run.quotes_arguments || run.prints_arguments;
  if (out->status == WICK_OK) {
    out->status = finish_text(memory, &buffer, &out->text, &out->error);
  }
  jinja_arena_free(&arena);
}

static bool is_limit(const attempt *rendered) {
  return rendered->status == WICK_E_FULL || rendered->status == WICK_E_NOMEM;
}

static void replace(memory_gate *memory, attempt *rendered, const attempt *better) {
  template_text_free(memory, &rendered->text);
  *rendered = *better;
}

// Arguments of calls are objects if the template accepts them. A template that fails with objects,
// or that prints them as Python writes dicts, receives strings.
static void render_form(const chat_template *template, const template_input *input,
                        const messages_form *form, attempt *made) {
  render_once(template, input, form, input->keeps_arguments ? AS_GIVEN : AS_OBJECTS, made);
  const bool has_other = made->has_arguments && !input->keeps_arguments;
  for (arguments_form next = AS_TEXTS; has_other && next <= IN_OBJECTS; next++) {
    attempt other;
    if (is_limit(made) || (made->status == WICK_OK && !made->is_doubtful)) return;
    if (made->status == WICK_OK && next == IN_OBJECTS) return;
    render_once(template, input, form, next, &other);
    // out of memory: the correct form is unknown
    if (other.status == WICK_OK || other.status == WICK_E_NOMEM) {
      replace(template->memory, made, &other);
    }
  }
}

static bool has_system_form(const messages *prepared, system_form form) {
  if (form == SYSTEM_AS_GIVEN) return true;
  return form == SYSTEM_NONE ? prepared->has_system : prepared->has_several_systems;
}

static bool has_turns_form(const messages *prepared, turns_form form) {
  return prepared->has_calls || (form == TURNS_JOINED && prepared->has_repeated_turns);
}

static bool next_turns(const messages *prepared, messages_form *form) {
  for (uint32_t next = (uint32_t)form->turns + 1; next < TURNS_FORMS; next++) {
    form->turns = (turns_form)next;
    if (has_turns_form(prepared, form->turns)) return true;
  }
  form->turns = TURNS_AS_GIVEN;
  return false;
}

// Advances to the next form that would change the conversation, smaller changes first. Returns
// false after the last one. If the template only omits parts, only the turns and the system
// messages are varied.
static bool next_form(const messages *prepared, bool is_refused, messages_form *form) {
  if (is_refused) {
    form->has_whole_tools = !form->has_whole_tools && prepared->has_partial_tools;
    if (form->has_whole_tools) return true;
    form->has_short_ids = !form->has_short_ids && prepared->has_long_ids;
    if (form->has_short_ids) return true;
    form->has_known_effort = !form->has_known_effort && prepared->has_unknown_effort;
    if (form->has_known_effort) return true;
  }
  do {
    if (next_turns(prepared, form)) return true;
    if (++form->system == SYSTEM_FORMS) return false;
  } while (!has_system_form(prepared, form->system));
  return true;
}

// Limits on the forms that are tried: all forms for short conversations, fewer for long
// conversations.
enum { FORMS_MAX = 24, FORMS_BYTES_MAX = 2 << 20 };

// Whether other forms cannot help, because rendering exceeded a limit. A tool without a type is an
// exception: some templates then loop forever.
static bool is_hopeless(const attempt *rendered, const messages_form *form) {
  const bool lacks_type = rendered->status == WICK_E_FULL && rendered->prepared.has_partial_tools;
  return is_limit(rendered) && !(lacks_type && !form->has_whole_tools);
}

wick_status template_render(const chat_template *template, const template_input *input,
                            template_text *text, wick_error *error) {
  messages_form form = {0};
  attempt best, other;
  size_t left = FORMS_MAX + FORMS_BYTES_MAX / (input->variables_bytes + 1);
  *text = (template_text){0};
  render_form(template, input, &form, &best);
  while (left-- > 0 && (best.status != WICK_OK || !best.is_complete) &&
         !is_hopeless(&best, &form) && next_form(&best.prepared, best.status != WICK_OK, &form)) {
    render_form(template, input, &form, &other);
    const bool is_better = other.status == WICK_OK && (best.status != WICK_OK || other.is_complete);
    if (is_better || other.status == WICK_E_NOMEM) {
      replace(template->memory, &best, &other);
    } else {
      template_text_free(template->memory, &other.text);
    }
  }
  if (best.status != WICK_OK && error != NULL) *error = best.error;
  *text = best.text;
  return best.status;
}

wick_status template_has_tools(memory_gate *memory, const char *json, size_t size_bytes, bool *out,
                               wick_error *error) {
  const template_input input = {.variables = json, .variables_bytes = size_bytes};
  jinja_arena arena;
  wick_error reason;
  init_arena(&arena, memory, &input);
  jinja_run run = {.arena = &arena,
                   .steps_max = limit_of(TEMPLATE_STEPS_MAX, TEMPLATE_STEPS_PER_BYTE, &input),
                   .error = &reason};
  const jinja_value all = jinja_read_json(&run, json, size_bytes, JINJA_MARK_CONTENT);
  const bool is_dict = run.status == WICK_OK && all.kind == JINJA_DICT;
  const jinja_value *tools = is_dict ? jinja_dict_find_text(all.dict, "tools") : NULL;
  *out = tools != NULL && tools->kind == JINJA_LIST && tools->list->count > 0;
  jinja_arena_free(&arena);
  if (run.status != WICK_E_NOMEM) return WICK_OK;
  if (error != NULL) *error = reason;
  return WICK_E_NOMEM;
}

void template_text_free(memory_gate *memory, template_text *text) {
  memory_free(memory, text->memory);
  *text = (template_text){0};
}
