// Parsing of model replies: each kind of format, markers split at every byte, text that only looks
// like a call, hostile input, limits, and allocation failures.
#include <stdlib.h>

#include "random.h"
#include "reply_rig.h"

#define TOOLS                                                                                 \
  "[{\"type\": \"function\", \"function\": {\"name\": \"get\", \"parameters\": {\"$defs\": "  \
  "{\"count\": {\"type\": \"integer\"}, \"row\": {\"properties\": {\"code\": {\"type\": "     \
  "\"string\"}}}}, \"properties\": {\"city\": {\"type\": \"string\"}, "                       \
  "\"days\": {\"$ref\": \"#/$defs/count\"}, \"exact\": {\"type\": [\"boolean\", \"null\"]}, " \
  "\"either\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"number\"}]}, "               \
  "\"unit\": {\"enum\": [\"1\", \"2\"]}, \"any\": {}, \"list\": {\"type\": \"array\"}, "      \
  "\"rows\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/row\"}}}}}}, "             \
  "{\"name\": \"ping\"}]"

typedef struct expected {
  const char *content, *reasoning, *name,
      *arguments;  // name and arguments of the first call; NULL: none
  wick_status status;
} expected;

static void begin(reply_rig *rig, const char *template_text, const char *prompt) {
  rig_open(rig, template_text, strlen(template_text), TOOLS, strlen(TOOLS), prompt);
  CHECK_EQ_INT(rig->status, WICK_OK);
}

static bool is_as_expected(const reply_rig *rig, const expected *wanted) {
  const bool has_call = wanted->name != NULL;
  return rig->is_valid && rig->is_text && rig->status == wanted->status &&
         strcmp(rig->content.bytes, wanted->content) == 0 &&
         strcmp(rig->reasoning.bytes, wanted->reasoning == NULL ? "" : wanted->reasoning) == 0 &&
         (rig->call_count > 0) == has_call &&
         (!has_call || (strcmp(rig->calls[0].name.bytes, wanted->name) == 0 &&
                        strcmp(rig->calls[0].arguments.bytes, wanted->arguments) == 0));
}

// Parses the text whole, byte by byte, and split in two at every byte; the rig stays open.
static void check_parse(reply_rig *rig, const char *text, expected wanted) {
  const size_t size = strlen(text);
  for (size_t cut = 0; cut <= size; cut++) {
    rig_parse(rig, text, size, cut, cut == size ? 1 : 0);
    if (cut == size) rig_parse(rig, text, size, 1, 1);
    // pieces may end within a character, but emitted text only does at the end
    if (CHECK(is_as_expected(rig, &wanted))) continue;
    printf("# %s (cut at %zu)\n#   status %d, content '%s', reasoning '%s', %u calls: %s %s\n",
           text, cut, (int)rig->status, rig->content.bytes, rig->reasoning.bytes, rig->call_count,
           rig->calls[0].name.bytes, rig->calls[0].arguments.bytes);
    return;
  }
}

static void check_reply(const char *template_text, const char *prompt, const char *text,
                        expected wanted) {
  static reply_rig rig;
  begin(&rig, template_text, prompt);
  check_parse(&rig, text, wanted);
  rig_close(&rig);
}

static void check_call(const char *template_text, const char *text, const char *name,
                       const char *arguments) {
  check_reply(template_text, "", text, (expected){"", NULL, name, arguments, WICK_OK});
}

static void check_content(const char *template_text, const char *text) {
  check_reply(template_text, "", text, (expected){text, NULL, NULL, NULL, WICK_OK});
}

// ---- text and reasoning ----

TEST(text_without_markers_is_returned_unchanged) {
  check_content("", "");
  check_content("", " \n Hello \n\n world é😀 \n");
  check_content("<tool_call>", "a < b, a <tool b, <tool_cal> <<<tool_call.");
  check_content("<tool_call>", "Vitamin A");
  check_content("<tool_call>", "It is 1 <");
}

// If the whole reply is an object with a tool's name and arguments, it is a call.
TEST(a_reply_that_is_a_single_call_without_markers_is_a_call) {
#define CALL "{\"name\": \"get\", \"arguments\": {\"city\": \"Oslo\"}}"
#define ARGUMENTS "{\"city\": \"Oslo\"}"
  static const char *const CALLS[] = {
      CALL,
      " \n" CALL "\n ",
      "```json\n" CALL "\n```",
      "```json" CALL "```\n",
      "```\n" CALL "\n```",
      "{\"arguments\":" ARGUMENTS ",\"name\":\"get\"}",
      "{\"name\": \"get\", \"parameters\": " ARGUMENTS "}",
      "{\"type\": \"function\", \"function\": " CALL "}",
      "{\"name\": \"get\", \"arguments\": \"{\\\"city\\\": \\\"Oslo\\\"}\"}",
  };
  static const char *const TEXTS[] = {
      CALL " and more",
      "So: " CALL,
      CALL CALL,
      "[" CALL "]",
      "```json\n" CALL "\n``` It is called.",
      "```json\n" CALL,
      "```python\n" CALL "\n```",
      "`" CALL "`",
      "{\"name\": \"got\", \"arguments\": {}}",
      "{\"name\": \"get\"}",
      "{\"name\": \"get\", \"city\": \"Oslo\"}",
      "{\"name\": \"get\", \"arguments\": 5}",
      "{\"city\": \"Oslo\", \"name\": \"get\", \"arguments\": {}}",
      "{\"name\": \"get\", \"arguments\": {\"city\"",
      "{}",
      "{",
      "``",
  };
  for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
    check_call("<tool_call>", CALLS[i], "get", ARGUMENTS);
  }
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
    check_content("<tool_call>", TEXTS[i]);
  }
  check_reply("<tool_call> <think>", "<think>", "Hm.</think>\n" CALL,
              (expected){"", "Hm.", "get", ARGUMENTS, WICK_OK});
  static reply_rig rig;
  rig_open(&rig, "<tool_call>", 11, NULL, 0, "");
  check_parse(&rig, CALL, (expected){CALL, NULL, NULL, NULL, WICK_OK});
  rig_close(&rig);
#undef CALL
}

// A call ends reasoning that is never closed; in closed reasoning it is only text.
TEST(a_call_within_unclosed_reasoning_is_a_call) {
#define CALL "<tool_call>\n{\"name\": \"get\", \"arguments\": " ARGUMENTS "}\n</tool_call>"
#define OTHER "<tool_call>{\"name\": \"got\", \"arguments\": {}}</tool_call>"
  static const char SOURCE[] = "<tool_call> <think>";
  const expected called = {"", "Hm.", "get", ARGUMENTS, WICK_OK};
  check_reply(SOURCE, "<think>\n", "Hm.\n" CALL, called);
  check_reply(SOURCE, "", "<think>\nHm.\n" CALL "\n", called);
  check_reply(SOURCE, "<think>\n", "Hm.\n" CALL "\nDone.",
              (expected){"Done.", "Hm.", "get", ARGUMENTS, WICK_OK});
  check_reply(SOURCE, "<think>\n", "Hm. " CALL "\n</think>\nDone.",
              (expected){"Done.", "Hm. " CALL, NULL, NULL, WICK_OK});
  check_reply(SOURCE, "<think>\n", "Hm. " OTHER, (expected){"", "Hm. " OTHER, NULL, NULL, WICK_OK});
  check_reply(SOURCE, "<think>\n", "Hm. " OTHER " " CALL,
              (expected){"", "Hm. " OTHER, "get", ARGUMENTS, WICK_OK});
  check_reply(SOURCE, "<think>\n", "I could write <tool_call> here.",
              (expected){"", "I could write <tool_call> here.", NULL, NULL, WICK_OK});
  check_reply(SOURCE, "<think>\n", "Hm.\n<tool_call>{\"name\": \"get\", \"arguments\": {\"city\"",
              (expected){"", "Hm.", "get", "{\"city\"", WICK_E_TRUNCATED});
  check_reply("[THINK] [ARGS]", "", "[THINK]Hm.[TOOL_CALLS]get[ARGS]" ARGUMENTS, called);
#undef CALL
#undef OTHER
#undef ARGUMENTS
}

// Tests markers in places where no call in the format table has them.
TEST(call_markers_are_not_content) {
#define PARAMETER "<parameter=city>\nOslo\n</parameter>\n"
  static const char ARGUMENTS[] = "{\"city\": \"Oslo\"}";
  check_call("<parameter=", "<function=get>\n" PARAMETER "</function>\n</tool_call>", "get",
             ARGUMENTS);
  check_reply(">>>all", ">>>", "all\nHello.", (expected){"Hello.", NULL, NULL, NULL, WICK_OK});
  check_reply(">>>all", "", "all\nHello.", (expected){"Hello.", NULL, NULL, NULL, WICK_OK});
  check_reply(">>>all", "", "Hello all.", (expected){"Hello all.", NULL, NULL, NULL, WICK_OK});
  check_reply(">>>all", "", "get\n{\"city\": \"Oslo\"}",
              (expected){"", NULL, "get", ARGUMENTS, WICK_OK});
  check_reply(">>>all", "", "all\nHello.\n>>>get\n{\"city\": \"Oslo\"}",
              (expected){"Hello.", NULL, "get", ARGUMENTS, WICK_OK});
  static const char *const CUT[] = {
      "<", "<tool_", "<tool_call>", "<tool_call>\n<function=", "<function", "<function=ge"};
  for (size_t i = 0; i < sizeof CUT / sizeof *CUT; i++) {
    check_reply("<parameter=", "", CUT[i], (expected){"", NULL, NULL, NULL, WICK_OK});
  }
#undef PARAMETER
}

TEST(semicolons_between_llama_calls_are_not_content) {
#define ONE "{\"name\": \"get\", \"parameters\": {\"a\": 1}}"
  static const char SOURCE[] = "\"parameters\": dictionary";
  static const char *const TEXTS[] = {ONE "; " ONE, ONE ";" ONE, ONE "\n;\n" ONE ";", ONE "\n" ONE};
  static reply_rig rig;
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
    begin(&rig, SOURCE, "");
    check_parse(&rig, TEXTS[i], (expected){"", NULL, "get", "{\"a\": 1}", WICK_OK});
    CHECK_EQ_UINT(rig.call_count, 2);
    rig_close(&rig);
  }
  check_reply(SOURCE, "", ONE "; and more",
              (expected){"and more", NULL, "get", "{\"a\": 1}", WICK_OK});
  check_content(SOURCE, "; text");
#undef ONE
}

TEST(separates_reasoning_from_content) {
  const expected both = {"Yes.", "Hm.\nSo", NULL, NULL, WICK_OK};
  check_reply("", "", "<think>\nHm.\nSo\n</think>\n\nYes.", both);
  check_reply("", "<|im_start|>assistant\n<think>\n", "Hm.\nSo\n</think>\n\nYes.", both);
  check_reply("[THINK]", "", "[THINK]Hm.\nSo[/THINK]Yes.", both);
  check_reply("<|channel>thought", "", "<|channel>thought\nHm.\nSo<channel|>Yes.", both);
  check_reply("", "<think>\n\n</think>\n\n", "Yes.", (expected){"Yes.", NULL, NULL, NULL, WICK_OK});
  check_reply("", "<think>", "Hm.", (expected){"", "Hm.", NULL, NULL, WICK_OK});
  check_reply("", "<think>", "</think>", (expected){"", "", NULL, NULL, WICK_OK});
  check_reply("[BEGIN FINAL RESPONSE]", "Here are my reasoning steps:\n",
              "Hm.\nSo\n[BEGIN FINAL RESPONSE]\nYes.", both);
}

TEST(keeps_a_tag_in_the_middle_of_content) {
  check_content("", "The tag <think> opens a thought.");
}

TEST(reasoning_may_continue_after_a_call) {
  check_reply("<tool_call>", "",
              "<think>A</think><tool_call>{\"name\": \"ping\"}</tool_call>\n<think>B</think>\nC",
              (expected){"C", "AB", "ping", "{}", WICK_OK});
}

TEST(reasoning_and_content_may_follow_a_call) {
  check_reply("<tool_call>", "",
              "Look<tool_call>{\"name\": \"ping\"}</tool_call>\n <think>B</think>\nC",
              (expected){"LookC", "B", "ping", "{}", WICK_OK});
  check_reply("<tool_call>", "", "Look<tool_call>{\"name\": \"ping\"}</tool_call>\n there",
              (expected){"Lookthere", NULL, "ping", "{}", WICK_OK});
}

// ---- calls ----

// Checks that after this much text, the call is reported with the arguments so far.
static void check_early(const char *template_text, const char *text, const char *name,
                        const char *arguments) {
  static reply_rig rig;
  reply_parser *parser = NULL;
  begin(&rig, template_text, "");
  rig.is_valid = rig.is_text = true;
  REQUIRE(rig_parser(&rig, "", &parser) == WICK_OK);
  CHECK_EQ_INT(reply_parser_feed(parser, text, strlen(text), rig_take, &rig, &rig.error), WICK_OK);
  CHECK_EQ_UINT(rig.call_count, name == NULL ? 0 : 1);
  CHECK_EQ_STR(rig.calls[0].name.bytes, name == NULL ? "" : name);
  CHECK_EQ_STR(rig.calls[0].arguments.bytes, arguments);
  CHECK(rig.is_valid && rig.is_text && !rig.calls[0].has_ended);
  reply_parser_destroy(parser);
  rig_close(&rig);
}

TEST(reports_calls_as_soon_as_they_are_known) {
  check_early("<tool_call>", "<tool_call>{\"name\": \"g\", \"arguments\":", NULL, "");
  check_early("<tool_call>", "<tool_call>{\"name\": \"g\", \"arguments\": {", "g", "{");
  check_early("<tool_call>", "<tool_call>{\"name\": \"get\", \"arguments\": {\"a", "get", "{\"a");
  check_early("<tool_call>", "<tool_call>{\"name\": \"get\", \"arguments\": \"{\\\"a", "get",
              "{\"a");
  check_early("<tool_call>", "<tool_call>{\"arguments\": {\"a\": 1}", NULL, "");
  check_early("[ARGS]", "[TOOL_CALLS]g[ARGS]{\"a", "g", "{\"a");
  check_early("<function=", "<function=g>{\"a", "g", "{\"a");
}

TEST(reads_json_calls) {
  const char *const family = "<tool_call>";
  check_call(family, "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": [1, {}]}}</tool_call>",
             "get", "{\"a\": [1, {}]}");
  check_call(family, "<tool_call>\n{\"arguments\": {\"a\": \"}\\\"\"} , \"name\": \"g\\u0065t\"}",
             "get", "{\"a\": \"}\\\"\"}");
  check_call(family, "<tool_call>{\"name\": \"ping\"}</tool_call>", "ping", "{}");
  check_call(family,
             "<tool_call>{\"name\": \"get\", \"arguments\": \"{\\\"a\\\": \\\"\\\\u00e9\\\"}\"}",
             "get", "{\"a\": \"\\u00e9\"}");
  check_call(family,
             "<tool_call>{\"arguments\": \"{\\\"a\\\": 1}\", \"name\": \"get\"}</tool_call>", "get",
             "{\"a\": 1}");
  check_call(family,
             "<tool_call>[{\"id\": 7, \"type\": \"function\", \"function\": {\"name\": \"get\", "
             "\"parameters\": {}}}]</tool_call>",
             "get", "{}");
}

// Arguments in a JSON string, with every escaped form of characters and white space around them.
TEST(reads_arguments_in_a_string) {
  static const char *const TEXTS[][2] = {
      {"{\\\"a\\\": \\\"\\u00e9\\\"}", "{\"a\": \"\xc3\xa9\"}"},
      {"{\\\"a\\\": \\\"\\u20ac\\ud83d\\ude00!\\\"}", "{\"a\": \"\xe2\x82\xac\xf0\x9f\x98\x80!\"}"},
      {"{\\\"\\u00e9\\\": {\\\"b\\\": [1, 2]}}", "{\"\xc3\xa9\": {\"b\": [1, 2]}}"},
      {" \\n{\\\"a\\\": {}}\\t ", " \n{\"a\": {}}"},
      {"\\u007b}", "{}"},
  };
  static const char *const BROKEN[] = {"x{}", "{} x", "{}{}",       "[1]",       "1",
                                       "",    " ",    "{\\\"a\\\"", "\\u00e9{}", "{}\\u00e9"};
  char text[256];
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
    snprintf(text, sizeof text, "<tool_call>{\"name\": \"get\", \"arguments\": \"%s\"}</tool_call>",
             TEXTS[i][0]);
    check_call("<tool_call>", text, "get", TEXTS[i][1]);
  }
  static reply_rig rig;
  rig_open(&rig, "<tool_call>", 11, TOOLS, strlen(TOOLS), "");
  for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
    snprintf(text, sizeof text, "<tool_call>{\"name\": \"get\", \"arguments\": \"%s\"}</tool_call>",
             BROKEN[i]);
    rig_parse(&rig, text, strlen(text), 0, 0);
    if (!CHECK(rig.call_count == 0 || !rig.calls[0].has_ended)) printf("# %s\n", text);
  }
  rig_close(&rig);
}

TEST(reads_a_name_before_json_arguments) {
  check_call("[ARGS]", "[TOOL_CALLS]get[ARGS]{\"a\": 1}", "get", "{\"a\": 1}");
  check_call("[CALL_ID]", "[TOOL_CALLS]get[ARGS]{\"a\": 1}", "get", "{\"a\": 1}");
  check_call("<function=", "<function=get>{\"a\": 1}</function>", "get", "{\"a\": 1}");
  check_call("<|tool_call:begin|>",
             "<|tool_call:begin|>x1<|tool_call:name|>get<|tool_call:args|>{}<|tool_call:end|>",
             "get", "{}");
}

static void check_value(const char *key, const char *value, const char *wanted) {
  char text[256], arguments[256];
  snprintf(text, sizeof text,
           "<tool_call>get<arg_key>%s</arg_key><arg_value>%s</arg_value></tool_call>", key, value);
  snprintf(arguments, sizeof arguments, "{\"%s\": %s}", key, wanted);
  check_call("<arg_key>", text, "get", arguments);
}

TEST(converts_parameters_to_their_schema_types) {
  check_value("city", "5", "\"5\"");
  check_value("city", "\"Oslo\"", "\"\\\"Oslo\\\"\"");
  check_value("city", "a\tb\n<c>", "\"a\\tb\\n<c>\"");
  check_value("days", " 5 ", "5");
  check_value("days", "5.5.5", "\"5.5.5\"");
  check_value("exact", "True", "true");
  check_value("exact", "None", "null");
  check_value("exact", "null", "null");
  check_value("either", "0.5", "0.5");
  check_value("either", "half", "\"half\"");
  check_value("unit", "1", "\"1\"");
  check_value("any", "[1, 2]", "[1, 2]");
  check_value("any", "01", "\"01\"");
  check_value("unknown", "{\"a\": 1}", "{\"a\": 1}");
  check_value("list", "", "\"\"");
}

// Tries values of every kind for members of every type. A value that is JSON of a type that the
// schema allows is read as JSON; otherwise it is a string, if strings are allowed.
TEST(converts_values_of_every_kind) {
  enum { STRING = 1, NUMBER = 2, BOOLEAN = 4, NONE = 8, ARRAY = 16, OBJECT = 32 };
  static const struct {
    const char *name;
    int types;
  } KEYS[] = {
      {"city", STRING}, {"days", NUMBER}, {"exact", BOOLEAN | NONE}, {"either", STRING | NUMBER},
      {"unit", STRING}, {"any", 0},       {"list", ARRAY},           {"unknown", 0}};
  static const struct {
    const char *text, *quoted;
    int kind;
  } VALUES[] = {{"5", "\"5\"", NUMBER},
                {"-0.5e1", "\"-0.5e1\"", NUMBER},
                {"\"x\"", "\"\\\"x\\\"\"", STRING},
                {"true", "\"true\"", BOOLEAN},
                {"false", "\"false\"", BOOLEAN},
                {"null", "\"null\"", NONE},
                {"[1, \"a\"]", "\"[1, \\\"a\\\"]\"", ARRAY},
                {"{\"a\": 1}", "\"{\\\"a\\\": 1}\"", OBJECT},
                {"x", "\"x\"", 0},
                {"5 x", "\"5 x\"", 0},
                {"[1", "\"[1\"", 0},
                {"\"x", "\"\\\"x\"", 0}};
  for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
    for (size_t k = 0; k < sizeof VALUES / sizeof *VALUES; k++) {
      const bool takes_text = (KEYS[i].types & STRING) != 0;
      const bool is_json =
          VALUES[k].kind != 0 &&
          (!takes_text || (VALUES[k].kind != STRING && (KEYS[i].types & VALUES[k].kind) != 0));
      check_value(KEYS[i].name, VALUES[k].text, is_json ? VALUES[k].text : VALUES[k].quoted);
    }
  }
}

TEST(reads_tagged_parameters) {
  check_call("<parameter=",
             "<tool_call>\n<function=get>\n<parameter=city>\n\nOslo\n</parameter>\n</function>\n"
             "</tool_call>",
             "get", "{\"city\": \"\\nOslo\"}");
  check_call("<parameter=", "<function=get><parameter=days>\n5\n</parameter></function>", "get",
             "{\"days\": 5}");
  check_call("<function name=\"",
             "<function name=\"get\"><param name=\"city\"><![CDATA[a<b]]></param></function>",
             "get", "{\"city\": \"a<b\"}");
  check_call(
      "｜DSML｜",
      "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get\">\n<｜DSML｜parameter name=\"days\" "
      "string=\"true\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
      "get", "{\"days\": \"5\"}");
  // attributes apply only to their own parameter
  check_call("｜DSML｜",
             "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get\">\n"
             "<｜DSML｜parameter name=\"city\"s string=\"true\">5</｜DSML｜parameter>\n"
             "<｜DSML｜parameter name=\"days\"tring=\"true\">5</｜DSML｜parameter>\n"
             "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
             "get", "{\"city\": \"5\", \"days\": 5}");
  check_call("<atem:function_calls>",
             "<atem:function_calls>\n<atem:invoke name=\"ping\">\n</atem:invoke>\n"
             "</atem:function_calls>",
             "ping", "{}");
  check_call("<arg_key{}>",
             "<tool_calls:opensource>\n<tool_call:opensource>get<tool_sep:opensource>\n"
             "<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>5"
             "</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
             "get", "{\"days\": 5}");
}

TEST(a_wrapped_string_may_contain_the_end_tag) {
#define WRAPPED(value) "<function name=\"get\"><param name=\"city\">" value "</param></function>"
  const char *const family = "<function name=\"";
  check_call(family, WRAPPED("<![CDATA[a</param>b]]>"), "get", "{\"city\": \"a</param>b\"}");
  check_call(family, WRAPPED("<![CDATA[]]>"), "get", "{\"city\": \"\"}");
  check_call(family, WRAPPED("<![CDATA[a]]]>"), "get", "{\"city\": \"a]\"}");
  check_call(family, WRAPPED("\n<![CDATA[a\n]]>\n"), "get", "{\"city\": \"a\\n\"}");
  check_call(family, WRAPPED("a<![CDATA[b"), "get", "{\"city\": \"a<![CDATA[b\"}");
  check_call(family,
             "<function name=\"get\"><param name=\"exact\">True</param><param name=\"any\">"
             "<![CDATA[x</param>]]></param></function>",
             "get", "{\"exact\": true, \"any\": \"x</param>\"}");
#undef WRAPPED
}

TEST(reads_kimi_k3_calls) {
#define CALL(inside)                                                                      \
  "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=" \
  "\"get\" index=\"1\"<|sep|>" inside                                                     \
  "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
#define ARGUMENT(key, type, value) \
  "<|open|>argument key=\"" key "\" type=\"" type "\"<|sep|>" value "<|close|>argument<|sep|>"
  const char *const family = "<|open|>";
  check_call(family, CALL(ARGUMENT("city", "string", "5") ARGUMENT("any", "string", "5")), "get",
             "{\"city\": \"5\", \"any\": \"5\"}");
  check_call(family, CALL(ARGUMENT("any", "number", "5") ARGUMENT("either", "number", "5")), "get",
             "{\"any\": 5, \"either\": 5}");
  check_call(family, CALL(ARGUMENT("list", "array", "[1, {\"a\": null}]")), "get",
             "{\"list\": [1, {\"a\": null}]}");
  check_call(family, CALL("<|open|>json type=\"object\"<|sep|>{\"a\": 1}<|close|>json<|sep|>"),
             "get", "{\"a\": 1}");
  check_call(family, CALL(""), "get", "{}");
  check_reply(family, "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
              "Hm.<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|>"
              "<|close|>message<|sep|>",
              (expected){"Yes.", "Hm.", NULL, NULL, WICK_OK});
#undef CALL
#undef ARGUMENT
}

TEST(reads_calls_with_nested_elements) {
#define NS "]<]minimax[>["
#define ELEMENT(name, value) NS "<" name ">" value NS "</" name ">"
#define CALL(inside) \
  NS "<tool_call>\n" NS "<invoke name=\"get\">" inside NS "</invoke>\n" NS "</tool_call>"
  const char *const family = NS "<tool_call>";
  check_call(family, CALL(ELEMENT("city", "5 < 6") ELEMENT("days", "5")), "get",
             "{\"city\": \"5 < 6\", \"days\": 5}");
  check_call(family, CALL(ELEMENT("list", ELEMENT("item", "1") ELEMENT("item", "a"))), "get",
             "{\"list\": [1, \"a\"]}");
  check_call(family, CALL(ELEMENT("list", "")), "get", "{\"list\": []}");
  check_call(family, CALL(ELEMENT("list", "[1, 2]")), "get", "{\"list\": [1, 2]}");
  check_call(family, CALL(ELEMENT("any", ELEMENT("any", ELEMENT("b", "x") ELEMENT("c", "true")))),
             "get", "{\"any\": {\"any\": {\"b\": \"x\", \"c\": true}}}");
  check_call(family,
             CALL(ELEMENT("rows", ELEMENT("item", ELEMENT("code", "007") ELEMENT("size", "7"))
                                      ELEMENT("item", "\n" ELEMENT("code", "1") "\n"))),
             "get", "{\"rows\": [{\"code\": \"007\", \"size\": 7}, {\"code\": \"1\"}]}");
  check_call(family, CALL(""), "get", "{}");
  check_content(family, "[1, 2]");
#undef NS
#undef ELEMENT
#undef CALL
}

TEST(reads_a_call_in_a_separate_message) {
  check_reply("'role': 'function call'", "assistant<|role_sep|>\n",
              "Let me see.<|message_sep|>\n\nfunction call<|role_sep|>\n"
              "{\"name\": \"get\", \"arguments\": {\"a\": 1}}",
              (expected){"Let me see.", NULL, "get", "{\"a\": 1}", WICK_OK});
}

TEST(reads_kimi_k2_calls_without_a_section) {
  static const char *const IDS[] = {"functions.get:0", "get:0", "get"};
  for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
    char text[200];
    snprintf(text, sizeof text,
             "<|tool_call_begin|>%s<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>"
             "<|tool_calls_section_end|>",
             IDS[i]);
    check_call("<|tool_calls_section_begin|><|tool_call_begin|>", text, "get", "{\"a\": 1}");
  }
}

TEST(reads_python_calls) {
  const char *const family = "<|tool_call_start|>";
  check_call(family, "<|tool_call_start|>[get(a='it\\'s', b=[1, (2, 3,), {'k': None}], )]", "get",
             "{\"a\": \"it's\", \"b\": [1, [2, 3], {\"k\": null}]}");
  check_call(family, "<|tool_call_start|>get(a=\"\\x41\\u00e9\\q\\U0001F600\", b=-1.5e3)", "get",
             "{\"a\": \"\\u0041\\u00e9\\\\q\\ud83d\\ude00\", \"b\": -1.5e3}");
  check_call(family, "<|tool_call_start|>[ping()]<|tool_call_end|>", "ping", "{}");
}

TEST(reads_objects_with_delimited_strings) {
  check_call(
      "<|tool_call>",
      "<|tool_call>call:get{a:<|\"|>x<|\"y<<|\"|>,b:{c:[true,null]},<|\"|>d e<|\"|>:1}<tool_call|>",
      "get", "{\"a\": \"x<|\\\"y<\", \"b\": {\"c\": [true, null]}, \"d e\": 1}");
}

TEST(reads_channels_of_the_harmony_format) {
  const char *const prompt = "<|start|>assistant", *const family = "<|message|>";
  check_reply(family, prompt,
              "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
              "to=functions.get <|constrain|>json<|message|>{\"a\": 1}<|call|>",
              (expected){"", "Hm.", "get", "{\"a\": 1}", WICK_OK});
  check_reply(family, prompt, " to=functions.get<|channel|>commentary json<|message|>{}",
              (expected){"", NULL, "get", "{}", WICK_OK});
  check_reply(family, prompt, "Hello.", (expected){"Hello.", NULL, NULL, NULL, WICK_OK});
  check_reply(family, "<|start|>assistant<|channel|>analysis<|message|>", "Hm.<|end|>",
              (expected){"", "Hm.", NULL, NULL, WICK_OK});
  check_reply(family, prompt, "<|channel|>commentary to=python<|message|>print(1)<|call|>",
              (expected){"", "print(1)", NULL, NULL, WICK_OK});
  check_reply(family, prompt, "<|channel|>commentary to=browser.open<|message|>{1}<|call|>",
              (expected){"", "{1}", NULL, NULL, WICK_OK});
  static const char *const CUT[] = {"<", "<|chan", "<|channel|>final", " to=functions.get<|chan",
                                    " t"};
  for (size_t i = 0; i < sizeof CUT / sizeof *CUT; i++) {
    check_reply(family, prompt, CUT[i], (expected){"", NULL, NULL, NULL, WICK_OK});
  }
}

TEST(reads_several_calls) {
  static reply_rig rig;
  const char *const text =
      "<tool_call>[{\"name\": \"get\", \"arguments\": {\"a\": 1}}, {\"name\": "
      "\"ping\"}]</tool_call>"
      "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 2}}</tool_call> done";
  begin(&rig, "<tool_call>", "");
  rig_parse(&rig, text, strlen(text), 3, 3);
  CHECK_EQ_UINT(rig.call_count, 3);
  CHECK_EQ_STR(rig.calls[1].name.bytes, "ping");
  CHECK_EQ_STR(rig.calls[2].arguments.bytes, "{\"a\": 2}");
  CHECK_EQ_STR(rig.content.bytes, "done");
  rig_close(&rig);
}

// ---- text that is not a call, and broken calls ----

TEST(text_that_is_not_a_call_is_content) {
  check_content("<tool_call>", "<tool_call>get(a=1)</tool_call>");
  check_content("<tool_call>", "Write <tool_call> first.");
  check_content("<tool_call>", "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>");
  check_content("<tool_call>", "<tool_call>{\"name\": 5}</tool_call>");
  check_content("", "[TOOL_CALLS]get(1)");
  check_content("", "[1, 2]");
  check_content("", "{\"name\": \"Oslo\", \"parameters\": {}}");
  check_content("", "[get(1)]");
  check_content("", "[unknown(a=1)]");
}

TEST(finds_a_call_after_a_failed_one) {
  check_reply("<tool_call>", "", "<tool_call><tool_call>{\"name\": \"ping\"}</tool_call>",
              (expected){"<tool_call>", NULL, "ping", "{}", WICK_OK});
}

// A reply may end after any byte; the start of a call is not content.
TEST(a_reply_truncated_anywhere_shows_no_markers) {
  static const struct {
    const char *mark, *before, *arguments;
    size_t content_bytes;  // before the call and the white space that belongs to its marker
  } cases[] = {
      {"<tool_call>",
       "Well <tool_call>\n{\"name\": \"get\", \"arguments\": ", "{\"a\": [\"}\", {}]}", 4},
      {"<function=", "<function=get>", "{\"city\": \"Oslo\"}", 0},
      {"[TOOL_CALLS]", "[TOOL_CALLS]get[ARGS]", "{\"a\": {\"b\": null}}", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    const size_t open = strlen(cases[i].before), all = open + strlen(cases[i].arguments);
    snprintf(text, sizeof text, "%s%s", cases[i].before, cases[i].arguments);
    for (size_t cut = 0; cut < all; cut++) {
      static reply_rig rig;
      begin(&rig, cases[i].mark, "");
      rig_parse(&rig, text, cut, cut, 0);
      const bool has_begun = cut > open;
      CHECK(rig.status == WICK_E_TRUNCATED || (!has_begun && rig.status == WICK_OK));
      CHECK_EQ_UINT(rig.call_count, has_begun);
      const size_t content = cases[i].content_bytes;
      const bool is_before = content > 0 && cut <= content + 2;
      CHECK_EQ_UINT(rig.content.size_bytes, is_before ? cut : content);
      CHECK_EQ_MEM(rig.content.bytes, text, rig.content.size_bytes);
      if (has_begun) {
        CHECK_EQ_UINT(rig.calls[0].arguments.size_bytes, cut - open);
        CHECK_EQ_MEM(rig.calls[0].arguments.bytes, text + open, cut - open);
        CHECK_EQ_UINT(rig.error.offset_bytes, cut);
        CHECK_EQ_UINT(rig.error.numbers[0], cases[i].content_bytes);
        CHECK_EQ_UINT(rig.error.numbers[1], 0);
        CHECK(!rig.calls[0].has_ended);
      }
      rig_close(&rig);
    }
  }
}

TEST(returns_broken_arguments_up_to_the_error) {
  check_reply("<tool_call>", "", "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1, b}}",
              (expected){"", NULL, "get", "{\"a\": 1, ", WICK_E_FORMAT});
  check_reply("<tool_call>", "", "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1",
              (expected){"", NULL, "get", "{\"a\": 1", WICK_E_TRUNCATED});
  check_reply("<arg_key>", "", "<tool_call>get<arg_key>city</arg_key><arg_value>Os",
              (expected){"", NULL, "get", "{\"city\": ", WICK_E_TRUNCATED});
  check_reply("<|tool_call_start|>", "", "<|tool_call_start|>[get(a=1_0)]",
              (expected){"", NULL, "get", "{\"a\": ", WICK_E_FORMAT});
}

TEST(reports_where_a_call_is_broken) {
  static reply_rig rig;
  const char *const text = "<tool_call>{\"name\": \"get\", \"arguments\": {?";
  begin(&rig, "<tool_call>", "");
  rig_parse(&rig, text, strlen(text), 5, 5);
  CHECK_EQ_INT(rig.status, WICK_E_FORMAT);
  CHECK_EQ_UINT(rig.error.offset_bytes, strlen(text) - 1);
  CHECK_EQ_STR(rig.error.message,
               "the reply's call 0 (get), byte 41: the arguments do not match their format");
  CHECK_EQ_UINT(rig.error.numbers[0], 0);
  rig_close(&rig);
}

TEST(reports_where_a_broken_call_begins) {
  static reply_rig rig;
  static const char *const FORMATS[][3] = {
      {"<tool_call>", "Look.", " <tool_call>{\"name\": \"get\", \"arguments\": {\"a\": ?"},
      {"<tool_call>", "<tool_call>{\"name\": \"get\", \"arguments\": {}}</tool_call>",
       "<tool_call>{\"name\": \"get\", \"arguments\": {\"city\""},
      {"<tool_call>", "<tool_call>[{\"name\": \"get\", \"arguments\": {}}",
       ", {\"name\": \"get\", \"arguments\": {?"},
      {"<tool_call>", "<tool_call>[{\"name\": \"get\", \"arguments\": {}}", "?"},
      {"<arg_key>", "Look.", "<tool_call>get<arg_key>city</arg_key><arg_value>Os"},
  };
  for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
    char text[256];
    const size_t before = strlen(FORMATS[i][1]), count = before + strlen(FORMATS[i][2]);
    memcpy(text, FORMATS[i][1], before);
    memcpy(text + before, FORMATS[i][2], count - before);
    for (size_t piece = 1; piece <= count; piece += 6) {
      begin(&rig, FORMATS[i][0], "");
      rig_parse(&rig, text, count, piece, piece);
      CHECK(rig.status == WICK_E_FORMAT || rig.status == WICK_E_TRUNCATED);
      CHECK_EQ_UINT(rig.error.numbers[0], before);
      CHECK_EQ_UINT(rig.error.numbers[1], i >= 1 && i <= 3 ? 1 : 0);
      rig_close(&rig);
    }
  }
}

TEST(without_tools_calls_are_content) {
  static reply_rig rig;
  const char *const text = "<think>A</think><tool_call>{\"name\": \"get\"}</tool_call>";
  rig_open(&rig, "", 0, NULL, 0, "");
  rig_parse(&rig, text, strlen(text), 4, 4);
  CHECK_EQ_UINT(rig.call_count, 0);
  CHECK_EQ_STR(rig.reasoning.bytes, "A");
  CHECK_EQ_STR(rig.content.bytes, text + 16);
  rig_close(&rig);
}

TEST(rejects_invalid_tools) {
  static const char *const BAD[] = {"",
                                    "{}",
                                    "[{}]",
                                    "[{\"name\": \"\"}]",
                                    "[{\"name\": 1}]",
                                    "[1]",
                                    "[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"a\"}]",
                                    "[{\"name\":\"a\"},{\"function\":{\"name\":\"a\"}}]"};
  for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
    static reply_rig rig;
    rig_open(&rig, "", 0, BAD[i], strlen(BAD[i]), "");
    CHECK_EQ_INT(rig.status, WICK_E_ARG);
    rig_close(&rig);
  }
}

// ---- limits ----

enum { LARGE = 1 << 20, STEPS_PER_BYTE = 4 };

// Writes a text at `at`; returns where it ends.
static size_t append(char *out, size_t at, const char *text) {
  for (size_t i = 0; text[i] != '\0'; i++) out[at++] = text[i];
  return at;
}

// Parses a large text that repeats a pattern.
static void check_large(const char *template_text, const char *head, const char *pattern) {
  static char text[LARGE];
  static reply_rig rig;
  const size_t size = LARGE / level_step(4);
  const size_t head_bytes = strlen(head), pattern_bytes = strlen(pattern);
  append(text, 0, head);
  for (size_t at = head_bytes; at < size; at++) {
    text[at] = pattern[(at - head_bytes) % pattern_bytes];
  }
  begin(&rig, template_text, "");
  rig_parse(&rig, text, size, 1000, 1000);
  if (!CHECK(rig.steps <= (uint64_t)STEPS_PER_BYTE * size)) {
    printf("# %s%s: %llu steps\n", head, pattern, (unsigned long long)rig.steps);
  }
  CHECK(rig.memory.bytes_peak < 6u << 20);
  if (rig.status == WICK_OK && rig.call_count == 0) {
    CHECK(rig.content.size_bytes + rig.reasoning.size_bytes >= size - size / 1024);
  }
  rig_close(&rig);
}

TEST(parses_hostile_input_in_linear_time) {
  static const char *const PATTERNS[] = {"<",
                                         "{",
                                         "[",
                                         "<tool_call>",
                                         "<tool_cal",
                                         "[TOOL_CALLS]a",
                                         "<tool_call>{\"name\":\"",
                                         "<function=a>",
                                         "<｜tool",
                                         "<tool_call>{\"x\":\"<tool_call>{\",\"",
                                         "[[{",
                                         "(",
                                         "\\\""};
  for (size_t i = 0; i < sizeof PATTERNS / sizeof PATTERNS[0]; i++) {
    check_large("", "", PATTERNS[i]);
    check_large("<|message|>", "<|start|>", PATTERNS[i]);
    check_large("", "<tool_call>{\"x\": \"", PATTERNS[i]);
    check_large("", "<tool_call>{\"name\": \"get\", \"arguments\": {\"x\": \"", PATTERNS[i]);
    check_large("<arg_key>", "<tool_call>get<arg_key>a</arg_key><arg_value>", PATTERNS[i]);
    check_large("", "[get(a='", PATTERNS[i]);
    check_large("", "<start_function_call>call:get{a:<escape>", PATTERNS[i]);
  }
}

TEST(limits_depth_and_lengths) {
  static char text[2000];
  static reply_rig rig;
  begin(&rig, "<tool_call>", "");
  for (size_t depth = REPLY_DEPTH_MAX - 1; depth <= REPLY_DEPTH_MAX; depth++) {
    size_t size =
        (size_t)snprintf(text, sizeof text, "<tool_call>{\"name\":\"get\",\"arguments\":{\"a\":");
    for (size_t i = 0; i < depth; i++) text[size++] = '[';
    for (size_t i = 0; i < depth; i++) text[size++] = ']';
    text[size++] = '}';
    text[size++] = '}';
    rig_parse(&rig, text, size, 0, 0);
    CHECK_EQ_INT(rig.status, depth < REPLY_DEPTH_MAX ? WICK_OK : WICK_E_FORMAT);
  }
  for (size_t length = REPLY_NAME_BYTES_MAX; length <= REPLY_NAME_BYTES_MAX + 1; length++) {
    size_t size = (size_t)snprintf(text, sizeof text, "<tool_call>{\"name\":\"");
    for (size_t i = 0; i < length; i++) text[size++] = 'a';
    size += (size_t)snprintf(text + size, sizeof text - size, "\"}");
    rig_parse(&rig, text, size, 0, 0);
    CHECK_EQ_INT(rig.status, WICK_OK);
    CHECK_EQ_UINT(rig.call_count, length == REPLY_NAME_BYTES_MAX ? 1 : 0);
  }
  rig_close(&rig);
}

// Text that is held back until its kind is known has a limit. Beyond the limit, a call with a known
// name is an error, and a possible call without a name becomes content.
TEST(limits_the_text_held_back) {
  enum { MORE = REPLY_HELD_BYTES_MAX + 1000 };
  static const struct {
    const char *head, *says;
  } CASES[] = {
      {"<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>", "an argument is too long"},
      {"<tool_call>", NULL},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    static char text[MORE];
    static reply_rig rig;
    memset(text, 'a', sizeof text);
    append(text, 0, CASES[i].head);
    begin(&rig, "<arg_key>", "");
    rig_parse(&rig, text, sizeof text, 5000, 5000);
    if (CASES[i].says != NULL) {
      CHECK_EQ_INT(rig.status, WICK_E_FULL);
      CHECK(strstr(rig.error.message, CASES[i].says) != NULL);
    } else {
      CHECK_EQ_INT(rig.status, WICK_OK);
      CHECK_EQ_UINT(rig.content.size_bytes, sizeof text);
    }
    rig_close(&rig);
  }
}

TEST(allocation_failures_are_reported) {
  const char *const text =
      "<tool_call>get<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>";
  for (uint64_t call = 1; call < 40; call++) {
    static reply_rig rig;
    rig_open(&rig, "<arg_key>", 9, NULL, 0, "");
    const uint64_t before = rig.memory.calls;
    rig.memory.fail_at_call = before + call;
    rig.tools = (wick_text){TOOLS, strlen(TOOLS)};
    rig_parse(&rig, text, strlen(text), 2, 2);
    const bool was_refused = rig.memory.calls >= before + call;
    CHECK_EQ_INT(rig.status, was_refused ? WICK_E_NOMEM : WICK_OK);
    rig_close(&rig);
  }
}

// ---- random input ----

static void check_same(const reply_rig *whole, const reply_rig *cut) {
  CHECK_EQ_INT(cut->status, whole->status);
  CHECK_EQ_UINT(cut->call_count, whole->call_count);
  CHECK_EQ_STR(cut->content.bytes, whole->content.bytes);
  CHECK_EQ_STR(cut->reasoning.bytes, whole->reasoning.bytes);
  for (uint32_t i = 0; i < whole->call_count && i < RIG_CALLS; i++) {
    CHECK_EQ_STR(cut->calls[i].name.bytes, whole->calls[i].name.bytes);
    CHECK_EQ_STR(cut->calls[i].arguments.bytes, whole->calls[i].arguments.bytes);
  }
}

// Combines parts of replies in any order; pieces of any size must give the same events.
TEST(results_do_not_depend_on_how_input_is_split) {
  static const char *const PARTS[] = {"<tool_call>",
                                      "</tool_call>",
                                      "{\"name\": \"get\", \"arguments\": ",
                                      "{\"a\": 1}",
                                      "}",
                                      " ",
                                      "\n",
                                      "<think>",
                                      "</think>",
                                      "[",
                                      "]",
                                      "get",
                                      "(a=",
                                      "'x'",
                                      ")",
                                      "<function=get>",
                                      "<parameter=city>",
                                      "</parameter>",
                                      "</function>",
                                      "text",
                                      "[TOOL_CALLS]",
                                      "[ARGS]",
                                      "<|channel|>",
                                      "<|message|>",
                                      "<arg_key>a</arg_key>",
                                      "<arg_value>",
                                      "</arg_value>",
                                      "\"",
                                      "\\",
                                      "é",
                                      "<start_function_call>",
                                      "call:get{",
                                      "<escape>",
                                      "<",
                                      ","};
  static const char *const TEMPLATES[] = {"", "<tool_call>", "<|message|>", "<arg_key>"};
  static reply_rig whole, cut;
  uint64_t seed = soak_seed();
  for (uint32_t run = 0; run < soak_count(20000); run++) {
    char text[600];
    size_t size = 0;
    while (size < sizeof text - 64 && random_below(&seed, 24) != 0) {
      size = append(text, size, PARTS[random_below(&seed, sizeof PARTS / sizeof PARTS[0])]);
    }
    const char *family = TEMPLATES[random_below(&seed, 4)];
    begin(&whole, family, "");
    begin(&cut, family, "");
    rig_parse(&whole, text, size, 0, 0);
    rig_parse(&cut, text, size, 1 + (size_t)random_below(&seed, 5),
              1 + (size_t)random_below(&seed, 5));
    check_same(&whole, &cut);
    rig_close(&whole);
    rig_close(&cut);
  }
}
