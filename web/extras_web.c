// web/extras_web.c — the module of extras (base/extras.h) as JavaScript sees it
// (js/wasm/module_part.js): it reports whether a model waits for it, and learns when it has
// arrived.
#include <stdint.h>

#include "base/extras.h"

__attribute__((export_name("extras_set"))) void web_extras_set(uint32_t are_there) {
  extras_set(are_there != 0);
}

// Bytes that were fed to a waiting model must be fed again.
__attribute__((export_name("extras_are_wanted"))) uint32_t web_extras_are_wanted(void) {
  return extras_are_wanted();
}
