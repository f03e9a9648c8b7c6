--- The requests of HTTP that authorization makes: documents are read, forms and objects sent. Each
-- answer is an object of JSON within limits; no redirect is followed.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local exchange = {}

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
