--- The requests of HTTP that authorization makes, of clients and of servers: documents are read,
-- forms and objects sent. Each answer is an object of JSON within limits; no redirect is followed.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local address = ah._module "agenthost.protocols.mcp.oauth.address"

local exchange = {}

exchange.BASIC, exchange.POST = "client_secret_basic", "client_secret_post"

local TIMEOUT = 15 -- seconds of a request
local MOST = 1 << 20 -- bytes of an answer

--- Makes a request. Returns the status and the text; or nil and the reason. No recording has it:
-- the answer may have secrets that are not known before.
local function send(fields)
  fields.max_body, fields.timeout = MOST, TIMEOUT
  local response, err = ah._http_unseen(fields)
  if not response then
    return nil, message.said(err.message)
  end
  return response.status, response.body
end

local function object_of(text)
  local object = ah.json.decode(text)
  return message.is_object(object) and object or nil
end

--- Returns the document at a URL; nil and the reason, and true if the answer says that there is
-- none.
function exchange.document(url)
  local status, text = send { url = url, headers = { Accept = "application/json" } }
  if not status then
    return nil, ("%s cannot be read: %s"):format(url, text)
  elseif status ~= 200 then
    return nil, ("%s cannot be read: HTTP status %d"):format(url, status), true
  end
  local object = object_of(text)
  if not object then
    return nil, ("%s is no JSON object"):format(url)
  end
  return object
end

--- Returns the first document at one of the URLs; nil and the reasons if there is none, and true if
-- all of them say so.
function exchange.first(urls)
  local reasons, absent = {}, true
  for i, url in ipairs(urls) do
    local document, why, none = exchange.document(url)
    if document then
      return document
    end
    reasons[i], absent = why, absent and none or false
  end
  return nil, table.concat(reasons, "; "), absent
end

--- Sends a body. Returns the status and the object of the answer, or nil for another answer; or nil
-- and the reason.
function exchange.post(url, body, headers)
  headers.Accept = "application/json"
  local status, text = send { url = url, method = "POST", body = body, headers = headers }
  if not status then
    return nil, ("%s cannot be reached: %s"):format(url, text)
  end
  return status, object_of(text)
end

-- -- clients --------------------------------------------------------------------------------------

--- Returns the first of `wishes` that is among the methods by which a server lets clients prove
-- themselves; nil for none. A server that does not say takes client_secret_basic (RFC 8414).
function exchange.method(methods, wishes)
  for _, wish in ipairs(wishes) do
    for _, method in ipairs(methods or { exchange.BASIC }) do
      if method == wish then
        return wish
      end
    end
  end
end

--- Sends a form of a client, `{ id, secret, method }`, with its proof (RFC 6749, section 2.3.1).
-- fields: a list of names and values. Returns as `post`.
function exchange.form(url, client, fields)
  local headers = { ["Content-Type"] = "application/x-www-form-urlencoded" }
  local all = table.move(fields, 1, #fields, 1, {})
  if client.method == exchange.BASIC then
    headers.Authorization = "Basic " .. ah.base64.encode(
      address.escape(client.id) .. ":" .. address.escape(client.secret))
  else
    all[#all + 1] = { "client_id", client.id }
  end
  if client.method == exchange.POST then
    all[#all + 1] = { "client_secret", client.secret }
  end
  return exchange.post(url, address.form(all), headers)
end

--- Returns the reason of a refusal (RFC 6749, section 5.2), and its code or nil.
function exchange.refusal(status, object)
  local code = message.text(message.object(object).error, 256)
  if not code then
    return ("HTTP status %d"):format(status)
  end
  local more = message.text(object.error_description, 1 << 16)
  return message.said(code) .. (more and (" (%s)"):format(message.said(more)) or ""), code
end

return exchange
