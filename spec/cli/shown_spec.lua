-- Output of the command that contains foreign text: no line of it can look like the command's own,
-- and no part of it is a control sequence for a terminal, both in text for people and in JSON for
-- programs.
local command = require "support.command"
local server = require "support.server"

-- Line ends, escapes, C1 as UTF-8, and characters that change the direction of writing.
local EVIL = "bad\27]0;pwned\7\27[31m\u{9b}31m\r\n\nagenthost: error: FORGED\nagenthost: warning: "
  .. "\u{202e}FORGED\u{2028}agenthost: FORGED\u{85}\u{2066}\127"

local RAW = { "\27", "\7", "\r", "\u{9b}", "\u{85}", "\u{202e}", "\u{2028}", "\u{2066}", "\127" }

local function run(s, words, script)
  return command.shell(('OPENAI_API_KEY=unused-key OPENAI_BASE_URL=%s "$A" %s %s </dev/null')
    :format(s.url, words, command.temp(script or [[local ah = require "agenthost"
      assert(ah.run { model = "openai/x", retries = 1, "hi" })]])))
end

local function check(text)
  for _, c in ipairs(RAW) do
    assert.falsy(text:find(c, 1, true), ("%q"):format(text))
  end
  for line in text:gmatch "[^\n]+" do
    assert.falsy(line:find "^agenthost:.*FORGED" and line:find "^agenthost: %a+: FORGED", line)
    assert.falsy(line:find "^agenthost: FORGED", line)
  end
end

describe("the command", function()
  after_each(command.tidy)

  it("shows a provider's error on one line, without orders to the terminal", function()
    for _, status in ipairs { 400, 500, 200 } do
      local s <close> = server.start { responses = { server.json({ error = { message = EVIL,
        type = EVIL, code = EVIL } }, { status = status }) } }
      local r = run(s, "-vv")
      check(r.err)
      assert.truthy(r.err:find("FORGED", 1, true), "it is shown")
      local _, lines = r.err:gsub("agenthost: provider: [^\n]*\n", "")
      assert.equal(1, lines)
    end
  end)

  it("shows no line of a script's error as its own", function()
    local s <close> = server.start { responses = { server.chat_text(EVIL) } }
    check(run(s, "", [[local ah = require "agenthost"
      error(assert(ah.run { model = "openai/x", "hi" }).text)]]).err)
  end)

  it("writes events and objects in which such characters are escaped", function()
    for _, flag in ipairs { "--jsonl", "--json" } do
      local s <close> = server.start { responses = { server.chat_text(EVIL) } }
      local r = run(s, flag)
      check(r.out)
      local found = false
      for line in r.out:gmatch "[^\n]+" do
        local doc = server.decode(line)
        local text = doc.text or (doc.reply and doc.reply.text)
        found = found or text == EVIL
      end
      assert.is_true(found, r.out)
    end
  end)

  it("shows what an adapter and a replay say on one line", function()
    local s <close> = server.start { responses = { { body = "" } } }
    check(run(s, "", ([[local ah = require "agenthost"
      assert(ah.run { retries = 0, model = ah.adapter { name = "a/b", answer = function(_, out)
        out:fail { message = %q } end }, "hi" })]]):format(EVIL)).err)
  end)
end)
