/* Classes of entities, and the names of their instances' tools (seed 001, Tool Naming Strategy:
 * {prefix}_{instanceId}_{methodName}). */
#include "model/entity.h"

#include <stdio.h>

enum { MAX_NAME = 64, HASH = 8 /* hex digits */ };

void ah_entity_clear(ah_entity *e)
{
    ah_entity_class_unref(e->of);
    ah_text_unref(e->id);
    ah_value_release(&e->instance);
    *e = (ah_entity){0};
}

/* -- classes ------------------------------------------------------------------------- */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static ah_status check_prefix(ah_slice name, ah_slice prefix, ah_err *err)
{
    bool ok = prefix.n >= 1 && prefix.n <= AH_ENTITY_PREFIX;

    for (size_t i = 0; ok && i < prefix.n; i++)
        ok = is_letter_or_digit(prefix.p[i]) || prefix.p[i] == '_' || prefix.p[i] == '-';
    if (ok && (ah_slice_is(prefix, "planning") || ah_tool_name_is_ours(prefix)))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "entity '%.*s': its tools would have reserved names, '%.*s_...': give it "
                          "another prefix",
                          AH_FMT(name), AH_FMT(prefix));
    if (ok)
        return AH_OK;
    return ah_err_set(
        err, AH_PROMPT_VALIDATION,
        "entity '%.*s': prefix must be 1 to %d of a-z, A-Z, 0-9, _ and -, found '%.*s'",
        AH_FMT(name), AH_ENTITY_PREFIX, AH_FMT(prefix));
}

static ah_status check_name(ah_slice name, ah_err *err)
{
    bool ok = name.n >= 1 && name.n <= MAX_NAME && !(name.p[0] >= '0' && name.p[0] <= '9');

    for (size_t i = 0; ok && i < name.n; i++)
        ok = is_letter_or_digit(name.p[i]) || name.p[i] == '_';
    if (ok)
        return AH_OK;
    return ah_err_set(
        err, AH_PROMPT_VALIDATION,
        "entity: name must be 1 to %d of a-z, A-Z, 0-9 and _ that begin with no digit, "
        "found '%.*s'",
        MAX_NAME, AH_FMT(name));
}

static ah_slice lower(ah_slice name, char *to)
{
    for (size_t i = 0; i < name.n; i++)
        to[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] | 0x20) : name.p[i];
    return (ah_slice){to, name.n};
}

ah_status ah_entity_class_new(const ah_mem *mem, ah_slice name, ah_slice prefix,
                              const ah_entity_vt *vt, ah_entity_class **out, ah_err *err)
{
    char small[MAX_NAME];
    ah_entity_class *c;
    ah_status st = check_name(name, err);

    if (st == AH_OK && !prefix.n)
        prefix = lower(name, small);
    if (st == AH_OK)
        st = check_prefix(name, prefix, err);
    if (st != AH_OK)
        return st;
    if (!(c = ah_alloc(mem, sizeof *c)))
        return ah_err_nomem(err);
    *c = (ah_entity_class){.mem = mem, .refs = 1, .vt = vt};
    c->name = ah_text_new(mem, name);
    c->prefix = ah_text_new(mem, prefix);
    if (c->name && c->prefix) {
        *out = c;
        return AH_OK;
    }
    ah_entity_class_unref(c);
    return ah_err_nomem(err);
}

ah_entity_class *ah_entity_class_ref(ah_entity_class *c)
{
    if (c)
        c->refs++;
    return c;
}

void ah_entity_class_unref(ah_entity_class *c)
{
    if (!c || --c->refs > 0)
        return;
    for (size_t i = 0; i < c->n; i++)
        ah_tool_unref(c->method[i]);
    ah_free(c->mem, c->method);
    ah_text_unref(c->name);
    ah_text_unref(c->prefix);
    ah_free(c->mem, c);
}

ah_status ah_entity_class_add(ah_entity_class *c, ah_tool *method, ah_err *err)
{
    ah_tool **grown;

    if (c->prefix->len + method->name->len > AH_ENTITY_NAMES)
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "entity '%s': the prefix '%s' and the name '%s' have %zu characters "
                          "together, and may have %d: an id must fit between them",
                          c->name->data, c->prefix->data, method->name->data,
                          c->prefix->len + method->name->len, AH_ENTITY_NAMES);
    for (size_t i = 0; i < c->n; i++)
        if (ah_slice_eq(ah_text_slice(c->method[i]->name), ah_text_slice(method->name)))
            return ah_err_set(err, AH_PROMPT_VALIDATION, "entity '%s': tool '%s' is declared twice",
                              c->name->data, method->name->data);
    if (!(grown = ah_grow(c->mem, c->method, &c->cap, c->n + 1, sizeof *grown)))
        return ah_err_nomem(err);
    c->method = grown;
    c->method[c->n++] = ah_tool_ref(method);
    return AH_OK;
}

/* -- names --------------------------------------------------------------------------------- */

static void put_hash(ah_slice s, char out[HASH + 1])
{
    snprintf(out, HASH + 1, "%08x", (unsigned)(ah_slice_hash(s) & 0xffffffffu));
}

void ah_entity_stem(const ah_entity_class *c, ah_slice id, size_t k, ah_buf *out)
{
    char hash[HASH + 1];
    size_t start;

    ah_buf_put(out, ah_text_slice(c->prefix));
    ah_buf_char(out, '_');
    start = out->len;
    for (size_t i = 0; i < id.n; i++)
        if (is_letter_or_digit(id.p[i]))
            ah_buf_char(out, id.p[i]);
    put_hash(id, hash);
    if (out->len == start)
        ah_buf_str(out, hash);
    if (k > 1)
        ah_buf_fmt(out, "_%zu", k);
}

ah_slice ah_entity_tool_name(const ah_entity_class *c, size_t method, ah_slice stem,
                             char out[AH_ENTITY_TOOL_NAME])
{
    ah_slice last = ah_text_slice(c->method[method]->name);
    size_t room = AH_ENTITY_TOOL_NAME - 2 - last.n;
    char hash[HASH + 1] = "";
    size_t n;

    if (stem.n > room) {
        put_hash(stem, hash);
        stem.n = room - HASH;
    }
    n = ah_print(out, AH_ENTITY_TOOL_NAME, "%.*s%s_%.*s", AH_FMT(stem), hash, AH_FMT(last));
    return (ah_slice){out, n};
}
