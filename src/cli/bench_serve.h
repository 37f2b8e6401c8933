// cli/bench_serve.h — the forms of `wick bench` that serve many requests at once. The arguments are
// those of a command.
#ifndef WICK_CLI_BENCH_SERVE_H
#define WICK_CLI_BENCH_SERVE_H

#include "cli/command.h"

exit_code bench_serve(int argc, char **argv);
exit_code bench_convoy(int argc, char **argv);
exit_code bench_saturation(int argc, char **argv);

#endif
