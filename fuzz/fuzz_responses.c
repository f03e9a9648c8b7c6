/* Fuzz target: the response reader of OpenAI Responses. See reader.h for the inputs. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader("openai", "responses/gpt-5.6", data, size);
}
