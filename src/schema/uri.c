/* Addresses of schemas follow RFC 3986; none is ever opened. */
#include "schema/program.h"

typedef struct uri {
    ah_slice scheme, authority, path, query; /* .p NULL: missing */
} uri;

ah_slice schema_cut(ah_slice *rest, const char *stops)
{
    ah_slice head = {rest->p, 0};

    while (head.n < rest->n && !strchr(stops, rest->p[head.n]))
        head.n++;
    rest->p += head.n;
    rest->n -= head.n;
    return head;
}

static uri uri_of(ah_slice s)
{
    ah_slice rest = {s.p ? s.p : "", s.n}, head;
    uri u = {0};

    head = schema_cut(&rest, ":/?#");
    if (rest.n && rest.p[0] == ':' && head.n) {
        u.scheme = head;
        rest = (ah_slice){rest.p + 1, rest.n - 1};
    } else {
        rest = (ah_slice){s.p ? s.p : "", s.n};
    }
    if (rest.n >= 2 && rest.p[0] == '/' && rest.p[1] == '/') {
        rest = (ah_slice){rest.p + 2, rest.n - 2};
        u.authority = schema_cut(&rest, "/?#");
    }
    u.path = schema_cut(&rest, "?#");
    if (rest.n && rest.p[0] == '?') {
        rest = (ah_slice){rest.p + 1, rest.n - 1};
        u.query = schema_cut(&rest, "#");
    }
    return u;
}

/* RFC 3986, 5.2.4, in place after `start`. */
static void remove_dots(ah_buf *b, size_t start)
{
    size_t to = start, i = start;

    while (i < b->len) {
        size_t end = i + 1, n;

        while (end < b->len && b->data[end] != '/')
            end++;
        n = end - i;
        if ((n == 2 && memcmp(b->data + i, "/.", 2) == 0) ||
            (n == 3 && memcmp(b->data + i, "/..", 3) == 0)) {
            while (n == 3 && to > start && b->data[--to] != '/')
                ;
            if (end == b->len)
                b->data[to++] = '/';
        } else {
            memmove(b->data + to, b->data + i, n);
            to += n;
        }
        i = end;
    }
    b->len = to;
}

static void put_path(ah_buf *out, uri base, uri ref)
{
    size_t start = out->len, keep = base.path.n;

    if (ref.path.n && ref.path.p[0] != '/' && !ref.scheme.p && !ref.authority.p) {
        while (keep && base.path.p[keep - 1] != '/')
            keep--;
        if (!keep && base.authority.p)
            ah_buf_char(out, '/');
        ah_buf_add(out, base.path.p, keep);
    }
    ah_buf_put(out, ref.path);
    if (ah_buf_ok(out) && out->len > start && out->data[start] == '/')
        remove_dots(out, start);
}

/* Resolves a reference (RFC 3986, section 5.2), appended to out. */
void schema_resolve_uri(ah_slice base_text, ah_slice ref_text, ah_buf *out)
{
    uri base = uri_of(base_text), ref = uri_of(ref_text);
    bool own = ref.scheme.p || ref.authority.p;
    ah_slice scheme = ref.scheme.p ? ref.scheme : base.scheme;
    ah_slice authority = own ? ref.authority : base.authority;
    ah_slice query = own || ref.path.n || ref.query.p ? ref.query : base.query;

    if (scheme.p) {
        ah_buf_put(out, scheme);
        ah_buf_char(out, ':');
    }
    if (authority.p) {
        ah_buf_str(out, "//");
        ah_buf_put(out, authority);
    }
    if (own || ref.path.n)
        put_path(out, base, ref);
    else
        ah_buf_put(out, base.path);
    if (query.p) {
        ah_buf_char(out, '?');
        ah_buf_put(out, query);
    }
}
