--- Calls that a person has allowed for good, by folder: $XDG_STATE_HOME/agenthost/allowed, which
-- only its owner can read. Its first line is a comment, its second one the hash of the rest, so
-- that a damaged file is noticed and not used. Each further line is a rule, a JSON object of
--
--   folder   the real path of the folder to which it applies
--   tool     the name of the tool
--   script   the real path of the script whose tool it is; nil: the command's own
--   only     bash: the arguments as JSON, without the time; http_fetch: the host; nil: all calls
--
--   local list = allowed.open(script)   for the current folder; script: its path, or nil
--   list:rule(ask)    the rule for calls like this one; nil and why there can be none
--   list:covers(ask)  the rule if there is such a one, else nil
--   list:keep(rule)   raises a fault
--   list:rules()      those of this folder; nil and why they cannot be used
--   list:remove(n)    takes back rule n of them, and returns it; raises a fault
--
-- A list applies the rules that were there when it was opened, or that it has kept itself, as long
-- as they are in the file: a rule that comes from elsewhere during a conversation is not applied
-- before the next one, which shows how many there are.
local ah, use = ...
local pairs_of, text = use "pairs", use "text"

local M = {}

--- The reason for which calls of tools from outside are asked about (prompt/agent.lua). There is
-- no rule for them, as several servers may have tools of one name.
M.OUTSIDE = "it is a tool of an MCP server, with effects that agenthost does not know"

local HEAD = "# Calls that are always allowed: /allowed in agenthost chat lists them\n"
local SHOWN = 300 -- bytes of a command in a message

local List = {}
List.__index = List

-- -- the file ----------------------------------------------------------------------------------

-- Returns a rule; nil if the line has none.
local function rule_of(line)
  local rule = ah.json.decode(line)
  if type(rule) ~= "table" then
    return nil
  end
  for name, value in pairs(rule) do
    if type(value) ~= "string" or not ({ folder = 1, tool = 1, script = 1, only = 1 })[name] then
      return nil
    end
  end
  return rule.folder and rule.tool and rule or nil
end

-- Returns the rules of the file's text; nil and what is wrong.
local function parse(content)
  local hash, rest = content:match "^#[^\n]*\nsha256 (%x+)\n(.*)$"
  if not hash then
    return nil, "it is no list of allowed calls"
  elseif ah.sha256(rest) ~= hash then
    return nil, "another program has changed it, or it is damaged"
  end
  local rules = {}
  for line in rest:gmatch "[^\n]+" do
    local rule = rule_of(line)
    if not rule then
      return nil, "it has a line that is no rule"
    end
    rules[#rules + 1] = rule
  end
  return rules
end

-- True if tools for the current folder see the file, so that a model could add a rule. They do not
-- see the folder of the open store, which is usually the same.
local function is_seen(place)
  local here, real = ah._real_path ".", ah._real_path(place)
  local beginning = here and (here == "/" and here or here .. "/")
  if not beginning or not real or real:sub(1, #beginning) ~= beginning then
    return false
  end
  local fs <close> = ah.filesystem { root = "." }
  return not fs or fs:exists(real:sub(#beginning + 1)) ~= false
end

-- Returns all rules of the file; nil and why they cannot be used.
local function read()
  local place = pairs_of.in_state "allowed"
  if not place then
    return {}
  end
  local content, more, missing = pairs_of.read(place, "file")
  if missing then
    return {}
  elseif not content then
    return nil, more
  elseif not more then
    return nil, "it belongs to another user"
  elseif is_seen(place) then
    return nil, "it is in the folder of the tools, and no store there is open, which would hide it"
  end
  return parse(content)
end

local function write(place, rules)
  local lines = {}
  for i, rule in ipairs(rules) do
    lines[i] = text.json(rule) .. "\n"
  end
  local rest = table.concat(lines)
  ah._write_private(place, ("%ssha256 %s\n%s"):format(HEAD, ah.sha256(rest), rest))
end

-- Calls change(rules), and writes what it returns.
local function change_file(change)
  local place = pairs_of.in_state "allowed"
  if not place then
    pairs_of.fault "there is no place to keep it: set HOME"
  end
  pairs_of.make_folders(place)
  local _ <close> = pairs_of.locked(place)
  local rules, why = read()
  if not rules then
    pairs_of.fault("cannot use the allowed calls in '%s': %s\nLook at the file, and delete it.",
      pairs_of.shown(place), why)
  end
  write(place, change(rules))
end

-- -- rules -------------------------------------------------------------------------------------

-- Functions that return the `only` of a rule, by tool; or nil and why there can be no rule.
local ONLY = {}

function ONLY.bash(arguments)
  if not arguments.command and not arguments.argv then
    return nil, "there is no command"
  end
  local same = {}
  for name, value in pairs(arguments) do
    same[name] = name ~= "timeout" and value or nil
  end
  local only = text.json(same)
  if only:find("[secret]", 1, true) then
    return nil, "the command has a secret"
  end
  return only
end

function ONLY.http_fetch(arguments)
  local url = type(arguments.url) == "string" and arguments.url or ""
  local host = (url .. "/"):match "^[Hh][Tt][Tt][Pp][Ss]?://([%w.-]+:?%d*)[/?#]"
  if not host or arguments.body ~= nil then
    return nil, "only a request without a body to a host by its name can be"
  end
  return host:lower()
end

local function key_of(rule)
  return text.json(rule)
end

-- Returns a command as it was allowed, as JSON in one line.
local function command_of(only)
  local arguments = ah.json.decode(only) or {}
  local alone = type(arguments) == "table" and next(arguments) == "command"
    and next(arguments, "command") == nil
  local said = alone and text.json(arguments.command) or only
  local cut = text.cut(said, SHOWN)
  return #cut < #said and ("%s [%d bytes more]"):format(cut, #said - #cut) or cut
end

--- Returns a rule in words, which a terminal prints as they are.
function M.words(rule)
  local words
  if rule.tool == "bash" and rule.only then
    words = "bash with exactly this command: " .. command_of(rule.only)
  elseif rule.only then
    words = ("%s from %s"):format(rule.tool, rule.only)
  elseif not rule.script and (rule.tool == "write_file" or rule.tool == "edit_file") then
    words = rule.tool .. " for all files of the folder"
  else
    words = rule.tool .. " with any arguments"
  end
  return text.clean((words .. (rule.script and ", of the script " .. rule.script or ""))
    :gsub("%s", " "))
end

function List:rule(ask)
  local call = ask.call
  if ask.kind ~= "approval" or ask.changes then
    return nil, "what a call has changed is looked at each time"
  elseif ask.question == M.OUTSIDE then
    return nil, "a tool of an MCP server is asked about each time"
  elseif not self.folder then
    return nil, "this folder has no path"
  end
  local only, why
  if ONLY[call.name] then
    only, why = ONLY[call.name](type(call.arguments) == "table" and call.arguments or {})
  end
  if why then
    return nil, why
  end
  return { folder = self.folder, tool = call.name, script = self.script, only = only }
end

-- -- a list ------------------------------------------------------------------------------------

function List:rules()
  local all, why = read()
  local here = {}
  for _, rule in ipairs(all or {}) do
    here[#here + 1] = rule.folder == self.folder and rule or nil
  end
  return all and here, why
end

function List:covers(ask)
  local rule = self:rule(ask)
  local key = rule and key_of(rule)
  if not key or not self.known[key] then
    return nil
  end
  for _, one in ipairs(self:rules() or {}) do
    if key_of(one) == key then
      return rule
    end
  end
end

function List:keep(rule)
  local key = key_of(rule)
  change_file(function(rules)
    for _, one in ipairs(rules) do
      if key_of(one) == key then
        return rules
      end
    end
    rules[#rules + 1] = rule
    return rules
  end)
  self.known[key] = true
end

function List:remove(n)
  local here, why = self:rules()
  local gone = here and here[n]
  if not gone then
    pairs_of.fault("%s", why and "cannot use the list of allowed calls: " .. why
      or ("there is no call %s in the list: /allowed shows it"):format(n))
  end
  local key = key_of(gone)
  change_file(function(rules)
    local left = {}
    for _, one in ipairs(rules) do
      left[#left + 1] = key_of(one) ~= key and one or nil
    end
    return left
  end)
  return gone
end

function M.open(script)
  local list = setmetatable({ folder = ah._real_path ".", known = {},
    script = script and ah._real_path(script) or nil }, List)
  for _, rule in ipairs(list:rules() or {}) do
    list.known[key_of(rule)] = true
  end
  return list
end

return M
