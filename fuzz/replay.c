/* replay: runs a fuzz target over the files named on the command line, for systems without
 * libFuzzer and for the kept corpora. It makes no inputs of its own. A target that finds a fault
 * aborts, after the file's name was printed. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_INPUT = 64 << 20 };

/* Reads the file into a block of exactly its size, so that a sanitizer finds reads beyond it. */
static uint8_t *read_all(FILE *f, size_t *n)
{
    uint8_t *data = NULL;
    long size;

    if (fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || size > MAX_INPUT)
        return NULL;
    rewind(f);
    *n = (size_t)size;
    if (!(data = malloc(*n ? *n : 1)))
        return NULL;
    if (fread(data, 1, *n, f) == *n)
        return data;
    free(data);
    return NULL;
}

static int replay(const char *name)
{
    FILE *f = fopen(name, "rb");
    uint8_t *data = NULL;
    size_t n = 0;

    printf("%s\n", name);
    fflush(stdout);
    if (f) {
        data = read_all(f, &n);
        fclose(f);
    }
    if (!data) {
        fprintf(stderr, "replay: cannot read %s: %s\n", name, strerror(errno));
        return 1;
    }
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    return failed;
}
