"""Runs two-turn conversations with a tool call and its result, using Python clients, and prints them as JSON:
python tool_clients.py URL KEY MODEL"""

import json
import sys

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

url, key, model_name = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
question = "Is it cold in Oslo?"
result = "-3 degrees"
parameters = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
    "required": ["city"],
}
function = {"name": "weather", "description": "Of a city", "parameters": parameters}
shared = {"model": model_name, "temperature": 0}
tools = [{"type": "function", "function": function}]


def outcome_of(name, arguments, answer):
    return {"call": [name, json.loads(arguments) if isinstance(arguments, str) else arguments], "answer": answer}


def chat():
    messages = [{"role": "user", "content": question}]
    body = {**shared, "tools": tools, "messages": messages}
    first = client.chat.completions.create(**body, tool_choice="required", max_tokens=100)
    message = first.choices[0].message
    [call] = message.tool_calls
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": result}]
    second = client.chat.completions.create(**body, max_tokens=12)
    return outcome_of(call.function.name, call.function.arguments, second.choices[0].message.content)


def chat_streamed():
    messages = [{"role": "user", "content": question}]
    body = {**shared, "tools": tools, "messages": messages}
    with client.chat.completions.stream(**body, tool_choice="required", max_tokens=100) as stream:
        message = stream.get_final_completion().choices[0].message
    [call] = message.tool_calls
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": result}]
    with client.chat.completions.stream(**body, max_tokens=12) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
    return outcome_of(call.function.name, call.function.arguments, "".join(pieces))


def responses():
    items = [{"role": "user", "content": question}]
    body = {**shared, "tools": [{"type": "function", "strict": False, **function}], "input": items}
    first = client.responses.create(**body, tool_choice="required", max_output_tokens=100)
    [call] = [item for item in first.output if item.type == "function_call"]
    items += first.output
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    second = client.responses.create(**body, max_output_tokens=12)
    return outcome_of(call.name, call.arguments, second.output_text)


def responses_streamed():
    items = [{"role": "user", "content": question}]
    body = {**shared, "tools": [{"type": "function", "strict": False, **function}], "input": items, "stream": True}
    for event in client.responses.create(**body, tool_choice="required", max_output_tokens=100):
        if event.type == "response.output_item.done" and event.item.type == "function_call":
            call = event.item
    items += [call, {"type": "function_call_output", "call_id": call.call_id, "output": result}]
    pieces = [
        event.delta
        for event in client.responses.create(**body, max_output_tokens=12)
        if event.type == "response.output_text.delta"
    ]
    return outcome_of(call.name, call.arguments, "".join(pieces))


@tool("weather", description="Of a city", args_schema=parameters)
def weather(city):
    return result


def langchain(**more):
    model = ChatOpenAI(base_url=url, api_key=key, max_retries=0, **shared, **more)
    asked = HumanMessage(question)
    first = model.bind_tools([weather], tool_choice="any", max_tokens=100).invoke([asked])
    [call] = first.tool_calls
    answer = ToolMessage(result, tool_call_id=call["id"])
    second = model.bind_tools([weather], max_tokens=12).invoke([asked, first, answer])
    return outcome_of(call["name"], call["args"], second.text)


def langchain_streamed():
    model = ChatOpenAI(base_url=url, api_key=key, max_retries=0, **shared)
    asked = HumanMessage(question)
    first = None
    for chunk in model.bind_tools([weather], tool_choice="weather", max_tokens=100).stream([asked]):
        first = chunk if first is None else first + chunk
    [call] = first.tool_calls
    answer = ToolMessage(result, tool_call_id=call["id"])
    pieces = model.bind_tools([weather], max_tokens=12).stream([asked, first, answer])
    return outcome_of(call["name"], call["args"], "".join(chunk.text for chunk in pieces))


print(
    json.dumps(
        {
            "openai, chat": chat(),
            "openai, chat, streamed": chat_streamed(),
            "openai, responses": responses(),
            "openai, responses, streamed": responses_streamed(),
            "langchain, chat": langchain(),
            "langchain, chat, streamed": langchain_streamed(),
            "langchain, responses": langchain(use_responses_api=True),
        }
    )
)
