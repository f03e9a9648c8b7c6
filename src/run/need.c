/* A doubly linked queue of raised slots. */
#include "run/need.h"

#include <stddef.h>

void ah_need_raise(ah_need_queue *all, ah_need_slot *w, ah_need need)
{
    w->need = need;
    if (w->raised)
        return;
    w->raised = true;
    w->next = NULL;
    w->prev = all->last;
    if (all->last)
        all->last->next = w;
    else
        all->first = w;
    all->last = w;
}

bool ah_need_drop(ah_need_queue *all, ah_need_slot *w)
{
    if (!w->raised)
        return false;
    if (w->prev)
        w->prev->next = w->next;
    else
        all->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        all->last = w->prev;
    w->raised = false;
    return true;
}

bool ah_need_take(ah_need_queue *all, ah_need *out)
{
    ah_need_slot *w = all->first;

    if (!w)
        return false;
    *out = w->need;
    return ah_need_drop(all, w);
}
