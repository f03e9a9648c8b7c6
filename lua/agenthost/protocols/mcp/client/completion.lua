--- Proposals of a server of MCP for an argument that a person is writing (specification 2026-07-28,
-- server/utilities/completion).
local ah = ...

local lists = ah._module "agenthost.protocols.mcp.client.lists"
local message = ah._module "agenthost.protocols.mcp.message"
local requests = ah._module "agenthost.protocols.mcp.client.requests"

local WHAT = "server:complete"
local MOST_VALUES = 100

local read = ah._reader {
  what = WHAT, type = "ah.McpComplete", rows = {
    { name = "prompt", kinds = "string", doc = "the name of a prompt" },
    { name = "uri_template", kinds = "string",
      doc = "in place of `prompt`: a template of resources" },
    { name = "argument", kinds = "string", needed = true,
      doc = "the name of the argument, or of the variable of the template" },
    { name = "value", kinds = "string", default = "", doc = "what has been written of it" },
    { name = "others", kinds = "table", type = "table<string, string>",
      doc = "the arguments that are known already" },
  },
}

local completion = {}

local function ref_of(given)
  if (given.prompt == nil) == (given.uri_template == nil) then
    ah._raise(("%s: one of the fields 'prompt' and 'uri_template' must be given, found %s"):format(
      WHAT, given.prompt and "both" or "none"))
  elseif given.prompt then
    return { type = "ref/prompt", name = given.prompt }
  end
  return { type = "ref/resource", uri = given.uri_template }
end

--- Returns a list of texts, empty if the server completes nothing; or nil and an error.
function completion.complete(server, fields)
  local given = read(fields)
  local ref = ref_of(given)
  local ok, err = server.connection:ready()
  if not ok then
    return nil, err
  elseif not lists.has(server, "completions") then
    return {}
  end
  local result, why = requests.make(server, "completion/complete", { ref = ref,
    argument = { name = given.argument, value = given.value },
    context = given.others and { arguments = ah.object(given.others) } })
  if not result then
    return nil, why
  end
  local values, list = message.object(result.completion).values, {}
  for i, value in ipairs(message.is_list(values) and values or {}) do
    list[#list + 1] = i <= MOST_VALUES and message.text(value, 1 << 16) or nil
  end
  return list
end

return completion
