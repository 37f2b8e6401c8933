// cli/media_parts.c — see media.h: the parts of a prompt, from JSON or options.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/input.h"
#include "cli/media.h"
#include "grammar/document.h"

enum { PATH_BYTES = 4096 };

typedef struct parts_reading {
  const char *path;  // of the JSON file
  json_document document;
  media_parts *parts;
} parts_reading;

static exit_code refuse(const parts_reading *reading, uint32_t index, const char *why) {
  report("%s: part %u %s", reading->path, (unsigned)index, why);
  return EXIT_USAGE;
}

static exit_code fail_memory(void) {
  report("out of memory for the parts");
  return EXIT_MEMORY;
}

static exit_code take_text(const void *bytes, size_t size_bytes, media_part *part) {
  part->text = malloc(size_bytes + 1);
  if (part->text == NULL) return fail_memory();
  if (size_bytes != 0) memcpy(part->text, bytes, size_bytes);
  part->text[size_bytes] = '\0';
  part->text_bytes = size_bytes;
  return EXIT_DONE;
}

// Returns a path relative to the JSON file's folder.
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

static exit_code read_image(const parts_reading *reading, uint32_t index, uint32_t node,
                            uint32_t name, media_part *part) {
  const json_document *document = &reading->document;
  char path[PATH_BYTES];
  if (!resolve(reading->path, document_node(document, name)->text, path)) {
    return refuse(reading, index, "has a path that is too long");
  }
  part->width = number_of(document, document_find(document, node, "width"));
  part->height = number_of(document, document_find(document, node, "height"));
  return media_image_read(path, part);
}

static exit_code read_audio(const parts_reading *reading, uint32_t index, uint32_t node,
                            uint32_t name, media_part *part) {
  const json_document *document = &reading->document;
  const uint32_t repeat = number_of(document, document_find(document, node, "repeat"));
  char path[PATH_BYTES];
  if (!resolve(reading->path, document_node(document, name)->text, path)) {
    return refuse(reading, index, "has a path that is too long");
  }
  return media_audio_read(path, repeat == 0 ? 1 : repeat, part);
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
  const document_text found = document_node(document, text)->text;
  return take_text(found.bytes, found.size_bytes, part);
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
  if (reading->parts->items == NULL) return fail_memory();
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

exit_code media_parts_make(const args_strings *images, const args_strings *audio, const char *text,
                           size_t text_bytes, media_parts *out) {
  exit_code code = EXIT_DONE;
  *out = (media_parts){.items = calloc(2 * ARGS_STRINGS_MAX + 1, sizeof *out->items)};
  if (out->items == NULL) return fail_memory();
  for (uint32_t i = 0; i < images->count && code == EXIT_DONE; i++) {
    code = media_image_read(images->items[i], &out->items[out->count++]);
  }
  for (uint32_t i = 0; i < audio->count && code == EXIT_DONE; i++) {
    code = media_audio_read(audio->items[i], 0, &out->items[out->count++]);
  }
  return code == EXIT_DONE ? take_text(text, text_bytes, &out->items[out->count++]) : code;
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
