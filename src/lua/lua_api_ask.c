/* Asks that a C program responds to. The texts that it is shown are kept here, since the ask may be
 * over when the program reads them. */
#include "base/lent.h"
#include "lua/lua_api.h"
#include "lua/lua_ask.h"

enum { MAX_PRINCIPAL = 256 };

/* The texts of the ask that was shown last. */
enum { QUESTION, SCHEMA, OTHERWISE, CALL, TOOL, ARGS, PARENT, RESULT, CHANGES };
_Static_assert((int)CHANGES < (int)AH_ASK_TEXTS, "there is room for all of them");

void ah_asks_forget(ah_embed *e)
{
    for (size_t i = 0; i < AH_ASK_TEXTS; i++)
        ah_text_set(&e->ask_text[i], NULL);
    e->ask = (ah_ask){0};
}

static const char *chars(const ah_embed *e, int which)
{
    return e->ask_text[which] ? e->ask_text[which]->data : NULL;
}

static void keep(ah_embed *e, const ah_ask_item *a)
{
    const ah_slot *slot = a->def.call->slot;

    e->ask_text[QUESTION] = ah_text_ref(a->question);
    e->ask_text[SCHEMA] = ah_text_ref(a->schema);
    e->ask_text[OTHERWISE] = a->def.secret ? NULL : ah_text_ref(a->otherwise);
    e->ask_text[CALL] = ah_text_ref(slot->id);
    e->ask_text[TOOL] = ah_text_ref(slot->name);
    e->ask_text[ARGS] = ah_text_ref(a->args);
    e->ask_text[PARENT] = ah_text_ref(a->def.call->parent_call);
    e->ask_text[RESULT] = ah_text_ref(a->result);
    e->ask_text[CHANGES] = ah_text_ref(a->changes);
    memcpy(e->ask_id, a->id, sizeof e->ask_id);
}

static void show(ah_embed *e, const ah_ask_item *a)
{
    int64_t left = a->until - ah_host_now(e->lua->host);

    e->ask = (ah_ask){.id = e->ask_id,
                      .kind = ah_ask_kind_name(a->def.kind),
                      .agent = ah_lua_program_agent(a->def.of),
                      .run = ah_run_cfg(a->def.call->run)->id,
                      .question = chars(e, QUESTION),
                      .question_len = e->ask_text[QUESTION]->len,
                      .schema = chars(e, SCHEMA),
                      .default_value = chars(e, OTHERWISE),
                      .seconds_left = !a->until  ? -1
                                      : left > 0 ? (double)left / 1000
                                                 : 0,
                      .secret = a->def.secret,
                      .call = chars(e, CALL),
                      .tool = chars(e, TOOL),
                      .args = chars(e, ARGS),
                      .args_len = e->ask_text[ARGS]->len,
                      .parent_call = chars(e, PARENT),
                      .result = chars(e, RESULT),
                      .changes = chars(e, CHANGES)};
}

static void refuse_unasked(ah_embed *e)
{
    ah_err err;

    ah_err_set(&err, AH_USAGE,
               "ah_ask_next: this program takes no asks: set `asks` of its ah_config");
    ah_embed_fail(e, &err);
}

AH_API const ah_ask *ah_ask_next(ah_host *host)
{
    ah_embed *e = ah_embed_of(host);
    ah_ask_item *a = host->asks.first;

    if (ah_embed_may(e, "ah_ask_next") != AH_OK)
        return NULL;
    ah_asks_forget(e);
    if (!host->cfg.asks)
        refuse_unasked(e);
    while (a && !a->offered)
        a = a->next;
    if (!a)
        return NULL;
    keep(e, a);
    a->offered = false;
    show(e, a);
    return &e->ask;
}

ah_status ah_embed_check_principal(const char *what, ah_slice who, ah_err *err)
{
    if (!who.n || who.n > MAX_PRINCIPAL || !ah_utf8_valid(who))
        return ah_err_set(err, AH_USAGE,
                          "%s: the principal must be UTF-8 of 1 to %d bytes, or NULL", what,
                          MAX_PRINCIPAL);
    return AH_OK;
}

/* Responds to the ask. Copies the response and the responder's name first, because observers are
 * called and may do anything. */
static ah_status close_ask(ah_embed *e, ah_ask_item *a, ah_slice response, ah_slice who,
                           ah_err *err)
{
    ah_text *json = NULL, *by = NULL;
    ah_status st;

    if ((st = ah_json_check_err(&e->lua->mem, response, "the response", err)) != AH_OK ||
        (st = ah_embed_check_principal("ah_ask_close", who, err)) != AH_OK)
        return st;
    if ((json = ah_text_new(&e->lua->mem, response)) && (by = ah_text_new(&e->lua->mem, who)))
        st = ah_ask_respond(a, ah_text_slice(json), ah_text_slice(by), err);
    else
        st = ah_err_nomem(err);
    ah_text_unref(json);
    ah_text_unref(by);
    return st;
}

AH_API ah_status ah_ask_close(ah_host *host, const char *id, const char *response,
                              const char *principal)
{
    ah_embed *e = ah_embed_of(host);
    ah_slice who = ah_slice_of(principal ? ah_lend_text(principal) : AH_BY_FRONT);
    ah_ask_item *a = NULL;
    ah_status st = ah_embed_may(e, "ah_ask_close");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!id || !response)
        st =
            ah_err_set(&err, AH_USAGE, "ah_ask_close: %s must not be NULL", id ? "response" : "id");
    else if ((a = ah_ask_find(host, ah_slice_of(id), &err)))
        st = close_ask(e, a, ah_slice_of(ah_lend_text(response)), who, &err);
    else
        st = err.status;
    return st == AH_OK ? AH_OK : ah_embed_fail(e, &err);
}
