-- Other libraries' names for our fields, members and functions: each is refused, in any case, with
-- a message that names ours.
local ah = require "agenthost"
local D = require "support.documents"

-- Returns the spellings of a word such as a_b_c.
local function forms(word)
  local camel = word:gsub("_(%w)", string.upper)
  return { word, camel, (camel:gsub("^%l", string.upper)), (word:upper()), (word:gsub("_", "-")) }
end

local function never() end

local FIELDS = {
  ["ah.run"] = { function(fields)
    fields.model = fields.model or D.model {}
    fields[1] = "Go."
    return ah.run(fields)
  end, {
    with_tool_provider_discovery = "discover", tool_provider_discovery_enabled = "discover",
    enable_tool_provider_discovery = "discover", injection_strategy = "strategies",
    tool_injection_strategy = "strategies", with_tool_group = "tools", tool_callbacks = "tools",
    initial_tool_callbacks = "tools", initial_messages = "messages",
    conversation_history = "messages", max_tool_iterations = "max_iterations",
    with_max_tool_iterations = "max_iterations", max_steps = "max_iterations",
    max_turns = "max_iterations", output_class = "output", response_format = "output",
    chat_options = "options", chat_model = "model", event_publisher = "on", on_content = "on",
    on_tool_calls = "on", tool_executors = "executors", with_registry = "registry",
    tool_registry = "registry", budget_tracker = "budget", instructions = "system",
    system_prompt = "system", max_tokens = "options", tool_choice = "options",
    idle_timeout = "http", total_tokens = "budget", prompt_template = "prompt",
    visibility_overrides = "session",
  } },
  ["ah.entity"] = { ah.entity, {
    instance_id_property = "id", instance_id = "id", class_name = "name", provider_class = "name",
    tool_prefix = "prefix",
  } },
  ["ah.tool"] = { function(fields)
    fields.name, fields.description = "t", "T."
    return ah.tool(fields)
  end, {
    parameters = "params", input_schema = "schema", params_type = "params", result_type = "result",
    execute = "handler", callback = "handler", brief = "description", full = "full_description",
  } },
  ["ah.section"] = { function(fields)
    fields.key = "a"
    return ah.section(fields)
  end, { is_enabled = "enabled", markdown = "template", open_sections = "visibility" } },
  ["ah.prompt"] = { ah.prompt, { namespace = "ns", children = "sections" } },
  ["ah.result"] = { ah.result, { is_error = "success",
    exclude_from_context = "exclude_value_from_context" } },
  ["ah.adapter"] = { function(fields)
    fields.name, fields.answer = "a/b", never
    return ah.adapter(fields)
  end, { supports_dynamic_tools = "tool_change_mode" } },
  ["ah.scripted"] = { ah.scripted, { supports_dynamic_tools = "tool_change_mode" } },
  ["ah.planning_section"] = { function(fields)
    fields.session = ah.session()
    return ah.planning_section(fields)
  end, { planning_strategy = "strategy" } },
}

describe("another library's word for a field", function()
  for what, case in pairs(FIELDS) do
    it(("of %s is refused in every case, with ours named"):format(what), function()
      for word, ours in pairs(case[2]) do
        for _, form in ipairs(forms(word)) do
          local err = D.raised(case[1], { [form] = true })
          assert.equal("usage", err.code, form)
          assert.truthy(err.message:find("unknown field '" .. form .. "'", 1, true), err.message)
          assert.truthy(err.message:find("'" .. ours .. "'", 1, true), form .. ": " .. err.message)
        end
      end
    end)
  end

  it("says where it stands, and under which name there", function()
    local err = D.raised(ah.run, { model = D.model {}, onContent = print, "Go." })
    assert.truthy(err.message:find("it belongs in 'on': on = { content = ... }", 1, true),
      err.message)
    err = D.raised(ah.run, { model = D.model {}, maxTokens = 5, "Go." })
    assert.truthy(err.message:find("options = { max_tokens = ... }", 1, true), err.message)
  end)

  it("that nobody has is refused with the fields there are, or the nearest", function()
    assert.matches("there are message, value", D.raised(ah.result, { zzz = 1 }).message)
    assert.matches("did you mean 'message'", D.raised(ah.result, { mesage = 1 }).message)
  end)
end)

describe("another library's word for a member", function()
  local function member(of, words)
    for word, ours in pairs(words) do
      for _, form in ipairs(forms(word)) do
        if not form:find "-" then
          local err = D.raised(function() return of[form] end)
          assert.truthy(err.message:find("'" .. ours .. "'", 1, true), form .. ": " .. err.message)
        end
      end
    end
  end

  it("of a reply is told in ours", function()
    member(D.run({ "Hello." }).reply, { content = "text", conversation_history = "messages",
      total_iterations = "iterations", total_usage = "usage", output = "value",
      finish_reason = "stop", injected_tool = "injected_tools" })
  end)

  it("of a registry is told in ours, and unknown ones raise", function()
    member(ah.registry {}, { get_tools_for_llm = "tools_for_llm",
      register_builtin = "register_all_builtin" })
    assert.matches("registry: unknown field 'no_such'", D.raised(function()
      return ah.registry {}.no_such
    end).message)
  end)

  it("of prompts, sections, rendered prompts and contexts is told in ours", function()
    local section = ah.section { key = "a", template = "A" }
    member(section, { markdown = "template" })
    member(ah.prompt { section }, { name = "id", key = "id", output_schema = "output" })
    member(ah.prompt({ section }):render(), { markdown = "text" })
    local ok, err
    D.run({ D.calls "look", "done" }, { tools = { D.tool("look", { handler = function(_, ctx)
      ok, err = pcall(function() return ctx.tool_call_id end)
    end }) } })
    assert.is_false(ok)
    assert.matches("did you mean 'call_id'", err.message)
  end)
end)

describe("another library's word for a function", function()
  it("is told in ours", function()
    for word, ours in pairs { tools_section = "ah.tools_section", text_section = "ah.section",
      markdown_section = "ah.section", prompt_template = "ah.prompt", tool_result = "ah.result",
      tool_provider = "ah.entity", tool_registry = "ah.registry",
        planning_tools_section = "ah.planning_section",
      chat_loop_with_tools = "ah.run", main_loop = "ah.run",
        tool_injection_strategy = "strategies" } do
      for _, form in ipairs(forms(word)) do
        if not rawget(ah, form) then
          local err = D.raised(function() return ah[form] end)
          assert.equal("usage", err.code)
          assert.truthy(err.message:find("agenthost has no '" .. form .. "'", 1, true), err.message)
          assert.truthy(err.message:find(ours, 1, true), err.message)
        end
      end
    end
  end)

  it("leaves other names of the module nil", function()
    assert.is_nil(ah.no_such_function)
    assert.is_nil(ah[1])
    assert.is_nil(ah[""])
    assert.is_nil(ah[true])
  end)
end)
