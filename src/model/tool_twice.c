/* The error for two tools of one name. It has the place and the parameters of each declaration,
 * because either tool may be renamed (seed 003: the tool's name and its parameters' type). */
#include "model/tool.h"

enum { MAX_PARAMS = 200, MAX_PLACE = 200 };

/* "{ city, days }" */
static void put_names(const ah_tool *t, ah_buf *out)
{
    ah_slice properties = ah_json_member(ah_text_slice(ah_schema_text(t->params)), "properties");
    ah_json_reader r = ah_json_read(properties);
    ah_json_token key = ah_json_next(&r);
    size_t n = 0;

    if (key.kind != AH_JSON_OBJECT)
        return;
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_buf_fmt(out, "%s%.*s", n++ ? ", " : "{ ", AH_FMT(key.raw));
        ah_json_skip(&r, ah_json_next(&r));
    }
    ah_buf_str(out, n ? " }" : "none");
}

/* "x.lua:4, parameters { city, days }" */
static ah_slice put_origin(const ah_tool *t, char out[MAX_PLACE + MAX_PARAMS])
{
    const char *place = t->place ? t->place->data : t->stale ? "an earlier session" : "agenthost";
    size_t n;
    ah_buf b;

    ah_buf_init(&b, t->mem, MAX_PARAMS);
    if (t->params_type)
        ah_buf_put(&b, ah_text_slice(t->params_type));
    else
        put_names(t, &b);
    n = ah_print(out, MAX_PLACE + MAX_PARAMS, "%s, parameters %.*s", place,
                 ah_buf_ok(&b) ? (int)b.len : 3, ah_buf_ok(&b) && b.len ? b.data : "...");
    ah_buf_clear(&b);
    return (ah_slice){out, n};
}

ah_status ah_tool_twice(const ah_tool *first, const ah_tool *second, ah_err *err)
{
    char a[MAX_PLACE + MAX_PARAMS], b[MAX_PLACE + MAX_PARAMS];
    ah_slice one = put_origin(first, a), two = put_origin(second, b);

    ah_err_set(err, AH_PROMPT_VALIDATION, "tool '%s' is declared twice (%.*s; and %.*s)",
               second->name->data, AH_FMT(one), AH_FMT(two));
    if (err) {
        ah_json_detail(err, "tool", ah_text_slice(second->name));
        if (second->params_type)
            ah_json_detail(err, "params_type", ah_text_slice(second->params_type));
    }
    return AH_PROMPT_VALIDATION;
}
