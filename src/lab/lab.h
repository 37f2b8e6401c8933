// lab/lab.h — the commands that only wick-lab has. They generate traffic of many requests, for work
// on the scheduler.
#ifndef WICK_LAB_LAB_H
#define WICK_LAB_LAB_H

#include "cli/command.h"

exit_code lab_serve(int argc, char **argv);
exit_code lab_convoy(int argc, char **argv);
exit_code lab_saturation(int argc, char **argv);
exit_code lab_media(int argc, char **argv);
exit_code lab_mmproj(int argc, char **argv);

#endif
