// Checks the result for every grammar in the shared folder's structure/: the size of its program or
// the reason it is rejected, and the bytes allowed at each position of its instances and of random
// strings that it allows. tests/c/grammar/grammar_records.txt contains the expected results
// (recorded_lines.h), one line for several grammars.
#include <inttypes.h>

#include "base/hash.h"
#include "grammar/document.h"
#include "grammar/machine.h"
#include "grammar_rig.h"
#include "recorded_lines.h"
#include "vectors.h"

enum {
  CASES_A_LINE = 8,
  TEXT_BYTES_SEEN = 160,
  WALK_BYTES = 120,
  REPEATED_MAX = 3  // in a random string, one byte in three may be any allowed byte
};

static uint64_t line_hash, walk_random;

static void note(uint64_t value) { line_hash = hash_mix_u64(line_hash * 31 + value); }

static void note_text(const char *text) { line_hash = hash_bytes(text, strlen(text), line_hash); }

// Hashes the allowed bytes. Writes them to `bytes` and returns their number.
static uint32_t note_place(const grammar_matcher *matcher, uint8_t bytes[256]) {
  machine *machine = matcher->grammar->machine;
  uint32_t count = 0;
  for (uint32_t byte = 0; byte < 256; byte++) {
    if (machine_step(machine, matcher->mark.state, (uint8_t)byte) == MACHINE_DEAD) continue;
    bytes[count++] = (uint8_t)byte;
  }
  line_hash = hash_bytes(bytes, count, line_hash);
  note((uint64_t)machine_accepts(machine, matcher->mark.state) << 1 |
       machine_continues(machine, matcher->mark.state));
  note(machine_plain(machine, matcher->mark.state));
  note((uint64_t)(int64_t)machine_only_byte(machine, matcher->mark.state));
  return count;
}

// Prefers structure to other text, so that a walk closes what it opens.
static uint8_t choose(const uint8_t *bytes, uint32_t count) {
  static const char STRUCTURE[] = "\"}],:{[0 |(";
  if (random_below(&walk_random, REPEATED_MAX) != 0) {
    const size_t from = (size_t)random_below(&walk_random, sizeof STRUCTURE - 1);
    for (size_t i = 0; i < sizeof STRUCTURE - 1; i++) {
      const char wanted = STRUCTURE[(from + i) % (sizeof STRUCTURE - 1)];
      if (memchr(bytes, wanted, count) != NULL) return (uint8_t)wanted;
    }
  }
  return bytes[random_below(&walk_random, count)];
}

static void note_walk(grammar *grammar) {
  grammar_matcher matcher;
  uint8_t bytes[256];
  matcher_begin(grammar, &matcher);
  for (int i = 0; i < WALK_BYTES; i++) {
    const uint32_t count = note_place(&matcher, bytes);
    if (count == 0) break;
    const uint8_t next = choose(bytes, count);
    if (!matcher_take_bytes(&matcher, &next, 1)) break;
  }
  matcher_end(&matcher);
}

static void note_instance(grammar *grammar, const uint8_t *text, size_t size_bytes) {
  grammar_matcher matcher;
  uint8_t bytes[256];
  matcher_begin(grammar, &matcher);
  for (size_t i = 0; i < size_bytes && i < TEXT_BYTES_SEEN; i++) {
    note_place(&matcher, bytes);
    if (!matcher_take_bytes(&matcher, text + i, 1)) break;
  }
  note_place(&matcher, bytes);
  matcher_end(&matcher);
}

// Hashes the instances of a list: the strings themselves, or the JSON as written.
static void note_instances(const vectors *v, uint32_t one, const char *list_name, bool is_json,
                           grammar *grammar) {
  const uint32_t list = document_find(&v->document, one, list_name);
  for (uint32_t at = vectors_node(v, list)->first; at != 0; at = vectors_node(v, at)->next) {
    const json_node *item = vectors_node(v, at);
    if (is_json) note_instance(grammar, v->source + item->at, item->end - item->at);
    if (!is_json) note_instance(grammar, item->text.bytes, item->text.size_bytes);
  }
}

static void note_grammar(const vectors *v, uint32_t one, const wick_grammar *wanted) {
  const bool is_json = wanted->kind == WICK_GRAMMAR_JSON_SCHEMA;
  grammar_rig rig;
  rig_compile(&rig, wanted);
  note(rig.status);
  if (rig.status == WICK_OK) {
    const grammar_program *program = &rig.grammar->program;
    note(program->place_count | (uint64_t)program->edge_count << 32);
    note(program->rule_count | (uint64_t)program->class_count << 32);
    note_instances(v, one, "accept", is_json, rig.grammar);
    note_instances(v, one, "reject", is_json, rig.grammar);
    note_walk(rig.grammar);
    note(machine_is_full(rig.grammar->machine));
  } else {
    note_text(rig.error.message);
    note(rig.error.offset_bytes);
  }
  rig_close(&rig);
}

static void note_case(const vectors *v, uint32_t one, wick_grammar_kind kind, const char *key) {
  const bool is_json = kind == WICK_GRAMMAR_JSON_SCHEMA;
  const json_node *source = vectors_node(v, document_find(&v->document, one, key));
  const uint8_t *text = is_json ? v->source + source->at : source->text.bytes;
  const size_t size_bytes = is_json ? source->end - source->at : source->text.size_bytes;
  wick_grammar wanted = {.kind = kind, .text = (const char *)text, .text_bytes = size_bytes};
  for (int any = 0; any < (is_json ? 2 : 1); any++) {
    wanted.any_spelling = any;
    note_grammar(v, one, &wanted);
  }
}

static void record_file(const char *file, wick_grammar_kind kind, const char *key) {
  vectors v;
  uint32_t cases = 0;
  if (!vectors_open(&v, file)) return;
  for (uint32_t one = vectors_node(&v, 1)->first; one != 0; one = vectors_node(&v, one)->next) {
    const bool is_left_out = cases / CASES_A_LINE % level_step(2) != 0;
    if (!is_left_out) note_case(&v, one, kind, key);
    if (++cases % CASES_A_LINE != 0 && vectors_node(&v, one)->next != 0) continue;
    if (is_left_out) record_line("%s up to %u: " RECORDED_ANYTHING "\n", file, cases);
    if (!is_left_out) record_line("%s up to %u: %016" PRIx64 "\n", file, cases, line_hash);
    line_hash = walk_random = cases;
  }
  vectors_close(&v);
}

TEST(grammars_match_the_recorded_results) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  recorded_size = line_hash = walk_random = 0;
  record_file("vectors/structure/gbnf/cases.json", WICK_GRAMMAR_GBNF, "grammar");
  record_file("vectors/structure/regex/cases.json", WICK_GRAMMAR_REGEX, "pattern");
  record_file("vectors/structure/schema/suite.json", WICK_GRAMMAR_JSON_SCHEMA, "schema");
  recorded_check("grammar/grammar_records.txt");
}

TEST(real_schemas_match_the_recorded_results) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  recorded_size = line_hash = walk_random = 0;
  record_file("vectors/structure/schema/real.json", WICK_GRAMMAR_JSON_SCHEMA, "schema");
  recorded_check("grammar/grammar_records_real.txt");
}
