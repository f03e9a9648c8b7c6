# agenthost: GNU make and pkg-config. Everything made goes to $(BUILD).
#   make            the command, the libraries, the Lua module
#   make test       what a user runs: builds and passes all specs
#   make check      the same plus warnings of other tools where they are present
#   make help       all targets

VERSION := 0.1.0
SOVERSION := 0

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
AR ?= ar
LD ?= ld
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
LUA ?= lua5.4
BUSTED ?= $(LUA) $(firstword $(wildcard /usr/bin/busted) $(shell command -v busted))
CFLAGS ?= -O2 -g

ifneq ($(MAKECMDGOALS),help)
  ifneq ($(shell $(PKG_CONFIG) --exists lua5.4 libcurl libcjson && echo yes),yes)
    $(error needs the development files of lua5.4, libcurl and libcjson (see README.md); $(PKG_CONFIG) says: $(shell $(PKG_CONFIG) --print-errors --exists lua5.4 libcurl libcjson 2>&1))
  endif
endif

LUA_CFLAGS := $(shell $(PKG_CONFIG) --cflags lua5.4)
LUA_LIBS := $(shell $(PKG_CONFIG) --libs lua5.4)
# Without libpcre2-8 schemas have no `pattern`; PCRE2= on the command line leaves it out.
PCRE2 ?= $(shell $(PKG_CONFIG) --exists libpcre2-8 && echo libpcre2-8)
PCRE2 := $(PCRE2)
PCRE2_CFLAGS := $(if $(PCRE2),-DAH_WITH_PCRE2 $(shell $(PKG_CONFIG) --cflags $(PCRE2)))
PCRE2_LIBS := $(if $(PCRE2),$(shell $(PKG_CONFIG) --libs $(PCRE2)))
# Without libmicrohttpd the command has no `agenthost mock`; the libraries never need it.
MICROHTTPD ?= $(shell $(PKG_CONFIG) --exists libmicrohttpd && echo libmicrohttpd)
MICROHTTPD := $(MICROHTTPD)
CLI_CFLAGS := $(if $(MICROHTTPD),-DAH_WITH_MICROHTTPD $(shell $(PKG_CONFIG) --cflags $(MICROHTTPD)))
CLI_LIBS := $(if $(MICROHTTPD),$(shell $(PKG_CONFIG) --libs $(MICROHTTPD)))
DEP_CFLAGS := $(shell $(PKG_CONFIG) --cflags libcurl libcjson) $(PCRE2_CFLAGS)
DEP_LIBS := $(shell $(PKG_CONFIG) --libs libcurl libcjson) $(PCRE2_LIBS)
# For distributions whose folders are others, such as lib64 or lib/x86_64-linux-gnu.
LIBDIR ?= $(PREFIX)/lib
DOCDIR ?= $(PREFIX)/share/doc/agenthost
LUA_LMOD ?= $(PREFIX)/share/lua/5.4
LUA_CMOD ?= $(PREFIX)/lib/lua/5.4

WARN := -Wall -Wextra -Werror -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wvla -Wwrite-strings -Wformat=2 -Wundef -Wpointer-arith
# Never -flto, which distributions set: objcopy cannot make the archive's hidden names local then.
ALL_CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -fPIC -fvisibility=hidden -pthread $(WARN) \
        -Isrc -Iinclude -Ispec $(LUA_CFLAGS) $(DEP_CFLAGS) $(CLI_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA) -fno-lto
ALL_LDFLAGS := -pthread $(LDFLAGS) $(EXTRA)

LIB_SRC := $(sort $(wildcard src/base/*.c src/model/*.c src/prompt/*.c src/wire/*.c src/run/*.c src/lua/*.c))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
LUA_SRC := $(sort $(wildcard lua/agenthost/*.lua lua/agenthost/builtin/*.lua lua/agenthost/mock/*.lua))
TEST_SRC := $(sort $(wildcard spec/support/ahtest*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/lua_sources.o
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)
TEST_OBJ := $(TEST_SRC:%.c=$(BUILD)/%.o)
SHARED := libagenthost.so.$(VERSION)
SONAME := libagenthost.so.$(SOVERSION)

# The command also at the top, where a person looks for it.
all: $(BUILD)/agenthost $(BUILD)/libagenthost.a $(BUILD)/$(SHARED) $(BUILD)/agenthost.so $(BUILD)/agenthost.pc
	@if [ "$(BUILD)" = build ]; then ln -sf build/agenthost agenthost; fi

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/lua_sources.o: $(BUILD)/lua_sources.c
	@$(CC) $(ALL_CFLAGS) -c $< -o $@

# The Lua half, compiled in as bytes.
$(BUILD)/lua_sources.c: $(LUA_SRC) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "lua/lua_sources.h"'; \
	  for f in $(LUA_SRC); do n=$$(echo $${f%.lua} | tr / _); \
	    echo "static const char src_$$n[] = {"; od -An -v -td1 $$f | sed 's/\([0-9-][0-9]*\)/\1,/g'; echo '0};'; done; \
	  echo 'const ah_lua_source ah_lua_sources[] = {'; \
	  for f in $(LUA_SRC); do f=$${f%.lua}; n=$$(echo $$f | tr / _); \
	    echo "    {\"$$(echo $${f#lua/} | tr / .)\", src_$$n, sizeof src_$$n - 1},"; done; \
	  echo '    {0, 0, 0}};'; } > $@

# One object whose hidden names are local: the archive, too, shows only ah_* and luaopen_*.
$(BUILD)/libagenthost.a: $(LIB_OBJ)
	@echo "  AR $@"; $(LD) -r -o $(BUILD)/agenthost-all.o $(LIB_OBJ)
	@$(OBJCOPY) --localize-hidden $(BUILD)/agenthost-all.o
	@rm -f $@; $(AR) rcs $@ $(BUILD)/agenthost-all.o

$(BUILD)/$(SHARED): $(LIB_OBJ)
	@echo "  LD $@"; $(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs -Wl,-z,nodelete $(ALL_LDFLAGS) -o $@ $(LIB_OBJ) $(LUA_LIBS) $(DEP_LIBS)
	@ln -sf $(SHARED) $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $(BUILD)/libagenthost.so

# For stock lua5.4: binds to the interpreter's own Lua, stays loaded once loaded.
$(BUILD)/agenthost.so: $(LIB_OBJ)
	@echo "  LD $@"; $(CC) -shared -Wl,-z,nodelete $(ALL_LDFLAGS) -o $@ $(LIB_OBJ) $(DEP_LIBS)

$(BUILD)/agenthost: $(CLI_OBJ) $(LIB_OBJ)
	@echo "  LD $@"; $(CC) $(ALL_LDFLAGS) -o $@ $(CLI_OBJ) $(LIB_OBJ) $(LUA_LIBS) $(DEP_LIBS) $(CLI_LIBS)

# Test-only module: internals for the specs, and calls of the system that can be made to fail.
WRAPPED := openat fstatat fstat pread write fsync fchmod close renameat linkat unlinkat mkdirat fdopendir readdir syscall
$(BUILD)/ahtest.so: $(TEST_OBJ) $(LIB_OBJ)
	@echo "  LD $@"; $(CC) -shared -Wl,-z,nodelete $(WRAPPED:%=-Wl,--wrap=%) $(ALL_LDFLAGS) -o $@ $(TEST_OBJ) $(LIB_OBJ) $(DEP_LIBS)

# Made anew with each make, as PREFIX may be another one.
$(BUILD)/agenthost.pc: always
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' '' \
	  'Name: agenthost' 'Description: runs LLM agents whose tools are written in Lua' \
	  'Version: $(VERSION)' 'Requires: lua5.4' 'Requires.private: libcurl libcjson $(PCRE2)' \
	  'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lagenthost' 'Libs.private: -pthread' > $@
always:

# -- programs of the specs and the benchmark ----------------------------------------

$(BUILD)/httpd: spec/support/httpd.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(ALL_LDFLAGS)

# Planted faults, which a build with $(LENT) finds (lent_spec.lua).
$(BUILD)/lent-faults: spec/support/lent_faults.c $(LIB_OBJ)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

# What commands try against others, and a machine that looks older; plain, whatever the build.
$(BUILD)/attack: spec/support/attack.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra -pthread $< -o $@

$(BUILD)/older_kernel.so: spec/support/older_kernel.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra -fPIC -shared $< -o $@ -ldl

# The embedding interface from programs that know only its headers; they link the archive.
ARCHIVE_LIBS = $(BUILD)/libagenthost.a $(LUA_LIBS) $(DEP_LIBS)
PLAIN_CFLAGS := -Wall -Wextra -Werror -pedantic -Iinclude $(CPPFLAGS) $(CFLAGS) $(EXTRA)

$(BUILD)/embed-cases: $(wildcard spec/embed/*.c) spec/embed/cases.h $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC spec/embed"; $(CC) -std=c11 -D_POSIX_C_SOURCE=200809L $(PLAIN_CFLAGS) -Wno-missing-field-initializers \
	  $(LUA_CFLAGS) $(filter %.c,$^) -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/stack: spec/stack/stack.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC $<"; $(CC) -std=c11 -D_POSIX_C_SOURCE=200809L $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/examples/%: examples/%.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -D_POSIX_C_SOURCE=200809L $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/examples/embed_cpp: examples/embed.cpp $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@mkdir -p $(@D)
	@echo "  CXX $<"; $(CXX) -std=c++17 $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/raw: $(wildcard bench/raw*.c) bench/raw.h
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $(filter %.c,$^) -o $@ $(ALL_LDFLAGS) $(DEP_LIBS)

$(BUILD)/many: bench/many.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC $<"; $(CC) -std=c11 -D_POSIX_C_SOURCE=200809L $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/schema: bench/schema.c $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

$(BUILD)/torture: spec/torture/torture.c spec/torture/embed.c $(wildcard spec/torture/*.h) $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $(filter %.c,$^) -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

FUZZERS := $(patsubst fuzz/fuzz_%.c,%,$(wildcard fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 10
# Per cent of the lines of the C core; it may only rise.
LEAST_COVERAGE := 94
# What needs neither Lua nor libcurl nor a descriptor.
FUZZED_SRC := $(filter-out src/lua/% src/wire/http%.c src/run/driver.c src/run/host.c src/run/ask.c src/run/claude.c src/base/loop.c src/base/process.c,$(LIB_SRC))
FUZZED_LIBS := $(shell $(PKG_CONFIG) --libs libcjson) $(PCRE2_LIBS)
# Lua values need all of it.
fuzz-value: FUZZED_SRC := $(LIB_SRC) $(BUILD)/lua_sources.c
fuzz-value: FUZZED_LIBS := $(LUA_LIBS) $(DEP_LIBS)
fuzz-value: $(BUILD)/lua_sources.c
FUZZ_CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -pthread -Isrc -Iinclude $(LUA_CFLAGS) $(DEP_CFLAGS)

# libFuzzer where clang has it, else the cases kept in fuzz/seeds are replayed.
HAS_FUZZER = $(shell echo 'int LLVMFuzzerTestOneInput(const char *p, long n){(void)p;return n<0;}' | \
  clang -x c - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null && echo yes)

# -- what people and CI call ----------------------------------------------------------

# The one in C++ where there is a compiler for it.
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c)) \
  $(if $(shell command -v $(CXX)),$(BUILD)/examples/embed_cpp)
examples: $(EXAMPLES)

SPEC_NEEDS = all $(BUILD)/ahtest.so $(BUILD)/attack $(BUILD)/older_kernel.so $(BUILD)/httpd $(BUILD)/embed-cases \
  $(BUILD)/lent-faults $(BUILD)/stack $(EXAMPLES)
RUN_SPECS = AGENTHOST_BUILD=$(BUILD) $(BUSTED)

test: $(SPEC_NEEDS)
	@$(RUN_SPECS) $(SPECS)

check: lint test

# ASan and UBSan: the command and the torture program with leak checking; the module in
# the interpreter without (it is not ours to balance).
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# What is lent is poisoned at each call out (base/lent.h).
LENT := -DAH_LENT
check-asan:
	@$(MAKE) --no-print-directory BUILD=build/asan CFLAGS="-O1 -g -DAH_CHECKING" EXTRA="$(ASAN) $(LENT)" asan-specs

asan-specs: $(SPEC_NEEDS)
	@ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  AGENTHOST_ASAN=$$($(CC) -print-file-name=libasan.so) AGENTHOST_BUILD=$(BUILD) \
	  LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) $(BUSTED) $(SPECS)

# The loop of systems without epoll.
check-poll:
	@$(MAKE) --no-print-directory BUILD=build/poll CPPFLAGS="$(CPPFLAGS) -DAH_POLLER_POLL" \
	  SPECS="spec/loop_spec.lua spec/http_spec.lua spec/wait_spec.lua" test

# Hosts in threads under ThreadSanitizer: the example, and the cases with threads in them.
check-tsan:
	@$(MAKE) --no-print-directory BUILD=build/tsan CFLAGS="-O1 -g" EXTRA="-fsanitize=thread $(LENT)" run-tsan

run-tsan: $(BUILD)/examples/embed_threads $(BUILD)/examples/embed_poll $(BUILD)/embed-cases
	@export TSAN_OPTIONS=halt_on_error=1; $(BUILD)/examples/embed_threads && $(BUILD)/examples/embed_poll && \
	  $(BUILD)/embed-cases | grep thread | while read -r name; do $(BUILD)/embed-cases "$$name" || exit 1; done
	@echo "tsan: no finding"

# Every allocation fails once, and from there on.
check-torture:
	@$(MAKE) --no-print-directory BUILD=build/torture CFLAGS="-O1 -g" EXTRA="$(ASAN) $(LENT)" run-torture

# Lines that the specs run; those of the README build programs of their own.
coverage:
	@rm -rf build/coverage/src
	@$(MAKE) --no-print-directory BUILD=build/coverage CFLAGS="-O0 -g" EXTRA=--coverage \
	  SPECS="$(filter-out spec/readme_spec.lua,$(wildcard spec/*_spec.lua))" test
	@$(LUA) spec/support/coverage.lua build/coverage $(LEAST_COVERAGE)

# Does a process that goes on and on grow?
soak: $(SPEC_NEEDS)
	@SOAK_TURNS=20000 $(RUN_SPECS) spec/soak_spec.lua

run-torture: $(BUILD)/torture
	@$(BUILD)/torture

fuzz: $(FUZZERS:%=fuzz-%)

fuzz-%: fuzz/fuzz_%.c fuzz/reader.h
	@mkdir -p build/fuzz/$*.new
ifeq ($(HAS_FUZZER),yes)
	@clang $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	  $< $(FUZZED_SRC) $(FUZZED_LIBS) -o build/fuzz/$*
	@echo "  FUZZ $* for $(FUZZ_SECONDS) s"
	@build/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=10 -artifact_prefix=build/fuzz/$*- \
	  build/fuzz/$*.new $(wildcard fuzz/seeds/$*) > build/fuzz/$*.log 2>&1 || { tail -40 build/fuzz/$*.log; exit 1; }
	@grep -o 'Done [0-9]* runs in [0-9]* second' build/fuzz/$*.log | sed 's/^/  fuzz $*: no finding, /'

else
	@$(CC) $(FUZZ_CFLAGS) $(ASAN) $< fuzz/replay.c $(FUZZED_SRC) $(FUZZED_LIBS) -o build/fuzz/$*
	@build/fuzz/$* $$(find fuzz/seeds/$* -type f 2>/dev/null) && echo "  fuzz $*: seeds replayed (no libFuzzer here)"
endif

bench: $(BUILD)/agenthost $(BUILD)/httpd $(BUILD)/raw $(BUILD)/many $(BUILD)/schema
	@AGENTHOST_BUILD=$(BUILD) $(LUA) bench/bench.lua $(BENCH)
	$(if $(findstring --json,$(BENCH)),,@$(BUILD)/agenthost bench/sections.lua $(if $(findstring --quick,$(BENCH)),10,100))
	$(if $(findstring --json,$(BENCH)),,@$(BUILD)/agenthost bench/brief.lua)

# The same call checked by Ajv, where node and npm are; installs it into $(BUILD) only.
bench-ajv: $(BUILD)/schema
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "bench-ajv: skipped, needs node and npm"; \
	elif ! npm install --silent --no-audit --no-fund --no-save --prefix $(BUILD)/ajv ajv@8; then \
	  echo "bench-ajv: skipped, npm could not install ajv"; \
	else node bench/ajv.js $(BUILD)/ajv $(BUILD)/schema; fi

# The official clients against `agenthost mock`, where node and npm are; into $(BUILD) only.
check-clients: $(BUILD)/agenthost
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "check-clients: skipped, needs node and npm"; \
	elif ! npm install --silent --no-audit --no-fund --no-save --prefix $(BUILD)/clients \
	    openai @anthropic-ai/sdk ollama; then \
	  echo "check-clients: skipped, npm could not install the clients"; \
	else node spec/clients/clients.mjs $(BUILD)/clients $(BUILD)/agenthost spec/clients/turns.json && \
	  sh spec/clients/claude.sh $(abspath $(BUILD)/claude-command) $(abspath $(BUILD)/agenthost); fi

# The official JSON-Schema-Test-Suite, of which a copy is at SUITE.
check-schema-suite: $(BUILD)/agenthost.so
	@if [ -z "$(SUITE)" ]; then echo "check-schema-suite: say where the suite is: SUITE=path" >&2; exit 1; fi
	@AGENTHOST_BUILD=$(BUILD) $(LUA) spec/support/schema_suite.lua $(SUITE)

# The work of compiling and checking, counted in basic blocks, at sizes up to 4 * GROWTH.
GROWTH ?= 1000
check-schema-growth:
	@$(MAKE) --no-print-directory BUILD=build/counted CFLAGS="-O1 -g" EXTRA=-fsanitize-coverage=trace-pc run-schema-growth

$(BUILD)/counted.so: spec/support/counted.c
	@mkdir -p $(@D); $(CC) -std=c11 -Wall -Wextra -O2 -fPIC -shared $(LUA_CFLAGS) -o $@ $<

run-schema-growth: $(BUILD)/agenthost.so $(BUILD)/counted.so
	@AGENTHOST_GROWTH=$(GROWTH) AGENTHOST_BUILD=$(BUILD) LD_PRELOAD=$(abspath $(BUILD)/counted.so) \
	  $(BUSTED) spec/schema_growth_spec.lua

# One short run at each provider whose key is set; asks real servers, never part of the tests.
# More models: LIVE_MODELS="groq/NAME mistral/NAME".
check-live: $(BUILD)/agenthost
	@$(BUILD)/agenthost spec/support/live.lua $(BUILD)/agenthost

# Each tool where it is present; the floors of the house always.
lint:
	@$(LUA) spec/support/floors.lua
	@if command -v luacheck >/dev/null; then luacheck -q lua spec examples bench; else echo "lint: no luacheck here"; fi
	@if command -v clang >/dev/null; then for f in $(LIB_SRC) $(CLI_SRC) $(TEST_SRC); do \
	  clang -fsyntax-only $(ALL_CFLAGS) $$f || exit 1; done; else echo "lint: no clang here"; fi
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror $(FORMATTED); else echo "lint: no clang-format here"; fi

FORMATTED = $(wildcard src/*/*.c src/*/*.h include/*.h spec/support/*.c spec/support/*.h spec/torture/*.c spec/embed/*.c \
  spec/embed/*.h spec/stack/*.c fuzz/*.[ch] bench/*.c bench/*.h examples/*.c examples/*.cpp)
format:
	clang-format -i $(FORMATTED)

# TESTED: the specs were just run on the very same tree (.ci/run), and are not run again.
ci: $(if $(TESTED),lint,check) check-poll check-tsan check-asan check-torture fuzz
	@$(MAKE) --no-print-directory bench BENCH=--quick

man: $(BUILD)/agenthost.1
$(BUILD)/agenthost.1: man/agenthost.1.scd
	@mkdir -p $(@D)
	@if command -v scdoc >/dev/null; then scdoc < $< > $@; else echo "man: no scdoc here" >&2; fi

# Where the shells look, below PREFIX.
BASH_COMPLETIONS := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH_COMPLETIONS := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

install: all man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LUA_CMOD)
	install $(BUILD)/agenthost $(DESTDIR)$(PREFIX)/bin/
	install -m 644 include/agenthost.h include/agenthost_lua.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(BUILD)/libagenthost.a $(BUILD)/$(SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf $(SHARED) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libagenthost.so
	install -m 644 $(BUILD)/agenthost.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 $(BUILD)/agenthost.so $(DESTDIR)$(LUA_CMOD)/
	install -d $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	$(BUILD)/agenthost completion bash > $(BASH_COMPLETIONS)/agenthost
	$(BUILD)/agenthost completion zsh > $(ZSH_COMPLETIONS)/_agenthost
	$(BUILD)/agenthost completion fish > $(FISH_COMPLETIONS)/agenthost.fish
	install -d $(DESTDIR)$(PREFIX)/share/agenthost/types
	install -m 644 lua/agenthost/types/agenthost.lua $(DESTDIR)$(PREFIX)/share/agenthost/types/
	install -d $(DESTDIR)$(DOCDIR)
	install -m 644 LICENSE README.md docs/*.md $(DESTDIR)$(DOCDIR)/
	if [ -s $(BUILD)/agenthost.1 ]; then install -d $(DESTDIR)$(PREFIX)/share/man/man1 && \
	  install -m 644 $(BUILD)/agenthost.1 $(DESTDIR)$(PREFIX)/share/man/man1/; fi

# What luarocks make calls (rockspecs/): the module and its types, and nothing else.
rock: $(BUILD)/agenthost.so
install-rock: rock
	install -d $(DESTDIR)$(LUA_CMOD) $(DESTDIR)$(LUA_LMOD)/agenthost/types
	install $(BUILD)/agenthost.so $(DESTDIR)$(LUA_CMOD)/
	install -m 644 lua/agenthost/types/agenthost.lua $(DESTDIR)$(LUA_LMOD)/agenthost/types/

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/agenthost $(DESTDIR)$(PREFIX)/include/agenthost.h $(DESTDIR)$(PREFIX)/include/agenthost_lua.h \
	  $(DESTDIR)$(LIBDIR)/libagenthost.a $(DESTDIR)$(LIBDIR)/libagenthost.so* $(DESTDIR)$(LIBDIR)/pkgconfig/agenthost.pc \
	  $(DESTDIR)$(LUA_CMOD)/agenthost.so $(DESTDIR)$(PREFIX)/share/man/man1/agenthost.1 \
	  $(BASH_COMPLETIONS)/agenthost $(ZSH_COMPLETIONS)/_agenthost $(FISH_COMPLETIONS)/agenthost.fish
	rm -rf $(DESTDIR)$(PREFIX)/share/agenthost $(DESTDIR)$(DOCDIR)

# The sources of the last commit, as a distribution gets them.
dist:
	@mkdir -p $(BUILD)
	git archive --prefix=agenthost-$(VERSION)/ -o $(BUILD)/agenthost-$(VERSION).tar.gz HEAD

clean:
	rm -rf build agenthost

help:
	@echo "make              build the command, the libraries and the Lua module in $(BUILD)/"
	@echo "make test         pass all specs                    (SPECS=spec/x_spec.lua for some)"
	@echo "make check        test and lint"
	@echo "make check-asan   all specs under ASan and UBSan, lent bytes poisoned"
	@echo "make check-poll   the specs of waiting with poll(2) in place of epoll"
	@echo "make check-tsan   hosts in threads under ThreadSanitizer"
	@echo "make examples     the programs of examples/ that embed the library, in $(BUILD)/examples/"
	@echo "make check-torture every allocation fails, once and from there on"
	@echo "make coverage     lines of the C sources that the specs run"
	@echo "make soak         20,000 turns in one process: growth and descriptors"
	@echo "make fuzz         each fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make bench        ratios to a bare libcurl + cJSON loop   (BENCH=--quick)"
	@echo "make bench-ajv    checking a tool call, beside Ajv   (where node and npm are)"
	@echo "make check-clients the npm clients of providers and the claude command against agenthost mock (where node and npm are)"
	@echo "make check-schema-suite SUITE=path  JSON-Schema-Test-Suite, required part, of which a copy is at path"
	@echo "make check-schema-growth  the work of hostile schemas, counted exactly   (GROWTH=$(GROWTH))"
	@echo "make check-live    a short run at each provider whose key is set (asks real servers, which may cost)"
	@echo "make dist         the sources of the last commit as a tar file in $(BUILD)/"
	@echo "make lint, format, man, install (PREFIX, LIBDIR, DESTDIR), uninstall, clean"
	@echo "make ci           check, check-poll, check-tsan, check-asan, check-torture, fuzz, a quick bench"

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_OBJ:.o=.d)
.PHONY: all always examples test check check-poll check-tsan run-tsan check-asan asan-specs check-torture run-torture coverage soak fuzz bench bench-ajv check-clients check-schema-suite check-schema-growth run-schema-growth check-live lint format ci man install uninstall dist rock install-rock clean help
.SECONDARY:
