// base/options.c — the names of samplers.
#include "base/options.h"

#include <string.h>

char sampler_letter(const char *name, size_t name_bytes) {
  static const struct {
    const char *name;
    char letter;
  } NAMES[] = {
#define SAMPLER(id, name, letter) {name, letter},
      SAMPLERS(SAMPLER)
#undef SAMPLER
  };
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (strlen(NAMES[i].name) != name_bytes) continue;
    if (memcmp(NAMES[i].name, name, name_bytes) == 0) return NAMES[i].letter;
  }
  return 0;
}
