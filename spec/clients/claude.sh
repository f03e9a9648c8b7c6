#!/bin/sh
# The real `claude` command against `agenthost mock`, for `make check-clients`: FOLDER is where npm
# puts it (never elsewhere), AGENTHOST our command. In a network of its own that has only
# loopback, so nothing can be asked outside; skipped with one line where that cannot be had.
set -eu
folder=$1 agenthost=$2
package=@anthropic-ai/claude-agent-sdk-linux-x64
skip() { echo "check-clients: the claude command skipped, $1"; exit 0; }

unshare -rn true 2>/dev/null || skip "needs unshare -rn (a network of its own)"
command -v ip >/dev/null || skip "needs ip"
npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix "$folder" \
  "$package@0.3.330" || skip "npm could not install $package"
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkfifo "$home/address"
export HOME="$home" CLAUDE_CONFIG_DIR="$home" TMPDIR="$home"
export AGENTHOST="$agenthost" AGENTHOST_CLAUDE="$folder/node_modules/$package/claude"
export ANTHROPIC_API_KEY=none CLAUDE_CODE_MAX_RETRIES=0
timeout 120 unshare -rn sh -eu -c '
  ip link set lo up
  "$AGENTHOST" mock spec/clients/claude_turns.lua >"$HOME/address" & server=$!
  trap "kill $server" EXIT
  read -r ANTHROPIC_BASE_URL <"$HOME/address"
  export ANTHROPIC_BASE_URL
  "$AGENTHOST" spec/clients/claude.lua'
