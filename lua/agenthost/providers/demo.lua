--- demo/NAME: models that need no key and no network. They see only what is sent to any model, so
-- their answers follow from the script's own tools and data.
--
--   demo/echo        repeats the user's text
--   demo/tools       calls each offered tool once, with arguments made from its schema and
--                    the user's words, then repeats the results
--   demo/quickstart  can answer examples/quickstart.lua
local ah = ...

--- Returns the last user text, and the entries after it.
local function current_turn(request)
  local entries = request.entries
  for i = #entries, 1, -1 do
    if entries[i].type == "user" then
      local part = entries[i].content[1]
      return part and part.text or "", table.move(entries, i + 1, #entries, 1, {})
    end
  end
  return "", entries
end

local function results_of(entries)
  local results = {}
  for _, e in ipairs(entries) do
    if e.type == "tool_result" then
      results[#results + 1] = e
    end
  end
  return results
end

-- Adds a usage of about four bytes a token, the same each time, to show how usage is summed.
local function with_usage(request, turn)
  local said = (turn.text or "") .. (turn.calls and ah.json.encode(turn.calls) or "")
  turn.usage = { input = #ah.json.encode(request.entries) // 4 + 1, output = #said // 4 + 1 }
  return turn
end

-- -- demo/tools -----------------------------------------------------------------------

--- Returns a word of the user's for a string argument: a quoted phrase, else the last capitalised
-- word, else the last word.
local function word_of(text)
  return text:match('"([^"]+)"')
    or text:match(".*%f[%w](%u%w+)")
    or text:match("(%w+)%W*$")
    or "example"
end

--- Returns the first choice that is a word of the user's text, else the first choice.
local function choice_of(choices, text)
  local words = {}
  for word in text:gmatch "[%w_-]+" do
    words[word] = true
  end
  for _, choice in ipairs(choices) do
    if words[choice] then
      return choice
    end
  end
  return choices[1]
end

local argument

local function object_of(schema, text)
  local object = ah.object {}
  for _, name in ipairs(schema.required or {}) do
    object[name] = argument((schema.properties or {})[name] or {}, text)
  end
  return object
end

local function number_of(schema, text)
  local n = tonumber(text:match("%-?%d+%.?%d*")) or schema.minimum or 1
  if schema.minimum and n < schema.minimum then
    n = schema.minimum
  elseif schema.maximum and n > schema.maximum then
    n = schema.maximum
  end
  return schema.type == "integer" and math.tointeger(n // 1) or n
end

--- Returns a value that the schema accepts, from the user's words if they fit.
function argument(schema, text)
  if type(schema) ~= "table" then
    return word_of(text)
  elseif schema.default ~= nil then
    return schema.default
  elseif schema.const ~= nil then
    return schema.const
  elseif schema.enum then
    return choice_of(schema.enum, text)
  elseif schema.anyOf then
    return argument(schema.anyOf[1], text)
  elseif schema.type == "object" then
    return object_of(schema, text)
  elseif schema.type == "array" then
    return ah.array { argument(schema.items or {}, text) }
  elseif schema.type == "integer" or schema.type == "number" then
    return number_of(schema, text)
  elseif schema.type == "boolean" then
    return true
  end
  return word_of(text)
end

local function tools(request)
  local text, since = current_turn(request)
  local results = results_of(since)
  local tool = request.tools[#results + 1]
  if tool and request.options.tool_choice ~= "none" then
    return { calls = { { name = tool.name, arguments = object_of(tool.parameters, text) } } }
  end
  local lines = { #results == 0 and "There are no tools to call." or "The tools said:" }
  for _, r in ipairs(results) do
    lines[#lines + 1] = ("- %s: %s"):format(r.name, r.content)
  end
  return { text = table.concat(lines, "\n") }
end

-- -- demo/quickstart --------------------------------------------------------------------

local HELP = "demo/quickstart is no model but a few lines of Lua: it only finds \"the largest moon "
  .. "of\" a planet. To ask anything else, name a model with --model or AGENTHOST_MODEL."

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

local function largest(moons)
  local most
  for _, moon in ipairs(moons) do
    if not most or moon.radius_km > most.radius_km then
      most = moon
    end
  end
  return most
end

local function say(moon)
  local found = moon.year and (" It was discovered in %d by %s."):format(moon.year, moon.discoverer)
    or " Nobody discovered it: it was always known."
  return { text = ("The largest moon of %s is %s, with a radius of %s km.")
    :format(moon.planet, moon.name, moon.radius_km) .. found }
end

local function quickstart(request)
  local text, since = current_turn(request)
  local planet = text:match("of (%u%l+)")
  local results = results_of(since)
  local last = results[#results]
  if not planet then
    return { text = HELP }
  elseif not last then
    return call("list_moons", { planet = planet })
  elseif not last.success then
    return { text = "That did not work: " .. last.content }
  end
  local said = ah.json.decode(last.content)
  if type(said) ~= "table" then
    return { text = HELP }
  elseif #results == 2 then
    return say(said)
  end
  local moon = largest(said)
  return moon and call("moon_facts", { name = moon.name })
    or { text = "No moons of " .. planet .. " are known here." }
end

local function echo(request)
  return { text = (current_turn(request)) }
end

local models = { echo = echo, tools = tools, quickstart = quickstart }

return function(name)
  local model = models[name]
  return model
    and ah.scripted(function(request)
      return with_usage(request, model(request))
    end, name, "demo")
end
