// text/pretokenize.c — splits text into words, stage by stage, and maps each name of
// tokenizer.ggml.pre to its stages (llama.cpp's src/llama-vocab.cpp).
#include "text/pretokenize.h"

#include <string.h>

#include "text/patterns.h"

// ---- the cursor ----

void word_cursor_init(word_cursor *cursor, const pretokenizer *pretokenizer, const uint8_t *text,
                      size_t size_bytes) {
  *cursor = (word_cursor){.pretokenizer = pretokenizer, .text = text};
  cursor->open[0] = (text_span){0, size_bytes};
}

// Returns the next piece of a stage's open span: a match, or the gap before one.
static text_span cut_piece(word_cursor *cursor, size_t stage_index) {
  const pretokenize_stage *stage = &cursor->pretokenizer->stages[stage_index];
  text_span *open = &cursor->open[stage_index];
  text_span *match = &cursor->match[stage_index];
  const stage_text in = {cursor->text, open->begin, open->end, &cursor->memo[stage_index]};
  text_span piece = *open;
  if (match->begin < match->end) {  // found together with the gap before it
    piece = *match;
    *match = (text_span){0, 0};
  } else if (stage->find(stage, &in, match)) {
    if (match->begin > open->begin) {
      piece.end = match->begin;
    } else {
      piece = *match;
      *match = (text_span){0, 0};
    }
  } else {
    *match = (text_span){0, 0};
  }
  open->begin = piece.end;
  return piece;
}

bool word_cursor_next(word_cursor *cursor, text_span *word) {
  const size_t last = cursor->pretokenizer->stage_count - 1u;
  size_t stage = last;
  while (cursor->open[stage].begin == cursor->open[stage].end) {
    if (stage == 0) return false;
    stage--;
  }
  for (;;) {
    const text_span piece = cut_piece(cursor, stage);
    if (stage == last) {
      *word = piece;
      return true;
    }
    cursor->open[++stage] = piece;
  }
}

// ---- names ----

// A run of `least` to `most` characters of a set (0: any number), and words.
#define RUN(set, least, most) \
  .find = pattern_find_run, .contains = pattern_is_##set, .count_min = (least), .count_max = (most)
#define WORD(kind, digits, classes, ends) \
  .find = pattern_find_##kind, .digits_max = (digits), .letters = (classes), .tail = (ends)

static const pretokenize_stage DEFAULT_STAGES[] = {
    {RUN(symbol_of_default, 1, 0)},
    {.find = pattern_find_gpt2_word},
    {RUN(number, 1, 0)},
    {RUN(digit, 3, 3)},
};
static const pretokenize_stage FALCON_STAGES[] = {
    {RUN(symbol_of_falcon, 1, 0)},
    {.find = pattern_find_gpt2_word},
    {RUN(digit, 3, 3)},
};
static const pretokenize_stage GPT2_STAGES[] = {{.find = pattern_find_gpt2_word}};
static const pretokenize_stage STARCODER_STAGES[] = {
    {RUN(number, 1, 1)},
    {.find = pattern_find_gpt2_word},
};
static const pretokenize_stage LLAMA3_STAGES[] = {
    {WORD(word, 3, UNICODE_LETTER, "\r\n"), .has_contractions = true},
};
static const pretokenize_stage QWEN2_STAGES[] = {
    {WORD(word, 1, UNICODE_LETTER, "\r\n"), .has_contractions = true},
};
static const pretokenize_stage QWEN35_STAGES[] = {
    {WORD(word, 1, UNICODE_LETTER | UNICODE_MARK, "\r\n"), .has_contractions = true},
};
static const pretokenize_stage SEED_CODER_STAGES[] = {
    {WORD(word, 1, UNICODE_LETTER, ""), .has_contractions = true},
};
static const pretokenize_stage GPT4O_STAGES[] = {
    {WORD(cased_word, 3, UNICODE_LETTER, "\r\n/"), .has_contractions = true},
};
static const pretokenize_stage TEKKEN_STAGES[] = {
    {WORD(cased_word, 1, UNICODE_LETTER, "\r\n/")},
};
static const pretokenize_stage GRANITE_EMBEDDING_STAGES[] = {
    {WORD(cased_word, 3, UNICODE_LETTER | UNICODE_MARK, "\r\n/"), .has_contractions = true,
     .marks_are_signs = true},
};
static const pretokenize_stage TINY_AYA_STAGES[] = {
    {.find = pattern_find_number_group},
    {WORD(ended_word, 3, UNICODE_LETTER | UNICODE_MARK, "\r\n/"), .has_contractions = true,
     .marks_are_signs = true},
};
static const pretokenize_stage YOUTU_STAGES[] = {
    {.find = pattern_find_script},
    {WORD(ended_word, 1, UNICODE_LETTER | UNICODE_MARK, "\r\n/"), .has_contractions = true,
     .marks_are_signs = true},
};
static const pretokenize_stage KIMI_STAGES[] = {
    {WORD(kimi_word, 3, UNICODE_LETTER, "\r\n"), .has_contractions = true},
};
static const pretokenize_stage EXAONE_MOE_STAGES[] = {
    {WORD(phrase, 1, UNICODE_LETTER, "\r\n/"), .has_contractions = true, .has_short_tail = true},
};
static const pretokenize_stage JAIS2_STAGES[] = {
    {WORD(word, 3, UNICODE_LETTER, "\r\n"), .has_contractions = true, .cuts_spaces = true},
};
static const pretokenize_stage MINICPM5_STAGES[] = {
    {RUN(number, 1, 3)},
    {WORD(word, 3, UNICODE_LETTER, "\r\n"), .has_contractions = true},
};
static const pretokenize_stage UFAKZEKA_STAGES[] = {
    {WORD(word, 1, UNICODE_LETTER, "\r\n")},
};
static const pretokenize_stage LAGUNA_STAGES[] = {
    {RUN(of_line, 1, 0)},
    {WORD(word, 1, UNICODE_LETTER, "\r\n"), .has_contractions = true},
};
static const pretokenize_stage LINE_STAGES[] = {
    {RUN(of_line, 1, 0)},
};
static const pretokenize_stage WHITESPACE_STAGES[] = {
    {RUN(no_space, 1, 0)},
};
static const pretokenize_stage SUPERBPE_STAGES[] = {
    {RUN(number, 1, 0)},
    {.find = pattern_find_thousands},
};
static const pretokenize_stage CHAMELEON_STAGES[] = {
    {.find = pattern_find_sentinel}, {.find = pattern_find_image},
    {.find = pattern_find_blanks},   {RUN(number, 1, 1)},
    {RUN(symbol_of_falcon, 1, 1)},   {.find = pattern_find_gpt2_word},
};
static const pretokenize_stage DEEPSEEK_LLM_STAGES[] = {
    {RUN(newline, 1, 1)},
    {RUN(letter_of_deepseek_llm, 1, 0), .takes_space = true},
    {RUN(sign_of_deepseek_llm, 1, 0), .takes_space = true},
    {.find = pattern_find_last_spaces},
    {RUN(cjk_of_deepseek_coder, 1, 0)},
    {RUN(number, 1, 0)},
};
static const pretokenize_stage DEEPSEEK_CODER_STAGES[] = {
    {RUN(newline, 1, 1)},
    {RUN(letter, 1, 0), .takes_space = true},
    {RUN(punctuation, 1, 0), .takes_space = true},
    {RUN(cjk_of_deepseek_coder, 1, 0)},
    {RUN(number, 1, 1)},
};
static const pretokenize_stage DEEPSEEK_V3_STAGES[] = {
    {RUN(number, 1, 3)},
    {RUN(cjk_of_deepseek_v3, 1, 0)},
    {.find = pattern_find_signed_word, .tail = "\r\n"},
};
static const pretokenize_stage SPARK_STAGES[] = {
    {RUN(number, 1, 3)},
    {RUN(cjk_of_deepseek_v3, 1, 0)},
    {.find = pattern_find_signed_word, .tail = "", .cuts_newlines = true},
    {RUN(number, 1, 1)},
};
static const pretokenize_stage AFMOE_STAGES[] = {
    {.find = pattern_find_number_group},
    {RUN(asian_of_afmoe, 1, 0)},
    {.find = pattern_find_signed_word, .tail = "\r\n"},
};
static const pretokenize_stage BLOOM_STAGES[] = {
    {RUN(word_of_bloom, 1, 0), .takes_blank = true},
};
static const pretokenize_stage VIKING_STAGES[] = {
    {RUN(word_of_bloom, 1, 0), .takes_blank = true},
    {RUN(number, 1, 1)},
};

static bool find_nothing(const pretokenize_stage *stage, const stage_text *in, text_span *match) {
  (void)stage;
  (void)in;
  (void)match;
  return false;
}
// The whole text is one word.
static const pretokenize_stage WHOLE_STAGES[] = {{.find = find_nothing}};

#define STAGES(name) \
  .stages = name##_STAGES, .stage_count = sizeof name##_STAGES / sizeof name##_STAGES[0]

static const pretokenizer PRETOKENIZERS[] = {
    {.names = "default", STAGES(DEFAULT)},
    {.names = "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 roberta-bpe jina-es "
              "jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code gigachat a.x-4.0 mellum "
              "modern-bert",
     STAGES(GPT2)},
    {.names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     STAGES(LLAMA3),
     .ignores_merges = true,
     .adds_bos = true},
    {.names = "dbrx smaug-bpe", STAGES(LLAMA3)},
    {.names = "glm4 glm5 chatglm-bpe", STAGES(LLAMA3), .ignores_merges = true},
    {.names = "jais-2", STAGES(JAIS2)},
    {.names = "minicpm5", STAGES(MINICPM5), .ignores_merges = true},
    {.names = "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 solar-open kormo f2llmv2 "
              "bailingmoe bailingmoe2 llada-moe",
     STAGES(QWEN2)},
    {.names = "ufakzeka", STAGES(UFAKZEKA)},
    {.names = "laguna", STAGES(LAGUNA)},
    {.names = "qwen35", STAGES(QWEN35)},
    {.names = "seed-coder", STAGES(SEED_CODER)},
    {.names = "exaone-moe", STAGES(EXAONE_MOE)},
    {.names = "kimi-k2", STAGES(KIMI)},
    {.names = "gpt-4o llama4 kanana2 talkie minimax-m2", STAGES(GPT4O)},
    {.names = "granite-embed-multi-97m", STAGES(GRANITE_EMBEDDING), .ignores_merges = true},
    {.names = "tekken", STAGES(TEKKEN), .ignores_merges = true, .adds_bos = true},
    {.names = "tiny_aya cohere2moe", STAGES(TINY_AYA)},
    {.names = "youtu", STAGES(YOUTU), .ignores_merges = true},
    {.names = "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
     STAGES(STARCODER)},
    {.names = "falcon", STAGES(FALCON)},
    {.names = "deepseek-llm", STAGES(DEEPSEEK_LLM)},
    {.names = "deepseek-coder", STAGES(DEEPSEEK_CODER)},
    {.names = "deepseek-v3 hunyuan-dense hy_v4 joyai-llm", STAGES(DEEPSEEK_V3)},
    {.names = "spark2_5", STAGES(SPARK)},
    {.names = "afmoe", STAGES(AFMOE)},
    {.names = "bloom gpt3-finnish poro-chat", STAGES(BLOOM)},
    {.names = "viking", STAGES(VIKING)},
    {.names = "superbpe", STAGES(SUPERBPE)},
    {.names = "chameleon", STAGES(CHAMELEON), .adds_bos = true},
    {.names = "gemma4 granite-embed-multi-311m",
     STAGES(LINE),
     .is_raw = true,
     .marks_spaces = true,
     .keeps_newlines = true},
    {.names = "sarvam-moe", STAGES(LINE), .is_raw = true, .marks_spaces = true},
    {.names = "whitespace", STAGES(WHITESPACE), .is_raw = true},
    {.names = "sophia", STAGES(WHOLE)},
};

// Whether a list of names, which are separated by spaces, has this one.
static bool has_name(const char *names, gguf_string name) {
  while (*names != '\0') {
    size_t size_bytes = 0;
    while (names[size_bytes] != ' ' && names[size_bytes] != '\0') size_bytes++;
    if (size_bytes == name.size_bytes && memcmp(names, name.bytes, size_bytes) == 0) return true;
    names += size_bytes + (names[size_bytes] == ' ');
  }
  return false;
}

const pretokenizer *pretokenizer_find(gguf_string name) {
  for (size_t i = 0; i < sizeof PRETOKENIZERS / sizeof PRETOKENIZERS[0]; i++) {
    if (has_name(PRETOKENIZERS[i].names, name)) return &PRETOKENIZERS[i];
  }
  return NULL;
}
