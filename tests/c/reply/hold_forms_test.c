// Each tool call format, with an example written by hand: the example is allowed unchanged, and
// variants of it are allowed only if the reply parser still reads a valid call.
#include "hold_rig.h"
#include "recorded_lines.h"
#include "reply/forms.h"

enum { TEXT_BYTES_MAX = 512 };

#define ARGS "{\"city\": \"Oslo\"}"
#define JSON_CALL "{\"name\": \"weather\", \"arguments\": " ARGS "}"
#define COMMAND_CALL \
  "{\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": " ARGS "}"
#define COMMAND_R_CALL "{\"tool_name\": \"weather\", \"parameters\": " ARGS "}"
#define MISTRAL_CALL "{\"name\": \"weather\", \"arguments\": " ARGS ", \"id\": \"a12345678\"}"
#define LLAMA_CALL "{\"name\": \"weather\", \"parameters\": " ARGS "}"
#define APERTUS_CALL "{\"weather\": " ARGS "}"
#define DEEPSEEK_CALL "<｜tool▁call▁begin｜>weather<｜tool▁sep｜>" ARGS "<｜tool▁call▁end｜>"
#define DEEPSEEK_OLD_CALL \
  "<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n" ARGS "\n```<｜tool▁call▁end｜>"
#define KIMI_CALL \
  "<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>" ARGS "<|tool_call_end|>"
#define HUNYUAN_CALL                                                                  \
  "<tool_call:opensource>weather<tool_sep:opensource><arg_key:opensource>city"        \
  "</arg_key:opensource><arg_value:opensource>Oslo</arg_value:opensource></tool_call" \
  ":opensource>"
#define FUNCTION_CALL "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"
#define PLAIN_FUNCTION_CALL "<function=weather><parameter=city>Oslo</parameter></function>"
#define INVOKE_CALL "<invoke name=\"weather\"><parameter name=\"city\">Oslo</parameter></invoke>"
#define ATEM_CALL                                                                            \
  "<atem:invoke name=\"weather\"><atem:parameter name=\"city\">Oslo</atem:parameter></atem:" \
  "invoke>"
#define DSML_CALL                                                                      \
  "<｜DSML｜invoke name=\"weather\"><｜DSML｜parameter name=\"city\" string=\"true\">" \
  "Oslo</｜DSML｜parameter></｜DSML｜invoke>"

#define KIMI_K3_CALL                                                                      \
  "<|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"" \
  "string\"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|>"
#define KIMI_K3_JSON_CALL                                                                    \
  "<|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>json type=\"object\"<|sep|>" ARGS \
  "<|close|>json<|sep|><|close|>call<|sep|>"
#define MINIMAX "]<]minimax[>["
#define MINIMAX_CALL \
  MINIMAX "<invoke name=\"weather\">" MINIMAX "<city>Oslo" MINIMAX "</city>" MINIMAX "</invoke>"

typedef enum form_kind {
  MARKED,
  // the marker is an ordinary word that only counts with the text after it
  PROSE,
  // without a marker: constrained at the start of the reply
  BARE
} form_kind;

typedef struct form_case {
  const char *trait, *open, *rest;
  const char *two;  // two calls in one list; NULL: each call has its own markers
  form_kind kind;
} form_case;

static const form_case FORMS[] = {
    {"<tool_call>", "<tool_call>", JSON_CALL "</tool_call>", NULL, MARKED},
    {"<tool_calls>", "<tool_calls>", JSON_CALL "</tool_calls>",
     "<tool_calls>" JSON_CALL "\n" JSON_CALL "</tool_calls>", MARKED},
    {"<TOOLCALL>", "<TOOLCALL>", "[" JSON_CALL "]</TOOLCALL>",
     "<TOOLCALL>[" JSON_CALL ", " JSON_CALL "]</TOOLCALL>", MARKED},
    {"<|tool_call|>", "<|tool_call|>", "[" JSON_CALL "]<|/tool_call|>",
     "<|tool_call|>[" JSON_CALL "," JSON_CALL "]", MARKED},
    {"<|function_call|>", "<|function_call|>", JSON_CALL, NULL, MARKED},
    {"'role': 'function call'", "<|message_sep|>\n\nfunction call<|role_sep|>\n", JSON_CALL, NULL,
     MARKED},
    {"<|START_ACTION|>", "<|START_ACTION|>", "[" COMMAND_CALL "]<|END_ACTION|>",
     "<|START_ACTION|>[\n    " COMMAND_CALL ",\n    " COMMAND_CALL "\n]<|END_ACTION|>", MARKED},
    {"<|tools_prefix|>", "<|tools_prefix|>", "[" APERTUS_CALL "]<|tools_suffix|>",
     "<|tools_prefix|>[" APERTUS_CALL ", " APERTUS_CALL "]<|tools_suffix|>", MARKED},
    {"[TOOL_CALLS]", "[TOOL_CALLS]", "[" MISTRAL_CALL "]",
     "[TOOL_CALLS][" MISTRAL_CALL ", " MISTRAL_CALL "]", MARKED},
    {"functools[", "functools[", JSON_CALL "]", "functools[" JSON_CALL ", " JSON_CALL "]", MARKED},
    {"<|python_tag|>", "<|python_tag|>", LLAMA_CALL, NULL, MARKED},
    {"Action:\\n```json", "Action:", " ```json\n[" COMMAND_R_CALL "]\n```",
     "Action: ```json\n[" COMMAND_R_CALL ", " COMMAND_R_CALL "]\n```", PROSE},
    {"\"parameters\": dictionary", "", LLAMA_CALL, NULL, BARE},
    {"[CALL_ID]", "[TOOL_CALLS]", "weather[CALL_ID]a12345678[ARGS]" ARGS, NULL, MARKED},
    {"[ARGS]", "[TOOL_CALLS]", "weather[ARGS]" ARGS, NULL, MARKED},
    {"<function=", "<function=", "weather>" ARGS "</function>", NULL, MARKED},
    {">>>all", ">>>", "weather\n" ARGS, NULL, MARKED},
    {"tool▁call▁begin", "<｜tool▁calls▁begin｜>", DEEPSEEK_OLD_CALL "<｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜>" DEEPSEEK_OLD_CALL "\n" DEEPSEEK_OLD_CALL "<｜tool▁calls▁end｜>",
     MARKED},
    {"tool▁call▁begin", "<｜tool▁calls▁begin｜>", DEEPSEEK_CALL "<｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜>" DEEPSEEK_CALL DEEPSEEK_CALL "<｜tool▁calls▁end｜>", MARKED},
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>",
     KIMI_CALL "<|tool_calls_section_end|>",
     "<|tool_calls_section_begin|>" KIMI_CALL KIMI_CALL "<|tool_calls_section_end|>", MARKED},
    {"<|tool_call_begin|>", "<|tool_call_begin|>",
     "functions.weather:0<|tool_call_argument_begin|>" ARGS "<|tool_call_end|>", NULL, MARKED},
    {"<|tool_call:begin|>", "<|tool_call:begin|>",
     "aB1<|tool_call:name|>weather<|tool_call:args|>" ARGS "<|tool_call:end|>", NULL, MARKED},
    {"<tool_call> <parameter=", "<tool_call>", "\n" FUNCTION_CALL "\n</tool_call>", NULL, MARKED},
    {"<parameter=", "<function=", "weather>\n<parameter=city>\nOslo\n</parameter>\n</function>",
     NULL, MARKED},
    {"seed:tool_call", "<seed:tool_call>", PLAIN_FUNCTION_CALL "</seed:tool_call>", NULL, MARKED},
    {"<arg_key>", "<tool_call>",
     "weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>", NULL, MARKED},
    {"<arg_key{}>", "<tool_calls:opensource>", HUNYUAN_CALL "</tool_calls:opensource>",
     "<tool_calls:opensource>" HUNYUAN_CALL "\n" HUNYUAN_CALL "</tool_calls:opensource>", MARKED},
    {"minimax:tool_call", "<minimax:tool_call>", INVOKE_CALL "</minimax:tool_call>",
     "<minimax:tool_call>" INVOKE_CALL "\n" INVOKE_CALL "\n</minimax:tool_call>", MARKED},
    {"<function_calls>", "<function_calls>", INVOKE_CALL "</function_calls>",
     "<function_calls>" INVOKE_CALL INVOKE_CALL "</function_calls>", MARKED},
    {"<atem:function_calls>", "<atem:function_calls>", ATEM_CALL "</atem:function_calls>",
     "<atem:function_calls>" ATEM_CALL ATEM_CALL "</atem:function_calls>", MARKED},
    {"｜DSML｜", "<｜DSML｜function_calls>", DSML_CALL "</｜DSML｜function_calls>",
     "<｜DSML｜function_calls>" DSML_CALL DSML_CALL "</｜DSML｜function_calls>", MARKED},
    {"｜DSML｜", "<｜DSML｜tool_calls>", DSML_CALL "</｜DSML｜tool_calls>",
     "<｜DSML｜tool_calls>" DSML_CALL DSML_CALL "</｜DSML｜tool_calls>", MARKED},
    {"<|open|>", "<|open|>tools<|sep|>", KIMI_K3_CALL "<|close|>tools<|sep|>",
     "<|open|>tools<|sep|>" KIMI_K3_CALL KIMI_K3_CALL "<|close|>tools<|sep|>", MARKED},
    {"<|open|>", "<|open|>tools<|sep|>", KIMI_K3_JSON_CALL "<|close|>tools<|sep|>",
     "<|open|>tools<|sep|>" KIMI_K3_JSON_CALL KIMI_K3_JSON_CALL "<|close|>tools<|sep|>", MARKED},
    {MINIMAX, MINIMAX "<tool_call>", "\n" MINIMAX_CALL "\n" MINIMAX "</tool_call>",
     MINIMAX "<tool_call>\n" MINIMAX_CALL "\n" MINIMAX_CALL "\n" MINIMAX "</tool_call>", MARKED},
    {"<function name=\"", "<function name=\"",
     "weather\"><param name=\"city\"><![CDATA[Oslo]]></param></function>", NULL, MARKED},
    {"<function name=\"", "<function name=\"",
     "weather\"><param name=\"city\">Oslo</param></function>", NULL, MARKED},
    {"<|tool_call_start|>", "<|tool_call_start|>", "[weather(city=\"Oslo\")]<|tool_call_end|>",
     "<|tool_call_start|>[weather(city=\"Oslo\"), weather(city=\"Oslo\")]<|tool_call_end|>",
     MARKED},
    {"<|tool_call_start|>", "<|tool_call_start|>", "[" JSON_CALL "]<|tool_call_end|>",
     "<|tool_call_start|>[" JSON_CALL ", " JSON_CALL "]<|tool_call_end|>", MARKED},
    {"func_name1(", "", "[weather(city=\"Oslo\")]",
     "[weather(city=\"Oslo\"), weather(city=\"Oslo\")]", BARE},
    {"<|tool_call>", "<|tool_call>", "call:weather{city:<|\"|>Oslo<|\"|>}<tool_call|>", NULL,
     MARKED},
    {"<start_function_call>", "<start_function_call>",
     "call:weather{city:<escape>Oslo<escape>}<end_function_call>", NULL, MARKED},
};
enum { FORM_COUNT = sizeof FORMS / sizeof FORMS[0] };

// Model families that use these formats, for the documentation.
static const char *const FAMILIES[] = {
    "Hermes, Qwen 2.5 and 3, Granite 4, SmolLM 3, QwQ",
    "MiniMax M1, Apriel",
    "Nemotron Nano v2",
    "Phi 4 mini, Granite 3.3",
    "GigaChat 3.1",
    "GigaChat 3",
    "Command R7B, Command A",
    "Apertus",
    "Mistral Nemo",
    "Phi 4 mini, firefunction v2",
    "Llama 3.1 with built-in tools",
    "Command R+",
    "Llama 3.1, 3.2, 3.3",
    "Mistral Small 3.2",
    "Ministral 3, Devstral",
    "functionary 3.1",
    "functionary 3.2",
    "DeepSeek R1, V3",
    "DeepSeek V3.1",
    "Kimi K2",
    "Kimi K2 without a section",
    "Solar Open",
    "Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5",
    "Qwen3-Coder without the outer tag",
    "Seed-OSS",
    "GLM 4.5 to 4.7",
    "Hunyuan 3",
    "MiniMax M2",
    "Other models with <invoke> elements",
    "Muse",
    "DeepSeek V3.2",
    "DeepSeek V4",
    "Kimi K3",
    "Kimi K3, arguments as one object",
    "MiniMax M3",
    "MiniCPM 5, wrapped text",
    "MiniCPM 5",
    "LFM 2",
    "LFM 2.5",
    "Llama 3.2 and 4",
    "Gemma 4",
    "FunctionGemma",
};
_Static_assert(sizeof FAMILIES / sizeof FAMILIES[0] == FORM_COUNT, "one for each form");

// ---- the documentation ----

static bool has_example(const reply_form *form) {
  bool has = form->arguments == ARGUMENTS_CHANNELS;
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const char *open = strcmp(FORMS[i].open, "functools[") == 0 ? "functools" : FORMS[i].open;
    has = has || (strstr(FORMS[i].trait, form->trait) != NULL && strcmp(open, form->open) == 0);
  }
  return has;
}

// Records lines as a Markdown code block.
static void record_indented(const char *lines) {
  while (*lines != '\0') {
    const size_t length = strcspn(lines, "\n");
    record_line("%s%.*s\n", length == 0 ? "" : "    ", (int)length, lines);
    lines += length + 1;
  }
}

TEST(every_format_is_documented) {
  record_line(
      "# Tool call formats\n\n"
      "The format is detected by searching the chat template for the text in parentheses, which "
      "occurs only in templates\nfor that format. Each format is parsed, and with `tools` "
      "the calls are constrained to it. The examples call\n`weather` with the city Oslo. "
      "`tests/c/reply/hold_forms_test.c` generates this page from the table in\n"
      "`src/reply/forms.c` and checks every example.\n");
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    record_line("\n%s (`%s`):\n\n", FAMILIES[i],
                strstr(FORMS[i].trait, "```") == NULL ? FORMS[i].trait : "Action:");
    char example[TEXT_BYTES_MAX];
    snprintf(example, sizeof example, "%s%s\n", FORMS[i].open, FORMS[i].rest);
    record_indented(example);
  }
  record_line(
      "\ngpt-oss (`<|message|>`):\n\n    <|channel|>commentary "
      "to=functions.weather <|constrain|>json<|message|>" ARGS "\n");
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    if (!CHECK(has_example(&REPLY_FORMS[i]))) printf("# %s\n", REPLY_FORMS[i].open);
  }
  recorded_check("../../docs/tool-formats.md");
}

// ---- test inputs ----

typedef struct made_text {
  char bytes[TEXT_BYTES_MAX];
  size_t size_bytes;
} made_text;

static void add(made_text *text, const char *bytes, size_t size_bytes) {
  if (!CHECK(text->size_bytes + size_bytes < sizeof text->bytes)) return;
  memcpy(text->bytes + text->size_bytes, bytes, size_bytes);
  text->size_bytes += size_bytes;
}

// Concatenates the parts, with each `from` replaced by `to`.
static made_text text_of(const char *const *parts, size_t count, const char *from, const char *to) {
  made_text made = {.size_bytes = 0};
  for (size_t i = 0; i < count; i++) {
    for (const char *at = parts[i]; *at != '\0';) {
      const bool is_one = from != NULL && strncmp(at, from, strlen(from)) == 0;
      add(&made, is_one ? to : at, is_one ? strlen(to) : 1);
      at += is_one ? strlen(from) : 1;
    }
  }
  return made;
}

typedef struct held {
  reply_rig rig;
  grammar *grammar;
  const char *about;
} held;

static void held_open(held *h, const char *template_text, const char *ending, const char *tools,
                      bool is_required, bool is_parallel) {
  h->about = template_text;
  rig_open(&h->rig, template_text, strlen(template_text), tools, strlen(tools), ending);
  h->grammar = open_grammar(&h->rig, tools, strlen(tools),
                            is_required ? "\"required\"" : "\"auto\"", is_parallel);
}

static void held_close(held *h) {
  grammar_destroy(h->grammar);
  rig_close(&h->rig);
}

static void check_fits(held *h, const made_text *text, bool fits) {
  if (!CHECK(h->grammar != NULL)) return;
  if (CHECK(holds(h->grammar, text->bytes, text->size_bytes) == fits)) return;
  printf("# %s, %s: %.*s\n", h->about, fits ? "must be allowed" : "must not be allowed",
         (int)text->size_bytes, text->bytes);
}

#define FITS(held, fits, from, to, ...)                                                      \
  do {                                                                                       \
    const char *const parts_[] = {__VA_ARGS__};                                              \
    const made_text text_ = text_of(parts_, sizeof parts_ / sizeof parts_[0], (from), (to)); \
    check_fits((held), &text_, (fits));                                                      \
  } while (0)
#define FITS_AS_IS(held, fits, ...) FITS(held, fits, NULL, NULL, __VA_ARGS__)

// ---- each format ----

TEST(a_required_call_is_constrained_to_its_format) {
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const form_case *form = &FORMS[i];
    static held h;
    for (int parallel = 0; parallel < 2; parallel++) {
      held_open(&h, form->trait, "", WEATHER, true, parallel != 0);
      FITS_AS_IS(&h, true, form->open, form->rest);
      FITS(&h, true, "Oslo", "Rome", form->open, form->rest);
      FITS(&h, false, "Oslo", "Lisbon", form->open, form->rest);
      FITS(&h, false, "city", "town", form->open, form->rest);
      FITS(&h, false, "weather", "feather", form->open, form->rest);
      FITS_AS_IS(&h, false, "x", form->open, form->rest);
      FITS_AS_IS(&h, false, form->open, form->rest, "x");
      FITS_AS_IS(&h, false, form->open);
      FITS_AS_IS(&h, false, "");
      FITS_AS_IS(&h, parallel != 0, form->open, form->rest, "\n", form->open, form->rest);
      FITS(&h, false, "Oslo", "Lisbon", form->open, form->rest, "\n", form->open, form->rest);
      if (form->two != NULL) FITS_AS_IS(&h, parallel != 0, form->two);
      held_close(&h);
    }
  }
}

TEST(an_optional_call_is_constrained_after_its_marker) {
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const form_case *form = &FORMS[i];
    const bool is_marked = form->kind != BARE;
    static held h;
    for (int parallel = 0; parallel < 2; parallel++) {
      held_open(&h, form->trait, "", WEATHER, false, parallel != 0);
      FITS_AS_IS(&h, true, "");
      FITS_AS_IS(&h, true, "Hi.");
      FITS_AS_IS(&h, true, form->open, form->rest);
      FITS(&h, false, "Oslo", "Lisbon", form->open, form->rest);
      // without a marker, a list is a call if it begins with the name of a tool
      FITS(&h, !is_marked && form->rest[0] == '[', "weather", "feather", form->open, form->rest);
      FITS_AS_IS(&h, true, "Hi. ", form->open, form->rest);
      FITS(&h, !is_marked, "Oslo", "Lisbon", "Hi. ", form->open, form->rest);
      FITS_AS_IS(&h, parallel != 0, form->open, form->rest, " Done.");
      if (form->kind == MARKED) FITS_AS_IS(&h, false, form->open);
      if (form->two != NULL) FITS_AS_IS(&h, parallel != 0, form->two);
      held_close(&h);
    }
  }
}

// The template may already have written the marker.
TEST(a_call_continues_after_a_marker_in_the_prompt) {
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const form_case *form = &FORMS[i];
    if (form->kind != MARKED || strcmp(form->open, "functools[") == 0) continue;
    static char ending[TEXT_BYTES_MAX];
    snprintf(ending, sizeof ending, "assistant\n%s", form->open);
    static held h;
    for (int required = 0; required < 2; required++) {
      held_open(&h, form->trait, ending, WEATHER, required != 0, true);
      FITS_AS_IS(&h, true, form->rest);
      FITS(&h, false, "Oslo", "Lisbon", form->rest);
      FITS_AS_IS(&h, false, form->open, form->rest);
      FITS_AS_IS(&h, false, "Hi.");
      FITS_AS_IS(&h, true, form->rest, "\n", form->open, form->rest);
      held_close(&h);
      // other text after the marker cancels the call
      snprintf(ending, sizeof ending, "assistant\n%s x", form->open);
      held_open(&h, form->trait, ending, WEATHER, required != 0, true);
      FITS_AS_IS(&h, true, form->open, form->rest);
      FITS_AS_IS(&h, required == 0, "Hi.");
      held_close(&h);
      snprintf(ending, sizeof ending, "assistant\n%s", form->open);
    }
  }
}

// Returns the part of a template that identifies the format, which is the last word.
static const char *trait_of(const form_case *form) {
  const char *space = strrchr(form->trait, ' ');
  return space == NULL || form->kind != MARKED ? form->trait : space + 1;
}

// Whether the text has a marker of any format that the template contains.
static bool has_mark(const form_case *of, const made_text *text) {
  char bytes[TEXT_BYTES_MAX];
  snprintf(bytes, sizeof bytes, "%.*s", (int)text->size_bytes, text->bytes);
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const bool is_own = FORMS[i].kind == MARKED && strstr(of->trait, trait_of(&FORMS[i])) != NULL;
    // a whole call may be between the markers of a different format
    char whole[TEXT_BYTES_MAX];
    snprintf(whole, sizeof whole, "%s%s", FORMS[i].open, FORMS[i].rest);
    if (is_own && strstr(bytes, whole) != NULL) return false;
    if (is_own && strstr(bytes, FORMS[i].open) != NULL) return true;
  }
  return false;
}

TEST(only_markers_of_the_templates_formats_are_constrained) {
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    static held h;
    held_open(&h, FORMS[i].trait, "", WEATHER, false, true);
    for (uint32_t k = 0; k < FORM_COUNT; k++) {
      if (strstr(FORMS[i].trait, trait_of(&FORMS[k])) != NULL) continue;  // format of this template
      const char *const parts[] = {"Hi. ", FORMS[k].open, FORMS[k].rest};
      const made_text text = text_of(parts, 3, NULL, NULL);
      check_fits(&h, &text, !has_mark(&FORMS[i], &text));
    }
    held_close(&h);
  }
}

// If the template matches no format, all markers are constrained; of formats that share a marker,
// the first one applies.
TEST(if_no_format_is_detected_all_markers_are_constrained) {
  static held h;
  held_open(&h, "{{ messages }}", "", WEATHER, false, true);
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const form_case *form = &FORMS[i];
    const bool is_other = i > 0 && strcmp(form->open, "<tool_call>") == 0;
    if (form->kind != MARKED || strcmp(form->open, ">>>") == 0) continue;
    FITS_AS_IS(&h, !is_other, "Hi. ", form->open, form->rest);
    FITS(&h, false, "Oslo", "Lisbon", "Hi. ", form->open, form->rest);
  }
  FITS_AS_IS(&h, true, "Hi. >>>weather\n{}");
  FITS_AS_IS(&h, true, "{\"name\": \"feather\"}");
  held_close(&h);
}

TEST(the_longer_of_two_overlapping_markers_determines_the_format) {
  static held h;
  held_open(&h, "<tool_call> " MINIMAX, "", WEATHER, true, true);
  FITS_AS_IS(&h, true, MINIMAX "<tool_call>\n" MINIMAX_CALL MINIMAX "</tool_call>");
  FITS_AS_IS(&h, false, FORMS[0].open, FORMS[0].rest);
  FITS_AS_IS(&h, false, MINIMAX, FORMS[0].open, FORMS[0].rest);
  held_close(&h);
}

TEST(kimi_call_ids_may_omit_their_prefix) {
  static held h;
  held_open(&h, "<|tool_call_begin|>", "", WEATHER, true, true);
  FITS_AS_IS(&h, true,
             "<|tool_call_begin|>weather:12<|tool_call_argument_begin|>" ARGS "<|tool_call_end|>");
  FITS_AS_IS(&h, false,
             "<|tool_call_begin|>tools.weather:0<|tool_call_argument_begin|>" ARGS
             "<|tool_call_end|>");
  held_close(&h);
}

// ---- values of parameters ----

#define MIXED                                                                                    \
  "[{\"function\":{\"name\":\"mix\",\"parameters\":{\"type\":\"object\",\"properties\":{"        \
  "\"text\":{\"type\":\"string\"},\"flag\":{\"type\":\"boolean\"},\"none\":{\"type\":\"null\"}," \
  "\"only\":{\"const\":true},\"list\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"    \
  "\"count\":{\"type\":\"integer\",\"maximum\":9}}}}}]"
#define PARAM(name, value) "<param name=\"" name "\">" value "</param>"
#define MIX(params) "<function name=\"mix\">" params "</function>"

TEST(strings_may_be_wrapped_and_literals_may_be_spelled_as_in_python) {
  static held h;
  held_open(&h, "<function name=\"", "", MIXED, true, true);
  FITS_AS_IS(&h, true, MIX(PARAM("text", "<![CDATA[l1\nl2]]>")));
  FITS_AS_IS(&h, true, MIX(PARAM("text", "<![CDATA[]]>")));
  FITS_AS_IS(&h, true, MIX(PARAM("text", "<![CDATA[a</param>b]]>c]]]>") PARAM("flag", "True")));
  FITS_AS_IS(&h, false, MIX(PARAM("text", "<![CDATA[a]]></param>b]]>")));
  FITS_AS_IS(&h, false, MIX(PARAM("text", "<![CDATA[a")));
  FITS_AS_IS(&h, false, MIX(PARAM("count", "<![CDATA[1]]>")));
  FITS_AS_IS(&h, true, MIX(PARAM("flag", "False") PARAM("none", "None") PARAM("only", "True")));
  FITS_AS_IS(&h, true, MIX(PARAM("flag", "false") PARAM("none", "null") PARAM("only", "true")));
  FITS_AS_IS(&h, false, MIX(PARAM("only", "False")));
  FITS_AS_IS(&h, false, MIX(PARAM("flag", "None")));
  FITS_AS_IS(&h, false, MIX(PARAM("flag", "TRUE")));
  FITS_AS_IS(&h, false, MIX(PARAM("count", "True")));
  held_close(&h);
}

#define ARGUMENT(key, type, value) \
  "<|open|>argument key=\"" key "\" type=\"" type "\"<|sep|>" value "<|close|>argument<|sep|>"
#define K3(arguments)                                                          \
  "<|open|>tools<|sep|><|open|>call tool=\"mix\" index=\"2\"<|sep|>" arguments \
  "<|close|>call<|sep|><|close|>tools<|sep|>"

TEST(kimi_arguments_state_the_type_of_their_value) {
  static held h;
  held_open(&h, "<|open|>", "", MIXED, true, true);
  FITS_AS_IS(&h, true, K3(ARGUMENT("text", "string", "a <b>\n1")));
  FITS_AS_IS(&h, true, K3(ARGUMENT("count", "number", "7") ARGUMENT("flag", "boolean", "true")));
  FITS_AS_IS(&h, true, K3(ARGUMENT("list", "array", "[1, 2]") ARGUMENT("none", "null", "null")));
  FITS_AS_IS(&h, true, K3(""));
  FITS_AS_IS(&h, false, K3(ARGUMENT("count", "string", "7")));
  FITS_AS_IS(&h, false, K3(ARGUMENT("count", "boolean", "7")));
  FITS_AS_IS(&h, false, K3(ARGUMENT("count", "number", "10")));
  FITS_AS_IS(&h, false, K3(ARGUMENT("text", "number", "7")));
  held_close(&h);
}

// ---- comparison with the parser ----

// Whether the reply parser reads only calls of this tool, each with a city.
static bool reads_calls(reply_rig *rig, const made_text *text) {
  rig_parse(rig, text->bytes, text->size_bytes, 0, 0);
  bool reads = rig->status == WICK_OK && rig->call_count > 0;
  for (uint32_t i = 0; reads && i < rig->call_count && i < RIG_CALLS; i++) {
    const rig_call *call = &rig->calls[i];
    const char *city = strstr(call->arguments.bytes, "\"city\"");
    reads = call->has_ended && strcmp(call->name.bytes, "weather") == 0 && city != NULL;
  }
  return reads;
}

// Omits, changes and doubles each byte: if the result is still allowed, it is still a call.
TEST(variants_that_differ_by_a_byte_are_allowed_only_if_they_are_calls) {
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    const char *const parts[] = {FORMS[i].open, FORMS[i].rest};
    const made_text whole = text_of(parts, 2, NULL, NULL);
    static held h;
    uint32_t allowed = 0;
    held_open(&h, FORMS[i].trait, "", WEATHER, true, true);
    if (!CHECK(h.grammar != NULL)) return;
    for (size_t at = 0; at < whole.size_bytes; at++) {
      for (int kind = 0; kind < 3; kind++) {
        made_text other = {.size_bytes = 0};
        add(&other, whole.bytes, at);
        if (kind == 1) add(&other, "~", 1);
        if (kind == 2) add(&other, whole.bytes + at, 1);
        add(&other, whole.bytes + at + (kind == 2 ? 0 : 1),
            whole.size_bytes - at - (kind == 2 ? 0 : 1));
        if (!holds(h.grammar, other.bytes, other.size_bytes)) continue;
        allowed++;
        if (CHECK(reads_calls(&h.rig, &other))) continue;
        printf("# %s: %.*s\n", h.about, (int)other.size_bytes, other.bytes);
      }
    }
    if (!CHECK(allowed < 60)) printf("# %s: %u\n", h.about, allowed);
    held_close(&h);
  }
}

// ---- text before a call ----

TEST(reasoning_of_each_kind_may_precede_a_call) {
  static const char *const THOUGHTS[][3] = {
      {"<seed:think>", "<seed:think>", "</seed:think>"},
      {"[THINK]", "[THINK]", "[/THINK]"},
      {"<|START_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},
      {"<|channel>thought", "<|channel>thought", "<channel|>"},
      {"<|inner_prefix|>", "<|inner_prefix|>", "<|inner_suffix|>"},
      {"<|think|>", "<|think|>", "<|end|>"},
      {"<mm:think>", "<mm:think>", "</mm:think>"},
      {"<|open|>", "<|open|>think<|sep|>", "<|close|>think<|sep|>"},
      {"<think{}>", "<think:opensource>", "</think:opensource>"},
      {"[BEGIN FINAL RESPONSE]", "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
      {"<think>", "<think>", "</think>"},
  };
  enum { THOUGHT_COUNT = sizeof THOUGHTS / sizeof THOUGHTS[0] };
  for (uint32_t i = 0; i < THOUGHT_COUNT; i++) {
    char template_text[TEXT_BYTES_MAX];
    snprintf(template_text, sizeof template_text, "<tool_call> %s", THOUGHTS[i][0]);
    static held h;
    held_open(&h, template_text, "", WEATHER, true, true);
    for (uint32_t k = 0; k < THOUGHT_COUNT; k++) {
      FITS_AS_IS(&h, i == k, THOUGHTS[k][1], "hm", THOUGHTS[k][2], FORMS[0].open, FORMS[0].rest);
    }
    FITS_AS_IS(&h, true, FORMS[0].open, FORMS[0].rest);
    FITS_AS_IS(&h, false, THOUGHTS[i][1], "hm", FORMS[0].open, FORMS[0].rest);
    held_close(&h);
  }
}

TEST(wrappers_of_the_template_may_precede_a_call) {
  static const char *const WRAPPERS[][2] = {
      {"<|START_RESPONSE|>", "<|START_RESPONSE|>"}, {"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
      {"<|START_TEXT|>", "<|START_TEXT|>"},         {"<|START_TEXT|>", "<|END_TEXT|>"},
      {"<|tool_calls|>", "<|tool_calls|>"},         {"<|begin|>assistant", "<|begin|>assistant"},
      {"<|begin|>assistant", "<|content|>"},        {"<response></response>", "<response>"},
      {"<response></response>", "</response>"},     {"<|open|>", "<|open|>response<|sep|>"},
      {"<|open|>", "<|close|>response<|sep|>"},     {"<|open|>", "<|close|>message<|sep|>"},
  };
  enum { WRAPPER_COUNT = sizeof WRAPPERS / sizeof WRAPPERS[0] };
  for (uint32_t i = 0; i < WRAPPER_COUNT; i++) {
    char template_text[TEXT_BYTES_MAX];
    snprintf(template_text, sizeof template_text, "<tool_call> %s", WRAPPERS[i][0]);
    static held h;
    held_open(&h, template_text, "", WEATHER, true, true);
    for (uint32_t k = 0; k < WRAPPER_COUNT; k++) {
      const bool is_own = strcmp(WRAPPERS[i][0], WRAPPERS[k][0]) == 0;
      const char *mark = WRAPPERS[k][1];
      FITS_AS_IS(&h, is_own, mark, FORMS[0].open, FORMS[0].rest);
      FITS_AS_IS(&h, is_own, mark, WRAPPERS[i][1], "\n", FORMS[0].open, FORMS[0].rest);
      FITS_AS_IS(&h, false, mark, mark, mark, FORMS[0].open, FORMS[0].rest);
      FITS_AS_IS(&h, false, mark);
    }
    held_close(&h);
  }
}

// ---- other tools ----

#define TOOL(name) "{\"function\":{\"name\":\"" name "\",\"parameters\":{\"type\":\"object\"}}}"

// functionary's recipient "all" is the user, not a tool.
TEST(the_recipient_all_is_never_a_tool) {
  static held h;
  held_open(&h, ">>>all", "", "[" TOOL("all") "]", true, true);
  CHECK(h.grammar == NULL);
  CHECK_EQ_INT(h.rig.status, WICK_E_UNSUPPORTED);
  CHECK(strstr(h.rig.error.message, "cannot be required") != NULL);
  held_close(&h);
  held_open(&h, ">>>all", "", "[" TOOL("all") "," TOOL("b") "]", true, true);
  FITS_AS_IS(&h, true, ">>>b\n{}");
  FITS_AS_IS(&h, false, ">>>all\n{}");
  held_close(&h);
  held_open(&h, ">>>all", "", "[" TOOL("all") "," TOOL("b") "]", false, true);
  FITS_AS_IS(&h, true, ">>>all\nHi {you}.");
  FITS_AS_IS(&h, true, ">>>all\nHi.>>>b\n{}");
  FITS_AS_IS(&h, false, ">>>all\nHi.>>>b\n{");
  FITS_AS_IS(&h, false, ">>>c\n{}");
  held_close(&h);
  held_open(&h, "<tool_call>", "", "[" TOOL("all") "]", false, true);
  FITS(&h, true, "weather", "all", FORMS[0].open, FORMS[0].rest);
  FITS_AS_IS(&h, false, "<tool_call>all");
  held_close(&h);
}

// With two tools, the arguments of each call must match the tool that it names.
TEST(calls_of_two_tools_have_their_own_arguments) {
  static const char TOOLS[] =
      "[{\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\",\"properties\":{"
      "\"city\":{\"const\":\"Oslo\"}},\"required\":[\"city\"]}}},{\"function\":{\"name\":"
      "\"weathers\",\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"const\":"
      "\"Rome\"}},\"required\":[\"city\"]}}}]";
  static const char *const CITIES[] = {"Oslo", "Rome"}, *const NAMES[] = {"weather", "weathers"};
  for (uint32_t i = 0; i < FORM_COUNT; i++) {
    static held h;
    held_open(&h, FORMS[i].trait, "", TOOLS, true, true);
    for (uint32_t name = 0; name < 2; name++) {
      for (uint32_t city = 0; city < 2; city++) {
        const char *const parts[] = {FORMS[i].open, FORMS[i].rest};
        made_text text = text_of(parts, 2, "Oslo", CITIES[city]);
        text.bytes[text.size_bytes] = '\0';
        FITS(&h, name == city, "weather", NAMES[name], text.bytes);
        if (FORMS[i].two == NULL) continue;
        const char *const both[] = {FORMS[i].two};
        text = text_of(both, 1, "Oslo", CITIES[city]);
        text.bytes[text.size_bytes] = '\0';
        FITS(&h, name == city, "weather", NAMES[name], text.bytes);
      }
    }
    held_close(&h);
  }
}

// MiniMax M3 may end reasoning without having begun it.
TEST(the_end_of_reasoning_is_not_a_call) {
  static const char *const ENDINGS[] = {"]~b]ai\n", "]~b]ai\n<mm:think>", "]~b]ai\n</mm:think>"};
  for (size_t i = 0; i < sizeof ENDINGS / sizeof ENDINGS[0]; i++) {
    static held h;
    held_open(&h, "<mm:think> " MINIMAX "<tool_call>", ENDINGS[i], WEATHER, true, true);
    FITS_AS_IS(&h, false, "</mm:think>");
    FITS_AS_IS(&h, false, "hm</mm:think>");
    FITS_AS_IS(&h, i == 1, "hm</mm:think>" MINIMAX "<tool_call>", MINIMAX_CALL,
               MINIMAX "</tool_call>");
    FITS_AS_IS(&h, i == 1, "</mm:think>" MINIMAX "<tool_call>", MINIMAX_CALL,
               MINIMAX "</tool_call>");
    held_close(&h);
  }
}

// The template of Kimi K3 escapes them in the same way.
TEST(argument_names_are_escaped) {
  static const char TOOL[] =
      "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":"
      "\"object\",\"properties\":{\"a&\\\"b&amp;\":{\"type\":\"string\"}},\"required\":[\"a&\\\"b"
      "&amp;\"]}}}]";
#define KIMI_ARGUMENT(key)                                                                \
  "<|open|>tools<|sep|><|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument " \
  "key=\"" key                                                                            \
  "\" type=\"string\"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|>"             \
  "<|close|>tools<|sep|>"
  static held h;
  held_open(&h, "<|open|>", "", TOOL, true, true);
  FITS_AS_IS(&h, true, KIMI_ARGUMENT("a&amp;&quot;b&amp;amp;"));
  FITS_AS_IS(&h, false, KIMI_ARGUMENT("a&&quot;b&amp;amp;"));
  FITS_AS_IS(&h, false, KIMI_ARGUMENT("a&amp;&quot;b&amp;"));
  held_close(&h);
}
