import pytest

from halfbyte.runtime.memory import _cgroup_free, free_memory


def test_some_memory_is_free_where_the_system_tells():
    free = free_memory()
    assert free is None or free > 1 << 20


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        (".", ("memory.max", "memory.current", "inactive_file")),
        ("memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")),
    ],
)
def test_a_containers_limit_counts_and_droppable_file_pages_do_not(tmp_path, folder, names):
    limit, used, droppable = names
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / limit).write_text("1000\n")
    (tmp_path / folder / used).write_text("700\n")
    assert _cgroup_free(str(tmp_path)) == 300
    (tmp_path / folder / "memory.stat").write_text(f"anon 500\n{droppable} 150\n")
    assert _cgroup_free(str(tmp_path)) == 450


def test_no_limit_is_none(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert _cgroup_free(str(tmp_path)) is None
