/* A file is read whole and taken apart in place, line by line. What the names mean is
 * settings.c's. */
#include "cli/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 1 << 20 };

static int read_all(FILE *f, ah_buf *b)
{
    char *room;
    size_t n;

    do {
        room = ah_buf_room(b, BUFSIZ);
        if (!ah_buf_ok(b))
            return b->status == AH_NOMEM ? ENOMEM : EFBIG;
        n = fread(room, 1, BUFSIZ, f);
        b->len += n;
    } while (n > 0);
    return ferror(f) ? errno : 0;
}

bool ah_pairs_open(ah_pairs *p, const char *path, int *why)
{
    FILE *f = fopen(path, "re");

    *p = (ah_pairs){.path = path};
    ah_buf_init(&p->text, &ah_mem_libc, MAX_FILE + BUFSIZ);
    if (!f) {
        *why = errno;
        return false;
    }
    *why = read_all(f, &p->text);
    fclose(f);
    if (!*why && p->text.len && memchr(p->text.data, 0, p->text.len))
        *why = EINVAL;
    if (!*why && p->text.len > MAX_FILE)
        *why = EFBIG;
    if (*why)
        ah_pairs_close(p);
    return !*why;
}

void ah_pairs_close(ah_pairs *p)
{
    ah_buf_clear(&p->text);
}

/* The next line, ended by NUL; NULL at the end. The file's last line may lack its end:
 * there is room behind it (ah_pairs_open read until nothing more fitted in). */
static char *next_line(ah_pairs *p)
{
    char *line, *end;

    if (p->at >= p->text.len)
        return NULL;
    line = p->text.data + p->at;
    if (!(end = memchr(line, '\n', p->text.len - p->at)))
        end = p->text.data + p->text.len;
    *end = '\0';
    p->at = (size_t)(end - p->text.data) + 1;
    p->line++;
    return line;
}

static char *strip(char *s)
{
    size_t n;

    s += strspn(s, " \t");
    n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        s[--n] = '\0';
    return s;
}

/* A file that a shell can read as well has `export` before its names. */
static char *past_export(char *s)
{
    static const char word[] = "export";
    size_t n = sizeof word - 1;

    return strncmp(s, word, n) == 0 && (s[n] == ' ' || s[n] == '\t') ? strip(s + n) : s;
}

static bool is_name(const char *s)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    size_t n =
        strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789" AH_PAIRS_MORE);

    return *s && strchr(first, *s) && s[n] == '\0';
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return true;
    return false;
}

/* The value without its quotes; NULL where they do not match. */
static char *unquote(char *s)
{
    size_t n = strlen(s);

    if (*s != '"' && *s != '\'')
        return s;
    if (n < 2 || s[n - 1] != *s || strchr(s + 1, *s) != s + n - 1)
        return NULL;
    s[n - 1] = '\0';
    return s + 1;
}

static ah_pairs_end wrong(const ah_pairs *p, const char *what, char *fault, size_t size)
{
    snprintf(fault, size, "%.300s:%u: %s", p->path, p->line, what);
    return AH_PAIRS_FAULT;
}

ah_pairs_end ah_pairs_next(ah_pairs *p, const char **name, const char **value, char *fault, size_t size)
{
    char *line, *equals;

    do
        if (!(line = next_line(p)))
            return AH_PAIRS_END;
    while (*(line = strip(line)) == '\0' || *line == '#');
    if (!(equals = strchr(line, '=')))
        return wrong(p, "expected NAME=VALUE, found no '='", fault, size);
    *equals = '\0';
    *name = past_export(strip(line));
    if (!is_name(*name))
        return wrong(p, "what stands before '=' is no name (letters, digits, _)", fault, size);
    if (!(*value = unquote(strip(equals + 1))))
        return wrong(p, "the quotes around the value do not match", fault, size);
    if (has_control(*value))
        return wrong(p, "the value holds a control character", fault, size);
    return AH_PAIR;
}
