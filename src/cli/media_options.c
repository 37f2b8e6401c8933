// cli/media_options.c — the options of requests with images and recordings (media_request.h), which
// every program has.
#include "cli/commands.h"
#include "cli/media_request.h"

size_t media_limits_list(media_options *options, args_option *list) {
  list[0] = args_flag("--like-llama-cpp", &options->follows_llama_cpp,
                      "follow llama.cpp where it differs from the published models");
  list[1] = args_u32("--max-tiles", &options->max_tiles, "N", 0, UINT32_MAX,
                     "encode at most N tiles per image, including its overview (0 = no limit)");
  list[2] = args_u32("--max-image-tokens", &options->max_image_tokens, "N", 0, UINT32_MAX,
                     "scale images down until they take at most N tokens (0 = no limit)");
  return MEDIA_LIMITS_MAX;
}

static args_option mmproj_option(media_files *files) {
  return args_string("--mmproj", &files->mmproj, "FILE",
                     "encode images and audio with this file, which comes with the model");
}

size_t media_files_list(media_files *files, args_option *options) {
  options[0] = mmproj_option(files);
  options[1] = args_string_list("--image", &files->images, "FILE",
                                "insert an image before the prompt: a PPM file (repeatable)");
  options[2] =
      args_string_list("--audio", &files->audio, "FILE",
                       "insert a recording before the prompt: a 16 kHz WAV file (repeatable)");
  return 3 + media_limits_list(&files->options, options + 3);
}

size_t media_parts_list(media_files *files, args_option *options) {
  options[0] = mmproj_option(files);
  options[1] = args_string("--parts", &files->parts_path, "FILE",
                           "read a prompt with images and audio, as 'wick media' does");
  return 2 + media_limits_list(&files->options, options + 2);
}

exit_code media_request_open(const media_files *files, const char *model,
                             const model_settings *settings, wick_config *config,
                             media_input **out) {
  *out = NULL;
  if (files->parts_path == NULL && files->images.count + files->audio.count == 0) return EXIT_DONE;
  if (FULL_PROGRAM != NULL) {
    report("%s is not in this program; %s has all features",
           files->images.count != 0 ? "--image" : "--audio", FULL_PROGRAM);
    return EXIT_FILE;
  }
  return media_request_read(files, model, settings, config, out);
}
