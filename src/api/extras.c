// api/extras.c — determines which models need code that some builds lack (extras in flags.mk): web
// builds wait for this code, and the small WASI program rejects such models. Everything that is not
// listed here needs the code, so new additions need it by default. tools/build/check_extras.mjs
// compares the tables with EXTRAS_SOURCES when the small program is linked.
#include "base/extras.h"

#include <string.h>

#include "api/insides.h"
#include "base/text.h"

static const char ARCHITECTURE[] = "general.architecture", TYPE[] = "general.type",
                  TOKENIZER[] = "tokenizer.ggml.model";
enum { KEY_BYTES = 64, WHAT_BYTES = 192 };

// Families without experts, recurrent layers or encoders, whose files are not among the extras.
static const char FAMILIES[] =
    " arcee bitnet ernie4_5 exaone exaone4 gemma gemma2 gemma3 granite hunyuan-dense internlm2 "
    "llama minicpm mistral3 olmo2 orion paddleocr phi2 phi3 qwen qwen2 qwen2vl qwen3 qwen3vl "
    "seed_oss smollm3 xverse ";
static const char TOKENIZERS[] = " gpt2 llama ";
static const uint32_t TYPES = 1u << GGML_TYPE_F32 | 1u << GGML_TYPE_F16 | 1u << GGML_TYPE_BF16 |
                              1u << GGML_TYPE_Q4_0 | 1u << GGML_TYPE_Q4_1 | 1u << GGML_TYPE_Q5_0 |
                              1u << GGML_TYPE_Q5_1 | 1u << GGML_TYPE_Q8_0 | 1u << GGML_TYPE_Q4_K |
                              1u << GGML_TYPE_Q5_K | 1u << GGML_TYPE_Q6_K;
_Static_assert(GGML_TYPE_BF16 < 32, "types are bits of a word");

// Whether a string is one of the words, which are separated by spaces.
static bool is_among(gguf_string text, const char *words) {
  size_t bytes;
  for (const char *word = words + 1; *word != '\0'; word += bytes + 1) {
    for (bytes = 0; word[bytes] != ' ';) bytes++;
    if (text.size_bytes == bytes && memcmp(text.bytes, word, bytes) == 0) return true;
  }
  return false;
}

// Whether a key has a string that is not among the usual ones. A value that is missing or not a
// string is rejected by the functions that read it.
static bool has_unusual_text(const gguf_directory *directory, const char *key, const char *usual,
                             gguf_string *text) {
  wick_error ignored;
  return gguf_get_string(directory, key, text, &ignored) == WICK_OK && !is_among(*text, usual);
}

// Returns the first key of a common architecture that requires a different kind of layer, or NULL.
// Values of a wrong type are rejected by the functions that read them.
static const char *find_unusual_key(const gguf_directory *directory, char key[KEY_BYTES]) {
  gguf_string name = {"", 0};
  wick_error ignored;
  uint32_t experts = 0;
  bool is_causal = true;
  gguf_get_string(directory, "general.architecture", &name, &ignored);
  const int shown = name.size_bytes < KEY_BYTES ? (int)name.size_bytes : 0;
  text_format(key, KEY_BYTES, "%.*s.expert_count", shown, name.bytes);
  gguf_get_u32(directory, key, &experts, &ignored);
  if (experts > 0) return key;
  text_format(key, KEY_BYTES, "%.*s.attention.causal", shown, name.bytes);
  gguf_get_bool(directory, key, &is_causal, &ignored);
  return is_causal ? NULL : key;
}

static bool is_usual_type(uint32_t type) { return type < 32 && (TYPES >> type & 1) != 0; }

static const gguf_tensor *find_unusual_tensor(const loader *loader) {
  for (size_t i = 0; i < loader_tensor_count(loader); i++) {
    const gguf_tensor *tensor = loader_tensor_at(loader, i);
    if (!is_usual_type(tensor->type)) return tensor;
  }
  return NULL;
}

static bool is_usual_kv(wick_kv_type type) { return type == WICK_KV_F32 || type == WICK_KV_F16; }

static bool are_usual_kv(const wick_config *config) {
  return is_usual_kv(config->k_type) && is_usual_kv(config->v_type);
}

// ---- Builds that load the code later ----

// Whether tables may stay in the file. Without a reader, tables are not moved automatically; a
// model that is not loaded needs no reader.
bool engine_may_move_tables(const wick_engine *engine) {
  const wick_config *config = &engine->config;
  if (extras_program() != NULL || config->tables == WICK_TABLES_INSIDE) return false;
  return config->tables == WICK_TABLES_OUTSIDE || config->tables_reader != NULL ||
         config->directory_only;
}

static bool needs_extras(const wick_engine *engine) {
  const gguf_directory *directory = loader_directory(engine->loader);
  gguf_string text;
  char key[KEY_BYTES];
  return !are_usual_kv(&engine->config) || engine->config.swap != NULL ||
         engine_may_move_tables(engine) ||
         has_unusual_text(directory, ARCHITECTURE, FAMILIES, &text) ||
         has_unusual_text(directory, TYPE, " model ", &text) ||
         has_unusual_text(directory, TOKENIZER, TOKENIZERS, &text) ||
         find_unusual_key(directory, key) != NULL || find_unusual_tensor(engine->loader) != NULL;
}

static bool may_come(void) { return !extras_are_there() && extras_program() == NULL; }

static bool want_if(bool is_needed) {
  if (is_needed) extras_want();
  return is_needed;
}

bool engine_is_held(const wick_engine *engine) {
  return may_come() && want_if(needs_extras(engine));
}

bool engine_types_are_held(const loader *loader) {
  return may_come() && want_if(find_unusual_tensor(loader) != NULL);
}

// ---- Builds without the code ----

static wick_status refuse(wick_error *error, uint64_t offset_bytes, const char *what) {
  return fail_with(error, WICK_E_UNSUPPORTED, offset_bytes,
                   "%s is not in this program; %s has all features", what, extras_program());
}

// Rejects a key's value that needs code that this build lacks.
static wick_status refuse_text(const gguf_directory *directory, const char *key, const char *usual,
                               const char *kind, wick_error *error) {
  gguf_string text;
  char what[WHAT_BYTES], quoted[GGUF_QUOTE_BYTES];
  if (!has_unusual_text(directory, key, usual, &text)) return WICK_OK;
  text_format(what, sizeof what, "the %s '%s' (%s)", kind, gguf_quote(text, quoted), key);
  return refuse(error, gguf_find(directory, key)->offset_bytes, what);
}

wick_status engine_refuse_config(const wick_config *config, wick_error *error) {
  if (extras_program() == NULL) return WICK_OK;
  if (config->tables == WICK_TABLES_OUTSIDE) {
    refuse(error, WICK_NO_OFFSET, "keeping tables outside");
    return status_about(WICK_E_UNSUPPORTED, error, WICK_SUBJECT_TABLES, 0, 0);
  }
  if (are_usual_kv(config)) return WICK_OK;
  const wick_kv_type type = is_usual_kv(config->k_type) ? config->v_type : config->k_type;
  refuse(error, WICK_NO_OFFSET, type == WICK_KV_Q8 ? "the KV type q8" : "the KV type q4");
  return status_about(WICK_E_UNSUPPORTED, error, WICK_SUBJECT_KV_TYPE, config->k_type,
                      config->v_type);
}

wick_status engine_refuse_tokenizer(const gguf_directory *directory, wick_error *error) {
  if (extras_are_there()) return engine_refuse_kind(directory, error);
  if (extras_program() == NULL) return WICK_OK;
  return refuse_text(directory, TOKENIZER, TOKENIZERS, "tokenizer", error);
}

wick_status engine_refuse_types(const loader *loader, wick_error *error) {
  const gguf_tensor *tensor = extras_program() == NULL ? NULL : find_unusual_tensor(loader);
  if (tensor == NULL) return WICK_OK;
  char what[WHAT_BYTES], quoted[GGUF_QUOTE_BYTES];
  text_format(what, sizeof what, "the type %s (tensor '%s')", type_facts(tensor->type)->name,
              gguf_quote(tensor->name, quoted));
  return refuse(error, tensor->entry_offset_bytes, what);
}

wick_status engine_refuse_model(const loader *loader, wick_error *error) {
  const gguf_directory *directory = loader_directory(loader);
  if (extras_are_there()) return engine_refuse_kind(directory, error);
  if (extras_program() == NULL) return WICK_OK;
  wick_status status = refuse_text(directory, ARCHITECTURE, FAMILIES, "architecture", error);
  if (status != WICK_OK) return status;
  char key[KEY_BYTES], what[WHAT_BYTES];
  if (find_unusual_key(directory, key) == NULL) return engine_refuse_types(loader, error);
  text_format(what, sizeof what, "support for '%s'", key);
  return refuse(error, gguf_find(directory, key)->offset_bytes, what);
}
