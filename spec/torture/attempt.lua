-- The script that ah_script runs while allocations fail: the flow that torture.c has chosen.
return require("torture").attempt()
