/* Cases of a transport of the program's own: a stand-in for an HTTP stack that answers
 * as OpenAI's servers do, at once or later. */
#include "cases.h"

typedef struct stack {
    ah_host *host;
    uint64_t id, cancelled;
    int requests;
    bool later;         /* nothing at once */
    ah_status refuse;   /* what start returns */
    int status;         /* of the answer; 0: 200 */
    const char *header; /* one more */
    const char *error;  /* how it ends */
    const char *reason; /* and why, in one word */
    const char *body;
    char url[200], auth[200], sent[4000];
} stack;

static const char answer[] =
    "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello.\"},"
    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}";

static void give(stack *s)
{
    const char *headers[] = {"Content-Type: application/json", s->header};
    const char *body = s->body ? s->body : answer;

    ah_transport_head(s->host, s->id, s->status ? s->status : 200, headers, s->header ? 2 : 1);
    for (size_t i = 0; body[i]; i++) /* cut at every byte */
        ah_transport_body(s->host, s->id, body + i, 1);
    if (s->reason)
        ah_transport_fail(s->host, s->id, s->reason, s->error);
    else
        ah_transport_end(s->host, s->id, s->error);
}

static ah_status start(void *ud, ah_host *host, const ah_transport_request *r)
{
    stack *s = ud;

    s->host = host;
    s->id = r->id;
    s->requests++;
    CHECK(strcmp(r->method, "POST") == 0 && r->connect_timeout > 0 && r->body_len < sizeof s->sent);
    snprintf(s->url, sizeof s->url, "%s", r->url);
    memcpy(s->sent, r->body, r->body_len);
    s->sent[r->body_len] = '\0';
    for (size_t i = 0; i < r->n_headers; i++)
        if (strncmp(r->headers[i], "Authorization:", 14) == 0)
            snprintf(s->auth, sizeof s->auth, "%s", r->headers[i]);
    if (s->refuse == AH_OK && !s->later)
        give(s);
    return s->refuse;
}

static void cancel(void *ud, ah_host *host, uint64_t id)
{
    stack *s = ud;

    CHECK(host == s->host && id == s->id);
    s->cancelled = id;
}

static ah_host *open_with(stack *s)
{
    return open_host((ah_config){.transport = {start, cancel, s}});
}

static const char config[] = "{\"model\":\"openai/x\",\"base_url\":\"https://example.test/v1\","
                             "\"api_key\":\"key-of-a-case\",\"retries\":0,\"stream\":false}";

static void carries_a_request(void)
{
    stack s = {0};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, config);

    STATUS(host, ah_agent_run(agent, "hi"), AH_OK);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Hello.") == 0);
    CHECK(ah_agent_reply(agent)->usage.input == 3);
    CHECK(strcmp(s.url, "https://example.test/v1/chat/completions") == 0);
    CHECK(strcmp(s.auth, "Authorization: Bearer key-of-a-case") == 0);
    HAS(s.sent, "\"content\":\"hi\"");
    CHECK(s.requests == 1 && s.cancelled == 0);
    ah_transport_body(host, s.id, "late", 4); /* over: no harm */
    ah_transport_end(host, s.id, NULL);
    ah_transport_end(host, 99, NULL);
    ah_transport_head(host, 0, 200, NULL, 0);
    STATUS(host, ah_agent_run(agent, "again"), AH_OK);
    shut(host);
}

static void carries_it_later(void)
{
    stack s = {.later = true};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, config);

    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (!s.id)
        CHECK(ah_step(host, 100) > 0);
    CHECK(ah_step(host, 0) == 1);
    give(&s);
    CHECK(ah_timeout(host) == 0);
    step_until_done(host);
    CHECK(strcmp(ah_agent_reply(agent)->text, "Hello.") == 0);
    shut(host);
}

static void ends_badly(void)
{
    stack s = {.error = "the cable is out"};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, config);

    s.body = "{\"choices\":[";
    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_errmsg(host), "example.test:443: the cable is out");
    CHECK(ah_last_error(host)->retryable);
    HAS(ah_last_error(host)->json, "\"reason\":\"broken\"");
    s.reason = "dns";
    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_last_error(host)->json, "\"reason\":\"dns\"");
    s.reason = "no word of ours";
    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_last_error(host)->json, "\"reason\":\"broken\"");
    s.reason = NULL;
    s.error = "bad \xff\n words";
    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_errmsg(host), "bad ?  words");
    s.error = NULL;
    STATUS(host, ah_agent_run(agent, "hi"), AH_PROVIDER);
    s.body = NULL, s.status = 401;
    STATUS(host, ah_agent_run(agent, "hi"), AH_PROVIDER);
    CHECK(ah_last_error(host)->http_status == 401);
    s.status = 0, s.header = "Content-Encoding: gzip";
    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_errmsg(host), "compressed");
    s.header = NULL, s.refuse = AH_HTTP;
    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_errmsg(host), "cannot begin");
    HAS(ah_last_error(host)->json, "\"reason\":\"broken\"");
    s.refuse = AH_OK;
    STATUS(host, ah_agent_run(agent, "hi"), AH_OK);
    shut(host);
}

static void ends_without_a_response(void)
{
    stack s = {.later = true};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, config);

    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (!s.id)
        CHECK(ah_step(host, 100) > 0);
    ah_transport_body(host, s.id, "before a head", 13);
    ah_transport_end(host, s.id, NULL);
    step_until_done(host);
    HAS(ah_agent_reply(agent)->error.message, "without a response");
    shut(host);
}

static void is_tried_again(void)
{
    stack s = {.status = 503};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, "{\"model\":\"openai/x\",\"base_url\":\"http://example.test\","
                                     "\"retries\":1,\"stream\":false}");

    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (s.requests < 1)
        CHECK(ah_step(host, 100) > 0);
    s.status = 0;
    step_until_done(host);
    CHECK(s.requests == 2 && ah_agent_reply(agent)->status == AH_OK);
    shut(host);
}

static void is_cancelled(void)
{
    stack s = {.later = true};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, "{\"model\":\"openai/x\",\"base_url\":\"http://example.test\","
                                     "\"retries\":0,\"http\":{\"total_timeout\":0.02}}");

    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_errmsg(host), "http.total_timeout");
    CHECK(s.cancelled == s.id);
    agent = agent_of(host, config);
    s.id = 0;
    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (!s.id)
        CHECK(ah_step(host, 100) > 0);
    ah_agent_cancel(agent);
    step_until_done(host);
    CHECK(s.cancelled == s.id);
    s.id = 0;
    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (!s.id)
        CHECK(ah_step(host, 100) > 0);
    shut(host);
    CHECK(s.cancelled == s.id);
    s.id = s.cancelled = 0;
    host = open_host((ah_config){.transport = {.start = start, .ud = &s}}); /* without `cancel` */
    agent = agent_of(host, config);
    STATUS(host, ah_agent_start(agent, "hi"), AH_OK);
    while (!s.id)
        CHECK(ah_step(host, 100) > 0);
    ah_agent_cancel(agent);
    step_until_done(host);
    CHECK(ah_agent_reply(agent)->status == AH_CANCELLED);
    shut(host);
}

static void is_limited(void)
{
    stack s = {0};
    ah_host *host = open_with(&s);
    ah_agent *agent = agent_of(host, "{\"model\":\"openai/x\",\"base_url\":\"http://example.test\","
                                     "\"retries\":0,\"http\":{\"max_body\":20}}");

    STATUS(host, ah_agent_run(agent, "hi"), AH_HTTP);
    HAS(ah_errmsg(host), "http.max_body");
    shut(host);
}

static void serves_scripts(void)
{
    stack s = {.body = "content"};
    ah_host *host = open_with(&s);

    load(host, "local r = assert(require('agenthost').http { url = 'http://example.test/', "
               "body = 'x' }) assert(r.status == 200 and r.body == 'content')\n"
               "assert(r.headers['content-type'] == 'application/json')");
    shut(host);
}

/* The library cannot see the addresses that the program's own HTTP connects to, so it refuses to
 * limit them. */
static void judges_no_addresses(void)
{
    stack s = {.body = "content"};
    ah_host *host = open_with(&s);

    load(host, "local r, err = require('agenthost').http { url = 'http://example.test/', "
               "addresses = { 'public' } } assert(r == nil and err.code == 'usage')\n"
               "assert(err.message:find('this program carries HTTP itself', 1, true))");
    CHECK(s.id == 0);
    shut(host);
}

/* A stack whose requests wait until the case answers them. */
enum { PENDING = 16 };

typedef struct pending {
    ah_host *host;
    uint64_t id[PENDING];
    int n, most, requests;
} pending;

static ah_status keep(void *ud, ah_host *host, const ah_transport_request *r)
{
    pending *p = ud;

    CHECK(p->n < PENDING);
    p->host = host;
    p->id[p->n++] = r->id;
    p->requests++;
    p->most = p->n > p->most ? p->n : p->most;
    return AH_OK;
}

static void forget(void *ud, ah_host *host, uint64_t id)
{
    pending *p = ud;
    int i = 0;

    (void)host;
    while (i < p->n && p->id[i] != id)
        i++;
    CHECK(i < p->n);
    p->id[i] = p->id[--p->n];
}

static void answer_all(pending *p, const char *header)
{
    const char *headers[] = {"Content-Type: application/json", header};

    while (p->n) {
        uint64_t id = p->id[--p->n];

        ah_transport_head(p->host, id, header ? 429 : 200, headers, header ? 2 : 1);
        ah_transport_body(p->host, id, answer, sizeof answer - 1);
        ah_transport_end(p->host, id, NULL);
    }
}

enum { CROWD = 6 };

/* Runs all agents at once, the last one is cancelled while it waits. Returns the most requests. */
static int run_crowd(pending *p, ah_host *host, const char *own)
{
    ah_agent *agent[CROWD];

    *p = (pending){.host = host};
    for (int i = 0; i < CROWD; i++) {
        agent[i] = agent_of(host, own);
        STATUS(host, ah_agent_start(agent[i], "hi"), AH_OK);
    }
    while (p->n == 0)
        CHECK(ah_step(host, 100) > 0);
    ah_agent_cancel(agent[CROWD - 1]);
    for (int i = 0; i < 1000 && ah_step(host, 10) > 0; i++)
        answer_all(p, NULL);
    for (int i = 0; i < CROWD; i++) {
        CHECK(ah_agent_reply(agent[i])->status == (i < CROWD - 1 ? AH_OK : AH_CANCELLED));
        ah_agent_close(agent[i]);
    }
    return p->most;
}

static void holds_in_flight(void)
{
    static const char smaller[] =
        "{\"model\":\"openai/x\",\"base_url\":\"https://example.test/v1\",\"stream\":false,"
        "\"api_key\":\"key-of-a-case\",\"max_in_flight\":1}";
    pending p = {0};
    ah_host *host = open_host((ah_config){.transport = {keep, forget, &p}, .max_in_flight = 3});

    CHECK(run_crowd(&p, host, config) == 3 && p.requests == CROWD - 1);
    CHECK(run_crowd(&p, host, smaller) == 1);
    STATUS(host, ah_defaults(host, "{\"providers\":{\"openai\":{\"max_in_flight\":2}}}"), AH_OK);
    CHECK(run_crowd(&p, host, config) == 2);
    STATUS(host, ah_defaults(host, "{\"max_in_flight\":1}"), AH_OK);
    CHECK(run_crowd(&p, host, config) == 1);
    STATUS(host, ah_defaults(host, "{}"), AH_OK);
    CHECK(run_crowd(&p, host, config) == 3);
    shut(host);
    host = open_host((ah_config){.transport = {keep, forget, &p}});
    CHECK(run_crowd(&p, host, config) >= CROWD - 1);
    shut(host);
}

static void closes_a_queue(void)
{
    pending p = {0};
    ah_host *host = open_host((ah_config){.transport = {keep, forget, &p}, .max_in_flight = 1});

    for (int i = 0; i < CROWD; i++)
        STATUS(host, ah_agent_start(agent_of(host, config), "hi"), AH_OK);
    while (p.n == 0)
        CHECK(ah_step(host, 100) > 0);
    shut(host);
    CHECK(p.requests == 1 && p.n == 0);
}

static void backs_off(void)
{
    pending p = {0};
    ah_host *host = open_host((ah_config){.transport = {keep, forget, &p}});
    ah_agent *first = agent_of(host, config), *second = agent_of(host, config);

    STATUS(host, ah_agent_start(first, "hi"), AH_OK);
    while (p.n == 0)
        CHECK(ah_step(host, 100) > 0);
    answer_all(&p, "Retry-After: 1");
    step_until_done(host);
    CHECK(ah_agent_reply(first)->status == AH_PROVIDER);
    STATUS(host, ah_agent_start(second, "hi"), AH_OK);
    CHECK(ah_step(host, 0) == 1 && ah_step(host, 0) == 1 && p.n == 0);
    CHECK(ah_timeout(host) > 0 && ah_timeout(host) <= 1000);
    while (p.n == 0)
        CHECK(ah_step(host, 100) > 0);
    answer_all(&p, NULL);
    step_until_done(host);
    CHECK(ah_agent_reply(second)->status == AH_OK);
    CHECK(ah_counter(host, "agenthost.queued") == 1);
    CHECK(ah_counter(host, "agenthost.queued.ms") >= 50);
    shut(host);
}

const a_case http_cases[] = {
    {"a transport carries a request at once", carries_a_request},
    {"a transport carries a request later", carries_it_later},
    {"a transport that fails is told of", ends_badly},
    {"a transport that ends without a response is told of", ends_without_a_response},
    {"a transport is tried again", is_tried_again},
    {"a request of a transport is cancelled", is_cancelled},
    {"a response of a transport has limits", is_limited},
    {"a transport serves scripts", serves_scripts},
    {"a transport is given no request of limited addresses", judges_no_addresses},
    {"a host limits the requests in flight", holds_in_flight},
    {"a host is closed while requests wait in a lane", closes_a_queue},
    {"a refusal makes the requests of other agents wait", backs_off},
    {NULL, NULL},
};
