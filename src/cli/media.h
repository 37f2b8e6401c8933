// cli/media.h — the files of prompts with images and audio: models, and the parts of a prompt.
#ifndef WICK_CLI_MEDIA_H
#define WICK_CLI_MEDIA_H

#include "base/memory.h"
#include "cli/args.h"
#include "cli/command.h"
#include "format/gguf.h"
#include "media/media.h"

// A GGUF file whose tensors are read when they are needed.
typedef struct gguf_file {
  const char *path;
  int fd;
  gguf_directory *directory;
} gguf_file;

exit_code gguf_file_open(memory_gate *memory, const char *path, gguf_file *out);
void gguf_file_close(gguf_file *file);  // may be all zeros
media_reader gguf_file_reader(gguf_file *file);

// A part of a prompt: text, an image or a recording.
typedef struct media_part {
  char *text;  // or NULL
  size_t text_bytes;
  uint8_t *rgb;  // or NULL
  uint32_t width, height;
  float *samples;  // or NULL
  uint64_t sample_count;
} media_part;

typedef struct media_parts {
  media_part *items;
  uint32_t count;
} media_parts;

// Reads the JSON array of parts and the files that it refers to.
exit_code media_parts_read(memory_gate *memory, const char *path, media_parts *out);
// Creates parts from the files passed as options: images, then recordings, then text.
exit_code media_parts_make(const args_strings *images, const args_strings *audio, const char *text,
                           size_t text_bytes, media_parts *out);
void media_parts_free(media_parts *parts);

// Reports a file that is too large. A file that cannot be opened is reported when it is read.
exit_code media_check_size(const char *path);
// Reads the pixels of a PPM file (P6), or raw RGB if the part has a width and a height.
exit_code media_image_read(const char *path, media_part *part);
// Reads the samples of a WAV file at 16 kHz, or raw floats. The samples are repeated `repeat` times
// if that is not 0.
exit_code media_audio_read(const char *path, uint32_t repeat, media_part *part);

#endif
