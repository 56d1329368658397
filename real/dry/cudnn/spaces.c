/* spaces.c - the spaces that cuDNN says only to the handle of a device:
 * of dropout, recurrent networks, batch normalization and the CTC loss. The
 * formulas were found from what cuDNN 9.19 said on an H200: 9,000 networks,
 * 11,904 normalizations and 500 losses. Descriptors of networks are ours, since
 * nothing else reads them. */
#include <math.h>
#include <stdbool.h>

#include "real/dry/cudnn/real.h"

enum { DRY_LACKING = CUDNN_NOT_SUPPORTED };
#include "real/dry/stubs.h"

enum {
    STATES = 6488064, /* bytes of a generator of random numbers on an H200 */
    MOST_DIMENSIONS = 8,
};

static size_t whole(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* ---- dropout ---- */

struct dropout {
    float probability;
};

FREES(cudnnDestroyDropoutDescriptor)

DRY_EXPORT int cudnnCreateDropoutDescriptor(struct dropout **out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? CUDNN_SUCCESS : CUDNN_NOT_INITIALIZED;
}

DRY_EXPORT int cudnnDropoutGetStatesSize(void *handle, size_t *bytes)
{
    (void)handle;
    *bytes = STATES;
    return CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnSetDropoutDescriptor(struct dropout *it, void *handle,
                                         float probability, void *states,
                                         size_t bytes, unsigned long long seed)
{
    (void)handle, (void)seed;
    if (probability < 0 || probability > 1 || (states && bytes < STATES))
        return CUDNN_BAD_PARAM;
    it->probability = probability;
    return CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnRestoreDropoutDescriptor(struct dropout *it, void *handle,
                                             float probability, void *states,
                                             size_t bytes,
                                             unsigned long long seed)
{
    return cudnnSetDropoutDescriptor(it, handle, probability, states, bytes,
                                     seed);
}

/* ---- recurrent networks ---- */

/* The arguments of cudnnSetRNNDescriptor_v8, all but the dropout. */
struct rnn {
    int algorithm, cell, bias, direction, input_mode, type, precision, math;
    int inputs, width, projected, layers;
    bool drops;
};

struct sequences {
    int layout, longest, batch;
    size_t rows; /* of all sequences */
};

enum {
    SEQ_MAJOR_PACKED = 1,
    STANDARD = 0, /* algorithms */
    SMALL = 3,
    LSTM = 2, /* cells; the simple ones are before it */
    GRU = 3,
    BFLOAT16 = 9,
};

FREES(cudnnDestroyRNNDescriptor)
FREES(cudnnDestroyRNNDataDescriptor)

DRY_EXPORT int cudnnCreateRNNDescriptor(struct rnn **out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? CUDNN_SUCCESS : CUDNN_NOT_INITIALIZED;
}

DRY_EXPORT int cudnnSetRNNDescriptor_v8(
    struct rnn *it, int algorithm, int cell, int bias, int direction,
    int input_mode, int type, int precision, int math, int inputs, int width,
    int projected, int layers, const struct dropout *dropout, unsigned flags)
{
    (void)flags;
    if (cell < 0 || cell > 3 || bias < 0 || bias > 3 || inputs < 1 ||
        width < 1 || projected < 1 || projected > width || layers < 1)
        return CUDNN_BAD_PARAM;
    *it = (struct rnn){algorithm,
                       cell,
                       bias,
                       direction,
                       input_mode,
                       type,
                       precision,
                       math,
                       inputs,
                       width,
                       projected,
                       layers,
                       dropout && dropout->probability > 0};
    return CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnCreateRNNDataDescriptor(struct sequences **out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? CUDNN_SUCCESS : CUDNN_NOT_INITIALIZED;
}

DRY_EXPORT int cudnnSetRNNDataDescriptor(struct sequences *it, int type,
                                         int layout, int longest, int batch,
                                         int inputs, const int *lengths,
                                         void *fill)
{
    (void)type, (void)fill;
    if (longest < 1 || batch < 1 || inputs < 1)
        return CUDNN_BAD_PARAM;
    *it = (struct sequences){layout, longest, batch, 0};
    for (int i = 0; i < batch; i++) {
        if (lengths[i] < 0 || lengths[i] > longest)
            return CUDNN_BAD_PARAM;
        it->rows += (size_t)lengths[i];
    }
    return CUDNN_SUCCESS;
}

/* The numbers of each kind of cell: with ReLU, with tanh, LSTM, GRU. */
static const struct {
    size_t gates;  /* products with the input, or with the state */
    size_t kept;   /* vectors of a row that the backward pass needs */
    size_t states; /* vectors of a layer beside its weights */
    size_t edges;  /* and of its first and last states */
    /* vectors of a layer in the backward pass: packed or padded in one
     * direction, packed or padded in both */
    size_t back[2][2];
} cells[] = {
    {1, 1, 1, 2, {{1, 5}, {6, 14}}},
    {1, 1, 1, 2, {{1, 5}, {6, 14}}},
    {4, 5, 6, 4, {{3, 11}, {10, 26}}},
    {3, 6, 3, 2, {{1, 5}, {6, 14}}},
};

static const size_t biases[] = {0, 1, 2, 1}; /* of a gate, by the bias mode */

static size_t element(const struct rnn *net)
{
    return net->type == 0 ? 4 : net->type == 1 ? 8 : 2;
}

static size_t ways(const struct rnn *net)
{
    return net->direction ? 2 : 1;
}

/* Elements of a matrix of the layer: of the input for the first `gates`, of the
 * state for the next, and the projection. */
static size_t matrix_size(const struct rnn *net, size_t layer, size_t which)
{
    const size_t gates = cells[net->cell].gates;
    const size_t inputs = layer < ways(net)
                              ? (size_t)net->inputs
                              : (size_t)net->projected * ways(net);

    return (size_t)net->width *
           (which < gates ? inputs : (size_t)net->projected);
}

static size_t matrices(const struct rnn *net)
{
    return 2 * cells[net->cell].gates + (net->projected != net->width);
}

/* Bytes of the matrices before matrix `which` of a layer. */
static size_t matrix_at(const struct rnn *net, size_t layer, size_t which)
{
    size_t elements = 0;

    for (size_t l = 0; l <= layer; l++)
        for (size_t m = 0; m < (l < layer ? matrices(net) : which); m++)
            elements += matrix_size(net, l, m);
    return elements * element(net);
}

static size_t matrices_end(const struct rnn *net)
{
    return matrix_at(net, (size_t)net->layers * ways(net), 0);
}

DRY_EXPORT int cudnnGetRNNWeightSpaceSize(void *handle, const struct rnn *net,
                                          size_t *bytes)
{
    (void)handle;
    *bytes = matrices_end(net) +
             (size_t)net->layers * ways(net) * cells[net->cell].gates *
                 biases[net->bias] * (size_t)net->width * element(net);
    return CUDNN_SUCCESS;
}

static int describe(void *tensor, const struct rnn *net, int rows, int columns)
{
    const int dims[] = {1, rows, columns},
              strides[] = {rows * columns, columns, 1};
    extern int cudnnSetTensorNdDescriptor(void *, int, int, const int *,
                                          const int *);

    return FRAG_CUDNN_REAL(cudnnSetTensorNdDescriptor, CUDNN_NOT_INITIALIZED,
                           (tensor, net->type, 3, dims, strides));
}

/* The matrices of all layers lie before their biases. The program may ask for
 * the matrix or for the bias alone. */
DRY_EXPORT int cudnnGetRNNWeightParams(void *handle, const struct rnn *net,
                                       int layer, size_t bytes, char *weights,
                                       int which, void *matrix, void **at,
                                       void *vector, void **bias_at)
{
    const size_t l = (size_t)layer, m = (size_t)which;
    const size_t gates = cells[net->cell].gates;
    const size_t each = gates * biases[net->bias];
    const bool projects = m >= 2 * gates;
    const bool has_bias = biases[net->bias] == 2 && !projects;
    const size_t rows = (size_t)(projects ? net->projected : net->width);
    int result;

    (void)handle, (void)bytes;
    if (layer < 0 || l >= (size_t)net->layers * ways(net) || which < 0 ||
        m >= matrices(net))
        return CUDNN_BAD_PARAM;
    if (at)
        *at = weights + matrix_at(net, l, m);
    if (bias_at)
        *bias_at = has_bias
                       ? weights + matrices_end(net) +
                             (l * each + m) * (size_t)net->width * element(net)
                       : NULL;
    result = matrix ? describe(matrix, net, (int)rows,
                               (int)(matrix_size(net, l, m) / rows))
                    : CUDNN_SUCCESS;
    return result || !vector || !has_bias
               ? result
               : describe(vector, net, net->width, 1);
}

/* Bytes that the forward pass leaves for the backward pass. */
static size_t reserve_size(const struct rnn *net, const struct sequences *data)
{
    const size_t layers = (size_t)net->layers, width = (size_t)net->width;
    const size_t row = ways(net) * data->rows * element(net);
    const bool projects = net->projected != net->width;
    size_t bytes = whole(row * cells[net->cell].kept * width * layers, 32) +
                   whole(row * width * (layers - 1), 32);

    if (projects)
        bytes += row * layers * (width + (size_t)net->projected);
    if (net->drops) /* a bit for each output of a layer */
        bytes += (layers - 1) * ways(net) *
                 whole((size_t)data->longest * (size_t)data->batch * width *
                           ways(net) / 8,
                       32);
    return bytes + 256;
}

/* The persistent algorithm for small networks: vectors of a row and of a layer,
 * for the LSTM and the GRU, in one direction and both, without and with
 * training. For bfloat16 cuDNN takes the standard algorithm in its place. */
static const struct {
    double rows, layers;
} persistent[2][2][2] = {{{{21, 8}, {21, 8}}, {{30, 18}, {30, 18}}},
                         {{{16, 4}, {20, 6}}, {{24, 10}, {27, 14}}}};

static bool is_standard(const struct rnn *net)
{
    return net->algorithm == STANDARD ||
           (net->algorithm == SMALL && net->type == BFLOAT16);
}

static bool is_persistent(const struct rnn *net, const struct sequences *data)
{
    return net->algorithm == SMALL && !is_standard(net) && net->cell >= LSTM &&
           data->layout != SEQ_MAJOR_PACKED;
}

/* The space that both passes need, in vectors of `width` elements, times batch.
 */
struct passes {
    bool two, padded; /* directions; the sequences have equal lengths */
    double batch, longest;
    double rows;   /* of a sequence */
    double inputs; /* vectors that hold their input */
    double layers;
};

static double forward_pass(const struct rnn *net, const struct passes *p)
{
    const double gates = (double)cells[net->cell].gates;
    const double states = (double)cells[net->cell].states;
    const double edges = (double)cells[net->cell].edges;
    const double rows = p->rows, out = (double)net->projected / net->width;
    double sum = p->two
                     ? (2 * gates + 4) * rows + 2 * (states + 2) * p->layers
                     : gates * (rows < 256 ? rows : 256) + states * p->layers;

    if (p->padded)
        sum += (p->two ? 2 : 1) *
                   (edges * (1 + out) / 2 * p->layers + rows * out) +
               p->inputs;
    if (out < 1)
        sum += rows;
    return sum;
}

/* The rows of one direction that the backward pass holds at once. */
static double window(const struct passes *p)
{
    static const struct {
        double batch, rows; /* at most, and at once */
    } at[] = {{1, 32}, {8, 16}, {16, 8}, {96, 4}, {INFINITY, 2}};
    double rows;
    int i = 0;

    if (p->layers < 2)
        return p->rows;
    while (p->batch > at[i].batch)
        i++;
    rows = p->longest >= 128 && at[i].rows < 8 ? 8 : at[i].rows;
    return rows * p->layers + (rows < 8 ? 8 : rows);
}

static double backward_pass(const struct rnn *net, const struct passes *p)
{
    const double each =
        (double)cells[net->cell].back[p->two][p->padded] * p->layers;
    const double many = p->layers > 1 ? 2 : 0;
    const double part = fmin(window(p), p->rows);

    if (!p->two)
        return fmax(p->inputs, p->rows) + part + each +
               (p->padded ? 2 * p->inputs + 2 * p->rows : 0);
    return (p->padded ? 6 : 4) * (p->inputs + p->rows) + each +
           (p->padded ? many : many - 2) * p->rows;
}

static double vectors(const struct rnn *net, const struct sequences *data,
                      bool training)
{
    const double rows = (double)data->rows / data->batch;
    const struct passes p = {ways(net) == 2, data->layout != SEQ_MAJOR_PACKED,
                             data->batch,    data->longest,
                             rows,           rows * net->inputs / net->width,
                             net->layers};
    const double dropped = net->drops && !p.two ? rows : 0;
    const bool again = p.padded && net->cell == GRU && training &&
                       (p.two ? p.layers > 1 : rows <= window(&p));
    const double forward =
        forward_pass(net, &p) + fmax(dropped, again ? p.inputs : 0);

    if (is_persistent(net, data))
        return persistent[net->cell - LSTM][p.two][training].rows * rows +
               persistent[net->cell - LSTM][p.two][training].layers * p.layers +
               p.inputs + dropped;
    return training ? fmax(forward, backward_pass(net, &p)) : forward;
}

DRY_EXPORT int cudnnGetRNNTempSpaceSizes(void *handle, const struct rnn *net,
                                         int training,
                                         const struct sequences *data,
                                         size_t *work, size_t *reserve)
{
    const size_t vector =
        (size_t)net->width * (size_t)data->batch * element(net);
    const size_t layers = (size_t)net->layers * ways(net);

    (void)handle;
    if ((!is_standard(net) && !is_persistent(net, data)) ||
        net->projected != net->width || (training && net->cell < LSTM))
        frag_dry_note(DRY_SIZE, "cuDNN's workspace of a recurrent network with "
                                "a simple cell, projections or a persistent "
                                "algorithm");
    *work = matrices_end(net) + 256 + layers * (8 << 20) +
            (size_t)(vectors(net, data, training) * (double)vector + .5);
    if (data->layout != SEQ_MAJOR_PACKED)
        *work += whole(8 * (size_t)data->batch, 32);
    if (reserve)
        *reserve = training ? reserve_size(net, data) : 0;
    return CUDNN_SUCCESS;
}

/* ---- batch normalization ---- */

/* Only the persistent mode over channels that lie together needs a workspace:
 * sums of each tile of rows and channels. */
static int sums(int mode, const void *x, bool backward, size_t *bytes)
{
    enum { PERSISTENT = 2, HALF = 2, DOUBLE = 1 };
    extern int cudnnGetTensorNdDescriptor(const void *, int, int *, int *,
                                          int *, int *);
    int type, count, dims[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    const int result =
        FRAG_CUDNN_REAL(cudnnGetTensorNdDescriptor, CUDNN_NOT_INITIALIZED,
                        (x, MOST_DIMENSIONS, &type, &count, dims, strides));
    size_t rows = 1, channels, tile, high;

    *bytes = 0;
    if (result || mode != PERSISTENT || type == DOUBLE ||
        (strides[1] != 1 && dims[1] != 1))
        return result;
    for (int i = 0; i < count; i++)
        rows *= i == 1 ? 1 : (size_t)dims[i];
    tile = dims[1] % 4 == 0 ? 64 : dims[1] % 2 == 0 ? 16 : 4;
    high = backward ? 96 : type == HALF ? 160 : 64;
    high *= tile == 4 ? 4 : 1;
    channels = ((size_t)dims[1] + tile - 1) / tile;
    *bytes = (backward ? 1056 : 1072) + 4 * channels +
             (backward ? 8 * tile : 8 * tile + 4) * channels *
                 ((rows + high - 1) / high);
    return CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void *handle, int mode, int what, const void *x, const void *z,
    const void *y, const void *scale, const void *activation, size_t *bytes)
{
    (void)handle, (void)z, (void)y, (void)scale, (void)activation;
    return what ? CUDNN_NOT_SUPPORTED : sums(mode, x, false, bytes);
}

DRY_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    void *handle, int mode, int what, const void *activation, const void *x,
    size_t *bytes)
{
    (void)handle, (void)mode, (void)activation, (void)x;
    *bytes = 0;
    return what ? CUDNN_NOT_SUPPORTED : CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    void *handle, int mode, int what, const void *x, const void *y,
    const void *dy, const void *dz, const void *dx, const void *scale,
    const void *activation, size_t *bytes)
{
    (void)handle, (void)y, (void)dy, (void)dz, (void)dx, (void)scale;
    (void)activation;
    return what ? CUDNN_NOT_SUPPORTED : sums(mode, x, true, bytes);
}

/* ---- the CTC loss ---- */

/* Time, batch and alphabet of the chances. */
static int read_chances(const void *chances, int dims[MOST_DIMENSIONS])
{
    extern int cudnnGetTensorNdDescriptor(const void *, int, int *, int *,
                                          int *, int *);
    int type, count, strides[MOST_DIMENSIONS];
    const int result = FRAG_CUDNN_REAL(
        cudnnGetTensorNdDescriptor, CUDNN_NOT_INITIALIZED,
        (chances, MOST_DIMENSIONS, &type, &count, dims, strides));

    return result ? result : count == 3 ? CUDNN_SUCCESS : CUDNN_BAD_PARAM;
}

/* The chances of all paths forwards and backwards, whose states are the labels
 * and the blanks between them; those of all letters; and the labels. */
static size_t loss_size(const int dims[MOST_DIMENSIONS], int longest, int label)
{
    const size_t states = 2 * (size_t)label + 1;

    return sizeof(float) * (size_t)dims[1] *
           (2 * (size_t)longest * states + (size_t)dims[0] * (size_t)dims[2] +
            states + 2);
}

static int longest_of(const int *lengths, int count)
{
    int most = 0;

    for (int i = 0; i < count; i++)
        most = lengths[i] > most ? lengths[i] : most;
    return most;
}

DRY_EXPORT int cudnnGetCTCLossWorkspaceSize(void *handle, const void *chances,
                                            const void *gradient,
                                            const int *labels,
                                            const int *label_lengths,
                                            const int *lengths, int algorithm,
                                            const void *loss, size_t *bytes)
{
    int dims[MOST_DIMENSIONS], label;
    const int result = read_chances(chances, dims);

    (void)handle, (void)gradient, (void)labels, (void)algorithm, (void)loss;
    if (result)
        return result;
    label = longest_of(label_lengths, dims[1]);
    *bytes = loss_size(dims, longest_of(lengths, dims[1]), label) +
             sizeof(int) * (size_t)dims[1] * ((size_t)label + 2);
    return CUDNN_SUCCESS;
}

/* The descriptor of the loss says how long a label can be. */
DRY_EXPORT int cudnnGetCTCLossWorkspaceSize_v8(void *handle, int algorithm,
                                               const void *loss,
                                               const void *chances,
                                               const void *gradient,
                                               size_t *bytes)
{
    extern int cudnnGetCTCLossDescriptor_v9(const void *, int *, int *, int *,
                                            int *);
    int dims[MOST_DIMENSIONS], type, norm, mode, label;
    int result = read_chances(chances, dims);

    (void)handle, (void)algorithm, (void)gradient;
    if (!result)
        result =
            FRAG_CUDNN_REAL(cudnnGetCTCLossDescriptor_v9, CUDNN_NOT_INITIALIZED,
                            (loss, &type, &norm, &mode, &label));
    if (!result)
        *bytes = loss_size(dims, dims[0], label);
    return result;
}
