/* Converts YAML to JSON: one document of YAML 1.2's core schema, as libyaml reads it (which may be
 * missing). Refuses, with an error, what JSON cannot express and what is dangerous or ambiguous:
 * tags of programs, merge keys, several documents, repeated keys, aliases that expand beyond a
 * limit. yaml_scalar.h reads the scalars. The caller owns all buffers; libyaml is opened at first
 * use and stays open. Callers: lua. */
#ifndef AH_IO_YAML_H
#define AH_IO_YAML_H

#include "base/buf.h"
#include "base/work.h"

enum {
    AH_YAML_MAX = 16 << 20,     /* bytes of a text */
    AH_YAML_REPEATED = 1 << 20, /* bytes of JSON that all aliases together may repeat */
    /* Levels of nesting, as written; aliases count with their levels of JSON. */
    AH_YAML_DEPTH = 100,
    AH_YAML_TAGS = 1000, /* occurrences of %TAG */
    AH_YAML_ANCHORS = 1000,
    AH_YAML_ALIASES = 10000
};

/* Appends the value as checked JSON. AH_TOOL_VALIDATION: invalid or refused, with line and column
 * in the message (from 1; in characters). AH_CANCELLED: interrupted. AH_USAGE: libyaml is missing;
 * the message names the package to install. */
ah_status ah_yaml_to_json(const ah_mem *mem, ah_slice text, const ah_interrupt *interrupt,
                          ah_buf *out, ah_err *err);

/* Version of the libyaml in use, in `room`; "none" if it is missing. */
const char *ah_yaml_version(char *room, size_t size);

#endif
