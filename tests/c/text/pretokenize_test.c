// The words into which pre-tokenizers split text. The expected words follow from the regular
// expressions of llama.cpp (src/llama-vocab.cpp) as its regex engine runs them.
#include "text/pretokenize.h"

#include <string.h>

#include "check.h"

enum { WORDS_MAX_BYTES = 4096 };

static const pretokenizer *find(const char *name) {
  return pretokenizer_find((gguf_string){name, strlen(name)});
}

// Returns the words, separated by bars.
static const char *words_of(const char *name, const char *text) {
  static char out[WORDS_MAX_BYTES];
  size_t used = 0;
  word_cursor cursor;
  text_span word;
  word_cursor_init(&cursor, find(name), (const uint8_t *)text, strlen(text));
  while (word_cursor_next(&cursor, &word)) {
    if (used > 0) out[used++] = '|';
    memcpy(out + used, text + word.begin, word.end - word.begin);
    used += word.end - word.begin;
  }
  out[used] = '\0';
  return out;
}

#define CHECK_WORDS(name, text, wanted) CHECK_EQ_STR(words_of(name, text), wanted)

TEST(names_are_matched_as_a_whole) {
  CHECK(find("qwen2") != NULL && find("kimi-k2") != NULL && find("gemma4") != NULL);
  static const char *const UNKNOWN[] = {"", " ", "qwen", "qwen2 ", "gpt-2 phi-2", "QWEN2", "wen2"};
  for (size_t i = 0; i < sizeof UNKNOWN / sizeof UNKNOWN[0]; i++) CHECK(find(UNKNOWN[i]) == NULL);
}

TEST(sophia_does_not_split_text) {
  CHECK_WORDS("sophia", "Hello\n\n world 123", "Hello\n\n world 123");
  CHECK_WORDS("sophia", "", "");
}

// Whether `name` is in a list of names separated by spaces.
static bool is_in(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at++) {
    const bool begins = at == list || at[-1] == ' ';
    if (begins && (at[length] == ' ' || at[length] == '\0')) return true;
  }
  return false;
}

// Checks the settings that a name implies in addition to its pattern. llama.cpp lists them next to
// the names.
TEST(names_imply_the_settings_of_their_vocabularies) {
  static const char IGNORES_MERGES[] =
      "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano glm4 glm5 "
      "chatglm-bpe minicpm5 granite-embed-multi-97m tekken youtu";
  static const char ADDS_BOS[] =
      "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken "
      "chameleon";
  static const char IS_RAW[] = "gemma4 granite-embed-multi-311m sarvam-moe whitespace";
  static const char *const NAMES[] = {"default",
                                      "gpt-2",
                                      "llama-bpe",
                                      "llama3",
                                      "llama-v3",
                                      "falcon3",
                                      "falcon-h1",
                                      "pixtral",
                                      "midm-2.0",
                                      "lfm2",
                                      "jina-v5-nano",
                                      "dbrx",
                                      "glm4",
                                      "glm5",
                                      "jais-2",
                                      "chatglm-bpe",
                                      "minicpm5",
                                      "qwen2",
                                      "ufakzeka",
                                      "laguna",
                                      "qwen35",
                                      "seed-coder",
                                      "exaone-moe",
                                      "kimi-k2",
                                      "gpt-4o",
                                      "tekken",
                                      "tiny_aya",
                                      "deepseek-coder",
                                      "youtu",
                                      "starcoder",
                                      "falcon",
                                      "bloom",
                                      "viking",
                                      "deepseek-llm",
                                      "deepseek-v3",
                                      "spark2_5",
                                      "afmoe",
                                      "superbpe",
                                      "chameleon",
                                      "gemma4",
                                      "sarvam-moe",
                                      "whitespace",
                                      "minimax-m2",
                                      "sophia",
                                      "granite-embed-multi-97m",
                                      "granite-embed-multi-311m"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    const pretokenizer *found = find(NAMES[i]);
    if (!CHECK(found != NULL)) continue;
    CHECK_EQ_INT(found->ignores_merges, is_in(IGNORES_MERGES, NAMES[i]));
    CHECK_EQ_INT(found->adds_bos, is_in(ADDS_BOS, NAMES[i]));
    CHECK_EQ_INT(found->is_raw, is_in(IS_RAW, NAMES[i]));
  }
}

TEST(kimi_k2_separates_chinese) {
  CHECK_WORDS("kimi-k2", "Hello世界abc's 你好123456!", "Hello|世界|abc's| |你好|123|456|!");
  CHECK_WORDS("kimi-k2", " x\n\n  y", " x|\n\n| | y");
}

TEST(afmoe_groups_digits_from_the_end) {
  CHECK_WORDS("afmoe", "12345 1234567", "12|345| |1|234|567");
  CHECK_WORDS("afmoe", "ab 123แมว!x", "ab| |123|แ|มว|!x");
}

TEST(tiny_aya_groups_digits_and_treats_marks_as_letters) {
  CHECK_WORDS("tiny_aya", "1234567 it's", "1|234|567| it's");
  CHECK_WORDS("cohere2moe", "a\u0301b \u0301c!\u0301/\n?", "a\u0301b| \u0301c|!\u0301|/\n|?");
}

TEST(superbpe_splits_only_numbers) {
  CHECK_WORDS("superbpe", "so 1234567 that", "so |1|234|567| that");
  CHECK_WORDS("superbpe", "\u00bd1234 12\u00bd345", "\u00bd1|234| |12\u00bd|345");
  CHECK_WORDS("superbpe", "12 123", "12| |123");
}

TEST(youtu_separates_scripts) {
  CHECK_WORDS("youtu", "한국，。世界ㄅㄆ Ab's12", "한국|，。|世界|ㄅㄆ| Ab's|1|2");
}

TEST(chameleon_separates_image_tokens_of_one_to_four_letters) {
  CHECK_WORDS("chameleon", "xIMGIMGAZy", "x|IMGIMGAZ|y");
  CHECK_WORDS("chameleon", "xIMGIMGABIDZy", "x|IMGIMGABIDZ|y");
  CHECK_WORDS("chameleon", "IMGIMGIMGIZZ", "IMG|IMGIMGIZ|Z");
  CHECK_WORDS("chameleon", "IMGIMGAZIMGIMGBZ", "IMGIMGAZ|IMGIMGBZ");
  static const char *const whole[] = {"xIMGIMGABCDEZy", "xIMGIMGZy", "xIMGIMGAYy",  "xIMGIMGJZy",
                                      "xIMGIMGABCD",    "xIMGIMGA",  "xIMGIMG",     "xIMGIMGaZy",
                                      "xIMGIMABZy",     "xIMGIMGZ",  "xIMGIMGAABBB"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
    CHECK_WORDS("chameleon", whole[i], whole[i]);
  }
}

TEST(chameleon_splits_runs_of_spaces) {
  CHECK_WORDS("chameleon", "x<sentinel:12>IMGIMGABCZ", "x|<|sentinel|:|1|2|>|IMGIMGABCZ");
  CHECK_WORDS("chameleon", "<sentinel:> IMGIMGABCDEZ", "<|sentinel|:|>| IMGIMGABCDEZ");
  CHECK_WORDS("chameleon", "a       b\tc", "a|    |  | b|\t|c");
}

TEST(jais_2_splits_white_space_by_powers_of_two) {
  CHECK_WORDS("jais-2", "a       b", "a|    |  | b");
  CHECK_WORDS("jais-2", "a        b", "a|    |  | | b");
  CHECK_WORDS("jais-2", "      ", "    |  ");
  CHECK_WORDS("jais-2", "   \n   b", "   \n|  | b");
}

TEST(exaone_moe_keeps_phrases_together) {
  CHECK_WORDS("exaone-moe", "to be or  not it's 12!?\n\n", "to be or| | not it|'s| |1|2|!?\n|\n");
}

TEST(granite_embeddings_attach_combining_marks) {
  CHECK_WORDS("granite-embed-multi-97m", "ABCdef Xa\u0301Y", "ABCdef| Xa\u0301|Y");
  CHECK_WORDS("granite-embed-multi-97m", "\u0301AB 1234", "\u0301|AB| |123|4");
}

TEST(other_names_split_by_their_patterns) {
  CHECK_WORDS("minicpm5", "a1234's", "a|123|4|'s");
  CHECK_WORDS("ufakzeka", "it's", "it|'s");
  CHECK_WORDS("ufakzeka", "Ali'den", "Ali|'den");
  CHECK_WORDS("laguna", "a !\n\nb", "a| !|\n\n|b");
  CHECK_WORDS("spark2_5", "a!\n\nb12345", "a|!|\n|\n|b|1|2|3|4|5");
  CHECK_WORDS("gemma4", "a b\n\nc", "a b|\n\n|c");
  CHECK_WORDS("whitespace", "a b\n\nc", "a| |b|\n\n|c");
}
