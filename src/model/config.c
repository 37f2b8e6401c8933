// model/config.c — reading and checking hyper-parameters.
#include "model/config.h"

#include <string.h>

#include "base/math.h"
#include "base/text.h"

static const model_family FAMILIES[] = {
    {"llama", true},
    {"qwen2", false},
};

enum { KEY_BYTES = 160 };

typedef struct key_reader {
  const gguf_directory *directory;
  const char *architecture;
  wick_error *error;
  wick_status status;  // of the first failure; later calls do nothing
} key_reader;

static void make_key(const key_reader *reader, const char *name, char key[KEY_BYTES]) {
  text_format(key, KEY_BYTES, "%s.%s", reader->architecture, name);
}

static uint64_t offset_of(const key_reader *reader, const char *key) {
  const gguf_value *value = gguf_find(reader->directory, key);
  return value == NULL ? WICK_NO_OFFSET : value->offset_bytes;
}

// A whole number in [least, most]; absent: `fallback`, or an error when that is 0.
static uint32_t read_count(key_reader *reader, const char *name, uint32_t least, uint32_t most,
                           uint32_t fallback) {
  char key[KEY_BYTES];
  make_key(reader, name, key);
  uint32_t value = fallback;
  if (reader->status != WICK_OK) return value;
  const wick_status status = gguf_get_u32(reader->directory, key, &value, reader->error);
  if (status == WICK_E_NODATA && fallback == 0) {
    reader->status =
        wick_fail(reader->error, WICK_E_FORMAT, WICK_NO_OFFSET, "the key '%s' is missing", key);
  } else if (status != WICK_OK && status != WICK_E_NODATA) {
    reader->status = status;
  } else if (value < least || value > most) {
    reader->status =
        wick_fail(reader->error, WICK_E_FORMAT, offset_of(reader, key),
                  "'%s' is %u, which is not within %u and %u", key, value, least, most);
  }
  return value;
}

// A number above `least` and finite; absent: `fallback` (0: an error).
static double read_number(key_reader *reader, const char *name, double least, double fallback) {
  char key[KEY_BYTES];
  make_key(reader, name, key);
  double value = fallback;
  if (reader->status != WICK_OK) return value;
  const wick_status status = gguf_get_f64(reader->directory, key, &value, reader->error);
  if (status == WICK_E_NODATA && fallback == 0) {
    reader->status =
        wick_fail(reader->error, WICK_E_FORMAT, WICK_NO_OFFSET, "the key '%s' is missing", key);
  } else if (status != WICK_OK && status != WICK_E_NODATA) {
    reader->status = status;
  } else if (!(value > least && value < 1e30)) {
    reader->status = wick_fail(reader->error, WICK_E_FORMAT, offset_of(reader, key),
                               "'%s' is %g, it must be a number above %g", key, value, least);
  }
  return value;
}

static const model_family *find_family(gguf_string name) {
  for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
    if (gguf_string_equals(name, FAMILIES[i].name)) return &FAMILIES[i];
  }
  return NULL;
}

static wick_status read_family(const gguf_directory *directory, wick_model_config *config,
                               wick_error *error) {
  gguf_string name;
  const wick_status status = gguf_get_string(directory, "general.architecture", &name, error);
  if (status == WICK_E_NODATA) {
    return wick_fail(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                     "the key 'general.architecture' is missing");
  }
  if (status != WICK_OK) return status;
  config->family = find_family(name);
  if (config->family != NULL) return WICK_OK;
  const int shown = name.size_bytes > 48 ? 48 : (int)name.size_bytes;
  return wick_fail(
      error, WICK_E_UNSUPPORTED, gguf_find(directory, "general.architecture")->offset_bytes,
      "the architecture '%.*s' (general.architecture) is not supported", shown, name.bytes);
}

static void read_rope_scaling(key_reader *reader, wick_model_config *config) {
  char key[KEY_BYTES];
  make_key(reader, "rope.scaling.type", key);
  gguf_string type = {"none", 4};
  config->rope_scale = 1.0;
  if (reader->status != WICK_OK) return;
  const wick_status status = gguf_get_string(reader->directory, key, &type, reader->error);
  if (status != WICK_OK && status != WICK_E_NODATA) {
    reader->status = status;
  } else if (gguf_string_equals(type, "linear")) {
    config->rope_scale = read_number(reader, "rope.scaling.factor", 0, 1);
  } else if (status == WICK_E_NODATA) {
    config->rope_scale = read_number(reader, "rope.scale_linear", 0, 1);  // older files
  } else if (!gguf_string_equals(type, "none")) {
    reader->status = wick_fail(reader->error, WICK_E_UNSUPPORTED, offset_of(reader, key),
                               "RoPE scaling '%.*s' ('%s') is not supported",
                               type.size_bytes > 32 ? 32 : (int)type.size_bytes, type.bytes, key);
  }
}

static void refuse_experts(key_reader *reader) {
  char key[KEY_BYTES];
  make_key(reader, "expert_count", key);
  uint32_t experts = 0;
  if (reader->status != WICK_OK) return;
  const wick_status status = gguf_get_u32(reader->directory, key, &experts, reader->error);
  if (status != WICK_OK && status != WICK_E_NODATA) {
    reader->status = status;
  } else if (experts != 0) {
    reader->status = wick_fail(reader->error, WICK_E_UNSUPPORTED, offset_of(reader, key),
                               "mixtures of experts ('%s' is %u) are not supported", key, experts);
  }
}

static void read_vocab(key_reader *reader, const gguf_tensor *embedding,
                       wick_model_config *config) {
  if (reader->status != WICK_OK) return;
  if (embedding == NULL) {
    reader->status = wick_fail(reader->error, WICK_E_FORMAT, WICK_NO_OFFSET,
                               "the tensor 'token_embd.weight' is missing");
  } else if (embedding->dims[1] < 1 || embedding->dims[1] > MODEL_VOCAB_MAX) {
    reader->status = wick_fail(reader->error, WICK_E_SHAPE, embedding->entry_offset_bytes,
                               "the tensor 'token_embd.weight' has %llu rows, at most %d can be",
                               (unsigned long long)embedding->dims[1], (int)MODEL_VOCAB_MAX);
  } else {
    config->vocab = (uint32_t)embedding->dims[1];
  }
}

// Where the key stands in the file, WICK_NO_OFFSET when it is absent.
static uint64_t offset_of_count(const key_reader *reader, const char *name) {
  char key[KEY_BYTES];
  make_key(reader, name, key);
  return offset_of(reader, key);
}

static void check_heads(key_reader *reader, wick_model_config *config, uint32_t value_dim) {
  if (reader->status != WICK_OK) return;
  if (config->heads % config->kv_heads != 0) {
    reader->status =
        wick_fail(reader->error, WICK_E_FORMAT, offset_of_count(reader, "attention.head_count_kv"),
                  "%s.attention.head_count %u is no multiple of head_count_kv %u",
                  reader->architecture, config->heads, config->kv_heads);
  } else if (config->head_dim % 4 != 0 || value_dim != config->head_dim) {
    reader->status = wick_fail(reader->error, WICK_E_UNSUPPORTED,
                               offset_of_count(reader, "attention.key_length"),
                               "heads of %u keys and %u values are not supported: they must be "
                               "equal and a multiple of 4",
                               config->head_dim, value_dim);
  } else if (config->rope_dims % 2 != 0 || config->rope_dims > config->head_dim) {
    reader->status =
        wick_fail(reader->error, WICK_E_FORMAT, offset_of_count(reader, "rope.dimension_count"),
                  "%s.rope.dimension_count %u must be even and at most the head's %u",
                  reader->architecture, config->rope_dims, config->head_dim);
  }
}

wick_status model_config_read(const gguf_directory *directory, const gguf_tensor *embedding,
                              wick_model_config *config, wick_error *error) {
  memset(config, 0, sizeof *config);
  const wick_status status = read_family(directory, config, error);
  if (status != WICK_OK) return status;
  key_reader reader = {directory, config->family->name, error, WICK_OK};
  config->hidden = read_count(&reader, "embedding_length", 1, MODEL_HIDDEN_MAX, 0);
  config->layers = read_count(&reader, "block_count", 1, MODEL_LAYERS_MAX, 0);
  config->ffn = read_count(&reader, "feed_forward_length", 1, MODEL_FFN_MAX, 0);
  config->heads = read_count(&reader, "attention.head_count", 1, MODEL_HEADS_MAX, 0);
  config->kv_heads =
      read_count(&reader, "attention.head_count_kv", 1, MODEL_HEADS_MAX, config->heads);
  config->context_trained = read_count(&reader, "context_length", 1, UINT32_MAX, 0);
  config->norm_epsilon = (float)read_number(&reader, "attention.layer_norm_rms_epsilon", 0, 0);
  config->rope_theta = read_number(&reader, "rope.freq_base", 0, 10000.0);
  refuse_experts(&reader);
  if (reader.status != WICK_OK || config->heads == 0) return reader.status;
  const uint32_t even = config->hidden / config->heads;
  config->head_dim =
      read_count(&reader, "attention.key_length", 1, MODEL_HEAD_DIM_MAX, even == 0 ? 1 : even);
  const uint32_t value_dim =
      read_count(&reader, "attention.value_length", 1, MODEL_HEAD_DIM_MAX, config->head_dim);
  config->rope_dims =
      read_count(&reader, "rope.dimension_count", 2, MODEL_HEAD_DIM_MAX, config->head_dim);
  read_rope_scaling(&reader, config);
  read_vocab(&reader, embedding, config);
  check_heads(&reader, config, value_dim);
  return reader.status;
}

uint32_t wick_q_dim(const wick_model_config *config) { return config->heads * config->head_dim; }
uint32_t wick_kv_dim(const wick_model_config *config) {
  return config->kv_heads * config->head_dim;
}
