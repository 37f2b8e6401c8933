// template/methods.c — methods of strings, lists, dicts and loops. Source: Python's documentation,
// "Built-in Types". Unlike in Jinja's sandbox, lists and dicts can be changed, because they belong
// to the rendering.
#include <string.h>

#include "template/run.h"
#include "text/unicode.h"

typedef enum method_id {
  // of strings
  METHOD_CAPITALIZE,
  METHOD_COUNT,
  METHOD_ENDSWITH,
  METHOD_FIND,
  METHOD_FORMAT,
  METHOD_INDEX,
  METHOD_ISALNUM,
  METHOD_ISALPHA,
  METHOD_ISDIGIT,
  METHOD_ISLOWER,
  METHOD_ISSPACE,
  METHOD_ISUPPER,
  METHOD_JOIN,
  METHOD_LOWER,
  METHOD_LSTRIP,
  METHOD_PARTITION,
  METHOD_REMOVEPREFIX,
  METHOD_REMOVESUFFIX,
  METHOD_REPLACE,
  METHOD_RFIND,
  METHOD_RINDEX,
  METHOD_RPARTITION,
  METHOD_RSPLIT,
  METHOD_RSTRIP,
  METHOD_SPLIT,
  METHOD_SPLITLINES,
  METHOD_STARTSWITH,
  METHOD_STRIP,
  METHOD_TITLE,
  METHOD_UPPER,
  // of lists
  METHOD_APPEND,
  METHOD_COPY,
  METHOD_EXTEND,
  METHOD_INSERT,
  METHOD_POP,
  METHOD_REVERSE,
  // of dicts
  METHOD_GET,
  METHOD_ITEMS,
  METHOD_KEYS,
  METHOD_SETDEFAULT,
  METHOD_UPDATE,
  METHOD_VALUES,
  // of loops
  METHOD_CHANGED,
  METHOD_CYCLE
} method_id;

enum { OF_STRING = 1, OF_LIST = 2, OF_TUPLE = 4, OF_DICT = 8, OF_LOOP = 16 };

static const struct {
  const char *name;
  uint8_t id;
  uint8_t owners;
} METHODS[] = {
    {"append", METHOD_APPEND, OF_LIST},
    {"capitalize", METHOD_CAPITALIZE, OF_STRING},
    {"changed", METHOD_CHANGED, OF_LOOP},
    {"copy", METHOD_COPY, OF_LIST | OF_DICT},
    {"count", METHOD_COUNT, OF_STRING | OF_LIST | OF_TUPLE},
    {"cycle", METHOD_CYCLE, OF_LOOP},
    {"endswith", METHOD_ENDSWITH, OF_STRING},
    {"extend", METHOD_EXTEND, OF_LIST},
    {"find", METHOD_FIND, OF_STRING},
    {"format", METHOD_FORMAT, OF_STRING},
    {"get", METHOD_GET, OF_DICT},
    {"index", METHOD_INDEX, OF_STRING | OF_LIST | OF_TUPLE},
    {"insert", METHOD_INSERT, OF_LIST},
    {"isalnum", METHOD_ISALNUM, OF_STRING},
    {"isalpha", METHOD_ISALPHA, OF_STRING},
    {"isdecimal", METHOD_ISDIGIT, OF_STRING},
    {"isdigit", METHOD_ISDIGIT, OF_STRING},
    {"islower", METHOD_ISLOWER, OF_STRING},
    {"isnumeric", METHOD_ISDIGIT, OF_STRING},
    {"isspace", METHOD_ISSPACE, OF_STRING},
    {"isupper", METHOD_ISUPPER, OF_STRING},
    {"items", METHOD_ITEMS, OF_DICT},
    {"join", METHOD_JOIN, OF_STRING},
    {"keys", METHOD_KEYS, OF_DICT},
    {"lower", METHOD_LOWER, OF_STRING},
    {"lstrip", METHOD_LSTRIP, OF_STRING},
    {"partition", METHOD_PARTITION, OF_STRING},
    {"pop", METHOD_POP, OF_LIST | OF_DICT},
    {"removeprefix", METHOD_REMOVEPREFIX, OF_STRING},
    {"removesuffix", METHOD_REMOVESUFFIX, OF_STRING},
    {"replace", METHOD_REPLACE, OF_STRING},
    {"reverse", METHOD_REVERSE, OF_LIST},
    {"rfind", METHOD_RFIND, OF_STRING},
    {"rindex", METHOD_RINDEX, OF_STRING},
    {"rpartition", METHOD_RPARTITION, OF_STRING},
    {"rsplit", METHOD_RSPLIT, OF_STRING},
    {"rstrip", METHOD_RSTRIP, OF_STRING},
    {"setdefault", METHOD_SETDEFAULT, OF_DICT},
    {"split", METHOD_SPLIT, OF_STRING},
    {"splitlines", METHOD_SPLITLINES, OF_STRING},
    {"startswith", METHOD_STARTSWITH, OF_STRING},
    {"strip", METHOD_STRIP, OF_STRING},
    {"title", METHOD_TITLE, OF_STRING},
    {"update", METHOD_UPDATE, OF_DICT},
    {"upper", METHOD_UPPER, OF_STRING},
    {"values", METHOD_VALUES, OF_DICT},
};

static uint8_t owner_of(jinja_value value) {
  switch (value.kind) {
    case JINJA_STRING:
      return OF_STRING;
    case JINJA_LIST:
      return OF_LIST;
    case JINJA_TUPLE:
    case JINJA_RANGE:
      return OF_TUPLE;
    case JINJA_DICT:
      return OF_DICT;
    case JINJA_LOOP:
      return OF_LOOP;
    default:
      return 0;
  }
}

bool jinja_find_method(jinja_run *run, jinja_value self, const jinja_string *name,
                       jinja_value *method) {
  const uint8_t owner = owner_of(self);
  for (size_t i = 0; owner != 0 && i < sizeof METHODS / sizeof *METHODS; i++) {
    if ((METHODS[i].owners & owner) == 0 || !jinja_string_is(name, METHODS[i].name)) continue;
    jinja_method *bound = jinja_take(run, sizeof *bound);
    if (bound == NULL) return false;
    *bound = (jinja_method){self, METHODS[i].id};
    *method = (jinja_value){.kind = JINJA_METHOD, .method = bound};
    return true;
  }
  return false;
}

// ---- strings ----

static uint32_t characters_before(jinja_run *run, const jinja_string *string, uint32_t at) {
  const jinja_string before = {.bytes = string->bytes, .size_bytes = at};
  jinja_step_bytes(run, at);
  return jinja_string_length(&before);
}

static jinja_value find(jinja_run *run, const jinja_string *self, const jinja_arguments *arguments,
                        method_id id) {
  const jinja_string *part = jinja_string_argument(run, arguments, 0, "sub");
  if (part == NULL) return JINJA_NOTHING;
  const bool is_last = id == METHOD_RFIND || id == METHOD_RINDEX;
  const uint32_t found = is_last ? jinja_find_last(run, self, part, self->size_bytes)
                                 : jinja_find_part(run, self, part, 0);
  if (found != UINT32_MAX) return jinja_int(characters_before(run, self, found));
  if (id == METHOD_INDEX || id == METHOD_RINDEX) {
    return jinja_fail(run, WICK_E_FORMAT, "a substring is not found");
  }
  return jinja_int(-1);
}

static jinja_value count_part(jinja_run *run, const jinja_string *self,
                              const jinja_arguments *arguments) {
  const jinja_string *part = jinja_string_argument(run, arguments, 0, "sub");
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
static jinja_value has_end(jinja_run *run, const jinja_string *self,
                           const jinja_arguments *arguments, bool at_end) {
  const jinja_value *given = jinja_argument(arguments, 0, "prefix");
  if (given != NULL && given->kind == JINJA_TUPLE) {
    for (uint32_t i = 0; i < given->list->count && jinja_step(run, 1); i++) {
      const jinja_value part = given->list->items[i];
      if (part.kind == JINJA_STRING && begins_or_ends(run, self, part.string, at_end)) {
        return jinja_bool(true);
      }
    }
    return jinja_bool(false);
  }
  const jinja_string *part = jinja_string_argument(run, arguments, 0, "prefix");
  if (part == NULL) return JINJA_NOTHING;
  return jinja_bool(begins_or_ends(run, self, part, at_end));
}

static jinja_value remove_end(jinja_run *run, const jinja_string *self,
                              const jinja_arguments *arguments, bool at_end) {
  const jinja_string *part = jinja_string_argument(run, arguments, 0, "prefix");
  if (part == NULL) return JINJA_NOTHING;
  if (!begins_or_ends(run, self, part, at_end)) return jinja_of_string(self);
  const uint32_t left = self->size_bytes - part->size_bytes;
  return at_end ? jinja_part(run, self, 0, left)
                : jinja_part(run, self, part->size_bytes, self->size_bytes);
}

static jinja_value strip(jinja_run *run, const jinja_string *self, const jinja_arguments *arguments,
                         method_id id) {
  const jinja_value *given = jinja_argument(arguments, 0, "chars");
  const jinja_string *set = NULL;
  if (given != NULL && given->kind != JINJA_NONE) {
    set = jinja_string_argument(run, arguments, 0, "chars");
    if (set == NULL) return JINJA_NOTHING;
  }
  return jinja_strip(run, self, set, id != METHOD_RSTRIP, id != METHOD_LSTRIP);
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

static jinja_value split(jinja_run *run, const jinja_string *self, const jinja_arguments *arguments,
                         bool from_right) {
  const jinja_value *given = jinja_argument(arguments, 0, "sep");
  const int64_t count_max = jinja_int_argument(run, arguments, 1, "maxsplit", -1);
  if (given == NULL || given->kind == JINJA_NONE) {
    if (from_right && count_max >= 0) {
      return jinja_fail(run, WICK_E_UNSUPPORTED, "rsplit at white space with a limit");
    }
    return split_words(run, self, count_max);
  }
  const jinja_string *separator = jinja_string_argument(run, arguments, 0, "sep");
  if (separator == NULL) return JINJA_NOTHING;
  if (separator->size_bytes == 0) return jinja_fail(run, WICK_E_FORMAT, "an empty separator");
  return split_at(run, self, separator, count_max, from_right);
}

static jinja_value partition(jinja_run *run, const jinja_string *self,
                             const jinja_arguments *arguments, bool from_right) {
  const jinja_string *separator = jinja_string_argument(run, arguments, 0, "sep");
  jinja_list *list = jinja_new_list(run, 3);
  if (separator == NULL || list == NULL) return JINJA_NOTHING;
  if (separator->size_bytes == 0) return jinja_fail(run, WICK_E_FORMAT, "an empty separator");
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

static jinja_value split_lines(jinja_run *run, const jinja_string *self,
                               const jinja_arguments *arguments) {
  const bool keeps_ends = jinja_bool_argument(arguments, 0, "keepends", false);
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

static jinja_value join(jinja_run *run, const jinja_string *self,
                        const jinja_arguments *arguments) {
  const jinja_value *given = jinja_argument(arguments, 0, "iterable");
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

static bool is_of_kind(const jinja_string *self, uint32_t at, method_id id, uint32_t *size_bytes) {
  const unicode_char c = unicode_at((const uint8_t *)self->bytes, at, self->size_bytes);
  *size_bytes = c.size_bytes;
  switch (id) {
    case METHOD_ISSPACE:
      return jinja_is_space_at(self, at, size_bytes);
    case METHOD_ISDIGIT:
      return c.kind == UNICODE_NUMBER;
    case METHOD_ISALPHA:
      return c.kind == UNICODE_LETTER;
    default:
      return c.kind == UNICODE_LETTER || c.kind == UNICODE_NUMBER;
  }
}

static jinja_value is_all(jinja_run *run, const jinja_string *self, method_id id) {
  uint32_t size_bytes;
  jinja_step_bytes(run, self->size_bytes);
  for (uint32_t at = 0; at < self->size_bytes; at += size_bytes) {
    if (!is_of_kind(self, at, id, &size_bytes)) return jinja_bool(false);
  }
  return jinja_bool(self->size_bytes > 0);
}

static jinja_value test_case(jinja_run *run, const jinja_string *self, bool is_upper) {
  static const jinja_string upper = {.bytes = "upper", .size_bytes = 5};
  static const jinja_string lower = {.bytes = "lower", .size_bytes = 5};
  const jinja_arguments none = {0};
  return jinja_bool(jinja_test(run, is_upper ? &upper : &lower, jinja_of_string(self), &none));
}

static jinja_value replace(jinja_run *run, const jinja_string *self,
                           const jinja_arguments *arguments) {
  const jinja_string *from = jinja_string_argument(run, arguments, 0, "old");
  const jinja_string *to = jinja_string_argument(run, arguments, 1, "new");
  if (from == NULL || to == NULL) return JINJA_NOTHING;
  return jinja_replace(run, self, from, to, jinja_int_argument(run, arguments, 2, "count", -1));
}

static jinja_value call_of_string(jinja_run *run, const jinja_string *self, method_id id,
                                  const jinja_arguments *arguments) {
  switch (id) {
    case METHOD_CAPITALIZE:
      return jinja_change_case(run, self, CASE_CAPITAL);
    case METHOD_LOWER:
      return jinja_change_case(run, self, CASE_LOWER);
    case METHOD_TITLE:
      return jinja_change_case(run, self, CASE_TITLE);
    case METHOD_UPPER:
      return jinja_change_case(run, self, CASE_UPPER);
    case METHOD_COUNT:
      return count_part(run, self, arguments);
    case METHOD_STARTSWITH:
    case METHOD_ENDSWITH:
      return has_end(run, self, arguments, id == METHOD_ENDSWITH);
    case METHOD_REMOVEPREFIX:
    case METHOD_REMOVESUFFIX:
      return remove_end(run, self, arguments, id == METHOD_REMOVESUFFIX);
    case METHOD_FORMAT:
      return jinja_format_braces(run, self, arguments);
    case METHOD_JOIN:
      return join(run, self, arguments);
    case METHOD_STRIP:
    case METHOD_LSTRIP:
    case METHOD_RSTRIP:
      return strip(run, self, arguments, id);
    case METHOD_PARTITION:
    case METHOD_RPARTITION:
      return partition(run, self, arguments, id == METHOD_RPARTITION);
    case METHOD_REPLACE:
      return replace(run, self, arguments);
    case METHOD_SPLIT:
    case METHOD_RSPLIT:
      return split(run, self, arguments, id == METHOD_RSPLIT);
    case METHOD_SPLITLINES:
      return split_lines(run, self, arguments);
    case METHOD_ISLOWER:
    case METHOD_ISUPPER:
      return test_case(run, self, id == METHOD_ISUPPER);
    case METHOD_FIND:
    case METHOD_RFIND:
    case METHOD_INDEX:
    case METHOD_RINDEX:
      return find(run, self, arguments, id);
    default:
      return is_all(run, self, id);
  }
}

// ---- lists ----

static jinja_value pop_item(jinja_run *run, jinja_list *list, const jinja_arguments *arguments) {
  int64_t at = jinja_int_argument(run, arguments, 0, "index", -1);
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

static jinja_value insert_item(jinja_run *run, jinja_list *list, const jinja_arguments *arguments) {
  int64_t at = jinja_int_argument(run, arguments, 0, "index", 0);
  const jinja_value *item = jinja_argument(arguments, 1, "object");
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

static jinja_value extend(jinja_run *run, jinja_list *list, const jinja_arguments *arguments) {
  const jinja_value *more = jinja_argument(arguments, 0, "iterable");
  const jinja_list *items = more == NULL ? NULL : jinja_items_of(run, *more);
  const uint32_t count = items == NULL ? 0 : items->count;  // items may be the list itself
  for (uint32_t i = 0; i < count && run->status == WICK_OK; i++) {
    jinja_add_item(run, list, items->items[i]);
  }
  return jinja_none();
}

static jinja_value find_item(jinja_run *run, const jinja_list *list, method_id id,
                             const jinja_arguments *arguments) {
  const jinja_value *wanted = jinja_argument(arguments, 0, "value");
  int64_t count = 0;
  for (uint32_t i = 0; wanted != NULL && i < list->count && run->status == WICK_OK; i++) {
    if (!jinja_equal(run, list->items[i], *wanted)) continue;
    if (id == METHOD_INDEX) return jinja_int(i);
    count++;
  }
  if (id == METHOD_COUNT) return jinja_int(count);
  return jinja_fail(run, WICK_E_FORMAT, "an item is not in a list");
}

static jinja_value copy_list(jinja_run *run, const jinja_list *list) {
  jinja_list *copy = jinja_new_list(run, list->count);
  for (uint32_t i = 0; i < list->count; i++) jinja_add_item(run, copy, list->items[i]);
  return jinja_list_value(copy);
}

static jinja_value call_of_list(jinja_run *run, jinja_list *list, method_id id,
                                const jinja_arguments *arguments) {
  switch (id) {
    case METHOD_APPEND: {
      const jinja_value *item = jinja_argument(arguments, 0, "object");
      if (item == NULL) return jinja_fail(run, WICK_E_FORMAT, "append without an item");
      jinja_add_item(run, list, *item);
      return jinja_none();
    }
    case METHOD_COPY:
      return copy_list(run, list);
    case METHOD_EXTEND:
      return extend(run, list, arguments);
    case METHOD_INSERT:
      return insert_item(run, list, arguments);
    case METHOD_POP:
      return pop_item(run, list, arguments);
    case METHOD_REVERSE:
      jinja_step(run, list->count);
      reverse(list);
      return jinja_none();
    default:
      return find_item(run, list, id, arguments);
  }
}

// ---- dicts ----

static jinja_value list_entries(jinja_run *run, const jinja_dict *dict, method_id id) {
  jinja_list *list = jinja_new_list(run, dict->count);
  for (uint32_t i = 0; i < dict->count && run->status == WICK_OK; i++) {
    const jinja_entry *entry = &dict->entries[i];
    if (id != METHOD_ITEMS) {
      jinja_add_item(run, list, id == METHOD_KEYS ? entry->key : entry->value);
      continue;
    }
    jinja_list *pair = jinja_new_list(run, 2);
    jinja_add_item(run, pair, entry->key);
    jinja_add_item(run, pair, entry->value);
    jinja_add_item(run, list, (jinja_value){.kind = JINJA_TUPLE, .list = pair});
  }
  return jinja_list_value(list);
}

static jinja_value update(jinja_run *run, jinja_dict *dict, const jinja_arguments *arguments) {
  const jinja_value *other = jinja_argument(arguments, 0, "other");
  if (other != NULL && other->kind == JINJA_DICT && other->dict != dict) {
    for (uint32_t i = 0; i < other->dict->count && run->status == WICK_OK; i++) {
      jinja_put(run, dict, other->dict->entries[i].key, other->dict->entries[i].value);
    }
  }
  for (uint32_t i = 0; i < arguments->named_count; i++) {
    jinja_put(run, dict, jinja_of_string(arguments->names[i]), arguments->named[i]);
  }
  return jinja_none();
}

static jinja_value copy_dict(jinja_run *run, jinja_dict *dict) {
  const jinja_value self = {.kind = JINJA_DICT, .dict = dict};
  const jinja_arguments all = {.plain = &self, .plain_count = 1};
  jinja_dict *copy = jinja_new_dict(run);
  if (copy == NULL) return JINJA_NOTHING;
  update(run, copy, &all);
  return (jinja_value){.kind = JINJA_DICT, .dict = copy};
}

// Removes an entry. The keys after it are inserted again.
static void remove_entry(jinja_run *run, jinja_dict *dict, jinja_entry *entry) {
  bool goes_on = jinja_step(run, dict->count);
  for (uint32_t i = 0; i < dict->count; i++) goes_on = jinja_step_key(run, dict->entries[i].key);
  if (goes_on) jinja_dict_remove(dict, entry);
}

// Implements get, pop and setdefault.
static jinja_value look_up(jinja_run *run, jinja_dict *dict, method_id id,
                           const jinja_arguments *arguments) {
  const jinja_value *key = jinja_argument(arguments, 0, "key");
  const jinja_value *otherwise = jinja_argument(arguments, 1, "default");
  if (key == NULL) return jinja_fail(run, WICK_E_FORMAT, "a dict method without a key");
  if (!jinja_check_key(run, *key)) return JINJA_NOTHING;
  jinja_entry *entry = jinja_look_up(run, dict, *key);
  if (entry != NULL) {
    const jinja_value value = entry->value;
    if (id == METHOD_POP) remove_entry(run, dict, entry);
    return value;
  }
  if (id == METHOD_POP && otherwise == NULL) {
    return jinja_fail(run, WICK_E_FORMAT, "pop of an item that does not exist");
  }
  const jinja_value value = otherwise == NULL ? jinja_none() : *otherwise;
  if (id == METHOD_SETDEFAULT) jinja_put(run, dict, *key, value);
  return value;
}

static jinja_value call_of_dict(jinja_run *run, jinja_dict *dict, method_id id,
                                const jinja_arguments *arguments) {
  switch (id) {
    case METHOD_COPY:
      return copy_dict(run, dict);
    case METHOD_UPDATE:
      return update(run, dict, arguments);
    case METHOD_GET:
    case METHOD_POP:
    case METHOD_SETDEFAULT:
      return look_up(run, dict, id, arguments);
    default:
      return list_entries(run, dict, id);
  }
}

// ---- loops ----

static jinja_value call_of_loop(jinja_run *run, jinja_loop *loop, method_id id,
                                const jinja_arguments *arguments) {
  if (id == METHOD_CYCLE) {
    if (arguments->plain_count == 0) return jinja_fail(run, WICK_E_FORMAT, "cycle without values");
    return arguments->plain[loop->index0 % arguments->plain_count];
  }
  jinja_list *given = jinja_new_list(run, 0);
  for (uint32_t i = 0; i < arguments->plain_count; i++) {
    jinja_add_item(run, given, arguments->plain[i]);
  }
  const jinja_value now = jinja_list_value(given);
  const bool is_same = jinja_equal(run, now, loop->changed);
  loop->changed = now;
  return jinja_bool(!is_same);
}

jinja_value jinja_call_method(jinja_run *run, const jinja_method *method,
                              const jinja_arguments *arguments) {
  const method_id id = (method_id)method->id;
  switch (method->self.kind) {
    case JINJA_STRING:
      return call_of_string(run, method->self.string, id, arguments);
    case JINJA_DICT:
      return call_of_dict(run, method->self.dict, id, arguments);
    case JINJA_LOOP:
      return call_of_loop(run, method->self.loop, id, arguments);
    default:
      return call_of_list(run, method->self.list, id, arguments);
  }
}
