/* The table of providers, and other names in use for them. */
#include "wire/providers.h"

#include <stdio.h>

#include "base/near.h"
#include "wire/openai.h"

/* Each is defined in its own file. */
extern const ah_provider ah_anthropic, ah_gemini, ah_ollama;

/* Providers with their own wire; all others use OpenAI's (wire/servers.h). */
static const struct {
    const char *name;
    const ah_provider *is;
} providers[] = {
    {"anthropic", &ah_anthropic},
    {"gemini", &ah_gemini},
    {"ollama", &ah_ollama},
    {"ollama_chat", &ah_ollama}, /* LiteLLM's name for the same */
};

enum { MAX_SHOWN = 100 }; /* bytes of a model's name in an error */

enum { PROVIDERS = sizeof providers / sizeof *providers };

const char *ah_provider_at(size_t i, const ah_service **service)
{
    const ah_server *s = ah_servers;

    if (i < PROVIDERS) {
        *service = providers[i].is->service;
        return providers[i].name;
    }
    for (i -= PROVIDERS; s->at.name && i > 0; i--)
        s++;
    *service = &s->at;
    return s->at.name;
}

/* Other names in use for a provider. */
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
            return providers[i].is->open(model, o, out, err);
    return server ? ah_openai_new(server, model, o, out, err)
                  : unknown_provider(provider, model, err);
}
