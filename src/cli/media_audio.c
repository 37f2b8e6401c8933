// cli/media_audio.c — see media.h: recordings, as WAV files of 16 kHz and raw.
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/media.h"

enum { RATE = 16000, FORMAT_PCM = 1, FORMAT_FLOAT = 3, REPEAT_MAX = 100000 };

typedef struct wav_file {
  uint32_t format, channels, rate, bits;
  const uint8_t *data;
  size_t data_bytes;
} wav_file;

static uint32_t little(const uint8_t *bytes, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = count; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// Finds the format and the data among the chunks of a RIFF file.
static bool wav_parse(const input_text *file, wav_file *wav) {
  const uint8_t *bytes = (const uint8_t *)file->bytes;
  *wav = (wav_file){0};
  if (file->size_bytes < 12 || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0) {
    return false;
  }
  size_t at = 12;
  while (file->size_bytes - at >= 8) {
    const uint8_t *chunk = bytes + at;
    size_t size_bytes = little(chunk + 4, 4);
    at += 8;
    if (size_bytes > file->size_bytes - at) size_bytes = file->size_bytes - at;
    if (memcmp(chunk, "fmt ", 4) == 0 && size_bytes >= 16) {
      wav->format = little(chunk + 8, 2);
      wav->channels = little(chunk + 10, 2);
      wav->rate = little(chunk + 12, 4);
      wav->bits = little(chunk + 22, 2);
    } else if (memcmp(chunk, "data", 4) == 0) {
      wav->data = chunk + 8;
      wav->data_bytes = size_bytes;
    }
    at += size_bytes + (size_bytes & 1);
    if (at > file->size_bytes) break;
  }
  return wav->data != NULL && wav->channels != 0;
}

static float wav_value(const wav_file *wav, size_t index) {
  float value;
  if (wav->format == FORMAT_FLOAT) {
    memcpy(&value, wav->data + 4 * index, sizeof value);
    return value;
  }
  return (float)(int16_t)little(wav->data + 2 * index, 2) / 32768.0f;
}

// Channels are averaged.
static const char *take_wav(const input_text *file, media_part *part) {
  wav_file wav;
  if (!wav_parse(file, &wav)) return "not a WAV file";
  const bool is_known = (wav.format == FORMAT_PCM && wav.bits == 16) ||
                        (wav.format == FORMAT_FLOAT && wav.bits == 32);
  if (!is_known) return "its samples are neither 16-bit integers nor 32-bit floats";
  if (wav.rate != RATE) return "its rate is not 16 kHz";
  part->sample_count = wav.data_bytes / (wav.bits / 8) / wav.channels;
  part->samples = calloc((size_t)part->sample_count + 1, sizeof *part->samples);
  if (part->samples == NULL) return NULL;
  for (size_t i = 0; i < part->sample_count; i++) {
    float sum = 0;
    for (uint32_t c = 0; c < wav.channels; c++) sum += wav_value(&wav, i * wav.channels + c);
    part->samples[i] = sum / (float)wav.channels;
  }
  return "";
}

static const char *take_floats(const input_text *file, uint32_t repeat, media_part *part) {
  const size_t count = file->size_bytes / sizeof(float);
  part->sample_count = (uint64_t)count * repeat;
  part->samples = calloc((size_t)part->sample_count + 1, sizeof *part->samples);
  if (part->samples == NULL) return NULL;
  for (uint32_t i = 0; i < repeat && count != 0; i++) {
    memcpy(part->samples + i * count, file->bytes, count * sizeof(float));
  }
  return "";
}

// "" when they were taken, NULL without memory, else what is wrong.
static const char *take(const input_text *file, uint32_t repeat, media_part *part) {
  if (repeat > REPEAT_MAX) return "is repeated too often";
  const bool is_riff = file->size_bytes >= 4 && memcmp(file->bytes, "RIFF", 4) == 0;
  return is_riff || repeat == 0 ? take_wav(file, part) : take_floats(file, repeat, part);
}

exit_code media_audio_read(const char *path, uint32_t repeat, media_part *part) {
  input_text file;
  const exit_code code = input_read(NULL, path, "", &file);
  if (code != EXIT_DONE) return code;
  const char *why = take(&file, repeat, part);
  input_free(&file);
  if (why == NULL) {
    report("out of memory for a recording");
    return EXIT_MEMORY;
  }
  if (why[0] == '\0') return EXIT_DONE;
  report("%s: %s", path, why);
  return EXIT_USAGE;
}
