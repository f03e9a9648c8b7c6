/* The options of a request that the `claude` command takes; see claude.h. It has no way to set the
 * others, and they are refused rather than left out: it is not for us to say that they do not
 * matter. Options of one provider only (docs/lua.md) mean nothing here, as everywhere else. */
#include "wire/claude.h"

static ah_status refuse(ah_slice name, const char *why, ah_err *err)
{
    ah_err_set(err, AH_USAGE, "options: %.*s %s", name.n > 64 ? 64 : AH_FMT(name), why);
    err->phase = AH_PHASE_REQUEST;
    return AH_USAGE;
}

/* The command passes over a word that it does not know. */
static ah_status take_reasoning(ah_slice value, ah_claude_options *out, ah_err *err)
{
    static const char *const words[] = {"none", "low", "medium", "high", "xhigh", "max"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_json_string_is(value, words[i])) {
            out->effort = words[i];
            return AH_OK;
        }
    return refuse(
        ah_slice_of("reasoning"),
        "must be \"none\", \"low\", \"medium\", \"high\", \"xhigh\" or \"max\" where the claude "
        "command asks the model",
        err);
}

static ah_status take_max_tokens(ah_slice value, ah_claude_options *out, ah_err *err)
{
    ah_json_num n = {0};

    if (!ah_json_number(value, &n) || !n.is_int || n.i <= 0)
        return refuse(ah_slice_of("max_tokens"), "must be an integer above 0", err);
    out->max_tokens = n.i;
    return AH_OK;
}

static ah_status take(ah_json_token key, ah_slice value, ah_claude_options *out, ah_err *err)
{
    if (ah_json_token_is(key, "reasoning"))
        return take_reasoning(value, out, err);
    if (ah_json_token_is(key, "max_tokens"))
        return take_max_tokens(value, out, err);
    if (ah_json_token_is(key, "cache") || ah_json_token_is(key, "cache_key") ||
        ah_json_token_is(key, "tool_choice_every_turn"))
        return AH_OK;
    if (!ah_json_token_is(key, "tool_choice"))
        return refuse(key.raw,
                      "cannot be set where the claude command asks the model; leave it out (it "
                      "takes max_tokens, reasoning and tool_choice)",
                      err);
    out->toolless = ah_json_string_is(value, "none");
    if (out->toolless || ah_json_string_is(value, "auto"))
        return AH_OK;
    return refuse(key.raw, "must be \"auto\" or \"none\" where the claude command asks the model", err);
}

ah_status ah_claude_options_of(ah_slice request, ah_claude_options *out, ah_err *err)
{
    ah_json_reader r = ah_json_read(ah_json_member(request, "options"));
    ah_json_token key = ah_json_next(&r);
    ah_status st = AH_OK;

    *out = (ah_claude_options){.max_tokens = 0};
    if (key.kind != AH_JSON_OBJECT)
        return AH_OK;
    for (key = ah_json_next(&r); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&r))
        st = take(key, ah_json_skip(&r, ah_json_next(&r)), out, err);
    return st;
}

bool ah_claude_options_same(const ah_claude_options *a, const ah_claude_options *b)
{
    return a->max_tokens == b->max_tokens && a->effort == b->effort && a->toolless == b->toolless;
}
