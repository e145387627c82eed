"""A page taken apart by the standard library's parser, and what has to hold for any page of ours."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "link", "col"}
ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "nav", "main", "footer", "section", "h1", "h2",
    "h3", "p", "a", "b", "bdi", "span", "small", "strong", "code", "pre", "ins", "del", "blockquote", "ul",
    "li", "dl", "dt", "dd", "div", "details", "summary", "figure", "figcaption", "table", "caption", "thead",
    "tbody", "tfoot", "tr", "th", "td", "abbr", "svg", "g", "path", "circle", "rect", "text", "desc",
}  # fmt: skip
"""What a page may be made of: nothing that loads, runs or sends anything."""


class Page(HTMLParser):
    """A page's elements with their attributes, its texts, and what is wrong with its nesting."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.markup = markup
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        self.wrong += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.wrong.append(f"<{tag}> says something twice")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends; it must be the one that began last."""
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> closes another element")

    def handle_data(self, data: str) -> None:
        """A text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All that the page says."""
        return "".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of each element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        """Every id, as often as it is given."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def references(self) -> set[str]:
        """Every id that something refers to."""
        found = {attributes["href"].removeprefix("#") for attributes in self.all("a")}
        for _, attributes in self.elements:
            for name in ("aria-labelledby", "aria-describedby"):
                found |= set(attributes.get(name, "").split())
        return found


def problems_of(page: Page) -> list[str]:
    """What is wrong with a page: nesting, references, addresses, labels, anything that could run or load."""
    wrong = list(page.wrong)
    wrong += [f"id {name} is given {count} times" for name, count in Counter(page.ids).items() if count > 1]
    wrong += [f"nothing has the id {name}" for name in page.references - set(page.ids)]
    wrong += [f"<{tag}> has no place here" for tag, _ in page.elements if tag not in ELEMENTS]
    wrong += [f"a link leads to {a['href']}" for a in page.all("a") if not a["href"].startswith("#")]
    for tag, attributes in page.elements:
        wrong += [
            f"<{tag} {name}>" for name in attributes if name in ("src", "style", "srcset") or name.startswith("on")
        ]
    if "url(" in page.markup.lower() or "@import" in page.markup.lower():
        wrong.append("the style sheet loads something")
    wrong += _labels(page)
    return wrong


def _labels(page: Page) -> list[str]:
    wrong = [f"a table without caption: {page.elements[at + 1][0]}" for at, (tag, _) in enumerate(page.elements)
             if tag == "table" and page.elements[at + 1][0] != "caption"]  # fmt: skip
    wrong += ["a header cell without scope" for cell in page.all("th") if cell.get("scope") not in ("row", "col")]
    wrong += [
        "a drawing without a name" for each in page.all("svg") if not {"aria-hidden", "aria-labelledby"} & each.keys()
    ]
    wrong += [
        f"<{tag}> can be reached by key and has no role" for tag, each in page.elements
        if "tabindex" in each and "role" not in each
    ]  # fmt: skip
    regions = Counter(each["aria-label"] for _, each in page.elements if each.get("role") == "region")
    return wrong + [f"{count} regions are called {name}" for name, count in regions.items() if count > 1]
