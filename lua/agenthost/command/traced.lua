--- A message handler for xpcall around code of a script: gives an error that is a text a traceback,
-- which ends at the first line of that code. Printed, it is that text.
local FAULT = { __name = "agenthost.fault", __tostring = function(fault) return fault.text end }

return function(err)
  if type(err) ~= "string" then
    return err
  end
  local text = debug.traceback(err, 2)
  local ours = text:find "\n\t%[C%]: in [^\n]*\n\tagenthost/command/"
  text = ours and text:sub(1, ours - 1) or text
  return setmetatable({ text = (text:gsub("\nstack traceback:$", "")) }, FAULT)
end
