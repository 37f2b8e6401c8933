// media/formats.c — see formats.h.
#include "media/formats.h"

#include <string.h>

// ---- PPM ----

static bool is_space(uint8_t byte) {
  return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

// Reads the next number of a header, skipping whitespace and comments. Returns false if no number
// follows.
static bool ppm_number(const uint8_t *bytes, size_t size_bytes, size_t *at, uint32_t *out) {
  enum { DIGITS_MAX = 9 };
  while (*at < size_bytes && (is_space(bytes[*at]) || bytes[*at] == '#')) {
    if (bytes[*at] == '#') {
      while (*at < size_bytes && bytes[*at] != '\n') ++*at;
    } else {
      ++*at;
    }
  }
  const size_t first = *at;
  *out = 0;
  while (*at < size_bytes && *at - first < DIGITS_MAX && bytes[*at] >= '0' && bytes[*at] <= '9') {
    *out = *out * 10 + (uint32_t)(bytes[(*at)++] - '0');
  }
  return *at > first;
}

bool ppm_parse(const uint8_t *bytes, size_t size_bytes, uint32_t *width, uint32_t *height,
               size_t *offset_bytes) {
  uint32_t levels;
  *offset_bytes = 2;
  if (size_bytes < 2 || memcmp(bytes, "P6", 2) != 0) return false;
  if (!ppm_number(bytes, size_bytes, offset_bytes, width) ||
      !ppm_number(bytes, size_bytes, offset_bytes, height) ||
      !ppm_number(bytes, size_bytes, offset_bytes, &levels) || levels != 255) {
    return false;
  }
  ++*offset_bytes;  // one whitespace character
  return true;
}

// ---- WAV ----

static uint32_t little(const uint8_t *bytes, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = count; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Finds the format and the data among the chunks of a RIFF file.
static bool find_chunks(const uint8_t *bytes, size_t size_bytes, wav_file *wav,
                        size_t *data_bytes) {
  if (size_bytes < 12 || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0) {
    return false;
  }
  size_t at = 12;
  while (at <= size_bytes && size_bytes - at >= 8) {
    const uint8_t *chunk = bytes + at;
    size_t chunk_bytes = little(chunk + 4, 4);
    at += 8;
    if (chunk_bytes > size_bytes - at) chunk_bytes = size_bytes - at;
    if (memcmp(chunk, "fmt ", 4) == 0 && chunk_bytes >= 16) {
      wav->format = little(chunk + 8, 2);
      wav->channels = little(chunk + 10, 2);
      wav->rate = little(chunk + 12, 4);
      wav->bits = little(chunk + 22, 2);
    } else if (memcmp(chunk, "data", 4) == 0) {
      wav->data = chunk + 8;
      *data_bytes = chunk_bytes;
    }
    at += chunk_bytes + (chunk_bytes & 1);
  }
  return wav->data != NULL && wav->channels != 0;
}

const char *wav_parse(const uint8_t *bytes, size_t size_bytes, wav_file *out) {
  enum { RATE = 16000 };
  size_t data_bytes = 0;
  *out = (wav_file){0};
  if (!find_chunks(bytes, size_bytes, out, &data_bytes)) return "not a WAV file";
  const bool is_known =
      (out->format == WAV_PCM && out->bits == 16) || (out->format == WAV_FLOAT && out->bits == 32);
  if (!is_known) return "its samples are neither 16-bit integers nor 32-bit floats";
  if (out->rate != RATE) return "its rate is not 16 kHz";
  out->count = data_bytes / (out->bits / 8) / out->channels;
  return NULL;
}

static float value_at(const wav_file *wav, size_t index) {
  float value;
  if (wav->format == WAV_FLOAT) {
    memcpy(&value, wav->data + 4 * index, sizeof value);
    return value;
  }
  return (float)(int16_t)little(wav->data + 2 * index, 2) / 32768.0f;
}

float wav_sample(const wav_file *wav, uint64_t index) {
  const size_t first = (size_t)index * wav->channels;
  float sum = 0;
  for (uint32_t c = 0; c < wav->channels; c++) sum += value_at(wav, first + c);
  return sum / (float)wav->channels;
}
