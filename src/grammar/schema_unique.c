// grammar/schema_unique.c — uniqueItems for items that are limited to a list of values.
#include <string.h>

#include "base/text.h"
#include "grammar/numbers.h"
#include "grammar/schema_parts.h"

enum { TEXT_BYTES_MAX = 200, GRID_MAX = 20000 };

// Distinct values.
typedef struct value_list {
  schema_case *items;
  uint32_t count, capacity;
} value_list;

static bool add_value(schema_compiler *c, value_list *list, schema_case value) {
  return list->count < ANY_ORDER_MAX && WORK_PUSH(c->work, list, value);
}

// Adds each string of a set, or the number that each string represents. Returns false if the set
// has too many strings, or strings that are too long.
static bool add_texts(schema_compiler *c, const dfa *set, uint32_t state, document_text text,
                      uint32_t type, value_list *list) {
  uint8_t bytes[TEXT_BYTES_MAX + 4];
  if (text.size_bytes > TEXT_BYTES_MAX || !work_step(c->work, 1)) return false;
  if (text.size_bytes != 0) memcpy(bytes, text.bytes, text.size_bytes);
  if (set->accepts[state]) {
    schema_case value = {.types = type, .length_most = UINT32_MAX};
    if (type == TYPE_STRING) value.texts = dfa_of_text(c->work, bytes, text.size_bytes);
    if (type == TYPE_NUMBER) value.numbers = numbers_equal(c->work, text);
    if (!add_value(c, list, value)) return false;
  }
  for (uint32_t i = set->first[state]; i < set->first[state + 1]; i++) {
    for (uint32_t code = set->edges[i].low; code <= set->edges[i].high; code++) {
      const size_t count = utf8_encode(code, bytes + text.size_bytes);
      const document_text longer = {bytes, text.size_bytes + (uint32_t)count};
      if (!add_texts(c, set, set->edges[i].to, longer, type, list)) return false;
    }
  }
  return true;
}

// Adds each number of a set. Returns false if a number has no short notation.
static bool add_numbers(schema_compiler *c, const dfa *numbers, value_list *list) {
  const uint32_t first = list->count;
  const dfa *few = dfa_combine(c->work, numbers, c->short_numbers, DFA_AND);
  if (few == NULL) return false;
  if (few->count != 0 && !add_texts(c, few, 0, (document_text){0}, TYPE_NUMBER, list)) return false;
  for (uint32_t i = first; i < list->count; i++) {
    numbers = dfa_combine(c->work, numbers, list->items[i].numbers, DFA_WITHOUT);
  }
  return dfa_is_empty(numbers);
}

static bool list_values(schema_compiler *c, uint32_t set, value_list *list) {
  case_list cases;
  uint32_t types = 0;
  const dfa *numbers = dfa_none(c->work);
  if (!schema_expand(c, set, &cases)) return false;
  for (uint32_t i = 0; i < cases.count; i++) {
    const schema_case *value = &cases.items[i];
    types |= value->types;
    if ((value->types & TYPE_NUMBER) == 0) continue;
    if (value->numbers == NULL) return false;
    numbers = dfa_combine(c->work, numbers, value->numbers, DFA_OR);
  }
  if ((types & (TYPE_ARRAY | TYPE_OBJECT)) != 0) return false;
  for (uint32_t type = TYPE_NULL; type <= TYPE_FALSE; type *= 2) {
    if ((types & type) != 0) add_value(c, list, (schema_case){.types = type});
  }
  const dfa *texts = schema_texts(c, &cases);
  if (texts == NULL || !add_numbers(c, numbers, list)) return false;
  return texts->count == 0 || add_texts(c, texts, 0, (document_text){0}, TYPE_STRING, list);
}

bool schema_build_unique(schema_compiler *c, const schema_count *count, uint32_t from,
                         uint32_t to) {
  program_builder *builder = &c->builder;
  value_list list = {0};
  if (count->set == UINT32_MAX) return false;
  const bool is_listed = list_values(c, count->set, &list);
  const bool is_limited = count->most < list.count;
  const uint32_t cap = is_limited ? count->most : count->least > 1 ? count->least : 1;
  if (!is_listed || (uint64_t)cap * list.count > GRID_MAX) {
    return schema_refuse(c, count->node, "uniqueItems of items that have no short list of values");
  }
  uint32_t *places = work_alloc(c->work, cap + 1, sizeof *places);
  if (places == NULL || count->least > list.count) return work_is_ok(c->work);
  for (uint32_t i = 0; i <= cap; i++) places[i] = i == 0 ? from : program_place(builder);
  for (uint32_t i = 0; i < list.count && work_is_ok(c->work); i++) {
    const uint32_t rule = program_rule(builder), end = program_place(builder);
    schema_build_case(c, &list.items[i], program_start(builder, rule), end);
    program_end(builder, end);
    const uint32_t further = schema_after_comma(c, rule);
    const uint32_t place = program_member_place(builder, false);
    for (uint32_t at = 0; at < cap + !is_limited; at++) {
      program_member(builder, places[at], at == 0 ? rule : further, place,
                     places[at < cap ? at + 1 : at]);
    }
  }
  for (uint32_t at = count->least; at <= cap; at++) {
    if (at == 0) program_skip(builder, from, to);
    if (at != 0) program_members(builder, places[at], 0, to);
  }
  return work_is_ok(c->work);
}
