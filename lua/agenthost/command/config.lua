--- agenthost config: what settings.lua found, and where.
local _, use = ...

return {
  name = "config",
  doc = "show each setting and where it comes from",
  help = [[
A flag wins over the script, the script over the environment, that over the
project's settings, these over the user's: lines NAME = VALUE below [SECTION] in
agenthost.conf of this folder or the nearest above it, and in
$XDG_CONFIG_HOME/agenthost/config (or ~/.config/agenthost/config). The names are
those that are shown, models.NAME (a model, or what is known of one, as a JSON
object), providers.NAME.base_url and .api_key_env. log is error, warning, info
or debug. Secrets are never shown.
]],
  flags = { "model", "env-file", "json",
    { name = "show", doc = "show the settings (as without it)" } },
  run = function(flags, _, out, line)
    local said = use "line".settings(line, flags.json and "json" or "text")
    local words = said:match "^fault\n(.*)$"
    if words then
      return 2, words
    end
    out:write(said:match "\nshow\n(.*)$")
  end,
}
