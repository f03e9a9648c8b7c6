/* Tables of ranges with binary search; ASCII is not looked up. A character includes the
 * following marks without a column of their own, so that text is never split between them. */
#include "base/width.h"

#include <stdbool.h>

#include "base/json_chars.h"
#include "base/width_table.h"

enum {
    JOINER = 0x200d,
    AS_EMOJI = 0xfe0f,
    FIRST_FLAG = 0x1f1e6,
    LAST_FLAG = 0x1f1ff,
    FIRST_TONE = 0x1f3fb,
    LAST_TONE = 0x1f3ff
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool is_in(const ah_width_range *ranges, size_t n, uint32_t c)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (c > ranges[middle].last)
            low = middle + 1;
        else if (c < ranges[middle].first)
            high = middle;
        else
            return true;
    }
    return false;
}

static bool is_picture(uint32_t c)
{
    return c >= 0xa9 && is_in(pictures, COUNT(pictures), c);
}

static bool is_flag(uint32_t c)
{
    return c >= FIRST_FLAG && c <= LAST_FLAG;
}

static unsigned columns_of(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return 0;
    if (c < 0x300)
        return 1;
    if (is_in(zero, COUNT(zero), c))
        return 0;
    return is_in(wide, COUNT(wide), c) ? 2 : 1;
}

/* Decodes the character at p and returns its length; malformed: 1 byte, U+FFFD. */
static size_t decode(const char *p, const char *end, uint32_t *c)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t n = ah_utf8_len(p, end);

    *c = n ? (unsigned char)*p & mask[n] : 0xfffd;
    for (size_t i = 1; i < n; i++)
        *c = *c << 6 | ((unsigned char)p[i] & 0x3fu);
    return n ? n : 1;
}

/* True if c belongs to the character before it, which began with `base`. */
static bool goes_with(uint32_t base, uint32_t before, uint32_t c)
{
    if (before == JOINER && is_picture(base) && is_picture(c))
        return true;
    if (c >= FIRST_TONE && c <= LAST_TONE)
        return is_picture(base);
    return c >= 0x300 && is_in(zero, COUNT(zero), c);
}

static bool takes_emoji(uint32_t c)
{
    return (c >= '0' && c <= '9') || c == '#' || c == '*' || is_picture(c);
}

size_t ah_width_next(ah_slice text, unsigned *columns)
{
    const char *p = text.p, *end = p + text.n;
    uint32_t base, before, c;
    size_t n;

    p += decode(p, end, &base);
    *columns = columns_of(base);
    if (is_flag(base) && p < end && (n = decode(p, end, &c), is_flag(c))) {
        *columns = 2;
        p += n;
    }
    for (before = base; *columns && p < end && (unsigned char)*p >= 0xcc; before = c, p += n) {
        n = decode(p, end, &c);
        if (!goes_with(base, before, c) || ah_control_len((ah_slice){p, (size_t)(end - p)}))
            break;
        if (c == AS_EMOJI && takes_emoji(base))
            *columns = 2;
    }
    return (size_t)(p - text.p);
}

/* Returns the length of the string of a command (such as a title), with its terminator. */
static size_t string_len(ah_slice text)
{
    for (size_t i = 2; i < text.n; i++) {
        if (text.p[i] == '\a')
            return i + 1;
        if (text.p[i] == '\033')
            return i + 1 < text.n && text.p[i + 1] == '\\' ? i + 2 : i;
    }
    return text.n;
}

size_t ah_escape_len(ah_slice text)
{
    size_t i = 1;

    if (!text.n || *text.p != '\033')
        return 0;
    if (text.n > 1 && strchr("]PX^_", text.p[1]) && text.p[1])
        return string_len(text);
    if (text.n > 1 && text.p[1] == '[')
        for (i = 2; i < text.n && text.p[i] >= 0x20 && text.p[i] < 0x40;)
            i++;
    else
        while (i < text.n && text.p[i] >= 0x20 && text.p[i] < 0x30)
            i++;
    return i < text.n && text.p[i] >= 0x30 && text.p[i] < 0x7f ? i + 1 : i;
}

size_t ah_width(ah_slice text, size_t column)
{
    size_t at = column, widest = 0;

    for (size_t i = 0, n; i < text.n; i += n) {
        ah_slice rest = {text.p + i, text.n - i};
        unsigned columns = 0;

        if ((n = ah_escape_len(rest)) == 0)
            n = ah_width_next(rest, &columns);
        if (*rest.p == '\t')
            at += AH_TAB_STOP - at % AH_TAB_STOP;
        else if (*rest.p == '\n') {
            widest = at - column > widest ? at - column : widest;
            at = column = 0;
        }
        at += columns;
    }
    return at - column > widest ? at - column : widest;
}
