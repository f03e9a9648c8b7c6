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

  it("models and paths are completed, and lines of earlier chats found", function()
    local t <close> = tmux.start("completion", { columns = 60, rows = 16 })
    t:file("notes.txt", "tea"):file("notes.md", "tea")
    t:enter "agenthost chat -m demo/echo":wait ">"
    t:type "/model demo/":keys "Tab Tab":wait "demo/tools":screen "models"
    t:type "to":keys "Tab Enter":wait "model demo/tools":keys "C-l":screen "another model"
    t:type "Read @no":keys "Tab":wait "@notes.":keys "Tab Tab":wait "notes.md":screen "paths"
    t:type "tx":keys "Tab":wait "txt":screen "one path"
    t:keys "Enter":wait "tea":keys "C-d":wait "turns":enter "clear; agenthost chat -m demo/echo -q"
    t:wait_gone "notes":wait ">":keys "C-r":type "no":wait "notes":screen "searched"
    t:keys "Enter":wait "\nRead":screen "sent once more"
  end)
end)
