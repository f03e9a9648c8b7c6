--- Custom tools of OpenAI: their input is one text of any form, not JSON. A script calls one like
-- any other tool, with that text or { input = text } as the arguments, and sees calls and
-- parameters in the second form. This file has the parts that Chat Completions and Responses
-- share.
local ah, use = ...
local check = use "mock.check"

local custom = {}

local NAME, MAX_NAME = "^[a-zA-Z0-9_-]+$", 128

--- Checks a custom tool; `grammar_of` finds the two members of a grammar in its format.
---@return string its name
function custom.check(tool, place, grammar_of)
  local name = check.required(tool, "name", "string", place .. ".name")
  check.matches(name, NAME, MAX_NAME, "^[a-zA-Z0-9_-]{1,128}$", place .. ".name")
  check.optional(tool, "description", "string", place .. ".description")
  local format = check.optional(tool, "format", "object", place .. ".format")
  if format then
    check.one_of(format.type, { "text", "grammar" }, place .. ".format.type")
  end
  if format and format.type == "grammar" then
    local grammar, here = grammar_of(format, place .. ".format")
    check.required(grammar, "definition", "string", here .. ".definition")
    check.one_of(grammar.syntax, { "lark", "regex" }, here .. ".syntax")
  end
  return name
end

--- Returns a custom tool in the form of scripted models.
function custom.tool_of(tool)
  return { name = tool.name, description = check.given(tool.description) or "",
    parameters = { type = "object", properties = { input = { type = "string" } },
      required = ah.array { "input" } } }
end

--- Returns the arguments that a script sees, from the input of a call.
function custom.arguments_of(input)
  return ah.json.encode { input = input }
end

--- Returns the input of a call, from the script's arguments.
function custom.input_of(arguments)
  local value = ah.json.decode(arguments)
  if check.is_object(value) and type(value.input) == "string" then
    return value.input
  end
  return arguments == "{}" and "" or arguments
end

return custom
