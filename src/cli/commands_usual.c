// cli/commands_usual.c — the small WASI program, for edge functions. The Makefile also links it
// without extras.
#include "cli/commands.h"

const char PROGRAM_NAME[] = WICK_NAME, PROGRAM_PURPOSE[] = WICK_PURPOSE;
const command COMMANDS[] = {COMMANDS_USUAL(COMMAND_HERE)
                                COMMANDS_FURTHER(COMMAND_ELSEWHERE){NULL, NULL, NULL}};
#ifdef __wasm_relaxed_simd__
const char *const FULL_PROGRAM = "wick-full-relaxed.wasm";
#else
const char *const FULL_PROGRAM = "wick-full.wasm";
#endif
