/* See spent.h. */
#include "run/spent.h"

void ah_spent_add(ah_spent *sum, const ah_spent *more)
{
    ah_usage_add(&sum->usage, &more->usage);
    sum->cut = sum->cut || more->cut;
    sum->answers =
        more->answers > INT64_MAX - sum->answers ? INT64_MAX : sum->answers + more->answers;
    if (more->since && (!sum->since || more->since < sum->since))
        sum->since = more->since;
}

void ah_spent_print(const ah_spent *s, ah_buf *out)
{
    ah_buf_fmt(out, "{\"answers\":%lld", (long long)s->answers);
    if (s->since)
        ah_json_add_int(out, "since", s->since);
    ah_json_add_name(out, "usage");
    ah_usage_print(&s->usage, out);
    ah_buf_char(out, '}');
}

static int64_t count_of(ah_slice value)
{
    const int64_t most = INT64_C(1) << 53;
    ah_json_num n;

    return ah_json_kind_of(value) == AH_JSON_NUMBER && ah_json_number(value, &n) && n.is_int &&
                   n.i > 0 && n.i <= most
               ? n.i
               : 0;
}

void ah_spent_read(ah_slice json, ah_spent *out)
{
    ah_slice answers, since, usage;
    const ah_json_slot want[] = {{"answers", &answers}, {"since", &since}, {"usage", &usage}};

    *out = (ah_spent){0};
    if (!ah_json_members(json, want, sizeof want / sizeof *want))
        return;
    out->answers = count_of(answers);
    out->since = count_of(since);
    ah_usage_read(usage, &out->usage);
}

void ah_spent_add_record(ah_spent *sum, bool answer, ah_slice said, int64_t time)
{
    ah_slice spent = ah_json_member(said, "spent");
    ah_spent more = {.answers = 1};

    if (!answer && !spent.p)
        return;
    if (spent.p)
        ah_spent_read(spent, &more);
    else
        ah_usage_read(ah_json_member(said, "usage"), &more.usage);
    more.since = time;
    ah_spent_add(sum, &more);
}
