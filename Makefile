# agenthost: GNU make and pkg-config. All output goes to $(BUILD). This file builds; the specs and
# checks are in spec/spec.mk, the fuzzers in fuzz/fuzz.mk, the benchmark in bench/bench.mk, the
# installation in tools/install.mk. `make help` shows the lines that begin with "#:".

VERSION := 0.1.0
SOVERSION := 0

BUILD ?= build
ifneq ($(words $(BUILD)),1)
  $(error BUILD=$(BUILD) must be one word; PREFIX and DESTDIR may have spaces)
endif
PREFIX ?= /usr/local
DESTDIR ?=
PKG_CONFIG ?= pkg-config
# The archiver of the compiler's own target, so that a cross build needs only CC= and PKG_CONFIG=.
ifeq ($(origin AR),default)
  AR = $(shell $(CC) -print-prog-name=ar)
endif
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
# The built command or, if that is for another machine, one that runs here: it writes the
# completions.
NATIVE ?= $(BUILD)/agenthost
LUA ?= lua5.4
BUSTED ?= $(LUA) $(firstword $(wildcard /usr/bin/busted) $(shell command -v busted))
CFLAGS ?= -O2 -g
# Warnings are errors only in our own checks (CHECKED), so that an unknown compiler's warnings stop
# no build.
WERROR ?=

# Goals that need no library.
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
# Without libyaml there is no ah.yaml; YAML= leaves it out. It is opened at its first use; static
# programs, which cannot open it, link it.
YAML ?= $(shell $(PKG_CONFIG) --exists yaml-0.1 && echo yaml-0.1)
YAML := $(YAML)
YAML_CFLAGS := $(if $(YAML),-DAH_WITH_YAML $(shell $(PKG_CONFIG) --cflags $(YAML)))
ifneq ($(and $(YAML),$(filter -static,$(LDFLAGS))),)
  YAML_CFLAGS += -DAH_YAML_LINKED
  YAML_LIBS := $(shell $(PKG_CONFIG) --libs $(YAML))
endif
# Without libmicrohttpd there is no `ah.serve` and no `agenthost mock`; MICROHTTPD= leaves it out.
# It is opened or linked like libyaml.
MICROHTTPD ?= $(shell $(PKG_CONFIG) --exists libmicrohttpd && echo libmicrohttpd)
MICROHTTPD := $(MICROHTTPD)
MICROHTTPD_CFLAGS := $(if $(MICROHTTPD),-DAH_WITH_MICROHTTPD $(shell $(PKG_CONFIG) --cflags $(MICROHTTPD)))
ifneq ($(and $(MICROHTTPD),$(filter -static,$(LDFLAGS))),)
  # Its only references are weak ones, for which no linker takes it from an archive.
  MICROHTTPD_LIBS := -u MHD_start_daemon $(shell $(PKG_CONFIG) --libs $(MICROHTTPD))
endif
# Without libsqlite3 stores are in memory only; SQLITE= leaves it out. It is opened or linked like
# libyaml.
SQLITE ?= $(shell $(PKG_CONFIG) --exists sqlite3 && echo sqlite3)
SQLITE := $(SQLITE)
SQLITE_CFLAGS := $(if $(SQLITE),-DAH_WITH_SQLITE $(shell $(PKG_CONFIG) --cflags $(SQLITE)))
ifneq ($(and $(SQLITE),$(filter -static,$(LDFLAGS))),)
  SQLITE_CFLAGS += -DAH_SQLITE_LINKED
  SQLITE_LIBS := $(shell $(PKG_CONFIG) --libs $(SQLITE))
endif
# The command opens libcurl at its first request (src/cli/http_curl.c); the libraries, and static
# programs, link it.
CURL_LIBS := $(shell $(PKG_CONFIG) --libs libcurl)
ifneq ($(filter -static,$(LDFLAGS)),)
  CURL_CFLAGS := -DAH_CURL_LINKED
  CLI_CURL_LIBS := $(CURL_LIBS)
endif
DEP_CFLAGS := $(shell $(PKG_CONFIG) --cflags libcurl libcjson) $(CURL_CFLAGS) $(PCRE2_CFLAGS) $(YAML_CFLAGS) $(MICROHTTPD_CFLAGS) $(SQLITE_CFLAGS)
OTHER_LIBS := $(shell $(PKG_CONFIG) --libs libcjson) $(PCRE2_LIBS) $(YAML_LIBS) $(MICROHTTPD_LIBS) $(SQLITE_LIBS)
DEP_LIBS := $(CURL_LIBS) $(OTHER_LIBS)
# For distributions with other folders, such as lib64 or lib/x86_64-linux-gnu.
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
        -Isrc -Iinclude -Ispec $(LUA_CFLAGS) $(DEP_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA) -fno-lto
ALL_LDFLAGS := -pthread $(LDFLAGS) $(EXTRA)

LIB_FLOORS := base schema model state prompt wire run journal io host lua
LIB_SRC := $(sort $(wildcard $(LIB_FLOORS:%=src/%/*.c)))
CLI_SRC := $(sort $(wildcard src/cli/*.c))
# The Lua half of the library, and the command's own programs, which only the binary has.
LUA_FOLDERS := agents protocols protocols/mcp protocols/mcp/client \
  protocols/mcp/client/authorization protocols/mcp/oauth protocols/mcp/server providers tools strategies tasks testing
LUA_SRC := $(sort $(wildcard lua/agenthost/*.lua $(LUA_FOLDERS:%=lua/agenthost/%/*.lua)))
PAGES := $(sort $(wildcard docs/reference/*.md)) docs/README.md docs/concepts.md docs/terms.md
COMMAND_LUA := $(sort $(wildcard lua/agenthost/command/*.lua lua/agenthost/command/*/*.lua))
# What `agenthost init` writes.
TEMPLATES := $(sort $(filter-out %/spec,$(wildcard $(addprefix lua/agenthost/command/templates/,*/* */spec/*))))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/lua_sources.o
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o) $(BUILD)/command_sources.o $(BUILD)/pages_sources.o
SHARED := libagenthost.so.$(VERSION)
SONAME := libagenthost.so.$(SOVERSION)

#: all        build the command, the libraries and the Lua module in build/ (the default)

# Links the command at the top, too, where people look for it.
all: $(BUILD)/agenthost $(BUILD)/libagenthost.a $(BUILD)/$(SHARED) $(BUILD)/agenthost.so $(BUILD)/agenthost.pc $(BUILD)/agenthost-lua.pc
	@if [ "$(BUILD)" = build ]; then ln -sf build/agenthost agenthost; fi

# A build with other flags begins anew: all objects depend on a file that has the flags. `make
# install` accepts an existing build, whatever its flags, and so does ANY_FLAGS=yes.
FLAGS = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)
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

# Quotes any text for the shell.
quoted = '$(subst ','\'',$(1))'

$(BUILD)/%.o: %.c Makefile $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/%_sources.o: $(BUILD)/%_sources.c $(BUILT_WITH)
	@$(CC) $(ALL_CFLAGS) -c $< -o $@

# Texts compiled in as bytes: $(1) the header with the list's type, $(2) the type, $(3) the list's
# name, $(4) the files, $(5) the prefix that is removed from their names. A program or a page has a
# name such as "mock.plan", a file of a template its path.
define compile_in
	@mkdir -p $(@D)
	@{ echo '#include "$(1)"'; \
	  for f in $(4); do n=$$(echo $$f | tr -c '[:alnum:]\n' _); \
	    echo "static const char src_$$n[] = {"; od -An -v -td1 $$f | sed 's/\([0-9-][0-9]*\)/\1,/g'; echo '0};'; done; \
	  echo 'const $(2) $(3)[] = {'; \
	  for f in $(4); do n=$$(echo $$f | tr -c '[:alnum:]\n' _); \
	    name=$$(echo $${f#$(5)} | sed '/^templates/!{s/\.[^.]*$$//;s|/|.|g;}'); \
	    echo "    {\"$$name\", src_$$n, sizeof src_$$n - 1},"; done; \
	  echo '    {0, 0, 0}};'; } > $@
endef

$(BUILD)/lua_sources.c: $(LUA_SRC) Makefile
	$(call compile_in,lua/lua_sources.h,ah_lua_source,ah_lua_sources,$(LUA_SRC),lua/)

$(BUILD)/command_sources.c: $(COMMAND_LUA) $(TEMPLATES) Makefile
	$(call compile_in,cli/programs.h,ah_program,ah_programs,$(COMMAND_LUA) $(TEMPLATES),lua/agenthost/command/)

# For `agenthost help`.
$(BUILD)/pages_sources.c: $(PAGES) Makefile
	$(call compile_in,cli/programs.h,ah_program,ah_pages,$(PAGES),docs/)

# One object whose hidden names are local, so that the archive, too, shows only ah_* and luaopen_*.
$(BUILD)/libagenthost.a: $(LIB_OBJ)
	@echo "  AR $@"; $(CC) -nostdlib -r -Wl,--force-group-allocation -o $(BUILD)/agenthost-all.o $(LIB_OBJ)
	@$(OBJCOPY) --localize-hidden $(BUILD)/agenthost-all.o
	@rm -f $@; $(AR) rcs $@ $(BUILD)/agenthost-all.o

$(BUILD)/$(SHARED): $(LIB_OBJ)
	@echo "  LD $@"; $(CC) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs -Wl,-z,nodelete $(ALL_LDFLAGS) -o $@ $(LIB_OBJ) $(LUA_LIBS) $(DEP_LIBS)
	@ln -sf $(SHARED) $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $(BUILD)/libagenthost.so

# For stock lua5.4: uses the interpreter's own Lua, and is not unloaded.
$(BUILD)/agenthost.so: $(LIB_OBJ)
	@echo "  LD $@"; $(CC) -shared -Wl,-z,nodelete $(ALL_LDFLAGS) -o $@ $(LIB_OBJ) $(DEP_LIBS)

$(BUILD)/agenthost: $(CLI_OBJ) $(LIB_OBJ)
	@echo "  LD $@"; $(CC) $(ALL_LDFLAGS) -o $@ $(CLI_OBJ) $(LIB_OBJ) $(LUA_LIBS) $(CLI_CURL_LIBS) $(OTHER_LIBS)

# Written by each make, as PREFIX may have changed. A program that includes agenthost.h needs no
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

# -- programs that embed the library --------------------------------------------

# They use only its headers, and link the archive.
ARCHIVE_LIBS = $(BUILD)/libagenthost.a $(LUA_LIBS) $(DEP_LIBS)
PLAIN_CFLAGS := -Wall -Wextra $(WERROR) -pedantic -Iinclude $(CPPFLAGS) $(CFLAGS) $(EXTRA)

$(BUILD)/examples/%: examples/%.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/examples/embed_cpp: examples/embed.cpp $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@mkdir -p $(@D)
	@echo "  CXX $<"; $(CXX) -std=c++17 $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

#: examples  the programs of examples/ that embed the library, in build/examples/
# The C++ example only if there is a C++ compiler.
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c)) \
  $(if $(shell command -v $(CXX)),$(BUILD)/examples/embed_cpp)
examples: $(EXAMPLES)

include spec/spec.mk fuzz/fuzz.mk bench/bench.mk tools/install.mk

# -- checks of the sources, and files made from them ----------------------------

#: generate  write the options' rows into the type annotations and the pages
#: lint     check floors, sentences, luacheck, clang, clang-format; format rewrites C
#: install  PREFIX, LIBDIR, DOCDIR, MANDIR, DESTDIR; uninstall undoes it; man makes the manual page
# Each tool only if it is present; the floors and the form of comments and pages always.
SOURCES = $(sort $(FORMATTED) man/agenthost.1.scd $(wildcard *.md docs/*.md docs/*/*.md lua/*/*.lua lua/*/*/*.lua \
  lua/*/*/*/*.lua spec/*/*.lua fuzz/*.lua examples/*.lua bench/*.lua tools/*.lua) $(filter %.lua %.md,$(TEMPLATES)))
lint:
	@$(LUA) spec/support/floors.lua $(BUILD)
	@$(LUA) spec/support/sentences.lua $(SOURCES)
	@if command -v luacheck >/dev/null; then luacheck -q lua spec fuzz examples bench tools/generate.lua; else echo "lint: no luacheck here"; fi
	@if command -v clang >/dev/null; then for f in $(LIB_SRC) $(CLI_SRC) $(TEST_SRC); do \
	  clang -fsyntax-only $(ALL_CFLAGS) -Werror $$f || exit 1; done; else echo "lint: no clang here"; fi
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror $(FORMATTED); else echo "lint: no clang-format here"; fi

# Writes the options' rows into the type annotations and the pages. A spec fails if this would
# change a file.
generate: $(BUILD)/agenthost
	@$(BUILD)/agenthost tools/generate.lua

FORMATTED = $(filter %.c,$(TEMPLATES)) $(wildcard src/*/*.c src/*/*.h include/*.h spec/support/*.c spec/support/*.h spec/torture/*.c spec/embed/*.c \
  spec/embed/*.h spec/stack/*.c fuzz/*.[ch] bench/*.c bench/*.h examples/*.c examples/*.cpp)
format:
	clang-format -i $(FORMATTED)

#: ci  check, check-compilers, check-poll, check-tsan, check-asan, check-torture, fuzz, a quick bench
# TESTED: the specs have just run on the same tree (.ci/run), and do not run again.
ci: $(if $(TESTED),lint,check) check-compilers check-poll check-tsan check-asan check-torture fuzz
	@$(MAKE) --no-print-directory bench BENCH=--quick

#: clean  remove the build; distclean: also the roots of check-13, check-32, check-musl
# The Debians of check-13 and check-32, and the libraries of check-musl, take minutes and the
# network to make: clean keeps them, but removes our build in them.
KEPT := build/roots build/musl
clean:
	rm -rf $(filter-out $(KEPT),$(wildcard build/*)) build/roots/*/src $(MUSL_BUILD) agenthost
	@rmdir build 2>/dev/null || true

distclean:
	rm -rf build agenthost

help:
	@awk '/^#: / { name = $$2; sub(/^#: *[^ ]+ */, ""); printf "make %-20s %s\n", name, $$0 }' \
	  $(filter %Makefile %.mk,$(MAKEFILE_LIST))

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_OBJ:.o=.d)
.PHONY: all always examples programs test check check-compilers check-headers check-32 check-13 check-musl musl-programs check-poll check-tsan run-tsan check-asan asan-specs check-torture run-torture coverage soak crash fuzz bench bench-ajv check-clients check-screens check-schema-suite check-patterns check-schema-growth run-schema-growth check-live lint generate format ci man install uninstall dist rock install-rock clean distclean help
.SECONDARY:
