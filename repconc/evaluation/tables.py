"""One table, three forms: text for the terminal, Markdown, LaTeX."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Format = Literal["text", "markdown", "latex"]


@dataclass(frozen=True)
class Table:
    """Headings and rows of text. The first column is a name; the others are figures and stand to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def render(self, format: Format) -> str:
        return {"text": self._text, "markdown": self._markdown, "latex": self._latex}[format]()

    def _text(self) -> str:
        widths = [max(len(row[column]) for row in (self.columns, *self.rows)) for column in range(len(self.columns))]
        lines = [self._line(row, widths) for row in (self.columns, *self.rows)]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([lines[0], rule, *lines[1:], *([self.note] if self.note else [])])

    @staticmethod
    def _line(row: Sequence[str], widths: Sequence[int]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    def _markdown(self) -> str:
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
            for row in (self.columns, rule, *self.rows)
        ]
        return "\n".join([*lines, *(["", self.note] if self.note else [])])

    def _latex(self) -> str:
        rows = [" & ".join(_escape(cell) for cell in row) + r" \\" for row in (self.columns, *self.rows)]
        body = [rows[0], r"\midrule", *rows[1:]]
        head = r"\begin{tabular}{@{}l" + "r" * (len(self.columns) - 1) + r"@{}}"
        note = [f"% {self.note}"] if self.note else []
        return "\n".join([*note, head, r"\toprule", *body, r"\bottomrule", r"\end{tabular}"])


def _escape(text: str) -> str:
    """Text as LaTeX prints it."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    return "".join(special.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)
