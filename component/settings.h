// component/settings.h — the options of createHandler as environment variables
// (docs/components.md), and the keys of clients.
#ifndef WICK_COMPONENT_SETTINGS_H
#define WICK_COMPONENT_SETTINGS_H

#include "base/salt.h"
#include "refusal.h"

enum { SALT_BYTES = 33 };  // 32 digits, terminated

// A key is kept as 128 bits of its SHA-256. Its requests' salt is of another hash of the key.
typedef struct tenant {
  cache_salt digest;
  char salt[SALT_BYTES];
} tenant;

typedef struct tenants {
  tenant *list;  // [count]; none: everybody may ask
  uint32_t count;
} tenants;

typedef struct settings {
  tenants keys, metrics_keys;
  uint32_t queue_limit, body_bytes_max;
  uint32_t items_max;         // of a field that is a list
  uint32_t silence_ms;        // of a stream before its first token, until a comment line
  bool logs_requests;         // a line on stderr each
  const char *origins;        // of CORS, with ',' between, or "*"; NULL: none
  const char *model_name;     // NULL: the file's
  const char *chat_template;  // Jinja, or a name as in wick_chat_set_template; NULL: the model's
} settings;

// From the environment. False: one of them is wrong; *refused says which.
bool settings_read(settings *out, refusal *refused);
// A number of the environment, at least 1; 0 where it is not given.
bool settings_number(const char *name, uint32_t *out, refusal *refused);
// 0 or 1; false where it is not given.
bool settings_flag(const char *name, bool *out, refusal *refused);
// Whether `origin` is in the list.
bool settings_have_origin(const char *origins, const char *origin);

// The salt of the key's requests, of a header `Authorization: Bearer KEY`; NULL where there are no
// keys. False: no key, or a wrong one. The time does not depend on the content of keys.
bool keys_check(const tenants *keys, const char *authorization, const char **salt,
                refusal *refused);

#endif
