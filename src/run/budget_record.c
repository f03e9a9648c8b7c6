/* The amounts used of a budget, as text: the record `spent`, and back. */
#include "run/budget.h"

static const int64_t MOST = INT64_C(9000000000000000); /* also what a script may give as used */

static void put_amounts(const char *name, const int64_t amount[AH_BUDGET_KINDS], ah_buf *out)
{
    ah_json_add_name(out, name);
    ah_buf_char(out, '{');
    for (int k = 0; k < AH_BUDGET_KINDS; k++)
        ah_json_add_int(out, ah_budget_kind_name((ah_budget_kind)k),
                        amount[k] < MOST ? amount[k] : MOST);
    ah_buf_char(out, '}');
}

static bool is_reserved(const ah_budget *b)
{
    for (int k = 0; k < AH_BUDGET_KINDS; k++)
        if (b->reserved[k])
            return true;
    return false;
}

void ah_budget_print_spent(const ah_budget *b, ah_buf *out)
{
    ah_buf_char(out, '{');
    put_amounts("used", b->used, out);
    if (is_reserved(b))
        put_amounts("reserved", b->reserved, out);
    ah_buf_str(out, b->estimated ? ",\"estimated\":true}" : "}");
}

static int64_t amount_of(ah_slice amounts, ah_budget_kind k)
{
    ah_slice value = ah_json_member(amounts, ah_budget_kind_name(k));
    ah_json_num n;

    if (ah_json_kind_of(value) != AH_JSON_NUMBER || !ah_json_number(value, &n) || !n.is_int)
        return 0;
    return n.i < 0 ? 0 : n.i > MOST ? MOST : n.i;
}

void ah_budget_take_spent(ah_budget *b, ah_slice spent)
{
    ah_slice used = ah_json_member(spent, "used"), reserved = ah_json_member(spent, "reserved");

    for (int k = 0; k < AH_BUDGET_KINDS; k++)
        b->used[k] = amount_of(used, (ah_budget_kind)k) + amount_of(reserved, (ah_budget_kind)k);
    b->estimated = reserved.p || ah_slice_is(ah_json_member(spent, "estimated"), "true");
}
