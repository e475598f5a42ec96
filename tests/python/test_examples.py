"""The notebooks of docs/examples run from the first cell to the last."""

import pathlib

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/examples"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    book = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    shown = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.output_type in ("execute_result", "stream") for output in shown)


def test_committed_notebooks_hold_no_outputs():
    assert len(BOOKS) == 3
    for path in BOOKS:
        assert not any(cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells)
