---@meta agenthost

-- Types of `require "agenthost"` for editors (LuaCATS, as lua-language-server reads them): set
-- "workspace.library" to the folder of this file. It is never run, and is no part of the library;
-- docs/lua.md says what everything means, and a spec compares the three.

---@class agenthost
---@field version string such as "0.1.0"
---@field null lightuserdata JSON null
---@field set_visibility_override ah.Type the event { path, visibility }
local ah = {}

-- -- runs and agents --------------------------------------------------------------------

---@alias ah.EventType
---| "start"
---| "tool_loop_iteration"
---| "request"
---| "cache_break"
---| "content"
---| "retry"
---| "fallback"
---| "rate_limit"
---| "usage"
---| "tool_calls"
---| "tool_started"
---| "tool_progress"
---| "policy"
---| "tool_invoked"
---| "ask"
---| "ask_closed"
---| "tools_injected"
---| "tool_provider_discovered"
---| "tools_removed"
---| "warning"
---| "done"

---@alias ah.ToolChangeMode how tools that come in mid-conversation reach the model
---| "reference"
---| "inline"
---| "additional_tools"
---| "search_pair"
---| "append"
---| "dispatcher"
---| "restart"

---@class ah.Event each has type, run and time; the rest is in docs/events.md
---@field type ah.EventType
---@field run integer
---@field parent? integer
---@field time number seconds since 1970
---@field [string] any

---@class ah.Options for the model; passed on as they are
---@field temperature? number
---@field max_tokens? integer
---@field top_p? number
---@field stop? string|string[]
---@field seed? integer
---@field tool_choice? "auto"|"none"|"required"|{ name: string }
---@field tool_choice_every_turn? boolean a forced choice holds for every request of a run
---@field reasoning? string effort, such as "low"
---@field cache? "5m"|"1h"|"off" of anthropic
---@field cache_key? string of openai
---@field strict? boolean tools, where the provider can be

---@class ah.HttpLimits seconds and bytes
---@field connect_timeout? number
---@field idle_timeout? number
---@field total_timeout? number
---@field max_header? number
---@field max_body? number

---@class ah.LoopDetector
---@field warn? integer
---@field stop? integer
---@field window? integer
---@field pattern_window? integer
---@field exempt? string[]

---@class ah.FallbackModel
---@field model string|ah.Adapter
---@field base_url? string
---@field api_key? string
---@field tool_change_mode? ah.ToolChangeMode

---@class ah.Fallback models that go on where the one before is overloaded or out
---@field [integer] string|ah.Adapter|ah.FallbackModel
---@field after_output? boolean even where a piece of the answer was shown

---@class ah.Config
---@field model? string|ah.Adapter "provider/model", or what ah.scripted returns
---@field system? string
---@field prompt? ah.Prompt
---@field params? table<string, any> of the prompt, and for `setup`
---@field overrides? table|string or the file they are in
---@field output? table|string|ah.Schema of the answer, which is then reply.value
---@field tools? ah.ToolList
---@field registry? ah.Registry
---@field executors? table<string, fun(args: table, ctx: ah.Ctx): any>
---@field brief? boolean
---@field keep_picked? boolean
---@field messages? ah.Message[]
---@field options? ah.Options
---@field base_url? string
---@field api_key? string
---@field tool_change_mode? ah.ToolChangeMode the model's own when absent
---@field stream? boolean
---@field http? ah.HttpLimits
---@field on? fun(event: ah.Event)|table<ah.EventType, fun(event: ah.Event)>
---@field log? fun(level: string, line: string)
---@field max_iterations? integer
---@field on_max? "error"|"answer"
---@field on_empty? "answer"|"retry"|"error"
---@field on_unknown_tool? "answer"|"throw"
---@field strategies? ah.Strategy[]
---@field max_tools? integer
---@field on_conflict? "skip"|"replace"|"error"
---@field on_drift? "tell"|"refuse"
---@field hint? boolean
---@field max_restarts? integer
---@field discover? boolean|{ keep: boolean? }
---@field max_depth? integer
---@field policies? ah.Policy[]
---@field approve? fun(call: ah.Asked): boolean?, (table|string)?
---@field asks? ah.Front
---@field feedback? ah.Feedback[]
---@field guards? ah.Guards
---@field checks? (fun(answer: ah.Answer): string?)[]
---@field budget? ah.Budget|ah.BudgetLimits
---@field timeout? number seconds
---@field deadline? number by ah.now()
---@field retries? integer
---@field fallback? ah.Fallback
---@field loop_detector? ah.LoopDetector|false
---@field [integer] ah.Section
---@field session? ah.Session
---@field resources? table<string|ah.Type, any>
---@field setup? fun(conversation: ah.Conversation): nil?, any before the first run; may wait

---@class ah.Image of ah.image: either mime and data, or url
---@field type "image"
---@field mime? string
---@field data? string its bytes
---@field url? string

---@alias ah.Parts (string|ah.Image)[] what a user says with images in it

---An image from a file, from its bytes, or at an address.
---@param from string|{ data: string?, mime: string?, url: string? }
---@return ah.Image?
---@return ah.Error? err
function ah.image(from) end

---@class ah.Request: ah.Config with the user's text behind the sections in the array part
---@field [integer] ah.Section|string|ah.Parts

---@class ah.Message
---@field role "system"|"user"|"assistant"|"tool"
---@field content? string|(string|ah.Image|{ type: string, text: string? })[]
---@field tool_calls? { id: string, name: string, arguments: string }[]
---@field tool_call_id? string
---@field name? string
---@field success? boolean
---@field timestamp? number seconds since 1970

---@class ah.Usage tokens
---@field input integer
---@field cached_read integer
---@field cached_write integer
---@field output integer
---@field reasoning integer
---@field known boolean
---@field cost? number US dollars

---@class ah.Reply prints as its text
---@field text string
---@field value? any with `output`
---@field messages ah.Message[]
---@field iterations integer
---@field rounds integer
---@field tool_calls integer
---@field all_tool_calls { id: string, name: string, arguments: string }[]
---@field injected_tools string[]
---@field removed_tools string[]
---@field usage ah.Usage
---@field stop ah.Stop|"tool"
---@field transcript fun(self: ah.Reply): string

---@alias ah.RunWith { params?: table }

---@class ah.Open another conversation of an agent
---@field id? string 1 to 200 bytes
---@field params? table<string, any> in place of the definition's
---@field session? ah.Session in place of one of its own
---@field resources? table<string|ah.Type, any> beside the definition's
---@field messages? ah.Message[] in place of the definition's

---@class ah.Conversation what `setup` is given
---@field id string
---@field session ah.Session
---@field resources ah.Resources more are bound by assignment
---@field params table<string, any>
---@field add_tools fun(self: ah.Conversation, tools: ah.Tool|ah.Tool[])
---@field set_system fun(self: ah.Conversation, text: string)

---@class ah.Agent a conversation
---@field run fun(self: ah.Agent, text?: string|ah.Parts, with?: ah.RunWith): ah.Reply?, ah.Error?
---@field send fun(self: ah.Agent, text: string|ah.Parts): true?, ah.Error?
---@field add_tools fun(self: ah.Agent, tools: ah.Tool|ah.ToolList)
---@field remove_tools fun(self: ah.Agent, tools: string|(string|ah.Tool)[])
---@field save fun(self: ah.Agent, path: string): true?, ah.Error?
---@field fork fun(self: ah.Agent): ah.Agent
---@field open fun(self: ah.Agent, with?: ah.Open): ah.Agent?, ah.Error?
---@field use fun(self: ah.Agent, model: string|ah.Adapter|table): ah.Agent?, ah.Error?
---@field on_ask fun(self: ah.Agent, front: ah.Front)
---@field respond fun(self: ah.Agent, id: string, value: any): true?, ah.Error?
---@field cancel fun(self: ah.Agent)
---@field close fun(self: ah.Agent)
---@field transcript fun(self: ah.Agent): string

---Runs until the model answers without calling a tool.
---@param request ah.Request
---@return ah.Reply? reply
---@return ah.Error? err
function ah.run(request) end

---The same as a conversation that goes on.
---@param config ah.Config
---@return ah.Agent? agent
---@return ah.Error? err
function ah.agent(config) end

---@class ah.Capabilities
---@field provider string
---@field model string
---@field supports_dynamic_tools boolean
---@field tool_change_mode ah.ToolChangeMode
---@field native_output boolean
---@field reasoning_back boolean
---@field tool_search "provider"|"here"
---@field images boolean
---@field strict_tools boolean
---@field context_window? integer tokens
---@field max_output? integer tokens
---@field prices? ah.ModelPrices
---@field efforts? string[]
---@field known? ah.ModelKnown where that comes from; absent of models that scripts play

---@class ah.ModelPrices US dollars for a million tokens
---@field input? number
---@field cached_read? number
---@field cached_write? number
---@field output? number

---@class ah.ModelKnown
---@field abilities ah.ModelSource
---@field figures ah.ModelSource
---@field name ah.ModelSource
---@field learned? table<string, boolean|string> what a server has refused

---@class ah.ModelSource
---@field from "table"|"newest"|"alias"|"settings"|"default"
---@field family? string
---@field since? string
---@field source? string
---@field date? string

---What is known of a model: wins over the table of models.
---@class ah.ModelRow
---@field model? string "provider/model", where the key is not that
---@field like? string another model, whose row counts
---@field context_window? integer
---@field max_output? integer
---@field prices? ah.ModelPrices
---@field tool_changes? boolean
---@field tool_search? boolean
---@field strict_tools? boolean
---@field native_output? boolean
---@field reasoning? "none"|"budget"|"effort"
---@field efforts? string[]

---What the adapter of a model can do.
---@param model string|ah.Adapter
---@param given? { base_url?: string, api_key?: string }
---@return ah.Capabilities?
---@return ah.Error? err
function ah.capabilities(model, given) end

---Gives models names of one's own, for this host, and says what is known of them:
---`ah.alias { fast = "groq/...", tuned = { model = "openai/ft:...", like = "gpt-6.1-sol" } }`.
---@param names table<string, string|ah.ModelRow>
function ah.alias(names) end

---An agent whose conversation goes on from a file of agent:save.
---@param path string
---@param config? ah.Config
---@return ah.Agent? agent
---@return ah.Error? err
function ah.load(path, config) end

-- -- what looks on, decides and limits --------------------------------------------------

---@class ah.Answered a call that was answered earlier
---@field name string
---@field arguments? table
---@field success boolean

---@class ah.Call what a policy looks at
---@field name string
---@field id string
---@field parent_call? string
---@field arguments? table
---@field annotations ah.Annotations of its tool
---@field version? string of its tool
---@field raw_arguments string as the model wrote them
---@field tools ah.Tool[]
---@field calls ah.Answered[]
---@field iteration integer
---@field run integer
---@field history ah.Message[]

---@class ah.Outcome what a strategy looks at, and what it may do
---@field name string
---@field id string
---@field parent_call? string
---@field arguments? table
---@field raw_arguments string as the model wrote them
---@field result? string
---@field value? any
---@field success boolean
---@field annotations ah.Annotations of its tool
---@field version? string of its tool
---@field tools ah.Tool[]
---@field calls ah.Answered[]
---@field iteration integer
---@field run integer
---@field history ah.Message[]
---@field state any kept from call to call; a copy, and it can be set
---@field add fun(self: ah.Outcome, tools: ah.Tool|ah.Tool[])
---@field replace fun(self: ah.Outcome, tools: ah.Tool|ah.Tool[])
---@field remove fun(self: ah.Outcome, tools: string|(string|ah.Tool)[])
---@field note fun(self: ah.Outcome, text: string)
---@field prompt fun(self: ah.Outcome, text: string)

---@alias ah.Changes ah.Tool|ah.Tool[]|nil

---@class ah.StrategyObject
---@field name? string
---@field tools? ah.Tool[] declared at the start
---@field later? ah.Tool[] that may come: a loaded conversation binds them again
---@field describe? table<string, string> by tool: words behind its description
---@field before? fun(self: table, m: ah.Outcome): string? the result, in the handler's place
---@field after? fun(self: table, m: ah.Outcome): ah.Changes

---@alias ah.Strategy fun(m: ah.Outcome): ah.Changes|ah.StrategyObject

---@alias ah.Verdict nil|"allow"|"deny"|"ask"|"rewrite"
---@alias ah.ResultVerdict nil|"keep"|"replace"|"redact"|"block"
---@alias ah.SeenResult { success: boolean, content: string, value: any }

---@class ah.PolicyObject
---@field name? string
---@field before? fun(call: ah.Call): ah.Verdict, (string|table)?
---@field after? fun(call: ah.Call, result: ah.SeenResult): ah.ResultVerdict, any
---@field shadow? boolean it is told of, and not obeyed

---@alias ah.Policy fun(call: ah.Call): ah.Verdict, (string|table)?|ah.PolicyObject

---@alias ah.Guard fun(text: string, value: any): (boolean|string)?, string?

---@class ah.Guards
---@field input? ah.Guard|ah.Guard[]
---@field output? ah.Guard|ah.Guard[]

---@class ah.Asked what `approve` decides on
---@field id string
---@field name string
---@field arguments table
---@field parent_call? string
---@field reason string
---@field run integer

---@class ah.AskedCall the call that waits for a response
---@field id string
---@field name string
---@field arguments table
---@field parent_call? string

---@class ah.Ask what a person is to respond to
---@field id string
---@field kind "approval"|"question"
---@field question string
---@field schema table|boolean
---@field default? any
---@field timeout? number seconds
---@field secret? boolean
---@field call ah.AskedCall
---@field run integer
---@field respond fun(self: ah.Ask, value: any, more?: any): true?, ah.Error?

---@alias ah.Front fun(ask: ah.Ask): any, any

---@class ah.AskConfig
---@field question string
---@field schema? table|string|ah.Schema of the response; a string without it
---@field params? table<string, any> the same in the short form
---@field default? any
---@field timeout? number seconds
---@field secret? boolean

---@class ah.Answer what a check looks at
---@field text string
---@field value any where the run has `output`
---@field reply ah.Reply so far
---@field run integer
---@field iteration integer

---@class ah.Feedback
---@field every? integer calls
---@field seconds? number
---@field text fun(run: { calls: integer, iteration: integer, run: integer }): string?

---@class ah.Price US dollars for a million tokens
---@field input? number
---@field output? number
---@field cached_read? number
---@field cached_write? number

---@class ah.BudgetLimits
---@field requests? integer
---@field tool_calls? integer
---@field input_tokens? integer
---@field output_tokens? integer
---@field total_tokens? integer
---@field cost? number US dollars
---@field prices? table<string, ah.Price>

---@class ah.Budget
---@field used fun(self: ah.Budget): table
---@field remaining fun(self: ah.Budget): table

---What runs may use, shared by those that are given it.
---@param limits ah.BudgetLimits
---@return ah.Budget
function ah.budget(limits) end

ah.policies = {}

---@param rule ah.Annotations at least one
---@return ah.BeforeObject
function ah.policies.ask(rule) end

---@param rule ah.Annotations at least one
---@return ah.BeforeObject
function ah.policies.deny(rule) end

---@class ah.GateConfig
---@field policies? ah.Policy[]
---@field approve? fun(call: ah.Asked): boolean?, (table|string)?

---@param config ah.GateConfig
function ah.gate(config) end

---@param rule { tool: string|string[], after: string|string[] }
---@return ah.BeforeObject
function ah.policies.requires(rule) end

---@class ah.ReadBeforeWrite
---@field read string|string[] tools
---@field write string|string[] tools
---@field argument? string "path"
---@field creates? fun(value: any): boolean

---@param rule ah.ReadBeforeWrite
---@return ah.BeforeObject
function ah.policies.read_before_write(rule) end

---Counters of this host, which only grow.
---@return table<string, integer>
function ah.metrics() end

-- -- prompts ------------------------------------------------------------------------------

---@class ah.SectionConfig with its children in the array part
---@field key? string
---@field title? string
---@field template? string
---@field body? string another name for template
---@field params? table<string, any> short form
---@field schema? table|string|ah.Schema
---@field enabled? boolean|fun(params: table): boolean
---@field visibility? "full"|"summary"|fun(params: table): "full"|"summary"
---@field summary? string
---@field tools? ah.Tool[]
---@field children? ah.Section[]
---@field accepts_overrides? boolean
---@field [integer] ah.Section

---@class ah.Section
---@field key string
---@field title? string
---@field template? string
---@field summary? string
---@field tools ah.Tool[]
---@field children ah.Section[]

---@param config ah.SectionConfig
---@return ah.Section
function ah.section(config) end

---@class ah.ToolsSectionConfig: ah.SectionConfig
---@field description? string its text

---The same, with its text called description.
---@param config ah.ToolsSectionConfig
---@return ah.Section
function ah.tools_section(config) end

---@class ah.PromptConfig with its sections in the array part
---@field key? string
---@field name? string another name for key
---@field ns? string
---@field sections? ah.Section[]
---@field output? table|string|ah.Schema
---@field resources? any
---@field overrides? table|string
---@field [integer] ah.Section

---@class ah.Rendered prints as its text
---@field text string
---@field tools ah.Tool[]
---@field summarized string[]
---@field output? ah.Schema

---@alias ah.Hashes table<string, string>

---@class ah.Prompt
---@field render fun(self: ah.Prompt, params?: table): ah.Rendered
---@field tools fun(self: ah.Prompt, params?: table): ah.Tool[]
---@field section fun(self: ah.Prompt, path: string): ah.Section?
---@field hashes fun(self: ah.Prompt): { sections: ah.Hashes, tools: ah.Hashes }
---@field id string
---@field output? ah.Schema
---@field resources any

---@param config ah.PromptConfig
---@return ah.Prompt
function ah.prompt(config) end

-- -- tools ----------------------------------------------------------------------------------

---@class ah.Ctx what a handler may know and do
---@field call_id string
---@field tool_name string
---@field run integer
---@field deadline number? seconds left
---@field calls ah.AnsweredCall[] of the conversation so far
---@field coerced string which arguments were taken as something else
---@field prompt? ah.Prompt of the run
---@field session ah.Session
---@field rendered_prompt? ah.Rendered
---@field adapter ah.CtxAdapter
---@field budget_tracker? ah.Budget
---@field resources ah.Resources
---@field filesystem? ah.Filesystem
---@field ask fun(self: ah.Ctx, ask: ah.AskConfig): any, ah.Error?
---@field cancelled fun(self: ah.Ctx): boolean
---@field add_tools fun(self: ah.Ctx, tools: ah.Tool|ah.ToolList)
---@field remove_tools fun(self: ah.Ctx, tools: string|(string|ah.Tool)[])
---@field note fun(self: ah.Ctx, text: string)
---@field publish fun(self: ah.Ctx, value: table)
---@field progress fun(self: ah.Ctx, what: number|string, text?: string)
---@field enlist fun(self: ah.Ctx, object: table): table

---@class ah.AnsweredCall
---@field tool string
---@field arguments? table
---@field success boolean

---@class ah.CtxAdapter
---@field provider string
---@field model string
---@field tool_change_mode string
---@field supports_dynamic_tools boolean

---@class ah.ToolConfig
---@field name string 1 to 64 of a-z, 0-9, _ and -
---@field description string 1 to 200 ASCII characters
---@field full_description? string
---@field params? table<string, any> short form
---@field schema? table|string|ah.Schema JSON Schema; not beside params
---@field result? table|string|ah.Schema
---@field examples? ah.Example[]
---@field handler? fun(args: table, ctx: ah.Ctx): any, string?
---@field parallel? boolean
---@field timeout? number seconds
---@field memory? number bytes
---@field coerce? boolean
---@field strict? boolean
---@field return_direct? boolean its result is the run's answer
---@field max_result? integer bytes
---@field accepts_overrides? boolean
---@field render? fun(value: any): string
---@field annotations? ah.Annotations
---@field version? string 1 to 64 bytes

---What a tool does, for policies; what is left out is not said.
---@class ah.Annotations
---@field read_only? boolean
---@field destructive? boolean
---@field idempotent? boolean
---@field open_world? boolean
---@field untrusted? boolean

---@class ah.Example
---@field description? string
---@field input? table
---@field output? any

---@class ah.Tool
---@field name string
---@field description string the full one, where it was given
---@field parameters table as a model is told: JSON Schema
---@field brief string
---@field full_description? string
---@field spec { name: string, description: string, parameters: table }
---@field params table JSON Schema
---@field result? table JSON Schema
---@field params_type? string
---@field result_type? string
---@field handler? fun(args: table, ctx: ah.Ctx): any, string?
---@field render? fun(value: any): string
---@field examples ah.Example[]
---@field annotations ah.Annotations
---@field version? string
---@field parallel boolean
---@field timeout? number
---@field memory integer
---@field max_result integer
---@field coerce boolean
---@field strict? boolean
---@field return_direct boolean
---@field accepts_overrides boolean

---@class ah.ResultConfig
---@field message? string
---@field value? any
---@field payload? any another name of `value`
---@field success? boolean
---@field exclude_value_from_context? boolean

---@class ah.Result what a handler may return

---Declares a tool.
---@param config ah.ToolConfig
---@return ah.Tool
function ah.tool(config) end

---A tool of the C program around the script.
---@param name string
---@return ah.Tool
function ah.host_tool(name) end

---A value, and words about it.
---@param value? any
---@param message? string
---@return ah.Result
function ah.ok(value, message) end

---A failure, in words for the model.
---@param message string
---@return ah.Result
function ah.fail(message) end

---@param config ah.ResultConfig
---@return ah.Result
function ah.result(config) end

-- -- entities ---------------------------------------------------------------------------------

---@class ah.EntityConfig
---@field name? string
---@field prefix? string of the tools' names
---@field id? string|fun(self: table): string|number a field, a method, or a function
---@field fields? string[] what a model sees
---@field stateless? boolean
---@field find? fun(id: string): table? an instance, or a plain table that becomes one

---@class ah.MethodConfig also has the fields of ah.ToolConfig about parameters, results and limits
---@field name? string
---@field method? string of the class, in place of a handler
---@field description string
---@field handler? fun(self: table, args: table, ctx: ah.Ctx?): any, string?
---@field stateless? boolean
---@field [string] any

---@class ah.Entity a class: calling it makes the table an instance
---@field name string
---@field prefix string
---@field tool fun(self: ah.Entity, config: ah.MethodConfig): ah.Entity
---@field [string] any methods and fields of the instances
---@overload fun(data: table?): table?

---@param config ah.EntityConfig
---@return ah.Entity
function ah.entity(config) end

---Is it an instance with tools?
---@param value any
---@return boolean
function ah.is_provider(value) end

---@param instance table
---@return { name: string, description: string, params: table, method: string }[]
function ah.tools_of(instance) end

---Withdraws the tools of an entity; how many there were.
---@param instance table
---@return integer
function ah.retract(instance) end

-- -- errors -----------------------------------------------------------------------------------

---@alias ah.Code
---| "prompt_validation"
---| "prompt_render"
---| "prompt_evaluation"
---| "tool_validation"
---| "tool_not_found"
---| "max_iterations_exceeded"
---| "invalid_tool_provider"
---| "visibility_expansion_required"
---| "waiting"
---| "deadline_exceeded"
---| "budget_exceeded"
---| "context_full"
---| "loop_detected"
---| "guard_tripped"
---| "provider"
---| "http"
---| "cancelled"
---| "usage"
---| "internal"

---@alias ah.Stop
---| "end"
---| "tool_calls"
---| "length"
---| "stop_sequence"
---| "content_filter"
---| "refusal"
---| "context_full"

---@class ah.Failure of a model, in place of an answer
---@field message string
---@field code? "context_full" else it is `provider`
---@field status? integer of HTTP
---@field retryable? boolean
---@field retry_after? number seconds
---@field window? integer with `context_full`: tokens that the model takes
---@field used? integer with `context_full`: tokens of the conversation

---@class ah.Error prints as "code: message"
---@field code ah.Code
---@field message string
---@field is fun(self: ah.Error, code: ah.Code): boolean
---@field phase? "request"|"tool"|"response"
---@field retryable? boolean
---@field status? integer of HTTP
---@field reply? ah.Reply what there was until then
---@field max_iterations? integer
---@field window? integer with `context_full`: tokens that the model takes
---@field used? integer with `context_full`: tokens of the conversation
---@field requested_tool? string
---@field available_tools? string[]
---@field section_path? string
---@field tool? string
---@field param? string
---@field params_type? string
---@field provider_class? string
---@field asks? string[] with `waiting`: their ids
---@field reason? string with `http`: refused, dns, tls, timeout_connect, ... (docs/lua.md)
---@field requested_overrides? table<string, "full"|"summary"> with `visibility_expansion_required`
---@field section_keys? string[] likewise

---An error object to raise or return.
---@param what string|{ code: ah.Code?, message: string, [string]: any }
---@return ah.Error
function ah.error(what) end

-- -- models for tests --------------------------------------------------------------------------

---@class ah.Adapter: ah.Capabilities a model that is no name
---@field done fun() raises unless every turn was taken
---@field requests fun(): (table|false)[]

---@class ah.Expect what a request must hold
---@field user? string
---@field system? string
---@field tools? string[]
---@field result? string
---@field model? string
---@field calls? ah.TestCall[]

---@class ah.TestCall what it leaves out may be anything
---@field name string
---@field arguments? any
---@field result? string
---@field success? boolean

---@class ah.ScriptedCall
---@field name string
---@field arguments? table|string
---@field id? string
---@field returns? any in place of what the handler gives; a function(args, ctx) in its place
---@field wrong? boolean

---@class ah.Turn
---@field text? string|string[]
---@field calls? ah.ScriptedCall[]
---@field refusal? string
---@field stop? string
---@field usage? table<string, number>
---@field delay? number seconds
---@field cut? boolean
---@field fail? ah.Failure
---@field raw? string
---@field expect? ah.Expect
---@field check? fun(request: table): boolean?, string?

---@alias ah.Answer string|ah.Turn|fun(request: table): string|ah.Turn

---A model that says what a test tells it to (docs/scripted.md).
---@param turns ah.Answer[]|{ rules: ah.Turn[] }|fun(request: table): ah.Answer
---@return ah.Adapter
function ah.scripted(turns) end

---What an adapter writes its answer to (docs/adapters.md).
---@class ah.Out
---@field text fun(self: ah.Out, text: string)
---@field call fun(self: ah.Out, call: ah.OutCall): integer
---@field arguments fun(self: ah.Out, call: integer, text: string)
---@field opaque fun(self: ah.Out, value: any)
---@field usage fun(self: ah.Out, usage: table<string, number>)
---@field refusal fun(self: ah.Out, text: string)
---@field stop fun(self: ah.Out, word: string)
---@field fail fun(self: ah.Out, failure: table)

---@class ah.OutCall
---@field name string
---@field id? string
---@field arguments? table|string

---@class ah.AdapterSpec
---@field name string provider/model
---@field answer fun(request: table, out: ah.Out): string?
---@field images? boolean
---@field tool_change_mode? ah.ToolChangeMode

---@param spec ah.AdapterSpec
---@return ah.Adapter
function ah.adapter(spec) end

---@class ah.ConformanceSpec
---@field serve fun(turns: ah.Answer[]): table
---@field capabilities? string[]
---@field only? string

---Tries an adapter (docs/adapters.md); the report prints as a line a case.
---@param spec ah.ConformanceSpec
---@return { passed: integer, failed: integer, skipped: integer, cases: table[] }
function ah.conformance(spec) end

-- -- schemas and JSON ----------------------------------------------------------------------------

---@class ah.SchemaOptions
---@field documents? table<string, any> schemas by URI
---@field formats? boolean
---@field unknown_keywords? "refuse"|"allow"

---@class ah.Schema
---@field validate fun(self: ah.Schema, value: any, extra?: string|table): true?, any, any
---@field validate_text fun(self: ah.Schema, text: string, extra?: string|table): true?, any, any
---@field text fun(self: ah.Schema): string

---@class ah.SchemaModule
---@overload fun(schema: any, options?: ah.SchemaOptions): ah.Schema
ah.schema = {}

---@param schema any a table, JSON text, true or false
---@param options? ah.SchemaOptions
---@return ah.Schema
function ah.schema.compile(schema, options) end

---@param params table<string, any>
---@return ah.Schema
function ah.schema.short(params) end

---@param schema any
---@return string
function ah.schema.describe(schema) end

ah.json = {}

---@param value any
---@return string
function ah.json.encode(value) end

---@param text string
---@return any value
---@return string? message
function ah.json.decode(text) end

ah.yaml = {}

---@param text string
---@return any value
---@return string? message
function ah.yaml.decode(text) end

---@generic T: table
---@param t T
---@return T
function ah.array(t) end

---@generic T: table
---@param t T
---@return T
function ah.object(t) end

-- -- bytes --------------------------------------------------------------------------------

---@alias ah.HashForm "hex"|"bytes"

---@param text string
---@param form? ah.HashForm hex in lower case, unless it says otherwise
---@return string
function ah.sha256(text, form) end

---With SHA-256.
---@param key string
---@param text string
---@param form? ah.HashForm
---@return string
function ah.hmac(key, text, form) end

---@param n integer 1 to 65536
---@return string bytes
function ah.random_bytes(n) end

ah.base64 = {}

---@param bytes string
---@return string
function ah.base64.encode(bytes) end

---@param text string
---@return string? bytes
---@return string? message
function ah.base64.decode(text) end

ah.base64url = {}

---@param bytes string
---@return string
function ah.base64url.encode(bytes) end

---@param text string
---@return string? bytes
---@return string? message
function ah.base64url.decode(text) end

-- -- files --------------------------------------------------------------------------------

---@class ah.WatchOptions
---@field recursive? boolean
---@field quiet? number seconds
---@field max? integer

---@class ah.Change
---@field kind "created"|"changed"|"removed"|"moved"|"overflow"
---@field path string
---@field from? string of what was moved

---@class ah.Watch
---@field next fun(self: ah.Watch, timeout?: number): ah.Change[]?
---@field changes fun(self: ah.Watch): fun(): ah.Change[]?
---@field close fun(self: ah.Watch)

---@param path string
---@param fn? fun(changes: ah.Change[])
---@param options? ah.WatchOptions
---@return ah.Watch?
---@return ah.Error?
function ah.watch(path, fn, options) end

-- -- types, sessions, resources ----------------------------------------------------------------

---@class ah.TypeConfig
---@field name string
---@field fields? table<string, any> short form
---@field schema? table|string|ah.Schema
---@field render? fun(value: table): string

---@class ah.Type calling it checks a table and makes an instance
---@field name string
---@field schema ah.Schema
---@overload fun(value: table): table

---@param config ah.TypeConfig
---@return ah.Type
function ah.type(config) end

---@class ah.SessionConfig
---@field types? ah.Type[]
---@field bus? ah.Dispatcher
---@field parent? ah.Session

---@class ah.SliceOptions
---@field policy? "state"|"log"
---@field keep? "append"|"latest"
---@field key? string

---@class ah.Slice
---@field latest fun(self: ah.Slice): table?
---@field all fun(self: ah.Slice): table[]
---@field len fun(self: ah.Slice): integer
---@field append fun(self: ah.Slice, value: table)
---@field replace fun(self: ah.Slice, list: table[])
---@field clear fun(self: ah.Slice)

---@class ah.View what a reducer speaks on
---@field latest fun(self: ah.View): table?
---@field all fun(self: ah.View): table[]
---@field len fun(self: ah.View): integer
---@field append fun(self: ah.View, value: table): ah.View
---@field extend fun(self: ah.View, list: table[]): ah.View
---@field replace fun(self: ah.View, list: table[]): ah.View
---@field clear fun(self: ah.View): ah.View

---@alias ah.Reducer fun(view: ah.View, event: table): ah.View?

---@class ah.Dispatcher
---@field publish fun(self: ah.Dispatcher, value: table)
---@field subscribe fun(self: ah.Dispatcher, type: string|ah.Type|nil, fn: function): fun()

---@class ah.Session
---@field register fun(self: ah.Session, type: ah.Type, options?: ah.SliceOptions): ah.Session
---@field reduce fun(self: ah.Session, slice: ah.Type, type: ah.Type, fn: ah.Reducer): ah.Session
---@field dispatch fun(self: ah.Session, value: table)
---@field snapshot fun(self: ah.Session): string
---@field restore fun(self: ah.Session, text: string): boolean?, ah.Error?
---@field child fun(self: ah.Session): ah.Session
---@field view fun(self: ah.Session): ah.Session
---@field parent? ah.Session
---@field dispatcher ah.Dispatcher
---@field [ah.Type|string] ah.Slice

---@param config? ah.SessionConfig
---@return ah.Session
function ah.session(config) end

---@class ah.PlanningTypes
---@field Plan ah.Type
---@field SetupPlan ah.Type
---@field AddStep ah.Type
---@field UpdateStep ah.Type

---@class ah.UnlockConfig
---@field tools string|ah.Tool|(string|ah.Tool)[]
---@field after? string|ah.Tool|(string|ah.Tool)[]
---@field on? fun(value: any, m: ah.Outcome): any
---@field when? fun(m: ah.Outcome): any
---@field any? boolean
---@field missing? string
---@field name? string

---@param config ah.UnlockConfig
---@return ah.StrategyObject
function ah.unlock(config) end

---@class ah.Phase
---@field name string
---@field tools string|ah.Tool|(string|ah.Tool)[]
---@field next? table<string, string>|fun(m: ah.Outcome): string?

---@class ah.PhasesConfig
---@field phases ah.Phase[]
---@field start? string
---@field hide? boolean
---@field name? string

---@param config ah.PhasesConfig
---@return ah.StrategyObject
function ah.phases(config) end

---@class ah.UnfoldConfig
---@field name string
---@field description string
---@field full_description? string
---@field tools? (ah.Tool|ah.StrategyObject)[]
---@field categories? table<string, (ah.Tool|ah.StrategyObject)[]>
---@field exclusive? boolean

---@param config ah.UnfoldConfig
---@return ah.StrategyObject
function ah.unfold(config) end

---@class ah.SearchConfig
---@field tools ah.ToolList
---@field max? integer
---@field by? "provider"|"here"
---@field method? "bm25"|"regex"
---@field name? string

---@param config ah.SearchConfig
---@return ah.StrategyObject
function ah.search(config) end

---@type ah.PlanningTypes
ah.planning = {}

---@class ah.Builtins : string[] names, and options by name
---@field read_file? { lines: integer?, max_bytes: integer? }
---@field write_file? { overwrite: boolean? }
---@field edit_file? {}
---@field list_files? { max: integer? }
---@field grep? { max: integer? }
---@field http_fetch? ah.HttpFetchOptions

---@class ah.HttpFetchOptions
---@field allow string[]|"public"
---@field private? string[] networks
---@field post? boolean
---@field timeout? number
---@field max_bytes? integer
---@field shown? integer
---@field redirects? integer

---@class ah.PlanningConfig
---@field session ah.Session
---@field strategy? "react"|"plan_act_reflect"|"goal_decompose_route_synthesise"
---@field accepts_overrides? boolean

---@param config ah.PlanningConfig
---@return ah.Section
function ah.planning_section(config) end

---@class ah.ResourceConfig
---@field provide fun(ctx: ah.Ctx): any
---@field scope? "singleton"|"tool_call"|"prototype"
---@field close? fun(value: any)

---@class ah.Resources
---@field get fun(self: ah.Resources, name: string|ah.Type): any
---@field get_optional fun(self: ah.Resources, name: string|ah.Type): any

---@param config ah.ResourceConfig
---@return table
function ah.resource(config) end

---@class ah.FilesystemConfig
---@field root? string a folder of the machine
---@field memory? boolean
---@field files? table<string, string>
---@field read_only? boolean
---@field allow? string[]
---@field sync? boolean
---@field max_file? number bytes
---@field max_total? number bytes
---@field max_files? number
---@field max_depth? integer

---@alias ah.Stat { type: "file"|"folder"|"link"|"other", size: integer?, modified: number? }
---@alias ah.ReadPart { offset: integer?, limit: integer? }
---@alias ah.DeleteOptions { recursive: boolean? }
---@alias ah.RenameOptions { replace: boolean? }
---@alias ah.ListOptions { max: integer? }
---@alias ah.GlobOptions { path: string?, max: integer? }
---@alias ah.Found { path: string, line: integer, text: string, beside: true?, count: integer? }
---@class ah.GrepOptions
---@field path? string
---@field glob? string
---@field plain? boolean
---@field ignore_case? boolean
---@field context? integer lines before and after, to 20
---@field count? boolean how many lines match, by file
---@field max? integer

---@class ah.LinesOptions
---@field first? integer default 1
---@field last? boolean the last ones
---@field max? integer default 1000
---@field max_bytes? integer
---@field width? integer bytes shown of a line

---@class ah.Line
---@field line integer
---@field text string
---@field size integer bytes of the whole line

---@class ah.Lines : ah.Line[]
---@field total integer the file's lines
---@field size integer its bytes
---@field binary? true
---@field crlf? true
---@field malformed? true
---@field truncated? true

---@class ah.Filesystem what fails gives nil and an error
---@field read fun(self, path: string, part?: ah.ReadPart): string?, table|ah.Error
---@field lines fun(self, path: string, options?: ah.LinesOptions): ah.Lines?, ah.Error?
---@field write fun(self, path: string, text: string): true?, ah.Error?
---@field append fun(self, path: string, text: string): true?, ah.Error?
---@field edit fun(self, path: string, old: string, new: string, o?: table): integer?, ah.Error?
---@field mkdir fun(self, path: string): true?, ah.Error?
---@field delete fun(self, path: string, options?: ah.DeleteOptions): true?, ah.Error?
---@field rename fun(self, from: string, to: string, options?: ah.RenameOptions): true?, ah.Error?
---@field stat fun(self, path: string): ah.Stat?, ah.Error?
---@field exists fun(self, path: string): boolean?, ah.Error?
---@field list fun(self, path?: string, options?: ah.ListOptions): table[]?, ah.Error?
---@field glob fun(self, pattern: string, options?: ah.GlobOptions): string[]?, ah.Error?
---@field grep fun(self, pattern: string, options?: ah.GrepOptions): ah.Found[]?, ah.Error?
---@field overlay fun(self): ah.Filesystem?, ah.Error?
---@field commit fun(self): true?, ah.Error?
---@field drop fun(self)
---@field close fun(self)

---Files under a root, or in memory, for tools.
---@param config ah.FilesystemConfig
---@return ah.Filesystem? fs
---@return ah.Error? err
function ah.filesystem(config) end

-- -- tools by name ------------------------------------------------------------------------

---@alias ah.ToolList (ah.Tool|ah.ToolGroup|string|ah.ToolList)[] strings are names of groups

---@class ah.ToolGroup
---@field name string
---@field tools ah.Tool[]

---@param config { name: string, tools: ah.ToolList }
---@return ah.ToolGroup
function ah.tool_group(config) end

---@alias ah.ToolSpec { name: string, description: string, parameters: table }

---@class ah.CallReply
---@field success boolean
---@field content string what a model is told
---@field value any
---@field code? ah.Code of a failed call

---@alias ah.Arguments table|string a table or JSON text

---@class ah.Called a call, as events have it
---@field name string
---@field arguments? ah.Arguments

---@class ah.Registry
---@field register fun(self, tool: ah.Tool): ah.Registry
---@field register_all fun(self, tools: ah.ToolList): ah.Registry
---@field register_all_builtin fun(self, which?: string|table): ah.Registry?, ah.Error?
---@field replace fun(self, tool: ah.Tool|ah.Tool[]): ah.Registry
---@field remove fun(self, name: string): boolean
---@field has fun(self, name: string): boolean
---@field get fun(self, name: string): ah.Tool?
---@field names fun(self): string[]
---@field execute fun(self, name: string|ah.Called, args?: ah.Arguments): ah.CallReply?, ah.Error?
---@field tools_for_llm fun(self): ah.ToolSpec[]
---@field pick fun(self, names: string|string[]): ah.Registry
---@field clear_picked fun(self): ah.Registry

---@param tools? ah.ToolList
---@return ah.Registry
function ah.registry(tools) end

-- -- HTTP, time, log ---------------------------------------------------------------------------

---@class ah.HttpRequest
---@field url string
---@field method? string
---@field headers? table<string, string>
---@field body? string
---@field timeout? number
---@field idle_timeout? number seconds without a byte
---@field max_body? number
---@field addresses? string[] "public" and networks: nothing else is connected to
---@field stream? "bytes"|"lines"|"sse" the body in pieces: the response is an ah.HttpStream
---@field max_piece? number bytes of one line or event of a stream

---@class ah.HttpResponse
---@field status integer
---@field headers table<string, string> names in lower case
---@field body string

---@class ah.HttpEvent
---@field event string "message" where the server names none
---@field data string
---@field id? string the last that came
---@field retry? integer ms, likewise

---@class ah.HttpStream
---@field status integer
---@field headers table<string, string> names in lower case
---@field err? ah.Error with which the pieces have ended
---@field last_event_id? string
---@field retry? integer ms
---@field read fun(self): (string|ah.HttpEvent)?, ah.Error? waits for the next piece
---@field pieces fun(self): fun(): (string|ah.HttpEvent)?, ah.Error?
---@field read_all fun(self): string?, ah.Error? the whole body, in place of pieces
---@field close fun(self)

---@param request ah.HttpRequest
---@return (ah.HttpResponse|ah.HttpStream)? response an ah.HttpStream where the request has `stream`
---@return ah.Error? err
function ah.http(request) end

---@class ah.ServerConfig
---@field on_request fun(request: ah.ServerRequest, response: ah.ServerResponse): any
---@field listen? string "127.0.0.1:0" where it is not said; port 0: any that is free
---@field hosts? string[] further names that the server answers to; "*": any
---@field origins? string[] whose pages may ask; "*": anybody's
---@field max_requests? integer handlers at work at once
---@field max_connections? integer
---@field max_header? integer bytes
---@field max_body? integer bytes
---@field header_timeout? number seconds
---@field body_timeout? number seconds
---@field idle_timeout? number seconds

---@class ah.ServerRequest
---@field method string
---@field path string
---@field query table<string, string[]>
---@field target string path and query as they came
---@field headers table<string, string[]> names in lower case
---@field body string
---@field remote string the client's address and port

---@class ah.ServerAnswer
---@field status? integer 200 where it is not said
---@field headers? table<string, string|string[]>
---@field body? string|table a table is sent as JSON

---@class ah.ServerHead
---@field status? integer
---@field length? integer bytes of the body, where they are known
---@field headers? table<string, string|string[]>

---@class ah.ServerEvent
---@field event? string
---@field data? string
---@field id? string
---@field retry? integer ms

---@class ah.ServerResponse
---@field begin fun(self, head?: ah.ServerHead): true?, ah.Error?
---@field write fun(self, piece: string): true?, ah.Error?
---@field event fun(self, event: ah.ServerEvent): true?, ah.Error?
---@field close fun(self)
---@field abort fun(self)

---@class ah.Server
---@field url string
---@field address? string nil once it is closed
---@field port? integer likewise
---@field wait fun(self, seconds?: number): boolean true once it is closed
---@field close fun(self)

---@param config ah.ServerConfig
---@return ah.Server? server
---@return ah.Error? err where it cannot be listened
function ah.serve(config) end

---@class ah.ProcessSandbox
---@field kind? "none"|"auto"|"require"|"landlock"|"bubblewrap"
---@field read? string[] folders that may be read, beside the system's and those in `write`
---@field write? string[] folders that may be written to
---@field network? boolean
---@field owners? boolean for root, with landlock: it keeps its rights over owners

---@class ah.ProcessConfig
---@field command string a name that is looked for in PATH, or a path
---@field args? string[]
---@field env? table<string, string|boolean> true: the host's value; false: none
---@field cwd? string
---@field sandbox? string|ah.ProcessSandbox
---@field timeout? number
---@field grace? number
---@field stdin? string|false all that it reads; false: nothing
---@field merge? boolean its errors go where its output goes
---@field max_errors? integer
---@field stall? number
---@field memory? integer
---@field file_size? integer
---@field cpu? integer
---@field processes? integer

---@class ah.LineOptions
---@field json? boolean
---@field max? integer
---@field timeout? number

---@class ah.ProcessEnd
---@field how "exited"|"stopped"|"timed_out"
---@field exit_code? integer
---@field signal? string
---@field seconds number
---@field cpu_seconds number
---@field memory? integer
---@field left? integer
---@field sandbox string

---@class ah.TimeOption
---@field timeout? number

---@class ah.WaitOptions: ah.TimeOption
---@field discard? boolean its output is thrown away meanwhile

---Of output: nil at the end; false and an error where a line cannot be given, or time is over.
---@class ah.Process
---@field write fun(self: ah.Process, text: string, options?: ah.TimeOption): true?, ah.Error?
---@field close_input fun(self: ah.Process)
---@field line fun(self: ah.Process, options?: ah.LineOptions): any, ah.Error?
---@field lines fun(self: ah.Process, options?: ah.LineOptions): fun(): any, ah.Error?
---@field read fun(self: ah.Process, n?: integer|"all", options?: ah.TimeOption): any, ah.Error?
---@field errors fun(self: ah.Process): string
---@field wait fun(self: ah.Process, options?: ah.WaitOptions): ah.ProcessEnd?, ah.Error?
---@field kill fun(self: ah.Process, signal?: string|integer): true?, ah.Error?
---@field close fun(self: ah.Process): ah.ProcessEnd?, ah.Error?

---A child process with streams.
---@param config ah.ProcessConfig
---@return ah.Process? process
---@return ah.Error? err
function ah.process(config) end

---The tools that come with agenthost, in a list. Names, and options by name; all that need no
---options where there is no argument.
---@param which? string|ah.Builtins
---@return ah.Tool[]? tools
---@return ah.Error? err
function ah.builtin(which) end

---@param seconds number
function ah.sleep(seconds) end

---@return number seconds
function ah.now() end

--- The script is a chat: Ctrl-C cancels the answer at work, and not the script.
function ah.interactive() end

---@class ah.TerminalOptions
---@field signals? boolean
---@field distinct? boolean
---@field escape? number
---@field max_paste? number

---@class ah.Key what terminal:key gives: a key, a paste or a resize
---@field key? string
---@field text? string
---@field ctrl? boolean
---@field alt? boolean
---@field shift? boolean
---@field super? boolean
---@field paste? string
---@field truncated? boolean
---@field resize? { columns: integer, rows: integer }

---@class ah.Styled a list of texts, and a style for all of them
---@field [integer] ah.Shown
---@field bold? boolean
---@field faint? boolean
---@field italic? boolean
---@field underline? boolean
---@field reverse? boolean
---@field color? string|integer
---@field background? string|integer

---@alias ah.Shown string|number|ah.Styled

---@class ah.Terminal
---@field key fun(self, seconds?: number): ah.Key?, ah.Error?
---@field size fun(self): integer, integer
---@field write fun(self, text: ah.Shown)
---@field print_above fun(self, text: ah.Shown)
---@field live fun(self, lines: ah.Shown[], cursor?: { line?: integer, column?: integer }): boolean
---@field suspend fun(self)
---@field close fun(self)

---The terminal of the command (docs/terminal.md).
---@overload fun(options?: ah.TerminalOptions): ah.Terminal?, ah.Error?
ah.terminal = {}

---@param text string
---@param column? integer where the text begins; 1
---@return integer columns
function ah.terminal.width(text, column) end

---@param level "debug"|"info"|"warning"|"error"
---@param message string
function ah.log(level, message) end

return ah
