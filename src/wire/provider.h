/* The parts that adapters of HTTP providers share in making requests: where address, key and mode
 * come from, the request around the body, and the small parts of lowering. Each provider's file
 * calls it; which providers there are is said in wire/providers.h. Nothing is sent here. */
#ifndef AH_WIRE_PROVIDER_H
#define AH_WIRE_PROVIDER_H

#include "model/image.h"
#include "wire/lower.h"
#include "wire/service.h"

/* All that a script, the command line and the environment say about an adapter, beside its
 * "provider/model". */
typedef struct ah_provider_options {
    const ah_mem *mem;
    ah_secrets *secrets;
    const char *(*getenv)(void *ud, const char *name);
    void *ud;
    ah_slice base_url, api_key; /* .p NULL: from the environment, or the provider's own */
    ah_slice tool_change_mode;  /* .p NULL: the model's own */
    const ah_models *models;    /* what the program says of models; may be NULL */
    bool stream;
    ah_http_limits limits;
} ah_provider_options;

/* A provider with a wire of its own: its file defines one, and wire/providers.c has a row for
 * it. */
typedef struct ah_provider {
    const ah_service *service;
    ah_status (*open)(ah_slice model, const ah_provider_options *o, ah_adapter **out, ah_err *err);
} ah_provider;

/* An adapter of a provider with one key begins with this. */
typedef struct ah_wire_native {
    ah_adapter base;
    const ah_service *service;
    const ah_secret *key; /* NULL: none sent */
    ah_http_limits limits;
} ah_wire_native;

/* A variable of the environment; .p NULL where it is absent or empty, or `name` is NULL. */
ah_slice ah_provider_env(const ah_provider_options *o, const char *name);

/* Fills what ah_adapter and ah_wire_native hold: the address and the key that the options say, else
 * the environment, else the service's own. A key "os.environ/NAME" is what the environment has
 * under NAME. AH_USAGE where no address is known, AH_PROVIDER where the service's own address
 * needs a key. */
ah_status ah_wire_native_fill(ah_wire_native *a, const ah_service *s, ah_slice model,
                              const ah_provider_options *o, ah_err *err);

/* The mode in which tools change: `own` unless the options name another one of `spoken` (bits
 * 1 << mode); AH_USAGE where they name one that is not. */
ah_status ah_provider_mode(const ah_provider_options *o, const char *provider, unsigned spoken,
                           ah_tool_change_mode own, ah_tool_change_mode *out, ah_err *err);

/* The modes of wires that have no way of their own. */
enum {
    AH_TOOLS_ANYWHERE = 1 << AH_TOOLS_APPEND | 1 << AH_TOOLS_DISPATCHER | 1 << AH_TOOLS_RESTART
};

/* A header's value may be left out: .p NULL. */
typedef struct ah_header {
    const char *name; /* "Authorization: Bearer " */
    ah_slice value;
} ah_header;

enum { AH_MAX_HEADERS = 8 };

/* POST endpoint + path with JSON; a slot of ah_adapter_vt fills the rest. */
ah_status ah_wire_native_post(const ah_wire_native *a, const char *path, const ah_header *h,
                              size_t n, ah_buf *scratch, ah_http_request *req, ah_err *err);

/* -- lowering ------------------------------------------------------------------------ */

/* The tools to be declared in the head, each a segment: `open` in front of the first, a comma
 * in front of the others; returns how many. */
typedef void ah_wire_put_tool(const ah_wire *w, ah_slice spec, ah_buf *out);
size_t ah_wire_put_tools(ah_wire *w, const char *open, ah_wire_put_tool *put);
/* The tools of a tools_added entry that were told in entry `told` (0: all of them), with commas. */
void ah_wire_put_added(const ah_wire *w, ah_slice json, size_t told, ah_buf *b,
                       ah_wire_put_tool *put);
/* The system text between these two, one segment; nothing where there is none. */
void ah_wire_put_system(ah_wire *w, const char *open, const char *close);
/* "name":value as the n-th member of an object; nothing where it is absent. */
void ah_wire_put_member(ah_buf *b, size_t *n, const char *name, ah_slice value);
/* The same with a list of texts, of which one alone may be given as a string. */
void ah_wire_put_list(ah_buf *b, size_t *n, const char *name, ah_slice value);
/* ,"name":value of an option; nothing where it is absent. */
void ah_wire_put_option(ah_buf *b, const char *name, ah_slice value);
/* All text of a message's parts as one JSON string; values are copied as they stand. */
void ah_wire_put_joined_text(ah_buf *b, ah_slice parts);
/* ,{"role":role,"content":"..."} of a string or of parts. */
void ah_wire_put_message(ah_buf *b, const char *role, ah_slice content);
/* The words of a wire for parts, where it has addresses for images. */
typedef struct ah_part_words {
    const char *text;              /* up to the text; "}" ends it */
    const char *image, *image_end; /* around the address */
} ah_part_words;

/* True if that (a JSON object, docs/reference/transcript.md) is where the adapter's own messages
 * come from. */
bool ah_wire_is_origin(const ah_adapter *a, ah_slice origin);
/* ,{"role":"user","content":..}: a list of parts where there is an image, else a string. */
void ah_wire_put_user(ah_buf *b, const ah_part_words *words, ah_slice content);
/* The bytes of an image as "data:mime;base64,..." or its address, a JSON string. */
void ah_wire_put_image_url(ah_buf *b, const ah_image *image);
/* The images beside a tool's result (JSON of the entry) that the wire takes there, one by one:
 *     for (ah_json_reader r = ah_wire_result_images(json); ah_wire_next_shown(a, &r, &image);) */
ah_json_reader ah_wire_result_images(ah_slice json);
bool ah_wire_next_shown(const ah_adapter *a, ah_json_reader *r, ah_image *image);
/* A tool's result as a JSON string: `lead` (nothing JSON escapes), its content, and words for
 * each image that the wire does not take. */
void ah_wire_put_result_text(const ah_adapter *a, ah_buf *b, const char *lead, ah_slice json);
/* A name the model made up may hold anything; wires take [A-Za-z0-9_-]{1,64}. */
void ah_wire_put_name(ah_buf *b, ah_slice value);
/* The same where the first character must be a letter or `_`: others get a `_` in front, as do
 * names that look as if they had got one, so that no two names meet. */
void ah_wire_put_led_name(ah_buf *b, ah_slice value);
/* And back: the name behind it, part of the raw text given. */
ah_slice ah_wire_led_name(ah_slice raw);
/* A call's id as [A-Za-z0-9_-]{1,64}: as it is where it fits, else with a hash that keeps it
 * unique. */
void ah_wire_put_id(ah_buf *b, ah_slice value);
/* True if there is more than white space between the quotes of a string value. */
bool ah_wire_has_text(ah_slice value);
/* True if one of the parts has text. */
bool ah_wire_parts_say(ah_slice parts);
/* True if the part is an opaque one that came from this very adapter; *data is what it holds then,
 * and *calls how many of the message's calls stand before it. */
bool ah_wire_part_of_ours(const ah_adapter *a, ah_slice part, ah_slice *data, size_t *calls);
/* Of wires that keep beside a message what the model thought, and nothing else
 * (ah_adapter_vt.stands). */
bool ah_wire_thoughts_alone(const ah_wire *w, ah_slice data);
/* The data of the first such part of a message, .p NULL where there is none: for wires on which it
 * belongs to the message as a whole. */
ah_slice ah_wire_opaque_of_ours(const ah_adapter *a, ah_slice parts);

#endif
