// tests/fuzz/references.h — the GGUF files of folders, and changes of their metadata where it is:
// numbers, lengths, dims, types and names.
#ifndef WICK_TESTS_REFERENCES_H
#define WICK_TESTS_REFERENCES_H

#include "../c/support/gguf_files.h"
#include "fuzz_input.h"

typedef enum spot_kind { SPOT_NUMBER, SPOT_FLOAT, SPOT_BYTES } spot_kind;

// A place in the directory that is changed as a whole.
typedef struct spot {
  spot_kind kind;
  size_t offset, size_bytes;
} spot;

typedef struct reference {
  char name[256];
  const struct reference *base;  // the model of an adapter; NULL: it is a model
  memory_file file;
  spot *spots;
  size_t spot_count;
} reference;

enum { REFERENCES_MAX = 256 };

typedef struct reference_list {
  reference files[REFERENCES_MAX];
  size_t count;
} reference_list;

// Reads the files of the folders that the environment variable names (separated by ':') whose
// names begin with `prefix`. Without the variable the list is empty.
void references_read(reference_list *list, const char *variable, const char *prefix);
// A copy of the file with up to 6 changes, as the input says.
memory_file reference_change(const reference *from, input *in);

#endif
