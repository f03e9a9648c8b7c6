/* Facts about models, as data: what each family and version can do on its wires, its context window
 * and its prices, with their source (models_table.c), and what a program adds. No other file
 * compares model names. No server is asked here: run/run_learn.c learns from refusals. Tables and
 * their texts live as long as the program; ah_models owns what a program adds.
 *
 * A row holds for its version and later ones, up to the next row of the same family. A name newer
 * than all known ones counts as the newest of its family. A name of no known family gets careful
 * defaults: nothing is asked of it that older models refuse, unless a wire says otherwise.
 * Callers: its floor, lua. */
#ifndef AH_WIRE_MODELS_H
#define AH_WIRE_MODELS_H

#include "base/buf.h"
#include "base/err.h"

/* Features of a model, as bits. A feature without a place on the model's wire has no effect. */
enum {
    AH_MODEL_TOOL_CHANGES = 1 << 0,  /* Messages: tools change by system messages */
    AH_MODEL_TOOL_ITEMS = 1 << 1,    /* Responses: tools come as their own items */
    AH_MODEL_TOOL_MESSAGES = 1 << 2, /* Chat Completions: tools come in system messages */
    AH_MODEL_NOTES = 1 << 3,         /* Messages: takes system messages in mid-conversation */
    AH_MODEL_SEARCH = 1 << 4,        /* searches deferred tools by itself */
    AH_MODEL_STRICT = 1 << 5,        /* takes strict tools */
    AH_MODEL_OUTPUT = 1 << 6,        /* takes the schema of its answer, also with tools */
    AH_MODEL_ENCRYPTED = 1 << 7,     /* Responses: returns its reasoning, encrypted */
    AH_MODEL_RESULT_IMAGES = 1 << 8, /* Gemini: sees images in tool results */
    AH_MODEL_SIGNED = 1 << 9,        /* Gemini: the first call of a message must be signed */
    AH_MODEL_THINKS = 1 << 10        /* takes a reasoning effort or budget; only in ah_wire_lacks */
};

typedef enum ah_thinking_mode {
    AH_THINKING_UNKNOWN, /* the wire's own default */
    AH_THINKING_NOT,
    AH_THINKING_BY_BUDGET, /* set by a number of tokens */
    AH_THINKING_BY_EFFORT  /* set by a word */
} ah_thinking_mode;

/* Efforts, as bits, in increasing order. */
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

/* US dollars per million tokens. Cached tokens without a price cost as much as fresh input. */
typedef struct ah_model_prices {
    double input, cached_read, cached_write, output;
} ah_model_prices;

/* Requests with more input tokens than `above` are dearer as a whole: the prices of input, cached
 * or not, and of output are multiplied. */
typedef struct ah_model_tier {
    int64_t above;
    double input, output;
} ah_model_tier;

/* The facts shared by all models of a version. */
typedef struct ah_model_kind {
    unsigned can; /* AH_MODEL_ bits */
    ah_thinking_mode thinking;
    unsigned efforts; /* AH_EFFORT_ bits */
} ah_model_kind;

typedef struct ah_model_source {
    const char *name, *date; /* for example "pi-ai 1.5.2", "2026-11-10" */
} ah_model_source;

typedef struct ah_model_row {
    const char *pattern; /* the beginning of a name, # for its version: "claude-opus-#" */
    const char *since;   /* the first version for which this holds; NULL: the pattern has none */
    const char *home;    /* the provider of the model, to which the prices belong */
    const ah_model_kind *kind; /* NULL: that of a less specific pattern */
    unsigned efforts;          /* 0: the kind's */
    int64_t window, output; /* tokens of the context window and of an answer at most; 0: unknown */
    ah_model_prices prices; /* all 0: unknown */
    const ah_model_source *source; /* NULL: no source; careful defaults */
    const ah_model_tier *tier;     /* NULL: the prices hold for requests of any length */
} ah_model_row;

extern const ah_model_row ah_model_rows[];
extern const size_t ah_model_rows_n;

/* The origin of a fact. */
typedef enum ah_model_from {
    AH_MODEL_DEFAULT,  /* the family is unknown */
    AH_MODEL_TABLE,    /* a row */
    AH_MODEL_NEWEST,   /* newer than all rows of its family: uses the newest row */
    AH_MODEL_SCRIPT,   /* ah.alias */
    AH_MODEL_SETTINGS, /* the program's settings */
    AH_MODEL_LEARNED   /* for verdicts only: a server's refusal */
} ah_model_from;
extern const char *const ah_model_from_names[];

/* All facts about one model. Texts of rows live as long as the program. */
typedef struct ah_model {
    bool asked;                 /* set by ah_model_find; a script's adapter has no model */
    ah_model_from from;         /* origin of its abilities */
    ah_model_from figures_from; /* of window, output and prices */
    ah_model_from named_from;   /* of the name itself */
    const ah_model_row *named;  /* row of the most specific pattern with a source; NULL: none */
    const ah_model_row *row, *figures; /* the rows of its abilities and of its figures */
    unsigned can, efforts;
    ah_thinking_mode thinking;
    int64_t window, output; /* 0: unknown */
    bool priced;
    ah_model_prices prices;
    const ah_model_tier *tier; /* NULL: the prices hold for requests of any length */
    const char *priced_on;     /* date of the row of the prices; NULL: the program gave them */
    bool supposed;             /* the prices are those of an older version */
} ah_model;

/* A version as numbers: 5.10 is later than 5.9, and 5 equals 5.0. */
typedef struct ah_model_version {
    int n;
    int part[4];
} ah_model_version;
/* Reads the version at the beginning of the text: digits with . or - between them (or p between
 * digits). False: no version. *used is its length. A date is not part of it: a part after - has at
 * most two digits and does not begin with 0. */
bool ah_model_version_read(ah_slice text, ah_model_version *out, size_t *used);
/* Returns a value below 0, 0, or above 0. */
int ah_model_version_cmp(const ah_model_version *a, const ah_model_version *b);

/* -- the program's rows ------------------------------------------------------------------------ */

typedef struct ah_models ah_models;

ah_models *ah_models_new(const ah_mem *mem); /* NULL if memory ran out */
void ah_models_free(ah_models *m);           /* NULL is allowed */
/* Adds a row, or replaces the row of the name ("provider/model"). `row` is a checked JSON object in
 * the form of docs/reference/models.md. Returns AH_USAGE, with the wrong field, if it is invalid;
 * `what` names the row in that error. */
ah_status ah_models_add(ah_models *m, ah_slice name, ah_slice row, ah_model_from from,
                        const char *what, ah_err *err);

/* Keeps what a conversation has learned of a model (`learned` of its settings, JSON), only for
 * reporting where facts come from: other conversations try the feature again. Without memory
 * nothing is kept. */
void ah_models_learn(ah_models *m, ah_slice provider, ah_slice name, ah_slice learned);
/* Returns what was learned last, .p NULL: nothing. Valid until the next ah_models_learn. `m` may be
 * NULL. */
ah_slice ah_models_learned(const ah_models *m, ah_slice provider, ah_slice name);

/* Sets *out to what is known of a provider's model. `said` may be NULL. */
void ah_model_find(const ah_models *said, ah_slice provider, ah_slice name, ah_model *out);
/* True if the model can do that; `otherwise` if nothing is known of it. */
bool ah_model_can(const ah_model *m, unsigned what, bool otherwise);
/* The supported effort nearest to the one asked for, both JSON strings. Unknown words, and all
 * words for an unknown model, are returned unchanged. */
ah_slice ah_model_effort(const ah_model *m, ah_slice asked);
/* Appends the origin of the facts as a JSON object, in the form of `known` in
 * docs/reference/run.md. `learned` as above. */
void ah_model_put_known(const ah_model *m, ah_slice learned, ah_buf *out);

/* The provider of models with such names, or NULL; for advice on a name without a provider. */
const char *ah_model_home(ah_slice name);

#endif
