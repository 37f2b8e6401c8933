// component/settings.c — reads settings from the environment.
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_wrong(const char *name, const char *wanted, refusal *refused) {
  return refuse(refused, 500, "settings", NULL, "The server's variable %s must be %s", name,
                wanted);
}

bool settings_read_count(const char *name, uint32_t *out, refusal *refused) {
  const char *text = getenv(name);
  if (text == NULL) return true;
  char *end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  const bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
  if (!is_number || value < 1 || value > UINT32_MAX) {
    return is_wrong(name, "a whole number of at least 1", refused);
  }
  *out = (uint32_t)value;
  return true;
}

bool settings_read_flag(const char *name, bool *out, refusal *refused) {
  const char *text = getenv(name);
  if (text == NULL) return true;
  *out = strcmp(text, "1") == 0;
  return *out || strcmp(text, "0") == 0 || is_wrong(name, "0 or 1", refused);
}

// ---- keys ----

// Returns the hash of prefix + key. The scratch memory must have space for both and a terminating
// zero.
static cache_salt hash_of(const char *prefix, const char *key, size_t size, char *scratch) {
  const int written = sprintf(scratch, "%s%.*s", prefix, (int)size, key);
  return salt_of(scratch, written < 0 ? 0 : (size_t)written);
}

static const char TENANT[] = "wick-llm/openai tenant\n";

static void make_tenant(tenant *out, const char *key, size_t size, char *scratch) {
  out->digest = hash_of("", key, size, scratch);
  const cache_salt salt = hash_of(TENANT, key, size, scratch);
  for (uint32_t i = 0; i < SALT_BYTES - 1; i++) {
    const uint64_t half = i < 16 ? salt.low : salt.high;
    out->salt[i] = "0123456789abcdef"[half >> (i % 16 * 4) & 15];
  }
  out->salt[SALT_BYTES - 1] = '\0';
}

static bool is_visible(const char *key, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (key[i] < 0x21 || key[i] > 0x7e) return false;
  }
  return size > 0;
}

// Reads keys separated by ','. A variable that is set but empty must not mean that no key is
// needed.
static bool settings_read_keys(const char *name, tenants *out, refusal *refused) {
  const char *text = getenv(name);
  if (text == NULL) return true;
  uint32_t count = 1;
  for (const char *at = text; *at != '\0'; at++) count += *at == ',';
  out->list = calloc(count, sizeof *out->list);
  char *scratch = malloc(sizeof TENANT + strlen(text));
  bool is_right = out->list != NULL && scratch != NULL;
  while (is_right && out->count < count) {
    const size_t size = strcspn(text, ",");
    is_right = is_visible(text, size);
    if (is_right) make_tenant(&out->list[out->count++], text, size, scratch);
    text += size + 1;
  }
  free(scratch);
  return is_right || is_wrong(name, "keys of visible ASCII characters, separated by ','", refused);
}

// Finds the key in `Bearer KEY`. Returns its size, or 0 if the key is missing.
static size_t key_of(const char *authorization, const char **key) {
  static const char BEARER[] = "bearer";
  for (size_t i = 0; i < sizeof BEARER - 1; i++) {
    if ((authorization[i] | 0x20) != BEARER[i]) return 0;
  }
  const char *text = authorization + sizeof BEARER - 1;
  const size_t spaces = strspn(text, " ");
  *key = text + spaces;
  const size_t size = strcspn(*key, " ");
  const bool ends = (*key)[size + strspn(*key + size, " ")] == '\0';
  return spaces > 0 && ends ? size : 0;
}

bool keys_check(const tenants *keys, const char *authorization, const char **salt,
                refusal *refused) {
  const char *key = "";
  *salt = NULL;
  if (keys->count == 0) return true;
  const size_t size = key_of(authorization, &key);
  const cache_salt digest = salt_of(key, size);
  for (uint32_t i = 0; i < keys->count; i++) {
    const cache_salt one = keys->list[i].digest;
    const uint64_t difference = (one.low ^ digest.low) | (one.high ^ digest.high);
    if (difference == 0) *salt = keys->list[i].salt;
  }
  if (size > 0 && *salt != NULL) return true;
  return refuse(
      refused, 401, "invalid_api_key", NULL,
      size == 0 ? "A key is required: Authorization: Bearer KEY" : "The key is not valid");
}

// ---- names ----

char **__wasilibc_get_environ(void);  // from wasi-libc

static bool is_known(const char *name, size_t size) {
#define NAME(kind, field, variable, by_default) variable,
  static const char *const NAMES[] = {SERVER_SETTINGS(NAME) "WICK_MODEL",
                                      "WICK_MODEL_URL",
                                      "WICK_MODEL_TIMEOUT_MS",
                                      "WICK_MMPROJ",
                                      "WICK_MMPROJ_URL",
                                      "WICK_MAX_TILES",
                                      "WICK_MAX_IMAGE_TOKENS",
                                      "WICK_METRICS",
                                      "WICK_CONTEXT_TOKENS",
                                      "WICK_KV_TOKENS",
                                      "WICK_REQUESTS"};
#undef NAME
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (strlen(NAMES[i]) == size && memcmp(NAMES[i], name, size) == 0) return true;
  }
  return false;
}

const char *settings_next_unknown(char ***at, size_t *size_bytes) {
  static const char PREFIX[] = "WICK_";
  char **next = *at == NULL ? __wasilibc_get_environ() : *at + 1;
  for (; *next != NULL; next++) {
    *size_bytes = strcspn(*next, "=");
    if (strncmp(*next, PREFIX, sizeof PREFIX - 1) == 0 && !is_known(*next, *size_bytes)) break;
  }
  *at = next;
  return *next;
}

// ---- all settings ----

bool settings_have_origin(const char *origins, const char *origin) {
  const size_t size = strlen(origin);
  for (const char *at = origins; size > 0 && at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strcspn(at, ",") == size && memcmp(at, origin, size) == 0) return true;
  }
  return false;
}

static bool settings_read_text(const char *name, const char **out, refusal *refused) {
  *out = getenv(name);
  return *out == NULL || **out != '\0' || is_wrong(name, "a non-empty string", refused);
}

static bool settings_read_texts(const char *name, const char **out, refusal *refused) {
  return settings_read_text(name, out, refused);
}

bool settings_read(settings *out, refusal *refused) {
#define INITIAL(kind, field, variable, by_default) .field = (by_default),
#define READ(kind, field, variable, by_default) \
  if (!settings_read_##kind(variable, &out->field, refused)) return false;
  *out = (settings){SERVER_SETTINGS(INITIAL)};
  SERVER_SETTINGS(READ)
#undef INITIAL
#undef READ
  return true;
}
