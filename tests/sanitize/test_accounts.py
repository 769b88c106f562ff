"""Users whom commands name, and tokens that a line break tears."""

from __future__ import annotations

import pytest

from blade.sanitize import Cleaner, Key

KEY = Key(b"a key for tests, of some length")
USERS = [
    "sudo -u kvasirsson ls",
    "sudo -H -u kvasirsson bash",
    "sudo --user=kvasirsson id",
    "su - kvasirsson",
    "su -l kvasirsson -c 'ls'",
    "chown kvasirsson:kvasirsson /srv/a",
    "chown -R kvasirsson ./out",
    "chown -R root:kvasirsson /srv",
    "useradd -m -s /bin/bash kvasirsson",
    "adduser kvasirsson",
    "usermod -aG sudo kvasirsson",
    "$ whoami\nkvasirsson\n$ ls",
    "whoami\nkvasirsson",
    "out in /scratch/kvasirsson/run3/log",
]
STAYS = [
    "sudo -u postgres psql",
    "sudo -u www-data ls",
    "sudo apt install -u curl",
    "su - root",
    "su - postgres",
    "chown user:group file.txt",
    "chown www-data:www-data /var/www",
    "chown changes the owner of a file.",
    "chown root:root /etc/x",
    "useradd newuser",
    "useradd -m testuser",
    "the useradd command",
    "whoami\nroot\n",
    "whoami prints who you are\nand more",
    "run whoami\nthen",
    "/scratch/tmp/x",
    "/scratch/imagenet/train",
    "/scratch/models/x",
    "from /scratch/data/a",
]
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.mark.parametrize("text", USERS)
def test_a_user_whom_a_command_names_goes(text: str) -> None:
    new = Cleaner(KEY).row(text)
    assert "kvasirsson" not in new
    assert Cleaner(KEY).row(new) == new


@pytest.mark.parametrize("text", STAYS)
def test_accounts_of_nobody_and_words_about_commands_stay(text: str) -> None:
    assert Cleaner(KEY).row(text) == text


@pytest.mark.parametrize("at", range(5, 36))
@pytest.mark.parametrize("gap", ["\n", "\r\n", "\n    ", "\n> "])
def test_a_token_over_two_lines_goes(at: int, gap: str) -> None:
    new = Cleaner(KEY).text(f"pushed with {TOKEN[:at]}{gap}{TOKEN[at:]} today\nnext line")
    assert TOKEN[:at] not in new
    if at < 34:
        assert TOKEN[at:] not in new
    assert new.endswith(" today\nnext line")


def test_the_line_after_a_whole_token_stays() -> None:
    for after in ("gpt4 was asked", "step12", "a plain line"):
        assert Cleaner(KEY).text(f"with {TOKEN}\n{after}").endswith(f"]\n{after}")
    for text in ("hf_hub\nv2 of it12345", "npm_config\ntest1234567", "sk-proj-\nabcdef12"):
        assert Cleaner(KEY).text(text) == text
