// template/clock.c — strftime_now: formats the host's time as C's strftime does in English. Civil
// dates from days: Howard Hinnant, "chrono-compatible Low-Level Date Algorithms".
#include "base/text.h"
#include "template/run.h"

typedef struct civil_time {
  int64_t year;
  uint32_t month, day;  // from 1
  uint32_t hour, minute, second;
  uint32_t weekday;   // 0: Sunday
  uint32_t year_day;  // from 1
} civil_time;

enum { DAY_SECONDS = 86400, ERA_DAYS = 146097, DAYS_TO_1970 = 719468 };

static civil_time civil_of(int64_t seconds) {
  int64_t days = seconds / DAY_SECONDS;
  int64_t rest = seconds % DAY_SECONDS;
  if (rest < 0) {
    rest += DAY_SECONDS;
    days--;
  }
  civil_time time = {.hour = (uint32_t)(rest / 3600),
                     .minute = (uint32_t)(rest / 60 % 60),
                     .second = (uint32_t)(rest % 60),
                     .weekday = (uint32_t)(((days + 4) % 7 + 7) % 7)};
  const int64_t shifted = days + DAYS_TO_1970;
  const int64_t era = (shifted >= 0 ? shifted : shifted - (ERA_DAYS - 1)) / ERA_DAYS;
  const uint32_t day_of_era = (uint32_t)(shifted - era * ERA_DAYS);
  const uint32_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const uint32_t day_of_year =  // years start on March 1
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const uint32_t month = (5 * day_of_year + 2) / 153;
  time.day = day_of_year - (153 * month + 2) / 5 + 1;
  time.month = month < 10 ? month + 3 : month - 9;
  time.year = (int64_t)year_of_era + era * 400 + (time.month <= 2);
  const bool is_leap = (time.year % 4 == 0 && time.year % 100 != 0) || time.year % 400 == 0;
  time.year_day = time.month > 2 ? day_of_year + 60 + is_leap : day_of_year - 306 + 1;
  return time;
}

static const char *const MONTHS[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const WEEKDAYS[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

static size_t two_digits(char *out, uint32_t value) {
  out[0] = (char)('0' + value / 10 % 10);
  out[1] = (char)('0' + value % 10);
  return 2;
}

static size_t three_digits(char *out, uint32_t value) {
  out[0] = (char)('0' + value / 100 % 10);
  return 1 + two_digits(out + 1, value);
}

enum { FIELD_BYTES = 32 };

// Writes one field; returns 0 for an unknown letter. `plain`: without leading zeros.
static size_t put_field(char out[FIELD_BYTES], const civil_time *time, char kind) {
  switch (kind) {
    case 'Y':
      return text_format(out, FIELD_BYTES, "%lld", (long long)time->year);
    case 'y':
      return two_digits(out, (uint32_t)(time->year % 100));
    case 'm':
      return two_digits(out, time->month);
    case 'd':
      return two_digits(out, time->day);
    case 'e':
      two_digits(out, time->day);
      if (out[0] == '0') out[0] = ' ';
      return 2;
    case 'H':
      return two_digits(out, time->hour);
    case 'I':
      return two_digits(out, (time->hour + 11) % 12 + 1);
    case 'M':
      return two_digits(out, time->minute);
    case 'S':
      return two_digits(out, time->second);
    case 'j':
      return three_digits(out, time->year_day);
    case 'p':
      return text_format(out, FIELD_BYTES, "%s", time->hour < 12 ? "AM" : "PM");
    case 'B':
      return text_format(out, FIELD_BYTES, "%s", MONTHS[time->month - 1]);
    case 'b':
    case 'h':
      return text_format(out, FIELD_BYTES, "%.3s", MONTHS[time->month - 1]);
    case 'A':
      return text_format(out, FIELD_BYTES, "%s", WEEKDAYS[time->weekday]);
    case 'a':
      return text_format(out, FIELD_BYTES, "%.3s", WEEKDAYS[time->weekday]);
    case 'w':
      return text_format(out, FIELD_BYTES, "%u", time->weekday);
    case 'u':
      return text_format(out, FIELD_BYTES, "%u", time->weekday == 0 ? 7 : time->weekday);
    case '%':
      return text_format(out, FIELD_BYTES, "%%");
    case 'n':
      return text_format(out, FIELD_BYTES, "\n");
    default:
      return 0;
  }
}

// Returns the expansion of a field that abbreviates several fields.
static const char *compound_of(char kind) {
  static const struct {
    char kind;
    const char *format;
  } compounds[] = {{'F', "%Y-%m-%d"},
                   {'T', "%H:%M:%S"},
                   {'X', "%H:%M:%S"},
                   {'R', "%H:%M"},
                   {'D', "%m/%d/%y"},
                   {'x', "%m/%d/%y"},
                   {'c', "%a %b %e %H:%M:%S %Y"}};
  for (size_t i = 0; i < sizeof compounds / sizeof *compounds; i++) {
    if (compounds[i].kind == kind) return compounds[i].format;
  }
  return NULL;
}

static void put_format(jinja_run *run, jinja_buffer *buffer, const char *format, size_t size_bytes,
                       const civil_time *time) {
  for (size_t at = 0; at < size_bytes && jinja_step(run, 1); at++) {
    char field[FIELD_BYTES];
    if (format[at] != '%' || at + 1 >= size_bytes) {
      jinja_write(run, buffer, format + at, 1, JINJA_MARK_TEMPLATE);
      continue;
    }
    const size_t begin = at++;
    bool is_plain = false;
    if (format[at] == '-' && at + 1 < size_bytes) {
      is_plain = true;
      at++;
    }
    const char *compound = compound_of(format[at]);
    if (compound != NULL) {
      size_t length = 0;
      while (compound[length] != '\0') length++;
      put_format(run, buffer, compound, length, time);
      continue;
    }
    const size_t size = put_field(field, time, format[at]);
    if (size == 0) {
      // unknown, perhaps the first byte of a character: left unchanged, as in glibc
      jinja_write(run, buffer, format + begin, at + 1 - begin, JINJA_MARK_TEMPLATE);
      continue;
    }
    size_t from = 0;
    while (is_plain && from + 1 < size && field[from] == '0') from++;
    jinja_write(run, buffer, field + from, size - from, JINJA_MARK_TEMPLATE);
  }
}

jinja_value jinja_strftime(jinja_run *run, const jinja_string *format) {
  if (!run->has_now) return jinja_fail(run, WICK_E_NODATA, "strftime_now: the time is not known");
  const civil_time time = civil_of(run->now_s);
  jinja_buffer buffer = {0};
  put_format(run, &buffer, format->bytes, format->size_bytes, &time);
  return jinja_buffer_value(run, &buffer);
}
