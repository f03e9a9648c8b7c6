--- Messages for a certificate that is not trusted, of a server or of a proxy: each fault has its
-- own message, which names the known issuers. The certificates (spec/data/tls) have an authority of
-- their own; the server is tlsd.
local ahtest = require "ahtest"

local DATA = "spec/data/tls/"
local OTHER = "spec/data/ca.pem" -- an authority that has not issued them
local UNKNOWN = "failed: the issuer of its certificate is not known (known are those in '"
  .. OTHER .. "', which "
local VARIABLES = { "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "https_proxy", "http_proxy",
  "no_proxy", "NO_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" }

--- Starts a server with that certificate, to be closed; nil if this machine has no TLS.
local function serve(certificate)
  local program = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/tlsd"
  local f = assert(io.popen(("exec '%s' '%s%s.pem'"):format(program, DATA, certificate)))
  local port = (f:read "l" or ""):match "port (%d+)"
  return port and setmetatable({ port = port, host = "127.0.0.1:" .. port },
    { __close = function() f:close() end }) or f:close() and nil
end

local function get(url)
  return ahtest.http { url = url, limits = { connect_ms = 10000, idle_ms = 10000 } }
end

describe("TLS", function()
  local before = {}

  setup(function()
    for _, name in ipairs(VARIABLES) do
      before[name] = os.getenv(name)
    end
  end)

  after_each(function()
    for _, name in ipairs(VARIABLES) do
      ahtest.setenv(name, before[name])
    end
  end)

  --- Returns the server's answer, or the error message, with these variables.
  local function ask(certificate, env, url)
    local s <close> = serve(certificate)
    for _, name in ipairs(VARIABLES) do
      ahtest.setenv(name, env[name] and (env[name]:gsub("PORT", s.port)))
    end
    local r = get(url or "https://" .. s.host .. "/")
    return r.error and r.error.message:gsub(s.host:gsub("%p", "%%%0"), "HOST") or r.body, r.error
  end

  local probe = serve "good"
  if probe then
    getmetatable(probe).__close(probe)
  end
  local it = probe and it or function(words)
    pending(words)
  end

  local OURS = { CURL_CA_BUNDLE = DATA .. "ca.pem" }

  it("is trusted where the environment names its issuer, in each way of that", function()
    local ca = DATA .. "ca.pem"
    for _, env in ipairs { OURS, { SSL_CERT_FILE = ca },
      { CURL_CA_BUNDLE = "", SSL_CERT_FILE = ca },
      { CURL_CA_BUNDLE = ca, SSL_CERT_FILE = "/nowhere", SSL_CERT_DIR = "/nowhere" } } do
      assert.equal("hello", (ask("good", env)))
    end
  end)

  it("says of an issuer that is not known which are known, and who named them", function()
    local words, e = ask("good", { CURL_CA_BUNDLE = OTHER })
    assert.equal("TLS with HOST " .. UNKNOWN .. "CURL_CA_BUNDLE names)", words)
    assert.same({ "http", false }, { e.status, e.retryable })
    words = ask("good", { SSL_CERT_FILE = OTHER })
    assert.equal("TLS with HOST " .. UNKNOWN .. "SSL_CERT_FILE names)", words)
    words = ask("good", { CURL_CA_BUNDLE = OTHER, SSL_CERT_FILE = DATA .. "ca.pem" })
    assert.equal("TLS with HOST " .. UNKNOWN .. "CURL_CA_BUNDLE names; SSL_CERT_FILE and "
      .. "SSL_CERT_DIR do not count beside it)", words)
  end)

  it("says of a file without certificates which it is", function()
    for _, name in ipairs { "CURL_CA_BUNDLE", "SSL_CERT_FILE" } do
      for _, path in ipairs { "/nowhere/ca.pem", "README.md" } do
        local words = ask("good", { [name] = path })
        assert.equal(("TLS with HOST failed: '%s', which %s names, holds no certificates of "
          .. "issuers or cannot be read"):format(path, name), words)
      end
    end
  end)

  it("takes a folder of issuers", function()
    local dir = os.tmpname()
    os.remove(dir)
    assert(os.execute(("mkdir '%s'"):format(dir)))
    finally(function()
      os.execute(("rm -rf '%s'"):format(dir))
    end)
    local empty = ask("good", { SSL_CERT_DIR = dir })
    assert.truthy(empty:find("the issuer of its certificate is not known", 1, true)
      or empty:find("no certificates of issuers", 1, true), empty)
    -- the name of the issuer's file for OpenSSL: a hash of the issuer's name
    assert(os.execute(("cp %sca.pem '%s/dbfbe04e.0'"):format(DATA, dir)))
    assert.equal("hello", (ask("good", { SSL_CERT_DIR = dir })))
  end)

  it("says of what is expired, not valid yet, or for another name just that", function()
    for certificate, words in pairs {
      expired = "its certificate has expired, or this machine's clock is wrong",
      early = "its certificate is not valid yet, or this machine's clock is wrong",
      other = "its certificate is for another name",
    } do
      for _, env in ipairs { OURS, { SSL_CERT_FILE = DATA .. "ca.pem" } } do
        local said = ask(certificate, env)
        assert.equal("TLS with HOST failed: " .. words, said)
      end
    end
  end)

  it("with a proxy is judged by the same certificates, and said to be with the proxy", function()
    for _, scheme in ipairs { "https", "http" } do
      local function through(certificate, env)
        env[scheme .. "_proxy"] = "https://127.0.0.1:PORT"
        return (ask(certificate, env, scheme .. "://there.invalid/"))
      end
      for certificate, words in pairs { other = "is for another name",
        expired = "has expired, or this machine's clock is wrong" } do
        assert.equal("TLS with the proxy HOST failed: its certificate " .. words,
          through(certificate, { CURL_CA_BUNDLE = DATA .. "ca.pem" }))
      end
      assert.equal("TLS with the proxy HOST " .. UNKNOWN .. "SSL_CERT_FILE names)",
        through("good", { SSL_CERT_FILE = OTHER }))
      if scheme == "http" then
        assert.equal("hello", through("good", { SSL_CERT_FILE = DATA .. "ca.pem" }))
      end
    end
  end)
end)
