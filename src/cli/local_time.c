// cli/local_time.c — the local time.
#include "cli/local_time.h"

#include <stddef.h>
#include <time.h>

int64_t local_time_now_s(void) {
  const time_t now = time(NULL);
  const struct tm *local = localtime(&now);
  if (local == NULL) return (int64_t)now;
  const int64_t year = (int64_t)local->tm_year + 1899;  // days before this year, since year 1
  const int64_t days = year * 365 + year / 4 - year / 100 + year / 400 - 719162 + local->tm_yday;
  return ((days * 24 + local->tm_hour) * 60 + local->tm_min) * 60 + local->tm_sec;
}
