// Grammars of every kind: the strings they accept, their errors, and how a machine of fixed size
// handles strings that need more states than it has.
#include <stdlib.h>

#include "grammar_rig.h"

static void check_holds(grammar_rig *rig, const char *const *texts, bool wanted) {
  for (; *texts != NULL; texts++) {
    if (!CHECK(rig_holds(rig, *texts) == wanted)) printf("# %s\n", *texts);
  }
}

typedef struct grammar_case {
  wick_grammar_kind kind;
  bool any;
  const char *text;
  const char *accept[8], *reject[8];
} grammar_case;

static const grammar_case CASES[] = {
    {WICK_GRAMMAR_GBNF,
     true,
     "root ::= \"a\" b{2,3} | [^a\\n]\nb ::= \"b\" | \"\\u00e9\"",
     {"abb", "abéb", "x", "é"},
     {"ab", "abbbb", "", "a", "\n"}},
    {WICK_GRAMMAR_REGEX, true, "b+c", {"abbcd", "bc"}, {"bd", "", "cb"}},
    {WICK_GRAMMAR_REGEX, false, "b+c", {"bc", "bbc"}, {"abbcd", "b"}},
    {WICK_GRAMMAR_CHOICE,
     false,
     "[\"yes\", \"no\", \"n\\u00e9\"]",
     {"yes", "no", "né"},
     {"y", "", "yesno"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":"
     "12},"
     "\"b\":{\"enum\":[\"x\",null]}},\"required\":[\"b\"]}",
     {"{\"a\": -3, \"b\": \"x\"}", "{\"b\": null}", "{\"a\": 12, \"b\": null}"},
     {"{\"a\": 13, \"b\": null}", "{\"a\":1,\"b\":null}", "{\"b\": null, \"c\": 1}", "{\"a\": 1}",
      "{\"a\": -0, \"b\": null}"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\",\"exclusiveMinimum\":0.25}}}",
     {"{ \"\\u0061\" : 0.26 }", "{\"a\":1.0}", "{\"c\":[],\"a\":3}", "{}"},
     {"{\"a\":0.25}", "{\"a\":0.250}", "{\"a\":-1}", "{\"a\":1,}"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"$defs\":{\"t\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/t\"}}},\"$ref\":\"#/"
     "$defs/t\"}",
     {"[]", "[[],[[]]]", "[ [ ] ]"},
     {"[1]", "[", "[[]", "{}"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"oneOf\":[{\"type\":\"integer\",\"multipleOf\":3},{\"type\":\"integer\",\"multipleOf\":5}]"
     "}",
     {"3", "5", "6", "-10"},
     {"15", "0", "1", "-30", "4"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"type\":\"string\",\"pattern\":\"^[^\\u0000-\\u007f]$\"}",
     {"\"\\u0080\"", "\"\xc2\x80\"", "\"\\uffff\"", "\"\\ud800\\udc00\"", "\"\\u00E9\""},
     {"\"\\u007f\"", "\"\\u007e\"", "\"\x7f\"", "\"~\"", "\"\\u0000\"", "\"\\u0080\\u0080\""}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"not\":{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"const\":1}}}}",
     {"{\"a\":2}", "{}", "1", "[{\"a\":1}]"},
     {"{\"a\":1}", "{\"a\":1.0,\"b\":2}"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":\"number\",\"format\":\"int32\"}",
     {"-2147483648", "2147483647", "0", "-1"},
     {"-2147483649", "2147483648", "1.5", "-9999999999"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":[\"number\",\"null\"],\"format\":\"int64\"}",
     {"-999999999999999", "0", "-1", "2147483648", "null"},
     {"-99999999999999999999", "1.5", "\"1\"", "-0.1"}},
    // a format applies only to values of its type
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":[\"string\",\"integer\",\"null\"],\"format\":\"int32\"}",
     {"-2147483648", "2147483647", "\"2147483648\"", "\"\"", "null"},
     {"-2147483649", "2147483648", "1.5", "true"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":\"string\",\"format\":\"int32\"}",
     {"\"a\"", "\"\""},
     {"1", "null"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":[\"integer\",\"string\"],\"format\":\"date\"}",
     {"5", "99999999999", "\"2024-02-28\""},
     {"\"x\"", "\"2024-13-01\"", "null"}},
    // a time without an offset is accepted only by common validators
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"type\":\"string\",\"format\":\"iso-time\"}",
     {"\"12:00:00\"", "\"12:00:00Z\"", "\"12:00:00.5+01:00\""},
     {"\"12:00\"", "\"25:00:00\"", "\"\""}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     false,
     "{\"type\":\"string\",\"format\":\"iso-date-time\"}",
     {"\"2024-02-29T12:00:00\"", "\"2024-02-29T12:00:00Z\""},
     {"\"2023-02-29T12:00:00\"", "\"12:00:00\""}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"type\":\"string\",\"format\":\"json-pointer-uri-fragment\"}",
     {"\"#\"", "\"#/a/~0~1\"", "\"#/%20\""},
     {"\"\"", "\"/a\"", "\"#a\"", "\"#/~2\""}},
    // bounds that no number or count reaches
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"type\":\"number\",\"minimum\":-1.7976931348623157e+308,"
     "\"exclusiveMaximum\":1.7976931348623157e+308}",
     {"0", "-1.5", "1e300", "123456789012345678901234567890"},
     {"\"\"", "null"}},
    {WICK_GRAMMAR_JSON_SCHEMA,
     true,
     "{\"minItems\":1,\"maxItems\":4294967295,\"maxLength\":9007199254740991,"
     "\"maxProperties\":1e400,\"contains\":{},\"maxContains\":9007199254740991}",
     {"\"abc\"", "\"\"", "[1,2]", "{}", "{\"a\":1}"},
     {"[]"}},
    // if a rule is defined twice, the last definition counts
    {WICK_GRAMMAR_GBNF,
     true,
     "root ::= a\na ::= \"x\"\na ::= \"y\" a | \"z\"",
     {"z", "yz", "yyz"},
     {"x", "yx", "", "y"}},
};

TEST(each_kind_accepts_the_strings_it_defines) {
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    grammar_rig rig;
    rig_open(&rig, CASES[i].kind, CASES[i].text, CASES[i].any);
    if (CHECK_EQ_INT(rig.status, WICK_OK)) {
      check_holds(&rig, CASES[i].accept, true);
      check_holds(&rig, CASES[i].reject, false);
    } else {
      printf("# %s: %s\n", CASES[i].text, rig.error.message);
    }
    rig_close(&rig);
  }
}

// Tests a URL as pydantic writes it: the length multiplies the states of the format.
TEST(a_format_may_have_a_length_limit_in_the_thousands) {
  static const grammar_case ADDRESSES[] = {
      {WICK_GRAMMAR_JSON_SCHEMA,
       false,
       "{\"type\":\"string\",\"format\":\"uri\",\"minLength\":1,\"maxLength\":2083}",
       {"\"https://example.com/a?b=c#d\"", "\"http://[2001:db8::1]:8080/\"", "\"mailto:a@b.c\""},
       {"\"pepeterter:\"", "\"\"", "\"http://[1::2::3]/\"", "\"a b\"", "\"/a\""}},
      {WICK_GRAMMAR_JSON_SCHEMA,
       true,
       "{\"type\":\"string\",\"format\":\"uri\",\"maxLength\":12}",
       {"\"pepeterter:\"", "\"a:23456789ab\""},
       {"\"a:23456789abc\"", "\"abc\""}},
  };
  for (size_t i = 0; i < sizeof ADDRESSES / sizeof *ADDRESSES; i++) {
    grammar_rig rig;
    rig_open(&rig, ADDRESSES[i].kind, ADDRESSES[i].text, ADDRESSES[i].any);
    REQUIRE(rig.status == WICK_OK);
    check_holds(&rig, ADDRESSES[i].accept, true);
    check_holds(&rig, ADDRESSES[i].reject, false);
    rig_close(&rig);
  }
}

static void check_refused(wick_grammar_kind kind, const char *text, wick_status status,
                          const char *part) {
  grammar_rig rig;
  rig_open(&rig, kind, text, true);
  CHECK_EQ_INT(rig.status, status);
  if (!CHECK(strstr(rig.error.message, part) != NULL)) printf("# %s\n", rig.error.message);
  rig_close(&rig);
}

TEST(errors_contain_the_cause_and_location) {
  const wick_grammar_kind schema = WICK_GRAMMAR_JSON_SCHEMA, gbnf = WICK_GRAMMAR_GBNF;
  check_refused(schema, "{\"properties\":{\"a\":{\"uniqueItems\":true}}}", WICK_E_UNSUPPORTED,
                "#/properties/a/uniqueItems");
  check_refused(schema, "{\"items\":{\"format\":\"idn-hostname\"}}", WICK_E_UNSUPPORTED,
                "#/items/format");
  check_refused(schema, "{\"$ref\":\"http://example.com/x\"}", WICK_E_UNSUPPORTED, "#/$ref");
  check_refused(schema, "{\"$ref\":\"#/$defs/none\"}", WICK_E_ARG, "does not exist");
  check_refused(schema, "{\"type\":\"strin\"}", WICK_E_ARG, "#/type");
  check_refused(schema, "{\"type\":", WICK_E_ARG, "byte 8");
  check_refused(schema, "{\"pattern\":\"(?<=a)\"}", WICK_E_UNSUPPORTED, "look-behind");
  check_refused(schema, "{\"type\":\"string\",\"enum\":[1]}", WICK_E_ARG, "no text");
  check_refused(gbnf, "root ::= \"a\"\nb ::= c", WICK_E_ARG, "line 2: there is no rule c");
  check_refused(gbnf, "root ::= x\nx ::= y? x", WICK_E_ARG, "no rule y");
  check_refused(gbnf, "root ::= x | \"a\"\nx ::= root \"b\"", WICK_E_UNSUPPORTED, "left recursion");
  check_refused(gbnf, "root ::= <|im_start|>", WICK_E_ARG, "vocabulary");
  check_refused(gbnf, "root ::= \"a\" root", WICK_E_ARG, "no text");
  check_refused(WICK_GRAMMAR_CHOICE, "[]", WICK_E_ARG, "array of strings");
  check_refused(WICK_GRAMMAR_NONE, "", WICK_E_ARG, "kind 0");
}

// Tests every way in which a schema can be invalid or need an unsupported feature, and the location
// in each error.
TEST(errors_contain_the_location_in_the_schema) {
  static const struct {
    const char *schema;
    wick_status status;
    const char *part;
  } BROKEN[] = {
      {"{\"enum\":1}", WICK_E_ARG, "#/enum: an array is expected"},
      {"{\"enum\":{\"a\":1}}", WICK_E_ARG, "#/enum: an array is expected"},
      {"{\"type\":\"text\"}", WICK_E_ARG, "#/type: unknown type"},
      {"{\"type\":1}", WICK_E_ARG, "#/type: unknown type"},
      {"{\"type\":[\"null\",\"x\"]}", WICK_E_ARG, "#/type/1: unknown type"},
      {"{\"not\":{\"type\":[2]}}", WICK_E_ARG, "#/not/type/0: unknown type"},
      {"{\"minimum\":\"1\"}", WICK_E_ARG, "#/minimum: a number is expected"},
      {"{\"exclusiveMaximum\":null}", WICK_E_ARG, "#/exclusiveMaximum: a number is expected"},
      {"{\"not\":{\"multipleOf\":[]}}", WICK_E_ARG,
       "#/not/multipleOf: a positive number is expected"},
      {"{\"pattern\":1}", WICK_E_ARG, "#/pattern: a string is expected"},
      {"{\"not\":{\"pattern\":null}}", WICK_E_ARG, "#/not/pattern: a string is expected"},
      {"{\"minLength\":\"1\"}", WICK_E_ARG, "#/minLength: a count is expected"},
      {"{\"maxItems\":-1}", WICK_E_ARG, "#/maxItems: a count is expected"},
      {"{\"not\":{\"minProperties\":1.5}}", WICK_E_ARG, "minProperties: a count is expected"},
      {"{\"required\":\"a\"}", WICK_E_ARG, "#/required: an array is expected"},
      {"{\"allOf\":{}}", WICK_E_ARG, "#/allOf: a list of schemas is expected"},
      {"{\"anyOf\":true}", WICK_E_ARG, "#/anyOf: a list of schemas is expected"},
      {"{\"oneOf\":1}", WICK_E_ARG, "#/oneOf: a list of schemas is expected"},
      {"{\"items\":1}", WICK_E_ARG, "#/items: a schema is an object, true or false"},
      {"{\"not\":[]}", WICK_E_ARG, "#/not: a schema is an object, true or false"},
      {"{\"properties\":{\"a\":{\"anyOf\":[{},null]}}}", WICK_E_ARG, "#/properties/a/anyOf/1"},
      {"[]", WICK_E_ARG, "#: a schema is an object"},
      {"{\"$ref\":1}", WICK_E_ARG, "#/$ref: a string is expected"},
      {"{\"not\":{\"$ref\":\"#x\"}}", WICK_E_ARG, "#/not/$ref: $ref target does not exist"},
      {"{\"items\":{\"$ref\":\"other.json\"}}", WICK_E_UNSUPPORTED,
       "#/items/$ref: $ref target is outside the document"},
      {"{\"format\":\"idn-hostname\"}", WICK_E_UNSUPPORTED, "#/format: this format"},
      {"{\"not\":{\"format\":\"regex\"}}", WICK_E_UNSUPPORTED, "#/not/format: this format"},
      {"{\"$dynamicRef\":\"#a\"}", WICK_E_UNSUPPORTED, "#/$dynamicRef: this keyword"},
      {"{\"not\":{\"$recursiveRef\":\"#\"}}", WICK_E_UNSUPPORTED, "$recursiveRef: this keyword"},
      {"{\"uniqueItems\":true}", WICK_E_UNSUPPORTED, "#/uniqueItems: uniqueItems"},
      {"{\"not\":{\"uniqueItems\":true}}", WICK_E_UNSUPPORTED,
       "#/not/uniqueItems: this keyword below"},
      {"{\"not\":{\"unevaluatedProperties\":false}}", WICK_E_UNSUPPORTED,
       "#/not/unevaluatedProperties: this keyword below"},
      {"{\"not\":{\"unevaluatedItems\":false}}", WICK_E_UNSUPPORTED,
       "#/not/unevaluatedItems: this keyword below"},
      {"{\"uniqueItems\":true,\"contains\":{\"const\":1},\"items\":{\"enum\":[1,2]}}",
       WICK_E_UNSUPPORTED, "#/uniqueItems: uniqueItems together with contains"},
      {"{\"type\":\"object\",\"allOf\":[{\"not\":{\"patternProperties\":{\"a\":false}}},{\"not\":{"
       "\"patternProperties\":{\"b\":false}}},{\"not\":{\"patternProperties\":{\"c\":false}}},{"
       "\"not\":{\"patternProperties\":{\"d\":false}}},{\"not\":{\"patternProperties\":{\"e\":"
       "false}}}]}",
       WICK_E_UNSUPPORTED, "a fifth requirement on a member"},
      {"{\"contains\":{\"const\":1},\"minContains\":2,\"allOf\":[{\"contains\":{\"const\":2},"
       "\"maxContains\":3}]}",
       WICK_E_UNSUPPORTED, "contains: a second contains"},
      {"{\"contains\":{\"const\":1},\"unevaluatedItems\":false}", WICK_E_UNSUPPORTED,
       "#/contains: contains together with unevaluatedItems"},
      {"{\"contains\":{\"const\":1},\"not\":{\"items\":{\"const\":2}},\"allOf\":[{\"contains\":"
       "{\"const\":3}},{\"contains\":{\"const\":4}},{\"contains\":{\"const\":5}}]}",
       WICK_E_UNSUPPORTED, "a fifth requirement on an item"},
      {"{\"contains\":true,\"minContains\":\"x\"}", WICK_E_ARG, "#/minContains: a count"},
      {"{\"contains\":true,\"minContains\":1000,\"minItems\":1000}", WICK_E_UNSUPPORTED,
       "contains with counts this large"},
      {"{\"minProperties\":200000}", WICK_E_UNSUPPORTED, "a number of members this large"},
      {"{\"patternProperties\":{\"0\":{},\"1\":{},\"2\":{},\"3\":{},\"4\":{},\"5\":{},\"6\":{},"
       "\"7\":{},\"8\":{},\"9\":{},\"10\":{},\"11\":{},\"12\":{},\"13\":{},\"14\":{},\"15\":{},"
       "\"16\":{},\"17\":{},\"18\":{},\"19\":{},\"20\":{},\"21\":{},\"22\":{},\"23\":{},\"24\":{},"
       "\"25\":{},\"26\":{},\"27\":{},\"28\":{},\"29\":{},\"30\":{},\"31\":{}}}",
       WICK_E_UNSUPPORTED, "#/patternProperties: more than 31 patterns of names"},
      {"{\"patternProperties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{},\"e\":{},\"f\":{},\"g\":{},"
       "\"h\":{}}}",
       WICK_E_UNSUPPORTED, "schema, #: more than 128 kinds of names by patterns"},
      {"{\"multipleOf\":1e70}", WICK_E_UNSUPPORTED, "the number 1e70 has too many digits"},
  };
  for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
    check_refused(WICK_GRAMMAR_JSON_SCHEMA, BROKEN[i].schema, BROKEN[i].status, BROKEN[i].part);
  }
}

// A schema that refers to itself adds no constraint the second time.
TEST(schemas_may_refer_to_themselves) {
  static const struct {
    const char *schema, *accept, *reject;
  } LOOPS[] = {
      {"{\"type\":\"integer\",\"$ref\":\"#\"}", "1", "1.5"},
      {"{\"allOf\":[{\"$ref\":\"#\"}],\"maxLength\":1}", "\"a\"", "\"ab\""},
      {"{\"type\":\"null\",\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#/anyOf/0\"}]}", "null", "1"},
      {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/"
       "b\",\"minimum\":1},\"b\":{\"$ref\":"
       "\"#/$defs/a\",\"maximum\":1}}}",
       "1", "2"},
  };
  for (size_t i = 0; i < sizeof LOOPS / sizeof *LOOPS; i++) {
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, LOOPS[i].schema, true);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) {
      printf("# %s: %s\n", LOOPS[i].schema, rig.error.message);
    } else {
      CHECK(rig_holds(&rig, LOOPS[i].accept));
      CHECK(!rig_holds(&rig, LOOPS[i].reject));
    }
    rig_close(&rig);
  }
}

// Several items are required: one item may satisfy two requirements, and no further items are
// needed.
TEST(several_requirements_on_items_can_be_combined) {
#define TWO "{\"contains\":{\"minimum\":5},\"allOf\":[{\"contains\":{\"maximum\":5}}]}"
#define COUNTED                                                                     \
  "{\"contains\":{\"const\":1},\"maxContains\":2,\"minItems\":1,\"maxItems\":4,"    \
  "\"not\":{\"items\":{\"type\":\"integer\"}},\"allOf\":[{\"contains\":{\"const\":" \
  "\"a\"}},{\"contains\":{\"const\":null}}]}"
  static const struct {
    const char *schema, *text;
    bool fits;
  } ITEMS[] = {
      {TWO, "[5]", true},
      {TWO, "[4,6]", true},
      {TWO, "[6,0,4,0]", true},
      {TWO, "[4]", false},
      {TWO, "[6,7]", false},
      {TWO, "[]", false},
      {COUNTED, "[1,\"a\",null]", true},
      {COUNTED, "[1,null,\"a\",1]", true},
      {COUNTED, "[\"a\",null]", false},
      {COUNTED, "[1,1,\"a\"]", false},
      {COUNTED, "[1,1,1,\"a\"]", false},
      {COUNTED, "[1,null,2,3]", false},
      {COUNTED, "[1,null,2,3,\"a\"]", false},
  };
  for (size_t i = 0; i < sizeof ITEMS / sizeof *ITEMS; i++) {
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, ITEMS[i].schema, true);
    CHECK_EQ_INT(rig.status, WICK_OK);
    if (!CHECK(rig_holds(&rig, ITEMS[i].text) == ITEMS[i].fits)) printf("# %s\n", ITEMS[i].text);
    rig_close(&rig);
  }
#undef TWO
#undef COUNTED
}

TEST(hostile_grammars_return_a_status) {
  static char text[1 << 16];
  memset(text, '[', sizeof text);
  grammar_rig rig;
  rig_open_text(&rig, WICK_GRAMMAR_JSON_SCHEMA, text, sizeof text, true);
  CHECK_EQ_INT(rig.status, WICK_E_FULL);
  rig_close(&rig);
  memset(text, '(', sizeof text);
  rig_open_text(&rig, WICK_GRAMMAR_REGEX, text, sizeof text, true);
  CHECK_EQ_INT(rig.status, WICK_E_FULL);
  rig_close(&rig);
  check_refused(WICK_GRAMMAR_REGEX, "((a{1000}){1000}){1000}", WICK_E_FULL, "more than");
  check_refused(WICK_GRAMMAR_REGEX, "(a|b)*a(a|b){40}", WICK_E_FULL, "more than");
  // many repetitions need few positions
  rig_open(&rig, WICK_GRAMMAR_GBNF, "root ::= ((((\"a\"{9999}){9999}){9999}){9999})", true);
  CHECK_EQ_INT(rig.status, WICK_OK);
  CHECK(rig.grammar != NULL && rig.grammar->program.place_count < 20000);
  rig_close(&rig);
}

TEST(free_text_is_allowed_around_a_constraint) {
  grammar_rig rig = {0};
  memory_init(&rig.memory, 0, platform_alloc, platform_free);
  const wick_grammar wanted = {.kind = WICK_GRAMMAR_REGEX,
                               .text = "[0-9]+",
                               .text_bytes = 6,
                               .trigger = "<n>",
                               .trigger_bytes = 3,
                               .marker = "</n>",
                               .marker_bytes = 4};
  rig.status = grammar_create(&rig.memory, NULL, &wanted, &rig.grammar, &rig.error);
  if (!CHECK_EQ_INT(rig.status, WICK_OK)) return;
  static const char *const ACCEPT[] = {"", "free <n", "a<n>12</n>b", "<<n>1</n><n>2</n>", NULL};
  static const char *const REJECT[] = {"<n>", "<n>x", "<n>1", "<n>1</n><n>a</n>", NULL};
  check_holds(&rig, ACCEPT, true);
  check_holds(&rig, REJECT, false);
  rig_close(&rig);
}

// Whether the string is free (trigger "c" "d" free)*, by searching for the trigger again at each
// position.
static bool is_free_text(const char *text, const char *trigger) {
  const size_t trigger_bytes = strlen(trigger);
  const char *from = text;
  for (;;) {
    const char *found = strstr(from, trigger);
    if (found == NULL) return true;
    found += trigger_bytes;
    if (found[0] != 'c') return false;
    if (found[1] != 'd') return false;
    from = found + 2;
  }
}

// Uses triggers whose prefixes occur again within them.
TEST(a_trigger_is_found_wherever_it_ends) {
  uint64_t random = 3;
  uint32_t fits = 0, with_trigger = 0;
  for (int round = 0; round < 60; round++) {
    char trigger[8] = "", text[40];
    const size_t trigger_bytes = 1 + (size_t)random_below(&random, 6);
    for (size_t i = 0; i < trigger_bytes; i++) trigger[i] = (char)('a' + random_below(&random, 2));
    const wick_grammar wanted = {.kind = WICK_GRAMMAR_REGEX,
                                 .text = "c",
                                 .text_bytes = 1,
                                 .trigger = trigger,
                                 .trigger_bytes = trigger_bytes,
                                 .marker = "d",
                                 .marker_bytes = 1};
    grammar_rig rig = {0};
    memory_init(&rig.memory, 0, platform_alloc, platform_free);
    rig.status = grammar_create(&rig.memory, NULL, &wanted, &rig.grammar, &rig.error);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) return;
    for (int i = 0; i < 200; i++) {
      size_t size = 0;
      const size_t most = (size_t)random_below(&random, 24);
      while (size < most) {
        text[size++] = (char)('a' + random_below(&random, 2));
        text[size] = '\0';
        const bool ends = size >= trigger_bytes &&
                          memcmp(text + size - trigger_bytes, trigger, trigger_bytes) == 0;
        if (ends && random_below(&random, 8) != 0) text[size++] = 'c';
        if (ends && random_below(&random, 8) != 0) text[size++] = 'd';
      }
      text[size] = '\0';
      const bool is_right = is_free_text(text, trigger);
      if (!CHECK(rig_holds(&rig, text) == is_right)) printf("#   %s: %s\n", trigger, text);
      fits += is_right;
      with_trigger += is_right && strstr(text, trigger) != NULL;
    }
    rig_close(&rig);
  }
  CHECK(fits < 60 * 200 && with_trigger > 1000);
}

// There are two ways for each letter, but their stacks are shared, so the number of stacks does not
// double.
TEST(ambiguous_grammars_take_little_memory) {
  grammar_rig rig;
  rig_open(&rig, WICK_GRAMMAR_GBNF,
           "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"d\"", true);
  if (!CHECK_EQ_INT(rig.status, WICK_OK)) return;
  char text[202];
  memset(text, 'a', 100);
  text[100] = 'd';
  for (int i = 0; i < 100; i++) text[101 + i] = i % 3 == 0 ? 'b' : 'c';
  text[201] = 0;
  CHECK(rig_holds(&rig, text));
  text[200] = 'a';
  CHECK(!rig_holds(&rig, text));
  rig_close(&rig);
}

// Returns how many brackets a string may open.
static uint32_t brackets_of(const char *gbnf) {
  grammar_rig rig;
  grammar_matcher matcher;
  uint32_t count = 0;
  rig_open(&rig, WICK_GRAMMAR_GBNF, gbnf, true);
  if (CHECK_EQ_INT(rig.status, WICK_OK)) {
    matcher_begin(rig.grammar, &matcher);
    while (count < 10000 && matcher_take_bytes(&matcher, (const uint8_t *)"[", 1)) count++;
    matcher_end(&matcher);
  }
  rig_close(&rig);
  return count;
}

// The deepest way counts: in the second and third grammar it is within b, which is one more rule.
TEST(nesting_depth_is_limited) {
  CHECK_EQ_UINT(brackets_of("root ::= \"[\" root \"]\" | \"x\""), MACHINE_DEPTH_MAX - 2);
  CHECK_EQ_UINT(brackets_of("root ::= a\na ::= \"[\" a \"]\" | b | \"x\"\nb ::= \"[\" b | \"y\""),
                MACHINE_DEPTH_MAX - 3);
  CHECK_EQ_UINT(brackets_of("root ::= a\na ::= b | \"[\" a \"]\" | \"x\"\nb ::= \"[\" b | \"y\""),
                MACHINE_DEPTH_MAX - 3);
}

// If any number of plain characters may follow, more than a token has, masks are known immediately.
TEST(positions_report_how_many_plain_characters_may_follow) {
  static const struct {
    const char *schema, *text;
    uint32_t least, most;
  } PLACES[] = {
      {"{\"type\":\"string\"}", "\"", 255, 255},
      {"{\"pattern\":\"a\"}", "\"x", 255, 255},
      {"{\"pattern\":\"^a\"}", "\"", 0, 0},
      {"{\"pattern\":\"^a\"}", "\"a", 255, 255},
      {"{\"pattern\":\"^[^b]*$\"}", "\"a", 0, 0},
      {"{\"pattern\":\"^a[^b]|^[bc]{3,}\"}", "\"a", 0, 0},
      {"{\"pattern\":\"^a[^b]|^[bc]{3,}\"}", "\"ac", 255, 255},
      {"{\"pattern\":\"^a[^b]|^[bc]{3,}\"}", "\"bc", 0, 0},
      {"{\"enum\":[\"abc\"]}", "\"a", 0, 0},
      {"{\"type\":\"string\",\"maxLength\":5}", "\"", 5, 5},
      {"{\"type\":\"string\",\"maxLength\":5}", "\"ab", 3, 3},
      {"{\"type\":\"string\",\"maxLength\":5}", "\"abcde", 0, 0},
      {"{\"type\":\"string\",\"minLength\":3}", "\"", 3, 255},
      {"{\"type\":\"string\",\"maxLength\":1000}", "\"", 12, 255},
      {"{\"type\":\"integer\"}", "1", 0, 0},
  };
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
    grammar_rig rig;
    grammar_matcher matcher;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, PLACES[i].schema, false);
    REQUIRE(rig.status == WICK_OK);
    matcher_begin(rig.grammar, &matcher);
    CHECK(matcher_take_bytes(&matcher, (const uint8_t *)PLACES[i].text, strlen(PLACES[i].text)));
    const uint32_t plain = machine_plain(rig.grammar->machine, matcher.mark.state);
    if (!CHECK(plain >= PLACES[i].least && plain <= PLACES[i].most)) {
      printf("# %s after %s: %u\n", PLACES[i].schema, PLACES[i].text, plain);
    }
    matcher_end(&matcher);
    rig_close(&rig);
  }
}

// The strings need more states than the machine has at once.
TEST(long_strings_are_matched_with_state_collection) {
  grammar_rig rig;
  rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA,
           "{\"maxItems\": 100000, \"items\": {\"type\": \"integer\"}}", true);
  if (!CHECK_EQ_INT(rig.status, WICK_OK)) return;
  grammar_matcher matcher;
  matcher_begin(rig.grammar, &matcher);
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)"[0", 2));
  bool fits = true;
  for (uint32_t i = 1; i < 100000 && fits; i++) {
    fits = matcher_take_bytes(&matcher, (const uint8_t *)",7", 2);
  }
  CHECK(fits);
  CHECK(machine_generation(rig.grammar->machine) > 0);
  CHECK(!matcher_take_bytes(&matcher, (const uint8_t *)",7", 2));
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)"]", 1));
  CHECK(matcher_accepts(&matcher));
  matcher_end(&matcher);
  rig_close(&rig);
}

// Lets every `step`-th allocation of a grammar fail.
static void check_without_memory(const grammar_case *one, uint64_t step) {
  const wick_grammar wanted = {.kind = one->kind,
                               .text = one->text,
                               .text_bytes = strlen(one->text),
                               .any_spelling = one->any};
  for (uint64_t call = 1; call < 2000; call += step) {
    grammar_rig rig = {0};
    memory_init(&rig.memory, 0, platform_alloc, platform_free);
    rig.memory.fail_at_call = call;
    rig.status = grammar_create(&rig.memory, NULL, &wanted, &rig.grammar, &rig.error);
    const bool is_done = rig.status == WICK_OK;
    CHECK_EQ_INT(rig.status, rig.memory.calls < call ? WICK_OK : WICK_E_NOMEM);
    CHECK_EQ_INT(rig.error.status, rig.status);
    CHECK(is_done == (rig.error.message[0] == 0) && is_done == (rig.grammar != NULL));
    if (is_done) {
      check_holds(&rig, one->accept, true);
      check_holds(&rig, one->reject, false);
    }
    rig_close(&rig);
    if (is_done) return;
  }
  printf("# %s\n", one->text);
  CHECK(false);
}

TEST(an_allocation_failure_returns_a_status) {
  static const grammar_case MORE = {
      WICK_GRAMMAR_JSON_SCHEMA,
      false,
      "{\"properties\":{\"a\":{\"pattern\":\"^x+$\"},\"b\":{\"items\":{\"minimum\":1}}}}",
      {"{\"a\": \"xx\", \"b\": [1, 2]}"},
      {"{\"a\": \"xy\"}"}};
  check_without_memory(&MORE, 1);
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
    check_without_memory(&CASES[i], 5 * level_step(5));
}
