/* One pass: text between two controls is repaired and copied as a whole. */
#include "base/harmless.h"

#include <stdio.h>

#include "base/json.h"

size_t ah_control_code(const char *p, size_t n, char out[AH_CONTROL_CODE])
{
    const unsigned char *b = (const unsigned char *)p;

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

        n = *p == '\t' || (lines && *p == '\n') ? 0 : ah_control_len((ah_slice){p, text.n - i});
        if (!n)
            continue;
        ah_utf8_repair((ah_slice){text.p + from, i - from}, out);
        put_control(p, n, lines, i + 1 < text.n && p[1] == '\n', out);
        from = i + n;
    }
    ah_utf8_repair((ah_slice){text.p + from, text.n - from}, out);
}
