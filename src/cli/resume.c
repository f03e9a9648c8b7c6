/* Cuts the text into its lines, in place. */
#include "cli/resume.h"

#include <stdlib.h>
#include <string.h>

static void take_line(ah_resume *r, const char *name, const char *value)
{
    const struct {
        const char *name, **value;
    } texts[] = {
        {"script", &r->script}, {"folder", &r->folder},     {"conversation", &r->conversation},
        {"base", &r->base},     {"store", &r->store},       {"give-up", &r->give_up},
        {"model", &r->model},   {"env-file", &r->env_file}, {"record", &r->record},
        {"replay", &r->replay}, {"answer", &r->answer}};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0)
            *texts[i].value = value;
    r->take |= strcmp(name, "take") == 0;
    r->json |= strcmp(name, "json") == 0;
    r->jsonl |= strcmp(name, "jsonl") == 0;
}

bool ah_resume_take(ah_resume *r, const char *said, bool *lost)
{
    static const char head[] = "resume\n";
    static const char words[] = "words ";
    char *line, *end, *value;

    *lost = false;
    if (strncmp(said, head, sizeof head - 1) != 0)
        return false;
    line = r->text = strdup(said + sizeof head - 1);
    *lost = !line;
    for (; line && (end = strchr(line, '\n')); line = end + 1) {
        if (strncmp(line, words, sizeof words - 1) == 0) {
            r->words = line + sizeof words - 1;
            r->words[strlen(r->words) - 1] = '\0';
            break;
        }
        *end = '\0';
        value = line + strcspn(line, " ");
        if (*value)
            *value++ = '\0';
        take_line(r, line, value);
    }
    return true;
}

void ah_resume_clear(ah_resume *r)
{
    free(r->text);
    *r = (ah_resume){.text = NULL};
}
