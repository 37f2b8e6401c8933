// Schemas from public bug reports: which values they accept, in any formatting or in the one that
// decoding writes.
#include "grammar_rig.h"

enum { VALUES_MAX = 12 };

typedef struct report {
  const char *schema;
  const char *accept[VALUES_MAX], *reject[VALUES_MAX];
} report;

static void check_reports(const report *reports, size_t count, bool any) {
  for (size_t i = 0; i < count; i++) {
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, reports[i].schema, any);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) {
      printf("# %s: %s\n", reports[i].schema, rig.error.message);
      rig_close(&rig);
      continue;
    }
    for (int wanted = 0; wanted < 2; wanted++) {
      const char *const *values = wanted ? reports[i].accept : reports[i].reject;
      for (; *values != NULL; values++) {
        if (!CHECK(rig_holds(&rig, *values) == (wanted != 0))) {
          printf("# %s: %s should be %s\n", reports[i].schema, *values,
                 wanted ? "accepted" : "rejected");
        }
      }
    }
    rig_close(&rig);
  }
}

#define CHECK_REPORTS(reports, any) check_reports(reports, sizeof(reports) / sizeof *(reports), any)

TEST(undeclared_required_members_are_written_in_order) {
  static const report REPORTS[] = {
      {"{\"type\":\"object\",\"required\":[\"b\",\"a\",\"c\"],\"additionalProperties\":{\"type\":"
       "\"null\"}}",
       {"{\"b\": null, \"a\": null, \"c\": null}"},
       {"{\"c\": null, \"a\": null, \"b\": null}"}},
      {"{\"properties\":{\"p\":{\"const\":1}},\"required\":[\"z\",\"p\",\"y\"],\"type\":"
       "\"object\"}",
       {"{\"p\": 1, \"z\": 2, \"y\": 3}"},
       {"{\"p\": 1, \"y\": 3, \"z\": 2}"}},
  };
  CHECK_REPORTS(REPORTS, false);
}

TEST(identifiers_are_only_read_in_schemas) {
  static const report REPORTS[] = {
      {"{\"$defs\":{\"e\":{\"enum\":[{\"$id\":\"a:/x\",\"type\":\"null\"}]},\"x\":{\"$id\":\"a:/"
       "x\","
       "\"const\":1}},\"$ref\":\"a:/x\"}",
       {"1"},
       {"null", "2"}},
      {"{\"$defs\":{\"e\":{\"const\":{\"$anchor\":\"x\",\"type\":\"null\"}},\"x\":{\"$anchor\":"
       "\"x\","
       "\"const\":1}},\"$ref\":\"#x\"}",
       {"1"},
       {"null", "2"}},
      {"{\"unknown\":{\"$anchor\":\"x\",\"type\":\"null\"},\"$defs\":{\"x\":{\"$anchor\":\"x\","
       "\"const\":1}},\"$ref\":\"#x\"}",
       {"1"},
       {"null", "2"}},
      {"{\"default\":{\"$id\":\"a:/x\",\"type\":\"null\"},\"$defs\":{\"x\":{\"$id\":\"a:/x\","
       "\"const\":1}},\"$ref\":\"a:/x\"}",
       {"1"},
       {"null", "2"}},
      // up to draft 7, an identifier next to "$ref" is ignored
      {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$id\":\"a:/base/"
       "\",\"definitions\":{"
       "\"n\":{\"$id\":\"a:/base/n\",\"const\":1},\"m\":{\"$id\":\"a:/other/"
       "n\",\"const\":2},\"r\":{"
       "\"$id\":\"a:/other/\",\"$ref\":\"n\"}},\"allOf\":[{\"$ref\":\"#/definitions/r\"}]}",
       {"1"},
       {"2"}},
  };
  CHECK_REPORTS(REPORTS, true);
}

// Every accepted schema must be usable to the end of its last member.
TEST(the_number_of_optional_members_is_limited) {
  static char schema[400000];
  static const int COUNTS[] = {700, 900, 901, 10000};
  for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
    size_t size = (size_t)snprintf(schema, sizeof schema, "{\"properties\":{");
    for (int n = 0; n < COUNTS[i]; n++) {
      size += (size_t)snprintf(schema + size, sizeof schema - size,
                               "%s\"p%d\":{\"type\":\"integer\"}", n == 0 ? "" : ",", n);
    }
    snprintf(schema + size, sizeof schema - size,
             "},\"additionalProperties\":false,\"type\":\"object\"}");
    for (int any = 0; any < 2; any++) {
      const wick_grammar wanted = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                                   .text = schema,
                                   .text_bytes = strlen(schema),
                                   .any_spelling = any != 0};
      grammar_rig rig;
      rig_compile(&rig, &wanted);
      const bool is_small = COUNTS[i] <= (any ? 700 : 900);
      if (!CHECK_EQ_INT(rig.status, is_small ? WICK_OK : WICK_E_UNSUPPORTED)) continue;
      if (is_small) CHECK(rig_holds(&rig, "{\"p0\": 1, \"p699\": 2}"));
      const char *reason = COUNTS[i] <= 900 ? "in any order" : "optional members";
      if (!is_small) CHECK(strstr(rig.error.message, reason) != NULL);
      rig_close(&rig);
    }
  }
}
