// cli/media_parts.c — see media.h: the parts of a prompt, JSON, raw images and recordings.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/input.h"
#include "cli/media_audio.h"
#include "grammar/document.h"

enum { PATH_BYTES = 4096 };

typedef struct parts_reading {
  const char *path;  // of the JSON
  json_document document;
  media_parts *parts;
} parts_reading;

static exit_code refuse(const parts_reading *reading, uint32_t index, const char *why) {
  report("%s: part %u %s", reading->path, (unsigned)index, why);
  return EXIT_USAGE;
}

static char *copy_of(document_text text) {
  char *copy = malloc((size_t)text.size_bytes + 1);
  if (copy == NULL) return NULL;
  if (text.size_bytes != 0) memcpy(copy, text.bytes, text.size_bytes);
  copy[text.size_bytes] = '\0';
  return copy;
}

// A path relative to the folder of the JSON file.
static bool resolve(const char *json, document_text name, char out[PATH_BYTES]) {
  const char *slash = strrchr(json, '/');
  const bool is_absolute = name.size_bytes != 0 && name.bytes[0] == '/';
  const int folder = is_absolute || slash == NULL ? 0 : (int)(slash - json) + 1;
  if ((size_t)folder + name.size_bytes >= PATH_BYTES) return false;
  text_format(out, PATH_BYTES, "%.*s%.*s", folder, json, (int)name.size_bytes,
              (const char *)name.bytes);
  return true;
}

static uint32_t number_of(const json_document *document, uint32_t node) {
  uint64_t value = 0;
  const json_node *at = document_node(document, node);
  if (node == 0 || at->kind != JSON_NUMBER || at->text.size_bytes > 9) return 0;
  for (uint32_t i = 0; i < at->text.size_bytes; i++) {
    const uint8_t digit = at->text.bytes[i];
    if (digit < '0' || digit > '9') return 0;
    value = 10 * value + (digit - '0');
  }
  return (uint32_t)value;
}

// ---- PPM (P6) ----

// The next number of a header; white space and comments are skipped. False: none.
static bool ppm_number(const input_text *file, size_t *at, uint32_t *out) {
  const char *bytes = file->bytes;
  while (*at < file->size_bytes && (strchr(" \t\r\n", bytes[*at]) != NULL || bytes[*at] == '#')) {
    if (bytes[*at] == '#') {
      while (*at < file->size_bytes && bytes[*at] != '\n') ++*at;
    } else {
      ++*at;
    }
  }
  const size_t first = *at;
  *out = 0;
  while (*at < file->size_bytes && *at - first < 9 && bytes[*at] >= '0' && bytes[*at] <= '9') {
    *out = *out * 10 + (uint32_t)(bytes[(*at)++] - '0');
  }
  return *at > first;
}

static bool ppm_header(const input_text *file, media_part *part, size_t *at) {
  uint32_t levels;
  *at = 2;
  if (file->size_bytes < 2 || memcmp(file->bytes, "P6", 2) != 0) return false;
  if (!ppm_number(file, at, &part->width) || !ppm_number(file, at, &part->height) ||
      !ppm_number(file, at, &levels) || levels != 255) {
    return false;
  }
  ++*at;  // one white space
  return true;
}

// The pixels of a file; those of a raw one have the size that the part names.
static exit_code take_pixels(const parts_reading *reading, uint32_t index, const input_text *file,
                             media_part *part) {
  size_t at = 0;
  wick_error error;
  if (part->width == 0 && part->height == 0 && !ppm_header(file, part, &at)) {
    return refuse(reading, index, "is neither a PPM file (P6, 255) nor has width and height");
  }
  if (image_check(part->width, part->height, &error) != WICK_OK) {
    return report_error(reading->path, &error);
  }
  const uint64_t size_bytes = (uint64_t)part->width * part->height * 3;
  if (at > file->size_bytes || file->size_bytes - at < size_bytes) {
    return refuse(reading, index, "names an image with fewer bytes than its pixels need");
  }
  part->rgb = malloc((size_t)size_bytes);
  if (part->rgb == NULL) {
    report("out of memory for an image");
    return EXIT_MEMORY;
  }
  memcpy(part->rgb, file->bytes + at, (size_t)size_bytes);
  return EXIT_DONE;
}

static exit_code read_image(const parts_reading *reading, uint32_t index, uint32_t node,
                            uint32_t name, media_part *part) {
  const json_document *document = &reading->document;
  char path[PATH_BYTES];
  input_text file;
  if (!resolve(reading->path, document_node(document, name)->text, path)) {
    return refuse(reading, index, "has a path that is too long");
  }
  part->width = number_of(document, document_find(document, node, "width"));
  part->height = number_of(document, document_find(document, node, "height"));
  exit_code code = input_read(NULL, path, "", &file);
  if (code != EXIT_DONE) return code;
  code = take_pixels(reading, index, &file, part);
  input_free(&file);
  return code;
}

static exit_code read_audio(const parts_reading *reading, uint32_t index, uint32_t node,
                            uint32_t name, media_part *part) {
  const json_document *document = &reading->document;
  const uint32_t repeat = document_find(document, node, "repeat");
  char path[PATH_BYTES];
  input_text file;
  if (!resolve(reading->path, document_node(document, name)->text, path)) {
    return refuse(reading, index, "has a path that is too long");
  }
  const exit_code code = input_read(NULL, path, "", &file);
  if (code != EXIT_DONE) return code;
  const char *why = media_audio_take(&file, number_of(document, repeat), part);
  input_free(&file);
  if (why == NULL) {
    report("out of memory for a recording");
    return EXIT_MEMORY;
  }
  return why[0] == '\0' ? EXIT_DONE : refuse(reading, index, why);
}

static bool is_string(const json_document *document, uint32_t node) {
  return node != 0 && document_node(document, node)->kind == JSON_STRING;
}

static exit_code read_part(const parts_reading *reading, uint32_t index, uint32_t node) {
  const json_document *document = &reading->document;
  media_part *part = &reading->parts->items[index];
  const uint32_t text = document_find(document, node, "text");
  const uint32_t image = document_find(document, node, "image");
  if (is_string(document, image)) return read_image(reading, index, node, image, part);
  const uint32_t audio = document_find(document, node, "audio");
  if (is_string(document, audio)) return read_audio(reading, index, node, audio, part);
  if (!is_string(document, text)) return refuse(reading, index, "is neither text, image nor audio");
  part->text_bytes = document_node(document, text)->text.size_bytes;
  part->text = copy_of(document_node(document, text)->text);
  if (part->text != NULL) return EXIT_DONE;
  report("out of memory for the parts");
  return EXIT_MEMORY;
}

static exit_code read_parts(parts_reading *reading) {
  const json_document *document = &reading->document;
  const json_node *root = document_node(document, 1);
  uint32_t node = root->first;
  if (root->kind != JSON_ARRAY) {
    report("%s: not a JSON array of parts", reading->path);
    return EXIT_USAGE;
  }
  reading->parts->items = calloc((size_t)root->count + 1, sizeof *reading->parts->items);
  if (reading->parts->items == NULL) {
    report("out of memory for the parts");
    return EXIT_MEMORY;
  }
  for (uint32_t i = 0; i < root->count; i++) {
    reading->parts->count = i + 1;
    const exit_code code = read_part(reading, i, node);
    if (code != EXIT_DONE) return code;
    node = document_node(document, node)->next;
  }
  return EXIT_DONE;
}

exit_code media_parts_read(memory_gate *memory, const char *path, media_parts *out) {
  parts_reading reading = {.path = path, .parts = out};
  grammar_work work;
  input_text file;
  *out = (media_parts){0};
  exit_code code = input_read(NULL, path, "", &file);
  if (code != EXIT_DONE) return code;
  work_begin(&work, memory);
  if (document_read(&work, (const uint8_t *)file.bytes, file.size_bytes, &reading.document)) {
    code = read_parts(&reading);
  } else {
    code = report_error(path, &work.error);
  }
  work_end(&work);
  input_free(&file);
  return code;
}

void media_parts_free(media_parts *parts) {
  for (uint32_t i = 0; i < parts->count; i++) {
    free(parts->items[i].text);
    free(parts->items[i].rgb);
    free(parts->items[i].samples);
  }
  free(parts->items);
  *parts = (media_parts){0};
}
