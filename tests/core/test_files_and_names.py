"""Files whole or not at all; heads and sources as they are written."""

import os
import stat

import pytest

from circuitview.core.files import read_text, write_bytes_whole, write_whole
from circuitview.core.names import POSITION, TOKEN, CircuitviewError, Head, Source


def test_written_file_has_its_content_and_ordinary_rights(tmp_path):
    write_bytes_whole(tmp_path / "a.svg", b"figure")
    assert (tmp_path / "a.svg").read_bytes() == b"figure"
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE((tmp_path / "a.svg").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.svg"
    path.write_bytes(b"old")

    def write(temporary):
        temporary.write_bytes(b"half")
        raise error

    expected = CircuitviewError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_whole(path, write)
    assert [file.name for file in tmp_path.iterdir()] == ["a.svg"]
    assert path.read_bytes() == b"old"


def test_a_link_still_leads_to_its_file_after_writing(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "link.svg").symlink_to(tmp_path / "kept" / "a.svg")
    write_bytes_whole(tmp_path / "link.svg", b"figure")
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "kept" / "a.svg").read_bytes() == b"figure"


def test_the_longest_name_that_a_folder_can_hold_is_written(tmp_path):
    path = tmp_path / ("n" * 251 + ".svg")
    write_bytes_whole(path, b"figure")
    assert path.read_bytes() == b"figure"


@pytest.mark.parametrize("name", ["n" * 300 + ".svg", "a\0b.svg"])
def test_a_name_that_no_folder_can_hold_gets_a_line(tmp_path, name):
    with pytest.raises(CircuitviewError, match="can't write"):
        write_bytes_whole(tmp_path / name, b"figure")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("through_link", [False, True])
def test_a_pipe_is_not_replaced(tmp_path, through_link):
    """Nor a device: renamed over, /dev/null itself would be gone."""
    path, pipe = tmp_path / "a.svg", tmp_path / "pipe"
    os.mkfifo(pipe if through_link else path)
    if through_link:
        path.symlink_to(pipe)
    with pytest.raises(CircuitviewError, match=r"a\.svg is a pipe or a device; name a file"):
        write_bytes_whole(path, b"figure")
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_the_mark_in_front_of_a_text_is_not_read_as_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbftea")
    assert read_text(tmp_path / "a.txt") == "tea"


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(CircuitviewError, match="choose another folder") as caught:
        write_bytes_whole(tmp_path / "gone" / "a.svg", b"")
    assert "gone" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folder_in_the_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(CircuitviewError, match="is a folder"):
        write_bytes_whole(tmp_path, b"")


@pytest.mark.parametrize("text", ["1.4", "L1H4", "l1h4", " 1.4 "])
def test_head_is_parsed_as_people_write_it(text):
    assert Head.parse(text) == Head(1, 4)
    assert str(Head.parse(text)) == "1.4"


@pytest.mark.parametrize(
    "text", ["", "1", "1.", ".4", "1.4.5", "-1.4", "head 1.4", "L1", "1,4", "9" * 5000 + ".1"]
)
def test_what_is_no_head_is_quoted(text):
    with pytest.raises(CircuitviewError, match="is not a head"):
        Head.parse(text)


@pytest.mark.parametrize("source", [TOKEN, POSITION, Source("bias", 3), Source("mlp", 0)])
def test_source_parses_back(source):
    assert Source.parse(str(source)) == source
