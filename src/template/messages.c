// template/messages.c — members of messages: removes members without meaning, and replaces names
// and forms that templates do not support.
#include "template/messages.h"

#include <string.h>

#include "base/hash.h"

// ---- parts ----

jinja_value *messages_member(jinja_value message, const char *name) {
  return message.kind == JINJA_DICT ? jinja_dict_find_text(message.dict, name) : NULL;
}

bool messages_have_role(jinja_value message, const char *role) {
  const jinja_value *found = messages_member(message, "role");
  return found != NULL && found->kind == JINJA_STRING && jinja_string_is(found->string, role);
}

void messages_set(jinja_run *run, jinja_value message, const char *name, jinja_value value) {
  jinja_value *found = messages_member(message, name);
  if (found != NULL) {
    *found = value;
  } else if (message.kind == JINJA_DICT) {
    jinja_put(run, message.dict, jinja_text_value(run, name), value);
  }
}

jinja_value messages_join(jinja_run *run, jinja_value first, const char *separator,
                          jinja_value second) {
  if (first.string->size_bytes == 0) return second;
  if (second.string->size_bytes == 0) return first;
  jinja_buffer both = {0};
  jinja_write_string(run, &both, first.string);
  jinja_write_text(run, &both, separator, JINJA_MARK_CONTENT);
  jinja_write_string(run, &both, second.string);
  return jinja_buffer_value(run, &both);
}

bool messages_template_has(const jinja_run *run, const char *word) {
  for (uint32_t i = 0; i < run->program->constant_count; i++) {
    const jinja_value constant = run->program->constants[i];
    if (constant.kind == JINJA_STRING && jinja_string_is(constant.string, word)) return true;
  }
  return false;
}

bool messages_template_names(const jinja_run *run, const char *word) {
  for (uint32_t i = 0; i < run->program->name_count; i++) {
    if (jinja_string_is(run->program->names[i], word)) return true;
  }
  return false;
}

bool messages_is_nothing(jinja_value value) {
  switch (value.kind) {
    case JINJA_NONE:
      return true;
    case JINJA_STRING:
      return value.string->size_bytes == 0;
    case JINJA_LIST:
      return value.list->count == 0;
    case JINJA_DICT:
      return value.dict->count == 0;
    default:
      return false;
  }
}

void messages_remove(jinja_run *run, jinja_dict *dict, const char *name) {
  const jinja_value key = jinja_text_value(run, name);
  jinja_entry *entry = run->status == WICK_OK ? jinja_dict_find(dict, key) : NULL;
  if (entry != NULL) jinja_dict_remove(dict, entry);
}

jinja_value messages_make(jinja_run *run, const char *role, jinja_value text) {
  const jinja_value message = {.kind = JINJA_DICT, .dict = jinja_new_dict(run)};
  if (run->status != WICK_OK) return JINJA_NOTHING;
  messages_set(run, message, "role", jinja_text_value(run, role));
  messages_set(run, message, "content", text);
  return message;
}

static jinja_value empty_text(jinja_run *run) { return jinja_text_value(run, ""); }

// ---- members ----

static void remove_empty(jinja_run *run, jinja_dict *message) {
  for (uint32_t i = message->count; i-- > 0 && jinja_step(run, 1);) {
    jinja_entry *entry = &message->entries[i];
    const bool stays =
        entry->key.kind == JINJA_STRING && (jinja_string_is(entry->key.string, "role") ||
                                            jinja_string_is(entry->key.string, "content"));
    if (!stays && messages_is_nothing(entry->value)) jinja_dict_remove(message, entry);
  }
}

// Returns the text of a list of parts that are all text; undefined if there are other parts.
static jinja_value text_of_parts(jinja_run *run, const jinja_list *parts) {
  jinja_value text = empty_text(run);
  for (uint32_t i = 0; i < parts->count && run->status == WICK_OK; i++) {
    const jinja_value *type = messages_member(parts->items[i], "type");
    const jinja_value *part = messages_member(parts->items[i], "text");
    const bool is_text = type != NULL && type->kind == JINJA_STRING &&
                         jinja_string_is(type->string, "text") && part != NULL &&
                         part->kind == JINJA_STRING;
    if (!is_text) return JINJA_NOTHING;
    text = messages_join(run, text, "\n", *part);
  }
  return text;
}

static void prepare_content(jinja_run *run, jinja_value message) {
  const jinja_value *content = messages_member(message, "content");
  const jinja_value *refused = messages_member(message, "refusal");
  jinja_value text = JINJA_NOTHING;
  if (content == NULL || content->kind == JINJA_NONE) {
    text = empty_text(run);
  } else if (content->kind == JINJA_LIST) {
    text = text_of_parts(run, content->list);
  }
  const bool is_empty = text.kind == JINJA_STRING
                            ? text.string->size_bytes == 0
                            : content != NULL && messages_is_nothing(*content);
  if (is_empty && refused != NULL && refused->kind == JINJA_STRING) text = *refused;
  if (text.kind == JINJA_STRING) messages_set(run, message, "content", text);
}

static void prepare_reasoning(jinja_run *run, jinja_value message) {
  const jinja_value *reasoning = messages_member(message, "reasoning");
  if (reasoning == NULL || reasoning->kind != JINJA_STRING) return;
  if (messages_member(message, "reasoning_content") != NULL) return;
  messages_set(run, message, "reasoning_content", *reasoning);
}

// Adds the name `thinking`, under which the templates of gpt-oss and LFM 2.5 read the reasoning.
static void prepare_thinking(jinja_run *run, jinja_value message) {
  const jinja_value *reasoning = messages_member(message, "reasoning_content");
  const bool has_other_name =
      messages_template_has(run, "thinking") || messages_template_names(run, "thinking");
  if (reasoning == NULL || messages_member(message, "thinking") != NULL || !has_other_name) return;
  if (messages_template_has(run, "reasoning_content")) return;
  if (messages_template_names(run, "reasoning_content")) return;
  messages_set(run, message, "thinking", *reasoning);
}

static void prepare_types(jinja_run *run, jinja_value message) {
  const jinja_value *calls = messages_member(message, "tool_calls");
  const bool has_calls = calls != NULL && calls->kind == JINJA_LIST;
  for (uint32_t i = 0; has_calls && i < calls->list->count && run->status == WICK_OK; i++) {
    const jinja_value call = calls->list->items[i];
    if (messages_member(call, "function") == NULL || messages_member(call, "type") != NULL)
      continue;
    messages_set(run, call, "type", jinja_text_value(run, "function"));
  }
}

static void prepare_message(jinja_run *run, jinja_value message, bool knows_developer) {
  remove_empty(run, message.dict);
  prepare_content(run, message);
  prepare_reasoning(run, message);
  if (run->status == WICK_OK) prepare_thinking(run, message);
  prepare_types(run, message);
  if (!knows_developer && messages_have_role(message, "developer")) {
    messages_set(run, message, "role", jinja_text_value(run, "system"));
  }
}

// ---- call ids ----

enum { SHORT_ID_BYTES = 9 };

static bool is_short_id(const jinja_value *id) {
  if (id == NULL || id->kind != JINJA_STRING || id->string->size_bytes != SHORT_ID_BYTES) {
    return false;
  }
  for (uint32_t i = 0; i < SHORT_ID_BYTES; i++) {
    const char c = id->string->bytes[i];
    if ((c < '0' || c > '9') && ((c | 0x20) < 'a' || (c | 0x20) > 'z')) return false;
  }
  return true;
}

// Returns a short id. Equal ids have equal short ids, so that a call and its result stay together.
static jinja_value short_id(jinja_run *run, const jinja_value *id, uint32_t index) {
  const bool is_text = id != NULL && id->kind == JINJA_STRING && id->string->size_bytes > 0;
  const void *bytes = is_text ? (const void *)id->string->bytes : &index;
  uint64_t hash = hash_bytes(bytes, is_text ? id->string->size_bytes : sizeof index, is_text);
  char name[SHORT_ID_BYTES + 1] = {0};
  for (uint32_t i = 0; i < SHORT_ID_BYTES; i++, hash /= 36) {
    name[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[hash % 36];
  }
  return jinja_text_value(run, name);
}

static void prepare_id(jinja_run *run, jinja_value holder, const char *name, uint32_t index,
                       bool is_short, messages *out) {
  const jinja_value *id = messages_member(holder, name);
  if (is_short_id(id)) return;
  out->has_long_ids = true;
  if (is_short) messages_set(run, holder, name, short_id(run, id, index));
}

// The newest message with calls, and the results that follow it.
typedef struct call_turn {
  const jinja_list *calls;  // NULL: none
  uint32_t calls_before, results;
} call_turn;

bool messages_has_id(jinja_run *run, jinja_value call, jinja_value result) {
  const jinja_value *id = messages_member(call, "id");
  const jinja_value *wanted = messages_member(result, "tool_call_id");
  return id != NULL && wanted != NULL && jinja_equal(run, *id, *wanted);
}

// Prepares a result of a call. A result without an id, or with an id that no call has, belongs to
// the call at the same index in the list.
static void prepare_result(jinja_run *run, jinja_value result, call_turn *turn, bool is_short,
                           messages *out) {
  const uint32_t place = turn->results++;
  prepare_id(run, result, "tool_call_id", turn->calls_before + place, is_short, out);
  if (turn->calls == NULL || place >= turn->calls->count) return;
  for (uint32_t i = 0; i < turn->calls->count && run->status == WICK_OK; i++) {
    if (messages_has_id(run, turn->calls->items[i], result)) return;
  }
  out->has_long_ids = true;
  const jinja_value *id = messages_member(turn->calls->items[place], "id");
  if (is_short && id != NULL) messages_set(run, result, "tool_call_id", *id);
}

static void prepare_ids(jinja_run *run, const messages_form *form, messages *out) {
  call_turn turn = {0};
  uint32_t calls_seen = 0;
  for (uint32_t i = 0; i < out->list->count && run->status == WICK_OK; i++) {
    const jinja_value message = out->list->items[i];
    const jinja_value *calls = messages_member(message, "tool_calls");
    const bool has_calls = calls != NULL && calls->kind == JINJA_LIST;
    if (has_calls) turn = (call_turn){.calls = calls->list, .calls_before = calls_seen};
    for (uint32_t k = 0; has_calls && k < calls->list->count; k++) {
      prepare_id(run, calls->list->items[k], "id", calls_seen++, form->has_short_ids, out);
    }
    if (messages_have_role(message, "tool")) {
      prepare_result(run, message, &turn, form->has_short_ids, out);
    }
  }
}

// ---- text that a template omits ----

// Tracks whether the member's text is rendered, unless it is empty.
static void follow(jinja_run *run, jinja_value holder, const char *name, messages *out) {
  jinja_value *value = messages_member(holder, name);
  if (value == NULL || value->kind != JINJA_STRING || value->string->size_bytes == 0) return;
  jinja_string *followed = jinja_take(run, sizeof *followed);
  if (followed == NULL) return;
  *followed = *value->string;
  followed->is_used = &out->used[out->used_count++];
  value->string = followed;
}

static uint32_t count_calls(jinja_value message) {
  const jinja_value *calls = messages_member(message, "tool_calls");
  return calls != NULL && calls->kind == JINJA_LIST ? calls->list->count : 0;
}

static void follow_parts(jinja_run *run, messages *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < out->list->count; i++) count += 1 + count_calls(out->list->items[i]);
  out->used = jinja_take(run, count * sizeof *out->used);
  if (out->used == NULL) return;
  memset(out->used, 0, count * sizeof *out->used);
  for (uint32_t i = 0; i < out->list->count && run->status == WICK_OK; i++) {
    const jinja_value message = out->list->items[i];
    // the template decides which earlier assistant messages are kept
    if (!messages_have_role(message, "assistant")) follow(run, message, "content", out);
    for (uint32_t k = 0; k < count_calls(message); k++) {
      const jinja_value call = messages_member(message, "tool_calls")->list->items[k];
      const jinja_value *function = messages_member(call, "function");
      follow(run, function == NULL ? call : *function, "name", out);
    }
  }
}

// ---- the whole conversation ----

void messages_prepare(jinja_run *run, const messages_form *form, messages *out) {
  *out = (messages){0};
  tools_prepare(run, form, out);
  effort_prepare(run, form, out);
  const jinja_value *list = jinja_dict_find_text(run->variables, "messages");
  if (list == NULL || list->kind != JINJA_LIST) return;
  out->list = list->list;
  const bool knows_developer = messages_template_has(run, "developer");
  for (uint32_t i = 0; i < out->list->count && run->status == WICK_OK; i++) {
    const jinja_value message = out->list->items[i];
    if (message.kind == JINJA_DICT) prepare_message(run, message, knows_developer);
  }
  prepare_ids(run, form, out);
  systems_prepare(run, form, out);
  turns_prepare(run, form, out);
  if (run->status == WICK_OK) follow_parts(run, out);
}
