/* Finds SQLite. */
#include "io/store_sqlite_lib.h"

#ifdef AH_WITH_SQLITE

#ifdef AH_SQLITE_LINKED

static bool find_functions(ah_sqlite *lib)
{
#define TAKE(name) lib->name = sqlite3_##name;
    AH_SQLITE_FUNCTIONS(TAKE)
#undef TAKE
    return true;
}

static const char *reason(void)
{
    return "";
}

#else

#include <dlfcn.h>

#ifdef __APPLE__
#define LIBRARY "libsqlite3.dylib"
#else
#define LIBRARY "libsqlite3.so.0"
#endif

/* ISO C has no conversion from an object pointer to a function pointer. */
static bool find(void *library, const char *name, void *out)
{
    void *p = library ? dlsym(library, name) : NULL;

    memcpy(out, &p, sizeof p);
    return p != NULL;
}

static bool find_functions(ah_sqlite *lib)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool ok = library != NULL;

#define TAKE(name) ok = ok && find(library, "sqlite3_" #name, &lib->name);
    AH_SQLITE_FUNCTIONS(TAKE)
#undef TAKE
    return ok;
}

static const char *reason(void)
{
    const char *why = dlerror();

    return why ? why : "it has not all functions";
}

#endif

enum { LEAST_VERSION = 3024000 }; /* 3.24 of 2018 */

ah_status ah_sqlite_load(ah_sqlite *lib, ah_err *err)
{
    if (!find_functions(lib))
        return ah_err_set(err, AH_STORE,
                          "a store needs SQLite, which cannot be opened (Debian: apt-get install "
                          "libsqlite3-0): %s",
                          reason());
    if (lib->libversion_number() < LEAST_VERSION || !lib->threadsafe())
        return ah_err_set(err, AH_STORE,
                          "a store needs SQLite 3.24 or later, made for threads; this is %s%s",
                          lib->libversion(), lib->threadsafe() ? "" : ", made for one thread");
    return AH_OK;
}

#endif
