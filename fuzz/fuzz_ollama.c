/* Fuzz target: the response reader of Ollama's /api/chat. See reader.h for the inputs. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader("ollama", "m", data, size);
}
