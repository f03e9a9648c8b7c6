/* Reasoning to be sent back; see thoughts.h. reasoning_content is sent back only with calls, within
 * their tool loop (DeepSeek refuses it elsewhere); signed blocks always are. */
#include "wire/thoughts.h"

#include "wire/servers.h"

enum { MAX_LABEL = 4 << 10 };

static void init_blocks(ah_thought_blocks *b, const ah_mem *mem)
{
    ah_buf_init(&b->done, mem, AH_MAX_TEXT);
    ah_buf_init(&b->text, mem, AH_MAX_TEXT);
    ah_buf_init(&b->rest, mem, AH_MAX_TEXT);
    ah_buf_init(&b->label, mem, MAX_LABEL);
}

static void clear_blocks(ah_thought_blocks *b)
{
    ah_buf_clear(&b->done);
    ah_buf_clear(&b->text);
    ah_buf_clear(&b->rest);
    ah_buf_clear(&b->label);
}

void ah_thoughts_init(ah_thoughts *t, const ah_mem *mem, unsigned quirks)
{
    *t = (ah_thoughts){.quirks = quirks};
    ah_buf_init(&t->content, mem, AH_MAX_TEXT);
    init_blocks(&t->details, mem);
    init_blocks(&t->blocks, mem);
}

void ah_thoughts_clear(ah_thoughts *t)
{
    ah_buf_clear(&t->content);
    clear_blocks(&t->details);
    clear_blocks(&t->blocks);
}

/* -- blocks --------------------------------------------------------------------------------- */

static void close_block(ah_thought_blocks *b, const char *text)
{
    if (!b->open)
        return;
    ah_buf_fmt(&b->done, "%s{%.*s%s\"%s\":\"", b->done.len ? "," : "",
               AH_FMT(ah_buf_slice(&b->rest)), b->rest.len ? "," : "", text);
    ah_buf_put(&b->done, ah_buf_slice(&b->text));
    ah_buf_str(&b->done, "\"}");
    ah_buf_reset(&b->rest, 0);
    ah_buf_reset(&b->text, 0);
    ah_buf_reset(&b->label, 0);
    b->open = false;
}

/* True if `rest` has the member already, after a comma at the top level. Member names of blocks
 * contain no quotes, so searching the quoted name with its colon finds them; inside a value its
 * quotes would be escaped. */
static bool has_member(const ah_buf *rest, ah_json_token key)
{
    char name[64];

    if (key.escaped || key.raw.n + 4 > sizeof name)
        return true; /* no server uses such a name; left out */
    name[0] = '"';
    memcpy(name + 1, key.raw.p, key.raw.n);
    memcpy(name + 1 + key.raw.n, "\":", 2);
    return ah_slice_find(ah_buf_slice(rest), (ah_slice){name, key.raw.n + 3}) != NULL;
}

static bool is_empty(ah_slice value)
{
    ah_json_kind kind = ah_json_kind_of(value);

    return kind == AH_JSON_NULL || (kind == AH_JSON_STRING && value.n == 2);
}

/* Adds the members beside the text; of repeated members the first non-empty one counts. */
static void add_rest(ah_thought_blocks *b, ah_slice block, const char *text)
{
    ah_json_reader r = ah_json_read(block);
    ah_json_token key = ah_json_next(&r);

    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (ah_json_token_is(key, text) || is_empty(value) || has_member(&b->rest, key))
            continue;
        ah_buf_fmt(&b->rest, "%s\"%.*s\":", b->rest.len ? "," : "", AH_FMT(key.raw));
        ah_buf_put(&b->rest, value);
    }
}

/* True if the piece has the type and index of the open block, and so belongs to it. */
static bool goes_on(const ah_thought_blocks *b, ah_slice type, ah_slice index)
{
    ah_slice label = ah_buf_slice(&b->label);

    return b->open && label.n == type.n + index.n && memcmp(label.p, type.p, type.n) == 0 &&
           (!index.n || memcmp(label.p + type.n, index.p, index.n) == 0);
}

static void take_block(ah_thought_blocks *b, ah_slice block, const char *text)
{
    ah_slice said = ah_json_member(block, text), type = ah_json_member(block, "type");
    ah_slice index = ah_json_member(block, "index");
    bool piece = ah_json_kind_of(said) == AH_JSON_STRING || ah_json_member(block, "signature").p;

    if (!type.p)
        type = ah_slice_of("");
    if (!piece || !goes_on(b, type, index))
        close_block(b, text);
    if (!piece) { /* a block that is no piece comes whole */
        ah_buf_str(&b->done, b->done.len ? "," : "");
        ah_buf_put(&b->done, block);
        return;
    }
    if (!b->open) {
        ah_buf_put(&b->label, type);
        ah_buf_put(&b->label, index);
    }
    b->open = true;
    if (ah_json_kind_of(said) == AH_JSON_STRING)
        ah_buf_put(&b->text, ah_json_inside(said));
    add_rest(b, block, text);
}

static void take_blocks(ah_thought_blocks *b, ah_slice list, const char *text)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        take_block(b, ah_json_skip(&r, t), text);
}

/* -- all members ----------------------------------------------------------------------------- */

static ah_status check(const ah_thoughts *t, ah_err *err)
{
    const ah_buf *all[] = {&t->content,      &t->details.done,  &t->details.text,
                           &t->details.rest, &t->details.label, &t->blocks.done,
                           &t->blocks.text,  &t->blocks.rest,   &t->blocks.label};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (ah_buf_ok(all[i]))
            continue;
        if (all[i]->status == AH_NOMEM)
            return ah_err_nomem(err);
        return ah_err_set(err, AH_PROVIDER, "the model's reasoning is larger than %zu bytes",
                          all[i]->max);
    }
    return AH_OK;
}

ah_status ah_thoughts_take(ah_thoughts *t, ah_json_token key, ah_slice value, ah_err *err)
{
    ah_json_kind kind = ah_json_kind_of(value);

    if (kind == AH_JSON_STRING && (t->quirks & AH_SERVER_REASONING_CONTENT) &&
        ah_json_token_is(key, "reasoning_content"))
        ah_buf_put(&t->content, ah_json_inside(value));
    else if (kind == AH_JSON_ARRAY && (t->quirks & AH_SERVER_REASONING_DETAILS) &&
             ah_json_token_is(key, "reasoning_details"))
        take_blocks(&t->details, value, "text");
    else if (kind == AH_JSON_ARRAY && (t->quirks & AH_SERVER_THINKING_BLOCKS) &&
             ah_json_token_is(key, "thinking_blocks"))
        take_blocks(&t->blocks, value, "thinking");
    return check(t, err);
}

static void put_list(ah_buf *b, const char *name, const ah_thought_blocks *list)
{
    if (!list->done.len)
        return;
    ah_buf_fmt(b, b->len > 1 ? ",\"%s\":[" : "\"%s\":[", name);
    ah_buf_put(b, ah_buf_slice(&list->done));
    ah_buf_char(b, ']');
}

ah_status ah_thoughts_give(ah_thoughts *t, ah_assembly *msg, ah_err *err)
{
    ah_status st;
    ah_buf b;

    close_block(&t->details, "text");
    close_block(&t->blocks, "thinking");
    if ((st = check(t, err)) != AH_OK)
        return st;
    ah_buf_init(&b, t->content.mem, AH_MAX_TEXT);
    ah_buf_char(&b, '{');
    if (t->content.len && msg->n) {
        ah_buf_str(&b, "\"reasoning_content\":\"");
        ah_buf_put(&b, ah_buf_slice(&t->content));
        ah_buf_char(&b, '"');
    }
    put_list(&b, "reasoning_details", &t->details);
    put_list(&b, "thinking_blocks", &t->blocks);
    ah_buf_char(&b, '}');
    st = !ah_buf_ok(&b) ? ah_buf_error(&b, "the model's message", err)
         : b.len > 2    ? ah_assembly_opaque(msg, ah_buf_slice(&b), err)
                        : AH_OK;
    ah_buf_clear(&b);
    return st;
}
