/* The scalars of YAML 1.2's core schema (10.3.2) as JSON. Those of YAML 1.1 that are gone from it
 * are texts: yes and no, 0777, 1_000, 12:30:45, dates. */
#ifndef AH_BASE_YAML_SCALAR_H
#define AH_BASE_YAML_SCALAR_H

#include "base/buf.h"

typedef enum ah_yaml_tag {
    AH_YAML_PLAIN, /* none: by what it looks like */
    AH_YAML_STR,
    AH_YAML_INT,
    AH_YAML_FLOAT,
    AH_YAML_BOOL,
    AH_YAML_NULL
} ah_yaml_tag;

/* Appends the scalar; its text must be UTF-8. NULL, or what is wrong with it (static), and nothing
 * is appended. That memory is out is told by `out`. */
const char *ah_yaml_scalar(ah_slice text, ah_yaml_tag tag, ah_buf *out);

#endif
