/* The words for a full context. An error is one if its code is in the first table, or if its
 * message begins with a form of the second, whatever follows. Messages are compared from their
 * beginning, after the prefixes of proxies, since an error may quote the conversation or a tool's
 * result further on. A status for another cause (a rate, a key, a load) counts whatever the words.
 * So does an answer limit larger than the whole window, which no shorter conversation would fix. A
 * limit on a request's bytes (413 request_too_large) is not a full context. */
#include "wire/full.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

enum {
    MOST_LOOKED_AT = 2048, /* bytes of a message */
    MOST_TEXT = 1 << 20,   /* of a text with another server's error in it */
    MOST_NESTED = 4,       /* errors within errors */
    MOST_PREFIXES = 8
};

/* -- tables ------------------------------------------------------------------------------------ */

/* Codes and types of errors, and reasons why an answer ended. */
static const char *const words[] = {
    "context_length_exceeded",       /* OpenAI, Azure, Groq */
    "exceed_context_size_error",     /* llama.cpp, tools/server */
    "tokens_limit_reached",          /* GitHub Models */
    "context_window_exceeded",       /* LiteLLM */
    "ContextWindowExceededError",    /* LiteLLM */
    "model_context_window_exceeded", /* Anthropic, Z.ai */
    "prompt_too_long",               /* Claude CLI */
};

/* Statuses with another cause. */
static const int others[] = {401, 402, 403, 404, 405, 407, 408, 409, 425, 429, 451, 503, 504, 529};

/* Forms of messages; the first that fits decides. Case is ignored; #w is the window, #u the tokens
 * used, #a the limit of the answer, #- another number, * any text. SAID names the server that uses
 * a form: as recorded (spec/wire/full_spec.lua has the full texts), as in its source or
 * documentation, or as reported by its users. */
#define SAID(by, form) form
#define OPENAI_MAX     "this model's maximum context length is #w tokens"
static const char *const forms[] = {
    SAID("Anthropic", "prompt is too long: #u tokens > #w maximum"),
    SAID("Claude CLI", "prompt is too long"),
    SAID("Anthropic", "input length and *max_tokens* exceed context limit: #u + #a > #w"),
    SAID("Ollama, Z.ai", "prompt too long"),
    SAID("Ollama", "the input length exceeds the context length"),
    SAID("Ollama", "input length exceeds the context length"),
    SAID("Ollama", "input length exceeds maximum context length"),
    SAID("Ollama", "input exceeds maximum context length"),
    SAID("Z.ai", "prompt exceeds max length"),
    SAID("OpenAI", "your input exceeds the context window of this model"),
    SAID("OpenAI", "input tokens exceed the configured limit of #w tokens*resulted in #u tokens"),
    SAID("OpenAI", "input tokens exceed the configured limit of #w tokens"),
    SAID("OpenAI", OPENAI_MAX ". however, your messages resulted in #u tokens"),
    SAID("OpenAI, DeepSeek, Mistral", OPENAI_MAX
         ". however, you requested #- tokens (#u in the messages, #a in the completion)"),
    SAID("OpenAI, llama-cpp-python",
         OPENAI_MAX ", however you requested #- tokens (#u in your prompt; #a for the completion)"),
    SAID("vLLM", OPENAI_MAX ". however, your request has #u input tokens"),
    SAID("vLLM", OPENAI_MAX
         ". however, you requested #a output tokens and your prompt contains at least #u input"),
    SAID("vLLM", OPENAI_MAX ". however, you requested #u tokens in the"),
    SAID("OpenAI, and who follows it", OPENAI_MAX),
    SAID("vLLM", "'max_tokens' or 'max_completion_tokens' is too large: #a. " OPENAI_MAX
                 " and your request has #u input tokens"),
    SAID("vLLM", "you passed #u input tokens and requested #a output tokens. however, the model's "
                 "context length is only #w tokens"),
    SAID("vLLM", "the prompt (total length #u) is longer than the maximum model length of #w"),
    SAID("vLLM", "the decoder prompt (length #u) is longer than the maximum model length of #w"),
    SAID("vLLM", "the encoder prompt (length #u) is longer than the maximum model length of #w"),
    SAID("OpenRouter",
         "this endpoint's maximum context length is #w tokens*(#u of text input, #a in the "
         "output)"),
    SAID("OpenRouter", "this endpoint's maximum context length is #w tokens*(#u of text input"),
    SAID("OpenRouter", "this endpoint's maximum context length is #w tokens"),
    SAID("Gemini", "the input token count (#u) exceeds the maximum number of tokens allowed (#w)"),
    SAID("Gemini", "the input token count exceeds the maximum number of tokens allowed (#w)"),
    SAID("Vertex AI",
         "unable to submit request because the input token count is #u but *model only "
         "supports up to #w"),
    SAID("Bedrock", "input is too long for requested model"),
    SAID("Bedrock", "too many input tokens. max input tokens: #w, request input token count: #u"),
    SAID("xAI", "this model's maximum prompt length is #w but the request contains #u tokens"),
    SAID("Cerebras",
         "please reduce the length of the messages or completion. current length is #u while "
         "limit is #w"),
    SAID("Groq", "please reduce the length of the messages or completion"),
    SAID("Mistral", "prompt contains #u tokens*too large for model with #w maximum context length"),
    SAID("llama.cpp", "request (#u tokens) exceeds the available context size (#w tokens)"),
    SAID("llama.cpp", "the request exceeds the available context size"),
    SAID("llama.cpp", "request exceeds the available context size"),
    SAID("llama-cpp-python", "requested tokens (#u) exceed context window of #w"),
    SAID("LM Studio",
         "the number of tokens to keep from the initial prompt is greater than the context "
         "length (n_keep: #u>= n_ctx: #w)"),
    SAID("LM Studio",
         "the number of tokens to keep from the initial prompt is greater than the context "
         "length"),
    SAID("LM Studio", "trying to keep the first #u tokens when*context length of only #w tokens"),
    SAID("LM Studio", "reached context length of #w tokens with model"),
    SAID("SGLang, Together",
         "the input (#u tokens) is longer than the model's context length (#w tokens)"),
    SAID("SGLang",
         "requested token count exceeds the model's maximum context length of #w tokens*: #u "
         "tokens from the input messages and #a tokens for the completion"),
    SAID("SGLang", "requested token count exceeds the model's maximum context length of #w tokens"),
    SAID("SGLang", "input length (#u) exceeds *maximum context length (#w)"),
    SAID("Poolside", "input length #u exceeds the maximum allowed input length of #w tokens"),
    SAID("SGLang", "input length (#u tokens) exceeds the maximum allowed *length (#w tokens)"),
    SAID("TGI, Together",
         "`inputs` tokens + `max_new_tokens` must be <= #w. given: #u `inputs` tokens and #a"),
    SAID("TGI", "`inputs` must have less than #w tokens. given: #u"),
    SAID("Fireworks", "the prompt is too long: #u, model maximum context length: #w"),
    SAID("Cloudflare",
         "the estimated number of input and maximum output tokens (#u) exceeded this model "
         "context window limit (#w)"),
    SAID("Cohere",
         "too many tokens: size limit exceeded by #- tokens*limit for this model is #w tokens"),
    SAID("Cohere", "too many tokens: size limit exceeded by #- tokens"),
    SAID("Cohere", "too many tokens: total number of tokens * cannot exceed #w - received #u"),
    SAID("GitHub Models", "request body too large for * model. max size: #w tokens"),
    SAID("GitHub Copilot", "prompt token count of #u exceeds the limit of #w"),
    SAID("MiniMax", "invalid params, context window exceeds limit"),
    SAID("Moonshot", "your request exceeded model token limit: #w (requested: #u)"),
    SAID("Moonshot", "your request exceeded model token limit"),
    SAID("DashScope", "range of input length should be [#-, #w]"),
    SAID("Volcengine", "total tokens of image and text exceed max message tokens"),
    SAID("DS4", "prompt has #u tokens, but the configured context size is #w tokens"),
    SAID("GPT4All", "the prompt size exceeds the context window size"),
    SAID("LiteLLM", "context window exceeded"),
};

/* Prefixes that proxies and libraries put before another server's message. */
static const char *const prefixes[] = {
    "error code: #- - ",
    "api error: #- ",
    "http #-: ",
    "#- ",
    "error: ",
    "<#-> ",
    SAID("OpenRouter", "upstream error from *: "),
    SAID("OpenRouter", "error from *): "),
    SAID("OpenRouter", "provider returned error: "),
    SAID("LiteLLM", "context window error - "),
    SAID("Bedrock", "bedrock error message: "),
    SAID("Bedrock", "the model returned the following errors: "),
    SAID("Bedrock", "an error occurred (*) when calling the * operation: "),
    SAID("Moonshot", "invalid request: "),
    SAID("TGI", "input validation error: "),
    SAID("DashScope", "internalerror.algo.invalidparameter: "),
};

/* -- forms ------------------------------------------------------------------------------------- */

typedef struct numbers {
    int64_t window, used, asked;
} numbers;

/* Reads digits, with separators between groups ("1,048,576"), and moves *s behind them. */
static bool take_number(const char **s, int64_t *out)
{
    const char *p = *s;
    int64_t n = 0;

    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p) || ((*p == ',' || *p == '_') && isdigit((unsigned char)p[1]));
         p++)
        if (isdigit((unsigned char)*p) && n < INT64_MAX / 10 - 10)
            n = n * 10 + (*p - '0');
    *s = p;
    *out = n;
    return true;
}

static bool keep_number(char what, const char **s, numbers *to)
{
    int64_t n;

    if (!take_number(s, &n))
        return false;
    if (what == 'w')
        to->window = n;
    else if (what == 'u')
        to->used = n;
    else if (what == 'a')
        to->asked = n;
    return true;
}

/* The length in bytes of a typographic apostrophe, or 0. */
static size_t curled(const char *s)
{
    return strncmp(s, "\xe2\x80\x99", 3) == 0 ? 3 : 0;
}

/* Returns the rest of `s` after the form, or NULL. `left` limits the work that stars cause. */
static const char *match(const char *form, const char *s, numbers *to, int *left)
{
    for (; *form; form++) {
        if (--*left < 0)
            return NULL;
        if (*form == '*') {
            const char *end = NULL;

            for (; *s && !(end = match(form + 1, s, to, left)); s++)
                continue;
            return end;
        }
        if (*form == '#' && keep_number(form[1], &s, to))
            form++;
        else if (*form == '\'' && curled(s))
            s += 3;
        else if (*form != '#' && tolower((unsigned char)*s) == *form)
            s++;
        else
            return NULL;
    }
    return s;
}

static const char *fits(const char *form, const char *s, numbers *to)
{
    int left = 64 << 10;

    *to = (numbers){0};
    return match(form, s, to, &left);
}

/* -- prefixes of messages ---------------------------------------------------------------------- */

/* Skips "litellm.BadRequestError: ", "ValidationException - "; NULL if there is none. */
static const char *past_class(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
    bool is = (n >= 5 && memcmp(s + n - 5, "Error", 5) == 0) ||
              (n >= 9 && memcmp(s + n - 9, "Exception", 9) == 0);

    if (!is || !strchr(": ", s[n]) || !s[n])
        return NULL;
    return s + n + strspn(s + n, ": -");
}

static const char *past_prefix(const char *s)
{
    const char *next = NULL;
    numbers none;

    for (size_t i = 0; !next && i < sizeof prefixes / sizeof *prefixes; i++)
        next = fits(prefixes[i], s, &none);
    return next ? next : past_class(s);
}

static bool is_known_word(ah_slice s)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_slice_is(s, words[i]))
            return true;
    return false;
}

/* True for "litellm.ContextWindowExceededError: ..." */
static bool is_named(const char *s)
{
    static const char class[] = "ContextWindowExceededError";
    size_t n = strcspn(s, ": ");

    return n >= sizeof class - 1 &&
           memcmp(s + n - (sizeof class - 1), class, sizeof class - 1) == 0;
}

/* -- judging ----------------------------------------------------------------------------------- */

static bool may_be(int status)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (status == others[i])
            return false;
    return true;
}

static void judge(const ah_mem *mem, const ah_wire_error *told, int depth, ah_full *out);

/* Judges another server's error: the JSON at the end of the text. */
static void judge_nested(const ah_mem *mem, int status, ah_slice text, int depth, ah_full *out)
{
    ah_wire_error told = {.status = status};
    ah_slice in;

    while (text.n && text.p[text.n - 1] != '}')
        text.n--;
    if (depth >= MOST_NESTED || ah_json_check(mem, text, AH_JSON_MAX_DEPTH, NULL) != AH_OK)
        return;
    in = ah_json_member(text, "error");
    told.error = ah_json_kind_of(in) == AH_JSON_OBJECT ? in : text;
    told.message =
        ah_json_kind_of(in) == AH_JSON_STRING ? in : ah_json_member(told.error, "message");
    told.word = ah_json_member(told.error, "code");
    told.type = ah_json_member(told.error, "type");
    judge(mem, &told, depth + 1, out);
}

/* If the answer limit is larger than the window, the context is not what is full. */
static void take_numbers(const numbers *n, ah_full *out)
{
    out->is = out->is || !n->window || n->asked < n->window;
    out->window = n->window ? n->window : out->window;
    out->used = n->used ? n->used : out->used;
}

/* `s` ends with a NUL; n is its length. */
static void judge_words(const ah_mem *mem, int status, const char *s, size_t n, int depth,
                        ah_full *out)
{
    const char *end = s + n, *next = s;
    numbers found;

    for (int i = 0; next && i < MOST_PREFIXES; i++, next = past_prefix(s)) {
        s = next;
        out->is = out->is || is_named(s);
        if (*s == '{' || strncmp(s, "b'{", 3) == 0) {
            s = strchr(s, '{');
            judge_nested(mem, status, (ah_slice){s, (size_t)(end - s)}, depth, out);
            return;
        }
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
            if (fits(forms[f], s, &found)) {
                take_numbers(&found, out);
                return;
            }
    }
}

static void judge_text(const ah_mem *mem, int status, ah_slice text, int depth, ah_full *out)
{
    ah_buf b;

    text = ah_slice_trim(text);
    if (text.n > MOST_TEXT || !text.n)
        return;
    if (text.n > MOST_LOOKED_AT && !memchr(text.p, '{', MOST_LOOKED_AT))
        text.n = MOST_LOOKED_AT;
    ah_buf_init(&b, mem, MOST_TEXT + 1);
    ah_buf_put(&b, text);
    ah_buf_char(&b, '\0');
    if (ah_buf_ok(&b))
        judge_words(mem, status, b.data, text.n, depth, out);
    else
        out->status = AH_NOMEM;
    ah_buf_clear(&b);
}

/* Judges a JSON string. */
static void judge_string(const ah_mem *mem, int status, ah_slice value, int depth, ah_full *out)
{
    ah_buf b;

    if (ah_json_kind_of(value) != AH_JSON_STRING || value.n > MOST_TEXT)
        return;
    ah_buf_init(&b, mem, MOST_TEXT);
    if (ah_json_string(value, &b) && ah_buf_ok(&b))
        judge_text(mem, status, ah_buf_slice(&b), depth, out);
    else if (!ah_buf_ok(&b))
        out->status = AH_NOMEM;
    ah_buf_clear(&b);
}

static int64_t count(ah_slice error, const char *name)
{
    ah_json_num n;

    return ah_json_number(ah_json_member(error, name), &n) && n.is_int && n.i > 0 ? n.i : 0;
}

bool ah_full_word(ah_slice word)
{
    return ah_json_kind_of(word) == AH_JSON_STRING && is_known_word(ah_json_inside(word));
}

static void judge(const ah_mem *mem, const ah_wire_error *told, int depth, ah_full *out)
{
    numbers n = {.window = count(told->error, "n_ctx"),
                 .used = count(told->error, "n_prompt_tokens")};
    bool known = ah_full_word(told->word) || ah_full_word(told->type);

    judge_string(mem, told->status, told->message, depth, out);
    if (!out->is) /* OpenRouter: the provider's own message */
        judge_string(mem, told->status,
                     ah_json_member(ah_json_member(told->error, "metadata"), "raw"), depth, out);
    out->is = out->is || known;
    if (known) /* llama.cpp has counts in members of their own */
        take_numbers(&n, out);
}

ah_full ah_full_judge(const ah_mem *mem, const ah_wire_error *told)
{
    ah_full full = {.status = AH_OK};

    if (may_be(told->status))
        judge(mem, told, 0, &full);
    return full;
}

ah_full ah_full_judge_text(const ah_mem *mem, int status, ah_slice text)
{
    ah_full full = {.status = AH_OK};

    if (may_be(status))
        judge_text(mem, status, text, 0, &full);
    return full;
}

void ah_full_tell(const ah_full *full, ah_err *err)
{
    err->status = AH_CONTEXT_FULL;
    err->retryable = false;
    if (full->window)
        ah_json_detail_int(err, "window", full->window);
    if (full->used)
        ah_json_detail_int(err, "used", full->used);
}
