"""instructor, unmodified, over the openai package."""

from typing import Literal

import instructor
import openai
import pydantic
import pytest


class Forecast(pydantic.BaseModel):
    """A forecast."""

    city: Literal["Rome", "Oslo"]
    sunny: bool


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA])
def test_a_model_comes_back(tool_daemon, mode):
    plain = openai.OpenAI(base_url=tool_daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)
    client = instructor.from_openai(plain, mode=mode)
    forecast = client.chat.completions.create(model=tool_daemon.model(), response_model=Forecast, max_retries=0,
                                              max_tokens=64, temperature=0,
                                              messages=[{"role": "user", "content": "Weather in Oslo?"}])
    assert isinstance(forecast, Forecast)
