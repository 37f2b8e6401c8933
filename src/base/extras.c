// base/extras.c — see extras.h.
#include "base/extras.h"

static bool are_missing, are_wanted;

#if WICK_EXTRAS_APART
bool extras_are_there(void) { return !are_missing; }
#endif

void extras_want(void) { are_wanted = true; }

bool extras_are_wanted(void) { return are_wanted; }

void extras_set(bool are_there) {
  are_missing = !are_there;
  are_wanted = false;
}
