# The installation, and the archive of the sources: included by the Makefile.
#: dist  the sources of the last commit and the manual page as a tar file in build/
# Made by scdoc, or copied from the sources of `make dist`.
man: $(BUILD)/agenthost.1
$(BUILD)/agenthost.1: man/agenthost.1.scd $(wildcard man/agenthost.1)
	@mkdir -p $(@D)
	@if [ -f man/agenthost.1 ]; then cp man/agenthost.1 $@; \
	elif command -v scdoc >/dev/null; then scdoc < $< > $@.new && mv $@.new $@; \
	else rm -f $@; echo "man: no manual page, as there is no scdoc here" >&2; fi

# Quotes a path below DESTDIR for the shell.
to = $(call quoted,$(DESTDIR)$(1))

# Where the shells look, below PREFIX.
BASH_COMPLETION = $(call to,$(PREFIX)/share/bash-completion/completions/agenthost)
ZSH_COMPLETION = $(call to,$(PREFIX)/share/zsh/site-functions/_agenthost)
FISH_COMPLETION = $(call to,$(PREFIX)/share/fish/vendor_completions.d/agenthost.fish)

# Installed in the same folders as here, so that links lead to the same files: a page may link to
# any of these.
DOCUMENTS := LICENSE README.md HACKING.md CHANGELOG.md $(wildcard docs/*.md docs/*/*.md examples/* include/*.h bench/*.[ch] bench/*.lua) \
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

# `luarocks make` runs this (rockspecs/): it installs only the module and its types.
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

# The sources of the last commit and the manual page, for distributions: they build without git and
# scdoc.
DIST := agenthost-$(VERSION)
dist:
	@command -v scdoc >/dev/null || { echo "dist: needs scdoc, which makes the manual page" >&2; exit 1; }
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)/dist
	@git archive --prefix=$(DIST)/ HEAD | tar -x -C $(BUILD)/dist
	@cd $(BUILD)/dist/$(DIST)/man && scdoc < agenthost.1.scd > agenthost.1
	tar -C $(BUILD)/dist -czf $(BUILD)/$(DIST).tar.gz --owner=0 --group=0 --numeric-owner $(DIST)
	@rm -rf $(BUILD)/dist
