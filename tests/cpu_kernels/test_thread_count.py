"""How many threads are used when nobody says."""

from pathlib import Path

import pytest

from halfbyte.cpu_kernels import threads
from halfbyte.errors import ConfigError

V2 = "/sys/fs/cgroup/cpu.max"
V1_QUOTA, V1_PERIOD = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"


@pytest.fixture
def system(monkeypatch):
    """`system(cpus, files)`: a machine on which this process may use `cpus`, with these files and no others."""

    def pretend(cpus, files=None):
        files = files or {}
        monkeypatch.setattr(threads, "_allowed", lambda: set(cpus))
        monkeypatch.setattr(threads, "_read", lambda path: files.get(Path(path).as_posix(), ""))

    return pretend


def cpu(number, siblings=None, **speed):
    folder = f"/sys/devices/system/cpu/cpu{number}"
    files = {f"{folder}/topology/thread_siblings_list": siblings or str(number)}
    names = {"capacity": "cpu_capacity", "frequency": "cpufreq/cpuinfo_max_freq"}
    return files | {f"{folder}/{names[kind]}": str(value) for kind, value in speed.items()}


def test_every_core_this_process_may_use(system):
    system({0, 1, 5})
    assert threads.count(None) == 3


def test_hyperthreads_count_once(system):
    system(range(4), cpu(0, "0,2") | cpu(2, "0,2") | cpu(1, "1,3") | cpu(3, "1,3"))
    assert threads.count(None) == 2


def test_half_a_core_counts_as_one(system):
    system({2, 3}, cpu(2, "0,2") | cpu(3, "1,3"))
    assert threads.count(None) == 2


@pytest.mark.parametrize("kind", ["capacity", "frequency"])
def test_slow_cores_are_left_out(system, kind):
    speeds = [1024, 1024, 900, 400, 400]
    system(range(5), {k: v for n, speed in enumerate(speeds) for k, v in cpu(n, **{kind: speed}).items()})
    assert threads.count(None) == 3


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({V2: "200000 100000"}, 2),
        ({V2: "150000 100000"}, 2),
        ({V2: "10000 100000"}, 1),
        ({V2: "900000 100000"}, 8),
        ({V2: "max 100000"}, 8),
        ({V2: "200000 0"}, 8),
        ({V2: "nonsense"}, 8),
        ({V1_QUOTA: "300000", V1_PERIOD: "100000"}, 3),
        ({V1_QUOTA: "-1", V1_PERIOD: "100000"}, 8),
        ({V1_QUOTA: "300000"}, 8),
        ({V2: "200000 100000", V1_QUOTA: "300000", V1_PERIOD: "100000"}, 2),
        ({}, 8),
    ],
)
def test_a_containers_quota_is_the_limit(system, files, expected):
    system(range(8), files)
    assert threads.count(None) == expected


def test_a_machine_of_a_thousand_cores_gets_the_most(system):
    system(range(1000))
    assert threads.count(None) == threads.MOST


def test_a_file_that_is_not_there_reads_as_nothing(tmp_path):
    assert threads._read(tmp_path / "nothing") == ""
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert threads._read(tmp_path / "cpu.max") == "max 100000"


@pytest.mark.parametrize("number", [1, 2, 256])
def test_a_number_is_taken_as_it_is(number):
    assert threads.count(number) == number


@pytest.mark.parametrize("number", [0, -1, 257, 300, True, False, 1.5, 2.0, "2", float("nan")])
def test_other_numbers_are_refused(number):
    with pytest.raises(ConfigError, match="threads must be a whole number from 1 to 256, not") as caught:
        threads.count(number)
    assert caught.value.key == "threads"
