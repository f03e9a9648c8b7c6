/* Writes libyaml's events as JSON at once, without a tree; an alias repeats a piece of the output.
 * The JSON scanner then checks the whole, including repeated keys. If it finds a fault, the text is
 * read again up to that place, to find the position in YAML. libyaml is opened at its first use,
 * and stays open; in a static program it is linked. */
#include "io/yaml.h"

#include <stdio.h>

#include "base/json.h"
#include "base/yaml_scalar.h"

#ifdef AH_WITH_YAML

#include <dlfcn.h>
#include <yaml.h>

/* -- the library ---------------------------------------------------------------------------- */

typedef struct library {
    int (*initialize)(yaml_parser_t *);
    void (*finish)(yaml_parser_t *);
    void (*set_input)(yaml_parser_t *, const unsigned char *, size_t);
    void (*set_encoding)(yaml_parser_t *, yaml_encoding_t);
    int (*parse)(yaml_parser_t *, yaml_event_t *);
    void (*finish_event)(yaml_event_t *);
    const char *(*version)(void);
} library;

#ifdef AH_YAML_LINKED

static ah_status open_library(library *lib, ah_err *err)
{
    (void)err;
    *lib = (library){yaml_parser_initialize,   yaml_parser_delete, yaml_parser_set_input_string,
                     yaml_parser_set_encoding, yaml_parser_parse,  yaml_event_delete,
                     yaml_get_version_string};
    return AH_OK;
}

#else

#ifdef __APPLE__
#define LIBRARY "libyaml-0.2.dylib"
#else
#define LIBRARY "libyaml-0.so.2"
#endif

static ah_status open_library(library *lib, ah_err *err)
{
    const struct {
        const char *name;
        void *at; /* a function pointer, which dlsym returns as an object pointer */
    } wanted[] = {{"yaml_parser_initialize", &lib->initialize},
                  {"yaml_parser_delete", &lib->finish},
                  {"yaml_parser_set_input_string", &lib->set_input},
                  {"yaml_parser_set_encoding", &lib->set_encoding},
                  {"yaml_parser_parse", &lib->parse},
                  {"yaml_event_delete", &lib->finish_event},
                  {"yaml_get_version_string", &lib->version}};
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), *found = handle;

    for (size_t i = 0; found && i < sizeof wanted / sizeof *wanted; i++) {
        found = dlsym(handle, wanted[i].name);
        memcpy(wanted[i].at, &found, sizeof found);
    }
    if (!found)
        ah_err_set(err, AH_USAGE,
                   "YAML needs libyaml, which cannot be opened (Debian: apt-get install "
                   "libyaml-0-2): %s",
                   dlerror());
    if (handle)
        dlclose(handle); /* it stays loaded for the next use */
    return found ? AH_OK : AH_USAGE;
}

#endif

/* -- reading --------------------------------------------------------------------------------- */

/* An open sequence or mapping. */
typedef struct level {
    bool map, value; /* value: a mapping's key is written, and its value is next */
    bool some;       /* it has at least one item */
    size_t anchor;   /* index + 1; 0: none */
} level;

/* A piece of the output that aliases may repeat. */
typedef struct anchor {
    yaml_char_t *name; /* owned */
    size_t start, end; /* end 0: still open */
} anchor;

typedef struct reading {
    const ah_mem *mem;
    library lib;
    yaml_parser_t parser;
    yaml_event_t event; /* the current event */
    const ah_interrupt *interrupt;
    ah_buf *out;
    size_t start; /* of the value in `out` */
    level *levels;
    size_t depth, levels_cap;
    anchor *anchors;
    size_t n_anchors, anchors_cap;
    size_t aliases, repeated, events;
    size_t until; /* a second reading ends at this length of output */
    bool documents, ended;
    ah_err *err;
} reading;

static ah_status fails_at(const reading *r, const yaml_mark_t *at, const char *what)
{
    return ah_err_set(r->err, AH_TOOL_VALIDATION,
                      "the text cannot be decoded: %s at line %zu, column %zu", what, at->line + 1,
                      at->column + 1);
}

static ah_status fails(const reading *r, const char *what)
{
    return fails_at(r, &r->event.start_mark, what);
}

static ah_status out_failed(reading *r)
{
    return ah_buf_error(r->out, "the value", r->err);
}

/* -- errors of libyaml */

/* Finds the position of bytes that are invalid in YAML, for which there is only an offset. */
static yaml_mark_t mark_of(ah_slice text, size_t offset)
{
    yaml_mark_t m = {0};

    for (size_t i = 0; i < offset && i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        m.column += (c & 0xc0) != 0x80;
        if (c == '\n' || (c == '\r' && !(i + 1 < text.n && text.p[i + 1] == '\n')))
            m.line++, m.column = 0;
    }
    return m;
}

static ah_status no_yaml(reading *r, ah_slice text)
{
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t at = p->problem_mark;
    char around[160] = "";

    if (p->error == YAML_MEMORY_ERROR)
        return ah_err_nomem(r->err);
    if (p->error == YAML_READER_ERROR)
        at = mark_of(text, p->problem_offset);
    else if (p->context)
        ah_print(around, sizeof around, " (%s at line %zu, column %zu)", p->context,
                 p->context_mark.line + 1, p->context_mark.column + 1);
    return ah_err_set(
        r->err, AH_TOOL_VALIDATION, "the text is not YAML: %s at line %zu, column %zu%s",
        p->problem ? p->problem : "an error without words", at.line + 1, at.column + 1, around);
}

/* -- anchors and aliases */

/* Adds an anchor; *number is its index + 1. */
static ah_status add_anchor(reading *r, const yaml_char_t *name, size_t *number)
{
    size_t n = name ? strlen((const char *)name) : 0;
    anchor *list;

    *number = 0;
    if (!name)
        return AH_OK;
    if (r->n_anchors == AH_YAML_ANCHORS)
        return fails(r, "more than 1000 anchors");
    if (!(list = ah_grow(r->mem, r->anchors, &r->anchors_cap, r->n_anchors + 1, sizeof *list)))
        return ah_err_nomem(r->err);
    r->anchors = list;
    list[r->n_anchors] = (anchor){.name = ah_alloc(r->mem, n + 1), .start = r->out->len};
    if (!list[r->n_anchors].name)
        return ah_err_nomem(r->err);
    memcpy(list[r->n_anchors].name, name, n);
    *number = ++r->n_anchors;
    return AH_OK;
}

static void end_anchor(reading *r, size_t number)
{
    if (number)
        r->anchors[number - 1].end = r->out->len;
}

/* The last anchor of that name; NULL: none. */
static const anchor *find_anchor(const reading *r, const yaml_char_t *name)
{
    for (size_t i = r->n_anchors; i-- > 0;)
        if (strcmp((const char *)r->anchors[i].name, (const char *)name) == 0)
            return &r->anchors[i];
    return NULL;
}

/* -- values */

static level *top(const reading *r)
{
    return r->depth ? &r->levels[r->depth - 1] : NULL;
}

static bool wants_key(const reading *r)
{
    const level *t = top(r);

    return t && t->map && !t->value;
}

/* Puts the separator before a value or key. */
static void put_separator(reading *r)
{
    level *t = top(r);

    if (!t)
        return;
    if (t->map && t->value)
        ah_buf_char(r->out, ':');
    else if (t->some)
        ah_buf_char(r->out, ',');
    t->some = true;
    t->value = t->map && !t->value;
}

/* Reads a tag. False: unknown, and refused. */
static bool read_tag(const yaml_char_t *tag, bool quoted, ah_yaml_tag *out)
{
    static const struct {
        const char *name;
        ah_yaml_tag tag;
    } known[] = {{YAML_STR_TAG, AH_YAML_STR},     {YAML_INT_TAG, AH_YAML_INT},
                 {YAML_FLOAT_TAG, AH_YAML_FLOAT}, {YAML_BOOL_TAG, AH_YAML_BOOL},
                 {YAML_NULL_TAG, AH_YAML_NULL},   {"!", AH_YAML_STR}};

    *out = quoted ? AH_YAML_STR : AH_YAML_PLAIN;
    if (!tag)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp((const char *)tag, known[i].name) == 0) {
            *out = known[i].tag;
            return true;
        }
    return false;
}

static ah_status refuse_tag(reading *r, const yaml_char_t *tag)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *name = (const char *)tag;
    bool shown = strncmp(name, prefix, sizeof prefix - 1) == 0;
    char words[200];

    ah_print(words, sizeof words, "the tag %s%.100s, which the core schema does not have here,",
             shown ? "!!" : "", shown ? name + sizeof prefix - 1 : name);
    return fails(r, words);
}

/* Keys are their texts, since JSON has no others. Returns the error text; NULL: valid. */
static const char *key_fault(const yaml_event_t *e, ah_slice text)
{
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !e->data.scalar.tag;

    if (plain && ah_slice_is(text, "<<"))
        return "a merge key (<<), which YAML 1.2 no longer has (repeat the members instead)";
    return text.n && memchr(text.p, '\0', text.n) ? "a NUL in a key" : NULL;
}

static ah_status put_scalar(reading *r)
{
    const yaml_event_t *e = &r->event;
    const ah_slice text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    bool key = wants_key(r), quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const char *fault = key ? key_fault(e, text) : NULL;
    ah_yaml_tag tag;
    size_t number;
    ah_status st;

    if (!read_tag(e->data.scalar.tag, quoted, &tag))
        return refuse_tag(r, e->data.scalar.tag);
    if (fault)
        return fails(r, fault);
    put_separator(r);
    if ((st = add_anchor(r, e->data.scalar.anchor, &number)) != AH_OK)
        return st;
    fault = ah_yaml_scalar(text, key ? AH_YAML_STR : tag, r->out);
    end_anchor(r, number);
    return fault ? fails(r, fault) : AH_OK;
}

static ah_status open_level(reading *r, bool map, const yaml_char_t *name, const yaml_char_t *tag)
{
    const char *own = map ? YAML_MAP_TAG : YAML_SEQ_TAG;
    level *list;
    size_t number;
    ah_status st;

    if (tag && strcmp((const char *)tag, own) != 0 && strcmp((const char *)tag, "!") != 0)
        return refuse_tag(r, tag);
    if (wants_key(r))
        return fails(r, "a key that is no text but a list or a mapping");
    if (r->depth == AH_YAML_DEPTH)
        return fails(r, "nested deeper than 100 levels");
    put_separator(r);
    if ((st = add_anchor(r, name, &number)) != AH_OK)
        return st;
    if (!(list = ah_grow(r->mem, r->levels, &r->levels_cap, r->depth + 1, sizeof *list)))
        return ah_err_nomem(r->err);
    r->levels = list;
    list[r->depth++] = (level){.map = map, .anchor = number};
    ah_buf_char(r->out, map ? '{' : '[');
    return AH_OK;
}

static ah_status close_level(reading *r)
{
    const level *t = top(r);

    ah_buf_char(r->out, t->map ? '}' : ']');
    end_anchor(r, t->anchor);
    r->depth--;
    return AH_OK;
}

static ah_status put_alias(reading *r)
{
    const anchor *a = find_anchor(r, r->event.data.alias.anchor);
    char *to;
    size_t n;

    if (!a)
        return fails(r, "an alias without its anchor");
    if (!a->end)
        return fails(r, "an alias within what it stands for");
    if (wants_key(r))
        return fails(r, "an alias as a key");
    n = a->end - a->start;
    if (++r->aliases > AH_YAML_ALIASES || n > AH_YAML_REPEATED - r->repeated)
        return fails(
            r, "aliases that repeat too much (the limits are 10000 aliases and 1 MiB of JSON)");
    r->repeated += n;
    put_separator(r);
    if (!(to = ah_buf_room(r->out, n)))
        return out_failed(r);
    memcpy(to, r->out->data + a->start, n);
    r->out->len += n;
    return AH_OK;
}

/* -- documents -------------------------------------------------------------------------------- */

static ah_status begin_document(reading *r)
{
    if (r->documents)
        return fails(r, "a second document begins, and one text is one document,");
    r->documents = true;
    return AH_OK;
}

static ah_status take_event(reading *r)
{
    const yaml_event_t *e = &r->event;

    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return begin_document(r);
    case YAML_ALIAS_EVENT:
        return put_alias(r);
    case YAML_SCALAR_EVENT:
        return put_scalar(r);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(r, false, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return open_level(r, true, e->data.mapping_start.anchor, e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_level(r);
    case YAML_STREAM_END_EVENT:
        r->ended = true;
        return AH_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return AH_OK;
}

/* Handles one event. *at is set to its position. */
static ah_status step(reading *r, ah_slice text, yaml_mark_t *at)
{
    enum { LOOK = 1024 };
    ah_status st;

    if (++r->events % LOOK == 0 && ah_interrupted(r->interrupt))
        return ah_err_set(r->err, AH_CANCELLED, "interrupted");
    if (!r->lib.parse(&r->parser, &r->event))
        return no_yaml(r, text);
    *at = r->event.start_mark;
    st = take_event(r);
    r->lib.finish_event(&r->event);
    return st == AH_OK && !ah_buf_ok(r->out) ? out_failed(r) : st;
}

/* Reads to the end or, in a second reading, to the event that writes beyond `until`. */
static ah_status read_events(reading *r, ah_slice text, yaml_mark_t *at)
{
    ah_status st = AH_OK;

    if (!r->lib.initialize(&r->parser))
        return ah_err_nomem(r->err);
    r->lib.set_encoding(&r->parser, YAML_UTF8_ENCODING);
    r->lib.set_input(&r->parser, (const unsigned char *)text.p, text.n);
    while (st == AH_OK && !r->ended && r->out->len - r->start <= r->until)
        st = step(r, text, at);
    if (st == AH_OK && r->ended && r->out->len == r->start)
        ah_buf_str(r->out, "null"); /* an empty text, or only comments */
    r->lib.finish(&r->parser);
    return st;
}

static ah_status read_whole(const reading *like, ah_slice text, size_t until, yaml_mark_t *at)
{
    reading r = *like;
    ah_status st;

    r.until = until;
    st = read_events(&r, text, at);
    for (size_t i = 0; i < r.n_anchors; i++)
        ah_free(r.mem, r.anchors[i].name);
    ah_free(r.mem, r.anchors);
    ah_free(r.mem, r.levels);
    return st;
}

/* Checks for repeated keys, and for aliases that nest too deeply. */
static ah_status check(const reading *r, ah_slice text)
{
    ah_slice value = {r->out->data + r->start, r->out->len - r->start};
    ah_json_fault fault;
    yaml_mark_t at = {0};
    ah_status st = ah_json_check(r->mem, value, AH_JSON_MAX_DEPTH, &fault);

    if (st == AH_NOMEM)
        return ah_err_nomem(r->err);
    if (st == AH_OK)
        return AH_OK;
    ah_buf_reset(r->out, r->start);
    if ((st = read_whole(r, text, fault.offset, &at)) != AH_OK)
        return st;
    return fails_at(r, &at, fault.what);
}

/* libyaml compares each %TAG with all earlier ones, without checking for an interrupt. */
static bool has_many_tags(ah_slice text)
{
    const char *at;
    size_t n = 0;

    while ((at = ah_slice_find(text, ah_slice_of("%TAG"))) != NULL && ++n <= AH_YAML_TAGS)
        text = (ah_slice){at + 1, text.n - (size_t)(at + 1 - text.p)};
    return at != NULL;
}

ah_status ah_yaml_to_json(const ah_mem *mem, ah_slice text, const ah_interrupt *interrupt,
                          ah_buf *out, ah_err *err)
{
    reading r = {.mem = mem, .interrupt = interrupt, .out = out, .start = out->len, .err = err};
    yaml_mark_t at;
    ah_status st = open_library(&r.lib, err);

    if (st != AH_OK)
        return st;
    if (text.n > AH_YAML_MAX)
        return ah_err_set(err, AH_TOOL_VALIDATION,
                          "the text cannot be decoded: it has %zu bytes, the limit is %d", text.n,
                          AH_YAML_MAX);
    if (ah_slice_begins(text,
                        "\xef\xbb\xbf")) /* libyaml would count the byte order mark as a column */
        text = (ah_slice){text.p + 3, text.n - 3};
    if (has_many_tags(text))
        return ah_err_set(err, AH_TOOL_VALIDATION,
                          "the text cannot be decoded: it has %%TAG more than %d times",
                          AH_YAML_TAGS);
    st = read_whole(&r, text, SIZE_MAX, &at);
    return st == AH_OK ? check(&r, text) : st;
}

const char *ah_yaml_version(char *room, size_t size)
{
    library lib;

    if (open_library(&lib, NULL) != AH_OK)
        return "none";
    snprintf(room, size, "%s", lib.version());
    return room;
}

#else

ah_status ah_yaml_to_json(const ah_mem *mem, ah_slice text, const ah_interrupt *interrupt,
                          ah_buf *out, ah_err *err)
{
    (void)mem, (void)text, (void)interrupt, (void)out;
    return ah_err_set(
        err, AH_USAGE,
        "YAML is not in this build: build agenthost where libyaml is (Debian: apt-get "
        "install libyaml-dev)");
}

const char *ah_yaml_version(char *room, size_t size)
{
    (void)room, (void)size;
    return "none";
}

#endif
