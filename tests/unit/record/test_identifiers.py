import pytest

from llamaops.record.redact import Redactor


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("https://bob:p%40w@h.example/x", "https://<user-1>:<secret-1>@h.example/x"),
        ("redis://:pw9@localhost:6379/0", "redis://:<secret-1>@localhost:6379/0"),
        ("mail bob.x@example.org now", "mail <email-1> now"),
        ("?u=bob%40example.org", "?u=<email-1>"),
        ("/home/bobby/m.gguf", "/home/<user-1>/m.gguf"),
        ("C:\\\\Users\\\\bobby\\\\m.gguf", "C:\\\\Users\\\\<user-1>\\\\m.gguf"),
        ("from 10.1.2.3:50 and 10.1.2.3", "from <address-1>:50 and <address-1>"),
        ("to 81.2.69.142 and [2001:db8:1::5]:80", "to <address-1> and [<address-2>]:80"),
        ("link/ether 3c:52:82:11:22:33 brd ff:ff:ff:ff:ff:ff", "link/ether <device-1> brd ff:ff:ff:ff:ff:ff"),
        ("http://atlas.corp.lan:80/ atlas up", "http://<host-1>:80/ atlas up"),
        ("http://gpu-node7.lan:80/ gpu-node7 up", "http://<host-1>:80/ <host-1> up"),
        ("Linux box9 6.8.0-45-generic", "Linux <host-1> 6.8.0-45-generic"),
        ("bobby@box-9:~/x$ ls", "<user-1>@<host-1>:~/x$ ls"),
        ("Nov 29 18:43:01 box9 llama-server[12]: up", "Nov 29 18:43:01 <host-1> llama-server[12]: up"),
        ("uid=1000(bobby) gid=0(root)", "uid=1000(<user-1>) gid=0(root)"),
        ("--rpc box9:50052,box-8:1", "--rpc <host-1>:50052,<host-2>:1"),
        ("HOSTNAME=box9", "HOSTNAME=<host-1>"),
    ],
)
def test_people_and_machines_go(text: str, result: str) -> None:
    assert Redactor().text(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8080 http://[::1]:80 0.0.0.0 localhost",
        "10.34.123.200 I srv  update_slots: all slots are idle",
        "Driver Version: 5.90.7.1, libcublas.so.12.4.5.8, Chrome/120.0.0.0",
        "Linux version 6.8.0-45-generic",
        "git clone git@github.com:ggml-org/llama.cpp.git",
        "systemctl status user@1000.service",
        "0000:01:00.0 std::vector ggml::foo 12:34:56",
        "/home/linuxbrew/.linuxbrew/bin ~/.local/share",
        "--rpc SERVERS  comma separated; --host is needed",
        "hostname: 0.0.0.0, port: 80",
        "memcpy@@GLIBC_2.14 blk.0.attn@weight",
    ],
)
def test_ordinary_names_and_numbers_stay(text: str) -> None:
    assert Redactor().text(text) == text
