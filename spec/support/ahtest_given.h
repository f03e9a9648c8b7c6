/* A store whose engine is given by a program; see ahtest_given.c. Callers: ahtest_store.c. */
#ifndef AHTEST_GIVEN_H
#define AHTEST_GIVEN_H

#include "host/host.h"

/* *host is the host of the store, to be freed after its close. */
ah_status ahtest_given_store(bool threaded, ah_host **host, ah_store **out, ah_err *err);

#endif
