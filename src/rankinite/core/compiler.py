"""How kernels are compiled: each one that Python calls becomes one piece of machine code.

By itself numba optimises every function that a kernel calls, emits machine code for it with a
wrapper for calls from Python, links it into its caller, and optimises it there once more: a
function that is nested five deep is optimised and emitted five times. Here a kernel has two
dispatchers. What Python calls is an `EntryDispatcher`: it is linked with all that it calls,
optimised once, emitted once, and kept on disk. What kernels call is a `LinkedDispatcher`, which
ends with LLVM's code.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba.core.event as events
from llvmlite import binding as llvm
from numba.core import compiler, sigutils, targetconfig, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher
from numba.core.types.functions import BaseFunction

from rankinite.core.cached import cached_property
from rankinite.core.compilation import compilations
from rankinite.core.kernel_cache import cache_of


class _LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM's code of a kernel, which others are linked with; it never becomes machine code."""

    def finalize(self) -> None:
        """Leave linking and optimisation to the kernel that is called from Python."""
        self._finalized = True


class _EntryLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that Python calls, with everything that it calls in turn."""

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        """Link, optimise and emit."""
        self._linking_libraries = _with_callees(self._linking_libraries)
        super().finalize()

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code without LLVM's, which only linking into others would need."""
        name, kind, (machine_code, _) = super().serialize_using_object_code()
        # Numba looks up in LLVM's code which names there are.
        names = (function.name for function in self.get_defined_functions())
        stubs = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
        return name, kind, (machine_code, llvm.parse_assembly(stubs).as_bitcode())


def _with_callees(libraries: list[Any]) -> list[Any]:
    """Return libraries and those that they call, each once."""
    reached: dict[Any, None] = {}
    waiting = list(libraries)
    while waiting:
        library = waiting.pop(0)
        if library not in reached:
            reached[library] = None
            # Others have linked what they call into themselves.
            if isinstance(library, _LinkedLibrary):
                waiting.extend(library._linking_libraries)
    return list(reached)


class _Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's flags, whose values are put together once, and not for every comparison."""

    __slots__ = ("_together",)

    def values(self) -> dict[str, Any]:
        """Return the values of all flags."""
        before, together = getattr(self, "_together", (None, {}))
        if before != self._values:
            together = super().values()
            self._together = dict(self._values), together
        return together


class _LibraryCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Compiles a function into a library of a given class."""

    library_class: type[JITCodeLibrary]
    # Whether there is to be code that Python can call.
    for_python: bool

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags = _Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cfunc_wrapper = True
        flags.no_cpython_wrapper = not self.for_python
        flags.no_compile = not self.for_python
        target = self.targetdescr.target_context
        library = self.library_class(target.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        result = compiler.compile_extra(
            self.targetdescr.typing_context,
            target,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )
        if result.typing_error is not None:
            raise result.typing_error
        return result


class _LinkedCompiler(_LibraryCompiler):
    library_class, for_python = _LinkedLibrary, False


class _EntryCompiler(_LibraryCompiler):
    library_class, for_python = _EntryLibrary, True


class LinkedDispatcher(CPUDispatcher):  # type: ignore[misc]
    """What kernels see of a kernel that they call: its code is linked with theirs."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options)
        self._compiler: Any = _LinkedCompiler(
            function, self.targetdescr, options, {}, compiler.Compiler
        )

    def compile(self, sig: Any) -> None:
        """Compile to LLVM's code for types of arguments."""
        args, return_type = sigutils.normalize_signature(sig)
        with global_compiler_lock, self._compiling_counter:
            if tuple(args) in self.overloads:
                return
            details = {"dispatcher": self, "args": args, "return_type": return_type}
            with events.trigger_event("numba:compile", data=details):
                result = self._compiler.compile(args, return_type)
            library = result.library
            self.targetctx.insert_user_function(library, result.fndesc, [library])
            self.overloads[tuple(args)] = result

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a call is typed; a number that stands in the source is any number.

        Numba would compile a function again for every such number.
        """
        return super().get_call_template(tuple(map(_any_number, args)), kws)

    def get_overload(self, sig: Any) -> Any:
        """Return the key of the code in numba's table of functions."""
        self.compile(sig)
        args, _ = sigutils.normalize_signature(sig)
        return self.overloads[tuple(args)].library


def _any_number(argument: Any) -> Any:
    unliteral: Any = types.unliteral  # type: ignore[attr-defined]
    return unliteral(argument) if isinstance(argument, types.IntegerLiteral) else argument


class EntryDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel as Python calls it.

    Parameters
    ----------
    function
        The function to compile.
    options
        Options of numba's decorators.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options)
        self._compiler: Any = _EntryCompiler(
            function, self.targetdescr, options, {}, compiler.Compiler
        )

    def compile(self, sig: Any) -> Any:
        """Compile for types of arguments, or load what was compiled before."""
        with _without_garbage_collection(), _remembered_calls():
            return super().compile(sig)

    @cached_property
    def linked(self) -> LinkedDispatcher:
        """What kernels that call this one see."""
        return LinkedDispatcher(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        # Numba asks for it when one kernel calls another.
        return types.Dispatcher(self.linked)


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any]) -> EntryDispatcher:
    """Return the dispatcher of a kernel, whose machine code is kept on disk if that is possible."""
    dispatcher = EntryDispatcher(function, options)
    # Instead of numba's ``cache=True``, which knows only the file that the kernel is in.
    dispatcher._cache = cache_of(function) or dispatcher._cache
    return dispatcher


class _CompilationListener(events.Listener):  # type: ignore[misc]
    """Passes on to `compilations` what numba begins and ends to compile."""

    def on_start(self, event: Any) -> None:
        compilations.on_start(_function_of(event))

    def on_end(self, event: Any) -> None:
        compilations.on_end(_function_of(event))


def _function_of(event: Any) -> Any:
    return getattr((event.data or {}).get("dispatcher"), "py_func", None)


events.register("numba:compile", _CompilationListener())


def _forget_lock() -> None:
    """Let the child of a fork compile, where the lock may belong to a thread of its parent."""
    global_compiler_lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


_call_types: dict[Any, tuple[Any, Any]] = {}


@contextmanager
def _remembered_calls() -> Iterator[None]:
    """Remember how calls of numba's own functions are typed, such as additions of two integers.

    Numba tries a dozen rules for each, every time; it saves a seventh of the time to compile.
    """
    original = BaseFunction.get_call_type

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        flags = targetconfig.ConfigStack.top_or_none()
        key = self, context, args, tuple(kws.items()), flags
        remembered = _call_types.get(key)
        if remembered is None:
            signature = original(self, context, args, kws)
            if signature is not None:
                _call_types[key] = signature, self._impl_keys[signature.args]
            return signature
        signature, self._impl_keys[signature.args] = remembered
        return signature

    # Under the lock, so that nobody else compiles meanwhile.
    with global_compiler_lock:
        BaseFunction.get_call_type = get_call_type  # type: ignore[method-assign]
        try:
            yield
        finally:
            BaseFunction.get_call_type = original  # type: ignore[method-assign]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keep Python from looking for garbage: compilers make millions of objects that are none.

    It saves a sixth of the time to compile.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
