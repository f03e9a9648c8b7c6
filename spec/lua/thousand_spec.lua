-- Many conversations at once over HTTP, from one script (examples/thousand.lua), with a server in a
-- process of its own. The ideal is the time of as many bare sockets (spec/support/crowd.c) that do
-- one turn after the other, measured in the same run. AGENTHOST_THOUSAND=1 runs a thousand.
local command = require "support.command"
local server = require "support.server"

local FULL = os.getenv "AGENTHOST_THOUSAND"
local ASAN = os.getenv "AGENTHOST_ASAN"
local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"
local MANY = FULL and 1000 or ASAN and 40 or 200
local TURNS = FULL and 5 or 3
local DELAY = 0.4 -- seconds until the server answers a request
-- Attempts, as other programs work as well, and on a slow machine the work of a turn is much of a
-- short answer.
local ATTEMPTS = { DELAY, DELAY, 4 * DELAY, 16 * DELAY }

local EVENTS = {
  '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    .. '"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}',
  '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    .. '"delta":{"content":"lo."},"finish_reason":null}]}',
  '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    .. '"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,'
    .. '"total_tokens":11}}',
  "[DONE]",
}

local function start(delay)
  local body = "data: " .. table.concat(EVENTS, "\n\ndata: ") .. "\n\n"
  return server.start { log = false, responses = { { delay = math.floor(delay * 1000),
    body = body, chunked = true, headers = { ["Content-Type"] = "text/event-stream" } } } }
end

-- Returns the seconds that bare sockets need for the turns, one after the other.
local function ideal(s, delay)
  local body = '{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
  local file = command.temp(("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
    .. "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body))
  local seconds = 0
  for _ = 1, TURNS do
    local pipe <close> = assert(io.popen(("LD_PRELOAD= %s ask %d %d 0 %s"):format(
      command.quote(BUILD .. "/crowd"), s.port, MANY, command.quote(file))))
    local well, ms = pipe:read("l"):match "^%d+ (%d+) %d+ (%d+)"
    assert.equal(MANY, tonumber(well))
    seconds = seconds + tonumber(ms) / 1000
  end
  return math.max(seconds, TURNS * delay)
end

-- Runs the script with a limit of open files; returns its seconds.
local function run(s, files)
  local r = command.shell(("ulimit %s; unset AGENTHOST_MODEL; export OPENAI_BASE_URL=%s/v1 "
    .. 'OPENAI_API_KEY=any; "$A" --model openai/gpt-4o examples/thousand.lua %d %d'):format(files,
    s.url, MANY, TURNS))
  assert.equal("", r.err)
  assert.equal(0, r.code)
  return assert(tonumber(r.out:match(("^%d conversations, 0 failed, ([%%d.]+) s\n"):format(MANY))),
    r.out)
end

describe("many conversations at once over HTTP", function()
  after_each(command.tidy)

  it("take 1.2 times the ideal at most, and none fails", function()
    local best = math.huge
    for _, delay in ipairs(ATTEMPTS) do
      local s <close> = start(delay)
      best = math.min(best, run(s, "-Sn 1024") / ideal(s, delay))
      if best <= 1.2 then
        break
      end
    end
    assert.is_true(best <= 1.2, ("%.2f times the ideal"):format(best))
  end)

  it("have more open files than the soft limit allows at first", function()
    local r = command.shell [[ulimit -Sn 64; "$A" -e 'print(io.popen("ulimit -Sn"):read "n" > 64)']]
    assert.equal("true\n", r.out)
    r = command.shell [[ulimit -n 64; "$A" -e 'print(io.popen("ulimit -Sn"):read "n")']]
    assert.equal("64\n", r.out)
  end)

  it("wait for each other where the process may open few files", function()
    local s <close> = start(0.01)
    local from = os.time()
    run(s, "-n 64")
    assert.is_true(os.time() - from < 60)
  end)
end)
