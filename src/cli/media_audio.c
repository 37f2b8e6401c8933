// cli/media_audio.c — see media.h: recordings, as 16 kHz WAV files or raw floats.
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/media.h"
#include "media/formats.h"

enum { REPEAT_MAX = 100000 };

static const char *take_wav(const input_text *file, media_part *part) {
  wav_file wav;
  const char *why = wav_parse((const uint8_t *)file->bytes, file->size_bytes, &wav);
  if (why != NULL) return why;
  part->sample_count = wav.count;
  part->samples = calloc((size_t)part->sample_count + 1, sizeof *part->samples);
  if (part->samples == NULL) return NULL;
  for (uint64_t i = 0; i < wav.count; i++) part->samples[i] = wav_sample(&wav, i);
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

// Returns "" if the samples were added, NULL if memory ran out, otherwise the reason for the
// failure.
static const char *take(const input_text *file, uint32_t repeat, media_part *part) {
  if (repeat > REPEAT_MAX) return "is repeated too often";
  const bool is_riff = file->size_bytes >= 4 && memcmp(file->bytes, "RIFF", 4) == 0;
  return is_riff || repeat == 0 ? take_wav(file, part) : take_floats(file, repeat, part);
}

exit_code media_audio_read(const char *path, uint32_t repeat, media_part *part) {
  input_text file;
  exit_code code = media_check_size(path);
  if (code == EXIT_DONE) code = input_read(NULL, path, "", &file);
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
