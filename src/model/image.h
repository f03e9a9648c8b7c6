/* Images as parts of messages and of tool results: kinds, validity and limits. A part is JSON,
 * {"type":"image","mime":..,"data":base64} or {"type":"image","url":..}; adapters convert it
 * (wire/provider.h). Nothing is decoded, resized or fetched. Callers: its floor, wire, lua. */
#ifndef AH_MODEL_IMAGE_H
#define AH_MODEL_IMAGE_H

#include "base/json.h"

enum {
    AH_IMAGE_MAX = 20 << 20,  /* bytes of one image file */
    AH_IMAGES_MAX = 64 << 20, /* bytes of all images of a request, as base64 */
    AH_IMAGE_URL_MAX = 8 << 10
};

/* JSON strings with quotes; .p NULL: missing. Either url, or mime and data. */
typedef struct ah_image {
    ah_slice mime, data, url;
} ah_image;

/* Returns the MIME type by the first bytes: "image/png", "image/jpeg", "image/gif" or
 * "image/webp"; otherwise NULL. */
const char *ah_image_mime(ah_slice bytes);

/* True if mime is one of these four. */
bool ah_image_is_mime(ah_slice mime);

/* True if the part (checked JSON) is an image; *out then has slices of the part. */
bool ah_image_of(ah_slice part, ah_image *out);

/* Checks the images of a list of parts, which may be missing. Fails with AH_USAGE for the first
 * malformed one. */
ah_status ah_images_check(const ah_mem *mem, ah_slice parts, ah_err *err);

#endif
