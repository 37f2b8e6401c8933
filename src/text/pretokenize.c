// text/pretokenize.c — the words of a text, stage by stage, and which stages each name of
// tokenizer.ggml.pre stands for (llama.cpp's src/llama-vocab.cpp).
#include "text/pretokenize.h"

#include "text/patterns.h"

// ---- the cursor ----

void word_cursor_init(word_cursor *cursor, const pretokenizer *pretokenizer, const uint8_t *text,
                      size_t size_bytes) {
  *cursor = (word_cursor){.pretokenizer = pretokenizer, .text = text};
  cursor->open[0] = (text_span){0, size_bytes};
}

// The next piece that a stage makes of its open span: a match, or the gap before one.
static text_span cut_piece(word_cursor *cursor, size_t stage_index) {
  const pretokenize_stage *stage = &cursor->pretokenizer->stages[stage_index];
  text_span *open = &cursor->open[stage_index];
  text_span *match = &cursor->match[stage_index];
  text_span piece = *open;
  if (match->begin < match->end) {  // found with the gap before it
    piece = *match;
    *match = (text_span){0, 0};
  } else if (stage->find(stage, cursor->text, open->begin, open->end, match)) {
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

static const pretokenize_stage DEFAULT_STAGES[] = {
    {.find = pattern_find_run, .contains = pattern_is_symbol_of_default, .count_min = 1},
    {.find = pattern_find_gpt2_word},
    {.find = pattern_find_run, .contains = pattern_is_number, .count_min = 1},
    {.find = pattern_find_run, .contains = pattern_is_digit, .count_min = 3, .count_max = 3},
};
static const pretokenize_stage FALCON_STAGES[] = {
    {.find = pattern_find_run, .contains = pattern_is_symbol_of_falcon, .count_min = 1},
    {.find = pattern_find_gpt2_word},
    {.find = pattern_find_run, .contains = pattern_is_digit, .count_min = 3, .count_max = 3},
};
static const pretokenize_stage GPT2_STAGES[] = {{.find = pattern_find_gpt2_word}};
static const pretokenize_stage STARCODER_STAGES[] = {
    {.find = pattern_find_run, .contains = pattern_is_number, .count_min = 1, .count_max = 1},
    {.find = pattern_find_gpt2_word},
};
static const pretokenize_stage LLAMA3_STAGES[] = {
    {.find = pattern_find_word,
     .has_contractions = true,
     .digits_max = 3,
     .letters = UNICODE_LETTER,
     .tail = "\r\n"},
};
static const pretokenize_stage QWEN2_STAGES[] = {
    {.find = pattern_find_word,
     .has_contractions = true,
     .digits_max = 1,
     .letters = UNICODE_LETTER,
     .tail = "\r\n"},
};
static const pretokenize_stage QWEN35_STAGES[] = {
    {.find = pattern_find_word,
     .has_contractions = true,
     .digits_max = 1,
     .letters = UNICODE_LETTER | UNICODE_MARK,
     .tail = "\r\n"},
};
static const pretokenize_stage SEED_CODER_STAGES[] = {
    {.find = pattern_find_word,
     .has_contractions = true,
     .digits_max = 1,
     .letters = UNICODE_LETTER,
     .tail = ""},
};
static const pretokenize_stage GPT4O_STAGES[] = {
    {.find = pattern_find_cased_word,
     .has_contractions = true,
     .digits_max = 3,
     .letters = UNICODE_LETTER,
     .tail = "\r\n/"},
};
static const pretokenize_stage TEKKEN_STAGES[] = {
    {.find = pattern_find_cased_word, .digits_max = 1, .letters = UNICODE_LETTER, .tail = "\r\n/"},
};
static const pretokenize_stage DEEPSEEK_LLM_STAGES[] = {
    {.find = pattern_find_run, .contains = pattern_is_newline, .count_min = 1, .count_max = 1},
    {.find = pattern_find_run,
     .contains = pattern_is_letter_of_deepseek_llm,
     .count_min = 1,
     .takes_space = true},
    {.find = pattern_find_run,
     .contains = pattern_is_sign_of_deepseek_llm,
     .count_min = 1,
     .takes_space = true},
    {.find = pattern_find_last_spaces},
    {.find = pattern_find_run, .contains = pattern_is_cjk_of_deepseek_coder, .count_min = 1},
    {.find = pattern_find_run, .contains = pattern_is_number, .count_min = 1},
};
static const pretokenize_stage DEEPSEEK_CODER_STAGES[] = {
    {.find = pattern_find_run, .contains = pattern_is_newline, .count_min = 1, .count_max = 1},
    {.find = pattern_find_run, .contains = pattern_is_letter, .count_min = 1, .takes_space = true},
    {.find = pattern_find_run,
     .contains = pattern_is_punctuation,
     .count_min = 1,
     .takes_space = true},
    {.find = pattern_find_run, .contains = pattern_is_cjk_of_deepseek_coder, .count_min = 1},
    {.find = pattern_find_run, .contains = pattern_is_number, .count_min = 1, .count_max = 1},
};
static const pretokenize_stage DEEPSEEK_V3_STAGES[] = {
    {.find = pattern_find_run, .contains = pattern_is_number, .count_min = 1, .count_max = 3},
    {.find = pattern_find_run, .contains = pattern_is_cjk_of_deepseek_v3, .count_min = 1},
    {.find = pattern_find_deepseek_v3},
};
static const pretokenize_stage BLOOM_STAGES[] = {
    {.find = pattern_find_run,
     .contains = pattern_is_word_of_bloom,
     .count_min = 1,
     .takes_blank = true},
};
static const pretokenize_stage VIKING_STAGES[] = {
    {.find = pattern_find_run,
     .contains = pattern_is_word_of_bloom,
     .count_min = 1,
     .takes_blank = true},
    {.find = pattern_find_run, .contains = pattern_is_number, .count_min = 1, .count_max = 1},
};

#define STAGES(name) \
  .stages = name##_STAGES, .stage_count = sizeof name##_STAGES / sizeof name##_STAGES[0]

static const pretokenizer PRETOKENIZERS[] = {
    {.name = "default", STAGES(DEFAULT)},
    {.name = "gpt-2", STAGES(GPT2)},
    {.name = "phi-2", STAGES(GPT2)},
    {.name = "mpt", STAGES(GPT2)},
    {.name = "olmo", STAGES(GPT2)},
    {.name = "jais", STAGES(GPT2)},
    {.name = "trillion", STAGES(GPT2)},
    {.name = "granite-docling", STAGES(GPT2)},
    {.name = "exaone4", STAGES(GPT2)},
    {.name = "roberta-bpe", STAGES(GPT2)},
    {.name = "jina-es", STAGES(GPT2)},
    {.name = "jina-de", STAGES(GPT2)},
    {.name = "jina-v1-en", STAGES(GPT2)},
    {.name = "jina-v2-es", STAGES(GPT2)},
    {.name = "jina-v2-de", STAGES(GPT2)},
    {.name = "jina-v2-code", STAGES(GPT2)},
    {.name = "gigachat", STAGES(GPT2)},
    {.name = "a.x-4.0", STAGES(GPT2)},
    {.name = "mellum", STAGES(GPT2)},
    {.name = "modern-bert", STAGES(GPT2)},
    {.name = "llama-bpe", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "llama3", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "llama-v3", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "falcon3", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "falcon-h1", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "pixtral", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "midm-2.0", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "lfm2", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "jina-v5-nano", STAGES(LLAMA3), .ignores_merges = true, .adds_bos = true},
    {.name = "dbrx", STAGES(LLAMA3)},
    {.name = "smaug-bpe", STAGES(LLAMA3)},
    {.name = "glm4", STAGES(LLAMA3)},
    {.name = "chatglm-bpe", STAGES(LLAMA3)},
    {.name = "qwen2", STAGES(QWEN2)},
    {.name = "deepseek-r1-qwen", STAGES(QWEN2)},
    {.name = "megrez", STAGES(QWEN2)},
    {.name = "stablelm2", STAGES(QWEN2)},
    {.name = "hunyuan", STAGES(QWEN2)},
    {.name = "grok-2", STAGES(QWEN2)},
    {.name = "solar-open", STAGES(QWEN2)},
    {.name = "kormo", STAGES(QWEN2)},
    {.name = "f2llmv2", STAGES(QWEN2)},
    {.name = "bailingmoe", STAGES(QWEN2)},
    {.name = "bailingmoe2", STAGES(QWEN2)},
    {.name = "llada-moe", STAGES(QWEN2)},
    {.name = "qwen35", STAGES(QWEN35)},
    {.name = "seed-coder", STAGES(SEED_CODER)},
    {.name = "gpt-4o", STAGES(GPT4O)},
    {.name = "llama4", STAGES(GPT4O)},
    {.name = "kanana2", STAGES(GPT4O)},
    {.name = "talkie", STAGES(GPT4O)},
    {.name = "minimax-m2", STAGES(GPT4O)},
    {.name = "tekken", STAGES(TEKKEN), .ignores_merges = true, .adds_bos = true},
    {.name = "starcoder", STAGES(STARCODER)},
    {.name = "refact", STAGES(STARCODER)},
    {.name = "command-r", STAGES(STARCODER)},
    {.name = "smollm", STAGES(STARCODER)},
    {.name = "codeshell", STAGES(STARCODER)},
    {.name = "exaone", STAGES(STARCODER)},
    {.name = "minerva-7b", STAGES(STARCODER)},
    {.name = "mellum2", STAGES(STARCODER)},
    {.name = "falcon", STAGES(FALCON)},
    {.name = "deepseek-llm", STAGES(DEEPSEEK_LLM)},
    {.name = "deepseek-coder", STAGES(DEEPSEEK_CODER)},
    {.name = "deepseek-v3", STAGES(DEEPSEEK_V3)},
    {.name = "hunyuan-dense", STAGES(DEEPSEEK_V3)},
    {.name = "joyai-llm", STAGES(DEEPSEEK_V3)},
    {.name = "bloom", STAGES(BLOOM)},
    {.name = "gpt3-finnish", STAGES(BLOOM)},
    {.name = "poro-chat", STAGES(BLOOM)},
    {.name = "viking", STAGES(VIKING)},
};

const pretokenizer *pretokenizer_find(gguf_string name) {
  for (size_t i = 0; i < sizeof PRETOKENIZERS / sizeof PRETOKENIZERS[0]; i++) {
    if (gguf_string_equals(name, PRETOKENIZERS[i].name)) return &PRETOKENIZERS[i];
  }
  return NULL;
}
