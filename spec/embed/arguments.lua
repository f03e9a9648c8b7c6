assert(#arg == 2 and arg[1] == "one" and select(2, ...) == "two" and arg[0]:match("arguments"))
