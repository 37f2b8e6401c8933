// template/filters_lists.c — filters for lists and dicts. Source: the documentation of Jinja 3.1,
// "List of Builtin Filters". These filters return a list even if those of Jinja return a generator.
#include "template/names.h"

// ---- attributes and order ----

// Follows a path like a.0.b, a number, or an empty path.
static jinja_value follow(jinja_run *run, jinja_value item, const jinja_value *path) {
  if (path == NULL || path->kind == JINJA_NONE) return item;
  if (path->kind != JINJA_STRING) return jinja_get_item(run, item, *path);
  const jinja_string *text = path->string;
  jinja_step_key(run, *path);
  for (uint32_t begin = 0; begin <= text->size_bytes && run->status == WICK_OK;) {
    uint32_t end = begin;
    bool is_number = true;
    int64_t index = 0;
    for (; end < text->size_bytes && text->bytes[end] != '.'; end++) {
      const char c = text->bytes[end];
      is_number = is_number && c >= '0' && c <= '9' && index < INT32_MAX;
      index = is_number ? index * 10 + (c - '0') : 0;
    }
    const jinja_value part = jinja_part(run, text, begin, end);
    if (run->status != WICK_OK) break;
    item = jinja_get_item(run, item, is_number && end > begin ? jinja_int(index) : part);
    begin = end + 1;
  }
  return item;
}

// Returns the value to compare: strings in lower case unless the comparison is case-sensitive.
static jinja_value sort_key(jinja_run *run, jinja_value item, const jinja_value *path,
                            bool is_case_sensitive) {
  const jinja_value key = follow(run, item, path);
  if (key.kind != JINJA_STRING || is_case_sensitive) return key;
  return jinja_change_case(run, key.string, CASE_LOWER);
}

uint32_t *jinja_sort(jinja_run *run, uint32_t count, jinja_comparison *compare,
                     const void *context) {
  uint32_t *order = jinja_take(run, count * sizeof *order);
  uint32_t *other = jinja_take(run, count * sizeof *other);
  if (order == NULL || other == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t width = 1; width < count && run->status == WICK_OK; width *= 2) {
    for (uint32_t low = 0; low < count; low += 2 * width) {
      uint32_t a = low, b = low + width, to = low;
      const uint32_t a_end = b < count ? b : count;
      const uint32_t b_end = b + width < count ? b + width : count;
      while (a < a_end || b < b_end) {
        const bool takes_b =
            a >= a_end || (b < b_end && compare(run, context, order[b], order[a]) < 0);
        other[to++] = takes_b ? order[b++] : order[a++];
      }
    }
    uint32_t *const kept = order;
    order = other;
    other = kept;
  }
  return order;
}

// With `has_paths`, equal items need no keys.
typedef struct sorting {
  const jinja_value *keys;
  bool has_paths, is_reversed;
} sorting;

static int compare_items(jinja_run *run, const void *context, uint32_t a, uint32_t b) {
  const sorting *by = context;
  if (by->has_paths && jinja_equal(run, by->keys[a], by->keys[b])) return 0;
  const int comparison = jinja_order(run, by->keys[a], by->keys[b]);
  return by->is_reversed ? -comparison : comparison;
}

// Returns, like Jinja, the list of keys of "a,b". A single key needs no list: compare_items
// compares it as Python compares such a list.
static jinja_value sort_keys(jinja_run *run, jinja_value item, const jinja_value *path,
                             bool is_case_sensitive) {
  const jinja_string *paths = path != NULL && path->kind == JINJA_STRING ? path->string : NULL;
  if (paths == NULL || jinja_find_byte(paths->bytes, ',', paths->size_bytes) == NULL) {
    return sort_key(run, item, path, is_case_sensitive);
  }
  jinja_list *keys = jinja_new_list(run, 2);
  for (uint32_t begin = 0; begin <= paths->size_bytes && run->status == WICK_OK;) {
    uint32_t end = begin;
    while (end < paths->size_bytes && paths->bytes[end] != ',') end++;
    const jinja_value one = jinja_part(run, paths, begin, end);
    jinja_add_item(run, keys, sort_key(run, item, &one, is_case_sensitive));
    begin = end + 1;
  }
  return jinja_list_value(keys);
}

static jinja_value sort_by(jinja_run *run, jinja_value input, const jinja_value *path,
                           bool has_paths, bool is_case_sensitive, bool is_reversed) {
  const jinja_list *items = jinja_items_of(run, input);
  if (items == NULL) return JINJA_NOTHING;
  jinja_value *keys = jinja_take(run, items->count * sizeof *keys);
  if (keys == NULL) return JINJA_NOTHING;
  for (uint32_t i = 0; i < items->count && run->status == WICK_OK; i++) {
    keys[i] = (has_paths ? sort_keys : sort_key)(run, items->items[i], path, is_case_sensitive);
  }
  if (run->status != WICK_OK) return JINJA_NOTHING;
  const sorting by = {keys, has_paths, is_reversed};
  const uint32_t *order = jinja_sort(run, items->count, compare_items, &by);
  jinja_list *sorted = jinja_new_list(run, items->count);
  for (uint32_t i = 0; order != NULL && i < items->count; i++) {
    jinja_add_item(run, sorted, items->items[order[i]]);
  }
  return jinja_list_value(sorted);
}

static jinja_value filter_sort(jinja_run *run, const jinja_invocation *call) {
  return sort_by(run, call->input, jinja_argument(call, 2, "attribute"), true,
                 jinja_bool_argument(call, 1, "case_sensitive", false),
                 jinja_bool_argument(call, 0, "reverse", false));
}

static jinja_value filter_items(jinja_run *run, const jinja_invocation *call) {
  if (call->input.kind == JINJA_UNDEFINED) return jinja_list_value(jinja_new_list(run, 0));
  if (call->input.kind != JINJA_DICT)
    return jinja_fail(run, WICK_E_FORMAT, "items of a value that is not a dict");
  return jinja_list_entries(run, call->input.dict, ENTRY_PAIR);
}

static jinja_value filter_dictsort(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *by = jinja_argument(call, 1, "by");
  const bool is_text = by != NULL && by->kind == JINJA_STRING;
  const bool is_by_value = is_text && jinja_string_is(by->string, "value");
  const jinja_value place = jinja_int(is_by_value);
  if (by != NULL && !is_by_value && !(is_text && jinja_string_is(by->string, "key"))) {
    return jinja_fail(run, WICK_E_FORMAT, "dictsort by neither key nor value");
  }
  if (call->input.kind != JINJA_DICT)
    return jinja_fail(run, WICK_E_FORMAT, "dictsort of a value that is not a dict");
  const jinja_value entries = jinja_list_entries(run, call->input.dict, ENTRY_PAIR);
  if (run->status != WICK_OK) return JINJA_NOTHING;
  return sort_by(run, entries, &place, false, jinja_bool_argument(call, 0, "case_sensitive", false),
                 jinja_bool_argument(call, 2, "reverse", false));
}

static jinja_value filter_unique(jinja_run *run, const jinja_invocation *call) {
  const bool is_case_sensitive = jinja_bool_argument(call, 0, "case_sensitive", false);
  const jinja_value *path = jinja_argument(call, 1, "attribute");
  const jinja_list *items = jinja_items_of(run, call->input);
  jinja_list *found = jinja_new_list(run, 0), *keys = jinja_new_list(run, 0);
  for (uint32_t i = 0; items != NULL && i < items->count && run->status == WICK_OK; i++) {
    const jinja_value key = sort_key(run, items->items[i], path, is_case_sensitive);
    bool is_known = !jinja_check_key(run, key);
    for (uint32_t k = 0; k < keys->count && !is_known; k++) {
      is_known = jinja_equal(run, keys->items[k], key);
    }
    if (is_known) continue;
    jinja_add_item(run, keys, key);
    jinja_add_item(run, found, items->items[i]);
  }
  return jinja_list_value(found);
}

enum { MINIMUM, MAXIMUM };

static jinja_value filter_extreme(jinja_run *run, const jinja_invocation *call) {
  const int sign = call->how == MINIMUM ? -1 : 1;
  const bool is_case_sensitive = jinja_bool_argument(call, 0, "case_sensitive", false);
  const jinja_value *path = jinja_argument(call, 1, "attribute");
  const jinja_list *items = jinja_items_of(run, call->input);
  jinja_value best = JINJA_NOTHING, best_key = JINJA_NOTHING;
  for (uint32_t i = 0; items != NULL && i < items->count && run->status == WICK_OK; i++) {
    const jinja_value key = sort_key(run, items->items[i], path, is_case_sensitive);
    if (run->status != WICK_OK) break;
    if (i > 0 && jinja_order(run, key, best_key) * sign <= 0) continue;
    best = items->items[i];
    best_key = key;
  }
  return best;
}

static jinja_value filter_sum(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *path = jinja_argument(call, 0, "attribute");
  const jinja_value *start = jinja_argument(call, 1, "start");
  const jinja_list *items = jinja_items_of(run, call->input);
  jinja_value sum = start == NULL ? jinja_int(0) : *start;
  for (uint32_t i = 0; items != NULL && i < items->count && run->status == WICK_OK; i++) {
    sum = jinja_binary(run, '+', sum, follow(run, items->items[i], path));
  }
  return sum;
}

// ---- items ----

static jinja_value filter_first(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *items = jinja_items_of(run, call->input);
  return items == NULL || items->count == 0 ? JINJA_NOTHING : items->items[0];
}

static jinja_value filter_last(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *items = jinja_items_of(run, call->input);
  return items == NULL || items->count == 0 ? JINJA_NOTHING : items->items[items->count - 1];
}

static jinja_value filter_list(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *items = jinja_items_of(run, call->input);
  jinja_list *copy = items == NULL ? NULL : jinja_new_list(run, items->count);
  for (uint32_t i = 0; copy != NULL && i < items->count; i++) {
    jinja_add_item(run, copy, items->items[i]);
  }
  return jinja_list_value(copy);
}

static jinja_value filter_reverse(jinja_run *run, const jinja_invocation *call) {
  if (call->input.kind == JINJA_STRING) {
    const jinja_value parts[3] = {jinja_none(), jinja_none(), jinja_int(-1)};
    return jinja_get_slice(run, call->input, parts);
  }
  const jinja_list *items = jinja_items_of(run, call->input);
  jinja_list *copy = items == NULL ? NULL : jinja_new_list(run, items->count);
  for (uint32_t i = items == NULL ? 0 : items->count; copy != NULL && i-- > 0;) {
    jinja_add_item(run, copy, items->items[i]);
  }
  return jinja_list_value(copy);
}

static jinja_value filter_join(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *separator = jinja_argument(call, 0, "d");
  const jinja_value *path = jinja_argument(call, 1, "attribute");
  const jinja_list *items = jinja_items_of(run, call->input);
  jinja_buffer buffer = {0};
  for (uint32_t i = 0; items != NULL && i < items->count && jinja_step(run, 1); i++) {
    if (i > 0 && separator != NULL) jinja_write_value(run, &buffer, *separator);
    jinja_write_value(run, &buffer, follow(run, items->items[i], path));
  }
  return jinja_buffer_value(run, &buffer);
}

// Returns the items over which map, select and similar filters iterate: none for a false value, as
// in Jinja.
static const jinja_list *items_if_true(jinja_run *run, jinja_value input) {
  static const jinja_list none = {0};
  return jinja_truth(input) ? jinja_items_of(run, input) : &none;
}

// Returns the arguments without the first `count` positional arguments.
static jinja_arguments rest_of(const jinja_arguments *arguments, uint32_t count) {
  jinja_arguments rest = *arguments;
  if (count > rest.plain_count) count = rest.plain_count;
  if (count > 0) rest.plain += count;
  rest.plain_count -= count;
  return rest;
}

// Implements map(attribute=...) and map(filter, ...).
static jinja_value filter_map(jinja_run *run, const jinja_invocation *call) {
  const jinja_list *items = items_if_true(run, call->input);
  jinja_list *mapped = jinja_new_list(run, items == NULL ? 0 : items->count);
  const bool has_filter = call->arguments->plain_count > 0;
  const jinja_value *path = has_filter ? NULL : jinja_argument(call, 0, "attribute");
  const jinja_value *otherwise = has_filter ? NULL : jinja_argument(call, 1, "default");
  const jinja_string *name = has_filter ? jinja_string_argument(run, call, 0, "filter") : NULL;
  if (!has_filter && path == NULL) return jinja_fail(run, WICK_E_FORMAT, "map without a filter");
  const jinja_arguments rest = rest_of(call->arguments, 1);
  for (uint32_t i = 0; items != NULL && i < items->count && run->status == WICK_OK; i++) {
    jinja_value item = has_filter ? jinja_filter(run, name, items->items[i], &rest)
                                  : follow(run, items->items[i], path);
    if (item.kind == JINJA_UNDEFINED && otherwise != NULL) item = *otherwise;
    jinja_add_item(run, mapped, item);
  }
  return jinja_list_value(mapped);
}

// Bits of `how`: of `selectattr` and `rejectattr`, and of `reject` and `rejectattr`.
enum { HAS_ATTRIBUTE = 1, REJECTS = 2 };

static jinja_value filter_select(jinja_run *run, const jinja_invocation *call) {
  const bool has_attribute = (call->how & HAS_ATTRIBUTE) != 0;
  const jinja_list *items = items_if_true(run, call->input);
  jinja_list *chosen = jinja_new_list(run, 0);
  const uint32_t at = has_attribute ? 1 : 0;
  const jinja_value *path = has_attribute ? jinja_argument(call, 0, "attribute") : NULL;
  if (has_attribute && path == NULL)
    return jinja_fail(run, WICK_E_FORMAT, "an attribute is missing");
  const jinja_string *test = NULL;
  if (call->arguments->plain_count > at) test = jinja_string_argument(run, call, at, "test");
  const jinja_arguments rest = rest_of(call->arguments, at + 1);
  for (uint32_t i = 0; items != NULL && i < items->count && run->status == WICK_OK; i++) {
    const jinja_value value = follow(run, items->items[i], path);
    if (run->status != WICK_OK) break;
    const bool holds = test == NULL ? jinja_truth(value) : jinja_test(run, test, value, &rest);
    if (holds == ((call->how & REJECTS) == 0)) jinja_add_item(run, chosen, items->items[i]);
  }
  return jinja_list_value(chosen);
}

// Splits into lists of `count` items; the last list is padded.
static jinja_value filter_batch(jinja_run *run, const jinja_invocation *call) {
  const int64_t count = jinja_int_argument(run, call, 0, "linecount", 0);
  const jinja_value *filler = jinja_argument(call, 1, "fill_with");
  const jinja_list *items = jinja_items_of(run, call->input);
  if (count < 1) return jinja_fail(run, WICK_E_FORMAT, "batches of less than one item");
  jinja_list *batches = jinja_new_list(run, 0), *batch = NULL;
  for (uint32_t i = 0; items != NULL && i < items->count && run->status == WICK_OK; i++) {
    if (i % count == 0) {
      batch = jinja_new_list(run, 0);
      jinja_add_item(run, batches, jinja_list_value(batch));
    }
    jinja_add_item(run, batch, items->items[i]);
  }
  while (filler != NULL && batch != NULL && batch->count < count && run->status == WICK_OK) {
    jinja_add_item(run, batch, *filler);
  }
  return jinja_list_value(batches);
}

// Returns pairs of an attribute's value and the items that have it, sorted.
static jinja_value filter_groupby(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *path = jinja_argument(call, 0, "attribute");
  if (path == NULL) return jinja_fail(run, WICK_E_FORMAT, "an attribute is missing");
  const jinja_value sorted = sort_by(run, call->input, path, false, false, false);
  jinja_list *groups = jinja_new_list(run, 0), *members = NULL;
  jinja_value last = JINJA_NOTHING;
  for (uint32_t i = 0; sorted.kind == JINJA_LIST && i < sorted.list->count; i++) {
    const jinja_value key = sort_key(run, sorted.list->items[i], path, false);
    if (run->status != WICK_OK) return JINJA_NOTHING;
    if (members == NULL || !jinja_equal(run, key, last)) {
      jinja_list *group = jinja_new_list(run, 2);
      members = jinja_new_list(run, 0);
      jinja_add_item(run, group, follow(run, sorted.list->items[i], path));
      jinja_add_item(run, group, jinja_list_value(members));
      if (run->status != WICK_OK) return JINJA_NOTHING;
      group->is_group = true;
      jinja_add_item(run, groups, (jinja_value){.kind = JINJA_TUPLE, .list = group});
      last = key;
    }
    jinja_add_item(run, members, sorted.list->items[i]);
  }
  return jinja_list_value(groups);
}

const jinja_named JINJA_LIST_FILTERS[] = {
    {"batch", filter_batch, 0, 0},
    {"dictsort", filter_dictsort, 0, 0},
    {"first", filter_first, 0, 0},
    {"groupby", filter_groupby, 0, 0},
    {"items", filter_items, 0, 0},
    {"join", filter_join, 0, 0},
    {"last", filter_last, 0, 0},
    {"list", filter_list, 0, 0},
    {"map", filter_map, 0, 0},
    {"max", filter_extreme, MAXIMUM, 0},
    {"min", filter_extreme, MINIMUM, 0},
    {"reject", filter_select, REJECTS, 0},
    {"rejectattr", filter_select, HAS_ATTRIBUTE | REJECTS, 0},
    {"reverse", filter_reverse, 0, 0},
    {"select", filter_select, 0, 0},
    {"selectattr", filter_select, HAS_ATTRIBUTE, 0},
    {"sort", filter_sort, 0, 0},
    {"sum", filter_sum, 0, 0},
    {"unique", filter_unique, 0, 0},
    {NULL, NULL, 0, 0},
};
