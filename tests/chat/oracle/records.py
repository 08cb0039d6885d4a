"""Renders templates with Jinja, as transformers sets it up, and records the results.

Usage: records.py FILE [DIRECTORY]. FILE becomes a JSON list of {"template", "input", "expected"},
or with "error" in place of "expected" where Jinja fails; "source" is the file of a template that
was found in DIRECTORY, where all files *.jinja are.
"""

import copy
import json
import pathlib
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment

import conversations
import more_snippets
import random_templates
import snippets


class Generation(Extension):
    """{% generation %}…{% endgeneration %} prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_print"), [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                extensions=["jinja2.ext.loopcontrols", Generation])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: "<" + form + ">"
    return made


def record(jinja, template, conversation):
    result = {"template": template, "input": conversation}
    conversation = copy.deepcopy(conversation)  # templates may append to its lists
    given = {"messages": conversation["messages"], "tools": conversation.get("tools"),
             "documents": None,
             "add_generation_prompt": conversation["add_generation_prompt"],
             **conversation.get("variables", {}), **conversation["special_tokens"]}
    try:
        result["expected"] = jinja.from_string(template).render(**given)
    except Exception as error:  # whatever Python raises: heed must refuse it too
        result["error"] = repr(error)
    return result


def main():
    jinja = environment()
    records = [record(jinja, template, conversations.RICH)
               for module in (snippets, more_snippets) for template in module.all_snippets()]
    for seed in range(400):
        template = random_templates.template(seed)
        for conversation in conversations.ALL:
            records.append(record(jinja, template, conversation))
    for seed in range(6000):
        records.append(record(jinja, random_templates.expression_template(seed),
                              conversations.RICH))
    if len(sys.argv) > 2:
        for path in sorted(pathlib.Path(sys.argv[2]).glob("**/*.jinja")):
            with open(path, encoding="utf-8", newline="") as file:
                template = file.read()
            for conversation in conversations.ALL + conversations.TOOL_CHATS:
                made = {**record(jinja, template, conversation), "source": path.name}
                # Where Jinja has generators, heed has lists: see docs/chat.md.
                if "generator" not in made.get("error", "") + made.get("expected", ""):
                    records.append(made)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(records, file)


if __name__ == "__main__":
    main()
