// base/extras.h — whether the build has the optional code, "extras" in
// flags.mk: less common families, types, tokenizers and KV types, and saved state. Web builds have
// it in a module that may be loaded later, the small WASI program never has it, and all other
// builds always do. Only the thread of the engines calls these functions.
#ifndef WICK_EXTRAS_H
#define WICK_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>

#if WICK_EXTRAS_APART
bool extras_are_there(void);
// Records whether the extras are available, and that models no longer wait for them. Before the
// first call, they are missing.
void extras_set(bool are_there);
static inline const char *extras_program(void) { return NULL; }
#else
// Returns the program that has the extras if this program never will; otherwise NULL.
const char *extras_program(void);
// Records that `program` has the extras and this program does not. The name is not copied.
void extras_leave_out(const char *program);
static inline bool extras_are_there(void) { return extras_program() == NULL; }
#endif
// Records that a model waits for the extras.
void extras_want(void);
bool extras_are_wanted(void);

#endif
