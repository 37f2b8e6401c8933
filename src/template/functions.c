// template/functions.c — global functions of Jinja and of transformers.
#include "template/names.h"

// The limit of Jinja's sandbox.
enum { RANGE_MAX = 100000 };

void jinja_put_all(jinja_run *run, jinja_dict *dict, const jinja_dict *from) {
  for (uint32_t i = 0; i < from->count && run->status == WICK_OK; i++) {
    jinja_put(run, dict, from->entries[i].key, from->entries[i].value);
  }
}

static jinja_value make_dict(jinja_run *run, const jinja_invocation *call) {
  const jinja_arguments *arguments = call->arguments;
  jinja_dict *dict = jinja_new_dict(run);
  for (uint32_t i = 0; i < arguments->plain_count && dict != NULL; i++) {
    const jinja_value from = arguments->plain[i];
    if (from.kind == JINJA_DICT) {
      jinja_put_all(run, dict, from.dict);
      continue;
    }
    if (from.kind == JINJA_UNDEFINED) return jinja_fail_undefined(run, from);
    const jinja_list *pairs = jinja_items_of(run, from);
    for (uint32_t k = 0; pairs != NULL && k < pairs->count && run->status == WICK_OK; k++) {
      const jinja_list *pair = jinja_items_of(run, pairs->items[k]);
      if (pair == NULL || pair->count != 2) {
        return jinja_fail(run, WICK_E_FORMAT, "a dict of an item that is not a pair");
      }
      jinja_put(run, dict, pair->items[0], pair->items[1]);
    }
  }
  for (uint32_t i = 0; i < arguments->named_count; i++) {
    jinja_put(run, dict, jinja_of_string(arguments->names[i]), arguments->named[i]);
  }
  return dict == NULL ? JINJA_NOTHING : (jinja_value){.kind = (jinja_kind)call->how, .dict = dict};
}

jinja_value jinja_range(jinja_run *run, int64_t start, int64_t stop, int64_t step) {
  if (step == 0) return jinja_fail(run, WICK_E_FORMAT, "a range whose step is 0");
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t distance = is_empty   ? 0
                            : step > 0 ? (uint64_t)stop - (uint64_t)start
                                       : (uint64_t)start - (uint64_t)stop;
  const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  const uint64_t items = distance / stride + (distance % stride != 0);
  if (items > RANGE_MAX) {
    return jinja_fail(run, WICK_E_FULL, "a range of more than %d numbers", RANGE_MAX);
  }
  jinja_list *list = jinja_new_list(run, (uint32_t)items + 3);
  for (uint64_t i = 0; i < items && run->status == WICK_OK; i++) {
    jinja_add_item(run, list, jinja_int((int64_t)((uint64_t)start + i * (uint64_t)step)));
  }
  const int64_t bounds[] = {start, stop, step};
  for (int i = 0; i < 3; i++) jinja_add_item(run, list, jinja_int(bounds[i]));
  if (run->status != WICK_OK) return JINJA_NOTHING;
  list->count -= 3;
  return (jinja_value){.kind = JINJA_RANGE, .list = list};
}

static jinja_value make_range(jinja_run *run, const jinja_invocation *call) {
  int64_t bounds[3] = {0, 0, 1};
  const uint32_t count = call->arguments->plain_count;
  if (count < 1 || count > 3) return jinja_fail(run, WICK_E_FORMAT, "range has 1 to 3 arguments");
  for (uint32_t i = 0; i < count; i++) {
    const jinja_value bound = call->arguments->plain[i];
    if (bound.kind != JINJA_INT && bound.kind != JINJA_BOOL) {
      return jinja_fail(run, WICK_E_FORMAT, "a bound of a range is not a whole number");
    }
    bounds[count == 1 ? 1 : i] = jinja_int_of(bound);
  }
  return jinja_range(run, bounds[0], bounds[1], bounds[2]);
}

static jinja_value raise(jinja_run *run, const jinja_invocation *call) {
  const jinja_value *reason = jinja_argument(call, 0, "message");
  if (reason == NULL) return jinja_fail(run, WICK_E_ARG, "the template raised an exception");
  const jinja_string *text = jinja_text_of(run, *reason);
  return jinja_fail(run, WICK_E_ARG, "%.*s", (int)text->size_bytes, text->bytes);
}

static jinja_value format_now(jinja_run *run, const jinja_invocation *call) {
  const jinja_string *format = jinja_string_argument(run, call, 0, "format");
  return format == NULL ? JINJA_NOTHING : jinja_strftime(run, format);
}

static const jinja_named FUNCTIONS[] = {
    {"dict", make_dict, JINJA_DICT, 0}, {"namespace", make_dict, JINJA_NAMESPACE, 0},
    {"raise_exception", raise, 0, 0},   {"range", make_range, 0, 0},
    {"strftime_now", format_now, 0, 0}, {NULL, NULL, 0, 0},
};

bool jinja_find_function(const jinja_string *name, jinja_value *function) {
  *function = (jinja_value){.kind = JINJA_FUNCTION, .function = jinja_find_named(FUNCTIONS, name)};
  return function->function != NULL;
}
