/* What adapters share: references, origin, retry advice, and the table of providers. */
#include "base/near.h"
#include "wire/advice.h"
#include "wire/claude.h"
#include "wire/openai.h"

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

#include <stdio.h>

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
    return (ah_origin){ah_text_slice(a->provider), ah_text_slice(a->model), ah_text_slice(a->endpoint)};
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
    r->spent_ms = head->status < 300 ? ah_advice_limit(head) : -1;
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

/* -- providers ------------------------------------------------------------------- */

/* Those with a wire of their own; what else there is speaks OpenAI's (wire/servers.h). */
static const struct {
    const char *name;
    const ah_service *service;
    ah_status (*open)(ah_slice model, const ah_provider_options *o, ah_adapter **out, ah_err *err);
} providers[] = {
    {"anthropic", &ah_anthropic_service, ah_anthropic_new},
    {"gemini", &ah_gemini_service, ah_gemini_new},
    {"ollama", &ah_ollama_service, ah_ollama_new},
    {"ollama_chat", &ah_ollama_service, ah_ollama_new}, /* LiteLLM's name for the same */
};

enum { MAX_SHOWN = 100 }; /* bytes of a model's name in an error */

enum { PROVIDERS = sizeof providers / sizeof *providers };

const char *ah_provider_at(size_t i, const ah_service **service)
{
    const ah_server *s = ah_servers;

    if (i < PROVIDERS) {
        *service = providers[i].service;
        return providers[i].name;
    }
    for (i -= PROVIDERS; s->at.name && i > 0; i--)
        s++;
    *service = &s->at;
    return s->at.name;
}

/* Names that others have for a provider. */
static const struct {
    const char *found, *meant;
} called[] = {{"google", "gemini"},
              {"google_genai", "gemini"},
              {"google-gla", "gemini"},
              {"google-vertex", "gemini"},
              {"vertex_ai", "gemini"},
              {"vertex", "gemini"},
              {"claude", "anthropic"},
              {"chatgpt", "openai"},
              {"gpt", "openai"},
              {"grok", "xai"},
              {"x-ai", "xai"},
              {"together", "together_ai"},
              {"fireworks", "fireworks_ai"},
              {"vllm", "hosted_vllm"},
              {"hf", "huggingface"},
              {"local", "ollama"}};

static ah_slice meant_by(ah_slice provider)
{
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        if (ah_slice_is(provider, called[i].found))
            return ah_slice_of(called[i].meant);
    return (ah_slice){NULL, 0};
}

static ah_status unknown_provider(ah_slice provider, ah_slice model, ah_err *err)
{
    ah_near near = {.to = provider};
    ah_slice meant = meant_by(provider);
    char names[600] = "", hint[MAX_SHOWN + 64] = "";
    size_t n = 0;

    for (const ah_server *s = ah_servers; s->at.name; s++) {
        ah_near_offer(&near, ah_slice_of(s->at.name));
        n += ah_print(names + n, sizeof names - n, "%s, ", s->at.name);
    }
    for (size_t i = 0; i < PROVIDERS; i++) {
        ah_near_offer(&near, ah_slice_of(providers[i].name));
        n += ah_print(names + n, sizeof names - n, "%s%s", providers[i].name,
                      i + 1 < PROVIDERS ? ", " : "");
    }
    ah_near_offer(&near, ah_slice_of(AH_CLAUDE));
    if (model.n > MAX_SHOWN)
        model.n = ah_utf8_cut(model.p, MAX_SHOWN);
    if (meant.p)
        snprintf(hint, sizeof hint, " (did you mean '%.*s/%.*s'?)", AH_FMT(meant), AH_FMT(model));
    else if (near.best.p)
        snprintf(hint, sizeof hint, " (did you mean '%.*s'?)", AH_FMT(near.best));
    return ah_err_set(err, AH_USAGE,
                      "model: unknown provider '%.*s'%s; known are %s, " AH_CLAUDE " and demo",
                      AH_FMT(provider), hint, names);
}

ah_status ah_provider_open(ah_slice provider, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err)
{
    const ah_server *server = ah_server_find(provider);

    for (size_t i = 0; i < PROVIDERS; i++)
        if (ah_slice_is(provider, providers[i].name))
            return providers[i].open(model, o, out, err);
    return server ? ah_openai_new(server, model, o, out, err) : unknown_provider(provider, model, err);
}
