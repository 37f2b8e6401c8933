// cli/media_plan.h — the memory plan of an mmproj file.
#ifndef WICK_CLI_MEDIA_PLAN_H
#define WICK_CLI_MEDIA_PLAN_H

#include "cli/command.h"

// Plans the encoders of a file for an engine that was opened with directory_only
// (wick_media_get_memory). Reports errors.
exit_code media_plan_load(wick_engine *engine, const char *path);

#endif
