// base/split_name.h — the names of a split model's files, in the form that llama.cpp's gguf-split
// uses: NAME-00001-of-00003.gguf.
#ifndef WICK_BASE_SPLIT_NAME_H
#define WICK_BASE_SPLIT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Writes the name of file `file`, counted from 0, of the model whose first file is `first`. Returns
// false if it does not fit in `name` [name_bytes], or if `file` is not 0 and `first` is not such a
// name.
bool split_name(const char *first, uint32_t file, char *name, size_t name_bytes);

#endif
