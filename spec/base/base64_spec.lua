-- Base64 (src/base/base64.h): the standard's own examples, every length around the groups of three,
-- every byte and letter, and invalid texts. Images are in images_spec.
local ahtest = require "ahtest"
local bytes_of = require "support.bytes_of"
local put, take = ahtest.base64_put, ahtest.base64_take

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- RFC 4648, section 10.
local RFC = { [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v", foob = "Zm9vYg==",
  fooba = "Zm9vYmE=", foobar = "Zm9vYmFy" }

-- Encodes bit by bit, as the standard's section 4 describes it.
local function by_bits(bytes)
  local bits = bytes:gsub(".", function(c)
    local byte, eight = c:byte(), {}
    for i = 7, 0, -1 do
      eight[#eight + 1] = byte >> i & 1
    end
    return table.concat(eight)
  end)
  bits = bits .. ("0"):rep(-#bits % 6)
  local text = bits:gsub("......", function(six)
    local at = tonumber(six, 2) + 1
    return ALPHABET:sub(at, at)
  end)
  return text .. ("="):rep(-#text % 4)
end

local function round_trip(bytes)
  local back, size = take(put(bytes))
  assert.equal(bytes, back)
  assert.equal(#bytes, size)
end

describe("base64", function()
  it("is what RFC 4648 shows", function()
    for bytes, text in pairs(RFC) do
      assert.equal(text, put(bytes))
      assert.equal(bytes, (take(text)))
    end
  end)

  it("gives bytes of every length back", function()
    for n = 0, 70 do
      local bytes = bytes_of(n)
      local text = put(bytes)
      assert.equal(by_bits(bytes), text)
      assert.equal((n + 2) // 3 * 4, #text)
      round_trip(bytes)
      round_trip(("\0"):rep(n))
      round_trip(("\255"):rep(n))
    end
  end)

  it("gives every byte back at every place of a group", function()
    for byte = 0, 255 do
      for place = 0, 2 do
        round_trip(("x"):rep(place) .. string.char(byte))
      end
    end
  end)

  it("reads every letter of the alphabet, and writes it again", function()
    assert.equal(ALPHABET, put((take(ALPHABET))))
    for letter in ALPHABET:gmatch "." do
      assert.equal(letter:rep(4), put((take(letter:rep(4)))))
    end
  end)

  it("refuses every other byte at every place", function()
    for byte = 0, 255 do
      local c = string.char(byte)
      if not ALPHABET:find(c, 1, true) then
        for place = 1, 8 do
          local text = ("A"):rep(place - 1) .. c .. ("A"):rep(8 - place)
          assert.equal(c == "=" and place == 8, take(text) ~= nil, ("%q at %d"):format(c, place))
        end
      end
    end
  end)

  it("refuses every length that is no whole number of groups", function()
    for n = 1, 70 do
      assert.equal(n % 4 == 0, take(("A"):rep(n)) ~= nil, n)
    end
  end)

  it("takes padding at the end only, and two of it at most", function()
    for _, text in ipairs { "=", "==", "===", "====", "A===", "Zg=A", "=Zg=", "Zg==Zg==",
      "Zm8=Zm8=", "Zg", "Zm8", "Zg=", "Zg===", "Zm9v=", "Zm9v====", "Zg==\n", "Zm9v\r\n",
      " Zg==" } do
      assert.is_nil(take(text), text)
    end
  end)

  it("refuses unused bits that are not 0", function()
    for i = 0, 63 do
      local letter = ALPHABET:sub(i + 1, i + 1)
      assert.equal(i % 16 == 0, take("A" .. letter .. "==") ~= nil, letter)
      assert.equal(i % 4 == 0, take("AA" .. letter .. "=") ~= nil, letter)
    end
  end)

  it("knows no letters of the alphabet for addresses", function()
    assert.is_nil(take "--__")
    assert.is_truthy(take "++//")
  end)
end)
