// template/system_messages.c — several system messages, or later system messages, for templates
// that support only one at the beginning, or none.
#include "template/messages.h"

static bool is_system(jinja_value message) {
  const jinja_value *content = messages_member(message, "content");
  const bool has_text = content != NULL && content->kind == JINJA_STRING;
  return has_text &&
         (messages_have_role(message, "system") || messages_have_role(message, "developer"));
}

static bool is_user(const jinja_value *message) {
  if (message == NULL || !messages_have_role(*message, "user")) return false;
  const jinja_value *content = messages_member(*message, "content");
  return content != NULL && content->kind == JINJA_STRING;
}

static jinja_value text_of(jinja_value message) { return *messages_member(message, "content"); }

static void set_text(jinja_run *run, jinja_value message, jinja_value text) {
  messages_set(run, message, "content", text);
}

// Joins the consecutive system messages starting at *at, and moves *at past them.
static jinja_value take_run(jinja_run *run, const jinja_list *list, uint32_t *at) {
  jinja_value text = jinja_text_value(run, "");
  for (; *at < list->count && is_system(list->items[*at]) && run->status == WICK_OK; ++*at) {
    text = messages_join(run, text, "\n\n", text_of(list->items[*at]));
  }
  return text;
}

// Adds the text of later system messages before the next user message, or after the previous user
// message: many templates require user and assistant messages to alternate.
static void add_later(jinja_run *run, const jinja_list *list, uint32_t next, jinja_value text,
                      jinja_list *out) {
  jinja_value *following = next < list->count ? &list->items[next] : NULL;
  jinja_value *before = out->count > 0 ? &out->items[out->count - 1] : NULL;
  if (is_user(following)) {
    set_text(run, *following, messages_join(run, text, "\n\n", text_of(*following)));
  } else if (is_user(before)) {
    set_text(run, *before, messages_join(run, text_of(*before), "\n\n", text));
  } else {
    jinja_add_item(run, out, messages_make(run, "user", text));
  }
}

static void join_leading(jinja_run *run, const jinja_list *list, jinja_list *out) {
  uint32_t at = 0;
  const jinja_value leading = take_run(run, list, &at);
  if (at > 0) jinja_add_item(run, out, messages_make(run, "system", leading));
  while (at < list->count && run->status == WICK_OK) {
    if (!is_system(list->items[at])) {
      jinja_add_item(run, out, list->items[at++]);
      continue;
    }
    const jinja_value later = take_run(run, list, &at);
    if (run->status == WICK_OK) add_later(run, list, at, later, out);
  }
}

static void join_all(jinja_run *run, const jinja_list *list, bool has_role, jinja_list *out) {
  jinja_value text = jinja_text_value(run, "");
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK; i++) {
    if (is_system(list->items[i])) {
      text = messages_join(run, text, "\n\n", text_of(list->items[i]));
    }
  }
  bool is_placed = false;
  if (has_role) jinja_add_item(run, out, messages_make(run, "system", text));
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK; i++) {
    jinja_value *message = &list->items[i];
    if (is_system(*message)) continue;
    if (!has_role && !is_placed && is_user(message)) {
      set_text(run, *message, messages_join(run, text, "\n\n", text_of(*message)));
      is_placed = true;
    } else if (!has_role && !is_placed && out->count == 0) {
      jinja_add_item(run, out, messages_make(run, "user", text));
      is_placed = true;
    }
    jinja_add_item(run, out, *message);
  }
  if (!has_role && !is_placed) jinja_add_item(run, out, messages_make(run, "user", text));
}

void systems_prepare(jinja_run *run, const messages_form *form, messages *out) {
  const jinja_list *list = out->list;
  out->systems = jinja_new_list(run, 0);
  for (uint32_t i = 0; i < list->count && run->status == WICK_OK; i++) {
    if (!is_system(list->items[i])) continue;
    out->has_several_systems = out->has_several_systems || out->has_system || i > 0;
    out->has_system = true;
    jinja_add_item(run, out->systems,
                   jinja_strip(run, text_of(list->items[i]).string, NULL, true, true));
  }
  if (run->status != WICK_OK || form->system == SYSTEM_AS_GIVEN) return;
  jinja_list *changed = jinja_new_list(run, list->count);
  if (changed == NULL) return;
  if (form->system == SYSTEM_THEN_USER) {
    join_leading(run, list, changed);
  } else {
    join_all(run, list, form->system == SYSTEM_FIRST, changed);
  }
  if (run->status != WICK_OK) return;
  *jinja_dict_find_text(run->variables, "messages") = jinja_list_value(changed);
  out->list = changed;
}

bool messages_are_rendered(jinja_run *run, const messages *prepared, const jinja_buffer *text) {
  if (run->status != WICK_OK) return true;
  for (uint32_t i = 0; i < prepared->used_count; i++) {
    if (!prepared->used[i]) return false;
  }
  if (!prepared->has_several_systems) return true;
  const jinja_value whole = jinja_buffer_value(run, text);
  for (uint32_t i = 0; i < prepared->systems->count && run->status == WICK_OK; i++) {
    const jinja_string *system = prepared->systems->items[i].string;
    if (jinja_find_part(run, whole.string, system, 0) == UINT32_MAX) return false;
  }
  return run->status == WICK_OK;
}
