"""Requests drawn from the description, and what is wrong with their answers. One seed, one set of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ops.fuzz.known import Known
from ops.fuzz.service import ANSWERS_WITHIN_S, furnish

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
Example: TypeAlias = Case[Any]

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_ACCEPTS = ("application/json", "*/*", "text/event-stream")
_PICKS = st.integers(0, 10_000)


@dataclass
class Found:
    """What was asked, and what is wrong with how it was answered."""

    asked: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    operations: dict[str, set[int]] = field(default_factory=dict)
    """What each of them was answered with."""
    faults: dict[str, str] = field(default_factory=dict)
    """The first of each kind at each operation, with the request that repeats it."""


class Fuzzer:
    """Asks the service at `url`. Of each operation it draws `of_each` requests per round."""

    def __init__(self, url: str, *, seed: int, of_each: int = 8) -> None:
        self.found = Found()
        self._session = requests.Session()
        self._schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        described = self._schema.get_all_operations()
        self._operations: list[Operation] = [one.ok() for one in described if isinstance(one, Ok)]
        self._known = furnish(url, self._session)
        self._seed = seed
        self._of_each = of_each

    def ask(self, at_least: int) -> Found:
        """Whole rounds over all operations, until there were so many requests."""
        with self._session:
            while self.found.asked < at_least:
                for operation in self._operations:
                    self._round_of(operation)
                self._seed += 1
        return self.found

    def _round_of(self, operation: Operation) -> None:
        for mode in _modes(operation):

            @hypothesis.seed(crc32(f"{operation.label} {mode} {self._seed}".encode()))
            @hypothesis.settings(
                max_examples=self._of_each,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @hypothesis.given(_cases(operation, mode, self._known), st.sampled_from(_ACCEPTS))
            def each(case: Example, accept: str) -> None:
                self._try(case, accept)

            each()

    def _try(self, case: Example, accept: str) -> None:
        response = case.call(
            session=self._session, headers={"Accept": accept}, timeout=ANSWERS_WITHIN_S, allow_redirects=False
        )
        self.found.asked += 1
        self.found.statuses[response.status_code] += 1
        self.found.operations.setdefault(case.operation.label, set()).add(response.status_code)
        try:
            case.validate_response(response, checks=_CHECKS)
        except FailureGroup as failures:
            for failure in failures.exceptions:
                kind = f"{case.operation.label}: {failure.title}, {response.status_code}"
                self.found.faults.setdefault(kind, str(failures))
        else:
            if response.status_code < 300 and "json" in response.headers.get("Content-Type", [""])[0]:
                self._known.learn(case.operation.path, response.json())


@st.composite
def _cases(draw: st.DrawFn, operation: Operation, mode: GenerationMode, known: Known) -> Example:
    """Mostly about what there is; sometimes about what there is not."""
    case: Example = draw(operation.as_strategy(generation_mode=mode))
    if draw(st.integers(0, 3)):
        case.path_parameters = known.in_path(operation.path, case.path_parameters, draw(_PICKS))
    if draw(st.integers(0, 3)):
        keep = draw(st.sampled_from((None, _required(operation), _required(operation))))
        case.body = known.in_body(case.body, draw(_PICKS), keep=keep)
    return case


def _required(operation: Operation) -> frozenset[str]:
    """What a body of the operation must have. Much of the rest is refused, each by itself."""
    return frozenset(name for body in operation.body for name in body.resolved_schema.get("required", ()))


def _modes(operation: Operation) -> Iterator[GenerationMode]:
    """What is as described, and what is not. Where nothing is described, nothing can differ from it."""
    yield GenerationMode.POSITIVE
    if len(operation.query) or len(operation.headers) or len(operation.body):
        yield GenerationMode.NEGATIVE
