/* The live area: lines at the foot of what a program has written to a terminal, which are drawn,
 * taken away and drawn again while more is written above them. Pure: it appends what is to be
 * written. Rows are broken here and end with a line end of their own, so that no terminal's way of
 * wrapping matters. */
#ifndef AH_BASE_AREA_H
#define AH_BASE_AREA_H

#include "base/buf.h"

enum {
    AH_AREA_ROWS = 500,       /* so many are drawn at most, of a screen with more */
    AH_AREA_TEXT = 256 << 10, /* bytes of its lines */
    AH_AREA_AWAY = 64         /* bytes that take it away */
};

typedef struct ah_area {
    ah_buf text; /* its lines, "\n" behind each; no controls but styles of ours */
    bool cursor; /* is shown, at: */
    size_t cursor_line, cursor_column; /* from 0, in columns of the line */
    unsigned columns, rows;            /* of the terminal */
    bool drawn;
    int shown;                    /* the cursor: 1, 0 hidden by us, -1 unknown */
    unsigned at, at_column;       /* where the cursor was left, in the area */
    size_t n_rows;                /* drawn */
    unsigned width[AH_AREA_ROWS]; /* of each */
    size_t above;                 /* columns of the unfinished line above it, since its beginning */
    unsigned above_column; /* of them in its last row; 0: it fills that, and the cursor is below */
} ah_area;

void ah_area_init(ah_area *a, const ah_mem *mem);
void ah_area_clear(ah_area *a);

/* Its size. reflows: the terminal breaks the lines that it shows anew. */
void ah_area_resize(ah_area *a, unsigned columns, unsigned rows, bool reflows);

/* Others have written: it is gone from the screen, and the cursor is at the beginning of a line. */
void ah_area_forget(ah_area *a);

/* Appends what takes it off the screen; the cursor is where it began. */
void ah_area_erase(ah_area *a, ah_buf *out);
/* Appends what writes a text (as ah_harmless has it, and styles) above it, behind what was written
 * before. It is gone from the screen then, and to be drawn. */
void ah_area_print(ah_area *a, ah_slice text, ah_buf *out);
/* Appends what draws it, in place of what is drawn of it; of one that is higher than the terminal
 * the part with the cursor. */
void ah_area_draw(ah_area *a, ah_buf *out);
/* Puts the bytes that take the area away; returns their number, 0 where nothing is drawn. */
size_t ah_area_away(const ah_area *a, char out[AH_AREA_AWAY]);

#endif
