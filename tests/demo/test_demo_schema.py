"""Requests made at random from the schema: no fault, and every reply as the schema says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

schemathesis = pytest.importorskip(
    "schemathesis", reason="needs schemathesis: pip install schemathesis"
)

from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import CHECKS  # noqa: E402
from schemathesis.specs.openapi import checks as _  # noqa: E402, F401  (they add themselves)

from treelax.demo.app import create_app  # noqa: E402
from treelax.demo.messages import SourceName  # noqa: E402
from treelax.demo.sources import Source  # noqa: E402

ALL_CHECKS = CHECKS.get_all()


def test_all_checks_are_made() -> None:
    """What the schema allows is answered, what it does not is refused, and more."""
    names = {check.__name__ for check in ALL_CHECKS}
    assert {"not_a_server_error", "status_code_conformance", "response_schema_conformance"} <= names
    assert {"positive_data_acceptance", "negative_data_rejection", "unsupported_method"} <= names


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_replies_are_as_the_schema_says(
    sources: Mapping[SourceName, Source], mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(sources))
    operation = schema["/api/trees"]["POST"]
    statuses = set()

    @settings(
        max_examples=40,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        deadline=None,
    )
    @given(data=st.data())
    def some(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        statuses.add(case.call_and_validate(checks=ALL_CHECKS).status_code)

    some()
    if mode is GenerationMode.POSITIVE:
        assert statuses == {200, 409}
    else:
        assert statuses <= {400, 422}


def test_the_schema_names_every_status(sources: Mapping[SourceName, Source]) -> None:
    described = create_app(sources).openapi()["paths"]["/api/trees"]["post"]["responses"]
    assert set(described) == {"200", "400", "409", "413", "422", "503"}
    for status, reply in described.items():
        assert reply["description"], status
        model = reply["content"]["application/json"]["schema"]["$ref"]
        assert model.endswith("/TreeReply" if status == "200" else "/Problem")
