/* The four kinds of images that all providers accept, recognized by their first bytes: file
 * names and scripts may be wrong, and providers check. The rest of an image is not checked. */
#include "model/image.h"

#include "base/base64.h"

static const char *const mimes[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

static bool begins(ah_slice bytes, ah_slice with)
{
    return bytes.n >= with.n && memcmp(bytes.p, with.p, with.n) == 0;
}

const char *ah_image_mime(ah_slice bytes)
{
    static const struct {
        ah_slice begin;
        const char *mime;
    } kinds[] = {{AH_LIT("\x89PNG\r\n\x1a\n"), "image/png"},
                 {AH_LIT("\xff\xd8\xff"), "image/jpeg"},
                 {AH_LIT("GIF87a"), "image/gif"},
                 {AH_LIT("GIF89a"), "image/gif"}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (begins(bytes, kinds[i].begin))
            return kinds[i].mime;
    /* RIFF, its size, then the kind of file */
    if (bytes.n >= 12 && begins(bytes, (ah_slice)AH_LIT("RIFF")) && !memcmp(bytes.p + 8, "WEBP", 4))
        return "image/webp";
    return NULL;
}

bool ah_image_is_mime(ah_slice mime)
{
    for (size_t i = 0; i < sizeof mimes / sizeof *mimes; i++)
        if (ah_slice_is(mime, mimes[i]))
            return true;
    return false;
}

bool ah_image_of(ah_slice part, ah_image *out)
{
    ah_slice type;
    const ah_json_slot want[] = {
        {"type", &type}, {"mime", &out->mime}, {"data", &out->data}, {"url", &out->url}};

    return ah_json_members(part, want, 4) && ah_json_string_is(type, "image");
}

/* Sets *sound to true if the JSON string is base64 of 1 byte to AH_IMAGE_MAX. Some JSON writers
 * escape the slash. */
static ah_status check_data(const ah_mem *mem, ah_slice data, bool *sound, ah_err *err)
{
    ah_slice raw = ah_json_inside(data);
    ah_status st = AH_OK;
    ah_buf b;

    ah_buf_init(&b, mem, raw.n);
    if (memchr(raw.p, '\\', raw.n)) {
        ah_json_unescape(raw, &b);
        raw = ah_buf_slice(&b);
    }
    if (!ah_buf_ok(&b))
        st = ah_buf_error(&b, "an image", err);
    *sound = raw.n > 0 && ah_base64_valid(raw) && ah_base64_size(raw) <= AH_IMAGE_MAX;
    ah_buf_clear(&b);
    return st;
}

static bool is_string(ah_slice value)
{
    return ah_json_kind_of(value) == AH_JSON_STRING;
}

static bool is_mime(ah_slice value)
{
    for (size_t i = 0; i < sizeof mimes / sizeof *mimes; i++)
        if (ah_json_string_is(value, mimes[i]))
            return true;
    return false;
}

static ah_status check_image(const ah_mem *mem, const ah_image *image, size_t at, ah_err *err)
{
    bool sound = false;
    ah_status st = AH_OK;

    if (image->url.p && !image->data.p && (!image->mime.p || is_mime(image->mime)))
        sound = is_string(image->url) && image->url.n <= AH_IMAGE_URL_MAX;
    else if (!image->url.p && is_mime(image->mime) && is_string(image->data))
        st = check_data(mem, image->data, &sound, err);
    if (st != AH_OK || sound)
        return st;
    return ah_err_set(err, AH_USAGE,
                      "part %zu: an image has a url, or mime (image/png, image/jpeg, image/gif or "
                      "image/webp) and data: base64 of 1 byte to %d MiB",
                      at, AH_IMAGE_MAX >> 20);
}

ah_status ah_images_check(const ah_mem *mem, ah_slice parts, ah_err *err)
{
    ah_json_reader r = ah_json_read(parts);
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;
    ah_image image;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    t = ah_json_next(&r);
    for (size_t at = 1; st == AH_OK && t.kind == AH_JSON_OBJECT; at++, t = ah_json_next(&r))
        if (ah_image_of(ah_json_skip(&r, t), &image))
            st = check_image(mem, &image, at, err);
    return st;
}
