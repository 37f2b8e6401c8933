// template/tests.c — the tests after `is`. Source: the documentation of Jinja 3.1, "List of
// Builtin Tests".
#include "template/run.h"
#include "text/unicode.h"

typedef enum test_id {
  TEST_BOOLEAN,
  TEST_CALLABLE,
  TEST_CONTAINING,
  TEST_DEFINED,
  TEST_DIVISIBLE,
  TEST_ESCAPED,
  TEST_EVEN,
  TEST_FALSE,
  TEST_FLOAT,
  TEST_IN,
  TEST_INTEGER,
  TEST_ITERABLE,
  TEST_LOWER,
  TEST_MAPPING,
  TEST_NONE,
  TEST_NUMBER,
  TEST_ODD,
  TEST_SAME,
  TEST_SEQUENCE,
  TEST_STRING,
  TEST_TRUE,
  TEST_UNDEFINED,
  TEST_UPPER,
  TEST_EQUAL,  // comparisons start here
  TEST_UNEQUAL,
  TEST_LESS,
  TEST_LESS_EQUAL,
  TEST_GREATER,
  TEST_GREATER_EQUAL
} test_id;

static const struct {
  const char *name;
  test_id id;
} TESTS[] = {
    {"!=", TEST_UNEQUAL},
    {"<", TEST_LESS},
    {"<=", TEST_LESS_EQUAL},
    {"==", TEST_EQUAL},
    {">", TEST_GREATER},
    {">=", TEST_GREATER_EQUAL},
    {"boolean", TEST_BOOLEAN},
    {"callable", TEST_CALLABLE},
    {"contains", TEST_CONTAINING},
    {"defined", TEST_DEFINED},
    {"divisibleby", TEST_DIVISIBLE},
    {"eq", TEST_EQUAL},
    {"equalto", TEST_EQUAL},
    {"escaped", TEST_ESCAPED},
    {"even", TEST_EVEN},
    {"false", TEST_FALSE},
    {"float", TEST_FLOAT},
    {"ge", TEST_GREATER_EQUAL},
    {"greaterthan", TEST_GREATER},
    {"gt", TEST_GREATER},
    {"in", TEST_IN},
    {"integer", TEST_INTEGER},
    {"iterable", TEST_ITERABLE},
    {"le", TEST_LESS_EQUAL},
    {"lessthan", TEST_LESS},
    {"lower", TEST_LOWER},
    {"lt", TEST_LESS},
    {"mapping", TEST_MAPPING},
    {"ne", TEST_UNEQUAL},
    {"none", TEST_NONE},
    {"number", TEST_NUMBER},
    {"odd", TEST_ODD},
    {"sameas", TEST_SAME},
    {"sequence", TEST_SEQUENCE},
    {"string", TEST_STRING},
    {"true", TEST_TRUE},
    {"undefined", TEST_UNDEFINED},
    {"upper", TEST_UPPER},
};

static bool is_of_case(jinja_run *run, jinja_value value, jinja_case kind) {
  const jinja_string *text = jinja_text_of(run, value);
  const jinja_value changed = jinja_change_case(run, text, kind);
  const jinja_value other =
      jinja_change_case(run, text, kind == CASE_UPPER ? CASE_LOWER : CASE_UPPER);
  return run->status == WICK_OK && jinja_string_equal(text, changed.string) &&
         !jinja_string_equal(text, other.string);
}

static bool is_iterable(jinja_value value) {
  return value.kind == JINJA_UNDEFINED || value.kind == JINJA_STRING || value.kind == JINJA_DICT ||
         value.kind == JINJA_LOOP || jinja_is_sequence(value);
}

static bool divides(jinja_run *run, jinja_value value, jinja_value by) {
  const jinja_value rest = jinja_binary(run, '%', value, by);
  return run->status == WICK_OK && !jinja_truth(rest);
}

static bool is_same(jinja_run *run, jinja_value a, jinja_value b) {
  if (a.kind != b.kind) return false;
  if (jinja_is_sequence(a)) return a.list == b.list;
  if (a.kind == JINJA_DICT) return a.dict == b.dict;
  return jinja_equal(run, a, b);
}

static bool compares(jinja_run *run, test_id id, jinja_value value, jinja_value other) {
  static const uint32_t ops[] = {OP_EQUAL, OP_UNEQUAL, '<', OP_LESS_EQUAL, '>', OP_GREATER_EQUAL};
  return jinja_compare_is(run, ops[id - TEST_EQUAL], value, other);
}

// Evaluates tests that have an argument.
static bool test_with(jinja_run *run, test_id id, jinja_value value,
                      const jinja_arguments *arguments) {
  if (arguments->plain_count == 0) {
    jinja_fail(run, WICK_E_FORMAT, "a test needs an argument");
    return false;
  }
  const jinja_value other = arguments->plain[0];
  switch (id) {
    case TEST_IN:
      return jinja_contains(run, other, value);
    case TEST_CONTAINING:
      return jinja_contains(run, value, other);
    case TEST_DIVISIBLE:
      return divides(run, value, other);
    case TEST_SAME:
      return is_same(run, value, other);
    default:
      return compares(run, id, value, other);
  }
}

static bool test_alone(jinja_run *run, test_id id, jinja_value value) {
  switch (id) {
    case TEST_BOOLEAN:
      return value.kind == JINJA_BOOL;
    case TEST_CALLABLE:
      return value.kind >= JINJA_LOOP || value.kind == JINJA_UNDEFINED;  // like Jinja's Undefined
    case TEST_DEFINED:
      return value.kind != JINJA_UNDEFINED;
    case TEST_ESCAPED:
      return value.kind == JINJA_STRING && value.string->is_markup;
    case TEST_EVEN:
      return divides(run, value, jinja_int(2));
    case TEST_ODD:
      return jinja_equal(run, jinja_binary(run, '%', value, jinja_int(2)), jinja_int(1));
    case TEST_FALSE:
      return value.kind == JINJA_BOOL && !value.truth;
    case TEST_FLOAT:
      return value.kind == JINJA_FLOAT;
    case TEST_INTEGER:
      return value.kind == JINJA_INT || value.kind == JINJA_BIG;
    case TEST_ITERABLE:
      return is_iterable(value);
    case TEST_LOWER:
      return is_of_case(run, value, CASE_LOWER);
    case TEST_MAPPING:
      return value.kind == JINJA_DICT;
    case TEST_NONE:
      return value.kind == JINJA_NONE;
    case TEST_NUMBER:
      return jinja_is_number(value);
    case TEST_SEQUENCE:
      return is_iterable(value) && value.kind != JINJA_LOOP;
    case TEST_STRING:
      return value.kind == JINJA_STRING;
    case TEST_TRUE:
      return value.kind == JINJA_BOOL && value.truth;
    case TEST_UNDEFINED:
      return value.kind == JINJA_UNDEFINED;
    default:
      return is_of_case(run, value, CASE_UPPER);
  }
}

bool jinja_test(jinja_run *run, const jinja_string *name, jinja_value input,
                const jinja_arguments *arguments) {
  if (!jinja_step(run, 1)) return false;
  for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
    if (!jinja_string_is(name, TESTS[i].name)) continue;
    const test_id id = TESTS[i].id;
    const bool has_argument = id >= TEST_EQUAL || id == TEST_IN || id == TEST_CONTAINING ||
                              id == TEST_DIVISIBLE || id == TEST_SAME;
    return has_argument ? test_with(run, id, input, arguments) : test_alone(run, id, input);
  }
  jinja_fail(run, WICK_E_UNSUPPORTED, "there is no test named %.*s", (int)name->size_bytes,
             name->bytes);
  return false;
}
