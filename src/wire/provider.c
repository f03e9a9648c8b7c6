/* Addresses, keys, requests and small parts of lowering; see provider.h. Keys and addresses are
 * looked up in LiteLLM's order: the call's options, the environment, the default. */
#include "wire/provider.h"

enum { MAX_WIRE_NAME = 64, MAX_WIRE_ID = 64, HASH_DIGITS = 16, MAX_VARIABLE = 128 };

/* -- making an adapter ------------------------------------------------------------------ */

ah_slice ah_provider_env(const ah_provider_options *o, const char *name)
{
    const char *v = name && o->getenv ? o->getenv(o->ud, name) : NULL;

    return ah_slice_of(v && *v ? v : NULL);
}

static ah_slice first_env(const ah_provider_options *o, const char *const names[AH_SERVICE_NAMES])
{
    ah_slice v = {NULL, 0};

    for (size_t i = 0; i < AH_SERVICE_NAMES && !v.p; i++)
        v = ah_provider_env(o, names[i]);
    return v;
}

/* Recognises LiteLLM's form for naming a variable where a value is expected. */
static bool names_variable(ah_slice s, char name[MAX_VARIABLE])
{
    static const char prefix[] = "os.environ/";
    size_t n = sizeof prefix - 1;

    if (s.n <= n || s.n - n >= MAX_VARIABLE || memcmp(s.p, prefix, n) != 0)
        return false;
    memcpy(name, s.p + n, s.n - n);
    name[s.n - n] = '\0';
    return true;
}

static ah_status find_key(const ah_service *s, const ah_provider_options *o, ah_slice *key,
                          ah_err *err)
{
    char name[MAX_VARIABLE];

    *key = o->api_key.p ? o->api_key : first_env(o, s->key_env);
    if (!names_variable(*key, name))
        return AH_OK;
    *key = ah_provider_env(o, name);
    if (key->p)
        return AH_OK;
    return ah_err_set(err, AH_PROVIDER, "%s: api_key is os.environ/%s, which is not set", s->name,
                      name);
}

static ah_slice find_url(const ah_service *s, const ah_provider_options *o)
{
    ah_slice url = o->base_url.p ? o->base_url : first_env(o, s->url_env);

    if (!url.p)
        url = ah_slice_of(s->url);
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    return url;
}

uint64_t ah_adapter_lane(ah_slice provider, ah_slice url, ah_slice key)
{
    static const ah_slice apart = {"\n", 1};
    uint64_t h = ah_slice_hash_on(AH_HASH_BEGIN, provider);

    h = ah_slice_hash_on(ah_slice_hash_on(h, apart), url);
    return ah_slice_hash_on(ah_slice_hash_on(h, apart), key);
}

ah_status ah_wire_native_fill(ah_wire_native *a, const ah_service *s, ah_slice model,
                              const ah_provider_options *o, ah_err *err)
{
    ah_slice url = find_url(s, o), key;
    ah_status st = find_key(s, o, &key, err);

    a->service = s;
    a->limits = o->limits;
    if (st != AH_OK)
        return st;
    if (!url.n)
        return ah_err_set(err, AH_USAGE, "%s: no address: set base_url or %s", s->name,
                          s->url_env[0]);
    if (memchr(url.p, '\0', url.n))
        return ah_err_set(err, AH_USAGE, "%s: the address (base_url) holds a NUL byte", s->name);
    if (!key.p && !s->keyless && s->url && ah_slice_is(url, s->url))
        return ah_err_set(err, AH_PROVIDER,
                          "%s: no key: set %s or api_key (without a key and a network: demo/...)",
                          s->name, s->key_env[0]);
    if ((key.p && !(a->key = ah_secrets_keep(o->secrets, key))) ||
        !(a->base.provider = ah_text_new(o->mem, ah_slice_of(s->name))) ||
        !(a->base.model = ah_text_new(o->mem, model)) ||
        !(a->base.endpoint = ah_text_new(o->mem, url)))
        return ah_err_nomem(err);
    a->base.lane = ah_adapter_lane(ah_text_slice(a->base.provider), url, key);
    a->base.billed = key.p != NULL;
    return AH_OK;
}

static ah_status no_mode(ah_slice asked, const char *provider, unsigned spoken, ah_err *err)
{
    char list[128] = "";

    for (int m = 0; ah_tool_change_mode_names[m]; m++)
        if (spoken & 1u << m) {
            strncat(list, *list ? ", " : "", sizeof list - strlen(list) - 1);
            strncat(list, ah_tool_change_mode_names[m], sizeof list - strlen(list) - 1);
        }
    return ah_err_set(err, AH_USAGE, "tool_change_mode: %s has no '%.*s'; it has %s", provider,
                      AH_FMT(asked), list);
}

ah_status ah_provider_mode(const ah_provider_options *o, const char *provider, unsigned spoken,
                           ah_tool_change_mode own, ah_tool_change_mode *out, ah_err *err)
{
    int m = 0;

    *out = own;
    if (!o->tool_change_mode.p)
        return AH_OK;
    while (ah_tool_change_mode_names[m] &&
           !ah_slice_is(o->tool_change_mode, ah_tool_change_mode_names[m]))
        m++;
    if (!ah_tool_change_mode_names[m] || !(spoken & 1u << m))
        return no_mode(o->tool_change_mode, provider, spoken, err);
    *out = (ah_tool_change_mode)m;
    return AH_OK;
}

/* -- the request around the body ------------------------------------------------------------ */

/* Appends one header line to scratch; returns its end as an offset, since scratch may still
 * move. */
static size_t put_header(ah_buf *scratch, const char *name, ah_slice value)
{
    ah_buf_str(scratch, name);
    ah_buf_put(scratch, value);
    return scratch->len;
}

ah_status ah_wire_native_post(const ah_wire_native *a, const char *path, const ah_header *h,
                              size_t n, ah_buf *scratch, ah_http_request *req, ah_err *err)
{
    const char *accept = !a->base.stream     ? "application/json"
                         : a->service->lines ? "application/x-ndjson, application/json"
                                             : "text/event-stream, application/json";
    size_t end[AH_MAX_HEADERS], lines_n = 0, from;
    ah_slice *lines;

    /* The array first, then the texts that it refers to. */
    ah_buf_room(scratch, AH_MAX_HEADERS * sizeof(ah_slice));
    if (ah_buf_ok(scratch))
        scratch->len += AH_MAX_HEADERS * sizeof(ah_slice);
    ah_buf_put(scratch, ah_text_slice(a->base.endpoint));
    ah_buf_add(scratch, path, strlen(path) + 1);
    from = scratch->len;
    end[lines_n++] = put_header(scratch, "Content-Type: ", ah_slice_of("application/json"));
    end[lines_n++] = put_header(scratch, "Accept: ", ah_slice_of(accept));
    for (size_t i = 0; i < n && lines_n < AH_MAX_HEADERS; i++)
        if (h[i].value.p)
            end[lines_n++] = put_header(scratch, h[i].name, h[i].value);
    if (!ah_buf_ok(scratch))
        return ah_buf_error(scratch, "the request's headers", err);
    lines = (ah_slice *)(void *)scratch->data;
    for (size_t i = 0, at = from; i < lines_n; at = end[i++])
        lines[i] = (ah_slice){scratch->data + at, end[i] - at};
    req->method = "POST";
    req->url = scratch->data + AH_MAX_HEADERS * sizeof(ah_slice);
    req->headers = lines;
    req->n_headers = lines_n;
    req->limits = a->limits;
    return AH_OK;
}

/* -- lowering --------------------------------------------------------------------------- */

size_t ah_wire_put_tools(ah_wire *w, const char *open, ah_wire_put_tool *put)
{
    ah_buf *b = &w->head;
    ah_segment_kind kind;
    size_t at = 0, entry, n = 0, from;
    ah_slice spec;

    while ((spec = ah_wire_tool(w, &at, &kind, &entry)).p) {
        ah_buf_str(b, n++ ? "," : open);
        from = ah_segment_begin(b);
        put(w, spec, b);
        ah_segment_end(w, kind, entry, b, from);
    }
    return n;
}

void ah_wire_put_added(const ah_wire *w, ah_slice json, size_t told, ah_buf *b,
                       ah_wire_put_tool *put)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "tools"));
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    for (t = ah_json_next(&r); json.p && t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice spec = ah_json_skip(&r, t);
        const ah_offer *offered = ah_offers_find(&w->offers, ah_json_member(spec, "name"));

        if (told && (!offered || offered->told != told))
            continue;
        ah_buf_str(b, n++ ? "," : "");
        put(w, spec, b);
    }
}

void ah_wire_put_system(ah_wire *w, const char *open, const char *close)
{
    ah_buf *b = &w->head;
    size_t from = ah_segment_begin(b);

    if (!w->system.p)
        return;
    ah_buf_str(b, open);
    ah_buf_put(b, w->system);
    ah_buf_str(b, close);
    ah_segment_end(w, AH_SEGMENT_SYSTEM, w->system_entry, b, from);
}

void ah_wire_put_member(ah_buf *b, size_t *n, const char *name, ah_slice value)
{
    if (value.p)
        ah_buf_fmt(b, (*n)++ ? ",\"%s\":%.*s" : "\"%s\":%.*s", name, AH_FMT(value));
}

void ah_wire_put_list(ah_buf *b, size_t *n, const char *name, ah_slice value)
{
    if (ah_json_kind_of(value) == AH_JSON_STRING)
        ah_buf_fmt(b, (*n)++ ? ",\"%s\":[%.*s]" : "\"%s\":[%.*s]", name, AH_FMT(value));
    else
        ah_wire_put_member(b, n, name, value);
}

void ah_wire_put_option(ah_buf *b, const char *name, ah_slice value)
{
    if (value.p)
        ah_buf_fmt(b, ",\"%s\":%.*s", name, AH_FMT(value));
}

void ah_wire_put_joined_text(ah_buf *b, ah_slice parts)
{
    ah_json_reader r = ah_json_read(parts);
    ah_json_token t = ah_json_next(&r);

    ah_buf_char(b, '"');
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice text = ah_json_member(ah_json_skip(&r, t), "text");

        if (ah_json_kind_of(text) == AH_JSON_STRING)
            ah_buf_add(b, text.p + 1, text.n - 2);
    }
    ah_buf_char(b, '"');
}

void ah_wire_put_message(ah_buf *b, const char *role, ah_slice content)
{
    ah_buf_fmt(b, ",{\"role\":\"%s\",\"content\":", role);
    if (ah_json_kind_of(content) == AH_JSON_ARRAY)
        ah_wire_put_joined_text(b, content);
    else
        ah_buf_put(b, content);
    ah_buf_char(b, '}');
}

void ah_wire_put_image_url(ah_buf *b, const ah_image *image)
{
    if (image->url.p) {
        ah_buf_put(b, image->url);
        return;
    }
    ah_buf_str(b, "\"data:");
    ah_buf_put(b, ah_json_inside(image->mime));
    ah_buf_str(b, ";base64,");
    ah_buf_put(b, ah_json_inside(image->data));
    ah_buf_char(b, '"');
}

static bool has_image(ah_slice parts)
{
    ah_json_reader r = ah_json_read(parts);
    ah_json_token t = ah_json_next(&r);
    ah_image image;

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        if (ah_image_of(ah_json_skip(&r, t), &image))
            return true;
    return false;
}

static void put_part(ah_buf *b, const ah_part_words *words, ah_slice part, size_t *n)
{
    ah_slice text = ah_json_member(part, "text");
    ah_image image;

    if (ah_image_of(part, &image)) {
        ah_buf_fmt(b, "%s%s", (*n)++ ? "," : "", words->image);
        ah_wire_put_image_url(b, &image);
        ah_buf_str(b, words->image_end);
    } else if (ah_wire_has_text(text)) {
        ah_buf_fmt(b, "%s%s%.*s}", (*n)++ ? "," : "", words->text, AH_FMT(text));
    }
}

void ah_wire_put_user(ah_buf *b, const ah_part_words *words, ah_slice content)
{
    ah_json_reader r = ah_json_read(content);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    if (t.kind != AH_JSON_ARRAY || !has_image(content)) {
        ah_wire_put_message(b, "user", content);
        return;
    }
    ah_buf_str(b, ",{\"role\":\"user\",\"content\":[");
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        put_part(b, words, ah_json_skip(&r, t), &n);
    ah_buf_str(b, "]}");
}

ah_json_reader ah_wire_result_images(ah_slice json)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "images"));

    ah_json_next(&r);
    return r;
}

static bool next_image(ah_json_reader *r, ah_image *image)
{
    for (ah_json_token t = ah_json_next(r); t.kind == AH_JSON_OBJECT; t = ah_json_next(r))
        if (ah_image_of(ah_json_skip(r, t), image))
            return true;
    return false;
}

static bool is_shown(const ah_adapter *a, const ah_image *image)
{
    return (a->images & (image->url.p ? AH_IMAGES_RESULT_URL : AH_IMAGES_RESULT_DATA)) != 0;
}

bool ah_wire_next_shown(const ah_adapter *a, ah_json_reader *r, ah_image *image)
{
    while (next_image(r, image))
        if (is_shown(a, image))
            return true;
    return false;
}

void ah_wire_put_result_text(const ah_adapter *a, ah_buf *b, const char *lead, ah_slice json)
{
    ah_slice content, images;
    const ah_json_slot want[] = {{"content", &content}, {"images", &images}};
    ah_json_reader r;
    ah_image image;

    ah_json_members(json, want, 2);
    r = ah_json_read(images);
    ah_json_next(&r);
    ah_buf_char(b, '"');
    ah_buf_str(b, lead);
    if (ah_json_kind_of(content) == AH_JSON_STRING)
        ah_buf_put(b, ah_json_inside(content));
    while (next_image(&r, &image)) {
        if (is_shown(a, &image))
            continue;
        ah_buf_str(b, "\\n\\n[An image (");
        ah_buf_put(b, ah_json_inside(image.url.p ? image.url : image.mime));
        ah_buf_str(b, ") belongs here; results of tools cannot show it to you.]");
    }
    ah_buf_char(b, '"');
}

static bool fits_wire(char c)
{
    return ah_is_letter(c) || ah_is_digit(c) || c == '_' || c == '-';
}

static void put_fitting(ah_buf *b, ah_slice raw)
{
    for (size_t i = 0; i < raw.n; i++)
        ah_buf_char(b, fits_wire(raw.p[i]) ? raw.p[i] : '_');
}

static void put_name(ah_buf *b, const char *lead, ah_slice value)
{
    size_t n = value.n >= 2 ? value.n - 2 : 0;

    ah_buf_char(b, '"');
    ah_buf_str(b, lead);
    put_fitting(b, (ah_slice){value.p + 1, n < MAX_WIRE_NAME ? n : MAX_WIRE_NAME});
    ah_buf_str(b, n ? "\"" : "unnamed\"");
}

void ah_wire_put_name(ah_buf *b, ah_slice value)
{
    put_name(b, "", value);
}

/* True if a digit or a dash comes first, or first after leading `_`; *bare is the number of
 * these. */
static bool needs_lead(ah_slice raw, size_t *bare)
{
    for (*bare = 0; *bare < raw.n && raw.p[*bare] == '_';)
        ++*bare;
    return *bare < raw.n && (ah_is_digit(raw.p[*bare]) || raw.p[*bare] == '-');
}

void ah_wire_put_led_name(ah_buf *b, ah_slice value)
{
    ah_slice raw = value.n >= 2 ? ah_json_inside(value) : (ah_slice){"", 0};
    size_t bare;

    put_name(b, needs_lead(raw, &bare) ? "_" : "", value);
}

ah_slice ah_wire_led_name(ah_slice raw)
{
    size_t bare;

    return needs_lead(raw, &bare) && bare > 0 ? (ah_slice){raw.p + 1, raw.n - 1} : raw;
}

void ah_wire_put_id(ah_buf *b, ah_slice value)
{
    ah_slice raw = value.n >= 2 ? ah_json_inside(value) : (ah_slice){"", 0};
    size_t fitting = 0, most = MAX_WIRE_ID - HASH_DIGITS - 1;
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    while (fitting < raw.n && fits_wire(raw.p[fitting]))
        fitting++;
    ah_buf_char(b, '"');
    if (raw.n && fitting == raw.n && raw.n <= MAX_WIRE_ID) {
        ah_buf_put(b, raw);
    } else {
        for (size_t i = 0; i < raw.n; i++)
            h = (h ^ (unsigned char)raw.p[i]) * 1099511628211u;
        put_fitting(b, (ah_slice){raw.p, raw.n < most ? raw.n : most});
        ah_buf_fmt(b, "_%016llx", (unsigned long long)h);
    }
    ah_buf_char(b, '"');
}

/* The length of the white space character, escaped or not, with which a JSON string's text begins;
 * 0: none. */
static size_t blank(ah_slice raw)
{
    static const char *const blanks[] = {" ",       "\\n",     "\\r",     "\\t",     "\\u0009",
                                         "\\u000a", "\\u000A", "\\u000d", "\\u000D", "\\u0020"};

    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        size_t n = strlen(blanks[i]);

        if (raw.n >= n && memcmp(raw.p, blanks[i], n) == 0)
            return n;
    }
    return 0;
}

bool ah_wire_has_text(ah_slice value)
{
    ah_slice raw;
    size_t n;

    if (ah_json_kind_of(value) != AH_JSON_STRING)
        return false;
    raw = ah_json_inside(value);
    while ((n = blank(raw)) > 0)
        raw = (ah_slice){raw.p + n, raw.n - n};
    return raw.n > 0;
}

bool ah_wire_is_origin(const ah_adapter *a, ah_slice origin)
{
    ah_slice adapter, model, endpoint;
    const ah_json_slot want[] = {{"adapter", &adapter}, {"model", &model}, {"endpoint", &endpoint}};

    return ah_json_members(origin, want, 3) && ah_json_string_is(adapter, a->provider->data) &&
           ah_json_string_is(model, a->model->data) &&
           ah_json_string_is(endpoint, a->endpoint->data);
}

bool ah_wire_part_of_ours(const ah_adapter *a, ah_slice part, ah_slice *data, size_t *calls)
{
    ah_slice type, origin, before;
    const ah_json_slot want[] = {
        {"type", &type}, {"origin", &origin}, {"calls", &before}, {"data", data}};
    ah_json_num n = {0};

    if (!ah_json_members(part, want, 4) || !ah_json_string_is(type, "opaque") ||
        ah_json_kind_of(*data) != AH_JSON_OBJECT || !ah_wire_is_origin(a, origin))
        return false;
    *calls = ah_json_number(before, &n) && n.is_int && n.i > 0 ? (size_t)n.i : 0;
    return true;
}

/* The first value that `find` returns for a part. */
static ah_slice find_part(const ah_adapter *a, ah_slice parts,
                          ah_slice (*find)(const ah_adapter *a, ah_slice part))
{
    ah_json_reader r = ah_json_read(parts);
    ah_json_token t = ah_json_next(&r);
    ah_slice found = {NULL, 0};

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT && !found.p; t = ah_json_next(&r))
        found = find(a, ah_json_skip(&r, t));
    return found;
}

static ah_slice text_of(const ah_adapter *a, ah_slice part)
{
    (void)a;
    return ah_json_member(part, "text");
}

static ah_slice ours_of(const ah_adapter *a, ah_slice part)
{
    ah_slice data;
    size_t calls;

    return ah_wire_part_of_ours(a, part, &data, &calls) ? data : (ah_slice){NULL, 0};
}

bool ah_wire_parts_say(ah_slice parts)
{
    return find_part(NULL, parts, text_of).p != NULL;
}

bool ah_wire_thoughts_alone(const ah_wire *w, ah_slice data)
{
    (void)w;
    (void)data;
    return false;
}

ah_slice ah_wire_opaque_of_ours(const ah_adapter *a, ah_slice parts)
{
    return find_part(a, parts, ours_of);
}
