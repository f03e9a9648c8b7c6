/* A program with an agent. The tool `stock` is written in C, the tools of tools.lua in Lua:
 * make && ./app "What do 3 bags of mint tea cost?" */
#include <agenthost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION "What do 3 bags of mint tea cost, and how many are there?"

/* Called when the model uses the tool; the arguments were checked against the schema. */
static void stock(void *ud, ah_host *host, const ah_tool_call *call)
{
    (void)ud;
    ah_tool_done(host, call->id, strstr(call->args, "mint") ? "{\"bags\":12}" : "{\"bags\":0}");
}

static const ah_tool_config stock_tool = {
    .size = sizeof stock_tool,
    .name = "stock",
    .description = "Returns how many bags of a tea are there.",
    .params = "{\"type\":\"object\",\"required\":[\"tea\"],\"properties\":"
              "{\"tea\":{\"type\":\"string\",\"enum\":[\"green\",\"black\",\"mint\"]}}}",
    .call = stock,
};

/* The fields of the agent: without a model it has that of AGENTHOST_MODEL. */
static const char *fields(void)
{
#define TEA "\"system\":\"You sell tea. Be brief.\",\"tools\":[\"price\",\"stock\"]"
    return getenv("AGENTHOST_MODEL") ? "{" TEA "}" : "{\"model\":\"demo/tools\"," TEA "}";
}

static ah_status answer(ah_host *host, const char *question)
{
    ah_agent *agent = NULL;
    ah_status st;

    if ((st = ah_add_tool(host, &stock_tool)) != AH_OK ||
        (st = ah_script(host, "tools.lua", 0, NULL)) != AH_OK ||
        (st = ah_agent_open(host, fields(), &agent)) != AH_OK ||
        (st = ah_agent_run(agent, question)) != AH_OK)
        return st;
    printf("%s\n", ah_agent_reply(agent)->text);
    return AH_OK;
}

int main(int argc, char **argv)
{
    ah_host *host = NULL;
    ah_status st = ah_open(NULL, &host);

    if (st == AH_OK)
        st = answer(host, argc > 1 ? argv[1] : QUESTION);
    if (st != AH_OK)
        fprintf(stderr, "%s: %s\n", ah_status_name(st), ah_errmsg(host));
    ah_close(host);
    return st != AH_OK;
}
