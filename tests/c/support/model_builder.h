// A small model as lists of values and tensors, which a test may change in any way before it writes
// them to a GGUF file. The written values need not be consistent.
#ifndef WICK_TESTS_MODEL_BUILDER_H
#define WICK_TESTS_MODEL_BUILDER_H

#include "gguf_files.h"
#include "text/tokenizer.h"

typedef enum built_vocabulary {
  BUILT_SPM,         // scores
  BUILT_BPE,         // on bytes, merges
  BUILT_CHARACTERS,  // BPE on characters
  BUILT_WORDS,       // WordPiece
  BUILT_VOCABULARIES
} built_vocabulary;

typedef enum built_family {
  BUILT_LLAMA,
  BUILT_QWEN2,
  BUILT_LLAMA_EXPERTS,
  BUILT_QWEN3MOE,
  BUILT_LFM2,           // convolutions, and attention in the second layer
  BUILT_QWEN35,         // delta nets, and attention in the second layer
  BUILT_JAMBA,          // Mamba, and attention in the second layer
  BUILT_GRANITEHYBRID,  // Mamba 2, and attention in the second layer
  BUILT_FAMILIES
} built_family;

typedef struct built_choice {
  built_vocabulary vocabulary;
  built_family family;
  ggml_type type;  // of the matrices; the hidden size is a multiple of its block
  uint32_t layers, context;
} built_choice;

enum {
  BUILT_KEY_BYTES = 80,
  BUILT_VALUES_MAX = 64,
  BUILT_TENSORS_MAX = 512,
  BUILT_SPECIALS = 4,  // the first ids: <unk>, <s>, </s>, <|im_start|>; then 256 bytes
  BUILT_WORDS_FIRST = BUILT_SPECIALS + 256
};

typedef struct built_value {
  char key[BUILT_KEY_BYTES];
  uint32_t type, item_type;  // gguf_value_type, or anything
  memory_file data;          // a number, a string's bytes, or an array's numbers
  uint64_t count;            // declared number of array items
  memory_file *items;        // strings in an array
  size_t item_count, item_capacity;
} built_value;

typedef struct built_tensor {
  char name[GGUF_TENSOR_NAME_BYTES_MAX + 1];
  uint32_t type, dim_count;
  uint64_t dims[GGUF_DIMS_MAX];
  uint64_t shift_bytes;  // added to the tensor's stated data offset
} built_tensor;

typedef struct model_builder {
  built_choice choice;
  built_value values[BUILT_VALUES_MAX];
  size_t value_count;
  built_tensor tensors[BUILT_TENSORS_MAX];
  size_t tensor_count;
  float poison;  // replaces some weights if not 0 (F32 and F16)
} model_builder;

void builder_init(model_builder *builder, const built_choice *choice);
void builder_free(model_builder *builder);
// Writes the file, which the caller frees with file_free(). Data is written for every plausible
// tensor, regardless of its offset.
memory_file builder_write(const model_builder *builder);

// Find or add an entry. Return NULL if the key does not exist, or if there is no space for another
// entry.
built_value *builder_find(model_builder *builder, const char *key);
built_value *builder_put(model_builder *builder, const char *key, uint32_t type);
void builder_remove(model_builder *builder, const char *key);
void builder_put_u32(model_builder *builder, const char *key, uint32_t number);
void builder_put_f32(model_builder *builder, const char *key, float number);
void builder_put_text(model_builder *builder, const char *key, const char *text);

void value_set_data(built_value *value, const void *bytes, size_t size_bytes);
// Set a string or number in an array, which grows if necessary.
void value_set_item(built_value *value, size_t index, const void *bytes, size_t size_bytes);
void value_set_i32(built_value *value, size_t index, int32_t number);
// Sets the number of items; new items are empty or 0.
void value_resize(built_value *value, size_t count);

#endif
