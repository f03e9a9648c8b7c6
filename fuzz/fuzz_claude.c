/* Fuzz target: the lines of the `claude` command (wire/claude.h). The input is lines; the first byte
 * says which features are on. A message is asked for first and again after each that ended, so
 * that both halves are walked. What is written back must be lines of sound JSON. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/claude.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char fresh[] =
    "{\"system\":\"s\",\"tools\":[{\"name\":\"a\",\"description\":\"d\",\"parameters\":{}}],\"entries\":"
    "[{\"type\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]}";
static const char more[] =
    "{\"system\":\"s\",\"tools\":[],\"entries\":"
    "[{\"type\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]},"
    "{\"type\":\"assistant\",\"content\":[],\"tool_calls\":[{\"id\":\"t1\",\"name\":\"a\","
    "\"arguments\":\"{}\"}]},"
    "{\"type\":\"tool_result\",\"id\":\"t1\",\"name\":\"a\",\"content\":\"5\",\"success\":false},"
    "{\"type\":\"note\",\"text\":\"n\"}]}";

/* Each line that was written is one JSON value. */
static void check_out(ah_claude *c)
{
    ah_slice out = ah_buf_slice(&c->out);

    while (out.n) {
        const char *nl = memchr(out.p, '\n', out.n);
        size_t n;

        if (!nl)
            abort();
        n = (size_t)(nl - out.p);
        if (ah_json_check(&ah_mem_libc, (ah_slice){out.p, n}, AH_JSON_MAX_DEPTH, NULL) != AH_OK)
            abort();
        out = (ah_slice){nl + 1, out.n - n - 1};
    }
    ah_buf_reset(&c->out, 0);
}

static void take(ah_claude *c, ah_slice line)
{
    ah_claude_news news;
    ah_err err;

    if (ah_claude_line(c, line, &news, &err) != AH_OK)
        return;
    if (news.ended && ah_claude_fits(c, ah_slice_of(more)) &&
        ah_claude_ask(c, ah_slice_of(more), &err) != AH_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice in = {(const char *)data + 1, size ? size - 1 : 0};
    ah_claude c;
    ah_err err;

    if (!size)
        return 0;
    ah_claude_init(&c, &ah_mem_libc, data[0] & 1);
    if (ah_claude_ask(&c, ah_slice_of(fresh), &err) != AH_OK)
        abort();
    while (in.n) {
        const char *nl = memchr(in.p, '\n', in.n);
        size_t n = nl ? (size_t)(nl - in.p) : in.n;

        take(&c, (ah_slice){in.p, n});
        check_out(&c);
        in = nl ? (ah_slice){nl + 1, in.n - n - 1} : (ah_slice){"", 0};
    }
    ah_claude_clear(&c);
    return 0;
}
