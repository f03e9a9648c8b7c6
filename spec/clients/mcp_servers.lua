-- ah.mcp with servers that are not ours: agenthost mcp_servers.lua CHECK ADDRESS, or CHECK PROGRAM
-- WORD... . It ends with an error if the check fails.
local ah = require "agenthost"

local check, place = arg[1], arg[2]
local server <close> = ah.mcp(place:find "^http" and { url = place .. "/mcp", name = "peer" }
  or { command = place, args = { table.unpack(arg, 3) }, name = "peer",
    env = { MEMORY_FILE_PATH = os.getenv "HOME" .. "/memory.jsonl" } })

-- Makes one call in a run, with the answer of a person if it is asked. Returns what the model
-- reads, and what became of the call: { value, success, question, progress (a list) }.
local function call(name, arguments, answer)
  local told = { progress = {} }
  local reply = assert(ah.run { "Go.", tools = { server },
    model = ah.scripted { { calls = { { name = name, arguments = arguments or ah.object {} } } },
      "Done." },
    asks = function(ask)
      told.question = ask.question
      return answer
    end,
    on = {
      tool_progress = function(e) table.insert(told.progress, e.fraction or e.message) end,
      tool_invoked = function(e) told.value, told.success = e.value, e.success end,
    } })
  return reply.messages[3].content, told
end

local function expect(text, what)
  if type(text) ~= "string" or not text:find(what, 1, true) then
    error(("expected '%s' in: %s"):format(what, type(text) == "string" and text
      or ah.json.encode(text)), 2)
  end
end

local function has_tool(name)
  for _, tool in ipairs(assert(server:tools())) do
    if tool.name == name then
      return true
    end
  end
  return false
end

-- Sends a command to the proxy in front of a server. Returns its answer.
local function command(word)
  return assert(ah.http { url = place .. "/" .. word, method = "POST", body = "" }).body
end

-- -- server-everything ----------------------------------------------------------------------------

local function check_image()
  local parts = call "get-tiny-image"
  local images = 0
  for _, part in ipairs(parts) do
    images = images + (type(part) == "table" and part.type == "image" and 1 or 0)
  end
  assert(images == 1, "no image")
end

local function check_progress()
  local text, told = call("trigger-long-running-operation", { duration = 1, steps = 4 })
  expect(text, "completed")
  assert(#told.progress >= 2, "no progress")
end

local function check_question()
  assert(has_tool "trigger-elicitation-request", "a tool that comes after the handshake is missing")
  local text, told = call("trigger-elicitation-request", nil, { name = "Ada", check = true })
  expect(told.question, "provide inputs")
  expect(text, "Ada")
end

local function check_resources()
  local list, templates = assert(server:resources()), assert(server:templates())
  assert(#list > 0 and #templates > 0, "no resources")
  local contents = assert(server:read(list[1].uri))
  assert(contents[1].text or contents[1].data)
  contents = assert(server:read "demo://resource/dynamic/blob/1")
  assert(#contents[1].data > 0)
  local _, err = server:read "demo://nothing"
  assert(err and err.code == "provider", "a resource that is not there")
  expect(call("get-resource-reference", { resourceType = "Text", resourceId = 1 }), "resource")
end

local function check_prompts()
  local names = {}
  for _, prompt in ipairs(assert(server:prompts())) do
    names[prompt.name] = prompt
  end
  assert(names["args-prompt"].arguments[1].required)
  local messages = assert(server:prompt("args-prompt", { city = "Paris" }))
  expect(messages[1].content, "weather in Paris")
end

local function everything()
  expect(call("echo", { message = "hello" }), "hello")
  expect(call("get-sum", { a = 2, b = 3 }), "5")
  local _, told = call("get-structured-content", { location = "Chicago" })
  assert(type(told.value.temperature) == "number")
  local text, failed = call("get-structured-content", { location = "Paris" })
  assert(not failed.success, text)
  check_image()
  check_progress()
  check_question()
  check_resources()
  check_prompts()
end

-- -- the other servers ----------------------------------------------------------------------------

local checks = { everything = everything }

function checks.cut()
  expect(call("echo", { message = "before" }), "before")
  command "cut"
  local text, told = call("trigger-long-running-operation", { duration = 1, steps = 4 })
  expect(text, "completed")
  assert(told.success)
  expect(command "resumed", "1")
end

function checks.restarted()
  expect(call("echo", { message = "before" }), "before")
  command "restart"
  expect(call("echo", { message = "after" }), "after")
end

function checks.filesystem()
  local folder = arg[#arg]
  local path = folder .. "/note.txt"
  expect(call("write_file", { path = path, content = "a note" }), "Successfully")
  expect(call("read_text_file", { path = path }), "a note")
  expect(call("list_directory", { path = folder }), "note.txt")
  local text, told = call("read_text_file", { path = "/etc/passwd" })
  assert(not told.success)
  expect(text, "denied")
end

function checks.memory()
  local _, told = call("create_entities", { entities = { { name = "Ada", entityType = "person",
    observations = { "likes tea" } } } })
  assert(told.success and told.value.entities[1].name == "Ada")
  expect(call "read_graph", "likes tea")
  expect(call("search_nodes", { query = "Ada" }), "person")
end

-- A server of the SDK (mcp_sdk_server.mjs).
function checks.sdk()
  expect(call("add", { a = 2, b = 3 }), "5")
  assert(server.connection.revision == "2026-07-28")
  local _, told = call "work"
  assert(#told.progress >= 2, "no progress")
  local text, asked = call("greet", nil, { name = "Ada" })
  expect(text, "Hello Ada")
  expect(asked.question, "Who is it?")
  assert(not has_tool "grown")
  expect(call "grow", "grown")
  for _ = 1, 50 do
    if has_tool "grown" then break end
    ah.sleep(0.1)
  end
  expect(call "grown", "I am new")
  local result, err = ah.with_timeout(0.3, call, "wait")
  assert(result == nil and err.code == "deadline_exceeded")
  for _ = 1, 50 do
    if call "stopped" ~= "0" then break end
    ah.sleep(0.1)
  end
  expect(call "stopped", "1")
end

checks[check]()
