-- Checks the arguments in `arg` and `...` of a script that a program runs
-- (spec/embed/host_cases.c).
assert(#arg == 2 and arg[1] == "one" and select(2, ...) == "two" and arg[0]:match("arguments"))
