// cli/commands_all.c — a program with all commands.
#include "cli/commands.h"

const command COMMANDS[] = {COMMANDS_USUAL(COMMAND_HERE)
                                COMMANDS_FURTHER(COMMAND_HERE){NULL, NULL, NULL}};
const char *const FULL_PROGRAM = NULL;
