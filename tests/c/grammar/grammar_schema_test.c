// Random JSON schemas: which values of a pool their grammars accept, compared with a validator that
// evaluates each keyword (schema_judge.h).
#include <stdarg.h>
#include <stdlib.h>

#include "grammar_rig.h"
#include "random.h"
#include "schema_judge.h"

// ---- schemas ----

typedef struct writer {
  char text[1 << 14];
  size_t size_bytes;
  uint64_t random;
  uint32_t dialect;
  bool is_within_definition, has_rest;  // "unevaluated...": then no value is an array or an object
  // facts about the schema for the check
  bool has_choices;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t left = sizeof w->text - w->size_bytes;
  const int size = vsnprintf(w->text + w->size_bytes, left, format, arguments);
  va_end(arguments);
  if (CHECK(size >= 0 && (size_t)size < left)) w->size_bytes += (size_t)size;
}

static uint32_t pick(writer *w, uint32_t count) {
  return (uint32_t)random_below(&w->random, count);
}

static const char *const TYPES[] = {"null",   "boolean", "number", "integer",
                                    "string", "array",   "object"};
static const char *const NUMBERS[] = {"-1", "0", "1", "1.5", "2", "3", "10"};
static const char *const NAMES[] = {"a", "b", "c", "xa"};
static const char *const SOME_VALUES[] = {
    "null", "true", "1",   "2",         "1.0", "\"a\"",     "\"xa\"",
    "\"\"", "[]",   "[1]", "[1,\"a\"]", "{}",  "{\"a\":1}", "{\"b\":\"a\",\"a\":1}"};

static void put_schema(writer *w, uint32_t depth);

static void put_value(writer *w) { put(w, "%s", SOME_VALUES[pick(w, w->has_rest ? 8 : 14)]); }

static void put_values(writer *w) {
  put(w, "[");
  for (uint32_t i = 0, count = 1 + pick(w, 4); i < count; i++) {
    if (i > 0) put(w, ",");
    put_value(w);
  }
  put(w, "]");
}

static void put_schemas(writer *w, uint32_t depth) {
  put(w, "[");
  for (uint32_t i = 0, count = 1 + pick(w, 3); i < count; i++) {
    if (i > 0) put(w, ",");
    put_schema(w, depth);
  }
  put(w, "]");
}

// The kinds of members that carry the pool's names: schemas for the members, schemas for the same
// value, or lists of names.
typedef enum member_kind { MEMBER_SCHEMA, MEMBER_NAMES, MEMBER_IN_PLACE } member_kind;

static void put_members(writer *w, uint32_t depth, member_kind kind) {
  bool is_first = true;
  put(w, "{");
  for (uint32_t i = 0; i < 4; i++) {
    if (pick(w, 2) == 0) continue;
    put(w, "%s\"%s\":", is_first ? "" : ",", NAMES[i]);
    is_first = false;
    if (kind == MEMBER_NAMES) {
      put(w, "[\"%s\"]", NAMES[pick(w, 4)]);
    } else if (kind == MEMBER_SCHEMA && pick(w, 10) == 0) {
      put(w, "{\"$ref\":\"#\"}");
    } else {
      put_schema(w, depth);
    }
  }
  put(w, "}");
}

static void put_patterns(writer *w, uint32_t depth) {
  const uint32_t first = pick(w, JUDGE_PATTERNS), count = 1 + pick(w, 2);
  put(w, "{");
  for (uint32_t i = 0; i < count; i++) {
    put(w, "%s\"%s\":", i == 0 ? "" : ",", JUDGE_PATTERN_TEXTS[(first + i) % JUDGE_PATTERNS]);
    put_schema(w, depth);
  }
  put(w, "}");
}

// ---- keywords: each function writes the text after the name ----

static void put_type(writer *w, uint32_t depth) {
  (void)depth;
  if (pick(w, 2) == 0) {
    put(w, "\"%s\"", TYPES[pick(w, 7)]);
  } else {
    const uint32_t first = pick(w, 7);
    put(w, "[\"%s\",\"%s\"]", TYPES[first], TYPES[(first + 1 + pick(w, 6)) % 7]);
  }
}

static void put_enum(writer *w, uint32_t depth) {
  (void)depth;
  put_values(w);
}

static void put_const(writer *w, uint32_t depth) {
  (void)depth;
  put_value(w);
}

static void put_minimum(writer *w, uint32_t depth) {
  (void)depth;
  put(w, "%s", NUMBERS[pick(w, 7)]);
  if (w->dialect == 4 && pick(w, 2) == 0) {
    put(w, ",\"exclusiveMinimum\":%s", pick(w, 3) == 0 ? "false" : "true");
  }
}

static void put_maximum(writer *w, uint32_t depth) {
  (void)depth;
  put(w, "%s", NUMBERS[pick(w, 7)]);
  if (w->dialect == 4 && pick(w, 2) == 0) {
    put(w, ",\"exclusiveMaximum\":%s", pick(w, 3) == 0 ? "false" : "true");
  }
}

static void put_number(writer *w, uint32_t depth) {
  (void)depth;
  put(w, "%s", NUMBERS[pick(w, 7)]);
}

static void put_step(writer *w, uint32_t depth) {
  static const char *const STEPS[] = {"1", "2", "3", "0.5", "1.5"};
  (void)depth;
  put(w, "%s", STEPS[pick(w, 5)]);
}

static void put_count(writer *w, uint32_t depth) {
  (void)depth;
  put(w, "%u%s", pick(w, 4), pick(w, 4) == 0 ? ".0" : "");
}

static void put_pattern(writer *w, uint32_t depth) {
  (void)depth;
  put(w, "\"%s\"", JUDGE_PATTERN_TEXTS[pick(w, JUDGE_PATTERNS)]);
}

static void put_names(writer *w, uint32_t depth) {
  (void)depth;
  const uint32_t first = pick(w, 4);
  put(w, "[\"%s\"", NAMES[first]);
  if (pick(w, 3) == 0) put(w, ",\"%s\"", NAMES[(first + 1 + pick(w, 3)) % 4]);
  put(w, "]");
}

static void put_properties(writer *w, uint32_t depth) { put_members(w, depth, MEMBER_SCHEMA); }
static void put_names_by_name(writer *w, uint32_t depth) { put_members(w, depth, MEMBER_NAMES); }
static void put_schemas_by_name(writer *w, uint32_t depth) {
  put_members(w, depth, MEMBER_IN_PLACE);
}

static void put_dependencies(writer *w, uint32_t depth) {
  put_members(w, depth, pick(w, 2) == 0 ? MEMBER_NAMES : MEMBER_IN_PLACE);
}

static void put_items(writer *w, uint32_t depth) {
  if (w->dialect == 2020 || pick(w, 2) == 0) {
    put_schema(w, depth);
    return;
  }
  put_schemas(w, depth);
  if (pick(w, 2) == 0) return;
  put(w, ",\"additionalItems\":");
  put_schema(w, depth);
}

static void put_contains(writer *w, uint32_t depth) {
  put_schema(w, depth);
  if (w->dialect < 2019) return;
  if (pick(w, 2) == 0) put(w, ",\"minContains\":%u", pick(w, 3));
  if (pick(w, 3) == 0) put(w, ",\"maxContains\":%u", pick(w, 3));
}

static void put_list(writer *w, uint32_t depth) {
  w->has_choices = true;
  put_schemas(w, depth);
}

static void put_choice(writer *w, uint32_t depth) {
  w->has_choices = true;
  put_schema(w, depth);
}

static void put_condition(writer *w, uint32_t depth) {
  put_choice(w, depth);
  static const char *const PARTS[] = {"then", "else"};
  for (uint32_t i = 0; i < 2; i++) {
    if (pick(w, 3) == 0) continue;
    put(w, ",\"%s\":", PARTS[i]);
    put_schema(w, depth);
  }
}

static void put_reference(writer *w, uint32_t depth) {
  (void)depth;
  w->has_choices = true;
  put(w, "\"#/%s/d\"", w->dialect < 2019 ? "definitions" : "$defs");
}

static void put_rest(writer *w, uint32_t depth) {
  (void)depth;
  put(w, "%s", pick(w, 2) == 0 ? "false" : "{\"type\":\"integer\"}");
}

typedef struct keyword {
  const char *name;
  void (*put)(writer *w, uint32_t depth);
  uint32_t since;  // the first draft with the keyword; it is sometimes written in older drafts,
                   // where it has no effect
} keyword;

static const keyword KEYWORDS[] = {{"type", put_type, 0},
                                   {"enum", put_enum, 0},
                                   {"const", put_const, 0},
                                   {"minimum", put_minimum, 0},
                                   {"maximum", put_maximum, 0},
                                   {"exclusiveMinimum", put_number, 6},
                                   {"exclusiveMaximum", put_number, 6},
                                   {"multipleOf", put_step, 0},
                                   {"minLength", put_count, 0},
                                   {"maxLength", put_count, 0},
                                   {"minItems", put_count, 0},
                                   {"maxItems", put_count, 0},
                                   {"minProperties", put_count, 0},
                                   {"maxProperties", put_count, 0},
                                   {"pattern", put_pattern, 0},
                                   {"required", put_names, 0},
                                   {"properties", put_properties, 0},
                                   {"patternProperties", put_patterns, 0},
                                   {"additionalProperties", put_schema, 0},
                                   {"propertyNames", put_schema, 0},
                                   {"items", put_items, 0},
                                   {"prefixItems", put_schemas, 0},
                                   {"contains", put_contains, 0},
                                   {"dependencies", put_dependencies, 0},
                                   {"dependentRequired", put_names_by_name, 0},
                                   {"dependentSchemas", put_schemas_by_name, 0},
                                   {"allOf", put_list, 0},
                                   {"anyOf", put_list, 0},
                                   {"oneOf", put_list, 0},
                                   {"not", put_choice, 0},
                                   {"if", put_condition, 0},
                                   {"$ref", put_reference, 0},
                                   {"unevaluatedProperties", put_rest, 0},
                                   {"unevaluatedItems", put_rest, 0}};
enum { KEYWORD_COUNT = sizeof KEYWORDS / sizeof *KEYWORDS };

static void put_keywords(writer *w, uint32_t depth, uint32_t count) {
  uint64_t used = 0;
  const char *comma = "";
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t at = pick(w, KEYWORD_COUNT);
    const keyword *keyword = &KEYWORDS[at];
    if ((used >> at & 1) != 0 || keyword->since > w->dialect) continue;
    if (keyword->put == put_reference && w->is_within_definition) continue;
    if (keyword->put == put_rest && !w->has_rest) continue;
    used |= 1ull << at;
    put(w, "%s\"%s\":", comma, keyword->name);
    keyword->put(w, depth == 0 ? 0 : depth - 1);
    comma = ",";
  }
}

static void put_schema(writer *w, uint32_t depth) {
  if (w->dialect > 4 && pick(w, 12) == 0) {
    put(w, "%s", pick(w, 2) == 0 ? "true" : "false");
    return;
  }
  put(w, "{");
  if (depth == 0) {
    switch (pick(w, 3)) {
      case 0:
        put(w, "\"type\":");
        put_type(w, 0);
        break;
      case 1:
        put(w, "\"enum\":");
        put_values(w);
        break;
      default:
        put(w, "\"minimum\":%s,\"maxLength\":%u", NUMBERS[pick(w, 7)], pick(w, 3));
        break;
    }
  } else {
    put_keywords(w, depth, 1 + pick(w, 3));
  }
  put(w, "}");
}

static void write_schema(writer *w) {
  static const struct {
    uint32_t dialect;
    const char *name;
  } DIALECTS[] = {{2020, ""},
                  {2020, "https://json-schema.org/draft/2020-12/schema"},
                  {2019, "https://json-schema.org/draft/2019-09/schema"},
                  {7, "http://json-schema.org/draft-07/schema#"},
                  {6, "http://json-schema.org/draft-06/schema#"},
                  {4, "http://json-schema.org/draft-04/schema#"}};
  const uint32_t draft = pick(w, 8);
  const uint64_t random = w->random;
  memset(w, 0, sizeof *w);
  w->random = random;
  w->dialect = DIALECTS[draft < 6 ? draft : 0].dialect;
  w->has_rest = pick(w, 4) == 0;
  put(w, "{");
  if (draft > 0 && draft < 6) put(w, "\"$schema\":\"%s\",", DIALECTS[draft].name);
  put(w, "\"%s\":{\"d\":", w->dialect < 2019 ? "definitions" : "$defs");
  w->is_within_definition = true;
  put_schema(w, 1);
  w->is_within_definition = false;
  put(w, "},");
  put_keywords(w, 2, 1 + pick(w, 5));
  if (w->text[w->size_bytes - 1] == ',') w->size_bytes--;
  put(w, "}");
}

// ---- values ----

enum { POOL_BYTES = 1 << 15 };

typedef struct pool {
  memory_gate memory;
  grammar_work work;
  char text[POOL_BYTES];  // a list of lists: the values of a list differ only in the order of
                          // members
  size_t size_bytes;
  json_document document;
} pool;

__attribute__((format(printf, 2, 3))) static void pool_put(pool *pool, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t left = sizeof pool->text - pool->size_bytes;
  const int size = vsnprintf(pool->text + pool->size_bytes, left, format, arguments);
  va_end(arguments);
  if (CHECK(size >= 0 && (size_t)size < left)) pool->size_bytes += (size_t)size;
}

static void put_scalars_and_arrays(pool *pool) {
  static const char *const SCALARS[] = {
      "null",  "true",   "false",        "0",    "1",     "2,2.0", "3",      "10",
      "-1",    "1.5",    "0.25",         "\"\"", "\"a\"", "\"b\"", "\"ab\"", "\"xab\"",
      "\"x\"", "\"xa\"", "\"\xc3\xa9z\""};
  static const char *const ITEMS[] = {"1", "\"a\"", "null", "2", "[]", "{\"a\": 1}"};
  for (size_t i = 0; i < sizeof SCALARS / sizeof *SCALARS; i++) {
    pool_put(pool, "%s[%s]", i == 0 ? "" : ",", SCALARS[i]);
  }
  pool_put(pool, ",[[]],[[[1], 2]],[[[\"a\"]]],[[{}]],[[{\"b\": null}, {}]]");
  for (uint32_t i = 0; i < 6; i++) {
    pool_put(pool, ",[[%s]]", ITEMS[i]);
    for (uint32_t k = 0; k < 4; k++) pool_put(pool, ",[[%s, %s]]", ITEMS[i], ITEMS[k]);
  }
  for (uint32_t i = 0; i < 16; i++) {
    const char *const first = ITEMS[i & 1], *const second = ITEMS[i >> 1 & 1];
    const char *const third = ITEMS[i >> 2 & 1];
    if (i < 8) pool_put(pool, ",[[%s, %s, %s]]", first, second, third);
    if (i >= 8 && i % 3 == 0) pool_put(pool, ",[[%s, %s, %s, 2]]", first, second, third);
  }
}

static void put_objects(pool *pool) {
  static const char *const MEMBERS[] = {"1", "\"a\"", "null", "2", "[]", "[1]", "{}", "{\"a\": 1}"};
  static const uint32_t ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  pool_put(pool, ",[{}]");
  for (uint32_t i = 0; i < 32; i++) {
    pool_put(pool, ",[{\"%s\": %s}]", NAMES[i % 4], MEMBERS[i / 4]);
  }
  for (uint32_t i = 0; i < 64; i++) {
    const uint32_t a = i % 4, b = i / 4 % 4, value = i / 16;
    const char *const first = MEMBERS[value & 1], *const second = MEMBERS[value >> 1];
    if (a >= b) continue;
    pool_put(pool, ",[{\"%s\": %s, \"%s\": %s},{\"%s\": %s, \"%s\": %s}]", NAMES[a], first,
             NAMES[b], second, NAMES[b], second, NAMES[a], first);
  }
  for (uint32_t i = 0; i < 8; i++) {  // all names but one
    for (uint32_t order = 0; order < 6; order++) {
      pool_put(pool, order == 0 ? ",[" : ",");
      for (uint32_t k = 0; k < 3; k++) {
        const uint32_t at = ORDERS[order][k], name = at + (at >= i % 4);
        pool_put(pool, "%s\"%s\": %s", k == 0 ? "{" : ", ", NAMES[name],
                 MEMBERS[i < 4 ? 0 : at % 2]);
      }
      pool_put(pool, "}");
    }
    pool_put(pool, "]");
  }
}

static bool pool_open(pool *pool) {
  memset(pool, 0, sizeof *pool);
  memory_init(&pool->memory, 0, platform_alloc, platform_free);
  work_begin(&pool->work, &pool->memory);
  pool_put(pool, "[");
  put_scalars_and_arrays(pool);
  put_objects(pool);
  pool_put(pool, "]");
  return CHECK(
      document_read(&pool->work, (const uint8_t *)pool->text, pool->size_bytes, &pool->document));
}

// ---- the check ----

typedef struct run {
  pool pool;
  writer writer;
  json_document schema;
  uint32_t compiled, refused, empty, valid, broken, failures;
} run;

static bool holds_at(const run *run, grammar_rig *rig, uint32_t node) {
  const json_node *at = document_node(&run->pool.document, node);
  return rig->status == WICK_OK && rig_holds_bytes(rig, run->pool.text + at->at, at->end - at->at);
}

static void check_groups(run *run, grammar_rig *rig, bool any) {
  const writer *w = &run->writer;
  const schema_judge judge = {&run->schema, &run->pool.document, w->dialect};
  for (uint32_t list = document_node(&run->pool.document, 1)->first; list != 0;
       list = document_node(&run->pool.document, list)->next) {
    const json_node *group = document_node(&run->pool.document, list);
    if (run->failures > 0) return;
    const bool wanted = judge_value(&judge, group->first);
    uint32_t held = 0;
    for (uint32_t at = group->first; at != 0; at = document_node(&run->pool.document, at)->next) {
      held += holds_at(run, rig, at);
    }
    *(wanted ? &run->valid : &run->broken) += 1;
    const json_node *first = document_node(&run->pool.document, group->first);
    const bool has_member = memchr(run->pool.text + first->at, ':', first->end - first->at) != NULL;
    const bool takes_all = any && !w->has_choices;
    const uint32_t least = !wanted ? 0 : takes_all ? group->count : any || !has_member ? 1 : 0;
    if (CHECK(held >= least && (wanted || held == 0))) continue;
    run->failures++;
    printf("# %s: %u of %u orders%s, wanted %d: %.*s\n", w->text, held, group->count,
           any ? "" : " (decoding)", wanted, (int)(first->end - first->at),
           run->pool.text + first->at);
  }
}

static void check_schema(run *run, bool any) {
  grammar_rig rig;
  const writer *w = &run->writer;
  rig_open_text(&rig, WICK_GRAMMAR_JSON_SCHEMA, w->text, w->size_bytes, any);
  const bool is_empty = rig.status == WICK_E_ARG && strstr(rig.error.message, "no text") != NULL;
  if (rig.status == WICK_E_UNSUPPORTED || rig.status == WICK_E_FULL) {
    run->refused++;
  } else if (CHECK(rig.status == WICK_OK || is_empty)) {
    *(is_empty ? &run->empty : &run->compiled) += 1;
    check_groups(run, &rig, any);
  } else {
    printf("# %s: %s\n", w->text, rig.error.message);
  }
  rig_close(&rig);
}

TEST(grammars_accept_the_same_values_as_the_validator) {
  static run run;
  memset(&run, 0, sizeof run);
  if (!pool_open(&run.pool)) return;
  run.writer.random = soak_seed() + 1;
  for (uint32_t round = 0; round < soak_count(8000); round++) {
    memory_gate memory;
    grammar_work work;
    memory_init(&memory, 0, platform_alloc, platform_free);
    work_begin(&work, &memory);
    write_schema(&run.writer);
    run.failures = 0;
    if (CHECK(document_read(&work, (const uint8_t *)run.writer.text, run.writer.size_bytes,
                            &run.schema))) {
      check_schema(&run, true);
      // decoding also applies keywords of later drafts
      if (run.writer.dialect == 2020) check_schema(&run, false);
    }
    work_end(&work);
  }
  printf("# %u compiled, %u rejected, %u without a value; %u values valid, %u invalid\n",
         run.compiled, run.refused, run.empty, run.valid, run.broken);
  CHECK(run.compiled > 4 * run.refused);
  CHECK(run.valid > 1000 && run.broken > 1000);
  work_end(&run.pool.work);
}
