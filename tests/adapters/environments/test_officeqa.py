"""OfficeQA on made bulletins: reading items, tools that reach nothing else, oracle pages, budgets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from support.environments import SKILL, data_settings, open_on, write_lines
from support.made_officeqa import MONTHS, PAGE, PARSED_YEAR, YEARS, figures, file_of, questions, write_officeqa

from skillopt_es.adapters.environments.officeqa.documents import Corpus, open_corpus
from skillopt_es.adapters.environments.officeqa.items import list_cell
from skillopt_es.adapters.environments.officeqa.pages import (
    MOST_OF_A_PAGE,
    MOST_OF_ALL,
    Page,
    oracle_text,
    pipe_table,
    wanted_pages,
)
from skillopt_es.adapters.environments.officeqa.tools import MOST_CHARACTERS, Desk
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import ChatReply, Environment, Episode, Item, Message, Tool, ToolCall


@define
class Agent:
    """Asks for the tools of its script, one list of requests a turn, then gives its last reply."""

    script: Sequence[Sequence[tuple[str, Any]]] = ()
    last: str = "<answer>1</answer>"
    asked: list[list[Message]] = field(factory=list)
    offered: list[str] = field(factory=list)

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: str = "",
    ) -> ChatReply:
        self.asked.append(list(messages))
        self.offered = [tool.name for tool in tools]
        turn = len(self.asked) - 1
        if turn >= len(self.script):
            return ChatReply(text=self.last, finish="stop")
        calls = [
            ToolCall(f"call-{turn}-{place}", name, given if isinstance(given, str) else json.dumps(given))
            for place, (name, given) in enumerate(self.script[turn])
        ]
        return ChatReply(text="", finish="tools", tool_calls=tuple(calls))


def opened(folder: Path, **options: Any) -> Environment:
    """The environment on made data."""
    if not (folder / "split").exists():
        write_officeqa(folder)
    data = data_settings(split_mode="split_dir", split_dir=str(folder / "split"))
    return open_on(folder, "officeqa", data, **{"data_dirs": ["docs"], **options})


def tried(environment: Environment, agent: Agent, uid: str = "UID0000") -> Episode:
    """The episode of one training item."""
    items: dict[str, Item] = {item.id: item for item in environment.load().train}
    return asyncio.run(environment.attempt(items[uid], SKILL, agent, seed=1))


def said(agent: Agent) -> list[str]:
    """What the tools answered."""
    return [message.content for message in agent.asked[-1] if message.role == "tool"]


@pytest.mark.parametrize(
    ("cell", "entries"),
    [
        ("a.txt\r\nb.txt", ("a.txt", "b.txt")),
        ("a.txt\nb.txt\n", ("a.txt", "b.txt")),
        ("a,b", ("a", "b")),
        ("a.txt,b.txt", ("a.txt", "b.txt")),
        ('["a.txt", "b.txt"]', ("a.txt", "b.txt")),
        (["a.txt", " b.txt ", ""], ("a.txt", "b.txt")),
        ("https://x/?a=1,2&page=3, https://y", ("https://x/?a=1,2&page=3", "https://y")),
        ("[a.txt", ("[a.txt",)),
        ("a.txt", ("a.txt",)),
        ("", ()),
        (None, ()),
    ],
)
def test_a_cell_may_hold_several_entries(cell: Any, entries: tuple[str, ...]) -> None:
    """In any of the ways that the data write them."""
    assert list_cell(cell) == entries


def test_the_published_columns_are_read(tmp_path: Path) -> None:
    """From CSV with cells over lines, or from JSON with the other names; the id comes from `uid`."""
    splits = opened(tmp_path).load()
    assert (len(splits.train), len(splits.val), len(splits.test), splits.notes) == (7, 7, 7, ())
    last: Any = splits.train[-1]
    assert (last.id, last.task_type, last.answer) == ("UID0006", "hard", questions("train")[-1]["answer"])
    assert [each.name for each in last.documents] == [file_of(YEARS[0]), file_of(YEARS[2])]
    rows = [
        {"id": split, "split": split, "question": "?", "ground_truth": 5, "category": "c"} for split in ("train", "val")
    ]
    path = write_lines(tmp_path / "items.jsonl", rows)
    plain = open_on(tmp_path, "officeqa", data_settings(split_mode="field", data_path=str(path)), data_dirs="docs")
    item: Any = plain.load().train[0]
    assert (item.answer, item.task_type, len(item.documents)) == ("5", "c", 3)


def test_a_csv_file_is_split_by_ratio(tmp_path: Path) -> None:
    """Named itself, or as the only file of a folder."""
    write_officeqa(tmp_path)
    for path in (tmp_path / "split" / "train", tmp_path / "split" / "train" / "questions.csv"):
        splits = open_on(tmp_path, "officeqa", data_settings(data_path=str(path)), data_dirs="docs").load()
        assert (len(splits.train), len(splits.val), len(splits.test)) == (3, 2, 2)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("question,answer\n1,2\n", ":2: this item has no `uid` and no `id`"),
        ("uid,question,answer\na,?,1\na,?,2\n", ":3: id 'a' is already used at"),
        ("uid,question,answer\na,,1\n", ":2: item 'a': `question` is missing"),
        ("uid,question,answer\na,?,\n", ":2: item 'a': there is neither `ground_truth` nor `answer`"),
        ("uid,question,answer\na,?,1,2\n", ":2: this row has 4 cells, but the header has 3 columns"),
        ('uid,question,answer\na,"?,1\n', ":2: not CSV"),
        ("uid,question,answer\n,?,1\n", ":2: this item has no `uid`"),
        ("uid,question,answer\n", "holds no item"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(tmp_path: Path, text: str, error: str) -> None:
    """Before the first call."""
    write_officeqa(tmp_path)
    (tmp_path / "split" / "train" / "questions.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        opened(tmp_path).load()
    assert error in caught.value.message


def test_a_run_is_not_resumed_on_other_documents(tmp_path: Path) -> None:
    """The digests of the splits cover what their items are answered from."""
    before = opened(tmp_path).load().digests
    (tmp_path / "docs" / "transformed" / file_of(YEARS[0])).write_text("other")
    assert opened(tmp_path).load().digests != before


def test_folders_that_are_missing_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch begins without documents; the variable names them where the config does not."""
    monkeypatch.delenv("OFFICEQA_DOCS_DIR", raising=False)
    with pytest.raises(ConfigError, match=r"env.data_dirs: .*/nowhere does not exist"):
        opened(tmp_path, data_dirs="docs,nowhere").load()
    with pytest.raises(ConfigError, match=r"env\.data_dirs is not set"):
        opened(tmp_path, data_dirs=[]).load()
    monkeypatch.setenv("OFFICEQA_DOCS_DIR", str(tmp_path / "docs"))
    assert opened(tmp_path, data_dirs=[]).load().train
    with pytest.raises(DataError, match=r"no \.txt or .md file"):
        opened(tmp_path, data_dirs="split").load()


def test_the_target_finds_an_answer_with_tools(tmp_path: Path) -> None:
    """Names are those of the corpus, and nothing of this machine is in what was said."""
    month, name = MONTHS[0], file_of(YEARS[0])
    receipts = figures(YEARS[0])[month][0]
    script = [
        [("glob", {"pattern": "*1939*"}), ("glob", {"pattern": "*1941*"})],
        [("grep", {"pattern": f"| {month.upper()}", "path": name})],
        [("read", {"path": name, "start": "95", "limit": 3})],
    ]
    agent = Agent(script, last=f"<answer>1</answer> no: <answer>{receipts} million</answer>")
    episode = tried(opened(tmp_path), agent)
    assert (episode.outcome, episode.turns, agent.offered) == (Measured(1, 1), 4, ["glob", "read", "grep"])
    found = said(agent)
    assert found[:2] == [name, "[no document matches]"]
    assert found[2].endswith(f": | {month} | {receipts} | {figures(YEARS[0])[month][1]} |")
    assert len(found[3].splitlines()) == 3
    assert str(tmp_path) not in repr(agent.asked)
    assert [record.kind for record in episode.records] == ["system", "user", *["tool"] * 8, "reply", "feedback"]


@pytest.mark.parametrize(
    ("name", "given", "answer"),
    [
        ("read", "{not json", "[the arguments are not JSON"),
        ("read", "[1]", "[the arguments are no JSON object]"),
        ("read", "", "[`path` is missing"),
        ("read", {"path": 3}, "[`path` is missing"),
        ("read", {"path": "../jsons/x.json"}, "none of the documents"),
        ("read", {"path": "/etc/passwd"}, "none of the documents"),
        ("read", {"path": "secret.txt"}, "none of the documents"),
        ("read", {"path": "a.txt", "start": "x"}, "[`start` is no whole number]"),
        ("read", {"path": "a.txt", "limit": 1.5}, "[`limit` is no whole number]"),
        ("read", {"path": "a.txt", "limit": "1e999"}, "[`limit` is no whole number]"),
        ("read", {"path": "a.txt", "limit": 0}, "at least 1"),
        ("read", {"path": "a.txt", "start": 99}, "[nothing there: the document has 3 lines]"),
        ("read", {"path": "./a.txt", "start": 2, "limit": 1}, "caf\ufffd"),
        ("grep", {"path": "a.txt", "pattern": "ONE"}, "1: one"),
        ("grep", {"path": "a.txt", "pattern": "o.e"}, "[no line contains it]"),
        ("glob", {"pattern": "*"}, "a.txt\nsub/b.txt"),
        ("glob", {"pattern": "b.*"}, "sub/b.txt"),
        ("delete", {}, "[there is no tool 'delete'"),
    ],
)
def test_a_request_is_answered_whatever_it_holds(tmp_path: Path, name: str, given: Any, answer: str) -> None:
    """And reaches documents of the item alone."""
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    (docs / "a.txt").write_bytes(b"one\ncaf\xe9\nthree")
    (docs / "sub" / "b.txt").write_text("b")
    (docs / "answers.csv").write_text("uid,answer")
    (tmp_path / "secret.txt").write_text("secret")
    (docs / "secret.txt").symlink_to(tmp_path / "secret.txt")
    desk = Desk(corpus(docs).named([]))
    assert answer in desk.use(ToolCall("1", name, given if isinstance(given, str) else json.dumps(given)))


def corpus(folder: Path) -> Corpus:
    return open_corpus([str(folder)], folder, {})


def test_what_a_tool_says_is_bounded(tmp_path: Path) -> None:
    """However long the lines, however many the documents and the matches."""
    for number in range(60):
        (tmp_path / f"{number:02}.txt").write_text(f"{'x' * 3000}\n" * 50)
    desk = Desk(corpus(tmp_path).named([]))
    for name, given in (
        ("glob", {"pattern": "*"}),
        ("read", {"path": "00.txt"}),
        ("grep", {"path": "00.txt", "pattern": "x"}),
    ):
        answer = desk.use(ToolCall("1", name, json.dumps(given)))
        assert len(answer) < MOST_CHARACTERS + 100
        assert answer.endswith("]")


def test_an_item_reads_its_own_documents_only(tmp_path: Path) -> None:
    """Those that its row names; more requests than are answered in one reply are told so."""
    other = ("read", {"path": file_of(YEARS[1])})
    agent = Agent([[other] * 20])
    tried(opened(tmp_path), agent)
    assert "none of the documents" in said(agent)[0]
    assert said(agent)[16:] == ["[at most 16 requests in one reply]"] * 4
    assert file_of(YEARS[1]) not in agent.asked[0][1].content


def test_a_budget_that_is_used_up_is_labelled(tmp_path: Path) -> None:
    """Its requests stand in the record, unanswered."""
    agent = Agent([[("glob", {"pattern": "*"})]] * 9)
    episode = tried(opened(tmp_path, max_tool_turns=3), agent)
    assert (len(agent.asked), episode.turns, episode.outcome) == (3, 3, Measured(0, 0))
    assert (episode.failure, episode.prediction) == ("budget_exhausted", "")
    assert episode.detail.startswith("all 3 turns were used up on tools")


@pytest.mark.parametrize(
    ("reply", "code"),
    [("42", "format"), ("", "no_answer"), ("<answer> </answer>", "no_answer"), ("<answer>x</answer>", "wrong_answer")],
)
def test_failures_have_codes(tmp_path: Path, reply: str, code: str) -> None:
    """The analyst reads what was expected; the target never does."""
    agent = Agent(last=reply)
    episode = tried(opened(tmp_path), agent)
    assert episode.failure == code
    answer = questions("train")[0]["answer"]
    assert answer in episode.detail
    assert answer in episode.records[-1].text
    assert answer not in repr(agent.asked)


def test_a_cut_reply_is_not_measured(tmp_path: Path) -> None:
    """And a document that vanished keeps the item from being measured."""

    async def cut(*_: Any, **__: Any) -> ChatReply:
        return ChatReply(text="", finish="length")

    environment = opened(tmp_path)
    item = environment.load().train[0]
    assert isinstance(asyncio.run(environment.attempt(item, SKILL, cut, seed=1)).outcome, Failed)
    (tmp_path / "docs" / "transformed" / file_of(YEARS[0])).unlink()
    agent = Agent([[("read", {"path": file_of(YEARS[0])})]])
    episode = asyncio.run(environment.attempt(item, SKILL, agent, seed=1))
    assert episode.outcome == Failed("data", f"{file_of(YEARS[0])} cannot be read: No such file or directory")


def test_oracle_pages_are_shown_when_the_config_says_so(tmp_path: Path) -> None:
    """As tables; items without such a page are named in the notes, and without the key no page is shown."""
    uid = next(row["uid"] for row in questions("train") if file_of(PARSED_YEAR) == row["source_files"])
    environment = opened(tmp_path, oracle_pages=True, use_local_tools=False)
    agent = Agent()
    tried(environment, agent, uid)
    shown = agent.asked[0][1].content
    assert agent.offered == []
    assert f"### {file_of(PARSED_YEAR)}, page {PAGE}\n" in shown
    assert "Receipts & expenditures\n(in millions of dollars)\n\n| Month | Receipts | Expenditures |\n| --- |" in shown
    assert "TREASURY BULLETIN" not in shown
    assert "have no oracle page" in environment.load().notes[0]
    plain = Agent()
    tried(opened(tmp_path), plain, uid)
    assert "| --- |" not in plain.asked[0][1].content


def test_pages_are_paired_with_files() -> None:
    """In order, or all with the only file; an address without a page names none."""
    one, two, three = (
        f"https://x/?{key}={number}" for number, key in enumerate(("page", "pagenum", "page_id"), start=1)
    )
    assert wanted_pages(["a", "b"], [one, two, three]) == (Page("a", 1, one), Page("b", 2, two))
    assert wanted_pages(["a"], [one, two, "https://x/", one]) == (Page("a", 1, one), Page("a", 2, two))
    assert wanted_pages(["a"], ["https://x/?page=-1", "https://[x?page=2", f"https://x/?page={'9' * 50}"]) == ()


def test_oracle_pages_are_bounded(tmp_path: Path) -> None:
    """Each, and all together; a cut says that it is one."""
    (tmp_path / "jsons").mkdir()
    elements = [{"content": f"{number} " * 40_000, "bbox": {"page_id": number}} for number in range(9)]
    (tmp_path / "jsons" / "a.json").write_text(json.dumps({"document": {"elements": elements}}))
    pages = [Page("a.txt", number, "source") for number in range(9)]
    assert len(oracle_text([tmp_path], pages[:1])) < MOST_OF_A_PAGE + 100
    whole = oracle_text([tmp_path], pages)
    assert MOST_OF_ALL - 100 < len(whole) < MOST_OF_ALL + 100
    assert whole.endswith("here …]")


def test_tables_of_pages() -> None:
    """Cells lose what would break the table, unclosed ones end with the next, short rows are filled."""
    source = "<table><tr><th>A|B<th>C<br>D</tr><tr><td>1 &amp; 2</table>"
    assert pipe_table(source) == "| A\\|B | C D |\n| --- | --- |\n| 1 & 2 |  |"
    assert pipe_table("<table></table>") == ""
