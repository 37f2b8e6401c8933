// web/extras_web.c — the interface of the extras module (base/extras.h) to JavaScript
// (js/wasm/module_part.js): reports whether a model is waiting for the module, and is notified when
// it is loaded.
#include <stdint.h>

#include "base/extras.h"

__attribute__((export_name("extras_set"))) void web_extras_set(uint32_t are_there) {
  extras_set(are_there != 0);
}

// Whether a model waits for the module. Bytes that were fed to a waiting model must be fed again.
__attribute__((export_name("extras_are_wanted"))) uint32_t web_extras_are_wanted(void) {
  return extras_are_wanted();
}
