/* The metaschemas of the drafts that are spoken, by their addresses: what a schema of the draft looks like,
 * as the drafts define it, without the words for readers and without defaults (which a check would fill
 * in). In canonical form, and without escapes. */
#include "schema/vocabulary.h"

#define BASE_2019 "https://json-schema.org/draft/2019-09/"
#define BASE_2020 "https://json-schema.org/draft/2020-12/"

static const schema_metaschema metaschemas[] = {
    {AH_LIT("http://json-schema.org/draft-07/schema"),
     AH_LIT(
         "{\"$id\":\"http://json-schema.org/draft-07/schema#\",\"$schema\":\"http://json-schema.org/dr"
         "aft-07/schema#\",\"definitions\":{\"nonNegativeInteger\":{\"minimum\":0,\"type\":\"integer\""
         "},\"schemaArray\":{\"items\":{\"$ref\":\"#\"},\"minItems\":1,\"type\":\"array\"},\"simpleTyp"
         "es\":{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]"
         "},\"stringArray\":{\"items\":{\"type\":\"string\"},\"type\":\"array\",\"uniqueItems\":true}}"
         ",\"properties\":{\"$comment\":{\"type\":\"string\"},\"$id\":{\"format\":\"uri-reference\",\""
         "type\":\"string\"},\"$ref\":{\"format\":\"uri-reference\",\"type\":\"string\"},\"$schema\":{"
         "\"format\":\"uri\",\"type\":\"string\"},\"additionalItems\":{\"$ref\":\"#\"},\"additionalPro"
         "perties\":{\"$ref\":\"#\"},\"allOf\":{\"$ref\":\"#/definitions/schemaArray\"},\"anyOf\":{\"$"
         "ref\":\"#/definitions/schemaArray\"},\"const\":true,\"contains\":{\"$ref\":\"#\"},\"contentE"
         "ncoding\":{\"type\":\"string\"},\"contentMediaType\":{\"type\":\"string\"},\"default\":true,"
         "\"definitions\":{\"additionalProperties\":{\"$ref\":\"#\"},\"type\":\"object\"},\"dependenci"
         "es\":{\"additionalProperties\":{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#/definitions/string"
         "Array\"}]},\"type\":\"object\"},\"description\":{\"type\":\"string\"},\"else\":{\"$ref\":\"#"
         "\"},\"enum\":{\"items\":true,\"type\":\"array\"},\"examples\":{\"items\":true,\"type\":\"arr"
         "ay\"},\"exclusiveMaximum\":{\"type\":\"number\"},\"exclusiveMinimum\":{\"type\":\"number\"},"
         "\"format\":{\"type\":\"string\"},\"if\":{\"$ref\":\"#\"},\"items\":{\"anyOf\":[{\"$ref\":\"#"
         "\"},{\"$ref\":\"#/definitions/schemaArray\"}]},\"maxItems\":{\"$ref\":\"#/definitions/nonNeg"
         "ativeInteger\"},\"maxLength\":{\"$ref\":\"#/definitions/nonNegativeInteger\"},\"maxPropertie"
         "s\":{\"$ref\":\"#/definitions/nonNegativeInteger\"},\"maximum\":{\"type\":\"number\"},\"minI"
         "tems\":{\"$ref\":\"#/definitions/nonNegativeInteger\"},\"minLength\":{\"$ref\":\"#/definitio"
         "ns/nonNegativeInteger\"},\"minProperties\":{\"$ref\":\"#/definitions/nonNegativeInteger\"},"
         "\"minimum\":{\"type\":\"number\"},\"multipleOf\":{\"exclusiveMinimum\":0,\"type\":\"number\""
         "},\"not\":{\"$ref\":\"#\"},\"oneOf\":{\"$ref\":\"#/definitions/schemaArray\"},\"pattern\":{"
         "\"format\":\"regex\",\"type\":\"string\"},\"patternProperties\":{\"additionalProperties\":{"
         "\"$ref\":\"#\"},\"propertyNames\":{\"format\":\"regex\"},\"type\":\"object\"},\"properties\""
         ":{\"additionalProperties\":{\"$ref\":\"#\"},\"type\":\"object\"},\"propertyNames\":{\"$ref\""
         ":\"#\"},\"readOnly\":{\"type\":\"boolean\"},\"required\":{\"$ref\":\"#/definitions/stringArr"
         "ay\"},\"then\":{\"$ref\":\"#\"},\"title\":{\"type\":\"string\"},\"type\":{\"anyOf\":[{\"$ref"
         "\":\"#/definitions/simpleTypes\"},{\"items\":{\"$ref\":\"#/definitions/simpleTypes\"},\"minI"
         "tems\":1,\"type\":\"array\",\"uniqueItems\":true}]},\"uniqueItems\":{\"type\":\"boolean\"},"
         "\"writeOnly\":{\"type\":\"boolean\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/core"),
     AH_LIT(
         "{\"$defs\":{\"anchorString\":{\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$\",\"type\":\"string\""
         "},\"uriReferenceString\":{\"format\":\"uri-reference\",\"type\":\"string\"},\"uriString\":{"
         "\"format\":\"uri\",\"type\":\"string\"}},\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-"
         "schema.org/draft/2020-12/meta/core\",\"$schema\":\"https://json-schema.org/draft/2020-12/sch"
         "ema\",\"$vocabulary\":{\"https://json-schema.org/draft/2020-12/vocab/core\":true},\"properti"
         "es\":{\"$anchor\":{\"$ref\":\"#/$defs/anchorString\"},\"$comment\":{\"type\":\"string\"},\"$"
         "defs\":{\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"type\":\"object\"},\"$dynamic"
         "Anchor\":{\"$ref\":\"#/$defs/anchorString\"},\"$dynamicRef\":{\"$ref\":\"#/$defs/uriReferenc"
         "eString\"},\"$id\":{\"$ref\":\"#/$defs/uriReferenceString\",\"pattern\":\"^[^#]*#?$\"},\"$re"
         "f\":{\"$ref\":\"#/$defs/uriReferenceString\"},\"$schema\":{\"$ref\":\"#/$defs/uriString\"},"
         "\"$vocabulary\":{\"additionalProperties\":{\"type\":\"boolean\"},\"propertyNames\":{\"$ref\""
         ":\"#/$defs/uriString\"},\"type\":\"object\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/unevaluated"),
     AH_LIT(
         "{\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta/unevaluate"
         "d\",\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"https://"
         "json-schema.org/draft/2020-12/vocab/unevaluated\":true},\"properties\":{\"unevaluatedItems\""
         ":{\"$dynamicRef\":\"#meta\"},\"unevaluatedProperties\":{\"$dynamicRef\":\"#meta\"}},\"type\""
         ":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/applicator"),
     AH_LIT(
         "{\"$defs\":{\"schemaArray\":{\"items\":{\"$dynamicRef\":\"#meta\"},\"minItems\":1,\"type\":"
         "\"array\"}},\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta"
         "/applicator\",\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{"
         "\"https://json-schema.org/draft/2020-12/vocab/applicator\":true},\"properties\":{\"additiona"
         "lProperties\":{\"$dynamicRef\":\"#meta\"},\"allOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"any"
         "Of\":{\"$ref\":\"#/$defs/schemaArray\"},\"contains\":{\"$dynamicRef\":\"#meta\"},\"dependent"
         "Schemas\":{\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"type\":\"object\"},\"else"
         "\":{\"$dynamicRef\":\"#meta\"},\"if\":{\"$dynamicRef\":\"#meta\"},\"items\":{\"$dynamicRef\""
         ":\"#meta\"},\"not\":{\"$dynamicRef\":\"#meta\"},\"oneOf\":{\"$ref\":\"#/$defs/schemaArray\"}"
         ",\"patternProperties\":{\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"propertyNames"
         "\":{\"format\":\"regex\"},\"type\":\"object\"},\"prefixItems\":{\"$ref\":\"#/$defs/schemaArr"
         "ay\"},\"properties\":{\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"type\":\"object"
         "\"},\"propertyNames\":{\"$dynamicRef\":\"#meta\"},\"then\":{\"$dynamicRef\":\"#meta\"}},\"ty"
         "pe\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/validation"),
     AH_LIT(
         "{\"$defs\":{\"nonNegativeInteger\":{\"minimum\":0,\"type\":\"integer\"},\"simpleTypes\":{\"e"
         "num\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]},\"strin"
         "gArray\":{\"items\":{\"type\":\"string\"},\"type\":\"array\",\"uniqueItems\":true}},\"$dynam"
         "icAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta/validation\",\"$sch"
         "ema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"https://json-schem"
         "a.org/draft/2020-12/vocab/validation\":true},\"properties\":{\"const\":true,\"dependentRequi"
         "red\":{\"additionalProperties\":{\"$ref\":\"#/$defs/stringArray\"},\"type\":\"object\"},\"en"
         "um\":{\"items\":true,\"type\":\"array\"},\"exclusiveMaximum\":{\"type\":\"number\"},\"exclus"
         "iveMinimum\":{\"type\":\"number\"},\"maxContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\"}"
         ",\"maxItems\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"maxLength\":{\"$ref\":\"#/$defs/no"
         "nNegativeInteger\"},\"maxProperties\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"maximum\":"
         "{\"type\":\"number\"},\"minContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minItems\""
         ":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minLength\":{\"$ref\":\"#/$defs/nonNegativeInte"
         "ger\"},\"minProperties\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minimum\":{\"type\":\"n"
         "umber\"},\"multipleOf\":{\"exclusiveMinimum\":0,\"type\":\"number\"},\"pattern\":{\"format\""
         ":\"regex\",\"type\":\"string\"},\"required\":{\"$ref\":\"#/$defs/stringArray\"},\"type\":{\""
         "anyOf\":[{\"$ref\":\"#/$defs/simpleTypes\"},{\"items\":{\"$ref\":\"#/$defs/simpleTypes\"},\""
         "minItems\":1,\"type\":\"array\",\"uniqueItems\":true}]},\"uniqueItems\":{\"type\":\"boolean"
         "\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/meta-data"),
     AH_LIT(
         "{\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta/meta-data"
         "\",\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"https://j"
         "son-schema.org/draft/2020-12/vocab/meta-data\":true},\"properties\":{\"default\":true,\"depr"
         "ecated\":{\"type\":\"boolean\"},\"description\":{\"type\":\"string\"},\"examples\":{\"items"
         "\":true,\"type\":\"array\"},\"readOnly\":{\"type\":\"boolean\"},\"title\":{\"type\":\"string"
         "\"},\"writeOnly\":{\"type\":\"boolean\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/format-annotation"),
     AH_LIT(
         "{\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta/format-ann"
         "otation\",\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"ht"
         "tps://json-schema.org/draft/2020-12/vocab/format-annotation\":true},\"properties\":{\"format"
         "\":{\"type\":\"string\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/format-assertion"),
     AH_LIT(
         "{\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta/format-ass"
         "ertion\",\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"htt"
         "ps://json-schema.org/draft/2020-12/vocab/format-assertion\":true},\"properties\":{\"format\""
         ":{\"type\":\"string\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "meta/content"),
     AH_LIT(
         "{\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/meta/content\","
         "\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"https://json"
         "-schema.org/draft/2020-12/vocab/content\":true},\"properties\":{\"contentEncoding\":{\"type"
         "\":\"string\"},\"contentMediaType\":{\"type\":\"string\"},\"contentSchema\":{\"$dynamicRef\""
         ":\"#meta\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2020 "schema"),
     AH_LIT(
         "{\"$dynamicAnchor\":\"meta\",\"$id\":\"https://json-schema.org/draft/2020-12/schema\",\"$sch"
         "ema\":\"https://json-schema.org/draft/2020-12/schema\",\"$vocabulary\":{\"https://json-schem"
         "a.org/draft/2020-12/vocab/applicator\":true,\"https://json-schema.org/draft/2020-12/vocab/co"
         "ntent\":true,\"https://json-schema.org/draft/2020-12/vocab/core\":true,\"https://json-schema"
         ".org/draft/2020-12/vocab/format-annotation\":true,\"https://json-schema.org/draft/2020-12/vo"
         "cab/meta-data\":true,\"https://json-schema.org/draft/2020-12/vocab/unevaluated\":true,\"http"
         "s://json-schema.org/draft/2020-12/vocab/validation\":true},\"allOf\":[{\"$ref\":\"meta/core"
         "\"},{\"$ref\":\"meta/applicator\"},{\"$ref\":\"meta/unevaluated\"},{\"$ref\":\"meta/validati"
         "on\"},{\"$ref\":\"meta/meta-data\"},{\"$ref\":\"meta/format-annotation\"},{\"$ref\":\"meta/c"
         "ontent\"}],\"properties\":{\"$recursiveAnchor\":{\"$ref\":\"meta/core#/$defs/anchorString\"}"
         ",\"$recursiveRef\":{\"$ref\":\"meta/core#/$defs/uriReferenceString\"},\"definitions\":{\"add"
         "itionalProperties\":{\"$dynamicRef\":\"#meta\"},\"type\":\"object\"},\"dependencies\":{\"add"
         "itionalProperties\":{\"anyOf\":[{\"$dynamicRef\":\"#meta\"},{\"$ref\":\"meta/validation#/$de"
         "fs/stringArray\"}]},\"type\":\"object\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2019 "meta/core"),
     AH_LIT(
         "{\"$id\":\"https://json-schema.org/draft/2019-09/meta/core\",\"$recursiveAnchor\":true,\"$sc"
         "hema\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"https://json-sche"
         "ma.org/draft/2019-09/vocab/core\":true},\"properties\":{\"$anchor\":{\"pattern\":\"^[A-Za-z]"
         "[-A-Za-z0-9.:_]*$\",\"type\":\"string\"},\"$comment\":{\"type\":\"string\"},\"$defs\":{\"add"
         "itionalProperties\":{\"$recursiveRef\":\"#\"},\"type\":\"object\"},\"$id\":{\"format\":\"uri"
         "-reference\",\"pattern\":\"^[^#]*#?$\",\"type\":\"string\"},\"$recursiveAnchor\":{\"type\":"
         "\"boolean\"},\"$recursiveRef\":{\"format\":\"uri-reference\",\"type\":\"string\"},\"$ref\":{"
         "\"format\":\"uri-reference\",\"type\":\"string\"},\"$schema\":{\"format\":\"uri\",\"type\":"
         "\"string\"},\"$vocabulary\":{\"additionalProperties\":{\"type\":\"boolean\"},\"propertyNames"
         "\":{\"format\":\"uri\",\"type\":\"string\"},\"type\":\"object\"}},\"type\":[\"object\",\"boo"
         "lean\"]}")},
    {AH_LIT(BASE_2019 "meta/applicator"),
     AH_LIT(
         "{\"$defs\":{\"schemaArray\":{\"items\":{\"$recursiveRef\":\"#\"},\"minItems\":1,\"type\":\"a"
         "rray\"}},\"$id\":\"https://json-schema.org/draft/2019-09/meta/applicator\",\"$recursiveAncho"
         "r\":true,\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"htt"
         "ps://json-schema.org/draft/2019-09/vocab/applicator\":true},\"properties\":{\"additionalItem"
         "s\":{\"$recursiveRef\":\"#\"},\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"allOf\":{"
         "\"$ref\":\"#/$defs/schemaArray\"},\"anyOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"contains\":"
         "{\"$recursiveRef\":\"#\"},\"dependentSchemas\":{\"additionalProperties\":{\"$recursiveRef\":"
         "\"#\"},\"type\":\"object\"},\"else\":{\"$recursiveRef\":\"#\"},\"if\":{\"$recursiveRef\":\"#"
         "\"},\"items\":{\"anyOf\":[{\"$recursiveRef\":\"#\"},{\"$ref\":\"#/$defs/schemaArray\"}]},\"n"
         "ot\":{\"$recursiveRef\":\"#\"},\"oneOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"patternPropert"
         "ies\":{\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"propertyNames\":{\"format\":\"re"
         "gex\"},\"type\":\"object\"},\"properties\":{\"additionalProperties\":{\"$recursiveRef\":\"#"
         "\"},\"type\":\"object\"},\"propertyNames\":{\"$recursiveRef\":\"#\"},\"then\":{\"$recursiveR"
         "ef\":\"#\"},\"unevaluatedItems\":{\"$recursiveRef\":\"#\"},\"unevaluatedProperties\":{\"$rec"
         "ursiveRef\":\"#\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2019 "meta/validation"),
     AH_LIT(
         "{\"$defs\":{\"nonNegativeInteger\":{\"minimum\":0,\"type\":\"integer\"},\"simpleTypes\":{\"e"
         "num\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]},\"strin"
         "gArray\":{\"items\":{\"type\":\"string\"},\"type\":\"array\",\"uniqueItems\":true}},\"$id\":"
         "\"https://json-schema.org/draft/2019-09/meta/validation\",\"$recursiveAnchor\":true,\"$schem"
         "a\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"https://json-schema."
         "org/draft/2019-09/vocab/validation\":true},\"properties\":{\"const\":true,\"dependentRequire"
         "d\":{\"additionalProperties\":{\"$ref\":\"#/$defs/stringArray\"},\"type\":\"object\"},\"enum"
         "\":{\"items\":true,\"type\":\"array\"},\"exclusiveMaximum\":{\"type\":\"number\"},\"exclusiv"
         "eMinimum\":{\"type\":\"number\"},\"maxContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
         "\"maxItems\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"maxLength\":{\"$ref\":\"#/$defs/non"
         "NegativeInteger\"},\"maxProperties\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"maximum\":{"
         "\"type\":\"number\"},\"minContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minItems\":"
         "{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minLength\":{\"$ref\":\"#/$defs/nonNegativeInteg"
         "er\"},\"minProperties\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},\"minimum\":{\"type\":\"nu"
         "mber\"},\"multipleOf\":{\"exclusiveMinimum\":0,\"type\":\"number\"},\"pattern\":{\"format\":"
         "\"regex\",\"type\":\"string\"},\"required\":{\"$ref\":\"#/$defs/stringArray\"},\"type\":{\"a"
         "nyOf\":[{\"$ref\":\"#/$defs/simpleTypes\"},{\"items\":{\"$ref\":\"#/$defs/simpleTypes\"},\"m"
         "inItems\":1,\"type\":\"array\",\"uniqueItems\":true}]},\"uniqueItems\":{\"type\":\"boolean\""
         "}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2019 "meta/meta-data"),
     AH_LIT(
         "{\"$id\":\"https://json-schema.org/draft/2019-09/meta/meta-data\",\"$recursiveAnchor\":true,"
         "\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"https://json"
         "-schema.org/draft/2019-09/vocab/meta-data\":true},\"properties\":{\"default\":true,\"depreca"
         "ted\":{\"type\":\"boolean\"},\"description\":{\"type\":\"string\"},\"examples\":{\"items\":t"
         "rue,\"type\":\"array\"},\"readOnly\":{\"type\":\"boolean\"},\"title\":{\"type\":\"string\"},"
         "\"writeOnly\":{\"type\":\"boolean\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2019 "meta/format"),
     AH_LIT(
         "{\"$id\":\"https://json-schema.org/draft/2019-09/meta/format\",\"$recursiveAnchor\":true,\"$"
         "schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"https://json-sc"
         "hema.org/draft/2019-09/vocab/format\":true},\"properties\":{\"format\":{\"type\":\"string\"}"
         "},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2019 "meta/content"),
     AH_LIT(
         "{\"$id\":\"https://json-schema.org/draft/2019-09/meta/content\",\"$recursiveAnchor\":true,\""
         "$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"https://json-s"
         "chema.org/draft/2019-09/vocab/content\":true},\"properties\":{\"contentEncoding\":{\"type\":"
         "\"string\"},\"contentMediaType\":{\"type\":\"string\"},\"contentSchema\":{\"$recursiveRef\":"
         "\"#\"}},\"type\":[\"object\",\"boolean\"]}")},
    {AH_LIT(BASE_2019 "schema"),
     AH_LIT(
         "{\"$id\":\"https://json-schema.org/draft/2019-09/schema\",\"$recursiveAnchor\":true,\"$schem"
         "a\":\"https://json-schema.org/draft/2019-09/schema\",\"$vocabulary\":{\"https://json-schema."
         "org/draft/2019-09/vocab/applicator\":true,\"https://json-schema.org/draft/2019-09/vocab/cont"
         "ent\":true,\"https://json-schema.org/draft/2019-09/vocab/core\":true,\"https://json-schema.o"
         "rg/draft/2019-09/vocab/format\":false,\"https://json-schema.org/draft/2019-09/vocab/meta-dat"
         "a\":true,\"https://json-schema.org/draft/2019-09/vocab/validation\":true},\"allOf\":[{\"$ref"
         "\":\"meta/core\"},{\"$ref\":\"meta/applicator\"},{\"$ref\":\"meta/validation\"},{\"$ref\":\""
         "meta/meta-data\"},{\"$ref\":\"meta/format\"},{\"$ref\":\"meta/content\"}],\"properties\":{\""
         "definitions\":{\"additionalProperties\":{\"$recursiveRef\":\"#\"},\"type\":\"object\"},\"dep"
         "endencies\":{\"additionalProperties\":{\"anyOf\":[{\"$recursiveRef\":\"#\"},{\"$ref\":\"meta"
         "/validation#/$defs/stringArray\"}]},\"type\":\"object\"}},\"type\":[\"object\",\"boolean\"]}")},
};

const schema_metaschema *schema_find_metaschema(ah_slice uri)
{
    for (size_t i = 0; i < sizeof metaschemas / sizeof *metaschemas; i++)
        if (ah_slice_eq(uri, metaschemas[i].uri))
            return &metaschemas[i];
    return NULL;
}
