// base/extras.h — whether the build has the optional code, "extras" in
// flags.mk: rarer families, types, tokenizers and KV types, and saved state. Web builds have it in
// a module that may come later, the small WASI program never has it, all others always. Only the
// thread of the engines calls these functions.
#ifndef WICK_EXTRAS_H
#define WICK_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>

#if WICK_EXTRAS_APART
bool extras_are_there(void);
// Also ends the waiting. Before the first call they are missing.
void extras_set(bool are_there);
static inline const char *extras_program(void) { return NULL; }
#else
// The program that has them, if this one never will; NULL otherwise.
const char *extras_program(void);
// `program` has them and this one has not. The name is kept where it is.
void extras_leave_out(const char *program);
static inline bool extras_are_there(void) { return extras_program() == NULL; }
#endif
// Something waits for them.
void extras_want(void);
bool extras_are_wanted(void);

#endif
