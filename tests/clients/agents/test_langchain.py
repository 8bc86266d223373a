"""LangChain, unmodified: structured output and an agent's loop."""

from typing import Literal

import pydantic
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


class Forecast(pydantic.BaseModel):
    """A forecast."""

    city: Literal["Rome", "Oslo"]
    sunny: bool


@tool
def weather(city: Literal["Rome", "Oslo"]) -> str:
    """The weather of a city."""
    return f"It rains in {city}."


@pytest.fixture
def chat(tool_daemon):
    return ChatOpenAI(base_url=tool_daemon.url + "/v1", api_key="none", model=tool_daemon.model(), temperature=0,
                      max_tokens=64, max_retries=0)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(chat, method):
    forecast = chat.with_structured_output(Forecast, method=method).invoke("What is the weather in Oslo?")
    assert isinstance(forecast, Forecast)


def test_a_loop_of_tools(chat):
    messages = [HumanMessage("What is the weather in Oslo?")]
    asked = chat.bind_tools([weather], tool_choice="any", parallel_tool_calls=False).invoke(messages)
    assert asked.tool_calls[0]["name"] == "weather"
    result = weather.invoke(asked.tool_calls[0])
    assert isinstance(result, ToolMessage)
    answer = chat.bind_tools([weather], tool_choice="none").invoke([*messages, asked, result])
    assert answer.content and not answer.tool_calls


def test_streamed_calls_add_up(chat):
    whole = None
    for chunk in chat.bind_tools([weather], tool_choice="weather").stream("Weather in Rome?"):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls[0]["args"]["city"] in ("Rome", "Oslo")
