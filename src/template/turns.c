// template/turns.c — turns for templates that need those of user and assistant alternately, or know
// no tools.
#include "template/messages.h"

static bool is_system(jinja_value message) {
  return messages_have_role(message, "system") || messages_have_role(message, "developer");
}

static bool is_tool(jinja_value message) { return messages_have_role(message, "tool"); }

static bool has_text(jinja_value message) {
  const jinja_value *content = messages_member(message, "content");
  return content != NULL && content->kind == JINJA_STRING;
}

// True for two messages that one could be instead.
static bool are_one_turn(jinja_value first, jinja_value second) {
  const bool is_users = messages_have_role(first, "user") && messages_have_role(second, "user");
  const bool is_assistants =
      messages_have_role(first, "assistant") && messages_have_role(second, "assistant");
  return (is_users || is_assistants) && has_text(first) && has_text(second) &&
         messages_member(first, "tool_calls") == NULL;
}

// "name arguments" of each call, a line each, after the text.
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
    const bool is_text = arguments != NULL && arguments->kind == JINJA_STRING;
    const jinja_value call = is_text ? messages_join(run, *name, " ", *arguments) : *name;
    if (run->status != WICK_OK) return;
    messages_set(run, message, "content",
                 messages_join(run, *messages_member(message, "content"), "\n", call));
  }
  jinja_entry *entry = jinja_dict_find(message.dict, jinja_text_value(run, "tool_calls"));
  if (run->status == WICK_OK && entry != NULL) jinja_dict_remove(message.dict, entry);
}

// The answer after the results of calls, where the user did not wait for it.
static void add_missing_answer(jinja_run *run, jinja_list *list) {
  const jinja_value answer = {.kind = JINJA_DICT, .dict = jinja_new_dict(run)};
  if (run->status != WICK_OK) return;
  messages_set(run, answer, "role", jinja_text_value(run, "assistant"));
  messages_set(run, answer, "content", jinja_text_value(run, ""));
  jinja_add_item(run, list, answer);
}

static void add(jinja_run *run, jinja_list *list, jinja_value message) {
  jinja_value *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
  if (last == NULL || !are_one_turn(*last, message)) {
    if (last != NULL && is_tool(*last) && messages_have_role(message, "user")) {
      add_missing_answer(run, list);
    }
    jinja_add_item(run, list, message);
    return;
  }
  const jinja_value both = messages_join(run, *messages_member(*last, "content"), "\n\n",
                                         *messages_member(message, "content"));
  messages_set(run, *last, "content", both);
  jinja_value *calls = messages_member(message, "tool_calls");
  if (calls != NULL) messages_set(run, *last, "tool_calls", *calls);
}

static bool have_turns_to_join(const jinja_list *list) {
  const jinja_value *last = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const jinja_value *message = &list->items[i];
    if (is_system(*message)) continue;
    if (is_tool(*message) || (last != NULL && are_one_turn(*last, *message))) return true;
    last = message;
  }
  return false;
}

void turns_prepare(jinja_run *run, const messages_form *form, messages *out) {
  if (run->status != WICK_OK) return;
  const jinja_list *list = out->list;
  out->has_repeated_turns = have_turns_to_join(list);
  if (!form->joins_turns) return;
  const bool knows_tools = messages_template_has(run, "tool");
  jinja_list *joined = jinja_new_list(run, list->count);
  for (uint32_t i = 0; joined != NULL && i < list->count && run->status == WICK_OK; i++) {
    const jinja_value message = list->items[i];
    if (!knows_tools) write_calls(run, message);
    if (!knows_tools && is_tool(message)) {
      messages_set(run, message, "role", jinja_text_value(run, "user"));
    }
    if (run->status == WICK_OK) add(run, joined, message);
  }
  if (run->status != WICK_OK) return;
  *jinja_dict_find_text(run->variables, "messages") = jinja_list_value(joined);
  out->list = joined;
}
