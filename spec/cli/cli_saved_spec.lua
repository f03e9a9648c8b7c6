-- Saved prompts (agenthost -T NAME): where they are looked for, what is sent, and that a project's
-- text is sent only with consent; aliases of models in the settings; the names of both for shells.
local ah = require "agenthost"
local command = require "support.command"
local typing = require "support.typing"

local has, has_not, quote = command.has, command.has_not, command.quote
local it_if = typing.it(it, pending)
local root -- HOME is root/home, a project root/home/project

local function write(path, text)
  os.execute(("mkdir -p %s"):format(quote((root .. "/" .. path):match "^(.*)/")))
  command.write(root .. "/" .. path, text)
end

-- Runs a command line in a folder below root, with `a` for the command.
local function at(folder, line)
  return command.shell(([[unset AGENTHOST_MODEL XDG_STATE_HOME XDG_CONFIG_HOME; export HOME=%s/home
    a() { "$A" -m demo/echo --no-store "$@"; }; cd %s/%s && { %s; } </dev/null]]):format(root,
    root, folder, line))
end

local function says(folder, line)
  local r = at(folder, line)
  assert.same({ 0, "" }, { r.code, r.err })
  return r.out
end

local function refuses(folder, line, ...)
  local r = at(folder, line)
  assert.same({ 2, "" }, { r.code, r.out }, r.err)
  for _, part in ipairs { ... } do
    has(r.err, part)
  end
  return r.err
end

local USER = "home/.config/agenthost/prompts/"

before_each(function()
  root = ah._real_path(command.folder())
  write("home/project/agenthost.conf", "")
  write("home/project/sub/x", "")
end)
after_each(command.tidy)

describe("a saved prompt", function()
  it("of the user is sent with the words behind it", function()
    write(USER .. "commit.md", "Write a message.\n\n")
    assert.equal("Write a message.\n", says(".", "a -T commit"))
    assert.equal("Write a message.\n\nshort\n", says(".", "a -T commit short"))
    assert.equal("Write a message.\n\nvery short\n",
      says(".", "a prompt --saved=commit very short"))
    assert.equal("Write a message.\n\nlist\n", says(".", "a -Tcommit list")) -- no command
    assert.equal("Write a message.\n\nStandard input:\n```\ndiff\n```\n",
      says(".", "echo diff | a -T commit"))
    write("x", "text\n")
    assert.equal("Write a message.\n\nx:\n```\ntext\n```\n", says(".", "a -T commit @x"))
  end)

  it("has the words in its place for them", function()
    write(USER .. "review.md", "Review {{words}}; I say {{words}}. {{other}}\n")
    assert.equal("Review a {{words}} %1; I say a {{words}} %1. {{other}}\n",
      says(".", "a -T review a '{{words}}' %1"))
    write("x", "text\n")
    assert.equal("Review x; I say x. {{other}}\n\nx:\n```\ntext\n```\n",
      says(".", "a -T review @x"))
    refuses(".", "a -T review", "the saved prompt 'review' needs words for its {{words}}")
  end)

  it("that is unknown is answered with the nearest, and with all there are", function()
    refuses(".", "a -T comit", "there is no saved prompt 'comit'\nNone is saved. It is a text "
      .. "NAME.md in prompts/ beside the project's agenthost.conf, or in '" .. root
      .. "/home/.config/agenthost/prompts'.")
    write(USER .. "commit.md", "x")
    write(USER .. "no name.md", "x")
    write(USER .. "other.txt", "x")
    write("home/project/prompts/review.md", "x")
    local said = refuses("home/project/sub", "a -T comit", "(did you mean 'commit'?)\n",
      "\n  review               " .. root .. "/home/project/prompts/review.md\n",
      "\n  commit               " .. root .. "/" .. USER .. "commit.md\n")
    has_not(said, "other")
    has_not(said, "no name")
    for _, name in ipairs { "../prompts/commit", "/etc/passwd", "commit.md", "a b", "", "é" } do
      refuses("home/project/prompts", "a -T " .. quote(name))
    end
    for i = 1, 30 do
      write(USER .. "p" .. i .. ".md", "x")
    end
    refuses("home/project", "a -T none", "  and 12 more\n")
  end)

  it("is a text", function()
    for text, why in pairs { [" \n"] = "is empty", ["a\0b"] = "it has a NUL byte",
      ["a\xff"] = "is no text in UTF-8: byte 2 is 0xff",
      [("x"):rep(65537)] = "has 65537 bytes, more than 64 KiB" } do
      write(USER .. "odd.md", text)
      refuses(".", "a -T odd", why)
    end
    os.execute(("cd %s/%s && rm odd.md && mkfifo odd.md"):format(root, USER))
    refuses(".", "a -T odd", "cannot read the saved prompt", "it is no regular file")
  end)
end)

describe("a project's prompt", function()
  before_each(function()
    write("home/project/prompts/review.md", "Review it.\27[2J\n")
    write(USER .. "review.md", "Mine.\n")
  end)

  it("is sent from no folder without its consent", function()
    local said = refuses("home/project/sub", "a -T review", "there is no terminal",
      "agenthost -p @" .. root .. "/home/project/prompts/review.md")
    has_not(said, "Mine")
    assert.equal("Mine.\n", says(".", "a -T review"))
  end)

  local function started(words)
    return typing.start({ "/bin/sh", "-c", ("export HOME=%s/home; unset XDG_CONFIG_HOME; "
      .. "cd %s/home/project && echo diff | %s -m demo/echo --no-store -T review %s"):format(root,
      root, command.BINARY, words) })
  end

  it_if("is shown and asked about once, and again when it has changed", function()
    for _, key in ipairs { "n", "y" } do
      local t = started "now"
      typing.read(t, "now and later? [y/n]")
      has(t.all, "A prompt of the project, " .. root .. "/home/project/prompts/review.md:")
      has(t.all, "Review it.\\x1b[2J")
      t.pty:write("what\r" .. key .. "\r")
      local code, all = typing.finish(t)
      assert.equal(key == "y" and 0 or 2, code, all)
      has(all, key == "y" and "now\r\n" or "the user does not allow it")
    end
    local r = at("home/project/sub", "a -T review now")
    assert.same({ 0, "Review it.\27[2J\n\nnow\n" }, { r.code, r.out })
    assert.equal("agenthost: the prompt 'review' is the project's: " .. root
      .. "/home/project/prompts/review.md\n", r.err)
    assert.equal("", at("home/project", "a -q -T review now").err)
    local listed = says(".", '"$A" trust --list')
    assert.equal("trusted     " .. root .. "/home/project/prompts/review.md\n", listed)
    write("home/project/prompts/review.md", "Review it again.\n")
    has(says(".", '"$A" trust --list'), "changed ")
    refuses("home/project", "a -T review", "there is no terminal")
    write("home/project/prompts/review.md", "Review it.\27[2J\n")
    assert.equal(0, at("home/project", "a -T review").code)
    says("home/project", '"$A" trust --remove prompts/review.md')
    refuses("home/project", "a -T review", "there is no terminal")
  end)

  it("is no link, and in no folder that is one", function()
    write("secret", "secret\n")
    os.execute(("cd %s/home/project && rm prompts/review.md && ln -s ../../../secret "
      .. "prompts/review.md"):format(root))
    has_not(refuses("home/project", "a -T review", "it is a symbolic link"), "secret\n")
    os.execute(("cd %s/home/project && rm -r prompts && mkdir real && echo x >real/review.md "
      .. "&& ln -s real prompts"):format(root))
    assert.equal("Mine.\n", says("home/project", "a -T review"))
  end)
end)

describe("aliases of the settings", function()
  before_each(function()
    write("home/.config/agenthost/config", "[models]\nfast = demo/echo\n")
  end)

  it("are models of prompts, of scripts and of agenthost models", function()
    assert.equal("a b\n", says(".", '"$A" --no-store -m fast "a b"'))
    assert.equal("a b\n", says(".", 'AGENTHOST_MODEL=fast "$A" --no-store "a b"'))
    write("s.lua", 'print(require "agenthost".run { model = "fast", "a" })')
    assert.equal("a\n", says(".", '"$A" s.lua'))
    write("s.lua", 'print(require "agenthost".run { model = "none/x", "a" })')
    assert.equal("a\n", says(".", '"$A" -m fast s.lua'))
    has(says(".", '"$A" models'), "\nfast   demo/echo\n")
    has(says(".", '"$A" models fast'), "demo/echo")
    refuses(".", '"$A" --no-store -m fsat "a b"', "'fsat'")
  end)

  it("of a project need trust", function()
    write("home/project/agenthost.conf", "[models]\nslow = demo/echo\n")
    local r = at("home/project", '"$A" --no-store -m slow "a b"')
    assert.equal(2, r.code)
    has(r.err, "left out: models.slow (line 2) says which model that is")
    assert.equal("fast\n", says("home/project", '"$A" completion aliases'))
    says("home/project", '"$A" trust --yes >/dev/null')
    assert.equal("a b\n", says("home/project", '"$A" --no-store -m slow "a b"'))
    assert.equal("fast\nslow\n", says("home/project", '"$A" completion aliases'))
  end)
end)

describe("completion", function()
  -- Returns the words that bash offers for these; the last is incomplete.
  local function offered(...)
    local words = {}
    for i, word in ipairs { "agenthost", ... } do
      words[i] = quote(word)
    end
    return says("home/project", ([[mkdir -p %s/bin; ln -sf "$A" %s/bin/agenthost
      PATH=%s/bin:$PATH bash -c 'source <(agenthost completion bash); compopt() { :; }
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _agenthost; printf "%%s\n" "${COMPREPLY[@]}"' -]]
      .. " %s"):format(root, root, root, table.concat(words, " ")))
  end

  it("has the names of saved prompts and of aliases", function()
    write("home/.config/agenthost/config", "[models]\nfast = demo/echo\n")
    write(USER .. "review.md", "x")
    write(USER .. "commit.md", "x")
    write("home/project/prompts/review.md", "x")
    write("home/project/prompts/refuse.md", "x")
    write("home/project/prompts/$(touch made).md", "x")
    assert.equal("refuse\nreview\ncommit\n", says("home/project/sub", '"$A" completion saved'))
    assert.equal("refuse\nreview\n", offered("-T", "re"))
    assert.equal("fast\n", offered("-m", "fa"))
    assert.equal("fast\n", offered("models", "fa"))
    assert.is_nil(io.open(root .. "/home/project/made"))
  end)
end)
