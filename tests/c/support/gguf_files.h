// Makes GGUF files in memory: valid files with the engine's writer, broken files byte by byte.
#ifndef WICK_TESTS_GGUF_FILES_H
#define WICK_TESTS_GGUF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/gguf_writer.h"

typedef struct memory_file {
  uint8_t *bytes;
  size_t size_bytes, capacity_bytes;
} memory_file;

// Appends bytes to a file; a gguf_write function whose context is a memory_file.
bool file_write(void *context, const void *bytes, size_t size_bytes);
void file_free(memory_file *file);

// ---- byte by byte ----
void file_u8(memory_file *file, uint8_t value);
void file_u32(memory_file *file, uint32_t value);
void file_u64(memory_file *file, uint64_t value);
void file_string(memory_file *file, const char *text);                   // length and bytes
void file_header(memory_file *file, uint64_t tensors, uint64_t values);  // version 3
void file_tensor(memory_file *file, const char *name, uint64_t columns, uint64_t rows,
                 uint32_t type, uint64_t offset_bytes);

// ---- whole models ----
typedef struct sample_tensor {
  const char *name;
  ggml_type type;
  uint32_t dim_count;
  uint64_t dims[GGUF_DIMS_MAX];
} sample_tensor;

// Makes a file with these tensors and random bytes. If files > 1, it is file `file` of a split
// model (split.* keys, with all_tensors as the total over the files). Aborts if the writer fails.
typedef struct sample_spec {
  const sample_tensor *tensors;
  size_t tensor_count;
  uint32_t alignment;  // 0: 32
  uint32_t file, files;
  uint32_t all_tensors;
  uint64_t seed;
} sample_spec;
memory_file sample_make(const sample_spec *spec);

// Seven tensors of different types and shapes; one has a single row, some have several blocks.
extern const sample_tensor SAMPLE_TENSORS[];
extern const size_t SAMPLE_TENSOR_COUNT;
memory_file sample_model(void);

#endif
