// component/settings.h — the options of createHandler as environment variables
// (docs/components.md), and the keys of clients.
#ifndef WICK_COMPONENT_SETTINGS_H
#define WICK_COMPONENT_SETTINGS_H

#include "base/options.h"
#include "base/salt.h"
#include "refusal.h"

enum { SALT_BYTES = 33 };  // 32 digits, terminated

// A key is kept as 128 bits of its SHA-256. The salt of its requests comes from another hash of the
// key.
typedef struct tenant {
  cache_salt digest;
  char salt[SALT_BYTES];
} tenant;

typedef struct tenants {
  tenant *list;  // [count]; none: anyone may send requests
  uint32_t count;
} tenants;

// The kinds of settings: texts that are not given are NULL, and lists have ',' between.
typedef tenants settings_keys;
typedef const char *settings_texts, *settings_text;
typedef uint32_t settings_count;
typedef bool settings_flag;

// The fields of SERVER_SETTINGS: keys, metrics_keys, origins, ...
typedef struct settings {
#define FIELD(kind, field, variable, by_default) settings_##kind field;
  SERVER_SETTINGS(FIELD)
#undef FIELD
} settings;

// From the environment. False: one of them is wrong; *refused says which.
bool settings_read(settings *out, refusal *refused);
// A number of the environment, at least 1; 0 where it is not given.
bool settings_read_count(const char *name, uint32_t *out, refusal *refused);
// 0 or 1; false where it is not given.
bool settings_read_flag(const char *name, bool *out, refusal *refused);
// The name of the next variable after *at that begins with WICK_ and has no meaning here, up to its
// '='; NULL: none. Begins with *at NULL.
const char *settings_next_unknown(char ***at, size_t *size_bytes);
// Whether `origin` is in the list.
bool settings_have_origin(const char *origins, const char *origin);

// The salt of the key's requests, of a header `Authorization: Bearer KEY`; NULL where there are no
// keys. False: no key, or a wrong one. The time does not depend on the content of keys.
bool keys_check(const tenants *keys, const char *authorization, const char **salt,
                refusal *refused);

#endif
