// Replies whose content is constrained by a grammar: the content begins after the reasoning, may
// be an alternative to tool calls, and is parsed unchanged.
#include "hold_rig.h"

#define CALL(city) \
  "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"" city "\"}}\n</tool_call>"

typedef struct content_case {
  const char *text;
  bool fits;
  const char *content;  // parsed content; NULL: none
} content_case;

static const char TOOLS_MEMBER[] = "\"tools\":", CHOICE_MEMBER[] = ",\"tool_choice\":",
                  KIND_MEMBER[] = "\"kind\":";

// `wanted` has the members of the GRAMMAR_REPLY object except for the ending.
static grammar *open_wanted(reply_rig *rig, const char *template_text, const char *ending,
                            const char *wanted) {
  const char *tools = strstr(wanted, TOOLS_MEMBER), *kind = strstr(wanted, KIND_MEMBER);
  const char *list = tools == NULL ? NULL : tools + strlen(TOOLS_MEMBER);
  const size_t list_bytes = list == NULL ? 0 : (size_t)(strstr(list, CHOICE_MEMBER) - list);
  rig_open(rig, template_text, strlen(template_text), list, list_bytes, ending);
  rig->has_begun = strstr(wanted, "\"has_begun\":true") != NULL;
  if (kind != NULL) rig->wanted = (wick_grammar_kind)(kind[strlen(KIND_MEMBER)] - '0');
  const wick_grammar how = hold_rig_grammar(rig, wanted, strlen(wanted));
  grammar *made = NULL;
  rig->status = grammar_create(&rig->memory, NULL, &how, &made, &rig->error);
  return made;
}

static void check_contents(const char *template_text, const char *ending, const char *wanted,
                           const content_case *cases, size_t count) {
  static reply_rig rig;
  grammar *made = open_wanted(&rig, template_text, ending, wanted);
  if (!CHECK(made != NULL)) printf("# %s\n", rig.error.message);
  for (size_t i = 0; i < count && made != NULL; i++) {
    const size_t size = strlen(cases[i].text);
    const bool fits = holds(made, cases[i].text, size);
    if (!CHECK(fits == cases[i].fits)) printf("# %s: %s\n", ending, cases[i].text);
    if (!fits) continue;
    for (size_t piece = 0; piece < 4; piece++) {
      rig_parse(&rig, cases[i].text, size, piece, 0);
      CHECK_EQ_INT(rig.status, WICK_OK);
      const char *wanted_text = cases[i].content == NULL ? "" : cases[i].content;
      CHECK(rig.content.size_bytes == strlen(wanted_text) &&
            memcmp(rig.content.bytes, wanted_text, rig.content.size_bytes) == 0);
      CHECK((rig.call_count == 0) == (cases[i].content != NULL));
    }
  }
  grammar_destroy(made);
  rig_close(&rig);
}

#define CHECK_CONTENTS(template_text, ending, wanted, cases) \
  check_contents(template_text, ending, wanted, cases, sizeof(cases) / sizeof(cases)[0])

#define CONTENT(kind, text) \
  "\"has_begun\":false,\"content\":{\"kind\":" #kind ",\"text\":\"" text "\"}"
#define BEGUN(kind, text) \
  "\"has_begun\":true,\"content\":{\"kind\":" #kind ",\"text\":\"" text "\"}"
#define RECORD                                                                                 \
  "{\\\"type\\\":\\\"object\\\",\\\"properties\\\":{\\\"a\\\":{\\\"type\\\":\\\"string\\\"}}," \
  "\\\"required\\\":[\\\"a\\\"]}"
#define TOOLS_OF(choice)                                                                         \
  ",\"tools\":[{\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\","         \
  "\"properties\":{\"city\":{\"type\":\"string\",\"maxLength\":4}},\"required\":[\"city\"]}}}]," \
  "\"tool_choice\":" choice
static const char THINKING[] = "<tool_call> <think>";

TEST(the_content_constraint_starts_after_the_reasoning) {
  static const content_case OPENED[] = {
      {"hm {\"a\": 5}</think>\n\n{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"</think>{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"hm</think>\n\n\n{\"a\": \"x\"}", false, NULL},
      {"hm</think>Well: {\"a\": \"x\"}", false, NULL},
      {"{\"a\": \"x\"}", false, NULL},
      {"hm</think>{\"a\": \"<think>y</think><tool_call>\"}", true,
       "{\"a\": \"<think>y</think><tool_call>\"}"},
      {"hm</think>{\"a\": \"x\"} ", false, NULL},
  };
  static const content_case OPEN[] = {
      {"{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"<think>hm</think>{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"{\"a\": \"<think>\"}", true, "{\"a\": \"<think>\"}"},
      {"\n<think>hm</think>\n{\"a\": \"</think><think>\"}", true, "{\"a\": \"</think><think>\"}"},
      {"<think>hm", false, NULL},
  };
  static const content_case PREFIXED[] = {
      {"{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"<think>hm</think>{\"a\": \"x\"}", false, NULL},
  };
  static const content_case WORDS[] = {{"hm</think> yes", true, " yes"},
                                       {"hm</think>no", true, "no"},
                                       {"hm</think>\n\nno", false, NULL},
                                       {"hm</think>", false, NULL}};
  CHECK_CONTENTS(THINKING, "<think>\n", CONTENT(2, RECORD), OPENED);
  CHECK_CONTENTS(THINKING, "", CONTENT(2, RECORD), OPEN);
  CHECK_CONTENTS(THINKING, "Here it is: ", BEGUN(2, RECORD), PREFIXED);
  CHECK_CONTENTS(THINKING, "<think>\nLet me", BEGUN(2, RECORD), OPENED);
  CHECK_CONTENTS(THINKING, "<think>\n", CONTENT(4, "[\\\" yes\\\",\\\"no\\\"]"), WORDS);
  CHECK_CONTENTS(THINKING, "<think>\n", CONTENT(3, " yes|no"), WORDS);
  CHECK_CONTENTS(THINKING, "<think>\n", CONTENT(1, "root ::= \\\" yes\\\" | \\\"no\\\""), WORDS);
}

TEST(a_reply_is_constrained_content_or_tool_calls) {
  static const content_case AUTO[] = {
      {"{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"<think>hm</think>\n{\"a\": \"<tool_call>{\"}", true, "{\"a\": \"<tool_call>{\"}"},
      {CALL("Oslo"), true, NULL},
      {"<think>hm</think>\n" CALL("Oslo") "\n" CALL("Rome"), true, NULL},
      {CALL("Lisbon"), false, NULL},
      {"Hi. " CALL("Oslo"), false, NULL},
      {CALL("Oslo") "{\"a\": \"x\"}", false, NULL},
      {"{\"a\": 5}", false, NULL},
  };
  static const content_case REQUIRED[] = {{"{\"a\": \"x\"}", false, NULL},
                                          {"<think>hm</think>" CALL("Oslo"), true, NULL}};
  CHECK_CONTENTS(THINKING, "", CONTENT(2, RECORD) TOOLS_OF("\"auto\""), AUTO);
  CHECK_CONTENTS(THINKING, "", CONTENT(2, RECORD) TOOLS_OF("\"required\""), REQUIRED);
  CHECK_CONTENTS(THINKING, "", CONTENT(2, RECORD) TOOLS_OF("{\"function\":{\"name\":\"weather\"}}"),
                 REQUIRED);
  // calls without a marker: a JSON object of a different shape is content
  static const content_case BARE[] = {
      {"{\"a\": \"x\"}", true, "{\"a\": \"x\"}"},
      {"{\"a\": \"x\", \"name\": \"weather\"}", true, "{\"a\": \"x\", \"name\": \"weather\"}"},
      {"{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}", true, NULL},
      {"{\"name\": \"weather\", \"parameters\": {\"city\": \"Lisbon\"}}", false, NULL},
  };
#define NAMED                                                                                 \
  "{\\\"type\\\":\\\"object\\\",\\\"properties\\\":{\\\"a\\\":{\\\"type\\\":\\\"string\\\"}," \
  "\\\"name\\\":{\\\"type\\\":\\\"string\\\"}},\\\"required\\\":[\\\"a\\\"]}"
  CHECK_CONTENTS("\"parameters\": dictionary", "", CONTENT(2, NAMED) TOOLS_OF("\"auto\""), BARE);
  // so is an object that differs from a call only in its white space
  static const content_case SPACED[] = {
      {"{ \"name\":\"weather\", \"parameters\": {}}", true,
       "{ \"name\":\"weather\", \"parameters\": {}}"},
      {"{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}", true, NULL},
  };
#define SPACED_CALL "[{] \\\"name\\\":\\\"weather\\\", \\\"parameters\\\": [{][}][}]"
  CHECK_CONTENTS("\"parameters\": dictionary", "", CONTENT(3, SPACED_CALL) TOOLS_OF("\"auto\""),
                 SPACED);
  // a template without a known format gets the first one
  static const content_case UNKNOWN[] = {
      {"{\"a\": \"x\", \"name\": \"weather\"}", true, "{\"a\": \"x\", \"name\": \"weather\"}"},
      {CALL("Oslo"), true, NULL},
      {"{\"name\": \"weather\", \"arguments\": {}}", false, NULL},
  };
  CHECK_CONTENTS("x", "", CONTENT(2, NAMED) TOOLS_OF("\"auto\""), UNKNOWN);
}

TEST(calls_after_a_given_reply_prefix_are_constrained) {
  static const content_case AUTO[] = {
      {"he says: ", true, "he says: "},
      {"<think>hm", true, "<think>hm"},
      {CALL("Oslo"), true, NULL},
      {CALL("Lisbon"), false, NULL},
      {"{\"name\": \"weather\", \"parameters\": 5}", true,
       "{\"name\": \"weather\", \"parameters\": 5}"},
  };
  static const content_case REQUIRED[] = {{"\n" CALL("Oslo"), true, NULL},
                                          {"so " CALL("Oslo"), false, NULL},
                                          {"<think>hm</think>" CALL("Oslo"), false, NULL}};
  CHECK_CONTENTS("<tool_call> \"parameters\": dictionary", "Well, ",
                 "\"has_begun\":true" TOOLS_OF("\"auto\""), AUTO);
  CHECK_CONTENTS("<tool_call> <think>", "Well, ", "\"has_begun\":true" TOOLS_OF("\"required\""),
                 REQUIRED);
}

TEST(constrained_content_is_written_in_the_final_channel) {
#define MESSAGE(channel, text) "<|channel|>" channel "<|message|>" text
#define NEXT "<|start|>assistant"
#define CALLS NEXT "<|channel|>commentary to=functions.weather<|message|>{\"city\": \"Oslo\"}"
  static const content_case CASES[] = {
      {MESSAGE("final", "{\"a\": \"x\"}"), true, "{\"a\": \"x\"}"},
      {MESSAGE("final", "Hi."), false, NULL},
      {MESSAGE("analysis", "Hm.<|end|>") NEXT MESSAGE("final", "{\"a\": \"<|end|>\"}"), true,
       "{\"a\": \"<|end|>\"}"},
      {MESSAGE("analysis", "Hm."), false, NULL},
      {MESSAGE("commentary", "Hm.<|end|>") NEXT MESSAGE("final", "{\"a\": \"x\"}"), false, NULL},
      {MESSAGE("analysis", "Hm.<|end|>") CALLS, true, NULL},
      {"{\"a\": \"x\"}", false, NULL},
  };
  static const content_case BEGUN_ONES[] = {{"{\"a\": \"x\"}", true, "{\"a\": \"x\"}"}};
  CHECK_CONTENTS("<|message|>", NEXT, CONTENT(2, RECORD) TOOLS_OF("\"auto\""), CASES);
  CHECK_CONTENTS("<|message|>", NEXT MESSAGE("final", "So: "), BEGUN(2, RECORD), BEGUN_ONES);
#undef MESSAGE
#undef NEXT
#undef CALLS
}

TEST(ambiguous_content_constraints_are_rejected) {
  static const struct {
    const char *template_text, *wanted;
    wick_status status;
    const char *named;
  } CASES[] = {
      {"<think>", CONTENT(3, "<think>.*"), WICK_E_UNSUPPORTED, "<think>"},
      {"<think>", CONTENT(3, "x<think>.*"), WICK_OK, NULL},
      {"<tool_call>", CONTENT(3, "<tool.*") TOOLS_OF("\"auto\""), WICK_E_UNSUPPORTED,
       "<tool_call>"},
      {"<tool_call>", CONTENT(3, "[a-z].*") TOOLS_OF("\"auto\""), WICK_OK, NULL},
      {"\"parameters\": dictionary",
       CONTENT(2, "{\\\"type\\\":\\\"object\\\"}") TOOLS_OF("\"auto\""), WICK_E_UNSUPPORTED,
       "{\"name\": \"weather\""},
      {"<tool_call>", CONTENT(2, "{\\\"type\\\":\\\"object\\\"}") TOOLS_OF("\"auto\""), WICK_OK,
       NULL},
      {"<think>", CONTENT(2, "{\\\"type\\\":\\\"thing\\\"}"), WICK_E_ARG, "unknown type"},
      {"<think>", CONTENT(9, "x"), WICK_E_ARG, "kind 9"},
      {"<think>", CONTENT(1, "root ::= x"), WICK_E_ARG, "x"},
  };
  static reply_rig rig;
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    grammar *made = open_wanted(&rig, CASES[i].template_text, "", CASES[i].wanted);
    if (!CHECK_EQ_INT(rig.status, CASES[i].status)) printf("# %s\n", CASES[i].wanted);
    if (CASES[i].named != NULL && !CHECK(strstr(rig.error.message, CASES[i].named) != NULL)) {
      printf("# %s\n", rig.error.message);
    }
    grammar_destroy(made);
    rig_close(&rig);
  }
}

// Formats that are not in the template, or whose marker is an ordinary word: whatever the parser
// reads as a call must be a valid call of a tool, and everything else is content.
TEST(calls_without_distinct_markers_are_constrained) {
#define HELD "\"has_begun\":false" TOOLS_OF("\"auto\"")
  static const content_case UNKNOWN[] = {
      {"{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}", true, NULL},
      {"{ \"name\":\"weather\", \"arguments\": {\"city\": \"Oslo\"}}", true, NULL},
      {"{\"name\":\n\"weather\", \"arguments\": {\"city\": \"Bergen\"}}", false, NULL},
      {"[{\"name\": \"weather\", \"arguments\": {\"city\": 5}}]", false, NULL},
      {"{\"name\": \"weather\"}", false, NULL},
      {"{\"name\" : \"weather\"}", true, "{\"name\" : \"weather\"}"},
      {"{\"name\": \"we\\u0061ther\"}", true, "{\"name\": \"we\\u0061ther\"}"},
      {"{\"name\": \"Ada\", \"arguments\": {}}", true, "{\"name\": \"Ada\", \"arguments\": {}}"},
      {"{\"a\": 1, \"name\": \"weather\", \"arguments\": {}}", true,
       "{\"a\": 1, \"name\": \"weather\", \"arguments\": {}}"},
      {"{\"arguments\": {\"city\": 5}, \"name\": \"weather\"}", true,
       "{\"arguments\": {\"city\": 5}, \"name\": \"weather\"}"},
      {"{\"function\": {\"name\": \"weather\"}}", true, "{\"function\": {\"name\": \"weather\"}}"},
      {"[weather(city=\"Oslo\")]", true, NULL},
      {"[weather(city=5)]", false, NULL},
      {"[weather (city=5)]", true, "[weather (city=5)]"},
      {"[1, 2]", true, "[1, 2]"},
  };
  CHECK_CONTENTS("x", "", HELD, UNKNOWN);
#define ACTION(calls) "\n```json\n[" calls "\n]```"
#define TO_WEATHER(city) "{\"tool_name\": \"weather\", \"parameters\": {\"city\": " city "}}"
  static const content_case ACTIONS[] = {
      {"Action:" ACTION(TO_WEATHER("\"Oslo\"")), true, NULL},
      {"So. Action:" ACTION(TO_WEATHER("5")), false, NULL},
      {"Action: ```json\n[" TO_WEATHER("\"Bergen\"") "]```", false, NULL},
      {"Action:" ACTION("5"), false, NULL},
      {"Action:\n\n```json [" TO_WEATHER("5") "]```", true,
       "Action:\n\n```json [" TO_WEATHER("5") "]```"},
      {"Action:\n```json\n[{\"tool_name\": \"directly-answer\", \"parameters\": {}}]\n```\nHi.",
       true, "Hi."},
      {"Action: go on.", true, "Action: go on."},
  };
  CHECK_CONTENTS("Action:\\n```json", "", HELD, ACTIONS);
#undef HELD
#undef ACTION
#undef TO_WEATHER
}
