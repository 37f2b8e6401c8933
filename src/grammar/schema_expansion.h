// grammar/schema_expansion.h — internals of the expansion of a set of terms into cases
// (schema_cases.c).
//
// A keyword becomes tasks. A task restricts the case, or adds terms. If a keyword has alternatives,
// each is an option, which is a list of tasks. At least one option must apply.
#ifndef WICK_GRAMMAR_SCHEMA_EXPANSION_H
#define WICK_GRAMMAR_SCHEMA_EXPANSION_H

#include "grammar/schema_parts.h"

typedef enum task_kind {
  TASK_TERM,
  TASK_TYPES,    // the types in `a`
  TASK_NUMBERS,  // the numbers in `set`
  TASK_TEXTS,
  TASK_LENGTHS,  // from `a` to `b`
  TASK_ITEMS,
  TASK_MEMBERS,
  TASK_FORBID,  // forbids the member `name`
  TASK_REQUIRE,
  TASK_MEMBER,    // `term` for the member `name`
  TASK_ITEM,      // `term` for item `a`
  TASK_CONTAINS,  // `term` for `a` to `b` items, starting at index `from`
  TASK_SOME,      // `term` for some member with a name in `set`
  TASK_OTHER,     // like TASK_SOME, for a member whose name is not declared
  TASK_PART,      // `term` applies to members or items
  TASK_CHOICE,
} task_kind;

struct option;
typedef struct task {
  task_kind kind;
  uint32_t a, b, from;
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
  const task *todo, *choices, *somes;
  const term_scope *scope;  // scope of the current term
  schema_term term;         // the current term
  bool is_part;             // the term is among the parts
  uint32_t node;            // the node to report if the set is rejected
  uint32_t schema;          // the node of the current schema, for its keywords
  const option **options;   // for the keywords of a negated schema
} expansion;

static inline const json_node *node_of(const schema_compiler *c, uint32_t node) {
  return document_node(&c->document, node);
}

// Returns the item at an index of an array; 0: none.
static inline uint32_t child_of(const schema_compiler *c, uint32_t list, uint32_t index) {
  uint32_t child = node_of(c, list)->first;
  while (child != 0 && index-- > 0) child = node_of(c, child)->next;
  return child;
}

// Returns a keyword's node in the schema of a part; 0: none.
static inline uint32_t keyword_of(const schema_compiler *c, const case_part *part,
                                  const char *name) {
  if (term_kind_of(part->term) != TERM_SCHEMA) return 0;
  return schema_keyword(c, term_node(part->term), name);
}

// Functions for keywords. `value` is the node of the keyword's value. schema_yes_... adds the
// keyword's requirement; schema_no_... adds one option to x->options for each way in which a value
// violates the keyword.
typedef void keyword_use(schema_compiler *c, expansion *x, uint32_t value);

// ---- schema_tasks.c ----
void schema_push(schema_compiler *c, const task **list, task made);
void schema_push_term(schema_compiler *c, const expansion *x, const task **list, term_kind kind,
                      uint32_t node);
void schema_push_types(schema_compiler *c, const task **list, uint32_t types);
void schema_push_name(schema_compiler *c, const task **list, task_kind kind, document_text name,
                      schema_term term);
void schema_push_count(schema_compiler *c, const task **list, task_kind kind, uint32_t least,
                       uint32_t most);
void schema_push_set(schema_compiler *c, const task **list, task_kind kind, const dfa *set);
void schema_push_choice(schema_compiler *c, expansion *x, const option *options);
void schema_add_option(schema_compiler *c, const option **options, const task *tasks);
// Adds a way to violate a keyword that applies only to values of some types.
void schema_add_broken(schema_compiler *c, const task *tasks, uint32_t types,
                       const option **options);
// Returns the strings or numbers (TYPE_STRING, TYPE_NUMBER) that are not in a set; and adds a way
// to violate a keyword with one of them.
const dfa *schema_rest(schema_compiler *c, uint32_t type, const dfa *set);
void schema_add_rest(schema_compiler *c, uint32_t type, const dfa *set, const option **options);
void schema_add_term(schema_compiler *c, const expansion *x, term_kind kind, uint32_t node,
                     const option **options);
void schema_add_terms(schema_compiler *c, const expansion *x, term_kind kind, uint32_t list,
                      const option **options);
void schema_push_part(schema_compiler *c, expansion *x);
void schema_restrict_numbers(schema_compiler *c, schema_case *value, const dfa *set);
void schema_restrict_texts(schema_compiler *c, schema_case *value, const dfa *set);
void schema_restrict_count(uint32_t *least, uint32_t *most, uint32_t low, uint32_t high,
                           uint32_t *types, uint32_t type);
void schema_add_member(schema_compiler *c, const case_member **list, case_member member);

// ---- schema_values.c ----
void schema_apply_const(schema_compiler *c, expansion *x, uint32_t node);
void schema_apply_not_const(schema_compiler *c, expansion *x, uint32_t node);
const dfa *schema_integers(schema_compiler *c);
uint32_t schema_type_bits(schema_compiler *c, uint32_t node, bool *has_integer);
keyword_use schema_yes_enum, schema_yes_const, schema_yes_type;
keyword_use schema_no_enum, schema_no_const, schema_no_type;

// ---- schema_scalars.c ----
keyword_use schema_yes_number, schema_yes_pattern, schema_yes_format, schema_yes_count;
keyword_use schema_no_number, schema_no_pattern, schema_no_format, schema_no_count;

// ---- schema_properties.c ----
keyword_use schema_yes_required, schema_yes_part, schema_yes_dependencies;
keyword_use schema_no_required, schema_no_properties, schema_no_additional, schema_no_patterns,
    schema_no_names, schema_no_unevaluated, schema_no_additional_items, schema_no_contains,
    schema_no_unique, schema_no_items, schema_no_dependencies;
// Returns minContains or maxContains of a schema.
uint32_t schema_contains_count(schema_compiler *c, uint32_t schema, const char *name,
                               uint32_t otherwise);

// Adds the options for the member that a TASK_SOME applies to: a declared or an undeclared member.
const option *schema_choose_member(schema_compiler *c, const schema_case *value, const task *some);

// ---- schema_combine.c ----
keyword_use schema_yes_ref, schema_yes_all_of, schema_yes_any_of, schema_yes_one_of, schema_yes_not,
    schema_yes_if, schema_refuse_keyword;
keyword_use schema_no_ref, schema_no_all_of, schema_no_any_of, schema_no_one_of, schema_no_not,
    schema_no_if;

// ---- schema_keywords.c ----
void schema_apply_schema(schema_compiler *c, expansion *x, uint32_t node);
void schema_apply_not(schema_compiler *c, expansion *x, uint32_t node);

#endif
