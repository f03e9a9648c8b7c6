/* ah_json_canon: one text per value, made with a cJSON tree. Only this file uses cJSON. Values
 * that cJSON cannot hold (long integers, NUL in strings) enter the tree as text that is already
 * canonical. cJSON uses its own memory. */
#include "base/json.h"

#include <cjson/cJSON.h>

#include "base/decimal.h"
#include "base/json_chars.h"

enum { MAX_CANON = 64 << 20 }; /* bytes of each value that is compared */

/* Writes a double's shortest form if that is the exact number, otherwise all digits. */
static void put_float(ah_buf *b, ah_slice literal)
{
    ah_decimal d = ah_decimal_of(literal);
    size_t start = b->len;
    ah_json_num num;

    if (ah_json_number(literal, &num)) {
        ah_json_put_double(b, num.d);
        if (!ah_buf_ok(b) ||
            ah_decimal_cmp(d, ah_decimal_of((ah_slice){b->data + start, b->len - start})) == 0)
            return;
        ah_buf_reset(b, start);
    }
    ah_decimal_put(b, d);
}

/* Integers of any length are canonical already, except "-0" (a float). */
static void put_number(ah_buf *b, ah_slice literal)
{
    size_t n = 0;

    while (n < literal.n && (is_digit(literal.p[n]) || literal.p[n] == '-'))
        n++;
    if (n == literal.n && !ah_slice_is(literal, "-0"))
        ah_buf_put(b, literal);
    else
        put_float(b, literal);
}

/* A cJSON tree under construction. The tree is in cJSON's memory, the buffers in ours. */
typedef struct tree {
    cJSON *root;
    cJSON *open[AH_JSON_MAX_DEPTH];
    int depth;
    ah_buf name, plain; /* a key, and a string without escapes */
    ah_buf text;        /* text of a node */
} tree;

/* Returns the buffer's bytes as a C string; NULL: out of memory. */
static const char *c_string(ah_buf *b)
{
    ah_buf_char(b, '\0');
    return ah_buf_ok(b) ? b->data : NULL;
}

/* Makes a node that prints as the canonical text in t->text. */
static cJSON *text_node(tree *t)
{
    const char *s = c_string(&t->text);

    return s ? cJSON_CreateRaw(s) : NULL;
}

static cJSON *number_node(tree *t, ah_slice literal)
{
    ah_buf_reset(&t->text, 0);
    put_number(&t->text, literal);
    return text_node(t);
}

/* A string without escapes is canonical already. */
static cJSON *string_node(tree *t, ah_json_token tok)
{
    ah_buf_reset(&t->text, 0);
    if (tok.escaped) {
        ah_buf_reset(&t->plain, 0);
        ah_json_unescape(tok.raw, &t->plain);
        ah_json_put_string(&t->text, ah_buf_slice(&t->plain));
    } else {
        ah_buf_char(&t->text, '"');
        ah_buf_put(&t->text, tok.raw);
        ah_buf_char(&t->text, '"');
    }
    return ah_buf_ok(&t->plain) ? text_node(t) : NULL;
}

static cJSON *new_node(tree *t, ah_json_token tok)
{
    switch (tok.kind) {
    case AH_JSON_NULL:
        return cJSON_CreateNull();
    case AH_JSON_FALSE:
        return cJSON_CreateFalse();
    case AH_JSON_TRUE:
        return cJSON_CreateTrue();
    case AH_JSON_NUMBER:
        return number_node(t, tok.raw);
    case AH_JSON_STRING:
        return string_node(t, tok);
    case AH_JSON_ARRAY:
        return cJSON_CreateArray();
    case AH_JSON_OBJECT:
        return cJSON_CreateObject();
    case AH_JSON_END:
    case AH_JSON_KEY:
    case AH_JSON_ARRAY_END:
    case AH_JSON_OBJECT_END:
        break;
    }
    return NULL;
}

/* Adds a node to the tree, which then owns it. */
static bool hang(tree *t, cJSON *node)
{
    cJSON *parent = t->depth ? t->open[t->depth - 1] : NULL;

    if (!node)
        return false;
    if (!parent && !t->root) {
        t->root = node;
        return true;
    }
    if (parent && (cJSON_IsObject(parent) ? cJSON_AddItemToObject(parent, t->name.data, node)
                                          : cJSON_AddItemToArray(parent, node)))
        return true;
    cJSON_Delete(node);
    return false;
}

static bool keep_name(tree *t, ah_slice raw)
{
    ah_buf_reset(&t->name, 0);
    ah_json_unescape(raw, &t->name);
    return c_string(&t->name) != NULL;
}

static cJSON *merge(cJSON *a, cJSON *b)
{
    cJSON *first = NULL, **end = &first;

    while (a && b) {
        cJSON **less = strcmp(a->string, b->string) <= 0 ? &a : &b;

        *end = *less;
        *less = (*less)->next;
        end = &(*end)->next;
    }
    *end = a ? a : b;
    return first;
}

/* Sorts the first n of a list; the recursion is log2(n) deep. */
static cJSON *sort_list(cJSON *list, size_t n)
{
    cJSON *last = list, *rest;

    if (n < 2) {
        if (list)
            list->next = NULL;
        return list;
    }
    for (size_t i = 1; i < n / 2; i++)
        last = last->next;
    rest = last->next;
    list = sort_list(list, n / 2);
    return merge(list, sort_list(rest, n - n / 2));
}

/* Sorts members by the bytes of their keys. Keeps cJSON's links: prev of the first is the last. */
static void sort_members(cJSON *object)
{
    cJSON *last = NULL;
    size_t n = 0;
    bool sorted = true;

    for (cJSON *c = object->child; c; c = c->next, n++)
        sorted = sorted && (!c->next || strcmp(c->string, c->next->string) < 0);
    if (sorted)
        return;
    object->child = sort_list(object->child, n);
    for (cJSON *c = object->child; c; last = c, c = c->next)
        c->prev = last;
    object->child->prev = last;
}

static bool grow_tree(tree *t, ah_json_token tok)
{
    cJSON *node;

    if (tok.kind == AH_JSON_KEY)
        return keep_name(t, tok.raw);
    if (tok.kind == AH_JSON_ARRAY_END || tok.kind == AH_JSON_OBJECT_END) {
        if (t->depth == 0)
            return false;
        node = t->open[--t->depth];
        if (cJSON_IsObject(node))
            sort_members(node);
        return true;
    }
    node = new_node(t, tok);
    if (!hang(t, node))
        return false;
    if (tok.kind == AH_JSON_ARRAY || tok.kind == AH_JSON_OBJECT) {
        if (t->depth == AH_JSON_MAX_DEPTH)
            return false;
        t->open[t->depth++] = node;
    }
    return true;
}

ah_status ah_json_canon(const ah_mem *mem, ah_slice checked, ah_buf *out)
{
    ah_json_reader r = ah_json_read(checked);
    ah_status st = AH_NOMEM;
    char *printed = NULL;
    tree t = {0};

    ah_buf_init(&t.name, mem, checked.n + 1);
    ah_buf_init(&t.plain, mem, checked.n);
    ah_buf_init(&t.text, mem, checked.n + 64); /* a number may become longer */
    for (ah_json_token tok; (tok = ah_json_next(&r)).kind != AH_JSON_END;)
        if (!grow_tree(&t, tok))
            goto done;
    if (!t.root || !(printed = cJSON_PrintUnformatted(t.root)))
        goto done;
    ah_buf_str(out, printed);
    st = out->status;
done:
    cJSON_free(printed);
    cJSON_Delete(t.root);
    ah_buf_clear(&t.name);
    ah_buf_clear(&t.plain);
    ah_buf_clear(&t.text);
    return st;
}

const char *ah_json_version(void)
{
    return cJSON_Version();
}

ah_status ah_json_same(const ah_mem *mem, ah_slice checked, ah_slice other, bool *same)
{
    ah_status st;
    ah_buf x, y;

    ah_buf_init(&x, mem, MAX_CANON);
    ah_buf_init(&y, mem, MAX_CANON);
    st = ah_json_canon(mem, checked, &x);
    if (st == AH_OK)
        st = ah_json_canon(mem, other, &y);
    *same = st == AH_OK && ah_slice_eq(ah_buf_slice(&x), ah_buf_slice(&y));
    ah_buf_clear(&x);
    ah_buf_clear(&y);
    return st == AH_OK ? AH_OK : AH_NOMEM;
}
