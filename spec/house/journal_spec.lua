-- docs/reference/journal.md against the library: the table of kinds is that of model/record.h, and
-- the table of members is that by which the fold reads records.
local ahtest = require "ahtest"
local markdown = require "support.markdown"

local PAGE = markdown.read "docs/reference/journal.md"

-- Returns the rows of a table whose first column names the kind only where it changes.
local function rows_of(heading)
  local rows, kind = {}, nil
  for _, row in ipairs(markdown.tables(markdown.section(PAGE, heading))[1]) do
    kind = row[1]:match "^`([%l_]+)`$" or kind
    rows[#rows + 1] = { kind = kind, table.unpack(row, 2) }
  end
  return rows
end

local function is_kept(row)
  return row[3] == "kept"
end

describe("docs/reference/journal.md", function()
  it("has each kind of record once, with its need and its invariant", function()
    local kinds, need = {}, { needed = true, informative = false }
    for _, row in ipairs(rows_of "## Kinds") do
      assert.is_nil(kinds[row.kind], row.kind)
      kinds[row.kind] = need[row[1]]
      assert(#row[2] > 0 and (#row[3] > 0 or row[2]:find "^reserved"), row.kind)
    end
    assert.same(ahtest.record_kinds(), kinds)
  end)

  it("has the members that the fold reads, with type and need", function()
    local page = {}
    for kind in pairs(ahtest.record_kinds()) do
      page[kind] = {}
    end
    for _, row in ipairs(rows_of "## Members") do
      for _, name in ipairs(is_kept(row) and {} or markdown.names(row[1])) do
        local type, absent = row[2]:match "^(%l+)(.*)$"
        table.insert(page[row.kind], { name = name, type = type,
          needed = absent ~= ", may be absent" })
      end
    end
    assert.same(ahtest.record_members(), page)
  end)

  it("gives each member a class, and a kind at most one kept member", function()
    local kept = {}
    for _, row in ipairs(rows_of "## Members") do
      assert(row[3] == "said" or is_kept(row), row.kind)
      if is_kept(row) then
        assert.is_nil(kept[row.kind])
        assert.matches("^%*%l+%*$", row[1])
        kept[row.kind] = true
      end
    end
    assert.same({ call_started = true, step = true, call_finished = true, settled = true,
      restoring = true, checkpoint = true, written = true, request = true, answer = true,
      ask = true }, kept)
  end)
end)
