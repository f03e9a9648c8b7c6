/* A client is slow from when we begin to wait for it: a head or a body from its beginning, however
 * often a byte of it comes, an answer from when its socket is full until it is empty again. */
#include "cli/mock_door.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif

#include "cli/mock_server.h"

enum { STALL_MS = 100 }; /* a piece that is not taken for so long is not taken at once */

/* The time that each kind of visit has while other clients wait to connect. */
static const int64_t patience_ms[] = {[AH_MOCK_VISIT_REFUSED] = 0,
                                      [AH_MOCK_VISIT_KEPT] = 200,
                                      [AH_MOCK_VISIT_FRESH] = 1000,
                                      [AH_MOCK_VISIT_BODY] = 3000,
                                      [AH_MOCK_VISIT_ANSWER] = 3000};

/* The time that each has while nobody waits to connect; 0: no limit of ours. */
static const int64_t limit_ms[] = {[AH_MOCK_VISIT_REFUSED] = 2000,
                                   [AH_MOCK_VISIT_KEPT] = AH_MOCK_IDLE_S * 1000,
                                   [AH_MOCK_VISIT_FRESH] = AH_MOCK_HEAD_S * 1000,
                                   [AH_MOCK_VISIT_BODY] = 0,
                                   [AH_MOCK_VISIT_ANSWER] = 0};

void ah_mock_door_enter(ah_mock_door *d, ah_mock_visit *v, int fd, int64_t now)
{
    *v = (ah_mock_visit){
        .fd = fd, .phase = AH_MOCK_VISIT_FRESH, .since = now, .next = d->first, .link = &d->first};
    if (v->next)
        v->next->link = &v->next;
    d->first = v;
    d->n++;
}

void ah_mock_door_leave(ah_mock_door *d, ah_mock_visit *v)
{
    *v->link = v->next;
    if (v->next)
        v->next->link = v->link;
    d->n--;
}

void ah_mock_visit_begin(ah_mock_visit *v, ah_mock_visit_phase phase, int64_t now)
{
    v->phase = phase;
    v->since = now;
    v->handed = v->behind = 0;
}

/* True if the other side has got all that was sent; where the system does not tell, as well. */
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

void ah_mock_visit_taken(ah_mock_visit *v, int64_t now)
{
    if (!v->behind && v->handed && now - v->handed >= STALL_MS)
        v->behind = v->handed;
    else if (v->behind && all_arrived(v->fd))
        v->behind = 0;
    v->handed = 0;
}

void ah_mock_visit_hand(ah_mock_visit *v, int64_t now)
{
    v->handed = now;
}

bool ah_mock_visit_overdue(const ah_mock_visit *v, int64_t now)
{
    return limit_ms[v->phase] && now - v->since >= limit_ms[v->phase];
}

bool ah_mock_visit_gone(const ah_mock_visit *v)
{
    struct pollfd p = {.fd = v->fd};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP));
}

/* True if it has closed its side: as a rule it is gone, though it may still read. */
static bool has_left(const ah_mock_visit *v)
{
    char c;

    return recv(v->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Since when it has kept us waiting; 0: it does not. */
static int64_t slow_since(const ah_mock_visit *v, int64_t now)
{
    if (v->phase != AH_MOCK_VISIT_ANSWER)
        return v->since;
    if (v->behind)
        return v->behind;
    if (v->handed)
        return now - v->handed >= STALL_MS ? v->handed : 0;
    return has_left(v) ? v->since : 0;
}

ah_mock_visit *ah_mock_door_slowest(const ah_mock_door *d, int64_t now)
{
    ah_mock_visit *slowest = NULL;
    int64_t least = 0;

    for (ah_mock_visit *v = d->first; v; v = v->next) {
        int64_t since = slow_since(v, now);

        if (v->sent_off)
            return NULL;
        if (!since || now - since < patience_ms[v->phase])
            continue;
        if (!slowest || v->phase < slowest->phase || (v->phase == slowest->phase && since < least)) {
            slowest = v;
            least = since;
        }
    }
    return slowest;
}
