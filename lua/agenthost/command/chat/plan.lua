--- Plans: while a chat plans, the model may only call tools that read, until the person says /go.
local _, use = ...
local fault = use "pairs".fault

local M = {}

local DENIED = "The person wants a plan first, so only tools that are marked as reading are run. "
  .. "Describe what you would do; the person says when to begin."
local NOTE = "\n\n(Only plan this: tools that change something are not run until I say so.)"

--- Returns the policy for the conversation of a chat.
function M.policy(chat)
  return function(call)
    if chat.plan and not call.annotations.read_only then
      return "deny", DENIED
    end
  end
end

--- Returns the content of a message, with the note for the model while the chat plans.
function M.with_note(chat, content)
  return chat.plan and content .. NOTE or content
end

--- Returns the content without the note.
function M.without_note(content)
  return content:sub(-#NOTE) == NOTE and content:sub(1, -#NOTE - 1) or content
end

local function go(chat, words)
  if not chat.plan then
    fault "The chat does not plan: /plan begins to."
  end
  chat.plan = false
  use "chat.loop".say(chat, words == "" and "Go on, and do it." or words)
end

local function plan(chat)
  chat.plan = true
  chat.output:note "Only tools that read are run until /go."
end

M.rows = {
  { name = "plan", doc = "let the model only read, until /go", run = plan },
  { name = "go", words = "[TEXT]", doc = "end the plan, and let the model do it", run = go },
}

return M
