// Messages of other servers, files and routers, for templates that refuse what these contain.
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
  const char *messages, *wanted;  // NULL: refused
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

TEST(several_system_messages_for_a_template_that_knows_one_at_the_beginning) {
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

TEST(system_messages_that_a_template_would_leave_out) {
  static const char FIRST[] =
      "{% if messages[0].role == 'system' %}{{ messages[0].content | trim }};{% endif %}"
      "{% for m in messages if m.role != 'system' %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", " a ") "," MESSAGE("system", "b") "," MESSAGE("user", "c"),
       "a \n\nb;u:c;"},
      {MESSAGE("system", "a") "," MESSAGE("user", "c") "," MESSAGE("system", "b"), "a;u:c\n\nb;"}};
  CHECK_ALL(FIRST, "", SAMPLES);
}

TEST(a_template_that_knows_no_system_message) {
  static const char NONE[] =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('alternate') }}{% endif %}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", "a") "," MESSAGE("user", "b"), "u:a\n\nb;"},
      {MESSAGE("user", "a") "," MESSAGE("assistant", "b") "," MESSAGE("system", "c"),
       "u:a;a:b;u:c;"},
      {MESSAGE("system", "a"), "u:a;"},
      {MESSAGE("assistant", "a") "," MESSAGE("user", "b"), NULL}};
  CHECK_ALL(NONE, "", SAMPLES);
}

// Codex sends a developer's message and two of the user; other servers send results of tools.
TEST(turns_that_a_template_needs_alternately) {
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

TEST(an_answer_that_the_user_did_not_wait_for) {
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
       "u:a;a:;t:1;a:;u:b;"}};
  CHECK_ALL(PLAIN, "", SAMPLES);
}

TEST(arguments_that_are_no_objects) {
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

TEST(a_template_that_knows_developers) {
  static const char DEVELOPER[] =
      "{% for m in messages %}{{ 'D' if m.role == 'developer' }}" PRINT "{% endfor %}";
  static const sample SAMPLES[] = {
      {MESSAGE("system", "a") "," MESSAGE("developer", "b"), "s:a;Dd:b;"}};
  CHECK_ALL(DEVELOPER, "", SAMPLES);
}

TEST(empty_members_are_absent) {
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

TEST(calls_without_a_type) {
  static const char TYPE[] =
      "{% for c in messages[0].tool_calls %}{{ c.type + ' ' + c.function.name }};{% endfor %}";
  static const sample SAMPLES[] = {
      {"{\"tool_calls\": [{\"function\": {\"name\": \"f\"}}, {\"type\": \"x\", \"function\": "
       "{\"name\": \"g\"}}]}",
       "function f;x g;"}};
  CHECK_ALL(TYPE, "", SAMPLES);
}

TEST(ids_of_calls_that_a_template_refuses) {
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

TEST(efforts_that_a_template_knows) {
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
