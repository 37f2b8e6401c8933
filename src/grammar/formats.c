// grammar/formats.c — patterns of formats: RFC 3339 (dates), 5321 and 5322 (mail), 1123 (hosts),
// 4291 (IPv6), 3986 (URI), 6570 (templates), 9562 (UUID), 6901 (pointers), ISO 8601 (durations).
#include "grammar/formats.h"

#include <string.h>

#include "grammar/regex.h"

enum { PATTERN_BYTES = 256 << 10 };

#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 OCTET "(\\." OCTET "){3}"
#define H16 "[0-9a-fA-F]{1,4}"
#define LS32 "(" H16 ":" H16 "|" IPV4 ")"
#define IPV6                                                                                \
  "((" H16 ":){6}" LS32 "|::(" H16 ":){5}" LS32 "|(" H16 ")?::(" H16 ":){4}" LS32 "|((" H16 \
  ":){0,1}" H16 ")?::(" H16 ":){3}" LS32 "|((" H16 ":){0,2}" H16 ")?::(" H16 ":){2}" LS32   \
  "|((" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|((" H16 ":){0,4}" H16 ")?::" LS32 "|((" H16 \
  ":){0,5}" H16 ")?::" H16 "|((" H16 ":){0,6}" H16 ")?::)"
#define HEX2 "%[0-9a-fA-F]{2}"
#define PCHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" HEX2 ")"
#define AUTHORITY                                                                          \
  "(([A-Za-z0-9._~!$&'()*+,;=:-]|" HEX2 ")*@)?(\\[(" IPV6                                  \
  "|[vV][0-9a-fA-F]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|([A-Za-z0-9._~!$&'()*+,;=-]|" HEX2 \
  ")*)(:[0-9]*)?"
#define TAIL "(\\?(" PCHAR "|[/?])*)?(#(" PCHAR "|[/?])*)?"
#define ROOTED "//" AUTHORITY "(/" PCHAR "*)*|/(" PCHAR "+(/" PCHAR "*)*)?"
#define SCHEME "[a-zA-Z][a-zA-Z0-9+.-]*:"
#define HIERARCHY ROOTED "|" PCHAR "+(/" PCHAR "*)*"
#define URI SCHEME "(" HIERARCHY "|)" TAIL
#define SEGMENT_NC "([A-Za-z0-9._~!$&'()*+,;=@-]|" HEX2 ")"
#define RELATIVE "(" ROOTED "|" SEGMENT_NC "+(/" PCHAR "*)*|)" TAIL
#define ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define LOCAL ATOM "(\\." ATOM ")*"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
#define SHORT_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
// no hyphens at the third and fourth position, because these mark encoded names
#define HOST_LABEL                                                                             \
  "([A-Za-z0-9]|[A-Za-z0-9]{2}|[A-Za-z0-9][A-Za-z0-9-][A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]("    \
  "[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])([A-Za-z0-9-]{0,58}[A-Za-z0-9])|[A-Za-z0-9][A-Za-z0-9" \
  "-][A-Za-z0-9-][A-Za-z0-9])"
#define DATE                                                                                \
  "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|" \
  "02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|"      \
  "[13579][26])00)-02-29)"
#define MINUTES "([01][0-9]|2[0-3]):[0-5][0-9]"
#define TIME MINUTES ":[0-5][0-9](\\.[0-9]+)?(Z|[+-]" MINUTES ")"
#define TIME_ANY MINUTES ":[0-5][0-9](\\.[0-9]+)?([Zz]|[+-]" MINUTES ")"
#define DURATION_TIME "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
#define DURATION_DATE "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"
#define POINTER "(/([^~/]|~[01])*)*"
#define TEMPLATE_NAME "([A-Za-z0-9_]|" HEX2 ")(\\.?([A-Za-z0-9_]|" HEX2 "))*"
#define TEMPLATE_VAR TEMPLATE_NAME "(:[1-9][0-9]{0,3}|\\*)?"
#define EMAIL LOCAL "@(" LABEL "\\.)+" LABEL
#define IRI_CHARS "[^\\x00-\\x20\"<>\\\\^`{|}]*"
// Regular expressions, by the depth of nested groups.
#define REGEX_TIMES "([*+?]|\\{[0-9]+(,[0-9]*)?\\})\\??"
#define REGEX_ATOM "[^()[\\]\\\\*+?{}|^$]|\\\\[\\s\\S]|\\[([^\\]\\\\]|\\\\[\\s\\S])*\\]"
#define REGEX_OF(inner)                                                                       \
  "((" REGEX_ATOM "|\\((\\?(<?[=!]|:|<[A-Za-z_$][A-Za-z0-9_$]*>))?" inner "\\))(" REGEX_TIMES \
  ")?|[\\^$|\\]{}])*"
#define REGEX_PLAIN "([A-Za-z0-9_ ]|\\\\[dws.*+?()]|\\[([A-Za-z0-9_]|a-z|A-Z|0-9)+\\])[*+?]?"

typedef struct format {
  const char *name;
  const char *pattern,
      *any;  // NULL: the same as `pattern`; both NULL: the format is rejected
} format;

static const format FORMATS[] = {
    {"date", DATE, NULL},
    {"duration", "P(" DURATION_DATE "(" DURATION_TIME ")?|" DURATION_TIME "|[0-9]+W)", NULL},
    {"email", EMAIL,
     "(" LOCAL "|\"([\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*\")@(" LABEL "(\\." LABEL
     ")*|\\[(" IPV4 "|IPv6:[0-9a-fA-F:.]+)\\])"},
    {"hostname", HOST_LABEL "(\\." HOST_LABEL "){0,2}", SHORT_LABEL "(\\." SHORT_LABEL ")*"},
    {"ipv4", IPV4, NULL},
    {"ipv6", IPV6, NULL},
    // not every validator accepts only a scheme
    {"uri", SCHEME "(" HIERARCHY ")" TAIL, URI},
    {"uri-reference", "(" URI "|" RELATIVE ")", NULL},
    {"uri-template",
     "([^\\x00-\\x20\"'<>%\\\\^`{|}\\x7f]|" HEX2 "|\\{[+#./;?&=,!@|]?" TEMPLATE_VAR
     "(," TEMPLATE_VAR ")*\\})*",
     NULL},
    {"uuid", "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", NULL},
    {"json-pointer", POINTER, NULL},
    {"relative-json-pointer", "(0|[1-9][0-9]*)(#|" POINTER ")", NULL},
    {"idn-email", EMAIL, "[\\s\\S]+@[^@\\s]+"},
    {"idn-hostname", NULL, NULL},
    {"iri", SCHEME "(" HIERARCHY ")" TAIL, SCHEME IRI_CHARS},
    {"iri-reference", "(" URI "|" RELATIVE ")", IRI_CHARS},
    {"regex", "\\^?((" REGEX_PLAIN "|\\((" REGEX_PLAIN "|\\|)+\\)[*+?]?)+)\\$?",
     REGEX_OF(REGEX_OF(REGEX_OF(REGEX_OF(REGEX_OF("")))))},
    // not in the standard, but common validators accept them
    {"json-pointer-uri-fragment", "#(/([A-Za-z0-9_.!$&'()*+,;:=@-]|" HEX2 "|~[01])*)*", NULL},
    {"url", "https?://[a-z0-9]+(-[a-z0-9]+)*(\\.[a-z0-9]+)*\\.[a-z]{2,}(/[A-Za-z0-9._~-]*)*",
     "[\\s\\S]*"},
    {"byte", "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", "[\\s\\S]*"},
};

// ---- times: second 60 is only allowed when it is 23:59 in UTC ----

typedef struct text_buffer {
  char *text;
  size_t size_bytes;
} text_buffer;

static void add(text_buffer *buffer, const char *text) {
  const size_t count = strlen(text);
  if (buffer->size_bytes + count > PATTERN_BYTES) return;
  memcpy(buffer->text + buffer->size_bytes, text, count);
  buffer->size_bytes += count;
}

static void add_clock(text_buffer *buffer, uint32_t minutes) {
  const uint32_t hour = minutes / 60 % 24, minute = minutes % 60;
  const char text[6] = {(char)('0' + hour / 10),   (char)('0' + hour % 10),   ':',
                        (char)('0' + minute / 10), (char)('0' + minute % 10), 0};
  add(buffer, text);
}

static void add_leap_seconds(text_buffer *buffer) {
  const uint32_t day = 24 * 60, last = day - 1;
  add(buffer, "|23:59:60(\\.[0-9]+)?[Zz]");
  for (uint32_t local = 0; local < day; local++) {
    add(buffer, "|");
    add_clock(buffer, local);
    add(buffer, ":60(\\.[0-9]+)?(\\+");
    add_clock(buffer, (local + day - last) % day);
    add(buffer, "|-");
    add_clock(buffer, (last + day - local) % day);
    add(buffer, ")");
  }
}

// Returns the set of times. `is_iso`: the offset from UTC may be missing.
static const dfa *find_time(grammar_work *work, bool has_date, bool is_iso, format_level level) {
  const bool any = level != FORMAT_AGREED;
  text_buffer buffer = {work_alloc(work, PATTERN_BYTES, 1), 0};
  if (buffer.text == NULL) return NULL;
  if (has_date) add(&buffer, any ? DATE "[Tt]" : DATE "T");
  add(&buffer, any ? "(" TIME_ANY : "(" TIME);
  if (is_iso) add(&buffer, "?");
  if (level == FORMAT_EVERY) add_leap_seconds(&buffer);
  if (level == FORMAT_AT_MOST) add(&buffer, "|" MINUTES ":60(\\.[0-9]+)?([Zz]|[+-]" MINUTES ")");
  add(&buffer, ")");
  return regex_compile(work, (const uint8_t *)buffer.text, buffer.size_bytes, true);
}

format_kind format_find(grammar_work *work, document_text name, format_level level,
                        const dfa **texts) {
  const bool any = level != FORMAT_AGREED;
  const bool is_iso = name.size_bytes > 4 && memcmp(name.bytes, "iso-", 4) == 0;
  const document_text time = is_iso ? (document_text){name.bytes + 4, name.size_bytes - 4} : name;
  if (text_is(time, "time") || text_is(time, "date-time")) {
    // common validators accept more forms than this set contains
    if (is_iso && level == FORMAT_AT_MOST) return FORMAT_REFUSED;
    *texts = find_time(work, text_is(time, "date-time"), is_iso, level);
    return FORMAT_TEXTS;
  }
  if (text_is(name, "int32") && !any) return FORMAT_INT32;
  if (text_is(name, "int64") && !any) return FORMAT_INT64;
  for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
    const format *format = &FORMATS[i];
    if (!text_is(name, format->name)) continue;
    // groups may be nested deeper than in this set
    const bool is_regex = level == FORMAT_AT_MOST && text_is(name, "regex");
    if (format->pattern == NULL || is_regex) return FORMAT_REFUSED;
    const char *pattern = any && format->any != NULL ? format->any : format->pattern;
    *texts = regex_compile(work, (const uint8_t *)pattern, strlen(pattern), true);
    return FORMAT_TEXTS;
  }
  return FORMAT_UNKNOWN;
}
