-- Stores that fail, end to end: the command says why with the code `store` and status 1, begins no
-- handler after the append that failed, and writes nothing more.
local command = require "spec.support.command"
local crashes = require "spec.support.crashes"

local has = command.has

describe("a store that fails", function()
  if not os.execute "command -v sqlite3 >/dev/null" then
    return pending "no sqlite3"
  end

  local at

  before_each(function()
    at = crashes.folder()
  end)

  after_each(function()
    crashes.remove(at)
    command.tidy()
  end)

  local function run(harm, before)
    return command.shell(("%s \"$A\" spec/crash/fault.lua '%s' %s </dev/null"):format(before or "",
      at, command.quote(harm or ":")))
  end

  local function sql(text)
    return (command.shell(("sqlite3 '%s/store.db' \"%s\""):format(at, text)).out:gsub("\n$", ""))
  end

  local function effects()
    return #crashes.lines_of(at .. "/effects")
  end

  local function count(kind)
    return tonumber(sql(("SELECT count(*) FROM records WHERE kind = '%s'"):format(kind)))
  end

  local function refused(r, words)
    assert.equal(1, r.code, r.err .. r.out)
    assert.equal("", r.out)
    has(r.err, "store: ")
    has(r.err, words)
  end

  it("is full: a handler begins only if its record is there", function()
    local stopped = 0
    for blocks = 40, 1000, 120 do
      crashes.remove(at)
      at = crashes.folder()
      local r = run(nil, ("ulimit -f %d;"):format(blocks))
      if r.code ~= 0 then
        stopped = stopped + 1
        refused(r, "store")
        assert.is_true(effects() <= (count "call_started" or 0), blocks .. " blocks")
        -- with room again it goes on to the end; only the call at work may be lost
        assert.equal(0, run().code)
        assert.is_true(effects() >= 39 and effects() <= 40, blocks .. " blocks: " .. effects())
      end
    end
    assert.is_true(stopped >= 3, "the disk was never full")
  end)

  for what, harm in pairs {
    ["is removed while it is open"] = "rm store.db*",
    ["is replaced by another file while it is open"] = "cp store.db x && mv x store.db",
    ["is moved away while it is open"] = "mv store.db gone.db",
  } do
    it(what, function()
      refused(run(harm), "store.db")
      assert.equal(2, effects())
    end)
  end

  it("is cut: opened again it is refused, and stays as it is", function()
    assert.equal(0, run().code)
    os.execute(("cd '%s' && truncate -s 9000 store.db && cp store.db before"):format(at))
    refused(run(), "is cut")
    assert.is_true(os.execute(("cmp -s '%s/store.db' '%s/before'"):format(at, at)))
    assert.equal(40, effects())
  end)

  it("is cut while it is open: the run fails, or the next one is refused", function()
    local r = run "truncate -s 5000 store.db"
    if r.code == 0 then
      r = run()
    end
    refused(r, "store.db")
  end)

  it("is of another program, or nothing of a database", function()
    for words, made in pairs { ["another kind of file"] = "seq 9999 > store.db",
      ["a database of another program"] = "sqlite3 store.db 'CREATE TABLE t (x)'" } do
      os.execute(("cd '%s' && rm -f store.db* && umask 077 && %s && cp store.db before"):format(at,
        made))
      refused(run(), words)
      assert.is_true(os.execute(("cmp -s '%s/store.db' '%s/before'"):format(at, at)))
    end
    assert.equal(0, effects())
  end)

  it("may be read only", function()
    assert.equal(0, run().code)
    local n = effects()
    local root = io.popen("id -u"):read "l" == "0"
    os.execute(("chmod 711 '%s'; cd '%s'; chmod 400 store.db; rm -f store.db-*"):format(at, at))
    if root then
      os.execute(("chown 65534 '%s/store.db' '%s'"):format(at, at))
    end
    local r = run(nil, root and "setpriv --reuid 65534 --clear-groups" or "")
    refused(r, "store.db")
    assert.equal(n, effects())
  end)

  local function edited(change, words)
    assert.equal(137, run("kill -9 $PPID").code)
    local n = effects()
    sql(change)
    local before = sql "SELECT count(*), max(id) FROM records"
    refused(run(), words)
    assert.equal(n, effects())
    assert.equal(before, sql "SELECT count(*), max(id) FROM records")
  end

  it("has a record that was edited into no JSON", function()
    edited("UPDATE records SET said = '{\\\"entries\\\":[' WHERE kind = 'entries'", "(entries)")
  end)

  it("has a record that was edited into another one", function()
    edited("UPDATE records SET said = '{\\\"call\\\":7,\\\"id\\\":\\\"x\\\"}'"
      .. " WHERE kind = 'call_started'", "(call_started)")
  end)

  it("lost a record from its middle", function()
    edited("DELETE FROM records WHERE kind = 'answer' AND id = "
      .. "(SELECT min(id) FROM records WHERE kind = 'answer')", "record")
  end)

  it("is of a newer agenthost", function()
    edited("UPDATE records SET said = json_set(said, '$.readable_from', 2, '$.written_by', '9.9.0')"
      .. " WHERE kind = 'opened'", "9.9.0")
  end)

  it("has a needed record that only a newer agenthost knows", function()
    edited("UPDATE records SET kind = 'future', said = '{\\\"since\\\":\\\"9.9.0\\\"}'"
      .. " WHERE kind = 'turn'", "9.9.0")
  end)
end)
