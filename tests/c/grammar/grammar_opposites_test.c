// Values that violate a schema, within 'not' and within a 'oneOf' whose schemas overlap; and unique
// items.
#include "grammar_rig.h"

enum { TEXTS_MAX = 8 };

typedef struct schema_row {
  const char *schema;
  const char *accept[TEXTS_MAX], *reject[TEXTS_MAX];
} schema_row;

static void check_texts(grammar_rig *rig, const char *schema, const char *const *texts,
                        bool wanted) {
  for (size_t i = 0; i < TEXTS_MAX && texts[i] != NULL; i++) {
    if (!CHECK(rig_holds(rig, texts[i]) == wanted)) printf("# %s: %s\n", schema, texts[i]);
  }
}

static void check_rows(const schema_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (int any = 0; any < 2; any++) {
      grammar_rig rig;
      rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, rows[i].schema, any);
      if (!CHECK_EQ_INT(rig.status, WICK_OK)) {
        printf("# %s: %s\n", rows[i].schema, rig.error.message);
      } else {
        // decoding allows only one formatting and one order, so there only rejected values are
        // checked
        if (any) check_texts(&rig, rows[i].schema, rows[i].accept, true);
        check_texts(&rig, rows[i].schema, rows[i].reject, false);
      }
      rig_close(&rig);
    }
  }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

static const schema_row MEMBERS[] = {
    {"{\"type\":\"object\",\"not\":{\"additionalProperties\":false,\"properties\":{\"a\":{}},"
     "\"patternProperties\":{\"^x\":{}}}}",
     {"{\"b\":1}", "{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", "{\"x\":0,\"y\":0,\"z\":0}"},
     {"{}", "{\"a\":1}", "{\"a\":1,\"xa\":2}", "1"}},
    {"{\"type\":\"object\",\"not\":{\"additionalProperties\":{\"type\":\"string\"}},"
     "\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}",
     {"{\"a\":null}", "{\"b\":1}", "{\"b\":\"\",\"c\":1}", "{\"c\":1,\"b\":\"\",\"a\":\"\"}"},
     {"{}", "{\"a\":\"\"}", "{\"b\":\"\"}", "{\"a\":1}"}},
    {"{\"type\":\"object\",\"not\":{\"patternProperties\":{\"^a\":{\"type\":\"null\"}}}}",
     {"{\"a\":1}", "{\"b\":1,\"ab\":[]}", "{\"ab\":null,\"ac\":2}"},
     {"{}", "{\"a\":null}", "{\"b\":1}", "{\"ab\":null,\"ac\":null}"}},
    {"{\"type\":\"object\",\"not\":{\"propertyNames\":{\"maxLength\":2}}}",
     {"{\"abc\":1}", "{\"a\":1,\"abcd\":2}"},
     {"{}", "{\"ab\":1}", "{\"a\":1,\"b\":2}"}},
    {"{\"type\":\"object\",\"not\":{\"dependencies\":{\"a\":[\"b\",\"c\"]}}}",
     {"{\"a\":1}", "{\"a\":1,\"b\":2}", "{\"c\":0,\"a\":1}"},
     {"{}", "{\"b\":1}", "{\"a\":1,\"b\":2,\"c\":3}"}},
    {"{\"type\":\"object\",\"not\":{\"dependentSchemas\":{\"a\":{\"required\":[\"b\"]}}}}",
     {"{\"a\":1}", "{\"a\":1,\"c\":2}"},
     {"{}", "{\"b\":1}", "{\"a\":1,\"b\":2}"}},
    {"{\"type\":\"object\",\"not\":{\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":"
     "\"null\"}}}}",
     {"{}", "{\"a\":1}", "{\"b\":null}"},
     {"{\"a\":null}", "{\"b\":1,\"a\":null}"}},
    // two required members, or one that satisfies both
    {"{\"type\":\"object\",\"allOf\":[{\"not\":{\"patternProperties\":{\"a\":false}}},{\"not\":{"
     "\"patternProperties\":{\"b\":false}}}]}",
     {"{\"ab\":1}", "{\"a\":1,\"b\":2}", "{\"c\":0,\"b\":1,\"a\":2}"},
     {"{}", "{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"ca\":2}"}},
    {"{\"type\":\"object\",\"maxProperties\":2,\"not\":{\"patternProperties\":{\"a\":false}}}",
     {"{\"a\":1}", "{\"b\":0,\"a\":1}", "{\"a\":1,\"b\":2}"},
     {"{}", "{\"b\":1}", "{\"b\":1,\"c\":2}", "{\"a\":1,\"b\":2,\"c\":3}"}},
    {"{\"type\":\"object\",\"patternProperties\":{\"^0\":{},\"^1\":{},\"^2\":{},\"^3\":{},\"^4\":{}"
     ","
     "\"^5\":{},\"^6\":{},\"^7\":{},\"^8\":{},\"^9\":{\"type\":\"null\"}}}",
     {"{\"0\":1,\"9\":null}"},
     {"{\"0\":1,\"9\":1}"}},
};

TEST(members_that_violate_a_schema_are_accepted_by_not) { CHECK_ROWS(MEMBERS); }

// three declared members, and others
#define DECLARED "\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}}"

static const schema_row COUNTED[] = {
    {"{" DECLARED ",\"maxProperties\":2,\"required\":[\"b\"]}",
     {"{\"b\":1}", "{\"b\":1,\"a\":2}", "{\"c\":1,\"b\":2}", "{\"x\":1,\"b\":2}"},
     {"{}", "{\"c\":1,\"a\":2}", "{\"c\":1,\"b\":2,\"a\":3}", "{\"x\":1,\"b\":2,\"a\":3}"}},
    {"{" DECLARED ",\"maxProperties\":0}", {"{}"}, {"{\"a\":1}", "{\"x\":1}"}},
    {"{" DECLARED ",\"minProperties\":2,\"additionalProperties\":false}",
     {"{\"c\":1,\"a\":2}", "{\"a\":1,\"c\":2}", "{\"c\":1,\"b\":2,\"a\":3}"},
     {"{}", "{\"b\":1}", "{\"b\":1,\"b\":2}", "{\"a\":1,\"x\":2}"}},
    {"{" DECLARED ",\"minProperties\":1}", {"{\"b\":1}", "{\"x\":1}", "{\"x\":1,\"a\":1}"}, {"{}"}},
    {"{" DECLARED ",\"minProperties\":2,\"maxProperties\":3,\"required\":[\"a\"]}",
     {"{\"c\":1,\"a\":2}", "{\"x\":1,\"c\":2,\"a\":3}", "{\"a\":1,\"x\":2,\"y\":3}"},
     {"{\"a\":1}", "{\"c\":1,\"b\":2}", "{\"c\":1,\"b\":2,\"a\":3,\"x\":4}"}},
    {"{" DECLARED ",\"maxProperties\":2,\"not\":{\"patternProperties\":{\"^x\":false}}}",
     {"{\"x\":1}", "{\"xa\":0,\"b\":1}", "{\"b\":1,\"x\":2}"},
     {"{}", "{\"b\":1}", "{\"b\":1,\"a\":2}", "{\"c\":1,\"b\":2,\"x\":3}"}},
};

TEST(counted_members_may_be_in_any_order) { CHECK_ROWS(COUNTED); }

static const schema_row OVERLAPS[] = {
    {"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"additionalProperties\":"
     "false},{\"type\":\"object\",\"properties\":{\"a\":{},\"c\":{}},\"additionalProperties\":"
     "false}]}",
     {"{\"b\":1}", "{\"a\":1,\"c\":2}", "{\"b\":1,\"a\":2}"},
     {"{}", "{\"a\":1}", "{\"b\":1,\"c\":2}", "{\"d\":1}"}},
    {"{\"oneOf\":[{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},{\"type\":"
     "\"object\",\"propertyNames\":{\"pattern\":\"^[a-c]$\"}}]}",
     {"{\"a\":1}", "{\"d\":\"\"}", "{\"a\":\"\",\"b\":1}"},
     {"{}", "{\"a\":\"\"}", "{\"d\":1}"}},
    // several alternatives, each required by its name
    {"{\"type\":\"object\",\"oneOf\":[{\"required\":[\"a\"],\"properties\":{\"a\":{\"type\":"
     "\"null\"}}},{\"required\":[\"b\"],\"properties\":{\"b\":{\"type\":\"null\"}}},{\"required\":["
     "\"c\"],\"properties\":{\"c\":{\"type\":\"null\"}}},{\"required\":[\"d\"],\"properties\":{"
     "\"d\":{\"type\":\"null\"}}}]}",
     {"{\"a\":null}", "{\"a\":null,\"b\":1}", "{\"c\":1,\"d\":null}"},
     {"{}", "{\"a\":1}", "{\"a\":null,\"b\":null}", "{\"a\":null,\"d\":null,\"c\":1}"}},
    {"{\"oneOf\":[{\"contains\":{\"const\":1}},{\"contains\":{\"const\":2}}]}",
     {"[1]", "[0,2,0]", "[1,1]"},
     {"[]", "[1,2]", "[0]", "[2,0,1]"}},
};

TEST(one_of_accepts_exactly_one_of_overlapping_schemas) { CHECK_ROWS(OVERLAPS); }

static const schema_row ITEMS[] = {
    {"{\"type\":\"array\",\"not\":{\"contains\":{\"type\":\"null\"}}}",
     {"[]", "[1]", "[1,\"\"]"},
     {"[null]", "[1,null,2]"}},
    {"{\"type\":\"array\",\"not\":{\"contains\":{\"const\":1},\"minContains\":2,\"maxContains\":"
     "3}}",
     {"[]", "[1]", "[1,1,1,1]", "[0,1,1,1,1,1]"},
     {"[1,1]", "[1,0,1]", "[1,1,0,1]"}},
    {"{\"$schema\":\"http://json-schema.org/draft-07/schema\",\"type\":\"array\",\"not\":{"
     "\"items\":[{}],\"additionalItems\":{\"type\":\"null\"}}}",
     {"[1,2]", "[null,null,3]"},
     {"[]", "[1]", "[1,null]", "[1,null,null]"}},
    {"{\"type\":\"array\",\"not\":{\"prefixItems\":[{},{}],\"items\":{\"type\":\"null\"}}}",
     {"[1,2,3]", "[0,0,null,4]"},
     {"[]", "[1,2]", "[1,2,null]"}},
};

TEST(items_that_violate_a_schema_are_accepted_by_not) { CHECK_ROWS(ITEMS); }

static const schema_row UNIQUE[] = {
    {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[\"a\",\"ab\",\"b\"]}}",
     {"[]", "[\"a\"]", "[\"ab\",\"a\"]", "[\"b\",\"a\",\"ab\"]"},
     {"[\"a\",\"a\"]", "[\"a\",\"b\",\"a\"]", "[\"c\"]"}},
    {"{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":2,\"maxItems\":3,\"items\":{\"type\":"
     "\"integer\",\"minimum\":1,\"maximum\":9}}",
     {"[1,2]", "[3,2,1]", "[1.0,2]", "[9,10e-1]"},
     {"[]", "[1]", "[1,1]", "[1,1.0]", "[2,20e-1]", "[1,2,3,4]", "[1,10]"}},
    {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":[\"boolean\",\"null\"]}}",
     {"[true,null,false]", "[null]"},
     {"[null,null]", "[true,false,true]"}},
    {"{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":1}", {"[]", "[1]"}, {"[1,1]"}},
    {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"pattern\":\"^[xy]{1,2}$\",\"type\":"
     "\"string\"}}",
     {"[\"x\",\"xx\",\"xy\"]", "[\"\\u0078\"]"},
     {"[\"x\",\"\\u0078\"]", "[\"xx\",\"xx\"]", "[\"xyx\"]"}},
    {"{\"properties\":{\"a\":{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2]}},"
     "\"b\":{\"const\":1}},\"type\":\"object\"}",
     {"{\"a\":[2,1],\"b\":1}", "{\"b\":1,\"a\":[1]}"},
     {"{\"a\":[1,1]}", "{\"b\":1,\"a\":[2,2]}"}},
};

TEST(unique_items_of_listed_values_are_decided) { CHECK_ROWS(UNIQUE); }

static const schema_row FORMATS[] = {
    {"{\"type\":\"string\",\"format\":\"regex\"}",
     {"\"\"", "\"^a+(b|c)*?$\"", "\"[a-z\\\\]]{2,3}\"", "\"(?:a(b(?<n>c)))\\\\d\"", "\"a]}\""},
     {"\"(a\"", "\"a)\"", "\"*a\"", "\"[a\"", "\"a\\\\\""}},
    {"{\"type\":\"string\",\"format\":\"iri\"}",
     {"\"http://example.com/\xc3\xa4\"", "\"urn:a\""},
     {"\"a b\"", "\"\xc3\xa4\"", "\"http://a/<b>\""}},
    {"{\"type\":\"string\",\"format\":\"idn-email\"}",
     {"\"\xc3\xa4@example.com\"", "\"a@b.org\""},
     {"\"a\"", "\"@a\"", "\"a@\""}},
};

TEST(formats_from_patterns_and_other_languages_are_decided) { CHECK_ROWS(FORMATS); }
