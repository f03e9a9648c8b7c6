/* Parses settings entries, which the transcript has checked. */
#include "model/model_settings.h"

#include "base/json.h"

static void read_options(ah_slice text, ah_model_options *o)
{
    const ah_json_slot want[] = {{"temperature", &o->temperature},
                                 {"max_tokens", &o->max_tokens},
                                 {"top_p", &o->top_p},
                                 {"stop", &o->stop},
                                 {"seed", &o->seed},
                                 {"tool_choice", &o->tool_choice},
                                 {"tool_choice_every_turn", &o->every_turn},
                                 {"reasoning", &o->reasoning},
                                 {"cache", &o->cache},
                                 {"cache_key", &o->cache_key},
                                 {"strict", &o->strict}};

    o->text = text;
    ah_json_members(text, want, sizeof want / sizeof *want);
}

void ah_model_settings_read(ah_slice entry, ah_model_settings *out)
{
    ah_slice options = {NULL, 0};
    const ah_json_slot want[] = {{"model", &out->model},
                                 {"options", &options},
                                 {"output", &out->output},
                                 {"learned", &out->learned},
                                 {"given", &out->given}};

    *out = (ah_model_settings){.text = entry};
    if (entry.p)
        ah_json_members(entry, want, sizeof want / sizeof *want);
    if (options.p)
        read_options(options, &out->options);
}
