/* Redaction of arguments, and the way back for members that were left alone. */
#include "run/said.h"

#include "run/tell.h"

enum { MAX_ARGS = 64 << 20 };

static const ah_secrets *secrets(const ah_call *c)
{
    return c->run ? ah_run_cfg(c->run)->secrets : NULL;
}

bool ah_said_has_key(const ah_call *c, ah_slice text)
{
    return ah_secrets_in(secrets(c), text);
}

bool ah_said_json(const ah_call *c, ah_slice json, ah_buf *out)
{
    size_t start = out->len;
    ah_status st;

    ah_buf_put(out, json);
    if (!ah_said_has_key(c, json) || !ah_buf_ok(out))
        return ah_buf_ok(out);
    out->len = start + ah_secrets_redact(secrets(c), out->data + start, json.n);
    st = ah_json_check(c->overlay.mem, (ah_slice){out->data + start, out->len - start},
                       AH_JSON_MAX_DEPTH, NULL);
    if (st == AH_OK)
        return true;
    ah_buf_reset(out, start);
    if (st == AH_NOMEM)
        out->status = st;
    return false;
}

void ah_said_args(const ah_call *c, ah_buf *out)
{
    if (!c->args)
        ah_buf_str(out, "{}");
    else if (!ah_said_json(c, ah_text_slice(c->args), out))
        ah_buf_str(out, "{\"arguments\":\"[secret]\"}");
}

/* Sets *value to the original of the member if it is as it was said. */
static ah_status take_original(const ah_call *c, ah_slice said, ah_slice name, ah_slice *value)
{
    const ah_mem *mem = c->overlay.mem;
    ah_slice shown = {NULL, 0};
    ah_status st = AH_OK;
    bool same = false;
    ah_buf key;

    ah_buf_init(&key, mem, MAX_ARGS);
    ah_json_unescape(name, &key);
    ah_buf_char(&key, '\0');
    if (!ah_buf_ok(&key))
        st = AH_NOMEM;
    else if ((shown = ah_json_member(said, key.data)).p)
        st = ah_json_same(mem, shown, *value, &same);
    if (same && ah_json_member(ah_text_slice(c->args), key.data).p)
        *value = ah_json_member(ah_text_slice(c->args), key.data);
    ah_buf_clear(&key);
    return st;
}

static void put_member(const ah_call *c, ah_slice said, ah_slice name, ah_slice value, ah_buf *out)
{
    ah_status st = take_original(c, said, name, &value);

    ah_buf_char(out, '"');
    ah_buf_put(out, name);
    ah_buf_str(out, "\":");
    ah_buf_put(out, value);
    if (st != AH_OK)
        out->status = st;
}

void ah_said_restore(const ah_call *c, ah_slice args, ah_buf *out)
{
    ah_json_reader r = ah_json_read(args);
    ah_json_token name = ah_json_next(&r);
    ah_buf said;

    ah_buf_init(&said, c->overlay.mem, MAX_ARGS);
    ah_said_args(c, &said);
    if (!ah_buf_ok(&said))
        out->status = said.status;
    ah_buf_char(out, '{');
    for (size_t n = 0; ah_buf_ok(out) && (name = ah_json_next(&r)).kind == AH_JSON_KEY; n++) {
        ah_buf_str(out, n ? "," : "");
        put_member(c, ah_buf_slice(&said), name.raw, ah_json_skip(&r, ah_json_next(&r)), out);
    }
    ah_buf_char(out, '}');
    ah_buf_clear(&said);
}
