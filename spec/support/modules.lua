-- The modules of each floor, the lowest first: a file may use its own module and those that are
-- named before it, by includes and by calls. Files that use each other are one module, and so is a
-- floor without a row. floors.lua checks it.
--
-- A module is { its name, its files without `prefix` }: `x` is x.c and x.h, `x.h` only that header.
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
    { "prints", "prints" },
  },
  run = {
    { "need", "budget budget_record config history hooks loop_detector metrics need price "
      .. "recorder search_index spent tell" },
    { "gate", "call drift gate restage said step" },
    { "inject", "disclose expand inject pick" },
    { "strategies", "discover discover_replay found search" },
    { "run", "background run run_exchange run_fallback run_handoff run_learn run_output run_park "
      .. "run_record run_resume run_settings run_state run_turn" },
  },
  lua = {
    prefix = "lua_",
    -- values and texts of a Lua state: conversion, errors, strict tables
    { "value", "data error fields open.h options sources state value words" },
    -- the two ways into Lua, and their limits
    { "door", "channel coroutine fence host later line memory modules spawn step task watch" },
    -- the call in which code runs, and what ends with the call
    { "call", "now resource_end staged" },
    -- objects of scripts that do not know agents
    { "handle", "budget builtin bytes child child_output command events file file_watch fs http "
      .. "image input launch limits models named observe outside process replay reply schema serve "
      .. "serve_answer store store_keep store_look stream tables terminal terminal_show "
      .. "type yaml" },
    { "tool", "entity entity_call entity_json expansion group render result states tool "
      .. "tool_fields undo" },
    { "session", "dispatcher reduce session subscribe" },
    { "prompt", "prompt prompt_fields section" },
    -- the functions of scripts that a run calls
    { "hooks", "gate hooks inject lost moment policy search" },
    { "adapter", "adapter exchange fallback" },
    { "agent", "agent agent_fields agent_store background book defaults direct discover handoff "
      .. "inbox keep post registry resources restage run_options setup toolset" },
    -- objects made of agents: conversations that last, and asks
    { "conversation", "carry conversation definition fork" },
    { "ask", "approve ask front lost_ask" },
    -- the members of ctx
    { "ctx", "ctx" },
    -- all modules together, and the interface of C programs
    { "embed", "api api_agent api_ask api_call api_given api_loop api_store api_tool open "
      .. "reader subjects" },
  },
}
