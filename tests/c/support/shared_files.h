// Lists and reads files in the shared folder, mainly GGUF files.
#ifndef WICK_TESTS_SHARED_FILES_H
#define WICK_TESTS_SHARED_FILES_H

#include "gguf_files.h"

enum { SHARED_FILES_MAX = 256, SHARED_NAME_BYTES_MAX = 256 };

// Lists a folder's GGUF files in alphabetical order and returns their number. Fails a check if the
// folder cannot be opened.
size_t shared_list(const char *folder, char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX]);
// Like shared_list, for files with a given ending (".jinja").
size_t shared_list_of(const char *folder, const char *ending,
                      char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX]);
// Reads a file, which the caller frees with file_free.
memory_file shared_read(const char *folder, const char *name);
// Calls `check` for each GGUF file in a folder; `number` is its index. Returns how often `check`
// returned true.
uint32_t shared_check(const char *folder,
                      bool (*check)(const memory_file *file, const char *name, uint32_t number));

#endif
