--- The trace context of a call, which its requests carry in `_meta` (SEP-414; W3C Trace Context and
-- W3C Baggage). The program says what it is; values that are not in the form of the W3C are left
-- out, as they may come from outside.
local ah = ...

local MOST_STATE, MOST_BAGGAGE = 512, 8192

local trace = {}

local function is_parent(value)
  local version, id, span = value:match "^(%x%x)%-(%x+)%-(%x+)%-%x%x$"
  return version and not value:find "%u" and version ~= "ff" and #id == 32 and #span == 16
    and id:find "[^0]" and span:find "[^0]"
end

local function is_text(value, most)
  return value ~= "" and #value <= most and not value:find "[^\x20-\x7e]"
end

local FORMS = {
  traceparent = is_parent,
  tracestate = function(value) return is_text(value, MOST_STATE) end,
  baggage = function(value) return is_text(value, MOST_BAGGAGE) end,
}

--- Returns the members of `_meta` for a call, or nil. source: the field `trace` of the server.
function trace.of(source, ctx)
  local given = source and ctx and source(ctx)
  if type(given) ~= "table" then
    return nil
  end
  local meta = {}
  for name, is_right in pairs(FORMS) do
    if type(given[name]) == "string" and is_right(given[name]) then
      meta[name] = given[name]
    elseif given[name] ~= nil then
      ah.log("debug", ("ah.mcp: '%s' of the trace is not in the form of the W3C; it is left out")
        :format(name))
    end
  end
  return meta
end

return trace
