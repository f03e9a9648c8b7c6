-- The script that ah_script runs while memory fails: the flow that torture.c has chosen.
return require("torture").attempt()
