-- Hashes against the published examples and for every length around the blocks; base64url with the
-- tests of base64_spec; random bytes.
local ah = require "agenthost"
local ahtest = require "ahtest"
local bytes_of = require "support.bytes_of"
local command = require "support.command"

local function unhex(digits)
  return (digits:gsub("%x%x", function(two) return string.char(tonumber(two, 16)) end))
end

local function refused(words, ...)
  local ok, err = pcall(...)
  assert.is_false(ok)
  assert.equal("usage", err.code)
  assert.is_truthy(err.message:find(words, 1, true), err.message)
  assert.is_truthy(err.message:find("^spec/base/bytes_spec.lua:%d+: "), err.message)
end

-- FIPS 180-2, appendix B, and NIST's examples of SHA-256.
local NIST = {
  { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
  { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
  { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
  { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
    .. "klmnopqrlmnopqrsmnopqrstnopqrstu",
    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
  { ("a"):rep(1000000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
  { "\xbd", "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b" },
  { "\xc9\x8c\x8e\x55", "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504" },
  { ("\0"):rep(55), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7" },
  { ("\0"):rep(56), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb" },
  { ("\0"):rep(57), "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785" },
  { ("\0"):rep(64), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b" },
  { ("\0"):rep(1000), "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53" },
}

-- RFC 4231, test cases 1 to 7; of the fifth only the first 128 bits are published.
local RFC4231 = {
  { ("\x0b"):rep(20), "Hi There",
    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
  { "Jefe", "what do ya want for nothing?",
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
  { ("\xaa"):rep(20), ("\xdd"):rep(50),
    "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
  { unhex "0102030405060708090a0b0c0d0e0f10111213141516171819", ("\xcd"):rep(50),
    "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
  { ("\x0c"):rep(20), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b" },
  { ("\xaa"):rep(131), "Test Using Larger Than Block-Size Key - Hash Key First",
    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
  { ("\xaa"):rep(131), "This is a test using a larger than block-size key and a larger than "
    .. "block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
    "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
}

describe("ah.sha256", function()
  it("is what NIST shows", function()
    for _, case in ipairs(NIST) do
      assert.equal(case[2], ah.sha256(case[1]))
      assert.equal(unhex(case[2]), ah.sha256(case[1], "bytes"))
      assert.equal(case[2], ah.sha256(case[1], "hex"))
    end
  end)

  -- Another implementation has computed the hash of all of them in a row.
  it("is right for every length around the blocks", function()
    local all = {}
    for n = 0, 300 do
      all[#all + 1] = ah.sha256(bytes_of(n))
    end
    assert.equal("89d6e007dee09572804afe6303a298c5cfb2f5d285e3c12b820565fcf07e75d2",
      ah.sha256(table.concat(all)))
  end)

  it("is the same of a text in any pieces", function()
    for n = 0, 200 do
      local text = bytes_of(n)
      local whole = ah.sha256(text, "bytes")
      for _, cut in ipairs { 0, 1, 55, 56, 63, 64, 65, 127, 128, 129 } do
        assert.equal(whole, ahtest.sha256(text:sub(1, cut), text:sub(cut + 1, cut + 3),
          text:sub(cut + 4)))
      end
      assert.equal(whole, ahtest.sha256(text:match((("(.?)"):rep(25)) .. "(.*)")))
    end
  end)

  it("takes strings alone, and the two forms", function()
    refused("ah.sha256: the text must be a string, found nothing", function() ah.sha256() end)
    refused("ah.sha256: the text must be a string, found number", function() ah.sha256(1) end)
    refused("ah.sha256: the text must be a string, found nil", function() ah.sha256(nil) end)
    refused('must be "hex" or "bytes", found "base64"', function() ah.sha256("", "base64") end)
    refused("the form must be a string, found boolean", function() ah.sha256("", true) end)
  end)
end)

describe("ah.hmac", function()
  it("is what RFC 4231 shows", function()
    for _, case in ipairs(RFC4231) do
      local hex = ah.hmac(case[1], case[2])
      assert.equal(case[3], hex:sub(1, #case[3]))
      assert.equal(64, #hex)
      assert.equal(unhex(hex), ah.hmac(case[1], case[2], "bytes"))
    end
  end)

  it("is right for every length of key and text around the blocks", function()
    local all = {}
    for n = 0, 300 do
      all[#all + 1] = ah.hmac(bytes_of(n), bytes_of(300 - n))
    end
    assert.equal("aeddfcbff665666995a652aa166c3878477b0e68e8423587126d0561aa0f8bca",
      ah.sha256(table.concat(all)))
  end)

  it("is the same of a text in any pieces", function()
    local text = bytes_of(200)
    for cut = 0, 200 do
      assert.equal(ah.hmac("key", text, "bytes"),
        ahtest.hmac("key", text:sub(1, cut), text:sub(cut + 1)))
    end
  end)

  it("takes strings alone", function()
    refused("ah.hmac: the key must be a string, found number", function() ah.hmac(1, "") end)
    refused("ah.hmac: the text must be a string, found nothing", function() ah.hmac "key" end)
    refused('ah.hmac: the form must be "hex" or', function() ah.hmac("key", "", "HEX") end)
  end)
end)

describe("a long hash", function()
  it("ends with the time of the call around it", function()
    local text, seen = ("x"):rep(64 << 20), nil
    local hash = ah.tool { name = "hash", description = "Hashes.", timeout = 0.05,
      handler = function()
        for _ = 1, 1000 do
          ah.sha256(text)
        end
      end }
    local began = os.clock()
    assert(ah.run { model = ah.scripted { { calls = { { name = "hash" } } }, "done" },
      tools = { hash }, log = function() end, "x",
      on = { tool_invoked = function(e) seen = e end } })
    assert.is_false(seen.success)
    assert.is_true(os.clock() - began < 60)
  end)
end)

describe("ah.base64url", function()
  local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
  local encode, decode = ah.base64url.encode, ah.base64url.decode

  it("is base64 with two letters changed and without padding", function()
    for n = 0, 70 do
      for _, bytes in ipairs { bytes_of(n), ("\255"):rep(n), ("\251\239\190"):rep(n) } do
        local text = encode(bytes)
        assert.equal((ah.base64.encode(bytes):gsub("[+/=]", { ["+"] = "-", ["/"] = "_",
          ["="] = "" })), text)
        assert.equal(bytes, decode(text))
        assert.equal(bytes, ah.base64.decode(ah.base64.encode(bytes)))
      end
    end
    assert.equal(ALPHABET, encode(decode(ALPHABET)))
  end)

  it("gives every byte back at every place of a group", function()
    for byte = 0, 255 do
      for place = 0, 2 do
        local bytes = ("x"):rep(place) .. string.char(byte)
        assert.equal(bytes, decode(encode(bytes)))
      end
    end
  end)

  it("refuses every other byte at every place, and says where", function()
    for byte = 0, 255 do
      local c = string.char(byte)
      if not ALPHABET:find(c, 1, true) then
        for place = 1, 8 do
          local bytes, message = decode(("A"):rep(place - 1) .. c .. ("A"):rep(8 - place))
          assert.is_nil(bytes)
          assert.is_truthy(message:find("^the text is not base64url: .*at byte " .. place .. "$"),
            message)
        end
      end
    end
  end)

  it("refuses padding, an end within a byte, and unused bits that are not 0", function()
    for text, words in pairs { ["Zg=="] = "padding, which it does not use, at byte 3",
      Zm9vZ = "an end within a byte, at byte 6", A = "an end within a byte, at byte 2",
      Zh = "unused bits that are not 0, at byte 2", Zm9 = "unused bits that are not 0, at byte 3",
      ["Zm 9v"] = "a byte outside of its alphabet, at byte 3",
      ["Zm9v\n"] = "a byte outside of its alphabet, at byte 5",
      ["+/+/"] = "a byte outside of its alphabet, at byte 1" } do
      local bytes, message = decode(text)
      assert.is_nil(bytes, text)
      assert.equal(words, message:sub(-#words))
    end
    assert.is_nil((ah.base64.decode "--__"))
    assert.is_nil((ah.base64.decode "Zg"))
    assert.is_nil((ah.base64.decode "Zg==Zg=="))
  end)

  it("has exactly one text for each bytes", function()
    for i = 0, 63 do
      local letter = ALPHABET:sub(i + 1, i + 1)
      assert.equal(i % 16 == 0, decode("A" .. letter) ~= nil, letter)
      assert.equal(i % 4 == 0, decode("AA" .. letter) ~= nil, letter)
    end
  end)

  it("takes strings alone", function()
    refused("ah.base64url.encode: the text must be a string, found number",
      function() encode(12) end)
    refused("ah.base64url.decode: the text must be a string, found table",
      function() decode {} end)
    refused("ah.base64.decode: the text must be a string, found nothing",
      function() ah.base64.decode() end)
  end)

  it("makes of PKCE's verifier the challenge that RFC 7636 shows", function()
    assert.equal("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
      encode(ah.sha256("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "bytes")))
  end)
end)

describe("ah.random_bytes", function()
  it("gives so many bytes, and never the same", function()
    local seen = {}
    for _ = 1, 100 do
      local bytes = ah.random_bytes(16)
      assert.equal(16, #bytes)
      assert.is_nil(seen[bytes])
      seen[bytes] = true
    end
    for _, n in ipairs { 1, 255, 256, 257, 65535, 65536, 3.0 } do
      assert.equal(n, #ah.random_bytes(n))
    end
  end)

  -- In 65536 bytes each value is expected 256 times; under 128 or over 400 times is very unlikely.
  it("gives all bytes about as often", function()
    local count, bytes = {}, ah.random_bytes(65536)
    for i = 1, #bytes do
      local byte = bytes:byte(i)
      count[byte] = (count[byte] or 0) + 1
    end
    for byte = 0, 255 do
      assert.is_true(count[byte] > 128 and count[byte] < 400, byte)
    end
  end)

  it("refuses what is no number of bytes", function()
    for _, n in ipairs { 0, -1, 65537, math.maxinteger, math.mininteger, 2.5, 0 / 0, 1e300 } do
      refused("ah.random_bytes: n must be a whole number from 1 to 65536, found ",
        function() ah.random_bytes(n) end)
    end
    refused("found no value", function() ah.random_bytes() end)
    refused("found string", function() ah.random_bytes "16" end)
  end)

  it("raises where the system has none", function()
    local asan = os.getenv "AGENTHOST_ASAN"
    local preload = (asan and asan .. ":" or "") .. command.BINARY:gsub("agenthost$", "")
      .. "older_kernel.so"
    local r = command.shell(("NO_RANDOM=1 LD_PRELOAD=%s $A -e %s"):format(command.quote(preload),
      command.quote 'print(pcall(require("agenthost").random_bytes, 16))'))
    command.tidy()
    assert.matches("^false\tinternal: %-e:1: the system gives no random bytes: [^\n]+\n$", r.out)
  end)
end)
