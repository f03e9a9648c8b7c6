/* Three bytes become four letters; a shorter rest at the end is padded with '=', or not at all.
 * It knows no JSON: callers remove escapes first. */
#include "base/base64.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* The last two letters are those in which the alphabets differ. */
typedef struct alphabet {
    char letters[65];
    bool padded;
} alphabet;

static const alphabet standard = {LETTERS "+/", true}, url = {LETTERS "-_", false};

/* Returns 0-63, or -1 if c is not a letter of the alphabet. */
static int value_of(const alphabet *a, char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == a->letters[62] ? 62 : c == a->letters[63] ? 63 : -1;
}

static unsigned byte_at(ah_slice bytes, size_t i)
{
    return i < bytes.n ? (unsigned char)bytes.p[i] : 0;
}

static void put(const alphabet *a, ah_buf *out, ah_slice bytes)
{
    size_t whole = (bytes.n + 2) / 3 * 4, over = bytes.n % 3;
    char *to = whole ? ah_buf_room(out, whole) : NULL;

    if (!to)
        return;
    for (size_t i = 0; i < bytes.n; i += 3, to += 4) {
        unsigned three =
            byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);

        for (size_t k = 0; k < 4; k++)
            to[k] = i + k > bytes.n ? '=' : a->letters[three >> (18 - 6 * k) & 63];
    }
    out->len += whole - (a->padded || !over ? 0 : 3 - over);
}

void ah_base64_put(ah_buf *out, ah_slice bytes)
{
    put(&standard, out, bytes);
}

void ah_base64url_put(ah_buf *out, ah_slice bytes)
{
    put(&url, out, bytes);
}

static size_t padding(ah_slice text)
{
    size_t n = 0;

    while (n < 2 && n < text.n && text.p[text.n - 1 - n] == '=')
        n++;
    return n;
}

static const char *fault_of(const alphabet *a, ah_slice text, size_t *at)
{
    size_t n = text.n - (a->padded ? padding(text) : 0), over = n % 4;
    int last = 0;

    for (*at = 0; *at < n; ++*at)
        if ((last = value_of(a, text.p[*at])) < 0)
            return text.p[*at] != '=' ? "a byte outside of its alphabet"
                   : a->padded        ? "padding before the end"
                                      : "padding, which it does not use";
    if (over == 1 || (a->padded && text.n % 4))
        return a->padded ? "an end within a group of four" : "an end within a byte";
    if (over) /* the last letter has unused bits */
        --*at;
    return last & (over == 2 ? 15 : over == 3 ? 3 : 0) ? "unused bits that are not 0" : NULL;
}

const char *ah_base64_fault(ah_slice text, size_t *at)
{
    return fault_of(&standard, text, at);
}

const char *ah_base64url_fault(ah_slice text, size_t *at)
{
    return fault_of(&url, text, at);
}

bool ah_base64_valid(ah_slice text)
{
    size_t at;

    return !ah_base64_fault(text, &at);
}

size_t ah_base64_size(ah_slice text)
{
    size_t n = text.n - padding(text);

    return n / 4 * 3 + n % 4 * 3 / 4;
}

static unsigned either(ah_slice text, size_t i)
{
    int v = i < text.n ? value_of(&standard, text.p[i]) : 0;

    if (v < 0)
        v = value_of(&url, text.p[i]);
    return v < 0 ? 0 : (unsigned)v;
}

void ah_base64_take(ah_slice text, ah_buf *out)
{
    size_t size = ah_base64_size(text), at = 0;
    char *to = size ? ah_buf_room(out, size) : NULL;

    if (!to)
        return;
    for (size_t i = 0; i < text.n; i += 4) {
        unsigned three = 0;

        for (size_t k = 0; k < 4; k++)
            three = three << 6 | either(text, i + k);
        for (int shift = 16; shift >= 0 && at < size; shift -= 8)
            to[at++] = (char)(three >> shift & 255);
    }
    out->len += size;
}
