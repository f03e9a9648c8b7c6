/* Files of lines NAME = VALUE: the configuration and what --env-file names. Read strictly:
 * every line is a pair, empty, or a comment (#). Messages tell file and line and never a
 * word of the line, which may be a key. */
#ifndef AH_CLI_PAIRS_H
#define AH_CLI_PAIRS_H

#include <stdbool.h>

#include "base/buf.h"

/* What names may hold beside letters, digits and _; those of variables may not. */
#define AH_PAIRS_MORE "-./:@"

typedef struct ah_pairs {
    const char *path; /* borrowed */
    ah_buf text;      /* the file; names and values are parts of it, each ended by NUL */
    size_t at;        /* of the next line */
    unsigned line;    /* of the pair last given, from 1 */
} ah_pairs;

typedef enum ah_pairs_end { AH_PAIR, AH_PAIRS_END, AH_PAIRS_FAULT } ah_pairs_end;

/* Reads the file (1 MiB at most). False, with the errno in *why (EFBIG where it is too
 * large, EINVAL where it holds NUL), where it cannot be read. */
bool ah_pairs_open(ah_pairs *p, const char *path, int *why);
void ah_pairs_close(ah_pairs *p);

/* The next pair. A value is what stands behind "=", without blanks around it, and without
 * its quotes where it stands in '' or "" as a whole; nothing in it is expanded. */
ah_pairs_end ah_pairs_next(ah_pairs *p, const char **name, const char **value, char *fault, size_t size);

#endif
