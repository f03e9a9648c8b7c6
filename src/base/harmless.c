/* One pass: text between two controls is repaired and copied as a whole. */
#include "base/harmless.h"

#include <stdio.h>

#include "base/json.h"
#include "base/json_chars.h"

/* U+180E, U+200B, U+2060 to U+206F, U+FEFF, U+FFF9 to U+FFFB, U+E0000 to U+E007F. */
static bool is_unseen(const unsigned char *p, size_t n)
{
    if (n >= 4 && *p == 0xf3)
        return p[1] == 0xa0 && (p[2] == 0x80 || p[2] == 0x81);
    if (n < 3)
        return false;
    if (*p == 0xe2)
        return (p[1] == 0x80 && p[2] == 0x8b) || (p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf);
    if (*p == 0xef)
        return (p[1] == 0xbb && p[2] == 0xbf) || (p[1] == 0xbf && p[2] >= 0xb9 && p[2] <= 0xbb);
    return *p == 0xe1 && p[1] == 0xa0 && p[2] == 0x8e;
}

size_t ah_hidden_len(ah_slice text)
{
    unsigned char c = text.n ? (unsigned char)*text.p : ' ';

    if (c >= ' ' && c < 0x7f)
        return 0;
    if (c >= 0xe1 && is_unseen((const unsigned char *)text.p, text.n))
        return c == 0xf3 ? 4 : 3;
    return ah_control_len(text);
}

size_t ah_control_code(const char *p, size_t n, char out[AH_CONTROL_CODE])
{
    const unsigned char *b = (const unsigned char *)p;

    if (n == 4)
        return (size_t)snprintf(out, AH_CONTROL_CODE, "\\u{%x}",
                                (b[0] & 0x07u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 |
                                    (b[3] & 0x3fu));
    if (n == 3)
        return (size_t)snprintf(out, AH_CONTROL_CODE, "\\u%04x",
                                (b[0] & 0x0fu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu));
    if (n == 2 && *b == 0xd8)
        return (size_t)snprintf(out, AH_CONTROL_CODE, "\\u%04x",
                                (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu));
    return (size_t)snprintf(out, AH_CONTROL_CODE, "\\x%02x", b[n - 1]);
}

static void put_control(const char *p, size_t n, bool lines, bool before_line_end, ah_buf *out)
{
    char code[AH_CONTROL_CODE];

    if (lines && *p == '\r' && before_line_end)
        return;
    ah_buf_add(out, code, ah_control_code(p, n, code));
}

void ah_harmless(ah_slice text, bool lines, ah_buf *out)
{
    size_t from = 0;

    for (size_t i = 0, n; i < text.n; i += n ? n : 1) {
        const char *p = text.p + i;

        n = *p == '\t' || (lines && *p == '\n') ? 0 : ah_hidden_len((ah_slice){p, text.n - i});
        if (!n)
            continue;
        ah_utf8_repair((ah_slice){text.p + from, i - from}, out);
        put_control(p, n, lines, i + 1 < text.n && p[1] == '\n', out);
        from = i + n;
    }
    ah_utf8_repair((ah_slice){text.p + from, text.n - from}, out);
}

static size_t white_len(ah_slice text)
{
    size_t n = 0;

    while (n < text.n && (text.p[n] == ' ' || (text.p[n] >= '\t' && text.p[n] <= '\r')))
        n++;
    return n;
}

/* Appends the first character, white space up to the next one, or at most `room` printable
 * characters of ASCII. Returns its length in the text. *chars grows by what was appended. */
static size_t put_first(ah_slice text, size_t room, size_t *chars, ah_buf *out)
{
    size_t n = white_len(text), plain = 0;
    char code[AH_CONTROL_CODE];

    while (plain < text.n && plain < room && text.p[plain] > ' ' && text.p[plain] < 0x7f)
        plain++;
    if (plain) {
        ah_buf_add(out, text.p, plain);
        *chars += plain;
        return plain;
    }
    *chars += 1;
    if (n) {
        ah_buf_char(out, ' ');
    } else if ((n = ah_hidden_len(text)) > 0) {
        size_t len = ah_control_code(text.p, n, code);

        ah_buf_add(out, code, len);
        *chars += len - 1;
    } else if ((n = ah_utf8_len(text.p, text.p + text.n)) > 0) {
        ah_buf_add(out, text.p, n);
    } else {
        n = 1;
        ah_buf_str(out, "\xef\xbf\xbd");
    }
    return n;
}

void ah_harmless_line(ah_slice text, size_t most, ah_buf *out)
{
    size_t chars = 0, cut = out->len; /* cut: length of what fits before "..." */

    for (size_t i = 0; i < text.n && chars <= most;) {
        size_t room = chars + 3 < most ? most - 3 - chars : 1;

        i += put_first((ah_slice){text.p + i, text.n - i}, room, &chars, out);
        if (chars + 3 <= most)
            cut = out->len;
    }
    if (chars > most && ah_buf_ok(out)) {
        ah_buf_reset(out, cut);
        ah_buf_str(out, "...");
    }
}
