// media/formats.h — parses the headers of PPM and WAV files, to find their pixels and samples.
#ifndef WICK_MEDIA_FORMATS_H
#define WICK_MEDIA_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Size limit of a file; larger files are rejected before they are read.
enum { MEDIA_FILE_BYTES_MAX = (1 << 28) - 1 };

// Reads the size of a PPM file (P6) with levels up to 255, and the offset of its pixels, which may
// be beyond the end of the file. Returns false if the file has a different format.
bool ppm_parse(const uint8_t *bytes, size_t size_bytes, uint32_t *width, uint32_t *height,
               size_t *offset_bytes);

typedef enum wav_format { WAV_PCM = 1, WAV_FLOAT = 3 } wav_format;

typedef struct wav_file {
  uint32_t format, channels, rate, bits;
  const uint8_t *data;
  uint64_t count;  // samples per channel
} wav_file;

// Parses a WAV file. Returns NULL, or a description of the error. Supports files with 16-bit
// integers and with 32-bit floats.
const char *wav_parse(const uint8_t *bytes, size_t size_bytes, wav_file *out);
// Returns the mean of the channels of sample `index`, which must be below `count`.
float wav_sample(const wav_file *wav, uint64_t index);

#endif
