// reply/forms.c — the table of formats, taken from model templates.
#include "reply/forms.h"

#include <string.h>

#include "grammar/schema.h"
#include "reply/reply.h"

#define N PATTERN_NAME
#define I PATTERN_ID
#define S PATTERN_SPACE
#define A PATTERN_ARGUMENTS

// Patterns of calls as JSON.
static const char CALL[] = "{\"name\": \"" N "\", \"arguments\": " A "}";
static const char CALL_OF_LLAMA[] = "{\"name\": \"" N "\", \"parameters\": " A "}";
static const char CALL_OF_COMMAND[] =
    "{\"tool_call_id\": \"" I "\", \"tool_name\": \"" N "\", \"parameters\": " A "}";
static const char CALL_OF_COMMAND_R[] = "{\"tool_name\": \"" N "\", \"parameters\": " A "}";
static const char CALL_OF_MISTRAL[] =
    "{\"name\": \"" N "\", \"arguments\": " A ", \"id\": \"" I "\"}";
static const char CALL_OF_APERTUS[] = "{\"" N "\": " A "}";

#define TAGS(before_key, after_key, before_value, after_value, last)    \
  .key = (before_key), .key_end = (after_key), .value = (before_value), \
  .value_end = (after_value), .end = (last)

static const reply_params FUNCTION_PARAMS = {
    TAGS("<parameter=", ">", "", "</parameter>", "</function>")};
static const reply_params GLM_PARAMS = {
    TAGS("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</tool_call>")};
static const reply_params HUNYUAN_PARAMS = {
    TAGS("<arg_key:opensource>", "</arg_key:opensource>", "<arg_value:opensource>",
         "</arg_value:opensource>", "</tool_call:opensource>")};
static const reply_params INVOKE_PARAMS = {
    TAGS("<parameter name=\"", "\"", "", "</parameter>", "</invoke>")};
static const reply_params ATEM_PARAMS = {
    TAGS("<atem:parameter name=\"", "\"", "", "</atem:parameter>", "</atem:invoke>")};
static const reply_params DSML_PARAMS = {
    TAGS("<｜DSML｜parameter name=\"", "\"", "", "</｜DSML｜parameter>", "</｜DSML｜invoke>"),
    .says_text = " string=\"true\"", .says_json = " string=\"false\""};
static const reply_params PARAM_PARAMS = {
    TAGS("<param name=\"", "\"", "", "</param>", "</function>"), .wrap = "<![CDATA[",
    .unwrap = "]]>"};
static const reply_params KIMI_PARAMS = {
    TAGS("<|open|>argument key=\"", "\"", "", "<|close|>argument<|sep|>", "<|close|>call<|sep|>"),
    .says_text = " type=\"string\"", .says_json = " type=\"" SCHEMA_TYPE "\"",
    .attributes_end = "<|sep|>", .escapes_keys = true};
#define KIMI_CALL "<|open|>call tool=\"" N "\" index=\"" PATTERN_INDEX "\"<|sep|>"
#define MINIMAX "]<]minimax[>["
static const reply_params MINIMAX_PARAMS = {
    TAGS(MINIMAX "<", ">", "", MINIMAX "</" N ">", MINIMAX "</invoke>"), .has_elements = true};
static const reply_params GEMMA_4_PARAMS = {.key = "<|\"|>"};
static const reply_params FUNCTION_GEMMA_PARAMS = {.key = "<escape>"};

// Formats with the same tag are tried one after another, and if one of them is chosen, all of them
// are.
const reply_form REPLY_FORMS[] = {
    // JSON between tags: Hermes, Qwen, Granite 4, MiniMax M1, Nemotron, Phi 4, Command R, ...
    {"<tool_call>", "<tool_call>", S, NULL, "</tool_call>", ARGUMENTS_CALLS, 0, NULL, CALL},
    {"<tool_calls>", "<tool_calls>", S, NULL, "</tool_calls>", ARGUMENTS_CALLS, FORM_MANY, NULL,
     CALL},
    {"<TOOLCALL>", "<TOOLCALL>", S, NULL, "</TOOLCALL>", ARGUMENTS_CALLS, FORM_LIST, NULL, CALL},
    {"<|tool_call|>", "<|tool_call|>", S, NULL, "<|/tool_call|>", ARGUMENTS_CALLS,
     FORM_LIST | FORM_MAY_CLOSE, NULL, CALL},
    {"<|function_call|>", "<|function_call|>", S, NULL, NULL, ARGUMENTS_CALLS, 0, NULL, CALL},
    {"'role': 'function call'", "<|message_sep|>\n\nfunction call<|role_sep|>\n", S, NULL, NULL,
     ARGUMENTS_CALLS, 0, NULL, CALL},
    {"<|START_ACTION|>", "<|START_ACTION|>", S, NULL, "<|END_ACTION|>", ARGUMENTS_CALLS, FORM_LIST,
     NULL, CALL_OF_COMMAND},
    {"<|tools_prefix|>", "<|tools_prefix|>", S, NULL, "<|tools_suffix|>", ARGUMENTS_CALLS,
     FORM_NAME_IS_KEY | FORM_LIST, NULL, CALL_OF_APERTUS},
    {"[TOOL_CALLS]", "[TOOL_CALLS]", S, NULL, NULL, ARGUMENTS_CALLS, FORM_ID_LAST | FORM_LIST, NULL,
     CALL_OF_MISTRAL},
    {"functools[", "functools", S, NULL, NULL, ARGUMENTS_CALLS, FORM_LIST | FORM_BRACKET, NULL,
     CALL},
    {"<|python_tag|>", "<|python_tag|>", S, NULL, NULL, ARGUMENTS_CALLS, 0, NULL, CALL_OF_LLAMA},
    {"Action:\\n```json", "Action:", PATTERN_GAP "```json" S, S "```", NULL, ARGUMENTS_CALLS,
     FORM_KNOWN | FORM_LIST, NULL, CALL_OF_COMMAND_R},
    {"\"parameters\": dictionary", "", "", NULL, NULL, ARGUMENTS_CALLS, FORM_BARE, NULL,
     CALL_OF_LLAMA},
    // a name followed by JSON: Mistral, functionary, DeepSeek, Kimi K2, Solar
    {"[CALL_ID]", "[TOOL_CALLS]", S N "[CALL_ID]" I "[ARGS]" S, NULL, NULL, ARGUMENTS_JSON, 0, NULL,
     NULL},
    {"[ARGS]", "[TOOL_CALLS]", S N "[ARGS]" S, NULL, NULL, ARGUMENTS_JSON, 0, NULL, NULL},
    {"<function=", "<function=", N ">" S, S "</function>", NULL, ARGUMENTS_JSON, 0, NULL, NULL},
    {">>>all", ">>>", N S, NULL, NULL, ARGUMENTS_JSON, FORM_RECIPIENT | FORM_KNOWN, NULL, NULL},
    {"tool▁call▁begin", "<｜tool▁calls▁begin｜>",
     S "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" N S "```json" S,
     S "```" S "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", ARGUMENTS_JSON, FORM_MANY, NULL,
     NULL},
    {"tool▁call▁begin", "<｜tool▁calls▁begin｜>", S "<｜tool▁call▁begin｜>" N "<｜tool▁sep｜>" S,
     S "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", ARGUMENTS_JSON, FORM_MANY, NULL, NULL},
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>",
     S "<|tool_call_begin|>" I "<|tool_call_argument_begin|>" S, S "<|tool_call_end|>",
     "<|tool_calls_section_end|>", ARGUMENTS_JSON, FORM_NAME_IN_ID | FORM_MANY, NULL, NULL},
    {"<|tool_call_begin|>", "<|tool_call_begin|>", I "<|tool_call_argument_begin|>" S,
     S "<|tool_call_end|>", NULL, ARGUMENTS_JSON, FORM_NAME_IN_ID, NULL, NULL},
    {"<|tool_call:begin|>", "<|tool_call:begin|>", I "<|tool_call:name|>" N "<|tool_call:args|>" S,
     S "<|tool_call:end|>", NULL, ARGUMENTS_JSON, 0, NULL, NULL},
    // parameters between tags: Qwen3-Coder, Seed, GLM, Hunyuan 3, MiniMax M2, DeepSeek V3.2, ...
    {"<parameter=", "<tool_call>", S "<function=" N ">", NULL, "</tool_call>", ARGUMENTS_PARAMS,
     FORM_LINES, &FUNCTION_PARAMS, NULL},
    {"<parameter=", "<function=", N ">", NULL, NULL, ARGUMENTS_PARAMS, FORM_LINES, &FUNCTION_PARAMS,
     NULL},
    {"seed:tool_call", "<seed:tool_call>", S "<function=" N ">", NULL, "</seed:tool_call>",
     ARGUMENTS_PARAMS, 0, &FUNCTION_PARAMS, NULL},
    {"<arg_key>", "<tool_call>", S N, NULL, NULL, ARGUMENTS_PARAMS, 0, &GLM_PARAMS, NULL},
    {"<arg_key{}>", "<tool_calls:opensource>", S "<tool_call:opensource>" N "<tool_sep:opensource>",
     NULL, "</tool_calls:opensource>", ARGUMENTS_PARAMS, FORM_MANY, &HUNYUAN_PARAMS, NULL},
    {"minimax:tool_call", "<minimax:tool_call>", S "<invoke name=\"" N "\">", NULL,
     "</minimax:tool_call>", ARGUMENTS_PARAMS, FORM_MANY, &INVOKE_PARAMS, NULL},
    {"<function_calls>", "<function_calls>", S "<invoke name=\"" N "\">", NULL, "</function_calls>",
     ARGUMENTS_PARAMS, FORM_MANY, &INVOKE_PARAMS, NULL},
    {"<atem:function_calls>", "<atem:function_calls>", S "<atem:invoke name=\"" N "\">", NULL,
     "</atem:function_calls>", ARGUMENTS_PARAMS, FORM_MANY, &ATEM_PARAMS, NULL},
    {"｜DSML｜", "<｜DSML｜function_calls>", S "<｜DSML｜invoke name=\"" N "\">", NULL,
     "</｜DSML｜function_calls>", ARGUMENTS_PARAMS, FORM_MANY, &DSML_PARAMS, NULL},
    {"｜DSML｜", "<｜DSML｜tool_calls>", S "<｜DSML｜invoke name=\"" N "\">", NULL,
     "</｜DSML｜tool_calls>", ARGUMENTS_PARAMS, FORM_MANY, &DSML_PARAMS, NULL},
    {MINIMAX, MINIMAX "<tool_call>", S MINIMAX "<invoke name=\"" N "\">", NULL,
     MINIMAX "</tool_call>", ARGUMENTS_PARAMS, FORM_MANY, &MINIMAX_PARAMS, NULL},
    {"<|open|>", "<|open|>tools<|sep|>", S KIMI_CALL, NULL, "<|close|>tools<|sep|>",
     ARGUMENTS_PARAMS, FORM_MANY, &KIMI_PARAMS, NULL},
    {"<|open|>", "<|open|>tools<|sep|>", S KIMI_CALL "<|open|>json type=\"object\"<|sep|>" S,
     S "<|close|>json<|sep|><|close|>call<|sep|>", "<|close|>tools<|sep|>", ARGUMENTS_JSON,
     FORM_MANY, NULL, NULL},
    {"<function name=\"", "<function name=\"", N "\">", NULL, NULL, ARGUMENTS_PARAMS, 0,
     &PARAM_PARAMS, NULL},
    // Python's calls: LFM 2, Llama 3.2 and 4
    {"<|tool_call_start|>", "<|tool_call_start|>", S, NULL, "<|tool_call_end|>", ARGUMENTS_PYTHON,
     FORM_LIST, NULL, NULL},
    {"<|tool_call_start|>", "<|tool_call_start|>", S, NULL, "<|tool_call_end|>", ARGUMENTS_CALLS,
     FORM_LIST, NULL, CALL},
    {"func_name1(", "", "", NULL, NULL, ARGUMENTS_PYTHON, FORM_BARE | FORM_LIST, NULL, NULL},
    // Gemma's objects
    {"<|tool_call>", "<|tool_call>", S "call:" N, NULL, "<tool_call|>", ARGUMENTS_QUOTED, 0,
     &GEMMA_4_PARAMS, NULL},
    {"<start_function_call>", "<start_function_call>", S "call:" N, NULL, "<end_function_call>",
     ARGUMENTS_QUOTED, 0, &FUNCTION_GEMMA_PARAMS, NULL},
    // gpt-oss
    {"<|message|>", "<|start|>", "", NULL, NULL, ARGUMENTS_CHANNELS, FORM_KNOWN, NULL, NULL},
    {"<|message|>", "<|channel|>", "", NULL, NULL, ARGUMENTS_CHANNELS, FORM_KNOWN, NULL, NULL},
};
const uint32_t REPLY_FORM_COUNT = sizeof REPLY_FORMS / sizeof REPLY_FORMS[0];

// The first entry whose trait is in the template is used; the last entry has no trait.
const reply_thought REPLY_THOUGHTS[] = {
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
    {"think>", "<think>", "</think>"},
    {"", "<think>", "</think>"},
};

const reply_wrapper REPLY_WRAPPERS[] = {
    {"<|START_RESPONSE|>", "<|START_RESPONSE|>"},
    {"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
    {"<|START_TEXT|>", "<|START_TEXT|>"},
    {"<|START_TEXT|>", "<|END_TEXT|>"},
    {"<|tool_calls|>", "<|tool_calls|>"},
    {"<|begin|>assistant", "<|begin|>assistant"},
    {"<|begin|>assistant", "<|content|>"},
    {"<response></response>", "<response>"},
    {"<response></response>", "</response>"},
    {"<|open|>", "<|open|>response<|sep|>"},
    {"<|open|>", "<|close|>response<|sep|>"},
    {"<|open|>", "<|close|>message<|sep|>"},
    {"<|message|>", "<|end|>"},
    {"<|message|>", "<|call|>"},
    {"<|message|>", "<|return|>"},
    {"<|message|>", "<|eom|>"},
};
const uint32_t REPLY_WRAPPER_COUNT = sizeof REPLY_WRAPPERS / sizeof REPLY_WRAPPERS[0];

size_t reply_call_beginning(const reply_form *form, const char *name, size_t name_bytes,
                            char out[REPLY_BEGINNING_BYTES]) {
  size_t size = 0;
  for (const char *at = form->call == NULL ? "[" N A : form->call; *at != A[0]; at++) {
    if (*at != N[0]) {
      out[size++] = *at;
    } else {
      memcpy(out + size, name, name_bytes);
      size += name_bytes;
    }
  }
  out[size++] = form->call == NULL ? '(' : '{';
  return size;
}

// ---- choosing ----

static bool has(const char *text, size_t size_bytes, const char *wanted) {
  const size_t count = strlen(wanted);
  if (count == 0) return true;
  for (size_t at = 0; at + count <= size_bytes; at++) {
    if (text[at] == wanted[0] && memcmp(text + at, wanted, count) == 0) return true;
  }
  return false;
}

// Whether the tag of a format is only the end of a different format's tag.
static bool has_longer_mark(uint64_t forms, const reply_form *form) {
  const size_t size = strlen(form->open);
  bool has_one = false;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT && size > 0; i++) {
    const char *other = REPLY_FORMS[i].open;
    const size_t other_bytes = strlen(other);
    has_one = has_one || ((forms >> i & 1) != 0 && other_bytes > size &&
                          memcmp(other + other_bytes - size, form->open, size) == 0);
  }
  return has_one;
}

reply_format reply_format_find(const char *template_text, size_t size_bytes) {
  reply_format found = {0};
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    if (has(template_text, size_bytes, REPLY_FORMS[i].trait)) found.forms |= UINT64_C(1) << i;
  }
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    if (has_longer_mark(found.forms, &REPLY_FORMS[i])) found.forms &= ~(UINT64_C(1) << i);
  }
  const uint64_t chosen = found.forms;
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    bool is_like = chosen == 0 && (REPLY_FORMS[i].flags & FORM_KNOWN) == 0;
    for (uint32_t j = 0; j < REPLY_FORM_COUNT && !is_like && REPLY_FORMS[i].open[0] != '\0'; j++) {
      is_like = (chosen >> j & 1) != 0 && forms_are_same(REPLY_FORMS[i].open, REPLY_FORMS[j].open);
    }
    if (is_like) found.forms |= UINT64_C(1) << i;
  }
  found.own = chosen != 0 ? chosen : 1;
  while (!has(template_text, size_bytes, REPLY_THOUGHTS[found.thought].trait)) found.thought++;
  for (uint32_t i = 0; i < REPLY_WRAPPER_COUNT; i++) {
    if (has(template_text, size_bytes, REPLY_WRAPPERS[i].trait)) found.wrappers |= 1u << i;
  }
  return found;
}

static bool has_channels(const reply_format *format) {
  for (uint32_t i = 0; i < REPLY_FORM_COUNT; i++) {
    const bool is_one = REPLY_FORMS[i].arguments == ARGUMENTS_CHANNELS;
    if (is_one && (format->forms >> i & 1) != 0) return true;
  }
  return false;
}

bool reply_format_has_reasoning(const reply_format *format) {
  return has_channels(format) || REPLY_THOUGHTS[format->thought].trait[0] != '\0';
}

bool reply_format_has_control_marks(const reply_format *format) {
  const bool is_plain = forms_are_same(REPLY_THOUGHTS[format->thought].open, "<think>");
  return has_channels(format) || format->wrappers != 0 || !is_plain;
}

const char *reply_format_close(const reply_format *format, bool is_final) {
  if (!has_channels(format)) return REPLY_THOUGHTS[format->thought].close;
  return is_final ? "<|end|><|start|>assistant<|channel|>final<|message|>"
                  : "<|end|><|start|>assistant";
}
