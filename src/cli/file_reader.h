// cli/file_reader.h — reads one file for an engine, in pieces of 1 MiB.
#ifndef WICK_CLI_FILE_READER_H
#define WICK_CLI_FILE_READER_H

#include "cli/command.h"

// The struct must not be moved while the file is open.
typedef struct file_reader {
  wick_reader reader;
  int fd;
} file_reader;

// Reports errors; on failure the reader is closed.
exit_code file_reader_open(file_reader *from, const char *path);
void file_reader_close(file_reader *from);

#endif
