// template/tests.c — the tests after `is`. Source: the documentation of Jinja 3.1, "List of
// Builtin Tests".
#include "template/names.h"

static jinja_value is_of_kind(jinja_run *run, const jinja_invocation *call) {
  (void)run;
  return jinja_bool((call->how >> call->input.kind & 1) != 0);
}

static jinja_value is_truth(jinja_run *run, const jinja_invocation *call) {
  (void)run;
  return jinja_bool(call->input.kind == JINJA_BOOL && call->input.truth == (call->how != 0));
}

static jinja_value is_escaped(jinja_run *run, const jinja_invocation *call) {
  (void)run;
  return jinja_bool(call->input.kind == JINJA_STRING && call->input.string->is_markup);
}

bool jinja_is_of_case(jinja_run *run, jinja_value value, jinja_case kind) {
  const jinja_string *text = jinja_text_of(run, value);
  const jinja_value changed = jinja_change_case(run, text, kind);
  const jinja_value other =
      jinja_change_case(run, text, kind == CASE_UPPER ? CASE_LOWER : CASE_UPPER);
  return run->status == WICK_OK && jinja_string_equal(text, changed.string) &&
         !jinja_string_equal(text, other.string);
}

static jinja_value is_of_case(jinja_run *run, const jinja_invocation *call) {
  return jinja_bool(jinja_is_of_case(run, call->input, (jinja_case)call->how));
}

static jinja_value divides(jinja_run *run, jinja_value value, jinja_value by) {
  const jinja_value rest = jinja_binary(run, '%', value, by);
  return jinja_bool(run->status == WICK_OK && !jinja_truth(rest));
}

static jinja_value is_even(jinja_run *run, const jinja_invocation *call) {
  return divides(run, call->input, jinja_int(2));
}

static jinja_value is_odd(jinja_run *run, const jinja_invocation *call) {
  const jinja_value rest = jinja_binary(run, '%', call->input, jinja_int(2));
  return jinja_bool(jinja_equal(run, rest, jinja_int(1)));
}

// ---- tests that need an argument ----

static jinja_value other_of(jinja_run *run, const jinja_invocation *call) {
  if (call->arguments->plain_count > 0) return call->arguments->plain[0];
  return jinja_fail(run, WICK_E_FORMAT, "a test needs an argument");
}

static jinja_value is_in(jinja_run *run, const jinja_invocation *call) {
  return jinja_bool(jinja_contains(run, other_of(run, call), call->input));
}

static jinja_value contains(jinja_run *run, const jinja_invocation *call) {
  return jinja_bool(jinja_contains(run, call->input, other_of(run, call)));
}

static jinja_value is_divisible(jinja_run *run, const jinja_invocation *call) {
  return divides(run, call->input, other_of(run, call));
}

static jinja_value is_same(jinja_run *run, const jinja_invocation *call) {
  const jinja_value a = call->input, b = other_of(run, call);
  if (a.kind != b.kind) return jinja_bool(false);
  if (jinja_is_sequence(a)) return jinja_bool(a.list == b.list);
  if (a.kind == JINJA_DICT) return jinja_bool(a.dict == b.dict);
  return jinja_bool(jinja_equal(run, a, b));
}

static jinja_value compares(jinja_run *run, const jinja_invocation *call) {
  return jinja_bool(jinja_compare_is(run, call->how, call->input, other_of(run, call)));
}

#define KIND(name) (1u << JINJA_##name)
#define ITERABLE \
  (KIND(UNDEFINED) | KIND(STRING) | KIND(LIST) | KIND(TUPLE) | KIND(RANGE) | KIND(DICT))

static const jinja_named TESTS[] = {
    {"!=", compares, OP_UNEQUAL, 0},
    {"<", compares, '<', 0},
    {"<=", compares, OP_LESS_EQUAL, 0},
    {"==", compares, OP_EQUAL, 0},
    {">", compares, '>', 0},
    {">=", compares, OP_GREATER_EQUAL, 0},
    {"boolean", is_of_kind, KIND(BOOL), 0},
    {"callable", is_of_kind,  // an undefined value is callable in Jinja, too
     KIND(UNDEFINED) | KIND(LOOP) | KIND(MACRO) | KIND(FUNCTION) | KIND(METHOD), 0},
    {"contains", contains, 0, 0},
    {"defined", is_of_kind, ~KIND(UNDEFINED), 0},
    {"divisibleby", is_divisible, 0, 0},
    {"eq", compares, OP_EQUAL, 0},
    {"equalto", compares, OP_EQUAL, 0},
    {"escaped", is_escaped, 0, 0},
    {"even", is_even, 0, 0},
    {"false", is_truth, false, 0},
    {"float", is_of_kind, KIND(FLOAT), 0},
    {"ge", compares, OP_GREATER_EQUAL, 0},
    {"greaterthan", compares, '>', 0},
    {"gt", compares, '>', 0},
    {"in", is_in, 0, 0},
    {"integer", is_of_kind, KIND(INT) | KIND(BIG), 0},
    {"iterable", is_of_kind, ITERABLE | KIND(LOOP), 0},
    {"le", compares, OP_LESS_EQUAL, 0},
    {"lessthan", compares, '<', 0},
    {"lower", is_of_case, CASE_LOWER, 0},
    {"lt", compares, '<', 0},
    {"mapping", is_of_kind, KIND(DICT), 0},
    {"ne", compares, OP_UNEQUAL, 0},
    {"none", is_of_kind, KIND(NONE), 0},
    {"number", is_of_kind, KIND(BOOL) | KIND(INT) | KIND(FLOAT) | KIND(BIG), 0},
    {"odd", is_odd, 0, 0},
    {"sameas", is_same, 0, 0},
    {"sequence", is_of_kind, ITERABLE, 0},
    {"string", is_of_kind, KIND(STRING), 0},
    {"true", is_truth, true, 0},
    {"undefined", is_of_kind, KIND(UNDEFINED), 0},
    {"upper", is_of_case, CASE_UPPER, 0},
    {NULL, NULL, 0, 0},
};

bool jinja_test(jinja_run *run, const jinja_string *name, jinja_value input,
                const jinja_arguments *arguments) {
  if (!jinja_step(run, 1)) return false;
  const jinja_named *test = jinja_find_named(TESTS, name);
  if (test != NULL) return jinja_truth(jinja_invoke(run, test, input, arguments));
  jinja_fail(run, WICK_E_UNSUPPORTED, "there is no test named %.*s", (int)name->size_bytes,
             name->bytes);
  return false;
}
