// component/url_source.c — reads a model from a URL in ranges.
#include "url_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fetch.h"
#include "settings.h"

enum { PIECE_BYTES = 4 << 20, REDIRECTS_MAX = 5, TRIES_MAX = 3, TIMEOUT_MS = 10000 };

typedef struct url_source {
  fetch_url url;
  uint64_t total_bytes;  // the file size; 0: not known yet
  char etag[FETCH_VALUE_BYTES];
  char problem[192];  // why a range could not be read; "" after success
} url_source;

static size_t fail(url_source *from, const char *problem) {
  snprintf(from->problem, sizeof from->problem, "%s", problem);
  return SIZE_MAX;
}

static size_t fail_late(url_source *from) {
  snprintf(from->problem, sizeof from->problem, "the model's server did not respond within %u ms",
           (unsigned)from->url.timeout_ms);
  return SIZE_MAX;
}

// ---- the URL ----

static bool read_url(fetch_url *out, const char *text) {
  const bool is_https = strncasecmp(text, "https://", 8) == 0;
  if (!is_https && strncasecmp(text, "http://", 7) != 0) return false;
  const char *authority = text + (is_https ? 8 : 7);
  const size_t size = strcspn(authority, "/?#");
  const char *path = authority + size;
  const size_t path_bytes = strcspn(path, "#");
  if (size == 0 || size >= sizeof out->authority || path_bytes + 1 >= sizeof out->path) {
    return false;
  }
  if (memchr(authority, '@', size) != NULL) return false;  // a user name and password
  out->is_https = is_https;
  snprintf(out->authority, sizeof out->authority, "%.*s", (int)size, authority);
  snprintf(out->path, sizeof out->path, "%s%.*s", path[0] == '/' ? "" : "/", (int)path_bytes, path);
  return true;
}

static bool is_redirect(uint16_t status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Follows a redirect, but not from HTTPS to HTTP.
static bool follow(url_source *from, const char *location) {
  fetch_url next = from->url;
  if (location[0] == '/' && location[1] != '/') {
    snprintf(next.path, sizeof next.path, "%s", location);
  } else if (!read_url(&next, location) || (from->url.is_https && !next.is_https)) {
    return false;
  }
  from->url = next;
  return true;
}

// ---- ranges ----

typedef struct content_range {
  uint64_t first, size_bytes, total_bytes;
} content_range;

// Parses "bytes 0-99/1000".
static bool read_content_range(const char *text, content_range *out) {
  uint64_t last = 0;
  const int found =
      sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &out->first, &last, &out->total_bytes);
  out->size_bytes = last - out->first + 1;
  return found == 3 && last >= out->first && last < out->total_bytes;
}

static bool is_same_file(url_source *from, const fetch_answer *response, uint64_t total_bytes) {
  if (from->total_bytes == 0) {
    from->total_bytes = total_bytes;
    snprintf(from->etag, sizeof from->etag, "%s", response->etag);
  }
  return from->total_bytes == total_bytes && strcmp(from->etag, response->etag) == 0;
}

// Returns the number of bytes of a complete or partial response, SIZE_MAX after setting
// from->problem, or 0 at the end of the file. Sets *is_short if the body ended early.
static size_t take(url_source *from, const fetch_answer *response, uint64_t offset, size_t count,
                   size_t size, bool *is_short) {
  content_range range;
  if (response->status == 416) return 0;
  if (response->status == 200 && offset == 0 && count < size) return count;  // all of a small file
  if (response->status != 206) {
    char problem[80];
    snprintf(problem, sizeof problem, "the server answered with status %u%s",
             (unsigned)response->status, response->status == 200 ? ", without ranges" : "");
    return fail(from, problem);
  }
  if (!read_content_range(response->content_range, &range) || range.first != offset ||
      range.size_bytes > size) {
    return fail(from, "the server returned a different range than requested");
  }
  *is_short = count < range.size_bytes;
  if (*is_short || is_same_file(from, response, range.total_bytes)) return count;
  return fail(from, "the file changed while it was read");
}

// Fetches from the URL. Retries if the server does not respond, and follows redirects.
static size_t ask(url_source *from, const char *range, uint64_t offset, void *bytes, size_t size) {
  uint32_t redirects = 0, tries = 0;
  const uint64_t begin_us = platform_now_us(), timeout_ms = from->url.timeout_ms;
  while (tries < TRIES_MAX) {
    fetch_answer response;
    size_t count = 0;
    const bool has_come = fetch_get(&from->url, range, bytes, size, &count, &response);
    if (has_come && is_redirect(response.status)) {
      if (++redirects > REDIRECTS_MAX) return fail(from, "too many redirects");
      if (!follow(from, response.location))
        return fail(from, "redirect without a usable Location header");
      continue;
    }
    bool is_short = false;
    if (has_come && response.status < 500) {
      const size_t taken = take(from, &response, offset, count, size, &is_short);
      if (!is_short) return taken;
    }
    // waiting longer would delay all other requests
    if (platform_now_us() - begin_us >= timeout_ms * 1000) return fail_late(from);
    tries++;
  }
  return fail(from, "the model's server did not respond");
}

static size_t read_range(void *context, uint32_t file, uint64_t offset, void *bytes, size_t size) {
  url_source *from = context;
  char range[64];
  if (file != 0) return fail(from, "split models cannot be read from a URL");
  if (size == 0 || (from->total_bytes > 0 && offset >= from->total_bytes)) return 0;
  snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, offset, offset + size - 1);
  return ask(from, range, offset, bytes, size);
}

// ---- the model ----

static bool take_timeout(url_source *from, refusal *refused) {
  from->url.timeout_ms = TIMEOUT_MS;
  return settings_read_count("WICK_MODEL_TIMEOUT_MS", &from->url.timeout_ms, refused);
}

bool url_check(const char *name, const char *url, refusal *refused) {
  url_source from;
  if (!take_timeout(&from, refused)) return false;
  return read_url(&from.url, url) ||
         refuse(refused, 500, "settings", NULL,
                "The server's variable %s must be an http or https URL without a password", name);
}

void url_name(const char *url, char *out, size_t size_bytes) {
  size_t end = strcspn(url, "?#");
  while (end > 0 && url[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && url[begin - 1] != '/') begin--;
  if (end - begin > 5 && strncasecmp(url + end - 5, ".gguf", 5) == 0) end -= 5;
  snprintf(out, size_bytes, "%.*s", (int)(end - begin), url + begin);
}

bool url_load(wick_engine *engine, const url_file *file, refusal *refused) {
  url_source *from = calloc(1, sizeof *from);
  void *piece = malloc(PIECE_BYTES);
  wick_error error;
  bool is_loaded = false;
  if (from == NULL || piece == NULL) {
    refuse_memory(refused, "the model");
  } else if (url_check(file->name, file->url, refused) && take_timeout(from, refused) &&
             read_url(&from->url, file->url)) {
    const wick_reader reader = {from, read_range, piece, PIECE_BYTES};
    is_loaded = file->load(engine, &reader, &error) == WICK_OK;
    const bool is_of_server = !is_loaded && from->problem[0] != '\0';
    if (!is_loaded) {
      refuse(refused, 503, is_of_server ? MODEL_SERVER : "model", NULL,
             "%s could not be loaded: %s",
             file->load == wick_load_from ? "The model" : "The mmproj file",
             is_of_server ? from->problem : error.message);
    }
  }
  free(piece);
  free(from);
  return is_loaded;
}
