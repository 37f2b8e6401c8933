// grammar/schema_scalars.c — the keywords for numbers, strings and counts: minimum, pattern,
// format, maxItems and similar keywords.
#include "grammar/formats.h"
#include "grammar/numbers.h"
#include "grammar/regex.h"
#include "grammar/schema_expansion.h"

// ---- numbers ----

// Returns the numbers that a keyword allows; NULL: all (for bounds that no number exceeds).
static const dfa *allowed_numbers(schema_compiler *c, uint32_t schema, uint32_t value) {
  const json_node *at = node_of(c, value);
  const bool is_lower = text_is(at->key, "minimum") || text_is(at->key, "exclusiveMinimum");
  const bool is_exclusive_key = at->key.bytes[0] == 'e';
  if (is_exclusive_key && (at->kind == JSON_TRUE || at->kind == JSON_FALSE))
    return NULL;  // draft 4
  if (text_is(at->key, "multipleOf")) return numbers_multiple(c->work, at->text);
  if (is_lower == (at->text.bytes[0] == '-') && numbers_is_largest(at->text)) return NULL;
  const uint32_t flag =
      document_find(&c->document, schema, is_lower ? "exclusiveMinimum" : "exclusiveMaximum");
  const bool excludes = is_exclusive_key || node_of(c, flag)->kind == JSON_TRUE;
  const number_bound kind = is_lower   ? excludes ? NUMBER_ABOVE : NUMBER_AT_LEAST
                            : excludes ? NUMBER_BELOW
                                       : NUMBER_AT_MOST;
  return numbers_bounded(c->work, at->text, kind);
}

void schema_yes_number(schema_compiler *c, expansion *x, uint32_t value) {
  if ((x->value.types & TYPE_NUMBER) == 0) return;
  const dfa *allowed = allowed_numbers(c, x->schema, value);
  if (allowed != NULL) schema_restrict_numbers(c, &x->value, allowed);
}

void schema_no_number(schema_compiler *c, expansion *x, uint32_t value) {
  if ((x->value.types & TYPE_NUMBER) == 0) return;
  const dfa *allowed = allowed_numbers(c, x->schema, value);
  if (allowed != NULL) schema_add_rest(c, TYPE_NUMBER, allowed, x->options);
}

// ---- strings ----

// Returns a set that was built earlier for the same pattern, or for the same format and level.
static const dfa **find_known(schema_compiler *c, document_text text, uint32_t level) {
  for (uint32_t i = 0; i < c->known.count; i++) {
    known_set *known = &c->known.items[i];
    if (known->level == level && text_is_same(known->text, text)) return &known->set;
  }
  const known_set made = {text, level, NULL};
  if (!WORK_PUSH(c->work, &c->known, made)) return NULL;
  return &c->known.items[c->known.count - 1].set;
}

const dfa *schema_pattern(schema_compiler *c, document_text pattern) {
  const dfa **known = find_known(c, pattern, KNOWN_PATTERN);
  if (known != NULL && *known == NULL) {
    *known = regex_compile(c->work, pattern.bytes, pattern.size_bytes, false);
  }
  return known == NULL ? NULL : *known;
}

static format_kind find_format(schema_compiler *c, document_text name, format_level level,
                               const dfa **texts) {
  const dfa **known = find_known(c, name, level);
  if (known == NULL) return FORMAT_UNKNOWN;
  *texts = *known;
  if (*texts != NULL) return FORMAT_TEXTS;
  const format_kind kind = format_find(c->work, name, level, texts);
  if (kind == FORMAT_TEXTS) *known = *texts;
  return kind;
}

void schema_yes_pattern(schema_compiler *c, expansion *x, uint32_t value) {
  if ((x->value.types & TYPE_STRING) == 0) return;
  const dfa *allowed = schema_pattern(c, node_of(c, value)->text);
  if (allowed != NULL) schema_restrict_texts(c, &x->value, allowed);
}

void schema_no_pattern(schema_compiler *c, expansion *x, uint32_t value) {
  if ((x->value.types & TYPE_STRING) == 0) return;
  schema_add_rest(c, TYPE_STRING, schema_pattern(c, node_of(c, value)->text), x->options);
}

void schema_yes_format(schema_compiler *c, expansion *x, uint32_t value) {
  static const document_text LOW = {(const uint8_t *)"-2147483648", 11};
  static const document_text HIGH = {(const uint8_t *)"2147483647", 10};
  const json_node *at = node_of(c, value);
  const dfa *texts = NULL;
  const format_kind kind = find_format(c, at->text, c->any ? FORMAT_EVERY : FORMAT_AGREED, &texts);
  if (kind == FORMAT_REFUSED && (x->value.types & TYPE_STRING) != 0) {
    schema_refuse(c, value, "this format");
  }
  if (kind == FORMAT_TEXTS && (x->value.types & TYPE_STRING) != 0) {
    schema_restrict_texts(c, &x->value, texts);
  }
  if (kind < FORMAT_INT32 || (x->value.types & TYPE_NUMBER) == 0) return;
  schema_restrict_numbers(c, &x->value, schema_integers(c));
  if (kind == FORMAT_INT32) {
    schema_restrict_numbers(c, &x->value, numbers_bounded(c->work, LOW, NUMBER_AT_LEAST));
    schema_restrict_numbers(c, &x->value, numbers_bounded(c->work, HIGH, NUMBER_AT_MOST));
  }
}

void schema_no_format(schema_compiler *c, expansion *x, uint32_t value) {
  const json_node *at = node_of(c, value);
  const dfa *texts = NULL;
  if ((x->value.types & TYPE_STRING) == 0) return;
  const format_kind kind = find_format(c, at->text, FORMAT_AT_MOST, &texts);
  if (kind == FORMAT_REFUSED) schema_refuse(c, value, "this format");
  if (kind == FORMAT_TEXTS) schema_add_rest(c, TYPE_STRING, texts, x->options);
}

// ---- counts ----

static task count_task(schema_compiler *c, uint32_t value, bool is_not, uint32_t *type) {
  const json_node *at = node_of(c, value);
  const uint32_t count = numbers_count(at->text);
  const uint8_t last = at->key.bytes[at->key.size_bytes - 1];
  const bool is_least = (at->key.bytes[1] == 'i') != is_not;
  task made = {.a = 0, .b = UINT32_MAX};
  // "...Length" ends in h, "...Items" and "...Properties" end in s
  const bool is_items = last == 's' && at->key.bytes[3] == 'I';
  made.kind = last == 'h' ? TASK_LENGTHS : is_items ? TASK_ITEMS : TASK_MEMBERS;
  *type = last == 'h' ? TYPE_STRING : is_items ? TYPE_ARRAY : TYPE_OBJECT;
  if (is_least) made.a = is_not ? count + 1 : count;
  if (!is_least && count < NUMBERS_COUNT_MAX) made.b = is_not ? count - 1 : count;
  return made;
}

void schema_yes_count(schema_compiler *c, expansion *x, uint32_t value) {
  uint32_t type;
  schema_push(c, &x->todo, count_task(c, value, false, &type));
}

void schema_no_count(schema_compiler *c, expansion *x, uint32_t value) {
  uint32_t type;
  const task *tasks = NULL;
  const task made = count_task(c, value, true, &type);
  if (made.b == UINT32_MAX && made.a == 0) return;  // at least 0: cannot be violated
  schema_push(c, &tasks, made);
  schema_add_broken(c, tasks, type, x->options);
}
