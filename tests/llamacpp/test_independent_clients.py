"""The OpenAI and Anthropic SDKs and Prometheus' parser talk to the same server, and agree with our probes."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import anthropic
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from llamaops.facts.asked import AskedFacts
from llamaops.probes.chat import OTHER_PROMPT, PROMPT, SEED
from llamaops.probes.metrics import parse_metrics
from llamaops.probes.selection import select
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.schema.fact import Known
from llamaops.system.http import HttpClient, Origin
from tests.llamacpp.test_server_probes import ONE_THREAD, serving

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(240)]
ALIAS = "llamaops-independent"
LIMIT = 24


@pytest.fixture(scope="module")
def port(embedded_server: str, embedded_model: str) -> Iterator[int]:
    arguments = ("-m", embedded_model, "--alias", ALIAS, "-c", "1024", "-np", "2", "--metrics", *ONE_THREAD)
    with serving(embedded_server, *arguments) as (_process, number):
        yield number


@pytest.fixture(scope="module")
def ours(port: int) -> ServerFacts:
    client = HttpClient(Origin("http", "127.0.0.1", port))
    return collect_server(client, AskedFacts(alias=ALIAS), max_tokens=LIMIT, selection=select("basic"))


@pytest.fixture(scope="module")
def sdk(port: int) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=60
    ) as made:
        yield made


def test_openai_lists_the_same_models(sdk: openai.OpenAI, ours: ServerFacts) -> None:
    assert isinstance(ours.models, Known)
    assert [model.id for model in sdk.models.list()] == [model.id for model in ours.models.value.models]


def test_openai_gets_the_same_answer(sdk: openai.OpenAI, ours: ServerFacts) -> None:
    assert isinstance(ours.chat, Known)
    chat = ours.chat.value
    got = sdk.chat.completions.create(
        model=ALIAS, messages=[{"role": "user", "content": PROMPT}], max_tokens=LIMIT, temperature=0,
        seed=SEED, extra_body={"cache_prompt": False},
    )  # fmt: skip
    assert got.choices[0].message.content == chat.text
    assert got.choices[0].finish_reason == chat.finish_reason
    assert got.usage is not None
    assert chat.usage is not None
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (
        chat.usage.prompt_tokens, chat.usage.completion_tokens, chat.usage.total_tokens,
    )  # fmt: skip


def test_openai_gets_the_same_stream(sdk: openai.OpenAI, ours: ServerFacts) -> None:
    assert isinstance(ours.chat_stream, Known)
    stream = ours.chat_stream.value
    text, finish, tokens = "", None, None
    for chunk in sdk.chat.completions.create(
        model=ALIAS, messages=[{"role": "user", "content": PROMPT}], max_tokens=LIMIT, temperature=0,
        seed=SEED, stream=True, stream_options={"include_usage": True}, extra_body={"cache_prompt": False},
    ):  # fmt: skip
        tokens = chunk.usage.completion_tokens if chunk.usage else tokens
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert stream.usage is not None
    assert (text, finish, tokens) == (stream.text, stream.finish_reason, stream.usage.completion_tokens)


def test_openai_sees_a_refusal_as_we_do(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        sdk.embeddings.create(model=ALIAS, input="The sea")
    assert caught.value.status_code == 501


def test_anthropic_gets_a_message_and_counts_as_we_do(port: int, ours: ServerFacts) -> None:
    assert isinstance(ours.chat, Known)
    assert ours.chat.value.usage is not None
    with anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="none", max_retries=0) as client:
        got = client.messages.create(
            model=ALIAS, max_tokens=LIMIT, messages=[{"role": "user", "content": PROMPT}]
        )
        counted = client.messages.count_tokens(model=ALIAS, messages=[{"role": "user", "content": PROMPT}])
        streamed = ""
        with client.messages.stream(
            model=ALIAS, max_tokens=LIMIT, messages=[{"role": "user", "content": OTHER_PROMPT}]
        ) as stream:
            for text in stream.text_stream:
                streamed += text
    assert got.content[0].type == "text"
    assert got.content[0].text
    assert got.stop_reason in {"max_tokens", "end_turn"}
    assert 0 < got.usage.output_tokens <= LIMIT
    assert counted.input_tokens == ours.chat.value.usage.prompt_tokens
    assert streamed


def test_prometheus_reads_the_same_counters(port: int, ours: ServerFacts) -> None:
    assert isinstance(ours.metrics_after, Known)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        body = answer.read()
    theirs = {
        sample.name: sample.value
        for family in text_string_to_metric_families(body.decode())
        if family.type == "counter"
        for sample in family.samples
    }
    seen = parse_metrics(body).counters
    assert seen
    # Prometheus' parser gives every counter the ending that the format asks for.
    assert {f"llamacpp:{name.removesuffix('_total')}_total": value for name, value in seen.items()} == theirs
    assert set(seen) == set(ours.metrics_after.value.counters)
