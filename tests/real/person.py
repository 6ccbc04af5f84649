"""A person with a browser: opens pages, keeps cookies, fills in forms and presses the button that agrees.

Knows nothing of the pages but what a person sees: which field is for a password, and what stands on a button.
"""

import re
import time
from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

NAME, PASSWORD = "masa", "正しい馬 電池 staple"
PAGES = 12
LINK_SECONDS = 60
NO = re.compile(r"deny|cancel|refuse|log ?out|passkey|拒否|ログアウト|キャンセル|パスキー", re.I)


class Person:
    def __init__(self, name: str = NAME, password: str = PASSWORD, context=None):
        self.name, self.password = name, password
        # Cookies of loopback addresses are kept as those of any host.
        jar = CookieJar(DefaultCookiePolicy(strict_domain=False, secure_protocols=("https", "http")))
        handlers = [HTTPCookieProcessor(jar), Still()] + ([HTTPSHandler(context=context)] if context else [])
        self.browser = build_opener(*handlers)
        self.seen: list[str] = []

    def set_up(self, gateway) -> None:
        """Takes the link that a new hikite prints, and becomes its owner."""
        deadline = time.monotonic() + LINK_SECONDS
        while not (link := re.search(r"https?://\S+/setup\?\S+", gateway.log())) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert link, f"no link to begin with:\n{gateway.log()}"
        end = self.go(link[0], until=lambda url: urlsplit(url).path.startswith("/ui"))
        assert end, "the set-up did not lead to the pages"

    def authorize(self, url: str) -> dict[str, str]:
        """From the address that a client opens to what its callback gets."""
        back = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
        end = self.go(url, until=lambda url: url.startswith(back))
        assert end, f"the person did not come back to {back}; seen:\n" + "\n---\n".join(self.seen[-3:])
        return dict(parse_qsl(urlsplit(end).query))

    def go(self, url: str, until) -> str | None:
        """Follows redirects and fills in forms until an address is reached, or there is nothing to fill in."""
        data = None
        for _ in range(PAGES):
            if until(url):
                return url
            status, headers, page = self.fetch(url, data)
            if status in (301, 302, 303, 307, 308):
                url, data = urljoin(url, headers["Location"]), data if status in (307, 308) else None
                continue
            self.seen.append(f"{status} {url}\n{page}")
            assert status < 400, f"{url} answers {status}:\n{page}"
            form = Forms.of(page)
            if form is None:
                return None
            target, data = urljoin(url, form.action or url), urlencode(form.filled(self.name, self.password)).encode()
            url, data = (target, data) if form.method == "post" else (f"{target}?{data.decode()}", None)
        raise AssertionError(f"no end after {PAGES} pages; the last was {url}")

    def fetch(self, url: str, data: bytes | None):
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        headers = {"Accept": "text/html", "Accept-Language": "en"} | ({"Origin": origin} if data is not None else {})
        try:
            answer = self.browser.open(Request(url, data, headers), timeout=30)
        except HTTPError as refused:
            answer = refused
        with answer:
            return answer.status, answer.headers, answer.read().decode()


class Still(HTTPRedirectHandler):
    """Redirects are followed by the person, who looks where they lead."""

    def redirect_request(self, *_):
        return None


class Form:
    def __init__(self, attributes: dict[str, str | None]):
        self.action, self.method = attributes.get("action"), (attributes.get("method") or "get").lower()
        self.fields: list[dict] = []
        self.buttons: list[dict] = []

    def filled(self, name: str, password: str) -> list[tuple[str, str]]:
        values = []
        for field in self.fields:
            kind = field.get("type") or "text"
            if kind in ("checkbox", "radio") and "checked" not in field:
                continue
            typed = {"password": password, "text": name, "email": f"{name}@example.com"}.get(kind)
            value = field.get("value") or typed or ""
            if field.get("name"):
                values.append((field["name"], value))
        yes = next((button for button in self.buttons if not button["no"]), None)
        if yes and yes.get("name"):
            values.append((yes["name"], yes.get("value") or ""))
        return values


class Forms(HTMLParser):
    def __init__(self):
        super().__init__()
        self.forms: list[Form] = []
        self.button: dict | None = None

    @classmethod
    def of(cls, page: str) -> Form | None:
        """The first form that can be agreed to."""
        parser = cls()
        parser.feed(page)
        return next((form for form in parser.forms if any(not button["no"] for button in form.buttons)), None)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self.forms.append(Form(attributes))
        elif tag == "input" and self.forms:
            self.forms[-1].fields.append(attributes)
        elif tag == "button" and self.forms:
            self.button = attributes | {"no": bool(NO.search(f"{attributes.get('value')} {attributes.get('id')}"))}
            self.forms[-1].buttons.append(self.button)

    def handle_data(self, data):
        if self.button is not None and NO.search(data):
            self.button["no"] = True

    def handle_endtag(self, tag):
        if tag == "button":
            self.button = None
