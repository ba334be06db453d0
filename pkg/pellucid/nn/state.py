"""The state of a module tree by path: saving it, and taking it over with every difference named at once."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from ..autograd import no_grad
from ..autograd.handle import Handle
from ..errors import ArgumentError, FormatError, WeightError
from ..op.arguments import describe
from ..tensors.construct import as_tensor
from ..tensors.tensor import Tensor
from .parameter import Parameter
from .tree import Tree

M = TypeVar("M", bound="Stateful")
# How many differences of one kind an error lists by name.
_LISTED = 20
_EXTRA = "_extra_state"
# Where PyTorch keeps what is an attribute here, and what else it keeps.
_TABLES = {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}
_HOOKS = (
    "_backward_pre_hooks", "_backward_hooks", "_is_full_backward_hook", "_forward_hooks",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What did not match in `Module.load_state_dict`: ``missing_keys`` and ``unexpected_keys``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"_{super().__repr__()}" if any(self) else "<All keys matched successfully>"


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix such as "module." off the names that begin with it, in the dictionary itself.

    Args:
        state_dict: tensors by name.
        prefix: with its dot.

    Source: https://github.com/pytorch/pytorch, torch/nn/modules/utils.py
    """
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    metadata: Any = getattr(state_dict, "_metadata", {})
    for path in list(metadata):
        if path.startswith(prefix) or (path and path == prefix.replace(".", "")):
            metadata[path[len(prefix) :]] = metadata.pop(path)


class _StateHook(NamedTuple):
    when: str  # save, saved, load, loaded
    function: Callable


class Stateful(Tree[M], Generic[M]):
    """What every module knows of saving and loading the state of the modules in and below it."""

    _version: int = 1
    # An empty table stands for all modules without such hooks.
    _state_hooks: dict[int, _StateHook] = {}

    def state_dict(
        self, *, destination: OrderedDict | None = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """All parameters and persistent buffers by path, detached, sharing memory with the module.

        Args:
            destination: a dictionary to add to.
            prefix: put before every name.
            keep_vars: the tensors themselves, not detached.

        Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.state_dict
        """
        out: Any = OrderedDict() if destination is None else destination
        metadata: Any = getattr(out, "_metadata", OrderedDict())
        if isinstance(out, OrderedDict):  # a plain dictionary has no attributes
            vars(out)["_metadata"] = metadata
        known = metadata[prefix[:-1]] = {"version": self._version}
        self._run("save", prefix, keep_vars)
        self._save_to_state_dict(out, prefix, keep_vars)
        for name, m in self._own("module").items():
            if m is not None:
                m.state_dict(destination=out, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._hooked("saved"):
            changed = hook(self, out, prefix, known)
            out = out if changed is None else changed
        return out

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Add what this module has itself."""
        for name, t in (*self._own("parameter").items(), *self._own("buffer").items()):
            if t is not None and name not in self._transient:
                destination[prefix + name] = t if keep_vars else t.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take over values by path.

        Args:
            state_dict: tensors or numpy arrays, as `state_dict` gives them.
            strict: names must be the same on both sides.
            assign: make the given tensors the module's own, instead of copying their values into it.
                Quantized weights, and modules
                built on the device "meta", are always assigned.

        Returns:
            ``(missing_keys, unexpected_keys)``.

        Raises:
            WeightError: names (with ``strict``) or shapes differ; every difference is listed, and nothing was
                changed.

        Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(
                f"load_state_dict: takes a dictionary of tensors by name, not {type(state_dict).__name__}."
            )
        metadata = getattr(state_dict, "_metadata", None) or {}
        given: Any = OrderedDict(state_dict)
        given._metadata = metadata
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        takes: list[tuple] = []

        def visit(m: Stateful, given: dict[str, Any], prefix: str) -> None:
            known = dict(metadata.get(prefix[:-1], {}))
            known |= {"assign_to_params_buffers": assign, "takes": takes}
            m._load_from_state_dict(given, prefix, known, True, missing, unexpected, errors)
            for name, child in m._own("module").items():
                if child is not None:
                    path = f"{prefix}{name}."
                    visit(child, {k: v for k, v in given.items() if k.startswith(path)}, path)

        visit(self, given, "")
        problems = [("misshapen", errors)]
        if strict:
            problems = [("missing", missing), ("unexpected", unexpected), *problems]
        if any(found for _, found in problems):
            parts = [f"{len(found)} {what}: {_listed(found)}" for what, found in problems if found]
            raise WeightError(
                f"load_state_dict of {type(self).__name__}: {'. '.join(parts)}. "
                "Build the module with the sizes of the weights, or give strict=False to ignore missing "
                "and unexpected names."
            )
        for take in takes:
            _take(*take)
        result = IncompatibleKeys(missing, unexpected)
        for m in self.modules():
            m._run("loaded", result)
        return result

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Look for what this module has itself, which is taken over once everything was looked for."""
        lists = (missing_keys, unexpected_keys, error_msgs)
        self._run("load", state_dict, prefix, local_metadata, strict, *lists)
        assign = local_metadata.get("assign_to_params_buffers", False)
        takes = local_metadata.get("takes")
        own = {n: t for kind in ("parameter", "buffer") for n, t in self._own(kind).items() if t is not None}
        own = {n: t for n, t in own.items() if n not in self._transient}
        for name, t in own.items():
            path = prefix + name
            if path not in state_dict:
                missing_keys.append(path)
                continue
            value = state_dict[path]
            if not hasattr(value, "shape"):
                raise WeightError(f"load_state_dict: {path!r} must be a tensor, not {describe(value)}.")
            if tuple(value.shape) != tuple(t.shape):
                error_msgs.append(f"{path}: {tuple(value.shape)} given, {tuple(t.shape)} in the module")
            elif takes is None:
                _take(self, name, t, value, assign)
            else:
                takes.append((self, name, t, value, assign))
        if type(self).set_extra_state is not Stateful.set_extra_state:
            own[_EXTRA] = None  # type: ignore[assignment]
            if prefix + _EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + _EXTRA])
            else:
                missing_keys.append(prefix + _EXTRA)
        below = self._own("module")
        for path in state_dict:
            first, dot, _ = path[len(prefix) :].partition(".")
            if path.startswith(prefix) and first not in (below if dot else own):
                unexpected_keys.append(path)

    def get_extra_state(self) -> Any:
        """What a subclass saves besides tensors. A subclass that has it defines `set_extra_state`, too."""
        raise NotImplementedError(f"{type(self).__name__}: define get_extra_state() to save extra state.")

    def set_extra_state(self, state: Any) -> None:
        """Take over what `get_extra_state` gave."""
        raise NotImplementedError(f"{type(self).__name__}: define set_extra_state() to load extra state.")

    # Pickles

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of a pickled module, also of one that PyTorch pickled.

        Raises:
            FormatError: the other module had hooks, which are called in PyTorch's own way.
        """
        own = {"_kinds": {}, "training": True, **state}
        for kind, table in _TABLES.items():
            for name, value in own.pop(table, {}).items():
                own["_kinds"][name], own[name] = kind, value
        if getattr(self, "_settings", None) == () and "_settings" not in own:
            of_module = {"training", "reduction", "_kinds", "_non_persistent_buffers_set", *own["_kinds"]}
            own["_settings"] = tuple(name for name in own if name not in of_module and name not in _HOOKS)
        for table in _HOOKS:
            if own.pop(table, None):
                raise FormatError(
                    f"{type(self).__name__}: it was saved with {table[1:]}. Remove hooks before saving it."
                )
        if transient := own.pop("_non_persistent_buffers_set", None):
            own["_transient"] = frozenset(transient)
        self.__dict__.update(own)

    # Hooks

    def _hooked(self, when: str) -> list[Callable]:
        return [hook.function for hook in self._state_hooks.values() if hook.when == when]

    def _run(self, when: str, *args: Any) -> None:
        for hook in self._hooked(when):
            hook(self, *args)

    def _on(self, when: str, hook: Callable) -> Handle:
        if "_state_hooks" not in self.__dict__:
            self.__dict__["_state_hooks"] = OrderedDict()
        return Handle(self._state_hooks, _StateHook(when, hook))

    def register_state_dict_pre_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` looks at the module."""
        return self._on("save", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when all of the module is saved."""
        return self._on("saved", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, errors)``
        before the module looks for its values; it may change the dictionary, which is a copy."""
        return self._on("load", hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> Handle:
        return self._on("load", hook if with_module else lambda module, *args: hook(*args))

    def register_load_state_dict_post_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, incompatible_keys)`` when everything was taken over."""
        return self._on("loaded", hook)


def pytorch_state(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a module as PyTorch pickles them; see `Stateful.__setstate__`."""
    own, kinds = dict(state), state["_kinds"]
    del own["_kinds"]
    out: dict[str, Any] = {"training": own.pop("training")}
    for kind, table in _TABLES.items():
        out[table] = {name: own.pop(name) for name, k in kinds.items() if k == kind}
    out["_non_persistent_buffers_set"] = set(own.pop("_transient", ()))
    hooks: dict[str, Any] = {name: OrderedDict() for name in _HOOKS}
    return out | hooks | {"_is_full_backward_hook": None} | own


def _listed(found: list[str]) -> str:
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + more


@no_grad
def _take(m: Tree, name: str, t: Tensor, value: Any, assign: bool) -> None:
    if not isinstance(value, Tensor):
        value = as_tensor(value, device="cpu")
    quantized = value.dtype.is_quantized or t.dtype.is_quantized
    if not (assign or quantized or t.device.type == "meta"):
        # Converted where it is: its own dtype may not exist on the module's device.
        t.detach().copy_(value.to(t.dtype))
        return
    if not assign and t.device.type != "meta":
        value = value.to(t.device)
    if isinstance(t, Parameter):
        # The same object, so that weights that are tied stay tied and optimizers keep what they hold.
        if not value.dtype.is_floating_point:
            t.requires_grad_(False)
        t.data = value.detach()
    else:
        m.__dict__[name] = value.detach()


__all__ = ["IncompatibleKeys", "Stateful", "consume_prefix_in_state_dict_if_present"]
