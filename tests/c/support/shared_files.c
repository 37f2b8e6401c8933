// See shared_files.h.
#include "shared_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

size_t shared_list(const char *folder, char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX]) {
  return shared_list_of(folder, ".gguf", names);
}

size_t shared_list_of(const char *folder, const char *ending,
                      char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX]) {
  const size_t ending_bytes = strlen(ending);
  DIR *open = opendir(check_shared(folder));
  size_t count = 0;
  CHECK(open != NULL);
  if (open == NULL) return 0;
  for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
    const size_t length = strlen(entry->d_name);
    if (length < ending_bytes) continue;
    if (strcmp(entry->d_name + length - ending_bytes, ending) != 0) continue;
    if (!CHECK(count < SHARED_FILES_MAX && length < SHARED_NAME_BYTES_MAX)) break;
    memcpy(names[count++], entry->d_name, length + 1);
  }
  closedir(open);
  qsort(names, count, SHARED_NAME_BYTES_MAX, compare_names);
  return count;
}

memory_file shared_read(const char *folder, const char *name) {
  char path[2 * SHARED_NAME_BYTES_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  memory_file file = {0};
  file.bytes = check_read_file(check_shared(path), &file.size_bytes);
  return file;
}

uint32_t shared_check(const char *folder,
                      bool (*check)(const memory_file *file, const char *name, uint32_t number)) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  const size_t count = shared_list(folder, names);
  uint32_t checked = 0;
  for (size_t i = 0; i < count; i++) {
    memory_file file = shared_read(folder, names[i]);
    checked += check(&file, names[i], (uint32_t)i);
    file_free(&file);
  }
  return checked;
}
