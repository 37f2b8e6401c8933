// grammar/schema_keywords.c — the table of keywords and the shapes of their values; adds a schema
// or its negation to a case.
#include "grammar/numbers.h"
#include "grammar/schema_expansion.h"

// The type that a keyword's value must have.
typedef enum keyword_shape {
  SHAPE_ANY,
  SHAPE_SCHEMA,
  SHAPE_ITEMS,       // a schema, or a list of schemas
  SHAPE_DEPENDENCY,  // a schema, a string, or a list of strings
  SHAPE_SCHEMAS,     // schemas by name
  SHAPE_DEPENDENCIES,
  SHAPE_NAMES,  // lists of strings by name
  SHAPE_LIST,   // a list of schemas
  SHAPE_TEXTS,
  SHAPE_VALUES,
  SHAPE_TEXT,
  SHAPE_NUMBER,
  SHAPE_POSITIVE,
  SHAPE_BOUND,  // a number; true or false in draft 4
  SHAPE_COUNT,
  SHAPE_BOOLEAN,
  SHAPE_TYPE,
} keyword_shape;

enum {
  IS_BOOLEAN = 1 << JSON_FALSE | 1 << JSON_TRUE,
  IS_NUMBER = 1 << JSON_NUMBER,
  IS_TEXT = 1 << JSON_STRING,
  IS_ARRAY = 1 << JSON_ARRAY,
  IS_OBJECT = 1 << JSON_OBJECT,
  IS_SCHEMA = IS_BOOLEAN | IS_OBJECT,
  IS_ANY = 127,
  IS_FILLED = 128,  // an array that is not empty
  SHAPE_STEPS = 40,
};

// The kinds of values that each shape allows, and the shape of their content.
static const struct {
  uint8_t kinds, inner;
  const char *what;
} SHAPES[] = {
    [SHAPE_ANY] = {IS_ANY, SHAPE_ANY, ""},
    [SHAPE_SCHEMA] = {IS_SCHEMA, SHAPE_ANY, "a schema is an object, true or false"},
    [SHAPE_ITEMS] = {IS_SCHEMA | IS_ARRAY | IS_FILLED, SHAPE_SCHEMA,
                     "a schema is an object, true or false"},
    [SHAPE_DEPENDENCY] = {IS_SCHEMA | IS_TEXT | IS_ARRAY, SHAPE_TEXT,
                          "a schema is an object, true or false"},
    [SHAPE_SCHEMAS] = {IS_OBJECT, SHAPE_SCHEMA, "an object is expected"},
    [SHAPE_DEPENDENCIES] = {IS_OBJECT, SHAPE_DEPENDENCY, "an object is expected"},
    [SHAPE_NAMES] = {IS_OBJECT, SHAPE_TEXTS, "an object is expected"},
    [SHAPE_LIST] = {IS_ARRAY | IS_FILLED, SHAPE_SCHEMA, "a list of schemas is expected"},
    [SHAPE_TEXTS] = {IS_ARRAY, SHAPE_TEXT, "an array is expected"},
    [SHAPE_VALUES] = {IS_ARRAY, SHAPE_ANY, "an array is expected"},
    [SHAPE_TEXT] = {IS_TEXT, SHAPE_ANY, "a string is expected"},
    [SHAPE_NUMBER] = {IS_NUMBER, SHAPE_ANY, "a number is expected"},
    [SHAPE_POSITIVE] = {IS_NUMBER, SHAPE_ANY, "a positive number is expected"},
    [SHAPE_BOUND] = {IS_NUMBER | IS_BOOLEAN, SHAPE_ANY, "a number is expected"},
    [SHAPE_COUNT] = {IS_NUMBER, SHAPE_ANY, "a count is expected"},
    [SHAPE_BOOLEAN] = {IS_BOOLEAN, SHAPE_ANY, "true or false is expected"},
    [SHAPE_TYPE] = {IS_ANY, SHAPE_ANY, ""},
};

typedef struct keyword {
  const char *name;
  keyword_use *yes;  // NULL: the keyword has no effect unless other keywords use it
  keyword_use *no;
  uint16_t since;  // the first dialect that has the keyword
  uint8_t shape;
} keyword;

static const keyword KEYWORDS[] = {
    {"$ref", schema_yes_ref, schema_no_ref, 0, SHAPE_TEXT},
    {"type", schema_yes_type, schema_no_type, 0, SHAPE_TYPE},
    {"enum", schema_yes_enum, schema_no_enum, 0, SHAPE_VALUES},
    {"const", schema_yes_const, schema_no_const, 6, SHAPE_ANY},
    {"minimum", schema_yes_number, schema_no_number, 0, SHAPE_NUMBER},
    {"maximum", schema_yes_number, schema_no_number, 0, SHAPE_NUMBER},
    {"exclusiveMinimum", schema_yes_number, schema_no_number, 0, SHAPE_BOUND},
    {"exclusiveMaximum", schema_yes_number, schema_no_number, 0, SHAPE_BOUND},
    {"multipleOf", schema_yes_number, schema_no_number, 0, SHAPE_POSITIVE},
    {"minLength", schema_yes_count, schema_no_count, 0, SHAPE_COUNT},
    {"maxLength", schema_yes_count, schema_no_count, 0, SHAPE_COUNT},
    {"minItems", schema_yes_count, schema_no_count, 0, SHAPE_COUNT},
    {"maxItems", schema_yes_count, schema_no_count, 0, SHAPE_COUNT},
    {"minProperties", schema_yes_count, schema_no_count, 0, SHAPE_COUNT},
    {"maxProperties", schema_yes_count, schema_no_count, 0, SHAPE_COUNT},
    {"pattern", schema_yes_pattern, schema_no_pattern, 0, SHAPE_TEXT},
    {"format", schema_yes_format, schema_no_format, 0, SHAPE_TEXT},
    {"required", schema_yes_required, schema_no_required, 0, SHAPE_TEXTS},
    {"properties", schema_yes_part, schema_no_properties, 0, SHAPE_SCHEMAS},
    {"patternProperties", schema_yes_part, schema_no_patterns, 0, SHAPE_SCHEMAS},
    {"additionalProperties", schema_yes_part, schema_no_additional, 0, SHAPE_SCHEMA},
    {"propertyNames", schema_yes_part, schema_no_names, 6, SHAPE_SCHEMA},
    {"unevaluatedProperties", schema_yes_part, schema_no_unevaluated, 2019, SHAPE_SCHEMA},
    {"items", schema_yes_part, schema_no_items, 0, SHAPE_ITEMS},
    {"prefixItems", schema_yes_part, schema_no_items, 2020, SHAPE_LIST},
    {"additionalItems", schema_yes_part, schema_no_additional_items, 0, SHAPE_SCHEMA},
    {"contains", schema_yes_part, schema_no_contains, 6, SHAPE_SCHEMA},
    {"uniqueItems", schema_yes_part, schema_no_unique, 0, SHAPE_BOOLEAN},
    {"unevaluatedItems", schema_yes_part, schema_no_unevaluated, 2019, SHAPE_SCHEMA},
    {"dependencies", schema_yes_dependencies, schema_no_dependencies, 0, SHAPE_DEPENDENCIES},
    {"dependentRequired", schema_yes_dependencies, schema_no_dependencies, 2019, SHAPE_NAMES},
    {"dependentSchemas", schema_yes_dependencies, schema_no_dependencies, 2019, SHAPE_SCHEMAS},
    {"allOf", schema_yes_all_of, schema_no_all_of, 0, SHAPE_LIST},
    {"anyOf", schema_yes_any_of, schema_no_any_of, 0, SHAPE_LIST},
    {"oneOf", schema_yes_one_of, schema_no_one_of, 0, SHAPE_LIST},
    {"not", schema_yes_not, schema_no_not, 0, SHAPE_SCHEMA},
    {"if", schema_yes_if, schema_no_if, 7, SHAPE_SCHEMA},
    {"$dynamicRef", schema_refuse_keyword, schema_refuse_keyword, 2019, SHAPE_ANY},
    {"$recursiveRef", schema_refuse_keyword, schema_refuse_keyword, 2019, SHAPE_ANY},
    // from ajv-formats
    {"formatMinimum", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    {"formatMaximum", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    {"formatExclusiveMinimum", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    {"formatExclusiveMaximum", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    // from draft 3
    {"divisibleBy", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    {"extends", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    {"disallow", schema_refuse_keyword, schema_refuse_keyword, 0, SHAPE_ANY},
    {"then", NULL, NULL, 7, SHAPE_SCHEMA},
    {"else", NULL, NULL, 7, SHAPE_SCHEMA},
    {"minContains", NULL, NULL, 2019, SHAPE_COUNT},
    {"maxContains", NULL, NULL, 2019, SHAPE_COUNT},
    {"$anchor", NULL, NULL, 2019, SHAPE_TEXT},
    {"$defs", NULL, NULL, 2019, SHAPE_SCHEMAS},
    {"definitions", NULL, NULL, 0, SHAPE_SCHEMAS},
};
enum { KEYWORD_COUNT = sizeof KEYWORDS / sizeof KEYWORDS[0], TARGET_STEPS_MAX = 64 };

static const keyword *find_entry(const schema_compiler *c, document_text name) {
  for (size_t i = 0; i < KEYWORD_COUNT; i++) {
    // keywords of later drafts apply in decoding, where allowing fewer strings is harmless
    if (text_is(name, KEYWORDS[i].name)) {
      return c->any && KEYWORDS[i].since > c->dialect ? NULL : &KEYWORDS[i];
    }
  }
  return NULL;
}

bool schema_is_newer(const schema_compiler *c, document_text name) {
  const keyword *found = find_entry(c, name);
  return found != NULL && found->since >= 2019;
}

static const keyword *find_keyword(const schema_compiler *c, document_text name) {
  const keyword *found = find_entry(c, name);
  return found == NULL || found->yes == NULL ? NULL : found;
}

// ---- shapes ----

static bool is_positive(document_text number) {
  for (uint32_t i = 0; i < number.size_bytes; i++) {
    const uint8_t byte = number.bytes[i];
    if (byte >= '1' && byte <= '9') return true;
    if (byte == '-' || (byte | 32) == 'e') break;
  }
  return false;
}

// Whether an exclusive bound is valid. In draft 4, it is valid only together with "minimum" or
// "maximum".
static bool has_bound(const schema_compiler *c, const json_node *at) {
  const bool is_lower = at->key.bytes[10] == 'i';
  return at->kind != JSON_TRUE ||
         document_find(&c->document, at->parent, is_lower ? "minimum" : "maximum") != 0;
}

static bool has_shape(schema_compiler *c, uint32_t node, keyword_shape shape) {
  const json_node *at = node_of(c, node);
  const uint32_t kinds = SHAPES[shape].kinds;
  if ((kinds >> at->kind & 1) == 0) return false;
  if (at->kind == JSON_ARRAY && at->count == 0 && (kinds & IS_FILLED) != 0) return false;
  if (shape == SHAPE_COUNT) return numbers_count(at->text) != UINT32_MAX;
  if (shape == SHAPE_POSITIVE) return is_positive(at->text);
  return shape != SHAPE_BOUND || has_bound(c, at);
}

bool schema_check(schema_compiler *c, uint32_t schema) {
  const size_t end = node_of(c, schema)->end;
  bool has_integer;
  if (c->shapes[schema] == SHAPE_SCHEMA) return true;
  c->shapes[schema] = SHAPE_SCHEMA;
  // nodes follow those that contain them
  for (uint32_t node = schema; node < c->nothing && node_of(c, node)->at < end; node++) {
    const keyword_shape shape = c->shapes[node];
    const json_node *at = node_of(c, node);
    if (shape == SHAPE_ANY) continue;
    if (!work_step(c->work, SHAPE_STEPS)) return false;
    if (!has_shape(c, node, shape)) return schema_fail(c, node, SHAPES[shape].what);
    if (shape == SHAPE_TYPE) (void)schema_type_bits(c, node, &has_integer);
    const bool is_schema = at->kind == JSON_OBJECT && shape <= SHAPE_DEPENDENCY;
    for (uint32_t child = at->first; child != 0; child = node_of(c, child)->next) {
      const keyword *keyword = is_schema ? find_entry(c, node_of(c, child)->key) : NULL;
      c->shapes[child] = keyword != NULL ? keyword->shape
                         : is_schema     ? SHAPE_ANY
                                         : SHAPES[shape].inner;
    }
  }
  return work_is_ok(c->work);
}

bool schema_is_schema(const schema_compiler *c, uint32_t node) {
  const keyword_shape shape = c->shapes[node];
  return node_of(c, node)->kind == JSON_OBJECT &&
         (shape == SHAPE_SCHEMA || shape == SHAPE_ITEMS || shape == SHAPE_DEPENDENCY);
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

// Whether a keyword is ignored because it is next to "$ref", as up to draft 7. Decoding applies
// such keywords anyway, as some validators do.
static bool is_overridden(const schema_compiler *c, uint32_t schema, const keyword *keyword) {
  return c->any && c->dialect <= 7 && keyword != KEYWORDS &&
         document_find(&c->document, schema, "$ref") != 0;
}

static uint32_t find_target(schema_compiler *c, uint32_t node) {
  const uint32_t reference = document_find(&c->document, node, "$ref");
  if (reference == 0) return node;
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const keyword *keyword = find_keyword(c, node_of(c, child)->key);
    if (keyword != NULL && keyword != KEYWORDS && !is_overridden(c, node, keyword)) return node;
  }
  const uint32_t found = schema_resolve(c, reference);
  return found == 0 ? node : found;
}

uint32_t schema_target(schema_compiler *c, term_kind kind, uint32_t node) {
  if (kind > TERM_NOT || node_of(c, node)->kind != JSON_OBJECT) return node;
  // circular references have no effect, so any of them can be used
  for (uint32_t i = 0; i < TARGET_STEPS_MAX && work_is_ok(c->work); i++) {
    if (c->targets[node] == 0) c->targets[node] = find_target(c, node);
    if (c->targets[node] == node) break;
    node = c->targets[node];
  }
  return node;
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

// Applies each keyword of a schema; with `options`, adds the ways in which a value violates it.
static void apply_keywords(schema_compiler *c, expansion *x, uint32_t node,
                           const option **options) {
  const json_kind kind = node_of(c, node)->kind;
  if (kind == (options == NULL ? JSON_FALSE : JSON_TRUE)) x->value.types = 0;
  if (kind == JSON_FALSE || kind == JSON_TRUE) return;
  x->schema = node;
  x->options = options;
  x->scope = options == NULL ? scope_of(c, x, node) : NULL;  // "not" evaluates no members or items
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const keyword *keyword = find_keyword(c, node_of(c, child)->key);
    if (keyword == NULL || is_overridden(c, node, keyword)) continue;
    (options == NULL ? keyword->yes : keyword->no)(c, x, child);
    if (!work_is_ok(c->work)) return;
  }
  if (options != NULL) schema_push_choice(c, x, *options);
}

void schema_apply_schema(schema_compiler *c, expansion *x, uint32_t node) {
  apply_keywords(c, x, node, NULL);
}

void schema_apply_not(schema_compiler *c, expansion *x, uint32_t node) {
  const option *options = NULL;
  apply_keywords(c, x, node, &options);
}
