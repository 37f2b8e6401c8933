// cli/commands_all.c — a program with all commands.
#include "cli/commands.h"

const char PROGRAM_NAME[] = WICK_NAME, PROGRAM_PURPOSE[] = WICK_PURPOSE;
const command COMMANDS[] = {COMMANDS_USUAL(COMMAND_HERE)
                                COMMANDS_FURTHER(COMMAND_HERE){NULL, NULL, NULL}};
const char *const FULL_PROGRAM = NULL;
