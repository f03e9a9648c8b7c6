--- The fields that a turn of the mock's script may have: the one table for what a script is checked
-- with (agenthost.mock.turn knows the kinds), for `agenthost mock --help`, whose lines the Makefile
-- takes from here (so each line begins as here), and for docs/mock.md. Numbers
-- have the range that a server can say, or that a client can be expected to wait.
local HOUR <const> = 3600
local WEEK <const> = 7 * 24 * HOUR

return {
  { name = "text", kind = "texts" },
  { name = "calls", kind = "calls" },
  { name = "refusal", kind = "text" },
  { name = "stop", kind = "word",
    of = "end tool_calls length stop_sequence content_filter refusal" },
  { name = "usage", kind = "usage" },
  { name = "expect", kind = "any" },
  { name = "check", kind = "any" },
  { name = "reasoning", kind = "texts" },
  { name = "signature", kind = "text" },
  { name = "status", kind = "integer", least = 200, most = 599,
    defect = "a failure of this status, in the provider's form" },
  { name = "message", kind = "text", defect = "the words of that failure" },
  { name = "type", kind = "text", defect = "its kind, in place of that of the status" },
  { name = "code", kind = "text", defect = "its code, for OpenAI" },
  { name = "retry_after", kind = "number", least = 0, most = WEEK,
    defect = "seconds after which to ask again" },
  { name = "fail", kind = "fail", defect = "such a failure as a table; in_stream: in the stream" },
  { name = "delay", kind = "number", least = 0, most = HOUR,
    defect = "seconds before the answer and between its pieces" },
  { name = "close", kind = "word", of = "before mid-stream",
    defect = "the connection breaks: before, mid-stream" },
  { name = "cut", kind = "flag", defect = "true: the same as close = mid-stream" },
  { name = "garbage", kind = "bytes", defect = "bytes in the middle of a stream, or as a body" },
  { name = "raw", kind = "bytes", defect = "bytes in place of any body" },
  { name = "headers", kind = "headers",
    defect = "more headers of the answer, or its Content-Type" },
}
