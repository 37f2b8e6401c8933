// base/extras.c — see extras.h.
#include "base/extras.h"

static bool are_wanted;

#if WICK_EXTRAS_APART
static bool are_missing = true;  // until the host has added the extras and reports it

bool extras_are_there(void) { return !are_missing; }

void extras_set(bool are_there) {
  are_missing = !are_there;
  are_wanted = false;
}
#else
static const char *program_with_extras;

const char *extras_program(void) { return program_with_extras; }

void extras_leave_out(const char *program) { program_with_extras = program; }
#endif

void extras_want(void) { are_wanted = true; }

bool extras_are_wanted(void) { return are_wanted; }
