/* Fuzz target: the response reader of Chat Completions (see reader.h for
 * what the input says and what is checked). Runs in-process, without a network. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader("openai", "text/event-stream", data, size);
}
