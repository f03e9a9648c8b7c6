--- Finds the conversation with which a prompt or a chat goes on, or the store for a new one.
local ah, use = ...
local pairs_of, stored, text = use "pairs", use "stored", use "text"
local fault, shown = pairs_of.fault, pairs_of.shown

local M = {}

-- True if the conversation was begun by the script, a real path; nil: by the command itself.
local function is_of(one, script)
  if script then
    return one.script == script
  end
  return one.agent == stored.OWN and not one.script
end

--- Returns the conversations of this folder, as store:conversations does, that were begun by the
-- script, or without one by the command itself.
function M.conversations(store, script)
  local found, err = store:conversations { folder = ah._real_path "." }
  local list = {}
  for _, one in ipairs(found or fault("%s", err.message)) do
    list[#list + 1] = one.title and is_of(one, script) and one or nil
  end
  return list
end

-- Returns those conversations, of which there is one at least.
local function some(store, path, script)
  local list = M.conversations(store, script)
  return list[1] and list or fault("no %s of this folder is in '%s'\n"
    .. "agenthost list shows all conversations; --resume ID goes on with one of another folder.",
    script and "conversation with this script" or "prompt or chat", shown(path))
end

--- Returns the id of the conversation that was named by its id, or by a beginning of it.
function M.named(store, path, script, id)
  id = stored.find(store, id, path).conversation
  local opened = assert(ah._opened(store, id))
  if not is_of(opened, script) then
    fault("conversation %s was not begun by %s, so its tools are elsewhere\n"
      .. "agenthost %s %s goes on with it.", text.clean(id),
      script and "this script" or "a prompt",
      is_of(opened) and "chat --resume" or "resume", text.clean(id))
  end
  return id
end

-- Returns the id of the conversation that the flags choose.
local function id_of(flags, store, path, script)
  if flags.resume == true then
    return use "pick".ask(some(store, path, script))
  end
  return flags.resume and M.named(store, path, script, flags.resume)
    or some(store, path, script)[1].id
end

--- Raises unless the flags go together.
function M.check(flags)
  for _, pair in ipairs { { "continue", "resume" }, { "continue", "no_store" },
    { "resume", "no_store" }, { "store", "no_store" }, { "record", "replay" },
    { "json", "jsonl" } } do
    if flags[pair[1]] and flags[pair[2]] then
      fault("--%s and --%s: give one of them", pair[1], (pair[2]:gsub("_", "-")))
    end
  end
end

--- Returns the list of names and values for the C side, which runs `answer` (src/cli/main.c).
function M.found(flags, answer, path)
  local found = { { "answer", answer }, { "store", path }, { "model", flags.model },
    { "env-file", flags.env_file }, { "record", flags.record }, { "replay", flags.replay },
    { "json", flags.json and "" }, { "jsonl", flags.jsonl and "" } }
  for _, pair in ipairs(found) do
    if pair[2] and pair[2]:find "%c" then
      fault("the value of --%s has a control character: '%s'", pair[1], shown(pair[2]))
    end
  end
  return found
end

--- Returns the text for `answer` ("alone", "begin STORE", "try STORE" or "open ID") and the path of
-- the store. A default store that cannot be opened does not end a prompt that is just to be kept.
-- script: the real path of the script of its agent; nil: the agent is the command's own.
function M.of(flags, line, script)
  if flags.no_store then
    return "alone"
  end
  local path, default = stored.path(flags, line)
  if flags["continue"] or flags.resume then
    if path and not ah._real_path(path) then
      fault("no conversation is kept yet: there is no store '%s'", shown(path))
    end
    local store <close>, real = stored.open(flags, line)
    return "open " .. id_of(flags, store, real, script), real
  end
  return path and (default and "try " or "begin ") .. path or "alone", path
end

return M
