"""Calls the stand-ins of real/dry/ as a program on CUDA does, one scene a
process: driver.py SCENE. Each scene prints what it found as JSON.

The libraries come from FRAG_BUILD_DIR. The caller sets FRAGSIM_DRY_GPU and the
other variables of real/dry/driver/dry_driver.c.
"""
import ctypes
import json
import os
import resource
import struct
import sys

FOLDER = os.path.join(os.environ["FRAG_BUILD_DIR"], "dry")
MIB = 1 << 20
OFFSETS = {12: 388, 13: 384}  # of multiProcessorCount in cudaDeviceProp
TO_DEVICE, TO_HOST = 1, 2


def load(name, release=""):
    return ctypes.CDLL(os.path.join(FOLDER, release, name), ctypes.RTLD_GLOBAL)


DRIVER = load("libcuda.so.1")
RUNTIME = load("libcudart.so.13", "13")


def number(function, *arguments, kind=ctypes.c_int):
    """Calls a function that writes a number through its first argument."""
    value = kind()
    code = function(ctypes.byref(value), *arguments)
    assert code == 0, (function, code)
    return value.value


def allocate(size):
    """The address, or None if the device is full."""
    at = ctypes.c_uint64()
    code = RUNTIME.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size))
    assert code in (0, 2), code
    return at.value if code == 0 else None


def spaces():
    """Bytes of workspaces of cuSOLVER and of work areas of cuFFT: lists of what
    was asked and what the stand-in said."""
    solver, fft = load("libcusolver.so.12", "13"), load("libcufft.so.12", "13")
    word, long = ctypes.c_int, ctypes.c_longlong
    assert allocate(MIB)
    found = []
    for name, sizes in (("getrf", (32, 256, 1024)), ("gesvdj", (64, 512, 700))):
        for n in sizes:
            few = (None, 0, 0) if name == "gesvdj" else (None,)
            more = (None, n, None, None, n, None, n) if name == "gesvdj" \
                else (None, n)
            said = word()
            code = getattr(solver, "cusolverDnS%s_bufferSize" % name)(
                *few, n, n, *more, ctypes.byref(said), None)
            found.append([name, n, 4 * said.value, code])
    for n in (64, 129, 1000, 8192):
        bytes_, host = ctypes.c_size_t(), ctypes.c_size_t(9)
        code = solver.cusolverDnXpotrf_bufferSize(
            None, None, 0, long(n), 0, None, long(n), 0, ctypes.byref(bytes_),
            ctypes.byref(host))
        found.append(["potrf", n, bytes_.value, code + host.value])
    real, numbers = (0, 4), (4, 4)  # cudaDataType of input and output
    for shape, batch, kinds in (((1024,), 64, real), ((1536,), 64, real),
                                ((65536,), 3, numbers), ((48000,), 64, real),
                                ((256, 256), 4, real), ((10007,), 64, numbers)):
        size, plan = ctypes.c_size_t(), word()
        assert fft.cufftCreate(ctypes.byref(plan)) == 0
        code = fft.cufftXtMakePlanMany(
            plan, len(shape), (long * len(shape))(*shape), None, long(1), long(1),
            kinds[0], None, long(1), long(1), kinds[1], long(batch),
            ctypes.byref(size), 4)
        found.append(["fft", [*shape, batch], size.value, code])
    return found


def kernels():
    """The code that runs for a function of a library with code for these
    capabilities, or the error: PTX is kind 1, and A means that GPU only."""
    found, kept = {}, []
    for name in ("75 80 86 90 120", "75 80", "80 90A", "75P", "80 120P", ""):
        parts = b""
        for one in name.split():
            parts += struct.pack("<HHIQIIIIQQ", 1 if "P" in one else 2, 0x101, 64,
                                 8, 0, 0, 0, int(one.strip("AP")), 0,
                                 0x100000 * ("A" in one)).ljust(64, b"\0")
            parts += b"\0" * 8
        code = ctypes.create_string_buffer(
            struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(parts)) + parts)
        image = (ctypes.c_void_p * 3)(0x1466243b1, ctypes.addressof(code), None)
        register = RUNTIME.__getattr__("__cudaRegisterFatBinary")
        register.restype = ctypes.c_void_p
        function = ctypes.create_string_buffer(1)
        RUNTIME.__getattr__("__cudaRegisterFunction")(
            ctypes.c_void_p(register(image)), function)
        attributes = (ctypes.c_int * 64)()
        error = RUNTIME.cudaFuncGetAttributes(attributes, function)
        launched = RUNTIME.cudaLaunchKernelExC(
            ctypes.create_string_buffer(56), function, None)
        assert launched == error, (launched, error)
        found[name] = error or attributes[8:10]
        kept.extend((code, image, function))
    return found


def room():
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert RUNTIME.cudaMemGetInfo(ctypes.byref(left), ctypes.byref(total)) == 0
    return left.value, total.value


def taken():
    """MiB that libraries, a stream and the executable of a graph take, one by one."""
    blas, solver = load("libcublas.so.13", "13"), load("libcusolver.so.12", "13")
    handle, stream, graph, made = (ctypes.c_void_p() for _ in range(4))
    found = [room()[0]]

    def step(code):
        assert code == 0, code
        found.append(room()[0])

    step(blas.cublasCreate_v2(ctypes.byref(handle)))
    step(blas.cublasCreate_v2(ctypes.byref(handle)))
    step(solver.cusolverDnCreate(ctypes.byref(handle)))
    for _ in range(2):
        step(RUNTIME.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
    step(RUNTIME.cudaStreamBeginCapture(stream, 2))
    for _ in range(1000):
        blas.cublasSgemm_v2()
    step(RUNTIME.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    step(RUNTIME.cudaGraphInstantiate(ctypes.byref(made), graph,
                                      ctypes.c_ulonglong(0)))
    step(RUNTIME.cudaGraphExecDestroy(made))
    return [(a - b) / MIB for a, b in zip(found, found[1:])]


def copy(to, source, size, kind):
    assert RUNTIME.cudaMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source),
                              ctypes.c_size_t(size), kind) == 0


def properties():
    """What the runtimes of CUDA 12 and 13 say of device 0."""
    found = {}
    for release, name in ((12, "cudaGetDeviceProperties_v2"),
                          (13, "cudaGetDeviceProperties")):
        text = ctypes.create_string_buffer(2048)
        runtime = load(f"libcudart.so.{release}", str(release))
        assert getattr(runtime, name)(text, 0) == 0
        found[release] = {
            "name": text.value.decode(),
            "total": int.from_bytes(text.raw[288:296], "little"),
            "major": int.from_bytes(text.raw[360:364], "little"),
            "minor": int.from_bytes(text.raw[364:368], "little"),
            "processors": int.from_bytes(
                text.raw[OFFSETS[release]:OFFSETS[release] + 4], "little")}
    found["shared"] = number(RUNTIME.cudaDeviceGetAttribute, 97, 0)
    found["code"] = binary_version()
    found["blocks"] = [
        number(RUNTIME.cudaOccupancyMaxActiveBlocksPerMultiprocessor, None, threads,
               ctypes.c_size_t(kib << 10))
        for threads, kib in ((256, 0), (16, 0), (256, 32), (1024, 0))]
    found["left"] = room()[0]
    return found


def binary_version():
    """Of cudaFuncAttributes: after three sizes and three numbers."""
    text = ctypes.create_string_buffer(256)
    assert RUNTIME.cudaFuncGetAttributes(text, None) == 0
    return int.from_bytes(text.raw[36:40], "little")


def full():
    """Fills the device by 20 MiB and then by 2 MiB."""
    total, before = 0, room()[0]
    for size in (20 * MIB, 2 * MIB):
        while allocate(size):
            total += size
    return {"before": before, "taken": total, "left": room()[0]}


def missing():
    """A function that a stand-in lacks, a size that it does not know, an
    attribute that the table lacks, and a fixed answer."""
    sparse, solver = load("libcusparseLt.so.0"), load("libcusolver.so.12", "13")
    size = ctypes.c_int(7)
    codes = [sparse.cusparseLtInit(None) for _ in range(3)]
    codes.append(solver.cusolverDnSpotrf_bufferSize(
        None, 0, 64, None, 64, ctypes.byref(size)))
    codes.append(RUNTIME.cudaDeviceGetAttribute(ctypes.byref(size), 4711, 0))
    for name in (b"cuNoSuchFunction", b"cuNeverCalled"):
        call = ctypes.CFUNCTYPE(ctypes.c_int)()
        assert RUNTIME.cudaGetDriverEntryPoint(
            name, ctypes.byref(call), ctypes.c_uint64(0), None) == 0
        if b"No" in name:
            codes.append(call())
    assert RUNTIME.cudaEventElapsedTime(ctypes.byref(ctypes.c_float()), None,
                                        None) == 0
    return {"codes": codes, "size": size.value}


def by_name(name):
    """The function of the driver that cuGetProcAddress gives for the name, its code
    and its status."""
    at, status = ctypes.c_void_p(7), ctypes.c_int(7)
    code = DRIVER.cuGetProcAddress_v2(name, ctypes.byref(at), 13000,
                                      ctypes.c_uint64(0), ctypes.byref(status))
    return at.value, code, status.value


def looked_up():
    """Addresses by name: of a newer form, of one without, of a function that is
    lacked, and of a name that no driver has; and what the lacked one says."""
    own = [ctypes.cast(function, ctypes.c_void_p).value for function in
           (DRIVER.cuMemAlloc_v2, DRIVER.cuMemCreate)]
    found = [by_name(name) for name in (b"cuMemAlloc", b"cuMemCreate", b"cuSuch",
                                        b"noSuch")]
    many = {by_name(b"cuMany%d" % n)[0] for n in range(400)}
    return [found[0] == (own[0], 0, 0), found[1] == (own[1], 0, 0),
            ctypes.CFUNCTYPE(ctypes.c_int)(found[2][0])(), found[2][1:], found[3],
            len(many)]


def current():
    """The device that the driver says is current: without a context, and with that
    of each device."""
    device, codes = ctypes.c_int(7), []
    codes.append(DRIVER.cuCtxGetDevice(ctypes.byref(device)))
    for which in range(2):
        assert RUNTIME.cudaSetDevice(which) == 0
        codes.append(number(DRIVER.cuCtxGetDevice))
    return codes


def pointer(at, which):
    """One attribute from the driver: a number, or None for an error."""
    value = ctypes.c_uint64()
    code = DRIVER.cuPointerGetAttribute(ctypes.byref(value), which,
                                        ctypes.c_uint64(at))
    return None if code else value.value


def pointers():
    """What driver and runtime say of memory of the second device, pinned memory and
    other memory: type, address for a device, for the host, device, start and size,
    with addresses from the start; and the type and the device of the runtime."""
    assert RUNTIME.cudaSetDevice(1) == 0
    pinned = ctypes.c_uint64()
    assert RUNTIME.cudaHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(MIB), 0) == 0
    found = []
    other = ctypes.create_string_buffer(64)
    for at in (allocate(2 * MIB), pinned.value, ctypes.addressof(other)):
        values = [pointer(at + 8, which) for which in (2, 3, 4, 9, 11, 12)]
        for place in (1, 2, 4):
            if values[place]:
                values[place] -= at
        attributes = (ctypes.c_int * 32)()
        assert RUNTIME.cudaPointerGetAttributes(attributes,
                                                ctypes.c_void_p(at + 8)) == 0
        found.append(values + list(attributes[:2]))
    names = (ctypes.c_int * 2)(2, 9)
    values = [ctypes.c_int(7), ctypes.c_int(7)]
    outs = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    assert DRIVER.cuPointerGetAttributes(2, names, outs, ctypes.c_uint64(
        ctypes.addressof(other))) == 0
    return found + [[value.value for value in values]]


def mapped():
    """Memory of cuMemMap is copied by cudaMemcpy and cuMemcpyBatchAsync, to pinned
    memory and back, and not outside of what is mapped."""
    prop = (ctypes.c_int * 8)(1, 0, 1, 0)
    at, handle = ctypes.c_uint64(), ctypes.c_uint64()
    size, pinned = ctypes.c_size_t(4 * MIB), ctypes.c_uint64()
    room()
    assert DRIVER.cuMemAddressReserve(ctypes.byref(at), ctypes.c_size_t(8 * MIB),
                                      ctypes.c_size_t(0), ctypes.c_uint64(0),
                                      ctypes.c_uint64(0)) == 0
    assert DRIVER.cuMemCreate(ctypes.byref(handle), size, prop, ctypes.c_uint64(0)) == 0
    assert DRIVER.cuMemMap(at, size, ctypes.c_size_t(0), handle, ctypes.c_uint64(0)) == 0
    access = (ctypes.c_int * 3)(1, 0, 3)
    assert DRIVER.cuMemSetAccess(at, size, access, ctypes.c_size_t(1)) == 0
    assert RUNTIME.cudaHostAlloc(ctypes.byref(pinned), size, 0) == 0
    copy(pinned.value, at.value, size.value, TO_HOST)
    ctypes.memmove(pinned.value, b"\5" * 8, 8)
    copy(at.value, pinned.value, 8, TO_DEVICE)
    to, source = ctypes.c_uint64(pinned.value + 64), ctypes.c_uint64(at.value)
    assert DRIVER.cuMemcpyBatchAsync(
        ctypes.byref(to), ctypes.byref(source), ctypes.byref(ctypes.c_size_t(8)),
        ctypes.c_size_t(1)) == 0
    outside = RUNTIME.cudaMemcpy(ctypes.c_void_p(pinned.value),
                                 ctypes.c_void_p(at.value + 4 * MIB),
                                 ctypes.c_size_t(8), TO_HOST)
    return [list(ctypes.string_at(pinned.value + 64, 8)), outside]


class Handle(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 8)]


def opens(handle):
    """Another process opens memory, twice, and closes it: codes, whether the address
    is the same, its device and range, what the device has in use, and whether it is
    forgotten."""
    first, again = ctypes.c_uint64(), ctypes.c_uint64()
    left = room()[0]
    codes = [RUNTIME.cudaIpcOpenMemHandle(ctypes.byref(at), handle, 1)
             for at in (first, again)]
    found = [codes, first.value == again.value, pointer(first.value, 9),
             pointer(first.value, 12), left - room()[0]]
    for _ in range(3):
        codes.append(RUNTIME.cudaIpcCloseMemHandle(ctypes.c_void_p(first.value)))
    return found + [pointer(first.value, 9)]


def opened():
    """Memory of this process cannot be opened here, but in another process."""
    handle, at = Handle(), ctypes.c_uint64()
    reader, writer = os.pipe()
    start, go = os.pipe()
    if os.fork() == 0:
        os.read(start, 1)
        ctypes.memmove(ctypes.byref(handle), os.read(start, 64), 64)
        os.write(writer, json.dumps(opens(handle)).encode())
        os._exit(0)
    block = allocate(3 * MIB)
    assert RUNTIME.cudaIpcGetMemHandle(ctypes.byref(handle),
                                       ctypes.c_void_p(block + MIB)) == 0
    os.write(go, b"x")
    os.write(go, bytes(handle))
    return [RUNTIME.cudaIpcOpenMemHandle(ctypes.byref(at), handle, 1),
            json.loads(os.read(reader, 1000))]


def management():
    """What NVML says of the second of two devices, beside the runtime."""
    nvml, text = load("libnvidia-ml.so.1"), ctypes.create_string_buffer(96)
    device, again = ctypes.c_size_t(), ctypes.c_size_t()
    assert RUNTIME.cudaSetDevice(1) == 0 and allocate(64 * MIB)
    assert nvml.nvmlInitWithFlags(0) == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetUUID(device, text, 96) == 0
    assert nvml.nvmlDeviceGetHandleByUUID(text, ctypes.byref(again)) == 0
    properties_ = ctypes.create_string_buffer(2048)
    assert RUNTIME.cudaGetDeviceProperties(properties_, 1) == 0
    major, minor, index = ctypes.c_int(), ctypes.c_int(), ctypes.c_uint()
    assert nvml.nvmlDeviceGetCudaComputeCapability(
        device, ctypes.byref(major), ctypes.byref(minor)) == 0
    assert nvml.nvmlDeviceGetIndex(device, ctypes.byref(index)) == 0
    memory, bus = (ctypes.c_uint64 * 5)(), (ctypes.c_char * 68)()
    assert nvml.nvmlDeviceGetMemoryInfo_v2(device, memory) == 0
    assert nvml.nvmlDeviceGetPciInfo_v3(device, bus) == 0
    return {"again": device.value == again.value, "index": index.value,
            "uuid": text.value.decode()[4:].replace("-", "")
            == properties_.raw[256:272].hex(),
            "capability": [major.value, minor.value],
            "memory": list(memory[1:]), "left": room()[0],
            "short": nvml.nvmlDeviceGetUUID(device, text, 40),
            "bus": bus.raw[36:].rstrip(b"\0").decode()}


def untouched():
    """The most memory of the host, in MiB, around 100 GiB on the device and 50
    GiB of pinned memory, copied both ways."""
    size = 50 << 30
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    device = allocate(2 * size)
    pinned = ctypes.c_uint64()
    assert RUNTIME.cudaHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(size),
                                 0) == 0
    copy(device, pinned.value, size, TO_DEVICE)
    copy(pinned.value, device + size, size, TO_HOST)
    byte = ctypes.string_at(pinned.value + size - 1, 1)[0]
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert RUNTIME.cudaFreeHost(ctypes.c_void_p(pinned.value)) == 0
    return {"grown": (after - before) / 1024, "byte": byte}


def devices():
    """Memory of one device is not that of another."""
    count = number(RUNTIME.cudaGetDeviceCount)
    found = []
    for device in range(count):
        assert RUNTIME.cudaSetDevice(device) == 0
        addresses = [allocate((device + 1) * 64 * MIB) for _ in range(2)]
        found.append({"left": room()[0], "addresses": addresses,
                      "owners": [DRIVER.frag_dry_owner(ctypes.c_uint64(at))
                                 for at in addresses]})
    return found


def visible():
    """The code and the count of cudaGetDeviceCount."""
    count = ctypes.c_int(7)
    return [RUNTIME.cudaGetDeviceCount(ctypes.byref(count)), count.value]


def late():
    """Whether an event is complete when it was recorded, and after a wait."""
    event = ctypes.c_void_p()
    room()
    assert RUNTIME.cudaEventCreate(ctypes.byref(event)) == 0
    assert RUNTIME.cudaEventRecord(event, None) == 0
    codes = [RUNTIME.cudaEventQuery(event)]
    assert RUNTIME.cudaDeviceSynchronize() == 0
    return codes + [RUNTIME.cudaEventQuery(event)]


def streams():
    """A stream that waits for another one ends its work too: the codes of an
    event of the first, and of one that was recorded later."""
    handles = [ctypes.c_void_p() for _ in range(2)]
    events = [ctypes.c_void_p() for _ in range(2)]
    room()
    for handle in handles:
        assert RUNTIME.cudaStreamCreate(ctypes.byref(handle)) == 0
    for event in events:
        assert RUNTIME.cudaEventCreate(ctypes.byref(event)) == 0
    assert RUNTIME.cudaEventRecord(events[0], handles[0]) == 0
    assert RUNTIME.cudaStreamWaitEvent(handles[1], events[0], 0) == 0
    assert RUNTIME.cudaEventRecord(events[1], handles[0]) == 0
    codes = [RUNTIME.cudaEventQuery(event) for event in events]
    assert RUNTIME.cudaStreamSynchronize(handles[1]) == 0
    return codes + [RUNTIME.cudaEventQuery(event) for event in events]


def read(at, size):
    text = ctypes.create_string_buffer(b"\xff" * size, size)
    copy(ctypes.addressof(text), at, size, TO_HOST)
    return list(text.raw)


def values():
    """Bytes from the host are true until a kernel; then they are zeros."""
    at = allocate(2 * MIB)
    source = ctypes.create_string_buffer(bytes(range(1, 9)), 8)
    copy(at, ctypes.addressof(source), 8, TO_DEVICE)
    copy(at + 1024, at + 2, 4, 3)
    found = [read(at, 8), read(at + 1024, 4), read(at + 6, 4)]
    launch = RUNTIME.cudaLaunchKernelExC
    assert launch(ctypes.create_string_buffer(56), None, None) == 0
    return found + [read(at, 8)]


def bounded():
    """The most memory of the host, in MiB, for 512 MiB from the host in small parts,
    and the last of them."""
    at = allocate(512 * MIB)
    source = ctypes.create_string_buffer(bytes([7] * (64 << 10)), 64 << 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for part in range(8192):
        copy(at + (part << 16), ctypes.addressof(source), 64 << 10, TO_DEVICE)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"grown": (after - before) / 1024, "last": read(at + (8191 << 16), 4)}


class Unique(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def split_rank(nccl, unique, rank):
    """How many ranks the part of this one of three has, and which it is."""
    comm, part = ctypes.c_void_p(), ctypes.c_void_p()
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 3, unique, rank) == 0
    # Ranks 0 and 2 have one colour, in reversed order; rank 1 has none.
    assert nccl.ncclCommSplit(comm, -1 if rank == 1 else 5, -rank,
                              ctypes.byref(part), None) == 0
    return [number(lambda out, f=f: f(part, out)) for f in
            (nccl.ncclCommCount, nccl.ncclCommUserRank)] if part else None


def in_processes(count, call):
    """What the call with the number of the process returns in each."""
    found = []
    for rank in range(count):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, json.dumps(call(rank)).encode())
            os._exit(0)
        found.append(reader)
    return [json.loads(os.read(reader, 1000)) for reader in found]


def split():
    """Three processes split their communicator."""
    nccl, unique = load("libnccl.so.2"), Unique()
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    return in_processes(3, lambda rank: split_rank(nccl, unique, rank))


def send_rank(nccl, unique, rank):
    """What arrives of bytes that are known, and not if a kernel may have changed
    them; and what the rank holds of the device after each step, in MiB."""
    comm, held = ctypes.c_void_p(), []
    before = room()[0]

    def hold():
        held.append((before - room()[0]) // MIB)

    assert nccl.ncclCommInitRank(ctypes.byref(comm), 3, unique, rank) == 0
    hold()
    at = allocate(2 * MIB)
    before -= 2 * MIB  # which is not NCCL's
    places = [ctypes.c_void_p(at + 512 * i) for i in range(4)]
    source = ctypes.create_string_buffer(bytes([7 + rank, 0, 0, 0]), 4)
    count = ctypes.c_size_t(1)
    copy(at, ctypes.addressof(source), 4, TO_DEVICE)
    assert nccl.ncclAllGather(places[0], places[1], count, 2, comm, None) == 0
    hold()
    assert nccl.ncclSend(places[0], count, 2, (rank + 1) % 3, comm, None) == 0
    hold()
    assert nccl.ncclRecv(places[2], count, 2, (rank + 2) % 3, comm, None) == 0
    hold()
    found = [read(at + 512, 12), read(at + 1024, 4)]
    assert nccl.ncclBroadcast(places[0], places[3], count, 2, 1, comm, None) == 0
    hold()
    found.append(read(at + 1536, 4))
    assert nccl.ncclAllReduce(places[0], places[0], count, 2, 0, comm, None) == 0
    assert nccl.ncclBroadcast(places[0], places[3], count, 2, 1, comm, None) == 0
    return found + [read(at + 1536, 4), held, notes()]


def notes():
    """The notes of this process."""
    path = os.path.join(os.environ["FRAG_BUILD_DIR"], "notes-%d" % os.getpid())
    assert load("libcuda.so.1").frag_dry_notes_write(path.encode()) == 0
    with open(path, encoding="utf-8") as file:
        text = file.read()
    os.remove(path)
    return text


def sent():
    """Three processes send each other bytes."""
    nccl, unique = load("libnccl.so.2"), Unique()
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    return in_processes(3, lambda rank: send_rank(nccl, unique, rank))


def places():
    """Addresses, in MiB from the first segment of 20 MiB."""
    sizes = [20, 2, 16, 16, 48]
    found = [allocate(size * MIB) for size in sizes]
    return [(at - found[0]) // MIB for at in found]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
