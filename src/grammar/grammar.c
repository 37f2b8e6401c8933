// grammar/grammar.c — compiles a caller's constraint to a machine, and matches bytes.
#include "grammar/grammar.h"

#include <string.h>

#include "grammar/document.h"
#include "grammar/free.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/spell.h"

static uint32_t build_set(program_builder *builder, const dfa *set) {
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  spell_set(builder, set, SPELL_RAW, program_start(builder, rule), end);
  program_end(builder, end);
  return rule;
}

static uint32_t build_regex(program_builder *builder, const wick_grammar *wanted) {
  return build_set(builder, regex_compile(builder->work, (const uint8_t *)wanted->text,
                                          wanted->text_bytes, !wanted->any_spelling));
}

static uint32_t build_choice(program_builder *builder, const wick_grammar *wanted) {
  json_document document;
  const uint8_t *text = (const uint8_t *)wanted->text;
  if (!document_read(builder->work, text, wanted->text_bytes, &document)) return 0;
  const json_node *list = document_node(&document, 1);
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  if (list->kind != JSON_ARRAY || list->count == 0) {
    work_fail(builder->work, WICK_E_ARG, 0, "choices: an array of strings is expected");
  }
  for (uint32_t child = list->first; child != 0;) {
    const json_node *one = document_node(&document, child);
    if (one->kind != JSON_STRING) {
      work_fail(builder->work, WICK_E_ARG, one->at, "choices: item %u is not a string", one->index);
    }
    const uint32_t after =
        program_text(builder, program_start(builder, rule), one->text.bytes, one->text.size_bytes);
    program_skip(builder, after, end);
    child = one->next;
  }
  program_end(builder, end);
  return rule;
}

// ---- surrounding free text ----

// Builds free (trigger constraint (marker free)?)*.
static uint32_t build_parts(program_builder *builder, const wick_grammar *wanted, uint32_t inside) {
  const uint32_t rule = program_rule(builder), end = program_place(builder);
  const uint32_t free = program_start(builder, rule), after = program_place(builder);
  const uint8_t *trigger = (const uint8_t *)wanted->trigger;
  uint32_t at = free;
  if (wanted->trigger_bytes != 0) {
    at = program_place(builder);
    const free_mark mark = {trigger, (uint32_t)wanted->trigger_bytes, at};
    free_build(builder, free, (free_text){.marks = &mark, .mark_count = 1, .end = end});
  }
  program_call(builder, at, inside, after);
  if (wanted->marker_bytes == 0) {
    program_skip(builder, after, end);
  } else {
    const uint32_t again = program_text(builder, after, wanted->marker, wanted->marker_bytes);
    const uint32_t rest = program_place(builder);
    program_skip(builder, again, wanted->trigger_bytes != 0 ? free : rest);
    program_bytes(builder, rest, 0, 255, rest);
    program_skip(builder, rest, end);
  }
  program_end(builder, end);
  return rule;
}

// ---- compiling ----

uint32_t grammar_build(program_builder *builder, const tokenizer *tokens,
                       const wick_grammar *wanted, gbnf_names **names) {
  const uint8_t *text = (const uint8_t *)wanted->text;
  if (wanted->kind == GRAMMAR_REPLY) return grammar_build_reply(builder, tokens, wanted, names);
  switch (wanted->kind) {
    case WICK_GRAMMAR_GBNF:
      return gbnf_build(builder, tokens, text, wanted->text_bytes, names);
    case WICK_GRAMMAR_JSON_SCHEMA:
      return schema_build(builder, text, wanted->text_bytes, wanted->any_spelling);
    case WICK_GRAMMAR_REGEX:
      return build_regex(builder, wanted);
    case WICK_GRAMMAR_CHOICE:
      return build_choice(builder, wanted);
    case WICK_GRAMMAR_NONE:
      break;
  }
  work_fail(builder->work, WICK_E_ARG, WICK_NO_OFFSET, "there is no grammar of kind %d",
            (int)wanted->kind);
  return 0;
}

// A program that has been built. Adding its sets of strings (spell.h) and finishing it may pause.
typedef struct built_grammar {
  program_builder builder;
  gbnf_names *names;
  uint32_t root;
} built_grammar;

static wick_status compile(grammar_work *work, const tokenizer *tokens, const wick_grammar *wanted,
                           grammar_program *out) {
  built_grammar *built = work->kept_built;
  if (built == NULL) {
    built = work_alloc(work, 1, sizeof *built);
    if (built == NULL || !program_begin(&built->builder, work)) return work->status;
    built->root = grammar_build(&built->builder, tokens, wanted, &built->names);
    if (work_is_ok(work) && (wanted->trigger_bytes != 0 || wanted->marker_bytes != 0)) {
      built->root = build_parts(&built->builder, wanted, built->root);
    }
    if (!work_is_ok(work)) return work->status;
    work->kept_built = built;
    if (work_keep(work)) return work->status;
  }
  work_settle(work);
  if (!spell_pending(&built->builder)) return work->status;
  const program_namer name_of = built->names == NULL ? NULL : gbnf_name;
  return program_finish(&built->builder, built->root, name_of, built->names, out);
}

static wick_status check_beginning(grammar *made, wick_error *error) {
  machine_mark begin;
  machine_mark_begin(made->machine, &begin);
  machine_mark_end(&begin);
  if (!machine_is_full(made->machine)) return WICK_OK;
  return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "the grammar has more than %d places where its text can begin",
                   (int)MACHINE_PLACES_MAX);
}

wick_status grammar_run(grammar_work *work, const tokenizer *tokens, const wick_grammar *wanted,
                        grammar **out, wick_error *error) {
  memory_gate *memory = work->memory;
  grammar *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "a grammar");
  made->memory = memory;
  work_resume(work);
  wick_status status =
      dfa_resume_paused(work) ? compile(work, tokens, wanted, &made->program) : work->status;
  if (status != WICK_OK && error != NULL) *error = work->error;
  if (status == WICK_OK) status = machine_create(memory, &made->program, &made->machine, error);
  if (status == WICK_OK) status = check_beginning(made, error);
  if (status != WICK_OK) {
    grammar_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

wick_status grammar_create(memory_gate *memory, const tokenizer *tokens, const wick_grammar *wanted,
                           grammar **out, wick_error *error) {
  grammar_work work;
  work_begin(&work, memory);
  const wick_status status = grammar_run(&work, tokens, wanted, out, error);
  work_end(&work);
  return status;
}

void grammar_destroy(grammar *grammar) {
  if (grammar == NULL) return;
  machine_destroy(grammar->machine);
  program_destroy(grammar->memory, &grammar->program);
  memory_free(grammar->memory, grammar);
}

// ---- matching ----

void matcher_begin(grammar *grammar, grammar_matcher *matcher) {
  matcher->grammar = grammar;
  machine_mark_begin(grammar->machine, &matcher->mark);
  if (!machine_is_full(grammar->machine)) return;
  machine_mark_end(&matcher->mark);
  machine_make_room(grammar->machine);
  machine_mark_begin(grammar->machine, &matcher->mark);
}

wick_status matcher_begin_after(grammar *grammar, const wick_grammar *wanted,
                                grammar_matcher *matcher, wick_error *error) {
  const uint8_t *begun = (const uint8_t *)wanted->begun;
  size_t fitting = 0;
  matcher_begin(grammar, matcher);
  while (fitting < wanted->begun_bytes && matcher_take_bytes(matcher, begun + fitting, 1)) {
    fitting++;
  }
  if (fitting == wanted->begun_bytes) return WICK_OK;
  matcher_end(matcher);
  return fail_with(error, WICK_E_ARG, fitting, "prefix does not match the grammar at byte %zu",
                   fitting);
}

void matcher_copy(const grammar_matcher *from, grammar_matcher *to) {
  to->grammar = from->grammar;
  if (from->grammar != NULL) machine_mark_copy(&from->mark, &to->mark);
}

void matcher_end(grammar_matcher *matcher) {
  if (matcher->grammar != NULL) machine_mark_end(&matcher->mark);
  matcher->grammar = NULL;
}

// Returns the configuration after the bytes, and keeps the one before them valid.
static uint32_t walk(machine *machine, uint32_t state, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count && state != MACHINE_DEAD; i++) {
    state = machine_step(machine, state, bytes[i]);
  }
  return state;
}

bool matcher_take_bytes(grammar_matcher *matcher, const uint8_t *bytes, size_t count) {
  machine *machine = matcher->grammar->machine;
  grammar_matcher next;
  matcher_copy(matcher, &next);
  for (size_t i = 0; i < count && next.mark.state != MACHINE_DEAD; i++) {
    uint32_t state = machine_step(machine, next.mark.state, bytes[i]);
    if (machine_is_full(machine)) {
      machine_make_room(machine);
      state = machine_step(machine, next.mark.state, bytes[i]);
    }
    next.mark.state = machine_is_full(machine) ? MACHINE_DEAD : state;
  }
  const bool fits = next.mark.state != MACHINE_DEAD;
  if (fits) matcher->mark.state = next.mark.state;
  matcher_end(&next);
  return fits;
}

size_t matcher_only_bytes(grammar_matcher *matcher, uint8_t *bytes, size_t capacity) {
  machine *machine = matcher->grammar->machine;
  grammar_matcher next;
  size_t count = 0;
  matcher_copy(matcher, &next);
  while (count < capacity) {
    const int only = machine_only_byte(machine, next.mark.state);
    bytes[count] = (uint8_t)only;
    if (only < 0 || !matcher_take_bytes(&next, bytes + count, 1)) break;
    count++;
  }
  matcher_end(&next);
  return count;
}

bool matcher_take_token(grammar_matcher *matcher, const tokenizer *tokens, int32_t token,
                        uint8_t *scratch) {
  machine *machine = matcher->grammar->machine;
  const uint8_t *bytes = scratch;
  const bool has_controls = matcher->grammar->program.has_controls;
  const size_t count = tokenizer_piece(tokens, token, has_controls, scratch, &bytes);
  for (int tries = 0; tries < 2; tries++) {
    uint32_t state = MACHINE_DEAD;
    if (count != 0) state = walk(machine, matcher->mark.state, bytes, count);
    if (matcher->grammar->program.has_tokens) {
      state = machine_step_token(machine, matcher->mark.state, (uint32_t)token, state);
    }
    if (!machine_is_full(machine)) {
      if (state != MACHINE_DEAD) matcher->mark.state = state;
      return state != MACHINE_DEAD;
    }
    machine_make_room(machine);
  }
  return false;
}

bool matcher_accepts(const grammar_matcher *matcher) {
  return machine_accepts(matcher->grammar->machine, matcher->mark.state);
}

bool matcher_continues(const grammar_matcher *matcher) {
  return machine_continues(matcher->grammar->machine, matcher->mark.state);
}

bool matcher_ends_turn(const grammar_matcher *matcher) {
  return matcher->grammar->program.ends_turn && matcher_accepts(matcher) &&
         matcher_continues(matcher);
}
