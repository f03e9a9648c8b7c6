/* The parts that the two wires of OpenAI share, Chat Completions and Responses: the server, its
 * address, the keys, the headers. For their files, and for providers.c, which opens them. */
#ifndef AH_WIRE_OPENAI_H
#define AH_WIRE_OPENAI_H

#include "wire/provider.h"
#include "wire/servers.h"

typedef struct ah_openai {
    ah_wire_native native;
    const ah_server *server;
    ah_text *path;                                /* behind the address */
    ah_text *organization, *project, *site, *app; /* NULL: not said */
} ah_openai;

/* One of the wires. */
typedef struct ah_openai_wire {
    const ah_adapter_vt *vt;
    const char *path; /* behind the address; NULL: that of Chat Completions */
    bool native_output;
    bool reasoning_back;
    unsigned images; /* AH_IMAGES_ */
    unsigned asks;   /* AH_MODEL_: what else requests may ask of a model (ah_adapter.asks) */
    ah_model known;
    ah_cost_report cost_told;
} ah_openai_wire;

/* The words of a wire for a tool in tool_choice, and for the list of those that may be called. */
typedef struct ah_choice_words {
    const char *tool, *tool_end;
    const char *list, *list_end; /* around the list's members, behind its type */
} ah_choice_words;

/* tool_choice as the options have it. Where removed tools are still declared, and the options
 * neither name a tool nor say none, it lists those that may be called: no cache reaches it. */
void ah_openai_put_choice(const ah_adapter *a, ah_wire *w, const ah_choice_words *words);

/* An adapter of this struct; its vtable's `free` is ah_openai_free, its `request`
 * ah_openai_post. */
ah_status ah_openai_make(const ah_openai_wire *wire, const ah_server *server, ah_slice model,
                         ah_tool_change_mode mode, const ah_provider_options *o, ah_adapter **out,
                         ah_err *err);
void ah_openai_free(ah_adapter *a);
ah_status ah_openai_post(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err);

/* The wire that the model's name asks for: "responses/NAME", where the server has that, is on
 * Responses and keeps this name in conversations; else it is Chat Completions. */
ah_status ah_openai_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                        ah_adapter **out, ah_err *err);
ah_status ah_responses_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err);

#endif
