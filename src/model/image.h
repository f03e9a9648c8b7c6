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

/* The MIME type by the first bytes: "image/png", "image/jpeg", "image/gif" or "image/webp"; else
 * NULL. */
const char *ah_image_mime(ah_slice bytes);

/* True if mime is one of these four. */
bool ah_image_is_mime(ah_slice mime);

/* True if the part (checked JSON) is an image; *out is then filled, with slices of the part. */
bool ah_image_of(ah_slice part, ah_image *out);

/* Checks the images among these parts, a list or nothing. AH_USAGE names the first that is
 * malformed. */
ah_status ah_images_check(const ah_mem *mem, ah_slice parts, ah_err *err);

#endif
