# agenthost: GNU make and pkg-config. Everything made goes to $(BUILD).
#   make            the command, the libraries, the Lua module
#   make test       what a user runs: builds and passes all specs
#   make check      the same plus warnings of other tools where they are present
#   make help       all targets

VERSION := 0.1.0
SOVERSION := 0

BUILD ?= build
ifneq ($(words $(BUILD)),1)
  $(error BUILD=$(BUILD) must be one word; PREFIX and DESTDIR may have spaces)
endif
PREFIX ?= /usr/local
DESTDIR ?=
PKG_CONFIG ?= pkg-config
# Those of the compiler's own target, so that CC= and PKG_CONFIG= are all that a cross build needs.
ifeq ($(origin AR),default)
  AR = $(shell $(CC) -print-prog-name=ar)
endif
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
# The built command or, where that is for another machine, one that runs here: it writes the completions.
NATIVE ?= $(BUILD)/agenthost
LUA ?= lua5.4
BUSTED ?= $(LUA) $(firstword $(wildcard /usr/bin/busted) $(shell command -v busted))
CFLAGS ?= -O2 -g
# Warnings are errors in our own checks only (CHECKED): those of a compiler that we have not seen stop nobody.
WERROR ?=

# What needs no library.
ALONE := help clean distclean uninstall man dist format check-32 check-13
ifneq ($(filter-out $(ALONE),$(or $(MAKECMDGOALS),all)),)
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
# Without libyaml there is no ah.yaml; YAML= leaves it out. It is opened at its first use, and linked
# where nothing can be opened then, in static programs.
YAML ?= $(shell $(PKG_CONFIG) --exists yaml-0.1 && echo yaml-0.1)
YAML := $(YAML)
YAML_CFLAGS := $(if $(YAML),-DAH_WITH_YAML $(shell $(PKG_CONFIG) --cflags $(YAML)))
ifneq ($(and $(YAML),$(filter -static,$(LDFLAGS))),)
  YAML_CFLAGS += -DAH_YAML_LINKED
  YAML_LIBS := $(shell $(PKG_CONFIG) --libs $(YAML))
endif
# Without libmicrohttpd there is no `ah.serve` and no `agenthost mock`. The command is linked with it, all of it
# where it is an archive; the libraries open it when it is needed.
MICROHTTPD ?= $(shell $(PKG_CONFIG) --exists libmicrohttpd && echo libmicrohttpd)
MICROHTTPD := $(MICROHTTPD)
CLI_CFLAGS := $(if $(MICROHTTPD),-DAH_WITH_MICROHTTPD $(shell $(PKG_CONFIG) --cflags $(MICROHTTPD)))
CLI_LIBS := $(if $(MICROHTTPD),-u MHD_start_daemon $(shell $(PKG_CONFIG) --libs $(MICROHTTPD)))
DEP_CFLAGS := $(shell $(PKG_CONFIG) --cflags libcurl libcjson) $(PCRE2_CFLAGS) $(YAML_CFLAGS)
DEP_LIBS := $(shell $(PKG_CONFIG) --libs libcurl libcjson) $(PCRE2_LIBS) $(YAML_LIBS)
# For distributions whose folders are others, such as lib64 or lib/x86_64-linux-gnu.
LIBDIR ?= $(PREFIX)/lib
DOCDIR ?= $(PREFIX)/share/doc/agenthost
LUA_LMOD ?= $(PREFIX)/share/lua/5.4
LUA_CMOD ?= $(PREFIX)/lib/lua/5.4
MANDIR ?= $(PREFIX)/share/man

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wvla -Wwrite-strings -Wformat=2 -Wundef -Wpointer-arith $(WERROR)
# Files and times beyond 2 GiB and 2038 on machines of 32 bits, too.
SYSTEM := -D_POSIX_C_SOURCE=200809L -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64
# Never -flto, which distributions set: objcopy cannot make the archive's hidden names local then.
ALL_CFLAGS := -std=c11 $(SYSTEM) -fPIC -fvisibility=hidden -pthread $(WARN) \
        -Isrc -Iinclude -Ispec $(LUA_CFLAGS) $(DEP_CFLAGS) $(CLI_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA) -fno-lto
ALL_LDFLAGS := -pthread $(LDFLAGS) $(EXTRA)

LIB_FLOORS := base schema model state prompt wire run io host lua
LIB_SRC := $(sort $(wildcard $(LIB_FLOORS:%=src/%/*.c)))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
# The Lua half of the library; the command's own programs, which are in the binary alone.
LUA_FOLDERS := providers tools strategies testing
LUA_SRC := $(sort $(wildcard lua/agenthost/*.lua $(LUA_FOLDERS:%=lua/agenthost/%/*.lua)))
COMMAND_LUA := $(sort $(wildcard lua/agenthost/command/*.lua lua/agenthost/command/*/*.lua))
TEST_SRC := $(sort $(wildcard spec/support/ahtest*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/lua_sources.o
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o) $(BUILD)/command_sources.o
TEST_OBJ := $(TEST_SRC:%.c=$(BUILD)/%.o)
SHARED := libagenthost.so.$(VERSION)
SONAME := libagenthost.so.$(SOVERSION)

# The command also at the top, where a person looks for it.
all: $(BUILD)/agenthost $(BUILD)/libagenthost.a $(BUILD)/$(SHARED) $(BUILD)/agenthost.so $(BUILD)/agenthost.pc $(BUILD)/agenthost-lua.pc
	@if [ "$(BUILD)" = build ]; then ln -sf build/agenthost agenthost; fi

# A build with other flags begins anew: what it was made with stands in a file that all objects
# depend on. `make install` takes what was built, whatever it was built with, and so does ANY_FLAGS=yes.
FLAGS = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS) $(CLI_LIBS)
BUILT_WITH := $(BUILD)/flags
ANY_FLAGS ?= $(if $(filter-out install install-rock,$(or $(MAKECMDGOALS),all)),,yes)
ifeq ($(ANY_FLAGS),)
  ifneq ($(file <$(BUILT_WITH)),$(FLAGS))
    $(BUILT_WITH): always
  endif
endif
$(BUILT_WITH):
	@mkdir -p $(@D)
	@printf '%s\n' $(call quoted,$(FLAGS)) > $@

# For the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'

$(BUILD)/%.o: %.c Makefile $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/%_sources.o: $(BUILD)/%_sources.c $(BUILT_WITH)
	@$(CC) $(ALL_CFLAGS) -c $< -o $@

# Lua compiled in as bytes: $(1) the header that has the list's type, $(2) the type, $(3) the list's name,
# $(4) the files, $(5) what is taken from the front of their names.
define compile_in
	@mkdir -p $(@D)
	@{ echo '#include "$(1)"'; \
	  for f in $(4); do n=$$(echo $${f%.lua} | tr / _); \
	    echo "static const char src_$$n[] = {"; od -An -v -td1 $$f | sed 's/\([0-9-][0-9]*\)/\1,/g'; echo '0};'; done; \
	  echo 'const $(2) $(3)[] = {'; \
	  for f in $(4); do f=$${f%.lua}; n=$$(echo $$f | tr / _); \
	    echo "    {\"$$(echo $${f#$(5)} | tr / .)\", src_$$n, sizeof src_$$n - 1},"; done; \
	  echo '    {0, 0, 0}};'; } > $@
endef

$(BUILD)/lua_sources.c: $(LUA_SRC) Makefile
	$(call compile_in,lua/lua_sources.h,ah_lua_source,ah_lua_sources,$(LUA_SRC),lua/)

$(BUILD)/command_sources.c: $(COMMAND_LUA) Makefile
	$(call compile_in,cli/programs.h,ah_program,ah_programs,$(COMMAND_LUA),lua/agenthost/command/)

# One object whose hidden names are local: the archive, too, shows only ah_* and luaopen_*.
$(BUILD)/libagenthost.a: $(LIB_OBJ)
	@echo "  AR $@"; $(CC) -nostdlib -r -Wl,--force-group-allocation -o $(BUILD)/agenthost-all.o $(LIB_OBJ)
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

# Made anew with each make, as PREFIX may be another one. A program that includes agenthost.h needs no
# other library's development files, so none is required; an archive is linked with Libs.private.
PC_FOLDERS = 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' \
  'libdir=$(subst ^,,$(subst ^$(PREFIX)/,$${prefix}/,^$(LIBDIR)))'
$(BUILD)/agenthost.pc: always
	@mkdir -p $(@D)
	@printf '%s\n' $(PC_FOLDERS) '' \
	  'Name: agenthost' 'Description: runs LLM agents whose tools are written in Lua' \
	  'Version: $(VERSION)' 'Cflags: -I"$${includedir}"' 'Libs: -L"$${libdir}" -lagenthost' \
	  'Libs.private: $(strip $(LUA_LIBS) $(DEP_LIBS)) -pthread' > $@

# For agenthost_lua.h, which includes lua.h.
$(BUILD)/agenthost-lua.pc: always
	@mkdir -p $(@D)
	@printf '%s\n' 'Name: agenthost-lua' 'Description: agenthost in a Lua state of the program' \
	  'Version: $(VERSION)' 'Requires: agenthost = $(VERSION) lua5.4' > $@
always:

# -- programs of the specs and the benchmark ----------------------------------------

$(BUILD)/httpd $(BUILD)/tlsd: $(BUILD)/%: spec/support/%.c $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(ALL_LDFLAGS)

# Planted faults, which a build with $(LENT) finds (lent_spec.lua).
$(BUILD)/lent-faults: spec/support/lent_faults.c $(LIB_OBJ)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

# What commands try against others, and a machine that looks older; plain, whatever the build.
$(BUILD)/attack: spec/support/attack.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra -pthread $(CPPFLAGS) $< -o $@

# Many clients at once; plain, so that it is never the slow one.
$(BUILD)/crowd: spec/support/crowd.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=gnu11 -O2 -Wall -Wextra $< -o $@

$(BUILD)/older_kernel.so: spec/support/older_kernel.c
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 -O1 -Wall -Wextra -fPIC -shared $< -o $@ -ldl

# The embedding interface from programs that know only its headers; they link the archive.
ARCHIVE_LIBS = $(BUILD)/libagenthost.a $(LUA_LIBS) $(DEP_LIBS)
PLAIN_CFLAGS := -Wall -Wextra $(WERROR) -pedantic -Iinclude $(CPPFLAGS) $(CFLAGS) $(EXTRA)

$(BUILD)/embed-cases: $(wildcard spec/embed/*.c) spec/embed/cases.h $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC spec/embed"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) -Wno-missing-field-initializers \
	  $(LUA_CFLAGS) $(filter %.c,$^) -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/stack: spec/stack/stack.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC $<"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/examples/%: examples/%.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/examples/embed_cpp: examples/embed.cpp $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@mkdir -p $(@D)
	@echo "  CXX $<"; $(CXX) -std=c++17 $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/raw: $(wildcard bench/raw*.c) bench/raw.h $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $(filter %.c,$^) -o $@ $(ALL_LDFLAGS) $(DEP_LIBS)

$(BUILD)/many: bench/many.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC $<"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

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
# libFuzzer where clang has it, else the cases kept in fuzz/seeds are replayed.
HAS_FUZZER = $(shell echo 'int LLVMFuzzerTestOneInput(const char *p, long n){(void)p;return n<0;}' | \
  clang -x c - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null && echo yes)

# -- what people and CI call ----------------------------------------------------------

# The one in C++ where there is a compiler for it.
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c)) \
  $(if $(shell command -v $(CXX)),$(BUILD)/examples/embed_cpp)
examples: $(EXAMPLES)

SPEC_NEEDS = all $(BUILD)/ahtest.so $(BUILD)/attack $(BUILD)/crowd $(BUILD)/older_kernel.so $(BUILD)/httpd $(BUILD)/tlsd $(BUILD)/embed-cases \
  $(BUILD)/lent-faults $(BUILD)/stack $(EXAMPLES)
SPECS ?= $(sort $(wildcard spec/*_spec.lua))
RUN_SPECS = AGENTHOST_BUILD=$(BUILD) $(LUA) spec/support/each.lua "$(BUSTED)"

test: $(SPEC_NEEDS)
	@$(RUN_SPECS) $(SPECS)

# Our own builds, in which a warning is an error, on all processors unless make was told how many.
CHECKED = $(MAKE) --no-print-directory WERROR=-Werror $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 1))

check: lint
	+@$(CHECKED) BUILD=$(BUILD)/checked test

# ASan and UBSan: the command and the torture program with leak checking; the module in
# the interpreter without (it is not ours to balance).
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# What is lent is poisoned at each call out (base/lent.h).
LENT := -DAH_LENT
check-asan: ; +@$(WITH_ASAN) asan-specs

WITH_ASAN = $(CHECKED) BUILD=build/asan CFLAGS="-O1 -g -DAH_CHECKING" EXTRA="$(ASAN) $(LENT)"

asan-specs: $(SPEC_NEEDS)
	@export AGENTHOST_ASAN=$$($(CC) -print-file-name=libasan.so) AGENTHOST_BUILD=$(BUILD) \
	  ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1; \
	  $(LUA) spec/support/each.lua "env LD_PRELOAD=$$AGENTHOST_ASAN $(BUSTED)" $(SPECS)

# The loop of systems without epoll.
check-poll:
	+@$(CHECKED) BUILD=build/poll CPPFLAGS="$(CPPFLAGS) -DAH_POLLER_POLL" \
	  SPECS="spec/loop_spec.lua spec/http_spec.lua spec/wait_spec.lua" test

# The two commands of README.md in other Debians, where a root of them can be made (.ci/in-root); there too,
# warnings are errors.
IN_README := 'export MAKEFLAGS="-j$$(nproc) -- WERROR=-Werror"; set -e; eval "$$(.ci/run --commands)"'
check-32:
	@.ci/in-root debian-12-i386 bookworm i386 $(IN_README)

check-13:
	@.ci/in-root debian-13 trixie "$$(dpkg --print-architecture)" $(IN_README)

# The command and programs with the archive as static programs with musl, which libraries are made for first
# (.ci/musl; no TLS). busted and its module are the machine's own.
MUSL := $(CURDIR)/build/musl
MUSL_BUILD := build/musl/build
MUSL_SPECS := cli cli_output cli_tables cli_models cli_settings embed stack
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

# Every allocation fails once, and from there on.
check-torture: ; +@$(WITH_ASAN) run-torture

# Lines that the specs run; those of the README build programs of their own.
coverage:
	@rm -rf build/coverage/src
	+@$(CHECKED) BUILD=build/coverage CFLAGS="-O0 -g" EXTRA=--coverage \
	  SPECS="$(filter-out spec/readme_spec.lua,$(wildcard spec/*_spec.lua))" test
	@$(LUA) spec/support/coverage.lua build/coverage $(LEAST_COVERAGE)

# Does a process that goes on and on grow?
soak: $(SPEC_NEEDS)
	@SOAK_TURNS=20000 $(RUN_SPECS) spec/soak_spec.lua

# Optimisers and compilers see what others do not: all of our C with gcc at each of LEVELS, and with clang,
# and each header alone in C and C++.
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

# The sources are compiled once for all fuzzers; the linker takes what each needs.
fuzz: ; +@$(FUZZ) $(FUZZERS:%=run-fuzz-%)
fuzz-%: fuzz/fuzz_%.c ; +@$(FUZZ) run-fuzz-$*

FUZZ = $(CHECKED) BUILD=build/fuzz CFLAGS="-O1 -g" $(if $(HAS_FUZZER),\
  CC=clang EXTRA="-fsanitize=fuzzer-no-link $(ASAN)" FUZZ_MAIN=-fsanitize=fuzzer,EXTRA="$(ASAN)" FUZZ_MAIN=fuzz/replay.c)

$(BUILD)/fuzzed.a: $(LIB_OBJ)
	@rm -f $@; $(AR) rcs $@ $(LIB_OBJ)

$(BUILD)/fuzz_%: fuzz/fuzz_%.c fuzz/cut.h fuzz/reader.h fuzz/replay.c $(BUILD)/fuzzed.a
	@$(CC) $(ALL_CFLAGS) $(FUZZ_MAIN) $< -o $@ $(BUILD)/fuzzed.a $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

run-fuzz-%: $(BUILD)/fuzz_%
ifeq ($(FUZZ_MAIN),fuzz/replay.c)
	@$< $$(find fuzz/seeds/$* -type f 2>/dev/null) && echo "  fuzz $*: seeds replayed (no libFuzzer here)"
else
	@mkdir -p $(BUILD)/$*.new
	@echo "  FUZZ $* for $(FUZZ_SECONDS) s"
	@$< -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=10 -artifact_prefix=$(BUILD)/$*- \
	  $(BUILD)/$*.new $(wildcard fuzz/seeds/$*) > $(BUILD)/$*.log 2>&1 || { tail -40 $(BUILD)/$*.log; exit 1; }
	@grep -o 'Done [0-9]* runs in [0-9]* second' $(BUILD)/$*.log | sed 's/^/  fuzz $*: no finding, /'
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

# The official clients against `agenthost mock`, where node and npm are; into $(BUILD) only. Each
# name is a file of spec/clients; fewer: CLIENTS="openai codex".
CLIENTS ?= models openai anthropic google ollama ai_sdk langchain portkey claude_code codex pi gemini_cli

check-clients: $(BUILD)/agenthost
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "check-clients: skipped, needs node and npm"; \
	else node spec/clients/run.mjs $(BUILD)/clients $(BUILD)/agenthost $(CLIENTS) && \
	  sh spec/clients/claude.sh $(abspath $(BUILD)/claude-command) $(abspath $(BUILD)/agenthost); fi

# The official JSON-Schema-Test-Suite, of which a copy is at SUITE.
check-schema-suite: $(BUILD)/agenthost.so
	@if [ -z "$(SUITE)" ]; then echo "check-schema-suite: say where the suite is: SUITE=path" >&2; exit 1; fi
	@AGENTHOST_BUILD=$(BUILD) $(LUA) spec/support/schema_suite.lua $(SUITE)

# Random regular expressions by ours, by JavaScript and by PCRE2 with its own options, printed where they disagree.
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
	  $(BUSTED) spec/schema_growth_spec.lua

# One short run at each provider whose key is set; asks real servers, never part of the tests.
# More models: LIVE_MODELS="groq/NAME mistral/NAME".
check-live: $(BUILD)/agenthost
	@$(BUILD)/agenthost spec/support/live.lua $(BUILD)/agenthost

# Each tool where it is present; the floors of the house always.
lint:
	@$(LUA) spec/support/floors.lua $(BUILD)
	@if command -v luacheck >/dev/null; then luacheck -q lua spec examples bench tools/generate.lua; else echo "lint: no luacheck here"; fi
	@if command -v clang >/dev/null; then for f in $(LIB_SRC) $(CLI_SRC) $(TEST_SRC); do \
	  clang -fsyntax-only $(ALL_CFLAGS) -Werror $$f || exit 1; done; else echo "lint: no clang here"; fi
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror $(FORMATTED); else echo "lint: no clang-format here"; fi

# What the options' rows say, written into the type annotations and the pages. A spec fails where it would change something.
generate: $(BUILD)/agenthost
	@$(BUILD)/agenthost tools/generate.lua

FORMATTED = $(wildcard src/*/*.c src/*/*.h include/*.h spec/support/*.c spec/support/*.h spec/torture/*.c spec/embed/*.c \
  spec/embed/*.h spec/stack/*.c fuzz/*.[ch] bench/*.c bench/*.h examples/*.c examples/*.cpp)
format:
	clang-format -i $(FORMATTED)

# TESTED: the specs were just run on the very same tree (.ci/run), and are not run again.
ci: $(if $(TESTED),lint,check) check-compilers check-poll check-tsan check-asan check-torture fuzz
	@$(MAKE) --no-print-directory bench BENCH=--quick

# From scdoc, or as `make dist` has made it.
man: $(BUILD)/agenthost.1
$(BUILD)/agenthost.1: man/agenthost.1.scd $(wildcard man/agenthost.1)
	@mkdir -p $(@D)
	@if [ -f man/agenthost.1 ]; then cp man/agenthost.1 $@; \
	elif command -v scdoc >/dev/null; then scdoc < $< > $@.new && mv $@.new $@; \
	else rm -f $@; echo "man: no manual page, as there is no scdoc here" >&2; fi

# A path below DESTDIR, for the shell.
to = $(call quoted,$(DESTDIR)$(1))

# Where the shells look, below PREFIX.
BASH_COMPLETION = $(call to,$(PREFIX)/share/bash-completion/completions/agenthost)
ZSH_COMPLETION = $(call to,$(PREFIX)/share/zsh/site-functions/_agenthost)
FISH_COMPLETION = $(call to,$(PREFIX)/share/fish/vendor_completions.d/agenthost.fish)

# In the folders that they have here, so that links lead to the same files: a page may link to any of these.
DOCUMENTS := LICENSE README.md CHANGELOG.md $(wildcard docs/*.md docs/internals/*.md examples/* include/*.h bench/*.[ch] bench/*.lua) \
  man/agenthost.1.scd lua/agenthost/types/agenthost.lua

install: all man
	install -d $(call to,$(PREFIX)/bin) $(call to,$(LIBDIR)/pkgconfig) $(call to,$(PREFIX)/include) $(call to,$(LUA_CMOD))
	install $(BUILD)/agenthost $(call to,$(PREFIX)/bin/)
	install -m 644 include/agenthost.h include/agenthost_lua.h $(call to,$(PREFIX)/include/)
	install -m 644 $(BUILD)/libagenthost.a $(BUILD)/$(SHARED) $(call to,$(LIBDIR)/)
	ln -sf $(SHARED) $(call to,$(LIBDIR)/$(SONAME))
	ln -sf $(SONAME) $(call to,$(LIBDIR)/libagenthost.so)
	install -m 644 $(BUILD)/agenthost.pc $(BUILD)/agenthost-lua.pc $(call to,$(LIBDIR)/pkgconfig/)
	install -m 644 $(BUILD)/agenthost.so $(call to,$(LUA_CMOD)/)
	@if $(NATIVE) --version >/dev/null 2>&1; then \
	  for file in bash:$(BASH_COMPLETION) zsh:$(ZSH_COMPLETION) fish:$(FISH_COMPLETION); do \
	    install -d "$$(dirname "$${file#*:}")" && $(NATIVE) completion "$${file%%:*}" > "$${file#*:}" || exit 1; done; \
	else echo "install: no completions, as $(NATIVE) does not run here (NATIVE= names one that does)" >&2; fi
	install -d $(call to,$(PREFIX)/share/agenthost/types)
	install -m 644 lua/agenthost/types/agenthost.lua $(call to,$(PREFIX)/share/agenthost/types/)
	@for file in $(DOCUMENTS); do install -D -m 644 $$file $(call to,$(DOCDIR))/$$file || exit 1; done
	@if [ -f $(BUILD)/agenthost.1 ]; then install -D -m 644 $(BUILD)/agenthost.1 $(call to,$(MANDIR)/man1/agenthost.1); fi

# What luarocks make calls (rockspecs/): the module and its types, and nothing else.
rock: $(BUILD)/agenthost.so
install-rock: rock
	install -d $(call to,$(LUA_CMOD)) $(call to,$(LUA_LMOD)/agenthost/types)
	install $(BUILD)/agenthost.so $(call to,$(LUA_CMOD)/)
	install -m 644 lua/agenthost/types/agenthost.lua $(call to,$(LUA_LMOD)/agenthost/types/)

uninstall:
	rm -f $(call to,$(PREFIX)/bin/agenthost) $(call to,$(PREFIX)/include/agenthost.h) \
	  $(call to,$(PREFIX)/include/agenthost_lua.h) $(call to,$(LIBDIR)/libagenthost.a) $(call to,$(LIBDIR)/libagenthost.so)* \
	  $(call to,$(LIBDIR)/pkgconfig/agenthost.pc) $(call to,$(LIBDIR)/pkgconfig/agenthost-lua.pc) \
	  $(call to,$(LUA_CMOD)/agenthost.so) $(call to,$(MANDIR)/man1/agenthost.1) \
	  $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)
	rm -rf $(call to,$(PREFIX)/share/agenthost) $(call to,$(DOCDIR))

# The sources of the last commit and the manual page, as a distribution gets them: it builds without git and scdoc.
DIST := agenthost-$(VERSION)
dist:
	@command -v scdoc >/dev/null || { echo "dist: needs scdoc, which makes the manual page" >&2; exit 1; }
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)/dist
	@git archive --prefix=$(DIST)/ HEAD | tar -x -C $(BUILD)/dist
	@cd $(BUILD)/dist/$(DIST)/man && scdoc < agenthost.1.scd > agenthost.1
	tar -C $(BUILD)/dist -czf $(BUILD)/$(DIST).tar.gz --owner=0 --group=0 --numeric-owner $(DIST)
	@rm -rf $(BUILD)/dist

# The Debians of check-13 and check-32, and the libraries of check-musl, cost minutes and the network: they
# stay, without what was built of ours there.
KEPT := build/roots build/musl
clean:
	rm -rf $(filter-out $(KEPT),$(wildcard build/*)) build/roots/*/src $(MUSL_BUILD) agenthost
	@rmdir build 2>/dev/null || true

distclean:
	rm -rf build agenthost

help:
	@echo "make              build the command, the libraries and the Lua module in $(BUILD)/"
	@echo "make test         pass all specs                    (SPECS=spec/x_spec.lua for some)"
	@echo "make check        test and lint; a warning of the compiler is an error"
	@echo "make check-compilers no warning with gcc at LEVELS=$(LEVELS) and with clang, in the headers neither in C nor in C++"
	@echo "make check-32     all specs in a Debian of 32 bits, in $(BUILD)/roots/ (as root, where debootstrap is)"
	@echo "make check-13     likewise in Debian 13"
	@echo "make check-musl   the command and embedding programs, static with musl (where musl-gcc is)"
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
	@echo "make check-clients the npm clients of providers, agents among them, against agenthost mock (where node and npm are)"
	@echo "make check-schema-suite SUITE=path  JSON-Schema-Test-Suite, required part, of which a copy is at path"
	@echo "make check-patterns PATTERNS=$(PATTERNS) PATTERN_SEED=$(PATTERN_SEED)  regular expressions as JavaScript takes them (where node is)"
	@echo "make check-schema-growth  the work of hostile schemas, counted exactly   (GROWTH=$(GROWTH))"
	@echo "make check-live    a short run at each provider whose key is set (asks real servers, which may cost)"
	@echo "make dist         the sources of the last commit and the manual page as a tar file in $(BUILD)/"
	@echo "make generate     writes what the options' rows say into the type annotations and the pages"
	@echo "make lint, format, man, install (PREFIX, LIBDIR, DOCDIR, MANDIR, DESTDIR), uninstall"
	@echo "make clean        remove what was built; distclean: also the Debians and libraries of check-13, check-32, check-musl"
	@echo "make ci           check, check-compilers, check-poll, check-tsan, check-asan, check-torture, fuzz, a quick bench"

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_OBJ:.o=.d)
.PHONY: all always examples programs test check check-compilers check-headers check-32 check-13 check-musl musl-programs check-poll check-tsan run-tsan check-asan asan-specs check-torture run-torture coverage soak fuzz bench bench-ajv check-clients check-schema-suite check-patterns check-schema-growth run-schema-growth check-live lint generate format ci man install uninstall dist rock install-rock clean distclean help
.SECONDARY:
