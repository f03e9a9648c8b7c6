--- Remembers the signatures of the mock: reasoning and calls that a client must send back
-- unchanged. A signature is required only if this conversation was sent one: the same call in
-- another conversation, or made by the client itself, needs none. A conversation is identified by
-- its first text.
local signed = {}

local MAX_KEPT = 10000 -- signed texts and calls; then all are forgotten
local KEY_BYTES = 4096 -- of a conversation's first text

--- Returns a new signature, in base64 like those of providers.
function signed.made_up(n)
  return ("mockSignature%011d"):format(n)
end

-- The memory of a conversation: `signatures`, for each call the set of its signatures, or false if
-- it was sent without one; and `signs`, true if a text was signed in it.
local function said_in(memory, conversation)
  return (memory.said or {})[conversation:sub(1, KEY_BYTES)] or { signatures = {} }
end

local function say_in(memory, conversation)
  local said = said_in(memory, conversation)
  memory.said = memory.said or {}
  memory.said[conversation:sub(1, KEY_BYTES)] = said
  return said
end

local function count(memory)
  memory.signed_n = (memory.signed_n or 0) + 1
  if memory.signed_n > MAX_KEPT then
    memory.said, memory.texts, memory.signed_n = {}, {}, 1
  end
end

--- Records that `what` (a call) was sent in a conversation. A call that was sent without a
-- signature even once needs none, because a returned call may be either one.
---@param memory table of the format
---@param signature string? nil: it was sent without one
function signed.say(memory, conversation, what, signature)
  count(memory)
  local signatures = say_in(memory, conversation).signatures
  local known = signatures[what]
  if not signature or known == false then
    signatures[what] = false
  else
    signatures[what] = known or {}
    signatures[what][signature] = true
  end
end

--- Returns the set of signatures of which one must come back with `what`, or nil if none is
-- required.
function signed.wanted(memory, conversation, what)
  return said_in(memory, conversation).signatures[what] or nil
end

--- Records the text of a signature.
function signed.bind(memory, conversation, signature, text)
  count(memory)
  memory.texts = memory.texts or {}
  memory.texts[signature] = memory.texts[signature] or {}
  memory.texts[signature][text] = true
  say_in(memory, conversation).signs = true
end

--- Returns "changed" if the signature is ours, but of another text; "unknown" if it is not ours,
-- but we signed a text of this conversation; else nil.
function signed.fault(memory, conversation, signature, text)
  local texts = (memory.texts or {})[signature]
  if texts then
    return not texts[text] and "changed" or nil
  end
  return said_in(memory, conversation).signs and "unknown" or nil
end

--- True if a text is base64, of either alphabet.
function signed.is_base64(text)
  local bare = text:gsub("=?=$", "")
  return text ~= "" and #bare % 4 ~= 1 and not bare:find "[^%w+/_-]"
end

return signed
