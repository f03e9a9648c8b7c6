/* Three bytes are four letters; what is left over at the end is padded with '='. No file, no
 * JSON: escapes are taken out before a text comes here. */
#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 0-63; -1 for what is no letter of the alphabet. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static unsigned byte_at(ah_slice bytes, size_t i)
{
    return i < bytes.n ? (unsigned char)bytes.p[i] : 0;
}

void ah_base64_put(ah_buf *out, ah_slice bytes)
{
    char *to = ah_buf_room(out, (bytes.n + 2) / 3 * 4);

    if (!to)
        return;
    for (size_t i = 0; i < bytes.n; i += 3, to += 4) {
        unsigned three = byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);

        for (size_t k = 0; k < 4; k++)
            to[k] = i + k > bytes.n ? '=' : letters[three >> (18 - 6 * k) & 63];
    }
    out->len += (bytes.n + 2) / 3 * 4;
}

static size_t padding(ah_slice text)
{
    size_t n = 0;

    while (n < 2 && n < text.n && text.p[text.n - 1 - n] == '=')
        n++;
    return n;
}

bool ah_base64_valid(ah_slice text)
{
    size_t pad = padding(text), n = text.n - pad;
    int last = 0;

    if (text.n % 4)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((last = value_of(text.p[i])) < 0)
            return false;
    return !(last & (pad == 2 ? 15 : pad == 1 ? 3 : 0));
}

size_t ah_base64_size(ah_slice text)
{
    return text.n / 4 * 3 - padding(text);
}

void ah_base64_take(ah_slice text, ah_buf *out)
{
    size_t size = ah_base64_size(text), at = 0;
    char *to = ah_buf_room(out, size);

    if (!to)
        return;
    for (size_t i = 0; i + 4 <= text.n; i += 4) {
        unsigned three = 0;

        for (size_t k = 0; k < 4; k++) {
            int v = value_of(text.p[i + k]);

            three = three << 6 | (unsigned)(v < 0 ? 0 : v);
        }
        for (int shift = 16; shift >= 0 && at < size; shift -= 8)
            to[at++] = (char)(three >> shift & 255);
    }
    out->len += size;
}
