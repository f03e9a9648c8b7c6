-- agent:rewind(N, { files = true }): conversation, session and files of the machine go back and
-- forward together. docs/reference/stores.md has the rules.
local ah = require "agenthost"

local Put = ah.type { name = "Put", fields = { path = "string" } }

-- The number of random conversations, and of rewinds to a random turn in each; before each second
-- one another program edits a file. AGENTHOST_REWINDS=50 makes 2,000 rewinds with 1,000 edits.
local ROUNDS = tonumber(os.getenv "AGENTHOST_REWINDS") or 1
local STEPS = 40

local scratch, root, store, files, agent

before_each(function()
  scratch = assert(io.popen "mktemp -d"):read "l"
  root = scratch .. "/root"
  assert(os.execute("mkdir " .. root))
  store = assert(ah.store { engine = "memory" })
  files = ah.filesystem { root = root }
end)

after_each(function()
  if agent then
    agent:close()
    agent = nil
  end
  store:close()
  os.execute("chmod -R u+w " .. scratch .. "; rm -rf " .. scratch)
end)

local function put(path, text)
  local f <close> = assert(io.open(root .. "/" .. path, "w"))
  assert(f:write(text))
end

local function get(path)
  local f <close> = io.open(root .. "/" .. path)
  return f and f:read "a"
end

-- Returns all folders, files, modes and contents below the root as one text.
local function tree()
  local f <close> = assert(io.popen(("cd %s && find . -printf '%%P %%y %%m\\n' | sort; "
    .. "cd %s && find . -type f | sort | xargs -r -d '\\n' sha256sum"):format(root, root)))
  return f:read "a"
end

-- Returns the messages and the slices of the agent.
local function saved()
  local path = scratch .. "/saved"
  assert(agent:save(path))
  local f <close> = assert(io.open(path))
  local state = ah.json.decode(f:read "a")
  return { state.transcript.entries, state.slices }
end

-- Changes the folder by { act, path, text }.
local function work(args)
  if args.act == "put" then
    return files:write(args.path, args.text == "binary" and "\0\255" or args.text)
  elseif args.act == "add" then
    return files:append(args.path, args.text)
  elseif args.act == "delete" then
    return files:delete(args.path, { recursive = true })
  elseif args.act == "mkdir" then
    return files:mkdir(args.path)
  end
  return files:rename(args.path, args.text)
end

local function open(turns, model)
  local tool = ah.tool { name = "work", description = "Works.",
    params = { list = "array" },
    handler = function(args, ctx)
      for _, one in ipairs(args.list) do
        if work(one) then
          ctx.session:dispatch(Put { path = one.path })
        end
      end
      return "done"
    end }
  agent = assert(ah.agent { store = store, id = "ann", tools = { tool },
    session = ah.session { types = { Put } }, resources = { filesystem = files },
    model = model or ah.scripted(turns) })
  return agent
end

-- Makes a conversation with two turns for each list of work.
local function converse(lists)
  local turns = {}
  for _, list in ipairs(lists) do
    turns[#turns + 1] = { calls = { { name = "work", arguments = { list = list } } } }
    turns[#turns + 1] = "Done."
  end
  open(turns)
  for i = 1, #lists do
    assert(agent:run("Work " .. i))
  end
  return agent
end

local function rewind(turn, options)
  options = options or {}
  options.files = true
  return agent:rewind(turn, options)
end

describe("agent:rewind(N, { files = true })", function()
  it("puts files back, and forward again", function()
    put("old", "one\n")
    assert(os.execute("chmod 640 " .. root .. "/old"))
    local trees = { [0] = tree() }
    converse { { { act = "put", path = "old", text = "two\n" },
        { act = "put", path = "d/e/new", text = "new" } },
      { { act = "delete", path = "old" }, { act = "rename", path = "d/e/new", text = "d/two" } },
      { { act = "delete", path = "d" }, { act = "put", path = "d", text = "binary" } } }
    trees[6] = tree()
    for _, n in ipairs { 4, 2, 0 } do
      assert(rewind(n))
      trees[n] = n == 0 and trees[n] or tree()
      assert.equal(trees[n], tree())
    end
    assert.equal("one\n", get "old")
    for _, n in ipairs { 6, 0, 2, 6, 4, 0, 4, 2 } do
      assert(rewind(n))
      assert.equal(trees[n], tree(), "turn " .. n)
    end
  end)

  it("says what would change, and with dry changes nothing", function()
    put("a", "one\n")
    converse { { { act = "put", path = "a", text = "two\n" }, { act = "put", path = "b",
      text = "b\n" } } }
    local before = tree()
    local found = assert(rewind(0, { dry = true }))
    assert.equal(before, tree())
    assert.same({ "a", "b" }, { found.changes[1].path, found.changes[2].path })
    assert.same({ "change", "remove" }, { found.changes[1].op, found.changes[2].op })
    assert.matches("-two\n+one\n", found.changes[1].diff, 1, true)
    assert.same({ "slice", "Put", 2 }, { found.changes[3].kind, found.changes[3].name,
      #found.changes[3].removed })
    assert.same({}, found.stays)
    local without = assert(agent:rewind(0, { dry = true }))
    assert.equal("slice", without.changes[1].kind)
  end)

  it("stops at a file that another program has changed, unless forced", function()
    put("a", "one")
    converse { { { act = "put", path = "a", text = "two" }, { act = "put", path = "b",
      text = "b" } } }
    local before = saved()
    put("a", "mine")
    local found, err = rewind(0)
    assert.is_nil(found)
    assert.equal("conflict", err.code)
    assert.matches(root .. "/a: another program has changed it since", err.message, 1, true)
    assert.same({ "mine", "b" }, { get "a", get "b" })
    assert.same(before, saved())
    found = assert(rewind(0, { dry = true }))
    assert.same({ { kind = "file", root = root, path = "a",
      why = "another program has changed it since" } }, found.stays)
    assert(rewind(0, { force = true }))
    assert.same({ "one" }, { get "a", get "b" })
    assert(rewind(2)) -- takes the rewind back, and the edit is there again
    assert.same({ "mine", "b" }, { get "a", get "b" })
  end)

  it("brings back an empty folder that a call has deleted and made again", function()
    assert(os.execute("mkdir " .. root .. "/d"))
    local before = tree()
    converse { { { act = "delete", path = "d" }, { act = "mkdir", path = "d" },
        { act = "put", path = "a", text = "a" } },
      { { act = "delete", path = "d" } } }
    assert.not_equal(before, tree())
    assert(rewind(0))
    assert.equal(before, tree())
  end)

  it("keeps a folder in which there is something else", function()
    converse { { { act = "put", path = "d/a", text = "a" } } }
    put("d/mine", "mine")
    local found = assert(rewind(0))
    assert.same({ nil, "mine" }, { get "d/a", get "d/mine" })
    assert.same({ { kind = "file", root = root, path = "d", why = "other entries are in it" } },
      found.stays)
  end)

  it("leaves what cannot be put back to the next opening", function()
    if not os.execute "command -v flock >/dev/null" then
      return pending "no flock on this machine"
    end
    converse { { { act = "put", path = "d/a", text = "a" } } }
    put("d/.agenthost-t1.tmp", "") -- another process writes in the folder
    put("../wait", "")
    local other <close> = assert(io.popen(("cd %s && exec flock d sh -c "
      .. "'echo ready; while [ -e ../wait ]; do sleep 0.01; done'"):format(root)))
    assert.equal("ready", other:read "l")
    local _, err = rewind(0)
    os.remove(scratch .. "/wait")
    other:read "a"
    assert.equal("conflict", err and err.code)
    assert.matches("the files in " .. root .. " are not put back yet", err.message, 1, true)
    assert.matches("another process is writing in 'd'", err.message, 1, true)
    assert.equal("a", get "d/a")
    assert.equal("agent (closed)", tostring(agent))
    open {}
    assert.is_nil(get "d/a")
    assert.equal(2, #saved()[1]) -- settings and tools
  end)

  it("stops at a content that is not kept", function()
    put("big", ("x"):rep(9 << 20))
    converse { { { act = "delete", path = "big" }, { act = "put", path = "a", text = "a" } } }
    local _, err = rewind(0)
    assert.equal("conflict", err and err.code)
    assert.matches("its content is not in the records", err.message)
    assert.equal("a", get "a")
    assert(rewind(0, { force = true }))
    assert.is_nil(get "a")
    assert.is_nil(get "big")
  end)

  for round = 1, ROUNDS do it("goes to any of many turns, back and forward: " .. round, function()
    local names = { "a", "b", "d/a", "d/b", "d/e/f" }
    local function random_work()
      local acts = { "put", "put", "add", "delete", "rename", "mkdir" }
      local list = {}
      for i = 1, math.random(4) do
        local act = acts[math.random(#acts)]
        local path = names[math.random(#names)]
        list[i] = { act = act, path = act == "mkdir" and "d" or act == "delete"
          and math.random(5) == 1 and "d" or path,
          text = act == "rename" and names[math.random(#names)] or tostring(math.random(1000)) }
      end
      return list
    end
    math.randomseed(round)
    local states, lists = {}, {}
    for i = 1, 12 do
      lists[i] = random_work()
    end
    converse(lists)
    local last = agent:mark()
    for n = last, 0, -1 do
      assert(rewind(n))
      states[n] = { tree(), saved() }
    end
    local edits, stopped = 0, 0
    for i = 1, STEPS do
      local n = math.random(0, last)
      local before = tree()
      if i % 2 == 0 then -- another program edits a file
        local path = ({ "a", "b" })[math.random(2)]
        local old, mine = get(path), "mine " .. i
        put(path, mine)
        edits = edits + 1
        local found, err = rewind(n)
        if not found then
          assert.equal("conflict", err.code, tostring(err))
          stopped = stopped + 1
        end
        assert.equal(mine, get(path))
        if old then
          put(path, old)
        else
          os.remove(root .. "/" .. path)
        end
        assert.is_true(found ~= nil or before:gsub(" %d+\n", "") == tree():gsub(" %d+\n", ""))
      end
      assert(rewind(n))
      assert.equal(states[n][1]:gsub(" %d+\n", "\n"), tree():gsub(" %d+\n", "\n"), "turn " .. n)
      assert.same(states[n][2], saved(), "turn " .. n)
    end
    assert.is_true(stopped > 0 and stopped <= edits)
  end) end
end)
