-- A conversation in which keys and a password are said by all. Run by the command, from
-- spec/crash/secrets_spec.lua, with the keys in the environment:
--
--   agenthost spec/crash/secret.lua FOLDER POINT
--
-- POINT names the place at which the process kills itself; "none" for nowhere.
local ah = require "agenthost"
local folder, point = ...
local given, env, filed = os.getenv "GIVEN", os.getenv "OPENAI_API_KEY", os.getenv "FILED"
local argued = os.getenv "ARGUED"

-- Models that are never asked: their keys are known from here on.
local _ <const> = assert(ah.agent { model = "openai/none", base_url = "http://127.0.0.1:1/" })
for _, key in ipairs { given, filed, argued } do
  assert(ah.agent { model = "anthropic/none", api_key = key, base_url = "http://127.0.0.1:1/" })
end

local function die(here)
  if here == point then
    os.execute "kill -9 $PPID"
  end
end

local files = ah.filesystem { root = folder .. "/files" }
local write = ah.tool { name = "write", description = "Writes.", params = { text = "string" },
  on_lost = "retry",
  handler = function(args)
    local f <close> = assert(io.open(folder .. "/arguments", "w"))
    f:write(args.text)
    f:close()
    die "handler"
    assert(files:write("config", "key = " .. filed .. "\n"))
    return "wrote " .. args.text .. " " .. given .. filed
  end }
local login = ah.tool { name = "login", description = "Asks.", on_lost = "retry",
  handler = function(_, ctx)
    local word = assert(ctx:ask { question = "The password?", secret = true })
    local f <close> = assert(io.open(folder .. "/password", "w"))
    f:write(word)
    f:close()
    die "asked"
    return "logged in"
  end }
local fails = ah.tool { name = "fails", description = "Fails.",
  handler = function() error("no access with " .. given) end }

local agent = assert(ah.agent { store = folder .. "/store.db", id = "s",
  tools = { write, login, fails },
  asks = function()
    return "open sesame 4711"
  end,
  model = ah.scripted { resumes = true, { text = "With " .. env .. ".", calls = {
    { name = "write", arguments = { text = "the key " .. argued } }, { name = "login" },
    { name = "fails" } } },
    function()
      die "request"
      return "Done with " .. given .. "."
    end } })
agent:send("Also " .. env)
local question = not agent.unfinished and "My key is " .. given .. "." or nil
print(assert(agent:run(question)))
