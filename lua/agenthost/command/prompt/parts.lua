--- The parts of a prompt: its words, standard input, files (@FILE), pages (@URL) and images.
local ah, use = ...
local pairs_of, text = use "pairs", use "text"

local fenced = ah._module "agenthost.fence"

local fault, shown = pairs_of.fault, pairs_of.shown

local M = {}

M.MOST = 4 << 20 -- bytes of a part, and of all parts together
local MIB = M.MOST >> 20
local MANY = 10000 -- names of a folder that are compared

-- -- reading -----------------------------------------------------------------------------------

local function is_image(bytes)
  local image = ah.image { data = bytes }
  return image and image.mime
end

--- Raises unless the bytes are a text that a model can read. `what` names them in a message, and
-- `path` is that of a file.
function M.check_text(bytes, what, path)
  if #bytes > M.MOST then
    fault("%s has more than %d MiB, which is the most for a prompt", what, MIB)
  end
  local ok, bad = utf8.len(bytes)
  local nul = bytes:find("\0", 1, true)
  if ok and not nul then
    return
  end
  local mime = is_image(bytes)
  if mime and path then
    fault("%s is no text, but an image (%s)\nGive it as --image %s.", what, mime, shown(path))
  elseif nul then
    fault("%s is no text: byte %d is 0", what, nul)
  end
  fault("%s is no text in UTF-8: byte %d is 0x%02x\niconv converts other encodings.", what, bad,
    bytes:byte(bad))
end

local function read_all(file, what)
  local bytes, why = file:read(M.MOST + 1)
  if not bytes and why then
    fault("cannot read %s: %s", what, why)
  end
  return bytes or ""
end

-- Returns the part of standard input; nil if it is a terminal, closed or empty.
local function input_part()
  if ah._is_terminal(0) then
    return nil
  end
  local bytes, why = io.stdin:read(M.MOST + 1)
  if not bytes and why and why:find "[Ii]nterrupted" then
    fault "interrupted while standard input was read"
  elseif not bytes or bytes == "" then
    return nil
  end
  M.check_text(bytes, "standard input")
  return { name = "Standard input", text = bytes }
end

local function names_of(folder)
  local names = {}
  local fs = ah._real_path(folder) and ah.filesystem { root = folder }
  for _, entry in ipairs(fs and fs:list() or {}) do
    names[#names + 1] = #names < MANY and entry.name or nil
  end
  return names
end

-- Raises that there is no such file, with the nearest name of its folder.
local function missing(path, why)
  local folder, name = path:match "^(.*/)([^/]*)$"
  local near = ah.nearest(name or path, names_of(folder or "."))
  fault("cannot read '%s': %s%s\nText that begins with @ is a file or an address; behind -- it is "
    .. "only text.", shown(path), why,
    near and ("\nDid you mean @%s%s?"):format(shown(folder or ""), shown(near)) or "")
end

local function file_part(path)
  local file <close>, why = io.open(path, "rb")
  if not file then
    missing(path, (why:gsub("^.*: ", "")))
  end
  local what = ("'%s'"):format(shown(path))
  local bytes = read_all(file, what)
  M.check_text(bytes, what, path)
  return { name = path, text = bytes }
end

-- -- pages -------------------------------------------------------------------------------------

-- True if the address names a machine that need not be public: the user has written it.
local function is_own(url)
  local host = url.host:gsub("%.$", "")
  return host == "localhost" or host:find "^%[" ~= nil or host:find "^[%d.]+$" ~= nil
    or not host:find("%.")
end

-- Returns the part of a page, as a model's http_fetch would get it. A page of the public web cannot
-- lead to an address that is not public.
local function page_part(address)
  local url, err = ah._url(address)
  if not url then
    fault("cannot fetch '%s': %s", shown(text.clean(address)), err.message)
  end
  local registry = ah.registry(assert(ah.builtin { http_fetch = { allow = { "*:*" },
    private = is_own(url) and { "0.0.0.0/0", "::/0" } or nil, max_bytes = M.MOST,
    shown = M.MOST } }))
  local reply, why = registry:execute("http_fetch", { url = address })
  if not reply then
    error(why, 0)
  elseif not reply.success then
    fault("cannot fetch '%s': %s", shown(text.clean(address)), shown(reply.content))
  end
  return { name = address, text = reply.content }
end

-- -- all parts ---------------------------------------------------------------------------------

--- Returns a text in a fence that it cannot end, below its name.
function M.fenced(name, said)
  return ("%s:\n%s"):format(text.clean(name), fenced(said))
end

-- Returns the text: the words, then each part in a fence with its name. A single part without words
-- is the text itself.
local function joined(words, parts)
  if words == "" and #parts == 1 then
    return parts[1].text
  end
  local all = { words ~= "" and words or nil }
  for _, part in ipairs(parts) do
    all[#all + 1] = M.fenced(part.name, part.text)
  end
  return table.concat(all, "\n\n")
end

local function check_size(said)
  if #said > M.MOST then
    fault("the prompt has %d bytes, more than %d MiB", #said, MIB)
  elseif not utf8.len(said) then
    fault "the prompt is no text in UTF-8"
  end
  return said
end

local function image_of(path)
  local image, err
  if path:find "^https?://" then
    image, err = ah.image { url = path }
  else
    image, err = ah.image(path)
  end
  return image or fault("%s", err.message)
end

--- Returns the content of the user's message: a text, or a list of texts and images; nil if there
-- is none. `literal`: the first word that is text even if it begins with @. `fill`: makes the text
-- of the words; it also gets the words with the names of files and pages among them.
---@param words string[]
---@param literal? integer
---@param images? string[] paths and addresses
---@param fill? fun(words: string, all: string): string
function M.content(words, literal, images, fill)
  local names, parts, has_words = {}, { input_part() }, false
  for i, word in ipairs(words) do
    local target = i < (literal or math.huge) and word:match "^@(%S+)$"
    names[i], has_words = target or word, has_words or not target
    if target then
      parts[#parts + 1] = (target:find "^https?://" and page_part or file_part)(target)
    end
  end
  local all = table.concat(names, " ")
  local said = has_words and all or ""
  said = check_size(joined(fill and fill(said, all) or said, parts))
  if not images then
    return said:find "%S" and said or nil
  end
  local content = { said:find "%S" and said or nil }
  for _, path in ipairs(images) do
    content[#content + 1] = image_of(path)
  end
  return content
end

--- Returns the content for a text that was typed, in which each word @URL, and each word @FILE that
-- names a readable file, adds what is there.
---@param line string
---@return string
function M.of(line)
  local parts = {}
  for name in (" " .. line):gmatch "%s@(%S+)" do
    if name:find "^https?://" then
      parts[#parts + 1] = page_part(name)
    elseif ah._real_path(name) then
      parts[#parts + 1] = file_part(name)
    end
  end
  return check_size(joined(line, parts))
end

return M
