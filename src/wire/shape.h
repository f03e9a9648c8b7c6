/* The shape of what a provider sends: which members its documentation promises, and of what kind
 * they are. Each reader has tables of what it must understand, and a document is held against them
 * before a word of it is read, so that no reader skips in silence: what a table names and is
 * otherwise ends the answer with an error that names the place. What no table names says nothing to
 * us, which is a promise of the providers: members, types of events and of blocks are added
 * there. */
#ifndef AH_WIRE_SHAPE_H
#define AH_WIRE_SHAPE_H

#include "base/json.h"

/* Kinds that a value may be of, as bits. */
enum {
    AH_IS_NULL = 1,
    AH_IS_BOOLEAN = 2,
    AH_IS_COUNT = 4, /* an integer, 0 or more */
    AH_IS_STRING = 8,
    AH_IS_NAME = 16,  /* a string with something in it */
    AH_IS_PIECE = 32, /* a string that goes on in the next document */
    AH_IS_ARRAY = 64,
    AH_IS_OBJECT = 128
};

typedef struct ah_shape ah_shape;

typedef struct ah_shape_member {
    ah_slice name;
    const ah_shape *is;
    bool needed;
    unsigned char slot; /* where its value is handed over, from 1; 0: it is not */
} ah_shape_member;

typedef struct ah_shape_case {
    ah_slice word; /* "": the member is not there */
    const ah_shape *is;
} ah_shape_case;

struct ah_shape {
    unsigned kinds;                /* 0: any */
    const char *const *words;      /* that a string may be; end with NULL. NULL: any */
    const ah_shape *items;         /* of an array; NULL: any */
    const ah_shape_member *member; /* of an object, at most 16; end with no name */
    const char *by; /* this member of an object, a string, says which of `cases` it is, */
    const ah_shape_case *cases; /* too; they end with no word; other words are not ours */
};

/* For tables. */
#define AH_NEEDS(name, shape)                                                                      \
    {                                                                                              \
        AH_LIT(name), shape, true, 0                                                               \
    }
#define AH_MAY_HAVE(name, shape)                                                                   \
    {                                                                                              \
        AH_LIT(name), shape, false, 0                                                              \
    }
/* A member that need not be there, for the reader, who need not look for it again. */
#define AH_HANDS_OVER(name, shape, slot)                                                           \
    {                                                                                              \
        AH_LIT(name), shape, false, slot                                                           \
    }
#define AH_MEMBERS(...)                                                                            \
    (const ah_shape_member[])                                                                      \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            {NULL, 0}, NULL, false, 0                                                              \
        }                                                                                          \
    }
#define AH_CASE(word, shape)                                                                       \
    {                                                                                              \
        AH_LIT(word), shape                                                                        \
    }
#define AH_CASES(...)                                                                              \
    (const ah_shape_case[])                                                                        \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            {NULL, 0}, NULL                                                                        \
        }                                                                                          \
    }

/* The shape of `error` where there is none. */
extern const ah_shape ah_no_error;

enum { AH_SHAPE_SLOTS = 4 };

/* Values that were met, by the slots of their members; .p NULL: it was not there. */
typedef struct ah_shape_values {
    ah_slice slot[AH_SHAPE_SLOTS + 1];
} ah_shape_values;

/* Holds a checked document against its shape. `halves`: how many strings in it were cut within a
 * character (ah_json_check_piece). `found` may be NULL. False: *said has where and what,
 * "choices[0].message must be an object, found null", or is empty where a character was cut in what
 * is no piece. */
bool ah_shape_fits(const ah_shape *shape, ah_slice doc, size_t halves, ah_shape_values *found,
                   ah_buf *said);

#endif
