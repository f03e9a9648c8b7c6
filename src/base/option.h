/* Options as data: each table of named fields that a user writes is a subject with one row a field.
 * From these rows come its reader, its type annotation and its table in the docs. */
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
    AH_OPT_LIST = 16, /* without names and holes */
    AH_OPT_TABLE = 32,
    AH_OPT_FUNCTION = 64,
    AH_OPT_OBJECT =
        128, /* one of the library's: its owner checks the value, whatever else it may be */
    AH_OPT_ANY = 256,
    AH_OPT_KINDS = 9
};

/* Places beside Lua in which a field may stand. */
enum {
    AH_IN_JSON = 1,    /* the config of ah_agent_open */
    AH_IN_SETTINGS = 2 /* ah_defaults, and the command's settings */
};

enum { AH_MOST_OPTIONS = 64 /* of a subject */ };
/* The most of a number that has no other limit: integers stay exact in a double. */
#define AH_OPT_MOST 1e15

/* Ways of storing a value, in the low bits of `to`; the offset of the member stands above them. */
enum {
    AH_STORE_NONE,
    AH_STORE_BOOL,
    AH_STORE_INT,
    AH_STORE_SIZE,
    AH_STORE_DOUBLE,
    AH_STORE_MS,     /* seconds as milliseconds */
    AH_STORE_WORD,   /* the index of the word, in an enum or an int */
    AH_STORE_SECOND, /* a bool: true for the second of two words */
    AH_STORE_SLICE,  /* lent by the table */
    AH_STORE_HELD,   /* a slice, too, for as long as the table that was read stays on the stack */
    AH_STORE_BITS = 4
};

/* A wrong type of the member does not compile. */
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
    unsigned to;           /* an AH_TO_...; 0: whoever owns the table reads the field */
    double least, most;    /* of a number; 0 and 0: any. most 0: no limit of its own */
    const char *words;     /* of a string: "skip replace error"; NULL: any */
    const char *otherwise; /* the default as docs show it; NULL: none */
    const char *unit;      /* "seconds", "bytes"; NULL: none */
    const char *is;        /* as docs say the kinds; NULL: by the kinds, the range and the words */
    const char *type;      /* as annotations say them; NULL: likewise */
    const char *doc;       /* one line of Markdown */
    unsigned where;        /* AH_IN_... */
    bool needed;           /* the reader raises where it is absent */
} ah_option;

typedef struct ah_subject ah_subject;
struct ah_subject {
    const char *what;     /* as messages name the table: "ah.run: http" */
    const char *type;     /* the class of the annotations: "ah.HttpLimits" */
    const char *doc;      /* one line; NULL: none */
    const char *list;     /* the type of the values without a name; NULL: it takes none */
    const ah_option *row; /* the last one has no name */
    const ah_subject
        *base;     /* whose rows it has, too; what they store begins where this one's does */
    bool declares; /* a missing field is `prompt_validation`, as all mistakes in declarations */
};

#endif
