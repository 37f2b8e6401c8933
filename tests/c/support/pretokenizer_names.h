// A name for each pre-tokenizer pattern (text/patterns.h).
#ifndef WICK_TESTS_PRETOKENIZER_NAMES_H
#define WICK_TESTS_PRETOKENIZER_NAMES_H

static const char *const PRETOKENIZERS[] = {"default",      "gpt-2",
                                            "llama-bpe",    "qwen2",
                                            "smollm",       "falcon",
                                            "qwen35",       "seed-coder",
                                            "gpt-4o",       "tekken",
                                            "deepseek-llm", "deepseek-coder",
                                            "deepseek-v3",  "bloom",
                                            "viking",       "jais-2",
                                            "minicpm5",     "ufakzeka",
                                            "laguna",       "exaone-moe",
                                            "kimi-k2",      "granite-embed-multi-97m",
                                            "tiny_aya",     "youtu",
                                            "spark2_5",     "afmoe",
                                            "superbpe",     "chameleon"};
enum { PRETOKENIZER_COUNT = sizeof PRETOKENIZERS / sizeof PRETOKENIZERS[0] };

#endif
