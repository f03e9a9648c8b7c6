/* The live area: lines below a program's output on a terminal. They are drawn, erased and drawn
 * again while more text is printed above them. The module writes nothing itself: it appends the
 * bytes for the terminal to a buffer. It breaks rows itself and ends each with a line end, so
 * the terminal's own way of wrapping does not matter. The area owns a buffer for its text; lack
 * of memory shows in the buffers. Callers: lua. */
#ifndef AH_BASE_AREA_H
#define AH_BASE_AREA_H

#include "base/buf.h"

enum {
    AH_AREA_ROWS = 500,       /* most rows drawn on a larger screen */
    AH_AREA_TEXT = 256 << 10, /* most bytes of its lines */
    AH_AREA_AWAY = 64         /* most bytes that erase it */
};

typedef struct ah_area {
    ah_buf text; /* the lines, each with a "\n" after it; no controls except our own styles */
    bool cursor; /* the cursor is shown, at: */
    size_t cursor_line, cursor_column; /* from 0, in columns of the line */
    unsigned columns, rows;            /* size of the terminal */
    bool drawn;
    int shown;                    /* state of the cursor: 1 shown, 0 hidden by us, -1 unknown */
    unsigned at, at_column;       /* position of the cursor in the area after the last write */
    size_t n_rows;                /* number of drawn rows */
    unsigned width[AH_AREA_ROWS]; /* columns of each drawn row */
    size_t above; /* columns of the unfinished line above the area, counted from its start */
    unsigned above_column; /* columns of that line in its last row; 0: the row is full, and the
                              cursor is below */
    bool wide; /* that line has wide characters, so where it ends after it is wrapped anew is not
                  known: they may leave the last column of a row blank */
} ah_area;

void ah_area_init(ah_area *a, const ah_mem *mem);
void ah_area_clear(ah_area *a);

/* Sets the size of the terminal. reflows: the terminal wraps the lines that it shows anew. */
void ah_area_resize(ah_area *a, unsigned columns, unsigned rows, bool reflows);

/* Forgets the drawn area after other output: it is no longer on the screen, and the cursor is at
 * the start of a line. */
void ah_area_forget(ah_area *a);

/* Appends the bytes that erase the area; the cursor is then where the area began. */
void ah_area_erase(ah_area *a, ah_buf *out);
/* Appends the bytes that clear the screen; the area is to be drawn again, at its top. */
void ah_area_clear_screen(ah_area *a, ah_buf *out);
/* Appends the bytes that print a text (from ah_harmless, with styles) above the area, after the
 * text printed before. The area is then erased, and must be drawn again. */
void ah_area_print(ah_area *a, ah_slice text, ah_buf *out);
/* Appends the bytes that draw the area in place of the drawn one. Of an area higher than the
 * terminal it draws the part with the cursor. */
void ah_area_draw(ah_area *a, ah_buf *out);
/* Puts the bytes that erase the area into out; returns their number, 0 if nothing is drawn. */
size_t ah_area_away(const ah_area *a, char out[AH_AREA_AWAY]);

#endif
