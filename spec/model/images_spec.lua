-- Images: ah.image, images in messages and in tools' results, and the requests of each wire.
local ah = require "agenthost"
local mock = require "support.mock"

local with_mock = mock.is_built() and it or pending

local PNG = "\x89PNG\r\n\x1a\nbytes\0\xff"
local BASE64 = "iVBORw0KGgpieXRlcwD/"
local URL = "https://images.example/cat.png"

local function file_with(bytes)
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "wb"))
  f:write(bytes)
  return path
end

local function fails(text, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find(text, 1, true), tostring(err))
end

local function draw()
  return ah.tool { name = "draw", description = "Draws.",
    handler = function() return { "Drawn.", ah.image { data = PNG } } end }
end

local CALL = { calls = { { id = "call_a", name = "draw", arguments = {} } } }

describe("ah.image", function()
  it("knows the four kinds by their first bytes, whatever the file is called", function()
    local kinds = { ["image/png"] = PNG, ["image/jpeg"] = "\xff\xd8\xff\xe0",
      ["image/gif"] = "GIF87a;", ["image/webp"] = "RIFF\4\0\0\0WEBP" }
    for mime, bytes in pairs(kinds) do
      local path = file_with(bytes)
      local image = assert(ah.image(path))
      os.remove(path)
      assert.same({ "image", mime, bytes }, { image.type, image.mime, image.data })
    end
  end)

  it("gives nil and why for what is no image, is not there, or is too large", function()
    for _, bytes in ipairs { "", "\x89PNG", "RIFF\4\0\0\0WAVE", "<svg/>" } do
      local none, err = ah.image { data = bytes }
      assert.is_nil(none)
      assert.truthy(err:is "usage")
      assert.truthy(err.message:find("no image by its first bytes", 1, true))
    end
    assert.truthy(select(2, ah.image "/nonexistent/cat.png").message:find("cannot read", 1, true))
    assert.truthy(select(2, ah.image "/dev/zero").message:find("no regular file", 1, true))
    local large = file_with("GIF89a" .. ("x"):rep(20 << 20))
    local _, err = ah.image(large)
    os.remove(large)
    assert.truthy(err.message:find("larger than 20 MiB", 1, true), err.message)
  end)

  it("raises for fields that are wrong", function()
    fails("one of the fields data", ah.image, {})
    fails("one of the fields data", ah.image, { data = PNG, url = URL })
    fails("did you mean 'url'", ah.image, { uri = URL })
    fails("but the data are image/png", ah.image, { data = PNG, mime = "image/gif" })
    fails("begins with https://", ah.image, { url = "file:///etc/passwd" })
    fails("mime must be", ah.image, { url = URL, mime = "text/html" })
    fails("expected a path or a table", ah.image, 7)
  end)
end)

describe("a message with images", function()
  it("is base64 in the transcript and bytes in messages, and comes back as it was", function()
    for n = 0, 6 do -- every length of padding
      local bytes = "GIF89a" .. ("\0\xfb\xff\1\x80\x7f"):sub(1, n)
      local seen
      local model = ah.scripted { function(request)
        seen = request.entries[#request.entries].content
        return "Yes."
      end }
      local reply = assert(ah.run { model = model, { "A", ah.image { data = bytes }, "B" } })
      assert.same({ "text", "image", "text" }, { seen[1].type, seen[2].type, seen[3].type })
      assert.equal(bytes, reply.messages[1].content[2].data)
      local again = assert(ah.run { model = ah.scripted { "Yes." },
        messages = reply.messages, "C" })
      local entries = ah.json.decode(again:transcript()).entries
      assert.same(seen, entries[entries[1].type == "settings" and 2 or 1].content)
    end
  end)

  it("goes through agent:run, agent:send, agent:save and ah.load", function()
    local path = os.tmpname()
    local agent = ah.agent { model = ah.scripted { "One.", "Two." } }
    agent:send { ah.image { url = URL } }
    assert(agent:run { "Look.", ah.image { data = PNG } })
    assert(agent:save(path))
    local text = assert(io.open(path)):read "a"
    local loaded = assert(ah.load(path, { model = ah.scripted { "Three." } }))
    local reply = assert(loaded:run "Again")
    assert.equal(URL, reply.messages[1].content[1].url)
    assert.equal(PNG, reply.messages[2].content[2].data)
    for was, is in pairs { [BASE64] = BASE64:sub(1, -2), ["image/png"] = "image/tiff" } do
      local f <close> = assert(io.open(path, "w"))
      local at = assert(text:find(was, 1, true))
      f:write(text:sub(1, at - 1), is, text:sub(at + #was))
      f:close()
      local none, err = ah.load(path)
      assert.is_nil(none)
      assert.truthy(err.message:find("an image has a url, or mime", 1, true), err.message)
    end
    os.remove(path)
  end)

  it("raises where a part is nil or none, and for a bare image", function()
    local model = ah.scripted {}
    fails("/nonexistent", ah.run, { model = model, { "What?", ah.image "/nonexistent" } })
    fails("content[2] must be a part", ah.run, { model = model, { "What?", 7 } })
    fails("must be in a list", ah.run, { model = model, ah.image { data = PNG } })
    fails("nothing to say", ah.run, { model = model, {} })
    assert.matches("not UTF%-8", tostring(select(2, ah.run { model = model,
      { "\xff", ah.image { data = PNG } } })))
    fails("data are image/png", ah.run, { model = model,
      { { type = "image", data = PNG, mime = "image/gif" } } })
  end)

  it("ends the run before anything is sent where the wire has no place for it", function()
    local asked = false
    local adapter = ah.adapter { name = "acme/blind", answer = function() asked = true end }
    local reply, err = ah.run { model = adapter, { "What?", ah.image { data = PNG } } }
    assert.is_nil(reply)
    assert.truthy(err:is "usage")
    assert.equal("part 2 of entry 1 is an image, and acme/blind takes no images", err.message)
    assert.is_false(asked)
    reply, err = ah.run { model = "ollama/llava", base_url = "http://127.0.0.1:1",
      { ah.image { url = URL } } }
    assert.is_nil(reply)
    assert.truthy(err.message:find("ollama/llava takes no images by url", 1, true), err.message)
  end)

  it("ends the run where the conversation's images are over the limit", function()
    local large = ah.image { data = "GIF89a" .. ("x"):rep(19 << 20) }
    local _, err = ah.run { model = ah.scripted { "No." }, { large, large, large } }
    assert.truthy(err.message:find("more than 64 MiB of images", 1, true), err.message)
  end)
end)

describe("a result with images", function()
  it("has their texts as its content, and fails for anything else in the list", function()
    local function result_of(value)
      local tool = ah.tool { name = "draw", description = "Draws.",
        handler = function() return value end }
      local reply = assert(ah.run { model = ah.scripted { CALL, "Done." }, tools = { tool }, "Go" })
      return reply.messages[3]
    end
    local image = ah.image { data = PNG }
    local content = result_of({ "One", image, "Two" }).content
    assert.same({ "One\nTwo", PNG }, { content[1].text, content[2].data })
    assert.equal("OK", result_of(image).content[1].text)
    assert.equal("Here.", result_of(ah.ok(image, "Here.")).content[1].text)
    local failed = result_of { image, 7 }
    assert.is_false(failed.success)
    assert.truthy(failed.content:find("holds a number", 1, true))
  end)
end)

-- For each wire, the strings that a request contains for the user's message and for the result.
local DATA_URL = "data:image/png;base64," .. BASE64
local WIRES = {
  { model = "openai/gpt-4o", path = "/v1", user = { "image_url", DATA_URL, URL }, result = {} },
  { model = "openai/responses/gpt-5.4", path = "/v1",
    user = { "input_image", DATA_URL, URL }, result = { "input_image", DATA_URL } },
  { model = "anthropic/claude-opus-4-8", path = "",
    user = { '"base64"', BASE64, '"url"', URL }, result = { '"tool_result"', '"base64"', BASE64 } },
  { model = "gemini/gemini-3-pro", path = "",
    user = { "inlineData", BASE64, "fileData", URL },
    result = { '"parts"', "inlineData", BASE64 } },
  { model = "gemini/gemini-2.5-pro", path = "",
    user = { "inlineData", BASE64, "fileData", URL }, result = {} },
  { model = "ollama/llava", path = "", no_url = true,
    user = { '"images"', BASE64 }, result = { '"images"', BASE64 } },
}

local function last_of(body)
  local list = body.messages or body.input or body.contents
  return list[#list]
end

local function holds(value, words)
  local text = ah.json.encode(value):gsub("\\/", "/")
  for _, word in ipairs(words) do
    assert.truthy(text:find(word, 1, true), word .. " in " .. text)
  end
  return text
end

describe("images on the wire", function()
  for _, wire in ipairs(WIRES) do
    with_mock("are sent to " .. wire.model, function()
      local m <close> = mock.start [[
        return { { calls = { { id = "call_a", name = "draw", arguments = {} } } }, "Nice." }]]
      local said = { "Look.", ah.image { data = PNG } }
      said[3] = not wire.no_url and ah.image { url = URL } or nil
      local reply = assert(ah.run { model = wire.model, base_url = m.url .. wire.path,
        api_key = "key-of-a-spec", tools = { draw() }, said })
      assert.equal("Nice.", reply.text)
      local log = m:log()
      holds(last_of(log[1].body), wire.user)
      local text = holds(last_of(log[2].body), wire.result)
      assert.equal(#wire.result == 0, text:find("cannot show it to you", 1, true) ~= nil)
    end)
  end

  with_mock("conform where an adapter declares them", function()
    local report = ah.conformance { only = "images", capabilities = { "images" },
      serve = function()
        local m = mock.start "return { { calls = { { name = 'draw', arguments = {} } } }, 'Nice.' }"
        return { model = "ollama/llava", base_url = m.url, close = function() m:close() end }
      end }
    assert.equal("passed  images in what the user says and in results\n"
      .. "1 passed, 0 failed, 0 skipped", tostring(report))
  end)
end)
