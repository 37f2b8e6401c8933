// template/arguments.c — arguments of filters, tests, functions and methods.
#include "template/run.h"

const jinja_value *jinja_argument(const jinja_arguments *arguments, uint32_t index,
                                  const char *name) {
  if (index < arguments->plain_count) return &arguments->plain[index];
  for (uint32_t i = 0; i < arguments->named_count; i++) {
    if (jinja_string_is(arguments->names[i], name)) return &arguments->named[i];
  }
  return NULL;
}

const jinja_string *jinja_string_argument(jinja_run *run, const jinja_arguments *arguments,
                                          uint32_t index, const char *name) {
  const jinja_value *value = jinja_argument(arguments, index, name);
  if (value != NULL && value->kind == JINJA_STRING) return value->string;
  jinja_fail(run, WICK_E_FORMAT, "the argument %s is not a string", name);
  return NULL;
}

int64_t jinja_int_argument(jinja_run *run, const jinja_arguments *arguments, uint32_t index,
                           const char *name, int64_t otherwise) {
  const jinja_value *value = jinja_argument(arguments, index, name);
  if (value == NULL || value->kind == JINJA_NONE) return otherwise;
  if (value->kind == JINJA_INT || value->kind == JINJA_BOOL) return jinja_int_of(*value);
  jinja_fail(run, WICK_E_FORMAT, "the argument %s is not a whole number", name);
  return otherwise;
}

bool jinja_bool_argument(const jinja_arguments *arguments, uint32_t index, const char *name,
                         bool otherwise) {
  const jinja_value *value = jinja_argument(arguments, index, name);
  return value == NULL ? otherwise : jinja_truth(*value);
}
