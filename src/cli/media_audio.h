// cli/media_audio.h — recordings as samples.
#ifndef WICK_CLI_MEDIA_AUDIO_H
#define WICK_CLI_MEDIA_AUDIO_H

#include "cli/input.h"
#include "cli/media.h"

// The samples of a WAV file, or of raw 32-bit floats `repeat` times over (0: once). "" when they
// were taken, NULL without memory, else what is wrong.
const char *media_audio_take(const input_text *file, uint32_t repeat, media_part *part);

#endif
