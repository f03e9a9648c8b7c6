/* The parts shared by the two wires of OpenAI, Chat Completions and Responses: server, address,
 * keys, headers. An ah_openai owns its texts and borrows its server, a row of ah_servers. For the
 * files of these wires, and for providers.c, which opens them. Callers: its floor. */
#ifndef AH_WIRE_OPENAI_H
#define AH_WIRE_OPENAI_H

#include "wire/provider.h"
#include "wire/servers.h"

typedef struct ah_openai {
    ah_wire_native native;
    const ah_server *server;
    ah_text *path;                                /* appended to the base URL */
    ah_text *organization, *project, *site, *app; /* NULL: not set */
} ah_openai;

/* The differences between the two wires. */
typedef struct ah_openai_wire {
    const ah_adapter_vt *vt;
    const char *path; /* appended to the base URL; NULL: the path of Chat Completions */
    bool native_output;
    bool reasoning_back;
    unsigned images; /* AH_IMAGES_ bits */
    unsigned asks;   /* AH_MODEL_ bits that requests may ask of a model (ah_adapter.asks) */
    ah_model known;
    ah_cost_report cost_told;
} ah_openai_wire;

/* The words of a wire for a tool in tool_choice, and for the list of allowed tools. */
typedef struct ah_choice_words {
    const char *tool, *tool_end;
    const char *list, *list_end; /* around the members of the list, after its type */
} ah_choice_words;

/* Appends tool_choice from the options. If removed tools are still declared, and the options
 * neither name a tool nor say none, lists the allowed ones: this part is never cached. */
void ah_openai_put_choice(const ah_adapter *a, ah_wire *w, const ah_choice_words *words);

/* Makes an adapter of this struct. Its vtable's `free` is ah_openai_free, its `request`
 * ah_openai_post. */
ah_status ah_openai_make(const ah_openai_wire *wire, const ah_server *server, ah_slice model,
                         ah_tool_change_mode mode, const ah_provider_options *o, ah_adapter **out,
                         ah_err *err);
void ah_openai_free(ah_adapter *a);
ah_status ah_openai_post(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err);

/* Opens the wire that the model's name asks for: "responses/NAME" uses Responses, if the server has
 * it, and keeps this name in conversations; all others use Chat Completions. */
ah_status ah_openai_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                        ah_adapter **out, ah_err *err);
ah_status ah_responses_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err);

#endif
