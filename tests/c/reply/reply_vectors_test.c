// Parses every case of the shared folder's structure/toolcalls, which has output of 42 model
// families, whole and in pieces. The format is detected from each family's template, or without a
// template if the folder has none.
#include <stdlib.h>

#include "grammar/document.h"
#include "hold_rig.h"
#include "random.h"
#include "vectors.h"

enum { CASES = 343, CUTS = 20 };

// ---- comparing ----

static bool is_same_value(const json_document *a, uint32_t left, const json_document *b,
                          uint32_t right) {
  const json_node *one = document_node(a, left), *other = document_node(b, right);
  if (one->kind != other->kind || one->count != other->count) return false;
  if (one->kind == JSON_NUMBER) {
    return strtod((const char *)one->text.bytes, NULL) ==
           strtod((const char *)other->text.bytes, NULL);
  }
  if (one->kind == JSON_STRING) return text_is_same(one->text, other->text);
  uint32_t there = other->first;
  for (uint32_t at = one->first; at != 0; at = document_node(a, at)->next) {
    if (one->kind == JSON_OBJECT) there = document_member(b, right, document_node(a, at)->key);
    if (there == 0 || !is_same_value(a, at, b, there)) return false;
    there = document_node(b, there)->next;
  }
  return true;
}

static bool is_same_json(const void *found, size_t found_bytes, document_text wanted) {
  memory_gate memory;
  grammar_work work;
  json_document left = {0}, right = {0};
  memory_init(&memory, 0, platform_alloc, platform_free);
  work_begin(&work, &memory);
  const bool is_same = document_read(&work, found, found_bytes, &left) &&
                       document_read(&work, wanted.bytes, wanted.size_bytes, &right) &&
                       is_same_value(&left, 1, &right, 1);
  work_end(&work);
  return is_same;
}

static bool is_white(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t'; }

static bool is_same_text(const rig_text *found, document_text wanted) {
  size_t from = 0, to = found->size_bytes;
  while (from < to && is_white((uint8_t)found->bytes[from])) from++;
  while (to > from && is_white((uint8_t)found->bytes[to - 1])) to--;
  while (wanted.size_bytes > 0 && is_white(wanted.bytes[0])) wanted.bytes++, wanted.size_bytes--;
  while (wanted.size_bytes > 0 && is_white(wanted.bytes[wanted.size_bytes - 1])) {
    wanted.size_bytes--;
  }
  const document_text text = {(const uint8_t *)found->bytes + from, (uint32_t)(to - from)};
  return text_is_same(text, wanted);
}

static bool is_call(const vectors *v, const rig_call *found, uint32_t wanted) {
  const uint32_t function = document_find(&v->document, wanted, "function");
  const document_text id = vectors_text(v, wanted, "id");
  return found->has_ended && is_same_text(&found->name, vectors_text(v, function, "name")) &&
         (id.size_bytes == 0 || is_same_text(&found->id, id)) &&
         is_same_json(found->arguments.bytes, found->arguments.size_bytes,
                      vectors_text(v, function, "arguments"));
}

static bool is_outcome(const vectors *v, const reply_rig *rig, uint32_t wanted) {
  if (document_find(&v->document, wanted, "error") != 0) {
    return rig->status == WICK_E_FORMAT || rig->status == WICK_E_TRUNCATED;
  }
  if (document_find(&v->document, wanted, "partial_call") != 0) {
    return rig->status == WICK_E_TRUNCATED && rig->call_count == 1;
  }
  const uint32_t calls = document_find(&v->document, wanted, "tool_calls");
  if (rig->status != WICK_OK || rig->call_count != document_node(&v->document, calls)->count) {
    return false;
  }
  uint32_t at = calls == 0 ? 0 : document_node(&v->document, calls)->first;
  for (uint32_t i = 0; i < rig->call_count; i++, at = document_node(&v->document, at)->next) {
    if (!is_call(v, &rig->calls[i], at)) return false;
  }
  return is_same_text(&rig->content, vectors_text(v, wanted, "content")) &&
         is_same_text(&rig->reasoning, vectors_text(v, wanted, "reasoning_content"));
}

static bool is_right(const vectors *v, const reply_rig *rig, uint32_t one) {
  const uint32_t any = document_find(&v->document, one, "expected_any");
  if (!rig->is_valid) return false;
  if (any == 0) return is_outcome(v, rig, document_find(&v->document, one, "expected"));
  for (uint32_t at = document_node(&v->document, any)->first; at != 0;
       at = document_node(&v->document, at)->next) {
    if (is_outcome(v, rig, at)) return true;
  }
  return false;
}

// ---- cases ----

static void show(const vectors *v, const reply_rig *rig, uint32_t one) {
  const document_text id = vectors_text(v, one, "id");
  printf("# %.*s: status %d%s%s\n#   content %s\n#   reasoning %s\n", (int)id.size_bytes,
         (const char *)id.bytes, (int)rig->status, rig->status == WICK_OK ? "" : ", ",
         rig->status == WICK_OK ? "" : rig->error.message, rig->content.bytes,
         rig->reasoning.bytes);
  for (uint32_t i = 0; i < rig->call_count && i < RIG_CALLS; i++) {
    printf("#   call %s #%s %s\n", rig->calls[i].name.bytes, rig->calls[i].id.bytes,
           rig->calls[i].arguments.bytes);
  }
}

typedef struct tally {
  uint32_t cases, calls, errors;
} tally;

// `make test` cuts each reply at every third byte, and successive cases at different ones.
static size_t first_cut(const tally *tally) { return 1 + tally->cases % level_step(3); }

static void check_case(const vectors *v, reply_rig *rig, uint32_t one, uint64_t *seed,
                       tally *tally) {
  const document_text raw = vectors_text(v, one, "raw");
  const char *text = (const char *)raw.bytes;
  rig_parse(rig, text, raw.size_bytes, 0, 0);
  tally->calls += rig->call_count;
  tally->errors += rig->status != WICK_OK;
  if (!CHECK(is_right(v, rig, one)) || !CHECK(rig->is_text)) {
    show(v, rig, one);
    return;
  }
  bool are_right = true;
  for (size_t cut = first_cut(tally); cut < raw.size_bytes && are_right; cut += level_step(3)) {
    rig_parse(rig, text, raw.size_bytes, cut, 0);
    are_right = is_right(v, rig, one);
  }
  for (size_t i = 0; i < CUTS && are_right; i++) {
    const size_t first = 1 + (size_t)random_below(seed, 9);
    const size_t then = i == 0 ? 1 : 1 + (size_t)random_below(seed, 9);
    rig_parse(rig, text, raw.size_bytes, i == 0 ? 1 : first, then);
    are_right = is_right(v, rig, one);
  }
  if (!CHECK(are_right)) show(v, rig, one);
}

static bool is_beginning(const rig_text *cut, const rig_text *whole) {
  size_t from = 0, at = 0, to = cut->size_bytes;
  while (to > 0 && is_white((uint8_t)cut->bytes[to - 1])) to--;
  while (from < to && is_white((uint8_t)cut->bytes[from])) from++;
  while (at < whole->size_bytes && is_white((uint8_t)whole->bytes[at])) at++;
  return to - from <= whole->size_bytes - at &&
         memcmp(cut->bytes + from, whole->bytes + at, to - from) == 0;
}

// Whether the calls of a case have a marker that is more than an ordinary word.
static bool has_marks(const vectors *v, uint32_t one) {
  const document_text family = vectors_text(v, one, "family");
  return !text_is(family, "firefunction-v2") && !text_is(family, "command-r-plus") &&
         !text_is(family, "phi-4-mini-functools") && !text_is(family, "llama-3.2-pythonic");
}

// Checks that the content of a reply truncated after any byte is a prefix of the whole content and
// never contains part of a marker.
static void check_cuts(const vectors *v, reply_rig *rig, uint32_t one, const tally *tally) {
  static reply_rig whole;
  const document_text raw = vectors_text(v, one, "raw");
  const char *text = (const char *)raw.bytes;
  rig_parse(rig, text, raw.size_bytes, 0, 0);
  if (rig->status != WICK_OK || rig->call_count == 0) return;
  whole = *rig;
  for (size_t cut = first_cut(tally); cut < raw.size_bytes; cut += level_step(3)) {
    rig_parse(rig, text, cut, 0, 0);
    // a bracket or word may begin ordinary text (Python calls, "Action:" and "functools[")
    const char last = text[cut - 1];
    const bool is_word = (last >= 'A' && last <= 'z') || (cut == 1 && last == '[');
    if ((is_word && rig->call_count == 0 && !has_marks(v, one)) ||
        CHECK(is_beginning(&rig->content, &whole.content)))
      continue;
    printf("# cut at %zu of %.*s\n", cut, (int)raw.size_bytes, text);
    show(v, rig, one);
    return;
  }
}

// Returns the template, or NULL if the family has none. The caller frees it.
static uint8_t *read_template(const vectors *v, uint32_t one, size_t *size_bytes) {
  const document_text name = vectors_text(v, one, "template");
  char path[256];
  *size_bytes = 0;
  if (name.size_bytes == 0) return NULL;
  snprintf(path, sizeof path, "vectors/templates/%.*s", (int)name.size_bytes,
           (const char *)name.bytes);
  return check_read_file(check_shared(path), size_bytes);
}

TEST(reads_the_output_of_every_family) {
  vectors v;
  tally tally = {0};
  uint64_t seed = soak_seed();
  static reply_rig rig;
  if (!vectors_open(&v, "vectors/structure/toolcalls/cases.json")) SKIP("no shared folder");
  const json_node *tools = document_node(&v.document, document_find(&v.document, 1, "tools"));
  const uint32_t cases = document_find(&v.document, 1, "cases");
  for (uint32_t one = document_node(&v.document, cases)->first; one != 0;
       one = document_node(&v.document, one)->next, tally.cases++) {
    size_t template_bytes = 0;
    uint8_t *template_text = read_template(&v, one, &template_bytes);
    const document_text prompt = vectors_text(&v, one, "generation_prompt");
    static char given[512];
    memset(given, 0, sizeof given);
    if (CHECK(prompt.size_bytes < sizeof given) && prompt.size_bytes > 0) {
      memcpy(given, prompt.bytes, prompt.size_bytes);
    }
    rig_open(&rig, (const char *)template_text, template_bytes, (const char *)v.source + tools->at,
             tools->end - tools->at, given);
    if (CHECK_EQ_INT(rig.status, WICK_OK)) {
      check_case(&v, &rig, one, &seed, &tally);
      check_cuts(&v, &rig, one, &tally);
    }
    rig_close(&rig);
    free(template_text);
  }
  CHECK_EQ_UINT(tally.cases, CASES);
  printf("# %u cases: %u calls, %u errors\n", tally.cases, tally.calls, tally.errors);
  vectors_close(&v);
}

// Templates in the shared folder that the cases above do not cover.
TEST(reads_the_formats_of_further_templates) {
#define OSLO "{\"city\": \"Oslo\"}"
#define NS "]<]minimax[>["
  static const struct {
    const char *template, *prompt, *text;
  } CASES[] = {
      {"Kimi-K3.jinja", "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
       "<|close|>think<|sep|><|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>"
       "<|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
       "type=\"string\"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools"
       "<|sep|>"},
      {"MiniMax-M3.jinja", "]~b]ai\n</mm:think>",
       NS "<tool_call>\n" NS "<invoke name=\"weather\">" NS "<city>Oslo" NS "</city>" NS
          "</invoke>\n" NS "</tool_call>"},
      {"GigaChat3-10B-A1.8B.jinja", "assistant<|role_sep|>\n",
       "<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"weather\", \"arguments\": " OSLO
       "}"},
      {"GigaChat3.1-10B-A1.8B.jinja", "assistant<|role_sep|>\n",
       "<|function_call|>{\"name\": \"weather\", \"arguments\": " OSLO "}"},
      {"moonshotai-Kimi-K2.jinja", "<|im_assistant|>assistant<|im_middle|>",
       "<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>" OSLO
       "<|tool_call_end|>"},
      {"openbmb-MiniCPM5-1B.jinja", "<|im_start|>assistant\n",
       "<function name=\"weather\"><param name=\"city\"><![CDATA[Oslo]]></param></function>"},
      {"openai-gpt-oss-120b.jinja", "<|start|>assistant",
       "<|channel|>commentary to=functions.weather json<|message|>" OSLO "<|call|>"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    static reply_rig rig;
    char path[256];
    size_t template_bytes = 0;
    snprintf(path, sizeof path, "vectors/templates/%s", CASES[i].template);
    uint8_t *template_text = check_read_file(check_shared(path), &template_bytes);
    if (template_text == NULL) SKIP("no shared folder");
    rig_open(&rig, (const char *)template_text, template_bytes, WEATHER, sizeof WEATHER - 1,
             CASES[i].prompt);
    if (CHECK_EQ_INT(rig.status, WICK_OK)) {
      rig_parse(&rig, CASES[i].text, strlen(CASES[i].text), 1, 1);
      grammar *grammar = open_grammar(&rig, WEATHER, sizeof WEATHER - 1, "\"required\"", true);
      const bool is_read = rig.call_count == 1 && rig.content.size_bytes == 0 &&
                           strcmp(rig.calls[0].name.bytes, "weather") == 0 &&
                           strcmp(rig.calls[0].arguments.bytes, OSLO) == 0;
      const bool is_allowed =
          grammar != NULL && holds(grammar, CASES[i].text, strlen(CASES[i].text));
      if (!CHECK(is_read) || !CHECK(is_allowed)) {
        printf("# %s: %s | %s\n", CASES[i].template, rig.content.bytes,
               rig.calls[0].arguments.bytes);
      }
      grammar_destroy(grammar);
    }
    rig_close(&rig);
    free(template_text);
  }
#undef OSLO
#undef NS
}
