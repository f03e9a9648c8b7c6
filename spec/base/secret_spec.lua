-- Secrets in JSON: the text without them is JSON, too.
local ah = require "agenthost"
local ahtest = require "ahtest"
local random = require "support.random"

local redacted = ahtest.redact_json

describe("a secret in JSON", function()
  it("is a mark in a string, and 0 for the number that has it", function()
    local key = "12345678"
    for text, found in pairs {
      ['{"12345678":"a12345678b"}'] = '{"[secret]":"a[secret]b"}',
      ["[12345678,-12345678,9123456780]"] = "[0,0,0]",
      ["[1.12345678e5,2,1e-12345678]"] = "[0,2,0]",
      ['{"n":12345678}'] = '{"n":0}',
      ["12345678"] = "0",
      ['"12345678"'] = '"[secret]"',
      [ [["{\\"n\\":12345678}"]] ] = [["{\\"n\\":[secret]}"]],
      ["[1234567,8]"] = "[1234567,8]" } do
      assert.equal(found, redacted(text, key))
    end
    assert.equal('["[secret]"]', redacted('["abc\\"defg"]', 'abc"defg'))
  end)

  it("is within one string: what only looks like it is left", function()
    assert.equal('["abc","def"]', redacted('["abc","def"]', 'abc","def'))
    assert.equal('{"a":12,"b":3}', redacted('{"a":12,"b":3}', '12,"b":3'))
  end)

  it("takes an escape with it of which it has a part", function()
    assert.equal([["[secret]"]], redacted([["abcdefg\n"]], "abcdefg\\"))
    assert.equal([["[secret]\""]], redacted([["abcdefg\\\""]], "abcdefg\\"))
    assert.equal([["[secret]"]], redacted([["\n1234567"]], "n1234567"))
  end)

  it("leaves JSON, whatever is around it", function()
    local pieces = { "\\", '"', "n", "\n", "12345678", "key-1234", "\\n", "\27", " ", "e", ",",
      "u0041", '{"a":12345678}' }
    local dice = random(7)
    for _ = 1, 3000 do
      local parts = {}
      for i = 1, dice(30) do
        parts[i] = pieces[dice(#pieces)]
      end
      local value = { table.concat(parts), 12345678, { [parts[1]] = -9123456781 } }
      for _, key in ipairs { "12345678", "key-1234", "nkey-123", 'a":12345', "5678\\\"key",
        "ey-1234\\" } do
        local text = redacted(ah.json.encode(value), key)
        assert.truthy(ah.json.decode(text), text)
      end
    end
  end)
end)
