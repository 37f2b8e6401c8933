// component/settings.h — the options of createHandler as environment variables
// (docs/components.md), and the keys of clients.
#ifndef WICK_COMPONENT_SETTINGS_H
#define WICK_COMPONENT_SETTINGS_H

#include "base/options.h"
#include "base/salt.h"
#include "refusal.h"

enum { SALT_BYTES = 33 };  // 32 hexadecimal digits, terminated

// A key is stored as 128 bits of its SHA-256. The salt of a tenant's requests is a different hash
// of the key.
typedef struct tenant {
  cache_salt digest;
  char salt[SALT_BYTES];
} tenant;

typedef struct tenants {
  tenant *list;  // [count]; empty: anyone may send requests
  uint32_t count;
} tenants;

// The kinds of settings: missing strings are NULL, and lists are separated by ','.
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

// Reads the settings from the environment. Returns false if a setting is invalid; the error in
// *refused names it.
bool settings_read(settings *out, refusal *refused);
// Reads a number, which must be at least 1, from the environment; 0 if the variable is missing.
bool settings_read_count(const char *name, uint32_t *out, refusal *refused);
// Reads a flag, 0 or 1; false if the variable is missing.
bool settings_read_flag(const char *name, bool *out, refusal *refused);
// Returns the name of the next unknown variable after *at that begins with WICK_, up to its '=';
// NULL after the last one. Start with *at = NULL.
const char *settings_next_unknown(char ***at, size_t *size_bytes);
// Whether `origin` is in the list.
bool settings_have_origin(const char *origins, const char *origin);

// Sets the salt for the requests of the key in an `Authorization: Bearer KEY` header; NULL if no
// keys are configured. Returns false for a missing or invalid key. The time does not depend on the
// content of keys.
bool keys_check(const tenants *keys, const char *authorization, const char **salt,
                refusal *refused);

#endif
