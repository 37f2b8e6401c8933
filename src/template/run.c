// template/run.c — limits and failures of a rendering.
#include "template/run.h"

#include <stdarg.h>

#include "base/text.h"

enum { REASON_BYTES = WICK_ERROR_MESSAGE_BYTES };

jinja_value jinja_fail(jinja_run *run, wick_status status, const char *format, ...) {
  if (run->status != WICK_OK) return JINJA_NOTHING;
  char reason[REASON_BYTES];
  va_list arguments;
  va_start(arguments, format);
  text_format_list(reason, sizeof reason, format, arguments);
  va_end(arguments);
  run->status = fail_with(run->error, status, WICK_NO_OFFSET, "line %u: %s", run->line, reason);
  return JINJA_NOTHING;
}

jinja_value jinja_fail_memory(jinja_run *run) {
  if (run->arena->is_over) {
    return jinja_fail(run, WICK_E_FULL, "the template needs more than %zu bytes",
                      run->arena->limit_bytes);
  }
  if (run->status == WICK_OK) {
    run->status = memory_fail(run->arena->memory, run->error, "a rendered template");
  }
  return JINJA_NOTHING;
}

bool jinja_step(jinja_run *run, uint64_t steps) {
  if (run->status != WICK_OK) return false;
  run->steps += steps;
  if (run->steps <= run->steps_max) return true;
  jinja_fail(run, WICK_E_FULL, "the template needs more than %llu steps",
             (unsigned long long)run->steps_max);
  return false;
}

bool jinja_step_bytes(jinja_run *run, uint64_t bytes) {
  return jinja_step(run, 1 + bytes / STEP_BYTES);
}

bool jinja_step_key(jinja_run *run, jinja_value key) {
  return jinja_step(run, key.kind == JINJA_STRING ? key.string->size_bytes / STEP_BYTES : 0);
}

bool jinja_step_float(jinja_run *run, double value) {
  const double magnitude = value < 0 ? -value : value;
  return jinja_step(run, magnitude == 0 || (magnitude > 1e-5 && magnitude < 1e15) ? 32 : 512);
}

jinja_entry *jinja_look_up(jinja_run *run, const jinja_dict *dict, jinja_value key) {
  jinja_step_key(run, key);
  return jinja_dict_find(dict, key);
}

void *jinja_take(jinja_run *run, size_t size_bytes) {
  if (!jinja_step_bytes(run, size_bytes)) return NULL;
  void *piece = jinja_arena_take(run->arena, size_bytes);
  if (piece == NULL) jinja_fail_memory(run);
  return piece;
}

jinja_list *jinja_new_list(jinja_run *run, uint32_t capacity) {
  if (!jinja_step(run, 1 + capacity / 4)) return NULL;
  jinja_list *list = jinja_list_create(run->arena, capacity);
  if (list == NULL) jinja_fail_memory(run);
  return list;
}

void jinja_add_item(jinja_run *run, jinja_list *list, jinja_value item) {
  if (list == NULL || !jinja_step(run, 1)) return;
  if (!jinja_list_append(run->arena, list, item)) jinja_fail_memory(run);
}

jinja_value jinja_list_value(jinja_list *list) {
  if (list == NULL) return JINJA_NOTHING;
  return (jinja_value){.kind = JINJA_LIST, .list = list};
}

jinja_dict *jinja_new_dict(jinja_run *run) {
  if (!jinja_step(run, 1)) return NULL;
  jinja_dict *dict = jinja_dict_create(run->arena, 4);
  if (dict == NULL) jinja_fail_memory(run);
  return dict;
}

void jinja_put(jinja_run *run, jinja_dict *dict, jinja_value key, jinja_value value) {
  if (dict == NULL || !jinja_step(run, 1) || !jinja_step_key(run, key)) return;
  if (key.kind != JINJA_STRING && key.kind != JINJA_NONE && !jinja_is_number(key)) {
    jinja_fail(run, WICK_E_FORMAT, "a dict's key is neither a string nor a number");
  } else if (!jinja_dict_set(run->arena, dict, key, value)) {
    jinja_fail_memory(run);
  }
}
