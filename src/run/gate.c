/* Policies are asked in the order of their list: first those of the run that makes the call, then
 * those of the runs around it, then the host's. A call passes if no policy denies it; if one asks,
 * the later ones can still deny. Rewritten arguments are checked like the model's, and all policies
 * are asked again, as the earlier ones have seen other arguments.
 *
 * Policies fail closed: one that raises, or returns no verdict, denies the call or blocks the
 * result. The script gets a warning with the policy's place; the model gets no details. */
#include "run/gate.h"

#include "run/tell.h"

enum {
    MAX_REWRITES = 8, /* rounds */
    MAX_ASKS = 4,     /* approvals of one call, each with other arguments */
    MAX_WHY = 16 << 20
};

const char *ah_verdict_name(ah_verdict v)
{
    static const char *const names[] = {
        [AH_VERDICT_NONE] = "none",       [AH_VERDICT_ALLOW] = "allow",
        [AH_VERDICT_ASK] = "ask",         [AH_VERDICT_DENY] = "deny",
        [AH_VERDICT_REWRITE] = "rewrite", [AH_VERDICT_REPLACE] = "replace",
        [AH_VERDICT_REDACT] = "redact",   [AH_VERDICT_BLOCK] = "block"};

    return names[v];
}

void ah_ruling_init(ah_ruling *r, const ah_mem *mem)
{
    *r = (ah_ruling){.verdict = AH_VERDICT_NONE};
    ah_buf_init(&r->why, mem, AH_MAX_REASON + AH_MAX_MESSAGE);
}

void ah_ruling_clear(ah_ruling *r)
{
    ah_buf_clear(&r->why);
    ah_text_set(&r->json, NULL);
    ah_text_set(&r->message, NULL);
    ah_text_set(&r->images, NULL);
    ah_text_set(&r->type, NULL);
}

void ah_gate_texts_clear(ah_gate_texts *h)
{
    ah_text_unref(h->value);
    ah_text_unref(h->message);
    ah_text_unref(h->images);
    ah_text_unref(h->type);
    *h = (ah_gate_texts){0};
}

/* -- levels of policies ------------------------------------------------------------------- */

typedef struct levels {
    ah_run *next;
    ah_run *of; /* NULL: the host */
    const ah_hooks *hooks, *host;
    const ah_hooks *own; /* of the run `of`, still to come behind those of its active agent */
} levels;

/* A call that is in no run has no levels. */
static levels levels_of(const ah_call *c)
{
    return (levels){.next = c->run, .host = c->run ? ah_run_cfg(c->run)->host_hooks : NULL};
}

static bool next_level(levels *l)
{
    if (l->own) {
        l->hooks = l->own;
        l->own = NULL;
        return true;
    }
    while (l->next) {
        const ah_run_config *cfg = ah_run_cfg(l->next);

        l->of = l->next;
        l->hooks = cfg->active ? cfg->active : cfg->hooks;
        l->own = cfg->active ? cfg->hooks : NULL;
        l->next = cfg->around;
        if (l->hooks)
            return true;
    }
    l->of = NULL;
    l->hooks = l->host;
    l->host = NULL;
    return l->hooks != NULL;
}

/* The hooks that handle an approval wanted by a policy of `from`. If any hooks decide by a script:
 * those of `from`, else the next ones around it, else the first ones inside it. Otherwise `from`
 * itself. */
static const ah_hooks *who_approves(const ah_call *c, const ah_hooks *from)
{
    const ah_hooks *within = NULL;
    levels l = levels_of(c);
    bool reached = false;

    while (next_level(&l)) {
        reached = reached || l.hooks == from;
        if (l.hooks->decides && reached)
            return l.hooks;
        if (l.hooks->decides && !within)
            within = l.hooks;
    }
    return within ? within : from;
}

const ah_hooks *ah_gate_approver(const ah_call *c)
{
    const ah_hooks *first = NULL, *decides = NULL;
    levels l = levels_of(c);

    while (next_level(&l)) {
        first = first ? first : l.hooks;
        decides = l.hooks->decides ? l.hooks : decides;
    }
    return decides ? decides : first;
}

/* -- reporting verdicts ----------------------------------------------------------------------- */

static void warn_of(const ah_call *c, const ah_ruling *r)
{
    char words[2 * AH_MAX_MESSAGE];

    ah_print(words, sizeof words, "policy %s failed at a call of '%s'%s: %s", r->policy,
             c->slot->name->data,
             r->shadow                       ? ", as a shadow"
             : r->verdict == AH_VERDICT_DENY ? ", which was not run"
                                             : ", whose result was withheld",
             r->failure);
    ah_run_warn(c->run, ah_slice_of(words));
}

/* Reports the verdict and returns the one to obey: a shadow policy allows. Its words have no keys
 * from here on. */
static ah_verdict obey(const ah_call *c, ah_ruling *r)
{
    const ah_secrets *secrets = ah_run_cfg(c->run)->secrets;

    if (r->verdict <= AH_VERDICT_ALLOW)
        return AH_VERDICT_ALLOW;
    if (ah_buf_ok(&r->why) && r->why.len)
        r->why.len = ah_secrets_redact(secrets, r->why.data, r->why.len);
    if (r->failed)
        warn_of(c, r);
    EMIT_SOME(c->run, AH_EVENT_POLICY, 6 + (size_t)(c->parent_call != NULL),
              AH_F_STR("name", ah_text_slice(c->slot->name)),
              AH_F_STR("id", ah_text_slice(c->slot->id)),
              AH_F_STR("policy", ah_slice_of(r->policy)),
              AH_F_STR("verdict", ah_slice_of(ah_verdict_name(r->verdict))),
              AH_F_STR("reason", ah_buf_slice(&r->why)), AH_F_BOOL("shadow", r->shadow),
              AH_F_STR("parent_call", ah_text_slice(c->parent_call)));
    return r->shadow ? AH_VERDICT_ALLOW : r->verdict;
}

/* -- before the handler ------------------------------------------------------------------------ */

typedef enum passage { PASSES, ASKED, ANSWERED, AGAIN } passage;

typedef struct judging {
    ah_call *call;
    ah_buf why;
    const ah_hooks *asked; /* hooks of the first policy that asks */
} judging;

static passage refuse_for(ah_call *c, const ah_buf *why)
{
    ah_slice words = ah_buf_ok(why) ? ah_buf_slice(why) : ah_slice_of("out of memory");

    ah_call_refuse(c, "Tool '%s' was not run: %.*s", c->tool->name->data, AH_FMT(words));
    return ANSWERED;
}

/* False also if memory runs out: the call is then looked at again. */
static bool same_args(const ah_call *c, const ah_text *before)
{
    bool same;

    return before && c->args &&
           ah_json_same(c->overlay.mem, ah_text_slice(before), ah_text_slice(c->args), &same) ==
               AH_OK &&
           same;
}

static passage rewrite(ah_call *c, const ah_ruling *r)
{
    ah_text *before = ah_text_ref(c->args);
    passage then = ANSWERED;

    if (ah_call_change_args(c, ah_text_slice(r->json), c->started)) {
        then = same_args(c, before) ? PASSES : AGAIN;
    } else {
        ah_call_refuse(c, "Tool '%s' was not run: a policy changed its arguments to invalid ones",
                       c->tool->name->data);
        ah_run_warn(c->run, ah_text_slice(c->content));
    }
    ah_text_unref(before);
    return then;
}

static void take_ask(judging *j, const ah_hooks *hooks, const ah_ruling *r)
{
    ah_buf_str(&j->why, j->why.len ? "; " : "");
    ah_buf_put(&j->why, ah_buf_slice(&r->why));
    j->asked = j->asked ? j->asked : hooks;
}

/* Applies one verdict to the call. */
static passage take_ruling(judging *j, const levels *l, ah_ruling *r)
{
    switch (obey(j->call, r)) {
    case AH_VERDICT_DENY:
        return refuse_for(j->call, &r->why);
    case AH_VERDICT_REWRITE:
        return rewrite(j->call, r);
    case AH_VERDICT_ASK:
        take_ask(j, l->hooks, r);
        return ASKED;
    default:
        return PASSES;
    }
}

/* Returns false if there is no policy i. */
static bool ask_policy(judging *j, const levels *l, size_t i, passage *then)
{
    ah_ruling r;
    bool there;

    ah_ruling_init(&r, j->call->overlay.mem);
    there = l->hooks->before(l->hooks->ud, l->of, j->call, i, &r);
    *then = there ? take_ruling(j, l, &r) : PASSES;
    ah_ruling_clear(&r);
    return there;
}

static passage judge(judging *j)
{
    levels l = levels_of(j->call);
    passage then;

    while (next_level(&l))
        for (size_t i = 0; l.hooks->before && ask_policy(j, &l, i, &then); i++)
            if (then >= ANSWERED)
                return then;
    return j->asked ? ASKED : PASSES;
}

static passage ask(judging *j)
{
    ah_call *c = j->call;
    const ah_hooks *by = who_approves(c, j->asked);

    if (same_args(c, c->approved))
        return PASSES;
    if (!ah_buf_cut_short(&j->why))
        return refuse_for(c, &j->why);
    if (++c->asks > MAX_ASKS) {
        ah_buf_reset(&j->why, 0);
        ah_buf_str(&j->why,
                   "each approval changed its arguments, which then need another approval");
        return refuse_for(c, &j->why);
    }
    c->approver = by;
    ah_call_ask(c, &j->why);
    return ANSWERED;
}

bool ah_gate_before(ah_call *c)
{
    judging j = {.call = c};
    passage then = AGAIN;

    ah_buf_init(&j.why, c->overlay.mem, MAX_WHY);
    for (int round = 0; round < MAX_REWRITES && then == AGAIN; round++) {
        ah_buf_reset(&j.why, 0);
        j.asked = NULL;
        then = judge(&j);
    }
    if (then == ASKED)
        then = ask(&j);
    ah_buf_clear(&j.why);
    if (then == AGAIN) {
        ah_call_refuse(c, "Tool '%s' was not run: the policies do not agree on its arguments",
                       c->tool->name->data);
        ah_run_warn(c->run, ah_text_slice(c->content));
    }
    return then == PASSES;
}

/* -- after the handler ------------------------------------------------------------------------- */

/* Replaces a held text by the given one. */
static void hold(ah_text **held, ah_text **given, ah_slice *shown)
{
    ah_text_set(held, *given);
    *given = NULL;
    *shown = ah_text_slice(*held);
}

/* Drops the message and the rendered text too, which may repeat what was removed from the value. */
static void change(ah_call *c, ah_outcome *o, ah_ruling *r, ah_gate_texts *held)
{
    bool replaced = r->verdict == AH_VERDICT_REPLACE;

    hold(&held->value, &r->json, &o->value);
    hold(&held->message, &r->message, &o->message);
    o->render = o->error = (ah_slice){NULL, 0};
    o->nil = false;
    o->failure = AH_FAILED_SAID;
    if (!replaced)
        return;
    hold(&held->images, &r->images, &o->images);
    hold(&held->type, &r->type, &o->type);
    o->untyped = !o->type.p;
    o->success = r->success;
    o->exclude_value = r->exclude;
    o->whole = false;
    ah_value_release(&c->live);
    c->live = (ah_value){0};
}

static void block(ah_call *c, const ah_buf *why)
{
    ah_slice words = ah_buf_ok(why) ? ah_buf_slice(why) : ah_slice_of("out of memory");

    ah_value_release(&c->live);
    c->live = (ah_value){0};
    ah_call_refuse(c, "Tool '%s' was run, and its result was withheld: %.*s", c->tool->name->data,
                   AH_FMT(words));
}

/* Applies one verdict of `of` to the result. False: the result is blocked. */
static bool obey_after(judging *j, const ah_hooks *of, ah_outcome *o, ah_buf *words,
                       ah_gate_texts *held, ah_ruling *r)
{
    ah_call *c = j->call;

    switch (obey(c, r)) {
    case AH_VERDICT_BLOCK:
        block(c, &r->why);
        return false;
    case AH_VERDICT_ASK:
        take_ask(j, of, r);
        return true;
    case AH_VERDICT_REPLACE:
    case AH_VERDICT_REDACT:
        change(c, o, r, held);
        ah_buf_reset(words, 0);
        ah_call_render(c, o, words);
        return true;
    default:
        return true;
    }
}

/* Notes the approver of the changes, and why. False: without memory the result is blocked. */
static bool note_asked(judging *j)
{
    ah_call *c = j->call;

    if (!j->asked)
        return true;
    if (ah_text_from_buf(&j->why, "reason", &c->reason, NULL) != AH_OK) {
        block(c, &j->why);
        return false;
    }
    c->approver = who_approves(c, j->asked);
    return true;
}

bool ah_gate_after(ah_call *c, ah_outcome *o, ah_buf *words, ah_gate_texts *held)
{
    judging j = {.call = c};
    levels l = levels_of(c);
    bool passes = true, there;
    ah_ruling r;

    ah_text_set(&c->reason, NULL);
    ah_buf_init(&j.why, c->overlay.mem, MAX_WHY);
    while (passes && next_level(&l))
        for (size_t i = 0, more = l.hooks->after != NULL; more && passes; i++) {
            ah_ruling_init(&r, c->overlay.mem);
            there = l.hooks->after(l.hooks->ud, l.of, c, i, o, ah_buf_slice(words), &r);
            passes = !there || obey_after(&j, l.hooks, o, words, held, &r);
            ah_ruling_clear(&r);
            more = there;
        }
    passes = passes && note_asked(&j);
    ah_buf_clear(&j.why);
    return passes;
}
