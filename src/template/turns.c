// template/turns.c — messages for templates that require user and assistant to alternate, or do not
// support tools.
#include "template/messages.h"

static bool is_system(jinja_value message) {
  return messages_have_role(message, "system") || messages_have_role(message, "developer");
}

static bool is_tool(jinja_value message) { return messages_have_role(message, "tool"); }

static bool has_text(jinja_value message) {
  const jinja_value *content = messages_member(message, "content");
  return content != NULL && content->kind == JINJA_STRING;
}

// Whether two messages can be merged into one.
static bool are_one_turn(jinja_value first, jinja_value second) {
  const bool is_users = messages_have_role(first, "user") && messages_have_role(second, "user");
  const bool is_assistants =
      messages_have_role(first, "assistant") && messages_have_role(second, "assistant");
  return (is_users || is_assistants) && has_text(first) && has_text(second) &&
         messages_member(first, "tool_calls") == NULL;
}

static jinja_value text_of_arguments(jinja_run *run, const jinja_value *arguments) {
  if (arguments == NULL) return jinja_text_value(run, "");
  if (arguments->kind == JINJA_STRING) return *arguments;
  const jinja_json_style style = {0};
  jinja_buffer text = {0};
  jinja_write_json(run, &text, *arguments, &style);
  return jinja_buffer_value(run, &text);
}

// Writes "name arguments" of each call on a separate line after the text.
static void write_calls(jinja_run *run, jinja_value message) {
  const jinja_value *calls = messages_member(message, "tool_calls");
  if (calls == NULL || calls->kind != JINJA_LIST || !has_text(message)) return;
  const jinja_list *list = calls->list;
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK; i++) {
    const jinja_value *function = messages_member(list->items[i], "function");
    const jinja_value holder = function == NULL ? list->items[i] : *function;
    const jinja_value *name = messages_member(holder, "name");
    const jinja_value *arguments = messages_member(holder, "arguments");
    if (name == NULL || name->kind != JINJA_STRING) continue;
    const jinja_value text = text_of_arguments(run, arguments);
    if (run->status != WICK_OK) return;
    const jinja_value call = messages_join(run, *name, " ", text);
    if (run->status != WICK_OK) return;
    messages_set(run, message, "content",
                 messages_join(run, *messages_member(message, "content"), "\n", call));
  }
  messages_remove(run, message.dict, "tool_calls");
}

static bool has_calls(jinja_value message) {
  return messages_member(message, "tool_calls") != NULL;
}

static bool is_empty_answer(jinja_value message) {
  return messages_have_role(message, "assistant") && !has_calls(message) && has_text(message) &&
         messages_member(message, "content")->string->size_bytes == 0;
}

static bool is_called(const jinja_value *last) {
  return last != NULL && (is_tool(*last) || has_calls(*last));
}

// Adds a message that a template requires before this one: an answer after calls and results if the
// user did not wait for one, and a user message at the beginning. The added message is not empty,
// because templates also reject empty answers.
static void add_missing(jinja_run *run, jinja_list *list, const jinja_value *last,
                        jinja_value message) {
  const bool is_first = last == NULL || is_system(*last);
  if (is_called(last) && messages_have_role(message, "user")) {
    jinja_add_item(run, list, messages_make(run, "assistant", jinja_text_value(run, " ")));
  } else if (is_first && messages_have_role(message, "assistant")) {
    jinja_add_item(run, list, messages_make(run, "user", jinja_text_value(run, "")));
  }
}

static void add(jinja_run *run, jinja_list *list, jinja_value message) {
  jinja_value *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
  if (is_empty_answer(message)) return;
  if (is_tool(message) && !is_called(last)) {
    messages_set(run, message, "role", jinja_text_value(run, "user"));
  }
  if (last == NULL || !are_one_turn(*last, message)) {
    add_missing(run, list, last, message);
    if (run->status == WICK_OK) jinja_add_item(run, list, message);
    return;
  }
  const jinja_value both = messages_join(run, *messages_member(*last, "content"), "\n\n",
                                         *messages_member(message, "content"));
  messages_set(run, *last, "content", both);
  jinja_value *calls = messages_member(message, "tool_calls");
  if (calls != NULL) messages_set(run, *last, "tool_calls", *calls);
}

// ---- one call per message ----

static void add_call(jinja_run *run, jinja_list *list, jinja_value call) {
  jinja_list *calls = jinja_new_list(run, 1);
  const jinja_value message = messages_make(run, "assistant", jinja_text_value(run, ""));
  if (run->status != WICK_OK) return;
  jinja_add_item(run, calls, call);
  messages_set(run, message, "tool_calls", jinja_list_value(calls));
  jinja_add_item(run, list, message);
}

// Adds the results in messages [from, end) that have the call's id, or all remaining results if the
// call is NULL. Added results become undefined.
static void add_results(jinja_run *run, jinja_list *list, const jinja_list *messages, uint32_t from,
                        uint32_t end, const jinja_value *call) {
  for (uint32_t i = from; i < end && run->status == WICK_OK; i++) {
    jinja_value *result = &messages->items[i];
    if (result->kind != JINJA_DICT) continue;
    if (call != NULL && !messages_has_id(run, *call, *result)) continue;
    jinja_add_item(run, list, *result);
    *result = JINJA_NOTHING;
  }
}

// Returns the index after the message at `at` and its results.
static uint32_t add_split(jinja_run *run, jinja_list *list, const jinja_list *messages,
                          uint32_t at) {
  const jinja_value message = messages->items[at];
  const jinja_list *calls = messages_member(message, "tool_calls")->list;
  uint32_t end = at + 1;
  while (end < messages->count && is_tool(messages->items[end])) end++;
  messages_remove(run, message.dict, "tool_calls");
  add(run, list, message);
  for (uint32_t i = 0; i < calls->count && run->status == WICK_OK; i++) {
    add_call(run, list, calls->items[i]);
    add_results(run, list, messages, at + 1, end, &calls->items[i]);
  }
  add_results(run, list, messages, at + 1, end, NULL);
  return end;
}

// Joins reasoning and text of a message with calls: gpt-oss's template rejects both together, and
// renders the text as reasoning.
static void join_thoughts(jinja_run *run, jinja_value message) {
  const jinja_value *thoughts = messages_member(message, "thinking");
  if (thoughts == NULL || thoughts->kind != JINJA_STRING || !has_calls(message)) return;
  if (!has_text(message) || messages_member(message, "content")->string->size_bytes == 0) return;
  messages_set(run, message, "content",
               messages_join(run, *thoughts, "\n\n", *messages_member(message, "content")));
  messages_remove(run, message.dict, "thinking");
}

// ---- the whole conversation ----

static void look(const jinja_list *list, messages *out) {
  const jinja_value *last = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const jinja_value *message = &list->items[i];
    if (is_system(*message)) continue;
    out->has_calls = out->has_calls || is_tool(*message) || has_calls(*message);
    const bool is_out_of_turn =
        last == NULL ? messages_have_role(*message, "assistant") : are_one_turn(*last, *message);
    if (is_out_of_turn || is_empty_answer(*message)) out->has_repeated_turns = true;
    last = message;
  }
}

static void null_contents(jinja_run *run, const jinja_list *list) {
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK; i++) {
    const jinja_value message = list->items[i];
    if (!has_calls(message) || !has_text(message)) continue;
    if (messages_member(message, "content")->string->size_bytes > 0) continue;
    messages_set(run, message, "content", jinja_none());
  }
}

static void join_turns(jinja_run *run, const jinja_list *list, bool is_splitting, jinja_list *out) {
  const bool knows_results = messages_template_has(run, "tool");
  const bool knows_calls =
      messages_template_has(run, "tool_calls") || messages_template_names(run, "tool_calls");
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK;) {
    const jinja_value message = list->items[i];
    join_thoughts(run, message);
    if (!knows_calls) write_calls(run, message);
    if (!knows_results && is_tool(message)) {
      messages_set(run, message, "role", jinja_text_value(run, "user"));
    }
    if (run->status != WICK_OK) return;
    const jinja_value *calls = messages_member(message, "tool_calls");
    if (is_splitting && calls != NULL && calls->kind == JINJA_LIST) {
      i = add_split(run, out, list, i);
    } else {
      add(run, out, message);
      i++;
    }
  }
}

static void change_turns(jinja_run *run, bool is_splitting, messages *out) {
  jinja_list *joined = jinja_new_list(run, out->list->count);
  if (joined == NULL) return;
  join_turns(run, out->list, is_splitting, joined);
  if (run->status != WICK_OK) return;
  *jinja_dict_find_text(run->variables, "messages") = jinja_list_value(joined);
  out->list = joined;
}

void turns_prepare(jinja_run *run, const messages_form *form, messages *out) {
  if (run->status != WICK_OK) return;
  look(out->list, out);
  if (form->turns >= TURNS_JOINED) change_turns(run, form->turns >= TURNS_SPLIT, out);
  const bool is_null = form->turns == TURNS_NULL_CONTENT || form->turns == TURNS_SPLIT_NULL_CONTENT;
  if (is_null && run->status == WICK_OK) null_contents(run, out->list);
}
