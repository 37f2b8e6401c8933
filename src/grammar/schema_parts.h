// grammar/schema_parts.h — inside the compiler of JSON schemas.
//
// A value has to satisfy several schemas at once: a set of terms. Each set becomes a rule. A set is
// first expanded into cases, in which no choice is left (anyOf, if, not, ...): for each case it is
// known which types, numbers and texts are allowed, and which schemas apply to members and items.
// Members and items are sets of terms again.
#ifndef WICK_GRAMMAR_SCHEMA_PARTS_H
#define WICK_GRAMMAR_SCHEMA_PARTS_H

#include "grammar/dfa.h"
#include "grammar/document.h"
#include "grammar/program.h"
#include "grammar/schema.h"
#include "grammar/spell.h"

enum {
  TYPE_NULL = 1,
  TYPE_TRUE = 2,
  TYPE_FALSE = 4,
  TYPE_NUMBER = 8,
  TYPE_STRING = 16,
  TYPE_ARRAY = 32,
  TYPE_OBJECT = 64,
  TYPE_ANY = 127,
  ANY_ORDER_MAX = 256,     // unique items in any order
  CASES_MAX = 1024,        // of a set of terms
  CHOICE_DEPTH_MAX = 100,  // including those of values that are checked for emptiness
  PATTERNS_MAX = 31,       // that apply to the names of one object
  WANTED_MAX = 4,          // of requirements that some item, or some undeclared member, must meet
};

// A node of the document, and how a value must relate to it.
typedef enum term_kind { TERM_SCHEMA, TERM_NOT, TERM_CONST, TERM_NOT_CONST } term_kind;
typedef uint32_t schema_term;
static inline schema_term term_of(term_kind kind, uint32_t node) {
  return node << 2 | (uint32_t)kind;
}
static inline term_kind term_kind_of(schema_term term) { return (term_kind)(term & 3); }
static inline schema_term term_opposite(schema_term term) { return term ^ 1; }
static inline uint32_t term_node(schema_term term) { return term >> 2; }

// A schema with unevaluatedProperties or unevaluatedItems, around the schemas that apply to the
// same value.
typedef struct term_scope {
  uint32_t node;
  const struct term_scope *outer;
} term_scope;

// A term that applies to members or items.
typedef struct case_part {
  schema_term term;
  const term_scope *scope;
  const struct case_part *previous;
} case_part;

// Constraints on one member (by name), of one item (by index), of a number of items (of those from
// an index on), or of some undeclared member (of those with a name in a set).
typedef struct case_member {
  document_text name;
  uint32_t index, least, most;
  uint32_t count;  // with those before
  const dfa *names;
  bool is_item, is_any_item, is_required, is_forbidden;
  schema_term term;  // 0: none
  const struct case_member *previous;
} case_member;

typedef struct seen_term {
  schema_term term;
  uint32_t count;  // with those before
  const struct seen_term *previous;
} seen_term;

typedef struct schema_case {
  uint32_t types;
  const dfa *numbers, *texts;  // NULL: all
  uint32_t length_least, length_most, items_least, items_most, members_least, members_most;
  const case_part *parts;
  const case_member *members, *somes;
  const seen_term *seen;
} schema_case;

typedef struct case_list {
  schema_case *items;
  uint32_t count, capacity;
} case_list;

// Patterns and formats that have been compiled.
enum { KNOWN_PATTERN = 100 };  // in addition to format_level
typedef struct known_set {
  document_text text;
  uint32_t level;
  const dfa *set;
} known_set;

typedef struct set_rule_entry {
  const dfa *set;
  uint32_t least, most;  // characters
  uint32_t rule;
} set_rule_entry;

enum { OF_OBJECTS, OF_TEXTS, OF_NULL, OF_BOOLEANS, OF_NUMBERS, OF_ARRAYS, SCHEMA_TYPE_COUNT };
extern const char *const SCHEMA_TYPES[SCHEMA_TYPE_COUNT];

typedef struct schema_compiler {
  grammar_work *work;
  program_builder builder;
  json_document document;
  bool any;
  spelling spelling;
  uint32_t dialect;         // 4, 6, 7, 2019, 2020
  work_sets sets;           // of terms
  work_u32_list rules;      // [sets] 0: not made yet
  work_u32_list emptiness;  // [sets] 0: unknown, else of schema_types
  work_u32_list queue;      // sets that have a rule
  uint32_t built;           // of the queue
  bool is_kept;             // the document and the sets are kept across a pause
  const dfa *all_numbers, *short_numbers;
  uint32_t nothing;                 // a node of the schema false
  uint32_t number_rule, text_rule;  // of all numbers and texts; 0: not made yet
  uint32_t check_depth;             // of values that are being checked for emptiness
  uint32_t depth;                   // of choices that are being made
  uint32_t *targets;                // [nodes] schema_target, or of a $ref; 0: not known yet
  const dfa **names;                // [nodes] of a schema for names; NULL: not made yet
  uint8_t *shapes;                  // [nodes] the kinds that keywords' values must have; 0: any
  struct {
    known_set *items;
    uint32_t count, capacity;
  } known;
  struct {
    set_rule_entry *items;
    uint32_t count, capacity;
  } set_rules;
  uint32_t space, comma, colon;  // rules
  // For an argument of a call: its form, the set of the object, whether that is being built, and
  // the rule of a gap.
  const argument_form *form;
  uint32_t outermost;
  bool is_call;  // the object of a call's arguments, whose members may come in any order
  bool is_outermost;
  uint32_t gap;
  const dfa *marked_texts;  // that contain a mark of the form; NULL: not built yet
  // Nodes of {"type": TYPE}, for an argument.
  uint32_t of_type[SCHEMA_TYPE_COUNT];
} schema_compiler;

// Refuses a keyword at its place.
bool schema_refuse(schema_compiler *c, uint32_t node, const char *what);
// WICK_E_ARG at a node: the schema is broken.
bool schema_fail(schema_compiler *c, uint32_t node, const char *what);

// ---- schema_refs.c ----
// The schema that "$ref" (the node of its text) names; 0 after a failure.
uint32_t schema_resolve(schema_compiler *c, uint32_t reference);
void schema_find_dialect(schema_compiler *c);

// ---- schema_cases.c ----
// The number of a set of terms, in any order; UINT32_MAX after a failure.
uint32_t schema_set(schema_compiler *c, schema_term *terms, uint32_t count);
// All cases of a set that are not obviously empty.
bool schema_expand(schema_compiler *c, uint32_t set, case_list *out);
// The types of terms; all types if they cannot be expanded.
uint32_t schema_types_of_terms(schema_compiler *c, schema_term *terms, uint32_t count);
// True only if it is certain that no value satisfies the set.
bool schema_set_is_empty(schema_compiler *c, uint32_t set, uint32_t depth);
// The types of values that may satisfy the set.
uint32_t schema_types(schema_compiler *c, uint32_t set, uint32_t depth);

// ---- schema_scalars.c ----
const dfa *schema_pattern(schema_compiler *c, document_text pattern);

// ---- schema_keywords.c ----
// Refuses keywords with values of the wrong kind, here and in all schemas within.
bool schema_check(schema_compiler *c, uint32_t schema);
// Whether a node is in a place where a schema is expected, as far as schemas have been checked.
bool schema_is_schema(const schema_compiler *c, uint32_t node);
// Whether the keyword exists in no draft before 2019-09.
bool schema_is_newer(const schema_compiler *c, document_text name);
// A keyword's node in a schema; 0: none, or the dialect does not have the keyword.
uint32_t schema_keyword(const schema_compiler *c, uint32_t node, const char *name);
// The target of a schema that is only "$ref", otherwise the schema itself. So all places that refer
// to a schema share its rule.
uint32_t schema_target(schema_compiler *c, term_kind kind, uint32_t node);
// Whether a schema has no constraints: true, or an object with only annotations.
bool schema_is_true(const schema_compiler *c, uint32_t node);

// ---- schema_members.c, schema_items.c: the constraints of a case's parts on a member or an item
// ---- The set of terms for a member with this name, or an item; UINT32_MAX after a failure.
uint32_t schema_member_set(schema_compiler *c, const schema_case *value, document_text name);
uint32_t schema_item_set(schema_compiler *c, const schema_case *value, uint32_t index);
// All texts among the values of cases.
const dfa *schema_texts(schema_compiler *c, const case_list *cases);
// The texts that a schema for names allows.
const dfa *schema_names(schema_compiler *c, uint32_t node);
// Whether a part is within the reach of the unevaluated... keyword of a schema.
static inline bool part_is_within(const case_part *part, uint32_t node) {
  const term_scope *scope = part->scope;
  while (scope != NULL && scope->node != node) scope = scope->outer;
  return scope != NULL;
}
bool schema_build_object(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to);
// Between `least` and `most` items of a set, no two of them equal, as `node` requires.
typedef struct schema_count {
  uint32_t set, least, most, node;
} schema_count;
bool schema_build_unique(schema_compiler *c, const schema_count *count, uint32_t from, uint32_t to);
void schema_build_case(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to);
bool schema_build_array(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to);

// ---- schema_arguments.c ----
// The rule of a member of the outermost object: its name, its value, and the marks around them.
uint32_t argument_member_rule(schema_compiler *c, document_text name, uint32_t set);
// Adds the name of a member of an inner object. Returns the place after it.
uint32_t argument_inner_name(schema_compiler *c, uint32_t from, document_text name);
// Texts unchanged, without the mark that ends them.
const dfa *argument_texts(schema_compiler *c, const dfa *texts);
static inline argument_style argument_style_of(const schema_compiler *c) {
  return c->form == NULL ? ARGUMENT_JSON : c->form->style;
}

// ---- schema.c ----
// The rule of a set; it is built later.
uint32_t schema_rule(schema_compiler *c, uint32_t set);
// Adds a bracket and the white space inside it. Returns the place after them.
uint32_t schema_open(schema_compiler *c, uint32_t from, const char *bracket);
uint32_t schema_close(schema_compiler *c, uint32_t from, const char *bracket);
uint32_t schema_call(schema_compiler *c, uint32_t from, uint32_t rule);
// The rule of a comma and a rule.
uint32_t schema_after_comma(schema_compiler *c, uint32_t rule);
// Puts the quote or mark around a text. Returns the place after it.
uint32_t schema_quote(schema_compiler *c, uint32_t from);

#endif
