/* Fuzz target: the response reader of Ollama's /api/chat (see reader.h for
 * what the input says and what is checked). Runs in-process, without a network. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader("ollama", "application/x-ndjson", data, size);
}
