# The benchmark: included by the Makefile.
#: bench  ratios to a bare libcurl + cJSON loop (BENCH=--quick)
#: bench-ajv  checking a tool call, compared with Ajv (needs node and npm)
$(BUILD)/raw: $(wildcard bench/raw*.c) bench/raw.h $(BUILT_WITH)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $(filter %.c,$^) -o $@ $(ALL_LDFLAGS) $(DEP_LIBS)

$(BUILD)/many: bench/many.c $(wildcard include/*.h) $(BUILD)/libagenthost.a
	@echo "  CC $<"; $(CC) -std=c11 $(SYSTEM) $(PLAIN_CFLAGS) $< -o $@ $(ALL_LDFLAGS) $(ARCHIVE_LIBS)

$(BUILD)/schema: bench/schema.c $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(ALL_CFLAGS) $< -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(LUA_LIBS) $(DEP_LIBS)

bench: $(BUILD)/agenthost $(BUILD)/httpd $(BUILD)/raw $(BUILD)/many $(BUILD)/schema
	@AGENTHOST_BUILD=$(BUILD) $(LUA) bench/bench.lua $(BENCH)
	$(if $(findstring --json,$(BENCH)),,@$(BUILD)/agenthost bench/sections.lua $(if $(findstring --quick,$(BENCH)),10,100))
	$(if $(findstring --json,$(BENCH)),,@$(BUILD)/agenthost bench/brief.lua)

# The same call checked by Ajv, if node and npm exist; installs it only into $(BUILD).
bench-ajv: $(BUILD)/schema
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "bench-ajv: skipped, needs node and npm"; \
	elif ! npm install --silent --no-audit --no-fund --no-save --prefix $(BUILD)/ajv ajv@8; then \
	  echo "bench-ajv: skipped, npm could not install ajv"; \
	else node bench/ajv.js $(BUILD)/ajv $(BUILD)/schema; fi
