-- Settings: the configuration file, --env-file, the environment and flags; their order of
-- precedence; the output of agenthost config; and that secrets are never printed.
local ah = require "agenthost"
local command = require "support.command"

local has, has_not, shell = command.has, command.has_not, command.shell

local folder

local function write(name, text)
  command.write(folder .. "/" .. name, text)
end

-- Runs a command line with this configuration (a text, or nil).
local function with(config, line)
  if config then
    write("agenthost/config", config)
  else
    os.remove(folder .. "/agenthost/config")
  end
  return shell(("unset AGENTHOST_MODEL OPENAI_API_KEY OPENAI_BASE_URL; "
    .. "F=%s; export XDG_CONFIG_HOME=$F; %s"):format(folder, line))
end

local ECHO = [["$A" -e 'print(ah.run { "Hello" })']]

setup(function()
  folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p %s/agenthost"):format(folder))
end)

teardown(function() os.execute(("rm -r %s"):format(folder)) end)
after_each(command.tidy)

describe("the setting budget.reserve", function()
  local ASK = [["$A" --model demo/echo -e '
    print((assert(ah.run { "Hello", options = { max_tokens = 50 } })))']]

  it("makes a limit of tokens one that is never exceeded", function()
    local config = "[budget]\ntotal_tokens = 30\n"
    assert.equal("Hello\n", with(config, ASK).out)
    local r = with(config .. "reserve = true\n", ASK)
    assert.equal(4, r.code)
    has(r.err, "budget_exceeded")
    assert.equal("Hello\n", with(config .. "reserve = false\n", ASK).out)
  end)

  it("is true or false", function()
    local r = with("[budget]\nreserve = yes\n", ASK)
    assert.equal(2, r.code)
    has(r.err, "budget.reserve must be true or false")
  end)
end)

describe("agenthost config", function()
  it("parts each name from its value", function()
    local told = with(nil, "env -u ANTHROPIC_AUTH_TOKEN $A config").out
    for line in told:match("^(.-)\n\n"):gmatch("[^\n]+") do
      assert.matches("^[%w_.-]+ +%S.* +%a", line)
      assert.equal(23, line:find("%S", (line:find(" ", 1, true))), line)
    end
  end)
end)

describe("the configuration", function()
  it("names the model where nobody else does", function()
    assert.equal("Hello\n", with("model = demo/echo\n", ECHO).out)
    has(with(nil, ECHO).err, "no model")
    has(with("model = none/x", "AGENTHOST_MODEL=demo/echo " .. ECHO).out, "Hello")
    has(with("model = none/x", [["$A" -e 'print(ah.run { model = "demo/echo", "Hello" })']]).out,
      "Hello")
    has(with("model = none/x", (ECHO:gsub(" ", " --model demo/echo ", 1))).out, "Hello")
  end)

  it("is what the script finds in AGENTHOST_MODEL", function()
    local line = [["$A" -e 'print(os.getenv("AGENTHOST_MODEL"))']]
    assert.equal("demo/echo\n", with("model=demo/echo", line).out)
    assert.equal("a/b\n", with("model=demo/echo", "AGENTHOST_MODEL=a/b " .. line).out)
    assert.equal("demo/echo\n", with("model=demo/echo", "AGENTHOST_MODEL= " .. line).out)
  end)

  it("sets colour and level, which flags override, and colour NO_COLOR does not", function()
    local fails = [["$A" %s no/such.lua]]
    has(with("color = always", "NO_COLOR=1 " .. fails:format("")).err, "\27[31m")
    has_not(with("color = always", fails:format("--color never")).err, "\27")
    local run = [["$A" %s -e 'ah.run { model = "demo/echo", "Hello" }']]
    has(with("log = info", run:format("")).err, "agenthost: info: ")
    has_not(with("log = info", run:format("-q")).err, "info")
    has(with("log = error", run:format("-v")).err, "agenthost: info: ")
    has(with("log=debug", run:format("")).err, "debug")
  end)

  it("limits the requests in flight, of each run or of a provider", function()
    local line = [["$A" -e '
      local ah = require "agenthost"
      local n, most = 0, 0
      local s <close> = assert(ah.serve { on_request = function()
        n = n + 1
        most = math.max(most, n)
        ah.sleep(0.05)
        n = n - 1
        return { body = { choices = { { index = 0, finish_reason = "stop",
          message = { role = "assistant", content = "ok" } } } } }
      end })
      ah.map({ 1, 2, 3, 4, 5, 6 }, function()
        assert(ah.run { model = "openai/m", base_url = s.url, api_key = "k", "x" })
      end)
      print(most)']]
    local r = with(nil, line)
    assert.equal("6\n", r.out, r.err)
    assert.equal("3\n", with("run.max_in_flight = 3\n", line).out)
    assert.equal("2\n", with("[run]\nmax_in_flight = 3\n[providers.openai]\nmax_in_flight = 2\n",
      line).out)
    assert.equal("6\n", with("[providers.anthropic]\nmax_in_flight = 2\n", line).out)
    has(with("[providers.openai]\nmax_in_flight = 0\n", line).err,
      "a whole number of at least 1")
    has(with("[providers.openai]\nmax_inflight = 1\n", line).err, "max_in_flight")
  end)

  it("may have comments, empty lines, quotes and no end of the last line", function()
    local text = '\n  # a comment\r\n\tmodel = "demo/echo" \r\nlog=\'error\''
    assert.equal("Hello\n", with(text, ECHO).out)
  end)

  it("names a file of variables, beside it, in HOME or anywhere", function()
    write("keys", "MINE=1\n")
    local line = [["$A" -e 'print(os.getenv("MINE"))']]
    assert.equal("1\n", with("env-file = ../keys", line).out)
    assert.equal("1\n", with("env-file = " .. folder .. "/keys", line).out)
    assert.equal("1\n", with("env-file = ~/keys", "HOME=$F " .. line).out)
    write("others", "MINE=2\n")
    local flagged = line:gsub(" ", " --env-file $F/others ", 1)
    assert.equal("2\n", with("env-file = ../keys", flagged).out)
  end)

  it("is found in ~/.config where XDG_CONFIG_HOME is not an absolute path", function()
    write("agenthost/config", "model = demo/echo\n")
    local link = "mkdir -p %s/.config && ln -sfn ../agenthost %s/.config/agenthost"
    os.execute(link:format(folder, folder))
    for _, xdg in ipairs { "unset XDG_CONFIG_HOME", "XDG_CONFIG_HOME=", "XDG_CONFIG_HOME=x" } do
      assert.equal("Hello\n", shell(("%s; export HOME=%s; %s"):format(xdg, folder, ECHO)).out, xdg)
    end
    assert.equal(0, shell('unset XDG_CONFIG_HOME HOME; "$A" config').code)
  end)

  it("is refused with file and line where it is faulty, and the rest does not run", function()
    for text, why in pairs {
      ["mdoel = x"] = "config:1: there is no such setting (did you mean 'model'?)",
      ["\nmodel"] = "config:2: expected NAME=VALUE, found no '='",
      ["log = loud"] = "config:1: log must be one of: error warning info debug",
      ["color=auto\ncolor=auto"] = "config:2: color is set twice",
      ["model = \"x"] = "config:1: the quotes around the value do not match",
      ["= x"] = "config:1: the text before '=' is no name",
      ["model = a\27b"] = "config:1: the value holds a control character",
      ["model = a\0b"] = "not text",
    } do
      local r = with(text, ECHO)
      assert.same({ 2, "" }, { r.code, r.out }, text)
      has(r.err, why)
    end
    assert.equal(0, with("mdoel = x", '"$A" --help').code)
  end)

  it("that cannot be read is told", function()
    local r = shell(("XDG_CONFIG_HOME=%s/x; mkdir -p $XDG_CONFIG_HOME/agenthost/config; %s")
      :format(folder, ECHO))
    assert.equal(2, r.code)
    has(r.err, "cannot read the configuration '")
  end)
end)

describe("--env-file", function()
  local function variables(text, line)
    write("env", text)
    return with(nil, ([["$A" --env-file "$F/env" -e '%s']]):format(line))
  end

  it("sets what is not set, before the script runs", function()
    local print_all = 'print(os.getenv("A_B"), os.getenv("C"), os.getenv("HOME") ~= "x")'
    local r = variables("A_B=one two # no comment\n\n# one\nC = 'q=\"1'\nHOME=x\n", print_all)
    assert.same({ 0, 'one two # no comment\tq="1\ttrue\n', "" }, { r.code, r.out, r.err })
  end)

  it("is where the key of a provider may be", function()
    local r = variables("OPENAI_API_KEY=sk-very-secret\nOPENAI_BASE_URL=http://127.0.0.1:1/v1",
      'print(ah.run { model = "openai/x", retries = 0, "x" })')
    has(r.out, "http: ")
    has_not(r.out .. r.err, "very-secret")
  end)

  it("tells line and fault, never a word of the line", function()
    for text, why in pairs {
      ["A=1\nsk-very-secret"] = ":2: expected NAME=VALUE",
      ["sk-very=secret"] = ":1: a variable's name has no '-'",
      ["very secret=1"] = ":1: the text before '=' is no name",
      ["A='very-secret"] = ":1: the quotes around the value do not match",
      ["A=very\1secret"] = ":1: the value holds a control character",
    } do
      local r = variables(text, "print(1)")
      assert.same({ 2, "" }, { r.code, r.out }, text)
      has(r.err, why)
      has_not(r.err, "secret")
      has_not(r.err, "very")
    end
  end)

  it("that is missing, too large or given twice is an error", function()
    has(with(nil, '"$A" --env-file "$F/none" -e ""').err, "cannot read the variables' file")
    has(variables(("A=1\n"):rep(300000), "").err, "larger than 1 MiB")
    has(with(nil, '"$A" --env-file a --env-file b -e ""').err, "--env-file can be given once")
  end)
end)

describe("agenthost config", function()
  local function shown(config, before)
    return with(config, before .. ' "$A" config --json ${flags}')
  end

  local function decoded(config, before)
    return assert(ah.json.decode(shown(config, before).out))
  end

  it("shows each setting with its value and origin", function()
    local s = decoded("color = never\n\nlog=info\nmodel = a/b", "flags=;").settings
    assert.same({ value = "never", from = "file", line = 1 }, s.color)
    assert.same({ value = "info", from = "file", line = 3 }, s.log)
    assert.same({ value = "a/b", from = "file", line = 4 }, s.model)
    assert.same({ value = ah.null, from = "default" }, s["env-file"])
    s = decoded("color = never\nlog=info\nmodel = a/b",
      "flags='--color always -vv --model c/d'; export AGENTHOST_MODEL=e/f;").settings
    assert.same({ value = "always", from = "flag" }, s.color)
    assert.same({ value = "debug", from = "flag" }, s.log)
    assert.same({ value = "c/d", from = "flag" }, s.model)
    s = decoded("model = a/b", "flags=; export AGENTHOST_MODEL=e/f;").settings
    assert.same({ value = "e/f", from = "environment" }, s.model)
    s = decoded(nil, "flags=;").settings
    assert.same({ value = "auto", from = "default" }, s.color)
    assert.same({ value = "warning", from = "default" }, s.log)
  end)

  it("shows variables with their origin, and no secret", function()
    write("env", "OPENAI_API_KEY=sk-very-secret\nOPENAI_ORG_ID=org\n")
    local r = shown("env-file = ../env", "flags=; export OPENAI_BASE_URL=http://me:very@h/v1;")
    has_not(r.out, "very")
    local v = ah.json.decode(r.out).variables
    assert.same({ value = "[secret]", from = "env-file" }, v.OPENAI_API_KEY)
    assert.same({ value = "org", from = "env-file" }, v.OPENAI_ORG_ID)
    assert.same({ value = "http://[secret]@h/v1", from = "environment" }, v.OPENAI_BASE_URL)
    assert.same({ value = ah.null, from = "default" }, v.AGENTHOST_MODEL)
  end)

  it("shows the same as text, with and without --show", function()
    local config = "model = demo/echo"
    local text = with(config, 'OPENAI_API_KEY=very "$A" config').out
    assert.equal(text, with(config, 'OPENAI_API_KEY=very "$A" config --show').out)
    assert.truthy(text:find("\nOPENAI_API_KEY +%[secret%] +environment\n"))
    assert.truthy(("\n" .. text):find("\nmodel +demo/echo +file, line 1\n"))
    assert.truthy(text:find("\nANTHROPIC_AUTH_TOKEN +%S+ +%l"))
    has(text, "configuration file: " .. folder .. "/agenthost/config\n")
    has(with(nil, '"$A" config').out, "/agenthost/config (not there)\n")
  end)

  it("takes nothing behind it", function()
    local r = command.agenthost("config", "model")
    assert.equal(2, r.code)
    has(r.err, "agenthost config takes no operand, found 'model'\nSee agenthost config --help.")
  end)
end)
