-- Attacks on files: attempts against each promise of docs/reference/filesystem.md and
-- docs/reference/builtin_files.md, as root and as another user, with and without the calls of newer
-- kernels (openat2, renameat2). support/attack_files.lua makes them. Races are in
-- fs_faults_spec.lua, trees of odd names in hostile_trees_spec.lua, files that only their owner may
-- read in private_files_spec.lua.
local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"

local function output(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read("a")
end

local can_change_user = output("id -u") == "0\n" and output("command -v setpriv") ~= ""

describe("attacks on files", function()
  local dir
  before_each(function()
    dir = output("mktemp -d -p /dev/shm 2>/dev/null || mktemp -d"):gsub("%s+$", "")
    os.execute(("chmod 777 '%s'"):format(dir))
  end)
  after_each(function() os.execute(("chmod -R u+rwx '%s'; rm -rf '%s'"):format(dir, dir)) end)

  for _, kernel in ipairs { "new", "old" } do
    for user, before in pairs { ["the user"] = "",
      nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups" } do
      it(("fail: kernel %s, %s"):format(kernel, user), function()
        if user == "nobody" and not can_change_user then
          return pending "needs root and setpriv"
        end
        local said = output(("%s lua5.4 spec/support/attack_files.lua '%s' '%s' %s 2>&1"):format(
          before, BUILD, dir, kernel))
        assert.truthy(said:find("^attacks\t%d+\n$"), said)
      end)
    end
  end
end)
