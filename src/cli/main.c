// cli/main.c — the command line: finds the command and runs it. One program for every host.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/nearest.h"

static const command commands[] = {
    {"run", "continues a prompt", command_run},
    {"chat", "a conversation by the model's chat template", command_chat},
    {"logits", "writes the logits of every position", command_logits},
    {"embed", "texts to vectors", command_embed},
    {"rerank", "how well documents fit a query", command_rerank},
    {"tokenize", "text to token ids", command_tokenize},
    {"detokenize", "token ids to text", command_detokenize},
    {"template", "makes a prompt of a conversation", command_template},
    {"inspect", "metadata, tensors and the memory plan", command_inspect},
    {"bench", "measures prefill and decode", command_bench},
    {"perplexity", "how well a model predicts a text", command_perplexity},
    {"quantize", "writes a model file anew in another type", command_quantize},
    {"embed-component", "a component of wasi:http with its model", command_embed_component},
    {"constrain", "checks texts against a grammar", command_constrain},
    {"synth", "makes a model with random weights of a known shape", command_synth},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(output_stream out) {
  output_format(out, "wick runs GGUF language models.\n\nusage: wick COMMAND ...\n");
  for (int i = 0; i < COMMAND_COUNT; i++)
    output_format(out, "  %-15s %s\n", commands[i].name, commands[i].summary);
  output_format(
      out,
      "\n'wick COMMAND --help' lists a command's options, 'wick --version' tells the version.\nA "
      "MODEL is a file, or - for standard "
      "input;\nof a split model it is the first file. Text goes to standard output, everything "
      "else to\nstandard error. Exit status: 0 done, 2 usage, 3 file or model, 4 memory, 5 "
      "internal.\n");
}

static const command *find_command(const char *name) {
  for (int i = 0; i < COMMAND_COUNT; i++) {
    if (strcmp(name, commands[i].name) == 0) return &commands[i];
  }
  return NULL;
}

static exit_code refuse_command(const char *name) {
  nearest meant = nearest_begin(name, strlen(name));
  for (int i = 0; i < COMMAND_COUNT; i++) nearest_offer(&meant, commands[i].name);
  if (meant.name != NULL) {
    report("there is no command '%s'; did you mean '%s'?", name, meant.name);
  } else {
    report("there is no command '%s' ('wick help' lists them)", name);
  }
  return EXIT_USAGE;
}

static bool is_one_of(const char *name, const char *word, const char *option, const char *letter) {
  return strcmp(name, word) == 0 || strcmp(name, option) == 0 || strcmp(name, letter) == 0;
}

// The help of all commands, or of one: "wick help run".
static exit_code help(const char *name) {
  if (name == NULL) {
    print_help(OUTPUT_TEXT);
    return output_end();
  }
  char option[] = "--help";
  const command *one = find_command(name);
  return one == NULL ? refuse_command(name) : one->run(1, (char *[]){option});
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : NULL;
  if (name == NULL) {
    print_help(OUTPUT_LOG);
    output_flush(OUTPUT_LOG);
    return EXIT_USAGE;
  }
  if (is_one_of(name, "help", "--help", "-h")) return (int)help(argv[2]);
  if (is_one_of(name, "version", "--version", "-V")) {
    output_format(OUTPUT_TEXT, "wick %d.%d.%d\n", WICK_VERSION_MAJOR, WICK_VERSION_MINOR,
                  WICK_VERSION_PATCH);
    return (int)output_end();
  }
  const command *one = find_command(name);
  return (int)(one == NULL ? refuse_command(name) : one->run(argc - 2, argv + 2));
}
