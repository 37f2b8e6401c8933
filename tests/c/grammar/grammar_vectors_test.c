// Runs every case of the shared folder's structure/: JSON schemas, GBNF and regular expressions,
// whose instances are fed byte by byte.
#include <stdlib.h>

#include "grammar/document.h"
#include "grammar_rig.h"
#include "vectors.h"

// Whether a case's list of reasons has an entry for this instance.
static bool is_noted(const vectors *v, uint32_t one, uint32_t index) {
  char name[12];
  const int count = snprintf(name, sizeof name, "%u", index);
  const document_text key = {(const uint8_t *)name, (uint32_t)count};
  return document_member(&v->document, document_find(&v->document, one, "accept_notes"), key) != 0;
}

static bool lists_index(const vectors *v, uint32_t list, uint32_t index) {
  for (uint32_t at = vectors_node(v, list)->first; list != 0 && at != 0;
       at = vectors_node(v, at)->next) {
    if ((uint32_t)strtoul((const char *)vectors_node(v, at)->text.bytes, NULL, 10) == index)
      return true;
  }
  return false;
}

static bool is_excused(const vectors *v, uint32_t one, uint32_t index) {
  const uint32_t differs = document_find(&v->document, one, "llguidance_differs");
  return lists_index(v, document_find(&v->document, one, "reject_needs_format"), index) ||
         lists_index(v, document_find(&v->document, differs, "reject"), index);
}

typedef struct tally {
  unsigned compiled, refused, accepts, rejects, noted, excused;
} tally;

// Checks the instances of a list; `wanted`: they must be accepted.
static void check_instances(const vectors *v, uint32_t one, grammar_rig *rig, bool wanted,
                            tally *tally) {
  const document_text name = vectors_text(v, one, "name");
  const uint32_t list = document_find(&v->document, one, wanted ? "accept" : "reject");
  for (uint32_t at = vectors_node(v, list)->first; at != 0; at = vectors_node(v, at)->next) {
    const json_node *item = vectors_node(v, at);
    const bool holds = rig_holds_bytes(rig, v->source + item->at, item->end - item->at);
    *(wanted ? &tally->accepts : &tally->rejects) += 1;
    if (holds == wanted) continue;
    if (wanted ? is_noted(v, one, item->index) : is_excused(v, one, item->index)) {
      *(wanted ? &tally->noted : &tally->excused) += 1;
    } else if (!CHECK(holds == wanted)) {
      printf("# %.*s: instance %u should be %s\n", (int)name.size_bytes, (const char *)name.bytes,
             item->index, wanted ? "accepted" : "rejected");
    }
  }
}

static void check_schema(const vectors *v, uint32_t one, tally *tally) {
  const document_text name = vectors_text(v, one, "name");
  const json_node *schema = vectors_node(v, document_find(&v->document, one, "schema"));
  grammar_rig rig;
  const wick_grammar wanted = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                               .text = (const char *)v->source + schema->at,
                               .text_bytes = schema->end - schema->at,
                               .any_spelling = true};
  rig_compile(&rig, &wanted);
  if (rig.status == WICK_OK) {
    tally->compiled++;
    check_instances(v, one, &rig, true, tally);
    check_instances(v, one, &rig, false, tally);
  } else {
    const bool should = text_is(vectors_text(v, one, "policy"), "honour");
    tally->refused++;
    if (!CHECK(!should)) {
      printf("# %.*s: %s\n", (int)name.size_bytes, (const char *)name.bytes, rig.error.message);
    }
  }
  rig_close(&rig);
}

static void check_schemas(const char *file, unsigned schemas) {
  vectors v;
  tally tally = {0};
  if (!vectors_open(&v, file)) SKIP("no shared folder");
  unsigned number = 0;
  for (uint32_t one = vectors_node(&v, 1)->first; one != 0; one = vectors_node(&v, one)->next) {
    if (number++ % level_step(2) == 0) check_schema(&v, one, &tally);
  }
  CHECK_EQ_UINT(number, schemas);
  printf(
      "# %u compiled, %u rejected; %u to accept (%u known exceptions), %u to reject (%u known "
      "exceptions)\n",
      tally.compiled, tally.refused, tally.accepts, tally.noted, tally.rejects, tally.excused);
  vectors_close(&v);
}

TEST(decides_the_schema_test_suite) { check_schemas("vectors/structure/schema/suite.json", 393); }

TEST(decides_real_schemas) { check_schemas("vectors/structure/schema/real.json", 465); }

// Checks instances that are plain strings instead of JSON.
static void check_texts(const vectors *v, uint32_t one, grammar_rig *rig, bool wanted) {
  const uint32_t list = document_find(&v->document, one, wanted ? "accept" : "reject");
  for (uint32_t at = vectors_node(v, list)->first; at != 0; at = vectors_node(v, at)->next) {
    const document_text text = vectors_node(v, at)->text;
    if (CHECK(rig_holds_bytes(rig, text.bytes, text.size_bytes) == wanted)) continue;
    const document_text name = vectors_text(v, one, "name");
    printf("# %.*s: %.*s\n", (int)name.size_bytes, (const char *)name.bytes, (int)text.size_bytes,
           (const char *)text.bytes);
  }
}

static void check_file(const char *file, wick_grammar_kind kind, const char *key, unsigned wanted) {
  vectors v;
  unsigned count = 0;
  if (!vectors_open(&v, file)) SKIP("no shared folder");
  for (uint32_t one = vectors_node(&v, 1)->first; one != 0; one = vectors_node(&v, one)->next) {
    const document_text source = vectors_text(&v, one, key),
                        expect = vectors_text(&v, one, "expect");
    if (document_find(&v.document, one, "vocab") != 0) continue;
    grammar_rig rig;
    rig_open_text(&rig, kind, source.bytes, source.size_bytes, true);
    count++;
    if (rig.status == WICK_OK) {
      CHECK(!text_is(expect, "refuse") && !text_is(expect, "invalid"));
      check_texts(&v, one, &rig, true);
      check_texts(&v, one, &rig, false);
    } else if (!CHECK(!text_is(expect, "support"))) {
      printf("# %.*s: %s\n", (int)source.size_bytes, (const char *)source.bytes, rig.error.message);
    }
    rig_close(&rig);
  }
  CHECK_EQ_UINT(count, wanted);
  vectors_close(&v);
}

TEST(decides_gbnf) {
  check_file("vectors/structure/gbnf/cases.json", WICK_GRAMMAR_GBNF, "grammar", 49);
}

TEST(decides_regular_expressions) {
  check_file("vectors/structure/regex/cases.json", WICK_GRAMMAR_REGEX, "pattern", 81);
}
