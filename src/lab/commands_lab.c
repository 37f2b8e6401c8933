// lab/commands_lab.c — wick-lab, the program for developers of Wick.
#include "cli/commands.h"
#include "lab/lab.h"

const char PROGRAM_NAME[] = "wick-lab",
           PROGRAM_PURPOSE[] = "measures Wick under load and makes models for it";
const command COMMANDS[] = {
    {"serve", "measure requests that arrive while others are served", lab_serve},
    {"convoy", "measure short requests alone and with long ones", lab_convoy},
    {"saturation", "measure requests one by one, alone and under load", lab_saturation},
    {"media", "measure an encoder of images or audio", lab_media},
    {"mmproj", "make an image encoder of a known shape with random weights", lab_mmproj},
    {"synth", "make a model of a known shape with random weights", command_synth},
    {NULL, NULL, NULL}};
const char *const FULL_PROGRAM = NULL;
