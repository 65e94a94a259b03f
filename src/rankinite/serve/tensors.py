"""The Open Inference Protocol (KServe, version 2): tensors as JSON, or as bytes behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct
from numpy.typing import NDArray

from rankinite.core import __version__
from rankinite.core.types import Floats, Floats32
from rankinite.serve.batches import (
    Batch,
    RequestError,
    Value,
    bad_request,
    needs_base_scores,
    score,
    shortened,
)
from rankinite.serve.limits import Limits
from rankinite.serve.queries import ABSENT, ENCODER, decoded, numbers
from rankinite.serve.repository import Repository, Served, Slot

PLATFORM = "rankinite"
# The length of the JSON, if bytes of tensors follow it.
LENGTH_HEADER = "inference-header-content-length"
# Names of tensors: the whole matrix, the query of each document, and scores of another model.
FEATURES, QID, BASE_SCORES, SCORES = "features", "qid", "base_scores", "scores"
BYTES = "BYTES"
TYPES = {
    "BOOL": "?",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
# A larger product of dimensions is of no request.
MOST_VALUES = 1 << 40

Parameters = dict[str, Any]
DATA_SCHEMA = {
    "type": "array",
    "description": "Numbers row by row, flat or nested. null is missing.",
}


class InputTensor(Struct):
    """A tensor of a request."""

    name: str
    shape: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=1, max_length=2)]
    datatype: Annotated[str, Meta(extra_json_schema={"enum": [*TYPES, BYTES]})]
    data: Annotated[Raw, Meta(extra_json_schema=DATA_SCHEMA)] = msgspec.field(default_factory=Raw)
    parameters: Parameters = {}


class RequestedOutput(Struct):
    """A tensor that is wanted."""

    name: str
    parameters: Parameters = {}


class InferRequest(Struct):
    """Tensors to score: ``features``, or one tensor per feature; perhaps ``qid``."""

    inputs: list[InputTensor]
    id: str | None = None
    outputs: list[RequestedOutput] | None = None
    parameters: Parameters = {}


class OutputTensor(Struct, omit_defaults=True):
    """A tensor of an answer."""

    name: str
    shape: list[int]
    datatype: str
    data: list[float] | None = None
    parameters: Parameters = {}


class InferAnswer(Struct, omit_defaults=True):
    """Scores, one per document, in the order of the request."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str | None = None


REQUESTS = msgspec.json.Decoder(InferRequest)
TEXTS = msgspec.json.Decoder(list[str | int | float | None])
WIDE = msgspec.json.Decoder(list[float])


def answer(
    served: Served, body: bytes, limits: Limits, json_length: int | None
) -> tuple[bytes, int | None, int, int]:
    """Score the tensors of a body.

    Returns the answer, the length of its JSON if bytes follow it, and the numbers of queries and
    documents.

    Parameters
    ----------
    served
        The model.
    body
        The JSON of an `InferRequest`, and perhaps bytes.
    limits
        How many documents there may be.
    json_length
        The length of the JSON; None if it is the whole body.
    """
    header: Any = body
    if json_length is not None:
        if not 0 <= json_length <= len(body):
            raise bad_request(
                f"the header {LENGTH_HEADER} says {json_length:,}, and the body has "
                f"{len(body):,} bytes"
            )
        header = memoryview(body)[:json_length]
    limits.check_brackets(header)
    request: InferRequest = decoded(REQUESTS, header)
    inputs = _inputs(request, body, len(body) if json_length is None else json_length, limits)
    order, sizes = _queries(inputs)
    batch = _batch(served, inputs, sizes)
    if order is not None:
        batch = _arranged(batch, order)
    scores = score(served.ranker, batch)
    if order is not None:
        scores[order] = scores.copy()
    result, binary = _result(served, request, scores)
    text = ENCODER.encode(result)
    if binary is None:
        return text, None, len(sizes), len(scores)
    return text + binary, len(text), len(sizes), len(scores)


class Tensor:
    """A tensor of a request, whose values are read when they are asked for.

    Parameters
    ----------
    tensor
        What the JSON says of it.
    content
        Its bytes; None if its values are in the JSON.
    """

    def __init__(self, tensor: InputTensor, content: memoryview | None) -> None:
        self.name = tensor.name
        self.shape = tensor.shape
        self.datatype = tensor.datatype
        self.n = math.prod(tensor.shape)
        self._data = tensor.data
        self._content = content

    @property
    def is_column(self) -> bool:
        """Whether it has one value per document."""
        return len(self.shape) == 1 or self.shape[1] == 1

    def matrix(self) -> Floats32:
        """Return its numbers as a matrix."""
        width = self.shape[1] if len(self.shape) == 2 else 1
        if self.datatype == BYTES:
            raise bad_request(f"the input {shortened(self.name)} is BYTES; expected numbers")
        if self._content is not None:
            array = np.frombuffer(self._content, TYPES[self.datatype])
            with np.errstate(over="ignore"):
                return array.astype(np.float32).reshape(-1, width)
        X = numbers(memoryview(self._data), width)
        if X is None and len(self.shape) == 1:
            X = numbers(memoryview(self._data), self.n)
        if X is None or X.size != self.n:
            raise bad_request(
                f"the data of the input {shortened(self.name)} are not {self.n:,} numbers of "
                f"shape {self.shape}; expected numbers, or null for missing"
            )
        return X.reshape(-1, width)

    def wide(self) -> Floats:
        """Return its numbers with all their digits."""
        if self.datatype == BYTES:
            raise bad_request(f"the input {shortened(self.name)} is BYTES; expected numbers")
        if self._content is not None:
            return np.frombuffer(self._content, TYPES[self.datatype]).astype(np.float64)
        values = np.array(self._decoded(WIDE), np.float64)
        self._check_length(len(values))
        return values

    def values(self) -> Sequence[Value]:
        """Return its values, texts or numbers, as a list."""
        if self._content is None:
            listed: list[Value] = self._decoded(TEXTS)
            self._check_length(len(listed))
            return listed
        if self.datatype != BYTES:
            numbers_: list[Value] = np.frombuffer(self._content, TYPES[self.datatype]).tolist()
            return numbers_
        return _texts(self.name, self._content, self.n)

    def _decoded(self, decoder: Any) -> Any:
        try:
            return decoded(decoder, memoryview(self._data))
        except RequestError as problem:
            raise bad_request(f"the data of the input {shortened(self.name)}: {problem}") from None

    def _check_length(self, n: int) -> None:
        if n != self.n:
            raise bad_request(
                f"the input {shortened(self.name)} has {n:,} values; its shape {self.shape} says "
                f"{self.n:,}"
            )


def _texts(name: str, content: memoryview, n: int) -> list[Value]:
    """Return texts, each of which has its length in four bytes before it."""
    texts: list[Value] = []
    p = 0
    while p < len(content) and len(texts) < n:
        length = int.from_bytes(content[p : p + 4], "little")
        p += 4 + length
        try:
            texts.append(str(content[p - length : p], "utf-8"))
        except UnicodeDecodeError:
            raise bad_request(f"the input {shortened(name)} has a text that is not UTF-8") from None
    if p != len(content) or len(texts) != n:
        raise bad_request(
            f"the bytes of the input {shortened(name)} are not {n:,} texts, each with its length "
            "in four bytes before it"
        )
    return texts


def _inputs(request: InferRequest, body: bytes, begin: int, limits: Limits) -> dict[str, Tensor]:
    """Return the tensors of a request by name, with their bytes."""
    tensors: dict[str, Tensor] = {}
    for tensor in request.inputs:
        name = shortened(tensor.name)
        if tensor.name in tensors:
            raise bad_request(f"the input {name} is there twice; expected once")
        limits.check_documents(tensor.shape[0])
        if math.prod(tensor.shape) > MOST_VALUES:
            raise bad_request(f"the input {name} has the shape {tensor.shape}, which is too large")
        if tensor.datatype not in TYPES and tensor.datatype != BYTES:
            raise bad_request(
                f"the input {name} has the datatype {shortened(tensor.datatype)}; expected "
                f"{', '.join([*TYPES, BYTES])}"
            )
        content = None
        size = tensor.parameters.get("binary_data_size")
        if size is not None:
            content = _content(tensor, size, memoryview(body)[begin:])
            begin += len(content)
        elif tensor.data == ABSENT:
            raise bad_request(f"the input {name} has neither data nor binary_data_size")
        tensors[tensor.name] = Tensor(tensor, content)
    if begin != len(body):
        raise bad_request(
            f"{len(body) - begin:,} bytes follow the last input; expected as many as "
            "binary_data_size of the inputs says"
        )
    return tensors


def _content(tensor: InputTensor, size: Any, rest: memoryview) -> memoryview:
    name = shortened(tensor.name)
    if type(size) is not int or not 0 <= size <= len(rest):
        raise bad_request(
            f"binary_data_size of the input {name} is {shortened(str(size))}, and {len(rest):,} "
            "bytes follow"
        )
    if tensor.data != ABSENT:
        raise bad_request(f"the input {name} has both data and binary_data_size")
    if tensor.datatype != BYTES:
        expected = math.prod(tensor.shape) * np.dtype(TYPES[tensor.datatype]).itemsize
        if size != expected:
            raise bad_request(
                f"binary_data_size of the input {name} is {size:,}; its shape and datatype take "
                f"{expected:,} bytes"
            )
    return rest[:size]


def _queries(inputs: dict[str, Tensor]) -> tuple[NDArray[np.int64] | None, list[int]]:
    """Return the order that brings the documents of each query together, and the queries' sizes.

    The order is None if they are together already.
    """
    if not inputs:
        raise bad_request("there are no inputs; expected 'features', or one input per feature")
    n_docs = next(iter(inputs.values())).shape[0]
    for tensor in inputs.values():
        if tensor.shape[0] != n_docs:
            raise bad_request(
                f"the input {shortened(tensor.name)} has {tensor.shape[0]:,} documents, and others "
                f"have {n_docs:,}"
            )
    if QID not in inputs:
        return None, [n_docs]
    qid = inputs[QID]
    if not qid.is_column:
        raise bad_request(f"the input 'qid' has the shape {qid.shape}; expected one per document")
    numbers_of: dict[Any, int] = {}
    query = np.array([numbers_of.setdefault(v, len(numbers_of)) for v in qid.values()], np.int64)
    sizes = np.bincount(query, minlength=len(numbers_of)).tolist()
    order = np.argsort(query, kind="stable")
    return (None if (np.diff(query) >= 0).all() else order), sizes


def _batch(served: Served, inputs: dict[str, Tensor], sizes: list[int]) -> Batch:
    columns = served.columns
    base_scores = None
    if BASE_SCORES in inputs and BASE_SCORES not in columns.places:
        base_scores = inputs[BASE_SCORES].wide()
        if len(base_scores) != sum(sizes):
            raise bad_request("the input 'base_scores' has not one score per document")
    beside = {QID} if base_scores is None else {QID, BASE_SCORES}
    named = {name: tensor for name, tensor in inputs.items() if name not in beside}
    if FEATURES in named and (FEATURES not in columns.places or not named[FEATURES].is_column):
        tensor = named.pop(FEATURES)
        if named:
            raise bad_request(
                f"there is the input {shortened(next(iter(named)))} beside 'features'; expected "
                "'features', or one input per feature"
            )
        if len(tensor.shape) != 2 or tensor.shape[1] != len(columns):
            raise bad_request(
                f"the input 'features' has the shape {tensor.shape}; expected "
                f"[{tensor.shape[0]}, {len(columns)}]: a row per document, a column per feature"
            )
        if tensor.datatype == BYTES:
            raise bad_request("the input 'features' is BYTES; give categories as inputs by name")
        return Batch(tensor.matrix(), sizes, base_scores)
    if not named:
        raise bad_request("there are no features; expected 'features', or one input per feature")
    X = np.full((sum(sizes), len(columns)), np.nan, np.float32)
    for name, tensor in named.items():
        place = columns.place(name)
        if not tensor.is_column:
            raise bad_request(
                f"the input {shortened(name)} has the shape {tensor.shape}; expected one value per "
                "document"
            )
        X[:, place] = _column(served, tensor, place)
    return Batch(X, sizes, base_scores)


def _column(served: Served, tensor: Tensor, place: int) -> NDArray[np.float32]:
    if tensor.datatype != BYTES:
        return tensor.matrix()[:, 0]
    codes = served.columns.codes.get(place)
    if codes is None:
        raise bad_request(
            f"the input {shortened(tensor.name)} is BYTES, and this feature has numbers"
        )
    return np.array([codes.get(str(text), np.nan) for text in tensor.values()], np.float32)


def _arranged(batch: Batch, order: NDArray[np.int64]) -> Batch:
    base = batch.base_scores
    return Batch(batch.X[order], batch.sizes, None if base is None else base[order])


def _result(
    served: Served, request: InferRequest, scores: Floats
) -> tuple[InferAnswer, bytes | None]:
    is_binary = request.parameters.get("binary_data_output") is True
    for output in request.outputs or []:
        if output.name != SCORES:
            raise bad_request(f"there is no output {shortened(output.name)}; expected 'scores'")
        is_binary = output.parameters.get("binary_data", is_binary) is True
    tensor = OutputTensor(SCORES, [len(scores)], "FP64")
    binary = None
    if is_binary:
        binary = scores.astype("<f8").tobytes()
        tensor.parameters = {"binary_data_size": len(binary)}
    else:
        tensor.data = scores.tolist()
    return InferAnswer(served.name, served.version, [tensor], request.id), binary


# What the service and its models are


def server_metadata() -> dict[str, Any]:
    """Return what the protocol wants to know of a server."""
    extensions = ["binary_tensor_data", "model_repository"]
    return {"name": "rankinite", "version": __version__, "extensions": extensions}


def model_metadata(repository: Repository, slot: Slot, *, versions: bool) -> dict[str, Any]:
    """Return what the protocol wants to know of a model."""
    served = slot.served
    inputs: list[dict[str, Any]] = [
        {"name": FEATURES, "datatype": "FP32", "shape": [-1, len(served.columns)]}
    ]
    if needs_base_scores(served.ranker):
        inputs.append({"name": BASE_SCORES, "datatype": "FP64", "shape": [-1]})
    described: dict[str, Any] = {
        "name": served.name,
        "platform": PLATFORM,
        "inputs": inputs,
        "outputs": [{"name": SCORES, "datatype": "FP64", "shape": [-1]}],
    }
    if versions:
        described["versions"] = list(repository.slots[served.name])
    return described


def index(repository: Repository) -> list[dict[str, str]]:
    """Return the list of models, as the extension for repositories has it."""
    return [
        {
            "name": slot.file.name,
            "version": slot.file.version,
            "state": "READY",
            "reason": slot.problem or "",
        }
        for slot in repository.all()
    ]
