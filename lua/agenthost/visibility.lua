-- The event that shows a section in full or as a summary, overriding the section's own visibility
-- (docs/reference/prompts.md, Visibility overrides). Every session of a script knows it. Its schema
-- is the one that src/state/visibility.c registers; that file handles the event.
local ah = ...

return ah.type { name = "set_visibility_override", schema = {
  type = "object", additionalProperties = false, required = { "path", "visibility" },
  properties = { path = { type = "string", maxLength = 4096 },
    visibility = { enum = { "full", "summary" } } },
} }
