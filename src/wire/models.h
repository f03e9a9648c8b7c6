/* All that is known of models, as data: by family and version, what each can do on its wires, how
 * much it holds and what it costs, with the source of that (models_table.c), and what a program
 * says of more of them. No other file compares names of models. Nothing is asked of a server here:
 * what one refuses is learned by the run (run/run_learn.c). Providers ask it when an adapter is
 * opened; the Lua floor owns the table of a program, and adds to it.
 *
 * A row holds for its version and later ones, up to the next row of the same family. So a name that
 * is newer than all known ones counts as the newest of its family, and one of no known family is
 * careful: it is asked for nothing that older models refuse, but where a wire says otherwise. */
#ifndef AH_WIRE_MODELS_H
#define AH_WIRE_MODELS_H

#include "base/buf.h"
#include "base/err.h"

/* The features of a model, as bits. One that its wire has no place for means nothing there. */
enum {
    AH_MODEL_TOOL_CHANGES = 1 << 0,  /* Messages: tools come and go by system messages */
    AH_MODEL_TOOL_ITEMS = 1 << 1,    /* Responses: tools come as items of their own */
    AH_MODEL_TOOL_MESSAGES = 1 << 2, /* Chat Completions: tools come in system messages */
    AH_MODEL_NOTES = 1 << 3,         /* Messages: takes system messages in mid-conversation */
    AH_MODEL_SEARCH = 1 << 4,        /* looks for deferred tools itself */
    AH_MODEL_STRICT = 1 << 5,        /* takes strict tools */
    AH_MODEL_OUTPUT = 1 << 6,        /* takes the schema of its answer, beside tools, too */
    AH_MODEL_ENCRYPTED = 1 << 7,     /* Responses: gives its reasoning, encrypted */
    AH_MODEL_RESULT_IMAGES = 1 << 8, /* Gemini: sees images in results of tools */
    AH_MODEL_SIGNED = 1 << 9,        /* Gemini: wants the first call of a message signed */
    AH_MODEL_THINKS = 1 << 10        /* may be told how much: in ah_wire_lacks alone */
};

typedef enum ah_thinking_mode {
    AH_THINKING_UNKNOWN, /* the wire's own default */
    AH_THINKING_NOT,
    AH_THINKING_BY_BUDGET, /* told by a number of tokens */
    AH_THINKING_BY_EFFORT  /* told by a word */
} ah_thinking_mode;

/* Efforts, as bits, from the least on. */
enum {
    AH_EFFORT_NONE = 1 << 0,
    AH_EFFORT_MINIMAL = 1 << 1,
    AH_EFFORT_LOW = 1 << 2,
    AH_EFFORT_MEDIUM = 1 << 3,
    AH_EFFORT_HIGH = 1 << 4,
    AH_EFFORT_XHIGH = 1 << 5,
    AH_EFFORT_MAX = 1 << 6,
    AH_EFFORTS = 7
};
extern const char *const ah_effort_names[AH_EFFORTS];

/* US dollars for a million tokens; what is not said of cached ones costs as fresh input does. */
typedef struct ah_model_prices {
    double input, cached_read, cached_write, output;
} ah_model_prices;

/* All that the models of a version have in common. */
typedef struct ah_model_kind {
    unsigned can; /* AH_MODEL_ */
    ah_thinking_mode thinking;
    unsigned efforts; /* AH_EFFORT_ */
} ah_model_kind;

typedef struct ah_model_source {
    const char *name, *date; /* "pi-ai 1.5.2", "2026-11-10" */
} ah_model_source;

typedef struct ah_model_row {
    const char *pattern; /* a name's beginning, with # for its version: "claude-opus-#" */
    const char *since;   /* the version from which on this holds; NULL: the pattern has none */
    const char *home;    /* the provider whose own model it is, and whose prices these are */
    const ah_model_kind *kind;     /* NULL: as a less specific pattern says */
    unsigned efforts;              /* 0: the kind's */
    int64_t window, output;        /* tokens it holds, and answers with at most; 0: not known */
    ah_model_prices prices;        /* all 0: not known */
    const ah_model_source *source; /* NULL: no source; it is careful */
} ah_model_row;

extern const ah_model_row ah_model_rows[];
extern const size_t ah_model_rows_n;

/* The origin of what is known. */
typedef enum ah_model_from {
    AH_MODEL_DEFAULT,  /* no family is known */
    AH_MODEL_TABLE,    /* a row */
    AH_MODEL_NEWEST,   /* newer than all rows of its family: as the newest of them */
    AH_MODEL_SCRIPT,   /* ah.alias */
    AH_MODEL_SETTINGS, /* the program's configuration */
    AH_MODEL_LEARNED   /* of verdicts alone: a server's refusal */
} ah_model_from;
extern const char *const ah_model_from_names[];

/* All that is known of one model. The texts of rows live as long as the program. */
typedef struct ah_model {
    bool asked;                 /* ah_model_find was; adapters of scripts have no such model */
    ah_model_from from;         /* of what it can do */
    ah_model_from figures_from; /* of window, output and prices */
    ah_model_from named_from;   /* of the name itself */
    const ah_model_row *named;  /* of the most specific pattern that has a source; NULL: none */
    const ah_model_row *row, *figures; /* that says what it can do, and its figures */
    unsigned can, efforts;
    ah_thinking_mode thinking;
    int64_t window, output; /* 0: not known */
    bool priced;
    ah_model_prices prices;
} ah_model;

/* Versions, as numbers with parts: 5.10 is after 5.9, 5 and 5.0 are one. */
typedef struct ah_model_version {
    int n;
    int part[4];
} ah_model_version;
/* The digits at the beginning of the text, with . or - (or p between digits) between them; false:
 * no version. *used is how long it is. Dates are no part: a part behind - has two digits at most,
 * and none that begins with 0. */
bool ah_model_version_read(ah_slice text, ah_model_version *out, size_t *used);
int ah_model_version_cmp(const ah_model_version *a,
                         const ah_model_version *b); /* below 0, 0, above 0 */

/* -- what a program says of models ------------------------------------------------------------- */

typedef struct ah_models ah_models;

ah_models *ah_models_new(const ah_mem *mem); /* NULL when out of memory */
void ah_models_free(ah_models *m);           /* NULL is fine */
/* Adds a row, or replaces the one of the name: "provider/model", and a JSON object (checked text)
 * as docs/reference/models.md has it. AH_USAGE names what is wrong with it; `what` says whose it
 * is. */
ah_status ah_models_add(ah_models *m, ah_slice name, ah_slice row, ah_model_from from,
                        const char *what, ah_err *err);

/* A conversation has learned this of a model (`learned` of its settings, JSON). It is kept for
 * those who ask where answers come from: other conversations try for themselves. Out of memory it
 * is not kept. */
void ah_models_learn(ah_models *m, ah_slice provider, ah_slice name, ah_slice learned);
/* The last of it, .p NULL: nothing. Valid until the next is kept. `m` may be NULL. */
ah_slice ah_models_learned(const ah_models *m, ah_slice provider, ah_slice name);

/* Gets what is known of a provider's model. `said` may be NULL. */
void ah_model_find(const ah_models *said, ah_slice provider, ah_slice name, ah_model *out);
/* True if it can do that; `otherwise` where nothing is known of it. */
bool ah_model_can(const ah_model *m, unsigned what, bool otherwise);
/* The effort it takes that is nearest to the one asked, both JSON strings; words that are none of
 * ours, and all where nothing is known, stay as they are. */
ah_slice ah_model_effort(const ah_model *m, ah_slice asked);
/* Appends where the answers come from, as JSON, as docs/reference/run.md has it under `known`.
 * `learned` as above. */
void ah_model_put_known(const ah_model *m, ah_slice learned, ah_buf *out);

/* The provider whose models are called so, or NULL: for advice where a name has no provider. */
const char *ah_model_home(ah_slice name);

#endif
