// template/value.h — the values of a template language that follows Python, and strings in which
// each byte is marked as template or content.
//
// Values are small and copied; they point to data in the arena of the rendering. Strings are valid
// UTF-8 and never change. Lists and dicts are shared by reference, as in Python.
#ifndef WICK_TEMPLATE_VALUE_H
#define WICK_TEMPLATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "template/arena.h"

// The origin of a byte in a string.
enum { JINJA_MARK_TEMPLATE = 0, JINJA_MARK_CONTENT = 1 };

typedef enum jinja_kind {
  JINJA_UNDEFINED,
  JINJA_NONE,
  JINJA_BOOL,
  JINJA_INT,
  JINJA_FLOAT,
  JINJA_BIG,  // a signed whole number beyond 64 bits, as its digits
  JINJA_STRING,
  JINJA_LIST,
  JINJA_TUPLE,
  JINJA_RANGE,
  JINJA_DICT,
  JINJA_NAMESPACE,
  JINJA_LOOP,
  JINJA_MACRO,
  JINJA_FUNCTION,  // a global function
  JINJA_METHOD     // a method of a value
} jinja_kind;

typedef struct jinja_buffer jinja_buffer;

typedef struct jinja_string {
  const char *bytes;
  const uint8_t *marks;  // [size_bytes]; NULL: all bytes have `mark`
  uint32_t size_bytes;
  jinja_buffer *owner;  // the string is a prefix of this buffer, or NULL
  bool *is_used;        // set when a part of the string is written anywhere; NULL: not tracked
  uint8_t mark;
  bool is_arguments;  // arguments of a tool call in the conversation, as JSON text
  bool is_markup;     // result of `safe` or `escape`: strings added with + are escaped (MarkupSafe)
} jinja_string;

typedef struct jinja_list jinja_list;
typedef struct jinja_dict jinja_dict;
typedef struct jinja_loop jinja_loop;
typedef struct jinja_macro jinja_macro;
typedef struct jinja_method jinja_method;
typedef struct jinja_named jinja_named;

typedef struct jinja_value {
  jinja_kind kind;
  union {
    bool truth;
    int64_t integer;
    double real;
    const jinja_string
        *string;       // for STRING and BIG; for UNDEFINED: the name that was not found, or NULL
    jinja_list *list;  // for LIST, TUPLE and RANGE
    jinja_dict *dict;  // for DICT and NAMESPACE
    jinja_loop *loop;
    jinja_macro *macro;
    jinja_method *method;
    const jinja_named *function;  // of names.h
  };
} jinja_value;

struct jinja_list {
  jinja_value *items;  // [count]; for a RANGE, followed by start, stop and step
  uint32_t count, capacity;
  bool is_group;  // from `groupby`: the items have the names `grouper` and `list`
};

typedef struct jinja_entry {
  jinja_value key, value;
} jinja_entry;

// Entries are in insertion order. If there are more than a few, there is a hash table.
struct jinja_dict {
  jinja_entry *entries;  // [count]
  uint32_t *slots;       // [slot_count] indices + 1, 0: empty; NULL: the dict has few entries
  uint32_t count, capacity, slot_count;
  bool is_arguments;  // arguments of a tool call in the conversation
};

static const jinja_value JINJA_NOTHING = {.kind = JINJA_UNDEFINED, .string = NULL};

static inline jinja_value jinja_none(void) { return (jinja_value){.kind = JINJA_NONE}; }
static inline jinja_value jinja_bool(bool truth) {
  return (jinja_value){.kind = JINJA_BOOL, .truth = truth};
}
static inline jinja_value jinja_int(int64_t integer) {
  return (jinja_value){.kind = JINJA_INT, .integer = integer};
}
static inline jinja_value jinja_float(double real) {
  return (jinja_value){.kind = JINJA_FLOAT, .real = real};
}
static inline jinja_value jinja_of_string(const jinja_string *string) {
  return (jinja_value){.kind = JINJA_STRING, .string = string};
}

// ---- allocated in an arena: NULL, or undefined, if memory runs out ----

// Copies the bytes, which must be valid UTF-8.
const jinja_string *jinja_string_copy(jinja_arena *arena, const char *bytes, size_t size_bytes,
                                      uint8_t mark);
// Returns a string without copying the bytes. It uses the marks of `like`, if any, starting at byte
// `offset` of `like`.
const jinja_string *jinja_string_view(jinja_arena *arena, const jinja_string *like, uint32_t offset,
                                      uint32_t size_bytes);
jinja_list *jinja_list_create(jinja_arena *arena, uint32_t capacity);
bool jinja_list_append(jinja_arena *arena, jinja_list *list, jinja_value item);
jinja_dict *jinja_dict_create(jinja_arena *arena, uint32_t capacity);
// Sets the value of a key, and replaces an existing value. The key is a string or a number.
bool jinja_dict_set(jinja_arena *arena, jinja_dict *dict, jinja_value key, jinja_value value);

// ---- lookups ----

// Returns the entry of a key, or NULL. O(1).
jinja_entry *jinja_dict_find(const jinja_dict *dict, jinja_value key);
jinja_value *jinja_dict_find_text(const jinja_dict *dict, const char *key);
void jinja_dict_remove(jinja_dict *dict, jinja_entry *entry);

// Returns the position of a byte in a range of bytes; NULL if it does not occur.
const char *jinja_find_byte(const char *bytes, char wanted, size_t size_bytes);
static inline bool jinja_is_one_of(char c, const char *set) {
  for (; *set != '\0'; set++) {
    if (*set == c) return true;
  }
  return false;
}
bool jinja_string_is(const jinja_string *string, const char *text);
bool jinja_string_equal(const jinja_string *a, const jinja_string *b);
static inline uint8_t jinja_string_mark(const jinja_string *string, uint32_t at) {
  return string->marks != NULL ? string->marks[at] : string->mark;
}
static inline bool jinja_is_sequence(jinja_value value) {
  return value.kind >= JINJA_LIST && value.kind <= JINJA_RANGE;
}
static inline bool jinja_is_number(jinja_value value) {
  return value.kind >= JINJA_BOOL && value.kind <= JINJA_BIG;
}
// Whether the value is a whole number of at most 64 bits.
static inline bool jinja_is_int(jinja_value value) {
  return value.kind == JINJA_INT || value.kind == JINJA_BOOL;
}
// Returns the value of a number.
double jinja_real_of(jinja_value value);
static inline int64_t jinja_int_of(jinja_value value) {  // for a bool or an int
  return value.kind == JINJA_BOOL ? (int64_t)value.truth : value.integer;
}
bool jinja_truth(jinja_value value);
// Returns the size of the UTF-8 character that begins at `at`, limited by the end.
uint32_t jinja_char_bytes(const jinja_string *string, uint32_t at);
// Counts characters like Python's len(). O(n).
uint32_t jinja_string_length(const jinja_string *string);

#endif
