"""OpenAI's error object: what its clients read of an answer that is none."""

import msgspec


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """`code` is for machines; `param` names the field of the request that is wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ApiErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an answer that is not a success, and the data of the frame that ends a failed stream."""

    error: ApiError


_TYPE_OF_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
    503: "service_unavailable",
}
_CODE_OF_OURS = {"agent_not_found": "model_not_found", "run_not_found": "response_not_found"}
_PARAM_OF_OURS = {"agent_not_found": "model"}


def error_object(
    status: int, code: str, message: str, *, field: str | None = None, of_run: bool = False
) -> ApiError:
    """`field` is a path into the body (`$.messages[0].content`) or the name of a query parameter.

    `of_run`: it tells how a run ended, not why none was begun.
    """
    nothing_begun = status == 503 and not of_run
    return ApiError(
        message=message,
        type=_type_of(status, code),
        param=_PARAM_OF_OURS.get(code) if field is None else field.removeprefix("$."),
        code="service_unavailable" if nothing_begun else _CODE_OF_OURS.get(code, code),
    )


def _type_of(status: int, code: str) -> str:
    if code.startswith("idempotency"):
        return "idempotency_error"
    return _TYPE_OF_STATUS.get(status, "invalid_request_error" if status < 500 else "server_error")
