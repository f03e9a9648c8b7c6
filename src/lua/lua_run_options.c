/* The fields of ah.run and ah.agent, and of the tables in them that configure requests, as rows. */
#include "base/request.h"
#include "lua/lua_options.h"

/* -- http -------------------------------------------------------------------------------- */

static const ah_option http_rows[] = {
    {.name = "connect_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "10",
     .to = AH_TO_MS(ah_http_limits, connect_ms),
     .doc = "until the connection stands, TLS included"},
    {.name = "idle_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "300",
     .to = AH_TO_MS(ah_http_limits, idle_ms),
     .doc = "without a byte sent or received"},
    {.name = "total_timeout",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .unit = "seconds",
     .otherwise = "600",
     .to = AH_TO_MS(ah_http_limits, total_ms),
     .doc = "for the whole request"},
    {.name = "max_header",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "65536",
     .to = AH_TO_SIZE(ah_http_limits, header_bytes),
     .doc = "of the response's headers"},
    {.name = "max_body",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .unit = "bytes",
     .otherwise = "67108864",
     .to = AH_TO_SIZE(ah_http_limits, body_bytes),
     .doc = "of the response's body"},
    {0},
};
const ah_subject ah_subject_http_limits = {
    .what = "ah.run: http", .type = "ah.HttpLimits", .doc = "limits of a request", .row = http_rows};
