"""CUDA C++ compiled at run time: NVRTC and the driver's functions, called through ctypes.

Both come with torch for CUDA and with the driver; nothing is compiled when treelax is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from pathlib import Path

import torch

from treelax.errors import BackendError

MOST_SHARED_MEMORY = 227 * 1024  # bytes that a block may have
NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
DYNAMIC_SHARED_MEMORY = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@functools.cache
def compiler() -> ctypes.CDLL | None:
    """NVRTC, if there is one for the CUDA of torch."""
    name = f"libnvrtc.so.{(torch.version.cuda or '').partition('.')[0]}"
    packages = Path(torch.__file__).parents[1]
    for place in (name, *map(str, packages.glob(f"nvidia/*/lib/{name}"))):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(place)
    return None


@functools.cache
def driver() -> ctypes.CDLL:
    """The driver; torch on a CUDA device has loaded it."""
    return ctypes.CDLL("libcuda.so.1")


def unavailable() -> str | None:
    """The reason why nothing can be compiled for the current device, or None."""
    if not torch.version.cuda or torch.cuda.get_device_capability()[0] not in (9, 10):
        return "it needs the clusters and the shared memory of Hopper or data-centre Blackwell"
    return None if compiler() else "there is no NVRTC (pip install nvidia-cuda-nvrtc)"


def compiled(source: str, options: list[str]) -> bytes:
    """Machine code."""
    nvrtc = compiler()
    assert nvrtc is not None  # `unavailable` has looked
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"", 0, None, None)
    given = [option.encode() for option in options]
    failed = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    read = "ProgramLog" if failed else "CUBIN"
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{read}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{read}")(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise BackendError(f"NVRTC refuses a kernel, please report it: {text.value.decode()}")
    return text.raw


def checked(status: int, doing: str) -> None:
    """Raise if a call of the driver failed."""
    if status:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(text))
        raise BackendError(f"CUDA error {status} {doing}: {(text.value or b'').decode()}")


class Module:
    """The kernels of a source, a file of ``treelax.ops``, on the current device."""

    def __init__(self, source: str, names: tuple[str, ...], **defined: object) -> None:
        files = Path(__file__).parent
        text = "".join((files / name).read_text() for name in ("device.cuh", source))
        major, minor = torch.cuda.get_device_capability()
        options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
        options += [f"--include-path={files}", *(f"-D{name}={x}" for name, x in defined.items())]
        module, self.context, cuda = ctypes.c_void_p(), ctypes.c_void_p(), driver()
        checked(cuda.cuCtxGetCurrent(ctypes.byref(self.context)), "asking for the context")
        checked(
            cuda.cuModuleLoadData(ctypes.byref(module), compiled(text, options)), "loading kernels"
        )
        self.kernels: dict[str, ctypes.c_void_p] = {}
        for name in names:
            kernel = self.kernels[name] = ctypes.c_void_p()
            status = cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode())
            checked(status, f"looking for {name}")
            most = (DYNAMIC_SHARED_MEMORY, MOST_SHARED_MEMORY)
            checked(cuda.cuFuncSetAttribute(kernel, *most), "asking for shared memory")


def current_stream(device: int) -> int:
    """The current stream's handle; torch's private name for it makes no object."""
    stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(stream(device) if stream else torch.cuda.current_stream(device).cuda_stream)


class Launch:
    """A kernel of a module with everything but its argument, a struct."""

    def __init__(self, module: Module, name: str, blocks: int, threads: int, shared: int) -> None:
        self.context, self.name = module.context, name
        self.call = functools.partial(
            driver().cuLaunchKernel, module.kernels[name], blocks, 1, 1, threads, 1, 1, shared
        )

    def __call__(self, device: int, arguments: bytes) -> None:
        """Launch on the current stream of the device for which the module was made."""
        if device != getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)():
            with torch.cuda.device(device):
                return self(device, arguments)
        given = ctypes.create_string_buffer(arguments)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(given))
        stream = ctypes.c_void_p(current_stream(device))
        status = self.call(stream, pointers, None)
        if status == NO_CONTEXT:  # a thread in which torch has not called CUDA yet
            driver().cuCtxSetCurrent(self.context)
            status = self.call(stream, pointers, None)
        if status:
            checked(status, f"launching {self.name}")
