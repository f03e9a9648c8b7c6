/* The table of models (wire/models.h): data only. A new version is a new row; what it shares with
 * others of its time is a kind. `make check-clients` lists names in the providers' packages that
 * are missing here. A variant ("gpt-#-mini") has its own figures and, if its pattern has a version,
 * no kind, so that a new one can do what its version can. If longer requests cost more, the price
 * is that of shorter ones. A pattern without a source gives the provider, and is careful about the
 * rest. */
#include "wire/models.h"

static const ah_model_source PI = {"@earendil-works/pi-ai 1.5.2", "2026-11-10"};
static const ah_model_source OLD = {"@mariozechner/pi-ai 0.73.1", "2026-05-08"};
static const ah_model_source OPENAI_TYPES = {"openai 7.57.0 (npm)", "2026-11-13"};
static const ah_model_source ANTHROPIC_TYPES = {"@anthropic-ai/sdk 1.12.0", "2026-11-20"};
static const ah_model_source GENAI_TYPES = {"@google/genai 3.1.0", "2026-11-10"};
static const ah_model_source OWN = {"documentation of the provider", "2026-11-22"};

enum {
    LOW_TO_HIGH = AH_EFFORT_LOW | AH_EFFORT_MEDIUM | AH_EFFORT_HIGH,
    LOW_TO_XHIGH = LOW_TO_HIGH | AH_EFFORT_XHIGH,
    LOW_TO_MAX = LOW_TO_XHIGH | AH_EFFORT_MAX,
    MINIMAL_TO_HIGH = AH_EFFORT_MINIMAL | LOW_TO_HIGH,
    MEDIUM_TO_XHIGH = AH_EFFORT_MEDIUM | AH_EFFORT_HIGH | AH_EFFORT_XHIGH,
    NONE_TO_HIGH = AH_EFFORT_NONE | LOW_TO_HIGH,
    NONE_TO_XHIGH = AH_EFFORT_NONE | LOW_TO_XHIGH,
    NONE_TO_MAX = AH_EFFORT_NONE | LOW_TO_MAX,
    NONE_HIGH_MAX = AH_EFFORT_NONE | AH_EFFORT_HIGH | AH_EFFORT_MAX,
    LOW_HIGH_MAX = AH_EFFORT_LOW | AH_EFFORT_HIGH | AH_EFFORT_MAX
};

/* -- kinds ------------------------------------------------------------------------------------- */

enum {
    BOUND = AH_MODEL_STRICT | AH_MODEL_OUTPUT,
    REASONS = BOUND | AH_MODEL_ENCRYPTED,
    FINDS = BOUND | AH_MODEL_SEARCH
};

/* An unknown family of theirs: all current ones think by effort. */
static const ah_model_kind CLAUDE = {0, AH_THINKING_BY_EFFORT, NONE_TO_MAX};
static const ah_model_kind CLAUDE_3 = {0, AH_THINKING_NOT, 0};
static const ah_model_kind CLAUDE_4 = {0, AH_THINKING_BY_BUDGET, 0};
static const ah_model_kind CLAUDE_4_5 = {FINDS, AH_THINKING_BY_BUDGET, 0};
static const ah_model_kind CLAUDE_HAIKU_4_5 = {BOUND, AH_THINKING_BY_BUDGET, 0};
static const ah_model_kind CLAUDE_4_6 = {FINDS, AH_THINKING_BY_EFFORT,
                                         NONE_TO_HIGH | AH_EFFORT_MAX};
static const ah_model_kind CLAUDE_4_7 = {FINDS, AH_THINKING_BY_EFFORT, NONE_TO_MAX};
static const ah_model_kind CLAUDE_4_8 = {FINDS | AH_MODEL_TOOL_CHANGES | AH_MODEL_NOTES,
                                         AH_THINKING_BY_EFFORT, NONE_TO_MAX};

static const ah_model_kind GPT_4 = {AH_MODEL_STRICT, AH_THINKING_NOT, 0};
static const ah_model_kind GPT_4O = {BOUND, AH_THINKING_NOT, 0};
static const ah_model_kind O_SERIES = {REASONS, AH_THINKING_BY_EFFORT, LOW_TO_HIGH};
static const ah_model_kind GPT_5 = {REASONS, AH_THINKING_BY_EFFORT, MINIMAL_TO_HIGH};
static const ah_model_kind GPT_5_CHAT = {BOUND, AH_THINKING_NOT, 0};
static const ah_model_kind GPT_5_1 = {REASONS, AH_THINKING_BY_EFFORT, NONE_TO_HIGH};
static const ah_model_kind GPT_5_2 = {REASONS, AH_THINKING_BY_EFFORT, NONE_TO_XHIGH};
static const ah_model_kind GPT_5_4 = {REASONS | AH_MODEL_SEARCH | AH_MODEL_TOOL_ITEMS,
                                      AH_THINKING_BY_EFFORT, NONE_TO_XHIGH};
static const ah_model_kind GPT_5_6 = {REASONS | AH_MODEL_SEARCH | AH_MODEL_TOOL_ITEMS,
                                      AH_THINKING_BY_EFFORT, NONE_TO_MAX};

static const ah_model_kind GEMINI_1 = {0, AH_THINKING_BY_BUDGET, 0};
static const ah_model_kind GEMINI_3 = {AH_MODEL_OUTPUT | AH_MODEL_RESULT_IMAGES | AH_MODEL_SIGNED,
                                       AH_THINKING_BY_EFFORT, LOW_TO_HIGH};

static const ah_model_kind KIMI_2 = {AH_MODEL_OUTPUT, AH_THINKING_UNKNOWN, 0};
static const ah_model_kind KIMI_3 = {AH_MODEL_OUTPUT | AH_MODEL_TOOL_MESSAGES,
                                     AH_THINKING_BY_EFFORT, LOW_HIGH_MAX};

/* -- rows -------------------------------------------------------------------------------------- */

/* Columns behind the kind: efforts, tokens of the context window, tokens of an answer, { input,
 * cached read, cached write, output }. */
/* One row per line. */
/* clang-format off */
const ah_model_row ah_model_rows[] = {
    /* Anthropic */
    {"claude", NULL, "anthropic", &CLAUDE, 0, 0, 32000, {0, 0, 0, 0}, NULL},
    {"claude-#", "2", "anthropic", &CLAUDE_3, 0, 200000, 4096, {0, 0, 0, 0}, &OWN},
    {"claude-#", "4", "anthropic", &CLAUDE, 0, 0, 32000, {0, 0, 0, 0}, NULL},
    {"claude-instant", NULL, "anthropic", &CLAUDE_3, 0, 100000, 4096, {0, 0, 0, 0}, &OWN},
    {"claude-#-opus", "3", "anthropic", &CLAUDE_3, 0, 200000, 4096, {15, 1.5, 18.75, 75}, &OLD},
    {"claude-#-sonnet", "3", "anthropic", &CLAUDE_3, 0, 200000, 4096, {3, 0.3, 3.75, 15}, &OLD},
    {"claude-#-sonnet", "3.5", "anthropic", &CLAUDE_3, 0, 200000, 8192, {3, 0.3, 3.75, 15}, &OLD},
    {"claude-#-sonnet", "3.7", "anthropic", &CLAUDE_4, 0, 200000, 64000, {3, 0.3, 3.75, 15}, &OLD},
    {"claude-#-haiku", "3", "anthropic", &CLAUDE_3, 0, 200000, 4096, {0.25, 0.03, 0.3, 1.25}, &OLD},
    {"claude-#-haiku", "3.5", "anthropic", &CLAUDE_3, 0, 200000, 8192, {0.8, 0.08, 1, 4}, &OLD},
    {"claude-opus-#", "4", "anthropic", &CLAUDE_4, 0, 200000, 32000, {15, 1.5, 18.75, 75}, &OLD},
    {"claude-opus-#", "4.1", "anthropic", &CLAUDE_4, 0, 200000, 32000, {15, 1.5, 18.75, 75}, &OLD},
    {"claude-opus-#", "4.5", "anthropic", &CLAUDE_4_5, 0, 200000, 64000, {5, 0.5, 6.25, 25}, &PI},
    {"claude-opus-#", "4.6", "anthropic", &CLAUDE_4_6, 0, 1000000, 128000, {5, 0.5, 6.25, 25}, &PI},
    {"claude-opus-#", "4.7", "anthropic", &CLAUDE_4_7, 0, 1000000, 128000, {5, 0.5, 6.25, 25}, &PI},
    {"claude-opus-#", "4.8", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000, {5, 0.5, 6.25, 25}, &PI},
    {"claude-opus-#", "5", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000, {5, 0.5, 6.25, 25}, &PI},
    {"claude-opus-#", "5.5", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000, {4, 0.2, 5, 20}, &PI},
    {"claude-sonnet-#", "4", "anthropic", &CLAUDE_4, 0, 200000, 64000, {3, 0.3, 3.75, 15}, &OLD},
    {"claude-sonnet-#", "4.5", "anthropic", &CLAUDE_4_5, 0, 200000, 64000, {3, 0.3, 3.75, 15}, &PI},
    {"claude-sonnet-#", "4.6", "anthropic", &CLAUDE_4_6, 0, 1000000, 128000,
     {3, 0.3, 3.75, 15}, &PI},
    {"claude-sonnet-#", "5", "anthropic", &CLAUDE_4_7, 0, 1000000, 128000, {2, 0.2, 2.5, 10}, &PI},
    {"claude-sonnet-#", "5.5", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000,
     {2, 0.1, 2.5, 10}, &PI},
    {"claude-haiku-#", "4", "anthropic", &CLAUDE_4, 0, 200000, 32000, {0, 0, 0, 0}, &OWN},
    {"claude-haiku-#", "4.5", "anthropic", &CLAUDE_HAIKU_4_5, 0, 200000, 64000,
     {1, 0.1, 1.25, 5}, &PI},
    {"claude-haiku-#", "5.5", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000,
     {0.1, 0.01, 0.125, 0.5}, &PI},
    {"claude-fable-#", "5", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000, {10, 1, 12.5, 50}, &PI},
    {"claude-fable-#", "5.1", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000,
     {10, 0.25, 12.5, 50}, &PI},
    {"claude-fable-#", "5.2", "anthropic", &CLAUDE_4_8, 0, 1000000, 128000, {8, 0.2, 10, 40}, &PI},
    {"claude-mythos", NULL, "anthropic", &CLAUDE_4_7, 0, 0, 0, {0, 0, 0, 0}, &ANTHROPIC_TYPES},
    {"claude-mythos-#", "5", "anthropic", &CLAUDE_4_8, 0, 0, 128000,
     {0, 0, 0, 0}, &ANTHROPIC_TYPES},
    {"claude-mythos-#", "5.1", "anthropic", &CLAUDE_4_8, 0, 0, 128000,
     {0, 0, 0, 0}, &ANTHROPIC_TYPES},
    {"claude-mythos-#", "5.2", "anthropic", &CLAUDE_4_8, 0, 0, 128000,
     {0, 0, 0, 0}, &ANTHROPIC_TYPES},
    /* OpenAI */
    {"gpt", NULL, "openai", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"chatgpt", NULL, "openai", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"gpt-#", "3.5", "openai", &GPT_4, 0, 16385, 4096, {0, 0, 0, 0}, &OWN},
    {"gpt-#", "4", "openai", &GPT_4, 0, 8192, 8192, {30, 0, 0, 60}, &PI},
    {"gpt-#-turbo", "4", "openai", NULL, 0, 128000, 4096, {10, 0, 0, 30}, &PI},
    {"gpt-4o", NULL, "openai", &GPT_4O, 0, 128000, 16384, {2.5, 1.25, 0, 10}, &PI},
    {"gpt-4o-mini", NULL, "openai", &GPT_4O, 0, 128000, 16384, {0.15, 0.075, 0, 0.6}, &PI},
    {"chatgpt-4o", NULL, "openai", &GPT_4, 0, 128000, 16384, {0, 0, 0, 0}, &OWN},
    {"chat-latest", NULL, "openai", &GPT_5_CHAT, 0, 400000, 128000, {5, 0.5, 0, 30}, &PI},
    {"gpt-#", "4.1", "openai", &GPT_4O, 0, 1047576, 32768, {2, 0.5, 0, 8}, &PI},
    {"gpt-#-mini", "4.1", "openai", NULL, 0, 1047576, 32768, {0.4, 0.1, 0, 1.6}, &PI},
    {"gpt-#-nano", "4.1", "openai", NULL, 0, 1047576, 32768, {0.1, 0.025, 0, 0.4}, &PI},
    {"gpt-#", "5", "openai", &GPT_5, 0, 400000, 128000, {1.25, 0.125, 0, 10}, &PI},
    {"gpt-#-mini", "5", "openai", NULL, 0, 400000, 128000, {0.25, 0.025, 0, 2}, &PI},
    {"gpt-#-nano", "5", "openai", NULL, 0, 400000, 128000, {0.05, 0.005, 0, 0.4}, &PI},
    {"gpt-5-chat", NULL, "openai", &GPT_5_CHAT, 0, 128000, 16384, {1.25, 0.125, 0, 10}, &PI},
    {"gpt-#-pro", "5", "openai", NULL, AH_EFFORT_HIGH, 400000, 128000, {15, 0, 0, 120}, &PI},
    {"gpt-#-codex", "5", "openai", NULL, LOW_TO_HIGH, 400000, 128000, {1.25, 0.125, 0, 10}, &OLD},
    {"gpt-#-codex-mini", "5.1", "openai", NULL, LOW_TO_HIGH, 400000, 128000,
     {0.25, 0.025, 0, 2}, &OLD},
    {"gpt-#", "5.1", "openai", &GPT_5_1, 0, 400000, 128000, {1.25, 0.125, 0, 10}, &PI},
    {"gpt-#-chat", "5.1", "openai", NULL, 0, 128000, 16384, {1.25, 0.125, 0, 10}, &OLD},
    {"gpt-#-codex-max", "5.1", "openai", NULL, LOW_TO_XHIGH, 400000, 128000,
     {1.25, 0.125, 0, 10}, &OLD},
    {"gpt-#", "5.2", "openai", &GPT_5_2, 0, 400000, 128000, {1.75, 0.175, 0, 14}, &PI},
    {"gpt-#-chat", "5.2", "openai", NULL, 0, 128000, 16384, {1.75, 0.175, 0, 14}, &OLD},
    {"gpt-#-pro", "5.2", "openai", NULL, MEDIUM_TO_XHIGH, 400000, 128000, {21, 0, 0, 168}, &PI},
    {"gpt-#", "5.3", "openai", &GPT_5_2, 0, 400000, 128000, {1.75, 0.175, 0, 14}, &PI},
    {"gpt-#-chat", "5.3", "openai", NULL, 0, 128000, 16384, {1.75, 0.175, 0, 14}, &OLD},
    {"gpt-#-codex", "5.3", "openai", NULL, NONE_TO_XHIGH, 400000, 128000,
     {1.75, 0.175, 0, 14}, &PI},
    {"gpt-#-codex-spark", "5.3", "openai", NULL, LOW_TO_XHIGH, 128000, 32000,
     {1.75, 0.175, 0, 14}, &PI},
    {"gpt-#", "5.4", "openai", &GPT_5_4, 0, 1050000, 128000, {2.5, 0.25, 0, 15}, &PI},
    {"gpt-#-mini", "5.4", "openai", NULL, 0, 400000, 128000, {0.75, 0.075, 0, 4.5}, &PI},
    {"gpt-#-nano", "5.4", "openai", NULL, 0, 400000, 128000, {0.2, 0.02, 0, 1.25}, &PI},
    {"gpt-#-pro", "5.4", "openai", NULL, MEDIUM_TO_XHIGH, 1050000, 128000, {30, 0, 0, 180}, &PI},
    {"gpt-#", "5.5", "openai", &GPT_5_4, 0, 1050000, 128000, {5, 0.5, 0, 30}, &PI},
    {"gpt-#-pro", "5.5", "openai", NULL, MEDIUM_TO_XHIGH, 1050000, 128000, {30, 0, 0, 180}, &PI},
    {"gpt-#", "5.6", "openai", &GPT_5_6, 0, 1050000, 128000, {4, 0.4, 5, 20}, &PI},
    {"gpt-#-sol", "5.6", "openai", NULL, 0, 1050000, 128000, {4, 0.4, 5, 20}, &PI},
    {"gpt-#-terra", "5.6", "openai", NULL, 0, 1050000, 128000, {2, 0.2, 2.5, 12}, &PI},
    {"gpt-#-luna", "5.6", "openai", NULL, 0, 1050000, 128000, {0.2, 0.02, 0.25, 1.2}, &PI},
    {"gpt-#-cyber", "5.6", "openai", NULL, LOW_TO_MAX, 400000, 128000,
     {12.5, 1.25, 15.625, 75}, &PI},
    {"gpt-#", "6", "openai", &GPT_5_6, 0, 1050000, 128000, {2, 0.2, 2.5, 10}, &PI},
    {"gpt-#-sol", "6", "openai", NULL, 0, 1050000, 128000, {2, 0.2, 2.5, 10}, &PI},
    {"gpt-#-luna", "6", "openai", NULL, 0, 1050000, 128000, {0.1, 0.01, 0.125, 0.5}, &PI},
    {"gpt-#-astra", "6", "openai", NULL, LOW_TO_MAX, 1050000, 128000, {10, 1, 12.5, 50}, &PI},
    {"gpt-#-cyber", "6", "openai", NULL, LOW_TO_MAX, 400000, 128000, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-#-rosalind", "6", "openai", NULL, 0, 1050000, 128000, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-#", "6.1", "openai", &GPT_5_6, 0, 1050000, 128000, {2, 0.1, 2.5, 10}, &PI},
    {"gpt-#-sol", "6.1", "openai", NULL, LOW_TO_MAX, 1050000, 128000, {2, 0.1, 2.5, 10}, &PI},
    {"gpt-#-terra", "6.1", "openai", NULL, 0, 1050000, 128000, {1, 0.05, 1.25, 5}, &PI},
    {"gpt-daybreak-blue", NULL, "openai", &GPT_5_2, NONE_TO_MAX, 1050000, 128000,
     {4, 0.4, 5, 20}, &PI},
    {"gpt-daybreak-red", NULL, "openai", &GPT_5_2, LOW_TO_MAX, 400000, 128000,
     {12.5, 1.25, 15.625, 75}, &PI},
    {"gpt-rosalind", NULL, "openai", NULL, 0, 0, 0, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-audio", NULL, "openai", NULL, 0, 128000, 16384, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-4o-audio", NULL, "openai", NULL, 0, 128000, 16384, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-4o-mini-audio", NULL, "openai", NULL, 0, 128000, 16384, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-4o-search", NULL, "openai", NULL, 0, 128000, 16384, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-4o-mini-search", NULL, "openai", NULL, 0, 128000, 16384, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"codex-mini", NULL, "openai", NULL, 0, 0, 0, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"computer-use", NULL, "openai", NULL, 0, 0, 0, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"gpt-oss", NULL, "openai", NULL, LOW_TO_HIGH, 131072, 65536, {0, 0, 0, 0}, &PI},
    {"o#", "1", "openai", &O_SERIES, 0, 200000, 100000, {15, 7.5, 0, 60}, &PI},
    {"o1-preview", NULL, "openai", &GPT_4, 0, 128000, 32768, {0, 0, 0, 0}, &OWN},
    {"o1-mini", NULL, "openai", &GPT_4, 0, 128000, 65536, {0, 0, 0, 0}, &OWN},
    {"o#-pro", "1", "openai", NULL, 0, 200000, 100000, {150, 0, 0, 600}, &PI},
    {"o#", "3", "openai", &O_SERIES, 0, 200000, 100000, {2, 0.5, 0, 8}, &PI},
    {"o#-mini", "3", "openai", &O_SERIES, 0, 200000, 100000, {1.1, 0.55, 0, 4.4}, &PI},
    {"o#-pro", "3", "openai", NULL, 0, 200000, 100000, {20, 0, 0, 80}, &PI},
    {"o#-deep-research", "3", "openai", NULL, 0, 200000, 100000, {10, 2.5, 0, 40}, &OLD},
    {"o#", "4", "openai", &O_SERIES, 0, 200000, 100000, {0, 0, 0, 0}, &OPENAI_TYPES},
    {"o#-mini", "4", "openai", &O_SERIES, 0, 200000, 100000, {1.1, 0.275, 0, 4.4}, &PI},
    {"o#-mini-deep-research", "4", "openai", NULL, 0, 200000, 100000, {2, 0.5, 0, 8}, &OLD},
    /* Google */
    {"gemini", NULL, "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"gemini-#", "1", "gemini", &GEMINI_1, 0, 32768, 8192, {0, 0, 0, 0}, &OWN},
    {"gemini-#", "1.5", "gemini", &GEMINI_1, 0, 1000000, 8192, {1.25, 0.3125, 0, 5}, &OLD},
    {"gemini-#-flash", "1.5", "gemini", NULL, 0, 1000000, 8192, {0.075, 0.01875, 0, 0.3}, &OLD},
    {"gemini-#", "2", "gemini", &GEMINI_1, 0, 1048576, 8192, {0, 0, 0, 0}, &OLD},
    {"gemini-#-flash", "2", "gemini", NULL, 0, 1048576, 8192, {0.1, 0.025, 0, 0.4}, &OLD},
    {"gemini-#-flash-lite", "2", "gemini", NULL, 0, 1048576, 8192, {0.075, 0, 0, 0.3}, &OLD},
    {"gemini-#", "2.5", "gemini", &GEMINI_1, 0, 1048576, 65536, {1.25, 0.125, 0, 10}, &PI},
    {"gemini-#-flash", "2.5", "gemini", NULL, 0, 1048576, 65536, {0.3, 0.03, 0, 2.5}, &PI},
    {"gemini-#-flash-lite", "2.5", "gemini", NULL, 0, 1048576, 65536, {0.1, 0.01, 0, 0.4}, &PI},
    {"gemini-#-computer-use", "2.5", "gemini", NULL, 0, 128000, 64000, {1.25, 0, 0, 10}, &PI},
    {"gemini-#", "3", "gemini", &GEMINI_3, 0, 1048576, 65536, {2, 0.2, 0, 12}, &OLD},
    {"gemini-#-flash", "3", "gemini", NULL, MINIMAL_TO_HIGH, 1048576, 65536,
     {0.5, 0.05, 0, 3}, &PI},
    {"gemini-#", "3.1", "gemini", &GEMINI_3, 0, 1048576, 65536, {2, 0.2, 0, 12}, &PI},
    {"gemini-#-flash-lite", "3.1", "gemini", NULL, MINIMAL_TO_HIGH, 1048576, 65536,
     {0.25, 0.025, 0, 1.5}, &PI},
    {"gemini-#-flash", "3.5", "gemini", NULL, MINIMAL_TO_HIGH, 1048576, 65536,
     {1.5, 0.15, 0, 9}, &PI},
    {"gemini-#-flash-lite", "3.5", "gemini", NULL, MINIMAL_TO_HIGH, 1048576, 65536,
     {0.3, 0.03, 0, 2.5}, &PI},
    {"gemini-#-flash", "3.6", "gemini", NULL, MINIMAL_TO_HIGH, 1048576, 65536,
     {0.75, 0.075, 0, 3.75}, &PI},
    {"gemini-#-flash", "3.7", "gemini", NULL, LOW_TO_HIGH, 1048576, 65536,
     {0.75, 0.075, 0, 3.75}, &PI},
    {"gemini-#-flash", "3.8", "gemini", NULL, LOW_TO_HIGH, 1048576, 65536,
     {0.75, 0.075, 0, 3.75}, &PI},
    {"gemini-#", "4", "gemini", &GEMINI_3, 0, 1048576, 32768, {2, 0.1, 0, 10}, &PI},
    {"gemini-#-argon", "4", "gemini", NULL, 0, 1048576, 32768, {2, 0.1, 0, 10}, &PI},
    {"gemini-#-carbon", "4", "gemini", NULL, 0, 1048576, 32768, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-pro-latest", NULL, "gemini", &GEMINI_3, 0, 1048576, 65536, {2, 0.2, 0, 12}, &PI},
    {"gemini-flash-latest", NULL, "gemini", &GEMINI_3, MINIMAL_TO_HIGH, 1048576, 65536,
     {1.5, 0.15, 0, 9}, &PI},
    {"gemini-flash-lite-latest", NULL, "gemini", &GEMINI_3, MINIMAL_TO_HIGH, 1048576, 65536,
     {0.25, 0.025, 0, 1.5}, &PI},
    {"gemini-robotics-er-#", "1.6", "gemini", &GEMINI_3, MINIMAL_TO_HIGH, 131072, 65536,
     {1, 0.1, 0, 5}, &PI},
    {"gemini-robotics-er-#", "2", "gemini", &GEMINI_3, MINIMAL_TO_HIGH, 131072, 65536,
     {1, 0.1, 0, 5}, &PI},
    {"gemini-omni", NULL, "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-omni-#", "1.1", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-omni-#", "1.2", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-live", NULL, "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-transcribe", "3.5", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-flash-tts", "3.1", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-flash-tts", "3.8", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-flash-lite-tts", "3.8", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-nano-banana", NULL, "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-nano-banana-#", "2.1", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"nano-banana", NULL, "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"lyria-#", "3", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"lyria-#", "3.5", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-flash-image", "2.5", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-flash-image", "3.1", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-flash-lite-image", "3.1", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"gemini-#-pro-image", "3", "gemini", NULL, 0, 0, 0, {0, 0, 0, 0}, &GENAI_TYPES},
    {"deep-research", NULL, "gemini", NULL, 0, 1048576, 65536, {2, 0.2, 0, 12}, &PI},
    {"gemma-#", "4", "ollama", NULL, 0, 262144, 32768, {0, 0, 0, 0}, &PI},
    /* Moonshot */
    {"kimi", NULL, "moonshot", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"kimi-k#", "2", "moonshot", &KIMI_2, 0, 262144, 262144, {0.6, 0.15, 0, 2.5}, &OLD},
    {"kimi-k#", "2.5", "moonshot", &KIMI_2, 0, 262144, 262144, {0.6, 0.1, 0, 3}, &OLD},
    {"kimi-k#", "2.6", "moonshot", &KIMI_2, 0, 262144, 262144, {0.95, 0.16, 0, 4}, &PI},
    {"kimi-k#", "2.7", "moonshot", &KIMI_2, 0, 262144, 262144, {0.95, 0.19, 0, 4}, &PI},
    {"kimi-k#-code-highspeed", "2.7", "moonshot", NULL, 0, 262144, 262144, {1.9, 0.38, 0, 8}, &PI},
    {"kimi-k#", "3", "moonshot", &KIMI_3, 0, 1048576, 1048576, {3, 0.3, 0, 15}, &PI},
    {"kimi-k#", "3.1", "moonshot", &KIMI_3, 0, 1048576, 1048576, {2, 0.2, 0, 10}, &PI},
    {"kimi-k#-pro-highspeed", "3.1", "moonshot", NULL, 0, 1048576, 1048576, {4, 0.2, 0, 20}, &PI},
    /* Others: context window and prices only */
    {"deepseek-v#", "4", "deepseek", NULL, 0, 1000000, 384000, {1.32, 0.044, 0, 3.96}, &PI},
    {"deepseek-flash", NULL, "deepseek", NULL, 0, 1000000, 384000, {0.3, 0.006, 0, 1.2}, &PI},
    {"deepseek-chat", NULL, "deepseek", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"deepseek-reasoner", NULL, "deepseek", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"deepseek-r#", "1", "deepseek", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"grok", NULL, "xai", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"grok-#", "2", "xai", NULL, 0, 131072, 8192, {2, 2, 0, 10}, &OLD},
    {"grok-#", "3", "xai", NULL, 0, 131072, 8192, {3, 0.75, 0, 15}, &OLD},
    {"grok-#-mini", "3", "xai", NULL, 0, 131072, 8192, {0.3, 0.075, 0, 0.5}, &OLD},
    {"grok-#", "4", "xai", NULL, 0, 256000, 64000, {3, 0.75, 0, 15}, &OLD},
    {"grok-#-fast", "4", "xai", NULL, 0, 2000000, 30000, {0.2, 0.05, 0, 0.5}, &OLD},
    {"grok-#", "4.3", "xai", NULL, NONE_TO_XHIGH, 1000000, 30000, {1.25, 0.2, 0, 2.5}, &PI},
    {"grok-#", "4.5", "xai", NULL, LOW_TO_XHIGH, 500000, 500000, {2, 0.3, 0, 6}, &PI},
    {"grok-#", "4.6", "xai", NULL, LOW_TO_XHIGH, 500000, 500000, {2, 0.5, 0, 6}, &PI},
    {"grok-#", "4.7", "xai", NULL, LOW_TO_XHIGH, 500000, 500000, {2, 0.5, 0, 6}, &PI},
    {"grok-4.20", NULL, "xai", NULL, 0, 2000000, 30000, {2, 0.2, 0, 6}, &OLD},
    {"mistral", NULL, "mistral", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"magistral", NULL, "mistral", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"ministral", NULL, "mistral", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"pixtral", NULL, "mistral", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"mistral-large", NULL, "mistral", NULL, 0, 262144, 262144, {0.5, 0.05, 0, 1.5}, &PI},
    {"mistral-large-#", "4", "mistral", NULL, LOW_TO_HIGH, 1048576, 262144,
     {0.7, 0.07, 0, 2.1}, &PI},
    {"mistral-medium", NULL, "mistral", NULL, 0, 262144, 262144, {1.5, 0.15, 0, 7.5}, &PI},
    {"mistral-small", NULL, "mistral", NULL, 0, 262144, 256000, {0.15, 0.015, 0, 0.6}, &PI},
    {"codestral", NULL, "mistral", NULL, 0, 256000, 8192, {0.3, 0.03, 0, 0.9}, &PI},
    {"devstral", NULL, "mistral", NULL, 0, 262144, 262144, {0.4, 0.04, 0, 2}, &PI},
    {"magistral-medium", NULL, "mistral", NULL, 0, 262144, 16384, {2, 0.2, 0, 5}, &PI},
    {"glm", NULL, "zai", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"glm-#", "4.7", "zai", NULL, 0, 204800, 131072, {0.6, 0.11, 0, 2.2}, &PI},
    {"glm-#-turbo", "5", "zai", NULL, 0, 200000, 131072, {1.2, 0.24, 0, 4}, &PI},
    {"glm-#", "5.2", "zai", NULL, NONE_HIGH_MAX, 1000000, 131072, {1.4, 0.26, 0, 4.4}, &PI},
    {"glm-#", "5.3", "zai", NULL, LOW_HIGH_MAX, 1000000, 131072, {1.4, 0.26, 0, 4.4}, &PI},
    {"glm-#-flash", "5.3", "zai", NULL, LOW_HIGH_MAX, 1000000, 131072, {0.15, 0.03, 0, 0.5}, &PI},
    {"sonar", NULL, "perplexity", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"llama", NULL, "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"llama#", "1", "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"llama-#", "1", "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"qwen", NULL, "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"qwen#", "1", "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"gemma", NULL, "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"gemma#", "1", "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"phi", NULL, "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"phi#", "1", "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
    {"phi-#", "1", "ollama", NULL, 0, 0, 0, {0, 0, 0, 0}, NULL},
};
/* clang-format on */
const size_t ah_model_rows_n = sizeof ah_model_rows / sizeof *ah_model_rows;
