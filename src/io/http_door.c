/* The time that the server waits for a client: for a head or a body, measured from its beginning,
 * however often a byte comes; for an answer, while the client's socket is full, until it is empty
 * again. */
#include "io/http_door.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif

enum {
    STALL_MS = 100, /* a piece not taken for this time counts as slow */
    LEFT_MS = 1000  /* a client whose side is closed for this time no longer expects an answer */
};

/* Time that each kind of visit has while other clients wait to connect. */
static const int64_t patience_ms[] = {[AH_VISIT_REFUSED] = 0,
                                      [AH_VISIT_KEPT] = 200,
                                      [AH_VISIT_FRESH] = 1000,
                                      [AH_VISIT_BODY] = 3000,
                                      [AH_VISIT_ANSWER] = 3000};

void ah_door_enter(ah_door *d, ah_visit *v, int fd, int64_t now)
{
    *v = (ah_visit){
        .fd = fd, .phase = AH_VISIT_FRESH, .since = now, .next = d->first, .link = &d->first};
    if (v->next)
        v->next->link = &v->next;
    d->first = v;
    d->n++;
}

void ah_door_leave(ah_door *d, ah_visit *v)
{
    *v->link = v->next;
    if (v->next)
        v->next->link = v->link;
    d->n--;
}

void ah_visit_begin(ah_visit *v, ah_visit_phase phase, int64_t now)
{
    v->phase = phase;
    v->since = now;
    v->handed = v->behind = v->left = 0;
}

/* True if the client has received everything, or if the system does not report it. */
static bool all_arrived(int fd)
{
    int left = 0;

#ifdef SIOCOUTQ
    if (ioctl(fd, SIOCOUTQ, &left) != 0)
        left = 0;
#else
    (void)fd;
#endif
    return left == 0;
}

void ah_visit_taken(ah_visit *v, int64_t now)
{
    if (!v->behind && v->handed && now - v->handed >= STALL_MS)
        v->behind = v->handed;
    else if (v->behind && all_arrived(v->fd))
        v->behind = 0;
    v->handed = 0;
}

void ah_visit_hand(ah_visit *v, int64_t now)
{
    v->handed = now;
}

bool ah_visit_overdue(const ah_door *d, const ah_visit *v, int64_t now)
{
    int64_t limit = d->limit_ms[v->phase];

    return limit && now - v->since >= limit;
}

/* True if the client has closed its side. It is then usually gone, though it may still read. */
static bool has_left(const ah_visit *v)
{
    char c;

    return recv(v->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool ah_visit_gone(ah_visit *v, int64_t now)
{
    struct pollfd p = {.fd = v->fd};

    if (poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP)))
        return true;
    if (!has_left(v))
        v->left = 0;
    else if (!v->left)
        v->left = now;
    return v->left && now - v->left >= LEFT_MS;
}

/* The time since which it makes the server wait; 0: it does not. */
static int64_t slow_since(const ah_visit *v, int64_t now)
{
    if (v->phase != AH_VISIT_ANSWER)
        return v->since;
    if (v->behind)
        return v->behind;
    if (v->handed)
        return now - v->handed >= STALL_MS ? v->handed : 0;
    return has_left(v) ? v->since : 0;
}

ah_visit *ah_door_slowest(const ah_door *d, int64_t now)
{
    ah_visit *slowest = NULL;
    int64_t least = 0;

    for (ah_visit *v = d->first; v; v = v->next) {
        int64_t since = slow_since(v, now);

        if (v->sent_off)
            return NULL;
        if (!since || now - since < patience_ms[v->phase])
            continue;
        if (!slowest || v->phase < slowest->phase ||
            (v->phase == slowest->phase && since < least)) {
            slowest = v;
            least = since;
        }
    }
    return slowest;
}
