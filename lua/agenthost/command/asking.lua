--- Lets a person respond to an ask, line by line: in a chat and in a prompt.
--
--   local asking = asking_of.new(ask, { allowed = list, say = function(text) end, own = true })
--   asking:show()             shows what is asked
--   asking:asked(count)       returns what editor:read takes; count, such as "(1 of 3)", may be nil
--   asking:take(line)         takes a line. True: the ask is over
--   asking:refuse(why)        refuses an approval; a question is left to its default
--
-- allowed   the list of allowed.lua
-- say       shows a text of ah.terminal above the line
-- edited    the arguments in place of those of the call; nil: they were not edited
-- rich      true: a line can begin with a text that is edited
-- own       true: the call is of the command's own tools, whose files are in this folder
-- schema    function(name): the JSON Schema of a tool's arguments; nil: it is not known
--
-- A line is no response unless it is exactly one: Enter alone explains the responses again.
local ah, use = ...
local allowed_of, question = use "allowed", use "asking.question"
local shown, text = use "asking.shown", use "text"

local M = {}

local Approval = {}
Approval.__index = Approval

-- -- an approval -------------------------------------------------------------------------------

function Approval:show(whole)
  local texts, cut = shown.approval(self.ask, whole, self.own)
  self.cut = cut
  self.say(texts)
end

-- Returns the letters that are responses now.
local function letters(a)
  local list = { "y", "n" }
  list[#list + 1] = a.rule and "a" or nil
  list[#list + 1] = not a.ask.changes and "e" or nil
  list[#list + 1] = a.cut and "s" or nil
  return table.concat(list, "/") .. "/?"
end

local HELP = {
  { "y", "yes: do this once" },
  { "n", "no; `n use make` also says why, for the model" },
  { "a", "always: do this, and do not ask again in this folder" },
  { "e", "edit the arguments first" },
  { "s", "show all of it" },
}

local function help(a)
  local lines, offered = {}, letters(a)
  for _, row in ipairs(HELP) do
    if offered:find(row[1], 1, true) then
      lines[#lines + 1] = ("  %s  %s"):format(row[1], row[2])
    end
  end
  a.say(table.concat(lines, "\n"))
end

function Approval:asked(count)
  local typed, state = self.typed, self.state
  self.typed = nil
  local asked = { keep = false, text = typed }
  if state == "edit" then
    asked.prompt = "  "
  elseif state == "always" then
    asked.prompt = { { "Keep that? [y/n] ", bold = true } }
  else
    asked.prompt = { { ("Allow it? %s[%s] "):format(count and count .. " " or "", letters(self)),
      bold = true } }
  end
  return asked
end

-- Gives the response. One that does not fit leaves the ask open.
local function respond(a, value)
  local done, err = a.ask:respond(value)
  if not done then
    a.say { err.message, color = "red" }
  end
  return done or err.code ~= "tool_validation"
end

function Approval:refuse(why)
  return respond(self, { approved = false, why = why })
end

local take = {} -- by state

local function edit(a)
  a.state, a.typed = "edit", shown.pretty(a.ask.call.arguments)
  a.say { "Enter allows the call with these arguments; without any text it goes back.",
    not a.rich and "\n" .. a.typed or "", faint = true }
end

local function always(a)
  a.state = "always"
  a.say { "In this folder no question is asked any more about: ", allowed_of.words(a.rule) }
end

-- Returns the reason in "n why" or "no, why"; nil if the line is something else.
local function reason(line)
  return line:match "^no?,?%s+(.*%S)%s*$"
end

function take.ask(a, line)
  if line == "y" or line == "yes" then
    return respond(a, true)
  elseif line == "n" or line == "no" then
    return a:refuse "the user does not allow it"
  elseif reason(line) then
    return a:refuse(reason(line))
  elseif (line == "a" or line == "always") and a.rule then
    always(a)
  elseif (line == "e" or line == "edit") and not a.ask.changes then
    edit(a)
  elseif (line == "s" or line == "show") and a.cut then
    a:show(true)
  elseif line == "a" or line == "always" then
    a.say("It cannot be allowed for good: " .. a.no_rule)
  else
    if line ~= "?" then
      a.say "That is no response. Type one of these letters, and Enter:"
    end
    help(a)
  end
end

function take.always(a, line)
  a.state = "ask"
  if line ~= "y" and line ~= "yes" then
    a.say "Nothing is kept."
    return
  end
  local kept, why = pcall(a.allowed.keep, a.allowed, a.rule)
  if not kept then
    a.say { "It is allowed this once, and not kept: ", text.clean(type(why) == "table"
      and (why.words or why.message) or tostring(why)), color = "red" }
  end
  return respond(a, true)
end

-- Returns what is wrong with arguments for the tool; nil if nothing is known to be.
local function fault_of(a, arguments)
  local schema = a.schema and a.schema(a.ask.call.name)
  local ok, compiled = pcall(ah.schema, schema or true, { unknown_keywords = "allow" })
  if ok then
    local fine, why = compiled:validate(arguments, { extra = "forbid", coerce = true })
    return not fine and why or nil
  end
end

function take.edit(a, line)
  a.state = "ask"
  if not line:find "%S" then
    return
  end
  local arguments, err = ah.json.decode(line)
  local why = arguments == nil and err
    or type(arguments) ~= "table" and "the arguments are an object: {\"name\": value}"
    or fault_of(a, arguments)
  if why then
    a.say { why, color = "red" }
    a.state, a.typed = "edit", line
    return
  end
  a.edited = arguments
  return respond(a, { approved = true, arguments = arguments })
end

function Approval:take(line)
  return take[self.state](self, line)
end

-- -- any ask -----------------------------------------------------------------------------------

function M.new(ask, options)
  if ask.kind ~= "approval" then
    return question.new(ask, options)
  end
  local rule, why = options.allowed:rule(ask)
  return setmetatable({ ask = ask, state = "ask", rule = rule, no_rule = why, say = options.say,
    allowed = options.allowed, own = options.own, rich = options.rich,
    schema = options.schema }, Approval)
end

return M
