"""Conversations that templates are rendered with."""

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather; \"now\" & later.",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "Größe, ville, 城市"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7.5}}}}}]


def chat(messages, add_generation_prompt, **others):
    return {"messages": [dict(zip(("role", "content"), message)) if isinstance(message, tuple)
                         else message for message in messages],
            "add_generation_prompt": add_generation_prompt, "special_tokens": TOKENS, **others}


RICH = chat(
    [("system", "  Be brief.\n"), ("user", "Hello, \"you\"!\n\n  What is 1 + 1?  "),
     {"role": "assistant", "content": None, "tool_calls": [
         {"id": "a1b2c3d4e", "type": "function",
          "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}]},
     {"role": "tool", "tool_call_id": "a1b2c3d4e", "content": "sunny\tor 'not'"},
     ("assistant", "<think>\nit depends\n</think>\n\nSonne, 晴れ \U0001F31E"),
     ("user", "Danke")],
    True, tools=TOOLS,
    variables={"numbers": [3, 1, 2, 1], "words": ["b", "A", "c", "a"], "name": "Ünïcode text",
               "nested": {"a": {"b": [1, 2, {"c": None}]}, "list": [], "text": "x"},
               "real": 2.5, "yes": True, "nothing": None, "empty": "", "zero": 0,
               "enable_thinking": False})

ALL = [
    RICH,
    chat([("user", "Hi")], True),
    chat([("user", "Hi"), ("assistant", "Hello there.\n"), ("user", "\n<|im_end|>\n")], False),
    chat([("system", ""), ("user", " ")], True, variables={"enable_thinking": True}),
    chat([], False),
]

# As published templates for tools and thinking expect them.
TOOL_CHATS = [
    chat([("user", "Weather in Zürich?"),
          {"role": "assistant", "content": "", "reasoning_content": "They ask.", "tool_calls": [
              {"id": "a1b2c3d4e", "type": "function",
               "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}]},
          {"role": "tool", "tool_call_id": "a1b2c3d4e", "name": "get_weather", "content": "{\"t\": 21}"}],
         True, tools=TOOLS, variables={"enable_thinking": True}),
    chat([("system", "Be kind."), ("user", "Hi"),
          {"role": "assistant", "content": "Hello.", "reasoning_content": "Greet."}, ("user", "Bye")],
         True, variables={"enable_thinking": False, "thinking": True, "reasoning_effort": "low"}),
    chat([("developer", "Be kind."), ("user", "Hi"), ("assistant", "Hel")], False, tools=TOOLS),
]
