---@meta agenthost

-- Type annotations of `require "agenthost"` for editors (LuaCATS, as lua-language-server reads
-- them). Set "workspace.library" to the folder of this file. The file is never run and is no part
-- of the library. docs/reference/lua.md leads to the page of each name; specs compare this file
-- with the library and with the pages.

---@class agenthost
---@field version string of the library, such as "0.1.0"
---@field null lightuserdata JSON's null
---@field set_visibility_override ah.Type event { path, visibility }: opens or closes a section
local ah = {}

-- -- runs and agents --------------------------------------------------------------------

---@alias ah.EventType
---| "start"
---| "resumed"
---| "tool_loop_iteration"
---| "request"
---| "cache_break"
---| "content"
---| "retry"
---| "fallback"
---| "handoff"
---| "rate_limit"
---| "map_progress"
---| "queued"
---| "usage"
---| "tool_calls"
---| "tool_started"
---| "tool_progress"
---| "policy"
---| "background_started"
---| "background_done"
---| "tool_invoked"
---| "ask"
---| "ask_closed"
---| "tools_injected"
---| "tool_provider_discovered"
---| "tools_removed"
---| "warning"
---| "done"

---@alias ah.ToolChangeMode the way in which a tool added in mid-conversation reaches the model
---| "reference"
---| "inline"
---| "additional_tools"
---| "search_pair"
---| "append"
---| "list_changed"
---| "dispatcher"
---| "restart"

---@class ah.Event docs/reference/events.md lists the fields of each type
---@field type ah.EventType
---@field run? integer number of the run in this process; absent for `map_progress` of no run
---@field parent? integer in runs of a handler: the run that the handler belongs to
---@field time number seconds since 1970
---@field [string] any

-- fields of ah.Options (make generate)
---@class ah.Options for the model; passed on as they are
---@field temperature? number
---@field max_tokens? integer most tokens of an answer
---@field top_p? number
---@field stop? string|string[] texts that end the answer
---@field seed? integer
---@field tool_choice? "auto"|"none"|"required"|{ name: string } not sent if there are no tools
---true: a forced choice holds for every request of a run, and only a limit or a tool ends the run
---(default false)
---@field tool_choice_every_turn? boolean
---effort, such as `"low"`; Gemini before 3 gets a number of tokens, Ollama gets `think` (`"true"`
---and `"none"` are yes and no)
---@field reasoning? string
---how long `anthropic` keeps the beginning of a request (default `"5m"`); other providers cache by
---themselves
---@field cache? "5m"|"1h"|"off"
---@field cache_key? string `prompt_cache_key` of `openai`: equal for requests that begin alike
---@field strict? boolean true: tools are strict where the provider supports it (default false)
-- end of ah.Options

-- fields of ah.HttpLimits (make generate)
---@class ah.HttpLimits limits of a request
---@field connect_timeout? number seconds: until the connection is made, TLS included
---@field idle_timeout? number seconds: without a byte sent or received
---@field total_timeout? number seconds: for the whole request
---@field max_header? number bytes: of the response's headers
---@field max_body? number bytes: of the response's body
-- end of ah.HttpLimits

-- fields of ah.LoopDetector (make generate)
---@class ah.LoopDetector
---@field warn? integer number of the first equal call that causes a warning
---@field stop? integer number of the equal call that ends the run
---@field window? integer number of earlier calls with which a call is compared; at least `stop` - 1
---number of calls in which patterns are looked for; at least 3 * `stop` - 2
---@field pattern_window? integer
---tools whose calls are not counted, such as one that reports whether a job is ready
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
---@field keep? boolean false: each run of an agent releases the entities at its end
-- end of ah.Discover

-- fields of ah.Use (make generate)
---@class ah.Use: ah.Connection the model with which a conversation goes on
---@field model? string|ah.Adapter `provider/model`, or an adapter such as that of `ah.scripted`
-- end of ah.Use

-- fields of ah.Connection (make generate)
---@class ah.Connection how a model is asked
---the server's address; the wire adds its own path, such as `/chat/completions`
---@field base_url? string
---@field api_key? string the provider's key
---how tools that come in mid-conversation reach the model, see Models; not with an adapter object
---@field tool_change_mode? ah.ToolChangeMode
---@field stream? boolean true: the answer is requested piece by piece
---@field http? ah.HttpLimits limits of each request
---@field options? ah.Options options of the model, see below
-- end of ah.Connection

-- fields of ah.Config (make generate)
---@class ah.Config: ah.Connection
---`provider/model`, or an adapter such as that of `ah.scripted`; see Models
---@field model? string|ah.Adapter
---the agent's name, in events and in the tools that lead to it: 1 to 50 of `a-z`, `0-9`, `_` and
---`-`
---@field name? string
---the store that keeps the conversation; false: none
---@field store? string|ah.Store|ah.StoreConfig|false
---the conversation's name, 1 to 200 bytes; in a store at most 128, printable and without `/`
---@field id? string
---@field system? string the system text
---made by `ah.prompt`: its text follows `system`, its tools follow `tools`; see prompts.md
---@field prompt? ah.Prompt
---the prompt's parameters; `setup` finds them in `conversation.params`
---@field params? table<string, any>
---@field overrides? table|string overrides of the prompt, or the path of their file
---JSON Schema of the answer, which is then in `reply.value`; see prompts.md
---@field output? table|string|ah.Schema
---made by `ah.tool`, each name once, or groups and their names; offered in this order. Lists in the
---list are flattened
---@field tools? ah.ToolList
---@field registry? ah.Registry made by `ah.registry`: more tools, behind those of `tools`
---by name: `function(args, ctx)` for calls that no handler answers, see Executors
---@field executors? table<string, fun(args: table, ctx: ah.Ctx): any>
---true: tools are declared by their `description` alone, and the model picks those that it needs in
---full
---@field brief? boolean
---@field keep_picked? boolean true: picked tools stay picked after the run
---@field messages? ah.Message[] the conversation so far, see Messages
---observers, see events.md
---@field on? fun(event: ah.Event)|table<ah.EventType, fun(event: ah.Event)>
---`function(level, line)`: gets all log records of this run. If it fails, the log of the host
---reports it once
---@field log? fun(level: string, line: string)
---most model calls (iterations); the tools of the last answer are still called
---@field max_iterations? integer
---after `max_iterations`: `"error"` fails with `max_iterations_exceeded`, `"answer"` asks once more
---without tools
---@field on_max? "error"|"answer"
---for an answer without calls and text (white space is not text): `"answer"` accepts it, `"retry"`
---asks again, `"error"` fails
---@field on_empty? "answer"|"retry"|"error"
---for a call of an unknown tool: `"answer"` gives an error result, `"throw"` ends the run with
---`tool_not_found`
---@field on_unknown_tool? "answer"|"throw"
---they see each call and add, remove or lock tools, see Tools that come and go
---@field strategies? ah.Strategy[]
---@field max_tools? integer most tools at a time; no more are injected. There is one warning at 64
---for an injected tool whose name is taken: `"skip"` leaves it out with a warning, `"replace"`
---replaces the other, `"error"` ends the run with `prompt_validation`
---@field on_conflict? "skip"|"replace"|"error"
---for a tool whose definition has changed since the conversation was saved; by default `"refuse"`
---if it is `untrusted`, otherwise `"tell"`
---@field on_drift? "tell"|"refuse"
---@field hint? boolean true: a line behind a result names the tools that it brought
---most restarts of the model's session by injected tools, for a model that cannot take them
---otherwise
---@field max_restarts? integer
---how deep runs may stand inside runs, this one included: 1 allows none within it. It holds for all
---runs within; a smaller one of theirs holds, too
---@field max_nested? integer
---true: methods of returned entities become tools for the rest of the conversation; `{ keep = false
---}`: each run of an agent releases the entities at its end
---@field discover? boolean|ah.Discover
---largest depth of an entity with tools: 1 if a tool of the script returned it, one more for each
---entity whose method returned it
---@field max_depth? integer
---they decide on each call before its handler, or on its result, see Policies
---@field policies? ah.Policy[]
---decides on calls for which a policy asks; may wait
---@field approve? fun(call: ah.Asked): boolean?, (table|string)?
---`{ input = ..., output = ... }`: functions that look at the user's text and at the answer, and
---may end the run
---@field guards? ah.Guards
---@field asks? ah.Front a front end, which responds to asks of handlers and to approvals
---@field feedback? ah.Feedback[] each adds notes for the model after a number of calls or seconds
---they look at the last answer; may wait, and may make the model go on
---@field checks? (fun(answer: ah.Answer): string?)[]
---@field budget? ah.Budget|ah.BudgetLimits limits of requests, calls, tokens and money, see Budgets
---@field timeout? number seconds: limit of this run
---@field deadline? number the time at which the run must have ended, by the clock of `ah.now()`
---@field session? ah.Session made by `ah.session`: the data that its tools read and change
---by name or type: what handlers find in `ctx.resources`, see Resources
---@field resources? table<string|ah.Type, any>
---@field retries? integer how often one request is sent again after a temporary failure
---most requests at work at once in the run's lane, those of other runs included
---@field max_in_flight? integer
---most calls of one answer at work at once, of tools marked `parallel`; the others begin as these
---end
---@field max_parallel? integer
---each takes the place of the one before if that is overloaded or unreachable, see models.md
---@field fallback? ah.Fallback
---`function(conversation)`: prepares a conversation before its first run; may wait, see Setting up
---a conversation
---@field setup? fun(conversation: ah.Conversation): nil?, any
---@field loop_detector? ah.LoopDetector|false limits of equal calls, see below; false: none
---@field [integer] ah.Section
-- end of ah.Config

---@class ah.Image made by ah.image; has either mime and data, or url
---@field type "image"
---@field mime? string
---@field data? string the bytes
---@field url? string

---@alias ah.Parts (string|ah.Image)[] a user's message with images

-- fields of ah.ImageConfig (make generate)
---@class ah.ImageConfig either `data` or `url`
---@field type? string of an image that is one already
---@field data? string its bytes
---@field mime? string `image/png`, `image/jpeg`, `image/gif` or `image/webp`
---@field url? string in place of its bytes: the provider fetches it
-- end of ah.ImageConfig

---Returns an image from a file (its path), from bytes or for a URL.
---@param from string|ah.ImageConfig
---@return ah.Image?
---@return ah.Error? err
function ah.image(from) end

---@class ah.Request: ah.Config the array part holds the sections, then the user's text
---@field [integer] ah.Section|string|ah.Parts

-- fields of ah.MessageCall (make generate)
---@class ah.MessageCall
---@field id string the id of the call, which its result repeats
---@field name string the name of the tool
---@field arguments? string|table the arguments; in messages that a run returns, JSON text
-- end of ah.MessageCall

-- fields of ah.Message (make generate)
---@class ah.Message
---@field role "system"|"user"|"assistant"|"tool" the author of the message
---the text; a list of parts if there is more than text
---@field content? string|(string|ah.Image|{ type: string, text: string? })[]
---@field tool_calls? ah.MessageCall[] of `assistant`: its calls
---@field tool_call_id? string of `tool`: the id of the call
---@field name? string of `tool`: the name of the tool
---@field success? boolean of `tool`: false if the call failed
---@field timestamp? number seconds: the time since 1970
-- end of ah.Message

---@class ah.Usage tokens of a run, and their cost
---@field input integer cached tokens included
---@field cached_read integer
---@field cached_write integer
---@field output integer reasoning included
---@field reasoning integer
---@field known boolean true if a provider reported any
---@field cost? number US dollars, as reported or by known prices; absent if unknown
---@field unpriced integer answers whose cost is unknown: `cost` does not cover them
---@field prices_of? string date of the oldest prices, as "2026-11-10"; absent if none were used

---@class ah.Reply tostring gives its text
---@field text string of the last answer
---@field agent? string name of the agent that has answered
---@field value? any with `output`: the answer's JSON, checked, with defaults
---@field messages ah.Message[] the whole conversation so far
---@field iterations integer answers of the model in this run
---@field rounds integer answers with calls
---@field tool_calls integer calls in them
---@field all_tool_calls { id: string, name: string, arguments: string }[]
---@field injected_tools string[] names of the tools that were added in this run
---@field removed_tools string[] names of the tools that were removed in this run
---@field usage ah.Usage
---@field recorded boolean the run was done before, and its store had the reply
---@field stop ah.Stop|"tool" the reason why the last answer ended; "tool": results are the answer
---@field transcript fun(self: ah.Reply): string the conversation as JSON text

-- fields of ah.RunWith (make generate)
---@class ah.RunWith fields of `agent:run` beside the text
---@field params? table<string, any> of the prompt, from this run on
---`decline`: an unfinished run that waits for responses goes on without them, and reads the text
---behind its turn; see Asks that wait
---@field asks? "decline"
-- end of ah.RunWith

-- fields of ah.Fork (make generate)
---@class ah.Fork where the second conversation is kept
---@field at? integer the last turn that the new conversation has, 0: none; only with a store
---@field id? string of the new conversation; by default a new one
---@field store? string|ah.Store|ah.StoreConfig|false keeps the new conversation
-- end of ah.Fork

-- fields of ah.RewindOptions (make generate)
---@class ah.RewindOptions
---@field dry? boolean true: only says what is dropped, and changes nothing
---@field files? boolean true: files of the machine are put back, too
---@field force? boolean true: also files that another program has changed since
-- end of ah.RewindOptions

---@class ah.Rewound what a rewind drops and changes
---@field to integer the turn after which the conversation goes on
---@field turns integer how many there are
---@field dropped table[] turns, calls, steps, files and open questions, each with `turn` and `kind`
---@field changes ah.StateChange[]
---@field stays table[] what was changed and stays, each with `kind` and `why`

-- fields of ah.Open (make generate)
---@class ah.Open another conversation of an agent
---@field id? string 1 to 200 bytes
---the store that keeps the conversation; false: none
---@field store? string|ah.Store|ah.StoreConfig|false
---@field params? table<string, any> in place of the definition's
---@field session? ah.Session in place of one of its own
---@field resources? table<string|ah.Type, any> beside the definition's
---@field messages? ah.Message[] in place of the definition's
---@field output? table|string|ah.Schema JSON Schema of the answers, in place of the definition's
---@field policies? ah.Policy[] before the definition's
-- end of ah.Open

-- fields of ah.AsTool (make generate)
---@class ah.AsTool
---@field name? string of the tool, as for `ah.tool`
---@field description string tells the outer model what the agent can do for it
---@field input? table|ah.Type parameters of the tool, in short form
---`function(args)`: makes the user's message from the arguments
---@field text? fun(args: table): string|ah.Parts
---true: the arguments are the parameters of the agent's prompt; `function(args)`: makes them
---@field params? boolean|fun(args: table): table<string, any>
---@field output? table|string|ah.Schema JSON Schema of the answer, whose value is then the result
---true: all calls of an outer conversation continue one conversation
---@field keep_conversation? boolean
---@field parallel? boolean as for `ah.tool`
---@field background? boolean as for `ah.tool`, see In the background
---@field timeout? number seconds: limit of one call, as for `ah.tool`
---@field max_result? integer as for `ah.tool`
---@field full_description? string as for `ah.tool`
---@field annotations? ah.Annotations as for `ah.tool`
---@field version? string as for `ah.tool`
---@field return_direct? boolean as for `ah.tool`
-- end of ah.AsTool

-- fields of ah.HandoffConfig (make generate)
---@class ah.HandoffConfig
---the agent that takes over; a function that returns it, for agents that hand over to each other
---@field to ah.Agent|fun(): ah.Agent
---@field when string tells the model when to hand over: 1 to 200 printable ASCII characters
---@field name? string of the tool, as for `ah.tool`; with a function in `to`, it must be given
-- end of ah.HandoffConfig

---Returns a tool with which the model hands the conversation over to another agent.
---@param config ah.HandoffConfig
---@return ah.Tool
function ah.handoff(config) end

---@class ah.Conversation the argument of `setup`
---@field id string
---@field session ah.Session
---@field resources ah.Resources assign to it to bind more
---@field params table<string, any>
---@field add_tools fun(self: ah.Conversation, tools: ah.Tool|ah.Tool[])
---@field set_system fun(self: ah.Conversation, text: string)

-- fields of ah.EventsOptions (make generate)
---@class ah.EventsOptions a queue of the events of an agent
---@field max? integer largest number of events that wait to be read; they take at most 16 MiB
---@field types? ah.EventType[] types of events that are queued
-- end of ah.EventsOptions

---@class ah.Events a queue of events; in a `for`, or called, it gives the next one, or nil
---@field dropped integer events that did not fit, in all
---@field close fun(self: ah.Events)
---@operator call: ah.Event?
---@operator len: integer

---@class ah.Unfinished a run that did not end with its process
---@field question string the text of the user, or ""
---@field asks string[] ids of its open asks
---@field since number when it was begun, by ah.now()

---@class ah.Agent a conversation that each run continues
---@field id string of the conversation
---@field unfinished? ah.Unfinished a run that waits in the store; `agent:run()` goes on with it
---@field run fun(self: ah.Agent, text?: string|ah.Parts, with?: ah.RunWith): ah.Reply?, ah.Error?
---@field send fun(self: ah.Agent, text: string|ah.Parts): true?, ah.Error?
---@field add_tools fun(self: ah.Agent, tools: ah.Tool|ah.ToolList)
---@field remove_tools fun(self: ah.Agent, tools: string|(string|ah.Tool)[])
---@field save fun(self: ah.Agent, path: string): true?, ah.Error?
---@field fork fun(self: ah.Agent, with?: ah.Fork): ah.Agent?, ah.Error?
---@field mark fun(self: ah.Agent): integer?, ah.Error?
---@field head fun(self: ah.Agent): string?, ah.Error?
---@field rewind fun(self: ah.Agent, turn: integer, with?: ah.RewindOptions): ah.Rewound?, ah.Error?
---@field open fun(self: ah.Agent, with?: ah.Open): ah.Agent?, ah.Error?
---@field as_tool fun(self: ah.Agent, config: ah.AsTool): ah.Tool
---@field use fun(self: ah.Agent, model: string|ah.Adapter|ah.Use): ah.Agent?, ah.Error?
---@field on_ask fun(self: ah.Agent, front: ah.Front)
---@field respond fun(self: ah.Agent, id: string, value: any): true?, ah.Error?
---@field cancel fun(self: ah.Agent): true?, ah.Error?
---@field events fun(self: ah.Agent, options?: ah.EventsOptions): ah.Events
---@field wait fun(self: ah.Agent, seconds?: number): ah.Reply?, ah.Error?
---@field background fun(self: ah.Agent): ah.BackgroundCall[]
---@field cancel_background fun(self: ah.Agent, ticket: integer): true?, ah.Error?
---@field close fun(self: ah.Agent): true?, ah.Error?
---@field tools fun(self: ah.Agent): ah.Tool[]
---@field transcript fun(self: ah.Agent): string

---@class ah.BackgroundCall an outstanding background call
---@field ticket integer
---@field name string of the tool
---@field arguments table
---@field since number when it was started, by ah.now()
---@field done boolean the handler has ended, and the result waits to be taken

---Runs until the model answers without calling a tool.
---@param request ah.Request
---@return ah.Reply? reply
---@return ah.Error? err
function ah.run(request) end

---Returns an agent: the same as ah.run, as a conversation that each run continues.
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
---@field prices_of? string date of the prices; absent for the program's own and supposed ones
---@field long_prices? ah.ModelPrices of requests with more input tokens than `long_above`
---@field long_above? integer
---@field efforts? string[]
---@field known? ah.ModelKnown sources of these facts; absent for models that are written in Lua

---@class ah.ModelPrices US dollars for a million tokens
---@field input? number
---@field cached_read? number
---@field cached_write? number
---@field output? number

---@class ah.ModelKnown sources of the facts of a model
---@field abilities ah.ModelSource
---@field figures ah.ModelSource
---@field name ah.ModelSource
---@field learned? table<string, boolean|string> features that a server has refused

---@class ah.ModelSource
---@field from "table"|"newest"|"alias"|"settings"|"default"
---@field family? string
---@field since? string
---@field source? string
---@field date? string

---Facts of a model; they override the table of models.
---@class ah.ModelRow
---@field model? string "provider/model", if the key is an alias
---@field like? string name of another model, whose row is used
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

---Returns what an adapter can do with a model.
---@param model string|ah.Adapter
---@param given? ah.CapabilitiesOf
---@return ah.Capabilities?
---@return ah.Error? err
function ah.capabilities(model, given) end

---Defines aliases of models and facts of models for this host: `ah.alias { fast = "groq/...", tuned
---= { model = "openai/ft:...", like = "gpt-6.1-sol" } }`.
---@param names table<string, string|ah.ModelRow>
function ah.alias(names) end

---Returns the aliases that ah.alias and the configuration define: alias -> "provider/model".
---@return table<string, string>
function ah.aliases() end

---A provider of models. url: its own address, if it has one. url_env, key_env: environment
---variables; the first one that is set counts. keyless: it needs no key.
---@class ah.Provider
---@field name string
---@field url? string
---@field url_env string[]
---@field key_env string[]
---@field keyless boolean

---Returns all providers but those written in Lua.
---@return ah.Provider[]
function ah.providers() end

---Returns the name that a mistyped word most likely means; nil if none is similar.
---@param word string
---@param names string[]
---@return string?
function ah.nearest(word, names) end

---Returns an agent that continues the conversation in a file of agent:save.
---@param path string
---@param config? ah.Config
---@return ah.Agent? agent
---@return ah.Error? err
function ah.load(path, config) end

-- -- policies, strategies, asks and budgets -----------------------------------------------

---@class ah.Answered a call that has its result
---@field name string
---@field arguments? table
---@field success boolean

---@class ah.Call the argument of policies
---@field name string
---@field id string
---@field parent_call? string
---@field arguments? table
---@field annotations ah.Annotations of the tool
---@field version? string of the tool
---@field raw_arguments string the text that the model wrote
---@field tools ah.Tool[]
---@field calls ah.Answered[] answered calls of the conversation so far
---@field iteration integer
---@field run integer
---@field history ah.Message[]
---@field changes fun(self: ah.Call): ah.StateChange[]

---@class ah.Outcome the argument of strategies: a call and its result, and what a strategy may do
---@field name string
---@field id string
---@field parent_call? string
---@field arguments? table
---@field raw_arguments string the text that the model wrote
---@field result? string
---@field value? any
---@field success boolean
---@field annotations ah.Annotations of the tool
---@field version? string of the tool
---@field tools ah.Tool[]
---@field calls ah.Answered[] answered calls of the conversation so far
---@field iteration integer
---@field run integer
---@field history ah.Message[]
---@field state any the strategy's own value, kept from call to call; a copy, to be assigned
---@field add fun(self: ah.Outcome, tools: ah.Tool|ah.Tool[])
---@field replace fun(self: ah.Outcome, tools: ah.Tool|ah.Tool[])
---@field remove fun(self: ah.Outcome, tools: string|(string|ah.Tool)[])
---@field note fun(self: ah.Outcome, text: string)
---@field prompt fun(self: ah.Outcome, text: string)

---@alias ah.Changes ah.Tool|ah.Tool[]|nil

---@class ah.StrategyObject
---@field name? string
---@field tools? ah.Tool[] declared from the start
---@field later? ah.Tool[] tools that it may add; a loaded conversation binds them again
---@field describe? table<string, string> by tool name: text appended to the description
---@field before? fun(self: table, m: ah.Outcome): string? a result replaces the handler's
---@field after? fun(self: table, m: ah.Outcome): ah.Changes

---@alias ah.Strategy fun(m: ah.Outcome): ah.Changes|ah.StrategyObject

---@alias ah.Verdict nil|"allow"|"deny"|"ask"|"rewrite"
---@alias ah.ResultVerdict nil|"keep"|"replace"|"redact"|"block"|"ask"
---@alias ah.SeenResult { success: boolean, content: string, value: any }

---@class ah.PolicyObject
---@field name? string
---@field before? fun(call: ah.Call): ah.Verdict, (string|table)?
---@field after? fun(call: ah.Call, result: ah.SeenResult): ah.ResultVerdict, any
---@field shadow? boolean true: its verdicts are reported in events and not obeyed

---@alias ah.Policy fun(call: ah.Call): ah.Verdict, (string|table)?|ah.PolicyObject

---@alias ah.Guard fun(text: string, value: any): (boolean|string)?, string?

-- fields of ah.Guards (make generate)
---@class ah.Guards functions that look at texts and may end the run
---@field input? ah.Guard|ah.Guard[] they look at the user's text before the model sees it
---@field output? ah.Guard|ah.Guard[] they look at the answer before the run returns it
-- end of ah.Guards

---@class ah.Asked the argument of `approve`
---@field id string
---@field name string
---@field arguments table
---@field parent_call? string
---@field reason string of the policy
---@field run integer
---@field result? string of an approval of changes: as the model would read it
---@field changes? fun(self: ah.Asked): ah.StateChange[] of an approval of changes

---@class ah.AskedCall a call that waits for a response
---@field id string
---@field name string
---@field arguments table
---@field parent_call? string

---@class ah.Ask a question to a person
---@field id string
---@field kind "approval"|"question"
---@field question string
---@field schema table|boolean
---@field default? any
---@field timeout? number seconds
---@field secret? boolean
---@field call ah.AskedCall
---@field run integer
---@field result? string of an approval of changes: as the model would read it
---@field changes? ah.StateChange[] of an approval of changes
---@field respond fun(self: ah.Ask, value: any, more?: any): true?, ah.Error?

---@alias ah.Front fun(ask: ah.Ask): any, any

-- fields of ah.AskConfig (make generate)
---@class ah.AskConfig of a person
---@field question string the text for the person
---@field schema? table|string|ah.Schema JSON Schema of the response; by default a string
---@field params? table<string, any> several values at once, in short form; in place of `schema`
---@field default? any the response if there is no other; must match the schema
---seconds: after this time the response is the default; without one, the ask fails. The `timeout`
---of the tool still applies
---@field timeout? number
---true: the response (such as a password) and the default appear in no event and no log
---@field secret? boolean
-- end of ah.AskConfig

---@class ah.Answer the argument of checks
---@field text string
---@field value any with `output`: the answer's JSON
---@field reply ah.Reply the reply so far
---@field run integer
---@field iteration integer

-- fields of ah.Feedback (make generate)
---@class ah.Feedback notes for the model after a number of calls or seconds
---@field every? number after this number of calls
---@field seconds? number after this number of seconds
---returns the note for the model, or nil
---@field text fun(run: { calls: integer, iteration: integer, run: integer }): string?
-- end of ah.Feedback

-- fields of ah.Price (make generate)
---@class ah.Price US dollars for a million tokens
---@field input? number US dollars for a million input tokens
---@field output? number for a million output tokens
---@field cached_read? number for a million input tokens read from the provider's cache
---@field cached_write? number for a million input tokens written to the provider's cache
-- end of ah.Price

-- fields of ah.BudgetLimits (make generate)
---@class ah.BudgetLimits limits of a budget
---@field requests? integer requests to models, retries included; exact
---@field tool_calls? integer handlers started; exact
---as reported by the provider, otherwise an estimate of four bytes a token
---@field input_tokens? integer
---as reported by the provider, otherwise an estimate of four bytes a token
---@field output_tokens? integer
---as reported by the provider, otherwise an estimate of four bytes a token
---@field total_tokens? integer
---US dollars: the cost of an answer as reported by the provider, otherwise by `prices`, otherwise
---by known prices
---@field cost? number
---prices by model name; `cost` needs them for each model without a known or reported price
---@field prices? table<string, ah.Price>
---tokens and money are never exceeded: each request first reserves the most that it can use
---@field reserve? boolean
---@field used? ah.BudgetUse the amounts used before, as `budget:used()` returned them
---@field name? string by it a store keeps what was used; 1 to 120 bytes without `/`
---@field store? string|ah.Store|ah.StoreConfig keeps what was used; with `name`
-- end of ah.BudgetLimits

-- fields of ah.BudgetUse (make generate)
---@class ah.BudgetUse amounts that were used of a budget
---@field requests? integer
---@field tool_calls? integer
---@field input_tokens? integer
---@field output_tokens? integer
---@field total_tokens? integer
---@field cost? number US dollars
---@field estimated? boolean some of the amounts are estimates, since a provider did not report them
-- end of ah.BudgetUse

---@class ah.Budget
---@field used fun(self: ah.Budget): ah.BudgetUse
---@field reserved fun(self: ah.Budget): ah.BudgetUse what the requests in flight have reserved
---@field remaining fun(self: ah.Budget): ah.BudgetUse the rest of each limit, less what is reserved

---Returns a budget; all runs that are given it share it.
---@param limits ah.BudgetLimits
---@return ah.Budget
function ah.budget(limits) end

ah.policies = {}

---Returns a policy: calls of tools with one of these annotations need an approval.
---@param rule ah.Annotations at least one
---@return ah.BeforeObject
function ah.policies.ask(rule) end

---Returns a policy: calls of tools with one of these annotations are denied.
---@param rule ah.Annotations at least one
---@return ah.BeforeObject
function ah.policies.deny(rule) end

-- fields of ah.GateConfig (make generate)
---@class ah.GateConfig
---@field policies? ah.Policy[] they decide on each call before its handler, or on its result
---decides on calls for which a policy asks; may wait
---@field approve? fun(call: ah.Asked): boolean?, (table|string)?
-- end of ah.GateConfig

---Sets the policies of the whole program.
---@param config ah.GateConfig
function ah.gate(config) end

-- fields of ah.Requires (make generate)
---@class ah.Requires
---@field tool string|string[] names of the tools that need `after`
---@field after string|string[] names of the tools that must all have succeeded before
-- end of ah.Requires

---Returns a policy: `tool` runs only after each of `after` has succeeded in this conversation.
---@param rule ah.Requires
---@return ah.BeforeObject
function ah.policies.requires(rule) end

-- fields of ah.ReadBeforeWrite (make generate)
---@class ah.ReadBeforeWrite
---@field read string|string[] names of the tools that read
---@field write string|string[] names of the tools that write
---@field argument? string name of the argument that must be equal
---@field creates? fun(value: any): boolean returns true if nothing exists there yet
-- end of ah.ReadBeforeWrite

---Returns a policy: a call of `write` needs an earlier successful call with the same argument.
---@param rule ah.ReadBeforeWrite
---@return ah.BeforeObject
function ah.policies.read_before_write(rule) end

---Returns the counters of this host, which only grow.
---@return table<string, integer>
function ah.metrics() end

-- -- prompts ------------------------------------------------------------------------------

-- fields of ah.SectionCommon (make generate)
---@class ah.SectionCommon what all sections have
---@field params? table<string, any> the parameters of the texts, in short form
---the same as JSON Schema of type `object`; its `properties` are the parameters
---@field schema? table|string|ah.Schema
---false: this section and those below it have no text and no tools
---@field enabled? boolean|fun(params: table): boolean
---`"summary"`: only the summary is rendered, see Summaries
---@field visibility? "full"|"summary"|fun(params: table): "full"|"summary"
---@field summary? string a template; required unless `visibility` is `"full"`
---@field tools? ah.Tool[] offered while the section is shown in full
---@field children? ah.Section[] another form of the array part
---@field accepts_overrides? boolean false: overrides of this section are not applied
-- end of ah.SectionCommon

-- fields of ah.SectionConfig (make generate)
---@class ah.SectionConfig: ah.SectionCommon with its children in the array part
---1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit. From the title: in lower case,
---with `-` for each sequence of other characters
---@field key? string
---@field title? string the heading, one line; without a title `key` is required
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

---Returns a section of a prompt.
---@param config ah.SectionConfig
---@return ah.Section
function ah.section(config) end

-- fields of ah.ToolsSectionConfig (make generate)
---@class ah.ToolsSectionConfig: ah.SectionCommon with its children in the array part
---1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit. From the title: in lower case,
---with `-` for each sequence of other characters
---@field key? string
---@field title? string the heading, one line; without a title `key` is required
---@field description? string the text, see Templates
---@field template? string another name of `description`
---@field [integer] ah.Section
-- end of ah.ToolsSectionConfig

---The same as ah.section; the text is called description.
---@param config ah.ToolsSectionConfig
---@return ah.Section
function ah.tools_section(config) end

-- fields of ah.PromptConfig (make generate)
---@class ah.PromptConfig with its sections in the array part
---@field key? string 1 to 128 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or digit
---@field name? string another name of `key`
---the namespace of the key: one such name, or several joined by `/`, such as `examples/tooling`; at
---most 128 characters in all
---@field ns? string
---@field sections? ah.Section[] another form of the array part
---@field output? table|string|ah.Schema JSON Schema of the last answer, see Structured output
---@field resources? any for handlers, as `ctx.resources`; also `prompt.resources`
---@field overrides? table|string see Overrides
---@field [integer] ah.Section
-- end of ah.PromptConfig

---@class ah.Rendered tostring gives its text
---@field text string
---@field tools ah.Tool[]
---@field summarized string[] paths of the sections that are shown as their summaries
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

---Returns a prompt: a tree of sections.
---@param config ah.PromptConfig
---@return ah.Prompt
function ah.prompt(config) end

-- -- tools ----------------------------------------------------------------------------------

---@class ah.Ctx what a handler may know and do; all but `cancelled` raise `usage` after its call
---@field call_id string
---@field idempotency_key? string the key of the call for other systems; only with a store
---@field tool_name string
---@field run integer
---@field deadline number? seconds left for the run or the call, whichever is less
---@field calls ah.AnsweredCall[] answered calls of the conversation so far
---@field coerced string arguments whose type was corrected, or ""
---@field prompt? ah.Prompt the prompt of the run
---@field session ah.Session
---@field rendered_prompt? ah.Rendered
---@field adapter ah.CtxAdapter
---@field budget_tracker? ah.Budget
---@field resources ah.Resources
---@field filesystem? ah.Filesystem
---@field ask fun(self: ah.Ctx, ask: ah.AskConfig): any, ah.Error?
---@field step fun(self: ah.Ctx, name: string, f: fun(key: string), with?: ah.StepConfig): any
---@field cancelled fun(self: ah.Ctx): boolean
---@field add_tools fun(self: ah.Ctx, tools: ah.Tool|ah.ToolList)
---@field remove_tools fun(self: ah.Ctx, tools: string|(string|ah.Tool)[])
---@field note fun(self: ah.Ctx, text: string)
---@field publish fun(self: ah.Ctx, value: table)
---@field progress fun(self: ah.Ctx, what: number|string, text?: string)
---@field enlist fun(self: ah.Ctx, object: table, name?: string): table
---@field changes fun(self: ah.Ctx): ah.StateChange[]

---@class ah.AnsweredCall
---@field name string
---@field arguments? table
---@field success boolean

-- fields of ah.StepConfig (make generate)
---@class ah.StepConfig
---what to do if the program died while the function was at work, see Lost steps
---@field on_lost? "tell"|"retry"|"ask"|fun(key: string)
---@field secret? boolean true: the result is not recorded, and the call is not durable from here on
-- end of ah.StepConfig

---@class ah.CtxAdapter
---@field provider string
---@field model string
---@field tool_change_mode string
---@field supports_dynamic_tools boolean

-- fields of ah.ToolCommon (make generate)
---@class ah.ToolCommon fields that tools and methods share
---the description for the model, unless the tool is declared in brief; UTF-8, up to 16 KiB
---@field full_description? string
---the parameters, in short form or as a type; with a type, `args` is an instance
---@field params? table<string, any>
---the parameters, as JSON Schema of type `object`; not together with `params`
---@field schema? table|string|ah.Schema
---JSON Schema of the value, or its type; defaults are filled in. A call with a value that does not
---fit fails
---@field result? table|string|ah.Schema
---up to 32 example calls, `{ description = ..., input = ..., output = ... }`, see Examples
---@field examples? ah.Example[]
---@field annotations? ah.Annotations statements on the tool for policies, see Annotations
---version of the definition, 1 to 64 bytes. A change is reported when a saved conversation
---continues; no model sees it
---@field version? string
---`function(value)`: returns the text of the value for the model. If it fails or returns no text, a
---`warning` is emitted, and the model gets JSON
---@field render? fun(value: any): string
---@field parallel? boolean true: adjacent calls of such tools run at the same time
---what becomes of a call that was at work when its process ended
---@field on_lost? "tell"|"retry"|"ask"|fun(key: string, arguments: table): boolean?, any
---true: after a crash the handler is entered again from its beginning, and is given what its steps
---have got
---@field durable? boolean
---true: a call of the model is answered at once with a ticket, and its result follows, see In the
---background
---@field background? boolean
---seconds: limit of one call, which is then stopped and fails. Without a timeout, the code of the
---call may be at work for 10 seconds
---@field timeout? number
---@field memory? number bytes: memory that one call may use
---bytes: longest result for the model. Of a longer result the model sees head and tail, and a file
---has all of it
---@field max_result? integer
---true: arguments of a wrong type are converted if the meaning is clear, see `validate`;
---`ctx.coerced` and the event `tool_invoked` list them
---@field coerce? boolean
---@field strict? boolean true: the provider enforces the schema, see strict tools
---@field return_direct? boolean true: the result is the answer of the run, see Results as answers
-- end of ah.ToolCommon

-- fields of ah.ToolConfig (make generate)
---@class ah.ToolConfig: ah.ToolCommon
---@field name string 1 to 64 of `a-z`, `0-9`, `_` and `-`
---@field description string 1 to 200 printable ASCII characters; surrounding blanks are removed
---`function(args, ctx)`; without a handler, and without an executor, each call fails
---@field handler? fun(args: table, ctx: ah.Ctx): any, string?
---@field accepts_overrides? boolean false: overrides of the description are not applied
-- end of ah.ToolConfig

-- fields of ah.Annotations (make generate)
---@class ah.Annotations statements on a tool, for policies; a missing field says nothing
---@field read_only? boolean the tool changes nothing
---@field destructive? boolean the tool may delete or overwrite
---@field idempotent? boolean a second equal call has no further effect
---@field open_world? boolean the tool reaches outside of the program: the network, other processes
---@field untrusted? boolean the definition and the results come from outside of the program
-- end of ah.Annotations

---@class ah.Example
---@field description? string
---@field input? table
---@field output? any

---@class ah.Tool
---@field name string
---@field description string the full description, if there is one
---@field parameters table JSON Schema, as it is sent to a model
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
---@field background boolean
---@field timeout? number
---@field memory integer
---@field max_result integer
---@field coerce boolean
---@field strict? boolean
---@field return_direct boolean
---@field accepts_overrides boolean

-- fields of ah.ResultConfig (make generate)
---@class ah.ResultConfig
---@field message? string text for the model
---@field value? any the result as a Lua value
---@field payload? any another name of `value`
---@field success? boolean false: the call fails
---true: the model sees only the message. This keeps the context short, not the value secret:
---sessions get the value, and a message may quote it
---@field exclude_value_from_context? boolean
-- end of ah.ResultConfig

---@class ah.Result a value that a handler may return

---Returns a tool.
---@param config ah.ToolConfig
---@return ah.Tool
function ah.tool(config) end

---Returns a tool of the C program around the script.
---@param name string
---@return ah.Tool
function ah.host_tool(name) end

---Returns a success with a value and a message for the model.
---@param value? any
---@param message? string
---@return ah.Result
function ah.ok(value, message) end

---Returns a failure with a message for the model.
---@param message string
---@return ah.Result
function ah.fail(message) end

---Returns a success or a failure with all fields of a result.
---@param config ah.ResultConfig
---@return ah.Result
function ah.result(config) end

-- -- entities ---------------------------------------------------------------------------------

-- fields of ah.EntityConfig (make generate)
---@class ah.EntityConfig
---1 to 64 letters, digits and `_`; used in events, errors and saved conversations
---@field name? string
---the beginning of the tools' names: 1 to 24 letters, digits, `_` and `-`; not `planning` and not
---beginning with `planning_`
---@field prefix? string
---name of a field or method, or `function(self)`, which cannot wait; its value, a number or 1 to
---512 bytes, identifies an instance
---@field id? string|fun(self: table): string|number
---@field fields? string[] the fields that a model sees
---the fields that a store keeps; or give the class methods `snapshot` and `restore`
---@field state? string[]
---true: no method changes an instance, and no call locks, copies and restores it
---@field stateless? boolean
---`function(id)`: returns the instance with this id, a plain table that becomes an instance, or
---nil; may wait
---@field find? fun(id: string): table?
-- end of ah.EntityConfig

-- fields of ah.MethodConfig (make generate)
---@class ah.MethodConfig: ah.ToolCommon
---@field name? string letters, digits, `_` and `-`; at most 48 characters together with the prefix
---@field description string as in `ah.tool`
---`function(self, args, ctx)`; scripts can call it as a method of the instances, by that name
---@field handler? fun(self: table, args: table, ctx: ah.Ctx?): any, string?
---in place of `handler`: the name of a method that the class already has; also the default of
---`name`
---@field method? string
---@field stateless? boolean true: this method does not change the instance
-- end of ah.MethodConfig

---@class ah.Entity a class; a call of it with a table makes an instance
---@field name string
---@field prefix string
---@field tool fun(self: ah.Entity, config: ah.MethodConfig): ah.Entity
---@field [string] any methods and fields of the instances
---@overload fun(data: table?): table?

---Returns a class whose instances' methods become tools.
---@param config ah.EntityConfig
---@return ah.Entity
function ah.entity(config) end

---Returns true if the value is an instance with tools.
---@param value any
---@return boolean
function ah.is_provider(value) end

---Lists the tools that an instance has.
---@param instance table
---@return { name: string, description: string, params: table, method: string }[]
function ah.tools_of(instance) end

---Withdraws the tools of an entity in all conversations and returns their number.
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
---| "store"
---| "conflict"
---| "diverged"
---| "not_recorded"
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

---@class ah.Error tostring gives "code: message"
---@field code ah.Code
---@field message string
---@field is fun(self: ah.Error, code: ah.Code): boolean
---@field phase? "request"|"tool"|"response"
---@field retryable? boolean
---@field status? integer of HTTP
---@field reply? ah.Reply the reply up to the failure
---@field max_iterations? integer
---@field window? integer with `context_full`: tokens that the model takes
---@field used? number with `context_full`: tokens of the conversation; of a budget: the amount
---@field budget? string with `budget_exceeded`: the field of the budget
---@field limit? number likewise: its limit
---@field needed? number likewise, with `reserve`: the most that the request may use
---@field max_tokens? integer likewise: the longest answer that would fit
---@field requested_tool? string
---@field available_tools? string[]
---@field section_path? string
---@field tool? string
---@field param? string
---@field params_type? string
---@field provider_class? string
---@field asks? string[] with `waiting`: ids of the asks
---with `http`: refused, dns, tls, ... (docs/reference/errors.md); with `usage` of `ah.load`:
---not_found, unreadable or damaged
---@field reason? string
---@field requested_overrides? table<string, "full"|"summary"> with `visibility_expansion_required`
---@field section_keys? string[] with `visibility_expansion_required`

---Returns an error object to raise or return.
---@param what string|{ code: ah.Code?, message: string, [string]: any }
---@return ah.Error
function ah.error(what) end

-- -- models for tests --------------------------------------------------------------------------

---@class ah.Adapter: ah.Capabilities a model as an object
---@field done fun() raises unless every turn was used
---@field requests fun(): (table|false)[] the requests so far; false for turns that are strings

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

---@class ah.TestCall an absent field matches anything
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
---in place of turns: returns a turn for each request
---@field answer? fun(request: table): ah.ScriptedAnswer
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
---the n-th turn answers the request whose conversation has n - 1 answers: a test goes on with a
---conversation in another process
---@field resumes? boolean
---@field [integer] ah.ScriptedAnswer
-- end of ah.Script

---@alias ah.ScriptedAnswer string|ah.Turn|fun(request: table): string|ah.Turn

---Returns a model that plays the answers of a test (docs/reference/scripted.md).
---@param turns ah.Script|fun(request: table): ah.ScriptedAnswer
---@return ah.Adapter
function ah.scripted(turns) end

---Writes the answer of an adapter piece by piece (docs/reference/adapters.md).
---@class ah.Out
---@field text fun(self: ah.Out, text: string)
---@field call fun(self: ah.Out, call: ah.OutCall): integer
---@field arguments fun(self: ah.Out, call: integer, text: string)
---@field results fun(self: ah.Out): ah.CallResult[], table results of its calls; the new request
---@field invoke fun(self: ah.Out, call: ah.OutCall): ah.CallResult, table `call`, then `results`
---@field line fun(self: ah.Out, event: string|table) with `reads`: an event of that wire
---@field warn fun(self: ah.Out, text: string) emits a `warning` event
---@field cancelled fun(self: ah.Out): boolean true if the run no longer waits for the answer
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
---@field content string the text for the model
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

---Returns a model whose adapter is written in Lua.
---@param spec ah.AdapterSpec
---@return ah.Adapter
function ah.adapter(spec) end

-- fields of ah.ConformanceSpec (make generate)
---@class ah.ConformanceSpec
---`serve(turns)`: sets up a model that answers with these turns, as a scripted model does, through
---the adapter under test
---@field serve fun(turns: ah.ScriptedAnswer[]): table
---@field capabilities? string[] what the adapter can do beyond what all adapters can
---@field only? string runs only the cases whose name contains it
-- end of ah.ConformanceSpec

---Tests an adapter (docs/reference/adapters.md). tostring of the report gives one line for each
---case.
---@param spec ah.ConformanceSpec
---@return { passed: integer, failed: integer, skipped: integer, cases: table[] }
function ah.conformance(spec) end

-- -- schemas and JSON ----------------------------------------------------------------------------

---@class ah.SchemaOptions
---@field documents? table<string, any> schemas by URI, for references
---@field formats? boolean
---@field unknown_keywords? "refuse"|"allow" "allow": unknown keywords have no effect

---@class ah.Schema
---@field validate fun(self: ah.Schema, value: any, extra?: string|table): true?, any, any
---@field validate_text fun(self: ah.Schema, text: string, extra?: string|table): true?, any, any
---@field text fun(self: ah.Schema): string

---@class ah.SchemaModule
---@overload fun(schema: any, options?: ah.SchemaOptions): ah.Schema
ah.schema = {}

---Returns a compiled schema.
---@param schema any a table, JSON text, true or false
---@param options? ah.SchemaOptions
---@return ah.Schema
function ah.schema.compile(schema, options) end

---Returns the schema of a short form.
---@param params table<string, any>
---@return ah.Schema
function ah.schema.short(params) end

---Returns any schema as readable text, in short forms if possible.
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

---Marks the table, so that it is encoded as a JSON array even if it is empty. Returns it.
---@generic T: table
---@param t T
---@return T
function ah.array(t) end

---Marks the table, so that it is encoded as a JSON object. Returns it.
---@generic T: table
---@param t T
---@return T
function ah.object(t) end

-- -- bytes --------------------------------------------------------------------------------

---@alias ah.HashForm "hex"|"bytes"

---Returns the SHA-256 of a text.
---@param text string
---@param form? ah.HashForm default "hex", in lower case
---@return string
function ah.sha256(text, form) end

---Returns the HMAC of a text, with SHA-256.
---@param key string
---@param text string
---@param form? ah.HashForm
---@return string
function ah.hmac(key, text, form) end

---Returns n random bytes, fit for keys; raises if the system has no generator.
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

-- fields of ah.StoreConfig (make generate)
---@class ah.StoreConfig where conversations last
---the file, which is made if it is missing; needed unless there is a `name`, or `engine` is
---`memory`
---@field path? string
---@field engine? "sqlite"|"memory" `memory`: nothing outlives the object and its agents
---in place of a path: of an open store of the program (engines in C), or of one in memory
---@field name? string
---what is forced to the disk, to survive a loss of power: nothing at once, records before an effect
---outside, or all; the end of the process loses nothing
---@field sync? "process"|"effects"|"full"
---keeps the bytes of requests and responses, too, so that replay names a difference by its place in
---the JSON
---@field bytes? boolean
---@field force? boolean also on a network filesystem, where two machines may damage the file
-- end of ah.StoreConfig

-- fields of ah.StoreAsksOptions (make generate)
---@class ah.StoreAsksOptions
---@field id? string only those of conversations whose ids begin so
-- end of ah.StoreAsksOptions

-- fields of ah.RespondOptions (make generate)
---@class ah.RespondOptions
---@field by? string the name of the person that responds; it is recorded
-- end of ah.RespondOptions

---@class ah.StoredAsk an open ask of a conversation in a store
---@field conversation string
---@field ask string
---@field kind "approval"|"question"|"lost"
---@field question string
---@field schema? any JSON Schema of the response; nil for approvals of calls
---@field default? any
---@field tool? string
---@field arguments? table
---@field result? string of an approval of changes: as the model would read it
---@field changes? ah.StateChange[] of an approval of changes; nil: they are erased
---@field asked number seconds since 1970
---@field timeout? number seconds from then

---@class ah.ChangedFile an entry before or after a change
---@field type "file"|"folder"|"link"|"other"
---@field hash? string SHA-256 of its content
---@field size? integer

---@class ah.StateChange one item of a list of changes: a file, a slice or an entity
---@field kind "file"|"slice"|"entity"
---@field path? string of a file
---@field root? string of a file: folder of the machine
---@field filesystem? string of a file: name of the files in memory
---@field op? "add"|"change"|"remove" of a file
---@field before? any of a file an ah.ChangedFile, of an entity its state
---@field after? any
---@field diff? string unified
---@field binary? true
---@field cut? true the diff ends early
---@field name? string of a slice
---@field kept? integer how many of the oldest values stayed
---@field removed? table[]
---@field added? table[]
---@field class? string of an entity
---@field id? string of an entity
---@field fields? table<string, { before: any, after: any }>

-- fields of ah.ConversationsOptions (make generate)
---@class ah.ConversationsOptions
---@field prefix? string only those whose ids begin so
---@field folder? string only those of this working folder, an absolute path
---@field state? "idle"|"running"|"waiting" only those in this state
---@field waiting? boolean only those that wait for the response to an ask
---@field limit? integer at most so many, the newest
-- end of ah.ConversationsOptions

---@class ah.StoredConversation a conversation in a store
---@field id string
---@field title? string the first words of its first question
---@field state? "idle"|"running"|"waiting"
---@field waiting string[] ids of the asks for which it waits
---@field changed integer time of its last record, ms since 1970
---@field number integer of its last record
---@field messages integer messages that its holder has not taken yet
---@field folder? string
---@field script? string
---@field agent? string

-- fields of ah.RecordsOptions (make generate)
---@class ah.RecordsOptions
---@field from? integer number of the first record
---@field to? integer number of the last record
---@field kinds? string[] only records of these kinds
---@field members? string[] only these members of `said`, which is faster
---@field kept? boolean with what is kept, and not only said
-- end of ah.RecordsOptions

---@class ah.StoredRecord a record of a stream
---@field number integer
---@field time integer ms since 1970
---@field kind string
---@field said table
---@field kept? any only if asked for
---@field erased? true what it kept was erased

-- fields of ah.StoreSearchOptions (make generate)
---@class ah.StoreSearchOptions
---@field best? boolean the best hits first, of the newest 10,000; else the newest first
---@field folder? string only in conversations of this working folder, an absolute path
---@field limit? integer at most so many hits
-- end of ah.StoreSearchOptions

---@class ah.Hit a text of a conversation in which all words are
---@field id string of the conversation
---@field title? string the first words of its first question
---@field number integer of the record
---@field time integer ms since 1970
---@field role "user"|"assistant"|"tool"|"note"
---@field snippet string the text around the words, in one line
---@field marks integer[][] first and last byte of each word in the snippet

---@alias ah.NextRecord fun(): ah.StoredRecord?

---@class ah.Subscription
---@field close fun(self: ah.Subscription)

---@class ah.Replay the outcome of store:replay
---@field requests integer
---@field equal integer
---@field other_revision integer
---@field revision? integer
---@field revision_now? integer
---@field not_recorded integer
---@field difference? ah.ReplayDifference
---@field handlers? ah.HandlersReplay of testing.replay, with `tools`

-- fields of ah.ReplayOptions (make generate)
---@class ah.ReplayOptions
---@field tools? ah.Agent|ah.Tool[] their handlers run again, too
---the session of the agent, if handlers use it by another way than `ctx.session`
---@field session? ah.Session
-- end of ah.ReplayOptions

---@class ah.HandlersReplay the outcome of handlers that ran again
---@field turns integer
---@field calls integer
---@field equal integer
---@field not_recorded integer
---@field missing { turn: integer, call: string, tool: string, what: string }[]
---@field difference? ah.HandlersDifference

---@class ah.HandlersDifference
---@field turn integer
---@field call string id of the call
---@field tool string
---@field record integer number of the record `call_started`
---@field recorded string
---@field now? string
---@field message? string why there is no result now

---@class ah.ReplayDifference
---@field record integer number of the record `request`
---@field request integer from 1
---@field in "conversation"|"tools"|"system"|"settings"|"entries"
---@field entry? integer index of an entry, from 0
---@field pointer? string JSON pointer into the request
---@field recorded? string JSON
---@field rebuilt? string JSON

-- fields of ah.ExportOptions (make generate)
---@class ah.ExportOptions
---with what is kept, and not only said; an unfinished run can go on only with it
---@field kept? boolean
-- end of ah.ExportOptions

-- fields of ah.ImportOptions (make generate)
---@class ah.ImportOptions
---@field id? string the id that the conversation gets
-- end of ah.ImportOptions

---@class ah.Imported
---@field id string
---@field records integer
---@field erased integer records of which something is erased
---@field head string NUMBER:HASH of the last record

-- fields of ah.VerifyOptions (make generate)
---@class ah.VerifyOptions
---@field head? string a head that was noted before, with which cuts and forgeries are found
-- end of ah.VerifyOptions

---@class ah.Verified
---@field id string
---@field success boolean
---@field code? "changed"|"missing"|"cut"|"forged"
---@field message? string
---@field at? integer number of the first record that is wrong
---@field records integer
---@field erased integer records of which something is erased
---@field head string NUMBER:HASH of the last record

---@class ah.StoredStream
---@field id string
---@field conversation boolean false for sessions, budgets and files
---@field records integer
---@field bytes integer with long texts that it shares
---@field erased integer records of which something is erased
---@field messages integer not taken yet
---@field oldest integer time of the first record, ms since 1970
---@field changed integer time of the last record, ms since 1970

---@class ah.StoreSizes
---@field size integer bytes of the files; 0 in memory
---@field blobs integer number of long texts
---@field blob_bytes integer
---@field streams ah.StoredStream[]

---@class ah.Store
---@field path? string
---@field asks fun(self: ah.Store, options?: ah.StoreAsksOptions): ah.StoredAsk[]?, ah.Error?
---@field respond fun(self, id: string, ask: string, v, o?: ah.RespondOptions): true?, ah.Error?
---@field cancel fun(self: ah.Store, id: string): true?, ah.Error?
---@field send fun(self: ah.Store, id: string, text: string): true?, ah.Error?
---@field changes fun(self, id: string, turn?: integer, last?: integer): ah.StateChange[]?, any
---@field conversations fun(self, o?: ah.ConversationsOptions): ah.StoredConversation[]?, ah.Error?
---@field records fun(self, id: string, o?: ah.RecordsOptions): ah.NextRecord?, ah.Error?
---@field search fun(self, words: string, o?: ah.StoreSearchOptions): ah.Hit[]?, ah.Error?
---@field subscribe fun(self, fn: fun(c: ah.StoredConversation)): ah.Subscription?, ah.Error?
---@field replay fun(self, id: string): ah.Replay?, ah.Error?
---@field export fun(self: ah.Store, id: string, o?: ah.ExportOptions): string?, ah.Error?
---@field import fun(self: ah.Store, text: string, o?: ah.ImportOptions): ah.Imported?, ah.Error?
---@field delete fun(self: ah.Store, id: string): true?, ah.Error?
---@field verify fun(self: ah.Store, id: string, o?: ah.VerifyOptions): ah.Verified?, ah.Error?
---@field stat fun(self: ah.Store): ah.StoreSizes?, ah.Error?
---@field close fun(self: ah.Store)

---Opens a store of conversations.
---@param config string|ah.StoreConfig the path of its file, or its fields
---@return ah.Store?
---@return ah.Error?
function ah.store(config) end

-- fields of ah.WatchOptions (make generate)
---@class ah.WatchOptions
---watches everything below a folder, including later entries. Links are not followed
---@field recursive? boolean
---seconds: a batch is delivered after this time without changes, and after a second at the latest
---@field quiet? number
---@field max? integer largest number of files and folders to watch
-- end of ah.WatchOptions

---@class ah.Change
---@field kind "created"|"changed"|"removed"|"moved"|"overflow"
---@field path string
---@field from? string with "moved": the old path

---@class ah.Watch
---@field next fun(self: ah.Watch, timeout?: number): ah.Change[]?
---@field changes fun(self: ah.Watch): fun(): ah.Change[]?
---@field close fun(self: ah.Watch)

---Watches a file or a folder; with fn, calls it with each batch of changes.
---@param path string
---@param fn? fun(changes: ah.Change[])
---@param options? ah.WatchOptions
---@return ah.Watch?
---@return ah.Error?
function ah.watch(path, fn, options) end

---Returns the table of this name, the same one in every file and after every reload.
---@param name string
---@return table
function ah.state(name) end

-- -- types, sessions, resources ----------------------------------------------------------------

-- fields of ah.TypeConfig (make generate)
---@class ah.TypeConfig
---@field name string 1 to 64 of `a-z`, `A-Z`, `0-9` and `_`, not beginning with a digit
---@field fields? table<string, any> in short form; either this or `schema`
---@field schema? table|string|ah.Schema JSON Schema of type `object`
---`function(value)`: returns the text that the model sees for a tool's value
---@field render? fun(value: table): string
-- end of ah.TypeConfig

---@class ah.Type a call of it checks a table and makes an instance
---@field name string
---@field schema ah.Schema
---@overload fun(value: table): table

---Returns a class of values with a name and a schema.
---@param config ah.TypeConfig
---@return ah.Type
function ah.type(config) end

-- fields of ah.SessionConfig (make generate)
---@class ah.SessionConfig
---@field types? ah.Type[] each gets a slice with the default options of `register`
---@field bus? ah.Dispatcher the dispatcher of another session, to share it
---@field parent? ah.Session makes a child, as `parent:child()` does
---by it a store keeps the session, for all agents that have it; 1 to 120 bytes without `/`
---@field name? string
---@field store? string|ah.Store|ah.StoreConfig keeps the session; with `name`
-- end of ah.SessionConfig

-- fields of ah.SliceOptions (make generate)
---@class ah.SliceOptions
---@field policy? "state"|"log" `"log"`: outside of transactions
---@field keep? "append"|"latest" keeps all dispatched values of its own type, or only the last one
---name of a field: a value replaces the one with an equal field; not beside `keep`
---@field key? string
-- end of ah.SliceOptions

---@class ah.Slice
---@field latest fun(self: ah.Slice): table?
---@field all fun(self: ah.Slice): table[]
---@field len fun(self: ah.Slice): integer
---@field append fun(self: ah.Slice, value: table)
---@field replace fun(self: ah.Slice, list: table[])
---@field clear fun(self: ah.Slice)

---@class ah.View the slice that a reducer reads and changes
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
---@field changes fun(self: ah.Session, snapshot?: string): ah.StateChange[]
---@field child fun(self: ah.Session): ah.Session
---@field view fun(self: ah.Session): ah.Session
---@field parent? ah.Session
---@field dispatcher ah.Dispatcher
---@field [ah.Type|string] ah.Slice

---Returns a session: typed data that the tools of a conversation share.
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

---Returns a strategy that locks tools until something has happened.
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

---Returns a strategy: phases of the work, each with tools of its own.
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

---Returns a strategy: one tool stands for many until the model calls it.
---@param config ah.UnfoldConfig
---@return ah.StrategyObject
function ah.unfold(config) end

-- fields of ah.SearchConfig (make generate)
---@class ah.SearchConfig
---@field tools ah.ToolList tools and groups: 1 to 20,000 tools of different names
---@field max? integer tools that one call of `search_tools` returns
---@field by? "provider"|"here" where the search runs; `here` is `search_tools`
---@field method? "regex"|"bm25" the provider's way to search, if it has two (`anthropic`)
---@field name? string the name of the strategy
-- end of ah.SearchConfig

---Returns a strategy that hides many tools until the model finds them.
---@param config ah.SearchConfig
---@return ah.StrategyObject
function ah.search(config) end

---@type ah.PlanningTypes
ah.planning = {}

---@class ah.Builtins : string[] names of tools; options by the tool's name
---@field read_file? ah.ReadFileOptions
---@field write_file? ah.WriteFileOptions
---@field edit_file? ah.EditFileOptions
---@field list_files? ah.ListFilesOptions
---@field grep? ah.GrepToolOptions
---@field bash? ah.BashOptions
---@field http_fetch? ah.HttpFetchOptions

-- fields of ah.ReadFileOptions (make generate)
---@class ah.ReadFileOptions
---@field lines? integer lines of a result, unless the model gives a `limit`
---bytes: size of a result, which ends with a whole line and names the next one
---@field max_bytes? integer
-- end of ah.ReadFileOptions

-- fields of ah.WriteFileOptions (make generate)
---@class ah.WriteFileOptions
---@field overwrite? boolean true: every call may replace any file
-- end of ah.WriteFileOptions

-- fields of ah.EditFileOptions (make generate)
---@class ah.EditFileOptions
-- end of ah.EditFileOptions

-- fields of ah.ListFilesOptions (make generate)
---@class ah.ListFilesOptions
---@field max? integer entries shown
---leaves out what files `.gitignore` name, unless the model says `ignored`
---@field gitignore? boolean
-- end of ah.ListFilesOptions

-- fields of ah.GrepToolOptions (make generate)
---@class ah.GrepToolOptions
---@field max? integer lines shown, including their context
---leaves out what files `.gitignore` name, unless the model says `ignored`
---@field gitignore? boolean
-- end of ah.GrepToolOptions

-- fields of ah.BashOptions (make generate)
---@class ah.BashOptions
---@field timeout? number seconds: the time of a command, unless the model asks for another
---@field max_timeout? number seconds: the longest time that the model may ask for
---@field grace? number seconds: the time between TERM and KILL
---@field cwd? string the working folder, opened when the tool is made
---variables beside the usual ones: a string; `true` for the host's value; `false` for none
---@field env? table<string, string|boolean>
---@field shell? string a program that is called with `-c` and the command
---@field max_output? number bytes: output that the model is shown; of a longer one, head and tail
---bytes: longer output is kept in a file up to this size, with the last 64 KiB of the rest
---@field keep? number
---joins both streams, in the order of writing; the value then has no `stdout` and `stderr`
---@field merge? boolean
---the folder of that file in the run's filesystem. Nothing is kept if it is false, or in a run
---without files
---@field output_folder? string|false
---@field memory? number bytes: address space of each process
---@field file_size? number bytes: size of each file that is written
---@field cpu? number seconds: processor time of each process
---@field processes? number all processes of the user together; no effect for root
---@field sandbox? "none"|"auto"|"require"|"landlock"|"bubblewrap" see below
---in a sandbox: folders that can be read, 15 at most, beside the writable ones and the system's
---@field readable? string[]
---@field network? boolean in a sandbox: true if the internet can be reached
---in a sandbox: folders that can be written to beside the working folder; 15 at most
---@field writable? string[]
---in a `landlock` sandbox, for root: keeps the rights over owners (`chown`, files and processes of
---others, becoming another user)
---@field owners? boolean
-- end of ah.BashOptions

-- fields of ah.HttpFetchOptions (make generate)
---@class ah.HttpFetchOptions
---hosts that may be fetched, see below; `"public"`: any, at the ports 80 and 443
---@field allow string[]|"public"
---networks that are allowed although they are not public: `"10.1.0.0/16"`, `"127.0.0.1"`
---@field private? string[]
---@field post? boolean true: the model may send POST requests
---@field timeout? number seconds: for the whole fetch, including redirects
---@field max_bytes? integer bytes: size of a response; the transfer of a longer one is stopped
---@field shown? integer bytes: text in a result
---@field redirects? integer redirects that are followed, each checked like the first request
-- end of ah.HttpFetchOptions

-- fields of ah.PlanningConfig (make generate)
---@class ah.PlanningConfig
---@field session ah.Session keeps the plan; the section registers its types and reducers there
---the way of thinking that the text asks for; the rest is the same for all
---@field strategy? "react"|"plan_act_reflect"|"goal_decompose_route_synthesise"
---@field accepts_overrides? boolean allows overrides of its texts
-- end of ah.PlanningConfig

---Returns a section with the planning tools.
---@param config ah.PlanningConfig
---@return ah.Section
function ah.planning_section(config) end

-- fields of ah.ResourceConfig (make generate)
---@class ah.ResourceConfig
---`function(ctx)`: makes the resource. `ctx.resources` has the others; with `tool_call` and
---`prototype`, `ctx` is that of the handler
---@field provide fun(ctx: ah.Ctx): any
---one for each run; one for each call; or a new one whenever it is asked for
---@field scope? "singleton"|"tool_call"|"prototype"
---@field close? fun(value: any) `function(value)`: closes the resource
-- end of ah.ResourceConfig

---@class ah.Resources
---@field get fun(self: ah.Resources, name: string|ah.Type): any
---@field get_optional fun(self: ah.Resources, name: string|ah.Type): any

-- fields of ah.McpAuth (make generate)
---@class ah.McpAuth
---@field open? fun(url: string) shows a person the address at which to log in. May wait
---@field timeout? number seconds: time for the person
---@field file? string|false file of credentials; false: none is read or written
---@field client_id? string client that was registered with the authorization server by hand
---@field client_secret? string its secret, if it has one
---@field client_metadata_url? string `https://` address of a metadata document of the client
---@field issuer? string authorization server that it must be: that of `client_id`
---@field scope? string scopes to ask for, separated by spaces
---`http://` address of this machine at which the answer arrives; without a port: a free one
---@field redirect_uri? string
-- end of ah.McpAuth

-- fields of ah.McpConfig (make generate)
---@class ah.McpConfig
---@field command? string the program of the server: a name to be found in `PATH`, or a path
---@field args? string[] its arguments
---variables beside the usual ones: a string; `true` for the host's value; `false` for none
---@field env? table<string, string|boolean>
---@field cwd? string its working folder
---limits on what it can read, write and reach
---@field sandbox? "none"|"auto"|"require"|"landlock"|"bubblewrap"|ah.ProcessSandbox
---@field url? string in place of `command`: the address of a server that runs elsewhere
---@field headers? table<string, string> headers of each request to `url`
---@field auth? ah.McpAuth how its tokens are got, if `url` wants some
---its name in messages, and before the names of tools that are taken; 1 to 32 of `a-z`, `0-9`, `_`
---and `-`
---@field name? string
---@field prefix? string begins the name of each of its tools, with `_` behind it; as `name`
---true: adds the tools `list_resources` and `read_resource`, if it has resources
---@field resources? boolean
---@field optional? boolean true: a run goes on without its tools if it cannot be started
---as of a tool. `retry` also makes a call again, once, if the server ends during it; of a task it
---asks again
---@field on_lost? "tell"|"retry"|"ask"
---for a tool whose definition is not the pinned one: `tell` declares the new one, with a warning
---@field on_drift? "refuse"|"tell"
---the file of pinned definitions; `false`: they are pinned in memory alone
---@field pins? string|false
---@field timeout? number seconds: time of a call without a result or a report of progress
---@field longest? number seconds: time of a call altogether; a person's time does not count
---@field start_timeout? number seconds: time for the server to be ready
---@field trace? fun(ctx: ah.Ctx): ah.McpTrace? `function(ctx)`: the trace context of a call
---@field roots? string[] paths that the server may ask for
---a model that answers for the server, or `function(request, ctx)` that returns a text or a reply
---@field sampling? string|ah.Adapter|fun(request: ah.McpSampling, ctx: ah.Ctx): any, any
---@field sampling_policy? "ask"|"allow" `"ask"`: a person approves of each question to the model
-- end of ah.McpConfig

---The trace context of a call of a server of MCP, in the forms of the W3C
---@class ah.McpTrace
---@field traceparent? string
---@field tracestate? string
---@field baggage? string

---A request of a server of MCP to a model
---@class ah.McpSampling
---@field server string the name of the server
---@field messages ah.Message[]
---@field system? string
---@field max_tokens integer
---@field temperature? number
---@field stop? string[]
---@field hints string[] names of models that the server would like

-- fields of ah.McpSection (make generate)
---@class ah.McpSection
---@field uri string the address of the resource
---@field title? string as of a section
---@field key? string as of a section
-- end of ah.McpSection

-- fields of ah.McpComplete (make generate)
---@class ah.McpComplete
---@field prompt? string the name of a prompt
---@field uri_template? string in place of `prompt`: a template of resources
---@field argument string the name of the argument, or of the variable of the template
---@field value? string what has been written of it
---@field others? table<string, string> the arguments that are known already
-- end of ah.McpComplete

---A server of MCP, an item of `tools`.
---@class ah.McpServer
---the tools of the server as they are now; starts it if it does not run
---@field tools fun(self: ah.McpServer): ah.Tool[]?, ah.Error?
---its resources, `{ uri, name, title, description, mime_type, size }`
---@field resources fun(self: ah.McpServer): table[]?, ah.Error?
---templates of its resources, with `uri_template`
---@field templates fun(self: ah.McpServer): table[]?, ah.Error?
---the contents of a resource, `{ uri, mime_type, text, data }`
---@field read fun(self: ah.McpServer, uri: string): table[]?, ah.Error?
---its prompts, `{ name, title, description, arguments }`
---@field prompts fun(self: ah.McpServer): table[]?, ah.Error?
---the messages of a prompt
---@field prompt fun(self: ah.McpServer, name: string, arguments?: table): table[]?, ah.Error?
---a section with the text of a resource
---@field section fun(self: ah.McpServer, section: ah.McpSection): ah.Section?, ah.Error?
---what the server proposes for an argument
---@field complete fun(self: ah.McpServer, argument: ah.McpComplete): string[]?, ah.Error?
---what the server says about its use, a text from outside
---@field instructions fun(self: ah.McpServer): string?, ah.Error?
---@field close fun(self: ah.McpServer)

---Returns a server of MCP, whose tools a run takes. It is started when its tools are first needed.
---@param config ah.McpConfig
---@return ah.McpServer
function ah.mcp(config) end

-- fields of ah.McpScript (make generate)
---@class ah.McpScript
---@field agent ah.Agent|ah.Registry the agent, or the registry, whose tools are served
---@field prompts? ah.McpPrompt[] prompts
---@field resources? ah.McpResource[] resources, and templates of resources
-- end of ah.McpScript

-- fields of ah.McpPrompt (make generate)
---@class ah.McpPrompt
---@field name string its name, 1 to 128 bytes
---@field title? string its name for people
---@field description? string what it is for
---@field arguments? ah.McpPromptArgument[] its arguments, which are texts
---`function(arguments, ctx)`: returns a text, or a list of messages
---@field get fun(arguments: table<string, string>, ctx: ah.Ctx): string|table, string?
-- end of ah.McpPrompt

-- fields of ah.McpPromptArgument (make generate)
---@class ah.McpPromptArgument
---@field name string its name, 1 to 128 bytes
---@field title? string its name for people
---@field description? string what it is
---@field required? boolean true: a request without it is refused
---`function(text, others)`: returns values that begin as `text` does, the best first; `others` has
---the arguments that are known already
---@field complete? fun(text: string, others: table<string, string>): string[]
-- end of ah.McpPromptArgument

-- fields of ah.McpResource (make generate)
---@class ah.McpResource
---@field uri? string its address, such as `notes://today`
---in place of `uri`: a template of addresses, such as `notes://{year}/{name}`
---@field uri_template? string
---@field name string its name
---@field title? string its name for people
---@field description? string what it has
---@field mime_type? string the type of its contents
---`function(uri, ctx)`, of a template `function(params, ctx)`: returns its contents
---@field read fun(of: string|table<string, string>, ctx: ah.Ctx): any, string?
---`function(uri)` or `function(params)`: waits until the contents have changed; called again and
---again while clients listen
---@field wait? fun(of: string|table<string, string>)
---of a template: functions by the names of its variables, as of arguments
---@field complete? table<string, fun(text: string, others: table<string, string>): string[]>
-- end of ah.McpResource

-- fields of ah.McpFileOptions (make generate)
---@class ah.McpFileOptions
---@field only? string[] names of servers in the file; the others are left out
---limits of the servers that are processes
---@field sandbox? "none"|"auto"|"require"|"landlock"|"bubblewrap"|ah.ProcessSandbox
---@field cwd? string the working folder of processes for which the file names none
---@field optional? boolean true: a run goes on without the tools of a server that cannot be started
-- end of ah.McpFileOptions

---Returns the servers of a file such as .mcp.json, for `tools`. Raises an error if the file, or the
---entry of a server, cannot be used.
---@param path string
---@param options? ah.McpFileOptions
---@return ah.McpServer[]
function ah.mcp_file(path, options) end

---Returns a definition of how a resource is made and closed.
---@param config ah.ResourceConfig
---@return table
function ah.resource(config) end

-- fields of ah.FilesystemConfig (make generate)
---@class ah.FilesystemConfig
---@field root? string a folder of the machine, which must exist; a symbolic link may name it
---@field memory? boolean keeps the files in memory; without `store` they are gone with the object
---@field name? string of files in memory, unique in the process: stores know them by it
---@field store? string|ah.Store|ah.StoreConfig keeps the files in memory; with `name`
---files in memory: texts by path; with `store`, those of a new one
---@field files? table<string, string>
---@field read_only? boolean nothing can be changed
---@field allow? string[] refused names that may be written all the same
---forces each file to the disk before it takes its place. Without it, a power failure may lose or
---empty the latest writes
---@field sync? boolean
---@field max_file? number bytes: size of a file that is written, or read whole
---@field max_total? number bytes: size of all files in memory, or of the changes in an overlay
---@field max_files? number entries of a folder, a walk, the memory or an overlay
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
---@field gitignore? boolean without what files `.gitignore` leave out
-- end of ah.ListOptions

-- fields of ah.GlobOptions (make generate)
---@class ah.GlobOptions
---@field path? string the folder to look in
---@field max? integer how many are given
---@field gitignore? boolean without what files `.gitignore` leave out
-- end of ah.GlobOptions

---@alias ah.Found { path: string, line: integer, text: string, beside: true?, count: integer? }

-- fields of ah.GrepOptions (make generate)
---@class ah.GrepOptions
---@field path? string a file or folder
---@field glob? string of the files
---@field plain? boolean the pattern is the text itself
---@field ignore_case? boolean of letters; without PCRE2, of ASCII letters
---@field context? integer lines before and after each
---@field count? boolean how many a file has, in place of the lines
---@field max? integer how many are given
---@field gitignore? boolean without what files `.gitignore` leave out
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
---@field total integer number of lines in the file
---@field size integer bytes of the file
---@field binary? true
---@field crlf? true
---@field malformed? true
---@field truncated? true

---@class ah.Filesystem its methods return nil and an error if they fail
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
---@field changes fun(self): ah.StateChange[]
---@field close fun(self)

---Returns a filesystem for tools: files below a root, or in memory.
---@param config ah.FilesystemConfig
---@return ah.Filesystem? fs
---@return ah.Error? err
function ah.filesystem(config) end

-- -- tools by name ------------------------------------------------------------------------

---@alias ah.ToolList (ah.Tool|ah.ToolGroup|string|ah.ToolList)[] strings are names of groups

-- fields of ah.ToolGroupConfig (make generate)
---@class ah.ToolGroupConfig
---@field name string 1 to 64 of `a-z`, `0-9`, `_` and `-`
---@field tools ah.ToolList tools, other groups, and names of groups
-- end of ah.ToolGroupConfig

---@class ah.ToolGroup
---@field name string
---@field tools ah.Tool[]

---Returns a group: a name for several tools.
---@param config ah.ToolGroupConfig
---@return ah.ToolGroup
function ah.tool_group(config) end

---@alias ah.ToolSpec { name: string, description: string, parameters: table }

---@class ah.CallReply
---@field success boolean
---@field content string the text for a model
---@field value any
---@field code? ah.Code of a call that failed

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

---Returns a registry: a set of tools by name.
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
---@field timeout? number seconds: time for the whole request
---@field idle_timeout? number seconds: time without a byte sent or received
---@field max_body? number bytes: size of the response's body
---@field stream? "bytes"|"lines"|"sse" reads the body in pieces
---@field max_piece? number bytes: size of one line or event of a stream
---@field addresses? string[] the only addresses that are connected to
---in a durable handler: what to do if the program died while the request was under way
---@field on_lost? "tell"|"retry"
-- end of ah.HttpRequest

---@class ah.HttpResponse
---@field status integer
---@field headers table<string, string> names in lower case
---@field body string

---@class ah.HttpEvent
---@field event string "message" if the server names none
---@field data string
---@field id? string the last id that was received
---@field retry? integer milliseconds, the last that was received

---@class ah.HttpStream
---@field status integer
---@field headers table<string, string> names in lower case
---@field err? ah.Error the error that ended the pieces
---@field last_event_id? string
---@field retry? integer milliseconds
---@field read fun(self): (string|ah.HttpEvent)?, ah.Error? waits for the next piece
---@field pieces fun(self): fun(): (string|ah.HttpEvent)?, ah.Error?
---@field read_all fun(self): string?, ah.Error? the whole body, instead of pieces
---@field close fun(self)

---Sends an HTTP request and waits for the response.
---@param request ah.HttpRequest
---@return (ah.HttpResponse|ah.HttpStream)? response an ah.HttpStream if the request has `stream`
---@return ah.Error? err
function ah.http(request) end

-- fields of ah.ServerConfig (make generate)
---@class ah.ServerConfig
---handler, called with a request and a response
---@field on_request fun(request: ah.ServerRequest, response: ah.ServerResponse): any
---makes the responses to requests that the server refuses
---@field on_refusal? fun(refusal: ah.ServerRefusal, request: ah.ServerRequest): any
---an address and a port, such as `[::1]:8080`, `localhost:8080`. Port 0: any free one
---@field listen? string
---@field hosts? string[] further names that the server accepts as `Host`. `*`: any
---sites whose pages may send requests, such as `https://app.example`. `*`: any
---@field origins? string[]
---@field max_requests? integer handlers that run at once. Further requests wait
---@field max_connections? integer
---@field max_header? integer bytes: size of a request's target and headers
---@field max_body? integer bytes: size of a request's body
---@field max_bodies? integer bytes: size of all bodies that no handler has yet
---@field memory? number bytes: memory that one handler may take
---@field work_timeout? number seconds: time at work of a handler between two pieces that it writes
---@field header_timeout? number seconds: time for a new connection to send its first head
---@field body_timeout? number seconds: time from the head to the end of the body
---@field idle_timeout? number seconds: time without reading or writing, and between two requests
-- end of ah.ServerConfig

---@class ah.ServerRequest
---@field method string
---@field path string
---@field query table<string, string[]>
---@field target string path and query as they were sent
---@field headers table<string, string[]> names in lower case
---@field body string nil if the request is refused
---@field remote string the client's address and port

---@class ah.ServerRefusal
---@field status integer
---@field message string the reason, for people

-- fields of ah.ServerAnswer (make generate)
---@class ah.ServerAnswer
---@field status? integer default for a refused request: the status of the refusal
---strings by name, or lists of strings for several of a name
---@field headers? table<string, string|string[]>
---a string is sent as `text/plain` unless `headers` say otherwise, a table as JSON
---@field body? string|table
-- end of ah.ServerAnswer

-- fields of ah.ServerHead (make generate)
---@class ah.ServerHead
---@field status? integer
---strings by name, or lists of strings for several of a name
---@field headers? table<string, string|string[]>
---bytes: size of the body, sent to the client. The rest of a longer body is dropped; a shorter one
---breaks off the response
---@field length? integer
-- end of ah.ServerHead

-- fields of ah.ServerEvent (make generate)
---@class ah.ServerEvent
---@field event? string kind of the event, one line
---@field data? string text of the event, of any number of lines
---@field id? string one line; a client that reconnects sends the last one that it received
---@field retry? integer milliseconds: time after which a client that lost the connection reconnects
-- end of ah.ServerEvent

---@class ah.ServerResponse
---@field begin fun(self, head?: ah.ServerHead): true?, ah.Error?
---@field write fun(self, piece: string): true?, ah.Error?
---@field event fun(self, event: ah.ServerEvent): true?, ah.Error?
---@field wait fun(self): true?, ah.Error? true when all that was written is taken or sent
---@field close fun(self)
---@field abort fun(self)

---@class ah.Server
---@field url string
---@field address? string nil after it is closed
---@field port? integer nil after it is closed
---@field wait fun(self, seconds?: number): boolean true when it is closed
---@field close fun(self)

---Starts an HTTP server.
---@param config ah.ServerConfig
---@return ah.Server? server
---@return ah.Error? err if it cannot listen
function ah.serve(config) end

-- fields of ah.ProcessSandbox (make generate)
---@class ah.ProcessSandbox
---@field kind? "none"|"auto"|"require"|"landlock"|"bubblewrap" the kind, as above
---@field read? string[] folders that it can read, beside the system's, and those in `write`
---@field write? string[] folders that it can write to, beside its temporary one (`$TMPDIR`)
---@field network? boolean true if the internet can be reached
---@field owners? boolean with `landlock`, for root: keeps the rights over owners
-- end of ah.ProcessSandbox

-- fields of ah.ProcessLimits (make generate)
---@class ah.ProcessLimits What a child process may use.
---@field timeout? number seconds: time after which the process is ended in any case
---seconds: time from TERM to KILL, and on `close` from the end of its input to TERM
---@field grace? number
---@field memory? integer bytes: address space of each process
---@field file_size? integer bytes: size of each file that is written
---@field cpu? integer seconds: processor time of each process
---@field processes? integer all processes of the user together; no effect for root
-- end of ah.ProcessLimits

-- fields of ah.ProcessConfig (make generate)
---@class ah.ProcessConfig: ah.ProcessLimits
---@field command string the program: a name to be found in `PATH`, or a path. No shell is used
---@field args? string[] its arguments, passed unchanged
---variables beside the usual ones: a string; `true` for the host's value; `false` for none
---@field env? table<string, string|boolean>
---@field cwd? string the working folder, opened at the start
---limits on what it can read, write and reach
---@field sandbox? "none"|"auto"|"require"|"landlock"|"bubblewrap"|ah.ProcessSandbox
---@field stdin? string|false its whole input, written and closed at once; false: no input
---@field merge? boolean joins standard error to standard output, in the order of writing
---@field max_errors? integer bytes: standard error that is kept: the first quarter, and the end
---seconds: time after which a waiting method fails because unread output blocks the process
---@field stall? number
-- end of ah.ProcessConfig

-- fields of ah.LineOptions (make generate)
---@class ah.LineOptions: ah.TimeOption
---@field json? boolean decodes each line
---@field max? integer bytes: size of a line; a longer one is skipped and reported
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
---@field timeout? number seconds: time to wait before the method fails
-- end of ah.TimeOption

-- fields of ah.WaitOptions (make generate)
---@class ah.WaitOptions: ah.TimeOption
---@field discard? boolean discards the output meanwhile
-- end of ah.WaitOptions

---A child process. Methods that read return nil at the end of the output; they return false and an
---error if a line cannot be returned or time is over.
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

---Starts a child process with streams.
---@param config ah.ProcessConfig
---@return ah.Process? process
---@return ah.Error? err
function ah.process(config) end

---Returns a list of built-in tools: those named, with their options; without an argument all that
---need no options.
---@param which? string|ah.Builtins
---@return ah.Tool[]? tools
---@return ah.Error? err
function ah.builtin(which) end

-- -- tasks -----------------------------------------------------------------------------------

---@class ah.Task code that works beside other code; closing a variable that holds it cancels it
---@field await fun(self: ah.Task): any ... waits; returns or raises what its function did
---@field cancel fun(self: ah.Task)
---@field status fun(self: ah.Task): "running"|"done"|"failed"|"cancelled"

---Starts a task that calls f(...), soon.
---@param f fun(...: any): any ...
---@param ... any
---@return ah.Task
function ah.spawn(f, ...) end

---@class ah.Scope
---@field spawn fun(self: ah.Scope, f: fun(...: any): (any ...), ...: any): ah.Task
---@field cancel fun(self: ah.Scope)

---Calls f(scope) and returns what it returns when all tasks of the scope have ended. The first that
---raises ends the others, and is raised.
---@param f fun(scope: ah.Scope): any ...
---@return any ...
function ah.scope(f) end

---Calls the functions at the same time. Returns the list of what each returned first, with `n`.
---@param list (fun(): any ...)[]
---@return { n: integer, [integer]: any }
function ah.all(list) end

---Calls the functions at the same time. Returns or raises what the first that ends does; the others
---are cancelled.
---@param list (fun(): any ...)[]
---@return any ...
function ah.race(list) end

-- fields of ah.MapConfig (make generate)
---@class ah.MapConfig
---@field concurrency? integer calls at work at the same time
---`stop`: the first failure ends all; `collect`: the others go on, and the failures are the second
---result
---@field on_error? "stop"|"collect"
---@field progress? boolean the state is shown on a terminal, and reported by events
-- end of ah.MapConfig

---Calls f(value, index) for each value, some at the same time. Returns the list of what each call
---returned first, with `n`; with `on_error = "collect"` also the table of errors by index. With
---"stop" a call that returns nil and an error ends the others: nil and that error.
---@param list any[]
---@param f fun(value: any, index: integer): any, any
---@param options? ah.MapConfig
---@return { n: integer, [integer]: any }? results
---@return any err
function ah.map(list, f, options) end

---Calls f(...) and returns what it returns. After the seconds it is cancelled: nil and an error of
---code `deadline_exceeded`.
---@param seconds number
---@param f fun(...: any): any ...
---@param ... any
---@return any ...
function ah.with_timeout(seconds, f, ...) end

---Starts a task that calls f() every so many seconds until it is cancelled.
---@param seconds number at least 0.001
---@param f fun()
---@return ah.Task
function ah.every(seconds, f) end

---Lets other tasks go on that can.
function ah.yield() end

---@class ah.Channel values on their way between tasks; in a `for`, or called, it receives
---@field send fun(self: ah.Channel, value: any): boolean false if it is closed
---@field receive fun(self: ah.Channel): any nil if it is closed and empty
---@field close fun(self: ah.Channel)
---@operator call: any
---@operator len: integer

---@param n? integer values that it holds before a send waits (default 0)
---@return ah.Channel
function ah.channel(n) end

---@class ah.Semaphore
---@field acquire fun(self: ah.Semaphore): ah.Permit waits for a permit

---@class ah.Permit closing a variable that holds it gives it back
---@field release fun(self: ah.Permit)

---@param n integer permits
---@return ah.Semaphore
function ah.semaphore(n) end

---Waits; other tasks go on meanwhile.
---@param seconds number
function ah.sleep(seconds) end

---Returns the seconds since 1970 by a clock that never goes back, for `deadline` and for measuring.
---@return number seconds
function ah.now() end

---As math.random; in a durable handler a step.
---@param m? integer
---@param n? integer
---@return number
function ah.random(m, n) end

--- Declares the script a chat: Ctrl-C cancels the current answer, not the script.
function ah.interactive() end

-- fields of ah.TerminalOptions (make generate)
---@class ah.TerminalOptions
---Ctrl-C, Ctrl-Z and Ctrl-\ send their usual signals; with `false` they are keys
---@field signals? boolean
---distinguishes Shift-Enter, Ctrl-I and an immediate Escape, if the terminal knows kitty's keyboard
---protocol. Needs `signals = false`
---@field distinct? boolean
---@field escape? number seconds: time after which an Escape without a sequence is the key
---@field max_paste? number bytes: size of a paste
-- end of ah.TerminalOptions

---@class ah.Key a result of terminal:key: a key, a paste or a resize
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
---@field clear fun(self)
---@field bell fun(self)
---@field suspend fun(self)
---@field close fun(self)

---Opens the terminal of the command (docs/reference/terminal.md).
---@overload fun(options?: ah.TerminalOptions): ah.Terminal?, ah.Error?
ah.terminal = {}

---Returns the columns that a text takes on the terminal.
---@param text string
---@param column? integer the column in which the text begins; default 1
---@return integer columns
function ah.terminal.width(text, column) end

---Returns the place of the character that has a byte, and its columns.
---@param text string
---@param at integer index of the byte
---@return integer first, integer last, integer columns
function ah.terminal.character(text, at) end

---Writes a line to the log.
---@param level "debug"|"info"|"warning"|"error"
---@param message string
function ah.log(level, message) end

return ah
