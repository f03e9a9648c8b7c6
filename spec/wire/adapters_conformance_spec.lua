-- Every adapter of an HTTP provider in the conformance tests for script-written ones
-- (ah.conformance), with `agenthost mock` as its server. An ability that is listed here and does
-- not work is a failure.
local ah = require "agenthost"
local mock = require "support.mock"

local it = mock.is_built() and it or pending

-- `lacks`: abilities that the wire cannot express; `silent`: streams do not report tokens, as the
-- server is not known to accept stream_options.
local ADAPTERS = {
  { model = "openai/gpt-4o", path = "/v1" },
  { model = "openai/responses/gpt-5.4", path = "/v1" },
  { model = "anthropic/claude-opus-4-8", path = "" },
  { model = "anthropic/claude-3-haiku-20240307", path = "" },
  { model = "gemini/gemini-3-pro", path = "", lacks = { refusal = true } },
  { model = "gemini/gemini-2.5-flash", path = "", lacks = { refusal = true } },
  { model = "ollama/qwen3", path = "", lacks = { refusal = true } },
  { model = "litellm_proxy/claude-opus", path = "" },
  { model = "compatible/qwen3", path = "/v1", silent = true },
  { model = "mistral/mistral-large-latest", path = "/v1", silent = true },
  { model = "azure/deployment", path = "" },
}

local ALL = { "streaming", "usage", "refusal", "length", "errors", "cut" }

-- Returns the names of the adapter's abilities; "streaming" is listed for streams only.
local function able(adapter, stream)
  local list = {}
  for _, name in ipairs(ALL) do
    local lacking = adapter.lacks and adapter.lacks[name] or name == "streaming" and not stream
      or name == "usage" and stream and adapter.silent
    list[#list + 1] = not lacking and name or nil
  end
  return list
end

-- Plays the turns that the file holds at the time, so that one server serves all cases.
local SCRIPT = [[
local ah = require "agenthost"
local serial, at
return function()
  local f <close> = assert(io.open(%q))
  local said = assert(ah.json.decode(f:read "a"))
  at = said.serial == serial and at + 1 or 1
  serial = said.serial
  return said.turns[at]
end
]]

local function write(path, value)
  local f <close> = assert(io.open(path, "w"))
  f:write(ah.json.encode(value))
end

describe("ah.conformance", function()
  for _, adapter in ipairs(ADAPTERS) do
    for _, stream in ipairs { true, false } do
      local how = stream and "streamed" or "whole"
      it(("finds no fault in %s, %s"):format(adapter.model, how), function()
        local path, serial = os.tmpname(), 0
        local m <close> = mock.start(SCRIPT:format(path))
        local report = ah.conformance { capabilities = able(adapter, stream),
          serve = function(turns)
            serial = serial + 1
            write(path, { serial = serial, turns = turns })
            return { model = adapter.model, base_url = m.url .. adapter.path,
              api_key = "key-of-a-spec", stream = stream, log = function() end }
          end }
        os.remove(path)
        assert.equal(0, report.failed, tostring(report))
        assert.is_true(report.passed > 18, tostring(report))
      end)
    end
  end
end)
