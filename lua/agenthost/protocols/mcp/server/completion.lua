--- `completion/complete`: values for an argument of a prompt, or for a variable of a template, from
-- functions of the script.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local rounds = ah._module "agenthost.protocols.mcp.server.rounds"

local CODES, fault = message.CODES, message.fault

local MOST_VALUES = 100 -- of a response (2026-07-28, server/utilities/completion)
local MOST_VALUE = 8192 -- bytes

local M = {}

--- True if there is a function that completes something.
function M.is_offered(offers)
  for _, one in ipairs(offers.templates) do
    if next(one.complete or {}) then
      return true
    end
  end
  for _, prompt in ipairs(offers.prompts) do
    for _, argument in ipairs(prompt.arguments) do
      if argument.complete then
        return true
      end
    end
  end
  return false
end

-- Returns the functions of what the reference names, by the names of arguments, false where there
-- is none; nil and an error.
local function functions_of(q, ref)
  local found = {}
  local name, uri = message.text(ref.name, MOST_VALUE), message.text(ref.uri, MOST_VALUE)
  local prompt = ref.type == "ref/prompt" and name and q.server.offers.prompts[name]
  local template = ref.type == "ref/resource" and uri and q.server.offers.templates[uri]
  for _, one in ipairs(prompt and prompt.arguments or {}) do
    found[one.name] = one.complete or false
  end
  for _, variable in ipairs(template and template.template.names or {}) do
    found[variable] = (template.complete or {})[variable] or false
  end
  if not prompt and not template then
    return fault(CODES.params, '"ref" names no prompt and no template of a resource')
  end
  return found
end

-- Returns the arguments that are known already.
local function others_of(params)
  local others = {}
  for name, value in pairs(message.object(message.object(params.context).arguments)) do
    others[name] = type(value) == "string" and #value <= MOST_VALUE and value or nil
  end
  return others
end

local function result_of(values)
  return { completion = { values = ah.array { table.unpack(values, 1, MOST_VALUES) },
    total = #values, hasMore = #values > MOST_VALUES } }
end

local function show(name)
  return function(q, values)
    if type(values) ~= "table" then
      return rounds.wrong(q, name, "complete returned a %s, not a list of texts", type(values))
    end
    for i, value in ipairs(values) do
      if i <= MOST_VALUES and (type(value) ~= "string" or #value > MOST_VALUE) then
        return rounds.wrong(q, name, "complete returned a list whose item %d is no short text", i)
      end
    end
    return result_of(values)
  end
end

--- Answers `completion/complete`.
function M.complete(q)
  local argument = message.object(q.params.argument)
  local name, value = message.text(argument.name, message.MOST_ID), argument.value
  if not name or type(value) ~= "string" or #value > MOST_VALUE then
    return fault(CODES.params, '"argument" must have a "name" and a "value" of at most %d bytes',
      MOST_VALUE)
  end
  local functions, err = functions_of(q, message.object(q.params.ref))
  if not functions then
    return nil, err
  elseif functions[name] == nil then
    return fault(CODES.params, "Unknown argument: %s", message.said(name))
  elseif not functions[name] then
    return result_of {}
  end
  local others = others_of(q.params)
  return rounds.script(q, { name = name, arguments = ah.object {}, quiet = true,
    show = show(name), job = function()
      return functions[name](value, others)
    end })
end

return M
