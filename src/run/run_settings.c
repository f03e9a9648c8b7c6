/* Settings that a run changes by itself in mid-conversation: the settings in force with some
 * members replaced. The members are not interpreted here. */
#include "run/run_state.h"

enum { MAX_SETTINGS = 8 << 20 };

static const ah_setting *find(const ah_setting *set, size_t n, ah_json_token key)
{
    for (size_t i = 0; i < n; i++)
        if (ah_json_token_is(key, set[i].name))
            return &set[i];
    return NULL;
}

static void put_member(ah_buf *b, ah_slice name, ah_slice value)
{
    if (value.p)
        ah_buf_fmt(b, "%s\"%.*s\":%.*s", b->len > 1 ? "," : "", AH_FMT(name), AH_FMT(value));
}

static void put_settings(ah_buf *b, ah_slice now, const ah_setting *set, size_t n)
{
    ah_json_reader r = ah_json_read(now);
    ah_json_token key = ah_json_next(&r);

    ah_buf_char(b, '{');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));
        const ah_setting *s = find(set, n, key);

        put_member(b, key.raw, s ? s->value : value);
    }
    for (size_t i = 0; i < n; i++)
        if (!ah_json_member(now, set[i].name).p)
            put_member(b, ah_slice_of(set[i].name), set[i].value);
    ah_buf_char(b, '}');
}

ah_status ah_run_set(ah_run *run, const ah_setting *set, size_t n, ah_err *err)
{
    ah_slice now = run->cfg.transcript->settings.text;
    ah_text *entry = NULL;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, MAX_SETTINGS);
    put_settings(&b, now.p ? now : ah_slice_of("{\"type\":\"settings\"}"), set, n);
    st = ah_text_from_buf(&b, "settings", &entry, err);
    if (st == AH_OK)
        st = ah_transcript_add(run->cfg.transcript, AH_ENTRY_SETTINGS, entry, err);
    ah_buf_clear(&b);
    return st;
}

static void put_choice(ah_buf *b, ah_slice options, const char *choice)
{
    ah_json_reader r = ah_json_read(options);
    ah_json_token key = ah_json_next(&r);

    ah_buf_fmt(b, "{\"tool_choice\":\"%s\"", choice);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (!ah_json_token_is(key, "tool_choice"))
            ah_buf_fmt(b, ",\"%.*s\":%.*s", AH_FMT(key.raw), AH_FMT(value));
    }
    ah_buf_char(b, '}');
}

ah_status ah_run_choose(ah_run *run, const char *choice, ah_err *err)
{
    const ah_model_settings *now = &run->cfg.transcript->settings;
    ah_setting set[2];
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, run->cfg.mem, MAX_SETTINGS);
    put_choice(&b, now->options.text, choice);
    set[0] = (ah_setting){"options", ah_buf_slice(&b)};
    set[1] = (ah_setting){"given", now->given.p ? now->given : now->options.text};
    st = ah_buf_ok(&b) ? ah_run_set(run, set, 2, err) : ah_buf_error(&b, "settings", err);
    ah_buf_clear(&b);
    return st;
}

static bool is_forced(const ah_model_options *o)
{
    return !ah_slice_is(o->every_turn, "true") &&
           (ah_json_kind_of(o->tool_choice) == AH_JSON_OBJECT ||
            ah_json_string_is(o->tool_choice, "required"));
}

ah_status ah_run_free_choice(ah_run *run, ah_err *err)
{
    return is_forced(&run->cfg.transcript->settings.options) ? ah_run_choose(run, "auto", err)
                                                             : AH_OK;
}
