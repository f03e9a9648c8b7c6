--- agenthost config: shows the settings that settings.lua found, and their sources.
local _, use = ...

return {
  name = "config",
  doc = "show each setting and where it comes from",
  help = [[
From the strongest to the weakest: a flag, the script, the environment, the
project's settings, the user's settings. The project's are in agenthost.conf of
this folder or the nearest above it, the user's in agenthost/config below
$XDG_CONFIG_HOME (default: ~/.config), as lines NAME = VALUE below [SECTION].
Names are those shown, models.NAME (a model, or facts about one as a JSON
object), providers.NAME.base_url and .api_key_env. Secrets are never shown.
]],
  flags = { "model", "env-file", "store", "json",
    { name = "show", doc = "show the settings (the default)" } },
  run = function(flags, _, out, line)
    local said = use "line".settings(line, flags.json and "json" or "text")
    local words = said:match "^fault\n(.*)$"
    if words then
      return 2, words
    end
    out:write(said:match "\nshow\n(.*)$")
  end,
}
