// cli/local_time.h — the local time, for templates that write a date.
#ifndef WICK_CLI_LOCAL_TIME_H
#define WICK_CLI_LOCAL_TIME_H

#include <stdint.h>

// Returns the seconds since 1970, as if the local time were UTC.
int64_t local_time_now_s(void);

#endif
