// cli/media_request.h — requests with images and recordings in their prompts. The small WASI
// program has the options (media_options.c), but neither encoders nor the code that calls them.
#ifndef WICK_CLI_MEDIA_REQUEST_H
#define WICK_CLI_MEDIA_REQUEST_H

#include "cli/args.h"
#include "cli/command.h"
#include "cli/generation.h"
#include "cli/settings.h"
#include "media/media.h"

typedef struct media_files {
  const char *mmproj;          // --mmproj
  const char *parts_path;      // --parts, or NULL
  args_strings images, audio;  // --image, --audio
  const char *text;            // follows the images and recordings
  size_t text_bytes;
  media_options options;
} media_files;

typedef struct media_input media_input;
enum { MEDIA_OPTIONS_MAX = 6 };

// Append the options --mmproj, --image and --audio, or --mmproj and --parts, and the options of
// media_limits_list; return their number.
size_t media_files_list(media_files *files, args_option *options);
size_t media_parts_list(media_files *files, args_option *options);
enum { MEDIA_LIMITS_MAX = 3 };
// Appends --like-llama-cpp, --max-tiles and --max-image-tokens; returns their number.
size_t media_limits_list(media_options *options, args_option *list);
static inline bool media_has_parts(const media_files *files) { return files->parts_path != NULL; }

// Reads the files and plans the prompt; *out is NULL if no files are given. Sets the engine's
// options: a batch large enough for images that must be processed in one pass; and with --parts,
// unless --ctx is specified, a context of the prompt's length, which may exceed the trained length.
// Functions that return an exit code report errors; the small WASI program reports that it has no
// encoders.
exit_code media_request_open(const media_files *files, const char *model,
                             const model_settings *settings, wick_config *config,
                             media_input **out);

// ---- media_request.c: `input` must not be NULL ----

exit_code media_request_read(const media_files *files, const char *model,
                             const model_settings *settings, wick_config *config,
                             media_input **out);
exit_code media_request_compute(media_input *input, const wick_engine *engine);
exit_code media_request_follow(media_input *input, wick_engine *engine, const wick_request *request,
                               generation_on_token on_token, void *context, generation *done);
size_t media_request_texts(const media_input *input);
void media_request_free(media_input *input);

// ---- `input` may be NULL: a prompt without images and recordings ----

// Computes the rows, unless the prompt exceeds the engine's context.
static inline exit_code media_request_encode(media_input *input, const wick_engine *engine) {
  return input == NULL ? EXIT_DONE : media_request_compute(input, engine);
}
// Calls generation_run with this prompt in place of the request's prompt.
static inline exit_code media_request_run(media_input *input, wick_engine *engine,
                                          const wick_request *request, generation_on_token on_token,
                                          void *context, generation *done) {
  return input == NULL ? generation_run(engine, request, on_token, context, done)
                       : media_request_follow(input, engine, request, on_token, context, done);
}
static inline void media_request_close(media_input *input) {
  if (input != NULL) media_request_free(input);
}

#endif
