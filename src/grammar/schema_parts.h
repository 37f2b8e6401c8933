// grammar/schema_parts.h — internals of the JSON schema compiler.
//
// A value has to satisfy several schemas at once: a set of terms. Each set becomes a rule. A set is
// first expanded into cases, in which no choice is left (anyOf, if, not, ...): each case states
// which types, numbers and strings are allowed, and which schemas apply to members and items.
// Members and items are again sets of terms.
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
  CASES_MAX = 1024,        // cases of a set of terms
  CHOICE_DEPTH_MAX = 100,  // including choices of values that are checked for emptiness
  PATTERNS_MAX = 31,       // patterns that apply to the names of one object
  WANTED_MAX = 4,          // requirements that some item, or some undeclared member, must meet
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

// Constraints on one member (by name), on one item (by index), on a number of items (from an index
// on), or on some undeclared member (with a name in a set).
typedef struct case_member {
  document_text name;
  uint32_t index, least, most;
  uint32_t count;  // number of entries up to this one
  const dfa *names;
  bool is_item, is_any_item, is_required, is_forbidden;
  schema_term term;  // 0: none
  const struct case_member *previous;
} case_member;

typedef struct seen_term {
  schema_term term;
  uint32_t count;  // number of entries up to this one
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

// A compiled pattern or format.
enum { KNOWN_PATTERN = 100 };  // a value in addition to those of format_level
typedef struct known_set {
  document_text text;
  uint32_t level;
  const dfa *set;
} known_set;

typedef struct set_rule_entry {
  const dfa *set;
  uint32_t least, most;  // numbers of characters
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
  work_sets sets;           // sets of terms
  work_u32_list rules;      // [sets] 0: not built yet
  work_u32_list emptiness;  // [sets] 0: unknown, else bits of schema_types
  work_u32_list queue;      // sets that have a rule
  uint32_t built;           // entries of the queue that are built
  bool is_kept;             // the document and the sets are kept across a pause
  const dfa *all_numbers, *short_numbers;
  uint32_t nothing;                 // a node with the schema false
  uint32_t number_rule, text_rule;  // rules for all numbers and all strings; 0: not built yet
  uint32_t check_depth;             // depth of nested emptiness checks
  uint32_t depth;                   // depth of nested choices
  uint32_t *targets;  // [nodes] schema_target's result, or the target of a $ref; 0: not known yet
  const dfa **names;  // [nodes] the names that a schema allows; NULL: not built yet
  uint8_t *shapes;    // [nodes] the kinds that keywords' values must have; 0: any
  struct {
    known_set *items;
    uint32_t count, capacity;
  } known;
  struct {
    set_rule_entry *items;
    uint32_t count, capacity;
  } set_rules;
  uint32_t space, comma, colon;  // rules
  // For call arguments: the format, the set of the object, whether it is being built, and the rule
  // for a gap.
  const argument_form *form;
  uint32_t outermost;
  bool is_call;  // the object of a call's arguments, whose members may be in any order
  bool is_outermost;
  uint32_t gap;
  const dfa *marked_texts;  // strings that contain a delimiter of the format; NULL: not built yet
  // Nodes with {"type": TYPE}, for arguments.
  uint32_t of_type[SCHEMA_TYPE_COUNT];
} schema_compiler;

// Rejects a keyword at its position.
bool schema_refuse(schema_compiler *c, uint32_t node, const char *what);
// Fails with WICK_E_ARG at a node because the schema is invalid.
bool schema_fail(schema_compiler *c, uint32_t node, const char *what);

// ---- schema_refs.c ----
// Returns the schema that "$ref" (the node of its string) refers to; 0 after a failure.
uint32_t schema_resolve(schema_compiler *c, uint32_t reference);
void schema_find_dialect(schema_compiler *c);

// ---- schema_cases.c ----
// Returns the number of a set of terms, in any order; UINT32_MAX after a failure.
uint32_t schema_set(schema_compiler *c, schema_term *terms, uint32_t count);
// Returns all cases of a set that are not obviously empty.
bool schema_expand(schema_compiler *c, uint32_t set, case_list *out);
// Returns the types that a set of terms allows; all types if the set cannot be expanded.
uint32_t schema_types_of_terms(schema_compiler *c, schema_term *terms, uint32_t count);
// Returns true only if it is certain that no value satisfies the set.
bool schema_set_is_empty(schema_compiler *c, uint32_t set, uint32_t depth);
// Returns the types of values that may satisfy the set.
uint32_t schema_types(schema_compiler *c, uint32_t set, uint32_t depth);

// ---- schema_scalars.c ----
const dfa *schema_pattern(schema_compiler *c, document_text pattern);

// ---- schema_keywords.c ----
// Rejects keywords with values of the wrong kind, here and in all nested schemas.
bool schema_check(schema_compiler *c, uint32_t schema);
// Whether a node is at a position where a schema is expected, among the schemas that have been
// checked.
bool schema_is_schema(const schema_compiler *c, uint32_t node);
// Whether the keyword exists in no draft before 2019-09.
bool schema_is_newer(const schema_compiler *c, document_text name);
// Returns a keyword's node in a schema; 0: none, or the dialect does not have the keyword.
uint32_t schema_keyword(const schema_compiler *c, uint32_t node, const char *name);
// Returns the target of a schema that is only a "$ref", otherwise the schema itself, so that all
// references to a schema share its rule.
uint32_t schema_target(schema_compiler *c, term_kind kind, uint32_t node);
// Whether a schema has no constraints: true, or an object with only annotations.
bool schema_is_true(const schema_compiler *c, uint32_t node);

// ---- schema_members.c, schema_items.c ----
// Return the set of terms that the parts of a case require of the member with this name, or of an
// item; UINT32_MAX after a failure.
uint32_t schema_member_set(schema_compiler *c, const schema_case *value, document_text name);
uint32_t schema_item_set(schema_compiler *c, const schema_case *value, uint32_t index);
// Returns all strings among the values of the cases.
const dfa *schema_texts(schema_compiler *c, const case_list *cases);
// Returns the strings that a schema for names allows.
const dfa *schema_names(schema_compiler *c, uint32_t node);
// Whether unevaluatedProperties or unevaluatedItems of a schema applies to a part.
static inline bool part_is_within(const case_part *part, uint32_t node) {
  const term_scope *scope = part->scope;
  while (scope != NULL && scope->node != node) scope = scope->outer;
  return scope != NULL;
}
bool schema_build_object(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to);
// Adds `least` to `most` items of a set, no two of them equal, as `node` requires.
typedef struct schema_count {
  uint32_t set, least, most, node;
} schema_count;
bool schema_build_unique(schema_compiler *c, const schema_count *count, uint32_t from, uint32_t to);
void schema_build_case(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to);
bool schema_build_array(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to);

// ---- schema_arguments.c ----
// Returns the rule for a member of the outermost object: its name, its value, and the delimiters
// around them.
uint32_t argument_member_rule(schema_compiler *c, document_text name, uint32_t set);
// Adds the name of a member of an inner object. Returns the state after it.
uint32_t argument_inner_name(schema_compiler *c, uint32_t from, document_text name);
// Adds strings unchanged, without the delimiter that ends them.
const dfa *argument_texts(schema_compiler *c, const dfa *texts);
static inline argument_style argument_style_of(const schema_compiler *c) {
  return c->form == NULL ? ARGUMENT_JSON : c->form->style;
}

// ---- schema.c ----
// Returns the rule for a set; it is built later.
uint32_t schema_rule(schema_compiler *c, uint32_t set);
// Adds a bracket and the white space inside it. Returns the state after them.
uint32_t schema_open(schema_compiler *c, uint32_t from, const char *bracket);
uint32_t schema_close(schema_compiler *c, uint32_t from, const char *bracket);
uint32_t schema_call(schema_compiler *c, uint32_t from, uint32_t rule);
// Returns the rule for a comma followed by a rule.
uint32_t schema_after_comma(schema_compiler *c, uint32_t rule);
// Adds the quote or delimiter around a string. Returns the state after it.
uint32_t schema_quote(schema_compiler *c, uint32_t from);

#endif
