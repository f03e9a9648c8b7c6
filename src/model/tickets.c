/* Tickets: numbers of calls that go on in the background. The result of such a call has the member
 * `ticket`, and so has the note that follows with its outcome: so the transcript alone says which
 * calls are outstanding. */
#include "model/transcript.h"

enum { MAX_NOTE = 300 << 20 };

ah_text *ah_entry_ticket_note(const ah_mem *mem, int64_t ticket, ah_slice text, ah_slice images,
                              int64_t time)
{
    ah_text *t = NULL;
    ah_buf b;

    ah_buf_init(&b, mem, MAX_NOTE);
    ah_buf_str(&b, "{\"type\":\"note\",\"text\":");
    ah_json_put_string(&b, text);
    if (images.p) {
        ah_buf_str(&b, ",\"images\":");
        ah_buf_put(&b, images);
    }
    ah_buf_fmt(&b, ",\"ticket\":%lld,\"time\":%lld}", (long long)ticket, (long long)time);
    ah_text_from_buf(&b, "entry", &t, NULL);
    ah_buf_clear(&b);
    return t;
}

int64_t ah_entry_ticket_of(const ah_entry *e)
{
    ah_json_num n;
    ah_slice ticket;

    if (e->kind != AH_ENTRY_TOOL_RESULT && e->kind != AH_ENTRY_NOTE)
        return 0;
    ticket = ah_json_member(ah_text_slice(e->json), "ticket");
    return ticket.p && ah_json_number(ticket, &n) && n.is_int && n.i > 0 ? n.i : 0;
}

/* The number of entries with those of the pending turn: the results, and what is staged. */
static size_t count_all(const ah_transcript *t)
{
    return t->n + t->n_slots + t->n_staged;
}

static ah_entry entry_at(const ah_transcript *t, size_t i)
{
    if (i < t->n)
        return t->entry[i];
    if (i - t->n < t->n_slots)
        return (ah_entry){.kind = AH_ENTRY_TOOL_RESULT, .json = t->slot[i - t->n].result};
    return t->staged[i - t->n - t->n_slots];
}

static int64_t ticket_at(const ah_transcript *t, size_t i)
{
    ah_entry e = entry_at(t, i);

    return e.json ? ah_entry_ticket_of(&e) : 0;
}

int64_t ah_tickets_last(const ah_transcript *t)
{
    int64_t last = 0, ticket;

    for (size_t i = 0; i < count_all(t); i++)
        if ((ticket = ticket_at(t, i)) > last)
            last = ticket;
    return last;
}

/* The tickets without a note, by the numbers of their results. */
typedef struct open_tickets {
    size_t at[AH_MAX_TICKETS];
    size_t n;
} open_tickets;

static void forget(open_tickets *o, size_t i)
{
    memmove(o->at + i, o->at + i + 1, (o->n - i - 1) * sizeof *o->at);
    o->n--;
}

static void close_one(const ah_transcript *t, open_tickets *o, int64_t ticket)
{
    for (size_t i = 0; i < o->n; i++)
        if (ticket_at(t, o->at[i]) == ticket) {
            forget(o, i);
            return;
        }
}

static void find_open(const ah_transcript *t, open_tickets *o)
{
    int64_t ticket;

    for (size_t i = 0; i < count_all(t); i++) {
        if (!(ticket = ticket_at(t, i)))
            continue;
        if (entry_at(t, i).kind == AH_ENTRY_NOTE) {
            close_one(t, o, ticket);
            continue;
        }
        if (o->n == AH_MAX_TICKETS)
            forget(o, 0);
        o->at[o->n++] = i;
    }
}

static ah_status add_note(ah_transcript *t, size_t of, const char *why, int64_t time, ah_err *err)
{
    int64_t ticket = ticket_at(t, of);
    ah_slice name = ah_json_member(ah_text_slice(entry_at(t, of).json), "name");
    ah_text *note = NULL;
    ah_buf b;

    ah_buf_init(&b, t->mem, MAX_NOTE);
    ah_buf_fmt(&b, "Ticket %lld (", (long long)ticket);
    ah_json_string(name, &b);
    ah_buf_fmt(&b, "): %s", why);
    if (ah_buf_ok(&b))
        note = ah_entry_ticket_note(t->mem, ticket, ah_buf_slice(&b), (ah_slice){NULL, 0}, time);
    ah_buf_clear(&b);
    return ah_transcript_add(t, AH_ENTRY_NOTE, note, err);
}

ah_status ah_tickets_close(ah_transcript *t, const char *why, int64_t time, ah_err *err)
{
    open_tickets open = {.n = 0};
    ah_status st = AH_OK;
    size_t n = t->n;

    find_open(t, &open);
    for (size_t i = 0; i < open.n && st == AH_OK;
         i++) /* notes move the entries of a pending turn */
        st = add_note(t, open.at[i] < n ? open.at[i] : open.at[i] + t->n - n, why, time, err);
    return st;
}
