"""Sends requests to a server with OpenAI's Python client, and prints the results as JSON:
python openai_client.py URL KEY"""

import asyncio
import json
import sys

import openai
from pydantic import BaseModel

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
question = [{"role": "user", "content": "Tell me a story about a fox."}]
greedy = {"model": "any", "messages": question, "temperature": 0, "max_tokens": 24}
weather = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Pet(BaseModel):
    kind: str
    legs: int


def chat():
    whole = client.chat.completions.create(**greedy)
    stream = client.chat.completions.create(**greedy, stream=True, stream_options={"include_usage": True})
    streamed, usage = "", None
    for chunk in stream:
        streamed += "".join(choice.delta.content or "" for choice in chunk.choices)
        usage = chunk.usage or usage
    return {
        "whole": whole.choices[0].message.content,
        "streamed": streamed,
        "tokens": [whole.usage.completion_tokens, usage.completion_tokens],
        "request_id": whole._request_id,
    }


def texts():
    body = {"model": "any", "prompt": "Once", "max_tokens": 8, "temperature": 0}
    whole = client.completions.create(**body)
    streamed = "".join(chunk.choices[0].text for chunk in client.completions.create(**body, stream=True))
    response = client.responses.create(model="any", input=question[0]["content"], temperature=0, max_output_tokens=24)
    text = ""
    with client.responses.stream(
        model="any", input=question[0]["content"], temperature=0, max_output_tokens=24
    ) as events:
        for event in events:
            if event.type == "response.output_text.delta":
                text += event.delta
    return {
        "whole": whole.choices[0].text,
        "streamed": streamed,
        "response": response.output_text,
        "response_streamed": text,
    }


def structures():
    parsed = client.chat.completions.parse(
        model="any", messages=question, response_format=Pet, max_tokens=100, temperature=0
    )
    called = client.chat.completions.create(
        **{**greedy, "max_tokens": 100}, tools=[weather], tool_choice="required"
    )
    [call] = called.choices[0].message.tool_calls
    return {
        "parsed": parsed.choices[0].message.parsed.model_dump(),
        "called": [call.function.name, json.loads(call.function.arguments)],
        "finish": called.choices[0].finish_reason,
    }


def vectors():
    packed = client.embeddings.create(model="any", input=["a fox", "a hen"])
    plain = client.embeddings.create(model="any", input=["a fox", "a hen"], encoding_format="float")
    models = [model.id for model in client.models.list()]
    return {
        "same": [one.embedding for one in packed.data] == [one.embedding for one in plain.data],
        "sizes": [len(one.embedding) for one in plain.data],
        "models": models,
        "retrieved": client.models.retrieve(models[0]).id,
    }


def errors():
    found = {}
    for name, ask in {
        "key": lambda: openai.OpenAI(base_url=url, api_key="wrong", max_retries=0).models.list(),
        "value": lambda: client.chat.completions.create(**{**greedy, "temperature": -1}),
        "model": lambda: client.models.retrieve("gpt"),
    }.items():
        try:
            ask()
        except openai.APIStatusError as error:
            found[name] = [type(error).__name__, error.status_code, error.code, error.param]
    return found


async def leave():
    """Closes one stream early, and cancels the task of another one."""
    own = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)
    chunks = 0
    async with await own.chat.completions.create(**{**greedy, "max_tokens": 900}, stream=True) as stream:
        async for _ in stream:
            chunks += 1
            if chunks == 5:
                break
    task = asyncio.create_task(own.chat.completions.create(**{**greedy, "max_tokens": 900}))
    await asyncio.sleep(0.05)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    await own.close()
    return chunks


print(
    json.dumps(
        {
            "chat": chat(),
            "texts": texts(),
            "structures": structures(),
            "vectors": vectors(),
            "errors": errors(),
            "left_after": asyncio.run(leave()),
        }
    )
)
