// api/extras.c — which models need the code that web builds keep in a module of its own (extras in
// flags.mk). Whatever is not named here needs it, so that what is added later does, too.
#include "base/extras.h"

#include <string.h>

#include "api/insides.h"

// Families without experts, recurrent layers or encoders, whose files are not among the extras.
static const char FAMILIES[] =
    " arcee bitnet ernie4_5 exaone exaone4 gemma gemma2 gemma3 granite hunyuan-dense internlm2 "
    "llama "
    "minicpm mistral3 olmo2 orion phi2 phi3 qwen qwen2 qwen3 seed_oss smollm3 xverse ";
static const char TOKENIZERS[] = " gpt2 llama ";
static const uint32_t TYPES = 1u << GGML_TYPE_F32 | 1u << GGML_TYPE_F16 | 1u << GGML_TYPE_BF16 |
                              1u << GGML_TYPE_Q4_0 | 1u << GGML_TYPE_Q4_1 | 1u << GGML_TYPE_Q5_0 |
                              1u << GGML_TYPE_Q5_1 | 1u << GGML_TYPE_Q8_0 | 1u << GGML_TYPE_Q4_K |
                              1u << GGML_TYPE_Q5_K | 1u << GGML_TYPE_Q6_K;
_Static_assert(GGML_TYPE_BF16 < 32, "types are bits of a word");

// Whether a text is one of the words between spaces.
static bool is_among(gguf_string text, const char *words) {
  size_t bytes;
  for (const char *word = words + 1; *word != '\0'; word += bytes + 1) {
    for (bytes = 0; word[bytes] != ' ';) bytes++;
    if (text.size_bytes == bytes && memcmp(text.bytes, word, bytes) == 0) return true;
  }
  return false;
}

static bool has_usual_text(const gguf_directory *directory, const char *key, const char *usual) {
  gguf_string text;
  wick_error ignored;
  return gguf_get_string(directory, key, &text, &ignored) == WICK_OK && is_among(text, usual);
}

static bool ends_with(gguf_string key, const char *end) {
  const size_t size_bytes = strlen(end);
  return key.size_bytes >= size_bytes &&
         memcmp(key.bytes + key.size_bytes - size_bytes, end, size_bytes) == 0;
}

// Keys of any architecture that make layers of another kind: their presence is enough.
static bool has_unusual_key(const gguf_directory *directory) {
  for (size_t i = 0; i < gguf_value_count(directory); i++) {
    const gguf_string key = gguf_value_at(directory, i)->key;
    if (ends_with(key, ".expert_count") || ends_with(key, ".attention.causal")) return true;
  }
  return false;
}

static bool is_usual_kv(kernel_kv_type type) {
  return type == KERNEL_KV_F32 || type == KERNEL_KV_F16;
}

static bool has_unusual_type(const loader *loader) {
  for (size_t i = 0; i < loader_tensor_count(loader); i++) {
    const uint32_t type = loader_tensor_at(loader, i)->type;
    if (type >= 32 || (TYPES >> type & 1) == 0) return true;
  }
  return false;
}

static bool needs_extras(const wick_engine *engine) {
  const gguf_directory *directory = loader_directory(engine->loader);
  const wick_config *config = &engine->config;
  return !is_usual_kv(config->k_type) || !is_usual_kv(config->v_type) || config->swap != NULL ||
         !has_usual_text(directory, "general.architecture", FAMILIES) ||
         !has_usual_text(directory, "tokenizer.ggml.model", TOKENIZERS) ||
         has_unusual_key(directory) || has_unusual_type(engine->loader);
}

bool engine_is_held(const wick_engine *engine) {
  const bool is_held = !extras_are_there() && needs_extras(engine);
  if (is_held) extras_want();
  return is_held;
}
