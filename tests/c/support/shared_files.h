// The files of folders below the shared folder, GGUF files above all.
#ifndef WICK_TESTS_SHARED_FILES_H
#define WICK_TESTS_SHARED_FILES_H

#include "gguf_files.h"

enum { SHARED_FILES_MAX = 256, SHARED_NAME_BYTES_MAX = 256 };

// The names of a folder's GGUF files, in the order of the alphabet. Returns their number; a failed
// check where the folder cannot be opened.
size_t shared_list(const char *folder, char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX]);
// The same of files with another ending (".jinja").
size_t shared_list_of(const char *folder, const char *ending,
                      char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX]);
// To be freed with file_free.
memory_file shared_read(const char *folder, const char *name);
// Checks each GGUF file of a folder; `number` is its place. Returns for how many `check` is true.
uint32_t shared_check(const char *folder,
                      bool (*check)(const memory_file *file, const char *name, uint32_t number));

#endif
