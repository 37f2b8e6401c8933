// cli/media_request.h — requests with images and recordings in their prompts, of native programs:
// the encoders are not in the modules.
#ifndef WICK_CLI_MEDIA_REQUEST_H
#define WICK_CLI_MEDIA_REQUEST_H

#include "cli/args.h"
#include "cli/generation.h"
#include "cli/settings.h"
#include "media/media.h"

typedef struct media_files {
  const char *mmproj;          // --mmproj
  const char *parts_path;      // --parts, or NULL
  args_strings images, audio;  // --image, --audio
  const char *text;            // after them
  size_t text_bytes;
  media_options options;
} media_files;

typedef struct media_input media_input;
enum { MEDIA_OPTIONS_MAX = 6 };

#if defined(__wasm__)

static inline size_t media_files_list(media_files *files, args_option *options) {
  (void)files, (void)options;
  return 0;
}
static inline size_t media_parts_list(media_files *files, args_option *options) {
  (void)files, (void)options;
  return 0;
}
static inline bool media_has_parts(const media_files *files) {
  (void)files;
  return false;
}
static inline exit_code media_request_open(const media_files *files, const char *model,
                                           const model_settings *settings, wick_config *config,
                                           media_input **out) {
  (void)files, (void)model, (void)settings, (void)config;
  *out = NULL;
  return EXIT_DONE;
}
static inline exit_code media_request_encode(media_input *input, const wick_engine *engine) {
  (void)input, (void)engine;
  return EXIT_DONE;
}
static inline exit_code media_request_run(media_input *input, wick_engine *engine,
                                          const wick_request *request, generation_on_token on_token,
                                          void *context, generation *done) {
  (void)input;
  return generation_run(engine, request, on_token, context, done);
}
static inline size_t media_request_texts(const media_input *input) {
  (void)input;
  return 0;
}
static inline void media_request_close(media_input *input) { (void)input; }

#else

// Append the options --mmproj, --image and --audio, or --mmproj and --parts, and those of
// media_limits_list; return how many.
size_t media_files_list(media_files *files, args_option *options);
size_t media_parts_list(media_files *files, args_option *options);
static inline bool media_has_parts(const media_files *files) { return files->parts_path != NULL; }

// Reads the files and plans the prompt; *out is NULL without any. Sets what the engine needs: a
// batch that holds an image which is read at once; with --parts, unless --ctx is given, a context
// of the prompt's length, which may exceed the one that the model was trained on. Functions that
// give an exit code report errors.
exit_code media_request_open(const media_files *files, const char *model,
                             const model_settings *settings, wick_config *config,
                             media_input **out);
// Computes the rows, unless the prompt exceeds the engine's context. NULL is fine.
exit_code media_request_encode(media_input *input, const wick_engine *engine);
// generation_run with this prompt in place of the request's; NULL: with the request's.
exit_code media_request_run(media_input *input, wick_engine *engine, const wick_request *request,
                            generation_on_token on_token, void *context, generation *done);
// Tokens of the prompt that are text.
size_t media_request_texts(const media_input *input);
void media_request_close(media_input *input);  // NULL is fine

#endif
#endif
