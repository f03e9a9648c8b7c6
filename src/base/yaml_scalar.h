/* Converts scalars of YAML 1.2's core schema (10.3.2) to JSON. Forms that only YAML 1.1 has are
 * strings: yes and no, 0777, 1_000, 12:30:45, dates. Callers: io. */
#ifndef AH_BASE_YAML_SCALAR_H
#define AH_BASE_YAML_SCALAR_H

#include "base/buf.h"

typedef enum ah_yaml_tag {
    AH_YAML_PLAIN, /* no tag: decided by its form */
    AH_YAML_STR,
    AH_YAML_INT,
    AH_YAML_FLOAT,
    AH_YAML_BOOL,
    AH_YAML_NULL
} ah_yaml_tag;

/* Appends the scalar; its text must be UTF-8. Returns NULL, or what is wrong (static), with
 * nothing appended. Lack of memory shows in `out`. */
const char *ah_yaml_scalar(ah_slice text, ah_yaml_tag tag, ah_buf *out);

#endif
