/* Measures how much of a thread's stack one call of the library takes. The stack is painted before,
 * with an inaccessible page behind it: bytes that have lost their paint were used.
 *
 *   stack FILE CASE   sets CASE to the name, loads the script, and prints the bytes
 *   stack - BYTES     touches so many itself, to show that the measure sees it
 *
 * A number behind them is the size of the stack in KiB. */
#define _DEFAULT_SOURCE
#include <agenthost.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 8 << 20, GUARD = 64 << 10, PAINT = 0xa5, SCRIPT = 1 << 20 };

typedef struct job {
    char *low;        /* of the stack */
    const char *from; /* where the thread began */
    size_t touch;
    char *script;
    int failed;
} job;

static void touch(size_t bytes)
{
    volatile char here[1024];

    memset((void *)here, 0, sizeof here);
    if (bytes > sizeof here)
        touch(bytes - sizeof here);
    here[0] = 1;
}

static int run(const char *script)
{
    ah_host *host = NULL;
    int failed = 1;

    if (ah_open(NULL, &host) == AH_OK) {
        failed = ah_load(host, "deep.lua", script, strlen(script), 0, NULL) != AH_OK;
        if (failed)
            fprintf(stderr, "stack: %s\n", ah_errmsg(host));
    }
    ah_close(host);
    return failed;
}

static void *work(void *ud)
{
    job *j = ud;
    char here = 0;

    j->from = &here;
    if (j->script)
        j->failed = run(j->script);
    else
        touch(j->touch);
    return NULL;
}

static char *read_script(const char *path, const char *name)
{
    char *text = calloc(1, SCRIPT);
    FILE *f = fopen(path, "r");
    int n = text ? snprintf(text, SCRIPT, "CASE = \"%s\" ", name) : 0;

    if (f && text)
        n += (int)fread(text + n, 1, SCRIPT - 1 - (size_t)n, f);
    if (f)
        fclose(f);
    if (!f || !text)
        exit(2);
    return text;
}

static size_t used(const job *j)
{
    const char *p = j->low;

    while (p < j->from && (unsigned char)*p == PAINT)
        p++;
    return (size_t)(j->from - p);
}

int main(int argc, char **argv)
{
    job j = {0};
    pthread_attr_t attr;
    size_t size = MOST;
    pthread_t thread;
    char *memory;

    if (argc != 3 && argc != 4)
        return 2;
    if (argc == 4)
        size = (size_t)atol(argv[3]) << 10;
    if (strcmp(argv[1], "-") == 0)
        j.touch = (size_t)atol(argv[2]);
    else
        j.script = read_script(argv[1], argv[2]);
    memory = mmap(NULL, size + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE) != 0)
        return 2;
    j.low = memory + GUARD;
    memset(j.low, PAINT, size);
    if (pthread_attr_init(&attr) || pthread_attr_setstack(&attr, j.low, size) ||
        pthread_create(&thread, &attr, work, &j) || pthread_join(thread, NULL))
        return 2;
    printf("%zu\n", used(&j));
    free(j.script);
    return j.failed;
}
