/* The names of the counters, in the order of the enum. */
#include "run/metrics.h"

#include <stddef.h>

const char *ah_metric_name(ah_metric m)
{
    static const char *const names[AH_METRICS] = {
        [AH_METRIC_RUNS] = "agenthost.runs",
        [AH_METRIC_REQUESTS] = "agenthost.requests",
        [AH_METRIC_RETRIES] = "agenthost.retries",
        [AH_METRIC_QUEUED] = "agenthost.queued",
        [AH_METRIC_QUEUED_MS] = "agenthost.queued.ms",
        [AH_METRIC_TOOL_CALLS] = "agenthost.tools.calls",
        [AH_METRIC_TOOL_FAILURES] = "agenthost.tools.failures",
        [AH_METRIC_TOKENS_INPUT] = "agenthost.tokens.input",
        [AH_METRIC_TOKENS_CACHED] = "agenthost.tokens.cached",
        [AH_METRIC_TOKENS_OUTPUT] = "agenthost.tokens.output",
        [AH_METRIC_CACHE_BREAKS] = "agenthost.cache.breaks",
        [AH_METRIC_TOOLS_INJECTED] = "agenthost.tools.injected",
        [AH_METRIC_DISCLOSURE_DYNAMIC] = "agenthost.disclosure.dynamic",
        [AH_METRIC_DISCLOSURE_RESTARTS] = "agenthost.disclosure.restarts",
    };

    return names[m];
}

void ah_metric_add(ah_metrics *m, ah_metric which, int64_t n)
{
    if (m)
        m->count[which] += n;
}
