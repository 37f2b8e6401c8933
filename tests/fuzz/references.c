// See references.h.
#include "references.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf.h"

enum { CHANGES_MAX = 6, SPOTS_MAX = 4096, ITEMS_MAX = 16 };

// ---- positions in the file ----

typedef struct walk {
  reference *reference;
  size_t at;
  bool is_past;  // the file has ended
} walk;

static uint64_t read_number(walk *walk, size_t size_bytes) {
  uint64_t number = 0;
  if (walk->is_past || size_bytes > walk->reference->file.size_bytes - walk->at) {
    walk->is_past = true;
    return 0;
  }
  memcpy(&number, walk->reference->file.bytes + walk->at, size_bytes);
  walk->at += size_bytes;
  return number;
}

static void add_spot(walk *walk, spot_kind kind, size_t size_bytes) {
  reference *found = walk->reference;
  const bool is_inside = !walk->is_past && size_bytes <= found->file.size_bytes - walk->at;
  if (!is_inside) walk->is_past = true;
  if (!is_inside || size_bytes == 0) return;
  if (found->spot_count < SPOTS_MAX) {
    found->spots[found->spot_count++] = (spot){kind, walk->at, size_bytes};
  }
  walk->at += size_bytes;
}

static void walk_number(walk *walk, spot_kind kind, size_t size_bytes, uint64_t *number) {
  const size_t at = walk->at;
  *number = read_number(walk, size_bytes);
  if (walk->is_past) return;
  walk->at = at;
  add_spot(walk, kind, size_bytes);
}

static void walk_text(walk *walk, bool is_spot) {
  uint64_t length;
  if (is_spot) {
    walk_number(walk, SPOT_NUMBER, 8, &length);
    add_spot(walk, SPOT_BYTES, length);
    return;
  }
  length = read_number(walk, 8);
  if (length > walk->reference->file.size_bytes - walk->at) walk->is_past = true;
  if (!walk->is_past) walk->at += length;
}

static void walk_value(walk *walk, uint64_t type, bool is_spot) {
  static const uint8_t BYTES[GGUF_F64 + 1] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type == GGUF_STRING) {
    walk_text(walk, is_spot);
    return;
  }
  if (type > GGUF_F64 || BYTES[type] == 0) {
    walk->is_past = true;
    return;
  }
  const spot_kind kind = type == GGUF_F32 ? SPOT_FLOAT : SPOT_NUMBER;
  uint64_t number;
  if (is_spot) {
    walk_number(walk, kind, BYTES[type], &number);
  } else {
    read_number(walk, BYTES[type]);
  }
}

static void walk_directory(walk *walk) {
  uint64_t tensors, values, type, count, dims, number;
  walk->at = 8;  // magic and version
  walk_number(walk, SPOT_NUMBER, 8, &tensors);
  walk_number(walk, SPOT_NUMBER, 8, &values);
  for (uint64_t i = 0; i < values && !walk->is_past; i++) {
    walk_text(walk, true);
    walk_number(walk, SPOT_NUMBER, 4, &type);
    if (type != GGUF_ARRAY) {
      walk_value(walk, type, true);
      continue;
    }
    walk_number(walk, SPOT_NUMBER, 4, &type);
    walk_number(walk, SPOT_NUMBER, 8, &count);
    for (uint64_t item = 0; item < count && !walk->is_past; item++) {
      walk_value(walk, type, item < ITEMS_MAX);
    }
  }
  for (uint64_t i = 0; i < tensors && !walk->is_past; i++) {
    walk_text(walk, true);
    walk_number(walk, SPOT_NUMBER, 4, &dims);
    for (uint64_t dim = 0; dim < dims && !walk->is_past; dim++) {
      walk_number(walk, SPOT_NUMBER, 8, &number);
    }
    walk_number(walk, SPOT_NUMBER, 4, &type);
    walk_number(walk, SPOT_NUMBER, 8, &number);
  }
  REQUIRE(!walk->is_past);  // the references are complete
}

// ---- the files ----

// Returns the model "NAME.gguf" of an adapter "NAME.WHAT.gguf".
static const reference *find_base(const reference_list *list, const char *name) {
  const size_t length = strcspn(name, ".");
  if (strcmp(name + length, ".gguf") == 0) return NULL;
  for (size_t i = 0; i < list->count; i++) {
    const char *other = list->files[i].name;
    if (strncmp(other, name, length) == 0 && strcmp(other + length, ".gguf") == 0) {
      return &list->files[i];
    }
  }
  return NULL;
}

static void read_file(reference_list *list, const char *path, const char *name) {
  const reference *base = find_base(list, name);
  reference *found = &list->files[list->count++];
  *found = (reference){.base = base};
  REQUIRE(strlen(name) < sizeof found->name);
  memcpy(found->name, name, strlen(name) + 1);
  FILE *from = fopen(path, "rb");
  REQUIRE(from != NULL);
  uint8_t piece[65536];
  size_t size = sizeof piece;
  while (size == sizeof piece) {
    size = fread(piece, 1, sizeof piece, from);
    REQUIRE(file_write(&found->file, piece, size));
  }
  fclose(from);
  found->spots = malloc(SPOTS_MAX * sizeof *found->spots);
  REQUIRE(found->spots != NULL && found->file.size_bytes > 24);
  walk_directory(&(walk){.reference = found});
}

static int is_model(const struct dirent *entry) {
  const size_t length = strlen(entry->d_name);
  return length > 5 && strcmp(entry->d_name + length - 5, ".gguf") == 0;
}

static void read_folder(reference_list *list, const char *folder, const char *prefix) {
  struct dirent **entries;
  const int count = scandir(folder, &entries, is_model, alphasort);
  REQUIRE(count > 0);
  for (int i = 0; i < count; i++) {
    char path[1024];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    REQUIRE(length > 0 && (size_t)length < sizeof path && list->count < REFERENCES_MAX);
    if (strncmp(entries[i]->d_name, prefix, strlen(prefix)) == 0) {
      read_file(list, path, entries[i]->d_name);
    }
    free(entries[i]);
  }
  free(entries);
}

void references_read(reference_list *list, const char *variable, const char *prefix) {
  const char *folders = getenv(variable);
  for (const char *at = folders; at != NULL && *at != 0;) {
    char folder[1024];
    const size_t length = strcspn(at, ":");
    REQUIRE(length < sizeof folder);
    memcpy(folder, at, length);
    folder[length] = 0;
    read_folder(list, folder, prefix);
    at += length + (at[length] == ':');
  }
}

// ---- changes ----

static void write_number(memory_file *file, const spot *at, uint64_t number) {
  memcpy(file->bytes + at->offset, &number, at->size_bytes < 8 ? at->size_bytes : 8);
}

static void change_float(memory_file *file, const spot *at, input *in) {
  static const float EDGES[] = {
      0.0f, -1.0f, 1e30f, 1e-45f, 1e-7f, -1e-7f, __builtin_inff(), __builtin_nanf("")};
  const uint32_t choice = next_u8(in);
  if (choice < 128) {
    memcpy(file->bytes + at->offset, &EDGES[choice % 8], sizeof EDGES[0]);
  } else {
    write_number(file, at, next_u32(in));
  }
}

// Changes a number to one more, one less, double, half, a boundary value, or a value from
// elsewhere.
static void change_number(const reference *from, memory_file *file, const spot *at, input *in) {
  uint64_t number = 0;
  memcpy(&number, file->bytes + at->offset, at->size_bytes < 8 ? at->size_bytes : 8);
  const uint32_t how = next_u8(in) % 8;
  if (how < 2) number += how == 0 ? 1 : UINT64_MAX;
  if (how == 2) number *= 2;
  if (how == 3) number /= 2;
  if (how == 4 || how == 5) number = choose_number(in);
  if (how > 5) {
    const spot *other = &from->spots[next_u16(in) % from->spot_count];
    number = 0;
    memcpy(&number, file->bytes + other->offset, other->size_bytes < 8 ? other->size_bytes : 8);
  }
  write_number(file, at, number);
}

// Changes a letter, or copies a different name of the same length.
static void change_bytes(const reference *from, memory_file *file, const spot *at, input *in) {
  const spot *other = &from->spots[next_u16(in) % from->spot_count];
  if (other->kind == SPOT_BYTES && other->size_bytes == at->size_bytes) {
    memmove(file->bytes + at->offset, file->bytes + other->offset, at->size_bytes);
  } else {
    file->bytes[at->offset + next_u16(in) % at->size_bytes] ^= (uint8_t)(1 + next_u8(in) % 255);
  }
}

static void change_file(const reference *from, memory_file *file, input *in) {
  const spot *at = &from->spots[next_u16(in) % from->spot_count];
  if (at->kind == SPOT_FLOAT) change_float(file, at, in);
  if (at->kind == SPOT_NUMBER) change_number(from, file, at, in);
  if (at->kind == SPOT_BYTES) change_bytes(from, file, at, in);
}

memory_file reference_change(const reference *from, input *in) {
  memory_file file = {0};
  REQUIRE(file_write(&file, from->file.bytes, from->file.size_bytes));
  const uint32_t changes = next_u8(in) % (CHANGES_MAX + 1);
  for (uint32_t i = 0; i < changes; i++) change_file(from, &file, in);
  return file;
}
