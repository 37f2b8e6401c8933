// Messages in the style of various servers, files and routers are adapted to templates that would
// reject them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture_model.h"

static wick_engine *open_engine(const fixture_file *file) {
  wick_config config;
  wick_config_default(&config);
  const engine_hooks hooks = {0};
  wick_engine *engine = NULL;
  wick_error error;
  if (engine_create(&config, &hooks, &engine, &error) != WICK_OK) return NULL;
  return fixture_load(engine, file, 0, &error) == WICK_OK ? engine : NULL;
}

typedef struct sample {
  const char *messages, *wanted;  // wanted: NULL if they are rejected
} sample;

static void check_one(wick_engine *engine, const char *variables, const sample *one) {
  char json[1024];
  wick_chat chat;
  wick_chat_text out;
  wick_error error = {0};
  snprintf(json, sizeof json, "{%s\"messages\": [%s]}", variables, one->messages);
  wick_chat_default(&chat);
  chat.json = json;
  chat.json_bytes = strlen(json);
  const wick_status status = wick_chat_render(engine, &chat, &out, &error);
  if (!CHECK((status == WICK_OK) == (one->wanted != NULL))) printf("# %s\n", error.message);
  if (status != WICK_OK || one->wanted == NULL) return;
  const bool is_same = out.text.size_bytes == strlen(one->wanted) &&
                       memcmp(out.text.bytes, one->wanted, out.text.size_bytes) == 0;
  if (!CHECK(is_same)) {
    printf("# %s\n# %.*s\n", one->messages, (int)out.text.size_bytes, out.text.bytes);
  }
}

static void check_all(const char *template, const char *variables, const sample *samples,
                      size_t count) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_engine(&file);
  wick_error error = {0};
  REQUIRE(engine != NULL);
  if (!CHECK_EQ_INT(wick_chat_set_template(engine, template, strlen(template), &error), WICK_OK)) {
    printf("# %s\n", error.message);
  }
  for (size_t i = 0; i < count; i++) check_one(engine, variables, &samples[i]);
  wick_engine_destroy(engine);
  free(file.bytes);
}

#define CHECK_ALL(template, variables, samples) \
  check_all(template, variables, samples, sizeof samples / sizeof *samples)

#define MESSAGE(role, content) "{\"role\": \"" role "\", \"content\": \"" content "\"}"
#define PRINT "{{ m.role[0] }}:{{ m.content }};"

TEST(several_system_messages_are_merged_if_a_template_allows_only_one) {
  static const char ONE[] =
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
      "{{ raise_exception('one') }}{% endif %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", "a") "," MESSAGE("developer", "b") "," MESSAGE("user", "c"),
       "s:a\n\nb;u:c;"},
      {MESSAGE("user", "a") "," MESSAGE("system", "b") "," MESSAGE("user", "c"), "u:a;u:b\n\nc;"},
      {MESSAGE("user", "a") "," MESSAGE("system", "b"), "u:a\n\nb;"},
      {MESSAGE("assistant", "a") "," MESSAGE("system", "b") "," MESSAGE("system", "") "," MESSAGE(
           "system", "c"),
       "a:a;u:b\n\nc;"}};
  CHECK_ALL(ONE, "", SAMPLES);
}

TEST(system_messages_that_a_template_would_omit_are_merged) {
  static const char FIRST[] =
      "{% if messages[0].role == 'system' %}{{ messages[0].content | trim }};{% endif %}"
      "{% for m in messages if m.role != 'system' %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", " a ") "," MESSAGE("system", "b") "," MESSAGE("user", "c"),
       "a \n\nb;u:c;"},
      {MESSAGE("system", "a") "," MESSAGE("user", "c") "," MESSAGE("system", "b"), "a;u:c\n\nb;"}};
  CHECK_ALL(FIRST, "", SAMPLES);
}

TEST(system_messages_become_user_text_if_a_template_rejects_them) {
  static const char NONE[] =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('alternate') }}{% endif %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", "a") "," MESSAGE("user", "b"), "u:a\n\nb;"},
      {MESSAGE("user", "a") "," MESSAGE("assistant", "b") "," MESSAGE("system", "c"),
       "u:a;a:b;u:c;"},
      {MESSAGE("system", "a"), "u:a;"},
      {MESSAGE("assistant", "a") "," MESSAGE("user", "b"), "u:;a:a;u:b;"},
      {MESSAGE("user", "a") "," MESSAGE("tool", "b") "," MESSAGE("assistant", "c") "," MESSAGE("x",
                                                                                               "d"),
       NULL}};
  CHECK_ALL(NONE, "", SAMPLES);
}

// Codex sends a developer message and two user messages; other servers send tool results.
TEST(messages_are_merged_if_a_template_requires_alternating_turns) {
  static const char TURNS[] =
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('system') }}{% endif %}"
      "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('alternate') }}{% endif %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("user", "a") "," MESSAGE("user", "b"), "u:a\n\nb;"},
      {MESSAGE("developer", "s") "," MESSAGE("user", "a") "," MESSAGE("user", "b"),
       "u:s\n\na\n\nb;"},
      {MESSAGE("user", "a") "," MESSAGE("assistant", "b") "," MESSAGE("assistant", "c") "," MESSAGE(
           "user", "d"),
       "u:a;a:b\n\nc;u:d;"},
      {MESSAGE("system", "s") "," MESSAGE(
           "user",
           "a") ","
                "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": "
                "{\"name\": \"f\", \"arguments\": \"{}\"}}]}," MESSAGE("tool", "1") "," MESSAGE(
                    "tool", "2"),
       "u:s\n\na;a:f {};u:1\n\n2;"}};
  CHECK_ALL(TURNS, "", SAMPLES);
}

TEST(an_empty_answer_is_inserted_before_a_user_message_after_a_tool_result) {
  static const char PLAIN[] =
      "{% set ns = namespace(i=0) %}{% for m in messages %}"
      "{% if m.role != 'tool' and not m.tool_calls %}{% if (m.role == 'user') != (ns.i % 2 == 0) %}"
      "{{ raise_exception('alternate') }}{% endif %}{% set ns.i = ns.i + 1 %}{% endif %}" PRINT
      "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("user", "a") ","
                            "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": "
                            "[{\"function\": {\"name\": "
                            "\"f\", \"arguments\": \"{}\"}}]}," MESSAGE("tool", "1") "," MESSAGE(
                                "user", "b"),
       "u:a;a:;t:1;a: ;u:b;"}};
  CHECK_ALL(PLAIN, "", SAMPLES);
}

#define ASSISTANT(content, calls) \
  "{\"role\": \"assistant\", \"content\": " content ", \"tool_calls\": [" calls "]}"
#define CALL_OF(id, name, arguments) \
  "{\"id\": \"" id "\", \"function\": {\"name\": \"" name "\", \"arguments\": " arguments "}}"
#define RESULT(id, content) \
  "{\"role\": \"tool\", \"tool_call_id\": \"" id "\", \"content\": \"" content "\"}"
#define TWO_CALLS CALL_OF("1", "f", "{}") "," CALL_OF("2", "g", "{}")

// Llama 3's templates raise an exception for several calls, and gpt-oss's omits all but the first.
TEST(several_calls_are_split_into_messages_if_a_template_allows_only_one) {
  static const char RAISES[] =
      "{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}"
      "{{ raise_exception('one') }}{% endif %}{{ m.tool_calls[0].function.name }};{% else %}" PRINT
      "{% endif %}{% endfor %}";
  static const char OMITS[] =
      "{% for m in messages %}{{ '' if 'x' in m.content }}{% if m.tool_calls %}{{ "
      "m.tool_calls[0].function.name }};"
      "{% else %}" PRINT "{% endif %}{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("user", "a") "," ASSISTANT("null", TWO_CALLS) "," RESULT("1", "x") "," RESULT("2",
                                                                                             "y"),
       "u:a;f;t:x;g;t:y;"},
      {MESSAGE("user", "a") "," ASSISTANT("\"b\"", TWO_CALLS) "," RESULT("2", "y") "," RESULT("1",
                                                                                              "x"),
       "u:a;a:b;f;t:x;g;t:y;"},
      {MESSAGE("user", "a") "," ASSISTANT("\"\"", TWO_CALLS) "," RESULT("9", "z") "," MESSAGE(
           "user", "b"),
       "u:a;f;g;t:z;a: ;u:b;"},
      {MESSAGE("user", "a") "," ASSISTANT("\"\"", CALL_OF("1", "f", "{}")) "," RESULT("1", "x"),
       "u:a;f;t:x;"}};
  CHECK_ALL(RAISES, "", SAMPLES);
  CHECK_ALL(OMITS, "", SAMPLES);
}

// DeepSeek R1's template writes calls only if the content is null.
TEST(calls_and_content_are_split_if_a_template_writes_only_one_of_them) {
  static const char WITHOUT[] =
      "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
      "{{ c.function.name }};{% endfor %}{% else %}" PRINT "{% endif %}{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("user", "a") "," ASSISTANT("null", TWO_CALLS) "," RESULT("1", "x"), "u:a;f;g;t:x;"},
      {MESSAGE("user", "a") "," ASSISTANT("\"b\"", TWO_CALLS), "u:a;a:b;f;g;"}};
  CHECK_ALL(WITHOUT, "", SAMPLES);
}

TEST(calls_and_results_become_text_if_a_template_would_omit_them) {
  static const char TEXT[] = "{% for m in messages %}{% if m.role in ['user', 'assistant'] %}" PRINT
                             "{% endif %}{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("user", "a") "," ASSISTANT("null", CALL_OF("1", "f", "{\"b\": \"c\"}")) "," RESULT(
           "1", "x"),
       "u:a;a:f {\"b\": \"c\"};u:x;"},
      {MESSAGE("user", "a") "," ASSISTANT("\"b\"", CALL_OF("1", "f", "\"{}\"")), "u:a;a:b\nf {};"}};
  CHECK_ALL(TEXT, "", SAMPLES);
}

// gpt-oss needs the reasoning before a call, and rejects reasoning together with content.
TEST(reasoning_becomes_thinking_if_a_template_uses_that_name) {
  static const char THINKING[] =
      "{% for m in messages %}{% if m.tool_calls %}{% if m.content and m.thinking %}"
      "{{ raise_exception('both') }}{% endif %}<{{ m.content or m.thinking }}>{{ "
      "m.tool_calls[0].function.name }};{% else %}" PRINT "{% endif %}{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("user", "a") ",{\"role\": \"assistant\", \"reasoning_content\": \"r\", "
                            "\"tool_calls\": [" CALL_OF("1", "f", "{}") "]}",
       "u:a;<r>f;"},
      {MESSAGE("user", "a") ",{\"role\": \"assistant\", \"reasoning\": \"r\", \"content\": "
                            "\"b\", \"tool_calls\": [" CALL_OF("1", "f", "{}") "]}",
       "u:a;<r\n\nb>f;"}};
  CHECK_ALL(THINKING, "", SAMPLES);
}

// If a client drops the oldest messages, the conversation may begin with the result of a call.
TEST(results_without_a_preceding_call_become_user_text) {
  static const char NEEDS_CALL[] =
      "{% set ns = namespace(called=false) %}{% for m in messages %}{% if m.tool_calls %}"
      "{% set ns.called = true %}{{ m.tool_calls[0].function.name }};{% elif m.role == 'tool' and "
      "not "
      "ns.called %}{{ raise_exception('call') }}{% else %}{% set ns.called = m.role == 'tool' "
      "%}" PRINT "{% endif %}{% endfor %}";
  static const sample SAMPLES[] = {
      {RESULT("1", "x") "," MESSAGE("user", "a"), "u:x\n\na;"},
      {RESULT("1", "x"), "u:x;"},
      {MESSAGE("user", "a") "," RESULT("1", "x") "," MESSAGE("assistant", "b"), "u:a\n\nx;a:b;"},
      {MESSAGE("user", "a") "," ASSISTANT("\"\"", CALL_OF("1", "f", "{}")) "," MESSAGE(
           "user", "b") "," RESULT("1", "x"),
       "u:a;f;a: ;u:b\n\nx;"}};
  CHECK_ALL(NEEDS_CALL, "", SAMPLES);
}

TEST(an_empty_user_message_is_inserted_before_a_leading_assistant_message) {
  static const char TURNS[] =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) or not m.content "
      "and "
      "loop.index0 > 0 %}{{ raise_exception('alternate') }}{% endif %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("assistant", "a") "," MESSAGE("user", "b"), "u:;a:a;u:b;"},
      {MESSAGE("system", "s") "," MESSAGE("assistant", "a") "," MESSAGE("user", "b"),
       "u:s;a:a;u:b;"},
      {MESSAGE("assistant", "a"), "u:;a:a;"},
      {MESSAGE("user", "a") "," MESSAGE("assistant", "") "," MESSAGE("user", "b"), "u:a\n\nb;"}};
  CHECK_ALL(TURNS, "", SAMPLES);
}

// Mistral's templates write the system message next to the last user message.
TEST(a_lone_system_message_becomes_a_user_message_if_a_template_would_omit_it) {
  static const char LAST[] =
      "{% for m in messages if m.role == 'user' %}{% if loop.last and messages[0].role == 'system' "
      "%}"
      "{{ messages[0].content }};{% endif %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {{MESSAGE("system", "a"), "u:a;"},
                                   {MESSAGE("developer", "a"), "u:a;"},
                                   {MESSAGE("system", "a") "," MESSAGE("user", "b"), "a;u:b;"}};
  CHECK_ALL(LAST, "", SAMPLES);
}

TEST(arguments_that_are_not_objects_are_converted) {
  static const char ITEMS[] =
      "{% for m in messages %}{% for c in m.tool_calls %}"
      "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }},{% endfor %};"
      "{% endfor %}{% endfor %}";
#define CALL(arguments) \
  "{\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": " arguments "}}]}"
  static const sample SAMPLES[] = {{CALL("\"\""), ";"},
                                   {CALL("\"null\""), ";"},
                                   {CALL("null"), ";"},
                                   {CALL("{\"a\": 1}"), "a=1,;"},
                                   {CALL("\"{\\\"a\\\": 1}\""), "a=1,;"},
                                   {CALL("\"{\\\"a\\\": 1\""), "arguments={\"a\": 1,;"}};
  CHECK_ALL(ITEMS, "", SAMPLES);
}

TEST(developer_messages_are_kept_if_a_template_supports_them) {
  static const char DEVELOPER[] =
      "{% for m in messages %}{{ 'D' if m.role == 'developer' }}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", "a") "," MESSAGE("developer", "b"), "s:a;Dd:b;"}};
  CHECK_ALL(DEVELOPER, "", SAMPLES);
}

TEST(empty_members_are_removed) {
  static const char MEMBERS[] =
      "{% for m in messages %}{{ m.keys() | sort | join(',') }}={{ m.content }};{% endfor %}"
      "{{ tools is defined }}";
  static const sample SAMPLES[] = {
      {"{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [], \"name\": \"\", "
       "\"audio\": null, \"annotations\": [], \"refusal\": null}",
       "content,role=;False"},
      {"{\"role\": \"assistant\", \"refusal\": \"no\"}", "content,refusal,role=no;False"},
      {"{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, "
       "{\"type\": \"text\", \"text\": \"b\"}]}",
       "content,role=a\nb;False"},
      {"{\"role\": \"user\", \"content\": []}", "content,role=;False"},
      {"{\"role\": \"assistant\", \"content\": \"a\", \"reasoning\": \"r\"}",
       "content,reasoning,reasoning_content,role=a;False"}};
  CHECK_ALL(MEMBERS, "\"tools\": [], ", SAMPLES);
}

TEST(calls_without_a_type_get_the_type_function) {
  static const char TYPE[] =
      "{% for c in messages[0].tool_calls %}{{ c.type + ' ' + c.function.name }};{% endfor %}";
  static const sample SAMPLES[] = {
      {"{\"tool_calls\": [{\"function\": {\"name\": \"f\"}}, {\"type\": \"x\", \"function\": "
       "{\"name\": \"g\"}}]}",
       "function f;x g;"}};
  CHECK_ALL(TYPE, "", SAMPLES);
}

TEST(call_ids_that_a_template_rejects_are_replaced) {
  static const char NINE[] =
      "{% for m in messages %}{% for c in m.tool_calls %}{% if c.id is not string or c.id | length "
      "!= 9 %}{{ raise_exception('nine') }}{% endif %}{{ c.id == messages[loop.index].tool_call_id "
      "}}{% endfor %}{% endfor %}";
  static const sample SAMPLES[] = {
      {"{\"tool_calls\": [{\"id\": \"call_1234567890\"}, {\"id\": \"abcDEF123\"}, {}]}, "
       "{\"role\": \"tool\", \"tool_call_id\": \"call_1234567890\"}, "
       "{\"role\": \"tool\", \"tool_call_id\": \"abcDEF123\"}, {\"role\": \"tool\"}",
       "TrueTrueTrue"}};
  CHECK_ALL(NINE, "", SAMPLES);
}

// gemma 4 looks up the name of a result by the id of its call.
TEST(result_ids_without_a_matching_call_are_replaced) {
  static const char KNOWN[] =
      "{% for c in messages[0].tool_calls %}{% if c.id != messages[loop.index].tool_call_id %}"
      "{{ raise_exception('id') }}{% endif %}{{ c.function.name }};{% endfor %}";
  static const sample SAMPLES[] = {
      {ASSISTANT("null", TWO_CALLS) "," RESULT("8", "x") "," RESULT("9", "y"), "f;g;"},
      {ASSISTANT("null", TWO_CALLS) "," RESULT("", "x") "," RESULT("2", "y"), "f;g;"},
      {ASSISTANT("null", CALL_OF("", "f", "{}")) "," RESULT("", "x"), "f;"}};
  CHECK_ALL(KNOWN, "", SAMPLES);
}

TEST(members_that_a_template_needs_are_added_to_tools) {
  static const char NEEDS[] =
      "{% for t in tools %}{{ t.function.name + ': ' + t.function.description }}("
      "{% for k, p in t.function.parameters.properties.items() %}{{ k + ' ' + p.type + ' ' + "
      "p.description }},{% endfor %});{% endfor %}";
  static const sample ONE[] = {{"", "f: ();"}};
#define TOOL(members) \
  "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"" members "}}], "
#define PARAMETERS(properties) ", \"parameters\": {\"properties\": {" properties "}}"
  CHECK_ALL(NEEDS, TOOL(""), ONE);
  CHECK_ALL(NEEDS, TOOL(", \"description\": null, \"parameters\": null"), ONE);
  CHECK_ALL(NEEDS, TOOL(", \"description\": \"\", \"parameters\": {}"), ONE);
  CHECK_ALL(NEEDS, TOOL(PARAMETERS("")), ONE);
  static const sample PLAIN[] = {{"", "f: (a string d,);"}};
  CHECK_ALL(NEEDS, TOOL(PARAMETERS("\"a\": {\"type\": \"string\", \"description\": \"d\"}")),
            PLAIN);
  static const sample TYPES[] = {
      {"", "f: (a string ,b integer ,c integer ,d object ,e array ,f string ,);"}};
  CHECK_ALL(
      NEEDS,
      TOOL(PARAMETERS("\"a\": true, \"b\": {\"enum\": [1]}, "
                      "\"c\": {\"type\": [\"null\", \"integer\"]}, \"d\": {\"properties\": {}}, "
                      "\"e\": {\"anyOf\": [{\"type\": \"array\"}]}, \"f\": {}")),
      TYPES);
}

TEST(tools_are_unchanged_if_a_template_needs_nothing_else) {
  static const char PRINTS[] = "{{ tools | tojson }}";
  static const sample SAMPLES[] = {
      {"", "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"}};
  CHECK_ALL(PRINTS, TOOL(", \"description\": null"), SAMPLES);
  // Command R's macro calls itself for the parts of an unknown type
  static const char NESTS[] =
      "{% macro type(p) %}{% if p.type == 'string' %}string{% elif p.type == 'object' %}"
      "<{{ p.additionalProperties.type }}>{% else %}[{{ type(p['items']) }}]{% endif %}"
      "{% endmacro %}{% for p in tools[0].function.parameters.properties.values() %}{{ type(p) "
      "}}{% endfor %}";
  static const sample DEEP[] = {{"", "[string]<>"}};
  CHECK_ALL(NESTS,
            TOOL(PARAMETERS("\"a\": {\"type\": \"array\", \"items\": {\"enum\": [\"x\"]}}, "
                            "\"b\": {\"type\": \"object\"}")),
            DEEP);
}

// Firefunction's template expects the tools as a string, and SmolLM3's under a different name.
TEST(tools_are_passed_under_the_name_that_a_template_uses) {
  static const sample TEXT[] = {
      {"", "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"}};
  CHECK_ALL("{{ '' + functions }}", TOOL(""), TEXT);
  CHECK_ALL("{{ xml_tools | tojson }}", TOOL(""), TEXT);
  static const sample NONE[] = {{"", "-False"}};
  CHECK_ALL("{{ '-' + functions }}{{ xml_tools is defined }}", "", NONE);
  static const sample OWN[] = {{"", "Falsex"}};
  CHECK_ALL("{{ functions is defined }}{{ 'x' if tools }}", TOOL(""), OWN);
}

TEST(reasoning_effort_is_mapped_to_values_that_a_template_supports) {
  static const sample UNCHANGED[] = {{"", "high True True"}};
  static const char PRINTS[] = "{{ reasoning_effort }} {{ enable_thinking }} {{ thinking }}";
  CHECK_ALL(PRINTS, "\"reasoning_effort\": \"max\", ", UNCHANGED);
  static const sample NONE[] = {{"", " False False"}};
  CHECK_ALL(PRINTS, "\"reasoning_effort\": \"none\", ", NONE);
  static const sample GIVEN[] = {{"", "low True 1"}};
  CHECK_ALL(PRINTS, "\"reasoning_effort\": \"minimal\", \"thinking\": 1, ", GIVEN);
  static const sample OWN[] = {{"", "much  "}};
  CHECK_ALL(PRINTS, "\"reasoning_effort\": \"much\", ", OWN);
  static const sample MAX[] = {{"", "max"}};
  CHECK_ALL("{{ reasoning_effort if reasoning_effort == 'max' }}",
            "\"reasoning_effort\": \"xhigh\", ", MAX);
  static const sample HIGH[] = {{"", "high"}};
  CHECK_ALL(
      "{% if reasoning_effort not in ['low', 'high'] %}{{ raise_exception('which') }}{% endif %}"
      "{{ reasoning_effort }}",
      "\"reasoning_effort\": \"medium\", ", HIGH);
}
