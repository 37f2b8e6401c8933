// grammar/schema_properties.c — the keywords that speak about members and items: required,
// properties, dependencies, contains and similar ones.
#include "grammar/schema_expansion.h"

void schema_yes_required(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    schema_push(c, &x->todo, (task){.kind = TASK_REQUIRE, .name = node_of(c, child)->text});
  }
}

void schema_no_required(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                        const option **options) {
  (void)schema;
  (void)x;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const task *tasks = NULL;
    schema_push(c, &tasks, (task){.kind = TASK_FORBID, .name = node_of(c, child)->text});
    schema_push_types(c, &tasks, TYPE_OBJECT);
    schema_add_option(c, options, tasks);
  }
}

void schema_yes_part(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  (void)value;
  schema_push_part(c, x);
}

void schema_no_properties(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                          const option **options) {
  (void)schema;
  (void)x;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    const document_text name = node_of(c, child)->key;
    const task *tasks = NULL;
    if (schema_is_true(c, child)) continue;
    schema_push(c, &tasks,
                (task){.kind = TASK_MEMBER, .name = name, .term = term_of(TERM_NOT, child)});
    schema_push(c, &tasks, (task){.kind = TASK_REQUIRE, .name = name});
    schema_push_types(c, &tasks, TYPE_OBJECT);
    schema_add_option(c, options, tasks);
  }
}

static void refuse_type(schema_compiler *c, const expansion *x, uint32_t value, uint32_t type) {
  if ((x->value.types & type) == 0) return;
  schema_refuse(c, value, "this keyword below 'not' (or in a 'oneOf' whose schemas overlap)");
}

static void refuse_not(schema_compiler *c, const expansion *x, uint32_t value, uint32_t type) {
  if (!schema_is_true(c, value)) refuse_type(c, x, value, type);
}

void schema_no_member_part(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                           const option **options) {
  (void)schema;
  (void)options;
  refuse_not(c, x, value, TYPE_OBJECT);
}

// In a list by names, each entry is independent.
void schema_no_named_parts(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                           const option **options) {
  (void)schema;
  (void)options;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    refuse_not(c, x, child, TYPE_OBJECT);
  }
}

void schema_no_item_part(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                         const option **options) {
  (void)schema;
  (void)options;
  refuse_not(c, x, value, TYPE_ARRAY);
}

// If there is no item, even a schema that says nothing is broken.
void schema_no_contains(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                        const option **options) {
  (void)schema;
  (void)options;
  refuse_type(c, x, value, TYPE_ARRAY);
}

void schema_no_unique(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
                      const option **options) {
  (void)schema;
  (void)options;
  if (node_of(c, value)->kind != JSON_FALSE) refuse_type(c, x, value, TYPE_ARRAY);
}

// Some item breaks the schema of all, or one at its place the schema for it.
void schema_no_items(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value,
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
    schema_push(c, &tasks, (task){.kind = TASK_ITEM, .a = index, .term = term_of(TERM_NOT, child)});
    schema_push(c, &tasks, (task){.kind = TASK_ITEMS, .a = index + 1, .b = UINT32_MAX});
    schema_push_types(c, &tasks, TYPE_ARRAY);
    schema_add_option(c, options, tasks);
    child = node_of(c, child)->next;
  }
  if (at->kind == JSON_ARRAY || schema_is_true(c, value)) return;
  const task *tasks = NULL;
  schema_push(c, &tasks, (task){.kind = TASK_CONTAINS, .term = term_of(TERM_NOT, value)});
  schema_push(c, &tasks, (task){.kind = TASK_ITEMS, .a = 1, .b = UINT32_MAX});
  schema_push_types(c, &tasks, TYPE_ARRAY);
  schema_add_option(c, options, tasks);
}

// An object with the member `name` also satisfies `value`; others may be anything.
static void depend(schema_compiler *c, expansion *x, document_text name, uint32_t value) {
  const option *options = NULL;
  const task *has = NULL, *lacks = NULL;
  if (node_of(c, value)->kind == JSON_ARRAY) {
    for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
      schema_push(c, &has, (task){.kind = TASK_REQUIRE, .name = node_of(c, child)->text});
    }
  } else if (node_of(c, value)->kind == JSON_STRING) {
    schema_push(c, &has, (task){.kind = TASK_REQUIRE, .name = node_of(c, value)->text});
  } else {
    schema_push_term(c, x, &has, TERM_SCHEMA, value);
  }
  schema_push(c, &has, (task){.kind = TASK_REQUIRE, .name = name});
  schema_push_types(c, &has, TYPE_OBJECT);
  schema_add_option(c, &options, has);
  schema_push(c, &lacks, (task){.kind = TASK_FORBID, .name = name});
  schema_add_option(c, &options, lacks);
  schema_push(c, &x->choices, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

void schema_yes_dependencies(schema_compiler *c, expansion *x, uint32_t schema, uint32_t value) {
  (void)schema;
  for (uint32_t child = node_of(c, value)->first; child != 0; child = node_of(c, child)->next) {
    depend(c, x, node_of(c, child)->key, child);
  }
}
