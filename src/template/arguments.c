// template/arguments.c — what templates call by name (names.h), and its arguments.
#include "template/names.h"

const jinja_value *jinja_argument(const jinja_invocation *call, uint32_t index, const char *name) {
  const jinja_arguments *arguments = call->arguments;
  if (index < arguments->plain_count) return &arguments->plain[index];
  for (uint32_t i = 0; i < arguments->named_count; i++) {
    if (jinja_string_is(arguments->names[i], name)) return &arguments->named[i];
  }
  return NULL;
}

const jinja_string *jinja_string_argument(jinja_run *run, const jinja_invocation *call,
                                          uint32_t index, const char *name) {
  const jinja_value *value = jinja_argument(call, index, name);
  if (value != NULL && value->kind == JINJA_STRING) return value->string;
  jinja_fail(run, WICK_E_FORMAT, "the argument %s is not a string", name);
  return NULL;
}

int64_t jinja_int_argument(jinja_run *run, const jinja_invocation *call, uint32_t index,
                           const char *name, int64_t otherwise) {
  const jinja_value *value = jinja_argument(call, index, name);
  if (value == NULL || value->kind == JINJA_NONE) return otherwise;
  if (value->kind == JINJA_INT || value->kind == JINJA_BOOL) return jinja_int_of(*value);
  jinja_fail(run, WICK_E_FORMAT, "the argument %s is not a whole number", name);
  return otherwise;
}

bool jinja_bool_argument(const jinja_invocation *call, uint32_t index, const char *name,
                         bool otherwise) {
  const jinja_value *value = jinja_argument(call, index, name);
  return value == NULL ? otherwise : jinja_truth(*value);
}

const jinja_named *jinja_find_named(const jinja_named *names, const jinja_string *name) {
  for (; names->name != NULL; names++) {
    if (jinja_string_is(name, names->name)) return names;
  }
  return NULL;
}

jinja_value jinja_invoke(jinja_run *run, const jinja_named *named, jinja_value input,
                         const jinja_arguments *arguments) {
  const jinja_invocation call = {input, arguments, named->how};
  return named->function(run, &call);
}
