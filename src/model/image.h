/* Images as parts of messages and of tool results: which kinds there are, what a sound part
 * holds, how large it may be. A part is JSON, {"type":"image","mime":..,"data":base64} or
 * {"type":"image","url":..}; what a wire makes of it is for the adapters (wire/provider.h).
 * Nothing is decoded, resized or fetched. */
#ifndef AH_MODEL_IMAGE_H
#define AH_MODEL_IMAGE_H

#include "base/json.h"

enum {
    AH_IMAGE_MAX = 20 << 20,  /* bytes of one image, as the file has them */
    AH_IMAGES_MAX = 64 << 20, /* bytes of all in one request, as the wire has them: base64 */
    AH_IMAGE_URL_MAX = 8 << 10
};

/* JSON strings with their quotes; .p NULL: absent. Either url, or mime and data. */
typedef struct ah_image {
    ah_slice mime, data, url;
} ah_image;

/* What the first bytes say: "image/png", "image/jpeg", "image/gif" or "image/webp"; else NULL. */
const char *ah_image_mime(ah_slice bytes);

/* Is it one of these four? */
bool ah_image_is_mime(ah_slice mime);

/* Is the part (checked JSON) an image? Then *out is what it holds. */
bool ah_image_of(ah_slice part, ah_image *out);

/* Are the images among these parts sound? A list, or nothing. AH_USAGE says which is not. */
ah_status ah_images_check(const ah_mem *mem, ah_slice parts, ah_err *err);

#endif
