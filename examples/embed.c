/* A program with an agent: one tool is written in C, one in Lua, and the model is a substitute
 * that needs no key and no network. docs/reference/embedding.md explains it.
 *
 *     cc embed.c $(pkg-config --cflags --libs agenthost) -o embed && ./embed */
#include <agenthost.h>
#include <stdio.h>
#include <string.h>

/* Called when a model uses the tool; the arguments were checked against the schema. */
static void stock(void *ud, ah_host *host, const ah_tool_call *call)
{
    const char *known = ud;
    char answer[64];

    if (!strstr(call->args, known)) {
        ah_tool_refuse(host, call->id, "That is not in the catalogue.");
        return;
    }
    snprintf(answer, sizeof answer, "{\"item\":\"%s\",\"pieces\":%d}", known, 12);
    ah_tool_done(host, call->id, answer);
}

static const ah_tool_config stock_tool = {
    .size = sizeof stock_tool,
    .name = "stock",
    .description = "Says how many pieces of an item are there.",
    .params = "{\"type\":\"object\",\"required\":[\"item\"],"
              "\"properties\":{\"item\":{\"type\":\"string\"}}}",
    .call = stock,
    .ud = "lamp",
};

static const char script[] =
    "local ah = require 'agenthost'\n"
    "return ah.tool { name = 'price', description = 'Says what so many pieces cost.',\n"
    "  params = { pieces = 'integer' },\n"
    "  handler = function(args) return { euros = args.pieces * 19 } end }\n";

static ah_status work(ah_host *host)
{
    ah_agent *agent = NULL;
    const char *price;
    ah_status st;

    if ((st = ah_add_tool(host, &stock_tool)) != AH_OK ||
        (st = ah_load(host, "shop.lua", script, strlen(script), 0, NULL)) != AH_OK ||
        (st = ah_call_tool(host, "price", "{\"pieces\":3}", &price)) != AH_OK)
        return st;
    printf("three cost %s\n", price);
    st = ah_agent_open(host, "{\"model\":\"demo/tools\",\"tools\":[\"stock\",\"price\"]}", &agent);
    if (st == AH_OK && (st = ah_agent_run(agent, "How many of \"lamp\" are there?")) == AH_OK)
        printf("%s\n", ah_agent_reply(agent)->text);
    return st;
}

int main(void)
{
    ah_host *host = NULL;
    ah_status st = ah_open(NULL, &host);

    if (st == AH_OK && (st = work(host)) != AH_OK)
        fprintf(stderr, "%s: %s\n", ah_status_name(st), ah_errmsg(host));
    ah_close(host);
    return st != AH_OK;
}
