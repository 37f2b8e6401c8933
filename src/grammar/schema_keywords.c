// grammar/schema_keywords.c — the table of keywords, and what a schema or its negation adds to a
// case.
#include "grammar/schema_expansion.h"

typedef struct keyword {
  const char *name;
  keyword_yes *yes;
  keyword_no *no;
  uint32_t since, until;  // dialects
} keyword;

static const keyword KEYWORDS[] = {
    {"$ref", schema_yes_ref, schema_no_ref, 0, 0},
    {"type", schema_yes_type, schema_no_type, 0, 0},
    {"enum", schema_yes_enum, schema_no_enum, 0, 0},
    {"const", schema_yes_const, schema_no_const, 6, 0},
    {"minimum", schema_yes_number, schema_no_number, 0, 0},
    {"maximum", schema_yes_number, schema_no_number, 0, 0},
    {"exclusiveMinimum", schema_yes_number, schema_no_number, 0, 0},
    {"exclusiveMaximum", schema_yes_number, schema_no_number, 0, 0},
    {"multipleOf", schema_yes_number, schema_no_number, 0, 0},
    {"minLength", schema_yes_count, schema_no_count, 0, 0},
    {"maxLength", schema_yes_count, schema_no_count, 0, 0},
    {"minItems", schema_yes_count, schema_no_count, 0, 0},
    {"maxItems", schema_yes_count, schema_no_count, 0, 0},
    {"minProperties", schema_yes_count, schema_no_count, 0, 0},
    {"maxProperties", schema_yes_count, schema_no_count, 0, 0},
    {"pattern", schema_yes_pattern, schema_no_pattern, 0, 0},
    {"format", schema_yes_format, schema_no_format, 0, 0},
    {"required", schema_yes_required, schema_no_required, 0, 0},
    {"properties", schema_yes_part, schema_no_properties, 0, 0},
    {"patternProperties", schema_yes_part, schema_no_named_parts, 0, 0},
    {"additionalProperties", schema_yes_part, schema_no_member_part, 0, 0},
    {"propertyNames", schema_yes_part, schema_no_member_part, 6, 0},
    {"unevaluatedProperties", schema_yes_part, schema_no_member_part, 2019, 0},
    {"items", schema_yes_part, schema_no_items, 0, 0},
    {"prefixItems", schema_yes_part, schema_no_items, 2020, 0},
    {"additionalItems", schema_yes_part, schema_no_item_part, 0, 0},
    {"contains", schema_yes_part, schema_no_contains, 6, 0},
    {"uniqueItems", schema_yes_part, schema_no_unique, 0, 0},
    {"unevaluatedItems", schema_yes_part, schema_no_item_part, 2019, 0},
    {"dependencies", schema_yes_dependencies, schema_no_named_parts, 0, 0},
    {"dependentRequired", schema_yes_dependencies, schema_no_named_parts, 2019, 0},
    {"dependentSchemas", schema_yes_dependencies, schema_no_named_parts, 2019, 0},
    {"allOf", schema_yes_all_of, schema_no_all_of, 0, 0},
    {"anyOf", schema_yes_any_of, schema_no_any_of, 0, 0},
    {"oneOf", schema_yes_one_of, schema_no_one_of, 0, 0},
    {"not", schema_yes_not, schema_no_not, 0, 0},
    {"if", schema_yes_if, schema_no_if, 7, 0},
    {"$dynamicRef", schema_refuse_keyword, schema_no_keyword, 2019, 0},
    {"$recursiveRef", schema_refuse_keyword, schema_no_keyword, 2019, 0},
};
enum { KEYWORD_COUNT = sizeof KEYWORDS / sizeof KEYWORDS[0], TARGET_STEPS_MAX = 64 };

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
  // references in a circle say nothing: any of them will do
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

// Each keyword of a schema; with `options`, the ways in which a value breaks it.
static void apply_keywords(schema_compiler *c, expansion *x, uint32_t node,
                           const option **options) {
  const json_kind kind = node_of(c, node)->kind;
  if (kind == (options == NULL ? JSON_FALSE : JSON_TRUE)) x->value.types = 0;
  if (kind == JSON_FALSE || kind == JSON_TRUE) return;
  if (kind != JSON_OBJECT) {
    schema_fail(c, node, "a schema is an object, true or false");
    return;
  }
  x->scope = options == NULL ? scope_of(c, x, node) : NULL;  // nothing is evaluated below "not"
  for (uint32_t child = node_of(c, node)->first; child != 0; child = node_of(c, child)->next) {
    const keyword *keyword = find_keyword(c, node_of(c, child)->key);
    if (keyword == NULL || is_overridden(c, node, keyword)) continue;
    if (options == NULL) {
      keyword->yes(c, x, node, child);
    } else {
      keyword->no(c, x, node, child, options);
    }
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
