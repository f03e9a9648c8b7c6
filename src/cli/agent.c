/* Uses the public header only: finds a returned agent by its name and opens a conversation of it,
 * as any program would. */
#include "cli/agent.h"

#include <string.h>

#include "cli/terminal.h"

enum { MAX_SCRIPT = 64 << 20 };

bool ah_agent_returned(ah_host *host)
{
    ah_agent *agent = NULL;
    bool is = ah_agent_find(host, "agent", &agent) == AH_OK;

    ah_agent_close(agent);
    return is;
}

void ah_agent_words(const ah_options *o, ah_bytes *out)
{
    for (int i = 0; i < o->argc; i++) {
        ah_bytes_str(out, i ? " " : "");
        ah_bytes_str(out, o->argv[i]);
    }
    ah_bytes_char(out, '\0');
}

/* Without a head, which only a store in a file has, nothing is noted. */
static void note_kept(ah_agent *agent, ah_kept *kept)
{
    const char *id = ah_agent_id(agent), *head = id ? ah_agent_head(agent) : NULL;

    if (head) {
        snprintf(kept->id, sizeof kept->id, "%s", id);
        snprintf(kept->head, sizeof kept->head, "%s", head);
    }
}

/* Runs the agent, prints its answer and closes the handle. */
static ah_status run_agent(ah_agent *agent, const char *words, FILE *out, ah_kept *kept)
{
    ah_status st = ah_agent_run(agent, words);
    const ah_reply *reply;

    if (st == AH_OK && out) {
        reply = ah_agent_reply(agent);
        ah_terminal_answer(out, reply->text, reply->text_len);
    }
    note_kept(agent, kept);
    ah_agent_close(agent);
    return st;
}

ah_status ah_agent_answer(ah_host *host, const char *words, FILE *out, ah_kept *kept)
{
    ah_agent *agent = NULL;
    ah_status st = ah_agent_find(host, "agent", &agent);

    if (st == AH_OK && !ah_agent_id(agent)) { /* else a store keeps its own conversation */
        ah_agent_close(agent);
        st = ah_agent_open(host, "{\"agent\":\"agent\"}", &agent);
    }
    return st == AH_OK ? run_agent(agent, words, out, kept) : st;
}

bool ah_agent_has(ah_host *host, const char *conversation)
{
    ah_agent *agent = NULL;
    const char *id = ah_agent_find(host, "agent", &agent) == AH_OK ? ah_agent_id(agent) : NULL;
    bool has = id && strcmp(id, conversation) == 0;

    ah_agent_close(agent);
    return has;
}

ah_status ah_agent_go_on(ah_host *host, const char *words, FILE *out, ah_kept *kept)
{
    ah_agent *agent = NULL;
    ah_status st = ah_agent_find(host, "agent", &agent);

    return st == AH_OK ? run_agent(agent, words, out, kept) : st;
}

bool ah_agent_idle(ah_host *host)
{
    return ah_counter(host, "agenthost.runs") == 0;
}

/* Also matches parts of other words: an error here can only favour the script. */
static bool mentions_words(const char *text)
{
    return strstr(text, "...") || strstr(text, "arg");
}

/* True also if the file cannot be read again. */
static bool file_mentions_words(FILE *f)
{
    ah_bytes text;
    char piece[BUFSIZ];
    bool mentions;
    size_t n;

    ah_bytes_init(&text, MAX_SCRIPT);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        ah_bytes_add(&text, piece, n);
    ah_bytes_char(&text, '\0');
    mentions = ferror(f) || !ah_bytes_ok(&text) || mentions_words(text.data);
    ah_bytes_clear(&text);
    return mentions;
}

bool ah_agent_reads_words(const ah_options *o)
{
    bool mentions;
    FILE *f;

    if (o->eval)
        return mentions_words(o->eval);
    if (strcmp(o->script, "-") == 0 || !(f = fopen(o->script, "re")))
        return true;
    mentions = file_mentions_words(f);
    fclose(f);
    return mentions;
}
