/* The parts of making requests that adapters of HTTP providers share: address, key and mode, the
 * request around the body, and small parts of lowering. Sends nothing. An adapter owns its texts
 * and borrows service and key. The functions that lower append to the caller's buffer, whose status
 * reports lack of memory. wire/providers.h has the list of providers. Callers: its floor, lua. */
#ifndef AH_WIRE_PROVIDER_H
#define AH_WIRE_PROVIDER_H

#include "model/image.h"
#include "wire/lower.h"
#include "wire/service.h"

/* Everything that script, command line and environment say about an adapter, except its
 * "provider/model". */
typedef struct ah_provider_options {
    const ah_mem *mem;
    ah_secrets *secrets;
    const char *(*getenv)(void *ud, const char *name);
    void *ud;
    ah_slice base_url, api_key; /* .p NULL: from the environment, or the provider's default */
    ah_slice tool_change_mode;  /* .p NULL: the model's default */
    const ah_models *models;    /* the program's models; may be NULL */
    bool stream;
    ah_http_limits limits;
} ah_provider_options;

/* A provider with its own wire. Its file defines one, and wire/providers.c has a row for it. */
typedef struct ah_provider {
    const ah_service *service;
    ah_status (*open)(ah_slice model, const ah_provider_options *o, ah_adapter **out, ah_err *err);
} ah_provider;

/* Adapters of a provider with one key begin with this struct. */
typedef struct ah_wire_native {
    ah_adapter base;
    const ah_service *service;
    const ah_secret *key; /* NULL: no key is sent */
    ah_http_limits limits;
} ah_wire_native;

/* An environment variable; .p NULL if it is absent or empty, or `name` is NULL. */
ah_slice ah_provider_env(const ah_provider_options *o, const char *name);

/* Fills in ah_adapter and ah_wire_native: address and key from the options, else the environment,
 * else the service's default. A key "os.environ/NAME" means the variable NAME. Returns AH_USAGE if
 * no address is known, AH_PROVIDER if the service's own address needs a key and there is none. */
ah_status ah_wire_native_fill(ah_wire_native *a, const ah_service *s, ah_slice model,
                              const ah_provider_options *o, ah_err *err);

/* Returns the number of a lane (ah_adapter.lane). Adapters without an address have an empty one. */
uint64_t ah_adapter_lane(ah_slice provider, ah_slice url, ah_slice key);

/* Sets the mode in which tools change: `own`, unless the options name another of `spoken` (bits 1
 * << mode). Returns AH_USAGE if they name one that is not spoken. */
ah_status ah_provider_mode(const ah_provider_options *o, const char *provider, unsigned spoken,
                           ah_tool_change_mode own, ah_tool_change_mode *out, ah_err *err);

/* The modes that work on any wire. */
enum {
    AH_TOOLS_ANYWHERE = 1 << AH_TOOLS_APPEND | 1 << AH_TOOLS_DISPATCHER | 1 << AH_TOOLS_RESTART
};

/* A header; it is left out if the value has .p NULL. */
typedef struct ah_header {
    const char *name; /* for example "Authorization: Bearer " */
    ah_slice value;
} ah_header;

enum { AH_MAX_HEADERS = 8 };

/* Fills in a POST of JSON to endpoint + path. A slot of ah_adapter_vt adds the rest. */
ah_status ah_wire_native_post(const ah_wire_native *a, const char *path, const ah_header *h,
                              size_t n, ah_buf *scratch, ah_http_request *req, ah_err *err);

/* -- lowering ------------------------------------------------------------------------ */

/* Appends the tools of the head, each a segment: `open` before the first, a comma before each other
 * one. Returns their number. */
typedef void ah_wire_put_tool(const ah_wire *w, ah_slice spec, ah_buf *out);
size_t ah_wire_put_tools(ah_wire *w, const char *open, ah_wire_put_tool *put);
/* Appends, with commas, the tools of a tools_added entry that entry `told` declares (0: all). */
void ah_wire_put_added(const ah_wire *w, ah_slice json, size_t told, ah_buf *b,
                       ah_wire_put_tool *put);
/* Appends the system text between `open` and `close`, as one segment; nothing if there is none. */
void ah_wire_put_system(ah_wire *w, const char *open, const char *close);
/* Appends "name":value as the n-th member of an object; nothing if the value is absent. */
void ah_wire_put_member(ah_buf *b, size_t *n, const char *name, ah_slice value);
/* Like ah_wire_put_member, for a list of strings; a single string may be given instead. */
void ah_wire_put_list(ah_buf *b, size_t *n, const char *name, ah_slice value);
/* Appends ,"name":value of an option; nothing if it is absent. */
void ah_wire_put_option(ah_buf *b, const char *name, ah_slice value);
/* Appends all text of a message's parts as one JSON string; values are copied verbatim. */
void ah_wire_put_joined_text(ah_buf *b, ah_slice parts);
/* Appends ,{"role":role,"content":"..."} from a string or from parts. */
void ah_wire_put_message(ah_buf *b, const char *role, ah_slice content);
/* The words of a wire for parts, if it takes images as addresses. */
typedef struct ah_part_words {
    const char *text;              /* before the text; "}" follows it */
    const char *image, *image_end; /* around the address */
} ah_part_words;

/* True if this origin (a JSON object, docs/reference/transcript.md) is the adapter's own. */
bool ah_wire_is_origin(const ah_adapter *a, ah_slice origin);
/* Appends ,{"role":"user","content":..}: a list of parts if there is an image, else a string. */
void ah_wire_put_user(ah_buf *b, const ah_part_words *words, ah_slice content);
/* Appends an image's bytes as "data:mime;base64,...", or its address: a JSON string. */
void ah_wire_put_image_url(ah_buf *b, const ah_image *image);
/* Iterates over the images of a tool's result (JSON of the entry) that the wire takes there.
 *
 *     for (ah_json_reader r = ah_wire_result_images(json); ah_wire_next_shown(a, &r, &image);) */
ah_json_reader ah_wire_result_images(ah_slice json);
bool ah_wire_next_shown(const ah_adapter *a, ah_json_reader *r, ah_image *image);
/* Appends a tool's result as a JSON string: `lead` (without characters that JSON escapes), the
 * content, and a text for each image that the wire does not take. */
void ah_wire_put_result_text(const ah_adapter *a, ah_buf *b, const char *lead, ah_slice json);
/* Appends a tool name as [A-Za-z0-9_-]{1,64}, since a model may invent any name. */
void ah_wire_put_name(ah_buf *b, ah_slice value);
/* Like ah_wire_put_name, for wires whose names must begin with a letter or `_`: other names get a
 * leading `_`. Names that look as if they had got one get another, so that no two become equal. */
void ah_wire_put_led_name(ah_buf *b, ah_slice value);
/* The reverse: returns the original name, a part of the raw text. */
ah_slice ah_wire_led_name(ah_slice raw);
/* Appends a call's id as [A-Za-z0-9_-]{1,64}: unchanged if it fits, else with a hash that keeps it
 * unique. */
void ah_wire_put_id(ah_buf *b, ah_slice value);
/* True if a JSON string contains more than white space. */
bool ah_wire_has_text(ah_slice value);
/* True if at least one part has text. */
bool ah_wire_parts_say(ah_slice parts);
/* True if the part is opaque and came from this adapter. *data is then its content, *calls the
 * number of the message's calls before it. */
bool ah_wire_part_of_ours(const ah_adapter *a, ah_slice part, ah_slice *data, size_t *calls);
/* The slot `stands` of wires that keep only a message's reasoning beside it. */
bool ah_wire_thoughts_alone(const ah_wire *w, ah_slice data);
/* Returns the data of the first opaque part of this adapter in `parts`; .p NULL: none. For wires on
 * which such data belongs to the whole message. */
ah_slice ah_wire_opaque_of_ours(const ah_adapter *a, ah_slice parts);

#endif
