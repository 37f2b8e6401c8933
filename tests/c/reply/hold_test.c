// Replies constrained to tools: the output of all model families is allowed if its calls are valid,
// and the reply parser reads valid calls in whatever a random walk through the grammar generates.
#include <stdlib.h>

#include "grammar/document.h"
#include "hold_rig.h"
#include "random.h"
#include "vectors.h"

enum { WALK_BYTES_MAX = 3000, WALKS = 400, ENDING_BYTES_MAX = 512 };

static uint8_t *read_template(const vectors *v, uint32_t one, size_t *size_bytes) {
  const document_text name = vectors_text(v, one, "template");
  char path[256];
  *size_bytes = 0;
  if (name.size_bytes == 0) return NULL;
  snprintf(path, sizeof path, "vectors/templates/%.*s", (int)name.size_bytes,
           (const char *)name.bytes);
  return check_read_file(check_shared(path), size_bytes);
}

// ---- validity ----

// Returns the source of the schema of a tool's parameters; NULL if there is no such tool.
static document_text schema_of(const vectors *v, const rig_text *name) {
  const uint32_t tools = document_find(&v->document, 1, "tools");
  document_text found = {0};
  for (uint32_t at = vectors_node(v, tools)->first; at != 0; at = vectors_node(v, at)->next) {
    const uint32_t function = document_find(&v->document, at, "function");
    const document_text wanted = {(const uint8_t *)name->bytes, (uint32_t)name->size_bytes};
    if (!text_is_same(vectors_text(v, function, "name"), wanted)) continue;
    const json_node *schema = vectors_node(v, document_find(&v->document, function, "parameters"));
    found = (document_text){v->source + schema->at, (uint32_t)(schema->end - schema->at)};
  }
  return found;
}

static bool is_valid(const vectors *v, memory_gate *memory, const rig_call *call) {
  const document_text schema = schema_of(v, &call->name);
  const wick_grammar how = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                            .text = (const char *)schema.bytes,
                            .text_bytes = schema.size_bytes,
                            .any_spelling = true};
  grammar *made = NULL;
  if (schema.bytes == NULL || call->arguments.bytes[0] != '{') return false;
  if (!CHECK_EQ_INT(grammar_create(memory, NULL, &how, &made, NULL), WICK_OK)) return false;
  const bool fits = call->arguments.size_bytes < RIG_TEXT_BYTES &&
                    holds(made, call->arguments.bytes, call->arguments.size_bytes);
  grammar_destroy(made);
  return fits;
}

static bool are_valid(const vectors *v, reply_rig *rig) {
  bool are = rig->status == WICK_OK;
  for (uint32_t i = 0; i < rig->call_count && i < RIG_CALLS && are; i++) {
    are = rig->calls[i].has_ended && is_valid(v, &rig->memory, &rig->calls[i]);
  }
  return are;
}

static void show(const vectors *v, uint32_t one, const char *text, size_t size_bytes,
                 const reply_rig *rig) {
  const document_text id = vectors_text(v, one, "id");
  printf("# %.*s: %.*s\n#   status %d %s, %u calls: %s %s\n", (int)id.size_bytes,
         (const char *)id.bytes, (int)size_bytes, text, (int)rig->status, rig->error.message,
         rig->call_count, rig->calls[0].name.bytes, rig->calls[0].arguments.bytes);
}

// ---- random walks ----

// Chooses a byte that may follow, preferring bytes that close brackets and strings; -1: the text
// ends here.
static int draw(grammar *grammar, uint32_t state, uint64_t *seed, size_t written) {
  static const char CLOSING[] = "\"}])></|n\n";
  uint8_t fitting[256], closing[16];
  uint32_t count = 0, closing_count = 0;
  for (uint32_t byte = 0; byte < 256; byte++) {
    if (byte >= 0x80 && byte < 0xe0) continue;  // little text beyond ASCII
    if (machine_step(grammar->machine, state, (uint8_t)byte) == MACHINE_DEAD) continue;
    fitting[count++] = (uint8_t)byte;
    if (byte != 0 && strchr(CLOSING, (int)byte) != NULL) closing[closing_count++] = (uint8_t)byte;
  }
  const bool accepts = machine_accepts(grammar->machine, state);
  if (accepts && (count == 0 || random_below(seed, 3) == 0)) return -1;
  if (count == 0) {
    for (uint32_t byte = 0x80; byte < 0xe0; byte++) {
      if (machine_step(grammar->machine, state, (uint8_t)byte) != MACHINE_DEAD) return (int)byte;
    }
    return -2;
  }
  const bool closes = closing_count > 0 && random_below(seed, written > 300 ? 2 : 3) != 0;
  return closes ? closing[random_below(seed, closing_count)] : fitting[random_below(seed, count)];
}

// Writes a text that matches the grammar; returns 0 if it did not end.
static size_t walk(grammar *grammar, uint64_t *seed, char *text) {
  grammar_matcher matcher;
  size_t count = 0;
  matcher_begin(grammar, &matcher);
  while (count < WALK_BYTES_MAX) {
    machine_make_room(grammar->machine);
    const int byte = draw(grammar, matcher.mark.state, seed, count);
    if (byte < 0) {
      CHECK(byte == -1);
      matcher_end(&matcher);
      return count;
    }
    text[count++] = (char)byte;
    const uint8_t one = (uint8_t)byte;
    if (!CHECK(matcher_take_bytes(&matcher, &one, 1))) break;
  }
  matcher_end(&matcher);
  return 0;
}

typedef struct tally {
  uint32_t cases, required, refused, allowed, calls, walks, ended;
} tally;

static void walk_case(const vectors *v, reply_rig *rig, grammar *grammar, uint32_t one,
                      bool is_parallel, uint64_t *seed, tally *tally) {
  static char text[WALK_BYTES_MAX + 1];
  for (uint32_t i = 0; i < soak_count(WALKS) / 8 + 1; i++) {
    const size_t count = walk(grammar, seed, text);
    tally->walks++;
    if (count == 0) continue;
    tally->ended++;
    rig_parse(rig, text, count, 0, 0);
    const bool is_right =
        are_valid(v, rig) && rig->call_count >= 1 && (is_parallel || rig->call_count == 1);
    if (!CHECK(is_right)) {
      show(v, one, text, count, rig);
      return;
    }
    tally->calls += rig->call_count;
  }
}

static void check_case(const vectors *v, reply_rig *rig, uint32_t one, const char *tools,
                       size_t tools_bytes, uint64_t *seed, tally *tally) {
  const document_text raw = vectors_text(v, one, "raw");
  const char *text = (const char *)raw.bytes;
  for (int parallel = 0; parallel < 2; parallel++) {
    grammar *required = open_grammar(rig, tools, tools_bytes, "\"required\"", parallel != 0);
    if (required == NULL) {
      CHECK_EQ_INT(rig->status, WICK_E_UNSUPPORTED);
      tally->refused++;
      continue;
    }
    walk_case(v, rig, required, one, parallel != 0, seed, tally);
    if (parallel != 0 && holds(required, text, raw.size_bytes)) tally->required++;
    grammar_destroy(required);
  }
  grammar *free_one = open_grammar(rig, tools, tools_bytes, "\"auto\"", true);
  if (!CHECK(free_one != NULL)) return;
  if (holds(free_one, text, raw.size_bytes)) {
    tally->allowed++;
    rig_parse(rig, text, raw.size_bytes, 0, 0);
    if (!CHECK(are_valid(v, rig) || rig->call_count == 0)) {
      show(v, one, text, raw.size_bytes, rig);
    }
  }
  grammar_destroy(free_one);
}

// Checks every `step`th case, starting at `first`.
static void check_cases(uint32_t first, uint32_t step) {
  vectors v;
  tally tally = {0};
  uint64_t seed = soak_seed();
  static reply_rig rig;
  if (!vectors_open(&v, "vectors/structure/toolcalls/cases.json")) SKIP("no shared folder");
  const json_node *tools = vectors_node(&v, document_find(&v.document, 1, "tools"));
  const uint32_t cases = document_find(&v.document, 1, "cases");
  const char *given = (const char *)v.source + tools->at;
  uint32_t index = 0;
  for (uint32_t one = vectors_node(&v, cases)->first; one != 0;
       one = vectors_node(&v, one)->next, index++) {
    if (index % step != first) continue;
    size_t template_bytes = 0;
    uint8_t *template_text = read_template(&v, one, &template_bytes);
    const document_text prompt = vectors_text(&v, one, "generation_prompt");
    static char ending[ENDING_BYTES_MAX];
    memset(ending, 0, sizeof ending);
    if (CHECK(prompt.size_bytes < sizeof ending) && prompt.size_bytes > 0) {
      memcpy(ending, prompt.bytes, prompt.size_bytes);
    }
    rig_open(&rig, (const char *)template_text, template_bytes, given, tools->end - tools->at,
             ending);
    if (CHECK_EQ_INT(rig.status, WICK_OK)) {
      check_case(&v, &rig, one, given, tools->end - tools->at, &seed, &tally);
    }
    rig_close(&rig);
    free(template_text);
    tally.cases++;
  }
  printf("# %u cases: required allows %u, auto %u, %u rejected; %u of %u walks ended, %u calls\n",
         tally.cases, tally.required, tally.allowed, tally.refused, tally.ended, tally.walks,
         tally.calls);
  CHECK(tally.ended * 2 > tally.walks);
  CHECK(tally.required * 2 > tally.cases);
  CHECK(tally.allowed * 5 > tally.cases * 4);
  vectors_close(&v);
}

TEST(calls_of_some_families_are_constrained_to_their_schemas) { check_cases(2, 40); }

TEST(calls_of_every_family_are_constrained_to_their_schemas) {
  check_cases(0, soak_is_on() ? 1 : 4 * level_step(4));
}

// ---- cases written by hand ----

#define CALL(city) \
  "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"" city "\"}}\n</tool_call>"

TEST(reasoning_is_not_constrained_but_the_reply_after_it_is) {
  static const reply_case OPENED[] = {
      {"hm</think>\n" CALL("Oslo"), true, false, true},
      {"<tool_call>{no</think>" CALL("Oslo"), true, false, true},
      {"hm</think>" CALL("Oslo") "\n" CALL("Rome"), true, false, true},
      {"hm</think>" CALL("Oslo") "\n" CALL("Rome"), true, true, false},
      {"hm</think>" CALL("Lisbon"), true, false, false},
      {"hm</think>So. " CALL("Oslo"), true, false, false},
      {"hm", true, false, false},
      {"hm", false, false, true},
      {"hm</think>So. " CALL("Oslo") " Done.", false, false, true},
      {"hm</think>So. " CALL("Lisbon"), false, false, false},
      {"hm</think>So. " CALL("Oslo") " Done.", false, true, false},
      {"<tool_call>{no", false, false, true},
      {"hm</think><tool_call>{no", false, false, false},
  };
  static const reply_case OPEN[] = {
      {"<think>hm</think>" CALL("Oslo"), true, false, true},
      {CALL("Oslo"), true, false, true},
      {"\n<think><tool_call>no</think>Yes.", false, false, true},
      {"Yes: <tool_cal", false, false, true},
      {"Yes: <<tool_call>", false, false, false},
  };
  static const char KNOWN[] = "<tool_call> <think>";
  CHECK_REPLIES(KNOWN, "<think>\n", WEATHER, OPENED);
  CHECK_REPLIES(KNOWN, "", WEATHER, OPEN);
  static const reply_case OVER[] = {{"<think>hm</think>" CALL("Oslo"), true, false, false},
                                    {CALL("Oslo"), true, false, true}};
  CHECK_REPLIES(KNOWN, "<think>\n</think>", WEATHER, OVER);
}

TEST(a_call_without_a_marker_is_constrained_from_its_start) {
  static const char KNOWN[] = "\"parameters\": dictionary";
  static const reply_case CASES[] = {
      {"{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}", false, false, true},
      {"\n{\"name\": \"weather\", \"parameters\": {\"city\": \"Lisbon\"}}", false, false, false},
      {"{\"parameters\": {\"city\": 5}, \"name\": \"weather\"}", false, false, false},
      {"[{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}]", false, false, true},
      {"[{\"\nname\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}]", false, false, false},
      {"[{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}\n]", false, false, true},
      {"{ ", false, false, true},  // the text may end anywhere except in a call
      {"{ \"n", false, false, false},
      {"{x} is a set", false, false, true},
      {"[1] says so: {\"name\": 5}", false, false, true},
  };
  CHECK_REPLIES(KNOWN, "", WEATHER, CASES);
}

// Unquoted parameter values must be allowed by their schema.
TEST(tagged_parameters_are_constrained_to_their_types) {
  static const char TOOLS[] =
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
      "\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]},\"b\":{\"type\":\"integer\","
      "\"maximum\":5},"
      "\"c\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"minimum\":7}]},"
      "\"d\":{\"enum\":[\"x\",\"y\"]},\"e\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}"
      "}]";
#define PARAM(name, value) "<parameter=" name ">\n" value "\n</parameter>\n"
#define CALL_F(params) "<tool_call>\n<function=f>\n" params "</function>\n</tool_call>"
  static const reply_case CASES[] = {
      {CALL_F(PARAM("a", "null")), true, false, true},
      {CALL_F(PARAM("a", " 5, or \"6\"")), true, false, true},
      {CALL_F(PARAM("a", "x</parameter>y")), true, false, false},
      {CALL_F(PARAM("b", "5")), true, false, true},
      {CALL_F(PARAM("b", "6")), true, false, false},
      {CALL_F(PARAM("b", "\"5\"")), true, false, false},
      {CALL_F(PARAM("c", "7")), true, false, true},
      {CALL_F(PARAM("c", "6")), true, false,
       false},  // parsed as a number that the schema does not allow
      {CALL_F(PARAM("c", "six")), true, false, true},
      {CALL_F(PARAM("d", "x")), true, false, true},
      {CALL_F(PARAM("d", "z")), true, false, false},
      {CALL_F(PARAM("e", "[\"\\u003cb>\"]")), true, false, true},
      {CALL_F(PARAM("e", "[\"<b>\"]")), true, false, false},
      {CALL_F(PARAM("f", "x")), true, false, false},
      {CALL_F(""), true, false, true},
  };
  CHECK_REPLIES("<tool_call> <parameter=", "", TOOLS, CASES);
}

// If a schema allows a string and a second type, the parser reads values of that type as JSON.
TEST(tagged_parameters_of_two_types_are_strings_or_json) {
#define TWO(name, type, value) \
  "\"" name "\":{\"type\":[\"string\",\"" type "\"],\"enum\":[\"x\"," value "]},"
  static const char TOOLS[] =
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
      "\"properties\":{" TWO("a", "null", "null") TWO("b", "boolean", "true")
          TWO("c", "boolean", "false") TWO("d", "number", "7") TWO("e", "array", "[1]")
              TWO("f", "object", "{\"k\":1}") "\"g\":{\"type\":\"string\"}}}}}]";
  static const reply_case CASES[] = {
      {CALL_F(PARAM("a", "x")), true, false, true},
      {CALL_F(PARAM("a", "null")), true, false, true},
      {CALL_F(PARAM("a", "true")), true, false, false},
      {CALL_F(PARAM("b", "x")), true, false, true},
      {CALL_F(PARAM("b", "true")), true, false, true},
      {CALL_F(PARAM("b", "false")), true, false, false},
      {CALL_F(PARAM("c", "x")), true, false, true},
      {CALL_F(PARAM("c", "false")), true, false, true},
      {CALL_F(PARAM("c", "true")), true, false, false},
      {CALL_F(PARAM("d", "x")), true, false, true},
      {CALL_F(PARAM("d", "7")), true, false, true},
      {CALL_F(PARAM("d", "8")), true, false, false},
      {CALL_F(PARAM("e", "x")), true, false, true},
      {CALL_F(PARAM("e", "[1]")), true, false, true},
      {CALL_F(PARAM("e", "[2]")), true, false, false},
      {CALL_F(PARAM("f", "x")), true, false, true},
      {CALL_F(PARAM("f", "{\"k\": 1}")), true, false, true},
      {CALL_F(PARAM("f", "{\"k\": 2}")), true, false, false},
  };
  CHECK_REPLIES("<tool_call> <parameter=", "", TOOLS, CASES);
#undef TWO
}

// The white space between the calls of a list is limited to what JSON printers write.
TEST(calls_in_a_list_are_separated_as_in_printed_json) {
#define ONE "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}, \"id\": \"a12345678\"}"
#define LIST(calls) "[TOOL_CALLS][" calls "]"
  static const reply_case CASES[] = {
      {LIST(ONE), true, false, true},
      {LIST(ONE "," ONE), true, false, true},
      {LIST(ONE ", " ONE), true, false, true},
      {LIST(ONE ",\n" ONE), true, false, true},
      {LIST(ONE ",\n    " ONE ", " ONE), true, false, true},
      {LIST(ONE "\n"), true, false, true},
      {LIST(ONE ",\n     " ONE), true, false, false},
      {LIST(ONE ",\n\n" ONE), true, false, false},
      {LIST(ONE " " ONE), true, false, false},
      {LIST(ONE ", "), true, false, false},
      {LIST(ONE ", " ONE), true, true, false},
      {LIST(""), true, false, false},
  };
  CHECK_REPLIES("[TOOL_CALLS]", "", WEATHER, CASES);
#undef ONE
#undef LIST
}

// Replies in OpenAI's harmony format: messages without calls, and calls in message headers.
TEST(calls_in_channels_are_constrained) {
#define MESSAGE(channel, text) "<|channel|>" channel "<|message|>" text
#define NEXT "<|start|>assistant"
#define BODY "<|message|>{\"city\": \"Oslo\"}"
#define TO_WEATHER "<|channel|>commentary to=functions.weather"
#define ONE TO_WEATHER BODY
#define ROLE " to=functions.weather"
  static const reply_case CASES[] = {
      {MESSAGE("final", "Hi."), false, false, true},
      {MESSAGE("analysis", "Hm."), false, false, true},
      {MESSAGE("commentary", ""), false, false, true},
      {MESSAGE("other", "Hm."), false, false, false},
      {MESSAGE("analysis", "Hm.<|end|>"), false, false, true},
      {MESSAGE("analysis", "Hm.<|end|>x"), false, false, false},
      {MESSAGE("analysis", "Hm.<|start|>"), false, false, false},
      {MESSAGE("analysis", "Hm.<|channel|>"), false, false, false},
      {MESSAGE("analysis", "Hm.<|end|>") NEXT MESSAGE("final", "Hi."), false, false, true},
      {MESSAGE("final", "Hm.<|end|>") NEXT ONE, false, false, true},
      {MESSAGE("analysis", "Hm.<|end|>") NEXT, false, false, false},
      {"Hi.", false, false, false},
      {ONE, false, false, true},
      {ONE "<|call|>", false, false, true},
      {ONE "<|end|>", false, false, true},
      {ONE "<|call|>", false, true, false},
      {TO_WEATHER " <|constrain|>json" BODY, false, false, true},
      {TO_WEATHER " <|constrain|>" BODY, false, false, false},
      {TO_WEATHER " json" BODY, false, false, true},
      {TO_WEATHER " jso" BODY, false, false, false},
      {TO_WEATHER "s" BODY, false, false, false},
      {TO_WEATHER "<|message|>{\"city\": \"Bergen\"}", false, false, false},
      {TO_WEATHER "<|message|>{}", false, false, false},
      {ROLE "<|channel|>commentary" BODY, false, false, true},
      {ROLE "<|channel|>commentary <|constrain|>json" BODY, false, false, true},
      {ROLE "<|channel|>commentary json" BODY, false, false, true},
      {ROLE BODY, false, false, false},
      {ONE ONE, false, false, false},
      {ONE "<|call|>" NEXT ONE, false, false, true},
      {ONE "<|end|>" NEXT ONE "<|call|>", false, false, true},
      {ONE "<|call|>" NEXT ONE, false, true, false},
      {ONE "<|call|>" NEXT MESSAGE("final", "Hi."), false, false, true},
      {ONE "<|call|>" NEXT, false, false, false},
      // if a call is required
      {MESSAGE("final", "Hi."), true, false, false},
      {MESSAGE("analysis", "Hm."), true, false, false},
      {MESSAGE("analysis", "Hm.<|end|>"), true, false, false},
      {MESSAGE("analysis", "Hm.<|end|>") NEXT ONE, true, false, true},
      {MESSAGE("commentary", "Hm.<|end|>") NEXT ONE, true, true, true},
      {MESSAGE("final", "Hm.<|end|>") NEXT ONE, true, false, false},
      {ONE "<|call|>" NEXT ONE, true, false, true},
      {ONE "<|call|>" NEXT ROLE "<|channel|>commentary" BODY, true, false, true},
      {ONE "<|call|>" NEXT ONE, true, true, false},
      {ONE "<|call|>" NEXT MESSAGE("final", "Hi."), true, false, false},
      {ONE "<|call|>" NEXT MESSAGE("analysis", "Hm.<|end|>") NEXT ONE, true, false, false},
  };
  CHECK_REPLIES("<|message|>", "<|start|>assistant", WEATHER, CASES);
#undef MESSAGE
#undef NEXT
#undef BODY
#undef TO_WEATHER
#undef ONE
#undef ROLE
}

// A reply may contain several calls if the format allows it, but a named tool is called only once.
TEST(a_named_tool_is_called_only_once) {
#define ONE \
  "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"
#define TO_WEATHER "<|channel|>commentary to=functions.weather<|message|>{\"city\": \"Oslo\"}"
  static const char NAMED[] = "{\"type\":\"function\",\"function\":{\"name\":\"weather\"}}";
  static const struct {
    const char *source, *ending, *choice, *text;
    bool fits;
  } CASES[] = {
      {"<tool_call>", "", NAMED, ONE, true},
      {"<tool_call>", "", NAMED, ONE "\n", false},
      {"<tool_call>", "", NAMED, ONE "\n" ONE, false},
      {"<tool_call>", "", "\"required\"", ONE, true},
      {"<tool_call>", "", "\"required\"", ONE "\n", true},
      {"<tool_call>", "", "\"required\"", ONE "\n" ONE, true},
      {"<tool_call>", "", "\"required\"", ONE "\nHi", false},
      {"<|message|>", "<|start|>assistant", NAMED, TO_WEATHER, true},
      {"<|message|>", "<|start|>assistant", NAMED,
       TO_WEATHER "<|call|><|start|>assistant" TO_WEATHER, false},
      {"[TOOL_CALLS] [ARGS]", "", NAMED, "[TOOL_CALLS]weather[ARGS]{\"city\": \"Oslo\"}", true},
      {"[TOOL_CALLS] [ARGS]", "", NAMED,
       "[TOOL_CALLS]weather[ARGS]{\"city\": \"Oslo\"}[TOOL_CALLS]weather[ARGS]{\"city\": \"a\"}",
       false},
  };
  static reply_rig rig;
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    rig_open(&rig, CASES[i].source, strlen(CASES[i].source), NULL, 0, CASES[i].ending);
    grammar *made = open_grammar(&rig, WEATHER, sizeof WEATHER - 1, CASES[i].choice, true);
    const bool fits = made != NULL && holds(made, CASES[i].text, strlen(CASES[i].text));
    if (!CHECK(fits == CASES[i].fits)) printf("# %s\n", CASES[i].text);
    grammar_destroy(made);
    rig_close(&rig);
  }
#undef ONE
#undef TO_WEATHER
}

TEST(calls_without_markers_are_separated_by_semicolons) {
#define LLAMA "{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}"
  static const reply_case CASES[] = {
      {LLAMA "; " LLAMA, false, false, true},
      {LLAMA ";" LLAMA, true, false, true},
      {LLAMA "; " LLAMA, true, false, true},
      {LLAMA "; " LLAMA, true, true, false},
      {LLAMA "; {\"name\": 5}", false, false, false},
      {LLAMA "; and", false, false, true},
      {LLAMA "; and", true, false, false},
  };
  CHECK_REPLIES("\"parameters\": dictionary", "", WEATHER, CASES);
#undef LLAMA
}

// A call's arguments may be in any order; none is repeated, and all required ones are present.
TEST(arguments_may_be_in_any_order) {
#define NUMBER(name) "\"" name "\":{\"type\":\"integer\"}"
#define JSON_CALL(members) \
  "<tool_call>\n{\"name\": \"f\", \"arguments\": {" members "}}\n</tool_call>"
#define OTHERS                                                                    \
  NUMBER("m1")                                                                    \
  "," NUMBER("m2") "," NUMBER("m3") "," NUMBER("m4") "," NUMBER("m5") "," NUMBER( \
      "m"                                                                         \
      "6")
  static const char TOOLS[] =
      "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
      "\"properties\":{" NUMBER("a") "," NUMBER("b") ",\"c\":{\"type\":\"object\",\"properties\":{"
      NUMBER("x") "," NUMBER("y") "}}," OTHERS "},\"required\":[\"b\"]}}}]";
  static const reply_case JSON[] = {
      {JSON_CALL("\"b\": 1"), true, false, true},
      {JSON_CALL("\"a\": 1, \"b\": 2"), true, false, true},
      {JSON_CALL("\"b\": 2, \"a\": 1"), true, false, true},
      {JSON_CALL("\"m6\": 1, \"m1\": 2, \"b\": 3, \"m3\": 4"), true, false, true},
      {JSON_CALL("\"c\": {\"x\": 1, \"y\": 2}, \"b\": 2, \"a\": 1"), true, false, true},
      {JSON_CALL("\"b\": 2, \"c\": {}, \"a\": 1"), true, false, true},
      {JSON_CALL("\"m6\": 1, \"m5\": 1, \"m4\": 1, \"m3\": 1, \"m2\": 1, \"m1\": 1, \"c\": {}, "
                 "\"b\": 1, \"a\": 1"),
       true, false, true},
      {JSON_CALL(""), true, false, false},
      {JSON_CALL("\"a\": 1"), true, false, false},
      {JSON_CALL("\"b\": 1, \"b\": 1"), true, false, false},
      {JSON_CALL("\"b\": 1, \"a\": 1, \"b\": 1"), true, false, false},
      {JSON_CALL("\"a\": 1, \"b\": 1, \"a\": 1"), true, false, false},
      {JSON_CALL("\"b\": 1, "), true, false, false},
      {JSON_CALL("\"b\": 1 \"a\": 1"), true, false, false},
      {JSON_CALL("\"b\": 1, \"z\": 1"), true, false, false},
  };
  static const reply_case PARAMS[] = {
      {"<tool_call>\n<function=f>\n<parameter=b>\n1\n</parameter>\n<parameter=a>\n2\n</parameter>\n"
       "</function>\n</tool_call>",
       true, false, true},
      {"<tool_call>\n<function=f>\n<parameter=b>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n"
       "</function>\n</tool_call>",
       true, false, false},
      {"<tool_call>\n<function=f>\n<parameter=a>\n2\n</parameter>\n</function>\n</tool_call>", true,
       false, false},
  };
  static const reply_case GEMMA[] = {
      {"<|tool_call>call:f{m1:1,b:2,a:3}<tool_call|>", true, false, true},
      {"<|tool_call>call:f{m1:1,b:2,m1:3}<tool_call|>", true, false, false},
      {"<|tool_call>call:f{m1:1}<tool_call|>", true, false, false},
  };
  static const reply_case PYTHON[] = {
      {"[f(m1=1, b=2, a=3)]", true, false, true},
      {"[f(b=2, b=3)]", true, false, false},
      {"[f(a=3)]", true, false, false},
  };
  CHECK_REPLIES("<tool_call>", "", TOOLS, JSON);
  CHECK_REPLIES("<tool_call> <parameter=", "", TOOLS, PARAMS);
  CHECK_REPLIES("<|tool_call>", "", TOOLS, GEMMA);
  CHECK_REPLIES("func_name1(", "", TOOLS, PYTHON);
#undef NUMBER
#undef JSON_CALL
#undef OTHERS
}

TEST(too_many_tools_are_rejected) {
  enum { TOOLS = 1025 };
  static const char ONE[] = "{\"function\":{\"name\":\"a\"}},";
  static char tools[TOOLS * (sizeof ONE - 1) + 2];
  size_t size = 0;
  tools[size++] = '[';
  for (uint32_t i = 0; i < TOOLS; i++, size += sizeof ONE - 1) {
    memcpy(tools + size, ONE, sizeof ONE - 1);
  }
  tools[size - 1] = ']';
  static reply_rig rig;
  rig_open(&rig, "<tool_call>", 11, NULL, 0, "");
  grammar *made = open_grammar(&rig, tools, size, "\"required\"", true);
  CHECK(made == NULL);
  CHECK_EQ_INT(rig.status, WICK_E_UNSUPPORTED);
  grammar_destroy(made);
  rig_close(&rig);
}

TEST(invalid_tools_and_choices_are_rejected) {
  static const struct {
    const char *tools, *choice;
    wick_status status;
    const char *message;
  } CASES[] = {
      {"{}", "\"auto\"", WICK_E_ARG, "tools must be an array"},
      {"[{\"function\":{}}]", "\"auto\"", WICK_E_ARG, "tools: a tool has no name"},
      {"[{\"function\":{\"name\":\"a b\"}}]", "\"auto\"", WICK_E_UNSUPPORTED,
       "tools: a name contains characters that a call cannot have"},
      {"[{\"function\":{\"name\":\"a\"}}]", "{\"function\":{\"name\":\"b\"}}", WICK_E_ARG,
       "tool_choice: no tool has this name"},
      {"[{\"function\":{\"name\":\"a\"}}]", "{}", WICK_E_ARG,
       "tool_choice must be auto, required, or a function"},
      {"[{\"function\":{\"name\":\"a\",\"parameters\":{\"type\":\"thing\"}}}]", "\"required\"",
       WICK_E_ARG, "the tool a: schema, #/type: unknown type"},
      {"[{\"function\":{\"name\":\"a\",\"parameters\":{\"type\":\"string\"}}}]", "\"required\"",
       WICK_E_ARG, "no text satisfies the grammar"},
      {"[{\"function\":{\"name\":\"a\",\"parameters\":{\"$ref\":\"x\"}}}]", "\"required\"",
       WICK_E_UNSUPPORTED, "the tool a: schema, #/$ref: $ref target is outside the document"},
      {"[", "\"auto\"", WICK_E_ARG, "JSON, byte 61: a bad number"},
      {"[5]", "\"auto\"", WICK_E_ARG, "tools: a tool has no name"},
      {"[{\"name\":5}]", "\"auto\"", WICK_E_ARG, "tools: a tool has no name"},
      {"5", "\"auto\"", WICK_E_ARG, "tools must be an array"},
      {"[{\"function\":{\"name\":\"\"}}]", "\"auto\"", WICK_E_UNSUPPORTED,
       "tools: a name contains characters that a call cannot have"},
      {"[{\"function\":{\"name\":\"a\"}}]", "{\"function\":{\"name\":5}}", WICK_E_ARG,
       "tool_choice must be auto, required, or a function"},
      {"[{\"function\":{\"name\":\"a\"}}]", "5", WICK_E_ARG,
       "tool_choice must be auto, required, or a function"},
      {"[{\"function\":{\"name\":\"a\"}}]", "\"some\"", WICK_E_ARG,
       "tool_choice must be auto, required, or a function"},
      {"[{\"function\":{\"name\":\"a\",\"parameters\":5}}]", "\"required\"", WICK_E_ARG,
       "the tool a: schema, #: a schema is an object, true or false"},
  };
  static reply_rig rig;
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    rig_open(&rig, "<tool_call>", 11, NULL, 0, "");
    grammar *made =
        open_grammar(&rig, CASES[i].tools, strlen(CASES[i].tools), CASES[i].choice, true);
    if (!CHECK(made == NULL) || !CHECK_EQ_INT(rig.status, CASES[i].status)) {
      printf("# %s\n", CASES[i].tools);
    }
    CHECK_EQ_STR(rig.error.message, CASES[i].message);
    grammar_destroy(made);
    rig_close(&rig);
  }
}
