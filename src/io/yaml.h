/* YAML to JSON: one document of YAML 1.2's core schema, as libyaml reads it (which may be missing).
 * What JSON cannot say is refused with words, and so is what makes a text dangerous or means one
 * thing here and another there: tags of programs, merge keys, more documents, keys that are there
 * twice, aliases that grow beyond bounds. The scalars are yaml_scalar.h's. */
#ifndef AH_IO_YAML_H
#define AH_IO_YAML_H

#include "base/buf.h"
#include "base/work.h"

enum {
    AH_YAML_MAX = 16 << 20,     /* bytes of a text */
    AH_YAML_REPEATED = 1 << 20, /* bytes of JSON that aliases repeat, all together */
    AH_YAML_DEPTH = 100,        /* levels, as they are written; with aliases those of JSON */
    AH_YAML_TAGS = 1000,        /* times that a text may have %TAG in it */
    AH_YAML_ANCHORS = 1000,
    AH_YAML_ALIASES = 10000
};

/* Appends the value as checked JSON. AH_TOOL_VALIDATION: no YAML, or refused; the message has line
 * and column (from 1; in characters). AH_CANCELLED: interrupted. AH_USAGE: libyaml is not there,
 * the message says what to install. */
ah_status ah_yaml_to_json(const ah_mem *mem, ah_slice text, const ah_interrupt *interrupt,
                          ah_buf *out, ah_err *err);

/* Of the libyaml that is there, in `room`; "none". */
const char *ah_yaml_version(char *room, size_t size);

#endif
