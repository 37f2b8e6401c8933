// Call arguments: compares JSON with a simple reader for RFC 8259, and random values in Python's
// and Gemma's notation with the JSON that they must become.
#include <stdlib.h>

#include "random.h"
#include "reply/marks.h"
#include "reply/scan.h"
#include "reply_rig.h"

enum { TEXT_MOST = 4096, DEPTH_MOST = 4 };

// A growing string.
typedef struct writer {
  char bytes[TEXT_MOST];
  size_t count;
} writer;

static void put(writer *w, const char *text) {
  const size_t count = strlen(text);
  if (!CHECK(w->count + count < sizeof w->bytes)) return;
  memcpy(w->bytes + w->count, text, count + 1);
  w->count += count;
}

static uint64_t state;

static uint32_t pick(uint32_t below) { return (uint32_t)random_below(&state, below); }

static void put_space(writer *w) {
  static const char *const SPACES[] = {"", "", "", " ", "\n", "\t", "\r", "  "};
  put(w, SPACES[pick(8)]);
}

// Text that is held back until the end is passed to the callback of reply_parser_end, not to the
// earlier one.
TEST(the_end_reports_to_its_own_context) {
  static const char TEXT[] = "Hello \n\n";
  static const char TOOLS[] = "[{\"type\":\"function\",\"function\":{\"name\":\"add\"}}]";
  reply_rig rig, other = {0};
  reply_parser *parser = NULL;
  rig_open(&rig, "<tool_call>", strlen("<tool_call>"), TOOLS, strlen(TOOLS), "");
  REQUIRE(CHECK_EQ_INT(rig_parser(&rig, "", &parser), WICK_OK));
  CHECK_EQ_INT(reply_parser_feed(parser, TEXT, strlen(TEXT), rig_take, &rig, NULL), WICK_OK);
  CHECK_EQ_INT(reply_parser_end(parser, rig_take, &other, NULL), WICK_OK);
  CHECK_EQ_UINT(rig.content.size_bytes + other.content.size_bytes, strlen(TEXT));
  CHECK(other.content.size_bytes > 0);
  reply_parser_destroy(parser);
  rig_close(&rig);
}

// ---- a simple JSON reader ----

static void skip_space(const char **at) { *at += strspn(*at, " \n\t\r"); }

static bool skip_digits(const char **at) {
  const size_t count = strspn(*at, "0123456789");
  *at += count;
  return count > 0;
}

static bool is_number(const char **at) {
  if (**at == '-') ++*at;
  const bool is_zero = **at == '0';
  if (is_zero) ++*at;
  if (!is_zero && !skip_digits(at)) return false;
  if (**at == '.') {
    ++*at;
    if (!skip_digits(at)) return false;
  }
  if (**at != 'e' && **at != 'E') return true;
  ++*at;
  if (**at == '+' || **at == '-') ++*at;
  return skip_digits(at);
}

static bool is_string(const char **at) {
  if (*(*at)++ != '"') return false;
  for (;; ++*at) {
    if ((uint8_t)**at < 0x20) return false;  // also the end of the text
    if (**at == '"') break;
    if (**at != '\\') continue;
    ++*at;
    if (**at == 'u') {
      if (strspn(*at + 1, "0123456789abcdefABCDEF") < 4) return false;
      *at += 4;
    } else if (**at == '\0' || strchr("\"\\/bfnrt", **at) == NULL) {
      return false;
    }
  }
  ++*at;
  return true;
}

static bool is_word(const char **at, const char *word) {
  if (strncmp(*at, word, strlen(word)) != 0) return false;
  *at += strlen(word);
  return true;
}

static bool is_value(const char **at, uint32_t depth) {
  skip_space(at);
  const char first = **at;
  if (first != '{' && first != '[') {
    return first == '"' ? is_string(at)
                        : is_word(at, "true") || is_word(at, "false") || is_word(at, "null") ||
                              is_number(at);
  }
  if (depth == REPLY_DEPTH_MAX) return false;
  const char last = first == '{' ? '}' : ']';
  ++*at;
  skip_space(at);
  for (bool is_first = true; !is_first || **at != last; is_first = false) {
    skip_space(at);
    if (first == '{') {
      if (!is_string(at)) return false;
      skip_space(at);
      if (*(*at)++ != ':') return false;
    }
    if (!is_value(at, depth + 1)) return false;
    skip_space(at);
    if (**at == last) break;
    if (*(*at)++ != ',') return false;
  }
  ++*at;
  return true;
}

static bool is_json(const char *text) {
  const bool is_one = is_value(&text, 0);
  skip_space(&text);
  return is_one && *text == '\0';
}

static void write_json(writer *w, uint32_t depth) {
  static const char *const SCALARS[] = {"0",
                                        "-0",
                                        "12",
                                        "-3.25",
                                        "1e5",
                                        "0E-7",
                                        "10.0e+01",
                                        "true",
                                        "null",
                                        "false",
                                        "\"a b\"",
                                        "\"\"",
                                        "\"\\u00E9\"",
                                        "\"\\\\\\\"/\"",
                                        "\"\xc3\xa9\"",
                                        "\"\\n\\t\\/\""};
  put_space(w);
  const uint32_t kind = depth == 0 ? 0 : pick(3);
  if (kind == 0) put(w, SCALARS[pick(16)]);
  if (kind != 0) {
    const uint32_t count = pick(4);
    put(w, kind == 1 ? "[" : "{");
    put_space(w);
    for (uint32_t i = 0; i < count; i++) {
      if (i > 0) put(w, ",");
      put_space(w);
      if (kind == 2) put(w, "\"key\"");
      if (kind == 2) put_space(w);
      if (kind == 2) put(w, ":");
      write_json(w, depth - 1);
    }
    put(w, kind == 1 ? "]" : "}");
  }
  put_space(w);
}

static void break_text(writer *w) {
  static const char SIGNS[] =
      "{}[]:,\"\\ \n\x01"
      "0123459.eE+-truefalsnuxgG/b";
  const size_t at = pick((uint32_t)w->count);
  const char sign = SIGNS[pick(sizeof SIGNS - 1)];
  const uint32_t how = pick(3);
  if (how == 0) w->bytes[at] = sign;
  if (how == 1) memmove(w->bytes + at, w->bytes + at + 1, w->count-- - at);
  if (how == 2 && w->count + 2 < sizeof w->bytes) {
    memmove(w->bytes + at + 1, w->bytes + at, ++w->count - at);
    w->bytes[at] = sign;
  }
}

TEST(json_is_accepted_exactly_if_rfc_8259_allows_it) {
  uint32_t valid = 0, broken = 0;
  state = soak_seed() + 3;
  for (uint32_t round = 0; round < soak_count(400000); round++) {
    writer w = {.count = 0};
    write_json(&w, pick(DEPTH_MOST));
    for (uint32_t i = pick(3); i > 0 && w.count > 0; i--) break_text(&w);
    const bool is_right = is_json(w.bytes);
    uint8_t first = 1;
    valid += is_right;
    broken += !is_right;
    if (!CHECK_EQ_INT(scan_holds((const uint8_t *)w.bytes, w.count, &first), is_right)) {
      printf("#   %s\n", w.bytes);
    }
    CHECK_EQ_UINT(first, (uint8_t)w.bytes[strspn(w.bytes, " \n\t\r")]);
  }
  CHECK(valid > 1000 && broken > 1000);
}

TEST(json_is_nested_up_to_the_limit) {
  for (uint32_t depth = 1; depth <= REPLY_DEPTH_MAX + 1; depth++) {
    writer w = {.count = 0};
    uint8_t first;
    for (uint32_t i = 0; i < depth; i++) put(&w, i % 3 == 1 ? "{\"\":" : "[");
    put(&w, "1");
    for (uint32_t i = depth; i-- > 0;) put(&w, i % 3 == 1 ? "}" : "]");
    CHECK_EQ_INT(scan_holds((const uint8_t *)w.bytes, w.count, &first), depth <= REPLY_DEPTH_MAX);
  }
}

// ---- JSON-like notations ----

typedef struct pair {
  writer source, json;
  bool is_gemma;
} pair;

// Writes text that is the same in the source and in JSON.
static void put_both(pair *p, const char *text) {
  put(&p->source, text);
  put(&p->json, text);
}

static void write_text(pair *p, char quote) {
  static const char *const PIECES[][2] = {{"a", "a"},
                                          {" <|", " <|"},
                                          {"\xc3\xa9", "\xc3\xa9"},
                                          {"\\n", "\\n"},
                                          {"\\t", "\\t"},
                                          {"\\a", "\\u0007"},
                                          {"\\v", "\\u000b"},
                                          {"\\b", "\\b"},
                                          {"\\f", "\\f"},
                                          {"\\r", "\\r"},
                                          {"\\\\", "\\\\"},
                                          {"\\'", "'"},
                                          {"\\\"", "\\\""},
                                          {"\\q", "\\\\q"},
                                          {"\\x4a", "\\u004a"},
                                          {"\\xFf", "\\u00ff"},
                                          {"\\\n", ""},
                                          {"\\u20AC", "\\u20ac"},
                                          {"\\U0000ffff", "\\uffff"},
                                          {"\\U00010000", "\\ud800\\udc00"},
                                          {"\\U0010fFff", "\\udbff\\udfff"},
                                          {"\\U0001F600", "\\ud83d\\ude00"},
                                          {"]})", "]})"},
                                          {"\t", "\\t"}};
  const char mark[] = {quote, '\0'};
  put(&p->source, mark);
  put(&p->json, "\"");
  for (uint32_t i = pick(5); i > 0; i--) {
    const uint32_t at = pick(sizeof PIECES / sizeof *PIECES);
    put(&p->source, PIECES[at][0]);
    put(&p->json, PIECES[at][1]);
  }
  if (quote == '\'') put(&p->source, "\""), put(&p->json, "\\\"");
  if (quote == '"') put_both(p, "'");
  put(&p->source, mark);
  put(&p->json, "\"");
}

// Writes a delimited string: every byte is literal, including the delimiters' own bytes.
static void write_marked(pair *p) {
  static const char MARK[] = "<|\"|>";
  static const char *const JSON[] = {"<", "|", "\\\"", ">", "a", "\\\\"};
  char text[32];
  size_t count = 0;
  uint32_t signs[12];
  for (uint32_t i = pick(12); i > 0; i--) {
    signs[count] = pick(6);
    text[count] = "<|\">a\\"[signs[count]];
    strcpy(text + count + 1, MARK);
    if (strstr(text, MARK) == text + count + 1) count++;
  }
  text[count] = '\0';
  put(&p->source, MARK);
  put(&p->source, text);
  put(&p->source, MARK);
  put(&p->json, "\"");
  for (size_t i = 0; i < count; i++) put(&p->json, JSON[signs[i]]);
  put(&p->json, "\"");
}

static void write_value(pair *p, uint32_t depth);

static void write_dict_key(pair *p, uint32_t index) {
  const char name[] = {'k', (char)('0' + index), '_', '\0'};
  if (!p->is_gemma) {
    write_text(p, pick(2) == 0 ? '"' : '\'');
  } else if (pick(3) == 0) {
    write_marked(p);
  } else if (pick(3) == 0) {
    write_text(p, '"');
  } else {
    put(&p->json, "\"");
    put_both(p, name);
    put(&p->json, "\"");
  }
}

static void write_items(pair *p, uint32_t depth, char kind) {
  const uint32_t count = pick(4);
  put_space(&p->source);
  for (uint32_t i = 0; i < count; i++) {
    const char name[] = {'n', (char)('a' + i), '\0'};
    put_space(&p->source);
    if (i > 0) put(&p->json, ", ");
    if (kind == '{') write_dict_key(p, i);
    if (kind == 'c') put(&p->source, name);
    if (kind == 'c') put(&p->json, "\""), put(&p->json, name), put(&p->json, "\"");
    if (kind != '[' && kind != '(') {
      put_space(&p->source);
      put(&p->source, kind == 'c' ? "=" : ":");
      put(&p->json, ": ");
    }
    put_space(&p->source);
    write_value(p, depth);
    put_space(&p->source);
    if (i + 1 < count || pick(3) == 0) put(&p->source, ",");
  }
  put_space(&p->source);
}

static void write_value(pair *p, uint32_t depth) {
  static const char *const WORDS[][2] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}, {"true", "true"}, {"null", "null"},
      {"0", "0"},       {"-12", "-12"},     {"2.50", "2.50"}, {"1e+3", "1e+3"}, {"3E-2", "3E-2"}};
  const uint32_t kind = depth == 0 ? pick(3) : pick(6);
  if (kind == 0) {
    const uint32_t at = pick(sizeof WORDS / sizeof *WORDS);
    put(&p->source, WORDS[at][0]);
    put(&p->json, WORDS[at][1]);
  } else if (kind < 3) {
    if (!p->is_gemma) write_text(p, kind == 1 ? '"' : '\'');
    if (p->is_gemma && kind == 1) write_marked(p);
    if (p->is_gemma && kind == 2) write_text(p, '"');
  } else {
    const char open = "[({"[kind - 3], close = "])}"[kind - 3];
    const char opening[] = {open, '\0'}, closing[] = {close, '\0'};
    put(&p->source, opening);
    put(&p->json, open == '{' ? "{" : "[");
    write_items(p, depth - 1, open);
    put(&p->source, closing);
    put(&p->json, open == '{' ? "}" : "]");
  }
}

static void write_call(pair *p, bool is_gemma) {
  p->source.count = p->json.count = 0;
  p->is_gemma = is_gemma;
  put(&p->source, is_gemma ? "<|tool_call>call:get{" : "<|tool_call_start|>[get(");
  put(&p->json, "{");
  write_items(p, 2, is_gemma ? '{' : 'c');
  put(&p->json, "}");
  put(&p->source, is_gemma ? "}<tool_call|>" : ")]<|tool_call_end|>");
}

static void open_form(reply_rig *rig, bool is_gemma) {
  static const char TOOLS[] = "[{\"name\": \"get\"}]";
  const char *trait = is_gemma ? "<|tool_call>" : "<|tool_call_start|>";
  rig_open(rig, trait, strlen(trait), TOOLS, strlen(TOOLS), "");
  CHECK_EQ_INT(rig->status, WICK_OK);
}

static void check_values(bool is_gemma) {
  static pair p;
  static reply_rig rig;
  uint32_t tried = 0;
  state = soak_seed() + is_gemma;
  open_form(&rig, is_gemma);
  for (uint32_t round = 0; round < soak_count(20000); round++) {
    write_call(&p, is_gemma);
    if (p.source.count > RIG_TEXT_BYTES / 2) continue;
    rig_parse(&rig, p.source.bytes, p.source.count, pick(20), pick(20));
    const bool is_right = rig.status == WICK_OK && rig.call_count == 1 && rig.calls[0].has_ended &&
                          rig.content.size_bytes == 0 && rig.is_valid &&
                          strcmp(rig.calls[0].arguments.bytes, p.json.bytes) == 0;
    if (!CHECK(is_right)) {
      printf("# %s\n#   is  %s\n#   not %s\n", p.source.bytes, rig.calls[0].arguments.bytes,
             p.json.bytes);
    }
    CHECK(is_json(p.json.bytes));
    tried++;
  }
  CHECK(tried > soak_count(20000) / 2);
  rig_close(&rig);
}

TEST(python_values_become_json) { check_values(false); }
TEST(gemma_values_become_json) { check_values(true); }

TEST(calls_with_invalid_values_do_not_complete) {
  static const char *const VALUES[][2] = {{"nul", "a:nul"},
                                          {"--1", "a:01"},
                                          {"01", "a:1.}"},
                                          {"1.", "a:,"},
                                          {"'\\xg1'", "a:\"\\xg1\""},
                                          {"'\\U00110000'", "a:\"\\U00110000\""},
                                          {"1 2", "a:1 2"},
                                          {"{1: 2}", "a=1"},
                                          {"{'b'=1}", "a:{b=1}"},
                                          {"{'b': 1]", "a:{b:1]"},
                                          {"[1}", "a:[1}"},
                                          {"(1]", "a:(1]"},
                                          {"[,]", "a:[,]"},
                                          {"[1,,2]", "a:[1,,2]"},
                                          {"'\\u12'", "a:<|\"x|>"},
                                          {"", "a:<|x"},
                                          {"TRUE", "a:'b'"},
                                          {"{b: 1}", ",a:1"},
                                          {"{'b' 'c': 1}", "a b:1"},
                                          {"1, b c=2", "a:{b c:1}"},
                                          {"1, b", "a"},
                                          {"1, b \n", "a "},
                                          {"1, =2", ":1"}};
  static reply_rig rig;
  for (uint32_t form = 0; form < 2; form++) {
    open_form(&rig, form == 1);
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
      writer w = {.count = 0};
      put(&w, form == 1 ? "<|tool_call>call:get{" : "<|tool_call_start|>[get(a=");
      put(&w, VALUES[i][form]);
      put(&w, form == 1 ? "}<tool_call|>" : ")]<|tool_call_end|>");
      rig_parse(&rig, w.bytes, w.count, 0, 0);
      if (!CHECK(rig.call_count == 0 || !rig.calls[0].has_ended)) printf("#   %s\n", w.bytes);
      CHECK(rig.call_count == 0 || rig.status != WICK_OK);
    }
    rig_close(&rig);
  }
}

// ---- string contents ----

TEST(each_byte_is_preserved_by_escaping) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    char escaped[6];
    uint8_t out[4], found = 0;
    size_t count = 0, total = 0;
    json_unescape string = {0};
    const size_t size = escape_byte((uint8_t)byte, escaped);
    for (size_t i = 0; i < size; i++) {
      CHECK_EQ_INT(unescape_step(&string, (uint8_t)escaped[i], out, &count), STEP_MORE);
      if (count > 0) found = out[0];
      total += count;
    }
    CHECK_EQ_UINT(total, 1);
    CHECK_EQ_UINT(found, byte);
    CHECK_EQ_INT(unescape_step(&string, '"', out, &count), STEP_DONE);
  }
}

// Any pair of code units becomes UTF-8, or is rejected if it has no UTF-8 form.
TEST(code_units_become_characters) {
  static const uint32_t UNITS[] = {0,      0x41,   0x7f,   0x80,   0x7ff,  0x800,  0xd7ff, 0xd800,
                                   0xdbff, 0xdc00, 0xdfff, 0xe000, 0xfffd, 0xffff, 0xd83d, 0xde00};
  for (uint32_t i = 0; i < 16 * 16; i++) {
    const uint32_t one = UNITS[i / 16], two = UNITS[i % 16];
    const bool is_pair = one >= 0xd800 && one < 0xdc00;
    const bool is_right = is_pair ? two >= 0xdc00 && two < 0xe000 : one < 0xdc00 || one > 0xdfff;
    char text[32];
    uint8_t out[4], wanted[4], found[8];
    size_t count = 0, total = 0;
    json_unescape string = {0};
    reply_step step = STEP_MORE;
    snprintf(text, sizeof text, "\\u%04x\\u%04X", one, two);
    const size_t size = is_pair ? 12 : 6;
    for (size_t k = 0; k < size && step == STEP_MORE; k++) {
      step = unescape_step(&string, (uint8_t)text[k], out, &count);
      memcpy(found + total, out, count);
      total += count;
    }
    CHECK_EQ_INT(step, is_right ? STEP_MORE : STEP_FAIL);
    if (!is_right) continue;
    const uint32_t code = is_pair ? 0x10000 + (one - 0xd800) * 1024 + (two - 0xdc00) : one;
    CHECK_EQ_UINT(total, utf8_encode(code, wanted));
    CHECK_EQ_MEM(found, wanted, total);
    CHECK_EQ_INT(unescape_step(&string, '"', out, &count), STEP_DONE);
  }
}

// ---- markers ----

// Whether the first `end` bytes of the text end with the first `count` bytes of the marker.
static bool ends_with(const char *text, size_t end, const char *mark, size_t count) {
  return count <= end && memcmp(text + end - count, mark, count) == 0;
}

// Checks the longest marker that ends at each byte, and the longest prefix of a marker pending
// there.
static void check_marks(reply_marks *marks, const char *text, size_t size_bytes) {
  for (size_t end = 1; end <= size_bytes; end++) {
    const reply_mark *wanted = NULL;
    size_t pending = 0;
    for (uint32_t i = 0; i < marks->count; i++) {
      const reply_mark *mark = &marks->items[i];
      const bool is_longer = wanted == NULL || mark->size_bytes > wanted->size_bytes;
      if (is_longer && ends_with(text, end, mark->text, mark->size_bytes)) wanted = mark;
      for (size_t count = 1; count < mark->size_bytes; count++) {
        if (count > pending && ends_with(text, end, mark->text, count)) pending = count;
      }
    }
    CHECK(marks_step(marks, (uint8_t)text[end - 1]) == wanted);
    CHECK_EQ_UINT(marks->pending, pending);
  }
}

TEST(markers_are_found_as_by_a_simple_search) {
  state = soak_seed() + 9;
  for (uint32_t round = 0; round < soak_count(8000); round++) {
    static reply_marks marks;
    char texts[6][10], text[64];
    memset(&marks, 0, sizeof marks);
    for (uint32_t i = 0; i < 6; i++) {
      const uint32_t count = pick(10), known = marks.count;
      for (uint32_t k = 0; k < count; k++)
        texts[i][k] = "abH"[pick(3)];  // two letters with the same byte in the bitmap
      texts[i][count] = '\0';
      bool is_new = count > 0;
      for (uint32_t k = 0; k < i; k++) is_new = is_new && strcmp(texts[k], texts[i]) != 0;
      marks_add(&marks, texts[i], (uint8_t)i);
      CHECK_EQ_UINT(marks.count, known + is_new);
      if (is_new) CHECK_EQ_UINT(marks.items[known].role, i);
    }
    for (uint32_t again = 0; again < 2; again++) {
      for (size_t k = 0; k < sizeof text; k++) text[k] = "aabbHc"[pick(6)];
      check_marks(&marks, text, sizeof text);
      marks_restart(&marks);
    }
  }
}

// ---- long text ----

// Text that is fed in one call is emitted in pieces of whole characters.
TEST(long_text_is_emitted_in_pieces_of_whole_characters) {
  static const char *const CHARACTERS[] = {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"};
  static const char TOOLS[] = "[{\"function\": {\"name\": \"get\"}}]";
  static const char FAMILY[] = "<tool_call>";
  for (size_t i = 0; i < 4; i++) {
    for (uint32_t before = 0; before < 4; before++) {
      static reply_rig rig;
      writer value = {0}, text = {0};
      put(&value, "{\"a\": \"");
      for (uint32_t k = 0; k < before; k++) put(&value, "x");
      for (uint32_t k = 0; k < 300; k++) put(&value, CHARACTERS[i]);
      put(&value, "\"}");
      put(&text, value.bytes);
      put(&text, "<tool_call>{\"name\": \"get\", \"arguments\": ");
      put(&text, value.bytes);
      put(&text, "}</tool_call>");
      rig_open(&rig, FAMILY, strlen(FAMILY), TOOLS, strlen(TOOLS), "");
      rig_parse(&rig, text.bytes, text.count, 0, 0);
      CHECK_EQ_INT(rig.status, WICK_OK);
      CHECK(rig.is_valid && rig.is_text);
      CHECK_EQ_UINT(rig.call_count, 1);
      CHECK_EQ_STR(rig.content.bytes, value.bytes);
      CHECK_EQ_STR(rig.calls[0].arguments.bytes, value.bytes);
      rig_close(&rig);
    }
  }
}

// The prompt ends within a message's body: leading white space is part of constrained content,
// unless the content is JSON.
TEST(leading_white_space_is_part_of_constrained_content) {
  static const char FAMILY[] = "<|start|><|channel|><|message|>";
  static const char PROMPT[] = "<|start|>assistant<|channel|>final<|message|>";
  static const struct {
    wick_grammar_kind wanted;
    const char *content;
  } CASES[] = {
      {WICK_GRAMMAR_GBNF, " \n hi"},
      {WICK_GRAMMAR_JSON_SCHEMA, "hi"},
      {WICK_GRAMMAR_REGEX, " \n hi"},
      {WICK_GRAMMAR_NONE, "hi"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    static reply_rig rig;
    rig_open(&rig, FAMILY, strlen(FAMILY), NULL, 0, PROMPT);
    rig.wanted = CASES[i].wanted;
    rig_parse(&rig, " \n hi", 5, 0, 0);
    CHECK_EQ_INT(rig.status, WICK_OK);
    CHECK_EQ_STR(rig.content.bytes, CASES[i].content);
    rig_close(&rig);
  }
}
