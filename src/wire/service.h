/* The address of a provider and the variables in which its address and key are looked for, as data.
 * Each provider has one; provider.c reads it. */
#ifndef AH_WIRE_SERVICE_H
#define AH_WIRE_SERVICE_H

#include <stdbool.h>

enum { AH_SERVICE_NAMES = 3 };

typedef struct ah_service {
    const char *name; /* of the provider: models are "name/model" */
    const char *url;  /* its own address; NULL: one must be given */
    /* In the environment, the first that is set counts; unused ones are NULL. */
    const char *url_env[AH_SERVICE_NAMES], *key_env[AH_SERVICE_NAMES];
    bool keyless; /* its own address asks for no key */
    bool lines;   /* its streams are lines of JSON, not events */
} ah_service;

#endif
