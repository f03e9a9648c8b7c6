/* Fuzz target: the response reader of Chat Completions. See reader.h for the inputs. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader("openai", "m", data, size);
}
