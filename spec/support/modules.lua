-- The modules of each floor, the lowest first: a file may use its own module and those that are
-- named before it, by includes and by calls. What goes round in a circle is one module, and so is a
-- floor without a row. floors.lua checks it.
--
-- Each is { its name, its files without `prefix` }: `x` is x.c and x.h, `x.h` that header alone.
return {
  wire = {
    { "known", "advice full models models_table servers service shape sse strict_subset" },
    { "lower", "adapter assemble breaks dialect dispatcher lower offers provider strict" },
    { "reader", "reader thoughts" },
    -- the providers
    { "anthropic", "anthropic anthropic_read" },
    { "gemini", "gemini gemini_read" },
    { "ollama", "ollama ollama_read" },
    { "openai", "openai openai_read responses responses_read" },
    { "scripted", "scripted" },
    { "providers", "providers" },
  },
  run = {
    { "need", "budget config hooks loop_detector metrics need search_index tell" },
    { "gate", "call drift gate" },
    { "inject", "disclose expand inject pick" },
    { "strategies", "discover discover_replay found search" },
    { "run", "run run_exchange run_fallback run_learn run_output run_settings run_state run_turn" },
  },
  lua = {
    prefix = "lua_",
    -- values and texts of a Lua state: conversion, errors, strict tables
    { "value", "data error fields open.h options sources state value words" },
    -- the two ways into Lua, and what watches over them
    { "door", "coroutine fence host later memory modules spawn task watch" },
    -- in which call code works, and what ends with it
    { "call", "now resource_end staged" },
    -- objects that scripts hold and that know no agent
    { "handle", "budget builtin bytes child child_output command file file_watch fs http image "
      .. "launch limits models observe outside process reply schema serve serve_answer stream "
      .. "terminal terminal_show type yaml" },
    { "tool", "entity entity_call entity_json expansion group render result tool tool_fields "
      .. "undo" },
    { "session", "dispatcher reduce session subscribe" },
    { "prompt", "prompt prompt_fields section" },
    -- what a run asks of scripts while it is at work
    { "hooks", "gate hooks inject moment policy search" },
    { "adapter", "adapter exchange fallback" },
    { "agent", "agent agent_fields book defaults direct discover keep post registry resources "
      .. "run_options setup" },
    -- what is made of agents: conversations that last, and people who are asked
    { "conversation", "conversation definition" },
    { "ask", "approve ask front" },
    -- the members of ctx
    { "ctx", "ctx" },
    -- what puts all of it together, and the door of C programs
    { "embed", "api api_agent api_ask api_call api_given api_loop api_tool open "
      .. "reader subjects" },
  },
}
