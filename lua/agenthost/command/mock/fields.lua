--- The fields of a turn of the mock's script, the only list of them: for the check of scripts
-- (mock/turn.lua knows the kinds), for `agenthost mock --help`, whose list the Makefile takes from
-- here (so a defect is one line), and for docs/reference/mock.md. Numbers have the range that a
-- server can send, or that a client can be expected to wait.
local HOUR <const> = 3600
local WEEK <const> = 7 * 24 * HOUR

return {
  { name = "text", kind = "texts" },
  { name = "calls", kind = "calls" },
  { name = "refusal", kind = "text" },
  { name = "stop", kind = "word",
    of = "end tool_calls length stop_sequence content_filter refusal context_full" },
  { name = "usage", kind = "usage" },
  { name = "expect", kind = "any" },
  { name = "check", kind = "any" },
  { name = "reasoning", kind = "texts" },
  { name = "signature", kind = "text" },
  { name = "status", kind = "integer", least = 200, most = 599, defect = true },
  { name = "message", kind = "text", defect = true },
  { name = "type", kind = "text", defect = true },
  { name = "code", kind = "text", defect = true },
  { name = "retry_after", kind = "number", least = 0, most = WEEK, defect = true },
  { name = "fail", kind = "fail", defect = true },
  { name = "delay", kind = "number", least = 0, most = HOUR, defect = true },
  { name = "close", kind = "word", of = "before mid-stream", defect = true },
  { name = "cut", kind = "flag", defect = true },
  { name = "garbage", kind = "bytes", defect = true },
  { name = "raw", kind = "bytes", defect = true },
  { name = "headers", kind = "headers", defect = true },
}
