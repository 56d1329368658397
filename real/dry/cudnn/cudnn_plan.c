/* cudnn_plan.c - reads the JSON of a plan. */
#include "real/dry/cudnn/cudnn_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *x, *w, *y;
} operations[] = {
    {"OPERATION_CONVOLUTION_FORWARD_", "X", "W", "Y"},
    {"OPERATION_CONVOLUTION_BACKWARD_DATA_", "dX", "W", "dY"},
    {"OPERATION_CONVOLUTION_BACKWARD_FILTER_", "X", "dW", "dY"},
};

static const char *const types[] = {
    [CUDNN_HALF] = "\"CUDNN_DATA_HALF\"",
    [CUDNN_BFLOAT16] = "\"CUDNN_DATA_BFLOAT16\"",
    [CUDNN_FLOAT] = "\"CUDNN_DATA_FLOAT\"",
};

/* The text behind "key":; NULL if there is none. */
static const char *behind(const char *text, const char *key)
{
    char quoted[80];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    at = text ? strstr(text, quoted) : NULL;
    return at ? at + strlen(quoted) : NULL;
}

static int64_t number(const char *text, const char *key)
{
    const char *at = behind(text, key);

    return at ? strtoll(at, NULL, 10) : -1;
}

int64_t frag_cudnn_knob(const struct cudnn_plan *plan, const char *name)
{
    char key[64];

    snprintf(key, sizeof(key), "CUDNN_KNOB_TYPE_%s", name);
    return number(plan->json, key);
}

/* The description of the tensor that the operation calls `role`. */
static const char *tensor(const char *json, const char *role)
{
    char name[64];
    const char *at = behind(behind(json, "nodes"), role);

    if (!at)
        return NULL;
    snprintf(name, sizeof(name), "\"name\":\"%.*s\",",
             (int)strcspn(at + 1, "\""), at + 1);
    return strstr(json, name);
}

/* Numbers of a list; how many, or 0 if there are too many. */
static int read_list(const char *at, int64_t out[CUDNN_DIMENSIONS])
{
    char *next;

    for (int i = 0; at && i < CUDNN_DIMENSIONS; i++) {
        out[i] = strtoll(at + 1, &next, 10);
        if (*next != ',')
            return i + 1;
        at = next;
    }
    return 0;
}

static bool read_shape(const char *json, const char *role,
                       struct cudnn_shape *shape)
{
    const char *at = tensor(json, role);
    int64_t strides[CUDNN_DIMENSIONS];
    const int count = read_list(behind(at, "dim"), shape->dim);

    if (count < 3 || read_list(behind(at, "stride"), strides) != count)
        return false;
    shape->area = 1;
    for (int i = 2; i < count; i++)
        shape->area *= shape->dim[i];
    shape->together = strides[1] == 1 && shape->dim[1] > 1;
    return true;
}

static enum cudnn_type read_type(const char *json, const char *role)
{
    const char *at = behind(tensor(json, role), "dataType");
    int type = 0;

    while (type < CUDNN_OTHER &&
           (!at || strncmp(at, types[type], strlen(types[type])) != 0))
        type++;
    return (enum cudnn_type)type;
}

bool frag_cudnn_plan_read(const char *json, struct cudnn_plan *plan)
{
    for (int i = CUDNN_FORWARD; i <= CUDNN_FILTER; i++) {
        if (!strstr(json, operations[i].name))
            continue;
        plan->json = json;
        plan->operation = (enum cudnn_operation)i;
        plan->type = read_type(json, operations[i].x);
        plan->engine = number(json, "engineId");
        return read_shape(json, operations[i].x, &plan->x) &&
               read_shape(json, operations[i].w, &plan->w) &&
               read_shape(json, operations[i].y, &plan->y);
    }
    return false;
}
