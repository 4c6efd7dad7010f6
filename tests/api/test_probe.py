"""A probe from texts to a results folder."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import pytest

from npusim.api.probe import probe
from npusim.core.errors import InputError
from npusim.validate.probe_result import ProbeResult


def test_a_probe_leaves_everything_in_one_folder(tmp_path):
    found = probe("npu_edge", only=["latency", "roofline"], out=str(tmp_path), command=["x"])
    assert found.folder.parent == tmp_path / "probe@npu_edge"
    assert (found.folder.parent / "latest").resolve() == found.folder
    names = {path.name for path in found.folder.iterdir()}
    assert names == {
        "probe.json", "report.txt", "machine.yaml", "run.json", "roofline.svg",
        "roofline-sustained-against-intensity.svg",
    }  # fmt: skip
    assert (found.folder / "probe.json").read_text() == found.result.to_json()
    assert ProbeResult.model_validate_json(found.result.to_json()) == found.result
    for picture in found.folder.glob("*.svg"):
        assert xml.fromstring(picture.read_text()).tag.endswith("svg")


def test_the_same_probe_gives_the_same_bytes(tmp_path):
    folders = [
        probe("npu_edge", only=["overheads", "scaling"], out=str(tmp_path / name)).folder
        for name in ("a", "b")
    ]
    for path in folders[0].iterdir():
        if path.name != "run.json":
            assert path.read_bytes() == (folders[1] / path.name).read_bytes()


def test_an_unknown_group_writes_nothing(tmp_path):
    with pytest.raises(InputError, match="nearest: latency"):
        probe(only=["latencies"], out=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_fields_set_otherwise_are_measured_and_noted():
    found = probe("npu_a", ["noc.latency_cycles=100"], ["latency"], out=None)
    (remote,) = [m for m in found.result.measurements if m.name == "remote core"]
    assert remote.value == pytest.approx(208e-9, abs=5e-9)
    assert found.result.manifest.hw_set == ("noc.latency_cycles=100",)
    assert found.folder is None


def test_those_who_watch_are_told_the_groups():
    told = []
    probe("npu_edge", only=["latency", "overheads"], out=None, watcher=lambda *a: told.append(a))
    assert ("probe overheads", 1, 2) in told
