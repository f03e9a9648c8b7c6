/* Rendering: first each section's state (off, full, summary) by its switches, then text and
 * tools, which depend only on states and values. If neither changed, the last rendering is
 * reused. */
#include "prompt/prompt_nodes.h"

enum { FIRST_LEVEL = 2, LAST_LEVEL = 6 }; /* number signs of a heading */

/* -- life ------------------------------------------------------------------------- */

static ah_status make_tables(ah_binding *b, ah_err *err)
{
    size_t n = b->prompt->n + 1u;

    b->own = ah_alloc(b->mem, n * sizeof *b->own);
    b->value = ah_alloc(b->mem, n * sizeof *b->value);
    b->state = ah_alloc(b->mem, n);
    return b->own && b->value && b->state ? AH_OK : ah_err_nomem(err);
}

ah_status ah_binding_new(ah_prompt *p, ah_slice params, ah_binding **out, ah_err *err)
{
    ah_binding *b = ah_alloc(p->mem, sizeof *b);
    ah_status st;

    if (!b)
        return ah_err_nomem(err);
    *b = (ah_binding){.mem = p->mem, .refs = 1, .prompt = ah_prompt_ref(p)};
    b->given = ah_text_new(b->mem, params);
    st = b->given ? make_tables(b, err) : ah_err_nomem(err);
    if (st == AH_OK)
        st = binding_scan(b, err);
    if (st == AH_OK)
        *out = b;
    else
        ah_binding_unref(b);
    return st;
}

ah_binding *ah_binding_ref(ah_binding *b)
{
    b->refs++;
    return b;
}

void ah_binding_unref(ah_binding *b)
{
    if (!b || --b->refs > 0)
        return;
    for (uint32_t i = 0; b->value && i < b->prompt->n; i++)
        ah_text_unref(b->value[i]);
    ah_free(b->mem, b->own);
    ah_free(b->mem, b->value);
    ah_free(b->mem, b->state);
    ah_text_unref(b->given);
    ah_rendered_prompt_unref(b->last);
    ah_prompt_unref(b->prompt);
    ah_free(b->mem, b);
}

ah_prompt *ah_binding_prompt(const ah_binding *b)
{
    return b->prompt;
}

const ah_mem *ah_binding_mem(const ah_binding *b)
{
    return b->mem;
}

ah_slice ah_binding_params(const ah_binding *b)
{
    return ah_text_slice(b->given);
}

ah_rendered_prompt *ah_rendered_prompt_ref(ah_rendered_prompt *r)
{
    r->refs++;
    return r;
}

bool ah_rendered_prompt_has(const ah_rendered_prompt *r, const ah_tool *t)
{
    for (size_t i = 0; i < r->n_tools; i++)
        if (r->tool[i].tool == t)
            return true;
    return false;
}

void ah_rendered_prompt_unref(ah_rendered_prompt *r)
{
    if (!r || --r->refs > 0)
        return;
    ah_text_unref(r->text);
    ah_free(r->mem, r->tool);
    ah_free(r->mem, r->summarized);
    ah_free(r->mem, r->state);
    ah_text_unref(r->given);
    ah_prompt_unref(r->prompt);
    ah_free(r->mem, r);
}

/* -- states -------------------------------------------------------------------------- */

static ah_status ask(ah_binding *b, uint32_t i, const char *what, const ah_switch *sw, bool *on,
                     ah_err *err)
{
    ah_slice params;
    ah_err inner;
    ah_status st;

    *on = sw->on;
    if (!sw->vt)
        return AH_OK;
    if ((st = binding_values(b, i, &params, err)) != AH_OK)
        return st;
    if ((st = sw->vt->ask(sw->p, params, on, &inner)) == AH_OK)
        return AH_OK;
    if (st == AH_NOMEM)
        return ah_err_nomem(err);
    return prompt_refuse(b->prompt, i, AH_PROMPT_RENDER, err, "%s: %s", what, inner.message);
}

static ah_status look_at(ah_binding *b, const ah_override_source *shown, uint32_t i,
                         node_state *out, ah_err *err)
{
    const prompt_node *node = &b->prompt->node[i];
    ah_visibility v;
    bool on;
    ah_status st = ask(b, i, "enabled", &node->section->enabled, &on, err);

    *out = NODE_OFF;
    if (st != AH_OK || !on)
        return st;
    if (shown && shown->find(shown->ud, node_path(b->prompt, i), &v))
        on = v == AH_SUMMARY && node->summary;
    else
        st = ask(b, i, "visibility", &node->summarized, &on, err);
    *out = on ? NODE_SUMMARY : NODE_FULL;
    return st;
}

/* A switch's code may look at this binding, so states are stored when all are known. */
static ah_status look(ah_binding *b, const ah_override_source *shown, ah_err *err)
{
    const ah_prompt *p = b->prompt;
    uint8_t *state = ah_alloc(b->mem, p->n + 1u); /* zeroed: off */
    ah_status st = state ? AH_OK : ah_err_nomem(err);
    node_state s;

    for (uint32_t i = 0; st == AH_OK && i < p->n;) {
        if ((st = look_at(b, shown, i, &s, err)) == AH_OK)
            state[i] = (uint8_t)s;
        i = s == NODE_OFF ? p->node[i].end : i + 1;
    }
    if (st == AH_OK)
        memcpy(b->state, state, p->n);
    ah_free(b->mem, state);
    return st;
}

/* Checks values of all sections that are not off, so that an error is reported before a section is
 * read. */
static ah_status check_values(ah_binding *b, ah_err *err)
{
    ah_status st = AH_OK;
    ah_slice params;

    for (uint32_t i = 0; st == AH_OK && i < b->prompt->n; i++)
        if (b->state[i] != NODE_OFF)
            st = binding_values(b, i, &params, err);
    return st;
}

/* -- text ------------------------------------------------------------------------------- */

static void part_block(ah_buf *out)
{
    if (out->len)
        ah_buf_str(out, "\n\n");
}

static void put_heading(const prompt_node *node, ah_buf *out)
{
    uint32_t signs =
        node->depth + FIRST_LEVEL < LAST_LEVEL ? node->depth + FIRST_LEVEL : LAST_LEVEL;

    if (!node->section->title)
        return;
    part_block(out);
    ah_buf_fmt(out, "%.*s ", (int)signs, "######");
    ah_buf_put(out, ah_text_slice(node->section->title));
}

static ah_status put_template(ah_binding *b, uint32_t i, const ah_template *t, ah_buf *out,
                              ah_err *err)
{
    const char *missing;
    ah_slice params;
    ah_status st;

    if (!t || !ah_template_text(t).n)
        return AH_OK;
    if ((st = binding_values(b, i, &params, err)) != AH_OK)
        return st;
    part_block(out);
    if (!(missing = ah_template_render(t, params, out)))
        return AH_OK;
    prompt_refuse(b->prompt, i, AH_PROMPT_RENDER, err, "parameter '%s' has no value", missing);
    if (err)
        ah_json_detail(err, "param", ah_slice_of(missing));
    return AH_PROMPT_RENDER;
}

/* Text of seed 000, Summary Suffix. */
static void put_suffix(ah_slice path, ah_buf *out)
{
    part_block(out);
    ah_buf_str(out,
               "---\n[This section is summarized. To view full content, call `read_section` with "
               "key \"");
    ah_buf_put(out, path);
    ah_buf_str(out, "\".]");
}

/* Appends the text of the nodes [i, end) in these states. */
static ah_status put_text(ah_binding *b, const uint8_t *state, uint32_t i, uint32_t end,
                          ah_buf *out, ah_err *err)
{
    const ah_prompt *p = b->prompt;
    ah_status st = AH_OK;

    while (st == AH_OK && i < end) {
        const prompt_node *node = &p->node[i];

        if (state[i] != NODE_OFF)
            put_heading(node, out);
        if (state[i] == NODE_FULL)
            st = put_template(b, i, node->body, out, err);
        if (state[i] == NODE_SUMMARY && (st = put_template(b, i, node->summary, out, err)) == AH_OK)
            put_suffix(node_path(p, i), out);
        i = state[i] == NODE_FULL ? i + 1 : node->end;
    }
    if (st == AH_OK && !ah_buf_ok(out)) {
        st = ah_buf_error(out, "the prompt", err);
        if (st == AH_BUDGET && err)
            err->status = st = AH_PROMPT_RENDER;
    }
    return st;
}

/* -- tools ---------------------------------------------------------------------------------- */

/* Returns the next node that is shown in full together with all its ancestors. */
static uint32_t next_full(const ah_prompt *p, const uint8_t *state, uint32_t i)
{
    while (i < p->n && state[i] != NODE_FULL)
        i = p->node[i].end;
    return i;
}

static size_t tools_of(const ah_prompt *p, uint32_t i, ah_section_tool *out)
{
    const prompt_node *node = &p->node[i];

    for (size_t k = 0; out && k < node->section->n_tools; k++)
        out[k] = (ah_section_tool){p->tools.slot[node->first_tool + k].tool, node_path(p, i)};
    return node->section->n_tools;
}

static size_t all_tools(const ah_prompt *p, const uint8_t *state, ah_section_tool *out)
{
    size_t n = 0;

    for (uint32_t i = next_full(p, state, 0); i < p->n; i = next_full(p, state, i + 1))
        n += tools_of(p, i, out ? out + n : NULL);
    return n;
}

static size_t all_summarized(const ah_prompt *p, const uint8_t *state, ah_slice *out)
{
    size_t n = 0;

    for (uint32_t i = 0; i < p->n; i = state[i] == NODE_FULL ? i + 1 : p->node[i].end) {
        if (state[i] != NODE_SUMMARY)
            continue;
        if (out)
            out[n] = node_path(p, i);
        n++;
    }
    return n;
}

/* -- the whole --------------------------------------------------------------------------------- */

static ah_status fill(ah_binding *b, ah_rendered_prompt *r, bool text, ah_err *err)
{
    const ah_prompt *p = b->prompt;
    ah_status st = AH_OK;
    ah_buf out;

    r->n_tools = all_tools(p, b->state, NULL);
    r->n_summarized = all_summarized(p, b->state, NULL);
    r->tool = ah_alloc(r->mem, (r->n_tools + 1) * sizeof *r->tool);
    r->summarized = ah_alloc(r->mem, (r->n_summarized + 1) * sizeof *r->summarized);
    r->state = ah_alloc(r->mem, p->n + 1u);
    if (!r->tool || !r->summarized || !r->state)
        return ah_err_nomem(err);
    memcpy(r->state, b->state, p->n);
    all_tools(p, b->state, r->tool);
    all_summarized(p, b->state, r->summarized);
    if (!text)
        return AH_OK;
    ah_buf_init(&out, b->mem, AH_MAX_PROMPT);
    st = put_text(b, b->state, 0, p->n, &out, err);
    if (st == AH_OK)
        st = ah_text_from_buf(&out, "the prompt", &r->text, err);
    ah_buf_clear(&out);
    return st;
}

static ah_status draw(ah_binding *b, bool text, ah_rendered_prompt **out, ah_err *err)
{
    ah_rendered_prompt *r = ah_alloc(b->mem, sizeof *r);
    ah_status st;

    if (!r)
        return ah_err_nomem(err);
    *r = (ah_rendered_prompt){.mem = b->mem,
                              .refs = 1,
                              .prompt = ah_prompt_ref(b->prompt),
                              .given = ah_text_ref(b->given)};
    if ((st = fill(b, r, text, err)) == AH_OK)
        *out = r;
    else
        ah_rendered_prompt_unref(r);
    return st;
}

/* True if states and parameters, which determine text and tools, are unchanged. */
static bool still_right(const ah_binding *b, const ah_rendered_prompt *r)
{
    return r && r->given == b->given && memcmp(b->state, r->state, b->prompt->n) == 0;
}

ah_status ah_binding_render_again(ah_binding *b, const ah_override_source *shown,
                                  ah_rendered_prompt *was, ah_rendered_prompt **out, ah_err *err)
{
    ah_rendered_prompt *r = NULL;
    ah_status st = look(b, shown, err);

    if (st != AH_OK)
        return st;
    if (still_right(b, was) || still_right(b, b->last)) {
        *out = ah_rendered_prompt_ref(still_right(b, was) ? was : b->last);
        return AH_OK;
    }
    if ((st = check_values(b, err)) != AH_OK || (st = draw(b, true, &r, err)) != AH_OK)
        return st;
    ah_rendered_prompt_unref(b->last);
    b->last = ah_rendered_prompt_ref(r);
    *out = r;
    return AH_OK;
}

ah_status ah_binding_render(ah_binding *b, const ah_override_source *shown,
                            ah_rendered_prompt **out, ah_err *err)
{
    return ah_binding_render_again(b, shown, NULL, out, err);
}

ah_status ah_binding_tools(ah_binding *b, const ah_override_source *shown, ah_rendered_prompt **out,
                           ah_err *err)
{
    ah_status st = look(b, shown, err);

    return st == AH_OK ? draw(b, false, out, err) : st;
}

/* -- reading one section ----------------------------------------------------------------------- */

/* True if the node and all its ancestors are shown in full. */
static bool is_open(const ah_prompt *p, const uint8_t *state, uint32_t i)
{
    for (; i != NO_NODE; i = p->node[i].parent)
        if (state[i] != NODE_FULL)
            return false;
    return true;
}

/* Marks nodes in `state` as summarized if the reader does not have them in full. */
static void keep_had(const ah_prompt *p, const ah_section_reader *had, uint8_t *state)
{
    for (uint32_t i = 0; had && i < p->n; i++)
        if (state[i] == NODE_FULL && !had->open(had->ud, node_path(p, i)))
            state[i] = NODE_SUMMARY;
}

/* True if `after` shows a part of the node that was not open before. */
static bool shows_more(const ah_prompt *p, const uint8_t *before, const uint8_t *after, uint32_t i)
{
    uint32_t end = p->node[i].end;

    for (i = next_full(p, after, i); i < end; i = next_full(p, after, i + 1))
        if (!is_open(p, before, i))
            return true;
    return false;
}

/* For each node: its state before and after the reading, and whether it is to be opened. */
typedef struct read_states {
    uint8_t *before, *after, *mark;
} read_states;

/* Marks the sections with tools, among `top` and its descendants, that are shown after the
 * reading and were not open before; returns the number of their tools. */
static size_t mark_gained(const ah_prompt *p, const read_states *s, uint32_t top)
{
    size_t n = 0;

    for (uint32_t i = next_full(p, s->after, top); i < p->node[top].end;
         i = next_full(p, s->after, i + 1)) {
        if (!p->node[i].section->n_tools || is_open(p, s->before, i))
            continue;
        s->mark[i] = 1;
        n += p->node[i].section->n_tools;
    }
    return n;
}

/* Adds the tools of a node, except those that the reader offers already. */
static void keep_tools(ah_section_content *r, const ah_prompt *p, const ah_section_reader *had,
                       uint32_t i)
{
    ah_section_tool *at = r->tool + r->n_tools;

    for (size_t k = 0, n = tools_of(p, i, at); k < n; k++)
        if (!had || !had->offers(had->ud, at[k].tool))
            r->tool[r->n_tools++] = at[k];
}

/* Collects the tools that the reading adds and the sections to be opened for them. top: the
 * outermost section that the reading opens. Sections that others opened elsewhere meanwhile do
 * not count. */
static ah_status keep_gained(ah_section_content *r, const ah_prompt *p, const read_states *s,
                             const ah_section_reader *had, uint32_t top, ah_err *err)
{
    size_t n = mark_gained(p, s, top);

    if (!n)
        return AH_OK;
    r->tool = ah_alloc(r->mem, n * sizeof *r->tool);
    r->open = ah_alloc(r->mem, (size_t)p->n * sizeof *r->open);
    if (!r->tool || !r->open)
        return ah_err_nomem(err);
    for (uint32_t i = 0; i < p->n; i++)
        if (s->mark[i]) {
            r->open[r->n_open++] = node_path(p, i);
            keep_tools(r, p, had, i);
        }
    return AH_OK;
}

static ah_status read_node(ah_binding *b, uint32_t i, const read_states *s,
                           const ah_section_reader *had, ah_section_content *r, ah_err *err)
{
    const ah_prompt *p = b->prompt;
    uint32_t top = i;
    ah_status st;

    memcpy(s->before, b->state, p->n);
    memcpy(s->after, b->state, p->n);
    keep_had(p, had, s->before);
    s->mark[i] = !is_open(p, s->before, i);
    for (uint32_t up = i; up != NO_NODE; up = p->node[up].parent) {
        s->mark[up] |= s->before[up] == NODE_SUMMARY;
        s->after[up] = NODE_FULL;
        top = s->mark[up] ? up : top;
    }
    r->kind = shows_more(p, s->before, s->after, i) ? AH_READ_CONTENT : AH_READ_EXPANDED;
    st = put_text(b, s->after, i, p->node[i].end, &r->content, err);
    if (st == AH_OK && r->kind == AH_READ_CONTENT)
        st = keep_gained(r, p, s, had, top, err);
    return st;
}

ah_status ah_binding_read(ah_binding *b, const ah_override_source *shown,
                          const ah_section_reader *had, ah_slice path, ah_section_content *out,
                          ah_err *err)
{
    uint32_t i = prompt_find(b->prompt, path), n = b->prompt->n;
    uint8_t *scratch;
    ah_status st;

    *out = (ah_section_content){.mem = b->mem, .kind = AH_READ_UNKNOWN};
    ah_buf_init(&out->content, b->mem, AH_MAX_PROMPT);
    if (i == NO_NODE)
        return AH_OK;
    if ((st = look(b, shown, err)) != AH_OK || b->state[i] == NODE_OFF)
        return st;
    if (!(scratch = ah_alloc(b->mem, 3 * (size_t)n))) /* zeroed */
        return ah_err_nomem(err);
    out->prompt = ah_prompt_ref(b->prompt);
    st = read_node(b, i, &(read_states){scratch, scratch + n, scratch + 2 * (size_t)n}, had, out,
                   err);
    ah_free(b->mem, scratch);
    return st;
}

bool ah_rendered_prompt_shows(const ah_rendered_prompt *r, ah_slice path)
{
    uint32_t i = prompt_find(r->prompt, path);

    return i != NO_NODE && is_open(r->prompt, r->state, i);
}

bool ah_rendered_prompt_opens(const ah_rendered_prompt *r, ah_slice path)
{
    uint32_t i = prompt_find(r->prompt, path);

    return i != NO_NODE && r->state[i] == NODE_FULL;
}

void ah_section_content_clear(ah_section_content *r)
{
    if (!r->mem)
        return;
    ah_buf_clear(&r->content);
    ah_free(r->mem, r->tool);
    ah_free(r->mem, r->open);
    ah_prompt_unref(r->prompt);
    *r = (ah_section_content){0};
}
