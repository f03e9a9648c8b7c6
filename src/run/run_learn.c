/* Learns from refusals that a model can do less than assumed: tools that change in
 * mid-conversation, its own search among deferred tools, strict tools, the schema of the answer,
 * reasoning and its encrypted form. The next request leaves it out, with a warning; only an answer
 * confirms it. */
#include "prompt/output.h"
#include "run/run_state.h"

enum { REFUSED = 400, UNPROCESSABLE = 422, MAX_LEARNED = 512, MAX_NOTE = 4 << 20 };

/* Warns that the model may not do `what` (result.err is the reason), and what is tried instead. */
static void warn_trying(ah_run *run, const char *what, const char *way, const char *instead)
{
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, 2 << 10);
    ah_buf_fmt(&b, "%s/%s may not support %s (%s), trying %s: %s", run->cfg.adapter->provider->data,
               run->cfg.adapter->model->data, what, way, instead, run->result.err.message);
    if (ah_buf_cut_short(&b))
        ah_run_warn(run, ah_buf_slice(&b));
    ah_buf_clear(&b);
}

/* -- features named in a refusal -------------------------------------------------------------- */

/* Words by which servers name what they refuse, and words by which they refuse. */
static const struct refusal {
    unsigned what;       /* AH_MODEL_ */
    const char *told;    /* in the warning */
    const char *word[8]; /* in lower case; the last is NULL */
} refusals[] = {
    {AH_MODEL_ENCRYPTED,
     "encrypted reasoning",
     {"encrypted content", "encrypted_content", "include"}},
    {AH_MODEL_OUTPUT,
     "the schema of its answer",
     {"response_format", "text.format", "json_schema", "output_config.format", "output format",
      "responsejsonschema", "response mime type"}},
    {AH_MODEL_STRICT, "strict tools", {"strict"}},
    {AH_MODEL_THINKS, "how much it is to think", {"reasoning", "effort", "thinking"}},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static const char *const refuses[] = {"not support", "unsupported",    "not permitted",
                                      "not allowed", "unknown",        "unrecognized",
                                      "unexpected",  "not available",  "cannot be used",
                                      "no such",     "not recognized", NULL};

/* Copies the text in lower case, cut to fit. */
static void in_small(const char *text, char *out, size_t size)
{
    size_t n = 0;

    for (; text[n] && n + 1 < size; n++)
        out[n] = ah_lower(text[n]);
    out[n] = '\0';
}

static bool has_one(const char *text, const char *const *words)
{
    while (*words && !strstr(text, *words))
        words++;
    return *words != NULL;
}

/* Returns what the request used and the server refuses by name; NULL: something else. */
static const struct refusal *named_by(const ah_run *run)
{
    char text[sizeof run->result.err.message];
    unsigned asks = ah_wire_asks(run->cfg.wire);

    in_small(run->result.err.message, text, sizeof text);
    if (!has_one(text, refuses))
        return NULL;
    for (int i = 0; i < REFUSALS; i++)
        if (asks & refusals[i].what && has_one(text, refusals[i].word))
            return &refusals[i];
    return NULL;
}

/* Adds a note with the schema for the model, since the wire no longer declares it. */
static bool tell_schema(ah_run *run)
{
    ah_text *entry = NULL;
    ah_buf b;

    if (!run->cfg.output)
        return true;
    ah_buf_init(&b, run->cfg.mem, MAX_NOTE);
    ah_output_ask(run->cfg.output, &b);
    if (ah_buf_ok(&b))
        entry = ah_entry_text(run->cfg.mem, AH_ENTRY_NOTE, ah_buf_slice(&b), ah_run_wall(run));
    ah_buf_clear(&b);
    return ah_transcript_add(run->cfg.transcript, AH_ENTRY_NOTE, entry, NULL) == AH_OK;
}

static bool try_without(ah_run *run)
{
    const struct refusal *r = named_by(run);

    if (!r || (r->what == AH_MODEL_OUTPUT && !tell_schema(run)))
        return false;
    warn_trying(run, "what the request asks for", r->told, "without");
    ah_wire_try_without(run->cfg.wire, r->what);
    return true;
}

/* -- ways to declare tools --------------------------------------------------------------------- */

/* A model that has already answered with a search does not refuse it. */
static bool try_search_here(ah_run *run)
{
    ah_wire *w = run->cfg.wire;

    if (w->searched || w->searching_here || !ah_wire_defers(w))
        return false;
    warn_trying(run, "searching tools",
                w->searching == AH_SEARCH_MODE_OWN ? "provider" : "deferred", "here");
    ah_wire_search_here(w);
    return true;
}

static bool try_append(ah_run *run)
{
    ah_wire *w = run->cfg.wire;

    if (w->trying || !ah_wire_is_native(w))
        return false;
    warn_trying(run, "changes of tools", ah_tool_change_mode_names[w->mode],
                ah_tool_change_mode_names[AH_TOOLS_APPEND]);
    ah_wire_try(w, true, AH_TOOLS_APPEND);
    return true;
}

bool ah_run_try_less(ah_run *run)
{
    const ah_err *err = &run->result.err;
    int status = err->http_status;

    if ((status != REFUSED && status != UNPROCESSABLE) || err->status == AH_CONTEXT_FULL)
        return false;
    return try_without(run) || (status == REFUSED && (try_search_here(run) || try_append(run)));
}

/* -- confirmed facts -------------------------------------------------------------------------- */

/* Writes what was known and what is now confirmed, with members in order. */
static void put_learned(const ah_wire *w, ah_slice known, ah_buf *b)
{
    unsigned lacking = w->trying_without | ah_wire_learned_lacking(known);

    ah_buf_char(b, '{');
    for (int i = 0; i < AH_LACKS; i++)
        if (lacking & ah_lacks[i].what)
            ah_json_add(b, ah_lacks[i].name, ah_slice_of("false"));
    if (w->trying || ah_json_member(known, "tool_change_mode").p)
        ah_json_add(b, "tool_change_mode", ah_slice_of("\"append\""));
    if (w->searching_here || ah_json_member(known, "tool_search").p)
        ah_json_add(b, "tool_search", ah_slice_of("\"here\""));
    ah_buf_char(b, '}');
}

ah_status ah_run_learn(ah_run *run, ah_err *err)
{
    ah_wire *w = run->cfg.wire;
    ah_slice known = run->cfg.transcript->settings.learned;
    ah_setting learned = {"learned", {NULL, 0}};
    ah_status st;
    ah_buf b;

    w->searched = w->searched || ah_wire_defers(w);
    if (!w->trying && !w->searching_here && !w->trying_without)
        return AH_OK;
    ah_buf_init(&b, run->cfg.mem, MAX_LEARNED);
    put_learned(w, known, &b);
    learned.value = ah_buf_slice(&b);
    st = ah_buf_ok(&b) ? ah_run_set(run, &learned, 1, err) : ah_err_nomem(err);
    if (st == AH_OK && run->cfg.models)
        ah_models_learn(run->cfg.models, ah_text_slice(run->cfg.adapter->provider),
                        ah_text_slice(run->cfg.adapter->model), ah_buf_slice(&b));
    ah_buf_clear(&b);
    if (st != AH_OK)
        return st;
    w->trying = w->searching_here = false;
    w->trying_without = 0;
    return AH_OK;
}
