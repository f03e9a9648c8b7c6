/* On the public header: a returned agent is found by its name, and a conversation of it is opened as
 * any program would. */
#include "cli/agent.h"

#include <string.h>

#include "io/file.h"

enum { MAX_SCRIPT = 64 << 20 };

bool ah_agent_returned(ah_host *host)
{
    ah_agent *agent = NULL;
    bool is = ah_agent_find(host, "agent", &agent) == AH_OK;

    ah_agent_close(agent);
    return is;
}

void ah_agent_words(const ah_options *o, ah_buf *out)
{
    for (int i = 0; i < o->argc; i++) {
        ah_buf_str(out, i ? " " : "");
        ah_buf_str(out, o->argv[i]);
    }
    ah_buf_char(out, '\0');
}

ah_status ah_agent_answer(ah_host *host, const char *words, FILE *out)
{
    ah_agent *agent = NULL;
    ah_status st = ah_agent_open(host, "{\"agent\":\"agent\"}", &agent);
    const ah_reply *reply;

    if (st == AH_OK)
        st = ah_agent_run(agent, words);
    if (st == AH_OK && out) {
        reply = ah_agent_reply(agent);
        fwrite(reply->text, 1, reply->text_len, out);
        putc('\n', out);
    }
    ah_agent_close(agent);
    return st;
}

bool ah_agent_idle(ah_host *host)
{
    return ah_counter(host, "agenthost.runs") == 0;
}

/* A word of its own, or at the end of one: that can only err on the side of the script. */
static bool mentions_words(const char *text)
{
    return strstr(text, "...") || strstr(text, "arg");
}

bool ah_agent_reads_words(const ah_options *o)
{
    bool reads = true;
    ah_buf text;
    ah_err err;

    if (o->eval)
        return mentions_words(o->eval);
    if (strcmp(o->script, "-") == 0)
        return true;
    ah_buf_init(&text, &ah_mem_libc, MAX_SCRIPT);
    if (ah_file_read(o->script, &text, &err) == AH_OK) {
        ah_buf_char(&text, '\0');
        reads = !ah_buf_ok(&text) || mentions_words(text.data);
    }
    ah_buf_clear(&text);
    return reads;
}
