--- The fields of ah.mcp: what they may be, and what follows from them.
local ah = ...

local later = ah._module "agenthost.later"

local roots = later "agenthost.protocols.mcp.client.roots"

local WHAT = "ah.mcp"

local function seconds(name, default, doc)
  return { name = name, kinds = "number", least = 0.001, most = 86400, default = default,
    unit = "seconds", doc = doc }
end

local read = ah._reader {
  what = WHAT, type = "ah.McpConfig", rows = {
    { name = "command", kinds = "string",
      doc = "the program of the server: a name to be found in `PATH`, or a path" },
    { name = "args", kinds = "list", otherwise = "none", type = "string[]", doc = "its arguments" },
    { name = "env", kinds = "table", type = "table<string, string|boolean>",
      doc = "variables beside [the usual ones](processes.md#what-it-has): a string; `true` for the "
        .. "host's value; `false` for none" },
    { name = "cwd", kinds = "string", otherwise = "that of the host", doc = "its working folder" },
    { name = "sandbox", kinds = "string table", default = "none",
      type = '"none"|"auto"|"require"|"landlock"|"bubblewrap"|ah.ProcessSandbox',
      doc = "[limits](processes.md#sandbox) on what it can read, write and reach" },
    { name = "url", kinds = "string",
      doc = "in place of `command`: the address of a server that [runs elsewhere](#over-http)" },
    { name = "headers", kinds = "table", type = "table<string, string>",
      doc = "headers of each request to `url`" },
    { name = "auth", kinds = "table", type = "ah.McpAuth", otherwise = "what is stored is used",
      doc = "[how its tokens are got](mcp_login.md#in-a-script), if `url` wants some" },
    { name = "name", kinds = "string", otherwise = "from the command or address",
      doc = "its name in messages, and before the names of tools that are taken; 1 to 32 of `a-z`, "
        .. "`0-9`, `_` and `-`" },
    { name = "prefix", kinds = "string",
      doc = "begins the name of each of its tools, with `_` behind it; as `name`" },
    { name = "resources", kinds = "boolean", default = false,
      doc = "true: adds the tools `list_resources` and `read_resource`, if it has resources" },
    { name = "optional", kinds = "boolean", default = false,
      doc = "true: a run goes on without its tools if it cannot be started" },
    { name = "on_lost", kinds = "string", words = "tell retry ask", default = "tell",
      doc = "as [of a tool](tool.md#ahtool). `retry` also makes a call again, once, if the server "
        .. "ends during it; of a [task](#tasks) it asks again" },
    { name = "on_drift", kinds = "string", words = "refuse tell", default = "refuse",
      doc = "for a tool whose definition is not the [pinned](#pinned-definitions) one: `tell` "
        .. "declares the new one, with a warning" },
    { name = "pins", kinds = "string boolean", otherwise = "none; the command has one",
      type = "string|false", doc = "the file of pinned definitions; `false`: they are pinned in "
        .. "memory alone" },
    seconds("timeout", 60, "time of a call without a result or a report of progress"),
    seconds("longest", 600, "time of a call altogether; a person's time does not count"),
    seconds("start_timeout", 60, "time for the server to be ready"),
    { name = "trace", kinds = "function", type = "fun(ctx: ah.Ctx): ah.McpTrace?",
      doc = "`function(ctx)`: the [trace context](#trace-context) of a call" },
    { name = "roots", kinds = "list", otherwise = "none", type = "string[]",
      doc = "paths that the server may [ask for](#roots-and-sampling)" },
    { name = "sampling", kinds = "any", is = "model or function", otherwise = "none",
      type = "string|ah.Adapter|fun(request: ah.McpSampling, ctx: ah.Ctx): any, any",
      doc = "a model that [answers for the server](#roots-and-sampling), or "
        .. "`function(request, ctx)` that returns a text or a reply" },
    { name = "sampling_policy", kinds = "string", words = "ask allow", default = "ask",
      doc = '`"ask"`: a person approves of each question to the model' },
  },
}

-- -- names ----------------------------------------------------------------------------------------

local RUNNERS = { npx = true, node = true, uvx = true, uv = true, python = true, python3 = true,
  lua = true, ["lua5.4"] = true, bunx = true, deno = true, docker = true, sh = true, bash = true }

local function plain_name(text)
  local name = text:gsub("[/\\]+$", ""):gsub("^.*[/\\]", ""):gsub("(.)@[^@]*$", "%1")
    :gsub("%.%w+$", ""):lower():gsub("[^%w_-]+", "-"):gsub("^%-+", ""):sub(1, 32)
  return name ~= "" and name or "mcp"
end

--- Returns a name for the server: that of its host, of its program, or of what a program of
-- programs runs.
local function name_of(config)
  if config.url then
    return (plain_name((config.url:match "^%w+://([^/:?#]*)" or ""):gsub("%.", "-")))
  end
  local name = plain_name(config.command)
  if RUNNERS[name] or RUNNERS[config.command] then
    for _, word in ipairs(config.args or {}) do
      if type(word) == "string" and word:find "^[^-]" and not word:find "%s" then
        return plain_name(word)
      end
    end
  end
  return name
end

-- -- checks ---------------------------------------------------------------------------------------

local function fault(text, ...)
  ah._raise(WHAT .. ": " .. text:format(...))
end

local function check_name(field, name)
  if name and (#name > 32 or not name:find "^[a-z0-9_-]+$") then
    fault("field '%s' must be 1 to 32 of a-z, 0-9, _ and -", field)
  end
end

--- Returns the path of the file of pins; nil: there is none.
local function pins_of(config)
  if config.pins == nil then
    return ah._mcp_pins()
  elseif config.pins == true or config.pins == "" then
    fault "field 'pins' must be a path, or false"
  end
  return config.pins or nil
end

local OF_PROCESS = { "args", "env", "cwd", "sandbox" }

local function check_headers(given)
  for name, value in pairs(given) do
    if type(name) ~= "string" or type(value) ~= "string" then
      fault "field 'headers' must have texts by their names"
    end
  end
end

--- Checks that a server is either a process or elsewhere.
local function check_place(given, config)
  if (config.command == nil) == (config.url == nil) then
    fault("one of the fields 'command' and 'url' must be given, found %s",
      config.url and "both" or "none")
  elseif config.url and not config.url:find "^https?://[^/?#]" then
    fault "field 'url' must begin with http:// or https://, and a host"
  end
  for _, field in ipairs(config.url and OF_PROCESS or { "headers", "auth" }) do
    if given[field] ~= nil then
      fault("field '%s' is not for a server with '%s'", field, config.url and "url" or "command")
    end
  end
  check_headers(config.headers or {})
end

local function check_asked(config)
  local why = config.roots and roots.fault(config.roots)
  if why then
    fault("field 'roots' %s", why)
  end
  local kind = type(config.sampling)
  if kind ~= "nil" and kind ~= "string" and kind ~= "userdata" and kind ~= "function" then
    fault("field 'sampling' must be a model or a function, found %s", kind)
  end
end

--- Returns true if the headers have an authorization, with which there is no login.
local function is_authorized(config)
  for name in pairs(config.headers or {}) do
    if name:lower() == "authorization" then
      return config.auth and fault "give either 'auth' or a header Authorization" or true
    end
  end
  return false
end

--- Returns the fields as they are used: `name` is given or made, `pins` is a path or nil, and
-- `authorized` is true if the headers have an authorization. Raises an error for wrong ones.
return function(given)
  local config = read(given)
  check_name("name", config.name)
  check_name("prefix", config.prefix)
  check_place(given, config)
  check_asked(config)
  config.name = config.name or name_of(config)
  config.pins = pins_of(config)
  config.authorized = is_authorized(config)
  return config
end
