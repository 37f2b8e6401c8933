// template/methods.c — methods of strings, lists, dicts and loops. Source: Python's documentation,
// "Built-in Types". Unlike in Jinja's sandbox, lists and dicts can be changed, because they belong
// to the rendering.
#include <string.h>

#include "template/names.h"
#include "text/unicode.h"

// ---- strings ----

static uint32_t characters_before(jinja_run *run, const jinja_string *string, uint32_t at) {
  const jinja_string before = {.bytes = string->bytes, .size_bytes = at};
  jinja_step_bytes(run, at);
  return jinja_string_length(&before);
}

enum { FROM_RIGHT = 1, MUST_EXIST = 2 };

static jinja_value find(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_string *part = jinja_string_argument(run, call, 0, "sub");
  if (part == NULL) return JINJA_NOTHING;
  const uint32_t found = (call->how & FROM_RIGHT) != 0
                             ? jinja_find_last(run, self, part, self->size_bytes)
                             : jinja_find_part(run, self, part, 0);
  if (found != UINT32_MAX) return jinja_int(characters_before(run, self, found));
  if ((call->how & MUST_EXIST) == 0) return jinja_int(-1);
  return jinja_fail(run, WICK_E_FORMAT, "a substring is not found");
}

static jinja_value count_part(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_string *part = jinja_string_argument(run, call, 0, "sub");
  if (part == NULL) return JINJA_NOTHING;
  if (part->size_bytes == 0) {
    return jinja_int((int64_t)characters_before(run, self, self->size_bytes) + 1);
  }
  int64_t count = 0;
  for (uint32_t at = 0; (at = jinja_find_part(run, self, part, at)) != UINT32_MAX;
       at += part->size_bytes) {
    count++;
  }
  return jinja_int(count);
}

static bool begins_or_ends(jinja_run *run, const jinja_string *self, const jinja_string *part,
                           bool at_end) {
  if (part->size_bytes > self->size_bytes) return false;
  if (!jinja_step_bytes(run, part->size_bytes)) return false;
  const uint32_t at = at_end ? self->size_bytes - part->size_bytes : 0;
  return memcmp(self->bytes + at, part->bytes, part->size_bytes) == 0;
}

// Implements startswith and endswith: the argument is a string or a tuple of strings.
static jinja_value has_end(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_value *given = jinja_argument(call, 0, "prefix");
  if (given != NULL && given->kind == JINJA_TUPLE) {
    for (uint32_t i = 0; i < given->list->count && jinja_step(run, 1); i++) {
      const jinja_value part = given->list->items[i];
      if (part.kind == JINJA_STRING && begins_or_ends(run, self, part.string, call->how)) {
        return jinja_bool(true);
      }
    }
    return jinja_bool(false);
  }
  const jinja_string *part = jinja_string_argument(run, call, 0, "prefix");
  if (part == NULL) return JINJA_NOTHING;
  return jinja_bool(begins_or_ends(run, self, part, call->how));
}

static jinja_value remove_end(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_string *part = jinja_string_argument(run, call, 0, "prefix");
  if (part == NULL) return JINJA_NOTHING;
  if (!begins_or_ends(run, self, part, call->how)) return jinja_of_string(self);
  const uint32_t left = self->size_bytes - part->size_bytes;
  return call->how ? jinja_part(run, self, 0, left)
                   : jinja_part(run, self, part->size_bytes, self->size_bytes);
}

enum { AT_LEFT = 1, AT_RIGHT = 2 };

static jinja_value strip(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_value *given = jinja_argument(call, 0, "chars");
  const jinja_string *set = NULL;
  if (given != NULL && given->kind != JINJA_NONE) {
    set = jinja_string_argument(run, call, 0, "chars");
    if (set == NULL) return JINJA_NOTHING;
  }
  return jinja_strip(run, self, set, (call->how & AT_LEFT) != 0, (call->how & AT_RIGHT) != 0);
}

// Splits at white space, from the left.
static jinja_value split_words(jinja_run *run, const jinja_string *self, int64_t count_max) {
  jinja_list *list = jinja_new_list(run, 0);
  uint32_t at = 0, size_bytes;
  jinja_step_bytes(run, self->size_bytes);
  while (list != NULL && run->status == WICK_OK) {
    while (at < self->size_bytes && jinja_is_space_at(self, at, &size_bytes)) at += size_bytes;
    if (at >= self->size_bytes) break;
    const uint32_t begin = at;
    if (count_max >= 0 && list->count >= count_max) {
      jinja_add_item(run, list, jinja_part(run, self, begin, self->size_bytes));
      break;
    }
    while (at < self->size_bytes && !jinja_is_space_at(self, at, &size_bytes)) at += size_bytes;
    jinja_add_item(run, list, jinja_part(run, self, begin, at));
  }
  return jinja_list_value(list);
}

static void reverse(jinja_list *list) {
  for (uint32_t i = 0; list->count > 0 && i < list->count / 2; i++) {
    const jinja_value kept = list->items[i];
    list->items[i] = list->items[list->count - 1 - i];
    list->items[list->count - 1 - i] = kept;
  }
}

static jinja_value split_at(jinja_run *run, const jinja_string *self, const jinja_string *separator,
                            int64_t count_max, bool from_right) {
  jinja_list *list = jinja_new_list(run, 0);
  uint32_t begin = 0, end = self->size_bytes;
  while (run->status == WICK_OK && (count_max < 0 || list->count < count_max)) {
    const uint32_t found = from_right ? jinja_find_last(run, self, separator, end)
                                      : jinja_find_part(run, self, separator, begin);
    if (found == UINT32_MAX) break;
    if (from_right) {
      jinja_add_item(run, list, jinja_part(run, self, found + separator->size_bytes, end));
      end = found;
    } else {
      jinja_add_item(run, list, jinja_part(run, self, begin, found));
      begin = found + separator->size_bytes;
    }
  }
  jinja_add_item(run, list, jinja_part(run, self, begin, end));
  if (list != NULL && from_right) reverse(list);
  return jinja_list_value(list);
}

static jinja_value split(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_value *given = jinja_argument(call, 0, "sep");
  const int64_t count_max = jinja_int_argument(run, call, 1, "maxsplit", -1);
  if (given == NULL || given->kind == JINJA_NONE) {
    if (call->how && count_max >= 0) {
      return jinja_fail(run, WICK_E_UNSUPPORTED, "rsplit at white space with a limit");
    }
    return split_words(run, self, count_max);
  }
  const jinja_string *separator = jinja_string_argument(run, call, 0, "sep");
  if (separator == NULL) return JINJA_NOTHING;
  if (separator->size_bytes == 0) return jinja_fail(run, WICK_E_FORMAT, "an empty separator");
  return split_at(run, self, separator, count_max, call->how);
}

static jinja_value partition(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_string *separator = jinja_string_argument(run, call, 0, "sep");
  jinja_list *list = jinja_new_list(run, 3);
  if (separator == NULL || list == NULL) return JINJA_NOTHING;
  if (separator->size_bytes == 0) return jinja_fail(run, WICK_E_FORMAT, "an empty separator");
  const bool from_right = call->how;
  const uint32_t found = from_right ? jinja_find_last(run, self, separator, self->size_bytes)
                                    : jinja_find_part(run, self, separator, 0);
  const uint32_t whole = self->size_bytes;
  const uint32_t first = found != UINT32_MAX ? found : from_right ? 0 : whole;
  const uint32_t second = found != UINT32_MAX ? found + separator->size_bytes : first;
  jinja_add_item(run, list, jinja_part(run, self, 0, first));
  jinja_add_item(run, list, jinja_part(run, self, first, second));
  jinja_add_item(run, list, jinja_part(run, self, second, whole));
  return (jinja_value){.kind = JINJA_TUPLE, .list = list};
}

static jinja_value split_lines(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const bool keeps_ends = jinja_bool_argument(call, 0, "keepends", false);
  jinja_list *list = jinja_new_list(run, 0);
  uint32_t begin = 0;
  for (uint32_t at = 0; at < self->size_bytes && run->status == WICK_OK; at++) {
    const char c = self->bytes[at];
    if (c != '\n' && c != '\r') continue;
    const uint32_t end = at;
    if (c == '\r' && at + 1 < self->size_bytes && self->bytes[at + 1] == '\n') at++;
    jinja_add_item(run, list, jinja_part(run, self, begin, keeps_ends ? at + 1 : end));
    begin = at + 1;
  }
  if (begin < self->size_bytes) {
    jinja_add_item(run, list, jinja_part(run, self, begin, self->size_bytes));
  }
  jinja_step_bytes(run, self->size_bytes);
  return jinja_list_value(list);
}

static jinja_value join(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_value *given = jinja_argument(call, 0, "iterable");
  const jinja_list *items = given == NULL ? NULL : jinja_items_of(run, *given);
  if (items == NULL) return jinja_fail(run, WICK_E_FORMAT, "join has nothing to join");
  jinja_buffer buffer = {0};
  for (uint32_t i = 0; i < items->count && jinja_step(run, 1); i++) {
    if (items->items[i].kind != JINJA_STRING) {
      return jinja_fail(run, WICK_E_FORMAT, "join of an item that is not a string");
    }
    if (i > 0) jinja_write_string(run, &buffer, self);
    jinja_write_string(run, &buffer, items->items[i].string);
  }
  return jinja_buffer_value(run, &buffer);
}

// Whether all characters are of the classes `how`.
static jinja_value is_all(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  uint32_t size_bytes;
  jinja_step_bytes(run, self->size_bytes);
  for (uint32_t at = 0; at < self->size_bytes; at += size_bytes) {
    const unicode_char c = unicode_at((const uint8_t *)self->bytes, at, self->size_bytes);
    size_bytes = c.size_bytes;
    const bool is_member = call->how == UNICODE_SPACE ? jinja_is_space_at(self, at, &size_bytes)
                                                      : (c.kind & call->how) != 0;
    if (!is_member) return jinja_bool(false);
  }
  return jinja_bool(self->size_bytes > 0);
}

static jinja_value is_of_case(jinja_run *run, const jinja_invocation *call) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  return jinja_bool(jinja_is_of_case(run, call->input, (jinja_case)call->how));
}

static jinja_value change_case(jinja_run *run, const jinja_invocation *call) {
  return jinja_change_case(run, call->input.string, (jinja_case)call->how);
}

static jinja_value format(jinja_run *run, const jinja_invocation *call) {
  return jinja_format_braces(run, call->input.string, call->arguments);
}

static jinja_value replace(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *self = call->input.string;
  const jinja_string *from = jinja_string_argument(run, call, 0, "old");
  const jinja_string *to = jinja_string_argument(run, call, 1, "new");
  if (from == NULL || to == NULL) return JINJA_NOTHING;
  return jinja_replace(run, self, from, to, jinja_int_argument(run, call, 2, "count", -1));
}

// ---- lists ----

static jinja_value pop_item(jinja_run *run, const jinja_invocation *call) {
  jinja_list *list = call->input.list;
  int64_t at = jinja_int_argument(run, call, 0, "index", -1);
  if (at < 0) at += list->count;
  if (at < 0 || at >= list->count)
    return jinja_fail(run, WICK_E_FORMAT, "pop of an item that does not exist");
  const jinja_value item = list->items[at];
  const uint32_t after = list->count - (uint32_t)at - 1;
  jinja_step_bytes(run, after * sizeof item);
  memmove(list->items + at, list->items + at + 1, after * sizeof item);
  list->count--;
  return item;
}

static jinja_value insert_item(jinja_run *run, const jinja_invocation *call) {
  jinja_list *list = call->input.list;
  int64_t at = jinja_int_argument(run, call, 0, "index", 0);
  const jinja_value *item = jinja_argument(call, 1, "object");
  if (item == NULL) return jinja_fail(run, WICK_E_FORMAT, "insert without an item");
  if (at < 0) at = at < -(int64_t)list->count ? 0 : at + list->count;
  if (at > list->count) at = list->count;
  jinja_add_item(run, list, *item);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  const uint32_t after = list->count - 1 - (uint32_t)at;
  jinja_step_bytes(run, after * sizeof *item);
  memmove(list->items + at + 1, list->items + at, after * sizeof *item);
  list->items[at] = *item;
  return jinja_none();
}

static jinja_value extend(jinja_run *run, const jinja_invocation *call) {
  jinja_list *list = call->input.list;
  const jinja_value *more = jinja_argument(call, 0, "iterable");
  const jinja_list *items = more == NULL ? NULL : jinja_items_of(run, *more);
  const uint32_t count = items == NULL ? 0 : items->count;  // items may be the list itself
  for (uint32_t i = 0; i < count && run->status == WICK_OK; i++) {
    jinja_add_item(run, list, items->items[i]);
  }
  return jinja_none();
}

static jinja_value append(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *item = jinja_argument(call, 0, "object");
  if (item == NULL) return jinja_fail(run, WICK_E_FORMAT, "append without an item");
  jinja_add_item(run, call->input.list, *item);
  return jinja_none();
}

static jinja_value index_of(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *list = call->input.list;
  const jinja_value *wanted = jinja_argument(call, 0, "value");
  for (uint32_t i = 0; wanted != NULL && i < list->count && run->status == WICK_OK; i++) {
    if (jinja_equal(run, list->items[i], *wanted)) return jinja_int(i);
  }
  return jinja_fail(run, WICK_E_FORMAT, "an item is not in a list");
}

static jinja_value count_items(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *list = call->input.list;
  const jinja_value *wanted = jinja_argument(call, 0, "value");
  int64_t count = 0;
  for (uint32_t i = 0; wanted != NULL && i < list->count && run->status == WICK_OK; i++) {
    count += jinja_equal(run, list->items[i], *wanted);
  }
  return jinja_int(count);
}

static jinja_value copy_list(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *list = call->input.list;
  jinja_list *copy = jinja_new_list(run, list->count);
  for (uint32_t i = 0; i < list->count; i++) jinja_add_item(run, copy, list->items[i]);
  return jinja_list_value(copy);
}

static jinja_value reverse_list(jinja_run *run, const jinja_invocation *call) {
  jinja_step(run, call->input.list->count);
  reverse(call->input.list);
  return jinja_none();
}

// ---- dicts ----

jinja_value jinja_list_entries(jinja_run *run, const jinja_dict *dict, jinja_entry_part part) {
  jinja_list *list = jinja_new_list(run, dict->count);
  for (uint32_t i = 0; i < dict->count && run->status == WICK_OK; i++) {
    const jinja_entry *entry = &dict->entries[i];
    if (part != ENTRY_PAIR) {
      jinja_add_item(run, list, part == ENTRY_KEY ? entry->key : entry->value);
      continue;
    }
    jinja_list *pair = jinja_new_list(run, 2);
    jinja_add_item(run, pair, entry->key);
    jinja_add_item(run, pair, entry->value);
    jinja_add_item(run, list, (jinja_value){.kind = JINJA_TUPLE, .list = pair});
  }
  return jinja_list_value(list);
}

static jinja_value list_entries(jinja_run *run, const jinja_invocation *call) {
  return jinja_list_entries(run, call->input.dict, (jinja_entry_part)call->how);
}

static jinja_value update(jinja_run *run, const jinja_invocation *call) {
  jinja_dict *dict = call->input.dict;
  const jinja_arguments *arguments = call->arguments;
  const jinja_value *other = jinja_argument(call, 0, "other");
  if (other != NULL && other->kind == JINJA_DICT && other->dict != dict) {
    jinja_put_all(run, dict, other->dict);
  }
  for (uint32_t i = 0; i < arguments->named_count; i++) {
    jinja_put(run, dict, jinja_of_string(arguments->names[i]), arguments->named[i]);
  }
  return jinja_none();
}

static jinja_value copy_dict(jinja_run *run, const jinja_invocation *call) {
  jinja_dict *copy = jinja_new_dict(run);
  if (copy == NULL) return JINJA_NOTHING;
  jinja_put_all(run, copy, call->input.dict);
  return (jinja_value){.kind = JINJA_DICT, .dict = copy};
}

// Removes an entry. The keys after it are inserted again.
static void remove_entry(jinja_run *run, jinja_dict *dict, jinja_entry *entry) {
  bool goes_on = jinja_step(run, dict->count);
  for (uint32_t i = 0; i < dict->count; i++) goes_on = jinja_step_key(run, dict->entries[i].key);
  if (goes_on) jinja_dict_remove(dict, entry);
}

enum { LOOK_UP, LOOK_UP_AND_REMOVE, LOOK_UP_OR_ADD };

static jinja_value look_up(jinja_run *run, const jinja_invocation *call) {
  jinja_dict *dict = call->input.dict;
  const jinja_value *key = jinja_argument(call, 0, "key");
  const jinja_value *otherwise = jinja_argument(call, 1, "default");
  if (key == NULL) return jinja_fail(run, WICK_E_FORMAT, "a dict method without a key");
  if (!jinja_check_key(run, *key)) return JINJA_NOTHING;
  jinja_entry *entry = jinja_look_up(run, dict, *key);
  if (entry != NULL) {
    const jinja_value value = entry->value;
    if (call->how == LOOK_UP_AND_REMOVE) remove_entry(run, dict, entry);
    return value;
  }
  if (call->how == LOOK_UP_AND_REMOVE && otherwise == NULL) {
    return jinja_fail(run, WICK_E_FORMAT, "pop of an item that does not exist");
  }
  const jinja_value value = otherwise == NULL ? jinja_none() : *otherwise;
  if (call->how == LOOK_UP_OR_ADD) jinja_put(run, dict, *key, value);
  return value;
}

// ---- loops ----

static jinja_value cycle(jinja_run *run, const jinja_invocation *call) {
  const jinja_arguments *arguments = call->arguments;
  if (arguments->plain_count == 0) return jinja_fail(run, WICK_E_FORMAT, "cycle without values");
  return arguments->plain[call->input.loop->index0 % arguments->plain_count];
}

static jinja_value has_changed(jinja_run *run, const jinja_invocation *call) {
  jinja_loop *loop = call->input.loop;
  jinja_list *given = jinja_new_list(run, 0);
  for (uint32_t i = 0; i < call->arguments->plain_count; i++) {
    jinja_add_item(run, given, call->arguments->plain[i]);
  }
  const jinja_value now = jinja_list_value(given);
  const bool is_same = jinja_equal(run, now, loop->changed);
  loop->changed = now;
  return jinja_bool(!is_same);
}

// ---- names ----

enum {
  OF_STRING = 1 << JINJA_STRING,
  OF_LIST = 1 << JINJA_LIST,
  OF_SEQUENCE = 1 << JINJA_LIST | 1 << JINJA_TUPLE | 1 << JINJA_RANGE,
  OF_DICT = 1 << JINJA_DICT,
  OF_LOOP = 1 << JINJA_LOOP
};

static const jinja_named METHODS[] = {
    {"append", append, 0, OF_LIST},
    {"capitalize", change_case, CASE_CAPITAL, OF_STRING},
    {"changed", has_changed, 0, OF_LOOP},
    {"copy", copy_list, 0, OF_LIST},
    {"copy", copy_dict, 0, OF_DICT},
    {"count", count_part, 0, OF_STRING},
    {"count", count_items, 0, OF_SEQUENCE},
    {"cycle", cycle, 0, OF_LOOP},
    {"endswith", has_end, true, OF_STRING},
    {"extend", extend, 0, OF_LIST},
    {"find", find, 0, OF_STRING},
    {"format", format, 0, OF_STRING},
    {"get", look_up, LOOK_UP, OF_DICT},
    {"index", find, MUST_EXIST, OF_STRING},
    {"index", index_of, 0, OF_SEQUENCE},
    {"insert", insert_item, 0, OF_LIST},
    {"isalnum", is_all, UNICODE_LETTER | UNICODE_NUMBER, OF_STRING},
    {"isalpha", is_all, UNICODE_LETTER, OF_STRING},
    {"isdecimal", is_all, UNICODE_NUMBER, OF_STRING},
    {"isdigit", is_all, UNICODE_NUMBER, OF_STRING},
    {"islower", is_of_case, CASE_LOWER, OF_STRING},
    {"isnumeric", is_all, UNICODE_NUMBER, OF_STRING},
    {"isspace", is_all, UNICODE_SPACE, OF_STRING},
    {"isupper", is_of_case, CASE_UPPER, OF_STRING},
    {"items", list_entries, ENTRY_PAIR, OF_DICT},
    {"join", join, 0, OF_STRING},
    {"keys", list_entries, ENTRY_KEY, OF_DICT},
    {"lower", change_case, CASE_LOWER, OF_STRING},
    {"lstrip", strip, AT_LEFT, OF_STRING},
    {"partition", partition, false, OF_STRING},
    {"pop", pop_item, 0, OF_LIST},
    {"pop", look_up, LOOK_UP_AND_REMOVE, OF_DICT},
    {"removeprefix", remove_end, false, OF_STRING},
    {"removesuffix", remove_end, true, OF_STRING},
    {"replace", replace, 0, OF_STRING},
    {"reverse", reverse_list, 0, OF_LIST},
    {"rfind", find, FROM_RIGHT, OF_STRING},
    {"rindex", find, FROM_RIGHT | MUST_EXIST, OF_STRING},
    {"rpartition", partition, true, OF_STRING},
    {"rsplit", split, true, OF_STRING},
    {"rstrip", strip, AT_RIGHT, OF_STRING},
    {"setdefault", look_up, LOOK_UP_OR_ADD, OF_DICT},
    {"split", split, false, OF_STRING},
    {"splitlines", split_lines, 0, OF_STRING},
    {"startswith", has_end, false, OF_STRING},
    {"strip", strip, AT_LEFT | AT_RIGHT, OF_STRING},
    {"title", change_case, CASE_TITLE, OF_STRING},
    {"update", update, 0, OF_DICT},
    {"upper", change_case, CASE_UPPER, OF_STRING},
    {"values", list_entries, ENTRY_VALUE, OF_DICT},
};

bool jinja_find_method(jinja_run *run, jinja_value self, const jinja_string *name,
                       jinja_value *method) {
  for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
    const jinja_named *named = &METHODS[i];
    if ((named->owners >> self.kind & 1) == 0 || !jinja_string_is(name, named->name)) continue;
    jinja_method *bound = jinja_take(run, sizeof *bound);
    if (bound == NULL) return false;
    *bound = (jinja_method){self, named};
    *method = (jinja_value){.kind = JINJA_METHOD, .method = bound};
    return true;
  }
  return false;
}
