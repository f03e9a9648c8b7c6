--- agenthost models: prints the providers, the sources of their configuration, and what the adapter
-- of a model can do.
--
-- Only names of environment variables are printed, never their values, because an address may have
-- a password. No provider is asked, so its list of models is unknown here. Aliases of the host are
-- printed, too.
local ah, use = ...
local foreign, styled, text = use "foreign", use "styled", use "text"

-- Kept here, because CODE may remove them from the library's table.
local aliases, capabilities, providers = ah.aliases, ah.capabilities, ah.providers
local array, encode = ah.array, ah.json.encode

-- One model for each kind of adapter of a provider; a provider without a row has one kind only.
local EXAMPLES = {
  openai = { "gpt-6.1-sol", "responses/gpt-6.1-sol", "responses/gpt-5.4", "responses/gpt-4o" },
  anthropic = { "claude-opus-5-5", "claude-sonnet-5-5", "claude-sonnet-4-5", "claude-haiku-4-5",
    "claude-3-haiku-20240307" },
  gemini = { "gemini-3.8-flash", "gemini-2.5-flash" },
  moonshot = { "kimi-k3", "kimi-k2.6" },
}

--- Returns the first of these variables that is set.
local function first_set(names)
  for _, name in ipairs(names) do
    if (os.getenv(name) or "") ~= "" then
      return name
    end
  end
end

--- Returns a provider without secrets: `key` and `address` are names of variables, `url` is its own
-- address if no other is set.
local function configured(provider)
  local key, address = first_set(provider.key_env), first_set(provider.url_env)
  return { provider = provider.name, key = key, address = address,
    url = not address and provider.url or nil,
    key_variables = array(provider.key_env), address_variables = array(provider.url_env),
    ready = address ~= nil or provider.url ~= nil and (key ~= nil or provider.keyless) }
end

--- Returns the capabilities of the adapter of "provider/model"; needs no key.
local function capable(model)
  local told = assert(capabilities(model, { base_url = "http://localhost", api_key = "none" }))
  return { model = model, tool_change_mode = told.tool_change_mode,
    supports_dynamic_tools = told.supports_dynamic_tools, native_output = told.native_output,
    reasoning_back = told.reasoning_back, tool_search = told.tool_search, images = told.images,
    strict_tools = told.strict_tools, streaming = true, known = told.known,
    context_window = told.context_window, max_output = told.max_output, prices = told.prices,
    prices_of = told.prices_of, long_prices = told.long_prices, long_above = told.long_above,
    efforts = told.efforts and array(told.efforts) }
end

local function all()
  local list = array {}
  for i, provider in ipairs(providers()) do
    local one = configured(provider)
    one.models = array {}
    for n, name in ipairs(EXAMPLES[provider.name] or { "MODEL" }) do
      one.models[n] = capable(provider.name .. "/" .. name)
    end
    list[i] = one
  end
  return list
end

--- Returns a list of one provider: that of this model or alias.
local function only(named)
  local model = aliases()[named] or named
  local name = model:match("^[^/]*")
  for _, provider in ipairs(providers()) do
    if provider.name == name then
      local one = configured(provider)
      one.models = array { capable(model) }
      return array { one }
    end
  end
  local told = assert(capabilities(model)) -- demo, or an error with the known providers
  return array { { provider = told.provider, ready = true, key_variables = array {},
    address_variables = array {}, models = array { capable(model) } } }
end

-- -- printing -------------------------------------------------------------------------------

local function yes(is)
  return is and "yes" or "no"
end

--- Returns the variable of the key, "(VARIABLE)" if it must still be set, else "-": a local server
-- needs no key.
local function key_words(one)
  local needed = not one.ready and one.url and one.key_variables[1]
  return one.key or needed and "(" .. needed .. ")" or "-"
end

local function address_words(one)
  return one.address or one.url or (one.address_variables[1] and
    "(" .. one.address_variables[1] .. ")") or "-"
end

--- Returns rows of strings as lines of aligned columns.
local function columns(rows)
  local widths, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, #cell)
    end
  end
  for n, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = cell .. (" "):rep(widths[i] - #cell)
    end
    lines[n] = table.concat(cells, "  "):gsub(" +$", "") .. "\n"
  end
  return table.concat(lines)
end

--- Returns the lines of the aliases, in order; "" if there are none.
local function alias_lines()
  local rows = {}
  for name, model in pairs(aliases()) do
    rows[#rows + 1] = { name, model }
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  table.insert(rows, 1, { "alias", "model" })
  return rows[2] and "\n" .. columns(rows) or ""
end

-- Texts for the origin of a fact about a model.
local FROM = {
  table = "the table of models",
  newest = "newer than the table of models: treated as the newest of its family",
  alias = "ah.alias",
  settings = "the configuration",
  default = "unknown family: conservative defaults",
}

local function origin(said)
  local row = said.family and ("%s%s, %s, %s"):format(said.family,
    said.since and " from " .. said.since .. " on" or "", said.source, said.date)
  return FROM[said.from] .. (row and " (" .. row .. ")" or "")
end

local function price_words(p)
  return ("%g, cached %g, to the cache %g; output %g US dollars for a million tokens")
    :format(p.input, p.cached_read, p.cached_write, p.output)
end

--- Returns lines with the facts about one model that have no column, and with their origins.
local function known_lines(m)
  local rows = { { "what it can do", origin(m.known.abilities) } }
  if m.efforts then
    rows[#rows + 1] = { "efforts", table.concat(m.efforts, ", ") }
  end
  if m.context_window then
    rows[#rows + 1] = { "holds", ("%d tokens"):format(m.context_window) }
  end
  if m.max_output then
    rows[#rows + 1] = { "answers with", ("%d tokens at most"):format(m.max_output) }
  end
  if m.prices then
    rows[#rows + 1] = { "input costs", price_words(m.prices) }
    if m.long_prices then
      rows[#rows + 1] = { ("over %d"):format(m.long_above), price_words(m.long_prices) }
    end
    rows[#rows + 1] = { "prices of", m.prices_of or m.known.figures.from == "newest"
      and "an older model: the cost of answers is unknown" or "the program or the configuration" }
  end
  if #rows > 1 then
    rows[#rows + 1] = { "these figures", origin(m.known.figures) }
  end
  if m.known.learned then
    rows[#rows + 1] = { "learned", encode(m.known.learned) .. ": a server has refused it" }
  end
  return "\n" .. columns(rows)
end

local function text_of(list)
  local where = { { "provider", "ready", "key", "address" } }
  local can = { { "model", "tools come later", "are found", "strict", "schema", "images",
    "reasoning" } }
  for _, one in ipairs(list) do
    where[#where + 1] = { one.provider, yes(one.ready), key_words(one), address_words(one) }
    for _, m in ipairs(one.models) do
      can[#can + 1] = { m.model, m.tool_change_mode, m.tool_search, yes(m.strict_tools),
        yes(m.native_output), yes(m.images), yes(m.reasoning_back) }
    end
  end
  local table_of_where = columns(where)
  local legend = table_of_where:find("(", 1, true) and "\n(NAME): must be set first.\n" or ""
  return table_of_where .. legend .. "\n" .. columns(can)
end

local function told(flags, model)
  local list = model and only(model) or all()
  if flags.json then
    return text.json { providers = list, aliases = aliases() } .. "\n"
  end
  local one = model and list[1].models[1]
  return styled.harmless(text_of(list) .. (one and one.known and known_lines(one) or "")
    .. alias_lines())
end

-- Returns the names of models that are shown, and "provider/" for a provider without one.
local function names()
  local list = {}
  for _, provider in ipairs(providers()) do
    for _, name in ipairs(EXAMPLES[provider.name] or { "" }) do
      list[#list + 1] = provider.name .. "/" .. name
    end
  end
  return list
end

return {
  name = "models",
  doc = "show which providers have a key, and what models can do",
  usage = "[provider/model]",
  help = [[
Prints for each provider whether it can be used, the variable that has its key,
and its address or the variable that has it; then what the adapters can do, or
the adapter of the given model. Keys are never shown, and no provider is asked.
Aliases from ah.alias in CODE and from the configuration are listed. For a given
model it also prints the context window, the prices with their date (over N:
those of requests with more input tokens) and the source of each fact.
]],
  operand = { name = "model", most = 1, complete = "models" },
  flags = { "eval", "env-file", "json" },
  apart = true, -- for the code of --eval
  names = names,
  run = function(flags, words, out)
    if flags.eval then
      foreign.run_text("local ah = require 'agenthost' " .. flags.eval, "@-e")
    end
    out:write(told(flags, words[1]))
  end,
}
