/* Common lines at both ends are left out first, by bytes. What is between them is compared by
 * hashes of lines with the algorithm of E. Myers, "An O(ND) Difference Algorithm" (1986): row d of
 * its table has, for each diagonal k, the furthest line that d changes reach. */
#include "base/diff.h"

#include <string.h>

enum {
    CONTEXT = 3,
    MAX_CHANGES = 1000,  /* of the table, which takes 4 bytes for the square of it */
    MAX_LINES = 1000000, /* of both texts between the common ends */
    MAX_STEPS = 20 << 20 /* comparisons of lines */
};

/* A range of lines that is replaced by another one; both may be empty. */
typedef struct block {
    size_t a, n_a, b, n_b;
} block;

typedef struct line {
    uint64_t hash;
    ah_slice s; /* with its \n, if it has one */
} line;

typedef struct comparing {
    const ah_mem *mem;
    ah_slice a, b; /* the texts between their common ends */
    size_t first;  /* lines before them */
    line *line_a, *line_b;
    size_t n_a, n_b;
    bool *gone, *new; /* by line of a, of b */
    int32_t *row;     /* row d begins at d * d */
    size_t cap;
    block *block;
    size_t n, cap_blocks;
} comparing;

/* -- lines ----------------------------------------------------------------------------------- */

/* Returns the line at the front, with its \n. */
static ah_slice first_line(ah_slice s)
{
    const char *end = s.n ? memchr(s.p, '\n', s.n) : NULL;

    return (ah_slice){s.p, end ? (size_t)(end - s.p) + 1 : s.n};
}

static ah_slice after(ah_slice s, size_t n)
{
    return (ah_slice){s.p + n, s.n - n};
}

static size_t count_lines(ah_slice s)
{
    size_t n = 0;

    for (; s.n; n++)
        s = after(s, first_line(s).n);
    return n;
}

/* FNV-1a. */
static uint64_t hash(ah_slice s)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return h;
}

static line *split(const ah_mem *mem, ah_slice s, size_t n)
{
    line *list = ah_alloc(mem, (n + 1) * sizeof *list);

    for (size_t i = 0; list && i < n; i++) {
        list[i].s = first_line(s);
        list[i].hash = hash(list[i].s);
        s = after(s, list[i].s.n);
    }
    return list;
}

static bool is_same(const line *a, const line *b)
{
    return a->hash == b->hash && ah_slice_eq(a->s, b->s);
}

/* -- common ends ------------------------------------------------------------------------------- */

static bool at_line(ah_slice s, size_t at)
{
    return at == 0 || s.p[at - 1] == '\n';
}

/* Sets a, b and first. */
static void leave_out_ends(comparing *c, ah_slice a, ah_slice b)
{
    size_t most = a.n < b.n ? a.n : b.n, head = 0, tail = 0;
    ah_slice end;

    while (head < most && a.p[head] == b.p[head])
        head++;
    while (!at_line(a, head))
        head--;
    while (tail < most - head && a.p[a.n - 1 - tail] == b.p[b.n - 1 - tail])
        tail++;
    end = after(a, a.n - tail);
    if (tail && !(at_line(a, a.n - tail) && at_line(b, b.n - tail)))
        tail -= first_line(end).n;
    c->first = count_lines((ah_slice){a.p, head});
    c->a = (ah_slice){a.p + head, a.n - head - tail};
    c->b = (ah_slice){b.p + head, b.n - head - tail};
}

/* -- comparing --------------------------------------------------------------------------------- */

static int32_t *place(const comparing *c, int d, int k)
{
    return &c->row[d * d + d + k];
}

/* True if row d reaches diagonal k by a line of b, not of a. */
static bool is_down(const comparing *c, int d, int k)
{
    return k == -d || (k != d && *place(c, d - 1, k - 1) < *place(c, d - 1, k + 1));
}

/* Makes row d. Returns true if it reaches the end of both texts. */
static bool next_row(comparing *c, int d, size_t *steps)
{
    int n_a = (int)c->n_a, n_b = (int)c->n_b;
    bool end = false;

    for (int k = -d; k <= d; k += 2) {
        int x = d == 0             ? 0
                : is_down(c, d, k) ? *place(c, d - 1, k + 1)
                                   : *place(c, d - 1, k - 1) + 1;
        int y = x - k;

        for (; x < n_a && y < n_b && is_same(&c->line_a[x], &c->line_b[y]); x++, y++)
            *steps += 1 + c->line_a[x].s.n / 64;
        *place(c, d, k) = x;
        end = end || (x == n_a && y == n_b);
    }
    *steps += (size_t)d;
    return end;
}

static bool is_nomem(ah_buf *out)
{
    out->status = AH_NOMEM;
    return false;
}

/* Finds the rows up to the end. *d is the number of the last one. False: too many, or no memory. */
static bool find_rows(comparing *c, int *d, ah_buf *out)
{
    size_t steps = 0;

    for (*d = 0; *d <= MAX_CHANGES && steps < MAX_STEPS; ++*d) {
        size_t n = (size_t)(*d + 1) * (size_t)(*d + 1);
        int32_t *row = ah_grow(c->mem, c->row, &c->cap, n, sizeof *row);

        if (!row)
            return is_nomem(out);
        c->row = row;
        if (next_row(c, *d, &steps))
            return true;
    }
    return false;
}

/* Goes back from the end, and marks the lines that differ. */
static void mark(comparing *c, int d)
{
    int x = (int)c->n_a, y = (int)c->n_b;

    for (; d > 0; d--) {
        int k = x - y;
        bool down = is_down(c, d, k);

        k += down ? 1 : -1;
        x = *place(c, d - 1, k);
        y = x - k;
        if (down)
            c->new[y] = true;
        else
            c->gone[x] = true;
    }
}

static bool add_block(comparing *c, const block *add, ah_buf *out)
{
    block *list = ah_grow(c->mem, c->block, &c->cap_blocks, c->n + 1, sizeof *list);

    if (!list)
        return is_nomem(out);
    c->block = list;
    list[c->n] = *add;
    list[c->n].a += c->first;
    list[c->n].b += c->first;
    c->n++;
    return true;
}

static void collect(comparing *c, ah_buf *out)
{
    size_t a = 0, b = 0;
    bool ok = true;

    while (ok && (a < c->n_a || b < c->n_b)) {
        block one = {.a = a, .b = b};

        while (a < c->n_a && c->gone[a])
            a++;
        while (b < c->n_b && c->new[b])
            b++;
        one.n_a = a - one.a;
        one.n_b = b - one.b;
        if (one.n_a || one.n_b) {
            ok = add_block(c, &one, out);
        } else {
            a++;
            b++;
        }
    }
}

/* True if the blocks are found. False: there is too much to compare, or no memory. */
static bool compare_lines(comparing *c, ah_buf *out)
{
    int d;

    if (c->n_a + c->n_b > MAX_LINES)
        return false;
    c->line_a = split(c->mem, c->a, c->n_a);
    c->line_b = split(c->mem, c->b, c->n_b);
    c->gone = ah_alloc(c->mem, c->n_a + 1);
    c->new = ah_alloc(c->mem, c->n_b + 1);
    if (!c->line_a || !c->line_b || !c->gone || !c->new)
        return is_nomem(out);
    if (!find_rows(c, &d, out))
        return false;
    mark(c, d);
    collect(c, out);
    return true;
}

static void compare(comparing *c, ah_buf *out)
{
    block whole;

    c->n_a = count_lines(c->a);
    c->n_b = count_lines(c->b);
    if (compare_lines(c, out) || !ah_buf_ok(out))
        return;
    whole = (block){.n_a = c->n_a, .n_b = c->n_b};
    add_block(c, &whole, out);
}

static void clear(comparing *c)
{
    ah_free(c->mem, c->line_a);
    ah_free(c->mem, c->line_b);
    ah_free(c->mem, c->gone);
    ah_free(c->mem, c->new);
    ah_free(c->mem, c->row);
    ah_free(c->mem, c->block);
}

/* -- text ------------------------------------------------------------------------------------ */

typedef struct printing {
    ah_slice a, b;         /* what is left of the texts ... */
    size_t line_a, line_b; /* ... from these lines on, counted from 0 */
    size_t end, most;      /* lines of the first text; the greatest length of `out` */
    ah_buf *out;
    bool cut;
} printing;

static void skip(ah_slice *s, size_t *at, size_t to)
{
    for (; *at < to; ++*at)
        *s = after(*s, first_line(*s).n);
}

static void put_lines(printing *p, char mark, ah_slice *s, size_t *at, size_t to)
{
    static const char no_end[] = "\n\\ No newline at end of file\n";

    for (; *at < to && !p->cut; ++*at) {
        ah_slice one = first_line(*s);

        if (p->out->len + one.n + sizeof no_end > p->most) {
            p->cut = true;
            return;
        }
        ah_buf_char(p->out, mark);
        ah_buf_put(p->out, one);
        if (one.p[one.n - 1] != '\n')
            ah_buf_str(p->out, no_end);
        *s = after(*s, one.n);
    }
}

/* Lines in both texts. */
static void put_common(printing *p, size_t to)
{
    size_t n = to > p->line_a ? to - p->line_a : 0;

    put_lines(p, ' ', &p->a, &p->line_a, to);
    skip(&p->b, &p->line_b, p->line_b + n);
}

/* A range without lines is named by the line before it. */
static void put_range(ah_buf *out, char sign, size_t from, size_t n)
{
    ah_buf_fmt(out, "%c%zu,%zu", sign, n ? from + 1 : from, n);
}

/* Puts one hunk, of n blocks. */
static void put_hunk(printing *p, const block *list, size_t n)
{
    const block *last = &list[n - 1];
    size_t before = list->a < CONTEXT ? list->a : CONTEXT, end = last->a + last->n_a,
           behind = p->end - end < CONTEXT ? p->end - end : CONTEXT;

    skip(&p->a, &p->line_a, list->a - before);
    skip(&p->b, &p->line_b, list->b - before);
    if (p->out->len + 100 > p->most) {
        p->cut = true;
        return;
    }
    ah_buf_str(p->out, "@@ ");
    put_range(p->out, '-', p->line_a, end + behind - p->line_a);
    ah_buf_char(p->out, ' ');
    put_range(p->out, '+', p->line_b, last->b + last->n_b + behind - p->line_b);
    ah_buf_str(p->out, " @@\n");
    for (size_t i = 0; i < n; i++) {
        put_common(p, list[i].a);
        put_lines(p, '-', &p->a, &p->line_a, list[i].a + list[i].n_a);
        put_lines(p, '+', &p->b, &p->line_b, list[i].b + list[i].n_b);
    }
    put_common(p, end + behind);
}

bool ah_diff(const ah_mem *mem, ah_slice before, ah_slice after, size_t most, ah_buf *out)
{
    comparing c = {.mem = mem};
    printing p = {.a = before, .b = after, .most = out->len + most, .out = out};

    if (ah_slice_eq(before, after))
        return false;
    leave_out_ends(&c, before, after);
    compare(&c, out);
    p.end = count_lines(before);
    for (size_t i = 0, n; i < c.n && !p.cut && ah_buf_ok(out); i += n) {
        for (n = 1; i + n < c.n; n++)
            if (c.block[i + n].a - (c.block[i + n - 1].a + c.block[i + n - 1].n_a) > 2 * CONTEXT)
                break;
        put_hunk(&p, c.block + i, n);
    }
    clear(&c);
    return p.cut;
}
