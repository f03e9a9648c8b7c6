-- The event with which a section is shown in full or as a summary whatever it says itself
-- (docs/reference/prompts.md, Visibility overrides). Every session of a script knows it; its
-- schema is the one that src/state/visibility.c registers, and what becomes of it is said there.
local ah = ...

return ah.type { name = "set_visibility_override", schema = {
  type = "object", additionalProperties = false, required = { "path", "visibility" },
  properties = { path = { type = "string", maxLength = 4096 },
    visibility = { enum = { "full", "summary" } } },
} }
