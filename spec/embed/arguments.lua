-- What a script that a program runs finds in `arg` and `...` (spec/embed/host_cases.c).
assert(#arg == 2 and arg[1] == "one" and select(2, ...) == "two" and arg[0]:match("arguments"))
