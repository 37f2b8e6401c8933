// template/names.h — what templates call by name: filters, tests, methods and global functions.
// Internal to template/.
#ifndef WICK_TEMPLATE_NAMES_H
#define WICK_TEMPLATE_NAMES_H

#include "template/run.h"

typedef struct jinja_invocation {
  jinja_value input;  // of a filter or a test, or the object of a method
  const jinja_arguments *arguments;
  uint32_t how;  // selects a variant, where names share a function
} jinja_invocation;

typedef jinja_value jinja_function(jinja_run *run, const jinja_invocation *call);

// A list of names ends with a NULL name.
struct jinja_named {
  const char *name;
  jinja_function *function;
  uint32_t how;
  uint32_t owners;  // of a method: 1 << jinja_kind
};

extern const jinja_named JINJA_TEXT_FILTERS[], JINJA_LIST_FILTERS[];

// Returns NULL for an unknown name.
const jinja_named *jinja_find_named(const jinja_named *names, const jinja_string *name);

// Returns the argument at an index or with a name; NULL if it is missing.
const jinja_value *jinja_argument(const jinja_invocation *call, uint32_t index, const char *name);
// Like jinja_argument, for an argument that must be a string: otherwise fails and returns NULL.
const jinja_string *jinja_string_argument(jinja_run *run, const jinja_invocation *call,
                                          uint32_t index, const char *name);
int64_t jinja_int_argument(jinja_run *run, const jinja_invocation *call, uint32_t index,
                           const char *name, int64_t otherwise);
bool jinja_bool_argument(const jinja_invocation *call, uint32_t index, const char *name,
                         bool otherwise);

// Whether the letters of a value's text have a case and all have this one.
bool jinja_is_of_case(jinja_run *run, jinja_value value, jinja_case kind);
// Returns the keys or the values of a dict, or pairs of both, as a list.
typedef enum jinja_entry_part { ENTRY_PAIR, ENTRY_KEY, ENTRY_VALUE } jinja_entry_part;
jinja_value jinja_list_entries(jinja_run *run, const jinja_dict *dict, jinja_entry_part part);
void jinja_put_all(jinja_run *run, jinja_dict *dict, const jinja_dict *from);

#endif
