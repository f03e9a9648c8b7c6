/* Names of Unicode properties in ECMAScript (ECMA-262, tables 66 to 68), translated to PCRE2.
 * PCRE2 ignores case and _ in names, and knows some that ECMAScript does not, so these tables
 * decide which names are valid. Only Changes_When_NFKC_Casefolded is missing in PCRE2. */
#include "base/pattern.h"

/* General categories: long names and aliases. */
static const char *const categories[][2] = {
    {"Cased_Letter", "L&"},
    {"Close_Punctuation", "Pe"},
    {"Connector_Punctuation", "Pc"},
    {"Control", "Cc"},
    {"Currency_Symbol", "Sc"},
    {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},
    {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},
    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},
    {"LC", "L&"},
    {"Letter", "L"},
    {"Letter_Number", "Nl"},
    {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},
    {"Mark", "M"},
    {"Math_Symbol", "Sm"},
    {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},
    {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},
    {"Open_Punctuation", "Ps"},
    {"Other", "C"},
    {"Other_Letter", "Lo"},
    {"Other_Number", "No"},
    {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},
    {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},
    {"Punctuation", "P"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},
    {"Surrogate", "Cs"},
    {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},
    {"Unassigned", "Cn"},
    {"Uppercase_Letter", "Lu"},
    {"Combining_Mark", "M"},
    {"cntrl", "Cc"},
    {"digit", "Nd"},
    {"punct", "P"},
};
static const char short_categories[] = " C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P "
                                       "Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl "
                                       "Zp Zs ";
/* Binary properties that both ECMAScript and PCRE2 have. */
static const char binaries[] =
    " ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Bidi_Control Bidi_C Bidi_Mirrored Bidi_M "
    "Case_Ignorable CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM "
    "Changes_When_Lowercased CWL Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash "
    "Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp "
    "Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic "
    "ExtPict "
    "Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator "
    "IDSB "
    "IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic Ideo Join_Control Join_C "
    "Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar Pattern_Syntax "
    "Pat_Syn "
    "Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI "
    "Sentence_Terminal STerm "
    "Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper "
    "Variation_Selector "
    "VS White_Space space XID_Continue XIDC XID_Start XIDS ";

/* Scripts: names and aliases. The linked PCRE2 refuses one that it does not know. */
static const char scripts[] =
    " Adlam Adlm Aghb Ahom Anatolian_Hieroglyphs Arab Arabic Armenian Armi Armn Avestan Avst Bali "
    "Balinese Bamu Bamum Bass Bassa_Vah Batak Batk Beng Bengali Berf Beria_Erfe Bhaiksuki Bhks "
    "Bopo "
    "Bopomofo Brah Brahmi Brai Braille Bugi Buginese Buhd Buhid Cakm Canadian_Aboriginal Cans Cari "
    "Carian Caucasian_Albanian Chakma Cham Cher Cherokee Chorasmian Chrs Common Copt Coptic Cpmn "
    "Cprt "
    "Cuneiform Cypriot Cypro_Minoan Cyrillic Cyrl Deseret Deva Devanagari Diak Dives_Akuru Dogr "
    "Dogra "
    "Dsrt Dupl Duployan Egyp Egyptian_Hieroglyphs Elba Elbasan Elym Elymaic Ethi Ethiopic Gara "
    "Garay "
    "Geor Georgian Glag Glagolitic Gong Gonm Goth Gothic Gran Grantha Greek Grek Gujarati Gujr "
    "Gukh "
    "Gunjala_Gondi Gurmukhi Guru Gurung_Khema Han Hang Hangul Hani Hanifi_Rohingya Hano Hanunoo "
    "Hatr "
    "Hatran Hebr Hebrew Hira Hiragana Hluw Hmng Hmnp Hung Imperial_Aramaic Inherited "
    "Inscriptional_Pahlavi Inscriptional_Parthian Ital Java Javanese Kaithi Kali Kana Kannada "
    "Katakana Kawi Kayah_Li Khar Kharoshthi Khitan_Small_Script Khmer Khmr Khoj Khojki Khudawadi "
    "Kirat_Rai Kits Knda Krai Kthi Lana Lao Laoo Latin Latn Lepc Lepcha Limb Limbu Lina Linb "
    "Linear_A "
    "Linear_B Lisu Lyci Lycian Lydi Lydian Mahajani Mahj Maka Makasar Malayalam Mand Mandaic Mani "
    "Manichaean Marc Marchen Masaram_Gondi Medefaidrin Medf Meetei_Mayek Mend Mende_Kikakui Merc "
    "Mero "
    "Meroitic_Cursive Meroitic_Hieroglyphs Miao Mlym Modi Mong Mongolian Mro Mroo Mtei Mult "
    "Multani "
    "Myanmar Mymr Nabataean Nag_Mundari Nagm Nand Nandinagari Narb Nbat New_Tai_Lue Newa Nko Nkoo "
    "Nshu Nushu Nyiakeng_Puachue_Hmong Ogam Ogham Ol_Chiki Ol_Onal Olck Old_Hungarian Old_Italic "
    "Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur "
    "Onao Oriya Orkh Orya Osage Osge Osma Osmanya Ougr Pahawh_Hmong Palm Palmyrene Pau_Cin_Hau "
    "Pauc "
    "Perm Phag Phags_Pa Phli Phlp Phnx Phoenician Plrd Prti Psalter_Pahlavi Qaac Qaai Rejang Rjng "
    "Rohg Runic Runr Samaritan Samr Sarb Saur Saurashtra Sgnw Sharada Shavian Shaw Shrd Sidd "
    "Siddham "
    "Sidetic Sidt SignWriting Sind Sinh Sinhala Sogd Sogdian Sogo Sora Sora_Sompeng Soyo Soyombo "
    "Sund "
    "Sundanese Sunu Sunuwar Sylo Syloti_Nagri Syrc Syriac Tagalog Tagb Tagbanwa Tai_Le Tai_Tham "
    "Tai_Viet Tai_Yo Takr Takri Tale Talu Tamil Taml Tang Tangsa Tangut Tavt Tayo Telu Telugu Tfng "
    "Tglg Thaa Thaana Thai Tibetan Tibt Tifinagh Tirh Tirhuta Tnsa Todhri Todr Tolong_Siki Tols "
    "Toto "
    "Tulu_Tigalari Tutg Ugar Ugaritic Unknown Vai Vaii Vith Vithkuqi Wancho Wara Warang_Citi Wcho "
    "Xpeo Xsux Yezi Yezidi Yiii Zanabazar_Square Zanb Zinh Zyyy Zzzz ";

static const char *category(ah_slice name)
{
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (ah_slice_is(name, categories[i][0]))
            return categories[i][1];
    return NULL;
}

/* Cuts the prefix off if present. */
static bool cut_prefix(ah_slice *s, const char *prefix)
{
    size_t n = strlen(prefix);

    if (!ah_slice_begins(*s, prefix))
        return false;
    *s = (ah_slice){s->p + n, s->n - n};
    return true;
}

static bool put_words(ah_slice name, const char *kind, bool inverse, ah_buf *out)
{
    ah_buf_fmt(out, "\\%c{%s%.*s}", inverse ? 'P' : 'p', kind, AH_FMT(name));
    return true;
}

bool ah_pattern_property(ah_slice name, bool inverse, ah_buf *out)
{
    ah_slice whole = name;

    if (cut_prefix(&name, "Script_Extensions=") || cut_prefix(&name, "scx="))
        return ah_slice_among(name, scripts) && put_words(name, "scx:", inverse, out);
    if (cut_prefix(&name, "Script=") || cut_prefix(&name, "sc="))
        return ah_slice_among(name, scripts) && put_words(name, "sc:", inverse, out);
    if (!cut_prefix(&name, "General_Category="))
        cut_prefix(&name, "gc=");
    if (category(name))
        return put_words(ah_slice_of(category(name)), "", inverse, out);
    if (ah_slice_among(name, short_categories))
        return put_words(name, "", inverse, out);
    if (ah_slice_is(whole, "Assigned"))
        return put_words((ah_slice)AH_LIT("Cn"), "", !inverse, out);
    return ah_slice_among(whole, binaries) && put_words(whole, "", inverse, out);
}
