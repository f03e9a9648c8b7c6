/* The shape of a provider's documents: the members that its documentation promises, and their
 * kinds. Each reader has tables of what it must understand. A document is checked against them
 * before any of it is read, so that no reader skips a wrong value silently: a mismatch ends the
 * answer with an error that names the place. Members, event types and block types in no table are
 * ignored, since providers may add them. Tables are static; a check allocates only the error
 * text. Callers: its floor. */
#ifndef AH_WIRE_SHAPE_H
#define AH_WIRE_SHAPE_H

#include "base/json.h"

/* Kinds of a value, as bits. */
enum {
    AH_IS_NULL = 1,
    AH_IS_BOOLEAN = 2,
    AH_IS_COUNT = 4, /* an integer, 0 or more */
    AH_IS_STRING = 8,
    AH_IS_NAME = 16,  /* a non-empty string */
    AH_IS_PIECE = 32, /* a string that continues in the next document */
    AH_IS_ARRAY = 64,
    AH_IS_OBJECT = 128
};

typedef struct ah_shape ah_shape;

typedef struct ah_shape_member {
    ah_slice name;
    const ah_shape *is;
    bool needed;
    unsigned char slot; /* index of the slot that gets its value, from 1; 0: none */
} ah_shape_member;

typedef struct ah_shape_case {
    ah_slice word; /* "": the member is absent */
    const ah_shape *is;
} ah_shape_case;

struct ah_shape {
    unsigned kinds;                /* 0: any */
    const char *const *words;      /* values that a string may have; end with NULL. NULL: any */
    const ah_shape *items;         /* shape of an array's items; NULL: any */
    const ah_shape_member *member; /* members of an object, at most 16; end with no name */
    const char *by;                /* name of the string member that selects a case; NULL: none */
    const ah_shape_case *cases;    /* end with no word; an object with another word has no case */
};

/* Macros for tables. */
#define AH_NEEDS(name, shape)                                                                      \
    {                                                                                              \
        AH_LIT(name), shape, true, 0                                                               \
    }
#define AH_MAY_HAVE(name, shape)                                                                   \
    {                                                                                              \
        AH_LIT(name), shape, false, 0                                                              \
    }
/* An optional member whose value is handed to the reader in a slot. */
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

/* The shape of an `error` that is absent or null. */
extern const ah_shape ah_no_error;

enum { AH_SHAPE_SLOTS = 4 };

/* Values found, by the slots of their members; .p NULL: absent. */
typedef struct ah_shape_values {
    ah_slice slot[AH_SHAPE_SLOTS + 1];
} ah_shape_values;

/* Checks a document (checked JSON) against its shape. `halves`: number of strings in it that were
 * cut within a character (ah_json_check_piece). `found` may be NULL. False: *said has place and
 * reason, for example "choices[0].message must be an object, found null"; it is empty if a string
 * that is no piece was cut within a character. */
bool ah_shape_fits(const ah_shape *shape, ah_slice doc, size_t halves, ah_shape_values *found,
                   ah_buf *said);

#endif
