/* A provider's address, and the environment variables for its address and key, as static data. Each
 * provider has one; provider.c reads it. Callers: its floor. */
#ifndef AH_WIRE_SERVICE_H
#define AH_WIRE_SERVICE_H

#include <stdbool.h>

enum { AH_SERVICE_NAMES = 3 };

typedef struct ah_service {
    const char *name; /* name of the provider: models are "name/model" */
    const char *url;  /* default address; NULL: one must be given */
    /* Environment variables; the first that is set counts. Unused ones are NULL. */
    const char *url_env[AH_SERVICE_NAMES], *key_env[AH_SERVICE_NAMES];
    bool keyless; /* its own address needs no key */
    bool lines;   /* its streams are lines of JSON, not events */
} ah_service;

#endif
