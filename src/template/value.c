// template/value.c — strings, lists and dicts in an arena.
#include "template/value.h"

#include <string.h>

#include "base/decimal.h"
#include "base/text.h"

enum { DICT_LINEAR_MAX = 8, LIST_CAPACITY_MIN = 4 };

// ---- strings ----

static jinja_string *new_string(jinja_arena *arena, jinja_string value) {
  jinja_string *string = jinja_arena_take(arena, sizeof *string);
  if (string != NULL) *string = value;
  return string;
}

const jinja_string *jinja_string_copy(jinja_arena *arena, const char *bytes, size_t size_bytes,
                                      uint8_t mark) {
  if (size_bytes > UINT32_MAX) {
    arena->is_over = true;
    return NULL;
  }
  char *copy = jinja_arena_take(arena, size_bytes);
  if (copy == NULL) return NULL;
  if (size_bytes > 0) memcpy(copy, bytes, size_bytes);
  return new_string(
      arena, (jinja_string){.bytes = copy, .size_bytes = (uint32_t)size_bytes, .mark = mark});
}

const jinja_string *jinja_string_view(jinja_arena *arena, const jinja_string *like, uint32_t offset,
                                      uint32_t size_bytes) {
  if (offset == 0 && size_bytes == like->size_bytes) return like;
  jinja_string view = *like;
  view.bytes += offset;
  if (view.marks != NULL) view.marks += offset;
  view.size_bytes = size_bytes;
  view.owner = NULL;
  return new_string(arena, view);
}

const char *jinja_find_byte(const char *bytes, char wanted, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i++) {
    if (bytes[i] == wanted) return bytes + i;
  }
  return NULL;
}

bool jinja_string_is(const jinja_string *string, const char *text) {
  const size_t size_bytes = strlen(text);
  return string->size_bytes == size_bytes && memcmp(string->bytes, text, size_bytes) == 0;
}

bool jinja_string_equal(const jinja_string *a, const jinja_string *b) {
  return a == b ||
         (a->size_bytes == b->size_bytes && memcmp(a->bytes, b->bytes, a->size_bytes) == 0);
}

uint32_t jinja_char_bytes(const jinja_string *string, uint32_t at) {
  const uint8_t lead = (uint8_t)string->bytes[at];
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

uint32_t jinja_string_length(const jinja_string *string) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < string->size_bytes; i++) {
    count += ((uint8_t)string->bytes[i] & 0xc0) != 0x80;
  }
  return count;
}

// ---- lists ----

jinja_list *jinja_list_create(jinja_arena *arena, uint32_t capacity) {
  jinja_list *list = jinja_arena_take(arena, sizeof *list);
  if (list == NULL) return NULL;
  *list = (jinja_list){.capacity = capacity};
  list->items = jinja_arena_take(arena, (size_t)capacity * sizeof *list->items);
  return list->items == NULL ? NULL : list;
}

// Returns the next capacity of a growing array; 0 if it overflows.
static uint32_t grown(uint32_t capacity) {
  if (capacity < LIST_CAPACITY_MIN) return LIST_CAPACITY_MIN;
  return capacity > UINT32_MAX / 2 ? 0 : capacity * 2;
}

bool jinja_list_append(jinja_arena *arena, jinja_list *list, jinja_value item) {
  if (list->count == list->capacity) {
    const uint32_t capacity = grown(list->capacity);
    jinja_value *items = capacity == 0
                             ? NULL
                             : jinja_arena_extend(arena, list->items, list->count * sizeof *items,
                                                  capacity * sizeof *items);
    if (items == NULL) return false;
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
  return true;
}

// ---- dicts ----

static uint32_t hash_of(jinja_value key) {
  uint32_t hash = 2166136261u;  // FNV-1a
  if (key.kind == JINJA_STRING) {
    for (uint32_t i = 0; i < key.string->size_bytes; i++) {
      hash = (hash ^ (uint8_t)key.string->bytes[i]) * 16777619u;
    }
  } else if (jinja_is_number(key)) {
    const double real = jinja_real_of(key);
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    hash = (uint32_t)(bits * 0x9e3779b97f4a7c15u >> 32);
  }
  return hash ^ hash >> 15;
}

static bool key_equal(jinja_value a, jinja_value b) {
  if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) {
    return jinja_string_equal(a.string, b.string);
  }
  if (a.kind == JINJA_BIG && b.kind == JINJA_BIG) return jinja_string_equal(a.string, b.string);
  if (jinja_is_number(a) && jinja_is_number(b)) return jinja_real_of(a) == jinja_real_of(b);
  return a.kind == JINJA_NONE && b.kind == JINJA_NONE;
}

jinja_dict *jinja_dict_create(jinja_arena *arena, uint32_t capacity) {
  jinja_dict *dict = jinja_arena_take(arena, sizeof *dict);
  if (dict == NULL) return NULL;
  *dict = (jinja_dict){.capacity = capacity};
  dict->entries = jinja_arena_take(arena, (size_t)capacity * sizeof *dict->entries);
  return dict->entries == NULL ? NULL : dict;
}

jinja_entry *jinja_dict_find(const jinja_dict *dict, jinja_value key) {
  if (dict->slots == NULL) {
    for (uint32_t i = 0; i < dict->count; i++) {
      if (key_equal(dict->entries[i].key, key)) return &dict->entries[i];
    }
    return NULL;
  }
  for (uint32_t at = hash_of(key);; at++) {
    const uint32_t slot = dict->slots[at & (dict->slot_count - 1)];
    if (slot == 0) return NULL;
    if (key_equal(dict->entries[slot - 1].key, key)) return &dict->entries[slot - 1];
  }
}

jinja_value *jinja_dict_find_text(const jinja_dict *dict, const char *key) {
  const jinja_string text = {.bytes = key, .size_bytes = (uint32_t)strlen(key)};
  jinja_entry *entry = jinja_dict_find(dict, jinja_of_string(&text));
  return entry == NULL ? NULL : &entry->value;
}

static void put_slot(jinja_dict *dict, uint32_t index) {
  uint32_t at = hash_of(dict->entries[index].key);
  while (dict->slots[at & (dict->slot_count - 1)] != 0) at++;
  dict->slots[at & (dict->slot_count - 1)] = index + 1;
}

static void fill_slots(jinja_dict *dict) {
  memset(dict->slots, 0, dict->slot_count * sizeof *dict->slots);
  for (uint32_t i = 0; i < dict->count; i++) put_slot(dict, i);
}

// Grows the dict to make room for one more entry, with at least twice as many slots as entries.
static bool grow_dict(jinja_arena *arena, jinja_dict *dict) {
  if (dict->count == dict->capacity) {
    const uint32_t capacity = grown(dict->capacity);
    jinja_entry *entries =
        capacity == 0 ? NULL
                      : jinja_arena_extend(arena, dict->entries, dict->count * sizeof *entries,
                                           capacity * sizeof *entries);
    if (entries == NULL) return false;
    dict->entries = entries;
    dict->capacity = capacity;
  }
  if (dict->count < DICT_LINEAR_MAX || dict->slot_count > 2 * dict->count) return true;
  uint32_t slot_count = 4 * DICT_LINEAR_MAX;
  while (slot_count <= 2 * dict->capacity) slot_count *= 2;
  uint32_t *slots = jinja_arena_take(arena, slot_count * sizeof *slots);
  if (slots == NULL) return false;
  dict->slots = slots;
  dict->slot_count = slot_count;
  fill_slots(dict);
  return true;
}

bool jinja_dict_set(jinja_arena *arena, jinja_dict *dict, jinja_value key, jinja_value value) {
  jinja_entry *found = jinja_dict_find(dict, key);
  if (found != NULL) {
    found->value = value;
    return true;
  }
  if (!grow_dict(arena, dict)) return false;
  dict->entries[dict->count++] = (jinja_entry){key, value};
  if (dict->slots != NULL) put_slot(dict, dict->count - 1);
  return true;
}

void jinja_dict_remove(jinja_dict *dict, jinja_entry *entry) {
  const uint32_t index = (uint32_t)(entry - dict->entries);
  dict->count--;
  memmove(entry, entry + 1, (dict->count - index) * sizeof *entry);
  if (dict->slots != NULL) fill_slots(dict);
}

// ---- lookups ----

double jinja_real_of(jinja_value value) {
  double real = 0;
  if (value.kind == JINJA_FLOAT) return value.real;
  if (value.kind == JINJA_BIG) {
    (void)decimal_read_f64(value.string->bytes, value.string->size_bytes, &real);
    return real;
  }
  return (double)jinja_int_of(value);
}

bool jinja_truth(jinja_value value) {
  switch (value.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
      return false;
    case JINJA_BOOL:
      return value.truth;
    case JINJA_INT:
      return value.integer != 0;
    case JINJA_FLOAT:
      return value.real != 0;
    case JINJA_STRING:
      return value.string->size_bytes > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
      return value.list->count > 0;
    case JINJA_DICT:
      return value.dict->count > 0;
    default:
      return true;
  }
}
