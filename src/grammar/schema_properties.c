// grammar/schema_properties.c — the keywords that apply to members and items: required, properties,
// dependencies, contains and similar keywords.
#include "grammar/numbers.h"
#include "grammar/schema_expansion.h"

void schema_yes_required(schema_compiler *c, expansion *x, uint32_t value) {
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    schema_push_name(c, &x->todo, TASK_REQUIRE, node_of(c, child)->text, 0);
  }
}

// Adds the ways to violate "required". A required name that also has a schema in "properties" can
// violate both in one way: it is missing, or its value does not match.
void schema_no_required(schema_compiler *c, expansion *x, uint32_t value) {
  const uint32_t list = schema_keyword(c, x->schema, "properties");
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->text;
    const uint32_t declared = list == 0 ? 0 : document_member(&c->document, list, name);
    const task *tasks = NULL;
    if (declared != 0 && !schema_is_true(c, declared)) continue;
    schema_push_name(c, &tasks, TASK_FORBID, name, 0);
    schema_add_broken(c, tasks, TYPE_OBJECT, x->options);
  }
}

void schema_yes_part(schema_compiler *c, expansion *x, uint32_t value) {
  (void)value;
  schema_push_part(c, x);
}

static bool is_required(schema_compiler *c, uint32_t schema, document_text name) {
  uint32_t child = node_of(c, document_find(&c->document, schema, "required"))->first;
  while (child != 0 && work_step(c->work, 1) && !text_is_same(node_of(c, child)->text, name)) {
    child = node_of(c, child)->next;
  }
  return child != 0;
}

void schema_no_properties(schema_compiler *c, expansion *x, uint32_t value) {
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->key;
    const task *tasks = NULL;
    if (schema_is_true(c, child)) continue;
    schema_push_name(c, &tasks, TASK_MEMBER, name, term_of(TERM_NOT, child));
    if (!is_required(c, x->schema, name)) {
      schema_push_name(c, &tasks, TASK_REQUIRE, name, 0);
    }
    schema_add_broken(c, tasks, TYPE_OBJECT, x->options);
  }
}

static void refuse_type(schema_compiler *c, const expansion *x, uint32_t value, uint32_t type) {
  if ((x->value.types & type) == 0) return;
  schema_refuse(c, value, "this keyword below 'not' (or in a 'oneOf' whose schemas overlap)");
}

// Adds the way that a member with a name in a set violates a schema, or just exists if no value
// satisfies the schema.
static void add_some(schema_compiler *c, const expansion *x, const dfa *names, uint32_t schema) {
  const task *tasks = NULL;
  if ((x->value.types & TYPE_OBJECT) == 0 || schema_is_true(c, schema)) return;
  const bool is_any = node_of(c, schema)->kind == JSON_FALSE;
  const schema_term term = is_any ? 0 : term_of(TERM_NOT, schema);
  schema_push(c, &tasks, (task){.kind = TASK_SOME, .set = names, .term = term});
  schema_add_broken(c, tasks, TYPE_OBJECT, x->options);
}

// Returns the names that additionalProperties of a schema applies to.
static const dfa *additional_names(schema_compiler *c, uint32_t schema) {
  nfa known;
  nfa_begin(&known, c->work);
  const uint32_t start = nfa_state(&known), end = nfa_state(&known);
  uint32_t list = document_find(&c->document, schema, "properties");
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->key;
    nfa_text(&known, start, name.bytes, name.size_bytes, end);
  }
  list = document_find(&c->document, schema, "patternProperties");
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    const dfa *some = schema_pattern(c, node_of(c, child)->key);
    if (some != NULL) nfa_copy(&known, some, start, end);
  }
  return schema_rest(c, TYPE_STRING, dfa_of_nfa(&known, start, end));
}

void schema_no_additional(schema_compiler *c, expansion *x, uint32_t value) {
  add_some(c, x, additional_names(c, x->schema), value);
}

void schema_no_patterns(schema_compiler *c, expansion *x, uint32_t value) {
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    add_some(c, x, schema_pattern(c, node_of(c, child)->key), child);
  }
}

void schema_no_names(schema_compiler *c, expansion *x, uint32_t value) {
  if ((x->value.types & TYPE_OBJECT) == 0 || schema_is_true(c, value)) return;
  add_some(c, x, schema_rest(c, TYPE_STRING, schema_names(c, value)), c->nothing);
}

void schema_no_unevaluated(schema_compiler *c, expansion *x, uint32_t value) {
  if (schema_is_true(c, value)) return;
  refuse_type(c, x, value,
              text_is(node_of(c, value)->key, "unevaluatedItems") ? TYPE_ARRAY : TYPE_OBJECT);
}

void schema_no_unique(schema_compiler *c, expansion *x, uint32_t value) {
  if (node_of(c, value)->kind != JSON_FALSE) refuse_type(c, x, value, TYPE_ARRAY);
}

uint32_t schema_contains_count(schema_compiler *c, uint32_t schema, const char *name,
                               uint32_t otherwise) {
  const uint32_t node = document_find(&c->document, schema, name);
  if (node == 0 || c->dialect < 2019) return otherwise;
  const uint32_t count = numbers_count(node_of(c, node)->text);
  return count < NUMBERS_COUNT_MAX ? count : UINT32_MAX;
}

// Adds the ways to violate the number of items: too few, or too many.
void schema_no_contains(schema_compiler *c, expansion *x, uint32_t value) {
  const uint32_t least = schema_contains_count(c, x->schema, "minContains", 1);
  const uint32_t most = schema_contains_count(c, x->schema, "maxContains", UINT32_MAX);
  task made = {.kind = TASK_CONTAINS, .b = least - 1, .term = term_of(TERM_SCHEMA, value)};
  const task *few = NULL, *many = NULL;
  schema_push(c, &few, made);
  if (least != 0) schema_add_broken(c, few, TYPE_ARRAY, x->options);
  made.a = most + 1;
  made.b = UINT32_MAX;
  schema_push(c, &many, made);
  if (most != UINT32_MAX) schema_add_broken(c, many, TYPE_ARRAY, x->options);
}

// Adds the way that some item at or after an index violates a schema.
static void add_some_item(schema_compiler *c, const expansion *x, uint32_t from, uint32_t value) {
  const task *tasks = NULL;
  if (schema_is_true(c, value)) return;
  schema_push(c, &tasks,
              (task){.kind = TASK_CONTAINS,
                     .a = 1,
                     .b = UINT32_MAX,
                     .from = from,
                     .term = term_of(TERM_NOT, value)});
  schema_push_count(c, &tasks, TASK_ITEMS, from + 1, UINT32_MAX);
  schema_add_broken(c, tasks, TYPE_ARRAY, x->options);
}

void schema_no_additional_items(schema_compiler *c, expansion *x, uint32_t value) {
  const json_node *list = node_of(c, document_find(&c->document, x->schema, "items"));
  if (list->kind == JSON_ARRAY) add_some_item(c, x, list->count, value);
}

// Adds the ways to violate the items: one item violates the schema for its index, or some other
// item violates the schema for the rest.
void schema_no_items(schema_compiler *c, expansion *x, uint32_t value) {
  const json_node *at = node_of(c, value);
  for (uint32_t child = at->kind == JSON_ARRAY ? at->first : 0; child != 0;) {
    const uint32_t index = node_of(c, child)->index;
    const task *tasks = NULL;
    schema_push(c, &tasks,
                (task){.kind = TASK_ITEM, .from = index, .term = term_of(TERM_NOT, child)});
    schema_push_count(c, &tasks, TASK_ITEMS, index + 1, UINT32_MAX);
    schema_add_broken(c, tasks, TYPE_ARRAY, x->options);
    child = node_of(c, child)->next;
  }
  const uint32_t prefix = schema_keyword(c, x->schema, "prefixItems");
  if (at->kind != JSON_ARRAY) add_some_item(c, x, node_of(c, prefix)->count, value);
}

// Adds the ways to violate a dependency: a member is present, and its dependency does not hold.
void schema_no_dependencies(schema_compiler *c, expansion *x, uint32_t value) {
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const json_node *at = node_of(c, child);
    const bool is_list = at->kind == JSON_ARRAY;
    for (uint32_t one = is_list ? at->first : child; one != 0;
         one = is_list ? node_of(c, one)->next : 0) {
      const task *tasks = NULL;
      if (node_of(c, one)->kind == JSON_STRING) {
        schema_push_name(c, &tasks, TASK_FORBID, node_of(c, one)->text, 0);
      } else {
        schema_push_term(c, x, &tasks, TERM_NOT, one);
      }
      schema_push_name(c, &tasks, TASK_REQUIRE, at->key, 0);
      schema_add_broken(c, tasks, TYPE_OBJECT, x->options);
    }
  }
}

// Requires that an object with the member `name` also satisfies `value`; other values are not
// restricted.
static void depend(schema_compiler *c, expansion *x, document_text name, uint32_t value) {
  const option *options = NULL;
  const task *has = NULL, *lacks = NULL;
  if (node_of(c, value)->kind == JSON_ARRAY) {
    for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
      schema_push_name(c, &has, TASK_REQUIRE, node_of(c, child)->text, 0);
    }
  } else if (node_of(c, value)->kind == JSON_STRING) {
    schema_push_name(c, &has, TASK_REQUIRE, node_of(c, value)->text, 0);
  } else {
    schema_push_term(c, x, &has, TERM_SCHEMA, value);
  }
  schema_push_name(c, &has, TASK_REQUIRE, name, 0);
  schema_add_broken(c, has, TYPE_OBJECT, &options);
  schema_push_name(c, &lacks, TASK_FORBID, name, 0);
  schema_add_option(c, &options, lacks);
  schema_push_choice(c, x, options);
}

void schema_yes_dependencies(schema_compiler *c, expansion *x, uint32_t value) {
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    depend(c, x, node_of(c, child)->key, child);
  }
}
