/* The checker's stack: frames in blocks. The caller provides the first block, so the check of an
 * ordinary value allocates nothing for it. Blocks are kept until the check ends. */
#include "schema/checker.h"

enum { BLOCK = 32 << 10 };

static void begin_block(block *b, size_t size)
{
    size_t head =
        (sizeof *b + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);

    *b = (block){.first = (char *)b + head, .end = (char *)b + size};
}

void schema_first_block(checker *c, void *memory, size_t size)
{
    c->block = memory;
    begin_block(c->block, size);
    c->room = c->block->first;
}

bool schema_next_block(checker *c)
{
    block *b = c->block->above;

    if (!b) {
        if (!(b = ah_resize(c->s->mem, NULL, BLOCK))) {
            c->status = AH_NOMEM;
            return false;
        }
        begin_block(b, BLOCK);
        b->below = c->block;
        c->block->above = b;
    }
    b->left = c->room;
    c->block = b;
    c->room = b->first;
    return true;
}

void schema_leave_block(checker *c)
{
    if (!c->block->below)
        return;
    c->room = c->block->left;
    c->block = c->block->below;
}

void schema_drain(checker *c)
{
    while (c->top)
        c->top->step(c, c->top);
}

void schema_free_frames(checker *c)
{
    while (c->block->above)
        c->block = c->block->above;
    while (c->block->below) {
        block *b = c->block;

        c->block = b->below;
        ah_free(c->s->mem, b);
    }
}
