// cli/main.c — the command-line program: finds the command and runs it. The program is the same on
// every host, and wick-lab has the same main function.
#include <string.h>

#include "base/extras.h"
#include "cli/commands.h"
#include "cli/nearest.h"

enum { NAME_COLUMN_BYTES = 15 };

static void print_commands_elsewhere(output_stream out) {
  output_format(out, "\n%s has more commands:", FULL_PROGRAM);
  for (const command *one = COMMANDS; one->name != NULL; one++) {
    if (one->run == NULL) output_format(out, " %s", one->name);
  }
  output_format(out, ".\nIt runs all models and KV types; this program runs the common ones.\n");
}

static void print_help(output_stream out) {
  output_format(out, "%s %s.\n\nusage: %s COMMAND ...\n", PROGRAM_NAME, PROGRAM_PURPOSE,
                PROGRAM_NAME);
  for (const command *one = COMMANDS; one->name != NULL; one++) {
    if (one->run != NULL) output_row(out, NAME_COLUMN_BYTES, one->name, one->summary);
  }
  if (FULL_PROGRAM != NULL) print_commands_elsewhere(out);
  output_format(
      out,
      "\n'%s COMMAND --help' lists a command's options, '%s --version' prints the version.\nA "
      "MODEL is a file, or - for standard "
      "input;\nof a split model it is the first file. Text goes to standard output, everything "
      "else to\nstandard error. Exit status: 0 done, 2 usage, 3 file or model, 4 memory, 5 "
      "internal.\n",
      PROGRAM_NAME, PROGRAM_NAME);
}

static const command *find_command(const char *name) {
  for (const command *one = COMMANDS; one->name != NULL; one++) {
    if (strcmp(name, one->name) == 0) return one;
  }
  return NULL;
}

static exit_code refuse_command(const char *name) {
  nearest meant = nearest_begin(name, strlen(name));
  for (const command *one = COMMANDS; one->name != NULL; one++) nearest_offer(&meant, one->name);
  if (meant.name != NULL) {
    report("unknown command '%s'; did you mean '%s'?", name, meant.name);
  } else {
    report("unknown command '%s' ('%s help' lists them)", name, PROGRAM_NAME);
  }
  return EXIT_USAGE;
}

static exit_code run_command(const char *name, int argc, char **argv) {
  const command *one = find_command(name);
  if (one == NULL) return refuse_command(name);
  if (one->run != NULL) return one->run(argc, argv);
  report("the command '%s' is in %s", name, FULL_PROGRAM);
  return EXIT_USAGE;
}

static bool is_one_of(const char *name, const char *word, const char *option, const char *letter) {
  return strcmp(name, word) == 0 || strcmp(name, option) == 0 || strcmp(name, letter) == 0;
}

// Prints the help of the program, or of one command: "wick help run".
static exit_code help(const char *name) {
  if (name == NULL) {
    print_help(OUTPUT_TEXT);
    return output_end();
  }
  char option[] = "--help";
  return run_command(name, 1, (char *[]){option});
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
    output_format(OUTPUT_TEXT, "%s %d.%d.%d\n", PROGRAM_NAME, WICK_VERSION_MAJOR,
                  WICK_VERSION_MINOR, WICK_VERSION_PATCH);
    return (int)output_end();
  }
  extras_leave_out(FULL_PROGRAM);
  return (int)run_command(name, argc - 2, argv + 2);
}
