// cli/main.c — the command line: finds the command and runs it. One program for every host.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const command commands[] = {
    {"run", "continues a prompt", command_run},
    {"logits", "writes the logits of every position", command_logits},
    {"tokenize", "text to token ids", command_tokenize},
    {"detokenize", "token ids to text", command_detokenize},
    {"inspect", "metadata, tensors and the memory plan", command_inspect},
    {"bench", "measures prefill and decode", command_bench},
    {"perplexity", "how well a model predicts a text", command_perplexity},
    {"synth", "makes a model with random weights of a known shape", command_synth},
};

// Named in the documentation, and not there yet.
static const char *const later_commands[] = {"chat", "quantize", "embed"};

enum {
  COMMAND_COUNT = sizeof commands / sizeof commands[0],
  LATER_COUNT = sizeof later_commands / sizeof later_commands[0]
};

static void print_help(output_stream out) {
  output_format(out, "wick runs GGUF language models.\n\nusage: wick COMMAND ...\n");
  for (int i = 0; i < COMMAND_COUNT; i++)
    output_format(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
  output_format(
      out,
      "\n'wick COMMAND --help' lists a command's options. A MODEL is a file, or - for standard "
      "input;\nof a split model it is the first file. Text goes to standard output, everything "
      "else to\nstandard error. Exit status: 0 done, 2 usage, 3 file or model, 4 memory, 5 "
      "internal.\n");
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : NULL;
  if (name == NULL) {
    print_help(OUTPUT_LOG);
    output_flush(OUTPUT_LOG);
    return EXIT_USAGE;
  }
  if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
    print_help(OUTPUT_TEXT);
    return (int)output_end();
  }
  for (int i = 0; i < COMMAND_COUNT; i++) {
    if (strcmp(name, commands[i].name) == 0) return (int)commands[i].run(argc - 2, argv + 2);
  }
  for (int i = 0; i < LATER_COUNT; i++) {
    if (strcmp(name, later_commands[i]) != 0) continue;
    report("the command '%s' is not there yet", name);
    return EXIT_USAGE;
  }
  report("there is no command '%s' ('wick help' lists them)", name);
  return EXIT_USAGE;
}
