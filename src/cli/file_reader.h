// cli/file_reader.h — reads one file for an engine, in pieces of 1 MiB.
#ifndef WICK_CLI_FILE_READER_H
#define WICK_CLI_FILE_READER_H

#include "cli/command.h"

// Its address must not change while it is open.
typedef struct file_reader {
  wick_reader reader;
  int fd;
} file_reader;

// Reports errors; the reader is then closed.
exit_code file_reader_open(file_reader *from, const char *path);
void file_reader_close(file_reader *from);

#endif
