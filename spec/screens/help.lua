-- /help, /show and completion.
local tmux = require "support.tmux"

describe("help", function()
  it("is listed, commands are completed, and calls shown", function()
    local t <close> = tmux.start("help", { columns = 80, rows = 40 })
    t:enter "agenthost chat -m demo/tools":wait ">":enter "/help":wait "add what is there"
    t:screen "/help"
    t:keys "C-l":type "/":keys "Tab Tab":wait "/help  ":screen "all commands"
    t:type "he":keys "Tab":wait "> /help":screen "the only one"
    t:keys "Enter":wait "add what is there":keys "C-l":enter "/shwo":wait "did you mean"
    t:screen "a wrong one"
  end)
end)
