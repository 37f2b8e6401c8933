// grammar/schema_cases.c — expands a set of terms into cases: each keyword becomes tasks, and what
// is a choice is tried after everything that is certain.
#include <string.h>

#include "grammar/formats.h"
#include "grammar/numbers.h"
#include "grammar/regex.h"
#include "grammar/schema_parts.h"

enum { EMPTY_DEPTH_MAX = 4, SUBSETS_MAX = 4 };

typedef enum task_kind {
  TASK_TERM,
  TASK_TYPES,    // of `a`
  TASK_NUMBERS,  // of `set`
  TASK_TEXTS,
  TASK_LENGTHS,  // from `a` to `b`
  TASK_ITEMS,
  TASK_MEMBERS,
  TASK_FORBID,  // the member `name`
  TASK_REQUIRE,
  TASK_MEMBER,    // `term` for it
  TASK_ITEM,      // `term` for item `a`
  TASK_CONTAINS,  // `term` for some item
  TASK_PART,      // `term` speaks about members or items
  TASK_CHOICE,
} task_kind;

struct option;
typedef struct task {
  task_kind kind;
  uint32_t a, b;
  schema_term term;
  const dfa *set;
  document_text name;
  const struct option *options;
  const term_scope *scope;
  const struct task *next;
} task;

typedef struct option {
  const task *tasks;
  const struct option *next;
} option;

typedef struct expansion {
  schema_case value;
  const task *todo, *choices;
  const term_scope *scope;  // of the term under way
  schema_term term;         // under way
  bool is_part;             // it is among the parts
} expansion;

static const json_node *node_of(const schema_compiler *c, uint32_t node) {
  return document_node(&c->document, node);
}

// ---- tasks ----

static void push(schema_compiler *c, const task **list, task made) {
  task *copy = work_alloc(c->work, 1, sizeof *copy);
  if (copy == NULL) return;
  *copy = made;
  copy->next = *list;
  *list = copy;
}

static void push_term(schema_compiler *c, const expansion *x, const task **list, term_kind kind,
                      uint32_t node) {
  push(c, list, (task){.kind = TASK_TERM, .term = term_of(kind, node), .scope = x->scope});
}

static void push_types(schema_compiler *c, const task **list, uint32_t types) {
  push(c, list, (task){.kind = TASK_TYPES, .a = types});
}

static void add_option(schema_compiler *c, const option **options, const task *tasks) {
  option *made = work_alloc(c->work, 1, sizeof *made);
  if (made == NULL) return;
  *made = (option){tasks, *options};
  *options = made;
}

// An alternative of one term.
static void add_term(schema_compiler *c, const expansion *x, term_kind kind, uint32_t node,
                     const option **options) {
  const task *tasks = NULL;
  push_term(c, x, &tasks, kind, node);
  add_option(c, options, tasks);
}

// An alternative in which the terms of all items of `list` hold.
static void add_terms(schema_compiler *c, const expansion *x, term_kind kind, uint32_t list,
                      const option **options) {
  const task *tasks = NULL;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    push_term(c, x, &tasks, kind, child);
  }
  add_option(c, options, tasks);
}

// The term under way speaks about members or items: its part comes in the order of keywords, and so
// members do.
static void push_part(schema_compiler *c, expansion *x) {
  if (x->is_part) return;
  x->is_part = true;
  push(c, &x->todo, (task){.kind = TASK_PART, .term = x->term, .scope = x->scope});
}

// ---- restrictions ----

static void restrict_numbers(schema_compiler *c, schema_case *value, const dfa *set) {
  value->numbers =
      value->numbers == NULL ? set : dfa_combine(c->work, value->numbers, set, DFA_AND);
  if (dfa_is_empty(value->numbers)) value->types &= ~(uint32_t)TYPE_NUMBER;
}

static void restrict_texts(schema_compiler *c, schema_case *value, const dfa *set) {
  value->texts = value->texts == NULL ? set : dfa_combine(c->work, value->texts, set, DFA_AND);
  if (dfa_is_empty(value->texts)) value->types &= ~(uint32_t)TYPE_STRING;
}

static void restrict_count(uint32_t *least, uint32_t *most, uint32_t low, uint32_t high,
                           uint32_t *types, uint32_t type) {
  if (low > *least) *least = low;
  if (high < *most) *most = high;
  if (*least > *most) *types &= ~type;
}

static void add_member(schema_compiler *c, schema_case *value, case_member member) {
  case_member *made = work_alloc(c->work, 1, sizeof *made);
  if (made == NULL) return;
  *made = member;
  made->previous = value->members;
  value->members = made;
}

// ---- values: const and enum ----

static const dfa *text_set(schema_compiler *c, document_text text) {
  return dfa_of_text(c->work, text.bytes, text.size_bytes);
}

static void apply_const(schema_compiler *c, expansion *x, uint32_t node) {
  static const uint32_t TYPES[] = {TYPE_NULL,   TYPE_FALSE, TYPE_TRUE,  TYPE_NUMBER,
                                   TYPE_STRING, TYPE_ARRAY, TYPE_OBJECT};
  const json_node *at = node_of(c, node);
  x->value.types &= TYPES[at->kind];
  if (at->kind == JSON_NUMBER && (x->value.types & TYPE_NUMBER) != 0) {
    restrict_numbers(c, &x->value, numbers_equal(c->work, at->text));
  }
  if (at->kind == JSON_STRING && (x->value.types & TYPE_STRING) != 0) {
    restrict_texts(c, &x->value, text_set(c, at->text));
  }
  if (at->kind == JSON_ARRAY || at->kind == JSON_OBJECT) push_part(c, x);
}

static void differ_in_object(schema_compiler *c, const expansion *x, uint32_t node,
                             const option **options) {
  const task *more = NULL;
  push(c, &more, (task){.kind = TASK_MEMBERS, .a = node_of(c, node)->count + 1, .b = UINT32_MAX});
  push_types(c, &more, TYPE_OBJECT);
  add_option(c, options, more);
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->key;
    const task *lacks = NULL, *differs = NULL;
    push(c, &lacks, (task){.kind = TASK_FORBID, .name = name});
    push_types(c, &lacks, TYPE_OBJECT);
    add_option(c, options, lacks);
    push(c, &differs,
         (task){.kind = TASK_MEMBER, .name = name, .term = term_of(TERM_NOT_CONST, child)});
    push(c, &differs, (task){.kind = TASK_REQUIRE, .name = name});
    push_types(c, &differs, TYPE_OBJECT);
    add_option(c, options, differs);
  }
  (void)x;
}

static void differ_in_array(schema_compiler *c, uint32_t node, const option **options) {
  const uint32_t count = node_of(c, node)->count;
  const task *more = NULL, *fewer = NULL;
  push(c, &more, (task){.kind = TASK_ITEMS, .a = count + 1, .b = UINT32_MAX});
  push_types(c, &more, TYPE_ARRAY);
  add_option(c, options, more);
  if (count == 0) return;
  push(c, &fewer, (task){.kind = TASK_ITEMS, .a = 0, .b = count - 1});
  push_types(c, &fewer, TYPE_ARRAY);
  add_option(c, options, fewer);
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const task *differs = NULL;
    const schema_term term = term_of(TERM_NOT_CONST, child);
    push(c, &differs, (task){.kind = TASK_ITEM, .a = node_of(c, child)->index, .term = term});
    push(c, &differs, (task){.kind = TASK_ITEMS, .a = count, .b = count});
    push_types(c, &differs, TYPE_ARRAY);
    add_option(c, options, differs);
  }
}

static void apply_not_const(schema_compiler *c, expansion *x, uint32_t node) {
  const json_node *at = node_of(c, node);
  schema_case *value = &x->value;
  if (at->kind == JSON_NULL) value->types &= ~(uint32_t)TYPE_NULL;
  if (at->kind == JSON_TRUE) value->types &= ~(uint32_t)TYPE_TRUE;
  if (at->kind == JSON_FALSE) value->types &= ~(uint32_t)TYPE_FALSE;
  if (at->kind == JSON_NUMBER && (value->types & TYPE_NUMBER) != 0) {
    const dfa *same = numbers_equal(c->work, at->text);
    restrict_numbers(c, value, dfa_combine(c->work, c->all_numbers, same, DFA_WITHOUT));
  }
  if (at->kind == JSON_STRING && (value->types & TYPE_STRING) != 0) {
    const dfa *same = text_set(c, at->text);
    restrict_texts(c, value, dfa_combine(c->work, dfa_any_text(c->work), same, DFA_WITHOUT));
  }
  const uint32_t type = at->kind == JSON_ARRAY    ? TYPE_ARRAY
                        : at->kind == JSON_OBJECT ? TYPE_OBJECT
                                                  : 0;
  if (type == 0 || (value->types & type) == 0) return;
  const option *options = NULL;
  const task *other = NULL;
  if (type == TYPE_ARRAY) differ_in_array(c, node, &options);
  if (type == TYPE_OBJECT) differ_in_object(c, x, node, &options);
  push_types(c, &other, TYPE_ANY & ~type);
  add_option(c, &options, other);
  push(c, &x->choices, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

// All texts of an enum as one set, all numbers as another.
static void enum_scalars(schema_compiler *c, uint32_t list, const task **tasks) {
  nfa texts;
  nfa_begin(&texts, c->work);
  const uint32_t start = nfa_state(&texts), end = nfa_state(&texts);
  const dfa *numbers = NULL;
  uint32_t types = 0;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    const json_node *at = node_of(c, child);
    if (at->kind == JSON_NULL) types |= TYPE_NULL;
    if (at->kind == JSON_TRUE) types |= TYPE_TRUE;
    if (at->kind == JSON_FALSE) types |= TYPE_FALSE;
    if (at->kind == JSON_NUMBER) {
      const dfa *one = numbers_equal(c->work, at->text);
      types |= TYPE_NUMBER;
      numbers = numbers == NULL ? one : dfa_combine(c->work, numbers, one, DFA_OR);
    }
    if (at->kind != JSON_STRING) continue;
    types |= TYPE_STRING;
    const dfa *one = text_set(c, at->text);
    uint32_t from = start;
    for (uint32_t i = 0; one != NULL && i + 1 < one->count; i++) {
      const uint32_t next = nfa_state(&texts);
      nfa_range(&texts, from, one->edges[i].low, one->edges[i].high, next);
      from = next;
    }
    nfa_skip(&texts, from, NFA_SKIP, end);
  }
  if ((types & TYPE_STRING) != 0) {
    push(c, tasks, (task){.kind = TASK_TEXTS, .set = dfa_of_nfa(&texts, start, end)});
  }
  if (numbers != NULL) push(c, tasks, (task){.kind = TASK_NUMBERS, .set = numbers});
  push_types(c, tasks, types);
}

static void yes_enum(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list) {
  (void)schema;
  if (node_of(c, list)->kind != JSON_ARRAY) {
    schema_fail(c, list, "enum is no array");
    return;
  }
  const option *options = NULL;
  const task *scalars = NULL;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    if (node_of(c, child)->kind != JSON_ARRAY && node_of(c, child)->kind != JSON_OBJECT) continue;
    add_term(c, x, TERM_CONST, child, &options);
  }
  enum_scalars(c, list, &scalars);
  add_option(c, &options, scalars);
  if (options == NULL) return;  // no memory
  push(c, options->next == NULL ? &x->todo : &x->choices,
       (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

static void no_enum(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list,
                    const option **options) {
  (void)schema;
  add_terms(c, x, TERM_NOT_CONST, list, options);
}

static void yes_const(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  push_term(c, x, &x->todo, TERM_CONST, value);
}

static void no_const(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                     const option **options) {
  (void)schema;
  add_term(c, x, TERM_NOT_CONST, value, options);
}

// ---- types ----

static uint32_t type_bits(schema_compiler *c, uint32_t node, bool *has_integer) {
  static const struct {
    const char *name;
    uint32_t types;
  } NAMES[] = {{"null", TYPE_NULL},     {"boolean", TYPE_TRUE | TYPE_FALSE},
               {"number", TYPE_NUMBER}, {"string", TYPE_STRING},
               {"array", TYPE_ARRAY},   {"object", TYPE_OBJECT},
               {"any", TYPE_ANY}};  // draft 3
  const json_node *at = node_of(c, node);
  if (at->kind == JSON_STRING && text_is(at->text, "integer")) {
    *has_integer = true;
    return 0;
  }
  for (size_t i = 0; at->kind == JSON_STRING && i < sizeof NAMES / sizeof NAMES[0]; i++) {
    if (text_is(at->text, NAMES[i].name)) return NAMES[i].types;
  }
  schema_fail(c, node, "this is no type");
  return 0;
}

static uint32_t all_type_bits(schema_compiler *c, uint32_t node, bool *has_integer) {
  const json_node *at = node_of(c, node);
  uint32_t types = 0;
  *has_integer = false;
  if (at->kind != JSON_ARRAY) return type_bits(c, node, has_integer);
  for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
    types |= type_bits(c, child, has_integer);
  }
  return types;
}

static const dfa *integers(schema_compiler *c) { return numbers_integers(c->work); }

static void yes_type(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  bool has_integer;
  uint32_t types = all_type_bits(c, value, &has_integer);
  (void)schema;
  if (has_integer && (types & TYPE_NUMBER) == 0) {
    types |= TYPE_NUMBER;
    if ((x->value.types & TYPE_NUMBER) != 0) restrict_numbers(c, &x->value, integers(c));
  }
  x->value.types &= types;
}

static void no_type(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                    const option **options) {
  bool has_integer;
  const uint32_t types = all_type_bits(c, value, &has_integer);
  const task *others = NULL, *broken = NULL;
  (void)schema;
  (void)x;
  push_types(c, &others, TYPE_ANY & ~types & (has_integer ? ~(uint32_t)TYPE_NUMBER : TYPE_ANY));
  add_option(c, options, others);
  if (!has_integer || (types & TYPE_NUMBER) != 0) return;
  const dfa *rest = dfa_combine(c->work, c->all_numbers, integers(c), DFA_WITHOUT);
  push(c, &broken, (task){.kind = TASK_NUMBERS, .set = rest});
  push_types(c, &broken, TYPE_NUMBER);
  add_option(c, options, broken);
}

// ---- numbers ----

// The numbers that a keyword allows; NULL: all.
static const dfa *allowed_numbers(schema_compiler *c, uint32_t schema, uint32_t value) {
  const json_node *at = node_of(c, value);
  const bool is_lower = text_is(at->key, "minimum") || text_is(at->key, "exclusiveMinimum");
  const bool is_exclusive_key = at->key.bytes[0] == 'e';
  if (is_exclusive_key && (at->kind == JSON_TRUE || at->kind == JSON_FALSE))
    return NULL;  // draft 4
  if (at->kind != JSON_NUMBER) {
    schema_fail(c, value, "a number is expected");
    return NULL;
  }
  if (text_is(at->key, "multipleOf")) return numbers_multiple(c->work, at->text);
  const uint32_t flag =
      document_find(&c->document, schema, is_lower ? "exclusiveMinimum" : "exclusiveMaximum");
  const bool excludes = is_exclusive_key || (flag != 0 && node_of(c, flag)->kind == JSON_TRUE);
  const number_bound kind = is_lower   ? excludes ? NUMBER_ABOVE : NUMBER_AT_LEAST
                            : excludes ? NUMBER_BELOW
                                       : NUMBER_AT_MOST;
  return numbers_bounded(c->work, at->text, kind);
}

static void yes_number(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  if ((x->value.types & TYPE_NUMBER) == 0) return;
  const dfa *allowed = allowed_numbers(c, schema, value);
  if (allowed != NULL) restrict_numbers(c, &x->value, allowed);
}

static void no_number(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                      const option **options) {
  const task *tasks = NULL;
  if ((x->value.types & TYPE_NUMBER) == 0) return;
  const dfa *allowed = allowed_numbers(c, schema, value);
  if (allowed == NULL) return;
  const dfa *rest = dfa_combine(c->work, c->all_numbers, allowed, DFA_WITHOUT);
  push(c, &tasks, (task){.kind = TASK_NUMBERS, .set = rest});
  push_types(c, &tasks, TYPE_NUMBER);
  add_option(c, options, tasks);
}

// ---- texts ----

// A set that was made before, for a pattern or a format of some level.
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

static const dfa *allowed_texts(schema_compiler *c, uint32_t value) {
  const json_node *at = node_of(c, value);
  if (at->kind != JSON_STRING) {
    schema_fail(c, value, "a text is expected");
    return NULL;
  }
  return schema_pattern(c, at->text);
}

static void yes_pattern(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  if ((x->value.types & TYPE_STRING) == 0) return;
  const dfa *allowed = allowed_texts(c, value);
  if (allowed != NULL) restrict_texts(c, &x->value, allowed);
}

static void no_pattern(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                       const option **options) {
  const task *tasks = NULL;
  (void)schema;
  if ((x->value.types & TYPE_STRING) == 0) return;
  const dfa *allowed = allowed_texts(c, value);
  const dfa *rest = dfa_combine(c->work, dfa_any_text(c->work), allowed, DFA_WITHOUT);
  push(c, &tasks, (task){.kind = TASK_TEXTS, .set = rest});
  push_types(c, &tasks, TYPE_STRING);
  add_option(c, options, tasks);
}

static void yes_format(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  static const document_text LOW = {(const uint8_t *)"-2147483648", 11};
  static const document_text HIGH = {(const uint8_t *)"2147483647", 10};
  const json_node *at = node_of(c, value);
  const dfa *texts = NULL;
  (void)schema;
  if (at->kind != JSON_STRING) return;
  const format_kind kind = find_format(c, at->text, c->any ? FORMAT_EVERY : FORMAT_AGREED, &texts);
  if (kind == FORMAT_REFUSED && (x->value.types & TYPE_STRING) != 0) {
    schema_refuse(c, value, "this format");
  }
  if (kind == FORMAT_TEXTS && (x->value.types & TYPE_STRING) != 0) {
    restrict_texts(c, &x->value, texts);
  }
  if (kind == FORMAT_INT32 && (x->value.types & TYPE_NUMBER) != 0) {
    restrict_numbers(c, &x->value, integers(c));
    restrict_numbers(c, &x->value, numbers_bounded(c->work, LOW, NUMBER_AT_LEAST));
    restrict_numbers(c, &x->value, numbers_bounded(c->work, HIGH, NUMBER_AT_MOST));
  }
}

static void no_format(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                      const option **options) {
  const json_node *at = node_of(c, value);
  const task *tasks = NULL;
  const dfa *texts = NULL;
  (void)schema;
  if (at->kind != JSON_STRING || (x->value.types & TYPE_STRING) == 0) return;
  const format_kind kind = find_format(c, at->text, FORMAT_AT_MOST, &texts);
  if (kind == FORMAT_REFUSED) schema_refuse(c, value, "this format");
  if (kind != FORMAT_TEXTS) return;
  const dfa *rest = dfa_combine(c->work, dfa_any_text(c->work), texts, DFA_WITHOUT);
  push(c, &tasks, (task){.kind = TASK_TEXTS, .set = rest});
  push_types(c, &tasks, TYPE_STRING);
  add_option(c, options, tasks);
}

// ---- counts ----

static uint32_t count_of(schema_compiler *c, uint32_t value) {
  const json_node *at = node_of(c, value);
  const uint32_t count = at->kind == JSON_NUMBER ? numbers_count(at->text) : UINT32_MAX;
  if (count == UINT32_MAX) schema_fail(c, value, "a count is expected");
  return count;
}

static task count_task(schema_compiler *c, uint32_t value, bool is_not, uint32_t *type) {
  const json_node *at = node_of(c, value);
  const uint32_t count = count_of(c, value);
  const uint8_t last = at->key.bytes[at->key.size_bytes - 1];
  const bool is_least = (at->key.bytes[1] == 'i') != is_not;
  task made = {.a = 0, .b = UINT32_MAX};
  // "...Length", "...Items", "...Properties" end in h, s and s
  const bool is_items = last == 's' && at->key.bytes[3] == 'I';
  made.kind = last == 'h' ? TASK_LENGTHS : is_items ? TASK_ITEMS : TASK_MEMBERS;
  *type = last == 'h' ? TYPE_STRING : is_items ? TYPE_ARRAY : TYPE_OBJECT;
  if (is_least) made.a = is_not ? count + 1 : count;
  if (!is_least) made.b = is_not ? count - 1 : count;
  return made;
}

static void yes_count(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  uint32_t type;
  (void)schema;
  push(c, &x->todo, count_task(c, value, false, &type));
}

static void no_count(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                     const option **options) {
  uint32_t type;
  const task *tasks = NULL;
  const task made = count_task(c, value, true, &type);
  (void)schema;
  (void)x;
  if (made.b == UINT32_MAX && made.a == 0) return;  // at least 0: never broken
  push(c, &tasks, made);
  push_types(c, &tasks, type);
  add_option(c, options, tasks);
}

// ---- members ----

static void yes_required(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  const json_node *at = node_of(c, value);
  (void)schema;
  if (at->kind != JSON_ARRAY) {
    schema_fail(c, value, "required is no array");
    return;
  }
  for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
    push(c, &x->todo, (task){.kind = TASK_REQUIRE, .name = node_of(c, child)->text});
  }
}

static void no_required(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                        const option **options) {
  (void)schema;
  (void)x;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const task *tasks = NULL;
    push(c, &tasks, (task){.kind = TASK_FORBID, .name = node_of(c, child)->text});
    push_types(c, &tasks, TYPE_OBJECT);
    add_option(c, options, tasks);
  }
}

static void yes_part(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  (void)value;
  push_part(c, x);
}

static void no_properties(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                          const option **options) {
  (void)schema;
  (void)x;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->key;
    const task *tasks = NULL;
    if (schema_is_true(c, child)) continue;
    push(c, &tasks, (task){.kind = TASK_MEMBER, .name = name, .term = term_of(TERM_NOT, child)});
    push(c, &tasks, (task){.kind = TASK_REQUIRE, .name = name});
    push_types(c, &tasks, TYPE_OBJECT);
    add_option(c, options, tasks);
  }
}

static void refuse_type(schema_compiler *c, const expansion *x, uint32_t value, uint32_t type) {
  if ((x->value.types & type) == 0) return;
  schema_refuse(c, value, "this keyword below 'not' (or in a 'oneOf' whose schemas overlap)");
}

static void refuse_not(schema_compiler *c, const expansion *x, uint32_t value, uint32_t type) {
  if (!schema_is_true(c, value)) refuse_type(c, x, value, type);
}

static void no_member_part(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                           const option **options) {
  (void)schema;
  (void)options;
  refuse_not(c, x, value, TYPE_OBJECT);
}

// Of a list by names, each entry says something of its own.
static void no_named_parts(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                           const option **options) {
  (void)schema;
  (void)options;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    refuse_not(c, x, child, TYPE_OBJECT);
  }
}

static void no_item_part(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                         const option **options) {
  (void)schema;
  (void)options;
  refuse_not(c, x, value, TYPE_ARRAY);
}

// Where there is no item, even a schema that says nothing is broken.
static void no_contains(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                        const option **options) {
  (void)schema;
  (void)options;
  refuse_type(c, x, value, TYPE_ARRAY);
}

static void no_unique(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                      const option **options) {
  (void)schema;
  (void)options;
  if (node_of(c, value)->kind != JSON_FALSE) refuse_type(c, x, value, TYPE_ARRAY);
}

// Some item breaks the schema of all, or one at its place the schema for it.
static void no_items(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                     const option **options) {
  const json_node *at = node_of(c, value);
  const uint32_t prefix = schema_keyword(c, schema, "prefixItems");
  const bool has_prefix = prefix != value && prefix != 0;
  if (has_prefix) {
    refuse_not(c, x, value, TYPE_ARRAY);
    return;
  }
  for (uint32_t child = at->kind == JSON_ARRAY ? at->first : 0; child != 0;) {
    const uint32_t index = node_of(c, child)->index;
    const task *tasks = NULL;
    push(c, &tasks, (task){.kind = TASK_ITEM, .a = index, .term = term_of(TERM_NOT, child)});
    push(c, &tasks, (task){.kind = TASK_ITEMS, .a = index + 1, .b = UINT32_MAX});
    push_types(c, &tasks, TYPE_ARRAY);
    add_option(c, options, tasks);
    child = node_of(c, child)->next;
  }
  if (at->kind == JSON_ARRAY || schema_is_true(c, value)) return;
  const task *tasks = NULL;
  push(c, &tasks, (task){.kind = TASK_CONTAINS, .term = term_of(TERM_NOT, value)});
  push(c, &tasks, (task){.kind = TASK_ITEMS, .a = 1, .b = UINT32_MAX});
  push_types(c, &tasks, TYPE_ARRAY);
  add_option(c, options, tasks);
}

// One that has the member `name` also satisfies what `value` says; others may be anything.
static void depend(schema_compiler *c, expansion *x, document_text name, uint32_t value) {
  const option *options = NULL;
  const task *has = NULL, *lacks = NULL;
  if (node_of(c, value)->kind == JSON_ARRAY) {
    for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
      push(c, &has, (task){.kind = TASK_REQUIRE, .name = node_of(c, child)->text});
    }
  } else if (node_of(c, value)->kind == JSON_STRING) {
    push(c, &has, (task){.kind = TASK_REQUIRE, .name = node_of(c, value)->text});
  } else {
    push_term(c, x, &has, TERM_SCHEMA, value);
  }
  push(c, &has, (task){.kind = TASK_REQUIRE, .name = name});
  push_types(c, &has, TYPE_OBJECT);
  add_option(c, &options, has);
  push(c, &lacks, (task){.kind = TASK_FORBID, .name = name});
  add_option(c, &options, lacks);
  push(c, &x->choices, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

static void yes_dependencies(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    depend(c, x, node_of(c, child)->key, child);
  }
}

// ---- schemas for the same value ----

static void yes_ref(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  const uint32_t target = schema_resolve(c, value);
  (void)schema;
  if (target != 0) push_term(c, x, &x->todo, TERM_SCHEMA, target);
}

static void no_ref(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                   const option **options) {
  const uint32_t target = schema_resolve(c, value);
  (void)schema;
  if (target != 0) add_term(c, x, TERM_NOT, target, options);
}

static bool check_list(schema_compiler *c, uint32_t list) {
  return node_of(c, list)->kind == JSON_ARRAY || schema_fail(c, list, "an array is expected");
}

static void yes_all_of(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list) {
  (void)schema;
  if (!check_list(c, list)) return;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    push_term(c, x, &x->todo, TERM_SCHEMA, child);
  }
}

static void no_all_of(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list,
                      const option **options) {
  (void)schema;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    add_term(c, x, TERM_NOT, child, options);
  }
}

static uint32_t child_of(const schema_compiler *c, uint32_t list, uint32_t index) {
  uint32_t child = node_of(c, list)->first;
  while (child != 0 && index-- > 0) child = node_of(c, child)->next;
  return child;
}

static void push_choice(schema_compiler *c, expansion *x, const option *options) {
  push(c, &x->choices, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

// Where it matters which schemas hold, all combinations are tried: those that hold together say
// together which members are evaluated.
static void yes_any_of(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list) {
  const option *options = NULL;
  (void)schema;
  if (!check_list(c, list)) return;
  const uint32_t count = node_of(c, list)->count;
  const bool combines = x->scope != NULL && count <= SUBSETS_MAX;
  for (uint32_t set = 1; combines && set < 1u << count; set++) {
    const task *tasks = NULL;
    for (uint32_t i = 0; i < count; i++) {
      if ((set >> i & 1) != 0) push_term(c, x, &tasks, TERM_SCHEMA, child_of(c, list, i));
    }
    add_option(c, &options, tasks);
  }
  for (uint32_t child = node_of(c, list)->first; child != 0 && !combines;
       child = node_of(c, child)->next) {
    add_term(c, x, TERM_SCHEMA, child, &options);
  }
  push_choice(c, x, options);
}

static void no_any_of(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list,
                      const option **options) {
  (void)schema;
  add_terms(c, x, TERM_NOT, list, options);
}

// The types of values that both schemas may allow.
static uint32_t overlap_of(schema_compiler *c, uint32_t a, uint32_t b) {
  schema_term terms[2] = {term_of(TERM_SCHEMA, a), term_of(TERM_SCHEMA, b)};
  const wick_status before = c->work->status;
  const uint32_t set = schema_set(c, terms, 2);
  const uint32_t types = set == UINT32_MAX ? TYPE_ANY : schema_types(c, set, 0);
  // what cannot be expanded may overlap; what is broken is found again elsewhere
  if (before == WICK_OK && c->work->status == WICK_E_UNSUPPORTED) c->work->status = WICK_OK;
  return types;
}

// A value of the types where they overlap does not satisfy the other one.
static void push_not_other(schema_compiler *c, const expansion *x, uint32_t other, uint32_t types,
                           const task **tasks) {
  const option *options = NULL;
  const task *outside = NULL, *inside = NULL;
  if (types == 0) return;
  if (types == TYPE_ANY) {
    push_term(c, x, tasks, TERM_NOT, other);
    return;
  }
  push_types(c, &outside, TYPE_ANY & ~types);
  add_option(c, &options, outside);
  push_term(c, x, &inside, TERM_NOT, other);
  push_types(c, &inside, types);
  add_option(c, &options, inside);
  push(c, tasks, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

static void yes_one_of(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list) {
  const option *options = NULL;
  (void)schema;
  if (!check_list(c, list)) return;
  for (uint32_t one = node_of(c, list)->first; one != 0; one = node_of(c, one)->next) {
    const task *tasks = NULL;
    for (uint32_t other = node_of(c, list)->first; other != 0; other = node_of(c, other)->next) {
      if (!work_step(c->work, 1)) return;
      if (other != one) push_not_other(c, x, other, overlap_of(c, one, other), &tasks);
    }
    push_term(c, x, &tasks, TERM_SCHEMA, one);
    add_option(c, &options, tasks);
  }
  push_choice(c, x, options);
}

static void no_one_of(schema_compiler *c, expansion *x, uint32_t schema, uint32_t list,
                      const option **options) {
  no_any_of(c, x, schema, list, options);
  for (uint32_t one = node_of(c, list)->first; one != 0; one = node_of(c, one)->next) {
    for (uint32_t other = node_of(c, one)->next; other != 0; other = node_of(c, other)->next) {
      const task *tasks = NULL;
      push_term(c, x, &tasks, TERM_SCHEMA, one);
      push_term(c, x, &tasks, TERM_SCHEMA, other);
      add_option(c, options, tasks);
    }
  }
}

static void yes_not(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  push_term(c, x, &x->choices, TERM_NOT, value);
}

static void no_not(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                   const option **options) {
  (void)schema;
  add_term(c, x, TERM_SCHEMA, value, options);
}

// "if" with "then" and "else"; `turned`: their opposites.
static void condition(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                      bool turned, const option **options) {
  for (int holds = 0; holds < 2; holds++) {
    const uint32_t part = document_find(&c->document, schema, holds ? "then" : "else");
    const task *tasks = NULL;
    if (part == 0 && turned) continue;
    if (part != 0) push_term(c, x, &tasks, turned ? TERM_NOT : TERM_SCHEMA, part);
    push_term(c, x, &tasks, holds ? TERM_SCHEMA : TERM_NOT, value);
    add_option(c, options, tasks);
  }
}

static void yes_if(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  const option *options = NULL;
  const bool has_effect = document_find(&c->document, schema, "then") != 0 ||
                          document_find(&c->document, schema, "else") != 0 || x->scope != NULL;
  if (!has_effect) return;
  condition(c, x, schema, value, false, &options);
  push_choice(c, x, options);
}

static void no_if(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                  const option **options) {
  condition(c, x, schema, value, true, options);
}

static void refuse_keyword(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)x;
  (void)schema;
  schema_refuse(c, value, "this keyword");
}

static void no_keyword(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                       const option **options) {
  (void)options;
  refuse_keyword(c, x, schema, value);
}

// ---- keywords ----

typedef struct keyword {
  const char *name;
  void (*yes)(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value);
  void (*no)(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
             const option **options);
  uint32_t since, until;  // dialects
} keyword;

static const keyword KEYWORDS[] = {
    {"$ref", yes_ref, no_ref, 0, 0},
    {"type", yes_type, no_type, 0, 0},
    {"enum", yes_enum, no_enum, 0, 0},
    {"const", yes_const, no_const, 6, 0},
    {"minimum", yes_number, no_number, 0, 0},
    {"maximum", yes_number, no_number, 0, 0},
    {"exclusiveMinimum", yes_number, no_number, 0, 0},
    {"exclusiveMaximum", yes_number, no_number, 0, 0},
    {"multipleOf", yes_number, no_number, 0, 0},
    {"minLength", yes_count, no_count, 0, 0},
    {"maxLength", yes_count, no_count, 0, 0},
    {"minItems", yes_count, no_count, 0, 0},
    {"maxItems", yes_count, no_count, 0, 0},
    {"minProperties", yes_count, no_count, 0, 0},
    {"maxProperties", yes_count, no_count, 0, 0},
    {"pattern", yes_pattern, no_pattern, 0, 0},
    {"format", yes_format, no_format, 0, 0},
    {"required", yes_required, no_required, 0, 0},
    {"properties", yes_part, no_properties, 0, 0},
    {"patternProperties", yes_part, no_named_parts, 0, 0},
    {"additionalProperties", yes_part, no_member_part, 0, 0},
    {"propertyNames", yes_part, no_member_part, 6, 0},
    {"unevaluatedProperties", yes_part, no_member_part, 2019, 0},
    {"items", yes_part, no_items, 0, 0},
    {"prefixItems", yes_part, no_items, 2020, 0},
    {"additionalItems", yes_part, no_item_part, 0, 0},
    {"contains", yes_part, no_contains, 6, 0},
    {"uniqueItems", yes_part, no_unique, 0, 0},
    {"unevaluatedItems", yes_part, no_item_part, 2019, 0},
    {"dependencies", yes_dependencies, no_named_parts, 0, 0},
    {"dependentRequired", yes_dependencies, no_named_parts, 2019, 0},
    {"dependentSchemas", yes_dependencies, no_named_parts, 2019, 0},
    {"allOf", yes_all_of, no_all_of, 0, 0},
    {"anyOf", yes_any_of, no_any_of, 0, 0},
    {"oneOf", yes_one_of, no_one_of, 0, 0},
    {"not", yes_not, no_not, 0, 0},
    {"if", yes_if, no_if, 7, 0},
    {"$dynamicRef", refuse_keyword, no_keyword, 2019, 0},
    {"$recursiveRef", refuse_keyword, no_keyword, 2019, 0},
};
enum { KEYWORD_COUNT = sizeof KEYWORDS / sizeof KEYWORDS[0] };

static const keyword *find_keyword(const schema_compiler *c, document_text name) {
  for (size_t i = 0; i < KEYWORD_COUNT; i++) {
    // keywords of later drafts count in decoding, where fewer texts do no harm
    if (text_is(name, KEYWORDS[i].name)) {
      return c->any && KEYWORDS[i].since > c->dialect ? NULL : &KEYWORDS[i];
    }
  }
  return NULL;
}

uint32_t schema_keyword(const schema_compiler *c, uint32_t node, const char *name) {
  const uint32_t found = document_find(&c->document, node, name);
  return found == 0 || find_keyword(c, node_of(c, found)->key) == NULL ? 0 : found;
}

bool schema_is_true(const schema_compiler *c, uint32_t node) {
  const json_node *at = node_of(c, node);
  if (at->kind != JSON_OBJECT) return at->kind == JSON_TRUE;
  for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
    if (find_keyword(c, node_of(c, child)->key) != NULL) return false;
  }
  return true;
}

// Up to draft 7 nothing stands beside "$ref". Decoding heeds it even so, as some validators do.
static bool is_overridden(const schema_compiler *c, uint32_t schema, const keyword *keyword) {
  return c->any && c->dialect <= 7 && keyword != KEYWORDS &&
         document_find(&c->document, schema, "$ref") != 0;
}

static const term_scope *scope_of(schema_compiler *c, expansion *x, uint32_t node) {
  const bool begins =
      c->dialect >= 2019 && (document_find(&c->document, node, "unevaluatedProperties") != 0 ||
                             document_find(&c->document, node, "unevaluatedItems") != 0);
  if (!begins) return x->scope;
  term_scope *made = work_alloc(c->work, 1, sizeof *made);
  if (made != NULL) *made = (term_scope){node, x->scope};
  return made;
}

static void apply_schema(schema_compiler *c, expansion *x, uint32_t node) {
  const json_node *at = node_of(c, node);
  if (at->kind == JSON_TRUE) return;
  if (at->kind == JSON_FALSE) x->value.types = 0;
  if (at->kind == JSON_FALSE) return;
  if (at->kind != JSON_OBJECT) {
    schema_fail(c, node, "a schema is an object, true or false");
    return;
  }
  x->scope = scope_of(c, x, node);
  for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
    const keyword *keyword = find_keyword(c, node_of(c, child)->key);
    if (keyword == NULL || is_overridden(c, node, keyword)) continue;
    keyword->yes(c, x, node, child);
    if (!work_is_ok(c->work)) return;
  }
}

static void apply_not(schema_compiler *c, expansion *x, uint32_t node) {
  const json_node *at = node_of(c, node);
  const option *options = NULL;
  x->scope = NULL;  // nothing is evaluated below "not"
  if (at->kind == JSON_FALSE) return;
  if (at->kind == JSON_TRUE) x->value.types = 0;
  if (at->kind == JSON_TRUE) return;
  if (at->kind != JSON_OBJECT) {
    schema_fail(c, node, "a schema is an object, true or false");
    return;
  }
  for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
    const keyword *keyword = find_keyword(c, node_of(c, child)->key);
    if (keyword == NULL || is_overridden(c, node, keyword)) continue;
    keyword->no(c, x, node, child, &options);
    if (!work_is_ok(c->work)) return;
  }
  push_choice(c, x, options);
}

// ---- expansion ----

static bool was_seen(schema_compiler *c, expansion *x, schema_term term) {
  for (const seen_term *seen = x->value.seen; seen != NULL; seen = seen->previous) {
    if (seen->term == term) return true;
  }
  seen_term *made = work_alloc(c->work, 1, sizeof *made);
  if (made == NULL) return true;
  *made = (seen_term){term, x->value.seen};
  x->value.seen = made;
  return false;
}

static void apply_term(schema_compiler *c, expansion *x, const task *task) {
  if (was_seen(c, x, task->term)) return;
  const uint32_t node = term_node(task->term);
  x->scope = task->scope;
  x->term = task->term;
  x->is_part = false;
  switch (term_kind_of(task->term)) {
    case TERM_SCHEMA:
      apply_schema(c, x, node);
      break;
    case TERM_NOT:
      apply_not(c, x, node);
      break;
    case TERM_CONST:
      apply_const(c, x, node);
      break;
    case TERM_NOT_CONST:
      apply_not_const(c, x, node);
      break;
  }
}

static void add_part(schema_compiler *c, schema_case *value, const task *task) {
  case_part *part = work_alloc(c->work, 1, sizeof *part);
  if (part == NULL) return;
  *part = (case_part){task->term, task->scope, value->parts};
  value->parts = part;
}

static void apply_task(schema_compiler *c, expansion *x, const task *task) {
  schema_case *v = &x->value;
  case_member member = {.name = task->name, .term = task->term};
  switch (task->kind) {
    case TASK_TERM:
      apply_term(c, x, task);
      break;
    case TASK_TYPES:
      v->types &= task->a;
      break;
    case TASK_NUMBERS:
      restrict_numbers(c, v, task->set);
      break;
    case TASK_TEXTS:
      restrict_texts(c, v, task->set);
      break;
    case TASK_LENGTHS:
      restrict_count(&v->length_least, &v->length_most, task->a, task->b, &v->types, TYPE_STRING);
      break;
    case TASK_ITEMS:
      restrict_count(&v->items_least, &v->items_most, task->a, task->b, &v->types, TYPE_ARRAY);
      break;
    case TASK_MEMBERS:
      restrict_count(&v->members_least, &v->members_most, task->a, task->b, &v->types, TYPE_OBJECT);
      break;
    case TASK_FORBID:
    case TASK_REQUIRE:
    case TASK_MEMBER:
      member.is_forbidden = task->kind == TASK_FORBID;
      member.is_required = task->kind == TASK_REQUIRE;
      add_member(c, v, member);
      break;
    case TASK_CONTAINS:
    case TASK_ITEM:
      member.is_item = true;
      member.is_any_item = task->kind == TASK_CONTAINS;
      member.index = task->a;
      add_member(c, v, member);
      break;
    case TASK_PART:
      add_part(c, v, task);
      break;
    case TASK_CHOICE:
      for (const struct task *at = task->options->tasks; at != NULL; at = at->next) {
        push(c, &x->todo, *at);  // the only option
      }
      break;
  }
}

// Tasks before `end`, in the opposite order, in front of `list`.
static const task *turn_tasks(schema_compiler *c, const task *from, const task *end,
                              const task *list) {
  for (; from != end; from = from->next) push(c, &list, *from);
  return list;
}

static bool expand(schema_compiler *c, expansion x, uint32_t depth, case_list *out) {
  while (x.todo != NULL && x.value.types != 0 && work_step(c->work, 1)) {
    const task *task = x.todo, *rest = task->next;
    x.todo = rest;
    apply_task(c, &x, task);
    x.todo = turn_tasks(c, x.todo, rest, rest);  // in the order of the schema
  }
  if (!work_is_ok(c->work)) return false;
  if (x.value.types == 0) return true;
  if (x.choices == NULL) {
    if (out->count == CASES_MAX) return schema_refuse(c, 1, "more than 512 alternatives");
    return WORK_PUSH(c->work, out, x.value);
  }
  if (depth > CHOICE_DEPTH_MAX) return schema_refuse(c, 1, "too many choices in one value");
  const task *choice = x.choices;
  x.choices = choice->next;
  if (choice->kind == TASK_TERM) {
    push(c, &x.todo, *choice);
    return expand(c, x, depth + 1, out);
  }
  for (const option *option = choice->options; option != NULL; option = option->next) {
    expansion with = x;
    for (const task *at = turn_tasks(c, option->tasks, NULL, NULL); at != NULL; at = at->next) {
      const bool waits = (at->kind == TASK_TERM && term_kind_of(at->term) == TERM_NOT) ||
                         (at->kind == TASK_CHOICE && at->options->next != NULL);
      push(c, waits ? &with.choices : &with.todo, *at);
    }
    if (!expand(c, with, depth + 1, out)) return false;
  }
  return true;
}

uint32_t schema_set(schema_compiler *c, schema_term *terms, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    const schema_term term = terms[i];
    if (term_kind_of(term) == TERM_SCHEMA && schema_is_true(c, term_node(term))) continue;
    uint32_t at = kept;
    while (at > 0 && terms[at - 1] > term) at--;
    if (at > 0 && terms[at - 1] == term) continue;
    memmove(terms + at + 1, terms + at, (kept - at) * sizeof *terms);
    terms[at] = term;
    kept++;
  }
  const uint32_t set = work_intern(c->work, &c->sets, terms, kept);
  while (work_is_ok(c->work) && c->emptiness.count <= set) {
    if (!WORK_PUSH(c->work, &c->emptiness, 0) || !WORK_PUSH(c->work, &c->rules, 0)) break;
  }
  return work_is_ok(c->work) ? set : UINT32_MAX;
}

bool schema_expand(schema_compiler *c, uint32_t set, case_list *out) {
  expansion x = {.value = {.types = TYPE_ANY,
                           .length_most = UINT32_MAX,
                           .items_most = UINT32_MAX,
                           .members_most = UINT32_MAX}};
  memset(out, 0, sizeof *out);
  for (uint32_t i = c->sets.sets[set].count; i-- != 0;) {
    const schema_term term = c->sets.values.items[c->sets.sets[set].first + i];
    push(c, term_kind_of(term) == TERM_NOT ? &x.choices : &x.todo,
         (task){.kind = TASK_TERM, .term = term});
  }
  return expand(c, x, 0, out);
}

// ---- emptiness ----

static bool array_is_empty(schema_compiler *c, const schema_case *value, uint32_t depth) {
  for (uint32_t i = 0; i < value->items_least && i < 8; i++) {
    const uint32_t set = schema_item_set(c, value, i);
    if (set == UINT32_MAX || schema_set_is_empty(c, set, depth + 1)) return work_is_ok(c->work);
  }
  return false;
}

static bool object_is_empty(schema_compiler *c, const schema_case *value, uint32_t depth) {
  for (const case_member *one = value->members; one != NULL; one = one->previous) {
    if (!one->is_required) continue;
    for (const case_member *other = value->members; other != NULL; other = other->previous) {
      if (other->is_forbidden && text_is_same(one->name, other->name)) return true;
    }
    const uint32_t set = schema_member_set(c, value, one->name);
    if (set != UINT32_MAX && schema_set_is_empty(c, set, depth + 1)) return true;
    if (!work_is_ok(c->work)) return false;
  }
  return false;
}

static uint32_t types_of_case(schema_compiler *c, const schema_case *value, uint32_t depth) {
  uint32_t types = value->types;
  if ((types & TYPE_ARRAY) != 0 && array_is_empty(c, value, depth)) types &= ~(uint32_t)TYPE_ARRAY;
  if ((types & TYPE_OBJECT) != 0 && object_is_empty(c, value, depth)) {
    types &= ~(uint32_t)TYPE_OBJECT;
  }
  return types;
}

// `emptiness` holds the types and a bit above them; all
// types while they are being found.
uint32_t schema_types(schema_compiler *c, uint32_t set, uint32_t depth) {
  const uint32_t is_known = TYPE_ANY + 1;
  if (c->emptiness.items[set] != 0) return c->emptiness.items[set] & TYPE_ANY;
  if (depth > EMPTY_DEPTH_MAX) return TYPE_ANY;
  c->emptiness.items[set] = is_known | TYPE_ANY;
  case_list cases;
  uint32_t types = 0;
  if (!schema_expand(c, set, &cases)) types = TYPE_ANY;
  for (uint32_t i = 0; i < cases.count && types != TYPE_ANY && work_is_ok(c->work); i++) {
    types |= types_of_case(c, &cases.items[i], depth);
  }
  if (!work_is_ok(c->work)) types = TYPE_ANY;
  c->emptiness.items[set] = work_is_ok(c->work) ? is_known | types : 0;
  return types;
}

bool schema_set_is_empty(schema_compiler *c, uint32_t set, uint32_t depth) {
  return schema_types(c, set, depth) == 0;
}
