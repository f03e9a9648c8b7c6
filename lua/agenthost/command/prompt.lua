--- agenthost prompt, agenthost -p, and a text with white space: asks a model once. `run` reads the
-- flags and finds the conversation; `answer` runs in the state and with the flags of a script
-- (src/cli/main.c), so that records, events, reports and limits are the same. Each loads only what
-- it needs, since the start of a prompt is mostly the loading of programs.
local ah, use = ...
local stored, text, agent_of = use "stored", use "text", use "prompt.agent"

local fault, flag = use "pairs".fault, agent_of.flag

local NO_PROMPT = "no prompt is given\nTry:  agenthost -m demo/echo \"Hello, world\""

local function run(flags, _, _, line)
  local place_of = use "prompt.place"
  place_of.check(flags)
  agent_of.check(flags)
  return place_of.found(flags, place_of.of(flags, line))
end

-- -- printing ----------------------------------------------------------------------------------

-- Returns a function that makes pieces of an answer ready to be written, and one for the rest of
-- it.
local function converter(flags, line)
  local styled = use "styled"
  if not flags.plain and styled.wanted(line.color) then
    local printer = styled.printer()
    return function(piece) return styled.ansi(printer:feed(piece)) end,
      function() return styled.ansi(printer:finish()) end
  end
  local convert = ah._is_terminal(1) and styled.harmless or function(piece) return piece end
  return convert, function() return "" end
end

-- Prints answers on standard output: `piece` as it comes, `finish` at the end of each.
local function printer_of(flags, line)
  local convert, rest = converter(flags, line)
  local column = 0 -- bytes since the last line end
  local function write(s)
    io.stdout:write(s)
    io.stdout:flush()
    column = s:find "\n$" and 0 or column + #s
  end
  return { piece = function(s) write(convert(s)) end,
    finish = function()
      write(rest())
      if column > 0 then
        write "\n"
      end
    end }
end

-- Sets the observers that print the answer, and returns the function that ends it with the reply
-- or, after a failure, without one. In a pipe, an answer with tools is printed when it is complete,
-- without the texts before calls.
local function printing(fields, flags, line)
  if flags.json or flags.jsonl then
    return function() end
  end
  local printer = printer_of(flags, line)
  if fields.output then
    return function(reply)
      io.stdout:write(reply and text.json(reply.value) .. "\n" or "")
    end
  elseif fields.tools and not ah._is_terminal(1) then
    return function(reply)
      if reply then
        printer.piece(reply.text)
        printer.finish()
      end
    end
  end
  fields.on = { content = function(e) printer.piece(e.text) end,
    usage = function() printer.finish() end }
  return printer.finish
end

-- -- the run -----------------------------------------------------------------------------------

-- Lets the agent answer, or go on with an unfinished run. An unfinished run ends before another
-- question.
local function asked(agent, content, flags)
  if content and agent.unfinished then
    agent_of.warn(flags, "the last run of this conversation did not end; its question was: "
      .. text.cut(agent.unfinished.question or "", 200))
    assert(agent:cancel())
  elseif not content and not agent.unfinished then
    fault("%s", NO_PROMPT)
  end
  return agent:run(content)
end

-- Asks the person about a call. The programs for it are loaded when they are first needed.
local asker
local function front(ask)
  asker = asker or use "prompt.consent".front()
  return asker(ask)
end

-- Returns the function that puts words into the saved prompt of this name; nil without a name.
local function filler(flags)
  if not flags.saved then
    return nil
  end
  local saved_prompts = use "saved_prompts"
  local one = saved_prompts.find(flags.saved)
  saved_prompts.agree(one, use "prompt.consent".confirm)
  if one.from == "project" and not flags.quiet then
    io.stderr:write(("agenthost: the prompt '%s' is the project's: %s\n"):format(one.name,
      use "pairs".shown(one.path)))
  end
  return function(...) return saved_prompts.fill(one, ...) end
end

local function answer(flags, words, line, found)
  _G.arg = nil -- the records of a conversation name the script that began it
  local place, named = found:match "^(%S+) ?(.*)$"
  if place ~= "open" then
    agent_of.check_model(flags, 'agenthost -m demo/echo "Hello, world"')
  end
  local content = use "prompt.parts".content(words, line.literal, flags.image, filler(flags))
  if not content and place ~= "open" then
    fault("%s", NO_PROMPT)
  end
  local fields = agent_of.fields(flags, place, named)
  fields.asks = front
  local finish = printing(fields, flags, line)
  local agent <close> = agent_of.open(fields, place, flags)
  local reply, err = asked(agent, content, flags)
  finish(reply)
  if not reply and err.code == "usage" then
    return 2, err.message
  end
  return reply and 0 or error(err, 0)
end

return {
  name = "prompt",
  doc = "ask a model; in short: agenthost \"A question\", or -p TEXT",
  usage = "TEXT [@FILE|@URL]...",
  help = [[
Standard input, @FILE and @URL are added. What a tool would do is asked first.
]],
  exits = "those of a script, see agenthost --help.",
  operand = { name = "text", complete = "file" },
  flags = {
    { name = "prompt", letter = "p", doc = "what follows is a prompt, even one word" },
    { name = "saved", letter = "T", value = "NAME", once = true, complete = "saved",
      doc = "a saved prompt, before the words" },
    "model", flag.system, flag.tool, flag.mcp, flag.option,
    { name = "schema", value = "FILE", once = true, doc = "print JSON that fits this JSON Schema" },
    { name = "image", value = "FILE", many = true, doc = "an image, or its address" },
    { name = "continue", letter = "c", doc = "go on with the last prompt of this folder" },
    { name = "resume", value = "ID", optional = true, once = true,
      doc = "go on with this conversation, or pick one" },
    flag.max_cost,
    { name = "no-store", doc = "keep nothing" },
    { name = "plain", doc = "print no styles" },
    "env-file", "store", "json", "jsonl", "record", "replay" },
  shared = true,
  mixed = true,
  run = stored.carefully(run),
  answer = stored.carefully(answer),
}
