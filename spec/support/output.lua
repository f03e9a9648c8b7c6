-- busted's plain output, followed by one line "N passed, N failed, N skipped".
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.plainTerminal"(options)

  busted.subscribe({ "exit" }, function()
    io.write(("%d passed, %d failed, %d skipped\n"):format(
      handler.successesCount, handler.failuresCount + handler.errorsCount, handler.pendingsCount))
    io.flush()
    return nil, true
  end)
  return handler
end
