/* The layout runs twice: first to find the rows and the row of the cursor, then to write the
 * rows that fit. Escape sequences in the lines are styles of our own and take no column. */
#include "base/area.h"

#include <stdio.h>

#include "base/width.h"

static const char NO_STYLE[] = "\033[0m";

/* One walk over the lines. */
typedef struct layout {
    const ah_area *a;
    unsigned row, column; /* place of the next character */
    size_t line, of_line; /* number of the line, and its columns so far */
    unsigned cursor_row, cursor_column;
    unsigned first, last; /* rows that are written; last is excluded */
    ah_buf *out;          /* NULL: only measure */
    unsigned *width;      /* columns of the written rows */
} layout;

void ah_area_init(ah_area *a, const ah_mem *mem)
{
    *a = (ah_area){.columns = 80, .rows = 24, .shown = 1};
    ah_buf_init(&a->text, mem, AH_AREA_TEXT);
}

void ah_area_clear(ah_area *a)
{
    (void)ah_buf_ok(&a->text);
    ah_buf_clear(&a->text);
}

void ah_area_forget(ah_area *a)
{
    a->drawn = false;
    if (!a->shown)
        a->shown = -1;
    a->above = a->above_column = 0;
}

/* -- its rows --------------------------------------------------------------------------------- */

static bool is_written(const layout *l)
{
    return l->out && l->row >= l->first && l->row < l->last;
}

static void put(layout *l, const char *p, size_t n, unsigned columns)
{
    l->column += columns;
    l->of_line += columns;
    if (!is_written(l))
        return;
    ah_buf_add(l->out, p, n);
    l->width[l->row - l->first] = l->column;
}

static void next_row(layout *l)
{
    l->row++;
    l->column = 0;
    if (is_written(l)) {
        l->width[l->row - l->first] = 0;
        if (l->row > l->first)
            ah_buf_str(l->out, "\r\n");
    }
}

/* The cursor stands before the character that begins at its column, or covers it. */
static void note_cursor(layout *l, unsigned columns, bool end)
{
    const ah_area *a = l->a;

    if (l->line != a->cursor_line || a->cursor_column < l->of_line ||
        (!end && a->cursor_column >= l->of_line + columns))
        return;
    l->cursor_row = l->row;
    l->cursor_column = l->column;
}

static void put_character(layout *l, ah_slice c, unsigned columns)
{
    if (columns > l->a->columns) { /* columns can be 1, and the character wide */
        c = (ah_slice)AH_LIT("\xef\xbf\xbd");
        columns = 1;
    }
    if (l->column + columns > l->a->columns)
        next_row(l);
    note_cursor(l, columns, false);
    put(l, c.p, c.n, columns);
}

static void put_tab(layout *l)
{
    size_t n = AH_TAB_STOP - l->of_line % AH_TAB_STOP;

    while (n--)
        put_character(l, (ah_slice)AH_LIT(" "), 1);
}

/* At the end of a line the cursor needs a place, too; if necessary, a row of its own. */
static void end_line(layout *l)
{
    const ah_area *a = l->a;

    if (a->cursor && l->line == a->cursor_line && a->cursor_column >= l->of_line) {
        if (l->column >= a->columns)
            next_row(l);
        note_cursor(l, 0, true);
    }
    l->line++;
    l->of_line = 0;
}

static void walk(layout *l)
{
    ah_slice text = ah_buf_slice(&l->a->text);

    l->row = l->column = 0;
    l->line = l->of_line = 0;
    for (size_t i = 0, n; i < text.n; i += n) {
        ah_slice rest = {text.p + i, text.n - i};
        unsigned columns = 0;

        if ((n = ah_escape_len(rest)) != 0) {
            if (l->out) /* also for rows that are not written: a style may begin there */
                ah_buf_add(l->out, rest.p, n);
            continue;
        }
        n = ah_width_next(rest, &columns);
        if (*rest.p == '\t') {
            put_tab(l);
        } else if (*rest.p == '\n') {
            end_line(l);
            if (n < rest.n)
                next_row(l);
        } else {
            put_character(l, (ah_slice){rest.p, n}, columns);
        }
    }
}

/* -- on the screen ---------------------------------------------------------------------------- */

/* Returns the rows above the cursor after a terminal of `columns` has wrapped them anew. After
 * the end of a row the cursor stays with its last character. Too few is better: a rest of the
 * area remains, but no line of other output is erased. */
static unsigned rows_above(const ah_area *a, unsigned columns)
{
    bool behind = a->at_column && a->at < a->n_rows && a->at_column >= a->width[a->at];
    unsigned n = (a->at_column - behind) / columns;

    for (size_t i = 0; i < a->at && i < a->n_rows; i++)
        n += a->width[i] > columns ? (a->width[i] + columns - 1) / columns : 1;
    return n;
}

void ah_area_resize(ah_area *a, unsigned columns, unsigned rows, bool reflows)
{
    columns = columns ? columns : 1;
    rows = rows ? rows : 1;
    if (a->drawn && reflows && columns < a->columns)
        a->at = rows_above(a, columns);
    a->at = a->at < rows ? a->at : rows - 1;
    a->n_rows = 0;
    if (columns != a->columns && a->above) {
        a->above = reflows && !a->wide ? a->above : 0;
        a->above_column = a->above ? (unsigned)((a->above - 1) % columns) + 1 : 0;
    }
    a->columns = columns;
    a->rows = rows;
}

static size_t to_its_beginning(const ah_area *a, char out[AH_AREA_AWAY])
{
    if (a->at)
        return (size_t)snprintf(out, AH_AREA_AWAY, "\r\033[%uA\033[J", a->at);
    return (size_t)snprintf(out, AH_AREA_AWAY, "\r\033[J");
}

size_t ah_area_away(const ah_area *a, char out[AH_AREA_AWAY])
{
    return a->drawn ? to_its_beginning(a, out) : 0;
}

static void show_cursor(ah_area *a, int shown, ah_buf *out)
{
    if (a->shown != shown)
        ah_buf_str(out, shown ? "\033[?25h" : "\033[?25l");
    a->shown = shown;
}

/* After an unfinished line the cursor returns to its end; below a line that fills its row it
 * stays. */
void ah_area_erase(ah_area *a, ah_buf *out)
{
    char away[AH_AREA_AWAY];

    if (!a->drawn)
        return;
    ah_buf_add(out, away, to_its_beginning(a, away));
    a->drawn = false;
    if (a->above_column >= a->columns)
        a->above_column = 0;
    if (a->above_column)
        ah_buf_fmt(out, "\033[A\033[%uC", a->above_column);
}

void ah_area_clear_screen(ah_area *a, ah_buf *out)
{
    ah_buf_str(out, "\033[H\033[2J");
    a->drawn = false;
    a->above = a->above_column = 0;
}

/* Text that reaches the right edge continues in the next row, as on the terminal. */
static void follow(ah_area *a, ah_slice text)
{
    for (size_t i = 0, n; i < text.n; i += n) {
        ah_slice rest = {text.p + i, text.n - i};
        unsigned columns = 0;

        if ((n = ah_escape_len(rest)) != 0)
            continue;
        n = ah_width_next(rest, &columns);
        if (*rest.p == '\n') {
            a->above = a->above_column = 0;
            a->wide = false;
        }
        if (*rest.p == '\t') {
            columns = AH_TAB_STOP - a->above_column % AH_TAB_STOP;
            if (a->above_column + columns >= a->columns)
                columns = a->above_column < a->columns ? a->columns - 1 - a->above_column : 0;
        }
        a->above += columns;
        a->wide |= columns > 1 && *rest.p != '\t';
        a->above_column =
            a->above_column + columns > a->columns ? columns : a->above_column + columns;
    }
}

void ah_area_print(ah_area *a, ah_slice text, ah_buf *out)
{
    ah_area_erase(a, out);
    if (a->above && !a->above_column && text.n &&
        *text.p == '\n') { /* the line end is done already */
        a->above = 0;
        text.p++;
        text.n--;
    }
    ah_buf_put(out, text);
    follow(a, text);
}

static void go_to_cursor(ah_area *a, const layout *l, ah_buf *out)
{
    unsigned bottom = (unsigned)a->n_rows - 1, at = l->cursor_row - l->first;

    a->at = a->cursor ? at : bottom;
    a->at_column = a->cursor ? l->cursor_column : 0;
    ah_buf_char(out, '\r');
    if (a->cursor && bottom > at)
        ah_buf_fmt(out, "\033[%uA", bottom - at);
    if (a->at_column)
        ah_buf_fmt(out, "\033[%uC", a->at_column);
}

static void choose_rows(layout *l)
{
    unsigned n = l->row + 1,
             most = l->a->rows > 1 ? l->a->rows - 1 : 1; /* the row of an unfinished line remains */

    most = most < AH_AREA_ROWS ? most : AH_AREA_ROWS;
    l->first = n > most ? n - most : 0;
    if (l->a->cursor && l->cursor_row < l->first)
        l->first = l->cursor_row;
    l->last = n > most ? l->first + most : n;
}

void ah_area_draw(ah_area *a, ah_buf *out)
{
    layout l = {.a = a, .width = a->width};

    ah_area_erase(a, out);
    if (!a->text.len) {
        show_cursor(a, true, out);
        return;
    }
    walk(&l);
    choose_rows(&l);
    if (a->above_column)
        ah_buf_str(out, "\r\n");
    show_cursor(a, a->cursor, out);
    a->width[0] = 0;
    l.out = out;
    walk(&l);
    ah_buf_str(out, NO_STYLE);
    a->n_rows = l.last - l.first;
    go_to_cursor(a, &l, out);
    a->drawn = true;
}
