# The fuzzers: included by the Makefile.
#: fuzz  each fuzzer for FUZZ_SECONDS=10
FUZZERS := $(patsubst fuzz/fuzz_%.c,%,$(wildcard fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 10
# libFuzzer if clang has it; otherwise the cases in fuzz/seeds are replayed.
HAS_FUZZER = $(shell echo 'int LLVMFuzzerTestOneInput(const char *p, long n){(void)p;return n<0;}' | \
  clang -x c - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null && echo yes)

# The sources are compiled once for all fuzzers; the linker takes the objects that each needs.
fuzz: ; +@$(FUZZ) $(FUZZERS:%=run-fuzz-%)
fuzz-%: fuzz/fuzz_%.c ; +@$(FUZZ) run-fuzz-$*

FUZZ = $(CHECKED) BUILD=build/fuzz CFLAGS="-O1 -g" $(if $(HAS_FUZZER),\
  CC=clang EXTRA="-fsanitize=fuzzer-no-link $(ASAN)" FUZZ_MAIN=-fsanitize=fuzzer,EXTRA="$(ASAN)" FUZZ_MAIN=fuzz/replay.c)

$(BUILD)/fuzzed.a: $(LIB_OBJ)
	@rm -f $@; $(AR) rcs $@ $(LIB_OBJ)

$(BUILD)/fuzz_%: fuzz/fuzz_%.c fuzz/cut.h fuzz/reader.h fuzz/lua_target.h fuzz/replay.c $(BUILD)/fuzzed.a
	@$(CC) $(ALL_CFLAGS) $(FUZZ_MAIN) $< -o $@ $(BUILD)/fuzzed.a $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

run-fuzz-%: $(BUILD)/fuzz_%
ifeq ($(FUZZ_MAIN),fuzz/replay.c)
	@$< $$(find fuzz/seeds/$* -type f 2>/dev/null) && echo "  fuzz $*: seeds replayed (no libFuzzer here)"
else
	@mkdir -p $(BUILD)/$*.new
	@echo "  FUZZ $* for $(FUZZ_SECONDS) s"
	@$< -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=60 -artifact_prefix=$(BUILD)/$*- \
	  $(BUILD)/$*.new $(wildcard fuzz/seeds/$*) > $(BUILD)/$*.log 2>&1 || { tail -40 $(BUILD)/$*.log; exit 1; }
	@grep -o 'Done [0-9]* runs in [0-9]* second' $(BUILD)/$*.log | sed 's/^/  fuzz $*: no finding, /'
endif
