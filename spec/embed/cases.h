/* Shared code of the cases of the embedding interface: a check that reports its line, and hosts
 * that count their memory. Such a program knows agenthost.h and nothing else of the library. */
#ifndef SPEC_EMBED_CASES_H
#define SPEC_EMBED_CASES_H

#include <agenthost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what))                                                                               \
            fail(__FILE__, __LINE__, #what, NULL);                                                 \
    } while (0)

/* Checks a status; where it is another, fails with the host's message. */
#define STATUS(host, call, wanted)                                                                 \
    do {                                                                                           \
        ah_status st_ = (call);                                                                    \
        if (st_ != (wanted))                                                                       \
            fail_status(__FILE__, __LINE__, #call, st_, host);                                     \
    } while (0)

#define HAS(text, part)                                                                            \
    do {                                                                                           \
        const char *text_ = (text);                                                                \
        if (!text_ || !strstr(text_, part))                                                        \
            fail(__FILE__, __LINE__, part, text_);                                                 \
    } while (0)

void fail(const char *file, int line, const char *what, const char *found);
void fail_status(const char *file, int line, const char *what, ah_status st, ah_host *host);

/* A host whose memory is counted; cfg may be NULL. shut checks that all of it came back. */
ah_host *open_host(ah_config cfg);
ah_host *open_plain(void);
void shut(ah_host *host);
void load(ah_host *host, const char *text);
ah_agent *agent_of(ah_host *host, const char *config);
void step_until_done(ah_host *host);

typedef struct a_case {
    const char *name;
    void (*run)(void);
} a_case;

extern const a_case host_cases[], tool_cases[], agent_cases[], http_cases[], lua_cases[],
    callback_cases[], ask_cases[], process_cases[], store_cases[], task_cases[], tty_cases[],
    engine_cases[];

#endif
