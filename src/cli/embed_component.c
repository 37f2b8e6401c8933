// cli/embed_component.c — inserts a model into a component that `make edge` built: the file becomes
// a data segment after the initial memory of the engine's module, and its address is written into
// the module (component/model_source.c). Formats: BinaryFormat of WebAssembly's core specification,
// Binary.md of the component model.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"

enum { PIECE_BYTES = 1 << 20, PAGE_BYTES = 65536, PREAMBLE_BYTES = 8 };
enum { COMPONENT_BYTES_MAX = 64 << 20, NUMBER_BYTES = 5 };
enum { SECTION_CORE_MODULE = 1 };                                         // in a component
enum { SECTION_MEMORY = 5, SECTION_DATA = 11, SECTION_DATA_COUNT = 12 };  // in a module

static const char MARK[24] = "wick: the model's place";

typedef struct span {
  const uint8_t *bytes;
  size_t size;
} span;

typedef struct embed_job {
  const char *model, *component;
  output_file out;
  span source;  // the component
  FILE *file;   // the model
  uint64_t file_bytes;
  span module;     // the section's content
  uint32_t pages;  // size of the module's memory
} embed_job;

// ---- LEB128 numbers ----

static bool take_u32(span *from, uint32_t *value) {
  *value = 0;
  for (uint32_t shift = 0; shift < 35 && from->size > 0; shift += 7) {
    const uint8_t byte = *from->bytes++;
    from->size--;
    *value |= (uint32_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

static size_t format_u32(uint8_t out[NUMBER_BYTES], uint32_t value) {
  size_t size = 0;
  for (; value >= 128; value >>= 7) out[size++] = (uint8_t)(value | 128);
  out[size++] = (uint8_t)value;
  return size;
}

// Writes the bits of a number as a signed 32-bit LEB128 number, which is always five bytes long.
static void format_i32(uint8_t out[NUMBER_BYTES], uint32_t value) {
  const uint64_t wide = (uint64_t)(int64_t)(int32_t)value;
  for (uint32_t i = 0; i < NUMBER_BYTES; i++) out[i] = (uint8_t)((wide >> (7 * i)) & 127) | 128;
  out[NUMBER_BYTES - 1] &= 127;
}

// ---- sections ----

// Reads the next section: its number, its content and, in *whole, the entire section. A truncated
// section is rejected.
static bool take_section(span *from, uint8_t *id, span *content, span *whole) {
  uint32_t size;
  *whole = *from;
  if (from->size == 0) return false;
  *id = *from->bytes++;
  from->size--;
  if (!take_u32(from, &size) || size > from->size) {
    *from = *whole;
    return false;
  }
  *content = (span){from->bytes, size};
  from->bytes += size;
  from->size -= size;
  whole->size = (size_t)(from->bytes - whole->bytes);
  return true;
}

static const uint8_t *find_mark(span in) {
  for (size_t at = 0; at + sizeof MARK <= in.size; at++) {
    if (memcmp(in.bytes + at, MARK, sizeof MARK) == 0) return in.bytes + at;
  }
  return NULL;
}

static bool find_module(embed_job *job) {
  static const uint8_t PREAMBLE[PREAMBLE_BYTES] = {0, 'a', 's', 'm', 13, 0, 1, 0};
  span rest = job->source, content, whole;
  uint8_t id;
  if (rest.size < PREAMBLE_BYTES || memcmp(rest.bytes, PREAMBLE, PREAMBLE_BYTES) != 0) return false;
  rest.bytes += PREAMBLE_BYTES;
  rest.size -= PREAMBLE_BYTES;
  while (take_section(&rest, &id, &content, &whole)) {
    if (id != SECTION_CORE_MODULE || find_mark(content) == NULL) continue;
    job->module = content;
    return content.size > PREAMBLE_BYTES;
  }
  return false;
}

// ---- output ----

static bool put(embed_job *job, const void *bytes, size_t size) {
  return output_file_write(&job->out, bytes, size);
}

static bool put_u32(embed_job *job, uint32_t value) {
  uint8_t bytes[NUMBER_BYTES];
  return put(job, bytes, format_u32(bytes, value));
}

static uint32_t size_of_u32(uint32_t value) {
  uint8_t bytes[NUMBER_BYTES];
  return (uint32_t)format_u32(bytes, value);
}

// A section is written twice: first to measure it, then to the output.
typedef struct section {
  uint8_t id;
  span kept;        // the section's content after its first number
  uint32_t number;  // the new first number
  bool has_prefix;  // for memories: one memory without a maximum
  uint64_t added;   // number of bytes added after that content
} section;

static uint64_t content_bytes(const section *one) {
  return (one->has_prefix ? 2 : 0) + size_of_u32(one->number) + one->kept.size + one->added;
}

static bool put_section(embed_job *job, const section *one) {
  const uint8_t prefix[2] = {1, 0};
  return put(job, &one->id, 1) && put_u32(job, (uint32_t)content_bytes(one)) &&
         put(job, prefix, one->has_prefix ? 2 : 0) && put_u32(job, one->number) &&
         put(job, one->kept.bytes, one->kept.size);
}

static uint32_t pages_of(uint64_t bytes) {
  return (uint32_t)((bytes + PAGE_BYTES - 1) / PAGE_BYTES);
}

// Returns the size of the segment: its head (1 + 1 + 5 + 1 bytes for mode and address, then the
// size), and its data.
static uint64_t segment_bytes(const embed_job *job) {
  return 3 + NUMBER_BYTES + size_of_u32((uint32_t)job->file_bytes) + job->file_bytes;
}

// Prepares the new version of a section. Returns false if the section stays unchanged.
static bool change(const embed_job *job, uint8_t id, span content, section *out) {
  *out = (section){.id = id};
  if (id == SECTION_MEMORY) {
    content.bytes += 2;
    content.size -= 2;
    out->has_prefix = true;
    out->number = job->pages + pages_of(job->file_bytes);
    out->kept = (span){content.bytes, 0};
    return true;
  }
  if (id != SECTION_DATA && id != SECTION_DATA_COUNT) return false;
  uint32_t count = 0;
  take_u32(&content, &count);
  out->number = count + 1;
  out->kept = content;
  out->added = id == SECTION_DATA ? segment_bytes(job) : 0;
  return true;
}

// Whether the slot for the model's address exists and is still empty.
static bool has_room(span data) {
  static const uint8_t EMPTY[2 * sizeof(uint32_t)];
  const uint8_t *mark = find_mark(data);
  if (mark == NULL || data.size - (size_t)(mark - data.bytes) < sizeof MARK + sizeof EMPTY) {
    return false;
  }
  return memcmp(mark + sizeof MARK, EMPTY, sizeof EMPTY) == 0;
}

// Reads the memory's size. Returns false if `make edge` did not build the module.
static bool read_memory(embed_job *job) {
  span rest = {job->module.bytes + PREAMBLE_BYTES, job->module.size - PREAMBLE_BYTES};
  span content, whole;
  uint8_t id, last = 0;
  bool has_memory = false;
  while (take_section(&rest, &id, &content, &whole)) {
    if (id == SECTION_MEMORY && content.size > 2 && content.bytes[0] == 1 &&
        content.bytes[1] == 0) {
      span number = {content.bytes + 2, content.size - 2};
      has_memory = take_u32(&number, &job->pages) && number.size == 0;
    }
    if (id == SECTION_DATA && has_room(content)) last = id;
  }
  return has_memory && last == SECTION_DATA && rest.size == 0;
}

static uint64_t module_bytes(const embed_job *job) {
  span rest = {job->module.bytes + PREAMBLE_BYTES, job->module.size - PREAMBLE_BYTES};
  span content, whole;
  section changed;
  uint8_t id;
  uint64_t bytes = PREAMBLE_BYTES;
  while (take_section(&rest, &id, &content, &whole)) {
    if (change(job, id, content, &changed)) {
      bytes += 1 + size_of_u32((uint32_t)content_bytes(&changed)) + content_bytes(&changed);
    } else {
      bytes += whole.size;
    }
  }
  return bytes;
}

static bool put_model(embed_job *job) {
  uint8_t *piece = malloc(PIECE_BYTES);
  uint64_t left = piece == NULL ? UINT64_MAX : job->file_bytes;
  bool is_ok = piece != NULL;
  while (is_ok && left > 0) {
    const size_t count =
        fread(piece, 1, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, job->file);
    is_ok = count > 0 && put(job, piece, count);
    left -= count;
  }
  free(piece);
  return is_ok;
}

static bool put_segment(embed_job *job) {
  uint8_t place[2 + NUMBER_BYTES + 1] = {0, 0x41};  // active in memory 0; i32.const
  format_i32(place + 2, job->pages * PAGE_BYTES);
  place[2 + NUMBER_BYTES] = 0x0b;  // end
  return put(job, place, sizeof place) && put_u32(job, (uint32_t)job->file_bytes) && put_model(job);
}

// Writes the data section with the model's address and size after the marker.
static bool put_data(embed_job *job, const section *changed) {
  const uint32_t values[2] = {job->pages * PAGE_BYTES, (uint32_t)job->file_bytes};
  uint8_t bytes[sizeof values];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(values[i / 4] >> (8 * (i % 4)));
  const uint8_t *mark = find_mark(changed->kept) + sizeof MARK;
  const size_t before = (size_t)(mark - changed->kept.bytes);
  section head = *changed;
  head.kept.size = 0;
  head.added += changed->kept.size;
  return put_section(job, &head) && put(job, changed->kept.bytes, before) &&
         put(job, bytes, sizeof bytes) &&
         put(job, mark + sizeof bytes, changed->kept.size - before - sizeof bytes) &&
         put_segment(job);
}

static bool put_module(embed_job *job) {
  span rest = {job->module.bytes + PREAMBLE_BYTES, job->module.size - PREAMBLE_BYTES};
  span content, whole;
  section changed;
  uint8_t id;
  bool is_ok = put(job, job->module.bytes, PREAMBLE_BYTES);
  while (is_ok && take_section(&rest, &id, &content, &whole)) {
    if (!change(job, id, content, &changed)) {
      is_ok = put(job, whole.bytes, whole.size);
    } else {
      is_ok = id == SECTION_DATA ? put_data(job, &changed) : put_section(job, &changed);
    }
  }
  return is_ok;
}

static bool put_component(embed_job *job) {
  const uint8_t *end = job->source.bytes + job->source.size;
  const uint8_t *after = job->module.bytes + job->module.size;
  const uint8_t id = SECTION_CORE_MODULE;
  // the section's number and size precede its content
  const size_t before =
      (size_t)(job->module.bytes - job->source.bytes) - 1 - size_of_u32((uint32_t)job->module.size);
  return put(job, job->source.bytes, before) && put(job, &id, 1) &&
         put_u32(job, (uint32_t)module_bytes(job)) && put_module(job) &&
         put(job, after, (size_t)(end - after));
}

// ---- files ----

static exit_code read_component(embed_job *job) {
  FILE *file = fopen(job->component, "rb");
  if (file == NULL) {
    report("cannot open %s: %s (`make edge` builds the components; --component selects one)",
           job->component, strerror(errno));
    return EXIT_FILE;
  }
  uint8_t *bytes = malloc(COMPONENT_BYTES_MAX);
  const size_t size = bytes == NULL ? 0 : fread(bytes, 1, COMPONENT_BYTES_MAX, file);
  const bool is_read = !ferror(file);
  fclose(file);
  job->source = (span){bytes, size};
  if (bytes == NULL) {
    report("out of memory for reading %s", job->component);
    return EXIT_MEMORY;
  }
  if (is_read && find_module(job) && read_memory(job)) return EXIT_DONE;
  report("%s is not a component without a model, built by `make edge`", job->component);
  return EXIT_FILE;
}

static exit_code open_model(embed_job *job) {
  char magic[4];
  job->file = fopen(job->model, "rb");
  if (job->file == NULL) {
    report("cannot open %s: %s", job->model, strerror(errno));
    return EXIT_FILE;
  }
  const bool is_gguf = fread(magic, 1, sizeof magic, job->file) == sizeof magic &&
                       memcmp(magic, "GGUF", sizeof magic) == 0;
  const long size = is_gguf && fseek(job->file, 0, SEEK_END) == 0 ? ftell(job->file) : 0;
  if (!is_gguf || fseek(job->file, 0, SEEK_SET) != 0) {
    report("%s is not a GGUF file", job->model);
    return EXIT_FILE;
  }
  // half of the address space, because the engine stores the weights in the other half
  job->file_bytes = (uint64_t)size;
  if (size > 0 && job->file_bytes < UINT64_C(1) << 31) return EXIT_DONE;
  report("%s is too large: a component can contain less than 2 GiB", job->model);
  return EXIT_FILE;
}

static exit_code embed(embed_job *job) {
  exit_code code = read_component(job);
  if (code == EXIT_DONE) code = open_model(job);
  if (code == EXIT_DONE && !put_component(job) && job->out.failed_errno == 0) {
    report("cannot read %s: it was truncated", job->model);
    code = EXIT_FILE;
  }
  if (job->file != NULL) fclose(job->file);
  free((void *)job->source.bytes);
  code = output_file_end(&job->out, code);
  if (code != EXIT_DONE) output_file_remove(&job->out);
  return code;
}

exit_code command_embed_component(int argc, char **argv) {
  embed_job job = {.component = "build/edge/wick-p3.wasm"};
  const args_option options[] = {
      args_string("-o", &job.out.path, "FILE", "write the component with the model to FILE, or -"),
      args_string("--component", &job.component, "FILE",
                  "read the component without a model (default: build/edge/wick-p3.wasm)"),
  };
  const args_spec spec = {"wick embed-component MODEL -o FILE   (MODEL: one GGUF file)", NULL,
                          options, sizeof options / sizeof options[0], 1};
  const exit_code parsed = args_parse(&spec, argc, argv, &job.model);
  if (parsed != EXIT_NOT_YET) return parsed;
  if (job.out.path == NULL) {
    report("embed-component needs -o FILE");
    return EXIT_USAGE;
  }
  return embed(&job);
}
