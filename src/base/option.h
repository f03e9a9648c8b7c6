/* Options as data: each table of named fields that a user writes is a subject with one row per
 * field. Its reader, its type annotation and its table in the docs come from these rows, which
 * are static. Callers: lua. */
#ifndef AH_BASE_OPTION_H
#define AH_BASE_OPTION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Kinds of values; several bits are a union. */
enum {
    AH_OPT_BOOLEAN = 1,
    AH_OPT_INTEGER = 2,
    AH_OPT_NUMBER = 4,
    AH_OPT_STRING = 8,
    AH_OPT_LIST = 16, /* without names and gaps */
    AH_OPT_TABLE = 32,
    AH_OPT_FUNCTION = 64,
    AH_OPT_OBJECT = 128, /* an object of the library: its owner checks the value */
    AH_OPT_ANY = 256,
    AH_OPT_KINDS = 9
};

/* Places other than Lua where a field may appear. */
enum {
    AH_IN_JSON = 1,    /* config of ah_agent_open */
    AH_IN_SETTINGS = 2 /* ah_defaults and the command's settings */
};

enum { AH_MOST_OPTIONS = 64 /* fields of a subject */ };
/* The limit of a number without another one: integers stay exact in a double. */
#define AH_OPT_MOST 1e15

/* Ways to store a value, in the low bits of `to`; the bits above hold the member's offset. */
enum {
    AH_STORE_NONE,
    AH_STORE_BOOL,
    AH_STORE_INT,
    AH_STORE_SIZE,
    AH_STORE_DOUBLE,
    AH_STORE_MS,     /* seconds, stored as milliseconds */
    AH_STORE_WORD,   /* index of the word, stored in an enum or an int */
    AH_STORE_SECOND, /* a bool: true for the second of two words */
    AH_STORE_SLICE,  /* borrowed from the table */
    AH_STORE_HELD,   /* a slice, valid while the table that was read stays on the stack */
    AH_STORE_BITS = 4
};

/* A member of the wrong type does not compile. */
#define AH_TO(how, s, m, fits)                                                                     \
    ((how) | (unsigned)(offsetof(s, m) << AH_STORE_BITS) * (unsigned)sizeof(char[(fits) ? 1 : -1]))
#define AH_IS(s, m, t)     _Generic(((s *)0)->m, t : 1, default : 0)
#define AH_TO_BOOL(s, m)   AH_TO(AH_STORE_BOOL, s, m, AH_IS(s, m, bool))
#define AH_TO_INT(s, m)    AH_TO(AH_STORE_INT, s, m, AH_IS(s, m, int))
#define AH_TO_SIZE(s, m)   AH_TO(AH_STORE_SIZE, s, m, AH_IS(s, m, size_t))
#define AH_TO_DOUBLE(s, m) AH_TO(AH_STORE_DOUBLE, s, m, AH_IS(s, m, double))
#define AH_TO_MS(s, m)     AH_TO(AH_STORE_MS, s, m, AH_IS(s, m, int64_t))
#define AH_TO_WORD(s, m)   AH_TO(AH_STORE_WORD, s, m, sizeof(((s *)0)->m) == sizeof(int))
#define AH_TO_SLICE(s, m)  AH_TO(AH_STORE_SLICE, s, m, AH_IS(s, m, ah_slice))
#define AH_TO_HELD(s, m)   AH_TO(AH_STORE_HELD, s, m, AH_IS(s, m, ah_slice))
#define AH_TO_SECOND(s, m) AH_TO(AH_STORE_SECOND, s, m, AH_IS(s, m, bool))

typedef struct ah_option {
    const char *name;
    unsigned kinds;
    unsigned to;           /* an AH_TO_...; 0: the owner of the table reads the field */
    double least, most;    /* limits of a number; 0 and 0: any; most 0: none of its own */
    const char *words;     /* values of a string: "skip replace error"; NULL: any */
    const char *otherwise; /* the default for the docs; NULL: none */
    const char *unit;      /* "seconds", "bytes"; NULL: none */
    const char *is;        /* the kinds for the docs; NULL: from kinds, range and words */
    const char *type;      /* the kinds for annotations; NULL: likewise */
    const char *doc;       /* one line of Markdown */
    unsigned where;        /* AH_IN_... */
    bool needed;           /* the reader raises if it is missing */
} ah_option;

typedef struct ah_subject ah_subject;
struct ah_subject {
    const char *what;     /* the table's name in messages: "ah.run: http" */
    const char *type;     /* class for the annotations: "ah.HttpLimits" */
    const char *doc;      /* one line; NULL: none */
    const char *list;     /* type of the values without a name; NULL: none are allowed */
    const ah_option *row; /* the last row has no name */
    const ah_subject
        *base;     /* its rows apply, too; they store at the beginning of this one's struct */
    bool declares; /* a missing field is `prompt_validation`, as all errors in declarations */
};

#endif
