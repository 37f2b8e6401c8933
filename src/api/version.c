// api/version.c — the version of this library.
#include "wick.h"

uint32_t wick_version(void) { return WICK_VERSION; }
