-- For LuaRocks: `luarocks make` in this folder builds and installs the Lua module, offline,
-- with what README.md installs for the build. All sources are named by the Makefile.
rockspec_format = "3.0"
package = "agenthost"
version = "0.1.0-1"
source = {
  url = "file://.", -- luarocks make takes what is in the folder
}
description = {
  summary = "Runs LLM agents whose tools are written in Lua",
  detailed = [[
    Tools are a name, a description, parameters and a Lua function; a run calls a model until it
    answers without tool calls. The C library, its headers and the command come with `make install`.
  ]],
  license = "MIT",
  labels = { "llm", "agents", "tools" },
}
dependencies = {
  "lua >= 5.4, < 5.5",
}
build = {
  type = "make",
  build_target = "rock",
  build_variables = {
    CFLAGS = "$(CFLAGS)",
  },
  install_target = "install-rock",
  install_variables = {
    CFLAGS = "$(CFLAGS)",
    LUA_CMOD = "$(LIBDIR)",
    LUA_LMOD = "$(LUADIR)",
  },
}
test = {
  type = "command",
  command = "make test",
}
