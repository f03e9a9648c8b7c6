/* Counters of one host, which owns them. Its runs add to them, ah.metrics() reads them, and they
 * never decrease. Callers: its module, host. */
#ifndef AH_RUN_METRICS_H
#define AH_RUN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ah_metric {
    AH_METRIC_RUNS,
    AH_METRIC_REQUESTS,
    AH_METRIC_RETRIES,
    AH_METRIC_QUEUED,
    AH_METRIC_QUEUED_MS,
    AH_METRIC_TOOL_CALLS,
    AH_METRIC_TOOL_FAILURES,
    AH_METRIC_TOKENS_INPUT,
    AH_METRIC_TOKENS_CACHED,
    AH_METRIC_TOKENS_OUTPUT,
    AH_METRIC_CACHE_BREAKS,
    AH_METRIC_TOOLS_INJECTED,
    AH_METRIC_DISCLOSURE_DYNAMIC,
    AH_METRIC_DISCLOSURE_RESTARTS,
    AH_METRICS
} ah_metric;

typedef struct ah_metrics {
    int64_t count[AH_METRICS];
    double cost; /* US dollars, as far as they are known */
    bool priced; /* the cost of an answer was known */
} ah_metrics;

const char *ah_metric_name(ah_metric m);                       /* "agenthost.tools.injected" */
void ah_metric_add(ah_metrics *m, ah_metric which, int64_t n); /* m NULL: does nothing */

#endif
