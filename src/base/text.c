/* A text and its bytes are one block, with a NUL after them for printing. */
#include "base/text.h"

ah_text *ah_text_new(const ah_mem *mem, ah_slice s)
{
    ah_text *t = ah_resize(mem, NULL, sizeof *t + s.n + 1);

    if (!t)
        return NULL;
    t->mem = mem;
    t->refs = 1;
    t->len = s.n;
    if (s.n)
        memcpy(t->data, s.p, s.n);
    t->data[s.n] = '\0';
    return t;
}

ah_text *ah_text_ref(ah_text *t)
{
    if (t)
        t->refs++;
    return t;
}

void ah_text_unref(ah_text *t)
{
    if (t && --t->refs == 0)
        ah_free(t->mem, t);
}

ah_status ah_text_from_buf(const ah_buf *b, const char *what, ah_text **out, ah_err *err)
{
    ah_text *t;

    if (!ah_buf_ok(b))
        return ah_buf_error(b, what, err);
    if (!(t = ah_text_new(b->mem, ah_buf_slice(b))))
        return ah_err_nomem(err);
    *out = t;
    return AH_OK;
}

void ah_text_set(ah_text **slot, ah_text *t)
{
    ah_text *old = *slot;

    *slot = t;
    ah_text_unref(old);
}
