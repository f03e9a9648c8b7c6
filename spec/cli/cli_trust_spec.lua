-- Settings of a project: where agenthost.conf is searched, which settings hold, which need
-- `agenthost trust`, and what is stored of them; and malicious files.
local ah = require "agenthost"
local command = require "support.command"
local typing = require "support.typing"

local has, has_not, quote, shell = command.has, command.has_not, command.quote, command.shell

local root, project -- root: HOME is root/home, the project root/project

local function write(path, text)
  local f <close> = assert(io.open(root .. "/" .. path, "wb"))
  f:write(text)
end

-- Runs a command line in a folder below root.
local function at(folder, line)
  return shell(("unset AGENTHOST_MODEL OPENAI_API_KEY OPENAI_BASE_URL XDG_STATE_HOME; "
    .. "export HOME=%s/home XDG_CONFIG_HOME=; cd %s/%s && { %s; }"):format(root, root, folder,
      line))
end

local function configured(folder, before)
  return ah.json.decode(at(folder or "project", (before or "") .. ' "$A" config --json').out)
end

local function settings(folder)
  return configured(folder).settings
end

local function conf(text)
  write("project/agenthost.conf", text)
end

local function env_of(name, flags)
  return (flags or '"$A"') .. (" -e 'print(os.getenv(\"%s\"))'"):format(name)
end

local function user(text)
  os.execute(("mkdir -p %s/home/.config/agenthost"):format(root))
  write("home/.config/agenthost/config", text)
end

local function is_root()
  local pipe <close> = assert(io.popen "id -u")
  return pipe:read "l" == "0"
end

before_each(function()
  local pipe <close> = assert(io.popen "mktemp -d")
  root = ah._real_path(assert(pipe:read "l"))
  project = root .. "/project"
  os.execute(("mkdir -p %s/home %s/sub/deep"):format(root, project))
end)
after_each(function()
  command.tidy()
  os.execute(("rm -rf %s"):format(root))
end)

describe("sections", function()
  it("are a shorter way to say names", function()
    user("color = never\n[models]\nfast = demo/echo\n\n"
      .. "[ run ]\nmax_iterations = 3\n[http]\nidle_timeout = 7.5\n")
    local s = configured "."
    assert.same({ from = "file", line = 6, value = "3" }, s.settings["run.max_iterations"])
    assert.equal("7.5", s.settings["http.idle_timeout"].value)
    assert.equal("demo/echo", s.models.fast)
    user("models.fast = demo/echo\nrun.max_iterations = 3\n"
      .. "[run]\ntimeout = 9\n[budget]\n[run]\nretries = 0")
    s = configured "."
    assert.equal("3", s.settings["run.max_iterations"].value)
    assert.equal("9", s.settings["run.timeout"].value)
    assert.equal("0", s.settings["run.retries"].value)
    assert.equal("demo/echo", s.models.fast)
  end)

  it("are strict, and tell the line", function()
    for text, why in pairs {
      ["[runs]"] = ":1: there is no such section (did you mean 'run'?)",
      ["[providers.opnai]\nbase_url = http://h"] =
        ":1: there is no such section (did you mean 'providers.openai'?)",
      ["[run\ntimeout = 1"] = ":1: a line that begins with '[' is the header of a section",
      ["[run] # mine"] = ":1: a line that begins with '['",
      ["[]"] = ":1: a line that begins with '['",
      ["[run]\ntimeot = 1"] = ":2: there is no such setting (did you mean 'timeout'?)",
      ["[run]\nmodel = a/b"] = ":2: there is no such setting",
      ["[run]\ntimeout = 1\n[run]\ntimeout = 2"] = ":4: run.timeout is set twice",
      ["[models]\na = demo/echo\na = demo/tools"] = ":3: models.a is set twice",
      ["run.timeout = 1\n[run]\ntimeout = 2"] = ":3: run.timeout is set twice",
      ["[run]\nmax_iterations = many"] =
        ":2: run.max_iterations must be a whole number of at least 1",
      ["[run]\nmax_iterations = 0"] =
        ":2: run.max_iterations must be a whole number of at least 1",
      ["[run]\nmax_iterations = 2.5"] = ":2: run.max_iterations must be a whole number",
      ["[run]\nmax_iterations = 0x10"] = ":2: run.max_iterations must be a whole number",
      ["[run]\nmax_iterations = 99999999999999999999999"] =
        ":2: run.max_iterations must be a whole",
      ["[run]\ntimeout = nan"] = ":2: run.timeout must be a number of seconds of at least 0.001",
      ["[run]\non_max = stop"] = ":2: run.on_max must be one of: error answer",
      ["[http]\nproxy = proxy:3128"] =
        ":2: http.proxy must be an address such as http://proxy:3128",
      ["[providers.openai]\nbase_url = file:///etc/passwd"] =
        ":2: providers.openai.base_url must be an address",
      ["[providers.openai]\napi_key = sk-secret"] =
        ":2: there is no such setting (did you mean 'api_key_env'?)",
      ["[providers.openai]\napi_key_env = sk-secret"] =
        ":2: providers.openai.api_key_env must be the name of a variable",
      ["[models]\nx = {\"like\""] = ":2: models.x must be a model, or a JSON object",
      ["model = a\255b"] = ":1: it is not UTF-8",
      ["[r\255n]"] = ":1: it is not UTF-8",
    } do
      user(text)
      local r = at(".", '"$A" config')
      assert.same({ 2, "" }, { r.code, r.out }, text)
      has(r.err, "/.config/agenthost/config" .. why)
      has_not(r.err, "secret")
    end
  end)

  it("may begin with the mark of an editor", function()
    user "\u{FEFF}color = never\r\n[run]\r\ntimeout = 5\r\n"
    assert.equal("5", settings(".")["run.timeout"].value)
  end)
end)

describe("settings", function()
  local CALLS = [["$A" -e 'local t = ah.tool { name = "t", description = "T.",
      handler = function() end }
    local call = { calls = { { name = "t", arguments = ah.object {} } } }
    local _, err = ah.run { model = ah.scripted { call, call, call, "end" }, tools = { t },
      %s "x" }
    print(err and err.code)']]

  it("limit the runs of scripts, which win where they say it themselves", function()
    user "[run]\nmax_iterations = 2\n"
    has(at(".", CALLS:format "").out, "max_iterations_exceeded")
    has(at(".", CALLS:format "max_iterations = 9,").out, "nil")
    user "[budget]\ntool_calls = 1\n"
    has(at(".", CALLS:format "").out, "budget_exceeded")
    has(at(".", CALLS:format "budget = { requests = 9 },").out, "budget_exceeded")
    has(at(".", CALLS:format "budget = { tool_calls = 9 },").out, "nil")
    user "[run]\ntimeout = 0.05\n"
    has(at(".", [["$A" -e 'local t = ah.tool { name = "t", description = "T.",
      handler = function() ah.sleep(60) end }
      print(ah.run { model = "demo/tools", tools = { t }, "x" })']]).out, "deadline_exceeded")
  end)

  it("say what is sent to a provider, and where", function()
    user "[providers.openai]\nbase_url = http://127.0.0.1:1/v1\napi_key_env = MINE\n"
    assert.equal("http://127.0.0.1:1/v1\n", at(".", env_of "OPENAI_BASE_URL").out)
    assert.equal("http://other\n", at(".", "OPENAI_BASE_URL=http://other "
      .. env_of "OPENAI_BASE_URL").out)
    assert.equal("key\n", at(".", "MINE=key " .. env_of "OPENAI_API_KEY").out)
    assert.equal("own\n", at(".", "OPENAI_API_KEY=own MINE=key " .. env_of "OPENAI_API_KEY").out)
    has(at(".", [["$A" -e 'print(ah.run { model = "openai/x", "x" })']]).out,
      "os.environ/MINE, which is not set")
    local r = at(".", 'MINE=very-secret "$A" config --json')
    has_not(r.out, "very-secret")
    assert.equal("[secret]", ah.json.decode(r.out).variables.OPENAI_API_KEY.value)
    assert.equal("MINE", ah.json.decode(r.out).settings["providers.openai.api_key_env"].value)
    user "[http]\nproxy = http://me:very@p:1\nno_proxy = localhost\nca_file = ca.pem\n"
    assert.equal("http://me:very@p:1\n", at(".", "unset http_proxy all_proxy ALL_PROXY; "
      .. env_of "http_proxy").out)
    assert.equal("b://c\n", at(".", "export https_proxy=b://c; " .. env_of "https_proxy").out)
    has(at(".", "unset SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE; " .. env_of "SSL_CERT_FILE").out,
      root .. "/home/.config/agenthost/ca.pem")
    has_not(at(".", '"$A" config').out, "very")
  end)
end)

describe("docs/reference/settings.md", function()
  local PAGE = command.contents "docs/reference/settings.md"

  it("has each setting, and whether a project may say it before it is trusted", function()
    local told, values = {}, { ["env-file"] = ".env", ["http.proxy"] = "http://h:1",
      color = "auto", log = "error", model = "x/y", ["run.on_max"] = "answer",
      ["run.on_empty"] = "retry", ["options.cache"] = "1h", ["budget.reserve"] = "true" }
    for cells, before in PAGE:gmatch "\n| (`[^|]+) |[^\n]*| ([^|\n]+) |" do
      for name in cells:gmatch "`([^`]+)`" do
        told[name] = before:match "^%a+"
      end
    end
    local names = { "models.NAME", "providers.NAME.base_url", "providers.NAME.api_key_env",
      "providers.NAME.max_in_flight" }
    for name in pairs(settings ".") do
      names[#names + 1] = name
    end
    table.sort(names)
    local found = {}
    for name in pairs(told) do
      found[#found + 1] = name
    end
    table.sort(found)
    assert.same(names, found)
    local user_says, project_says = {}, {}
    for _, name in ipairs(names) do
      if not name:find "NAME" then
        local limit = told[name] == "if"
        user_says[#user_says + 1] = limit and name .. " = 100" or nil
        project_says[#project_says + 1] = name .. " = " .. (values[name] or limit and 101 or 5)
      end
    end
    user(table.concat(user_says, "\n"))
    conf(table.concat(project_says, "\n"))
    for _, one in ipairs(configured().project.left_out) do
      assert.truthy(({ no = true, ["if"] = true, of = true })[told[one.name]], one.name)
      told[one.name] = "left out"
    end
    for name, before in pairs(told) do
      assert.truthy(name:find "NAME" or before == "left out" or before == "yes", name)
    end
  end)
end)

describe("a project's settings", function()
  it("hold in its folders, over those of the user and below environment and flags", function()
    user "color = never\nlog = info\n[run]\ntimeout = 100\n"
    conf "color = always\n[run]\ntimeout = 50\n"
    for _, folder in ipairs { "project", "project/sub", "project/sub/deep" } do
      local s = settings(folder)
      assert.same({ from = "project", line = 1, value = "always" }, s.color, folder)
      assert.same({ from = "project", line = 3, value = "50" }, s["run.timeout"])
      assert.same({ from = "file", line = 2, value = "info" }, s.log)
    end
    assert.equal("never", settings(".").color.value)
    local r = at("project", '"$A" --color never no/such.lua')
    has_not(r.err, "\27")
    has(at("project", '"$A" no/such.lua').err, "\27[31m")
  end)

  it("are those of the nearest folder, as a whole", function()
    conf "color = always\nlog = info\n"
    write("project/sub/agenthost.conf", "color = never\n")
    local s = settings "project/sub/deep"
    assert.equal("never", s.color.value)
    assert.equal("warning", s.log.value)
  end)

  it("are not looked for in HOME or above it", function()
    write("agenthost.conf", "color = always\n")
    write("home/agenthost.conf", "color = always\n")
    os.execute(("mkdir %s/home/work"):format(root))
    assert.equal("auto", settings("home").color.value)
    assert.equal("auto", settings("home/work").color.value)
    assert.equal("always", settings("project").color.value)
  end)

  it("are told with file and line where they are faulty", function()
    conf "\n[run]\ntimeot = 1\n"
    local r = at("project/sub", '"$A" -e "print(1)"')
    assert.same({ 2, "" }, { r.code, r.out })
    has(r.err, project .. "/agenthost.conf:3: there is no such setting (did you mean 'timeout'?)")
    assert.equal(0, at("project", '"$A" --help').code)
    assert.equal(2, at("project", '"$A" trust --yes').code)
  end)
end)

describe("before agenthost trust", function()
  local function left(text)
    conf(text)
    local names = {}
    for i, one in ipairs(configured().project.left_out) do
      names[i] = one.name
    end
    return table.concat(names, " ")
  end

  it("what sends elsewhere, sets variables or says whom to believe is left out", function()
    for name, text in pairs {
      ["env-file"] = "env-file = .env",
      ["providers.openai.base_url"] = "[providers.openai]\nbase_url = http://h",
      ["providers.anthropic.api_key_env"] = "[providers.anthropic]\napi_key_env = AWS_SECRET",
      ["http.proxy"] = "[http]\nproxy = http://h:1",
      ["http.no_proxy"] = "[http]\nno_proxy = *",
      ["http.ca_file"] = "[http]\nca_file = ca.pem",
      ["models.openai/gpt-4o"] = "[models]\nopenai/gpt-4o = groq/x",
      ["models.a"] = 'models.a = {"model": "openai/x", "prices": {"input": 0, "output": 0}}',
    } do
      assert.equal(name, left(text))
    end
    write("project/.env", "OPENAI_BASE_URL=http://evil\n")
    conf "env-file = .env\n[providers.openai]\nbase_url = http://evil\n"
    assert.equal("nil\n", at("project", env_of "OPENAI_BASE_URL").out)
    conf "[http]\nproxy = http://evil:1\n"
    assert.equal("nil\n", at("project", "unset http_proxy all_proxy ALL_PROXY; "
      .. env_of "http_proxy").out)
  end)

  it("a model holds where it is of a provider that the user asks, or asks nobody", function()
    assert.equal("model", left "model = openai/gpt-4o")
    assert.equal("model", left "model = claude_agent_sdk/x")
    assert.equal("model", left "model = fast")
    assert.equal("", left "model = demo/echo")
    user "model = openai/small\n"
    assert.equal("", left "model = openai/large")
    assert.equal("model", left "model = groq/large")
    user "model = mine\n[models]\nmine = groq/a\nother = groq/b\nfar = openai/c\n"
    assert.equal("", left "model = groq/large")
    assert.equal("", left "model = other")
    assert.equal("model", left "model = far")
    assert.equal("model models.x", left "model = x\n[models]\nx = groq/a")
  end)

  it("a limit can be less than without it, not more", function()
    assert.equal("",
      left "[run]\nmax_iterations = 20\nretries = 0\ntimeout = 1000\n[budget]\ncost = 1")
    assert.equal("run.max_iterations", left "[run]\nmax_iterations = 21")
    assert.equal("run.retries run.max_tools", left "[run]\nretries = 3\nmax_tools = 129")
    user "[budget]\ncost = 0.5\n[run]\ntimeout = 10\nmax_iterations = 50\n"
    assert.equal("budget.cost run.timeout",
      left "[budget]\ncost = 0.6\n[run]\ntimeout = 11\nmax_iterations = 50")
    assert.equal("0.5", settings()["budget.cost"].value)
    assert.equal("", left "[budget]\nreserve = true")
    assert.equal("", left "[budget]\nreserve = false")
    user "[budget]\nreserve = true\n"
    assert.equal("", left "[budget]\nreserve = true")
    assert.equal("budget.reserve", left "[budget]\nreserve = false")
  end)

  it("one warning tells what is left out, and what to do", function()
    conf "color = never\nenv-file = .env\n[http]\nproxy = http://me:very@h:1\n"
    local r = at("project", '"$A" -e "print(1)"')
    assert.same({ 0, "1\n" }, { r.code, r.out })
    local _, lines = r.err:gsub("\n", "")
    assert.equal(1, lines)
    has(r.err, project
      .. "/agenthost.conf is not trusted: left out: env-file (line 2) sets variables, "
      .. "http.proxy (line 4) sends elsewhere; look at it, then: agenthost trust\n")
    has_not(r.err, "very")
    assert.equal("", at("project", '"$A" -q -e ""').err)
    conf "color = never\n[run]\ntimeout = 3\n"
    assert.equal("", at("project", '"$A" -e "print(1)"').err)
    local many = { "[models]" }
    for i = 1, 2000 do
      many[i + 1] = ("m%d = demo/echo"):format(i)
    end
    conf(table.concat(many, "\n"))
    r = at("project", '"$A" -e ""')
    has(r.err, "and 1996 more; look")
    assert.is_true(#r.err < 1000)
  end)
end)

describe("agenthost trust", function()
  local DANGEROUS =
    "env-file = .env\n[providers.openai]\nbase_url = http://127.0.0.1:1/v1\n"
    .. "[run]\nmax_iterations = 99\n"

  before_each(function()
    conf(DANGEROUS)
    write("project/.env", "MINE=1\nHIS=very-secret\n")
  end)

  local function trust(words)
    return at("project/sub", '"$A" trust ' .. (words or "") .. " </dev/null")
  end

  it("shows what would hold, and lets it, as it is", function()
    local r = trust "--yes"
    assert.same({ 0, "" }, { r.code, r.err })
    has(r.out, project .. "/agenthost.conf\n")
    has(r.out, "line 1    env-file")
    has(r.out, "it sets: MINE HIS\n")
    has(r.out, "http://127.0.0.1:1/v1    (sends elsewhere)")
    has(r.out, "(raises a limit that is 20 without it)")
    has_not(r.out, "very-secret")
    local s = configured()
    assert.equal("99", s.settings["run.max_iterations"].value)
    assert.same({ trusted = true, changed = false, mine = true, left_out = ah.array {},
      path = project .. "/agenthost.conf" }, s.project)
    r = at("project/sub/deep", env_of "MINE")
    assert.same({ "1\n", "" }, { r.out, r.err })
    assert.equal("http://127.0.0.1:1/v1\n", at("project", env_of "OPENAI_BASE_URL").out)
    has(trust().out, "It is trusted already.\n")
  end)

  it("needs --yes where nobody can be asked", function()
    local r = trust()
    assert.equal(1, r.code)
    has(r.out, "(sends elsewhere)")
    has(r.err, "there is no terminal to ask on")
    assert.equal("nil\n", at("project", env_of "MINE").out)
    r = trust "--json"
    assert.equal(1, r.code)
    assert.is_false(ah.json.decode(r.out).trusted)
    r = trust "--json -y"
    assert.equal(0, r.code)
    local told = ah.json.decode(r.out)
    assert.is_true(told.trusted)
    assert.same({ name = "providers.openai.base_url", line = 3, value = "http://127.0.0.1:1/v1",
      needs = "sends elsewhere" }, told.settings[2])
    assert.same({ "MINE", "HIS" }, told.settings[1].sets)
  end)

  -- Starts `agenthost trust` on a terminal, in the project's folder, and waits for its question.
  local function asked()
    local line = ("cd %s && exec %s trust"):format(project, quote(command.BINARY))
    local t = typing.start({ "/bin/sh", "-c", line }, { env = { "HOME=" .. root .. "/home" } })
    return typing.read(t, "[y/N]")
  end

  typing.it(it, pending)("asks on a terminal", function()
    for answer, holds in pairs { ["y\r"] = true, ["YES\r"] = true, ["n\r"] = false,
      ["\r"] = false, ["\4"] = false, ["\3"] = false } do
      trust "--remove"
      local t = asked()
      has(t.all, "(sends elsewhere)")
      t.pty:write(answer)
      local code = typing.finish(t)
      assert.equal(holds and 0 or answer == "\3" and 130 or 1, code)
      assert.equal(holds and "1\n" or "nil\n", at("project", env_of "MINE").out, answer)
    end
  end)

  it("is to be said anew when a file has changed", function()
    trust "--yes"
    conf(DANGEROUS .. "retries = 1\n")
    local r = at("project", env_of "MINE")
    assert.equal("nil\n", r.out)
    has(r.err, "agenthost.conf has changed since it was trusted: left out: env-file (line 1)")
    assert.is_true(configured().project.changed)
    conf(DANGEROUS)
    assert.equal("1\n", at("project", env_of "MINE").out)
    write("project/.env", "MINE=2\nOPENAI_BASE_URL=http://evil\n")
    r = at("project", env_of "MINE")
    assert.equal("nil\n", r.out)
    has(r.err, "env-file (line 1) names a file that has changed since it was trusted")
    trust "--yes"
    assert.equal("2\n", at("project", env_of "MINE").out)
  end)

  it("is not given to a file of variables that comes later", function()
    os.remove(project .. "/.env")
    trust "--yes"
    assert.equal("", at("project", '"$A" -e "print(1)"').err)
    write("project/.env", "MINE=1\n")
    assert.equal("nil\n", at("project", env_of "MINE").out)
  end)

  typing.it(it, pending)("keeps the hash of what was shown, whatever there is by then", function()
    local t = asked()
    conf "[http]\nproxy = http://evil:1\n"
    t.pty:write "y\r"
    has(select(2, typing.finish(t)), "It is trusted, as it is now.")
    assert.equal("nil\n",
      at("project", "unset http_proxy all_proxy ALL_PROXY; " .. env_of "http_proxy").out)
    assert.is_true(configured().project.changed)
    conf(DANGEROUS)
    assert.equal("1\n", at("project", env_of "MINE").out)
  end)

  it("holds for that folder alone", function()
    trust "--yes"
    at(".", "cp -r project other; mkdir linked; ln -s ../project linked/p")
    assert.equal("nil\n", at("other", env_of "MINE").out)
    assert.equal("1\n", at("linked/p/sub", env_of "MINE").out)
  end)

  it("lists and takes back", function()
    at(".", "mkdir 'two\nlines%'; cp project/agenthost.conf two*/")
    trust "--yes"
    assert.equal(0, at(".", '"$A" trust --yes two*').code)
    local list = ah.json.decode(trust("--list --json").out).trusted
    assert.same({ { path = project .. "/agenthost.conf", state = "trusted" },
      { path = root .. "/two\nlines%/agenthost.conf", state = "trusted" } }, list)
    conf ""
    has(trust("--list").out, "changed     " .. project .. "/agenthost.conf\n")
    at(".", "rm -r project two*; mkdir -p project/sub")
    has(trust("--list").out, "gone ")
    assert.equal(0, at(".", '"$A" trust --remove project').code)
    assert.equal(0, at(".", '"$A" trust --remove "$PWD/two\nlines%"').code)
    assert.equal("", trust("--list").out)
    local r = at(".", '"$A" trust --remove project')
    assert.equal(1, r.code)
    has(r.err, "is not trusted; agenthost trust --list shows the trusted folders")
  end)

  it("keeps it for its owner alone, and several at once lose nothing", function()
    at(".", [[for i in 1 2 3 4 5 6 7 8; do mkdir p$i; echo "color = auto" > p$i/agenthost.conf; done
      for i in 1 2 3 4 5 6 7 8; do "$A" trust --yes p$i & done; wait]])
    local _, n = at(".", '"$A" trust --list').out:gsub("trusted ", "")
    assert.equal(8, n)
    assert.equal("700 600\n", at(".",
      "cd home/.local/state; stat -c %a agenthost agenthost/trusted | paste -sd' '").out)
    assert.equal(0, at(".",
      'XDG_STATE_HOME=$PWD/state "$A" trust --yes p1; test -f state/agenthost/trusted').code)
  end)

  it("says what is wrong with its words", function()
    for words, why in pairs {
      ["--list x"] = "--list takes no other option or operand",
      ["a b"] = "takes one folder, found 'b' besides",
      ["no/such"] = "there is no folder 'no/such'", ["deep"] =
        "there is no agenthost.conf in 'deep'",
    } do
      local r = trust(words)
      assert.equal(2, r.code)
      has(r.err, why)
    end
    local r = at("home", '"$A" trust')
    assert.equal(2, r.code)
    has(r.err, "there is no agenthost.conf in this folder, nor in those above it")
    has(at("project", 'unset HOME; "$A" trust --yes').err, "set HOME")
  end)
end)

describe("hostile files", function()
  local function refused(line, why)
    at("project", line)
    local r = at("project/sub", 'timeout 10 "$A" -e "print(1)"')
    assert.same({ 2, "" }, { r.code, r.out }, line)
    has(r.err, "cannot read the project's settings '" .. project .. "/agenthost.conf': " .. why)
    assert.equal(2, at("project/sub", 'timeout 10 "$A" trust --yes').code)
    at("project", "rm -rf agenthost.conf")
  end

  it("are neither followed nor waited for", function()
    write("elsewhere", "color = always\n")
    refused("ln -s ../elsewhere agenthost.conf", "it is a symbolic link")
    refused("ln -s nowhere agenthost.conf", "it is a symbolic link")
    refused("mkfifo agenthost.conf", "it is no regular file")
    refused("mkdir agenthost.conf", "it is no regular file")
    refused("head -c 1100000 /dev/zero | tr '\\0' '#' > agenthost.conf", "it is larger than 1 MiB")
    refused("printf 'color = auto\\0' > agenthost.conf", "it is not text (it has a NUL byte)")
  end)

  it("of the user are told, too; a link is the user's own", function()
    user ""
    local path = "home/.config/agenthost/config"
    at(".", ("rm %s; mkfifo %s"):format(path, path))
    has(at(".", 'timeout 10 "$A" -e ""').err, "cannot read the configuration")
    at(".", ("rm %s; echo 'color = never' > elsewhere; ln -s $PWD/elsewhere %s"):format(path,
      path))
    assert.equal("never", settings(".").color.value)
  end)

  it("of variables are neither waited for nor told", function()
    conf "env-file = pipe\n"
    at("project", "mkfifo pipe")
    has(at("project", 'timeout 10 "$A" trust --yes').err, "it is no regular file")
    conf "env-file = keys\n"
    write("project/keys", "sk-very-secret\n")
    local r = at("project", '"$A" trust --yes')
    assert.equal(2, r.code)
    has_not(r.out .. r.err, "very")
  end)

  it("show nothing that a terminal would obey", function()
    conf "model = demo/\u{202E}\u{9b}31mevil\n"
    for _, line in ipairs { '"$A" config', '"$A" trust' } do
      local out = at("project", line .. " </dev/null").out
      has(out, "demo/\\u202e\\x9b31mevil")
    end
  end)

  it("in somebody else's folder say nothing before they are trusted", function()
    if not is_root() then
      pending "only root can give a folder away"
      return
    end
    conf "color = always\nthis is no setting\n"
    at(".", "chown 65534 project")
    for _, folder in ipairs { "project", "project/sub" } do
      local r = at(folder, '"$A" -e "print(1)"')
      assert.same({ 0, "1\n" }, { r.code, r.out })
      has(r.err, "is left out, because its folder or the file belongs to another user; look at it")
      assert.is_false(configured(folder).project.mine)
    end
    conf "color = always\n[run]\nmax_iterations = 99\n"
    assert.equal("auto", settings("project").color.value)
    has(at("project", '"$A" trust --yes').out, "belongs to another user")
    assert.equal("99", settings("project/sub")["run.max_iterations"].value)
    at(".", "chown 0 project; chown 65534 project/agenthost.conf")
    assert.is_true(configured().project.trusted)
    conf "color = never\n"
    assert.equal("auto", settings("project").color.value)
    at(".",
      "chown 65534 project; rm project/agenthost.conf; echo 'color = always' > agenthost.conf")
    assert.equal("auto", settings("project/sub").color.value) -- the search ends at the project
  end)

  it("of any bytes hold, or are refused with their line", function()
    local PARTS = { "[", "]", "=", "#", '"', "'", "\n", "\r", " ", "\t", "model", "run", "timeout",
      "models.", "providers.openai", "base_url", "http://h", "{}", "5", "-1", "é", "\255", "\1",
        "." }
    local random = require("support.random")(5)
    for i = 1, tonumber(os.getenv "AGENTHOST_SETTINGS") or 60 do
      local parts = {}
      for n = 1, random(30) do
        parts[n] = PARTS[random(#PARTS)]
      end
      local content = table.concat(parts)
      conf(content)
      local r = at("project", '"$A" config')
      assert.is_true(r.code == 0 or r.code == 2, ("%d: %q"):format(i, content))
      assert.equal(r.code == 2, r.out == "")
      assert.is_true(r.code == 0 or r.err:find "/agenthost%.conf:%d+: " ~= nil, r.err)
    end
  end)

  it("cannot say who is trusted", function()
    conf "[http]\nproxy = http://evil:1\n"
    local hash = ah.sha256 "[http]\nproxy = http://evil:1\n"
    local line = ("%s - %s/agenthost.conf\n"):format(hash, project)
    local place = root .. "/home/.local/state/agenthost/trusted"
    at(".", "mkdir -p home/.local/state/agenthost")
    for _, text in ipairs { line:gsub("^%x%x", "zz"), "\0" .. line, hash
      .. " - project/agenthost.conf\n",
      hash .. "\n", line:sub(2), ("x"):rep(100000) .. line } do
      write("home/.local/state/agenthost/trusted", text)
      assert.is_false(configured().project.trusted)
    end
    write("trusted", line)
    at(".", ("rm %s; ln -s $PWD/trusted %s"):format(place, place))
    local r = at("project", '"$A" -e ""')
    has(r.err, "(the list of trusted folders cannot be read: it is a symbolic link)")
    assert.equal(2, at("project", '"$A" trust --yes').code)
    at(".", ("rm %s"):format(place))
    write("home/.local/state/agenthost/trusted", line)
    assert.is_true(configured().project.trusted)
    if is_root() then
      at(".", "chown 65534 " .. place)
      assert.is_false(configured().project.trusted)
    end
  end)
end)
