// Reads the GGUF files in folders and changes their metadata in place: numbers, lengths, dims,
// types and names.
#ifndef WICK_TESTS_REFERENCES_H
#define WICK_TESTS_REFERENCES_H

#include "../c/support/gguf_files.h"
#include "fuzz_input.h"

typedef enum spot_kind { SPOT_NUMBER, SPOT_FLOAT, SPOT_BYTES } spot_kind;

// A range of the directory that is changed as a whole.
typedef struct spot {
  spot_kind kind;
  size_t offset, size_bytes;
} spot;

typedef struct reference {
  char name[256];
  const struct reference *base;  // the model of an adapter; NULL for a model
  memory_file file;
  spot *spots;
  size_t spot_count;
} reference;

enum { REFERENCES_MAX = 256 };

typedef struct reference_list {
  reference files[REFERENCES_MAX];
  size_t count;
} reference_list;

// Reads the files whose names begin with `prefix` in the folders listed in the environment variable
// (separated by ':'). Without the variable the list is empty.
void references_read(reference_list *list, const char *variable, const char *prefix);
// Returns a copy of the file with up to 6 changes, chosen by the input.
memory_file reference_change(const reference *from, input *in);

#endif
