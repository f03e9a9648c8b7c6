-- The model's answers to the libraries in `make check-clients`, chosen by the user's text and by
-- the results. harness.mjs uses the same texts.
local PARIS = { city = "Paris", unit = "celsius" }

local function weather(arguments)
  return { name = "weather", arguments = arguments }
end

return { rules = {
  { when = { result = "21" }, text = { "It is 21 degrees ", "in Paris." } },
  { when = { user = "Paris" }, reasoning = "The tool knows.", calls = { weather(PARIS) } },
  { when = { user = "two" }, reasoning = { "Both ", "of them." }, text = "Let me look.",
    calls = { weather(PARIS), weather { city = "Rome" } } },
  { when = { user = "plain" }, calls = { weather(PARIS) } },
  { when = { user = "custom" }, calls = { { name = "weather", arguments = "Paris in May" } } },
  { when = { user = "structured" }, text = '{"city":"Paris"}' },
  { when = { user = "busy" }, status = 429, message = "slow down", retry_after = 0.01 },
  { when = { user = "broken" }, status = 500, message = "it is broken", retry_after = 0.01 },
  { when = { user = "cut" }, text = "This text breaks off somewhere", close = "mid-stream" },
  { when = { user = "half" }, text = "Half",
    fail = { status = 529, message = "Overloaded", in_stream = true } },
  { when = { user = "refuse" }, refusal = "I will not." },
  { when = { user = "full" }, fail = { code = "context_full", window = 5000, used = 6000 } },
  { when = { user = "outgrown" }, text = "It is too", stop = "context_full" },
  { when = { user = "long" }, text = "It is too", stop = "length" },
  { text = "Hello there, who asks?" },
} }
