// The interface from C++17: handles in unique_ptr, a lambda as tool, errors as exceptions.
#include <agenthost.h>

#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace
{

struct Close {
    void operator()(ah_host *host) const { ah_close(host); }
    void operator()(ah_agent *agent) const { ah_agent_close(agent); }
};
using Host = std::unique_ptr<ah_host, Close>;
using Agent = std::unique_ptr<ah_agent, Close>;

void check(ah_host *host, ah_status st)
{
    if (st != AH_OK)
        throw std::runtime_error(std::string(ah_status_name(st)) + ": " +
                                 (host ? ah_errmsg(host) : "no host"));
}

using Tool = std::function<std::string(const std::string &)>;

// No exception may cross the C code that calls this.
void call(void *ud, ah_host *host, const ah_tool_call *call)
{
    try {
        ah_tool_done(host, call->id,
                     (*static_cast<Tool *>(ud))({call->args, call->args_len}).c_str());
    } catch (const std::exception &e) {
        ah_tool_refuse(host, call->id, e.what());
    }
}

void add(ah_host *host, const char *name, const char *description, Tool tool)
{
    auto owned = std::make_unique<Tool>(std::move(tool));
    ah_tool_config cfg{};

    cfg.size = sizeof cfg;
    cfg.name = name;
    cfg.description = description;
    cfg.call = call;
    cfg.release = [](void *ud) { delete static_cast<Tool *>(ud); };
    cfg.ud = owned.get();
    check(host, ah_add_tool(host, &cfg));
    owned.release(); // the host owns it now
}

void work(ah_host *host)
{
    int asked = 0;
    add(host, "count", "Counts how often it was asked.",
        [&asked](const std::string &) { return std::to_string(++asked); });
    add(host, "broken", "Never works.",
        [](const std::string &) -> std::string { throw std::runtime_error("it is broken"); });
    ah_agent *raw = nullptr;
    check(host, ah_agent_open(host, R"({"model":"demo/tools","tools":["count","broken"]})", &raw));
    Agent agent(raw);
    check(host, ah_agent_run(agent.get(), "Try both."));
    std::cout << ah_agent_reply(agent.get())->text << "\n";
}

} // namespace

int main()
{
    try {
        ah_host *raw = nullptr;
        check(nullptr, ah_open(nullptr, &raw));
        Host host(raw);
        work(host.get());
    } catch (const std::exception &e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
