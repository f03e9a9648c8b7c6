/* Makes tools, completely or not at all: checks names and descriptions, and makes the JSON for
 * the model once. registry.c keeps the tools of a conversation, run/call.c calls them. */
#include "model/tool.h"

#include "model/tool_examples.h"
#include "model/tool_spec.h"

enum { MAX_NAME = 64, MAX_DESCRIPTION = 200, MAX_WORDS = 1 << 20 };

const char *const ah_on_lost_names[] = {"tell", "retry", "ask", "function", NULL};

bool ah_tool_name_is_ours(ah_slice name)
{
    static const char *const ours[] = {"read_section", "pick_tools", "search_tools", "call_tool"};

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ah_slice_is(name, ours[i]))
            return true;
    return ah_slice_begins(name, "planning_");
}

static ah_status check_owner(ah_slice name, bool ours, ah_err *err)
{
    if (ours || !ah_tool_name_is_ours(name))
        return AH_OK;
    ah_err_set(err, AH_PROMPT_VALIDATION,
               "tool: the name '%.*s' is reserved (read_section, pick_tools, search_tools, "
               "call_tool and all that begin with planning_): give it another one",
               AH_FMT(name));
    if (err)
        ah_json_detail(err, "tool", name);
    return AH_PROMPT_VALIDATION;
}

static bool name_char(char c, bool any_case)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           (any_case && c >= 'A' && c <= 'Z');
}

static bool is_name(ah_slice name, bool any_case)
{
    bool ok = name.n >= 1 && name.n <= MAX_NAME;

    for (size_t i = 0; ok && i < name.n; i++)
        ok = name_char(name.p[i], any_case);
    return ok;
}

/* Suggests search_customer for searchCustomer, find_it for "Find it"; false if that is not a
 * name either. */
static bool suggest(ah_slice name, char out[MAX_NAME + 1])
{
    ah_slice made = {.p = out};

    for (size_t i = 0; i < name.n && made.n + 2 <= MAX_NAME; i++) {
        char c = name.p[i];
        bool upper = c >= 'A' && c <= 'Z', low = i && name.p[i - 1] >= 'a' && name.p[i - 1] <= 'z';

        if (upper && low)
            out[made.n++] = '_';
        out[made.n++] = upper ? (char)(c - 'A' + 'a') : c == ' ' || c == '.' ? '_' : c;
    }
    out[made.n] = 0;
    return is_name(made, false);
}

static ah_status check_name(ah_slice name, bool any_case, ah_err *err)
{
    char other[MAX_NAME + 1];
    bool meant;

    if (is_name(name, any_case))
        return AH_OK;
    meant = name.n < MAX_NAME && suggest(name, other);
    return ah_err_set(err, AH_PROMPT_VALIDATION,
                      "tool: name '%.*s' must be 1 to 64 of a-z, %s0-9, _ and -%s%s%s",
                      AH_FMT(name), any_case ? "A-Z, " : "", meant ? "; write '" : "",
                      meant ? other : "", meant ? "'" : "");
}

static ah_status check_descriptions(const ah_tool_def *def, ah_slice brief, ah_err *err)
{
    if (brief.n < 1 || brief.n > MAX_DESCRIPTION)
        return ah_err_set(
            err, AH_PROMPT_VALIDATION,
            "tool '%.*s': description must have 1 to %d characters, found %zu (longer texts: "
            "full_description)",
            AH_FMT(def->name), MAX_DESCRIPTION, brief.n);
    for (size_t i = 0; i < brief.n; i++)
        if ((unsigned char)brief.p[i] >= 0x7f || (unsigned char)brief.p[i] < 0x20)
            return ah_err_set(
                err, AH_PROMPT_VALIDATION,
                "tool '%.*s': description must be printable ASCII, byte %zu is not (other "
                "characters: full_description)",
                AH_FMT(def->name), i + 1);
    if (def->full_description.n > AH_TOOL_MAX_DESCRIPTION || !ah_utf8_valid(def->full_description))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "tool '%.*s': full_description must be UTF-8 of at most %d bytes",
                          AH_FMT(def->name), AH_TOOL_MAX_DESCRIPTION);
    if (def->version.p &&
        (def->version.n < 1 || def->version.n > AH_TOOL_VERSION || !ah_utf8_valid(def->version)))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "tool '%.*s': version must be UTF-8 of 1 to %d bytes, found %zu",
                          AH_FMT(def->name), AH_TOOL_VERSION, def->version.n);
    return AH_OK;
}

static ah_status no_params(const ah_mem *mem, ah_schema **out, ah_err *err)
{
    return ah_schema_compile(
        mem, ah_slice_of("{\"additionalProperties\":false,\"properties\":{},\"type\":\"object\"}"),
        out, err);
}

static ah_status make_spec(ah_tool *t, ah_slice description, ah_err *err)
{
    return ah_spec_make(t, description, ah_text_slice(ah_schema_text(t->params)), &t->spec, err);
}

/* False: out of memory. */
static bool keep(const ah_tool *t, ah_slice given, ah_text **out)
{
    return !given.p || (*out = ah_text_new(t->mem, given)) != NULL;
}

static ah_status fill(ah_tool *t, const ah_tool_def *def, ah_slice brief, ah_err *err)
{
    ah_status st = AH_OK;

    if (!(t->name = ah_text_new(t->mem, def->name)) || !(t->brief = ah_text_new(t->mem, brief)))
        return ah_err_nomem(err);
    if (def->params)
        t->params = ah_schema_ref(def->params);
    else
        st = no_params(t->mem, &t->params, err);
    if (def->result)
        t->result = ah_schema_ref(def->result);
    if (!keep(t, def->result_type, &t->result_type) ||
        !keep(t, def->params_type, &t->params_type) || !keep(t, def->place, &t->place) ||
        !keep(t, def->version, &t->version) || !keep(t, def->examples, &t->examples))
        return ah_err_nomem(err);
    if (st == AH_OK && t->examples)
        st = ah_tool_check_examples(t, def->examples, err);
    return st == AH_OK ? make_spec(t, def->full_description.n ? def->full_description : brief, err)
                       : st;
}

ah_status ah_tool_new(const ah_mem *mem, const ah_tool_def *def, ah_tool **out, ah_err *err)
{
    ah_slice brief = ah_slice_trim(def->description);
    ah_status st;
    ah_tool *t;

    if ((st = check_name(def->name, def->any_case, err)) != AH_OK ||
        (st = check_owner(def->name, def->ours || def->any_case, err)) != AH_OK ||
        (st = check_descriptions(def, brief, err)) != AH_OK)
        return st;
    if (def->params && !ah_schema_is_object(def->params))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "tool '%.*s': the parameters' schema must have type object",
                          AH_FMT(def->name));
    if (!(t = ah_alloc(mem, sizeof *t)))
        return ah_err_nomem(err);
    *t = (ah_tool){.mem = mem,
                   .refs = 1,
                   .parallel = def->parallel,
                   .coerce = def->coerce,
                   .no_handler = def->no_handler,
                   .direct = def->direct,
                   .background = def->background,
                   .durable = def->durable,
                   .on_lost = def->on_lost,
                   .keeps_words = def->keeps_words,
                   .keeps_full = def->keeps_full,
                   .strict = def->strict,
                   .timeout_ms = def->timeout_ms,
                   .memory = def->memory ? def->memory : AH_TOOL_MEMORY,
                   .max_result = def->max_result ? def->max_result : AH_TOOL_RESULT,
                   .vt = def->vt};
    memcpy(t->says, def->says, sizeof t->says);
    if ((st = fill(t, def, brief, err)) != AH_OK) {
        ah_tool_unref(t);
        return st;
    }
    t->handler = def->handler;
    *out = t;
    return AH_OK;
}

ah_status ah_tool_stale(const ah_mem *mem, ah_slice spec, ah_tool **out, ah_err *err)
{
    ah_tool *t = ah_alloc(mem, sizeof *t);
    ah_status st = t ? AH_OK : ah_err_nomem(err);

    if (!t)
        return st;
    *t = (ah_tool){.mem = mem, .refs = 1, .no_handler = true, .stale = true};
    t->name = ah_text_new(mem, ah_json_inside(ah_json_member(spec, "name")));
    t->spec = ah_text_new(mem, spec);
    if (!t->name || !t->spec)
        st = ah_err_nomem(err);
    else
        st = no_params(mem, &t->params, err);
    if (st == AH_OK)
        *out = t;
    else
        ah_tool_unref(t);
    return st;
}

void ah_value_release(ah_value *v)
{
    if (v->vt)
        v->vt->release(v->p);
    *v = (ah_value){0};
}

/* Returns a copy without name, specification and removal text, and without a handler. */
static ah_tool *share(const ah_tool *t)
{
    ah_tool *copy = ah_alloc(t->mem, sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *t;
    copy->refs = 1;
    copy->name = copy->spec = copy->gone = NULL;
    copy->of = copy->full = NULL;
    copy->brief = ah_text_ref(t->brief);
    copy->examples = ah_text_ref(t->examples);
    copy->result_type = ah_text_ref(t->result_type);
    copy->params_type = ah_text_ref(t->params_type);
    copy->place = ah_text_ref(t->place);
    copy->version = ah_text_ref(t->version);
    copy->params = ah_schema_ref(t->params);
    copy->result = t->result ? ah_schema_ref(t->result) : NULL;
    return copy;
}

/* Returns a copy without the specification, with the handler of `by`. NULL: out of memory. */
static ah_tool *copy_of(const ah_tool *t, ah_tool *by)
{
    ah_tool *copy = share(t);

    if (!copy)
        return NULL;
    copy->name = ah_text_ref(t->name);
    copy->gone = ah_text_ref(t->gone);
    copy->of = ah_tool_ref(by);
    copy->full = ah_tool_ref(t->full);
    return copy;
}

/* Makes both descriptions with `aside` at the end, and the specification under the tool's own
 * name. */
static ah_status make_spec_as(ah_tool *t, ah_slice spec, ah_slice aside, ah_err *err)
{
    ah_text *brief = NULL;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, t->mem, MAX_WORDS);
    ah_buf_put(&b, ah_text_slice(t->brief));
    ah_buf_put(&b, aside);
    if ((st = ah_text_from_buf(&b, "description", &brief, err)) == AH_OK) {
        ah_text_set(&t->brief, brief);
        ah_buf_reset(&b, 0);
        ah_json_string(ah_json_member(spec, "description"), &b);
        ah_buf_put(&b, aside);
        st = ah_buf_ok(&b) ? make_spec(t, ah_buf_slice(&b), err)
                           : ah_buf_error(&b, "description", err);
    }
    ah_buf_clear(&b);
    return st;
}

ah_status ah_tool_derive(ah_tool *t, const ah_tool_as *as, ah_tool **out, ah_err *err)
{
    ah_status st = check_name(as->name, true, err);
    ah_tool *made;

    if (st != AH_OK || (st = check_owner(as->name, false, err)) != AH_OK)
        return st;
    if (!(made = share(t)))
        return ah_err_nomem(err);
    made->vt = as->vt;
    made->handler = (ah_value){0};
    made->gone = ah_text_ref(as->gone);
    made->name = ah_text_new(t->mem, as->name);
    st =
        made->name ? make_spec_as(made, ah_text_slice(t->spec), as->aside, err) : ah_err_nomem(err);
    if (st != AH_OK) {
        ah_tool_unref(made);
        return st;
    }
    made->handler = as->handler;
    *out = made;
    return AH_OK;
}

static void release_text(void *p)
{
    ah_text_unref(p);
}

static const struct ah_value_vt json_vt = {.release = release_text};

ah_value ah_value_json(ah_text *json)
{
    return (ah_value){&json_vt, json};
}

bool ah_value_is_json(const ah_value *v)
{
    return v->vt == &json_vt;
}

ah_status ah_tool_describe(ah_tool *t, ah_slice description, ah_tool **out, ah_err *err)
{
    ah_status st = AH_OK;
    ah_tool *copy;
    ah_text *brief;

    if (description.n < 1 || description.n > AH_TOOL_MAX_DESCRIPTION || !ah_utf8_valid(description))
        return ah_err_set(err, AH_PROMPT_VALIDATION,
                          "tool '%s': a description must be UTF-8 of 1 to %d bytes", t->name->data,
                          AH_TOOL_MAX_DESCRIPTION);
    if (!(copy = copy_of(t, t)))
        return ah_err_nomem(err);
    if (description.n <= MAX_DESCRIPTION) {
        if (!(brief = ah_text_new(t->mem, description)))
            st = ah_err_nomem(err);
        else
            ah_text_set(&copy->brief, brief);
    }
    if (st == AH_OK)
        st = make_spec(copy, description, err);
    if (st == AH_OK)
        *out = copy;
    else
        ah_tool_unref(copy);
    return st;
}

ah_status ah_tool_brief(ah_tool *t, ah_tool **out, ah_err *err)
{
    ah_tool *copy;
    ah_status st;

    if (t->keeps_full || t->full || t->stale) {
        *out = ah_tool_ref(t);
        return AH_OK;
    }
    if (!(copy = copy_of(t, t)))
        return ah_err_nomem(err);
    copy->full = ah_tool_ref(t);
    st = ah_spec_make(copy, ah_text_slice(t->brief),
                      ah_slice_of("{\"properties\":{},\"type\":\"object\"}"), &copy->spec, err);
    if (st == AH_OK)
        *out = copy;
    else
        ah_tool_unref(copy);
    return st;
}

ah_status ah_tool_run_by(ah_tool *t, ah_tool *other, ah_tool **out, ah_err *err)
{
    ah_tool *copy = copy_of(t, other);

    if (!copy)
        return ah_err_nomem(err);
    copy->spec = ah_text_ref(t->spec);
    copy->no_handler = other->no_handler;
    copy->vt = other->vt;
    copy->handler = other->handler;
    *out = copy;
    return AH_OK;
}

ah_tool *ah_tool_ref(ah_tool *t)
{
    if (t)
        t->refs++;
    return t;
}

void ah_tool_unref(ah_tool *t)
{
    if (!t || --t->refs > 0)
        return;
    if (t->of)
        ah_tool_unref(t->of);
    else
        ah_value_release(&t->handler);
    ah_tool_unref(t->full);
    ah_schema_unref(t->params);
    ah_schema_unref(t->result);
    ah_text_unref(t->result_type);
    ah_text_unref(t->params_type);
    ah_text_unref(t->place);
    ah_text_unref(t->version);
    ah_text_unref(t->name);
    ah_text_unref(t->brief);
    ah_text_unref(t->spec);
    ah_text_unref(t->examples);
    ah_text_unref(t->gone);
    ah_free(t->mem, t);
}
