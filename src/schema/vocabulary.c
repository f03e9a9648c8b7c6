/* $schema and $vocabulary: a schema has one of the supported drafts, or the dialect of a
 * metaschema among its documents, whose $vocabulary selects its keywords. Others are refused,
 * because they would be half-checked. */
#include "schema/vocabulary.h"

#include "schema/program.h"

static const struct {
    const char *uri; /* without http:// or https:// */
    unsigned draft;
} drafts[] = {
    {"json-schema.org/draft/2020-12/schema", DRAFT_2020},
    {"json-schema.org/draft/2019-09/schema", DRAFT_2019},
    {"json-schema.org/draft-07/schema", DRAFT_7},
    {"json-schema.org/schema", DRAFT_2020}, /* always the newest */
};

static const struct {
    const char *name;
    unsigned draft, bits, needed; /* `needed`: bits added if true */
} vocabularies[] = {
    {"core", DRAFT_2019_ON, VOCABULARY_CORE, 0},
    {"applicator", DRAFT_2020, VOCABULARY_APPLICATOR, 0},
    {"applicator", DRAFT_2019, VOCABULARY_APPLICATOR | VOCABULARY_UNEVALUATED, 0},
    {"unevaluated", DRAFT_2020, VOCABULARY_UNEVALUATED, 0},
    {"validation", DRAFT_2019_ON, VOCABULARY_VALIDATION, 0},
    {"meta-data", DRAFT_2019_ON, VOCABULARY_META, 0},
    {"format-annotation", DRAFT_2020, VOCABULARY_FORMAT, 0},
    {"format-assertion", DRAFT_2020, VOCABULARY_FORMAT | VOCABULARY_ASSERTION, 0},
    {"format", DRAFT_2019, VOCABULARY_FORMAT, VOCABULARY_ASSERTION},
    {"content", DRAFT_2019_ON, VOCABULARY_CONTENT, 0},
};

const char *schema_draft_name(unsigned draft)
{
    return draft == DRAFT_2020   ? "draft 2020-12"
           : draft == DRAFT_2019 ? "draft 2019-09"
                                 : "draft-07";
}

static ah_slice without(ah_slice text, const char *head)
{
    size_t n = strlen(head);

    return ah_slice_begins(text, head) ? (ah_slice){text.p + n, text.n - n} : text;
}

static unsigned draft_of(ah_slice uri)
{
    ah_slice name = without(without(uri, "http://"), "https://");

    if (name.n && name.p[name.n - 1] == '#')
        name.n--;
    for (size_t i = 0; name.n < uri.n && i < sizeof drafts / sizeof *drafts; i++)
        if (ah_slice_is(name, drafts[i].uri))
            return drafts[i].draft;
    return 0;
}

/* Adds the bits of the vocabulary; false: unknown. */
static bool add_vocabulary(dialect *d, ah_slice uri, bool needed)
{
    static const unsigned drafts_with[] = {DRAFT_2020, DRAFT_2019};
    static const char *const heads[] = {"https://json-schema.org/draft/2020-12/vocab/",
                                        "https://json-schema.org/draft/2019-09/vocab/"};

    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
        for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
            if (!ah_slice_begins(uri, heads[k]) || !(vocabularies[i].draft & drafts_with[k]) ||
                !ah_slice_is(without(uri, heads[k]), vocabularies[i].name))
                continue;
            d->vocabularies |= vocabularies[i].bits | (needed ? vocabularies[i].needed : 0);
            if (vocabularies[i].bits & VOCABULARY_CORE)
                d->draft = drafts_with[k];
            return true;
        }
    }
    return false;
}

static ah_status refuse_metaschema(compiler *c, ah_slice schema, ah_slice uri, const char *words,
                                   ah_slice what)
{
    ah_buf *b = schema_refusal(c, schema.p, ah_slice_of("$schema"));

    ah_buf_str(b, "names a document that ");
    ah_buf_str(b, words);
    schema_put_found(b, what);
    ah_buf_str(b, ", found ");
    schema_put_found(b, uri);
    return schema_refused(c);
}

static ah_status read_vocabulary(compiler *c, ah_slice schema, ah_slice uri, ah_slice metaschema,
                                 dialect *out)
{
    ah_json_reader r = ah_json_read(ah_json_member(metaschema, "$vocabulary"));
    ah_json_token key = ah_json_next(&r);
    dialect d = {0};

    if (key.kind != AH_JSON_OBJECT)
        return refuse_metaschema(c, schema, uri, "is no metaschema: it has no ",
                                 ah_slice_of("$vocabulary"));
    while ((key = ah_json_next(&r)).kind == AH_JSON_KEY) {
        bool needed = ah_json_next(&r).kind == AH_JSON_TRUE;

        if (!add_vocabulary(&d, key.raw, needed) && needed)
            return refuse_metaschema(c, schema, uri,
                                     "requires a vocabulary that is not known: ", key.raw);
    }
    if (!d.draft)
        return refuse_metaschema(c, schema, uri, "does not name the vocabulary ",
                                 ah_slice_of("https://json-schema.org/draft/2020-12/vocab/core"));
    *out = d;
    return AH_OK;
}

ah_status schema_choose_dialect(compiler *c, ah_slice text)
{
    ah_slice said = ah_json_member(text, "$schema"), uri;
    uint32_t i;
    unsigned draft;

    if (ah_json_kind_of(said) != AH_JSON_STRING)
        return AH_OK;
    ah_buf_reset(&c->segment, 0);
    ah_json_string(said, &c->segment);
    if (!ah_buf_ok(&c->segment))
        return ah_err_nomem(c->err);
    uri = ah_buf_slice(&c->segment);
    if ((draft = draft_of(uri))) {
        c->dialect = (dialect){draft, VOCABULARY_ALL};
        return AH_OK;
    }
    if ((i = schema_shelf_root(c, uri)) != NONE)
        return read_vocabulary(c, text, said, ah_text_slice(document_at(c->shelf->s, i)->text),
                               &c->dialect);
    return schema_refuse(c, text.p, "$schema", said,
                         "names no supported dialect: draft 2020-12, draft 2019-09, draft-07, or a "
                         "metaschema among the documents");
}
