"""Private values go where something beside them gives them away; what only looks like them stays."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.sanitize import Cleaner, Key

KEY = Key(b"a key for tests, of some length")
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
RANDOM = "q7Zk2Xw9Lm4Tr8Vb3Ny6Pd1Hs5Gj0Fc"
TORN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
CHOSEN = [
    ("export DB_PASS=Sommerabend2024", "Sommerabend"), ("DB_PW=Sommerabend2024", "Sommer"),
    ("DB_PASS=winterfell", "winterfell"), ('{"env":{"DB_PASS":"winterfell9"}}', "winterfell"),
    ('{"env":{"SMTP_PASS":"winterfell"}}', "winterfell"),
    ('{"name":"DB_PASSWORD","value":"winterfell9"}', "winterfell"),
    ('{"env":[{"name":"A","value":"b"},{"key":"API_TOKEN","value":"winterfell9"}]}', "winterfell"),
    ("CREATE USER bob WITH PASSWORD 'winterfell';", "winterfell"),
    ("ALTER ROLE bob PASSWORD 'winterfell'", "winterfell"),
    ("CREATE USER 'bob'@'%' IDENTIFIED BY 'winterfell'", "winterfell"),
    ("identified by 'winterfell9'", "winterfell"), ('echo "bob:winterfell" | chpasswd', "winterfell"),
    ("echo bob:winterfell9 | sudo chpasswd -e", "winterfell"),
    ("| user | password |\n|---|---|\n| bob | winterfell9 |\n| al | Sommer24 |", "Sommer24"),
    ("user,password\nbob,winterfell9\nal,Sommer24\n", "Sommer24"),
    ("mysqldump --password winterfell db", "winterfell"), ("tool --api-key winterfell", "winterfell"),
    ("wget --http-password=winterfell x", "winterfell"), ("wget --http-password winterfell x", "winterfell"),
    ("redis-cli -h h -a winterfell", "winterfell"), ("unzip -P winterfell a.zip", "winterfell"),
    ("htpasswd -b f bob winterfell", "winterfell"), ("setx API_KEY winterfell9", "winterfell"),
    ("setx API_KEY winterfell", "winterfell"), ("the password is winterfell", "winterfell"),
    ("password is winterfell.", "winterfell"), ("Passwort: winterfell", "winterfell"),
    ("密码：winterfell9", "winterfell"), ("密码: winterfell", "winterfell"),
    ("contraseña: winterfell", "winterfell"), ("mot de passe : winterfell9", "winterfell"),
    ('["Authorization","Bearer winterfell"]', "winterfell"),
    ('h = ("Authorization", "Bearer winterfell")', "winterfell"),
    ("Authorization: Bearer winterfell", "winterfell"),
    ('{"headers":[["Authorization","Bearer winterfell"]]}', "winterfell"),
    ("smtp_pass = 'winterfell'", "winterfell"), ("user: bob, pass: Sommer2024", "Sommer2024"),
    ('{"pass":"Sommer2024"}', "Sommer2024"),
]
# M8: what a red team carried past the rules, and more of each class.
SURVIVED = [
    ("env:\n  - name: DB_PASS\n    value: zwiebelkuchen", "zwiebel"), ("the passcode is 482913", "482913"),
    ("connect('UID=bob;PWD=zwiebelkuchen')", "zwiebel"), ("Server=x;Password=zwiebelkuchen;", "zwiebel"),
    ("<Password>zwiebelkuchen</Password>", "zwiebel"), ('ALTER USER bob WITH PASSWORD "zwiebel7"', "zwiebel"),
    ("htpasswd -nb bob zwiebelkuchen", "zwiebel"), ("verification code is 482913", "482913"),
    ("credentials: bobsson:zwiebel7", "zwiebel"), ("lftp -u bob,zwiebelkuchen ftp.example.org", "zwiebel"),
    ("wpa_passphrase office zwiebelkuchen", "zwiebel"), ('psk="zwiebelkuchen"', "zwiebel"),
    ("nmcli dev wifi connect x password zwiebelkuchen", "zwiebel"),
    ("db:\n  password: |\n    Zw9!kq-Tundra4\n  port: 5", "Tundra4"),
    ("db:\n  password: >-\n    zwiebelkuchen\n  port: 5", "zwiebel"),
    ("ansible_become_pass: zwiebel7", "zwiebel7"), ("ansible_become_pass=zwiebelkuchen", "zwiebel"),
    ("ansible_ssh_pass: 'zwiebelkuchen'", "zwiebel"),
    ("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\nPublic-Lines: 2\n"
     "AAAAC3NzaC1lZDI1NTE5AAAAIKq\nabc\nPrivate-Lines: 1\nAAAAIEqK9zWq3nT5rB8mX2vL7pYc4dHs6gJf1aQe0uRo\n"
     "Private-MAC: 0011223344556677889900112233445566778899", "AAAAIEqK9zWq3nT5"),
    ("PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\n"
     "AAAAIEqK9zWq3nT5rB8mX2vL7pYc4dHs6gJf1aQe0uRoAAAAIEqK9zWq3nT5rB8m\n"
     "X2vL7pYc4dHs6gJf1aQe0uRo", "X2vL7pYc4dHs"),
    ("Private-Lines: 1\nAAAAIEqK9zWq3nT5rB8mX2vL7pYc4dHs6gJf1aQe0uRo\n", "AAAAIEqK9"),
    ("<input type=password value=zwiebel7>", "zwiebel7"),
    ('<input type="password" name="p" value="zwiebelkuchen"/>', "zwiebel"),
    ('<input value="zwiebelkuchen" name="p" type="password"/>', "zwiebel"),
    ("INSERT INTO users (id, name, password) VALUES (1, 'bob', 'zwiebelkuchen'), (2, 'al', 'it''s "
     "zwiebel9')", "zwiebel"),
    ("insert into `accounts`(`user`,`api_token`,`n`) values('bob','zwiebel7kuchen',3);", "zwiebel"),
    ("REPLACE INTO t (pw) VALUES ('zwiebelkuchen');", "zwiebel"),
    ('variable "db_password" {\n  type = string\n  default = "zwiebelkuchen"\n}', "zwiebel"),
    ('resource "x" "y" {\n  password = "zwiebelkuchen"\n}', "zwiebel"),
    ("curl -u admin:zwiebel https://example.org", "zwiebel"),
    ("curl -su admin:zwi/ebel https://example.org", "zwi/ebel"),
    ("curl -uadmin:zwiebel https://example.org", "zwiebel"),
    ("curl -u 'admin:zwi:eb$el' https://example.org", "zwi:eb"),
    ("wget --user=bob --password=zwiebelkuchen https://x.org", "zwiebel"),
    ("keytool -list -keystore k.jks -storepass zwiebelkuchen", "zwiebel"),
    ("jarsigner -keypass zwiebel7 a.jar", "zwiebel"), ("keytool -srcstorepass zwiebelkuchen", "zwiebel"),
    ("keytool -deststorepass:zwiebelkuchen", "zwiebel"),
    ("kubectl create secret generic s --from-literal=password=zwiebelkuchen", "zwiebel"),
    ("kubectl create secret generic s --from-literal=dbline='zwiebel7'", "zwiebel"),
    ("kubectl create secret generic s --from-literal user=bob --from-literal pw=zwiebel7", "zwiebel"),
    ('$p = ConvertTo-SecureString "zwiebelkuchen" -AsPlainText -Force', "zwiebel"),
    ("ConvertTo-SecureString -String 'zwiebel7' -AsPlainText", "zwiebel"),
    ("ConvertTo-SecureString -AsPlainText -Force 'zwiebel7'", "zwiebel"),
    ("echo zwiebelkuchen | sudo -S apt update", "zwiebel"), ("echo 'zwiebel7' | sudo -k -S ls", "zwiebel"),
    ('printf \'%s\\n\' "zwiebelkuchen" | sudo -S ls', "zwiebel"),
    ("sudo -S ls <<< zwiebelkuchen", "zwiebel"),
    ("openssl enc -aes-256-cbc -k zwiebelkuchen -in a", "zwiebel"),
    ("openssl enc -aes-256-cbc -in a -out b -K 00112233445566778899aabbccddeeff",
     "00112233445566778899aabbccddeeff"),
    ("openssl rsa -in k -passin pass:zwiebelkuchen", "zwiebel"),
    ("password was changed to zwiebelkuchen", "zwiebel"),
    ("The password was changed to zwiebel7, please log in", "zwiebel"),
    ("password has been reset to zwiebelkuchen.", "zwiebel"), ("I set the password to zwiebel7", "zwiebel"),
    ("reset your password for bob to zwiebelkuchen", "zwiebel"),
    ("password for bob is now zwiebel7", "zwiebel"), ("ｐａｓｓｗｏｒｄ＝ｚｗｉｅｂｅｌ７", "ｚｗｉｅｂｅｌ７"),
    ("password: ｚｗｉｅｂｅｌ７９", "ｚｗｉｅｂｅｌ"), ("mail ｂｏｂ．ｘｙ＠ｅｘａｍｐｌｅ．ｏｒｇ", "ｂｏｂ"),
    ("𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝=zwiebel7", "zwiebel7"),
    ("Here are the users, and what they use:\nuser,password\nbob,zwiebel7\nal,Sommer24", "Sommer24"),
    ("Accounts: user,password\nbob,zwiebel7\nal,Sommer24", "Sommer24"),
    ("The accounts follow.\nname;db_password\nbob;zwiebel7", "zwiebel"),
    ("wandb login 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
    ("my key is 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
    ("key 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
    ("seed phrase: witch collapse practice feed shame open despair creek road again ice least", "collapse"),
    ("My recovery phrase is witch collapse practice feed shame open despair creek road again ice "
     "least.", "collapse"),
    ("mnemonic = 'witch collapse practice feed shame open despair creek road again ice least'", "collapse"),
    ("mnemonic: witch, collapse, practice, feed, shame, open, despair, creek, road, again, ice, least",
     "collapse"),
    ("PIN: 4821", "4821"), ("the PIN is 482199", "482199"), ("pin code: 4821", "4821"),
    ("PIN was changed to 9182", "9182"), ("WIFI:T:WPA;S:office;P:zwiebelkuchen;;", "zwiebel"),
    ("WIFI:S:of\\;fice;T:WPA2;P:zwie\\;bel;H:true;;", "zwie"), ("admin / zwiebel7", "zwiebel7"),
    ("login: bobsson / zwiebel7", "zwiebel7"), ("credentials are mara77/zwiebel7", "zwiebel7"),
    ("net user bob Zwiebel7 /add", "Zwiebel7"), ("cmdkey /add:srv /user:bob /pass:Zwiebel7", "Zwiebel7"),
    ("ssh-keygen -t rsa -N zwiebelkuchen -f k", "zwiebel"), ("requirepass zwiebelkuchen", "zwiebel"),
    ("username bobsson privilege 15 password 0 zwiebelkuchen", "zwiebel"),
    ("snmp-server community zwiebelkuchen RO", "zwiebel"),
    ("jdbc:mysql://h.example.org/db?user=bob&password=zwiebel7", "zwiebel"),
    ("spring.datasource.password=zwiebelkuchen", "zwiebel"), ("<password>zwiebel7</password>", "zwiebel"),
    ("//registry.example.org/:_authToken=zwiebel7kuchen9", "zwiebel"),
    ("PGPASSWORD=zwiebelkuchen psql", "zwiebel"), ("export MYSQL_PWD=zwiebelkuchen", "zwiebel"),
    ("'password' => 'zwiebelkuchen'", "zwiebel"), ("gpg --batch --passphrase zwiebelkuchen -c a", "zwiebel"),
    ("aws configure set aws_secret_access_key wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzKEYq", "wJalrXUtn"),
    ("vault kv put secret/db password=zwiebelkuchen", "zwiebel"),
    ("twine upload -u bob -p zwiebel7", "zwiebel"), ("ftp://bob:zwiebel7@ftp.example.org", "zwiebel"),
    ("set_password('zwiebelkuchen')", "zwiebel"), ('expect "password:"\nsend "zwiebel7\\r"', "zwiebel"),
    ("smtp.login('bob@example.org', 'zwiebelkuchen')", "zwiebel"),
    ("passwords: [zwiebel7, kuchen88]", "zwiebel"), ("rpcpassword=zwiebelkuchen", "zwiebel"),
    ("otpauth://totp/x?secret=JBSWY3DPEHPK3PXP", "JBSWY3DP"), ("My card PIN (4821) works", "4821"),
]
USERS = [
    "sudo -u kvasirsson ls", "sudo -H -u kvasirsson bash", "sudo --user=kvasirsson id", "su - kvasirsson",
    "su -l kvasirsson -c 'ls'", "chown kvasirsson:kvasirsson /srv/a", "chown -R kvasirsson ./out",
    "chown -R root:kvasirsson /srv", "useradd -m -s /bin/bash kvasirsson", "adduser kvasirsson",
    "usermod -aG sudo kvasirsson", "$ whoami\nkvasirsson\n$ ls", "whoami\nkvasirsson",
    "out in /scratch/kvasirsson/run3/log",
]
DISGUISED = [
    ("ask mara.qu\u200bint@initech.io", "int@initech.io"),
    (f"pushed with {TOKEN[:12]}\u2060{TOKEN[12:]}", TOKEN[12:]),
    (f"key{TOKEN} and xAKIAQ7ZK2XW9LM4TR8VB", "AKIAQ7ZK2XW9LM4TR8VB"),
    (f"got {TOKEN[:14]}… and went on", TOKEN[:14]),
    ("listening on 192.168.17.…", "192.168.17"),
    ("schreib an jörg.müller@büro-süd.de bald", "müller"),
    ("письмо от ivan@почта.рф", "почта"),
    ('password = "two words; and & more"', "more"),
    ("DB_PASSWORD=ab12&cd34;ef", "cd34"),
    ("curl --user 'mara:s3cr!et9' https://example.org", "s3cr!et9"),
    ("mysql -h db -u mara -phunter2x main", "hunter2x"),
    ("redis-cli -h c -a aB3dE6gH9 ping", "aB3dE6gH9"),
    ("machine example.org login mara77 password hunter2x", "hunter2x"),
    ("db.example.org:5432:main:mara:hunter2x", "hunter2x"),
    ("mara:$6$aB3dE6gH$" + "q7Zk2Xw9Lm" * 8 + ":19000:0:", "q7Zk2Xw9Lm"),
    ("kind: Secret\ndata:\n  pass: aHVudGVyMnh5eg==\n", "aHVudGVyMnh5eg"),
    ('<add key="Password" value="hunter2x" />', "hunter2x"),
    ("- name: DB_PASSWORD\n  value: hunter2x\n", "hunter2x"),
    ("AKIAQ7ZK2XW9LM4TR8VB:" + "q7Zk2Xw9Lm" * 4, "q7Zk2Xw9Lm"),
    (f"used acme_live_{RANDOM} here", RANDOM),
    (f"the answer was {RANDOM}k7 today", RANDOM),
    ("copied to \\\\nas-07\\plans\\a.txt", "nas-07"),
    ("in %SystemDrive%\\Users\\kvasir\\x", "kvasir"),
    ("opened file:///C:/Users/kvasir/a.txt", "kvasir"),
    ("ssh -p 22 -l kvasir7 node", "kvasir7"),
    ("scp a.txt kvasir@node-3:out/", "kvasir"),
    ("rsync -a x kvasir@203.0.113.9:x", "kvasir"),
    ("inet6 fe80::1a2b:3c4d:5e6f:7081/64", "fe80::1a2b"),
    ("curl \\\n  -H 'Authorization: \\\n  Bearer q7Zk2Xw9Lm4Tr8'", "q7Zk2Xw9Lm4Tr8"),
    ("step=3&text=the+password+is%3A+hunter2x&n=2", "hunter2x"),
    ("q=mara.quint%40b%C3%BCro.de", "quint"),
    ("-----BEGIN PRIVATE KEY-----\\nabcd1234\\n-----END PRIVATE KEY-----", "abcd1234"),
]
STAYS = [
    "max_tokens: 4096 and eos_token = '</s>'", "token = tokens[i]", "password = get_password()",
    "api_key = os.environ['KEY']", "password: <your password>", "the author of the order is unknown",
    "order #W2378156, item 1508 and 9f8e7d6c-1111-4222-8333-123456789abc",
    "commit 0123456789abcdef0123456789abcdef01234567", "sha256: " + "0123456789abcdef" * 4,
    "pass@1 and pass@k, majority@8", "import threading; x = threading.local()",
    "sk-learn-preprocessing-pipeline-v2-final",
    "https://example.org/users/12/posts and http://localhost:8000/v1",
    "version 10.4.2 of 127.0.0.1 at 0.0.0.0:80", "git clone git@github.com:org/repo.git",
    "/home/user/work and /root/x", "User: hello there, my username is on file",
    "@property\ndef name(self): ...",
    "password: required", "password = get_password()", "--password PASSWORD", "--password <password>",
    "password is wrong", "the password is missing", "password is incorrect", "password is not valid",
    "Your password is too short", "password is stored in the vault", "the password is hashed",
    "password is the one you chose", "password is visible to all", "the password is encrypted with bcrypt",
    "if the password is correct, log in", "password is case-sensitive", "pass: 12", '{"pass": true}',
    '{"pass":"yes"}', '{"pass": 12}', "pass@1: 0.45", "pass@1 = 0.4", "passed: 12", "passes",
    "pass rate: 40%", "n_pass: 12", '{"n_pass": "12"}', "pass_rate=0.4", '{"password": {"type": "string"}}',
    '{"type":"object","properties":{"password":{"type":"string","description":"the password"}},"required":["password","username"]}',
    "first_pass: done", "second pass: fixed it", '{"verdict":"pass"}', '{"pass":"all tests"}',
    '{"all_pass":"true"}', "tests pass: everything fine", "--api-key KEY", "--api-key $API_KEY",
    "--token TOKEN", "--password is required", "use --password to set it", "--password, -p",
    "--password=... or", "[--password PASSWORD]", "the --password option", "--password flag is missing",
    "--secret and more", "| field | type |\n|---|---|\n| password | string |\n",
    "| password | required |\n|---|---|\n| min 8 characters | yes |", "user,password\nstring,required\n",
    "SET PASSWORD FOR bob", "ask for a password 'in the form'", "IDENTIFIED BY PASSWORD",
    "identified by 'id' column", "unzip -p a.zip", "unzip -q data.zip", '["password","username"]',
    '["token","user"]', '{"name":"password","value":""}', '{"name":"password","description":"the value"}',
    '{"name":"token","value":"next"}', '{"name":"password","type":"string","value":"required"}',
    "def f(password, user): pass", "pass the salt", "pass: the test runs",
    '{"key":"token_count","value":"12345678"}', "Passwort: erforderlich", "密码：必填", "basic usage",
    "bearer of news", "Authorization: Bearer token", "Authorization header required",
    "Authorization: Bearer <token>", "bypass: enabled1", "compass: north12345", "getpass(prompt)",
    "pwd: /tmp/x", "cd $PWD", "pw = pd.read_csv", "pass # nothing else8", "class A:\n    pass\n\nclass B2:",
    "else: pass\nx = 12345678", "try:\n    pass\nexcept Exception1234:", "two-pass: algorithm99",
    "multi_pass=encoder2x", "PASS: test_foo_1234", "PASS: tests/test_a.py::test_b1",
    "pass: test_login_works1", "FAIL/PASS: run12345", "RESULT pass=test12345 fail=3", "echo 'a:b'",
    "chpasswd reads user:password pairs",
    "sudo -u postgres psql", "sudo -u www-data ls", "sudo apt install -u curl", "su - root", "su - postgres",
    "chown user:group file.txt", "chown www-data:www-data /var/www", "chown changes the owner of a file.",
    "chown root:root /etc/x", "useradd newuser", "useradd -m testuser", "the useradd command",
    "whoami\nroot\n", "whoami prints who you are\nand more", "run whoami\nthen", "/scratch/tmp/x",
    "/scratch/imagenet/train", "/scratch/models/x", "from /scratch/data/a",
    "token_count: 1234, max_tokens=4096, tokens used: 45000",
    "version 10.0.1, v10.12.3 and 10.0.1.dev2, numpy==1.26.4",
    "call_q7Zk2Xw9Lm4Tr8Vb3Ny6Pd1H and chatcmpl-B7Zk2Xw9Lm4Tr8Vb3Ny6Pd1Hs5Gj",
    "resp_0123456789abcdef0123456789abcdef0123456789abcdef",
    "sha256:" + "0123456789abcdef" * 4 + " sha512-q7Zk2Xw9Lm4Tr8Vb3Ny6Pd1Hs5Gj0Fcq7Zk2Xw9Lm4Tr8Vb",
    "layer_0123456789abcdef0123456789abcdef01234567",
    "Qwen2-5-Coder-32B-Instruct-AWQ-4bit-g128 and gpt-4o-mini-2024-07-18-temp0-7",
    "test_that_base64_url_encode_v2_handles_sha256_and_utf8_input",
    "HmacSha256SignatureV4TestCase_WithBase64UrlEncoding2",
    "https://example.org/blog/2024/05/17/how-we-made-search-10x-faster-with-bm25-and-hnsw",
    "-4.050116856873293505e6-1.207476188206989909e7j",
    "pip install left@1.2.3 right@latest; @property; @app.route('/x'); pass@8",
    "a & b \\\\hline\\textbf{x} & \\\\cline{2-3}\\alpha + \\beta", "password = get_password(user_id2)",
    "api_key = load_key(path, 3)",
    "find / -name mysql -print; mysql -p main; docker run -p 8080:80 x; find . -name '*.zip' -print; ssh -l",
    "file.py:12:34: error: expected ':' here", "price is $2 and $6$ and $1$2, the sum \\$5 \\& more",
    "kind: Secretary\ndata:\n  a: b\n", "f(x)=a+b&c, x=1+2&y=3", 'key="width" value="1200"',
    "0x0123456789abcdef0123456789abcdef01234567",
    "AB12-CD34 and 2024-11-15-10-30-00 and ISBN 978-3-16-148410-0", "👩\u200d🔬 می\u200cخواهم",
]
BESIDE = [  # what stands beside a value gives it away
    "password: hunter2x", 'api_key = "some-word-key"', "REFRESH_TOKEN=9f8e7d6c5b",
    "Authorization: Bearer abcdefgh12345678", "https://x.example.org/a?sig=abcd1234efgh",
    "postgres://svc:pa55word@db.example.org/x", r"C:\Users\kvasir\a.txt", "USER=kvasir",
    "-rw-r--r-- 1 kvasir staff 12 Jan 1 10:00 a", "ssh kvasir@node-3", "fd12:3456:789a::1",
    "the wandb key: 0123456789abcdef0123456789abcdef01234567",
]


def clean(text: str) -> str:
    return Cleaner(KEY).row(text)


NAMED = [(text, "kvasirsson") for text in USERS]


@pytest.mark.parametrize(("text", "value"), [*CHOSEN, *SURVIVED, *DISGUISED, *NAMED])
def test_what_is_private_goes_in_any_disguise(text: str, value: str) -> None:
    assert value in text
    for raw in (text, json.dumps({"note": text}), json.dumps({"note": text}, ensure_ascii=False)):
        new = clean(raw)
        assert value not in (new if raw == text else json.loads(new)["note"])
        assert clean(new) == new


@pytest.mark.parametrize("text", BESIDE)
def test_what_stands_beside_a_value_gives_it_away(text: str) -> None:
    assert clean(text) != text


@pytest.mark.parametrize("text", STAYS)
def test_what_only_looks_private_stays(text: str) -> None:
    assert clean(text) == text
    assert clean(json.dumps({"a": text})) == json.dumps({"a": text})


def test_an_id_stays_where_a_secret_is_named_before_it() -> None:
    row = '{"name": "API_KEY", "task_id": "winterfell9", "reward": 1.0, "value": "sommerabend7"}'
    new = Cleaner(KEY).row(row)
    assert '"task_id": "winterfell9", "reward": 1.0' in new
    assert "sommerabend7" not in new


@pytest.mark.parametrize("at", range(5, 36))
@pytest.mark.parametrize("gap", ["\n", "\r\n", "\n    ", "\n> "])
def test_a_token_over_two_lines_goes(at: int, gap: str) -> None:
    new = Cleaner(KEY).text(f"pushed with {TORN[:at]}{gap}{TORN[at:]} today\nnext line")
    assert TORN[:at] not in new
    if at < 34:
        assert TORN[at:] not in new
    assert new.endswith(" today\nnext line")


def test_the_line_after_a_whole_token_stays() -> None:
    for after in ("gpt4 was asked", "step12", "a plain line"):
        assert Cleaner(KEY).text(f"with {TORN}\n{after}").endswith(f"]\n{after}")
    for text in ("hf_hub\nv2 of it12345", "npm_config\ntest1234567", "sk-proj-\nabcdef12"):
        assert Cleaner(KEY).text(text) == text


def test_encoded_data_stays_as_it_is() -> None:
    data = bytes(at * 37 % 251 for at in range(6_000))
    for text in (base64.b64encode(data).decode(), base64.encodebytes(data).decode(), data.hex()):
        assert clean(text) == text
    words = base64.encodebytes(b"a line of nothing much, said again and again\n" * 40).decode()
    assert clean(words) == words


def test_a_quotation_of_an_escaped_value_is_known_with_the_key() -> None:
    raw = "ask mara.qu\u200bint@initech.io or q=x&to=mara.quint%40initech.io now"
    new = clean(raw)
    assert new.count(KEY.placeholder("EMAIL", "mara.quint@initech.io")) == 2
    assert new.startswith("ask [")
    assert new.endswith(" now")


@given(st.text(alphabet="ab1A_-.\\u200b%4026+=& \n\u200b…~$:", max_size=80))
def test_odd_texts_are_answered_and_stay_stable(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@pytest.mark.parametrize(
    "piece", ["%E2%80%8B", "a=b+c&", "x=+", "\\\n ", "\\\\a", "\u200b", "mysql -", "$6$a", "A1b-", "a1_", "insert into t (pw) values (" + "'" * 60, "sudo -S ",
     "<input type=password ", "login: a / b ", "seed phrase is able ", "password: |\n  a\n", "𝐩", "passwords: ["]
)
def test_a_long_text_of_one_disguise_is_answered(piece: str) -> None:
    # what grows with the square of the length would not come back from this
    assert clean(piece * 60_000) is not None
