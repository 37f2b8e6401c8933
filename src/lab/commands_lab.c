// lab/commands_lab.c — wick-lab, the program for those who work on Wick.
#include "cli/commands.h"
#include "lab/lab.h"

const char PROGRAM_NAME[] = "wick-lab",
           PROGRAM_PURPOSE[] = "measures Wick under traffic and makes models for it";
const command COMMANDS[] = {
    {"serve", "requests arrive while others are served", lab_serve},
    {"convoy", "short requests alone, and after long ones", lab_convoy},
    {"saturation", "requests one by one, alone and under load", lab_saturation},
    {"synth", "makes a model with random weights of a known shape", command_synth},
    {NULL, NULL, NULL}};
const char *const FULL_PROGRAM = NULL;
