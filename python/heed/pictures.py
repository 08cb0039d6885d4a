"""Pictures of notebooks: self-contained HTML, and plain tables where scripts are off."""

import html
import json
import math
from typing import List, Sequence

import numpy as np

_STYLE = (
    "<style>.heed{font:13px/1.5 system-ui,sans-serif;color:#1c2733;background:#fff;padding:8px;"
    "max-width:100%;overflow-x:auto}.heed table{border-collapse:collapse;font-variant-numeric:"
    "tabular-nums}.heed th{font-weight:500;color:#52606d;text-align:left;padding:1px 6px}"
    ".heed td{padding:1px 6px;text-align:right;border:1px solid #fff}.heed caption{caption-side:"
    "top;text-align:left;padding:2px 6px 6px;color:#1c2733;white-space:nowrap}.heed .token{display:inline-block;"
    "padding:0 2px;margin:1px;border-radius:3px;white-space:pre;border-bottom:2px solid #cbd5e0}"
    ".heed .word{white-space:pre;text-align:left}</style>")


def framed(content: str) -> str:
    """HTML with the pictures' style."""
    return f'<div class="heed">{_STYLE}{content}</div>'


class Picture:
    """What a notebook draws: ``picture()`` is its HTML."""

    def picture(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return framed(self.picture())


def visible(text: str) -> str:
    """A token for people: spaces at its ends, line breaks and tabs are shown."""
    shown = text.replace("\n", "⏎").replace("\t", "⇥")
    return html.escape("␣" if shown == " " else shown)


def _mixed(share: float, to) -> str:
    """White to a colour (r, g, b)."""
    share = min(max(share, 0.0), 1.0)
    return "rgb(" + ",".join(str(round(255 + (part - 255) * share)) for part in to) + ")"


def diverging(value: float, largest: float) -> str:
    """Blue above zero, red below; grey without a number."""
    if not math.isfinite(value):
        return "#eceff1"
    share = abs(value) / largest if largest > 0 else 0.0
    return _mixed(share, (33, 102, 172) if value >= 0 else (178, 24, 43))


def sequential(share: float) -> str:
    return _mixed(share, (33, 102, 172)) if math.isfinite(share) else "#eceff1"


def _cell(value: float, colour: str, strong: bool, digits: int) -> str:
    ink = "#fff" if strong else "#1c2733"
    # Adding zero makes a rounded -0.00 plain.
    text = f"{round(value, digits) + 0.0:.{digits}f}" if math.isfinite(value) else ""
    return f'<td style="background:{colour};color:{ink}">{text}</td>'


def grid_picture(values: np.ndarray, rows: Sequence[str], columns: Sequence[str],
                 caption: str, most: int = 4096, digits: int = 2) -> str:
    """A coloured table of numbers (rows, columns), cut after `most` cells."""
    shown = values[:, :max(1, most // max(1, len(values)))]
    cut = values.shape[1] - shown.shape[1]
    finite = shown[np.isfinite(shown)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    head = "".join(f'<th class="word">{visible(name)}</th>' for name in columns[:shown.shape[1]])
    body = ""
    for name, row in zip(rows, shown):
        cells = "".join(_cell(float(value), diverging(float(value), largest),
                              largest > 0 and abs(float(value)) > 0.6 * largest, digits)
                        for value in row)
        body += f'<tr><th class="word">{visible(name)}</th>{cells}</tr>'
    more = f" (the first {shown.shape[1]} of {values.shape[1]} columns)" if cut else ""
    return (f"<table><caption>{html.escape(caption)}{more}</caption><tr><th></th>{head}</tr>"
            f"{body}</table>")


class Tokens(Picture):
    """The tokens of a text, with numbers if there are some: losses, attributions, weights."""

    def __init__(self, pieces: Sequence[str], ids: Sequence[int], values=None, caption: str = ""):
        self.pieces = list(pieces)
        self.ids = [int(token) for token in ids]
        self.values = None if values is None else np.asarray(values, np.float64).reshape(-1)
        self.caption = caption

    def picture(self) -> str:
        largest = 0.0
        if self.values is not None and np.isfinite(self.values).any():
            largest = float(np.abs(self.values[np.isfinite(self.values)]).max())
        shown = ""
        for at, (piece, token) in enumerate(zip(self.pieces, self.ids)):
            title, style = f"position {at}, token {token}", ""
            if self.values is not None and at < len(self.values):
                value = float(self.values[at])
                title += f": {value:.4g}"
                strong = largest > 0 and abs(value) > 0.6 * largest
                style = (f' style="background:{diverging(value, largest)};'
                         f'color:{"#fff" if strong else "#1c2733"}"')
            shown += f'<span class="token"{style} title="{title}">{visible(piece)}</span>'
        caption = f"<div>{html.escape(self.caption)}</div>" if self.caption else ""
        return f"{caption}<div>{shown}</div>"

    def __repr__(self):
        return f"Tokens({self.pieces!r})"


class NextWords(Picture):
    """The likeliest next tokens: rows of (token, text, logit, probability)."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    def picture(self) -> str:
        body = ""
        for rank, (token, text, logit, probability) in enumerate(self.rows, 1):
            bar = (f'<div style="background:#2166ac;height:9px;border-radius:2px;'
                   f'width:{max(probability * 160, 1):.0f}px"></div>')
            body += (f"<tr><td>{rank}</td><td class=word>{visible(text)}</td><td>{token}</td>"
                     f"<td>{logit:.3f}</td><td>{probability:.4f}</td>"
                     f'<td style="text-align:left">{bar}</td></tr>')
        return ("<table><tr><th></th><th>next</th><th>id</th><th>logit</th><th>probability</th>"
                f"<th></th></tr>{body}</table>")

    def __repr__(self):
        return "\n".join(f"{probability:8.4f}  {text!r}" for _, text, _, probability in self.rows)


class LensTable(Picture):
    """Predictions of every layer (L + 1, T, top), with probabilities, entropies and divergences in
    nats: the logit lens."""

    def __init__(self, tokens, probabilities, entropies, divergences, texts, pieces):
        self.tokens = tokens
        self.probabilities = probabilities
        self.entropies = entropies
        self.divergences = divergences
        self.texts = texts
        self.pieces: List[str] = list(pieces)

    def top(self, layer: int, position: int = -1) -> str:
        """The likeliest next token before a layer (L: after the last)."""
        return self.texts[int(self.tokens[layer, position, 0])]

    def picture(self) -> str:
        layers = len(self.tokens)
        head = "".join(f'<th class="word">{visible(piece)}</th>' for piece in self.pieces)
        body = ""
        for layer in reversed(range(layers)):
            name = "output" if layer == layers - 1 else f"before L{layer}"
            cells = ""
            for at in range(len(self.pieces)):
                share = float(self.probabilities[layer, at, 0])
                title = ", ".join(f"{self.texts[int(token)]!r} {chance:.3f}" for token, chance in
                                  zip(self.tokens[layer, at], self.probabilities[layer, at]))
                ink = "#fff" if share > 0.6 else "#1c2733"
                cells += (f'<td class="word" title="{html.escape(title)}" style="background:'
                          f'{sequential(share)};color:{ink}">'
                          f"{visible(self.texts[int(self.tokens[layer, at, 0])])}</td>")
            body += f"<tr><th>{name}</th>{cells}</tr>"
        return (f"<table><caption>The likeliest next token by layer; darker: more probable"
                f"</caption>{body}<tr><th></th>{head}</tr></table>")


class AttentionPicture(Picture):
    """The attention of one layer's heads over a text: a map for each head, which a script lets one
    point at, and a plain table of the first head where scripts are off."""

    MOST_POSITIONS = 64
    MOST_BYTES = 150_000

    def __init__(self, pattern, pieces: Sequence[str], caption: str = ""):
        pattern = np.asarray(pattern)
        if pattern.ndim == 4:
            pattern = pattern[0]
        self.pattern = pattern[None] if pattern.ndim == 2 else pattern
        self.pieces = list(pieces)
        self.caption = caption

    def picture(self) -> str:
        count = min(self.pattern.shape[-1], self.MOST_POSITIONS)
        heads = max(1, min(len(self.pattern), 90_000 // (2 * count * count)))
        # Weights as two hexadecimal digits.
        shown = np.round(np.clip(self.pattern[:heads, :count, :count], 0, 1) * 255).astype(np.uint8)
        data = {"pieces": [piece[:24] for piece in self.pieces[:count]], "heads": heads,
                "weights": [bytes(head.reshape(-1)).hex() for head in shown]}
        text = json.dumps(data).replace("<", "\\u003c")
        cut = ""
        if count < self.pattern.shape[-1] or heads < len(self.pattern):
            cut = (f" (the first {heads} of {len(self.pattern)} heads, {count} of "
                   f"{self.pattern.shape[-1]} positions)")
        caption = html.escape(self.caption) + cut
        few = min(count, 24)
        plain = grid_picture(self.pattern[0, :few, :few], self.pieces[:few], self.pieces[:few],
                             "head 0: rows attend to columns")
        return (f"<div>{caption}</div><div class='heed-attention'></div>"
                f"<script type='application/json'>{text}</script><script>{_SCRIPT}</script>"
                f"<noscript>{plain}</noscript>")


# One map for each head on a canvas; pointing at a row lights up what its token attends to.
_SCRIPT = """(function(){
const code=document.currentScript,data=JSON.parse(code.previousElementSibling.textContent);
const root=code.previousElementSibling.previousElementSibling,T=data.pieces.length;
const size=Math.max(3,Math.min(16,Math.floor(220/T))),maps=document.createElement('div');
maps.style.cssText='display:flex;flex-wrap:wrap;gap:8px;margin:6px 0';
const words=document.createElement('div');let head=0,row=T-1;
const weight=(h,t,s)=>parseInt(data.weights[h].substr(2*(t*T+s),2),16)/255;
const colour=w=>`rgb(${Math.round(255-222*w)},${Math.round(255-153*w)},${Math.round(255-83*w)})`;
const spans=data.pieces.map((piece,t)=>{const span=document.createElement('span');
span.className='token';span.textContent=piece.replace(/\\n/g,'\\u23ce')||' ';
span.onmouseenter=()=>{row=t;show()};words.append(span);return span});
const label=document.createElement('div');label.style.color='#52606d';
for(let h=0;h<data.heads;h++){const box=document.createElement('div');
const name=document.createElement('div');name.textContent='head '+h;name.style.color='#52606d';
const canvas=document.createElement('canvas');canvas.width=canvas.height=T*size;
canvas.style.cssText='border:1px solid #cbd5e0;cursor:crosshair';
const pen=canvas.getContext('2d');
for(let t=0;t<T;t++)for(let s=0;s<=T-1;s++){pen.fillStyle=colour(weight(h,t,s));
pen.fillRect(s*size,t*size,size,size)}
canvas.onmousemove=event=>{head=h;row=Math.min(T-1,Math.max(0,Math.floor(event.offsetY/size)));
show()};box.append(name,canvas);maps.append(box)}
function show(){spans.forEach((span,s)=>{const w=weight(head,row,s);
span.style.background=colour(w);span.style.color=w>0.6?'#fff':'#1c2733';
span.style.borderBottomColor=s===row?'#b2182b':'#cbd5e0';span.title=w.toFixed(3)});
label.textContent=`head ${head}: what "${data.pieces[row]}" (position ${row}) attends to`}
root.append(maps,label,words);show();
})();""".replace("\n", "")
