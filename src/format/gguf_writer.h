// format/gguf_writer.h — writes a GGUF v3 file as a stream: metadata and tensors are declared, then
// the header is written, then the tensors' data in the order of declaration. Only the directory is
// kept in memory. Source: ggml/docs/gguf.md of the ggml repository.
//
//   gguf_writer_create(&memory, write, file, 32, &writer, &error);
//   gguf_writer_add_string(writer, "general.architecture", "llama", 5);
//   gguf_writer_add_tensor(writer, "token_embd.weight", GGML_TYPE_F16, dims, 2);
//   gguf_writer_write_header(writer, &error);          // any failure so far is reported here
//   gguf_writer_write_data(writer, bytes, size_bytes, &error);   // any number of times
//   gguf_writer_finish(writer, &error);
#ifndef WICK_FORMAT_GGUF_WRITER_H
#define WICK_FORMAT_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"

typedef struct gguf_writer gguf_writer;

// Receives the next bytes of the file; returns false if they cannot be written (WICK_E_IO).
typedef bool (*gguf_write)(void *context, const void *bytes, size_t size_bytes);

// Creates a writer. `alignment`: a power of two from 8 to GGUF_ALIGNMENT_MAX; it is written to the
// metadata unless it is 32.
wick_status gguf_writer_create(memory_gate *memory, gguf_write write, void *context,
                               uint32_t alignment, gguf_writer **out, wick_error *error);
void gguf_writer_destroy(gguf_writer *writer);

// Metadata. The first failure is kept and reported by gguf_writer_write_header(): WICK_E_NOMEM, or
// WICK_E_ARG for a name that a reader would reject and for calls in the wrong order. The caller
// must ensure that keys and tensor names are unique.
void gguf_writer_add_u32(gguf_writer *writer, const char *key, uint32_t value);
void gguf_writer_add_f32(gguf_writer *writer, const char *key, float value);
void gguf_writer_add_bool(gguf_writer *writer, const char *key, bool value);
void gguf_writer_add_string(gguf_writer *writer, const char *key, const char *bytes,
                            size_t size_bytes);
// Adds a number or bool of any type; *value has that type's size.
void gguf_writer_add_number(gguf_writer *writer, const char *key, gguf_value_type type,
                            const void *value);
// Adds an array of numbers or bools in their memory representation.
void gguf_writer_add_array(gguf_writer *writer, const char *key, gguf_value_type item_type,
                           const void *items, size_t count);
// Begins an array of strings. Exactly `count` calls of gguf_writer_add_item() must follow.
void gguf_writer_add_strings(gguf_writer *writer, const char *key, size_t count);
void gguf_writer_add_item(gguf_writer *writer, const char *bytes, size_t size_bytes);

// Declares a tensor. dims[0] is the row length, a multiple of the type's block.
void gguf_writer_add_tensor(gguf_writer *writer, const char *name, ggml_type type,
                            const uint64_t *dims, uint32_t dim_count);

// Returns the size of the whole file as declared so far.
uint64_t gguf_writer_file_bytes(const gguf_writer *writer);

wick_status gguf_writer_write_header(gguf_writer *writer, wick_error *error);
// Writes the next bytes of the tensors, which follow each other without gaps; the writer adds
// padding. WICK_E_RANGE if more bytes are written than were declared.
wick_status gguf_writer_write_data(gguf_writer *writer, const void *bytes, size_t size_bytes,
                                   wick_error *error);
// Ends the file. WICK_E_NODATA if bytes of tensors are missing.
wick_status gguf_writer_finish(gguf_writer *writer, wick_error *error);

#endif
