// A JSON Schema validator for tests, with one function per group of keywords. Unlike the engine, it
// evaluates values directly, without building a grammar.
#include "schema_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const JUDGE_PATTERN_TEXTS[JUDGE_PATTERNS] = {"^x", "a", "b$", "^[ab]$", "^.{2}$"};

typedef struct schema_judge judge;

static bool holds(const judge *j, uint32_t schema, const json_node *value, uint64_t *seen);

static const json_node *schema_node(const judge *j, uint32_t node) {
  return document_node(j->schema, node);
}
static const json_node *child(const judge *j, uint32_t node) {
  return document_node(j->values, node);
}

// Returns a keyword's node if the draft has the keyword, or 0.
static uint32_t find(const judge *j, uint32_t schema, const char *name) {
  static const struct {
    const char *name;
    uint32_t since;
  } LATER[] = {{"const", 6},
               {"propertyNames", 6},
               {"contains", 6},
               {"if", 7},
               {"minContains", 2019},
               {"maxContains", 2019},
               {"dependentRequired", 2019},
               {"dependentSchemas", 2019},
               {"unevaluatedProperties", 2019},
               {"unevaluatedItems", 2019},
               {"prefixItems", 2020}};
  for (size_t i = 0; i < sizeof LATER / sizeof *LATER; i++) {
    if (strcmp(name, LATER[i].name) == 0 && j->dialect < LATER[i].since) return 0;
  }
  return document_find(j->schema, schema, name);
}

static double number_of(const json_node *node) {
  char text[32];
  snprintf(text, sizeof text, "%.*s", (int)node->text.size_bytes, (const char *)node->text.bytes);
  return strtod(text, NULL);
}

static uint32_t characters_of(document_text text) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < text.size_bytes; i++) count += (text.bytes[i] & 0xc0) != 0x80;
  return count;
}

static bool matches(document_text pattern, document_text text) {
  const uint32_t size = text.size_bytes;
  const uint8_t *bytes = text.bytes;
  if (text_is(pattern, "^x")) return size > 0 && bytes[0] == 'x';
  if (text_is(pattern, "a")) return size > 0 && memchr(bytes, 'a', size) != NULL;
  if (text_is(pattern, "b$")) return size > 0 && bytes[size - 1] == 'b';
  if (text_is(pattern, "^[ab]$")) return size == 1 && (bytes[0] == 'a' || bytes[0] == 'b');
  return characters_of(text) == 2;
}

// ---- one value ----

// Compares a value in the schema document with one in the value document.
static bool is_same(const judge *j, uint32_t wanted, const json_node *value) {
  const json_node *at = schema_node(j, wanted);
  if (at->kind != value->kind) return false;
  if (at->kind == JSON_NUMBER) return number_of(at) == number_of(value);
  if (at->kind == JSON_STRING) return text_is_same(at->text, value->text);
  if (at->kind != JSON_ARRAY && at->kind != JSON_OBJECT) return true;
  if (at->count != value->count) return false;
  uint32_t own = at->first;
  for (uint32_t other = value->first; other != 0; other = child(j, other)->next) {
    if (at->kind == JSON_OBJECT) own = document_member(j->schema, wanted, child(j, other)->key);
    if (own == 0 || !is_same(j, own, child(j, other))) return false;
    own = schema_node(j, own)->next;
  }
  return true;
}

static bool is_of_type(document_text type, const json_node *value) {
  static const char *const NAMES[] = {"null",   "boolean", "boolean", "number",
                                      "string", "array",   "object"};
  if (text_is(type, "integer")) {
    return value->kind == JSON_NUMBER && number_of(value) == floor(number_of(value));
  }
  return text_is(type, NAMES[value->kind]);
}

static bool holds_types(const judge *j, uint32_t schema, const json_node *value) {
  const uint32_t type = find(j, schema, "type"), list = find(j, schema, "enum");
  const uint32_t one = find(j, schema, "const");
  if (one != 0 && !is_same(j, one, value)) return false;
  bool fits = type == 0, is_listed = list == 0;
  if (type != 0 && schema_node(j, type)->kind == JSON_STRING)
    fits = is_of_type(schema_node(j, type)->text, value);
  const bool has_types = type != 0 && schema_node(j, type)->kind == JSON_ARRAY;
  for (uint32_t at = has_types ? schema_node(j, type)->first : 0; at != 0;
       at = schema_node(j, at)->next) {
    fits = fits || is_of_type(schema_node(j, at)->text, value);
  }
  for (uint32_t at = list == 0 ? 0 : schema_node(j, list)->first; at != 0;
       at = schema_node(j, at)->next) {
    is_listed = is_listed || is_same(j, at, value);
  }
  return fits && is_listed;
}

static bool holds_numbers(const judge *j, uint32_t schema, const json_node *value) {
  if (value->kind != JSON_NUMBER) return true;
  const double number = number_of(value);
  const uint32_t low = find(j, schema, "minimum"), high = find(j, schema, "maximum");
  const uint32_t above = find(j, schema, "exclusiveMinimum");
  const uint32_t below = find(j, schema, "exclusiveMaximum");
  const uint32_t step = find(j, schema, "multipleOf");
  // in draft 4 these are flags next to the bound
  const bool is_above = above != 0 && schema_node(j, above)->kind == JSON_TRUE;
  const bool is_below = below != 0 && schema_node(j, below)->kind == JSON_TRUE;
  if (low != 0 && number < number_of(schema_node(j, low))) return false;
  if (low != 0 && is_above && number == number_of(schema_node(j, low))) return false;
  if (high != 0 && number > number_of(schema_node(j, high))) return false;
  if (high != 0 && is_below && number == number_of(schema_node(j, high))) return false;
  if (above != 0 && schema_node(j, above)->kind == JSON_NUMBER &&
      number <= number_of(schema_node(j, above))) {
    return false;
  }
  if (below != 0 && schema_node(j, below)->kind == JSON_NUMBER &&
      number >= number_of(schema_node(j, below))) {
    return false;
  }
  return step == 0 || fmod(number, number_of(schema_node(j, step))) == 0;
}

static bool is_counted(const judge *j, uint32_t schema, const char *least, const char *most,
                       uint32_t count) {
  const uint32_t low = find(j, schema, least), high = find(j, schema, most);
  return (low == 0 || count >= number_of(schema_node(j, low))) &&
         (high == 0 || count <= number_of(schema_node(j, high)));
}

static bool holds_counts(const judge *j, uint32_t schema, const json_node *value) {
  const uint32_t pattern = find(j, schema, "pattern");
  if (value->kind == JSON_ARRAY) {
    return is_counted(j, schema, "minItems", "maxItems", value->count);
  }
  if (value->kind == JSON_OBJECT) {
    return is_counted(j, schema, "minProperties", "maxProperties", value->count);
  }
  if (value->kind != JSON_STRING) return true;
  return is_counted(j, schema, "minLength", "maxLength", characters_of(value->text)) &&
         (pattern == 0 || matches(schema_node(j, pattern)->text, value->text));
}

// ---- objects ----

static bool has_member(const judge *j, const json_node *value, document_text name) {
  for (uint32_t at = value->first; at != 0; at = child(j, at)->next) {
    if (text_is_same(child(j, at)->key, name)) return true;
  }
  return false;
}

static bool has_all(const judge *j, uint32_t names, const json_node *value) {
  for (uint32_t at = schema_node(j, names)->first; at != 0; at = schema_node(j, at)->next) {
    if (!has_member(j, value, schema_node(j, at)->text)) return false;
  }
  return true;
}

static bool holds_dependencies(const judge *j, uint32_t list, const json_node *value,
                               uint64_t *seen) {
  for (uint32_t at = list == 0 ? 0 : schema_node(j, list)->first; at != 0;
       at = schema_node(j, at)->next) {
    if (!has_member(j, value, schema_node(j, at)->key)) continue;
    const bool is_list = schema_node(j, at)->kind == JSON_ARRAY;
    if (!(is_list ? has_all(j, at, value) : holds(j, at, value, seen))) return false;
  }
  return true;
}

static bool holds_member(const judge *j, uint32_t schema, const json_node *member, uint64_t *seen) {
  const uint32_t properties = find(j, schema, "properties");
  const uint32_t patterns = find(j, schema, "patternProperties");
  const uint32_t others = find(j, schema, "additionalProperties");
  const uint32_t names = find(j, schema, "propertyNames");
  const json_node name = {.kind = JSON_STRING, .text = member->key};
  uint64_t ignored = 0;
  const uint32_t own = properties == 0 ? 0 : document_member(j->schema, properties, member->key);
  bool is_known = own != 0;
  if (own != 0 && !holds(j, own, member, &ignored)) return false;
  for (uint32_t at = patterns == 0 ? 0 : schema_node(j, patterns)->first; at != 0;
       at = schema_node(j, at)->next) {
    if (!matches(schema_node(j, at)->key, member->key)) continue;
    is_known = true;
    if (!holds(j, at, member, &ignored)) return false;
  }
  if (!is_known && others != 0 && !holds(j, others, member, &ignored)) return false;
  if (is_known || others != 0) *seen |= 1ull << member->index;
  return names == 0 || holds(j, names, &name, &ignored);
}

static bool holds_object(const judge *j, uint32_t schema, const json_node *value, uint64_t *seen) {
  if (value->kind != JSON_OBJECT) return true;
  const uint32_t required = find(j, schema, "required");
  for (uint32_t at = value->first; at != 0; at = child(j, at)->next) {
    if (!holds_member(j, schema, child(j, at), seen)) return false;
  }
  return (required == 0 || has_all(j, required, value)) &&
         holds_dependencies(j, find(j, schema, "dependencies"), value, seen) &&
         holds_dependencies(j, find(j, schema, "dependentRequired"), value, seen) &&
         holds_dependencies(j, find(j, schema, "dependentSchemas"), value, seen);
}

// ---- arrays ----

static bool holds_array(const judge *j, uint32_t schema, const json_node *value, uint64_t *seen) {
  if (value->kind != JSON_ARRAY) return true;
  const uint32_t items = find(j, schema, "items"), prefix = find(j, schema, "prefixItems");
  const bool is_list = items != 0 && schema_node(j, items)->kind == JSON_ARRAY;
  const uint32_t others = is_list ? find(j, schema, "additionalItems") : items;
  const uint32_t contains = find(j, schema, "contains");
  const uint32_t list = is_list ? items : prefix;
  uint32_t own = list == 0 ? 0 : schema_node(j, list)->first, count = 0;
  uint64_t ignored = 0;
  for (uint32_t at = value->first; at != 0; at = child(j, at)->next) {
    const uint32_t one = own != 0 ? own : others;
    if (one != 0 && !holds(j, one, child(j, at), &ignored)) return false;
    if (one != 0) *seen |= 1ull << child(j, at)->index;
    if (own != 0) own = schema_node(j, own)->next;
    if (contains == 0 || !holds(j, contains, child(j, at), &ignored)) continue;
    count++;
  }
  const uint32_t least = find(j, schema, "minContains");
  return contains == 0 ||
         ((least != 0 || count >= 1) && is_counted(j, schema, "minContains", "maxContains", count));
}

// ---- schemas for the same value ----

// Returns how many schemas in a list accept the value.
static uint32_t count_holding(const judge *j, uint32_t list, const json_node *value,
                              uint64_t *seen) {
  uint32_t count = 0;
  for (uint32_t at = schema_node(j, list)->first; at != 0; at = schema_node(j, at)->next) {
    count += holds(j, at, value, seen);
  }
  return count;
}

static uint32_t target_of(const judge *j, document_text reference) {
  if (text_is(reference, "#")) return 1;
  const uint32_t definitions = document_find(j->schema, 1, "definitions");
  const uint32_t list = definitions != 0 ? definitions : document_find(j->schema, 1, "$defs");
  return document_find(j->schema, list, "d");
}

static bool holds_in_place(const judge *j, uint32_t schema, const json_node *value,
                           uint64_t *seen) {
  const uint32_t all = find(j, schema, "allOf"), any = find(j, schema, "anyOf");
  const uint32_t one = find(j, schema, "oneOf"), not = find(j, schema, "not");
  const uint32_t condition = find(j, schema, "if"), reference = find(j, schema, "$ref");
  uint64_t ignored = 0;
  if (all != 0 && count_holding(j, all, value, seen) != schema_node(j, all)->count) return false;
  if (any != 0 && count_holding(j, any, value, seen) == 0) return false;
  if (one != 0 && count_holding(j, one, value, seen) != 1) return false;
  if (not!= 0 && holds(j, not, value, &ignored)) return false;
  if (reference != 0 && !holds(j, target_of(j, schema_node(j, reference)->text), value, seen)) {
    return false;
  }
  if (condition == 0) return true;
  const uint32_t part = find(j, schema, holds(j, condition, value, seen) ? "then" : "else");
  return part == 0 || holds(j, part, value, seen);
}

// Checks the members or items that no keyword of this schema or its subschemas has evaluated.
static bool holds_rest(const judge *j, uint32_t schema, const json_node *value, uint64_t *seen) {
  const bool is_object = value->kind == JSON_OBJECT;
  const uint32_t rest = find(j, schema, is_object ? "unevaluatedProperties" : "unevaluatedItems");
  if (rest == 0 || (!is_object && value->kind != JSON_ARRAY)) return true;
  uint64_t ignored = 0;
  for (uint32_t at = value->first; at != 0; at = child(j, at)->next) {
    if ((*seen >> child(j, at)->index & 1) != 0) continue;
    if (!holds(j, rest, child(j, at), &ignored)) return false;
  }
  *seen = UINT64_MAX;
  return true;
}

// Whether the schema accepts the value; adds the evaluated members or items to `seen` by index.
static bool holds(const judge *j, uint32_t schema, const json_node *value, uint64_t *seen) {
  if (schema_node(j, schema)->kind != JSON_OBJECT) return schema_node(j, schema)->kind == JSON_TRUE;
  const uint32_t reference = find(j, schema, "$ref");
  if (reference != 0 && j->dialect <= 7) {  // keywords next to it are ignored
    return holds(j, target_of(j, schema_node(j, reference)->text), value, seen);
  }
  uint64_t own = 0;
  if (!holds_types(j, schema, value) || !holds_numbers(j, schema, value) ||
      !holds_counts(j, schema, value) || !holds_object(j, schema, value, &own) ||
      !holds_array(j, schema, value, &own) || !holds_in_place(j, schema, value, &own) ||
      !holds_rest(j, schema, value, &own)) {
    return false;
  }
  *seen |= own;
  return true;
}

bool judge_value(const schema_judge *judge, uint32_t value) {
  uint64_t seen = 0;
  return holds(judge, 1, child(judge, value), &seen);
}
