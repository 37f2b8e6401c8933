// grammar/schema.c — builds a rule for each set of terms, and the parts that all rules share.
#include "grammar/schema.h"

#include <string.h>

#include "grammar/exponents.h"
#include "grammar/numbers.h"
#include "grammar/schema_parts.h"

enum { ADDED_NODES = 2 * SCHEMA_TYPE_COUNT };  // added to the document
const char *const SCHEMA_TYPES[] = {"object", "string", "null", "boolean", "number", "array"};

uint32_t schema_rule(schema_compiler *c, uint32_t set) {
  if (set == UINT32_MAX || !work_is_ok(c->work)) return 0;
  if (c->rules.items[set] == 0) {
    c->rules.items[set] = program_rule(&c->builder);
    (void)WORK_PUSH(c->work, &c->queue, set);
  }
  return c->rules.items[set];
}

uint32_t schema_call(schema_compiler *c, uint32_t from, uint32_t rule) {
  const uint32_t to = program_place(&c->builder);
  program_call(&c->builder, from, rule, to);
  return to;
}

uint32_t schema_after_comma(schema_compiler *c, uint32_t rule) {
  const uint32_t further = program_rule(&c->builder);
  const uint32_t at = schema_call(c, program_start(&c->builder, further), c->comma);
  program_end(&c->builder, schema_call(c, at, rule));
  return further;
}

uint32_t schema_open(schema_compiler *c, uint32_t from, const char *bracket) {
  return schema_call(c, program_text(&c->builder, from, bracket, strlen(bracket)), c->space);
}

uint32_t schema_close(schema_compiler *c, uint32_t from, const char *bracket) {
  return program_text(&c->builder, schema_call(c, from, c->space), bracket, strlen(bracket));
}

// ---- shared parts of rules ----

static uint32_t space_rule(schema_compiler *c) {
  const uint32_t rule = program_rule(&c->builder), start = program_start(&c->builder, rule);
  if (c->any) {
    program_bytes(&c->builder, start, ' ', ' ', start);
    program_bytes(&c->builder, start, '\t', '\n', start);
    program_bytes(&c->builder, start, '\r', '\r', start);
  }
  program_end(&c->builder, start);
  return rule;
}

static uint32_t separator_rule(schema_compiler *c, const char *text) {
  const uint32_t rule = program_rule(&c->builder);
  uint32_t at = schema_call(c, program_start(&c->builder, rule), c->space);
  const bool is_short = c->any || argument_style_of(c) == ARGUMENT_MARKED;
  at = program_text(&c->builder, at, text, is_short ? 1 : 2);
  program_end(&c->builder, schema_call(c, at, c->space));
  return rule;
}

static uint32_t number_rule(schema_compiler *c) {
  if (c->number_rule != 0) return c->number_rule;
  program_builder *builder = &c->builder;
  c->number_rule = program_rule(builder);
  const uint32_t start = program_start(builder, c->number_rule), end = program_place(builder);
  spell_set(builder, c->any ? c->all_numbers : c->short_numbers, SPELL_RAW, start, end);
  program_end(builder, end);
  if (!c->any) return c->number_rule;
  const uint32_t after = program_place(builder), one = program_place(builder);
  exponents_add_any(builder, end, true, after);
  spell_set(builder, numbers_of_one_digit(c->work), SPELL_RAW, start, one);
  exponents_add_any(builder, one, false, after);
  program_end(builder, after);
  return c->number_rule;
}

uint32_t schema_quote(schema_compiler *c, uint32_t from) {
  const char *quote = argument_style_of(c) == ARGUMENT_MARKED ? c->form->quote : "\"";
  return program_text(&c->builder, from, quote, strlen(quote));
}

static void repeat_char(schema_compiler *c, uint32_t from, uint32_t least, uint32_t most,
                        uint32_t to) {
  const bool is_plain = c->spelling != SPELL_JSON_SAFE;
  program_repeat(&c->builder, from, spell_json_char(&c->builder, c->spelling), 0, least, most,
                 is_plain, to);
}

static uint32_t text_rule(schema_compiler *c) {
  if (c->text_rule != 0) return c->text_rule;
  program_builder *builder = &c->builder;
  c->text_rule = program_rule(builder);
  const uint32_t start = program_start(builder, c->text_rule), after = program_place(builder);
  const uint32_t from = schema_quote(c, start);
  if (c->spelling == SPELL_RAW) {
    spell_set(builder, argument_texts(c, NULL), SPELL_RAW, from, after);
  } else {
    repeat_char(c, from, 0, UINT32_MAX, after);
  }
  program_end(builder, schema_quote(c, after));
  return c->text_rule;
}

// ---- one case ----

// Returns the rule for the numbers of a set, including those with exponents.
static uint32_t numbers_rule(schema_compiler *c, const dfa *set) {
  for (uint32_t i = 0; i < c->set_rules.count; i++) {
    const set_rule_entry *known = &c->set_rules.items[i];
    if (known->set == set && known->least == UINT32_MAX) return known->rule;
  }
  const set_rule_entry made = {set, UINT32_MAX, 0, program_rule(&c->builder)};
  const uint32_t end = program_place(&c->builder), start = program_start(&c->builder, made.rule);
  spell_set(&c->builder, set, SPELL_RAW, start, end);
  exponents_add(&c->builder, set, start, end);
  program_end(&c->builder, end);
  (void)WORK_PUSH(c->work, &c->set_rules, made);
  return made.rule;
}

static void build_number(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to) {
  const dfa *set = value->numbers;
  if (set == NULL) {
    program_call(&c->builder, from, number_rule(c), to);
    return;
  }
  if (!c->any) {
    const dfa *few = dfa_combine(c->work, set, c->short_numbers, DFA_AND);
    if (!dfa_is_empty(few)) set = few;
    spell_set(&c->builder, set, SPELL_RAW, from, to);
    return;
  }
  program_call(&c->builder, from, numbers_rule(c, set), to);
}

// Returns the rule for the strings of a set with a given number of characters; equal requests share
// a rule.
static uint32_t set_rule(schema_compiler *c, const dfa *set, uint32_t least, uint32_t most) {
  for (uint32_t i = 0; i < c->set_rules.count; i++) {
    const set_rule_entry *known = &c->set_rules.items[i];
    if (known->set == set && known->least == least && known->most == most) return known->rule;
  }
  const set_rule_entry made = {set, least, most, program_rule(&c->builder)};
  const uint32_t after = program_place(&c->builder), start = program_start(&c->builder, made.rule);
  spell_lengths(&c->builder, set, c->spelling, least, most, start, after);
  program_end(&c->builder, after);
  (void)WORK_PUSH(c->work, &c->set_rules, made);
  return made.rule;
}

static void build_text(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to) {
  program_builder *builder = &c->builder;
  uint32_t least = value->length_least, most = value->length_most;
  const bool has_lengths = least != 0 || most != UINT32_MAX;
  if (value->texts == NULL && !has_lengths) {
    program_call(builder, from, text_rule(c), to);
    return;
  }
  const uint32_t after = program_place(builder);
  from = schema_quote(c, from);
  if (value->texts == NULL && c->spelling != SPELL_RAW) {
    repeat_char(c, from, least, most, after);
  } else {
    const dfa *set = value->texts;
    if (c->spelling == SPELL_RAW) {
      const dfa *lengths = has_lengths ? dfa_of_lengths(c->work, least, most) : NULL;
      const bool has_both = set != NULL && has_lengths;
      if (has_both) set = dfa_combine(c->work, set, lengths, DFA_AND);
      set = argument_texts(c, set == NULL ? lengths : set);
      least = 0;
      most = UINT32_MAX;
    }
    program_call(builder, from, set_rule(c, set, least, most), after);
  }
  program_skip(builder, schema_quote(c, after), to);
}

void schema_build_case(schema_compiler *c, const schema_case *value, uint32_t from, uint32_t to) {
  static const char *const WORDS[2][3] = {{"null", "true", "false"}, {"None", "True", "False"}};
  const char *const *words = WORDS[argument_style_of(c) == ARGUMENT_PYTHON];
  for (uint32_t i = 0; i < 3; i++) {
    if ((value->types >> i & 1) == 0) continue;
    const uint32_t after = program_text(&c->builder, from, words[i], strlen(words[i]));
    program_skip(&c->builder, after, to);
  }
  if ((value->types & TYPE_NUMBER) != 0) build_number(c, value, from, to);
  if ((value->types & TYPE_STRING) != 0) build_text(c, value, from, to);
  if ((value->types & TYPE_ARRAY) != 0) schema_build_array(c, value, from, to);
  if ((value->types & TYPE_OBJECT) != 0) schema_build_object(c, value, from, to);
}

static void build_set(schema_compiler *c, uint32_t set) {
  case_list cases;
  if (!schema_expand(c, set, &cases)) return;
  const uint32_t start = program_start(&c->builder, c->rules.items[set]);
  const uint32_t end = program_place(&c->builder);
  c->is_call = c->form != NULL && set == c->outermost;
  c->is_outermost = c->is_call && c->form->style != ARGUMENT_JSON;
  for (uint32_t i = 0; i < cases.count && work_is_ok(c->work); i++) {
    schema_build_case(c, &cases.items[i], start, end);
  }
  program_end(&c->builder, end);
}

// ---- the whole schema ----

static bool begin(schema_compiler *c, const uint8_t *text, size_t size_bytes) {
  const json_node nothing = {.kind = JSON_FALSE};
  c->all_numbers = numbers_all(c->work);
  c->short_numbers = numbers_short(c->work);
  if (!document_read(c->work, text, size_bytes, &c->document)) return false;
  c->nothing = c->document.nodes.count;
  if (!WORK_PUSH(c->work, &c->document.nodes, nothing)) return false;
  c->names = work_alloc(c->work, c->document.nodes.count + ADDED_NODES, sizeof *c->names);
  c->targets = work_alloc(c->work, c->document.nodes.count + ADDED_NODES, sizeof *c->targets);
  c->shapes = work_alloc(c->work, c->document.nodes.count + ADDED_NODES, sizeof *c->shapes);
  if (c->names == NULL || c->targets == NULL || c->shapes == NULL) return false;
  schema_find_dialect(c);
  if (!schema_check(c, 1)) return false;
  c->space = space_rule(c);
  c->comma = separator_rule(c, ", ");
  c->colon = separator_rule(c, ": ");
  return work_is_ok(c->work);
}

// Rules are built until every requested one exists.
static void build_all(schema_compiler *c) {
  while (c->built < c->queue.count && work_is_ok(c->work)) build_set(c, c->queue.items[c->built++]);
}

// Adds the schema {"type": type}: two nodes of the document.
static uint32_t add_type_schema(schema_compiler *c, const char *type) {
  static const char KEY[] = "type";
  const uint32_t node = c->document.nodes.count;
  const json_node object = {.kind = JSON_OBJECT, .first = node + 1, .count = 1};
  const json_node value = {.kind = JSON_STRING,
                           .parent = node,
                           .key = {(const uint8_t *)KEY, sizeof KEY - 1},
                           .text = {(const uint8_t *)type, (uint32_t)strlen(type)}};
  const bool is_added = WORK_PUSH(c->work, &c->document.nodes, object) &&
                        WORK_PUSH(c->work, &c->document.nodes, value);
  return is_added ? node : 0;
}

// Returns the rule for a gap between the parts of a call.
static uint32_t gap_rule(schema_compiler *c) {
  const uint32_t rule = program_rule(&c->builder), end = program_place(&c->builder);
  const uint32_t start = program_start(&c->builder, rule);
  program_bytes(&c->builder, start, '\n', '\n', end);
  program_bytes(&c->builder, start, ' ', ' ', end);
  program_skip(&c->builder, start, end);
  program_end(&c->builder, end);
  return rule;
}

uint32_t schema_build_argument(program_builder *builder, const uint8_t *text, size_t size_bytes,
                               const argument_form *form) {
  static const spelling SPELLINGS[] = {SPELL_JSON, SPELL_JSON, SPELL_RAW, SPELL_JSON_SAFE};
  schema_compiler c = {.work = builder->work, .builder = *builder, .form = form};
  c.spelling = SPELLINGS[form->style];
  if (!begin(&c, text, size_bytes)) return 0;
  c.gap = gap_rule(&c);
  for (size_t i = 0; i < SCHEMA_TYPE_COUNT; i++)
    c.of_type[i] = add_type_schema(&c, SCHEMA_TYPES[i]);
  schema_term terms[] = {term_of(TERM_SCHEMA, 1), term_of(TERM_SCHEMA, c.of_type[OF_OBJECTS])};
  c.outermost = schema_set(&c, terms, 2);
  const uint32_t rule = schema_rule(&c, c.outermost);
  build_all(&c);
  *builder = c.builder;
  return work_is_ok(builder->work) ? rule : 0;
}

// ---- in slices ----

// A compilation that continues after a pause with the rules that were kept.
typedef struct schema_job {
  schema_compiler now, kept;
  uint32_t rule;
} schema_job;

// After a pause in the middle of a rule, undoes everything that was built since the last kept rule.
// Results about sets are kept.
static void restore(schema_job *job) {
  const schema_compiler *now = &job->now;
  program_restore(&now->builder, &job->kept.builder);
  for (uint32_t set = 0; set < now->rules.count; set++) {
    uint32_t *rule = &now->rules.items[set];
    if (*rule >= job->kept.builder.rules.count) *rule = 0;
  }
  job->kept.sets = now->sets;
  job->kept.rules = now->rules;
  job->kept.emptiness = now->emptiness;
  job->now = job->kept;
}

static schema_job *begin_job(grammar_work *work, const uint8_t *text, size_t size_bytes, bool any) {
  schema_job *job = work_alloc(work, 1, sizeof *job);
  if (job == NULL) return NULL;
  schema_compiler *c = &job->now;
  *c = (schema_compiler){.work = work, .any = any, .is_kept = true};
  c->spelling = any ? SPELL_JSON_ANY : SPELL_JSON;
  if (!program_begin(&c->builder, work) || !begin(c, text, size_bytes)) return NULL;
  schema_term root = term_of(TERM_SCHEMA, 1);
  const uint32_t set = schema_set(c, &root, 1);
  job->rule = program_rule(&c->builder);
  uint32_t at = schema_call(c, program_start(&c->builder, job->rule), c->space);
  at = schema_call(c, at, schema_rule(c, set));
  program_end(&c->builder, schema_call(c, at, c->space));
  job->kept = *c;
  return work_is_ok(work) ? job : NULL;
}

uint32_t schema_build(program_builder *builder, const uint8_t *text, size_t size_bytes, bool any) {
  grammar_work *work = builder->work;
  if (work->kept == NULL) {
    work->is_lasting = true;
    work->kept = begin_job(work, text, size_bytes, any);
    work->is_lasting = false;
  }
  schema_job *job = work->kept;
  if (job == NULL) return 0;
  schema_compiler *c = &job->now;
  while (!work_keep(work) && c->built < c->queue.count) {
    build_set(c, c->queue.items[c->built++]);
    if (work_is_paused(work)) {
      restore(job);
      return 0;
    }
  }
  job->kept = *c;
  *builder = c->builder;
  return work_is_ok(work) ? job->rule : 0;
}
