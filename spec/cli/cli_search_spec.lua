-- agenthost search.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local has, has_not, shell = command.has, command.has_not, command.shell

if not ahtest.store_engines().sqlite then
  return
end

local folder, path

before_each(function()
  folder = command.folder()
  path = folder .. "/work.db"
end)

after_each(command.tidy)

local function run(words)
  return shell(("cd %s && env TZ=UTC AGENTHOST_STORE=%s \"$A\" search %s </dev/null"):format(folder,
    path, words))
end

local function make(name, of)
  of = of or {}
  of.folder = of.folder or folder
  streams.make(path, name, streams.waiting(of), { state = "waiting", folder = of.folder })
end

describe("agenthost search", function()
  it("shows where words were said", function()
    make "talk_1"
    local r = run "tidy"
    assert.equal(0, r.code, r.err)
    assert.equal("1970-01-01 00:00  talk_1 3  Tidy up.\n    user      [Tidy] up.\n", r.out)
    has(run("orders delete_rows").out, "    assistant [delete_rows] {\"table\":\"[orders]\"}\n")
    r = run "nothing"
    assert.equal(1, r.code)
    assert.equal("Nothing was found.\n", r.out)
  end)

  it("finds the same in processes that make the index at the same time", function()
    for i = 1, 60 do
      make("talk_" .. i)
    end
    for _ = 1, 3 do
      os.remove(path .. "-search")
      local r = shell(([[cd %s && export TZ=UTC AGENTHOST_STORE=%s
        for i in 1 2 3 4; do
          "$A" search tidy --limit 100 >$i.out 2>&1 </dev/null & all="$all $!"
        done
        for process in $all; do wait $process || echo failed; done; grep -c '^1970' 1.out
        for i in 2 3 4; do cmp 1.out $i.out; done; cat 1.out]]):format(folder, path))
      assert.matches("^60\n1970", r.out)
    end
  end)

  it("takes --here, --best, --limit and --json", function()
    make "talk_1"
    make("talk_2", { folder = "/elsewhere" })
    local r = run "--here tidy"
    has(r.out, "talk_1")
    has_not(r.out, "talk_2")
    r = run "tidy --limit 1"
    has(r.out, "These are the newest 1; --limit N shows more.\n")
    assert.equal(1, select(2, r.out:gsub("talk_", "")))
    r = run "tidy --best --json"
    local hits = ah.json.decode(r.out).hits
    assert.equal(2, #hits)
    assert.same({ "Tidy up.", "user", 3 }, { hits[1].snippet, hits[1].role, hits[1].number })
    r = run "--json nothing"
    assert.equal(1, r.code)
    assert.equal('{"hits":[]}\n', r.out)
  end)

  it("takes words, and words in quotes", function()
    make "talk_1"
    assert.equal(0, run("up tidy").code)
    assert.equal(0, run("'up tidy'").code)
    assert.equal(1, run([['"up tidy"']]).code)
    assert.equal(0, run([['"tidy up"' ti\*]]).code)
    assert.equal(1, run("ti").code)
    assert.equal(1, run([["'; DROP TABLE x; --"]]).code)
  end)

  it("refuses what is no search", function()
    make "talk_1"
    for words, text in pairs { [""] = "words", ["'*'"] = "no word to search for",
      ["tidy --limit 0"] = "--limit must be an integer from 1 to 10000, found '0'",
      ["tidy --limit x"] = "found 'x'", ["tidy --store no.db"] = "cannot open the store" } do
      local r = run(words)
      assert.equal(2, r.code, words)
      has(r.err, text)
    end
  end)

  it("shows texts, and obeys none", function()
    streams.make(path, "talk_1", { streams.record("entries", { entries = ah.array {
      { type = "user", content = ah.array { { type = "text",
        text = "Tidy \27[31m \u{202E}up\n [now]" } } } } }) }, { state = "idle" })
    local r = run "tidy"
    assert.equal(0, r.code, r.err)
    has(r.out, "[Tidy]  [31m  up  [now]\n")
    assert.falsy(r.out:find("[\27\x7f]"), r.out)
    assert.falsy(r.out:find("\u{202E}", 1, true))
    assert.equal(2, select(2, r.out:gsub("\n", "")))
    has_not(run("tidy --json").out, "\u{202E}")
  end)
end)
