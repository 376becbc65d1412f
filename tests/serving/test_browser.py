"""A person's way over the page, in a real browser. Screenshots of each state are kept for whoever wants to look."""

import os
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from repconc.records import Document
from tests.serving.browser import browser
from tests.serving.conftest import text_documents, text_index
from tests.serving.running import running, wait_for
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)

pytestmark = pytest.mark.slow
NASTY = '<img src=x onerror="window.owned=1"><script>window.owned=1</script> & river'
ROWS = "document.querySelectorAll('#answers li').length"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    folder = Path(os.environ.get("REPCONC_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def page():
    with browser() as window:
        yield window


def query_of(window) -> dict[str, list[str]]:
    return parse_qs(urlsplit(window.url).query)


def test_a_person_searches_filters_and_shares(text_server, page, pictures):
    page.open(text_server.address)
    page.wait("document.querySelector('#facts').textContent.includes('smaller')")
    assert "120 documents in" in page.text("#facts")
    page.type("#q", "river of gold\ue007")
    page.wait(f"{ROWS} === 10")
    page.screenshot(pictures / "results.png")
    assert query_of(page) == {"q": ["river of gold"], "index": ["texts"]}
    assert {word.lower() for word in page.texts("#answers mark")} <= {"river", "gold"}
    assert page.texts("#answers mark"), "matching words are marked"
    steps = [step.split()[0] for step in page.texts("#timing .step")]
    assert steps == ["queue", "encode", "probe", "scan", "documents"]
    page.type("#filter", 'lang = "de"\ue007')
    languages = "[...document.querySelectorAll('#answers .field')].map((one) => one.textContent)"
    page.wait(f"{languages}.every((text) => !text.startsWith('lang') || text === 'lang: de')")
    shared = page.url
    assert query_of(page)["filter"] == ['lang = "de"']
    first = page.texts("#answers .title")
    page.open("about:blank")
    page.open(shared)  # somebody else follows the address
    page.wait(f"{ROWS} > 0")
    assert page.texts("#answers .title") == first
    page.click("#answers li .field")  # a value becomes a filter
    page.wait("document.querySelector('#filter').value.includes(' and ')")
    page.back()
    page.wait("document.querySelector('#filter').value === 'lang = \"de\"'")
    assert page.problems() == []


def test_keys(text_server, page):
    page.open(f"{text_server.address}/?q=river&k=5")
    page.wait(f"{ROWS} === 5")
    page.run("document.activeElement.blur()")
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.press(key)
        assert page.run("[...document.querySelectorAll('#answers li')].indexOf(document.activeElement)") == place
    page.press("/")
    assert page.run("document.activeElement.id") == "q"
    page.press("escape")
    assert page.run("document.querySelector('#q').value") == ""


def test_both_rankings_side_by_side(text_server, page, pictures):
    page.open(f"{text_server.address}/?q=river+of+gold")
    page.wait(f"{ROWS} === 10")
    page.click("#compare")
    page.wait("document.querySelectorAll('#answers section').length === 2")
    page.screenshot(pictures / "compared.png")
    assert "in both lists" in page.text("#status")
    assert query_of(page)["compare"] == ["1"]
    assert page.texts("#answers h2")[1] == "Uncompressed 64 bytes a document"


def test_empty_and_error_states(text_server, page, pictures):
    page.open(f"{text_server.address}/?q=river&filter=year+%3E+3000")
    page.wait("document.querySelector('#status').textContent.includes('Nothing found')")
    page.screenshot(pictures / "empty.png")
    page.open(f"{text_server.address}/?q=river&filter=year+%3E")
    page.wait("document.querySelector('.error') !== null")
    assert "cannot be read" in page.text(".error") and "invalid_filter" in page.text(".error")
    page.screenshot(pictures / "error.png")
    page.open(f"{text_server.address}/?index=numbers")
    page.wait("document.querySelector('#q').disabled")
    assert "asked by vectors" in page.text("#status")


ODD = [
    "not",
    "In",
    'quo"ted',
    "back\\slash",
    "it's",
    "with space",
    "año",
    "9lives",
    "a=b",
    "(",
    "",
    "plain-1.x",
    "\u0130",
]


def test_fields_with_odd_names_can_be_filtered_by(tmp_path, tiny_static, page):  # noqa: F811
    """A click on each value must find the document again: the filter is read by the server as it was meant."""
    metadata = {name: f'a "value" of \\ {name}' for name in ODD} | {"number": -1.5e-7, "yes": True}
    folder = text_index(tmp_path / "index", tiny_static, [*text_documents(), Document("odd", "river", "Odd", metadata)])
    rows = "[...document.querySelectorAll('#answers li')].map((one) => one.dataset.id)"
    page.problems()  # those of other tests
    with running(folder, folder=tmp_path) as server:
        for place in range(len(metadata)):
            page.open(f"{server.address}/?q=river&k=100")
            page.wait(f"{rows}.includes('odd')")
            page.run(f"document.querySelectorAll('[data-id=odd] .field')[{place}].click()")
            page.wait(f"{rows}.join() === 'odd' && document.querySelector('#filter').value !== ''")
        page.open(f"{server.address}/?q=river&filter=lang+%3D+%22de%22+or+number+%3C+0")
        page.wait(f"{rows}.includes('odd')")
        page.run("document.querySelector('[data-id=odd] .field').click()")
        page.wait(f"{rows}.join() === 'odd'")
        assert page.problems() == []


def test_the_back_button_leads_to_what_was_shown_before(text_server, page):
    page.open(text_server.address)
    page.wait("document.querySelector('#facts').textContent.includes('smaller')")
    page.type("#q", "river\ue007")
    page.wait(f"{ROWS} === 10")
    river = page.texts("#answers .title")
    page.clear("#q")
    page.type("#q", "king\ue007")
    page.wait(f"{ROWS} === 10 && document.title.startsWith('king')")
    wait_for(lambda: page.texts("#answers .title") not in ([], river))
    page.back()
    page.wait(f"document.querySelector('#q').value === 'river' && {ROWS} === 10")
    wait_for(lambda: page.texts("#answers .title") == river)
    page.back()
    page.wait(f"document.querySelector('#q').value === '' && {ROWS} === 0")
    assert page.run("document.title") == "RepCONC search" and page.run("document.querySelector('#timing').hidden")
    assert page.problems() == []


SNIPPETS = """import("/site/results.js").then(({ snippetOf }) => {
  const words = new Set(["river", "gold", "king"]), far = "plain word ".repeat(40), began = performance.now();
  snippetOf("river gold ".repeat(9000), words);
  const text = far + "river river river river " + far + "a river and gold for the king " + far;
  window.seen = { snippet: snippetOf(text, words), milliseconds: performance.now() - began };
})"""


def test_snippets_show_the_densest_part_of_any_text_in_no_time(text_server, page):
    page.open(text_server.address)
    page.run(f"({SNIPPETS}, 1)")
    page.wait("window.seen !== undefined")
    seen = page.run("window.seen")
    assert "a river and gold for the king" in seen["snippet"] and len(seen["snippet"]) < 320
    assert seen["milliseconds"] < 300


def test_text_of_documents_is_never_markup(tmp_path, tiny_static, page):  # noqa: F811
    folder = text_index(
        tmp_path / "index", tiny_static, [*text_documents(), Document(NASTY, NASTY, NASTY, {NASTY: NASTY})]
    )
    with running(folder, folder=tmp_path) as server:
        page.open(f"{server.address}/?{urlencode({'q': NASTY, 'k': 100})}")
        page.wait(f"{ROWS} === 100")
        assert NASTY in page.texts("#answers .title") and f"{NASTY}: {NASTY}"[:79] + "…" in page.texts(
            "#answers .field"
        )
        page.open(f"{server.address}/?{urlencode({'q': NASTY, 'filter': f'{NASTY} = 1'})}")
        page.wait("document.querySelector('.error') !== null")
        assert NASTY[:20] in page.text(".error")
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        assert page.run("window.owned === undefined")


def test_the_server_goes_away(tmp_path, tiny_static, page, pictures):  # noqa: F811
    folder = text_index(tmp_path / "index", tiny_static, text_documents())
    with running(folder, folder=tmp_path) as server:
        page.open(f"{server.address}/?q=river")
        page.wait(f"{ROWS} === 10")
        server.stop()
        page.type("#q", " of gold\ue007")
        page.wait("document.querySelector('.error') !== null")
        assert "does not answer" in page.text(".error")
    page.problems()  # a connection that is refused, which is what this was about


@pytest.mark.parametrize(("width", "height", "dark"), [(390, 800, False), (1200, 900, True)])
def test_small_screens_and_dark_mode(text_server, pictures, width, height, dark):
    with browser(width, height, dark) as window:
        window.open(f"{text_server.address}/?q=river+of+gold&compare=1")
        window.wait(f"{ROWS} === 20")
        assert window.run("document.documentElement.scrollWidth <= window.innerWidth"), "nothing runs off the side"
        ground = window.run("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(20, 24, 27)") == dark
        window.screenshot(pictures / f"{'dark' if dark else 'small'}.png")
        assert window.problems() == []


def test_the_description_for_people(text_server, page, pictures):
    page.open(f"{text_server.address}/docs")
    page.wait("document.querySelectorAll('.operation').length >= 9")
    assert "/v1/search" in page.text("#operations") and "curl" in page.text("#operations")
    page.screenshot(pictures / "docs.png")
    assert page.problems() == []
