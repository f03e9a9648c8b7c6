# The specs and the checks: included by the Makefile.

# -- programs of the specs -----------------------------------------------------------

TEST_SRC := $(sort $(wildcard spec/support/ahtest*.c))
TEST_OBJ := $(TEST_SRC:%.c=$(BUILD)/%.o)
# The library with crash points (io/crash_point.h), and the command with them.
CRASH_OBJ := $(filter-out %/crash_point.o,$(LIB_OBJ)) $(BUILD)/crash_points.o
$(BUILD)/crash_points.o: src/io/crash_point.c src/io/crash_point.h $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $< (crash points)"; $(CC) $(ALL_CFLAGS) -DAH_CRASH_POINTS -c $< -o $@

$(BUILD)/agenthost-crash: $(CLI_OBJ) $(CRASH_OBJ)
	@echo "  LD $@"; $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LUA_LIBS) $(DEP_LIBS)

# Test-only module: internals for the specs, and system calls that can be made to fail.
WRAPPED := openat openat64 fstatat fstatat64 fstat fstat64 pread pread64 write fsync fchmod close renameat linkat unlinkat mkdirat fdopendir readdir syscall ah_disk_kind ah_run_recorded
$(BUILD)/ahtest.so: $(TEST_OBJ) $(CRASH_OBJ)
	@echo "  LD $@"; $(CC) -shared -Wl,-z,nodelete $(WRAPPED:%=-Wl,--wrap=%) $(ALL_LDFLAGS) -o $@ $(TEST_OBJ) $(CRASH_OBJ) $(DEP_LIBS)

$(BUILD)/httpd $(BUILD)/tlsd: $(BUILD)/%: spec/support/%.c $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(ALL_LDFLAGS)

# Planted faults, which a build with $(LENT) finds (spec/base/lent_spec.lua).
$(BUILD)/lent-faults: spec/support/lent_faults.c $(LIB_OBJ)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

# Attacks of commands on other processes, and a simulated older machine; plain, whatever the build.
$(BUILD)/attack: spec/support/attack.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra -pthread $(CPPFLAGS) $< -o $@

# Many clients at once; without sanitizers, so that it is never the slow side.
$(BUILD)/crowd: spec/support/crowd.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=gnu11 -O2 -Wall -Wextra $< -o $@

$(BUILD)/older_kernel.so $(BUILD)/jumping_clock.so: $(BUILD)/%.so: spec/support/%.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra -fPIC -shared $< -o $@ -ldl

$(BUILD)/embed-cases: $(wildcard spec/embed/*.[ch]) $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC spec/embed"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) -Wno-missing-field-initializers \
	  $(LUA_CFLAGS) $(filter %.c,$^) -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/stack: spec/stack/stack.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC $<"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/torture: spec/torture/torture.c spec/torture/embed.c $(wildcard spec/torture/*.h) $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $(filter %.c,$^) -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

$(BUILD)/simulated: spec/simulated/simulated.c $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

# -- the specs, and stricter builds ------------------------------------------------------

#: test  pass all specs (SPECS=spec/run/gate_spec.lua for some)
#: check  test and lint; a warning of the compiler is an error
#: check-compilers  no warning with gcc at LEVELS=-O3 and clang, nor of headers in C and C++
#: check-32  all specs in a Debian of 32 bits, in build/roots/ (as root, where debootstrap is)
#: check-13  likewise in Debian 13
#: check-musl  the command and embedding programs, static with musl (where musl-gcc is)
#: check-asan  all specs under ASan and UBSan, lent bytes poisoned
#: check-poll  the specs of waiting with poll(2) in place of epoll
#: check-tsan  hosts in threads under ThreadSanitizer
#: check-torture  every allocation fails, alone and with all later ones
#: coverage  lines of the C sources that the specs run
#: soak  20,000 turns in one process: growth and descriptors
#: check-clients  npm clients of providers, agents, and peers of MCP, with agenthost (needs node and npm)
#: check-screens  chats in tmux against the screens in spec/screens (needs tmux); UPDATE=1 writes them (SCREENS=spec/screens/turns.lua)
#: crash  conversations killed at each crash point, twice, and at random times (CRASH_FLOW=calls, CRASH_KILLS=1000, CRASH_SEED=18)
#: check-schema-suite  SUITE=path required part of a copy of the JSON-Schema-Test-Suite
#: check-patterns  random patterns against JavaScript (needs node; PATTERNS=20000 PATTERN_SEED=15)
#: check-schema-growth  the work of hostile schemas, counted exactly (GROWTH=1000)
#: check-live  a short run at each provider whose key is set (asks real servers, which may cost)
# Per cent of the lines of the C core; it may only rise.
LEAST_COVERAGE := 94

SPEC_NEEDS = all $(BUILD)/ahtest.so $(BUILD)/attack $(BUILD)/crowd $(BUILD)/older_kernel.so $(BUILD)/jumping_clock.so $(BUILD)/httpd $(BUILD)/tlsd $(BUILD)/embed-cases \
  $(BUILD)/lent-faults $(BUILD)/agenthost-crash $(BUILD)/stack $(BUILD)/simulated $(EXAMPLES)
SPECS ?= $(sort $(wildcard spec/*/*_spec.lua))
# As many files at a time as make got processors (-j2): one without.
JOBS = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),1)
RUN_SPECS = AGENTHOST_BUILD=$(BUILD) $(LUA) spec/support/each.lua $(JOBS) "$(BUSTED)"

test: $(SPEC_NEEDS)
	@$(RUN_SPECS) $(SPECS)

# Our own builds, in which a warning is an error; on all processors unless make got a number.
CHECKED = $(MAKE) --no-print-directory WERROR=-Werror $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))

check: lint
	+@$(CHECKED) BUILD=$(BUILD)/checked test

# ASan and UBSan: the command and the torture program with leak checking; the module in the
# interpreter without it, as the interpreter's own memory is not ours.
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# Lent bytes are poisoned at each call out (base/lent.h).
LENT := -DAH_LENT
check-asan: ; +@$(WITH_ASAN) asan-specs

WITH_ASAN = $(CHECKED) BUILD=build/asan CFLAGS="-O1 -g -DAH_CHECKING" EXTRA="$(ASAN) $(LENT)"

asan-specs: $(SPEC_NEEDS)
	@export AGENTHOST_ASAN=$$($(CC) -print-file-name=libasan.so) AGENTHOST_BUILD=$(BUILD) \
	  ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1; \
	  $(LUA) spec/support/each.lua $(JOBS) "env LD_PRELOAD=$$AGENTHOST_ASAN $(BUSTED)" $(SPECS)

# The event loop of systems without epoll.
check-poll:
	+@$(CHECKED) BUILD=build/poll CPPFLAGS="$(CPPFLAGS) -DAH_POLLER_POLL" \
	  SPECS="spec/io/loop_spec.lua spec/io/http_spec.lua spec/host/wait_spec.lua" test

# The two commands of README.md in other Debians, if their roots can be made (.ci/in-root). Warnings
# are errors there, too.
IN_README := 'export MAKEFLAGS="-j$$(nproc) -- WERROR=-Werror"; set -e; eval "$$(.ci/run --commands)"'
check-32:
	@.ci/in-root debian-12-i386 bookworm i386 $(IN_README)

check-13:
	@.ci/in-root debian-13 trixie "$$(dpkg --print-architecture)" $(IN_README)

# The command and programs with the archive as static programs with musl; .ci/musl makes the
# libraries for it first (no TLS). busted and its module are the machine's own.
MUSL := $(CURDIR)/build/musl
MUSL_BUILD := build/musl/build
MUSL_SPECS := cli/cli cli/cli_output cli/cli_tables cli/cli_line cli/cli_models cli/cli_settings host/embed host/stack
check-musl: all $(BUILD)/ahtest.so $(BUILD)/older_kernel.so $(BUILD)/httpd
	+@.ci/musl; made=$$?; [ $$made = 77 ] && exit 0; [ $$made = 0 ] && $(CHECKED) musl-programs BUILD=$(MUSL_BUILD) CC=musl-gcc \
	  CXX=no-compiler-of-cpp CPPFLAGS="-idirafter '$(MUSL)/kernel'" LDFLAGS=-static EXTRA= \
	  PKG_CONFIG="env PKG_CONFIG_LIBDIR='$(MUSL)/usr/lib/pkgconfig' pkg-config --static" && \
	  for file in ahtest.so agenthost.so older_kernel.so httpd; do cp -f $(BUILD)/$$file $(MUSL_BUILD)/ || exit 1; done && \
	  env -u SSL_CERT_FILE -u CURL_CA_BUNDLE AGENTHOST_BUILD=$(MUSL_BUILD) $(BUSTED) $(MUSL_SPECS:%=spec/%_spec.lua)

musl-programs: $(BUILD)/agenthost $(BUILD)/embed-cases $(BUILD)/stack $(EXAMPLES) $(TEST_OBJ)

# Hosts in threads under ThreadSanitizer: the example, and the cases with threads in them.
check-tsan:
	+@$(CHECKED) BUILD=build/tsan CFLAGS="-O1 -g" EXTRA="-fsanitize=thread $(LENT)" run-tsan

run-tsan: $(BUILD)/examples/embed_threads $(BUILD)/examples/embed_poll $(BUILD)/embed-cases
	@export TSAN_OPTIONS=halt_on_error=1; $(BUILD)/examples/embed_threads && $(BUILD)/examples/embed_poll && \
	  $(BUILD)/embed-cases | grep thread | while read -r name; do $(BUILD)/embed-cases "$$name" || exit 1; done
	@echo "tsan: no finding"

# Every allocation fails once, alone and with all later ones.
check-torture: ; +@$(WITH_ASAN) run-torture

# Lines that the specs run; README's spec is left out, as its commands build programs of their own.
coverage:
	@rm -rf build/coverage/src
	+@$(CHECKED) BUILD=build/coverage CFLAGS="-O0 -g" EXTRA=--coverage \
	  SPECS="$(filter-out spec/house/readme_spec.lua,$(wildcard spec/*/*_spec.lua))" test
	@$(LUA) spec/support/coverage.lua build/coverage $(LEAST_COVERAGE)

# All flows of spec/crash, with the number of points of each. With AGENTHOST_REENTER=always, all of
# it again; kills at random times come once.
CRASHES = CRASH_ALL=1 AGENTHOST_BUILD=$(BUILD) $(BUSTED) spec/crash/crash_spec.lua
crash: $(SPEC_NEEDS)
	@$(CRASHES)
	@echo "crash: with AGENTHOST_REENTER=always"; AGENTHOST_REENTER=always CRASH_KILLS=0 $(CRASHES)
	@$(RUN_SPECS) $(filter-out %/crash_spec.lua,$(wildcard spec/crash/*_spec.lua))

# Checks that a process that runs for a long time does not grow.
soak: $(SPEC_NEEDS)
	@SOAK_TURNS=20000 $(RUN_SPECS) spec/house/soak_spec.lua

# Optimisers and compilers find different faults: compiles all of our C with gcc at each of LEVELS,
# and with clang, and each header alone in C and C++.
LEVELS ?= -O3
programs: $(SPEC_NEEDS) $(BUILD)/torture $(BUILD)/raw $(BUILD)/many $(BUILD)/schema \
  $(patsubst %.c,$(BUILD)/%.o,$(wildcard fuzz/*.c))

check-compilers: check-headers
	+@for level in $(LEVELS); do $(CHECKED) BUILD=build/compilers/gcc$$level CC=gcc CXX=g++ \
	  CFLAGS="$$level -Wpedantic" programs || exit 1; done
	+@if command -v clang >/dev/null; then $(CHECKED) BUILD=build/compilers/clang CC=clang CXX=clang++ \
	  CFLAGS="-O1 -Wpedantic" programs; else echo "check-compilers: no clang here"; fi

HEADER_LANGUAGES := "c c99" "c c11" "c c17" "c++ c++11" "c++ c++17" "c++ c++20"
check-headers:
	@for header in include/*.h; do for language in $(HEADER_LANGUAGES); do set -- $$language; \
	  for compiler in gcc g++ clang; do ! command -v $$compiler >/dev/null || \
	    printf '#include "%s"\n' "$$header" | $$compiler -x $$1 -std=$$2 -I. $(LUA_CFLAGS) -Wall -Wextra -Wpedantic -Werror \
	      -fsyntax-only - || exit 1; done; done; done

run-torture: $(BUILD)/torture
	@$(BUILD)/torture

# The official clients with `agenthost mock`, and peers of MCP, if node and npm exist; installs only
# into $(BUILD). Each name is a file of spec/clients; fewer: CLIENTS="openai codex".
CLIENTS ?= models openai anthropic google ollama ai_sdk langchain portkey claude_code codex pi gemini_cli \
  mcp_claude mcp_codex mcp_sdk mcp_servers mcp_conformance_client mcp_conformance_server

check-clients: $(BUILD)/agenthost
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "check-clients: skipped, needs node and npm"; \
	else node spec/clients/run.mjs $(BUILD)/clients $(BUILD)/agenthost $(CLIENTS) && \
	  sh spec/clients/claude.sh $(abspath $(BUILD)/claude-command) $(abspath $(BUILD)/agenthost); fi

# Chats of a person in tmux, each screen compared with the one that is kept.
SCREENS ?= $(sort $(wildcard spec/screens/*.lua))

$(BUILD)/latency: spec/support/latency.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra $< -o $@

check-screens: all $(BUILD)/latency
	@if ! command -v tmux >/dev/null; then echo "check-screens: skipped, needs tmux (Debian: tmux)"; \
	else $(RUN_SPECS) $(SCREENS); fi

# The official JSON-Schema-Test-Suite; SUITE is the path of a copy.
check-schema-suite: $(BUILD)/agenthost.so
	@if [ -z "$(SUITE)" ]; then echo "check-schema-suite: say where the suite is: SUITE=path" >&2; exit 1; fi
	@AGENTHOST_BUILD=$(BUILD) $(LUA) spec/support/schema_suite.lua $(SUITE)

# Random regular expressions in the library, in JavaScript and in PCRE2 with its own options; prints
# the differences.
PATTERNS ?= 20000
PATTERN_SEED ?= 15
check-patterns: $(BUILD)/ahtest.so
	@if [ -z "$(PCRE2)" ] || ! command -v node >/dev/null; then echo "check-patterns: skipped, needs PCRE2 and node (Debian: libpcre2-dev, nodejs)"; \
	else $(LUA) spec/patterns/patterns.lua $(BUILD) $(PATTERNS) $(PATTERN_SEED); fi

# The work of compiling and checking, counted in basic blocks, at sizes up to 4 * GROWTH.
GROWTH ?= 1000
check-schema-growth:
	+@$(CHECKED) BUILD=build/counted CFLAGS="-O1 -g" EXTRA=-fsanitize-coverage=trace-pc run-schema-growth

$(BUILD)/counted.so: spec/support/counted.c
	@mkdir -p $(@D); $(CC) -std=c11 -Wall -Wextra -O2 -fPIC -shared $(LUA_CFLAGS) -o $@ $<

run-schema-growth: $(BUILD)/agenthost.so $(BUILD)/counted.so
	@AGENTHOST_GROWTH=$(GROWTH) AGENTHOST_BUILD=$(BUILD) LD_PRELOAD=$(abspath $(BUILD)/counted.so) \
	  $(BUSTED) spec/schema/schema_growth_spec.lua

# One short run at each provider whose key is set; sends requests to real servers, so it is never
# part of the tests. More models: LIVE_MODELS="groq/NAME mistral/NAME".
check-live: $(BUILD)/agenthost
	@$(BUILD)/agenthost spec/support/live.lua $(BUILD)/agenthost
