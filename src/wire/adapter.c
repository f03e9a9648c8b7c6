/* The parts that adapters share: references, origin, and retry advice. */
#include "wire/adapter.h"

const char *const ah_tool_change_mode_names[] = {
    [AH_TOOLS_RESTART] = "restart",
    [AH_TOOLS_APPEND] = "append",
    [AH_TOOLS_INLINE] = "inline",
    [AH_TOOLS_REFERENCE] = "reference",
    [AH_TOOLS_ADDITIONAL] = "additional_tools",
    [AH_TOOLS_SEARCH_PAIR] = "search_pair",
    [AH_TOOLS_LIST_CHANGED] = "list_changed",
    [AH_TOOLS_DISPATCHER] = "dispatcher",
    NULL,
};

ah_adapter *ah_adapter_ref(ah_adapter *a)
{
    if (a)
        a->refs++;
    return a;
}

void ah_adapter_unref(ah_adapter *a)
{
    if (!a || --a->refs > 0)
        return;
    ah_text_unref(a->provider);
    ah_text_unref(a->model);
    ah_text_unref(a->endpoint);
    a->vt->free(a);
}

ah_origin ah_adapter_origin(const ah_adapter *a)
{
    return (ah_origin){ah_text_slice(a->provider), ah_text_slice(a->model),
                       ah_text_slice(a->endpoint)};
}

bool ah_adapter_carries(const ah_adapter *a, ah_slice schema)
{
    ah_slice type = ah_json_member(schema, "type");
    ah_strict_weight weight;

    if (!a->native_output || !type.p || !ah_json_string_is(type, "object"))
        return false;
    return a->output_rules == AH_STRICT_NONE || (ah_strict_fits(a->output_rules, schema, &weight) &&
                                                 ah_strict_allows(a->output_rules, 0, &weight));
}

bool ah_adapter_shows(const ah_adapter *a, ah_slice schema)
{
    return !a->output_unseen && ah_adapter_carries(a, schema);
}

/* -- retry advice (wire/NOTES.md 0.3) ------------------------------------------- */

void ah_reader_note_head(ah_reader *r, const ah_response_head *head)
{
    ah_slice should = head->header(head->ud, "x-should-retry");

    r->status = head->status;
    r->should_retry = ah_slice_is(should, "true") ? 1 : ah_slice_is(should, "false") ? 0 : -1;
    r->retry_after_ms = head->status >= 300 ? ah_advice_retry(head) : -1;
    if (head->status == 429 && r->retry_after_ms == -1)
        r->retry_after_ms = ah_advice_limit(head);
}

static bool retryable_status(int s)
{
    return s == 408 || s == 409 || s == 429 || s >= 500;
}

void ah_reader_judge(const ah_reader *r, ah_err *err, bool never)
{
    err->phase = AH_PHASE_RESPONSE;
    err->http_status = r->status;
    if (r->should_retry >= 0)
        err->retryable = r->should_retry == 1;
    else
        err->retryable =
            !never && r->retry_after_ms != -2 && (r->status < 300 || retryable_status(r->status));
}
