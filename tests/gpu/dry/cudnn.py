"""Calls the stand-in for cuDNN as PyTorch does: cudnn.py SCENE, which prints
what it found as JSON. tests/gpu/dry/cudnn.json holds what a GPU said. The caller
sets FRAGSIM_DRY_CUDNN, the cuDNN below the stand-in.
"""
import ctypes
import json
import os
import sys

FOLDER = os.path.join(os.environ["FRAG_BUILD_DIR"], "dry")
HERE = os.path.dirname(os.path.abspath(__file__))
HEURISTICS, PLAN, GRAPH = 4, 5, 15
PLAN_HANDLE, PLAN_WORKSPACE, PLAN_JSON, GRAPH_HANDLE = 400, 402, 405, 800
HANDLE, INT64, CHAR = 0, 3, 24
ROLES = {"fwd": ("FORWARD", "X", "W", "Y"),
         "dgrad": ("BACKWARD_DATA", "dX", "W", "dY"),
         "wgrad": ("BACKWARD_FILTER", "X", "dW", "dY")}

DRIVER = ctypes.CDLL(os.path.join(FOLDER, "libcuda.so.1"), ctypes.RTLD_GLOBAL)
CUDNN = ctypes.CDLL(os.path.join(FOLDER, "libcudnn.so.9"), ctypes.RTLD_GLOBAL)


def measured(kind):
    with open(os.path.join(HERE, "cudnn.json"), encoding="utf-8") as file:
        return json.load(file)[kind]


def good(code):
    assert code == 0, code


def made(function, *arguments):
    it = ctypes.c_void_p()
    good(function(*arguments, ctypes.byref(it)))
    return it


def attribute(it, name, kind, count, value):
    return CUDNN.cudnnBackendSetAttribute(it, name, kind,
                                          ctypes.c_int64(count), value)


def workspace(plan):
    out, count = ctypes.c_int64(), ctypes.c_int64()
    good(CUDNN.cudnnBackendGetAttribute(plan, PLAN_WORKSPACE, INT64,
                                        ctypes.c_int64(1), ctypes.byref(count),
                                        ctypes.byref(out)))
    return out.value


def strides(dims, together):
    order = [1, *range(len(dims) - 1, 1, -1)] if together \
        else list(range(len(dims) - 1, 0, -1))
    out, size = [0] * len(dims), 1
    for i in [*order, 0]:
        out[i] = size
        size *= dims[i]
    return out


def text_of(kind, name, shapes, together, engine, knobs):
    """The JSON of such a plan, as cuDNN writes it."""
    operation, *roles = ROLES[kind]
    return json.dumps({
        "cudnnVersion": 91900,
        "operationGraph": {
            "tensors": [{"name": str(117 + i), "dataType": f"CUDNN_DATA_{name}",
                         "dim": dims, "stride": strides(dims, together)}
                        for i, dims in enumerate(shapes)],
            "nodes": [{"operation": "CUDNN_BACKEND_OPERATION_CONVOLUTION_"
                                    f"{operation}_DESCRIPTOR",
                       **{role: str(117 + i) for i, role in enumerate(roles)}}]},
        "engine": {"engineId": engine, "smVersion": 900, "knobChoices": {
            f"CUDNN_KNOB_TYPE_{key}": value for key, value in knobs.items()}},
    }, separators=(",", ":"))


def convolutions():
    """The workspace of each plan, beside what the GPU said."""
    found = []
    for *plan_of, alone, gpu in measured("convolutions"):
        text = text_of(*plan_of).encode()
        plan = made(CUDNN.cudnnBackendCreateDescriptor, PLAN)
        good(attribute(plan, PLAN_JSON, CHAR, len(text), text))
        good(attribute(plan, PLAN_WORKSPACE, INT64, 1,
                       ctypes.byref(ctypes.c_int64(alone))))
        good(CUDNN.cudnnBackendFinalize(plan))
        found.append([alone, gpu, workspace(plan)])
        good(CUDNN.cudnnBackendExecute(None, plan, None))
        good(CUDNN.cudnnBackendDestroyDescriptor(plan))
    return found


def handles():
    """A handle stays with the stand-in, and its stream is kept."""
    handle, stream = made(CUDNN.cudnnCreate), ctypes.c_void_p()
    good(CUDNN.cudnnSetStream(handle, ctypes.c_void_p(4711)))
    good(CUDNN.cudnnGetStream(handle, ctypes.byref(stream)))
    for kind, name in ((GRAPH, GRAPH_HANDLE), (PLAN, PLAN_HANDLE),
                       (HEURISTICS, 200)):
        it = made(CUDNN.cudnnBackendCreateDescriptor, kind)
        good(attribute(it, name, HANDLE, 1, ctypes.byref(handle)))
        good(CUDNN.cudnnBackendFinalize(it))
    good(CUDNN.cudnnBackendExecute(handle, None, None))
    CUDNN.cudnnGetVersion.restype = ctypes.c_size_t
    return [stream.value, CUDNN.cudnnGetVersion()]


def network(mode, bias, bidir, kind, inputs, width, projected, layers, drop=0.0,
            algorithm=0):
    dropout = made(CUDNN.cudnnCreateDropoutDescriptor)
    good(CUDNN.cudnnSetDropoutDescriptor(dropout, None, ctypes.c_float(drop),
                                         None, 0, 0))
    net = made(CUDNN.cudnnCreateRNNDescriptor)
    good(CUDNN.cudnnSetRNNDescriptor_v8(net, algorithm, mode, bias, bidir, 0, kind,
                                        0, 0, inputs, width, projected, layers,
                                        dropout, 0))
    return net


def networks(kind="networks", algorithm=0):
    found = []
    for row, lengths, said in measured(kind):
        *shape, drop, layout, longest, batch = row
        net = network(*shape, drop, algorithm)
        data = made(CUDNN.cudnnCreateRNNDataDescriptor)
        lengths = lengths or [longest] * batch
        good(CUDNN.cudnnSetRNNDataDescriptor(
            data, shape[3], layout, longest, batch, shape[4],
            (ctypes.c_int * batch)(*lengths), None))
        sizes = [ctypes.c_size_t() for _ in range(5)]
        at = [ctypes.byref(size) for size in sizes]
        good(CUDNN.cudnnGetRNNTempSpaceSizes(None, net, 0, data, at[0], at[1]))
        assert sizes[1].value == 0
        good(CUDNN.cudnnGetRNNTempSpaceSizes(None, net, 1, data, at[2], at[3]))
        good(CUDNN.cudnnGetRNNWeightSpaceSize(None, net, at[4]))
        found.append([said, [sizes[i].value for i in (0, 2, 3, 4)]])
    return found


def persistent():
    """The algorithm for small networks, which PyTorch prefers."""
    return networks("persistent", 3)


def tensor_dims(it):
    kind, count = ctypes.c_int(), ctypes.c_int()
    dims, steps = (ctypes.c_int * 8)(), (ctypes.c_int * 8)()
    good(CUDNN.cudnnGetTensorNdDescriptor(it, 8, ctypes.byref(kind),
                                          ctypes.byref(count), dims, steps))
    return list(dims)[:count.value]


def parameters():
    """Where the weights and biases of a network lie, and their shapes."""
    base, found = 1 << 40, []
    for shape, rows in measured("parameters"):
        net = network(*shape)
        for layer, which, *said in rows:
            at, bias = ctypes.c_void_p(), ctypes.c_void_p()
            matrix, vector = [made(CUDNN.cudnnCreateTensorDescriptor)
                              for _ in range(2)]
            good(CUDNN.cudnnGetRNNWeightParams(
                None, net, layer, ctypes.c_size_t(0), ctypes.c_void_p(base),
                which, matrix, ctypes.byref(at), vector, ctypes.byref(bias)))
            found.append([said, [at.value - base,
                                 bias.value - base if bias.value else None,
                                 tensor_dims(matrix), tensor_dims(vector)]])
            good(CUDNN.cudnnGetRNNWeightParams(
                None, net, layer, ctypes.c_size_t(0), ctypes.c_void_p(base),
                which, matrix, ctypes.byref(at), None, None))
    return found


def normalizations():
    found = []
    for kind, together, mode, dims, said in measured("normalizations"):
        x = made(CUDNN.cudnnCreateTensorDescriptor)
        good(CUDNN.cudnnSetTensorNdDescriptor(
            x, kind, 4, (ctypes.c_int * 4)(*dims),
            (ctypes.c_int * 4)(*strides(dims, together))))
        sizes = [ctypes.c_size_t(7) for _ in range(3)]
        at = [ctypes.byref(size) for size in sizes]
        good(CUDNN.cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
            None, mode, 0, x, None, x, None, None, at[0]))
        good(CUDNN.cudnnGetBatchNormalizationBackwardExWorkspaceSize(
            None, mode, 0, x, None, x, None, x, None, None, at[1]))
        good(CUDNN.cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
            None, mode, 0, None, x, at[2]))
        found.append([[*said, 0], [size.value for size in sizes]])
    return found


def losses():
    found = []
    for dims, label, label_lengths, lengths, said in measured("losses"):
        x = made(CUDNN.cudnnCreateTensorDescriptor)
        good(CUDNN.cudnnSetTensorNdDescriptor(
            x, 0, 3, (ctypes.c_int * 3)(*dims),
            (ctypes.c_int * 3)(*strides(dims, False))))
        loss = made(CUDNN.cudnnCreateCTCLossDescriptor)
        good(CUDNN.cudnnSetCTCLossDescriptor_v9(loss, 0, 1, 0, label))
        sizes = [ctypes.c_size_t(7) for _ in range(2)]
        array = ctypes.c_int * dims[1]
        good(CUDNN.cudnnGetCTCLossWorkspaceSize(
            None, x, x, None, array(*label_lengths), array(*lengths), 0, loss,
            ctypes.byref(sizes[0])))
        good(CUDNN.cudnnGetCTCLossWorkspaceSize_v8(None, 0, loss, x, x,
                                                   ctypes.byref(sizes[1])))
        found.append([said, [size.value for size in sizes]])
    return found


def unknown():
    """Plans of which no true answer is known, and none of which runs."""
    rows = [("fwd", "FLOAT", [[8, 32, 9, 9], [32, 32, 3, 3], [8, 32, 9, 9]],
             True, 67, {"TILE_SIZE": 22, "TILEK": 0, "WORKSPACE": 0,
                        "TILE_CGA_M": 1, "TILE_CGA_N": 1}),
            ("wgrad", "HALF", [[8, 32, 9, 9], [32, 32, 1, 1], [8, 32, 9, 9]],
             True, 62, {"WORKSPACE": 2}),
            ("fwd", "HALF", [[8, 32, 9, 9], [32, 32, 1, 1], [8, 32, 9, 9]],
             True, 58, {"WORKSPACE": 2}),
            ("fwd", "HALF", [[8, 32, 9, 9], [32, 32, 1, 1], [8, 32, 9, 9]],
             True, 58, {"WORKSPACE": 0})]
    for row in rows:
        text = text_of(*row).encode()
        plan = made(CUDNN.cudnnBackendCreateDescriptor, PLAN)
        good(attribute(plan, PLAN_JSON, CHAR, len(text), text))
        good(CUDNN.cudnnBackendFinalize(plan))
        workspace(plan)
    return CUDNN.cudnnGetConvolutionForwardWorkspaceSize(None)


def absent():
    """Codes without a cuDNN below."""
    it = ctypes.c_void_p()
    return [CUDNN.cudnnCreate(ctypes.byref(it)),
            CUDNN.cudnnCreate(ctypes.byref(it)),
            CUDNN.cudnnBackendCreateDescriptor(PLAN, ctypes.byref(it)),
            CUDNN.cudnnCreateTensorDescriptor(ctypes.byref(it))]


assert DRIVER.cuInit(0) == 0 and \
    DRIVER.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == 0
print(json.dumps(globals()[sys.argv[1]]()))
