// grammar/schema_values.c — the keywords const, enum and type.
#include "grammar/numbers.h"
#include "grammar/schema_expansion.h"

// ---- values: const and enum ----

// By json_kind.
static const uint32_t TYPES[] = {TYPE_NULL,   TYPE_FALSE, TYPE_TRUE,  TYPE_NUMBER,
                                 TYPE_STRING, TYPE_ARRAY, TYPE_OBJECT};

static const dfa *text_set(schema_compiler *c, document_text text) {
  return dfa_of_text(c->work, text.bytes, text.size_bytes);
}

void schema_apply_const(schema_compiler *c, expansion *x, uint32_t node) {
  const json_node *at = node_of(c, node);
  x->value.types &= TYPES[at->kind];
  if (at->kind == JSON_NUMBER && (x->value.types & TYPE_NUMBER) != 0) {
    schema_restrict_numbers(c, &x->value, numbers_equal(c->work, at->text));
  }
  if (at->kind == JSON_STRING && (x->value.types & TYPE_STRING) != 0) {
    schema_restrict_texts(c, &x->value, text_set(c, at->text));
  }
  if (at->kind == JSON_ARRAY || at->kind == JSON_OBJECT) schema_push_part(c, x);
}

static void differ_in_object(schema_compiler *c, uint32_t node, const option **options) {
  const task *more = NULL;
  schema_push_count(c, &more, TASK_MEMBERS, node_of(c, node)->count + 1, UINT32_MAX);
  schema_add_broken(c, more, TYPE_OBJECT, options);
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->key;
    const task *lacks = NULL, *differs = NULL;
    schema_push_name(c, &lacks, TASK_FORBID, name, 0);
    schema_add_broken(c, lacks, TYPE_OBJECT, options);
    schema_push_name(c, &differs, TASK_MEMBER, name, term_of(TERM_NOT_CONST, child));
    schema_push_name(c, &differs, TASK_REQUIRE, name, 0);
    schema_add_broken(c, differs, TYPE_OBJECT, options);
  }
}

static void differ_in_array(schema_compiler *c, uint32_t node, const option **options) {
  const uint32_t count = node_of(c, node)->count;
  const task *more = NULL, *fewer = NULL;
  schema_push_count(c, &more, TASK_ITEMS, count + 1, UINT32_MAX);
  schema_add_broken(c, more, TYPE_ARRAY, options);
  if (count == 0) return;
  schema_push_count(c, &fewer, TASK_ITEMS, 0, count - 1);
  schema_add_broken(c, fewer, TYPE_ARRAY, options);
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const task *differs = NULL;
    const schema_term term = term_of(TERM_NOT_CONST, child);
    schema_push(c, &differs,
                (task){.kind = TASK_ITEM, .from = node_of(c, child)->index, .term = term});
    schema_push_count(c, &differs, TASK_ITEMS, count, count);
    schema_add_broken(c, differs, TYPE_ARRAY, options);
  }
}

void schema_apply_not_const(schema_compiler *c, expansion *x, uint32_t node) {
  const json_node *at = node_of(c, node);
  schema_case *value = &x->value;
  const uint32_t type = TYPES[at->kind];
  if (at->kind <= JSON_TRUE) value->types &= ~type;
  if (at->kind == JSON_NUMBER && (value->types & TYPE_NUMBER) != 0) {
    const dfa *same = numbers_equal(c->work, at->text);
    schema_restrict_numbers(c, value, schema_rest(c, TYPE_NUMBER, same));
  }
  if (at->kind == JSON_STRING && (value->types & TYPE_STRING) != 0) {
    const dfa *same = text_set(c, at->text);
    schema_restrict_texts(c, value, schema_rest(c, TYPE_STRING, same));
  }
  if (at->kind < JSON_ARRAY || (value->types & type) == 0) return;
  const option *options = NULL;
  const task *other = NULL;
  if (type == TYPE_ARRAY) differ_in_array(c, node, &options);
  if (type == TYPE_OBJECT) differ_in_object(c, node, &options);
  schema_push_types(c, &other, TYPE_ANY & ~type);
  schema_add_option(c, &options, other);
  schema_push_choice(c, x, options);
}

// Adds all strings of an enum as one set, and all numbers as another.
static void enum_scalars(schema_compiler *c, uint32_t list, const task **tasks) {
  nfa texts;
  nfa_begin(&texts, c->work);
  const uint32_t start = nfa_state(&texts), end = nfa_state(&texts);
  const dfa *numbers = NULL;
  uint32_t types = 0;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    const json_node *at = node_of(c, child);
    if (at->kind < JSON_ARRAY) types |= TYPES[at->kind];
    if (at->kind == JSON_NUMBER) {
      const dfa *one = numbers_equal(c->work, at->text);
      numbers = numbers == NULL ? one : dfa_combine(c->work, numbers, one, DFA_OR);
    }
    if (at->kind != JSON_STRING) continue;
    nfa_text(&texts, start, at->text.bytes, at->text.size_bytes, end);
  }
  if ((types & TYPE_STRING) != 0) {
    schema_push_set(c, tasks, TASK_TEXTS, dfa_of_nfa(&texts, start, end));
  }
  if (numbers != NULL) schema_push_set(c, tasks, TASK_NUMBERS, numbers);
  schema_push_types(c, tasks, types);
}

void schema_yes_enum(schema_compiler *c, expansion *x, uint32_t list) {
  const option *options = NULL;
  const task *scalars = NULL;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    if (node_of(c, child)->kind != JSON_ARRAY && node_of(c, child)->kind != JSON_OBJECT) continue;
    schema_add_term(c, x, TERM_CONST, child, &options);
  }
  enum_scalars(c, list, &scalars);
  schema_add_option(c, &options, scalars);
  if (options == NULL) return;  // no memory
  schema_push(c, options->next == NULL ? &x->todo : &x->choices,
              (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

void schema_no_enum(schema_compiler *c, expansion *x, uint32_t list) {
  schema_add_terms(c, x, TERM_NOT_CONST, list, x->options);
}

void schema_yes_const(schema_compiler *c, expansion *x, uint32_t value) {
  schema_push_term(c, x, &x->todo, TERM_CONST, value);
}

void schema_no_const(schema_compiler *c, expansion *x, uint32_t value) {
  schema_add_term(c, x, TERM_NOT_CONST, value, x->options);
}

// ---- types ----

static uint32_t type_bits(schema_compiler *c, uint32_t node, bool *has_integer) {
  static const struct {
    const char *name;
    uint32_t types;
  } NAMES[] = {{"null", TYPE_NULL},     {"boolean", TYPE_TRUE | TYPE_FALSE},
               {"number", TYPE_NUMBER}, {"string", TYPE_STRING},
               {"array", TYPE_ARRAY},   {"object", TYPE_OBJECT},
               {"any", TYPE_ANY}};  // from draft 3
  const json_node *at = node_of(c, node);
  if (at->kind == JSON_STRING && text_is(at->text, "integer")) {
    *has_integer = true;
    return 0;
  }
  for (size_t i = 0; at->kind == JSON_STRING && i < sizeof NAMES / sizeof NAMES[0]; i++) {
    if (text_is(at->text, NAMES[i].name)) return NAMES[i].types;
  }
  schema_fail(c, node, "unknown type");
  return 0;
}

uint32_t schema_type_bits(schema_compiler *c, uint32_t node, bool *has_integer) {
  const json_node *at = node_of(c, node);
  uint32_t types = 0;
  *has_integer = false;
  if (at->kind != JSON_ARRAY || at->count == 0) return type_bits(c, node, has_integer);
  for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
    types |= type_bits(c, child, has_integer);
  }
  return types;
}

const dfa *schema_integers(schema_compiler *c) { return numbers_integers(c->work); }

void schema_yes_type(schema_compiler *c, expansion *x, uint32_t value) {
  bool has_integer;
  uint32_t types = schema_type_bits(c, value, &has_integer);
  if (has_integer && (types & TYPE_NUMBER) == 0) {
    types |= TYPE_NUMBER;
    if ((x->value.types & TYPE_NUMBER) != 0)
      schema_restrict_numbers(c, &x->value, schema_integers(c));
  }
  x->value.types &= types;
}

void schema_no_type(schema_compiler *c, expansion *x, uint32_t value) {
  bool has_integer;
  const uint32_t types = schema_type_bits(c, value, &has_integer);
  const task *others = NULL;
  schema_push_types(c, &others,
                    TYPE_ANY & ~types & (has_integer ? ~(uint32_t)TYPE_NUMBER : TYPE_ANY));
  schema_add_option(c, x->options, others);
  if (!has_integer || (types & TYPE_NUMBER) != 0) return;
  schema_add_rest(c, TYPE_NUMBER, schema_integers(c), x->options);
}
