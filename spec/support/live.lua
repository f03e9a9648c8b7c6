--- make check-live: one short run through the command for each provider whose key is set, and for
-- each model that LIVE_MODELS names. It sends requests to real servers, which cost money; no spec
-- runs it. Run by agenthost itself: agenthost spec/support/live.lua BINARY.
local ah = require "agenthost"

local BINARY = ...

local CODE = [[
local add = ah.tool { name = "add", description = "Adds two integers.",
  params = { a = "integer", b = "integer" }, handler = function(t) return t.a + t.b end }
local reply = assert(ah.run { tools = { add }, max_iterations = 4, timeout = 90,
  "What is 17 + 25? Ask the tool, then answer with the number alone." })
assert(reply.text:find "42" and reply.tool_calls > 0, reply.text)
]]

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function output(words)
  local pipe <close> = assert(io.popen(quote(BINARY) .. words .. " 2>&1"))
  return pipe:read "a", (pipe:close())
end

--- Returns the models to try, and a line for each provider that is skipped.
local function chosen()
  local models, skipped = {}, {}
  for name in (os.getenv "LIVE_MODELS" or ""):gmatch "%S+" do
    models[#models + 1] = name
  end
  for _, provider in ipairs(ah.json.decode((output " models --json")).providers) do
    local model = provider.models[1].model
    if not provider.key then
      skipped[#skipped + 1] = ("%s (no %s)"):format(provider.provider,
        provider.key_variables[1])
    elseif model:find "/MODEL$" then
      skipped[#skipped + 1] = provider.provider .. " (name a model of it in LIVE_MODELS)"
    else
      models[#models + 1] = model
    end
  end
  return models, skipped
end

local models, skipped = chosen()
local failed = 0
for _, model in ipairs(models) do
  local said, ok = output(" -q --model " .. quote(model) .. " -e " .. quote(CODE))
  failed = failed + (ok and 0 or 1)
  print(("check-live: %s: %s"):format(model, ok and "ok" or "failed: " .. said))
end
print("check-live: skipped " .. table.concat(skipped, ", "))
print(("check-live: %d tried, %d failed, %d skipped"):format(#models, failed, #skipped))
os.exit(failed == 0 and 0 or 1)
