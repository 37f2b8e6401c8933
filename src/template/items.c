// template/items.c — attributes, items, slices, and loop iteration.
#include <string.h>

#include "template/run.h"

static jinja_value missing(const jinja_string *name) {
  return (jinja_value){.kind = JINJA_UNDEFINED, .string = name};
}

jinja_value jinja_fail_undefined(jinja_run *run, jinja_value value) {
  if (value.string == NULL) return jinja_fail(run, WICK_E_FORMAT, "a value is undefined");
  return jinja_fail(run, WICK_E_FORMAT, "%.*s is undefined", (int)value.string->size_bytes,
                    value.string->bytes);
}

// Returns the item at an index of the loop; undefined beyond either end.
static jinja_value neighbour(const jinja_loop *loop, uint32_t index) {
  return index < loop->items->count ? loop->items->items[index] : JINJA_NOTHING;
}

static jinja_value loop_attribute(const jinja_loop *loop, const jinja_string *name) {
  const uint32_t count = loop->items->count, index0 = loop->index0;
  if (jinja_string_is(name, "index0")) return jinja_int(index0);
  if (jinja_string_is(name, "index")) return jinja_int((int64_t)index0 + 1);
  if (jinja_string_is(name, "first")) return jinja_bool(index0 == 0);
  if (jinja_string_is(name, "last")) return jinja_bool(index0 + 1 == count);
  if (jinja_string_is(name, "length")) return jinja_int(count);
  if (jinja_string_is(name, "revindex")) return jinja_int((int64_t)count - index0);
  if (jinja_string_is(name, "revindex0")) return jinja_int((int64_t)count - index0 - 1);
  if (jinja_string_is(name, "depth")) return jinja_int((int64_t)loop->depth0 + 1);
  if (jinja_string_is(name, "depth0")) return jinja_int(loop->depth0);
  if (jinja_string_is(name, "previtem")) return neighbour(loop, index0 - 1);
  if (jinja_string_is(name, "nextitem")) return neighbour(loop, index0 + 1);
  return missing(name);
}

static jinja_value find_value(jinja_run *run, const jinja_dict *dict, const jinja_string *name) {
  const jinja_entry *entry = jinja_look_up(run, dict, jinja_of_string(name));
  return entry == NULL ? missing(name) : entry->value;
}

// Returns `object.name`. As in Jinja, a method takes precedence over a dict's key.
jinja_value jinja_get_attribute(jinja_run *run, jinja_value object, const jinja_string *name) {
  jinja_value method;
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  switch (object.kind) {
    case JINJA_UNDEFINED:
      return jinja_fail_undefined(run, object);
    case JINJA_NAMESPACE:
      return find_value(run, object.dict, name);
    case JINJA_MACRO:
      if (jinja_string_is(name, "name")) {
        return jinja_of_string(run->program->names[object.macro->name]);
      }
      return missing(name);
    default:
      break;
  }
  if (jinja_find_method(run, object, name, &method)) return method;
  if (object.kind == JINJA_DICT) return find_value(run, object.dict, name);
  if (object.kind == JINJA_LOOP) return loop_attribute(object.loop, name);
  if (object.kind == JINJA_TUPLE && object.list->is_group) {
    if (jinja_string_is(name, "grouper")) return object.list->items[0];
    if (jinja_string_is(name, "list")) return object.list->items[1];
  }
  return missing(name);
}

// Returns the byte offset of character `index`, counted from the end if negative; UINT32_MAX if it
// is out of range.
static uint32_t byte_of_character(jinja_run *run, const jinja_string *string, int64_t index) {
  if (!jinja_step_bytes(run, string->size_bytes)) return UINT32_MAX;
  if (index < 0) index += jinja_string_length(string);
  if (index < 0 || index >= string->size_bytes) return UINT32_MAX;
  uint32_t at = 0;
  for (; index > 0 && at < string->size_bytes; index--) at += jinja_char_bytes(string, at);
  return at < string->size_bytes ? at : UINT32_MAX;
}

jinja_value jinja_get_item(jinja_run *run, jinja_value object, jinja_value key) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  if (object.kind == JINJA_UNDEFINED) return jinja_fail_undefined(run, object);
  if (object.kind == JINJA_DICT) {
    const jinja_entry *entry = jinja_look_up(run, object.dict, key);
    if (entry != NULL) return entry->value;
  }
  if (key.kind == JINJA_INT || key.kind == JINJA_BOOL) {
    int64_t index = jinja_int_of(key);
    if (jinja_is_sequence(object)) {
      if (index < 0) index += object.list->count;
      if (index >= 0 && index < object.list->count) return object.list->items[index];
    }
    if (object.kind == JINJA_STRING) {
      const uint32_t at = byte_of_character(run, object.string, index);
      if (at != UINT32_MAX) {
        return jinja_part(run, object.string, at, at + jinja_char_bytes(object.string, at));
      }
    }
    return JINJA_NOTHING;
  }
  if (key.kind != JINJA_STRING) return JINJA_NOTHING;
  if (object.kind ==
      JINJA_DICT) {  // as in Jinja: if the key does not exist, the name may be an attribute
    jinja_value method;
    return jinja_find_method(run, object, key.string, &method) ? method : missing(key.string);
  }
  return jinja_get_attribute(run, object, key.string);
}

// ---- slices ----

// Computes the bounds of a slice of `count` items like Python's slice.indices.
static bool slice_bounds(jinja_run *run, const jinja_value parts[3], int64_t count, int64_t *start,
                         int64_t *stop, int64_t *step) {
  for (int i = 0; i < 3; i++) {
    const jinja_kind kind = parts[i].kind;
    if (kind != JINJA_INT && kind != JINJA_BOOL && kind != JINJA_NONE) {
      jinja_fail(run, WICK_E_FORMAT, "an index of a slice is not a whole number");
      return false;
    }
  }
  *step = parts[2].kind == JINJA_NONE ? 1 : jinja_int_of(parts[2]);
  if (*step == 0 || *step == INT64_MIN) {
    jinja_fail(run, WICK_E_FORMAT, "a slice whose step is 0");
    return false;
  }
  const int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? count - 1 : count;
  int64_t *const bounds[2] = {start, stop};
  for (int i = 0; i < 2; i++) {
    int64_t at = (i == 0) == (*step < 0) ? high : low;
    if (parts[i].kind != JINJA_NONE) {
      at = jinja_int_of(parts[i]);
      if (at < 0) at = at < -count ? -1 : at + count;
      if (at < low) at = low;
      if (at > high) at = high;
    }
    *bounds[i] = at;
  }
  return true;
}

static jinja_value slice_string(jinja_run *run, const jinja_string *string, int64_t start,
                                int64_t stop, int64_t step) {
  if (!jinja_step_bytes(run, string->size_bytes)) return JINJA_NOTHING;
  if (step == 1) {
    uint32_t from = 0;
    for (int64_t i = 0; i < start && from < string->size_bytes; i++) {
      from += jinja_char_bytes(string, from);
    }
    uint32_t to = from;
    for (int64_t i = start; i < stop && to < string->size_bytes; i++) {
      to += jinja_char_bytes(string, to);
    }
    return jinja_part(run, string, from, to);
  }
  const uint32_t length = jinja_string_length(string);
  uint32_t *places = jinja_take(run, length * sizeof *places);
  if (places == NULL) return JINJA_NOTHING;
  for (uint32_t i = 0, at = 0; i < length; i++, at += jinja_char_bytes(string, at)) places[i] = at;
  jinja_buffer buffer = {0};
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    jinja_write_part(run, &buffer, string, places[i],
                     places[i] + jinja_char_bytes(string, places[i]));
    if (run->status != WICK_OK || step > INT32_MAX || step < -INT32_MAX) break;
  }
  return jinja_buffer_value(run, &buffer);
}

static jinja_value slice_range(jinja_run *run, const jinja_list *list, int64_t start, int64_t stop,
                               int64_t step) {
  const jinja_value first = list->items[list->count], stride = list->items[list->count + 2];
  jinja_value bounds[] = {jinja_int(start), jinja_int(stop), jinja_int(step)};
  for (int i = 0; i < 3; i++) bounds[i] = jinja_binary(run, '*', bounds[i], stride);
  for (int i = 0; i < 2; i++) bounds[i] = jinja_binary(run, '+', first, bounds[i]);
  if (run->status != WICK_OK) return JINJA_NOTHING;  // a number is too large
  return jinja_range(run, bounds[0].integer, bounds[1].integer, bounds[2].integer);
}

jinja_value jinja_get_slice(jinja_run *run, jinja_value object, const jinja_value parts[3]) {
  int64_t start, stop, step;
  if (object.kind == JINJA_UNDEFINED) return jinja_fail_undefined(run, object);
  const bool is_string = object.kind == JINJA_STRING;
  if (!is_string && !jinja_is_sequence(object)) return JINJA_NOTHING;
  const int64_t count = is_string ? jinja_string_length(object.string) : object.list->count;
  if (!slice_bounds(run, parts, count, &start, &stop, &step)) return JINJA_NOTHING;
  if (is_string) return slice_string(run, object.string, start, stop, step);
  if (object.kind == JINJA_RANGE) return slice_range(run, object.list, start, stop, step);
  jinja_list *list = jinja_new_list(run, 0);
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    jinja_add_item(run, list, object.list->items[i]);
    if (run->status != WICK_OK || step > INT32_MAX || step < -INT32_MAX) break;
  }
  if (list == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = object.kind, .list = list};
}

// ---- loop iteration ----

jinja_list *jinja_items_of(jinja_run *run, jinja_value value) {
  if (jinja_is_sequence(value)) return value.list;
  jinja_list *list = jinja_new_list(run, value.kind == JINJA_DICT ? value.dict->count : 0);
  if (list == NULL) return NULL;
  switch (value.kind) {
    case JINJA_UNDEFINED:
      break;
    case JINJA_DICT:
      for (uint32_t i = 0; i < value.dict->count; i++) {
        jinja_add_item(run, list, value.dict->entries[i].key);
      }
      break;
    case JINJA_STRING:
      for (uint32_t at = 0; at < value.string->size_bytes && run->status == WICK_OK;) {
        const uint32_t size_bytes = jinja_char_bytes(value.string, at);
        jinja_add_item(run, list, jinja_part(run, value.string, at, at + size_bytes));
        at += size_bytes;
      }
      break;
    default:
      jinja_fail(run, WICK_E_FORMAT, "a value without items is iterated over");
      return NULL;
  }
  return run->status == WICK_OK ? list : NULL;
}
