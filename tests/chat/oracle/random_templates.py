"""Random templates and expressions, the same for the same seed."""

import random

BLANKS = ["", "", "", " ", "  ", "\n", "\n\n", "\n  ", " \n\t", "\t", "\r\n", "\n \n  "]
TEXTS = ["x", "<|im_start|>", "a b", "{ }", "[INST] ", "é\n", "end.", "\n###\n", "%", "}", "''"]
STRINGS = ["''", "'a'", "'user'", "' x '", "\"b'c\"", "'é日'", "'\\n'", "'a,b,,c'", "'Ab cD'", "'<|im_end|>'"]
NAMES = ["messages", "name", "words", "numbers", "nested", "foo", "yes", "nothing", "real", "zero",
         "bos_token", "tools", "add_generation_prompt"]


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = list(NAMES)
        self.loops = 0

    def pick(self, choices):
        return self.random.choice(choices)

    # Expressions of a type, so that not all of them fail.

    def text(self, depth):
        if depth <= 0 or self.random.random() < 0.2:
            return self.pick(STRINGS + ["name", "bos_token", "messages[0].content", "messages[-1]['role']"])
        inner = self.text(depth - 1)
        return self.pick([
            lambda: f"{inner} | {self.pick(['trim', 'upper', 'lower', 'title', 'capitalize', 'string', 'tojson', 'reverse'])}",
            lambda: f"({inner}).{self.pick(['strip', 'lstrip', 'rstrip', 'upper', 'lower', 'title'])}()",
            lambda: f"({inner}).{self.pick(['strip', 'lstrip', 'rstrip'])}({self.pick(STRINGS)})",
            lambda: f"({inner} ~ {self.any(depth - 1)})",
            lambda: f"({inner} + {self.text(depth - 1)})",
            lambda: f"({inner})[{self.bound()}:{self.bound()}]",
            lambda: f"({inner})[{self.bound()}:{self.bound()}:{self.pick(['', '-1', '2', '-2'])}]",
            lambda: f"({inner}).replace({self.pick(STRINGS)}, {self.text(depth - 2)})",
            lambda: f"({inner} if {self.truth(depth - 1)} else {self.text(depth - 1)})",
            lambda: f"{self.items(depth - 1)} | join({self.pick(STRINGS)})",
            lambda: f"({self.items(depth - 1)} | first | string)",
            lambda: f"({inner}).split({self.pick(STRINGS)})[{self.pick(['0', '-1', '1'])}]",
            lambda: f"({inner} | indent({self.pick(['2', '4, true', '1, false, true'])}))",
            lambda: f"{self.any(depth - 1)} | default({inner})",
            lambda: f"{self.any(depth - 1)} | tojson({self.pick(['', 'indent=2', 'sort_keys=true', 'ensure_ascii=true'])})",
            lambda: f"({inner}) * {self.pick(['0', '2', '3'])}",
        ])()

    def bound(self):
        return self.pick(["", "", "0", "1", "2", "-1", "-2", "9", "-9"])

    def number(self, depth):
        if depth <= 0 or self.random.random() < 0.2:
            return self.pick(["0", "1", "2", "7", "-3", "2.5", "zero", "real", "numbers[0]", "yes"])
        left, right = self.number(depth - 1), self.number(depth - 1)
        return self.pick([
            lambda: f"({left} {self.pick(['+', '-', '*', '/', '//', '%'])} {right})",
            lambda: f"{self.items(depth - 1)} | length",
            lambda: f"({self.text(depth - 1)}) | length",
            lambda: f"({left}) | {self.pick(['int', 'float', 'abs', 'round'])}",
            lambda: f"({self.text(depth - 1)}) | int({right})",
            lambda: f"({self.text(depth - 1)}).find({self.pick(STRINGS)})",
            lambda: f"-({left})",
            lambda: f"({left} if {self.truth(depth - 1)} else {right})",
            lambda: f"numbers | {self.pick(['sum', 'min', 'max', 'first', 'last'])}",
        ])()

    def truth(self, depth):
        if depth <= 0 or self.random.random() < 0.1:
            return self.pick(["yes", "zero", "true", "False", "(foo is defined)", "add_generation_prompt"])
        test = self.pick(["defined", "none", "string", "mapping", "iterable", "sequence", "number",
                          "boolean", "undefined", "true", "false", "integer", "float"])
        return self.pick([
            lambda: f"({self.any(depth - 1)} {self.pick(['==', '!='])} {self.any(depth - 1)})",
            lambda: f"({self.number(depth - 1)} {self.pick(['<', '>', '<=', '>='])} {self.number(depth - 1)})",
            lambda: f"({self.truth(depth - 1)} {self.pick(['and', 'or'])} {self.truth(depth - 1)})",
            lambda: f"(not {self.truth(depth - 1)})",
            lambda: f"({self.any(depth - 1)} is {self.pick(['', 'not '])}{test})",
            lambda: f"({self.pick(STRINGS)} {self.pick(['in', 'not in'])} {self.text(depth - 1)})",
            lambda: f"({self.any(depth - 1)} in {self.items(depth - 1)})",
            lambda: f"({self.text(depth - 1)}).{self.pick(['startswith', 'endswith'])}({self.pick(STRINGS)})",
        ])()

    def items(self, depth):
        if depth <= 0 or self.random.random() < 0.2:
            return self.pick(["messages", "numbers", "words", "[]", "[1, 'a', true]", "range(3)|list", "(1, 2)"])
        inner = self.items(depth - 1)
        return self.pick([
            lambda: f"({inner})[{self.bound()}:{self.bound()}]",
            lambda: f"({inner})[::-1]",
            lambda: f"({inner} | reverse | list)",
            lambda: f"({inner} | map('string') | list)",
            lambda: f"({inner} | select('{self.pick(['string', 'number', 'defined', 'mapping'])}') | list)",
            lambda: f"(messages | {self.pick(['selectattr', 'rejectattr'])}('role', '{self.pick(['eq', 'ne', '==', 'in'])}', {self.pick(STRINGS)}) | list)",
            lambda: f"(messages | map(attribute='{self.pick(['role', 'content', 'foo'])}') | list)",
            lambda: f"[{self.any(depth - 1)}, {self.any(depth - 1)}]",
            lambda: f"({self.text(depth - 1)} | list)",
            lambda: f"({self.text(depth - 1)}).split({self.pick(['', *STRINGS])})",
            lambda: f"({self.mapping(depth - 1)} | {self.pick(['items', 'dictsort', 'list'])} | list)",
            lambda: f"({self.pick(['words', 'numbers'])} | {self.pick(['sort', 'unique', 'sort(reverse=true)'])} | list)",
        ])()

    def mapping(self, depth):
        if depth <= 0 or self.random.random() < 0.4:
            return self.pick(["messages[0]", "nested", "{}", "{'a': 1, 'B': 2}", "tools[0]"])
        return f"{{{self.pick(STRINGS)}: {self.any(depth - 1)}, {self.pick(STRINGS)}: {self.any(depth - 1)}}}"

    def any(self, depth):
        kind = self.pick([self.text, self.number, self.truth, self.items, self.mapping, self.name])
        return kind(depth)

    def name(self, _depth):
        return self.pick(self.names)

    # Statements.

    def begin(self):
        return "{%" + self.pick(["", "", "-", "-", "+"]) + self.pick(["", " "])

    def end(self):
        return self.pick(["", " "]) + self.pick(["", "", "-", "-", "+"]) + "%}"

    def tag(self, content):
        return self.begin() + " " + content + " " + self.end()

    def blank(self):
        return self.pick(BLANKS)

    def printed(self):
        return "{{" + self.pick(["", "", "-", "+"]) + " " + self.any(2) + " " + self.pick(["", "-"]) + "}}"

    def comment(self):
        return "{#" + self.pick(["", "-", "+"]) + self.pick([" note ", "", " {{ x }} "]) + self.pick(["", "-", "+"]) + "#}"

    def block(self, depth):
        known = list(self.names)
        parts = [self.blank()]
        for _ in range(self.random.randint(1, 3)):
            parts += [self.statement(depth), self.blank()]
        self.names = known
        return "".join(parts)

    def statement(self, depth):
        kinds = [lambda: self.pick(TEXTS), self.printed, self.comment, self.assignment]
        if depth > 0:
            kinds += [lambda: self.condition(depth), lambda: self.loop(depth)] * 2
            kinds += [lambda: self.captured(depth), lambda: self.macro(depth)]
        if self.loops > 0:
            kinds.append(lambda: self.tag(f"if {self.truth(1)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif"))
            kinds.append(lambda: "{{ loop." + self.pick(["index", "index0", "first", "last", "length", "revindex"]) + " }}")
        return self.pick(kinds)()

    def assignment(self):
        name = f"v{self.random.randint(0, 3)}"
        result = self.tag(f"set {name} = {self.any(2)}")
        self.names.append(name)
        return result

    def condition(self, depth):
        result = self.tag(f"if {self.truth(2)}") + self.block(depth - 1)
        if self.random.random() < 0.3:
            result += self.tag(f"elif {self.truth(2)}") + self.block(depth - 1)
        if self.random.random() < 0.5:
            result += self.tag("else") + self.block(depth - 1)
        return result + self.tag("endif")

    def loop(self, depth):
        name = f"i{depth}"
        filtered = f" if {name} is {self.pick(['defined', 'string', 'mapping'])}" if self.random.random() < 0.3 else ""
        result = self.tag(f"for {name} in {self.items(2)}{filtered}")
        known = list(self.names)
        self.names.append(name)
        self.loops += 1
        result += self.block(depth - 1)
        self.loops -= 1
        self.names = known
        if self.random.random() < 0.3:
            result += self.tag("else") + self.block(depth - 1)
        return result + self.tag("endfor")

    def outside_loops(self, depth):
        loops, self.loops = self.loops, 0
        result = self.block(depth - 1)
        self.loops = loops
        return result

    def captured(self, depth):
        return self.tag("set captured") + self.outside_loops(depth) + self.tag("endset") + "[{{ captured }}]"

    def macro(self, depth):
        known = list(self.names)
        self.names += ["p", "q"]
        result = self.tag("macro made(p, q='Q')") + self.outside_loops(depth) + self.tag("endmacro")
        self.names = known
        return result + f"{{{{ made({self.any(1)}) }}}}{{{{ made(q={self.any(1)}, p=1) }}}}"


def template(seed):
    return Writer(seed).block(3)


def expression_template(seed):
    return "{{ " + Writer(-seed - 1).any(4) + " }}"
