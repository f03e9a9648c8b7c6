/* One text per tool is made and kept. Everything else here reads that text, because a loaded
 * conversation has only such texts of its tools. */
#include "model/tool_spec.h"

enum { MAX_SPEC = 8 << 20 };

const char *const ah_annotation_names[] = {"destructive", "idempotent", "open_world",
                                           "read_only",   "untrusted",  NULL};

/* -- making ----------------------------------------------------------------------- */

/* Appends the annotations that are set, if any. */
static void put_annotations(const ah_tool *t, ah_buf *b)
{
    size_t n = 0;

    for (int i = 0; i < AH_ANNOTATIONS; i++)
        if (t->says[i] != AH_UNSAID)
            ah_buf_fmt(b, "%s\"%s\":%s", n++ ? "," : "\"annotations\":{", ah_annotation_names[i],
                       t->says[i] == AH_YES ? "true" : "false");
    ah_buf_str(b, n ? "}," : "");
}

/* The full specification stays in the transcript, so that later changes of it are noticed. */
static void put_rest(const ah_tool *t, ah_buf *b)
{
    if (t->full)
        ah_buf_fmt(b, ",\"full\":%.*s", AH_FMT(ah_text_slice(t->full->spec)));
    else if (t->examples)
        ah_buf_fmt(b, ",\"examples\":%.*s", AH_FMT(ah_text_slice(t->examples)));
}

ah_status ah_spec_make(const ah_tool *t, ah_slice description, ah_slice params, ah_text **out,
                       ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, t->mem, MAX_SPEC);
    ah_buf_char(&b, '{');
    put_annotations(t, &b);
    ah_buf_str(&b, "\"description\":");
    ah_json_put_string(&b, description);
    put_rest(t, &b);
    ah_buf_str(&b, ",\"name\":");
    ah_json_put_string(&b, ah_text_slice(t->name));
    ah_buf_str(&b, ",\"parameters\":");
    ah_buf_put(&b, params);
    if (t->strict != AH_UNSAID)
        ah_buf_fmt(&b, ",\"strict\":%s", t->strict == AH_YES ? "true" : "false");
    if (t->version) {
        ah_buf_str(&b, ",\"version\":");
        ah_json_put_string(&b, ah_text_slice(t->version));
    }
    ah_buf_char(&b, '}');
    st = ah_text_from_buf(&b, "tool specification", out, err);
    ah_buf_clear(&b);
    return st;
}

/* -- telling ------------------------------------------------------------------------ */

/* Appends "- DESCRIPTION: INPUT -> OUTPUT"; text from a file is not changed. */
static void put_example(ah_slice example, ah_buf *out)
{
    ah_slice said, input, output;
    const ah_json_slot want[] = {{"description", &said}, {"input", &input}, {"output", &output}};

    ah_json_members(example, want, 3);
    ah_buf_str(out, "\n- ");
    if (ah_json_kind_of(said) == AH_JSON_STRING) {
        ah_json_string(said, out);
        ah_buf_str(out, ": ");
    }
    ah_buf_put(out, input.p ? input : ah_slice_of("{}"));
    if (output.p)
        ah_buf_fmt(out, " -> %.*s", AH_FMT(output));
}

static size_t put_examples_of(ah_slice examples, ah_buf *out)
{
    ah_json_reader r = ah_json_read(examples);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    if (t.kind != AH_JSON_ARRAY)
        return 0;
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_buf_str(out, n++ ? "" : "\n\nExamples:");
        put_example(ah_json_skip(&r, t), out);
    }
    return n;
}

bool ah_spec_put_description(const char *before, ah_slice spec, ah_buf *out)
{
    ah_slice description, examples;
    const ah_json_slot want[] = {{"description", &description}, {"examples", &examples}};
    ah_buf text;

    ah_json_members(spec, want, 2);
    if (!description.p)
        return false;
    ah_buf_str(out, before);
    if (!examples.p) {
        ah_buf_put(out, description);
        return true;
    }
    ah_buf_init(&text, out->mem, MAX_SPEC);
    ah_json_string(description, &text);
    put_examples_of(examples, &text);
    ah_json_put_string(out, ah_buf_slice(&text));
    if (!ah_buf_ok(&text))
        out->status = text.status;
    ah_buf_clear(&text);
    return true;
}

static void put_told(ah_slice spec, ah_slice annotations, ah_buf *out)
{
    ah_slice name, parameters, strict;
    const ah_json_slot want[] = {{"name", &name}, {"parameters", &parameters}, {"strict", &strict}};

    ah_json_members(spec, want, 3);
    ah_buf_char(out, '{');
    if (annotations.p)
        ah_buf_fmt(out, "\"annotations\":%.*s,", AH_FMT(annotations));
    if (ah_spec_put_description("\"description\":", spec, out))
        ah_buf_char(out, ',');
    ah_buf_fmt(out, "\"name\":%.*s,\"parameters\":", AH_FMT(name));
    ah_buf_put(out, parameters);
    if (strict.p)
        ah_buf_fmt(out, ",\"strict\":%.*s", AH_FMT(strict));
    ah_buf_char(out, '}');
}

void ah_spec_put_told(ah_slice spec, ah_buf *out)
{
    put_told(spec, (ah_slice){NULL, 0}, out);
}

void ah_spec_put_annotated(ah_slice spec, ah_buf *out)
{
    put_told(spec, ah_json_member(spec, "annotations"), out);
}

void ah_spec_put_told_list(ah_slice specs, ah_buf *out)
{
    ah_json_reader r = ah_json_read(specs);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    ah_buf_char(out, '[');
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_buf_str(out, n++ ? "," : "");
        ah_spec_put_told(ah_json_skip(&r, t), out);
    }
    ah_buf_char(out, ']');
}

/* -- comparing ----------------------------------------------------------------------- */

/* The members that are compared: the first `TOLD` ones go to a model; the very first is
 * AH_SPEC_DESCRIPTION. */
static const char *const members[] = {"description", "parameters",  "examples",
                                      "strict",      "annotations", "version"};

enum { MEMBERS = sizeof members / sizeof *members, TOLD = 4 };

/* Returns the set of the first n members that differ. */
static unsigned differences(ah_slice was, ah_slice now, unsigned n)
{
    unsigned set = 0;

    for (unsigned i = 0; i < n; i++)
        if (!ah_slice_eq(ah_json_member(was, members[i]), ah_json_member(now, members[i])))
            set |= 1u << i;
    return set;
}

unsigned ah_spec_differences(ah_slice was, ah_slice now)
{
    ah_slice full_was, full_now;
    unsigned set;

    if (ah_slice_eq(was, now))
        return 0;
    set = differences(was, now, MEMBERS);
    full_was = ah_json_member(was, "full");
    full_now = ah_json_member(now, "full");
    return full_was.p && full_now.p ? set | ah_spec_differences(full_was, full_now) : set;
}

bool ah_spec_tells_alike(ah_slice a, ah_slice b)
{
    return ah_slice_eq(a, b) || differences(a, b, TOLD) == 0;
}

void ah_spec_put_differences(unsigned set, ah_buf *out)
{
    size_t n = 0;

    for (unsigned i = 0; i < MEMBERS; i++)
        if (set >> i & 1)
            ah_buf_fmt(out, "%s%s", n++ ? ", " : "", members[i]);
}
