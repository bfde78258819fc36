from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.cgroup import (
    collect_cpu_quota,
    collect_membership,
    collect_memory_ceiling,
    find_groups,
    parse_counters,
    parse_membership,
)
from llamaops.facts.mounts import collect_mounts
from llamaops.schema.fact import Unknown
from tests.fakes.system import FakeSystem

V2 = "35 24 0:30 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def system(membership: str, mounts: str, files: dict[str, str | bytes | OSError]) -> FakeSystem:
    return FakeSystem(files={"/proc/self/cgroup": membership, "/proc/self/mountinfo": mounts, **files})


def folders(fake: FakeSystem, controller: str = "memory") -> tuple[str, ...]:
    return find_groups(fake, controller, collect_membership(fake), collect_mounts(fake)).need().folders


def test_parses_both_versions_and_combined_controllers() -> None:
    text = "5:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n"
    assert parse_membership(text) == {"cpu": "/a", "cpuacct": "/a", "name=systemd": "/b", "": "/c"}


def test_a_path_may_hold_colons() -> None:
    assert parse_membership("0::/a:b\n") == {"": "/a:b"}


@pytest.mark.parametrize("text", ["", "what is this\n"])
def test_text_of_another_form_is_not_a_membership(text: str) -> None:
    with pytest.raises(ParseError):
        parse_membership(text)


def test_walks_from_the_own_group_to_the_mount() -> None:
    fake = system("0::/a/b\n", V2.format(root="/"), {"/sys/fs/cgroup/a/b/cpu.max": "max"})
    assert folders(fake) == ("/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup")


def test_the_root_of_a_partial_mount_is_cut_off_the_path() -> None:
    fake = system("0::/docker/x/sub\n", V2.format(root="/docker/x"), {"/sys/fs/cgroup/sub/memory.max": "1"})
    assert folders(fake) == ("/sys/fs/cgroup/sub", "/sys/fs/cgroup")


@pytest.mark.parametrize("path", ["/../other", "/not/visible/here"])
def test_a_path_of_another_namespace_leaves_the_mount_itself(path: str) -> None:
    # Outside the namespace `..` leads to a folder of /sys that has nothing to do with groups.
    files: dict[str, str | bytes | OSError] = {
        "/sys/fs/cgroup/memory.max": "1",
        "/sys/fs/cgroup/../other/x": "",
    }
    fake = system(f"0::{path}\n", V2.format(root="/"), files)
    assert folders(fake) == ("/sys/fs/cgroup",)


def test_in_a_hybrid_the_version_that_holds_the_controller_counts() -> None:
    mounts = V2.format(root="/") + "40 24 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    fake = system("4:memory:/x\n0::/y\n", mounts, {"/sys/fs/cgroup/memory/x/a": "", "/sys/fs/cgroup/y/a": ""})
    assert folders(fake)[0] == "/sys/fs/cgroup/memory/x"
    assert folders(fake, "cpu")[0] == "/sys/fs/cgroup/y"


def test_a_group_whose_files_are_not_mounted_is_not_known() -> None:
    fake = system("0::/x\n", "24 1 8:2 / / rw - ext4 /dev/sda rw\n", {})
    groups = find_groups(fake, "memory", collect_membership(fake), collect_mounts(fake))
    assert isinstance(groups, Unknown)
    assert groups.why == "refused"


def ceiling(fake: FakeSystem) -> object:
    groups = find_groups(fake, "memory", collect_membership(fake), collect_mounts(fake))
    return collect_memory_ceiling(fake, groups)


def test_a_limit_that_cannot_be_read_is_not_no_limit() -> None:
    fake = system(
        "0::/x\n",
        V2.format(root="/"),
        {
            "/sys/fs/cgroup/x/memory.max": PermissionError(13, "Permission denied"),
            "/sys/fs/cgroup/memory.max": "max\n",
        },
    )
    found = ceiling(fake)
    assert isinstance(found, Unknown)
    assert found.why == "refused"


def test_a_limit_in_words_that_we_do_not_know_is_unparsed() -> None:
    found = ceiling(system("0::/\n", V2.format(root="/"), {"/sys/fs/cgroup/memory.max": "plenty\n"}))
    assert isinstance(found, Unknown)
    assert found.why == "unparsed"


def test_memory_high_binds_as_max_does() -> None:
    fake = system(
        "0::/\n",
        V2.format(root="/"),
        {
            "/sys/fs/cgroup/memory.max": "4000000\n",
            "/sys/fs/cgroup/memory.high": "3000000\n",
            "/sys/fs/cgroup/memory.current": "1000000\n",
        },
    )
    groups = find_groups(fake, "memory", collect_membership(fake), collect_mounts(fake))
    found = collect_memory_ceiling(fake, groups).need()
    assert found.limit_file.endswith("memory.high")
    assert found.headroom_bytes == 2000000


def test_version_1_without_hierarchy_does_not_count_the_parent() -> None:
    mounts = "40 24 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    top = "/sys/fs/cgroup/memory"
    fake = system(
        "4:memory:/x\n",
        mounts,
        {
            f"{top}/x/memory.limit_in_bytes": "9223372036854771712\n",
            f"{top}/memory.use_hierarchy": "0\n",
            f"{top}/memory.limit_in_bytes": "1000\n",
            f"{top}/memory.usage_in_bytes": "1\n",
        },
    )
    found = ceiling(fake)
    assert isinstance(found, Unknown)
    assert found.why == "absent"


@pytest.mark.parametrize("text", ["0 100000\n", "100000 0\n", "many few\n"])
def test_a_quota_that_makes_no_sense_is_unparsed(text: str) -> None:
    fake = system("0::/\n", V2.format(root="/"), {"/sys/fs/cgroup/cpu.max": text})
    groups = find_groups(fake, "cpu", collect_membership(fake), collect_mounts(fake))
    found = collect_cpu_quota(fake, groups)
    assert isinstance(found, Unknown)
    assert found.why == "unparsed"


def test_counters_leave_out_what_is_no_number() -> None:
    assert parse_counters("a 1\nb x\nc 2 3\n\nd 4") == {"a": 1, "d": 4}
