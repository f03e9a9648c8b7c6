/* Parameters: finds which of a prompt's given values belong to a section. They are computed when
 * first needed, and kept. */
#include <stdio.h>

#include "base/near.h"
#include "prompt/prompt_nodes.h"

enum { MAX_PARAMS = 16 << 20, MAX_NAME = 1 << 10 };

/* -- names ------------------------------------------------------------------------ */

/* True if a section of [from, end) has a parameter of this name; offers the other names to
 * `near`. */
static bool is_declared(const ah_prompt *p, uint32_t from, uint32_t end, const char *name,
                        ah_near *near)
{
    const ah_schema *last = NULL;

    for (uint32_t i = from; i < end; i++) {
        ah_json_reader r;
        ah_json_token t;

        if (p->node[i].params == last)
            continue;
        last = p->node[i].params;
        r = ah_json_read(ah_section_params_of(last));
        if (ah_json_next(&r).kind != AH_JSON_OBJECT)
            continue;
        for (t = ah_json_next(&r); t.kind == AH_JSON_KEY; t = ah_json_next(&r)) {
            if (ah_json_token_is(t, name))
                return true;
            ah_near_offer(near, t.raw);
            ah_json_skip(&r, ah_json_next(&r));
        }
    }
    return false;
}

/* `of`: the section whose object has the name, or NO_NODE. */
static ah_status refuse_name(const ah_prompt *p, uint32_t of, ah_slice name, const ah_near *near,
                             ah_err *err)
{
    char mean[AH_MAX_PARAM_NAME + 32] = "";

    if (near->best.p)
        snprintf(mean, sizeof mean, " (did you mean '%.*s'?)", AH_FMT(near->best));
    if (of != NO_NODE)
        prompt_refuse(p, of, AH_PROMPT_RENDER, err, "unknown parameter '%.*s'%s", AH_FMT(name),
                      mean);
    else
        ah_err_set(err, AH_PROMPT_RENDER, "prompt: unknown parameter '%.*s'%s", AH_FMT(name), mean);
    if (err)
        ah_json_detail(err, "param", name);
    return AH_PROMPT_RENDER;
}

static ah_status check_name(const ah_prompt *p, uint32_t of, ah_slice name, ah_err *err)
{
    uint32_t from = of == NO_NODE ? 0 : of, end = of == NO_NODE ? p->n : p->node[of].end;
    ah_near near = {.to = name};

    if (is_declared(p, from, end, name.p, &near))
        return AH_OK;
    for (uint32_t i = 0; of == NO_NODE && i < p->n; i++)
        ah_near_offer(&near, node_path(p, i));
    return refuse_name(p, of, name, &near, err);
}

/* Unescapes the key into `scratch`, NUL-terminated; .p NULL: not a valid name. */
static ah_slice name_of(ah_json_token key, ah_buf *scratch)
{
    ah_buf_reset(scratch, 0);
    ah_json_unescape(key.raw, scratch);
    ah_buf_char(scratch, '\0');
    return ah_buf_ok(scratch) ? (ah_slice){scratch->data, scratch->len - 1} : (ah_slice){NULL, 0};
}

/* Checks all names of an object given for node `of`, or for all nodes (NO_NODE); of the latter,
 * members that are objects and named as a section are set aside for it. */
static ah_status scan(ah_binding *b, ah_slice object, uint32_t of, ah_buf *scratch, ah_err *err)
{
    ah_json_reader r = ah_json_read(object);
    ah_json_token key = ah_json_next(&r);
    ah_status st = AH_OK;

    for (key = ah_json_next(&r); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_json_token t = ah_json_next(&r);
        ah_slice value = ah_json_skip(&r, t), name = name_of(key, scratch);
        uint32_t i =
            of == NO_NODE && t.kind == AH_JSON_OBJECT ? prompt_find(b->prompt, name) : NO_NODE;

        if (!name.p)
            return ah_buf_error(scratch, "the name of a parameter", err);
        if (i != NO_NODE)
            b->own[i] = value;
        else
            st = check_name(b->prompt, of, name, err);
    }
    return st;
}

ah_status binding_scan(ah_binding *b, ah_err *err)
{
    ah_buf scratch;
    ah_status st;

    ah_buf_init(&scratch, b->mem, MAX_NAME);
    st = scan(b, ah_text_slice(b->given), NO_NODE, &scratch, err);
    for (uint32_t i = 0; st == AH_OK && i < b->prompt->n; i++)
        if (b->own[i].p)
            st = scan(b, b->own[i], i, &scratch, err);
    ah_buf_clear(&scratch);
    if (st == AH_BUDGET && err)
        err->status = st = AH_PROMPT_RENDER;
    return st;
}

/* -- values -------------------------------------------------------------------------- */

/* Returns the value given under this name for the node, else for its ancestors, else for all; .p
 * NULL: none. */
static ah_slice given(const ah_binding *b, uint32_t i, const char *name)
{
    ah_slice v;

    for (; i != NO_NODE; i = b->prompt->node[i].parent)
        if (b->own[i].p && (v = ah_json_member(b->own[i], name)).p)
            return v;
    v = ah_json_member(ah_text_slice(b->given), name);
    if (v.p && ah_json_kind_of(v) == AH_JSON_OBJECT) {
        uint32_t section = prompt_find(b->prompt, ah_slice_of(name));

        if (section != NO_NODE && b->own[section].p == v.p)
            return (ah_slice){NULL, 0};
    }
    return v;
}

/* Collects the given members that the node's schema names. */
static ah_status gather(const ah_binding *b, uint32_t i, ah_buf *out, ah_buf *scratch, ah_err *err)
{
    ah_json_reader r = ah_json_read(ah_section_params_of(b->prompt->node[i].params));
    ah_json_token key = ah_json_next(&r);
    bool first = true;

    ah_buf_char(out, '{');
    if (key.kind == AH_JSON_OBJECT)
        for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
            ah_slice name = name_of(key, scratch), value;

            ah_json_skip(&r, ah_json_next(&r));
            if (!name.p)
                return ah_buf_error(scratch, "the name of a parameter", err);
            value = given(b, i, name.p);
            if (!value.p)
                continue;
            ah_buf_str(out, first ? "" : ",");
            first = false;
            ah_json_put_string(out, name);
            ah_buf_char(out, ':');
            ah_buf_put(out, value);
            if (!ah_buf_ok(out))
                break;
        }
    ah_buf_char(out, '}');
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "the parameters", err);
}

/* Puts the name that a fault is about: the first part of its pointer. */
static void put_param(const ah_fault *f, ah_err *err)
{
    ah_slice name = f->pointer;
    const char *slash;

    if (name.n < 2)
        return;
    name = (ah_slice){name.p + 1, name.n - 1};
    if ((slash = memchr(name.p, '/', name.n)))
        name.n = (size_t)(slash - name.p);
    ah_json_detail(err, "param", name);
}

static ah_status refuse_values(const ah_binding *b, uint32_t i, const ah_faults *faults,
                               ah_err *err)
{
    ah_buf words;

    ah_buf_init(&words, b->mem, 1 << 12);
    ah_faults_print(faults, &words);
    prompt_refuse(b->prompt, i, AH_PROMPT_RENDER, err, "parameters: %.*s",
                  AH_FMT(ah_buf_slice(&words)));
    if (err)
        put_param(&faults->item[0], err);
    ah_buf_clear(&words);
    return AH_PROMPT_RENDER;
}

static ah_status check(ah_binding *b, uint32_t i, ah_slice object, ah_err *err)
{
    ah_faults faults;
    ah_status st;
    ah_buf full;

    ah_faults_init(&faults, b->mem);
    ah_buf_init(&full, b->mem, MAX_PARAMS);
    st = ah_schema_check(b->prompt->node[i].params, object, AH_EXTRA_SCHEMA, &faults, &full);
    if (st == AH_NOMEM)
        ah_err_nomem(err);
    else if (st != AH_OK)
        st = prompt_refuse(b->prompt, i, AH_PROMPT_RENDER, err, "its parameters are too large");
    else if (faults.n)
        st = refuse_values(b, i, &faults, err);
    else
        st = ah_text_from_buf(&full, "the parameters", &b->value[i], err);
    ah_buf_clear(&full);
    ah_faults_clear(&faults);
    return st;
}

static ah_status make_values(ah_binding *b, uint32_t i, ah_err *err)
{
    ah_buf object, scratch;
    ah_status st;

    ah_buf_init(&object, b->mem, MAX_PARAMS);
    ah_buf_init(&scratch, b->mem, MAX_NAME);
    st = gather(b, i, &object, &scratch, err);
    if (st == AH_OK)
        st = check(b, i, ah_buf_slice(&object), err);
    else if (st != AH_NOMEM)
        st = prompt_refuse(b->prompt, i, AH_PROMPT_RENDER, err, "its parameters are too large");
    ah_buf_clear(&object);
    ah_buf_clear(&scratch);
    return st;
}

ah_status binding_values(ah_binding *b, uint32_t i, ah_slice *out, ah_err *err)
{
    const prompt_node *node = b->prompt->node;
    ah_status st = AH_OK;

    while (node[i].parent != NO_NODE && !node[i].section->params && !b->own[i].p)
        i = node[i].parent; /* its ancestor has the same */
    if (node[i].params && !b->value[i])
        st = make_values(b, i, err);
    *out = node[i].params && b->value[i] ? ah_text_slice(b->value[i]) : ah_slice_of("{}");
    return st;
}
