---@meta agenthost

-- Types of `require "agenthost"` for editors (LuaCATS, as lua-language-server reads them): set
-- "workspace.library" to the folder of this file. It is never run, and is no part of the library;
-- docs/reference/lua.md says what everything means, and a spec compares the three.

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
---| "list_changed"
---| "dispatcher"
---| "restart"

---@class ah.Event each has type, run and time; the rest is in docs/reference/events.md
---@field type ah.EventType
---@field run integer
---@field parent? integer
---@field time number seconds since 1970
---@field [string] any

-- fields of ah.Options (make generate)
---@class ah.Options for the model; passed on as they are
---@field temperature? number
---@field max_tokens? integer of the answer
---@field top_p? number
---@field stop? string|string[] texts that end the answer
---@field seed? integer
---@field tool_choice? "auto"|"none"|"required"|{ name: string } left out where there are no tools
---a choice that is forced holds for every request of a run (default false), which then ends by a
---limit or by a tool
---@field tool_choice_every_turn? boolean
---effort, such as `"low"`; to Gemini before 3 as a number of tokens, to Ollama as `think` (`"true"`
---and `"none"` are yes and no)
---@field reasoning? string
---how long `anthropic` keeps what it has read (default `"5m"`); other providers cache by themselves
---@field cache? "5m"|"1h"|"off"
---@field cache_key? string `prompt_cache_key` of `openai`: the same for requests that begin alike
---@field strict? boolean the provider is to be strict with the tools, where it can (default false)
-- end of ah.Options

-- fields of ah.HttpLimits (make generate)
---@class ah.HttpLimits limits of a request
---@field connect_timeout? number seconds: until the connection stands, TLS included
---@field idle_timeout? number seconds: without a byte sent or received
---@field total_timeout? number seconds: for the whole request
---@field max_header? number bytes: of the response's headers
---@field max_body? number bytes: of the response's body
-- end of ah.HttpLimits

-- fields of ah.LoopDetector (make generate)
---@class ah.LoopDetector
---@field warn? integer the time from which on there is a warning
---@field stop? integer the time that ends the run
---@field window? integer the calls before it with which a call is compared; at least `stop` - 1
---the calls in which patterns are looked for; at least 3 * `stop` - 2
---@field pattern_window? integer
---tools whose calls are not counted, such as one that asks whether something is ready
---@field exempt? string[]
-- end of ah.LoopDetector

-- fields of ah.FallbackModel (make generate)
---@class ah.FallbackModel
---@field model string|ah.Adapter `provider/model`, or what `ah.scripted` returns
---@field base_url? string the server's address
---@field api_key? string
---@field tool_change_mode? ah.ToolChangeMode
-- end of ah.FallbackModel

-- fields of ah.Fallback (make generate)
---@class ah.Fallback models that go on where the one before is overloaded or out
---@field after_output? boolean even where a piece of the answer was shown
---@field [integer] string|ah.Adapter|ah.FallbackModel
-- end of ah.Fallback

-- fields of ah.Discover (make generate)
---@class ah.Discover of entities
---@field keep? boolean false: each run of an agent lets go of them when it ends
-- end of ah.Discover

-- fields of ah.Use (make generate)
---@class ah.Use: ah.Connection the model with which a conversation goes on
---@field model? string|ah.Adapter `provider/model`, or what `ah.scripted` returns
-- end of ah.Use

-- fields of ah.Connection (make generate)
---@class ah.Connection how a model is asked
---the server's address; the wire's own path is added to it, such as `/chat/completions`
---@field base_url? string
---@field api_key? string
---how tools that come in mid-conversation reach the model, see Models; not beside an adapter object
---@field tool_change_mode? ah.ToolChangeMode
---@field stream? boolean whether the answer is asked for piece by piece
---@field http? ah.HttpLimits limits of the requests
---@field options? ah.Options for the model, see below
-- end of ah.Connection

-- fields of ah.Config (make generate)
---@class ah.Config: ah.Connection
---@field model? string|ah.Adapter `provider/model`, or what `ah.scripted` returns; see Models
---@field system? string the system text
---made by `ah.prompt`: its text follows `system`, its tools follow `tools`; see prompts.md
---@field prompt? ah.Prompt
---the prompt's parameters, and what `setup` finds in `conversation.params`
---@field params? table<string, any>
---@field overrides? table|string of the prompt, or the file they are in; see prompts.md
---JSON Schema of the answer, which is then `reply.value`; see prompts.md
---@field output? table|string|ah.Schema
---made by `ah.tool`, each name once, or groups and their names; lists in the list are taken as
---their values; offered in this order
---@field tools? ah.ToolList
---@field registry? ah.Registry made by `ah.registry`: more tools, behind those of `tools`
---by name: `function(args, ctx)` for calls that no handler answers, see Executors
---@field executors? table<string, fun(args: table, ctx: ah.Ctx): any>
---tools are declared by their `description` alone, and the model picks those it wants to know in
---full
---@field brief? boolean
---@field keep_picked? boolean what it picked stays so after the run
---@field messages? ah.Message[] the conversation so far, see Messages
---observers, see events.md
---@field on? fun(event: ah.Event)|table<ah.EventType, fun(event: ah.Event)>
---`function(level, line)`: gets the records of this run, all levels. Where it fails, the log of the
---host is told once
---@field log? fun(level: string, line: string)
---iterations: answers of the model; the tools of the last one are still called
---@field max_iterations? integer
---after `max_iterations`: fail with `max_iterations_exceeded`, or ask once more without tools
---@field on_max? "error"|"answer"
---what becomes of an answer with neither calls nor text (white space is none): it stands; or the
---model is asked again; or the run fails
---@field on_empty? "answer"|"retry"|"error"
---a call of a tool that is not there gets an error result; or the run ends with `tool_not_found`
---@field on_unknown_tool? "answer"|"throw"
---see each call and say which tools come and go, see Tools that come and go
---@field strategies? ah.Strategy[]
---how many tools there may be; none are injected beyond so many (there is one warning at 64)
---@field max_tools? integer
---what becomes of a tool that is injected under a taken name: left out with a warning, put in its
---place, or the run ends with `prompt_validation`
---@field on_conflict? "skip"|"replace"|"error"
---what becomes of a tool that is defined otherwise than when the conversation was written;
---`"refuse"` for a tool that is `untrusted`, else `"tell"`
---@field on_drift? "tell"|"refuse"
---@field hint? boolean a line after the result names the tools that it brought
---how often injected tools may restart the model's session, where it cannot take them otherwise
---@field max_restarts? integer
---the methods of entities that tools return become tools; for the rest of the conversation; `{ keep
---= false }`: each run of an agent lets go of them when it ends
---@field discover? boolean|ah.Discover
---@field max_depth? integer how deep entities that come from entities may be and still bring tools
---@field policies? ah.Policy[] look at each call before its handler, see Policies
---decides on calls for which a policy asks; may wait
---@field approve? fun(call: ah.Asked): boolean?, (table|string)?
---`{ input = ..., output = ... }`: functions that look at what is said and at the answer, and may
---end the run
---@field guards? ah.Guards
---@field asks? ah.Front a front end: responds to asks, of handlers and for approvals
---@field feedback? ah.Feedback[] what the model is told every so many calls or seconds
---look at the final answer; may wait, and may let the model go on
---@field checks? (fun(answer: ah.Answer): string?)[]
---@field budget? ah.Budget|ah.BudgetLimits what it may use, see Budgets
---@field timeout? number seconds: that this run may take
---@field deadline? number when it must end, by the clock of `ah.now()`
---@field session? ah.Session made by `ah.session`: what its tools know and change
---what handlers find as `ctx.resources`, by name or type: see Resources
---@field resources? table<string|ah.Type, any>
---@field retries? integer how often one request is sent again after a failure that may pass
---@field fallback? ah.Fallback each goes on where the one before is overloaded or out: models.md
---`function(conversation)`: makes what belongs to one conversation, before its first run; may wait,
---see Setting up a conversation
---@field setup? fun(conversation: ah.Conversation): nil?, any
---what becomes of calls that a model makes again and again
---@field loop_detector? ah.LoopDetector|false
---@field [integer] ah.Section
-- end of ah.Config

---@class ah.Image of ah.image: either mime and data, or url
---@field type "image"
---@field mime? string
---@field data? string its bytes
---@field url? string

---@alias ah.Parts (string|ah.Image)[] what a user says with images in it

-- fields of ah.ImageConfig (make generate)
---@class ah.ImageConfig either `data` or `url`
---@field type? string of an image that is one already
---@field data? string its bytes
---@field mime? string `image/png`, `image/jpeg`, `image/gif` or `image/webp`
---@field url? string in place of its bytes: the provider fetches it
-- end of ah.ImageConfig

---An image from a file, from its bytes, or at an address.
---@param from string|ah.ImageConfig
---@return ah.Image?
---@return ah.Error? err
function ah.image(from) end

---@class ah.Request: ah.Config with the user's text behind the sections in the array part
---@field [integer] ah.Section|string|ah.Parts

-- fields of ah.MessageCall (make generate)
---@class ah.MessageCall
---@field id string by which its result names it
---@field name string of the tool
---@field arguments? string|table JSON text in what a run returns
-- end of ah.MessageCall

-- fields of ah.Message (make generate)
---@class ah.Message
---@field role "system"|"user"|"assistant"|"tool" who says it
---what is said; a list of parts where there is more than text
---@field content? string|(string|ah.Image|{ type: string, text: string? })[]
---@field tool_calls? ah.MessageCall[] of an assistant
---@field tool_call_id? string of a tool: the call whose result this is
---@field name? string likewise: the tool's
---@field success? boolean likewise: false where it failed
---@field timestamp? number seconds: since 1970
-- end of ah.Message

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

-- fields of ah.RunWith (make generate)
---@class ah.RunWith what `agent:run` is told beside the text
---@field params? table<string, any> of the prompt, from now on
-- end of ah.RunWith

-- fields of ah.Open (make generate)
---@class ah.Open another conversation of an agent
---@field id? string 1 to 200 bytes
---@field params? table<string, any> in place of the definition's
---@field session? ah.Session in place of one of its own
---@field resources? table<string|ah.Type, any> beside the definition's
---@field messages? ah.Message[] in place of the definition's
-- end of ah.Open

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
---@field use fun(self: ah.Agent, model: string|ah.Adapter|ah.Use): ah.Agent?, ah.Error?
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

---The facts of a model; they win over the table of models.
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

-- fields of ah.CapabilitiesOf (make generate)
---@class ah.CapabilitiesOf
---@field base_url? string the server's address
---@field api_key? string
-- end of ah.CapabilitiesOf

---Returns the abilities of the adapter of a model.
---@param model string|ah.Adapter
---@param given? ah.CapabilitiesOf
---@return ah.Capabilities?
---@return ah.Error? err
function ah.capabilities(model, given) end

---Gives models names of one's own, for this host, and says what is known of them:
---`ah.alias { fast = "groq/...", tuned = { model = "openai/ft:...", like = "gpt-6.1-sol" } }`.
---@param names table<string, string|ah.ModelRow>
function ah.alias(names) end

---The names that ah.alias and the configuration have given: name -> "provider/model".
---@return table<string, string>
function ah.aliases() end

---A provider of models. key_env, url_env: variables, of which the first that is set counts; url:
---the address of its own, where there is one; keyless: it needs no key.
---@class ah.Provider
---@field name string
---@field url? string
---@field url_env string[]
---@field key_env string[]
---@field keyless boolean

---The providers that there are, without those written in Lua.
---@return ah.Provider[]
function ah.providers() end

---The name that a mistyped word may have been meant for; nil where none is near.
---@param word string
---@param names string[]
---@return string?
function ah.nearest(word, names) end

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

-- fields of ah.Guards (make generate)
---@class ah.Guards what looks at texts and may end the run
---@field input? ah.Guard|ah.Guard[] what is said, before the model sees it
---@field output? ah.Guard|ah.Guard[] the answer, before the run gives it back
-- end of ah.Guards

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

-- fields of ah.AskConfig (make generate)
---@class ah.AskConfig of a person
---@field question string what a person is asked
---@field schema? table|string|ah.Schema JSON Schema of the response; without it a string
---@field params? table<string, any> the same in the short form, for several values at once
---@field default? any the response where nobody gives one; it must match the schema
---seconds: then the default is taken, or it fails. The `timeout` of the tool holds on meanwhile
---@field timeout? number
---the response, such as a password, is in no event and in no log, and neither is the default
---@field secret? boolean
-- end of ah.AskConfig

---@class ah.Answer what a check looks at
---@field text string
---@field value any where the run has `output`
---@field reply ah.Reply so far
---@field run integer
---@field iteration integer

-- fields of ah.Feedback (make generate)
---@class ah.Feedback what the model is told every so many calls or seconds
---@field every? number so many calls
---@field seconds? number so many seconds
---what the model is told, or nil
---@field text fun(run: { calls: integer, iteration: integer, run: integer }): string?
-- end of ah.Feedback

-- fields of ah.Price (make generate)
---@class ah.Price US dollars for a million tokens
---@field input? number US dollars for a million tokens that the model reads
---@field output? number for a million tokens that it writes
---@field cached_read? number for a million that it reads from its provider's cache
---@field cached_write? number for a million that it reads and its provider keeps in the cache
-- end of ah.Price

-- fields of ah.BudgetLimits (make generate)
---@class ah.BudgetLimits limits of a budget
---@field requests? integer requests to models, retries included; exact
---@field tool_calls? integer handlers started; exact
---as the providers say; where one does not, an estimate of four bytes a token
---@field input_tokens? integer
---as the providers say; where one does not, an estimate of four bytes a token
---@field output_tokens? integer
---as the providers say; where one does not, an estimate of four bytes a token
---@field total_tokens? integer
---US dollars: what the provider says an answer cost, else by `prices`, else by those that are known
---@field cost? number
---prices by the names of models; needed with `cost`, but for models whose price is known or told
---@field prices? table<string, ah.Price>
-- end of ah.BudgetLimits

---@class ah.Budget
---@field used fun(self: ah.Budget): table
---@field remaining fun(self: ah.Budget): table

---Returns a budget, which all runs that are given it share.
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

-- fields of ah.GateConfig (make generate)
---@class ah.GateConfig
---@field policies? ah.Policy[] look at each call before its handler
---decides on calls for which a policy asks; may wait
---@field approve? fun(call: ah.Asked): boolean?, (table|string)?
-- end of ah.GateConfig

---@param config ah.GateConfig
function ah.gate(config) end

-- fields of ah.Requires (make generate)
---@class ah.Requires
---@field tool string|string[] the tools that wait, by their names
---@field after string|string[] the tools each of which must have succeeded before
-- end of ah.Requires

---@param rule ah.Requires
---@return ah.BeforeObject
function ah.policies.requires(rule) end

-- fields of ah.ReadBeforeWrite (make generate)
---@class ah.ReadBeforeWrite
---@field read string|string[] the tools that read, by their names
---@field write string|string[] the tools that write
---@field argument? string which says what is read
---@field creates? fun(value: any): boolean true where there is nothing to be read yet
-- end of ah.ReadBeforeWrite

---@param rule ah.ReadBeforeWrite
---@return ah.BeforeObject
function ah.policies.read_before_write(rule) end

---Counters of this host, which only grow.
---@return table<string, integer>
function ah.metrics() end

-- -- prompts ------------------------------------------------------------------------------

-- fields of ah.SectionCommon (make generate)
---@class ah.SectionCommon what all sections have
---@field params? table<string, any> the parameters of its texts, in short form
---the same as JSON Schema of type `object`; parameters are what its `properties` name
---@field schema? table|string|ah.Schema
---false: the section gives neither text nor tools, nor do those below it
---@field enabled? boolean|fun(params: table): boolean
---`"summary"`: its summary stands for it, see Summaries
---@field visibility? "full"|"summary"|fun(params: table): "full"|"summary"
---@field summary? string a template, required where `visibility` is not `"full"`
---@field tools? ah.Tool[] offered while the section is shown in full
---@field children? ah.Section[] another way to give the array part
---@field accepts_overrides? boolean false: overrides of it are not applied
-- end of ah.SectionCommon

-- fields of ah.SectionConfig (make generate)
---@class ah.SectionConfig: ah.SectionCommon with its children in the array part
---1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit; from the title by lower case,
---with `-` for every run of other characters
---@field key? string
---one line; the heading. Without a title there is no heading, and `key` is required
---@field title? string
---@field template? string the text, see Templates
---@field body? string another name of `template`
---@field [integer] ah.Section
-- end of ah.SectionConfig

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

-- fields of ah.ToolsSectionConfig (make generate)
---@class ah.ToolsSectionConfig: ah.SectionCommon with its children in the array part
---1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit; from the title by lower case,
---with `-` for every run of other characters
---@field key? string
---one line; the heading. Without a title there is no heading, and `key` is required
---@field title? string
---@field description? string its text
---@field template? string another name of `description`
---@field [integer] ah.Section
-- end of ah.ToolsSectionConfig

---The same, with its text called description.
---@param config ah.ToolsSectionConfig
---@return ah.Section
function ah.tools_section(config) end

-- fields of ah.PromptConfig (make generate)
---@class ah.PromptConfig with its sections in the array part
---@field key? string of 1 to 128 of `a-z`, `0-9`, `.`, `_` and `-`
---@field name? string another name of `key`
---the namespace of the key: such a name, or several with `/` between them, such as
---`examples/tooling`, of 128 characters in all
---@field ns? string
---@field sections? ah.Section[] another way to give the array part
---@field output? table|string|ah.Schema JSON Schema of what the answers must be
---@field resources? any what handlers find as `ctx.resources`; also `prompt.resources`
---@field overrides? table|string see Overrides
---@field [integer] ah.Section
-- end of ah.PromptConfig

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

-- fields of ah.ToolCommon (make generate)
---@class ah.ToolCommon what tools and methods have in common
---what the model is told instead, but where tools are declared in brief; UTF-8, up to 16 KiB
---@field full_description? string
---@field params? table<string, any> in short form, or a type: then `args` is an instance
---@field schema? table|string|ah.Schema as JSON Schema of type `object`; not beside `params`
---JSON Schema of the value, or its type; defaults are filled in, and a value that does not match is
---a failed call
---@field result? table|string|ah.Schema
---calls that show how it is used, 32 at most: of `{ description = ..., input = ..., output = ... }`
---@field examples? ah.Example[]
---@field annotations? ah.Annotations what the tool does, for policies: below
---of the definition, 1 to 64 bytes. Another one is told where a saved conversation goes on; no
---model sees it
---@field version? string
---`function(value)`: the text that the model is shown of the value. Where it fails or returns no
---text, a `warning` says so and the value is shown as JSON
---@field render? fun(value: any): string
---@field parallel? boolean neighbouring calls of such tools are at work at the same time
---seconds: of one call; then it is stopped and answered with an error. Without one, its code may be
---at work for 10 seconds
---@field timeout? number
---@field memory? number bytes: of memory that one call may take
---bytes: of its result that the model sees; of a longer one, head and tail, and a file with all of
---it
---@field max_result? integer
---arguments of a wrong type are taken as they were surely meant, see `validate`; `ctx.coerced` and
---the event `tool_invoked` tell which
---@field coerce? boolean
---@field strict? boolean the provider is to be strict with it
---@field return_direct? boolean its result is the answer of the run, which ends behind it
-- end of ah.ToolCommon

-- fields of ah.ToolConfig (make generate)
---@class ah.ToolConfig: ah.ToolCommon
---@field name string 1 to 64 of `a-z`, `0-9`, `_` and `-`
---@field description string 1 to 200 printable ASCII characters, blanks around it removed
---`function(args, ctx)`; without one a call is answered with an error
---@field handler? fun(args: table, ctx: ah.Ctx): any, string?
---@field accepts_overrides? boolean false: overrides of its description are not applied
-- end of ah.ToolConfig

-- fields of ah.Annotations (make generate)
---@class ah.Annotations what a tool does, for policies; what is left out is not said
---@field read_only? boolean changes nothing
---@field destructive? boolean may delete or overwrite
---@field idempotent? boolean does no more if the same call is made twice
---@field open_world? boolean reaches what is outside of the program: the network, other processes
---comes from outside of the program: its definition and its results are somebody else's words
---@field untrusted? boolean
-- end of ah.Annotations

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

-- fields of ah.ResultConfig (make generate)
---@class ah.ResultConfig
---@field message? string
---@field value? any
---@field payload? any another name of `value`
---@field success? boolean false: an error
---true: the model sees the message only. To keep it short, not secret: sessions get the value, and
---a message may quote it
---@field exclude_value_from_context? boolean
-- end of ah.ResultConfig

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

-- fields of ah.EntityConfig (make generate)
---@class ah.EntityConfig
---@field name? string 1 to 64 letters, digits and `_`; for events, errors and saved conversations
---1 to 24 letters, digits, `_` and `-`: what the tools' names begin with; neither `planning` nor
---what begins with `planning_`
---@field prefix? string
---what tells instances apart: the name of a field or method, or `function(self)`, which cannot
---wait. A string of 1 to 512 bytes or a number
---@field id? string|fun(self: table): string|number
---@field fields? string[] what a model sees of an instance
---@field stateless? boolean no method changes an instance: it is not locked, copied and set back
---`function(id)`: the instance of that id, a plain table, which becomes one as by `Class(table)`,
---or nil. May wait
---@field find? fun(id: string): table?
-- end of ah.EntityConfig

-- fields of ah.MethodConfig (make generate)
---@class ah.MethodConfig: ah.ToolCommon
---@field name? string letters, digits, `_` and `-`; with the prefix at most 48 characters
---@field description string as of `ah.tool`
---`function(self, args, ctx)`; a method of the instances by that name, for the script as well
---@field handler? fun(self: table, args: table, ctx: ah.Ctx?): any, string?
---in place of a handler: the name of a method that the class has already. It is the `name`, too,
---where none is given
---@field method? string
---@field stateless? boolean this method leaves the instance as it is
-- end of ah.MethodConfig

---@class ah.Entity a class: calling it makes the table an instance
---@field name string
---@field prefix string
---@field tool fun(self: ah.Entity, config: ah.MethodConfig): ah.Entity
---@field [string] any methods and fields of the instances
---@overload fun(data: table?): table?

---@param config ah.EntityConfig
---@return ah.Entity
function ah.entity(config) end

---True if the value is an instance with tools.
---@param value any
---@return boolean
function ah.is_provider(value) end

---@param instance table
---@return { name: string, description: string, params: table, method: string }[]
function ah.tools_of(instance) end

---Withdraws the tools of an entity, and returns how many there were.
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

-- fields of ah.Failure (make generate)
---@class ah.Failure of a model, in place of an answer
---@field message? string in the error's words
---@field code? "context_full" `context_full`: it did not fit
---@field status? integer of HTTP
---@field retryable? boolean another try may go better
---@field retry_after? number seconds: until it may be tried again
---@field window? integer tokens: with `context_full`: those that the model takes
---@field used? integer tokens: with `context_full`: those of the conversation
-- end of ah.Failure

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
---@field reason? string with `http`: refused, dns, tls, ... (docs/reference/errors.md)
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

-- fields of ah.Expect (make generate)
---@class ah.Expect what a request must hold
---@field user? string the text of the last user message
---@field system? string the system text; empty if there is none
---@field tools? string[] tools that the request must offer
---@field result? string the content of the last entry, a tool's result
---@field model? string the model's name (`script`)
---all calls of the turn before, each `{ name = ..., arguments = ..., result = ..., success = ...
---}`; a field left out may have any value
---@field calls? ah.TestCall[]
-- end of ah.Expect

---@class ah.TestCall what it leaves out may be anything
---@field name string
---@field arguments? any
---@field result? string
---@field success? boolean

-- fields of ah.ScriptedCall (make generate)
---@class ah.ScriptedCall
---@field name string the tool's name
---@field arguments? string|table the call's arguments
---@field id? string the call's id, which its result repeats
---the result in place of the handler's, or a `function(args, ctx)` that returns it; see Doubles
---@field returns? any
---@field wrong? boolean `strict` does not check this call
-- end of ah.ScriptedCall

-- fields of ah.Turn (make generate)
---@class ah.Turn
---@field text? string|string[] the answer; a list is sent piece by piece
---@field calls? ah.ScriptedCall[] calls of tools
---@field refusal? string the model refuses, with this text
---@field stop? string why the answer ends
---tokens: `input`, `cached_read`, `cached_write`, `output`, `reasoning`, integers; `cost`, a
---number, US dollars
---@field usage? table<string, number>
---@field delay? number seconds: before the answer and between its pieces
---@field cut? boolean the answer breaks off before its end: an error of code `http`, retried
---@field fail? ah.Failure an error instead of an answer
---@field raw? string bytes in place of the whole answer, for other kinds of broken answers
---@field expect? ah.Expect what the request must contain, see below
---`check(request)`: returns `false, message`, or raises, to refuse the request
---@field check? fun(request: table): boolean?, string?
-- end of ah.Turn

-- fields of ah.When (make generate)
---@class ah.When
---@field user? string part of the user's text, if the user spoke last
---@field result? string part of a tool's result, if a result came last
---@field system? string part of the system text
---@field tools? string[] tools that the request must offer
---@field model? string the model's name
-- end of ah.When

-- fields of ah.ScriptedRule (make generate)
---@class ah.ScriptedRule
---@field text? string|string[] the answer; a list is sent piece by piece
---@field calls? ah.ScriptedCall[] calls of tools
---@field refusal? string the model refuses, with this text
---@field stop? string why the answer ends
---tokens: `input`, `cached_read`, `cached_write`, `output`, `reasoning`, integers; `cost`, a
---number, US dollars
---@field usage? table<string, number>
---@field delay? number seconds: before the answer and between its pieces
---@field cut? boolean the answer breaks off before its end: an error of code `http`, retried
---@field fail? ah.Failure an error instead of an answer
---@field raw? string bytes in place of the whole answer, for other kinds of broken answers
---@field expect? ah.Expect what the request must contain, see below
---`check(request)`: returns `false, message`, or raises, to refuse the request
---@field check? fun(request: table): boolean?, string?
---@field when? ah.When the conditions; without it the rule always matches
-- end of ah.ScriptedRule

-- fields of ah.Script (make generate)
---@class ah.Script
---@field answer? fun(request: table): ah.Answer in place of turns: returns a turn for each request
---@field rules? ah.ScriptedRule[] in place of both: the first rule that matches answers
---@field returns? table<string, any> doubles of tools, by name
---a call of a tool that the request does not offer, or with arguments that the tool does not take,
---is an error that names the difference
---@field strict? boolean
---how tools added in mid-conversation reach this model, see below
---@field tool_change_mode? ah.ToolChangeMode
---the model cannot continue a conversation in which another model has spoken: as a fallback it is
---skipped
---@field begins_only? boolean
---@field [integer] ah.Answer
-- end of ah.Script

---@alias ah.Answer string|ah.Turn|fun(request: table): string|ah.Turn

---A model that says what a test tells it to (docs/reference/scripted.md).
---@param turns ah.Script|fun(request: table): ah.Answer
---@return ah.Adapter
function ah.scripted(turns) end

---The answer of an adapter, which writes it piece by piece (docs/reference/adapters.md).
---@class ah.Out
---@field text fun(self: ah.Out, text: string)
---@field call fun(self: ah.Out, call: ah.OutCall): integer
---@field arguments fun(self: ah.Out, call: integer, text: string)
---@field results fun(self: ah.Out): ah.CallResult[], table of the message's calls; the request now
---@field invoke fun(self: ah.Out, call: ah.OutCall): ah.CallResult, table one call and its result
---@field line fun(self: ah.Out, event: string|table) with `reads`: an event of that wire
---@field warn fun(self: ah.Out, text: string) a `warning` event
---@field cancelled fun(self: ah.Out): boolean true if nobody waits for the answer any more
---@field opaque fun(self: ah.Out, value: any)
---@field usage fun(self: ah.Out, usage: ah.OutUsage)
---@field refusal fun(self: ah.Out, text: string)
---@field stop fun(self: ah.Out, word: string)
---@field fail fun(self: ah.Out, failure: ah.Failure)

-- fields of ah.OutUsage (make generate)
---@class ah.OutUsage
---@field input? integer tokens
---@field output? integer tokens
---@field cached_read? integer tokens
---@field cached_write? integer tokens
---@field reasoning? integer tokens
---@field cost? number US dollars
-- end of ah.OutUsage

-- fields of ah.OutCall (make generate)
---@class ah.OutCall
---@field name string the tool's name
---@field id? string the call's id, which its result repeats
---@field arguments? string|table the arguments; `out:arguments` may add to them
-- end of ah.OutCall

---@class ah.CallResult
---@field id string of the call
---@field name string
---@field success boolean
---@field content string what a model is told
---@field images? table[]

-- fields of ah.AdapterSpec (make generate)
---@class ah.AdapterSpec
---@field name string `provider/model`, as events, errors and transcripts have it
---`answer(request, out, state)`: called for each answer of the model; it may wait, in `ah.http`,
---`ah.process` and `ah.sleep`
---@field answer fun(request: table, out: ah.Out, state: any): string?
---returns the state kept for a conversation, such as a process
---@field open? fun(request: table): any
---`close(state, why)`: ends the state
---@field close? fun(state: any, why: "over"|"stopped"|"failed"|"idle"|"room")
---@field idle? number seconds: time without a request after which the state is closed
---@field keep? integer the most conversations whose state is kept
---the wire whose lines `answer` passes on
---@field reads? "anthropic"|"openai"|"responses"|"gemini"|"ollama"
---the adapter sends images, which are in entries as base64; without it a user's image ends the run
---before `answer` is called
---@field images? boolean
---how tools added in mid-conversation reach the model, as for scripted models
---@field tool_change_mode? ah.ToolChangeMode
-- end of ah.AdapterSpec

---@param spec ah.AdapterSpec
---@return ah.Adapter
function ah.adapter(spec) end

-- fields of ah.ConformanceSpec (make generate)
---@class ah.ConformanceSpec
---`serve(turns)`: sets up a model that answers with these turns, as a scripted model does, through
---the adapter under test
---@field serve fun(turns: ah.Answer[]): table
---@field capabilities? string[] what the adapter can do beyond what all adapters can
---@field only? string runs only the cases whose name contains it
-- end of ah.ConformanceSpec

---Tries an adapter (docs/reference/adapters.md); the report prints as a line a case.
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

-- fields of ah.WatchOptions (make generate)
---@class ah.WatchOptions
---of a folder: all below it is watched, too, what comes later included. Links are not followed
---@field recursive? boolean
---seconds: a batch is told once nothing has happened for so long, and after a second at the latest
---@field quiet? number
---@field max? integer the files and folders that may be there
-- end of ah.WatchOptions

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

-- fields of ah.TypeConfig (make generate)
---@class ah.TypeConfig
---@field name string 1 to 64 of `a-z`, `A-Z`, `0-9` and `_`, no digit first
---@field fields? table<string, any> in short form; this or `schema`
---@field schema? table|string|ah.Schema JSON Schema of type `object`
---`function(value)`: the text that a model is shown of a tool's value
---@field render? fun(value: table): string
-- end of ah.TypeConfig

---@class ah.Type calling it checks a table and makes an instance
---@field name string
---@field schema ah.Schema
---@overload fun(value: table): table

---@param config ah.TypeConfig
---@return ah.Type
function ah.type(config) end

-- fields of ah.SessionConfig (make generate)
---@class ah.SessionConfig
---@field types? ah.Type[] each gets a slice, with the defaults of `register`
---@field bus? ah.Dispatcher of another session, to share
---@field parent? ah.Session as `parent:child()`
-- end of ah.SessionConfig

-- fields of ah.SliceOptions (make generate)
---@class ah.SliceOptions
---@field policy? "state"|"log" `log`: outside of transactions
---@field keep? "append"|"latest" of the values of its own type: all, or only the last
---@field key? string a field: a value replaces the one that has the same there
-- end of ah.SliceOptions

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

-- fields of ah.UnlockConfig (make generate)
---@class ah.UnlockConfig
---what is locked. Tool objects are declared by the strategy; names refer to tools declared
---elsewhere
---@field tools string|ah.Tool|(string|ah.Tool)[]
---each must have succeeded once in this conversation
---@field after? string|ah.Tool|(string|ah.Tool)[]
---`on(value, m)`: called with the value of each successful call of `after` (of any tool without
---`after`); true if the call counts
---@field on? fun(value: any, m: ah.Outcome): any
---`when(m)`: called before each call of a locked tool, as `before` is; true allows the call
---@field when? fun(m: ah.Outcome): any
---@field any? boolean one of the conditions is enough; otherwise all must be met
---the text after `This tool is not yet available. ` in the result, and after `Not available at
---once. ` in the description
---@field missing? string
---@field name? string the strategy's name, as of any strategy
-- end of ah.UnlockConfig

---@param config ah.UnlockConfig
---@return ah.StrategyObject
function ah.unlock(config) end

-- fields of ah.Phase (make generate)
---@class ah.Phase
---@field name string a name that no other phase has
---as in `ah.unlock`; with `hide` only tool objects. A tool may be in several phases
---@field tools? string|ah.Tool|(string|ah.Tool)[]
---a table from a tool's name to the phase that follows its success; or `next(m)`, called after each
---success in this phase, which returns the next phase or nil
---@field next? table<string, string>|fun(m: ah.Outcome): string?
-- end of ah.Phase

-- fields of ah.PhasesConfig (make generate)
---@class ah.PhasesConfig
---@field phases ah.Phase[] at least one phase, see below
---@field start? string the name of the first phase of a conversation
---only the tools of the current phase are declared. By default all tools stay declared, which keeps
---the provider's cache
---@field hide? boolean
---@field name? string the strategy's name, as of any strategy
-- end of ah.PhasesConfig

---@param config ah.PhasesConfig
---@return ah.StrategyObject
function ah.phases(config) end

-- fields of ah.UnfoldConfig (make generate)
---@class ah.UnfoldConfig
---@field name string the facade's name, as of any tool; the strategy's name is `unfold.` and this
---@field description string the facade's description: what is behind it
---@field full_description? string the facade's full description, as in `ah.tool`
---tools, and facades made by `ah.unfold`, nested at most 16 levels deep; either this or
---`categories`
---@field tools? (ah.Tool|ah.StrategyObject)[]
---such lists by name: the facade then takes the parameter `category` and opens that list
---@field categories? table<string, (ah.Tool|ah.StrategyObject)[]>
---@field exclusive? boolean only one category is open at a time; opening another closes it
-- end of ah.UnfoldConfig

---@param config ah.UnfoldConfig
---@return ah.StrategyObject
function ah.unfold(config) end

-- fields of ah.SearchConfig (make generate)
---@class ah.SearchConfig
---@field tools ah.ToolList tools and groups, 1 to 20,000 tools; no two of a name
---@field max? integer tools that one answer of `search_tools` gives
---@field by? "provider"|"here" who searches; `here` is `search_tools`
---@field method? "regex"|"bm25" how the provider is to search where it has two ways (`anthropic`)
---@field name? string as of any strategy
-- end of ah.SearchConfig

---@param config ah.SearchConfig
---@return ah.StrategyObject
function ah.search(config) end

---@type ah.PlanningTypes
ah.planning = {}

---@class ah.Builtins : string[] names, and options by name
---@field read_file? ah.ReadFileOptions
---@field write_file? ah.WriteFileOptions
---@field edit_file? ah.EditFileOptions
---@field list_files? ah.ListFilesOptions
---@field grep? ah.GrepToolOptions
---@field bash? ah.BashOptions
---@field http_fetch? ah.HttpFetchOptions

-- fields of ah.ReadFileOptions (make generate)
---@class ah.ReadFileOptions
---@field lines? integer lines of an answer where the model names no `limit`
---@field max_bytes? integer bytes: of an answer; it ends with a whole line, and says where to go on
-- end of ah.ReadFileOptions

-- fields of ah.WriteFileOptions (make generate)
---@class ah.WriteFileOptions
---@field overwrite? boolean true: as if every call said so
-- end of ah.WriteFileOptions

-- fields of ah.EditFileOptions (make generate)
---@class ah.EditFileOptions
-- end of ah.EditFileOptions

-- fields of ah.ListFilesOptions (make generate)
---@class ah.ListFilesOptions
---@field max? integer entries shown
-- end of ah.ListFilesOptions

-- fields of ah.GrepToolOptions (make generate)
---@class ah.GrepToolOptions
---@field max? integer lines shown, those around included
-- end of ah.GrepToolOptions

-- fields of ah.BashOptions (make generate)
---@class ah.BashOptions
---seconds: after which a command is ended, where the model asks for no other time
---@field timeout? number
---@field max_timeout? number seconds: that the model may ask for
---@field grace? number seconds: between TERM and KILL
---@field cwd? string the folder at work, opened when the tool is made
---variables beside the usual ones: a string; `true` for the value that the host has; `false` for
---none
---@field env? table<string, string|boolean>
---@field shell? string a program that is called with `-c` and the text
---@field max_output? number bytes: of output that are shown; of more, head and tail
---bytes: of longer output that are kept in a file, with the last 64 KiB of what goes beyond
---@field keep? number
---both streams are one, in which what was written has its very order; the value has no `stdout` and
---`stderr` then
---@field merge? boolean
---where that file is in the run's filesystem; false, and runs without files: nothing is kept
---@field output_folder? string|false
---@field memory? number bytes: of address space of each process
---@field file_size? number bytes: of each file that is written
---@field cpu? number seconds: of processor time of each process
---@field processes? number of the user, all of them counted; has no effect for root
---@field sandbox? "none"|"auto"|"require"|"landlock"|"bubblewrap" said below
---in a sandbox: folders that may be read beside those that may be written to, and the system's; 15
---at most
---@field readable? string[]
---@field network? boolean in a sandbox: true if the internet may be reached
---in a sandbox: folders that may be written to beside the one at work; 15 at most
---@field writable? string[]
---in a sandbox of `landlock`, for root: true if it keeps its rights over owners (`chown`, files and
---processes of others, becoming another user)
---@field owners? boolean
-- end of ah.BashOptions

-- fields of ah.HttpFetchOptions (make generate)
---@class ah.HttpFetchOptions
---which may be asked, said below; `"public"`: any, at the ports 80 and 443
---@field allow string[]|"public"
---that may be connected to although they are not public: `"10.1.0.0/16"`, `"127.0.0.1"`
---@field private? string[]
---@field post? boolean true: the model may send POST requests
---@field timeout? number seconds: for all of it, redirects included
---@field max_bytes? integer bytes: of a response; a longer one is given up while it comes
---@field shown? integer bytes: of the text in an answer
---@field redirects? integer how many are followed, each checked as the first request is
-- end of ah.HttpFetchOptions

-- fields of ah.PlanningConfig (make generate)
---@class ah.PlanningConfig
---the plan is kept in it; the section registers its types and reducers there
---@field session ah.Session
---how the model is told to think; the rest of the text is the same for all
---@field strategy? "react"|"plan_act_reflect"|"goal_decompose_route_synthesise"
---@field accepts_overrides? boolean whether overrides may change its words
-- end of ah.PlanningConfig

---@param config ah.PlanningConfig
---@return ah.Section
function ah.planning_section(config) end

-- fields of ah.ResourceConfig (make generate)
---@class ah.ResourceConfig
---`function(ctx)`: makes it. `ctx.resources` has the others; for `tool_call` and `prototype` it is
---the handler's own `ctx`
---@field provide fun(ctx: ah.Ctx): any
---one for a run; one for a call; a new one whenever it is asked for
---@field scope? "singleton"|"tool_call"|"prototype"
---@field close? fun(value: any) `function(value)`: gives it back
-- end of ah.ResourceConfig

---@class ah.Resources
---@field get fun(self: ah.Resources, name: string|ah.Type): any
---@field get_optional fun(self: ah.Resources, name: string|ah.Type): any

---@param config ah.ResourceConfig
---@return table
function ah.resource(config) end

-- fields of ah.FilesystemConfig (make generate)
---@class ah.FilesystemConfig
---@field root? string a folder of the machine; it must be there, and may be named by a link
---@field memory? boolean files in memory, gone with the object
---@field files? table<string, string> files in memory: their texts by their path
---@field read_only? boolean nothing can be changed
---@field allow? string[] names that may be written although they are refused
---each file is forced to the disk before it takes its place. Without, a failure of power may lose
---or empty what was written last
---@field sync? boolean
---@field max_file? number bytes: of a file that is written, or read whole
---@field max_total? number bytes: in memory, or waiting in an overlay
---@field max_files? number entries of a folder, of a walk, of memory, of an overlay
---@field max_depth? integer names in a path
-- end of ah.FilesystemConfig

---@alias ah.Stat { type: "file"|"folder"|"link"|"other", size: integer?, modified: number? }

-- fields of ah.EditOptions (make generate)
---@class ah.EditOptions
---@field all? boolean every place, and not the only one
-- end of ah.EditOptions

-- fields of ah.ReadPart (make generate)
---@class ah.ReadPart part of a file
---@field offset? number bytes: before it
---@field limit? number bytes: of it
-- end of ah.ReadPart

-- fields of ah.DeleteOptions (make generate)
---@class ah.DeleteOptions
---@field recursive? boolean with what is in the folder
-- end of ah.DeleteOptions

-- fields of ah.RenameOptions (make generate)
---@class ah.RenameOptions
---@field replace? boolean a file may take the place of a file
-- end of ah.RenameOptions

-- fields of ah.ListOptions (make generate)
---@class ah.ListOptions
---@field max? integer how many are given
-- end of ah.ListOptions

-- fields of ah.GlobOptions (make generate)
---@class ah.GlobOptions
---@field path? string the folder to look in
---@field max? integer how many are given
-- end of ah.GlobOptions

---@alias ah.Found { path: string, line: integer, text: string, beside: true?, count: integer? }

-- fields of ah.GrepOptions (make generate)
---@class ah.GrepOptions
---@field path? string a file or folder
---@field glob? string of the files
---@field plain? boolean the pattern is the text itself
---@field ignore_case? boolean of ASCII letters of a plain text
---@field context? integer lines before and after each
---@field count? boolean how many a file has, in place of the lines
---@field max? integer how many are given
-- end of ah.GrepOptions

-- fields of ah.LinesOptions (make generate)
---@class ah.LinesOptions
---@field first? number number of the first line
---@field last? boolean the last lines
---@field max? integer how many are given
---@field max_bytes? number bytes: after which they end
---@field width? number bytes: of a line
-- end of ah.LinesOptions

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
---@field edit fun(self, path: string, old: string, new: string, o: ah.EditOptions?): integer?, any
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

-- fields of ah.ToolGroupConfig (make generate)
---@class ah.ToolGroupConfig
---@field name string 1 to 64 of `a-z`, `0-9`, `_` and `-`
---@field tools ah.ToolList tools, other groups and their names
-- end of ah.ToolGroupConfig

---@class ah.ToolGroup
---@field name string
---@field tools ah.Tool[]

---@param config ah.ToolGroupConfig
---@return ah.ToolGroup
function ah.tool_group(config) end

---@alias ah.ToolSpec { name: string, description: string, parameters: table }

---@class ah.CallReply
---@field success boolean
---@field content string what a model is told
---@field value any
---@field code? ah.Code of a failed call

---@alias ah.Arguments table|string a table or JSON text

-- fields of ah.Called (make generate)
---@class ah.Called a call as messages and events have it
---@field id? any as events have it; passed over
---@field name string
---@field arguments? table|string
---@field parent_call? any as events have it; passed over
-- end of ah.Called

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

-- fields of ah.HttpRequest (make generate)
---@class ah.HttpRequest
---@field url string `http://` or `https://`
---@field method? string
---@field headers? table<string, string> strings by name, 100 at most
---@field body? string
---@field timeout? number seconds
---@field idle_timeout? number seconds: without a byte sent or received
---@field max_body? number bytes
---@field stream? "bytes"|"lines"|"sse" the body comes in pieces
---@field max_piece? number bytes: of one line or event of a stream
---@field addresses? string[] nothing else is connected to
-- end of ah.HttpRequest

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

-- fields of ah.ServerConfig (make generate)
---@class ah.ServerConfig
---of a request and a response
---@field on_request fun(request: ah.ServerRequest, response: ah.ServerResponse): any
---of what the server refuses itself: answers in its place
---@field on_refusal? fun(refusal: ah.ServerRefusal, request: ah.ServerRequest): any
---an address and a port, `[::1]:8080`, `localhost:8080`. Port 0: any that is free
---@field listen? string
---@field hosts? string[] further names that the server answers to. `*`: any
---@field origins? string[] whose pages may ask, such as `https://app.example`. `*`: anybody's
---@field max_requests? integer handlers at work at once. Further requests wait for their turn
---@field max_connections? integer
---@field max_header? integer bytes: of a request's target and headers
---@field max_body? integer bytes: of a request's body
---@field max_bodies? integer bytes: of all bodies that no handler has yet
---@field memory? number bytes: of memory that one handler may take
---seconds: at work, of one handler, from one piece that it writes to the next
---@field work_timeout? number
---@field header_timeout? number seconds: until a new connection has sent its first head
---@field body_timeout? number seconds: from the head to the end of the body
---seconds: in which nothing is read or written, and between two requests
---@field idle_timeout? number
-- end of ah.ServerConfig

---@class ah.ServerRequest
---@field method string
---@field path string
---@field query table<string, string[]>
---@field target string path and query as they came
---@field headers table<string, string[]> names in lower case
---@field body string nil where the request is refused
---@field remote string the client's address and port

---@class ah.ServerRefusal
---@field status integer
---@field message string why, for people

-- fields of ah.ServerAnswer (make generate)
---@class ah.ServerAnswer
---@field status? integer of a refused request: that of the refusal
---strings by name, or lists where a name stands more than once
---@field headers? table<string, string|string[]>
---a string is `text/plain` where `headers` do not say otherwise; a table is sent as JSON
---@field body? string|table
-- end of ah.ServerAnswer

-- fields of ah.ServerHead (make generate)
---@class ah.ServerHead
---@field status? integer
---strings by name, or lists where a name stands more than once
---@field headers? table<string, string|string[]>
---bytes: of the body, which the client is told: more is dropped, and an answer that ends before
---breaks off
---@field length? integer
-- end of ah.ServerHead

-- fields of ah.ServerEvent (make generate)
---@class ah.ServerEvent
---@field event? string its kind, one line
---@field data? string its text, of any number of lines
---@field id? string one line; a client that comes again names the last one that it got
---@field retry? integer milliseconds: until a client that lost the connection comes again
-- end of ah.ServerEvent

---@class ah.ServerResponse
---@field begin fun(self, head?: ah.ServerHead): true?, ah.Error?
---@field write fun(self, piece: string): true?, ah.Error?
---@field event fun(self, event: ah.ServerEvent): true?, ah.Error?
---@field wait fun(self): true?, ah.Error? true once what was written is taken, or all went out
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

-- fields of ah.ProcessSandbox (make generate)
---@class ah.ProcessSandbox
---@field kind? "none"|"auto"|"require"|"landlock"|"bubblewrap" as above
---@field read? string[] folders that it may read, beside the system's, and those in `write`
---@field write? string[] folders that it may write to, beside its temporary one (`$TMPDIR`)
---@field network? boolean true if the internet may be reached
---@field owners? boolean with `landlock`, for root: true if it keeps its rights over owners
-- end of ah.ProcessSandbox

-- fields of ah.ProcessLimits (make generate)
---@class ah.ProcessLimits What a child process may use.
---@field timeout? number seconds: that it may run; then it is ended, whatever is going on
---seconds: from the end of its input to TERM when it is closed, and from TERM to KILL
---@field grace? number
---@field memory? integer bytes: of address space of each process
---@field file_size? integer bytes: of each file that is written
---@field cpu? integer seconds: of processor time of each process
---@field processes? integer of the user, all of them counted; has no effect for root
-- end of ah.ProcessLimits

-- fields of ah.ProcessConfig (make generate)
---@class ah.ProcessConfig: ah.ProcessLimits
---the program: a name that is looked for in `PATH`, or a path. No shell reads it
---@field command string
---@field args? string[] its arguments, as they are
---variables beside the usual ones: a string; `true` for the value that the host has; `false` for
---none
---@field env? table<string, string|boolean>
---@field cwd? string the folder that it begins in, opened when it is started
---what it may read, write and reach
---@field sandbox? "none"|"auto"|"require"|"landlock"|"bubblewrap"|ah.ProcessSandbox
---@field stdin? string|false all that it reads, written and closed at once; false: it reads nothing
---@field merge? boolean its errors go where its output goes, in the order of writing
---bytes: of its standard error that are kept: the first quarter, and the end
---@field max_errors? integer
---seconds: after which a method that waits gives up, while the process stands still since nobody
---reads it
---@field stall? number
-- end of ah.ProcessConfig

-- fields of ah.LineOptions (make generate)
---@class ah.LineOptions: ah.TimeOption
---@field json? boolean each line is decoded
---@field max? integer bytes: of a line; a longer one is passed over, and told
-- end of ah.LineOptions

---@class ah.ProcessEnd
---@field how "exited"|"stopped"|"timed_out"
---@field exit_code? integer
---@field signal? string
---@field seconds number
---@field cpu_seconds number
---@field memory? integer
---@field left? integer
---@field sandbox string

-- fields of ah.TimeOption (make generate)
---@class ah.TimeOption
---@field timeout? number seconds: that it waits, then it gives up
-- end of ah.TimeOption

-- fields of ah.WaitOptions (make generate)
---@class ah.WaitOptions: ah.TimeOption
---@field discard? boolean its output is thrown away meanwhile
-- end of ah.WaitOptions

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

-- fields of ah.TerminalOptions (make generate)
---@class ah.TerminalOptions
---Ctrl-C, Ctrl-Z and Ctrl-\ do as they do everywhere; with `false` they are keys
---@field signals? boolean
---keys that look alike are told apart where the terminal knows kitty's keyboard protocol:
---Shift-Enter, Ctrl-I, Escape at once. Needs `signals = false`
---@field distinct? boolean
---@field escape? number seconds: after which an Escape that nothing follows is the key
---@field max_paste? number bytes: of a paste
-- end of ah.TerminalOptions

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

-- fields of ah.Styled (make generate)
---@class ah.Styled a list of texts, and a style for all of them
---@field bold? boolean
---@field faint? boolean
---@field italic? boolean
---@field underline? boolean
---@field reverse? boolean
---@field color? string|integer
---@field background? string|integer
---@field [integer] ah.Shown
-- end of ah.Styled

---@alias ah.Shown string|number|ah.Styled

-- fields of ah.Cursor (make generate)
---@class ah.Cursor
---@field line? integer
---@field column? integer
-- end of ah.Cursor

---@class ah.Terminal
---@field key fun(self, seconds?: number): ah.Key?, ah.Error?
---@field size fun(self): integer, integer
---@field write fun(self, text: ah.Shown)
---@field print_above fun(self, text: ah.Shown)
---@field live fun(self, lines: ah.Shown[], cursor?: ah.Cursor): boolean
---@field suspend fun(self)
---@field close fun(self)

---The terminal of the command (docs/reference/terminal.md).
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
