import pytest

from rankinite.core import memory
from rankinite.core.errors import DataError


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A system with 8 MiB left, whose control groups are written by the test."""
    (tmp_path / "meminfo").write_text("MemTotal: 99999 kB\nMemAvailable:  8192 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    return tmp_path


def write_group(folder, limit, used, cached, names=("memory.max", "memory.current")):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(names, (limit, used), strict=True):
        (folder / name).write_text(f"{text}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\n")


def test_without_groups_it_is_what_the_system_has(system):
    assert memory.available_memory() == 8192 * 1024
    (system / "cgroup").write_text("0::/none/here\n")
    assert memory.available_memory() == 8192 * 1024


def test_the_nearest_limit_of_version_2_counts(system):
    (system / "cgroup").write_text("0::/outer/inner\n")
    groups = system / "groups"
    write_group(groups / "outer", 5000, 3000, 100)
    write_group(groups / "outer/inner", "max", 2000, 0)
    assert memory.available_memory() == 2100
    write_group(groups / "outer/inner", 2500, 2000, 50)
    assert memory.available_memory() == 550
    # More is in use than the limit allows, which was lowered.
    write_group(groups / "outer/inner", 1000, 2000, 50)
    assert memory.available_memory() == 0


def test_version_1_and_a_path_of_the_host(system):
    (system / "cgroup").write_text("5:cpu:/\n4:memory,hugetlb:/docker/abc\n0::/\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    write_group(system / "groups/memory", 7000, 1000, 0, names)
    assert memory.available_memory() == 6000


def test_the_sentence(system):
    memory.require_memory("LambdaMART", "a matrix", 8192 * 1024, "use less")
    with pytest.raises(DataError) as caught:
        memory.require_memory("LambdaMART", "a matrix", 9_000_000, "use less")
    assert str(caught.value) == "LambdaMART: a matrix takes 9.0 MB, and 8.4 MB are free; use less"


def test_of_this_machine():
    assert memory.available_memory() > 0
