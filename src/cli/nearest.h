// cli/nearest.h — finds the name that was probably intended instead of a mistyped one.
#ifndef WICK_CLI_NEAREST_H
#define WICK_CLI_NEAREST_H

#include <stddef.h>
#include <stdint.h>

typedef struct nearest {
  const char *given;
  size_t given_bytes;
  const char *name;  // the nearest offered name; NULL: no name is near enough
  uint32_t distance;
} nearest;

nearest nearest_begin(const char *given, size_t given_bytes);
void nearest_offer(nearest *found, const char *name);

#endif
