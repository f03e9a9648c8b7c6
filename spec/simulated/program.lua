--- Programs of tasks, made from a seed. A program is data: { main, cancel, close, body }, where a
-- body is a list of statements, and a statement is { op, n, m, bodies ... }. perform.lua gives each
-- op its meaning, for any n and m and any number of bodies, so that shrink.lua may leave out what
-- it likes.
local generator = dofile "spec/support/random.lua"

local M = {}

local MOST_STATEMENTS, MOST_DEEP = 60, 5

-- Bodies that a statement has, and how often it is chosen. Leaves are chosen where it gets deep.
local OPS = {
  { "sleep", 0, 8 }, { "yield", 0, 4 }, { "raise", 0, 3 }, { "closing", 1, 3 },
  { "spawn", 1, 5 }, { "hold", 1, 3 }, { "await", 0, 3 }, { "cancel", 0, 3 }, { "race", 3, 2 },
  { "scope", 2, 3 }, { "scope_cancel", 0, 1 }, { "scope_spawn", 1, 2 }, { "all", 2, 3 },
  { "map", 1, 3 }, { "timeout", 1, 4 }, { "every", 1, 2 }, { "caught", 1, 4 },
  { "send", 0, 3 }, { "receive", 0, 3 }, { "each", 0, 1 }, { "close_channel", 0, 1 },
  { "permit", 1, 3 }, { "coroutine", 1, 1 }, { "callback", 1, 2 },
  { "run", 2, 6 }, { "agent", 2, 3 }, { "agent_run", 0, 3 }, { "agent_cancel", 0, 1 },
  { "agent_close", 0, 1 }, { "agent_wait", 0, 2 }, { "agent_send", 0, 1 }, { "look_on", 0, 2 },
  { "delegate", 1, 2 }, { "entity", 2, 3 }, { "collect", 0, 1 },
}

local function drawn_from(only_leaves)
  local list = {}
  for _, op in ipairs(OPS) do
    for _ = 1, (only_leaves and op[2] > 0) and 0 or op[3] do
      list[#list + 1] = op
    end
  end
  return list
end

local ALL, LEAVES = drawn_from(false), drawn_from(true)

local body

local function statement(draw, state, depth)
  local list = (depth >= MOST_DEEP or state.left <= 0) and LEAVES or ALL
  local op = list[draw(#list)]
  local made = { op = op[1], n = draw(64), m = draw(64) }
  for i = 1, op[2] > 0 and draw(op[2]) or 0 do
    made[i] = body(draw, state, depth + 1)
  end
  return made
end

function body(draw, state, depth)
  local list = {}
  for i = 1, draw(3) do
    state.left = state.left - 1
    list[i] = statement(draw, state, depth)
  end
  return list
end

--- Returns the program of a seed. main: "await" or "leave"; cancel: the simulated ms after which
-- the C program cancels everything, or nil; close: after which it closes the host, or nil.
function M.make(seed)
  local draw = generator(seed)
  for _ = 1, 8 do -- the first numbers of near seeds are near
    draw(64)
  end
  local state = { left = MOST_STATEMENTS }
  return { main = draw(2) == 1 and "await" or "leave", cancel = draw(8) == 1 and draw(60) or nil,
    close = draw(64), body = body(draw, state, 1) }
end

--- Returns a program with each op, which loads what the library loads at its first use.
function M.warm()
  local list = {}
  for i, op in ipairs(OPS) do
    list[i] = { op = "caught", n = 1, m = 1, { { op = op[1], n = 2, m = 2 } } }
    for k = 1, op[2] do
      list[i][1][1][k] = { { op = "sleep", n = 2, m = 2 } }
    end
  end
  return { main = "await", close = 1, body = list }
end

local function write_body(list, indent, out)
  for _, st in ipairs(list) do
    out[#out + 1] = ("%s{ op = %q, n = %d, m = %d%s"):format(indent, st.op, st.n, st.m,
      st[1] and "," or " },")
    for _, inner in ipairs(st) do
      out[#out + 1] = indent .. "  {"
      write_body(inner, indent .. "    ", out)
      out[#out + 1] = indent .. "  },"
    end
    if st[1] then
      out[#out + 1] = indent .. "},"
    end
  end
end

--- Returns the program as Lua text that makes it again.
function M.text(program)
  local out = { ("return { main = %q, cancel = %s, close = %d, body = {"):format(program.main,
    tostring(program.cancel), program.close) }
  write_body(program.body, "  ", out)
  out[#out + 1] = "} }\n"
  return table.concat(out, "\n")
end

return M
