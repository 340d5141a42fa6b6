"""What people say in the scene, and what its agents do then, in the words of the guide's script."""

BACK = "After the login everybody lands on the start page. Send people back to where they came from."
SLASHES = "What about `//example.org`? Browsers read that as another site."
NAMES = "Please name the parameter `return_to` everywhere."
LEFT = "Good. Is there anything left to do?"
FOOTER = "The footer says 2025."
EXPORTS = "Nobody needs the exports of 2019 any more."
INVOICES = "Customers in France get English invoices."
PAYMENT = "The payment library is two versions behind."
SEARCH = "How long does a search take, and which words are slow?"
BEAT = "heartbeat"

_QUERIES = "\n".join(f"- query {number}: {number * 7 % 23 + 4} ms" for number in range(1, 60))

PLAYBOOK = {
    BACK: """\
THINK: The address must survive the redirect, and must never lead to another site.
PLAN: Read the login view; keep the address; refuse foreign ones; test it
WRITE: shop/login.py NEXT = "next"
RUN: ls -1 shop && git status --short
REPLY:
The login now **keeps the way back**.

1. `shop/login.py` reads `next` and checks that it stays on this site.
2. A foreign address is ignored, with a line in the log.

```python
def target(query: dict[str, str]) -> str:
    wanted = query.get("next", "/")
    return wanted if wanted.startswith("/") else "/"
```

| address | goes to |
|---|---|
| `/basket` | `/basket` |
| `https://example.org` | `/` |
""",
    SLASHES: """\
WRITE: shop/address.py def local(address): return address.startswith("/") and not address.startswith("//")
WRITE: tests/test_address.py def test_two_slashes(): assert True
RUN: python3 -c "print('2 passed')"
REPLY:
Right, that was a hole. `local()` refuses two slashes, and a test says so.
""",
    NAMES: 'WRITE: shop/login.py RETURN_TO = "return_to"\nSAY: Renamed in `shop/login.py`. Nothing else used it.',
    LEFT: "SAY: Only the sentence in the manual. Shall I write it?",
    FOOTER: "WRITE: footer.html <p>2026</p>\nSAY: It says 2026 now.",
    EXPORTS: "THINK: The directory has one file.\nRUN: rm -r exports/2019\nSAY: They are gone.",
    PAYMENT: "FAIL: 400",
    SEARCH: f"SLOW: 3600\nREPLY:\nI measure query after query.\n\n{_QUERIES}\n",
    BEAT: "RUN: git --version\nSAY: Nothing new since the last look.",
}
