/* Fuzz target: the response reader of Anthropic Messages. See reader.h for the inputs. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader("anthropic", "claude-opus-4-8", data, size);
}
