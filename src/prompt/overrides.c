/* Applies overrides to a prompt under construction, and makes the hashes that protect them. */
#include "prompt/overrides.h"

#include <stdio.h>

#include "base/near.h"
#include "prompt/prompt_nodes.h"

enum { MAX_DEFINITION = 8 << 20, HASH_DIGITS = 16 };

/* -- hashes ------------------------------------------------------------------------ */

static void put_optional(ah_buf *b, const char *name, const ah_template *t)
{
    if (!t)
        return;
    ah_buf_fmt(b, "\"%s\":", name);
    ah_json_put_string(b, ah_template_text(t));
    ah_buf_char(b, ',');
}

static const char *visibility_of(const ah_switch *sw)
{
    if (sw->vt)
        return "dynamic";
    return sw->on ? "summary" : "full";
}

/* Appends the parts of a section that can be overridden, as canonical JSON. */
static void put_definition(const ah_section *s, ah_buf *b)
{
    ah_buf_char(b, '{');
    put_optional(b, "summary", s->summary);
    put_optional(b, "template", s->body);
    ah_buf_fmt(b, "\"visibility\":\"%s\"}", visibility_of(&s->summarized));
}

static void put_hash(ah_slice text, char out[HASH_DIGITS + 1])
{
    snprintf(out, HASH_DIGITS + 1, "%016llx", (unsigned long long)ah_slice_hash(text));
}

static bool hash_section(const ah_section *s, char out[HASH_DIGITS + 1])
{
    ah_buf b;
    bool ok;

    ah_buf_init(&b, s->mem, MAX_DEFINITION);
    put_definition(s, &b);
    put_hash(ah_buf_slice(&b), out);
    ok = ah_buf_ok(&b);
    ah_buf_clear(&b);
    return ok;
}

/* Hashes the parts of a tool that its description depends on. Parts for programs only may change
 * under an override. */
static bool hash_tool(const ah_tool *t, char out[HASH_DIGITS + 1])
{
    ah_slice description, name, parameters, strict;
    const ah_json_slot want[] = {{"description", &description},
                                 {"name", &name},
                                 {"parameters", &parameters},
                                 {"strict", &strict}};
    ah_buf b;
    bool ok;

    ah_json_members(ah_text_slice(t->of ? t->of->spec : t->spec), want, 4);
    ah_buf_init(&b, t->mem, MAX_DEFINITION);
    ah_buf_fmt(&b, "{\"description\":%.*s,\"name\":%.*s,\"parameters\":", AH_FMT(description),
               AH_FMT(name));
    ah_buf_put(&b, parameters);
    if (strict.p)
        ah_buf_fmt(&b, ",\"strict\":%.*s", AH_FMT(strict));
    ah_buf_char(&b, '}');
    put_hash(ah_buf_slice(&b), out);
    ok = ah_buf_ok(&b);
    ah_buf_clear(&b);
    return ok;
}

static void put_member(ah_buf *out, bool first, ah_slice name, const char *hash)
{
    ah_buf_str(out, first ? "" : ",");
    ah_json_put_string(out, name);
    ah_buf_fmt(out, ":\"%s\"", hash);
}

void ah_prompt_hashes(const ah_prompt *p, ah_buf *out)
{
    char hash[HASH_DIGITS + 1];
    const ah_tool *t;

    ah_buf_str(out, "{\"sections\":{");
    for (uint32_t i = 0; i < p->n; i++) {
        if (!hash_section(p->node[i].section, hash))
            out->status = AH_NOMEM;
        put_member(out, i == 0, node_path(p, i), hash);
    }
    ah_buf_str(out, "},\"tools\":{");
    for (size_t at = 0, n = 0; (t = ah_registry_next(&p->tools, &at)) != NULL; n++) {
        if (!hash_tool(t, hash))
            out->status = AH_NOMEM;
        put_member(out, n == 0, ah_text_slice(t->name), hash);
    }
    ah_buf_str(out, "}}");
}

/* -- reading ------------------------------------------------------------------------- */

typedef struct reading {
    ah_prompt *p;
    const ah_log *log;
    ah_buf text; /* a string of the file, unescaped */
    ah_err *err;
} reading;

static ah_status refuse(reading *r, const char *what, ah_slice name, const char *why)
{
    return ah_err_set(r->err, AH_PROMPT_VALIDATION, "overrides of '%.*s': %s '%.*s': %s",
                      AH_FMT(ah_prompt_id(r->p)), what, AH_FMT(name), why);
}

static void warn(const reading *r, const char *what, ah_slice name, const char *why)
{
    if (r->log)
        ah_log_put(r->log, AH_LOG_WARNING, "override of %s '%.*s' of prompt '%.*s' not applied: %s",
                   what, AH_FMT(name), AH_FMT(ah_prompt_id(r->p)), why);
}

/* Checks that every member is one of `known` (ends with NULL) and a string. */
static ah_status check_fields(reading *r, const char *what, ah_slice name, ah_slice object,
                              const char *const *known)
{
    ah_json_reader it = ah_json_read(object);
    ah_json_token key = ah_json_next(&it);

    if (key.kind != AH_JSON_OBJECT)
        return refuse(r, what, name, "must be a table of fields");
    for (key = ah_json_next(&it); key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        const char *const *k = known;

        while (*k && !ah_json_token_is(key, *k))
            k++;
        if (!*k)
            return refuse(r, what, name,
                          "unknown field; see hashes() and docs/reference/prompts.md for the form");
        if (ah_json_next(&it).kind != AH_JSON_STRING)
            return refuse(r, what, name, "its fields must be strings");
    }
    return AH_OK;
}

/* True if the override has the original's hash; otherwise logs a warning. */
static bool is_current(const reading *r, const char *what, ah_slice name, ah_slice object,
                       const char *hash)
{
    ah_slice told = ah_json_member(object, "hash");
    char why[128];

    if (told.p && ah_json_string_is(told, hash))
        return true;
    snprintf(why, sizeof why, "%s (now %s)",
             told.p ? "the original has changed since it was written" : "it has no hash", hash);
    warn(r, what, name, why);
    return false;
}

/* -- sections --------------------------------------------------------------------------- */

static ah_status set_template(reading *r, uint32_t i, ah_slice object, const char *field,
                              ah_template **slot)
{
    ah_slice value = ah_json_member(object, field);
    ah_template *t = NULL;
    ah_status st;
    ah_err inner;

    if (!value.p)
        return AH_OK;
    ah_buf_reset(&r->text, 0);
    ah_json_string(value, &r->text);
    if (!ah_buf_ok(&r->text))
        return ah_buf_error(&r->text, "an override", r->err);
    if ((st = ah_template_new(r->p->mem, ah_buf_slice(&r->text), &t, &inner)) == AH_NOMEM)
        return ah_err_nomem(r->err);
    if (st != AH_OK)
        return prompt_refuse(r->p, i, st, r->err, "override: %s: %s", field, inner.message);
    ah_template_unref(*slot);
    *slot = t;
    return AH_OK;
}

static ah_status set_visibility(reading *r, uint32_t i, ah_slice object)
{
    ah_slice value = ah_json_member(object, "visibility");
    bool summary = value.p && ah_json_string_is(value, "summary");

    if (!value.p)
        return AH_OK;
    if (!summary && !ah_json_string_is(value, "full"))
        return prompt_refuse(r->p, i, AH_PROMPT_VALIDATION, r->err,
                             "override: visibility must be \"full\" or \"summary\"");
    r->p->node[i].summarized = (ah_switch){.on = summary};
    return AH_OK;
}

static ah_status override_section(reading *r, ah_slice path, ah_slice object)
{
    static const char *const known[] = {"hash", "template", "summary", "visibility", NULL};
    uint32_t i = prompt_find(r->p, path);
    char hash[HASH_DIGITS + 1];
    ah_status st = check_fields(r, "section", path, object, known);

    if (st != AH_OK)
        return st;
    if (i == NO_NODE || r->p->node[i].section->keeps_words) {
        warn(r, "section", path,
             i == NO_NODE ? "there is no such section" : "it does not accept overrides");
        return AH_OK;
    }
    if (!hash_section(r->p->node[i].section, hash))
        return ah_err_nomem(r->err);
    if (!is_current(r, "section", path, object, hash))
        return AH_OK;
    if ((st = set_template(r, i, object, "template", &r->p->node[i].body)) == AH_OK &&
        (st = set_template(r, i, object, "summary", &r->p->node[i].summary)) == AH_OK)
        st = set_visibility(r, i, object);
    return st;
}

/* -- tools ---------------------------------------------------------------------------------- */

static ah_tool **find_tool(const ah_prompt *p, ah_slice name)
{
    for (size_t i = 0; p->own[i]; i++)
        if (ah_slice_eq(ah_text_slice(p->own[i]->name), name))
            return &p->own[i];
    return NULL;
}

static ah_status describe(reading *r, ah_tool **slot, ah_slice value)
{
    ah_tool *t;
    ah_status st;

    ah_buf_reset(&r->text, 0);
    ah_json_string(value, &r->text);
    if (!ah_buf_ok(&r->text))
        return ah_buf_error(&r->text, "an override", r->err);
    if ((st = ah_tool_describe(*slot, ah_buf_slice(&r->text), &t, r->err)) != AH_OK)
        return st;
    ah_tool_unref(*slot);
    *slot = t;
    return AH_OK;
}

static ah_status override_tool(reading *r, ah_slice name, ah_slice object)
{
    static const char *const known[] = {"hash", "description", NULL};
    ah_tool **slot = find_tool(r->p, name);
    ah_slice value = ah_json_member(object, "description");
    char hash[HASH_DIGITS + 1];
    ah_status st = check_fields(r, "tool", name, object, known);

    if (st != AH_OK)
        return st;
    if (!slot || (*slot)->keeps_words) {
        warn(r, "tool", name, slot ? "it does not accept overrides" : "there is no such tool");
        return AH_OK;
    }
    if (!hash_tool(*slot, hash))
        return ah_err_nomem(r->err);
    if (!value.p || !is_current(r, "tool", name, object, hash))
        return AH_OK;
    return describe(r, slot, value);
}

/* -- all ------------------------------------------------------------------------------------- */

typedef ah_status (*apply_fn)(reading *r, ah_slice name, ah_slice object);

static ah_status each(reading *r, ah_slice object, const char *what, apply_fn apply)
{
    ah_json_reader it = ah_json_read(object);
    ah_json_token key = ah_json_next(&it);
    ah_status st = AH_OK;
    ah_buf name;

    if (!object.p)
        return AH_OK;
    if (key.kind != AH_JSON_OBJECT)
        return refuse(r, "field", ah_slice_of(what), "must be a table by name");
    ah_buf_init(&name, r->p->mem, MAX_DEFINITION);
    for (key = ah_json_next(&it); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_slice value = ah_json_skip(&it, ah_json_next(&it));

        ah_buf_reset(&name, 0);
        ah_json_unescape(key.raw, &name);
        st = ah_buf_ok(&name) ? apply(r, ah_buf_slice(&name), value)
                              : ah_buf_error(&name, "a name in the overrides", r->err);
    }
    ah_buf_clear(&name);
    return st;
}

static ah_status check_kinds(reading *r, ah_slice object)
{
    ah_json_reader it = ah_json_read(object);
    ah_json_token key = ah_json_next(&it);

    if (key.kind != AH_JSON_OBJECT)
        return refuse(r, "value", (ah_slice)AH_LIT(""), "must be a table");
    for (key = ah_json_next(&it); key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        if (!ah_json_token_is(key, "sections") && !ah_json_token_is(key, "tools"))
            return refuse(r, "field", key.raw, "unknown; there are sections and tools");
        ah_json_skip(&it, ah_json_next(&it));
    }
    return AH_OK;
}

ah_status ah_overrides_apply(ah_prompt *p, ah_slice overrides, const ah_log *log, ah_err *err)
{
    reading r = {.p = p, .log = log, .err = err};
    ah_slice mine;
    ah_status st;

    if (ah_json_kind_of(overrides) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_PROMPT_VALIDATION, "overrides: must be a table by \"ns/key\"");
    if (!p->key)
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "overrides: the prompt has no key to find them by");
    mine = ah_json_member(overrides, p->id->data);
    if (!mine.p)
        return AH_OK;
    ah_buf_init(&r.text, p->mem, AH_MAX_TEMPLATE);
    if ((st = check_kinds(&r, mine)) == AH_OK &&
        (st = each(&r, ah_json_member(mine, "sections"), "sections", override_section)) == AH_OK)
        st = each(&r, ah_json_member(mine, "tools"), "tools", override_tool);
    ah_buf_clear(&r.text);
    return st;
}
