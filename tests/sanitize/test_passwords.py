"""Passwords that people choose: gone where a name says what they are, and words beside that stay."""

from __future__ import annotations

import pytest

from blade.sanitize import Cleaner, Key

KEY = Key(b"a key for tests, of some length")
CHOSEN = [
    ("export DB_PASS=Sommerabend2024", "Sommerabend"),
    ("DB_PW=Sommerabend2024", "Sommer"),
    ("DB_PASS=winterfell", "winterfell"),
    ('{"env":{"DB_PASS":"winterfell9"}}', "winterfell"),
    ('{"env":{"SMTP_PASS":"winterfell"}}', "winterfell"),
    ('{"name":"DB_PASSWORD","value":"winterfell9"}', "winterfell"),
    ('{"env":[{"name":"A","value":"b"},{"key":"API_TOKEN","value":"winterfell9"}]}', "winterfell"),
    ("CREATE USER bob WITH PASSWORD 'winterfell';", "winterfell"),
    ("ALTER ROLE bob PASSWORD 'winterfell'", "winterfell"),
    ("CREATE USER 'bob'@'%' IDENTIFIED BY 'winterfell'", "winterfell"),
    ("identified by 'winterfell9'", "winterfell"),
    ('echo "bob:winterfell" | chpasswd', "winterfell"),
    ("echo bob:winterfell9 | sudo chpasswd -e", "winterfell"),
    ("| user | password |\n|---|---|\n| bob | winterfell9 |\n| al | Sommer24 |", "Sommer24"),
    ("user,password\nbob,winterfell9\nal,Sommer24\n", "Sommer24"),
    ("mysqldump --password winterfell db", "winterfell"),
    ("tool --api-key winterfell", "winterfell"),
    ("wget --http-password=winterfell x", "winterfell"),
    ("wget --http-password winterfell x", "winterfell"),
    ("redis-cli -h h -a winterfell", "winterfell"),
    ("unzip -P winterfell a.zip", "winterfell"),
    ("htpasswd -b f bob winterfell", "winterfell"),
    ("setx API_KEY winterfell9", "winterfell"),
    ("setx API_KEY winterfell", "winterfell"),
    ("the password is winterfell", "winterfell"),
    ("password is winterfell.", "winterfell"),
    ("Passwort: winterfell", "winterfell"),
    ("密码：winterfell9", "winterfell"),
    ("密码: winterfell", "winterfell"),
    ("contraseña: winterfell", "winterfell"),
    ("mot de passe : winterfell9", "winterfell"),
    ('["Authorization","Bearer winterfell"]', "winterfell"),
    ('h = ("Authorization", "Bearer winterfell")', "winterfell"),
    ("Authorization: Bearer winterfell", "winterfell"),
    ('{"headers":[["Authorization","Bearer winterfell"]]}', "winterfell"),
    ("smtp_pass = 'winterfell'", "winterfell"),
    ("user: bob, pass: Sommer2024", "Sommer2024"),
    ('{"pass":"Sommer2024"}', "Sommer2024"),
]
STAYS = [
    "password: required",
    "password = get_password()",
    "--password PASSWORD",
    "--password <password>",
    "password is wrong",
    "the password is missing",
    "password is incorrect",
    "password is not valid",
    "Your password is too short",
    "password is stored in the vault",
    "the password is hashed",
    "password is the one you chose",
    "password is visible to all",
    "the password is encrypted with bcrypt",
    "if the password is correct, log in",
    "password is case-sensitive",
    "pass: 12",
    '{"pass": true}',
    '{"pass":"yes"}',
    '{"pass": 12}',
    "pass@1: 0.45",
    "pass@1 = 0.4",
    "passed: 12",
    "passes",
    "pass rate: 40%",
    "n_pass: 12",
    '{"n_pass": "12"}',
    "pass_rate=0.4",
    '{"password": {"type": "string"}}',
    '{"type":"object","properties":{"password":{"type":"string","description":"the password"}},"required":["password","username"]}',
    "first_pass: done",
    "second pass: fixed it",
    '{"verdict":"pass"}',
    '{"pass":"all tests"}',
    '{"all_pass":"true"}',
    "tests pass: everything fine",
    "--api-key KEY",
    "--api-key $API_KEY",
    "--token TOKEN",
    "--password is required",
    "use --password to set it",
    "--password, -p",
    "--password=... or",
    "[--password PASSWORD]",
    "the --password option",
    "--password flag is missing",
    "--secret and more",
    "| field | type |\n|---|---|\n| password | string |\n",
    "| password | required |\n|---|---|\n| min 8 characters | yes |",
    "user,password\nstring,required\n",
    "SET PASSWORD FOR bob",
    "ask for a password 'in the form'",
    "IDENTIFIED BY PASSWORD",
    "identified by 'id' column",
    "unzip -p a.zip",
    "unzip -q data.zip",
    '["password","username"]',
    '["token","user"]',
    '{"name":"password","value":""}',
    '{"name":"password","description":"the value"}',
    '{"name":"token","value":"next"}',
    '{"name":"password","type":"string","value":"required"}',
    "def f(password, user): pass",
    "pass the salt",
    "pass: the test runs",
    '{"key":"token_count","value":"12345678"}',
    "Passwort: erforderlich",
    "密码：必填",
    "basic usage",
    "bearer of news",
    "Authorization: Bearer token",
    "Authorization header required",
    "Authorization: Bearer <token>",
    "bypass: enabled1",
    "compass: north12345",
    "getpass(prompt)",
    "pwd: /tmp/x",
    "cd $PWD",
    "pw = pd.read_csv",
    "pass # nothing else8",
    "class A:\n    pass\n\nclass B2:",
    "else: pass\nx = 12345678",
    "try:\n    pass\nexcept Exception1234:",
    "two-pass: algorithm99",
    "multi_pass=encoder2x",
    "PASS: test_foo_1234",
    "PASS: tests/test_a.py::test_b1",
    "pass: test_login_works1",
    "FAIL/PASS: run12345",
    "RESULT pass=test12345 fail=3",
    "echo 'a:b'",
    "chpasswd reads user:password pairs",
]


@pytest.mark.parametrize(("text", "value"), CHOSEN)
def test_a_chosen_password_goes_where_its_name_tells_of_it(text: str, value: str) -> None:
    new = Cleaner(KEY).row(text)
    assert value not in new
    assert "[SECRET:" in new
    assert Cleaner(KEY).row(new) == new


@pytest.mark.parametrize("text", STAYS)
def test_what_only_speaks_of_passwords_or_of_passing_stays(text: str) -> None:
    assert Cleaner(KEY).row(text) == text


def test_an_id_stays_where_a_secret_is_named_before_it() -> None:
    row = '{"name": "API_KEY", "task_id": "winterfell9", "reward": 1.0, "value": "sommerabend7"}'
    new = Cleaner(KEY).row(row)
    assert '"task_id": "winterfell9", "reward": 1.0' in new
    assert "sommerabend7" not in new
