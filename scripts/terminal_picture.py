#!/usr/bin/env python3
"""Draws what a command prints, colours and all, as an SVG.

    heed tour --color always | scripts/terminal_picture.py "heed tour" > docs/pictures/tour.svg

Reads UTF-8 with SGR colour sequences (16, 256 and 24-bit colours, bold, dim) from standard input.
"""
import html
import re
import sys
import unicodedata

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 16
PAPER, INK = "#11151c", "#d7dce2"
BASIC = ["#1b1f27", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4"]
BRIGHT = ["#5c6370", "#ff7b86", "#b5e890", "#ffd68a", "#7fc4ff", "#de8ff5", "#6fd6e2", "#ffffff"]


def indexed(number):
    """Colour `number` of the 256-colour palette."""
    if number < 8:
        return BASIC[number]
    if number < 16:
        return BRIGHT[number - 8]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    number -= 16
    return "#" + "".join(f"{levels[part]:02x}" for part in
                         (number // 36, number // 6 % 6, number % 6))


def restyled(style, codes):
    """The style after one SGR sequence; style is a dict of foreground, background, bold, dim."""
    codes = list(codes) or [0]
    style = dict(style)
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = {}
        elif code in (1, 2):
            style["bold" if code == 1 else "dim"] = True
        elif code == 22:
            style.pop("bold", None)
            style.pop("dim", None)
        elif code in (38, 48):
            kind = codes.pop(0)
            ground = "foreground" if code == 38 else "background"
            if kind == 5:
                style[ground] = indexed(codes.pop(0))
            else:
                style[ground] = "#%02x%02x%02x" % tuple(codes.pop(0) for _ in range(3))
        elif code in (39, 49):
            style.pop("foreground" if code == 39 else "background", None)
        elif 30 <= code < 38 or 90 <= code < 98:
            style["foreground"] = (BASIC if code < 90 else BRIGHT)[code % 10]
        elif 40 <= code < 48:
            style["background"] = BASIC[code - 40]
    return style


def width_of(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def draw(text, title):
    lines = text.rstrip("\n").split("\n")
    body, columns, style = [], 80, {}
    for row, line in enumerate(lines):
        column = 0
        for part in re.split(r"(\x1b\[[0-9;]*m)", line):
            if part.startswith("\x1b"):
                style = restyled(style, [int(code) for code in part[2:-1].split(";") if code])
                continue
            if not part:
                continue
            cells = sum(map(width_of, part))
            x, y = MARGIN + column * CELL_WIDTH, 2 * MARGIN + (row + 1) * CELL_HEIGHT
            if "background" in style:
                body.append(f'<rect x="{x:.1f}" y="{y - 13.5:.1f}" width="{cells * CELL_WIDTH:.1f}" '
                            f'height="{CELL_HEIGHT}" fill="{style["background"]}"/>')
            weight = ' font-weight="bold"' if "bold" in style else ""
            faint = ' opacity="0.65"' if "dim" in style else ""
            # Words apart: browsers differ in what they make of several spaces.
            for word in re.finditer(r"\S+(?: \S+)*", part):
                word_x = x + CELL_WIDTH * sum(map(width_of, part[:word.start()]))
                length = CELL_WIDTH * sum(map(width_of, word.group()))
                body.append(f'<text x="{word_x:.1f}" y="{y:.1f}" textLength="{length:.1f}" '
                            f'fill="{style.get("foreground", INK)}"{weight}{faint}>'
                            f"{html.escape(word.group())}</text>")
            column += cells
        columns = max(columns, column)
    width = 2 * MARGIN + columns * CELL_WIDTH
    height = 3 * MARGIN + len(lines) * CELL_HEIGHT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" role="img" aria-label="{html.escape(title)}" '
            f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">'
            f'<title>{html.escape(title)}</title><rect width="100%" height="100%" rx="8" '
            f'fill="{PAPER}"/><text x="{MARGIN}" y="{MARGIN + 8}" fill="#8b949e">'
            f"$ {html.escape(title)}</text>{''.join(body)}</svg>\n")


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin.read(), sys.argv[1] if len(sys.argv) > 1 else ""))
